//! Files (MPI-4.1, Ch. 14): which bytes of a file the data of an access are, and where they are
//! read and written.
//!
//! A rank has a [`File`]: its [`View`] of the file and its own pointer. All ranks that have opened
//! the file together share one [`Opened`]: the [`Storage`], which has the bytes, and the shared
//! pointer. Offsets and pointers count etypes of the view, all other numbers bytes. An access moves
//! its data piece by piece, so that it takes little memory here, and no other access of the opened
//! file comes between: every one is atomic.
//!
//! Architecture invariant: nothing here knows ranks, channels, processes or time. Collective calls
//! agree before they come here.

mod memory;
mod mode;
mod storage;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

pub use memory::InMemory;
pub use mode::{Flag, Mode};
pub use storage::{Directory, Handover, Opened, Storage, without_prefix};
pub use view::{Representation, View};

use crate::buffer::{Buffer, BufferMut};
use crate::error::{ErrorClass, Fault};
use view::Regions;

/// The most bytes of an access that are moved at a time: few in tests, so that accesses have
/// several pieces.
const PIECE_BYTES: u64 = if cfg!(test) { 7 } else { 1 << 20 };

/// A file as one of the ranks has it that have opened it.
#[derive(Debug)]
pub struct File {
    opened: Arc<Opened>,
    mode: Mode,
    view: View,
    /// The rank's own pointer.
    position: u64,
    split: Option<Split>,
    /// Whether the rank has asked for atomic accesses (MPI_File_set_atomicity).
    pub is_atomic: bool,
}

/// The beginning of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An offset that the program gives.
    Offset(i64),
    /// The rank's own pointer, which moves by the data accessed.
    Own,
    /// The shared pointer, which moves by the data asked for.
    Shared,
    /// The rank's part behind a shared pointer that has been moved by all parts.
    Ordered(u64),
}

/// The origin of the offset of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The beginning of the view (MPI_SEEK_SET).
    Begin,
    /// The pointer (MPI_SEEK_CUR).
    Pointer,
    /// The end of the file (MPI_SEEK_END).
    End,
}

/// A collective access that has begun and not ended: its call, and the bytes accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The name of the call, without its two ends.
    pub call: &'static str,
    /// The bytes.
    pub bytes: u64,
}

impl File {
    /// The file that has been opened with this mode, as each of the ranks has it at first.
    pub fn new(opened: Arc<Opened>, mode: Mode) -> Self {
        Self {
            position: opened.begin(),
            opened,
            mode,
            view: View::default(),
            split: None,
            is_atomic: false,
        }
    }

    /// The mode that it was opened with.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The storage, and the pointer that all ranks share.
    pub fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// The view (MPI_File_get_view).
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Sees the file in another way, from the view's beginning on (MPI_File_set_view).
    pub fn set_view(&mut self, view: View) {
        self.view = view;
        self.position = 0;
    }

    /// Checks that the file may be written with a view, or at all with none.
    ///
    /// # Errors
    /// [`ErrorClass::ReadOnly`] if it was opened to read alone.
    pub fn check_writable(&self) -> Result<(), Fault> {
        match self.mode.writes() {
            true => Ok(()),
            false => {
                let text = "the file was opened to be read";
                Err(Fault::new(ErrorClass::ReadOnly, "fh", text))
            }
        }
    }

    /// Writes the elements of a buffer; the bytes written (MPI_File_write and its like).
    ///
    /// # Errors
    /// The file may not be written, the start or the buffer is wrong, or the storage fails.
    pub fn write(&mut self, start: Start, buffer: &Buffer<'_>) -> Result<u64, Fault> {
        self.check_writable()?;
        let bytes = buffer.bytes();
        let offset = self.start(start, bytes)?;
        let opened = Arc::clone(&self.opened);
        let storage = opened.access();
        let mut regions = self.regions(offset, bytes)?;
        let mut done = 0;
        while done < bytes {
            let piece = buffer.packed_part(done, (bytes - done).min(PIECE_BYTES))?;
            let mut left = piece.as_slice();
            while !left.is_empty() {
                let (at, length) = regions.next(left.len())?.ok_or_else(no_data)?;
                let (now, later) = left.split_at(length);
                storage.write(at, now)?;
                left = later;
            }
            done += piece.len() as u64;
        }
        drop(regions);
        self.moves(start, offset, done);
        Ok(done)
    }

    /// Reads into a buffer as far as the file goes; the bytes read (MPI_File_read and its like).
    ///
    /// # Errors
    /// The file may not be read, the start or the buffer is wrong, or the storage fails.
    pub fn read(&mut self, start: Start, buffer: &mut BufferMut<'_>) -> Result<u64, Fault> {
        if !self.mode.reads() {
            let text = "the file was opened to be written";
            return Err(Fault::new(ErrorClass::Access, "fh", text));
        }
        let bytes = buffer.bytes();
        let offset = self.start(start, bytes)?;
        let opened = Arc::clone(&self.opened);
        let storage = opened.access();
        let mut regions = self.regions(offset, bytes)?;
        let (mut done, mut is_over) = (0, false);
        while done < bytes && !is_over {
            let mut piece = vec![0; (bytes - done).min(PIECE_BYTES) as usize];
            let mut filled = 0;
            while filled < piece.len() && !is_over {
                let Some((at, length)) = regions.next(piece.len() - filled)? else {
                    is_over = true;
                    break;
                };
                let read = storage.read(at, &mut piece[filled..filled + length])?;
                filled += read;
                is_over = read < length;
            }
            buffer.unpack_part(done, &piece[..filled])?;
            done += filled as u64;
        }
        drop(regions);
        self.moves(start, offset, done);
        Ok(done)
    }

