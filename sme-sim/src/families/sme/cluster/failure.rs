//! Why a run did not end well: faults, deadlocks, broken barriers.

use std::fmt;

use serde::{Deserialize, Serialize};
use sme_memory::Until;

use super::among::all_stuck;
use super::constants::origin_of;
use super::core::Waiting;
use super::domain;
use super::node::Node;
use crate::families::sme::address::{CACHEABLE, FaultReason, Target};
use crate::families::sme::engine::EngineModel;
use crate::kernel::peers::{self, PeerError, Peers};
use crate::parts::line::Bytes;
use crate::time::Time;

/// How many waiting threads a report names one by one.
pub const NAMED: usize = 16;

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
        /// The waiting threads, or the first of them.
        stuck: Vec<Stuck>,
        /// How many wait besides.
        more: u64,
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
    /// It has come to a time near which the simulator's clock of 64 bits would overflow.
    TooLong {
        /// The time it has come to.
        at: Time,
    },
    /// The processes that simulate the cluster together cannot go on.
    Peers(PeerError),
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
pub struct Standstill {
    /// How often a thread has got any further.
    progress: u64,
    /// How often each polling thread has looked.
    looks: Vec<u32>,
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

/// What nodes are doing now: of some, or of all.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Survey {
    /// Whether anything is under way, apart from loads that poll.
    moving: bool,
    /// Whether an access has faulted.
    pub faulty: bool,
    posted: u64,
    performed: u64,
    progress: u64,
    looks: Vec<u32>,
    /// Simulated so far.
    pub events: u64,
    /// How many episodes have begun on every node whose threads take part.
    pub begun: Option<u32>,
}

impl Survey {
    /// Of `nodes`.
    pub fn of<E: EngineModel>(nodes: &[Node<E>]) -> Self {
        let mut survey = Survey::default();
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
            survey.moving |= moving || fetching || node.domain.serves_a_core();
            if !survey.moving {
                let polling = node.cores.iter().filter(|c| c.waiting == Waiting::Uncached);
                survey.looks.extend(polling.map(|core| core.looks));
            }
            survey.posted += node.bridge.posted;
            survey.performed += node.bridge.performed;
            survey.progress += node.progress;
            survey.faulty |= node.fault.is_some();
            survey.events += node.events;
            survey.begun = least(survey.begun, node.record().begun());
        }
        survey
    }

    /// Of all processes; of this one it is `self`.
    pub fn of_all(self, peers: &mut dyn Peers) -> Result<Self, PeerError> {
        let all = peers::all(peers, self)?;
        Ok(all.into_iter().fold(Survey::default(), Survey::and))
    }

    fn and(mut self, other: Survey) -> Survey {
        self.looks.extend(other.looks);
        Survey {
            moving: self.moving || other.moving,
            faulty: self.faulty || other.faulty,
            posted: self.posted + other.posted,
            performed: self.performed + other.performed,
            progress: self.progress + other.progress,
            looks: self.looks,
            events: self.events + other.events,
            begun: least(self.begun, other.begun),
        }
    }

    /// Whether the run stands still. It is stuck if that [lasts](Standstill::lasts_since).
    pub fn standstill(self) -> Option<Standstill> {
        let (progress, looks) = (self.progress, self.looks);
        let still = !self.moving && self.posted == self.performed;
        still.then_some(Standstill { progress, looks })
    }
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The first fault, if there is any.
pub fn first_fault<E>(
    nodes: &[Node<E>],
    peers: &mut dyn Peers,
) -> Result<Option<Failure>, PeerError> {
    let own = nodes.iter().find_map(|node| {
        let fault = node.fault?;
        Some((node.me, fault.core, fault.address, fault.reason))
    });
    let first = peers::all(peers, own)?.into_iter().flatten().next();
    Ok(first.map(|(node, core, address, reason)| Failure::Fault {
        node,
        core,
        address,
        reason,
    }))
}

