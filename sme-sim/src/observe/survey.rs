//! A survey of the nodes of a machine while it runs: their progress, whether they stand still, and
//! which thread waits for what when nothing can happen any more.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sme_memory::Until;

use super::among::all_stuck;
use super::calls::OpenCall;
use super::failure::{Failure, Standstill};
use super::last_writes::LastWrites;
use super::spans::Reached;
use super::stuck::{Awaited, Holder, LISTED, Stuck};
use super::unwritten::Dirty;
use crate::kernel::peers::{self, PeerError, Peers};
use crate::kernel::thread::Site;
use crate::parts::line::Bytes;
use crate::parts::memory::Writer;
use crate::time::Time;

/// The state of some or all nodes now.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Survey {
    /// Whether anything is under way, apart from loads that poll.
    pub moving: bool,
    /// Whether an access has faulted.
    pub faulty: bool,
    /// Posted writes that have been sent.
    pub posted: u64,
    /// Those of them that have been performed.
    pub performed: u64,
    /// The steps that all threads have made.
    pub progress: u64,
    /// The polls of each polling thread, in the order of the threads.
    pub looks: Vec<u32>,
    /// Simulated so far.
    pub events: u64,
    /// The progress of threads in their spans.
    pub reached: Reached,
}

impl Survey {
    /// Of all processes; of this one it is `self`.
    ///
    /// # Errors
    /// [`PeerError`] if a process has gone.
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

    /// Returns whether the run stands still. It is stuck if that [lasts](Standstill::lasts_since).
    pub fn standstill(&mut self) -> Option<Standstill> {
        let (progress, looks) = (self.progress, std::mem::take(&mut self.looks));
        let still = !self.moving && self.posted == self.performed;
        still.then_some(Standstill { progress, looks })
    }
}

/// A node whose threads may wait for ever.
pub trait Waits {
    /// Its number.
    fn number(&self) -> u32;

    /// The number of its threads.
    fn threads(&self) -> u32;

    /// The current activity of `thread`, in words for the report; `None` if it has ended.
    fn doing(&self, thread: u16) -> Option<&'static str>;

    /// The address that `thread` waits on, if its wait is about one.
    fn waits_on(&self, thread: u16) -> Option<WaitsOn>;

    /// The place in its program from which `thread` waits, if it waits.
    fn wait_site(&self, thread: u16) -> Option<Site>;

    /// The innermost call of a library that `thread` is in.
    fn call(&self, thread: u16) -> Option<&OpenCall>;

    /// The words that its caches of other nodes' memory have not written back.
    fn dirty(&self) -> Vec<Dirty>;

    /// Returns what its memory holds of `bytes` of the line that has `address` in the node's own
    /// numbering.
    fn at_home(&self, address: u64, bytes: Bytes) -> AtHome;
}

/// An address that a thread waits on.
#[derive(Clone, Copy, Debug)]
pub struct WaitsOn {
    /// The address, as the program gave it.
    pub address: u64,
    /// Those of its bytes that matter.
    pub bytes: Bytes,
    /// The condition that would end the wait.
    pub until: Option<Until>,
    /// The node whose memory holds it, and the address in that node's own numbering.
    pub home: (u32, u64),
    /// The offset in that node's shared memory, in bytes, where it is there.
    pub offset: Option<u64>,
    /// The value in the thread's own copy, where it has one.
    pub cached: Option<u64>,
}

/// The answer of a word's home.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AtHome {
    /// The value that a load there would bring.
    pub newest: u64,
    /// The value in memory alone.
    pub in_memory: u64,
    /// Node and number of the thread that wrote to it last, or to its line where writes are not
    /// [kept](super::last_writes).
    pub writer: Option<(u32, u16)>,
    /// The time at which that took effect, where writes are kept.
    pub written_at: Option<Time>,
}

impl AtHome {
    /// Of memory in which all is performed at once, whose word at `offset` is `word` with its last
    /// writer; its last writes are `kept` or not.
    pub fn of(
        word: (u64, Option<Writer>),
        kept: Option<&LastWrites>,
        offset: u64,
        bytes: Bytes,
    ) -> Self {
        let (word, writer) = word;
        let value = bytes.pick(word);
        let kept = kept.and_then(|kept| kept.last(offset, bytes));
        Self {
            newest: value,
            in_memory: value,
            writer: kept.map_or(writer, |write| write.map(|(_, by)| by)),
            written_at: kept.flatten().map(|(at, _)| at),
        }
    }
}

/// A question of one process to a home node of another.
#[derive(Serialize, Deserialize)]
struct Question {
    home: u32,
    address: u64,
    bytes: Bytes,
}

