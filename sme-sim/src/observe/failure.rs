//! Why a run did not end well: faults, deadlocks, too much time; and how a run that stands still is
//! recognized.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sme_memory::Until;

use crate::kernel::peers::{self, PeerError, Peers};
use crate::parts::address::FaultReason;
use crate::time::Time;

/// How many waiting threads a report names one by one.
pub const NAMED: usize = 16;

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
        /// Why it cannot be performed.
        reason: FaultReason,
    },
    /// Threads wait for what can never happen.
    Deadlock {
        /// When nothing could happen any more.
        at: Time,
        /// The waiting threads, or the first of them.
        stuck: Vec<Stuck>,
        /// How many wait besides.
        more: u64,
    },
    /// It has come to a time near which the simulator's clock of 64 bits would overflow.
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
    /// Why not.
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

/// Whether a run that has come to `now` has to stop there.
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

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        Self::Peers(error)
    }
}

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// Its node.
    pub node: u32,
    /// Its number there.
    pub core: u16,
    /// What it is doing.
    pub doing: Cow<'static, str>,
    /// What it waits on, where that is an address.
    pub awaited: Option<Awaited>,
}

/// The address a thread waits on, and what is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Awaited {
    /// The address, as the program gave it.
    pub address: u64,
    /// The node whose memory holds it, and the offset in that node's shared memory, in bytes; none
    /// where it is in no shared memory.
    pub place: Option<(u32, u64)>,
    /// What would end the wait.
    #[serde(with = "told")]
    pub until: Option<Until>,
    /// What the home node's coherent domain holds: what a load there would bring.
    pub at_home: u64,
    /// What its memory alone holds: another value where a cache has a newer one.
    pub in_memory: u64,
    /// What the waiting core's own copy holds, where it has one.
    pub cached: Option<u64>,
    /// Node and number of the thread that wrote to the line last.
    pub writer: Option<(u32, u16)>,
    /// Node and core whose cache holds another value that is not written back, and that value: where
    /// a node has one cache for all its cores, without the core.
    pub unwritten: Option<(u32, Option<u16>, u64)>,
}

/// A wait's condition as one process tells it another: whether it is to be a value, or not to be it.
mod told {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sme_memory::Until;

    pub fn serialize<S: Serializer>(until: &Option<Until>, to: S) -> Result<S::Ok, S::Error> {
        let told = until.map(|until| match until {
            Until::Is(value) => (true, value),
            Until::IsNot(value) => (false, value),
        });
        told.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Until>, D::Error> {
        let told = Option::<(bool, u8)>::deserialize(from)?;
        Ok(told.map(|(is, value)| match is {
            true => Until::Is(value),
            false => Until::IsNot(value),
        }))
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
            Failure::Deadlock { at, stuck, more } => {
                let waiting = stuck.len() + *more as usize;
                write!(
                    f,
                    "deadlock: at {at} nothing can happen any more, and {} wait{}",
                    Counted(waiting, "thread"),
                    if waiting == 1 { "s" } else { "" }
                )?;
                for thread in stuck.iter().take(NAMED) {
                    write!(f, "\n  {thread}")?;
                }
                if waiting > NAMED {
                    write!(f, "\n  and {} more", waiting - NAMED)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} core {} {}", self.node, self.core, self.doing)?;
        let Some(awaited) = &self.awaited else {
            return Ok(());
        };
        match awaited.place {
            Some((node, offset)) => {
                write!(
                    f,
                    " at byte {offset} of node {node} ({:#x})",
                    awaited.address
                )?;
            }
            None => write!(f, " at {:#x}", awaited.address)?,
        }
        match awaited.until {
            Some(Until::Is(value)) => write!(f, " until it is {value}")?,
            Some(Until::IsNot(value)) => write!(f, " until it is not {value}")?,
            None => {}
        }
        if awaited.in_memory == awaited.at_home {
            write!(f, ": memory at home holds {}", awaited.at_home)?;
        } else {
            let (newest, memory) = (awaited.at_home, awaited.in_memory);
            write!(f, ": a cache at home holds {newest}, memory {memory}")?;
        }
        match awaited.cached {
            Some(value) => write!(f, ", its cache {value}")?,
            None => write!(f, ", its cache nothing")?,
        }
        match awaited.writer {
            Some((node, core)) => write!(f, "; last written by node {node} core {core}")?,
            None => write!(f, "; never written")?,
        }
        let Some((node, core, value)) = awaited.unwritten else {
            return Ok(());
        };
        write!(f, "; the cache of node {node}")?;
        core.map_or(Ok(()), |core| write!(f, " core {core}"))?;
        write!(f, " holds {value}, which is not written back")
    }
}

struct Counted(usize, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}

/// The state of a run in which all unfinished threads wait and neither a store nor a line is under
/// way.
#[derive(Debug)]
pub struct Standstill {
    /// How often a thread has got any further.
    pub progress: u64,
    /// How often each polling thread has looked.
    pub looks: Vec<u32>,
}

impl Standstill {
    /// Whether nobody has got any further since `before`, though each polling thread has looked
    /// again: the answer after the next is to a load that was sent since.
    pub fn lasts_since(&self, before: &Standstill) -> bool {
        self.is_as(before)
            && self
                .looks
                .iter()
                .zip(&before.looks)
                .all(|(now, then)| now.wrapping_sub(*then) >= 2)
    }

    /// Whether nobody has got any further since `before`.
    pub fn is_as(&self, before: &Standstill) -> bool {
        self.progress == before.progress && self.looks.len() == before.looks.len()
    }
}
