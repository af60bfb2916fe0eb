//! What the nodes of a cluster are doing: whether they stand still, whether an access has faulted, and
//! who waits for what when nothing can happen any more.

use serde::{Deserialize, Serialize};
use sme_memory::Until;

use super::constants::origin_of;
use super::core::Waiting;
use super::domain;
use super::node::Node;
use crate::families::sme::address::Target;
use crate::kernel::peers::{self, PeerError, Peers};
use crate::observe::among::all_stuck;
use crate::observe::failure::{Awaited, Failure, NAMED, Standstill, Stuck};
use crate::observe::spans::Reached;
use crate::parts::address::CACHEABLE;
use crate::parts::line::Bytes;
use crate::time::Time;

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
    /// How far threads are in their spans.
    pub reached: Reached,
}

impl Survey {
    /// Of `nodes`.
    pub fn of(nodes: &[Node]) -> Self {
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
            node.record().spans.sums.reached(&mut survey.reached);
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
            reached: self.reached.and(&other.reached),
        }
    }

    /// Whether the run stands still. It is stuck if that [lasts](Standstill::lasts_since).
    pub fn standstill(&mut self) -> Option<Standstill> {
        let (progress, looks) = (self.progress, std::mem::take(&mut self.looks));
        let still = !self.moving && self.posted == self.performed;
        still.then_some(Standstill { progress, looks })
    }
}

/// The first fault, if there is any.
pub fn first_fault(nodes: &[Node], peers: &mut dyn Peers) -> Result<Option<Failure>, PeerError> {
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
pub fn deadlock(
    nodes: &[Node],
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
                doing: doing.into(),
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
fn answer(
    nodes: &[Node],
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
fn at(nodes: &[Node], position: u32) -> Option<&Node> {
    let first = nodes.first()?.me;
    nodes.get(position.checked_sub(first)? as usize)
}

fn at_home(home: &Node, physical: u64, bytes: Bytes) -> AtHome {
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
fn awaited(
    nodes: &[Node],
    node: &Node,
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
