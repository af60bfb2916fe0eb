//! Why a run did not end well: faults, deadlocks, too much time; and how a run that stands still is
//! recognized.

use std::fmt;

use serde::{Deserialize, Serialize};
use sme_memory::Place;

use super::stuck::{Stuck, write_report};
use crate::kernel::peers::{self, PeerError, Peers};
use crate::parts::address::FaultReason;
use crate::time::Time;

/// A run that did not end well.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// An access outside memory, or an operation that the machine does not have.
    Fault {
        /// Node of the thread.
        node: u32,
        /// Its number there.
        core: u16,
        /// The address, as the program gave it, if it is about one.
        address: Option<u64>,
        /// The reason why it cannot be performed.
        reason: FaultReason,
    },
    /// Threads wait for what can never happen.
    Deadlock {
        /// The time at which nothing could happen any more.
        at: Time,
        /// The waiting threads, or the first of them.
        stuck: Vec<Stuck>,
        /// The number of further threads that wait.
        more: u64,
    },
    /// The run has reached a time near which the simulator's clock of 64 bits would overflow.
    TooLong {
        /// The time it has come to.
        at: Time,
    },
    /// The processes that simulate the cluster together cannot go on.
    Peers(PeerError),
}

/// An operation of a node's thread that cannot be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Thread number in its node.
    pub core: u16,
    /// The address, as the program gave it, if it is about one.
    pub address: Option<u64>,
    /// The reason why it cannot be performed.
    pub reason: FaultReason,
}

/// The first fault of all processes, each with its node; of this one it is `own`.
///
/// # Errors
/// [`PeerError`] if a process has gone.
pub fn first_fault(
    own: Option<(u32, Fault)>,
    peers: &mut dyn Peers,
) -> Result<Option<Failure>, PeerError> {
    let first = peers::all(peers, own)?.into_iter().flatten().next();
    Ok(first.map(|(node, fault)| Failure::Fault {
        node,
        core: fault.core,
        address: fault.address,
        reason: fault.reason,
    }))
}

/// Most simulated time of a run: 53 days, a quarter of what a [`Time`] holds.
pub const LONGEST: Time = Time::from_ps(1 << 62);

/// Returns whether a run that has come to `now` has to stop there.
pub fn is_too_long(now: Time) -> bool {
    now >= LONGEST
}

/// A run that has come to `at` has not been stopped for that.
///
/// # Errors
/// [`Failure::TooLong`].
pub fn within_time(at: Time) -> Result<(), Failure> {
    if is_too_long(at) {
        return Err(Failure::TooLong { at });
    }
    Ok(())
}

impl Failure {
    /// The places that threads wait on for ever, if it is a deadlock.
    pub fn awaited(&self) -> Vec<Place> {
        let Failure::Deadlock { stuck, .. } = self else {
            return Vec::new();
        };
        let awaited = stuck.iter().filter_map(|thread| thread.awaited.as_ref());
        let places = awaited.filter_map(|awaited| awaited.place);
        places
            .map(|(node, offset)| Place { node, offset })
            .collect()
    }

    /// The same, with the awaited variables called what `name` calls the places where they lie.
    pub fn named(mut self, name: &dyn Fn(Place) -> Option<String>) -> Self {
        if let Failure::Deadlock { stuck, .. } = &mut self {
            let awaited = stuck
                .iter_mut()
                .filter_map(|thread| thread.awaited.as_mut());
            for awaited in awaited {
                let place = awaited.place.map(|(node, offset)| Place { node, offset });
                awaited.name = place.and_then(name);
            }
        }
        self
    }
}

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        Self::Peers(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Fault {
                node,
                core,
                address,
                reason,
            } => {
                write!(f, "fault: node {node} core {core}")?;
                if let Some(address) = address {
                    write!(f, " at {address:#x}")?;
                }
                write!(f, ": {reason}")
            }
            Failure::TooLong { at } => write!(
                f,
                "the run has come to {:.0} days of simulated time and stops there: let it do less, \
                 or make the machine's constants faster",
                at.as_us() / 86_400e6
            ),
            Failure::Peers(error) => error.fmt(f),
            Failure::Deadlock { at, stuck, more } => write_report(f, *at, stuck, *more),
        }
    }
}

impl std::error::Error for Failure {}

/// The state of a run in which all unfinished threads wait and neither a store nor a line is under
/// way.
#[derive(Debug)]
pub struct Standstill {
    /// The steps that all threads have made.
    pub progress: u64,
    /// The polls of each polling thread.
    pub looks: Vec<u32>,
}

impl Standstill {
    /// Returns whether no thread has advanced since `before`, though each polling thread has looked
    /// again: the answer after the next is to a load that was sent since.
    pub fn lasts_since(&self, before: &Standstill) -> bool {
        self.is_as(before)
            && self
                .looks
                .iter()
                .zip(&before.looks)
                .all(|(now, then)| now.wrapping_sub(*then) >= 2)
    }

    /// Returns whether no thread has advanced since `before`.
    pub fn is_as(&self, before: &Standstill) -> bool {
        self.progress == before.progress && self.looks.len() == before.looks.len()
    }
}
