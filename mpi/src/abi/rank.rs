//! A rank as its calls see it: its process, its interface, and the objects behind its handles.

use std::sync::Arc;

use parking_lot::Mutex;

use super::callback::Depth;
use super::clock::LocalClock;
use super::facts::Interface;
use super::objects::Objects;
use super::program::{Gone, Program};
use crate::error::{ErrorClass, Fault, MpiError, Truncated};

/// A rank.
#[derive(Debug)]
pub struct Rank {
    /// Its process.
    pub program: Arc<dyn Program>,
    /// The interface that its program was compiled for.
    pub interface: Interface,
    /// The objects behind its handles.
    pub(super) objects: Mutex<Objects>,
    /// The subject of the call that it makes, whose error handler is told of errors.
    pub(super) about: Mutex<About>,
    /// The failure of the call that it has performed alone, to which nothing has responded yet.
    pub(super) failed: Mutex<Option<Failure>>,
    /// Its clock, as far as it can be read without the machine.
    pub(super) clock: Mutex<Option<LocalClock>>,
    /// Its functions that are being called.
    pub(super) depth: Depth,
}

/// The subject of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum About {
    /// None of these.
    #[default]
    Nothing,
    /// The communicator with this handle.
    Comm(u64),
    /// The window with this handle.
    Window(u64),
    /// The file with this handle, or no file (MPI_FILE_NULL).
    File(u64),
    /// The session with this handle.
    Session(u64),
    /// An object that the call is to make with an error handler: the handle that the handler is
    /// told, and the handler.
    Made(u64, u64),
}

/// The failure of a call.
#[derive(Clone, Debug)]
pub enum Failure {
    /// An error of MPI.
    Wrong {
        /// Its class.
        class: ErrorClass,
        /// The reason, in words.
        text: String,
        /// The message that was longer than its buffer.
        truncated: Option<Truncated>,
    },
    /// An error that a function of the program's has returned.
    Code(i32),
    /// The process has ended.
    Gone,
}

/// The outcome of a call, whose result is a word.
pub type Ended = Result<u64, Failure>;

/// The result of a call that has succeeded.
pub const SUCCESS: Ended = Ok(0);

impl Failure {
    /// An error of this class.
    pub(super) fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Wrong {
            class,
            text,
            truncated: None,
        }
    }

    /// The class of a failure, if there is one.
    pub(super) fn class_of<T>(result: &Result<T, Self>) -> Option<ErrorClass> {
        match result.as_ref().err()? {
            Self::Wrong { class, .. } => Some(*class),
            Self::Code(_) | Self::Gone => Some(ErrorClass::Other),
        }
    }

    /// The reason, in words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Wrong { text, .. } => text.clone(),
            Self::Code(_) => "a function of the program's failed".to_owned(),
            Self::Gone => "the process has ended".to_owned(),
        }
    }

    /// The failure of a call that the simulation does not have.
    pub(super) fn unsupported(what: &str) -> Self {
        Self::new(
            ErrorClass::UnsupportedOperation,
            format!("{what} is not supported"),
        )
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Wrong {
            class: fault.class,
            text: format!("{}: {}", fault.argument, fault.text),
            truncated: fault.truncated,
        }
    }
}

impl From<MpiError> for Failure {
    fn from(error: MpiError) -> Self {
        Self::Wrong {
            class: error.class,
            text: format!("{}: {}", error.argument, error.text),
            truncated: error.truncated,
        }
    }
}

impl From<Gone> for Failure {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl Rank {
    /// Of this process, whose program was compiled for `interface`.
    pub fn new(program: Arc<dyn Program>, interface: Interface) -> Self {
        Self {
            program,
            interface,
            objects: Mutex::new(Objects::new(interface)),
            about: Mutex::default(),
            failed: Mutex::default(),
            clock: Mutex::default(),
            depth: Depth::new(0),
        }
    }

    /// The number of this rank in the job.
    pub(super) fn job_rank(&self) -> u32 {
        self.objects.lock().me
    }

