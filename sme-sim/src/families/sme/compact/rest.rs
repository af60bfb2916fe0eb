//! A node's cores and memory while nothing happens to them: two bytes per thread, and a little
//! more.
//!
//! At rest no line is on its way, every store has left, and each thread waits for its phase (the
//! leader for a flag) or has ended. That state fits into a byte for each line and one for each
//! thread; [`super::work`] is the form in which things happen. Here is the leader's part, the
//! followers' in [`super::followers`].

use rand_pcg::Pcg32;
use smallvec::SmallVec;
use sme_memory::Step;

use super::plan::NodeForm;
use super::work::{Core, Work};
use crate::parts::inline::heap_bytes;

/// The leader of a node.
#[derive(Clone, Copy, Debug)]
pub struct First<S> {
    /// The state that its program keeps.
    pub state: S,
    /// The step that it has asked for.
    pub step: Step,
    /// Of a [`Step::WaitAll`], how many flags it has seen.
    pub passed: u32,
    /// Its episode.
    pub episode: u32,
    /// The answer that it gets when it goes on.
    pub answer: u8,
    /// The stage of its program.
    pub stage: Stage,
    /// The reason why it does not go on.
    pub waiting: Waiting,
    /// Its accesses count: the warm-up is over.
    pub counted: bool,
    /// Before this time it posts no further store, in picoseconds.
    pub gap_until: u64,
    /// Its oldest store leaves then: there is an event for that.
    pub leaves_then: bool,
}

/// The stage of a thread's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// About to begin an episode.
    Start,
    /// Late.
    Late,
    /// In the barrier.
    Inside,
    /// At its end.
    Ended,
}

/// The reason why a thread does not go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The leader goes on.
    Nothing,
    /// For a line, or for its own copy to change.
    Cache,
    /// For a place in its store buffer.
    StoreBuffer,
}

/// The line of the phase, which all threads of the node hold; who has a copy is the followers'
/// part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// In memory.
    pub memory: u8,
    /// In the copies.
    pub copies: u8,
    /// Memory is older.
    pub dirty: bool,
    /// The core that answers probes, or [`NO_CORE`].
    pub owner: u16,
}

/// No core.
pub const NO_CORE: u16 = u16::MAX;

impl Phase {
    /// A phase that no core has touched.
    pub const NEW: Phase = Phase {
        memory: 0,
        copies: 0,
        dirty: false,
        owner: NO_CORE,
    };
}

/// A node at rest, but for its followers.
#[derive(Clone, Debug)]
pub struct Rest<S> {
    /// The lines that are not followers' flags, a byte each.
    lines: SmallVec<[u8; 64]>,
    /// Lines whose homes are taken beyond this state's time, and until when in picoseconds.
    busy: SmallVec<[(u16, u64); 2]>,
    /// The last writer of each line to which others than followers write.
    writers: SmallVec<[(u16, u32); 4]>,
    random: Pcg32,
    phase: Phase,
    first: First<S>,
    /// Threads that have not ended.
    pub unfinished: u32,
    /// The time at which the last event happened, in picoseconds.
    pub at: u64,
}

impl<S: Copy + Default> Rest<S> {
    /// Before the first event.
    pub fn new(form: &NodeForm, node: u32) -> Self {
        Self {
            lines: SmallVec::from_elem(0, form.lines - form.flags().len()),
            busy: SmallVec::new(),
            writers: SmallVec::new(),
            random: Pcg32::new(form.seed, u64::from(node)),
            phase: Phase::NEW,
            first: First {
                state: S::default(),
                step: Step::Leave,
                passed: 0,
                episode: 0,
                answer: 0,
                stage: Stage::Start,
                waiting: Waiting::Nothing,
                counted: false,
                gap_until: 0,
                leaves_then: false,
            },
            unfinished: form.threads,
            at: 0,
        }
    }

    /// Puts this state into `work`, whose followers sleep; the leader is for the caller.
    pub fn unpack(&self, form: &NodeForm, work: &mut Work) -> First<S> {
        work.prepare(self.at);
        let flags = form.flags();
        let (before, after) = self.lines.split_at(flags.start);
        work.bits[..flags.start].copy_from_slice(before);
        work.bits[flags.end..].copy_from_slice(after);
        if cfg!(debug_assertions) {
            // Code that forgets to wake the followers is found out.
            work.bits[flags].fill(0xff);
            work.cores.fill(Core::default());
            work.holders.fill(u64::MAX);
            work.spinners.fill(u64::MAX);
        }
        for &(line, until) in &self.busy {
            work.takes_home(line, until);
        }
        work.writers.clear();
        work.writers.extend_from_slice(&self.writers);
        work.random = self.random.clone();
        work.phase = self.phase;
        work.unfinished = self.unfinished;
        self.first
    }

    /// Packs the state that `work` has reached, without what is under way there.
    pub fn pack(form: &NodeForm, work: &Work, first: First<S>) -> Self {
        let flags = form.flags();
        let (before, after) = (&work.bits[..flags.start], &work.bits[flags.end..]);
        let mut lines = SmallVec::from_slice(before);
        lines.extend_from_slice(after);
        let taken: &[u64] = if work.free_from > work.now {
            &work.free_at
        } else {
            &[]
        };
        let busy = (0..).zip(taken).filter(|&(_, &until)| until > work.now);
        Self {
            lines,
            busy: busy.map(|(line, &until)| (line, until)).collect(),
            writers: SmallVec::from_slice(&work.writers),
            random: work.random.clone(),
            phase: work.phase,
            first,
            unfinished: work.unfinished,
            at: work.now,
        }
    }

    /// The leader's episode.
    pub fn episode(&self) -> u32 {
        self.first.episode
    }

    /// Returns the step that the leader has asked for.
    pub fn step(&self) -> Step {
        self.first.step
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.lines) + heap_bytes(&self.busy) + heap_bytes(&self.writers)
    }
}