    /// The offset at which an access of so many bytes begins.
    fn start(&self, start: Start, bytes: u64) -> Result<u64, Fault> {
        let etypes = self.view.etypes(bytes)?;
        match start {
            Start::Offset(_) | Start::Own if self.mode.is_sequential() => Err(sequential()),
            Start::Offset(offset) => u64::try_from(offset).map_err(|_| negative("offset", offset)),
            Start::Own => Ok(self.position),
            Start::Shared => Ok(self.opened.moves_by(etypes)),
            Start::Ordered(offset) => Ok(offset),
        }
    }

    fn regions(&self, offset: u64, bytes: u64) -> Result<Regions<'_>, Fault> {
        let from = self.view.bytes(offset)?;
        self.view.regions(from, bytes)
    }

    /// Moves the rank's own pointer behind the data that were accessed through it.
    fn moves(&mut self, start: Start, offset: u64, bytes: u64) {
        if start == Start::Own {
            let etypes = bytes.div_ceil(self.view.etype_bytes());
            self.position = offset.saturating_add(etypes);
        }
    }

    /// Moves the rank's own pointer (MPI_File_seek).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] of a place before the view, [`ErrorClass::UnsupportedOperation`] of a
    /// sequential file; the storage fails.
    pub fn seek(&mut self, offset: i64, whence: Whence) -> Result<(), Fault> {
        self.position = self.sought(self.position, offset, whence)?;
        Ok(())
    }

    /// Moves the shared pointer; its new place (MPI_File_seek_shared).
    ///
    /// # Errors
    /// As [`Self::seek`].
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<u64, Fault> {
        let place = self.sought(self.opened.shared(), offset, whence)?;
        self.opened.set_shared(place);
        Ok(place)
    }

    fn sought(&self, pointer: u64, offset: i64, whence: Whence) -> Result<u64, Fault> {
        if self.mode.is_sequential() {
            return Err(sequential());
        }
        let from = match whence {
            Whence::Begin => 0,
            Whence::Pointer => pointer,
            Whence::End => self.view.end(self.opened.access().size()?),
        };
        let to = from.checked_add_signed(offset).filter(|&to| to < 1 << 63);
        to.ok_or_else(|| {
            let text = format!("{offset} from {from} leads out of the view");
            Fault::new(ErrorClass::Arg, "offset", text)
        })
    }

    /// The rank's own pointer (MPI_File_get_position).
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The place in the file where an offset in the view is (MPI_File_get_byte_offset).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] of a negative or too large offset.
    pub fn byte_offset(&self, offset: i64) -> Result<u64, Fault> {
        let offset = u64::try_from(offset).map_err(|_| negative("offset", offset))?;
        self.view.place(self.view.bytes(offset)?)
    }

    /// The place in the file where the shared pointer is (MPI_DISPLACEMENT_CURRENT).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if no file is so long.
    pub fn shared_byte_offset(&self) -> Result<u64, Fault> {
        self.view.place(self.view.bytes(self.opened.shared())?)
    }

    /// Begins a collective access that ends later.
    pub fn splits(&mut self, split: Split) {
        self.split = Some(split);
    }

    /// Checks that no collective access is under way, as one must be alone on its file.
    ///
    /// # Errors
    /// [`ErrorClass::Io`]
    pub fn check_whole(&self) -> Result<(), Fault> {
        match self.split {
            None => Ok(()),
            Some(split) => Err(unfinished(split)),
        }
    }

    /// Ends the collective access of this call; the bytes accessed.
    ///
    /// # Errors
    /// [`ErrorClass::Io`] if it has not begun.
    pub fn joins(&mut self, call: &str) -> Result<u64, Fault> {
        match self.split {
            Some(split) if split.call == call => {
                self.split = None;
                Ok(split.bytes)
            }
            Some(split) => Err(unfinished(split)),
            None => {
                let text = "no collective access has begun";
                Err(Fault::new(ErrorClass::Io, "fh", text))
            }
        }
    }
}

fn unfinished(split: Split) -> Fault {
    let text = format!("MPI_{}_begin has not been ended", split.call);
    Fault::new(ErrorClass::Io, "fh", text)
}

fn sequential() -> Fault {
    let text = "the file was opened to be accessed in sequence, by its shared pointer";
    Fault::new(ErrorClass::UnsupportedOperation, "fh", text)
}

fn no_data() -> Fault {
    let text = "the filetype of the view has no data";
    Fault::new(ErrorClass::Io, "fh", text)
}

fn negative(argument: &'static str, number: i64) -> Fault {
    Fault::new(ErrorClass::Arg, argument, format!("{number} is negative"))
}