    /// The bytes of memory from `address` on.
    ///
    /// # Errors
    /// The process has no such memory.
    pub(super) fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Failure> {
        // The program may name more bytes than there are: it grows as they are read.
        let mut into = Vec::new();
        let mut blocks = [(address, bytes)].into_iter().filter(|_| bytes > 0);
        self.program.read(&mut blocks, &mut into)?;
        Ok(into)
    }

    /// Writes bytes from `address` on.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut blocks = [(address, bytes.len())].into_iter();
        match bytes.is_empty() {
            true => Ok(()),
            false => Ok(self.program.write(&mut blocks, bytes)?),
        }
    }

    /// `count` numbers of `width` bytes, 4 or 8, in memory.
    ///
    /// # Errors
    /// As [`Self::read`], or there cannot be so many.
    pub(super) fn numbers(
        &self,
        address: u64,
        count: usize,
        width: usize,
    ) -> Result<Vec<i64>, Failure> {
        let bytes = count.checked_mul(width).filter(|&bytes| bytes < MOST_BYTES);
        let bytes = bytes.ok_or_else(|| {
            Failure::new(ErrorClass::Count, format!("{count} numbers are too many"))
        })?;
        let bytes = self.read(address, bytes)?;
        let number = |bytes: &[u8]| match bytes.try_into() {
            Ok(four) => i32::from_le_bytes(four).into(),
            Err(_) => i64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        };
        Ok(bytes.chunks_exact(width).map(number).collect())
    }

    /// Writes numbers of `width` bytes, 4 or 8, to memory.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn put_numbers(
        &self,
        address: u64,
        numbers: &[i64],
        width: usize,
    ) -> Result<(), Failure> {
        let bytes = numbers.iter().flat_map(|number| {
            let all = number.to_le_bytes();
            all.into_iter().take(width)
        });
        self.write(address, &bytes.collect::<Vec<u8>>())
    }

    /// The string at an address, without its end.
    ///
    /// # Errors
    /// As [`Self::read`], or it is longer than any that MPI takes.
    pub(super) fn string(&self, address: u64) -> Result<String, Failure> {
        let bytes = self.bytes_of_string(address)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of the string at an address, without its end.
    ///
    /// # Errors
    /// As [`Self::string`].
    pub(super) fn bytes_of_string(&self, address: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut at = address;
        while bytes.len() < MOST_STRING {
            // To the end of a page: the next one may not be there.
            let piece = self.read(at, (256 - at % 256) as usize)?;
            at += piece.len() as u64;
            match piece.iter().position(|&byte| byte == 0) {
                Some(end) => {
                    bytes.extend_from_slice(&piece[..end]);
                    return Ok(bytes);
                }
                None => bytes.extend_from_slice(&piece),
            }
        }
        Err(Failure::new(ErrorClass::Arg, "a string without an end"))
    }

    /// Writes a string with its end, in at most `room` bytes; its length.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn put_string(
        &self,
        address: u64,
        text: &str,
        room: usize,
    ) -> Result<usize, Failure> {
        let bytes = text.as_bytes();
        let length = bytes.len().min(room.saturating_sub(1));
        let mut ended = bytes[..length].to_vec();
        ended.push(0);
        self.write(address, &ended[..ended.len().min(room)])?;
        Ok(length)
    }

    /// Allocates memory in the process; its address.
    ///
    /// # Errors
    /// [`Failure::Gone`]
    pub(super) fn allocate(self: &Arc<Self>, bytes: u64) -> Result<u64, Failure> {
        let [allocate, _] = self.program.allocator();
        self.invoke(allocate, &[bytes.max(1)])
    }

    /// Frees it.
    ///
    /// # Errors
    /// [`Failure::Gone`]
    pub(super) fn free(self: &Arc<Self>, address: u64) -> Result<(), Failure> {
        let [_, free] = self.program.allocator();
        self.invoke(free, &[address]).map(drop)
    }
}

/// The longest string, in bytes.
const MOST_STRING: usize = 1 << 16;

/// The most bytes of numbers that a call has.
const MOST_BYTES: usize = 1 << 30;
