//! Bells: bytes that tell a rank where to look. A bell stands for eight pairs of flags or for eight
//! bells of the level below; one bell at the top stands for all. A rank that sets a flag of another
//! one also rings the bells above that flag, from the lowest to the highest. The owner silences a
//! bell before it reads what the bell stands for, and so misses nothing. Others write only 1 and
//! the owner only 0: writers need not take turns.

use sme_memory::{Flag, Memory, Route};

use super::layout::{GROUP, Layout, Level};

/// The bells of all ranks, as rank `me` reaches them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bells<'a, M> {
    pub(super) memory: &'a M,
    pub(super) layout: &'a Layout,
    /// [`Layout::levels`]
    pub(super) levels: &'a [Level],
    pub(super) me: u32,
}

impl<M: Memory> Bells<'_, M> {
    fn bell(&self, of: u32, level: Level, number: u32) -> Flag {
        let bell = self.layout.bell(of, level, number);
        self.memory.flag(bell, Route::Nearest)
    }

    /// The own bell that rings whenever another one does, if there is any.
    pub(super) fn top(&self) -> Option<Flag> {
        let &top = self.levels.last()?;
        Some(self.bell(self.me, top, 0))
    }

    /// Rings the bells of `of` for this rank's flags there.
    pub(super) async fn ring(&self, of: u32) {
        let mut number = self.me;
        for &level in self.levels {
            number /= GROUP;
            self.memory.set(self.bell(of, level, number), 1).await;
        }
    }

    /// Silences all own bells that ring; the ranks whose flags they stand for.
    pub(super) async fn silence(&self) -> Vec<u32> {
        // The bells of one level, from the top.
        let mut looked_at = vec![0];
        for (depth, &level) in self.levels.iter().enumerate().rev() {
            let mut below = Vec::new();
            for &number in &looked_at {
                let bell = self.bell(self.me, level, number);
                if self.memory.read(bell).await != 0 {
                    self.memory.set(bell, 0).await;
                    below.extend(number * GROUP..(number + 1) * GROUP);
                }
            }
            if below.is_empty() {
                return below;
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
        looked_at
    }
}