/// The report of a deadlock, if any thread of `nodes`, which are this process's in their order, or
/// of other processes' still waits.
///
/// # Errors
/// [`PeerError`] if a process has gone.
pub fn deadlock<N: Waits>(
    nodes: &[N],
    at: Time,
    peers: &mut dyn Peers,
) -> Result<Option<Failure>, PeerError> {
    let mut questions = Vec::new();
    let mut stuck = Vec::new();
    for node in nodes {
        for thread in 0..node.threads() as u16 {
            let Some(doing) = node.doing(thread) else {
                continue;
            };
            let awaited = node.waits_on(thread).map(|on| {
                let (home, address) = on.home;
                let said = find(nodes, home).map(|home| home.at_home(address, on.bytes));
                if said.is_none() {
                    let bytes = on.bytes;
                    let question = Question {
                        home,
                        address,
                        bytes,
                    };
                    questions.push((stuck.len() as u64, question));
                }
                awaited(&on, said.unwrap_or_default())
            });
            stuck.push(Stuck {
                node: node.number(),
                core: thread,
                doing: doing.into(),
                call: node.call(thread).map(ToString::to_string),
                site: (node.wait_site(thread))
                    .map(|site| format!("{}:{}", site.file(), site.line())),
                awaited,
            });
        }
    }
    answer(nodes, questions, &mut stuck, peers)?;
    let (mut stuck, more) = all_stuck(peers, stuck, 0)?;
    let found = find_unwritten(nodes, &stuck);
    for (number, unwritten) in peers::all(peers, found)?.into_iter().flatten() {
        let awaited = stuck.get_mut(number as usize);
        if let Some(awaited) = awaited.and_then(|thread| thread.awaited.as_mut()) {
            awaited.unwritten.get_or_insert(unwritten);
        }
    }
    Ok((!stuck.is_empty()).then_some(Failure::Deadlock { at, stuck, more }))
}

fn awaited(on: &WaitsOn, said: AtHome) -> Awaited {
    Awaited {
        address: on.address,
        until: on.until,
        at_home: said.newest,
        in_memory: said.in_memory,
        cached: on.cached,
        writer: said.writer,
        written_at: said.written_at,
        name: None,
        place: on.offset.map(|offset| (on.home.0, offset)),
        unwritten: None,
    }
}

/// Of which of the `stuck`, by their numbers, a cache of `nodes` holds what they wait on and has
/// not written it back.
fn find_unwritten<N: Waits>(nodes: &[N], stuck: &[Stuck]) -> Vec<(u64, Holder)> {
    let mut awaited: FxHashMap<(u32, u64), Vec<(u64, &Awaited)>> = FxHashMap::default();
    for (number, thread) in (0..).zip(stuck) {
        if let Some(on) = &thread.awaited
            && let Some((node, offset)) = on.place
        {
            let word = awaited.entry((node, offset & !7)).or_default();
            word.push((number, on));
        }
    }
    let mut found = Vec::new();
    for node in nodes {
        for dirty in node.dirty() {
            let place = (dirty.place.node, dirty.place.offset);
            for (number, on) in awaited.get(&place).into_iter().flatten() {
                let bytes = match on.until {
                    Some(_) => Bytes::byte(on.address),
                    None => Bytes::word(on.address),
                };
                let value = bytes.pick(dirty.cached);
                if bytes.enables & dirty.enables != 0 && value != on.at_home {
                    found.push((*number, (node.number(), dirty.core, value)));
                }
            }
        }
    }
    found
}

/// Asks the other processes `questions`, each of one of the `stuck`, and answers theirs.
fn answer<N: Waits>(
    nodes: &[N],
    mut questions: Vec<(u64, Question)>,
    stuck: &mut [Stuck],
    peers: &mut dyn Peers,
) -> Result<(), PeerError> {
    if peers.count() == 1 {
        return Ok(());
    }
    // No more are listed.
    questions.truncate(LISTED);
    let me = peers.me() as u64;
    let mut answers = Vec::new();
    for (process, questions) in (0u64..).zip(peers::all(peers, questions)?) {
        for (number, question) in questions {
            if let Some(home) = find(nodes, question.home) {
                let said = home.at_home(question.address, question.bytes);
                answers.push((process, number, said));
            }
        }
    }
    for (process, number, said) in peers::all(peers, answers)?.into_iter().flatten() {
        let asker = stuck.get_mut(number as usize).filter(|_| process == me);
        if let Some(awaited) = asker.and_then(|stuck| stuck.awaited.as_mut()) {
            awaited.at_home = said.newest;
            awaited.in_memory = said.in_memory;
            awaited.writer = said.writer;
            awaited.written_at = said.written_at;
        }
    }
    Ok(())
}

/// The node numbered `number`, if it is among these.
fn find<N: Waits>(nodes: &[N], number: u32) -> Option<&N> {
    let first = nodes.first()?.number();
    nodes.get(number.checked_sub(first)? as usize)
}
