//! The process of a rank, as the calls that it makes see it.

use std::fmt;
use std::sync::Arc;

use super::process::Services;
use super::rank::Rank;
use crate::buffer::Outside;
use crate::error::Fault;
use crate::file::{Directory, Handover};

/// A call that a process makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The number of the call in the table.
    pub number: usize,
    /// Its arguments, as words.
    pub values: [u64; 16],
    /// The call that it is, if it is not MPI's.
    pub beside: Option<Beside>,
    /// The time for which the process has computed outside calls since it began, in nanoseconds, if
    /// it is measured.
    pub computed_ns: u64,
    /// The looks that the process has made by itself since its last call ([`Program::lets_look`]).
    pub looks: u32,
}

/// The leave to make some calls without the simulator: those that are as the last one, which has
/// looked for something and found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The number of calls at most.
    pub most: u32,
    /// The numbers of 32 bits that each of them writes, each with the number of the argument, from
    /// 0, that is its address. The call returns MPI_SUCCESS.
    pub writes: Vec<(usize, i32)>,
    /// The number of the argument, from 0, that is the address of requests which must be the same,
    /// and their length in bytes.
    pub requests: Option<(usize, usize)>,
}

/// A call that is not MPI's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beside {
    /// The program says that it computes for so many seconds.
    Computes(f64),
    /// It sleeps for so many nanoseconds, or for none, and reads a clock: the result is simulated
    /// time in nanoseconds.
    ReadsClock(u64),
    /// Functions of the program's have a proxy from now on.
    Proxy(Proxy),
}

/// A function of MPICH's library for C++ that is called in the place of one of the program's, and
/// calls that with the arguments that C++ has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// For the operation of this handle. It is given both vectors, the number of elements, the
    /// datatype, and the program's function.
    Operation(u64, u64),
    /// For the error handler of this handle. It is given the kind of object (0 a communicator, 1 a
    /// file, 2 a window), the addresses of its handle and of the code, and the program's function.
    Handler(u64, u64),
    /// For the functions that copy and delete attributes of the key of this number. They are given
    /// the program's function, the object's handle, the key and, for a copy, the extra state; the
    /// kind of value (0 an address) and the value; and then the addresses of the copy and of
    /// whether there is one, or the extra state.
    Key(i64, [u64; 2]),
}

/// The news of a process that computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum News {
    /// It makes a call.
    Calls(Asked),
    /// It goes on, and has computed for at least so long since it began
    /// ([`Asked::computed_ns`]).
    Computes(u64),
    /// It waits for something else: simulated time has to go on, so that others can bring that
    /// about.
    Waits,
}

/// The news of a process that calls one of its functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// The function has returned this.
    Returned(u64),
    /// The function makes a call.
    Calls(Asked),
}

/// The places, among the words that functions are given the address of, of what they are told.
pub(super) mod place {
    /// The values of predefined attributes, which stay.
    pub const PREDEFINED: usize = 0;
    /// The words for the first function, and so many after it those for one that is called in a
    /// call of its own.
    pub const FUNCTIONS: usize = 16;
    /// The most words that a function needs: the status of a generalized request.
    pub const OF_FUNCTION: usize = 4;
}

/// A part of a program that is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The program, as it is looked for.
    pub command: Vec<u8>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Processes.
    pub count: u32,
    /// The directory in which they begin, if it is not that of the process that starts them.
    pub directory: Option<Vec<u8>>,
    /// The directories in which the program is looked for first, with colons between them.
    pub path: Option<Vec<u8>>,
}

/// The process has ended, or is to end: nothing more can be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// The process of a rank. It makes a call, waits for the answer, and meanwhile calls functions of
/// its program when it is told to.
pub trait Program: Outside + Directory + fmt::Debug {
    /// The process computes from now on. Its calls that `rank` [performs
    /// alone](Rank::performs_alone) may be answered at once, each asked for once, until
    /// [`Self::next`] gives another one.
    fn computes(&self, _rank: &Arc<Rank>) {}

    /// Waits until the process makes its next call, or there is other news of it. Simulated time
    /// stands still.
    ///
    /// # Errors
    /// [`Gone`]
    fn next(&self) -> Result<News, Gone>;

    /// Gives the process leave to make looks by itself. It is called before the last call is
    /// answered, and holds until the process makes another one. A process that asks for each look
    /// need not know of it.
    fn lets_look(&self, _: &Looks) {}

    /// Answers the call.
    fn answer(&self, result: u64);

    /// Lets the process call one of its functions, with at most eight arguments.
    fn invoke(&self, function: u64, arguments: &[u64]);

    /// Waits for what comes of it: the function's result, or a call that it makes itself.
    ///
    /// # Errors
    /// [`Gone`]
    fn hear(&self) -> Result<Heard, Gone>;

    /// Puts words at the address that is returned, from the `place`th of at most 128 on.
    fn scratch(&self, place: usize, words: &[u64]) -> u64;

    /// Such a word.
    fn scratched(&self, place: usize) -> u64;

    /// The functions `malloc` and `free` of the process.
    fn allocator(&self) -> [u64; 2];

    /// Starts processes of each part of a program, on ranks of the job that have none; returns
    /// these ranks, in the order of the parts. It starts no process, and returns `None`, if there
    /// are not enough such ranks, but may be when other processes have ended.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`](crate::error::ErrorClass::Spawn) if so many cannot be started; none
    /// is then.
    fn start(&self, parts: &[Part]) -> Result<Option<Vec<u32>>, Fault>;

    /// The services that processes of the job have published.
    fn services(&self) -> &Services;

    /// The files that processes of the job open together.
    fn handover(&self) -> &Handover;

    /// Tells that MPI_Init has returned, or MPI_Finalize.
    fn is_initialized(&self);

    /// Tells that MPI_Finalize has returned.
    fn is_finalized(&self);

    /// Ends the whole job with this status, because of what `why` says (MPI_Abort).
    fn abort(&self, status: i32, why: String);

    /// Says something to the user, once for all ranks.
    fn tell(&self, what: String);
}
