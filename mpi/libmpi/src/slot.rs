//! The memory that a rank's process shares with the simulator: whose turn it is, and what the other
//! one is told. The library of the process and the simulator are both built from this file.
//!
//! The process and the simulator take turns. The one that has the turn writes, sets [`Slot::turn`],
//! and waits until the turn is its own again; so the other words need no order of their own, but
//! those that tell how long the program has computed and whether writes are left, which the
//! simulator may read at any time.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The name of the environment's variable that leads a process to its slot: the path of the memory,
/// and the number of the rank in it, with a colon between them.
pub const VARIABLE: &str = "SME_MPI_RANK";

/// The distance of the slots of two ranks in that memory, in bytes. The slot of rank 0 is the
/// second one; of the first, [`Slot::turn`] is the bell: a futex that is changed and woken to wake
/// the simulator.
pub const SLOT_BYTES: usize = 4096;

/// The most arguments of a call, or of a function of the program's.
pub const MOST_ARGUMENTS: usize = 16;

/// The turn of the process.
pub const PROCESS: u32 = 0;

/// The turn of the simulator.
pub const SIMULATOR: u32 = 1;

/// The process makes a call: [`Slot::number`] with [`Slot::values`].
pub const CALLS: u32 = 1;

/// The simulator's answer to a call: [`Slot::result`].
pub const RETURNS: u32 = 2;

/// The simulator wants a function of the program's called: the one at [`Slot::function`], with
/// [`Slot::values`].
pub const INVOKES: u32 = 3;

/// The function has returned [`Slot::result`].
pub const RETURNED: u32 = 4;

/// The job has ended: the process writes the output that is still in its buffers, and ends.
pub const ENDS: u32 = 5;

/// The number of a call that is not MPI's: the program computes for so many seconds.
pub const COMPUTES: u32 = u32::MAX;

/// The number of a call that is not MPI's: the program sleeps for so many nanoseconds, or for none,
/// and reads a clock, in nanoseconds.
pub const READS_CLOCK: u32 = u32::MAX - 1;

/// The number of a call that is not MPI's: an operation gets a proxy. [`Slot::values`]: its
/// handle, and the function, which is given the program's own as its last argument.
pub const OPERATION_PROXY: u32 = u32::MAX - 2;

/// The same for an error handler.
pub const HANDLER_PROXY: u32 = u32::MAX - 3;

/// A key of attributes gets proxies. [`Slot::values`]: its number, the function that copies and the
/// one that deletes, which are given the program's own as their first argument.
pub const KEY_PROXIES: u32 = u32::MAX - 4;

/// MPICH's interface.
pub const MPICH: u32 = 0;

/// The interface of MPI-5.0.
pub const STANDARD: u32 = 1;

/// A bit of [`Slot::options`]: the process tells how long its thread has computed.
pub const MEASURES: u32 = 1;

/// A bit of [`Slot::options`]: the process may look at the turn for long before it sleeps, as this
/// computer has a processor for it and one for the simulator.
pub const IS_PATIENT: u32 = 2;

/// The rank has been initialized.
pub const INITIALIZED: u32 = 1;

/// The rank has been finalized.
pub const FINALIZED: u32 = 2;

/// The words of one rank. All are 0 at first.
#[repr(C)]
#[derive(Debug)]
pub struct Slot {
    /// [`PROCESS`] or [`SIMULATOR`]; a futex.
    pub turn: AtomicU32,
    /// Whether the process sleeps until it has the turn.
    pub process_sleeps: AtomicU32,
    /// Whether the simulator sleeps, and wants the bell rung when it has the turn.
    pub simulator_sleeps: AtomicU32,
    /// The reason for the last turn: [`CALLS`] to [`ENDS`].
    pub said: AtomicU32,
    /// The number of the call in the table.
    pub number: AtomicU32,
    /// The process, by the system's number; 0 until it has made a call.
    pub process: AtomicU32,
    /// The interface that its program was compiled for.
    pub interface: AtomicU32,
    /// Options that the simulator sets before the process begins: [`MEASURES`] and
    /// [`IS_PATIENT`].
    pub options: AtomicU32,
    /// 0, [`INITIALIZED`] or [`FINALIZED`].
    pub state: AtomicU32,
    /// The time for which the program has computed outside calls before the last one, in
    /// nanoseconds.
    pub computed_ns: AtomicU64,
    /// The processor time of the thread [`Self::thread`] at which it left its last call, in
    /// nanoseconds; 0 in a call, and where the program is not measured.
    pub left_at_ns: AtomicU64,
    /// That thread, by the system's number.
    pub thread: AtomicU32,
    /// The address of the function that is wanted called.
    pub function: AtomicU64,
    /// The result of a call or a function.
    pub result: AtomicU64,
    /// Arguments.
    pub values: [AtomicU64; MOST_ARGUMENTS],
    /// The addresses of `malloc` and `free`.
    pub memory: [AtomicU64; 2],
    /// Words that the simulator fills and functions of the program's are given the address of.
    pub scratch: [AtomicU64; 128],
    /// The address of [`Self::scratch`] in the process.
    pub scratch_at: AtomicU64,
    /// The calls like the last one that the process may make by itself: looks that find nothing.
    pub looks_left: AtomicU32,
    /// Those that it has made since its last call.
    pub looks: AtomicU32,
    /// The arguments with the addresses to which each writes a number, and the number;
    /// [`NO_ARGUMENT`] if there are fewer.
    pub looks_write: [[AtomicU32; 2]; 2],
    /// The argument with the address of the requests that a look is for, or [`NO_ARGUMENT`].
    pub looks_for: AtomicU32,
    /// The bytes of these requests.
    pub looks_for_bytes: AtomicU32,
    /// The words in use of [`Self::writes`]; 0 as soon as the process has made the writes.
    pub writes_end: AtomicU32,
    /// Writes that the process makes when it gets the turn, one after the other: each is an
    /// address, a number of bytes, and these in as many words as they take.
    pub writes: [AtomicU64; MOST_WRITTEN],
}

/// The most words of writes that the process makes.
pub const MOST_WRITTEN: usize = 256;

/// The number of an argument that is none.
pub const NO_ARGUMENT: u32 = u32::MAX;

const _: () = assert!(size_of::<Slot>() <= SLOT_BYTES);
