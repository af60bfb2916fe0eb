//! The followers of a node at rest: their flags, where they are, and who holds the phase.
//!
//! Many packets concern the leader alone. Then the followers *sleep* on, and this state is not
//! unpacked.

use super::plan::NodeForm;
use super::work::Work;

/// The followers' state of a node at rest, two bytes per thread.
#[derive(Clone, Debug)]
pub struct FollowersAtRest {
    /// Their flags, then all threads, a byte each; then the holders and the spinners of the phase,
    /// a bit each.
    bytes: Box<[u8]>,
    /// The earliest episode one is in.
    episode: u32,
}

/// A thread's byte: the stage of a follower, what it found as the phase, and how many episodes it
/// is ahead of the others.
mod thread_byte {
    pub const STEP: u8 = 0b111;
    pub const PHASE: u8 = 1 << 3;
    pub const AHEAD: u32 = 4;
}

impl FollowersAtRest {
    /// Before the first event.
    pub fn new(form: &NodeForm) -> Self {
        let words = form.threads.div_ceil(64) as usize;
        let bytes = form.flags().len() + form.threads as usize + 2 * 8 * words;
        Self {
            bytes: vec![0; bytes].into(),
            episode: 0,
        }
    }

    /// Those of `work`; if there are none, the earliest episode is the leader's, `episode`.
    pub fn pack(form: &NodeForm, work: &Work, episode: u32) -> Self {
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
        Self {
            bytes: bytes.into(),
            episode,
        }
    }

    /// Wakes those of `work`: nothing has happened to them since they were like this.
    pub fn wake(&self, form: &NodeForm, work: &mut Work) {
        let flags = form.flags();
        let (lines, others) = self.bytes.split_at(flags.len());
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

    /// The earliest episode that one is in.
    pub fn episode(&self) -> u32 {
        self.episode
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }
}
