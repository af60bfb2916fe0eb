//! MPI errors: a class (MPI-4.1, Sec. 9.4), and the rank, call and argument that caused it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The class of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorClass {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorClass {
            /// All classes, in the order of the standard's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name that the standard gives it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

classes! {
    /// An invalid buffer.
    Buffer = "MPI_ERR_BUFFER",
    /// An invalid count.
    Count = "MPI_ERR_COUNT",
    /// An invalid datatype.
    Type = "MPI_ERR_TYPE",
    /// An invalid tag.
    Tag = "MPI_ERR_TAG",
    /// An invalid communicator.
    Comm = "MPI_ERR_COMM",
    /// An invalid rank.
    Rank = "MPI_ERR_RANK",
    /// An invalid request.
    Request = "MPI_ERR_REQUEST",
    /// An invalid root.
    Root = "MPI_ERR_ROOT",
    /// An invalid group.
    Group = "MPI_ERR_GROUP",
    /// An invalid operation.
    Op = "MPI_ERR_OP",
    /// An invalid topology.
    Topology = "MPI_ERR_TOPOLOGY",
    /// An invalid dimension.
    Dims = "MPI_ERR_DIMS",
    /// An invalid argument of another kind.
    Arg = "MPI_ERR_ARG",
    /// A message longer than the buffer that receives it.
    Truncate = "MPI_ERR_TRUNCATE",
    /// The error is in a status.
    InStatus = "MPI_ERR_IN_STATUS",
    /// A request is still pending.
    Pending = "MPI_ERR_PENDING",
    /// A key that has not been created.
    Keyval = "MPI_ERR_KEYVAL",
    /// No memory is left.
    NoMem = "MPI_ERR_NO_MEM",
    /// An info key that is too long.
    InfoKey = "MPI_ERR_INFO_KEY",
    /// An info value that is too long.
    InfoValue = "MPI_ERR_INFO_VALUE",
    /// An info key that is not set.
    InfoNoKey = "MPI_ERR_INFO_NOKEY",
    /// An invalid info object.
    Info = "MPI_ERR_INFO",
    /// An invalid port name.
    Port = "MPI_ERR_PORT",
    /// A service of which no port is known.
    Name = "MPI_ERR_NAME",
    /// A service that has been published, or has not.
    Service = "MPI_ERR_SERVICE",
    /// Processes cannot be spawned.
    Spawn = "MPI_ERR_SPAWN",
    /// An invalid window.
    Win = "MPI_ERR_WIN",
    /// An invalid base address.
    Base = "MPI_ERR_BASE",
    /// An invalid lock type.
    LockType = "MPI_ERR_LOCKTYPE",
    /// Conflicting accesses to a window.
    RmaConflict = "MPI_ERR_RMA_CONFLICT",
    /// Wrong synchronization of one-sided calls.
    RmaSync = "MPI_ERR_RMA_SYNC",
    /// An invalid size.
    Size = "MPI_ERR_SIZE",
    /// An invalid displacement.
    Disp = "MPI_ERR_DISP",
    /// An invalid assertion.
    Assert = "MPI_ERR_ASSERT",
    /// A target outside its window.
    RmaRange = "MPI_ERR_RMA_RANGE",
    /// Memory that cannot be attached to a window.
    RmaAttach = "MPI_ERR_RMA_ATTACH",
    /// Memory that ranks cannot share.
    RmaShared = "MPI_ERR_RMA_SHARED",
    /// A window of the wrong kind.
    RmaFlavor = "MPI_ERR_RMA_FLAVOR",
    /// An invalid file.
    File = "MPI_ERR_FILE",
    /// Arguments of a collective call that differ.
    NotSame = "MPI_ERR_NOT_SAME",
    /// An invalid mode of a file.
    Amode = "MPI_ERR_AMODE",
    /// A data representation that the library does not have.
    UnsupportedDatarep = "MPI_ERR_UNSUPPORTED_DATAREP",
    /// A file that is not there.
    NoSuchFile = "MPI_ERR_NO_SUCH_FILE",
    /// A file that is there.
    FileExists = "MPI_ERR_FILE_EXISTS",
    /// An invalid name of a file.
    BadFile = "MPI_ERR_BAD_FILE",
    /// An access to a file that is not permitted.
    Access = "MPI_ERR_ACCESS",
    /// A disk without space.
    NoSpace = "MPI_ERR_NO_SPACE",
    /// A quota that is exceeded.
    Quota = "MPI_ERR_QUOTA",
    /// A file, or file system, that is read alone.
    ReadOnly = "MPI_ERR_READ_ONLY",
    /// A file that is in use.
    FileInUse = "MPI_ERR_FILE_IN_USE",
    /// Another error of input or output.
    Io = "MPI_ERR_IO",
    /// A call that the library does not have.
    UnsupportedOperation = "MPI_ERR_UNSUPPORTED_OPERATION",
    /// An invalid session.
    Session = "MPI_ERR_SESSION",
    /// Another error, which its text describes.
    Other = "MPI_ERR_OTHER",
    /// An error of the library itself.
    Intern = "MPI_ERR_INTERN",
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An error of an MPI call. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("rank {rank}: {call}: {argument}: {text} ({class})")]
pub struct MpiError {
    /// Its class.
    pub class: ErrorClass,
    /// The rank in the initial communicator that made the call.
    pub rank: u32,
    /// The call, by its name in the standard.
    pub call: &'static str,
    /// The argument that is wrong, by its name in the standard.
    pub argument: &'static str,
    /// The reason, in words.
    pub text: Cow<'static, str>,
    /// The message that was longer than its buffer, of [`ErrorClass::Truncate`] of a receive.
    pub truncated: Option<Truncated>,
}

