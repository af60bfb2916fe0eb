//! The processor of a rank: the library's work keeps it busy, in each of its layers.

use std::future::Future;
use std::panic::Location;

/// A piece of work of the library's software. A machine names what each takes; there is one cost
/// for each primitive, never one for each function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Entering and leaving an MPI call: arguments checked, handles looked up.
    Call,
    /// Making a request of a send or a receive, or a packet of its own, and queueing it.
    Request,
    /// Handling a packet that has arrived.
    Packet,
    /// Comparing one entry of a queue with a message.
    Match,
    /// Combining one word of two operands.
    Combine,
    /// Translating a group to the ranks of a window as MPICH's message-based windows do: lists
    /// made, filled and dropped.
    Group,
    /// One turn of a loop over the targets or the origins of an epoch.
    Target,
    /// Putting a control message together and handing it to a network.
    Post,
    /// Entering the handler of a control message that has come, and leaving it.
    Callback,
    /// Allocating a receive tag and configuring it.
    Open,
    /// Finding the place of a message, or the message of a receive, in the library's lists.
    Find,
    /// Taking a buffer for data that are sent later, and noting them.
    Keep,
    /// Setting a transfer up.
    Setup,
    /// Seeing that a transfer is over.
    Completion,
    /// Forking a process.
    Fork,
    /// Executing another program in a process, until that begins.
    Exec,
    /// The library's beginning in a process, without messages and without requests of a manager.
    Init,
    /// Serving a request at the manager of a program.
    Serve,
    /// The same over TCP/IP.
    ServeSocket,
    /// Logging in on another core by SSH.
    Login,
}

/// The clock of a rank at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The time, in picoseconds.
    pub at_ps: u64,
    /// The time that it takes to read it, in picoseconds.
    pub reading_ps: u64,
}

/// The processor of a rank, which the library's own work keeps busy, and who hears of the rank's
/// calls.
pub trait Processor: Send + Sync {
    /// Takes the cost of all this work, each so many times.
    fn work(&self, work: &[(Work, u32)]) -> impl Future<Output = ()> + Send;

    /// The program itself computes for so many picoseconds.
    fn computes(&self, _ps: u64) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// The picoseconds that entering a call takes ([`Work::Call`]), which can pass before it is
    /// known which call that is.
    fn entering_ps(&self) -> u64 {
        0
    }

    /// The call that the rank enters next begins here, or began so long ago as the work of entering
    /// it takes, if that `is_done`. Takes no simulated time.
    fn begins_next(&self, _is_done: bool) -> impl Future<Output = Clock> + Send {
        async { Clock::default() }
    }

    /// The rank enters an MPI call: see [`Channel::enters`](crate::channel::Channel::enters).
    fn enters(
        &self,
        call: &'static str,
        peer: Option<u32>,
        bytes: u64,
    ) -> impl Future<Output = ()> + Send;

    /// The rank leaves the MPI call that it entered last.
    fn leaves(&self, call: &'static str) -> impl Future<Output = ()> + Send;

    /// The rank waits on behalf of `site`, a place in its program, in the MPI call that it entered
    /// last: for reports of deadlocks. Takes no simulated time.
    fn waits(&self, _site: &'static Location<'static>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A processor on which work takes no time, and which keeps no record of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Free;

impl Processor for Free {
    async fn work(&self, _: &[(Work, u32)]) {}

    async fn enters(&self, _: &'static str, _: Option<u32>, _: u64) {}

    async fn leaves(&self, _: &'static str) {}
}
