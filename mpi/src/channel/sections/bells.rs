//! Bells: bytes that tell a rank where to look. A bell stands for eight pairs of flags or for eight
//! bells of the level below; one bell at the top stands for all. A rank that sets a flag of another
//! one also rings the bells above that flag, from the lowest to the highest. The owner silences a
//! bell before it reads what the bell stands for, and so misses nothing. Others write only 1 and
//! the owner only 0: writers need not take turns.

use sme_memory::{Memory, Until};

use super::Sections;
use super::layout::GROUP;

impl<M: Memory, P> Sections<M, P> {
    /// Rings the bells of `of` for this rank's flags there.
    pub(super) async fn rings(&self, of: u32) {
        let mut number = self.me;
        for &level in &self.levels {
            number /= GROUP;
            let bell = self.layout.bell(of, level, number);
            self.memory.set(self.flag(bell), 1).await;
        }
    }

    /// Takes note of all flags whose bells ring.
    pub(super) async fn hears(&self) {
        // The bells of one level, from the top.
        let mut looked_at = vec![0];
        for (depth, &level) in self.levels.iter().enumerate().rev() {
            let mut below = Vec::new();
            for &number in &looked_at {
                let bell = self.flag(self.layout.bell(self.me, level, number));
                if self.memory.read(bell).await != 0 {
                    self.memory.set(bell, 0).await;
                    below.extend(number * GROUP..(number + 1) * GROUP);
                }
            }
            if below.is_empty() {
                return;
            }
            // The silence must be in memory before the flags or bells below are read.
            self.memory.fence().await;
            let count = match depth.checked_sub(1) {
                Some(below) => self.levels[below].count,
                None => self.layout.ranks,
            };
            below.retain(|&number| number < count);
            looked_at = below;
        }
        for other in looked_at {
            let full = self.flag(self.layout.full(self.me, other));
            if self.memory.read(full).await != 0 {
                let mut state = self.state.lock();
                if !state.full.contains(&other) {
                    state.full.push_back(other);
                }
            }
            let read = self.flag(self.layout.read_by(self.me, other));
            if self.memory.read(read).await != 0 {
                self.memory.set(read, 0).await;
                self.state.lock().is_free[other as usize] = true;
            }
        }
    }

    /// Waits until bytes have come, or a section of `full` is free.
    pub(super) async fn waits_for_bell(&self, full: &[u32]) {
        let Some(&top) = self.levels.last() else {
            return;
        };
        let top = self.flag(self.layout.bell(self.me, top, 0));
        loop {
            self.hears().await;
            let is_free = || {
                let state = self.state.lock();
                full.iter().any(|&to| state.is_free[to as usize])
            };
            if self.knows_of_bytes() || is_free() {
                return;
            }
            self.memory.wait(top, Until::IsNot(0)).await;
        }
    }
}
