//! Messages between the cores of a simulated machine, measured.
//!
//! Called by `sme mpi` and by [`crate::validate`]; calls `sme-mpi` for the libraries and `sme-sim`
//! for the machine.

pub mod borrow;
pub mod cg;
pub mod channel;
pub mod choice;
pub mod collective;
pub mod compare;
pub mod connect;
mod endpoint;
mod error;
pub mod hpl;
pub mod infect;
pub mod invade;
pub mod job;
pub mod library;
pub mod line;
mod managed;
pub mod nas;
pub mod pingpong;
pub mod processor;
pub mod programs;
pub mod pscw;
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
