//! A node's cores and memory while nothing happens to them: two bytes a thread, and a little more.
//!
//! At rest no line is on its way, every store has left, and each thread waits for its phase (the
//! leader for a flag) or has ended. What that state is fits into a byte for each line and one for
//! each thread; [`super::work`] is the form in which things happen. Many a packet concerns the leader
//! alone: then the followers *sleep* on, and their part of the state is the same one before and after.

use std::sync::Arc;

use rand_pcg::Pcg32;
use smallvec::SmallVec;
use sme_memory::Step;

use super::plan::Form;
use super::work::{Core, Work};
use crate::inline::heap_bytes;
use crate::prefetch::prefetch_part;

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

/// The line of the phase, which all threads of the node hold; who has a copy is part of
/// [`Rest::followers`].
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

/// A node at rest. A short run has a new one, and only the leader's part is new: that part stands here.
#[derive(Clone, Debug)]
pub struct Rest<S> {
    /// The lines that are not followers' flags, a byte each.
    lines: SmallVec<[u8; 64]>,
    /// The followers' flags, then all threads, a byte each; then the holders and the spinners of the
    /// phase, a bit each.
    followers: Arc<[u8]>,
    /// Lines whose homes are taken beyond this state's time, and until when in picoseconds.
    busy: SmallVec<[(u16, u64); 2]>,
    /// Who wrote last to which line, of those to which others than followers write.
    writers: SmallVec<[(u16, u32); 4]>,
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
        let flags = form.flags().len();
        Self {
            lines: SmallVec::from_elem(0, form.lines - flags),
            followers: vec![0; flags + form.threads as usize + 2 * 8 * words].into(),
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
            },
            episode: 0,
            unfinished: form.threads,
            at: 0,
        }
    }

    /// Puts this state into `work`, whose followers sleep; the leader is for the caller.
    pub fn unpack(&self, form: &Form, work: &mut Work) -> First<S> {
        work.prepare(self.at);
        let flags = form.flags();
        let (before, after) = self.lines.split_at(flags.start);
        work.bits[..flags.start].copy_from_slice(before);
        work.bits[flags.end..].copy_from_slice(after);
        if cfg!(debug_assertions) {
            // Whoever does not wake them is found out.
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

    /// Wakes the followers of `work`, into which this state has been put: nothing has happened to them
    /// since.
    pub fn wake(&self, form: &Form, work: &mut Work) {
        let flags = form.flags();
        let (lines, others) = self.followers.split_at(flags.len());
        let (cores, sets) = others.split_at(form.threads as usize);
        work.bits[flags].copy_from_slice(lines);
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
    }

    /// What `work` has come to, but for what is under way there; `asleep`, if its followers still are,
    /// is where they fell asleep.
    pub fn pack(form: &Form, work: &Work, first: First<S>, asleep: Option<&Self>) -> Self {
        let flags = form.flags();
        let (before, after) = (&work.bits[..flags.start], &work.bits[flags.end..]);
        let (followers, episode) = match asleep {
            Some(rest) => (Arc::clone(&rest.followers), rest.episode),
            None => Self::pack_followers(form, work, first.episode),
        };
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
            followers,
            busy: busy.map(|(line, &until)| (line, until)).collect(),
            writers: SmallVec::from_slice(&work.writers),
            random: work.random.clone(),
            phase: work.phase,
            first,
            episode,
            unfinished: work.unfinished,
            at: work.now,
        }
    }

    /// Followers, and the earliest episode one is in; `episode` if there are none.
    fn pack_followers(form: &Form, work: &Work, episode: u32) -> (Arc<[u8]>, u32) {
        let lines = &work.bits[form.flags()];
        let words = work.holders.len();
        let mut bytes = Vec::with_capacity(lines.len() + form.threads as usize + 16 * words);
        bytes.extend_from_slice(lines);
        let first = work.cores.iter().skip(1).map(|core| core.episode).min();
        let episode = first.unwrap_or(episode);
        bytes.extend(work.cores.iter().enumerate().map(|(n, core)| {
            // The leader keeps its own.
            let ahead = if n == 0 { 0 } else { core.episode - episode };
            debug_assert!(ahead < 16, "no follower is two episodes ahead of another");
            core.step | core.phase << 3 | (ahead as u8) << thread_byte::AHEAD
        }));
        for set in [&work.holders, &work.spinners] {
            bytes.extend(set.iter().flat_map(|word| word.to_le_bytes()));
        }
        (bytes.into(), episode)
    }

    /// The earliest episode that any thread is in.
    pub fn first_episode(&self) -> u32 {
        self.episode.min(self.first.episode)
    }

    /// Asks for what is needed of it while the followers sleep; it is there itself.
    pub fn prefetch(&self) {
        // Where the references to it are counted.
        prefetch_part(&*self.followers, 0..1);
    }

    /// What the leader has asked for.
    pub fn step(&self) -> Step {
        self.first.step
    }

    /// Bytes on the heap, but for the followers' where one of `others` has the same.
    pub fn heap_bytes<'a>(&self, others: impl IntoIterator<Item = &'a Self>) -> usize
    where
        S: 'a,
    {
        let mut others = others.into_iter();
        let shared = others.any(|other| Arc::ptr_eq(&self.followers, &other.followers));
        let followers = if shared { 0 } else { self.followers.len() };
        followers + heap_bytes(&self.lines) + heap_bytes(&self.busy) + heap_bytes(&self.writers)
    }
}
