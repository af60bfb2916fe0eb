//! Bells: bytes that tell a rank where to look. A bell stands for a group of pairs of flags or of
//! bells of the level below; one bell at the top stands for all. A rank that sets a flag of another
//! one also rings the bells above that flag, from the lowest to the highest. The owner silences a
//! bell before it reads what the bell stands for, and so misses nothing. Others write only 1 and
//! the owner only 0: writers need not take turns.

use sme_memory::{Cacheable, Flag, Place, Route};

use super::layout::{Layout, Level, Reach};

/// The bells of all ranks, as rank `me` reaches them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bells<'a, M> {
    pub(super) memory: &'a M,
    pub(super) layout: &'a Layout,
    /// [`Layout::levels`]
    pub(super) levels: &'a [Level],
    pub(super) me: u32,
}

/// Reads of the own bells and flags, each of which sees what others had written before the first.
#[derive(Debug)]
pub(super) struct Looks<'a, M> {
    memory: &'a M,
    layout: &'a Layout,
    /// The line that holds nothing older.
    fresh: Option<u64>,
}

impl<'a, M: Cacheable> Looks<'a, M> {
    pub(super) fn new(memory: &'a M, layout: &'a Layout) -> Self {
        Self {
            memory,
            layout,
            fresh: None,
        }
    }

    /// Reads the flag or the bell at that place. In a pool a line comes as a whole, after what the
    /// caches have of it was dropped.
    pub(super) async fn at(&mut self, place: Place) -> u8 {
        if self.layout.reach != Reach::Pool {
            return self
                .memory
                .read(self.memory.flag(place, Route::Nearest))
                .await;
        }
        let line = place.offset / self.layout.line;
        if self.fresh != Some(line) {
            self.fresh = Some(line);
            drop_copies(self.memory, self.layout, (place, 1)).await;
        }
        self.memory
            .read(self.memory.flag(place, Route::Cached))
            .await
    }
}

/// Drops what the caches have of so many bytes of a pool from `first` on.
pub(super) async fn drop_copies<M: Cacheable>(
    memory: &M,
    layout: &Layout,
    (first, bytes): (Place, u64),
) {
    let line = layout.line;
    let mut at = Place {
        offset: first.offset / line * line,
        ..first
    };
    while at.offset < first.offset + bytes {
        memory.flush(memory.word(at, Route::Cached)).await;
        at = at.plus(line);
    }
}

impl<M: Cacheable> Bells<'_, M> {
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
            number /= self.layout.group();
            self.memory.set(self.bell(of, level, number), 1).await;
        }
    }

    /// Silences all own bells that ring; the ranks whose flags they stand for.
    pub(super) async fn silence(&self) -> Vec<u32> {
        // The bells of one level, from the top.
        let mut looked_at = vec![0];
        let group = self.layout.group();
        for (depth, &level) in self.levels.iter().enumerate().rev() {
            let mut below = Vec::new();
            let mut looks = Looks::new(self.memory, self.layout);
            for &number in &looked_at {
                if looks.at(self.layout.bell(self.me, level, number)).await != 0 {
                    self.memory.set(self.bell(self.me, level, number), 0).await;
                    below.extend(number * group..(number + 1) * group);
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
