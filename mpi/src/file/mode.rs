//! The mode that a file is opened with (MPI-4.1, Sec. 14.2.1).

use crate::error::{ErrorClass, Fault};

/// One of the values that a mode is made up of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The file is read alone (MPI_MODE_RDONLY).
    ReadOnly,
    /// It is read and written (MPI_MODE_RDWR).
    ReadWrite,
    /// It is written alone (MPI_MODE_WRONLY).
    WriteOnly,
    /// It is made if it is not there (MPI_MODE_CREATE).
    Create,
    /// It must not have been there (MPI_MODE_EXCL).
    Exclusive,
    /// It is deleted when it is closed (MPI_MODE_DELETE_ON_CLOSE).
    DeleteOnClose,
    /// It is opened by others neither here nor elsewhere (MPI_MODE_UNIQUE_OPEN).
    UniqueOpen,
    /// It is accessed in sequence, by its shared pointer (MPI_MODE_SEQUENTIAL).
    Sequential,
    /// Its pointers begin at its end (MPI_MODE_APPEND).
    Append,
}

impl Flag {
    /// All flags, with the names of their constants.
    pub const ALL: [(&str, Self); 9] = [
        ("MODE_RDONLY", Self::ReadOnly),
        ("MODE_RDWR", Self::ReadWrite),
        ("MODE_WRONLY", Self::WriteOnly),
        ("MODE_CREATE", Self::Create),
        ("MODE_EXCL", Self::Exclusive),
        ("MODE_DELETE_ON_CLOSE", Self::DeleteOnClose),
        ("MODE_UNIQUE_OPEN", Self::UniqueOpen),
        ("MODE_SEQUENTIAL", Self::Sequential),
        ("MODE_APPEND", Self::Append),
    ];
}

/// A mode: flags that go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode(Vec<Flag>);

impl Mode {
    /// The mode of these flags.
    ///
    /// # Errors
    /// [`ErrorClass::Amode`] if they do not go together.
    pub fn new(flags: Vec<Flag>) -> Result<Self, Fault> {
        let mode = Self(flags);
        let has = |flag: &Flag| mode.has(*flag);
        let ways = [Flag::ReadOnly, Flag::ReadWrite, Flag::WriteOnly];
        let wrong = if ways.iter().filter(|flag| has(flag)).count() != 1 {
            "it has not one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY"
        } else if has(&Flag::ReadOnly) && (has(&Flag::Create) || has(&Flag::Exclusive)) {
            "MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with MPI_MODE_EXCL"
        } else if has(&Flag::ReadWrite) && has(&Flag::Sequential) {
            "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL"
        } else {
            return Ok(mode);
        };
        Err(Fault::new(ErrorClass::Amode, "amode", wrong))
    }

    /// Returns whether the flag is among its own.
    pub fn has(&self, flag: Flag) -> bool {
        self.0.contains(&flag)
    }

    /// Returns whether the file may be read.
    pub fn reads(&self) -> bool {
        !self.has(Flag::WriteOnly)
    }

    /// Returns whether the file may be written.
    pub fn writes(&self) -> bool {
        !self.has(Flag::ReadOnly)
    }

    /// Returns whether the file is accessed by its shared pointer alone.
    pub fn is_sequential(&self) -> bool {
        self.has(Flag::Sequential)
    }
}
