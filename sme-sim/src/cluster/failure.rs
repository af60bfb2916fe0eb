//! Why a run did not end well: faults, deadlocks, broken barriers.

use std::fmt;
use std::future::Future;

use sme_memory::Until;

use super::constants::origin_of;
use super::content::Bytes;
use super::core::Waiting;
use super::domain;
use super::node::Node;
use crate::engine::EngineModel;
use crate::kernel::address::{CACHEABLE, FaultReason, Target};
use crate::time::Time;

/// How many waiting threads a report names one by one.
const NAMED: usize = 16;

/// A run that did not end well.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// An access outside memory.
    Fault {
        /// Node of the thread.
        node: u32,
        /// Its number there.
        core: u16,
        /// The address, as the program gave it.
        address: u64,
        /// Why it cannot be performed.
        reason: FaultReason,
    },
    /// Threads wait for what can never happen.
    Deadlock {
        /// When nothing could happen any more.
        at: Time,
        /// Every waiting thread.
        stuck: Vec<Stuck>,
    },
    /// A thread left a barrier before the last had arrived.
    Overtaken {
        /// Which episode, the warm-up is 0.
        episode: u32,
        /// When the first thread left.
        first_departure: Time,
        /// When the last arrived.
        last_arrival: Time,
    },
}

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// Its node.
    pub node: u32,
    /// Its number there.
    pub core: u16,
    /// What it is doing.
    pub doing: &'static str,
    /// What it waits on, where that is an address.
    pub awaited: Option<Awaited>,
}

/// The address a thread waits on, and what is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Awaited {
    /// The address, as the program gave it.
    pub address: u64,
    /// What would end the wait.
    pub until: Option<Until>,
    /// What the home node's coherent domain holds: what a load there would bring.
    pub at_home: u64,
    /// What its memory alone holds: another value where a cache has a newer one.
    pub in_memory: u64,
    /// What the waiting core's own copy holds, where it has one.
    pub cached: Option<u64>,
    /// Node and number of the thread that wrote to the line last.
    pub writer: Option<(u32, u16)>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Fault {
                node,
                core,
                address,
                reason,
            } => write!(
                f,
                "fault: node {node} core {core} at {address:#x}: {reason}"
            ),
            Failure::Overtaken {
                episode,
                first_departure,
                last_arrival,
            } => write!(
                f,
                "the barrier does not hold: in episode {episode} a thread left at \
                 {first_departure}, before the last arrived at {last_arrival}"
            ),
            Failure::Deadlock { at, stuck } => {
                write!(
                    f,
                    "deadlock: at {at} nothing can happen any more, and {} wait{}",
                    Counted(stuck.len(), "thread"),
                    if stuck.len() == 1 { "s" } else { "" }
                )?;
                for thread in stuck.iter().take(NAMED) {
                    write!(f, "\n  {thread}")?;
                }
                if stuck.len() > NAMED {
                    write!(f, "\n  and {} more", stuck.len() - NAMED)?;
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
        write!(f, " at {:#x}", awaited.address)?;
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
            Some((node, core)) => write!(f, "; last written by node {node} core {core}"),
            None => write!(f, "; never written"),
        }
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
pub(super) struct Standstill {
    /// How often a thread has got any further.
    progress: u64,
    /// How often each polling thread has looked.
    looks: Vec<u32>,
}

impl Standstill {
    /// Whether nobody has got any further since `before`, though each polling thread has looked
    /// again: the answer after the next is to a load that was sent since.
    pub(super) fn lasts_since(&self, before: &Standstill) -> bool {
        self.is_as(before)
            && self
                .looks
                .iter()
                .zip(&before.looks)
                .all(|(now, then)| now.wrapping_sub(*then) >= 2)
    }

    /// Whether nobody has got any further since `before`.
    pub(super) fn is_as(&self, before: &Standstill) -> bool {
        self.progress == before.progress && self.looks.len() == before.looks.len()
    }
}

/// Whether a run stands still now. It is stuck if that [lasts](Standstill::lasts_since).
pub(super) fn standstill<F: Future<Output = ()>, E: EngineModel>(
    nodes: &[Node<F, E>],
) -> Option<Standstill> {
    let (mut posted, mut performed, mut progress) = (0, 0, 0);
    let mut looks = Vec::new();
    for node in nodes {
        let moving = node.cores.iter().any(|c| {
            matches!(
                c.waiting,
                Waiting::Nothing
                    | Waiting::StoreBuffer
                    | Waiting::Drained
                    | Waiting::Posted
                    | Waiting::Update
            )
        });
        let fetching = (node.caches.iter()).any(|caches| !caches.is_quiet());
        if moving || fetching || node.domain.serves_a_core() {
            return None;
        }
        let polling = node.cores.iter().filter(|c| c.waiting == Waiting::Uncached);
        looks.extend(polling.map(|core| core.looks));
        posted += node.bridge.posted;
        performed += node.bridge.performed;
        progress += node.progress;
    }
    (posted == performed).then_some(Standstill { progress, looks })
}

pub(super) fn first_fault<F, E>(nodes: &[Node<F, E>]) -> Option<Failure> {
    nodes.iter().find_map(|node| {
        node.fault.map(|fault| Failure::Fault {
            node: node.me,
            core: fault.core,
            address: fault.address,
            reason: fault.reason,
        })
    })
}

pub(super) fn deadlock<F: Future<Output = ()>, E: EngineModel>(
    nodes: &[Node<F, E>],
    at: Time,
) -> Failure {
    let mut stuck = Vec::new();
    for node in nodes {
        for (number, core) in node.cores.iter().enumerate() {
            let doing = match core.waiting {
                Waiting::Finished => continue,
                Waiting::Cache => "spins in its cache",
                Waiting::Uncached => "polls through the engine",
                Waiting::Asleep => "sleeps on a futex",
                Waiting::Nothing
                | Waiting::StoreBuffer
                | Waiting::Drained
                | Waiting::Posted
                | Waiting::Update
                | Waiting::Fault => "does not get any further",
            };
            let number = number as u16;
            stuck.push(Stuck {
                node: node.me,
                core: number,
                doing,
                awaited: node.awaited(number).map(|(address, bytes, until)| {
                    awaited(nodes, node, number, (address, bytes, until))
                }),
            });
        }
    }
    Failure::Deadlock { at, stuck }
}

fn awaited<F, E>(
    nodes: &[Node<F, E>],
    node: &Node<F, E>,
    core: u16,
    (address, bytes, until): (u64, Bytes, Option<Until>),
) -> Awaited {
    let (home, physical) = match node.constants.map.target(address) {
        Ok(Target::Local(physical)) => (node, physical),
        Ok(Target::Global(place) | Target::Cached(place)) => (
            &nodes[place.node as usize],
            node.constants.map.physical(place.offset),
        ),
        Err(_) => (node, address),
    };
    let line = home.domain.known_line(physical);
    let own = line.filter(|_| home.me == node.me);
    let writer = line
        .map(|l| home.domain.writer(l))
        .filter(|&w| w != domain::NONE);
    Awaited {
        address,
        until,
        at_home: line.map_or(0, |l| home.domain.newest(l, bytes)),
        in_memory: line.map_or(0, |l| home.domain.in_memory(l, bytes)),
        cached: if address & CACHEABLE == 0 {
            own.and_then(|l| node.domain.cached(core, l, bytes))
        } else {
            let caches = node.caches.as_ref();
            caches.and_then(|caches| Some(bytes.pick(caches.copy(core, address)?)))
        },
        writer: writer.map(origin_of),
    }
}