/// The report of a deadlock, if any thread still waits.
pub fn deadlock<E: EngineModel>(
    nodes: &[Node<E>],
    at: Time,
    peers: &mut dyn Peers,
) -> Result<Option<Failure>, PeerError> {
    let mut questions = Vec::new();
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
            let awaited = node.awaited(number).map(|awaited_by| {
                let (awaited, question) = awaited(nodes, node, number, awaited_by);
                questions.extend(question.map(|question| (stuck.len() as u64, question)));
                awaited
            });
            stuck.push(Stuck {
                node: node.me,
                core: number,
                doing,
                awaited,
            });
        }
    }
    answer(nodes, questions, &mut stuck, peers)?;
    let (stuck, more) = all_stuck(peers, stuck, 0)?;
    Ok((!stuck.is_empty()).then_some(Failure::Deadlock { at, stuck, more }))
}

/// What a process asks of a home node that another process has.
#[derive(Serialize, Deserialize)]
struct Question {
    home: u32,
    physical: u64,
    bytes: Bytes,
}

/// What a word's home says of it.
#[derive(Default, Serialize, Deserialize)]
struct AtHome {
    newest: u64,
    in_memory: u64,
    writer: Option<u32>,
}

/// Asks the other processes `questions`, each of one of the `stuck`, and answers theirs.
fn answer<E>(
    nodes: &[Node<E>],
    mut questions: Vec<(u64, Question)>,
    stuck: &mut [Stuck],
    peers: &mut dyn Peers,
) -> Result<(), PeerError> {
    if peers.count() == 1 {
        return Ok(());
    }
    // No more are named.
    questions.truncate(NAMED);
    let me = peers.me() as u64;
    let mut answers = Vec::new();
    for (process, questions) in (0u64..).zip(peers::all(peers, questions)?) {
        for (number, question) in questions {
            if let Some(home) = at(nodes, question.home) {
                let said = at_home(home, question.physical, question.bytes);
                answers.push((process, number, said));
            }
        }
    }
    for (process, number, said) in peers::all(peers, answers)?.into_iter().flatten() {
        let asker = stuck.get_mut(number as usize).filter(|_| process == me);
        if let Some(awaited) = asker.and_then(|stuck| stuck.awaited.as_mut()) {
            awaited.at_home = said.newest;
            awaited.in_memory = said.in_memory;
            awaited.writer = said.writer.map(origin_of);
        }
    }
    Ok(())
}

/// The node at `position`, if it is among these.
fn at<E>(nodes: &[Node<E>], position: u32) -> Option<&Node<E>> {
    let first = nodes.first()?.me;
    nodes.get(position.checked_sub(first)? as usize)
}

fn at_home<E>(home: &Node<E>, physical: u64, bytes: Bytes) -> AtHome {
    let Some(line) = home.domain.known_line(physical) else {
        return AtHome::default();
    };
    AtHome {
        newest: home.domain.newest(line, bytes),
        in_memory: home.domain.in_memory(line, bytes),
        writer: Some(home.domain.writer(line)).filter(|&w| w != domain::NONE),
    }
}

/// What `core` awaits, and what is to be asked of another process to know the rest.
fn awaited<E>(
    nodes: &[Node<E>],
    node: &Node<E>,
    core: u16,
    (address, bytes, until): (u64, Bytes, Option<Until>),
) -> (Awaited, Option<Question>) {
    let (home, physical) = match node.constants.map.target(address) {
        Ok(Target::Local(physical)) => (node.me, physical),
        Ok(Target::Global(place) | Target::Cached(place)) => {
            (place.node, node.constants.map.physical(place.offset))
        }
        Err(_) => (node.me, address),
    };
    let (said, question) = match at(nodes, home) {
        Some(home) => (at_home(home, physical, bytes), None),
        None => {
            let question = Question {
                home,
                physical,
                bytes,
            };
            (AtHome::default(), Some(question))
        }
    };
    let own = node.domain.known_line(physical).filter(|_| home == node.me);
    let awaited = Awaited {
        address,
        until,
        at_home: said.newest,
        in_memory: said.in_memory,
        cached: if address & CACHEABLE == 0 {
            own.and_then(|l| node.domain.cached(core, l, bytes))
        } else {
            let caches = node.caches.as_ref();
            caches.and_then(|caches| Some(bytes.pick(caches.copy(core, address)?)))
        },
        writer: said.writer.map(origin_of),
    };
    (awaited, question)
}
