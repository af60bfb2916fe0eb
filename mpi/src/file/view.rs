//! Views (MPI-4.1, Sec. 14.3): the bytes of a file that a rank sees. Behind a displacement the
//! filetype is repeated, and its data, one copy after the other, are the data of the view.

use super::negative;
use crate::datatype::{Basic, Blocks, Datatype};
use crate::error::{ErrorClass, Fault};

/// The representation of data in a file (MPI-4.1, Sec. 14.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// As in memory.
    Native,
    /// In a form of the library's, which is that of memory.
    Internal,
}

impl Representation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Native, Self::Internal];

    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
        }
    }

    /// The representation with this name.
    ///
    /// # Errors
    /// [`ErrorClass::UnsupportedDatarep`]
    pub fn named(name: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let text = format!("{name} is not supported");
            Fault::new(ErrorClass::UnsupportedDatarep, "datarep", text)
        })
    }
}

/// A view.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype: Datatype,
    filetype: Datatype,
    representation: Representation,
}

impl Default for View {
    /// The bytes of the file.
    fn default() -> Self {
        let byte = Datatype::from(Basic::Byte);
        Self {
            displacement: 0,
            etype: byte.clone(),
            filetype: byte,
            representation: Representation::Native,
        }
    }
}

impl View {
    /// The view of these parts; `writes` says whether the file may be written by it.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] of a negative displacement, of types without size, and of a filetype
    /// whose data begin before it or are no whole etypes; [`ErrorClass::Io`] of one whose data do
    /// not ascend, if the file may be written.
    pub fn new(
        displacement: i64,
        (etype, filetype): (&Datatype, &Datatype),
        representation: Representation,
        writes: bool,
    ) -> Result<Self, Fault> {
        let wrong = |argument, text| Err(Fault::new(ErrorClass::Arg, argument, text));
        let displacement =
            u64::try_from(displacement).map_err(|_| negative("disp", displacement))?;
        if etype.size() == 0 {
            return wrong("etype", "it has no data");
        }
        if filetype.size() % etype.size() != 0 {
            return wrong("filetype", "its size is no multiple of that of the etype");
        }
        if filetype.true_lower_bound() < 0 || filetype.size() > 0 && filetype.extent() <= 0 {
            return wrong("filetype", "its data or its copies do not go forward");
        }
        if writes && !filetype.is_ascending() {
            let text = "its data do not ascend, and the file may be written";
            return Err(Fault::new(ErrorClass::Io, "filetype", text));
        }
        Ok(Self {
            displacement,
            etype: etype.clone(),
            filetype: filetype.clone(),
            representation,
        })
    }

    /// The same, which begins at this byte of the file.
    #[must_use]
    pub fn at(self, displacement: u64) -> Self {
        Self {
            displacement,
            ..self
        }
    }

    /// The byte of the file at which it begins.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// The type of its elements.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// The type that is repeated.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// The representation of its data.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Bytes of an etype, at least 1.
    pub(super) fn etype_bytes(&self) -> u64 {
        (self.etype.size() as u64).max(1)
    }

    /// The etypes that are so many bytes.
    ///
    /// # Errors
    /// [`ErrorClass::Io`] if they are not whole.
    pub fn etypes(&self, bytes: u64) -> Result<u64, Fault> {
        let each = self.etype_bytes();
        match bytes.is_multiple_of(each) {
            true => Ok(bytes / each),
            false => {
                let text = format!("{bytes} bytes are no whole etypes of {each}");
                Err(Fault::new(ErrorClass::Io, "count", text))
            }
        }
    }

    /// Bytes of data before an offset in etypes.
    pub(super) fn bytes(&self, offset: u64) -> Result<u64, Fault> {
        let bytes = offset.checked_mul(self.etype_bytes());
        let bytes = bytes.filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| too_far(offset))
    }

    /// The place in the file of the byte of data with this number.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if no file is so long.
    pub(super) fn place(&self, number: u64) -> Result<u64, Fault> {
        let mut regions = self.regions(number, 1)?;
        Ok(regions.next(1)?.map_or(self.displacement, |(at, _)| at))
    }

    /// The regions of the file that `bytes` bytes of data, from the byte with the number `from` on,
    /// are: none if the view has no data.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if no file is so long.
    pub(super) fn regions(&self, from: u64, bytes: u64) -> Result<Regions<'_>, Fault> {
        let each = (self.filetype.size() as u64).max(1);
        let (copy, within) = (from / each, from % each);
        let copies = within.saturating_add(bytes).div_ceil(each);
        let copies = i64::try_from(copies).map_err(|_| too_far(from))?;
        let begin = i128::from(copy) * i128::from(self.filetype.extent());
        Ok(Regions {
            blocks: self.filetype.blocks_from(copies, within)?,
            begin: begin + i128::from(self.displacement),
            current: (0, 0),
        })
    }

    /// The offset, in etypes, of the first data at or behind the end of a file of so many bytes:
    /// the last one may be cut.
    pub(super) fn end(&self, bytes: u64) -> u64 {
        if self.filetype.size() == 0 {
            return 0;
        }
        let is_behind = |number| self.place(number).map_or(true, |at| at >= bytes);
        let (mut before, mut behind) = (0, i64::MAX as u64);
        while before < behind {
            let middle = before + (behind - before) / 2;
            match is_behind(middle) {
                true => behind = middle,
                false => before = middle + 1,
            }
        }
        before.div_ceil(self.etype_bytes())
    }
}

fn too_far(offset: u64) -> Fault {
    let text = format!("{offset} is behind all that a file can have");
    Fault::new(ErrorClass::Arg, "offset", text)
}

/// Regions of a file, in the order of the data.
#[derive(Debug)]
pub(super) struct Regions<'v> {
    blocks: Blocks<'v>,
    /// The place of displacement 0 of the first copy.
    begin: i128,
    /// The place and the length of the data that are left of a block.
    current: (u64, usize),
}

impl Regions<'_> {
    /// The place and the length of the next region, of at most so many bytes.
    pub(super) fn next(&mut self, most: usize) -> Result<Option<(u64, usize)>, Fault> {
        if self.current.1 == 0 {
            let Some(block) = self.blocks.next() else {
                return Ok(None);
            };
            let at = self.begin + i128::from(block.displacement);
            let end = at + block.bytes as i128;
            let is_there = at >= 0 && end <= i128::from(i64::MAX);
            let at = u64::try_from(at).ok().filter(|_| is_there);
            self.current = (at.ok_or_else(|| too_far(u64::MAX))?, block.bytes);
        }
        let (at, length) = self.current;
        let now = length.min(most);
        self.current = (at + now as u64, length - now);
        Ok(Some((at, now)))
    }
}
