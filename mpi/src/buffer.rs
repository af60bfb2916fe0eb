//! Buffers of rank programs: memory, the type of its elements, and how many there are. A slice of
//! values is one; so is memory that a derived datatype picks elements from, and memory of a process
//! of its own.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::datatype::{Basic, Datatype, pack};
use crate::error::{ErrorClass, Fault};

/// A value of a predefined datatype.
pub trait Scalar: bytemuck::Pod + Send + Sync {
    /// The datatype.
    const BASIC: Basic;
}

macro_rules! scalars {
    ($($type:ty = $basic:ident),* $(,)?) => {
        $(impl Scalar for $type {
            const BASIC: Basic = Basic::$basic;
        })*
    };
}

scalars! {
    u8 = Uint8, i8 = Int8, u16 = Uint16, i16 = Int16, u32 = Uint32, i32 = Int32, u64 = Uint64, i64 = Int64,
    f32 = Float, f64 = Double,
}

/// The memory of a process outside, by its addresses.
pub trait Outside: fmt::Debug + Send + Sync {
    /// Appends the bytes of `blocks`, each an address and a length, to `into`.
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`] if the process has no such memory.
    fn read(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        into: &mut Vec<u8>,
    ) -> Result<(), Fault>;

    /// Writes `bytes` to `blocks`, as many as there are: the last ones may not be reached.
    ///
    /// # Errors
    /// As [`Outside::read`].
    fn write(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
    ) -> Result<(), Fault>;

    /// The same for memory that the process may look at before the call ends that it is in: another
    /// thread of it may wait for what another rank writes.
    ///
    /// # Errors
    /// As [`Outside::read`].
    fn write_at_once(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        self.write(blocks, bytes)
    }
}

/// Memory that a buffer's elements are read from.
#[derive(Clone, Debug)]
enum Memory<'a> {
    Here(&'a [u8]),
    Outside(Arc<dyn Outside>),
}

/// Memory that a buffer's elements are written to.
#[derive(Debug)]
enum MemoryMut<'a> {
    Here(&'a mut [u8]),
    Outside(Arc<dyn Outside>),
}

/// Elements to send.
#[derive(Clone, Debug)]
pub struct Buffer<'a> {
    memory: Memory<'a>,
    origin: usize,
    count: i64,
    datatype: Datatype,
    address: Option<u64>,
}

/// Elements to receive into.
#[derive(Debug)]
pub struct BufferMut<'a> {
    memory: MemoryMut<'a>,
    origin: usize,
    count: i64,
    datatype: Datatype,
    address: Option<u64>,
}

impl<'a> Buffer<'a> {
    /// `count` elements of `datatype` in `memory`, of which displacement 0 is at byte `origin`.
    pub fn new(memory: &'a [u8], origin: usize, count: i64, datatype: &Datatype) -> Self {
        Self::of(Memory::Here(memory), origin, count, datatype)
    }

    /// `count` elements of `datatype` in the memory of a process, of which displacement 0 is at
    /// `address`.
    pub fn outside(
        memory: Arc<dyn Outside>,
        address: u64,
        count: i64,
        datatype: &Datatype,
    ) -> Self {
        Self::of(Memory::Outside(memory), address as usize, count, datatype)
    }

    fn of(memory: Memory<'a>, origin: usize, count: i64, datatype: &Datatype) -> Self {
        Self {
            memory,
            origin,
            count,
            datatype: datatype.clone(),
            address: None,
        }
    }

    /// The same; in the rank's own simulated memory it begins at `address`, on which the time for
    /// copying it depends. Without an address its data are in the core's first-level cache; so are
    /// those of a datatype with gaps, which are packed first.
    #[must_use]
    pub fn at(self, address: u64) -> Self {
        let address = Some(address);
        Self { address, ..self }
    }

    /// The same without an address.
    pub(crate) fn anywhere(self) -> Self {
        let address = None;
        Self { address, ..self }
    }

    /// The simulated address of its data, if they are contiguous and have one.
    pub(crate) fn address(&self) -> Option<u64> {
        let address = self.address.filter(|_| self.datatype.is_contiguous())?;
        Some(address.saturating_add(self.origin as u64))
    }

    /// No elements.
    pub fn empty() -> Self {
        Self::new(&[], 0, 0, &Datatype::from(Basic::Byte))
    }

    /// Returns the number of elements.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Their datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Bytes of data.
    pub fn bytes(&self) -> u64 {
        bytes(self.count, &self.datatype)
    }

    /// The data, packed.
    ///
    /// # Errors
    /// The elements are not inside the memory.
    pub(crate) fn packed(&self) -> Result<Vec<u8>, Fault> {
        self.packed_piece(&self.whole())
    }

    /// The data of a piece of the memory, packed.
    ///
    /// # Errors
    /// As [`Buffer::packed`].
    pub(crate) fn packed_piece(&self, piece: &Piece) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let (origin, count, datatype) = (piece.place()?, piece.count, &piece.datatype);
        match &self.memory {
            Memory::Here(memory) => pack::pack(memory, origin, count, datatype, &mut bytes)?,
            Memory::Outside(memory) => memory.read(&mut piece.blocks()?, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// The packed data from byte `from` on, `most` bytes of them at most.
    ///
    /// # Errors
    /// As [`Buffer::packed`].
    pub(crate) fn packed_part(&self, from: u64, most: u64) -> Result<Vec<u8>, Fault> {
        let (whole, mut bytes) = (self.whole(), Vec::new());
        let mut left = most;
        let mut blocks = whole.blocks_from(from)?.map_while(|(address, bytes)| {
            let now = (bytes as u64).min(left);
            left -= now;
            (now > 0).then_some((address, now as usize))
        });
        match &self.memory {
            Memory::Here(memory) => {
                for (at, length) in blocks {
                    bytes.extend_from_slice(&memory[within(memory.len(), at, length)?]);
                }
            }
            Memory::Outside(memory) => memory.read(&mut blocks, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// All of it as a piece.
    pub(crate) fn whole(&self) -> Piece {
        Piece {
            origin: self.origin as i64,
            count: self.count,
            datatype: self.datatype.clone(),
        }
    }
}

impl<'a> BufferMut<'a> {
    /// Room for `count` elements of `datatype` in `memory`, of which displacement 0 is at byte
    /// `origin`.
    pub fn new(memory: &'a mut [u8], origin: usize, count: i64, datatype: &Datatype) -> Self {
        Self::of(MemoryMut::Here(memory), origin, count, datatype)
    }

    /// Room for `count` elements of `datatype` in the memory of a process: see
    /// [`Buffer::outside`].
    pub fn outside(
        memory: Arc<dyn Outside>,
        address: u64,
        count: i64,
        datatype: &Datatype,
    ) -> Self {
        let memory = MemoryMut::Outside(memory);
        Self::of(memory, address as usize, count, datatype)
    }

    fn of(memory: MemoryMut<'a>, origin: usize, count: i64, datatype: &Datatype) -> Self {
        Self {
            memory,
            origin,
            count,
            datatype: datatype.clone(),
            address: None,
        }
    }

    /// The same; in the rank's own simulated memory it begins at `address`: see [`Buffer::at`].
    #[must_use]
    pub fn at(self, address: u64) -> Self {
        let address = Some(address);
        Self { address, ..self }
    }

    /// No room.
    pub fn empty() -> Self {
        Self::new(&mut [], 0, 0, &Datatype::from(Basic::Byte))
    }

    /// Returns the number of elements.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Their datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Bytes of data.
    pub fn bytes(&self) -> u64 {
        bytes(self.count, &self.datatype)
    }

    /// Returns the current contents as a buffer to read from.
    pub fn shared(&self) -> Buffer<'_> {
        let memory = match &self.memory {
            MemoryMut::Here(memory) => Memory::Here(memory),
            MemoryMut::Outside(memory) => Memory::Outside(Arc::clone(memory)),
        };
        let shared = Buffer::of(memory, self.origin, self.count, &self.datatype);
        Buffer {
            address: self.address,
            ..shared
        }
    }

    /// Takes in packed data, as many as there are.
    ///
    /// # Errors
    /// The elements are not inside the memory.
    pub(crate) fn unpack(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let whole = self.shared().whole();
        self.unpack_piece(&whole, bytes)
    }

    /// Takes in packed data, which begin at byte `from` of all.
    ///
    /// # Errors
    /// As [`BufferMut::unpack`].
    pub(crate) fn unpack_part(&mut self, from: u64, bytes: &[u8]) -> Result<(), Fault> {
        let whole = self.shared().whole();
        let mut blocks = whole.blocks_from(from)?;
        match &mut self.memory {
            MemoryMut::Here(memory) => {
                let mut left = bytes;
                for (at, length) in blocks {
                    let (now, later) = left.split_at(length.min(left.len()));
                    let place = within(memory.len(), at, now.len())?;
                    memory[place].copy_from_slice(now);
                    left = later;
                    if left.is_empty() {
                        break;
                    }
                }
                Ok(())
            }
            MemoryMut::Outside(memory) => memory.write(&mut blocks, bytes),
        }
    }

    /// Takes packed data into a piece of the memory.
    ///
    /// # Errors
    /// As [`BufferMut::unpack`].
    pub(crate) fn unpack_piece(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), Fault> {
        let (origin, count, datatype) = (piece.place()?, piece.count, &piece.datatype);
        match &mut self.memory {
            MemoryMut::Here(memory) => {
                pack::unpack(bytes, memory, origin, count, datatype)?;
                Ok(())
            }
            MemoryMut::Outside(memory) => memory.write(&mut piece.blocks()?, bytes),
        }
    }
}

/// Elements somewhere in the memory of a buffer.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The byte of the memory at which displacement 0 is.
    pub origin: i64,
    /// The number of elements.
    pub count: i64,
    /// Their datatype.
    pub datatype: Datatype,
}

/// The place of a block in memory of so many bytes.
fn within(memory: usize, at: u64, bytes: usize) -> Result<Range<usize>, Fault> {
    let begin = usize::try_from(at).ok();
    let place = begin.and_then(|begin| Some(begin..begin.checked_add(bytes)?));
    place.filter(|place| place.end <= memory).ok_or_else(|| {
        let text = format!("{bytes} bytes at {at} are not in memory");
        Fault::new(ErrorClass::Buffer, "buf", text)
    })
}

fn bytes(count: i64, datatype: &Datatype) -> u64 {
    let count = u64::try_from(count).unwrap_or(0);
    count.saturating_mul(datatype.size() as u64)
}

impl Piece {
    /// Its origin, if that is in the memory.
    fn place(&self) -> Result<usize, Fault> {
        usize::try_from(self.origin).map_err(|_| {
            let text = format!(
                "a block begins {} bytes before the memory",
                self.origin.abs()
            );
            Fault::new(ErrorClass::Buffer, "displs", text)
        })
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        bytes(self.count, &self.datatype) as usize
    }

    /// Its blocks, by the addresses where they begin.
    fn blocks(&self) -> Result<impl Iterator<Item = (u64, usize)>, Fault> {
        self.blocks_from(0)
    }

    /// The same without the first bytes of data.
    fn blocks_from(&self, from: u64) -> Result<impl Iterator<Item = (u64, usize)>, Fault> {
        let origin = self.origin;
        let blocks = self.datatype.blocks_from(self.count, from)?;
        Ok(blocks.map(move |block| {
            let begin = origin.wrapping_add(block.displacement);
            (begin as u64, block.bytes)
        }))
    }
}

impl<'a, T: Scalar> From<&'a [T]> for Buffer<'a> {
    fn from(values: &'a [T]) -> Self {
        let datatype = Datatype::from(T::BASIC);
        Self::new(
            bytemuck::cast_slice(values),
            0,
            values.len() as i64,
            &datatype,
        )
    }
}

impl<'a, T: Scalar> From<&'a Vec<T>> for Buffer<'a> {
    fn from(values: &'a Vec<T>) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T: Scalar, const N: usize> From<&'a [T; N]> for Buffer<'a> {
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<'a, T: Scalar> From<&'a mut [T]> for BufferMut<'a> {
    fn from(values: &'a mut [T]) -> Self {
        let count = values.len() as i64;
        let datatype = Datatype::from(T::BASIC);
        Self::new(bytemuck::cast_slice_mut(values), 0, count, &datatype)
    }
}

impl<'a, T: Scalar> From<&'a mut Vec<T>> for BufferMut<'a> {
    fn from(values: &'a mut Vec<T>) -> Self {
        Self::from(values.as_mut_slice())
    }
}

impl<'a, T: Scalar, const N: usize> From<&'a mut [T; N]> for BufferMut<'a> {
    fn from(values: &'a mut [T; N]) -> Self {
        Self::from(values.as_mut_slice())
    }
}
