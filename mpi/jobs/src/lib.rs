//! Jobs of MPI ranks on the cores of a simulated machine: the place where the libraries for
//! messages (`sme-mpi`) meet the machines (`sme-sim`).
//!
//! * [`job`]: a job on a machine. [`library`]: the libraries that its ranks can have.
//! * [`channel`], [`processor`]: what a library asks of a machine.
//! * [`choice`]: the call of a run that is to be explained.
//! * [`pingpong`], [`collective`], [`pscw`], [`compare`]: calls, measured.
//! * [`mod@line`]: the model of a message's cost. [`tune`]: which way of sending is best.
//! * [`nas`], [`hpl`], [`cg`], [`simpson`]: benchmarks and programs, measured.
//! * [`programs`]: processes that come and go, and with them [`spawn`], [`connect`], [`invade`],
//!   [`infect`], [`borrow`].
//! * `launch`, with the feature of that name: MPI programs as they are, a process for each rank.

pub mod borrow;
pub mod cg;
pub mod channel;
pub mod choice;
pub mod collective;
pub mod compare;
pub mod connect;
mod endpoint;
pub mod hpl;
pub mod infect;
pub mod invade;
pub mod job;
#[cfg(all(feature = "launch", target_os = "linux"))]
pub mod launch;
pub mod library;
pub mod line;
pub mod nas;
pub mod pingpong;
pub mod processor;
pub mod programs;
pub mod pscw;
mod segments;
pub mod simpson;
pub mod spawn;
pub mod tune;

pub use endpoint::SendCall;
use job::{Error, Job, Observe, Observed};

/// Rounds before those that count: they fill the caches.
const WARM_UP: u32 = 2;

/// A job whose ranks all run one program, of which some calls are measured.
pub trait Measurement {
    /// The measured times.
    type Outcome;

    /// The machine, the library and the ranks.
    fn job(&self) -> &Job;

    /// The end of a rank's data in its node's memory, in bytes, where these have addresses.
    fn data_end(&self) -> u64 {
        0
    }

    /// The most calls that all its ranks make together, those that do not count included.
    fn calls(&self) -> u64;

    /// Simulates it, with what `observe` asks for.
    ///
    /// # Errors
    /// [`Error`]
    fn observed(&self, observe: Observe) -> Result<(Self::Outcome, Observed), Error>;

    /// Simulates it.
    ///
    /// # Errors
    /// [`Error`]
    fn run(&self) -> Result<Self::Outcome, Error> {
        let (outcome, _) = self.observed(Observe::default())?;
        Ok(outcome)
    }
}