/// An error before it is known which rank made which call: a part of the library that knows neither
/// reports it. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{argument}: {text} ({class})")]
pub struct Fault {
    /// Its class.
    pub class: ErrorClass,
    /// The argument that is wrong, by its name in the standard.
    pub argument: &'static str,
    /// The reason, in words.
    pub text: Cow<'static, str>,
    /// The message that was longer than its buffer, of [`ErrorClass::Truncate`] of a receive.
    pub truncated: Option<Truncated>,
}

/// A message of which a receive has the beginning alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Its sender, in the communicator of the receive.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Bytes of it that the receive has.
    pub bytes: u64,
}

impl Fault {
    /// A fault of this class in this argument.
    pub fn new(
        class: ErrorClass,
        argument: &'static str,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        let text = text.into();
        Self {
            class,
            argument,
            text,
            truncated: None,
        }
    }

    /// The same of a receive that has the beginning of this message.
    pub(crate) fn of(self, truncated: Truncated) -> Self {
        let truncated = Some(truncated);
        Self { truncated, ..self }
    }

    /// The error of the call that the rank made.
    pub fn at(self, rank: u32, call: &'static str) -> MpiError {
        let Self {
            class,
            argument,
            text,
            truncated,
        } = self;
        MpiError {
            class,
            rank,
            call,
            argument,
            text,
            truncated,
        }
    }
}

/// The function that a user gives to be told of errors.
pub type ErrorFunction = dyn Fn(&MpiError) + Send + Sync;

/// The response to an error (MPI-4.1, Sec. 9.3). The call returns the error in any case.
#[derive(Clone, Default)]
pub enum ErrorHandler {
    /// The call returns the error (MPI_ERRORS_RETURN).
    #[default]
    Return,
    /// A function of the user's is called first.
    User(Arc<ErrorFunction>),
}

impl ErrorHandler {
    /// Responds to `error`.
    pub(crate) fn respond(&self, error: &MpiError) {
        match self {
            Self::Return => {}
            Self::User(function) => function(error),
        }
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Return => "Return",
            Self::User(_) => "User",
        })
    }
}
