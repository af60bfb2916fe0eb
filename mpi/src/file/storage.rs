//! The bytes of files, and files that ranks have opened together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::mode::{Flag, Mode};
use crate::error::Fault;

/// The bytes of a file. The faults are those of the file system.
pub trait Storage: fmt::Debug + Send {
    /// Reads from a place on; fewer bytes than there is room for at the end alone.
    ///
    /// # Errors
    /// The file system fails.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault>;

    /// Writes all of these bytes from a place on, behind the end, too.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Fault>;

    /// Bytes of the file.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn size(&self) -> Result<u64, Fault>;

    /// Cuts the file, or extends it by zeros, to this size.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn set_size(&self, bytes: u64) -> Result<(), Fault>;

    /// Provides for so many bytes of the file, which is then at least as long.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn reserve(&self, bytes: u64) -> Result<(), Fault>;

    /// Waits until all that has been written is on the disk.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn sync(&self) -> Result<(), Fault>;

    /// Deletes the file; what has it opened may go on.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn delete(&self) -> Result<(), Fault>;
}

/// The files that a process reaches by their names.
pub trait Directory {
    /// Opens a file, or makes it, as the mode says.
    ///
    /// # Errors
    /// The file system refuses.
    fn open(&self, name: &[u8], mode: &Mode) -> Result<Box<dyn Storage>, Fault>;

    /// Deletes a file.
    ///
    /// # Errors
    /// The file system refuses.
    fn delete(&self, name: &[u8]) -> Result<(), Fault>;
}

/// Words with which programs say which file system they mean: there is but one.
const PREFIXES: [&str; 5] = ["ufs:", "nfs:", "lustre:", "gpfs:", "testfs:"];

/// A file's name without the name of a file system before it.
pub fn without_prefix(name: &[u8]) -> &[u8] {
    let mut prefixes = PREFIXES.iter().map(|prefix| prefix.as_bytes());
    prefixes
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

/// A file that ranks have opened together.
#[derive(Debug)]
pub struct Opened {
    storage: Mutex<Box<dyn Storage>>,
    begin: u64,
    /// The pointer that the ranks share.
    shared: Mutex<u64>,
}

impl Opened {
    /// The file in this storage, opened with this mode.
    ///
    /// # Errors
    /// The storage cannot tell its size.
    pub fn new(storage: Box<dyn Storage>, mode: &Mode) -> Result<Self, Fault> {
        let begin = match mode.has(Flag::Append) {
            true => storage.size()?,
            false => 0,
        };
        Ok(Self {
            storage: Mutex::new(storage),
            begin,
            shared: Mutex::new(begin),
        })
    }

    /// The place where pointers begin.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// The storage, for one access.
    pub fn access(&self) -> MutexGuard<'_, Box<dyn Storage>> {
        self.storage.lock()
    }

    /// The pointer that the ranks share (MPI_File_get_position_shared).
    pub fn shared(&self) -> u64 {
        *self.shared.lock()
    }

    /// Moves it to this place.
    pub fn set_shared(&self, to: u64) {
        *self.shared.lock() = to;
    }

    /// Moves it by so many etypes; the place where it was.
    pub fn moves_by(&self, etypes: u64) -> u64 {
        let mut shared = self.shared.lock();
        let before = *shared;
        *shared = before.saturating_add(etypes);
        before
    }
}

/// Opened files on their way from the rank that has opened each to the others of a job.
#[derive(Debug, Default)]
pub struct Handover(Mutex<(u64, BTreeMap<u64, Waiting>)>);

/// An opened file, and the ranks that have not taken it.
type Waiting = (Arc<Opened>, u32);

impl Handover {
    /// Leaves a file here for so many ranks; the number by which they find it.
    pub fn leave(&self, opened: &Arc<Opened>, ranks: u32) -> u64 {
        let mut all = self.0.lock();
        all.0 += 1;
        let number = all.0;
        if ranks > 0 {
            all.1.insert(number, (Arc::clone(opened), ranks));
        }
        number
    }

    /// Takes the file with this number.
    pub fn take(&self, number: u64) -> Option<Arc<Opened>> {
        let mut all = self.0.lock();
        let (opened, ranks) = all.1.get_mut(&number)?;
        let opened = Arc::clone(opened);
        *ranks -= 1;
        if *ranks == 0 {
            all.1.remove(&number);
        }
        Some(opened)
    }
}
