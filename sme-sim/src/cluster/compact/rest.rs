//! A node's cores and memory while nothing happens to them: two bytes a thread, and a little more.
//!
//! At rest no line is on its way, every store has left, and each thread waits for its phase (the
//! leader for a flag) or has ended. What that state is fits into a byte for each line and one for
//! each thread; [`super::work`] is the form in which things happen.

use rand_pcg::Pcg32;
use sme_memory::Step;

use super::plan::Form;
use super::work::Work;

/// The leader of a node.
#[derive(Clone, Copy, Debug)]
pub struct First<S> {
    /// What it remembers.
    pub state: S,
    /// What it has asked for.
    pub step: Step,
    /// Of a [`Step::WaitAll`], how many flags it has seen.
    pub passed: u32,
    /// Its episode.
    pub episode: u32,
    /// What it is told when it goes on.
    pub answer: u8,
    /// Where its program is.
    pub stage: Stage,
    /// Why it does not go on.
    pub waiting: Waiting,
    /// Its accesses count: the warm-up is over.
    pub counted: bool,
    /// Before this time it posts no further store, in picoseconds.
    pub gap_until: u64,
}

/// Where a thread's program is.
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

/// Why a thread does not go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It does.
    Nothing,
    /// For a line, or for its own copy to change.
    Cache,
    /// For a place in its store buffer.
    StoreBuffer,
}

/// The line of the phase, which all threads of the node hold; its copies are bits of
/// [`Rest::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// In memory.
    pub memory: u8,
    /// In the copies.
    pub copies: u8,
    /// Memory is older.
    pub dirty: bool,
    /// Who answers probes; [`u16::MAX`]: nobody.
    pub owner: u16,
}

/// No core.
pub const NOBODY: u16 = u16::MAX;

impl Phase {
    /// Nobody has touched it.
    pub const NEW: Phase = Phase {
        memory: 0,
        copies: 0,
        dirty: false,
        owner: NOBODY,
    };
}

/// A node at rest.
#[derive(Clone, Debug)]
pub struct Rest<S> {
    /// Lines, then threads, a byte each; then the holders and the spinners of the phase, a bit each.
    bytes: Box<[u8]>,
    /// Lines whose homes are taken beyond this state's time, and until when in picoseconds.
    busy: Box<[(u16, u64)]>,
    /// Who wrote last to which line, of those to which others than followers write.
    writers: Box<[(u16, u32)]>,
    random: Pcg32,
    phase: Phase,
    first: First<S>,
    /// The earliest episode a follower is in.
    episode: u32,
    /// Threads that have not ended.
    pub unfinished: u32,
    /// When the last event happened, in picoseconds.
    pub at: u64,
}

/// A thread's byte: the stage of a follower, what it found as the phase, and how many episodes it is
/// ahead of the others.
mod thread_byte {
    pub const STEP: u8 = 0b111;
    pub const PHASE: u8 = 1 << 3;
    pub const AHEAD: u32 = 4;
}

impl<S: Copy + Default> Rest<S> {
    /// Before the first event.
    pub fn new(form: &Form, node: u32) -> Self {
        let words = form.threads.div_ceil(64) as usize;
        let length = form.lines + form.threads as usize + 2 * 8 * words;
        Self {
            bytes: vec![0; length].into(),
            busy: Box::default(),
            writers: Box::default(),
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
            },
            episode: 0,
            unfinished: form.threads,
            at: 0,
        }
    }

    /// Puts this state into `work`; the leader is for the caller.
    pub fn unpack(&self, form: &Form, work: &mut Work) -> First<S> {
        let threads = form.threads as usize;
        work.prepare(self.at);
        let (lines, others) = self.bytes.split_at(form.lines);
        let (cores, sets) = others.split_at(threads);
        work.bits.copy_from_slice(lines);
        for (core, &byte) in work.cores.iter_mut().zip(cores) {
            core.step = byte & thread_byte::STEP;
            core.phase = u8::from(byte & thread_byte::PHASE != 0);
            core.episode = self.episode + u32::from(byte >> thread_byte::AHEAD);
        }
        let (holders, spinners) = sets.split_at(sets.len() / 2);
        for (set, bytes) in [(&mut work.holders, holders), (&mut work.spinners, spinners)] {
            for (word, bytes) in set.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
            }
        }
        for &(line, until) in &self.busy {
            work.free_at[usize::from(line)] = until;
        }
        work.writers.clear();
        work.writers.extend_from_slice(&self.writers);
        work.random = self.random.clone();
        work.phase = self.phase;
        work.unfinished = self.unfinished;
        self.first
    }

    /// What `work` has come to, but for what is under way there.
    pub fn pack(form: &Form, work: &Work, first: First<S>) -> Self {
        let words = work.holders.len();
        let mut bytes = Vec::with_capacity(form.lines + form.threads as usize + 16 * words);
        bytes.extend_from_slice(&work.bits);
        let episode = work.cores.iter().skip(1).map(|core| core.episode).min();
        let episode = episode.unwrap_or(0);
        bytes.extend(work.cores.iter().enumerate().map(|(n, core)| {
            // The leader keeps its own.
            let ahead = if n == 0 { 0 } else { core.episode - episode };
            debug_assert!(ahead < 16, "no follower is two episodes ahead of another");
            core.step | core.phase << 3 | (ahead as u8) << thread_byte::AHEAD
        }));
        for set in [&work.holders, &work.spinners] {
            bytes.extend(set.iter().flat_map(|word| word.to_le_bytes()));
        }
        let busy = (0..).zip(&work.free_at);
        let busy = busy.filter(|&(_, &until)| until > work.now);
        Self {
            bytes: bytes.into(),
            busy: busy.map(|(line, &until)| (line, until)).collect(),
            writers: work.writers.as_slice().into(),
            random: work.random.clone(),
            phase: work.phase,
            first,
            episode,
            unfinished: work.unfinished,
            at: work.now,
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.busy) + size_of_val(&*self.writers)
    }
}
