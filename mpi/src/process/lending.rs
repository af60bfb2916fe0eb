//! Memory as a resource apart from cores: the daemon of each core lends segments of the memory that
//! the core has to itself, to any program that asks, also when another one holds the core. The
//! segments below [`KEPT`] are the core's: of its operating system, and of the process that runs
//! there.
//!
//! A segment is lent to one program at a time, until the program returns it or has ended. The
//! program writes back what its caches have of it before that, so that the next one finds memory as
//! it is.

use std::ops::Range;

use super::alert::Means;
use super::board::Lent;
use super::command::{Command, Held, Program};
use super::invade::run_of;
use super::sigmod::Sigmod;
use crate::processor::Processor;

/// Segments of a core's memory that are not lent.
pub const KEPT: u32 = 4;

/// Segments of a core's memory at most.
pub const MOST_SEGMENTS: u32 = 64;

/// Segments of a core that a program has borrowed, whose numbers follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The core.
    pub core: u32,
    /// The first segment.
    pub first: u32,
    /// The number of segments.
    pub count: u32,
}

impl Lease {
    /// The segments.
    pub fn segments(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
}

/// The memory that a program wants beside what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryWish {
    /// With fewer segments it wants none.
    pub least: u32,
    /// The most segments that the program wants.
    pub most: u32,
    /// The cores whose memory it takes, the ones that it likes best first, each once.
    pub candidates: Vec<u32>,
}

impl<M, P> Sigmod<M, P>
where
    M: Means,
    P: Processor,
{
    /// Borrows memory for `program`, of one core after the other until that is enough.
    pub async fn invade_memory(&self, program: Program, wish: &MemoryWish) -> Vec<Lease> {
        let mut leases: Vec<Lease> = Vec::new();
        let count = |leases: &[Lease]| leases.iter().map(|lease| lease.count).sum::<u32>();
        for &core in &wish.candidates {
            // The free segments of a core need not follow each other.
            while let Some(lease) = self
                .borrows(program, core, wish.most - count(&leases))
                .await
            {
                leases.push(lease);
            }
            if count(&leases) >= wish.most {
                break;
            }
        }
        if count(&leases) < wish.least {
            self.return_memory(program, &leases).await;
            leases.clear();
        }
        leases
    }

    /// Returns what the program has borrowed. Nothing of it may be in its caches any more.
    pub async fn return_memory(&self, program: Program, leases: &[Lease]) {
        for lease in leases {
            let returned = (Command::Return, lease.first as u8);
            self.wishes(program, &[lease.core], returned).await;
        }
    }

    /// Returns all that the program has borrowed of `cores`.
    pub async fn return_all(&self, program: Program, cores: &[u32]) {
        self.wishes(program, cores, (Command::Return, 0)).await;
    }

    /// The segments that each of `cores` can lend, in their order.
    pub async fn survey_memory(&self, cores: &[u32]) -> Vec<u32> {
        let mut free = Vec::new();
        for &core in cores {
            let (_, could) = self.asks_to_borrow(0, core, 0).await;
            free.push(could.count);
        }
        free
    }

    /// At most so many segments of `core` that follow each other, if it lends any.
    async fn borrows(&self, program: Program, core: u32, most: u32) -> Option<Lease> {
        if most == 0 {
            return None;
        }
        let (held, lent) = self.asks_to_borrow(program, core, most).await;
        (held == Held(Some(program))).then_some(lent)
    }

    /// The result of [`Command::Borrow`], with what lies beside it. Programs of the node take turns
    /// until it has been read: there is one place for all.
    async fn asks_to_borrow(&self, program: Program, core: u32, most: u32) -> (Held, Lease) {
        self.board.takes_turn(&self.memory).await;
        let wanted = (Command::Borrow, most.min(MOST_SEGMENTS) as u8);
        let results = self.wishes_in_turn(program, &[core], wanted).await;
        let me = self.memory.node();
        let flag = |what| self.board.lent(&self.memory, (me, core), what);
        let lease = Lease {
            core,
            first: self.memory.read(flag(Lent::First)).await.into(),
            count: self.memory.read(flag(Lent::Count)).await.into(),
        };
        self.board.ends_turn(&self.memory).await;
        (results.first().copied().unwrap_or(Held(None)), lease)
    }
}

/// The part of a daemon that lends its core's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Lender {
    /// Segments of the core.
    segments: u32,
    leases: Vec<(Program, Range<u32>)>,
}

impl Lender {
    /// Makes the lender of a core with so many segments.
    pub(super) fn new(segments: u32) -> Self {
        Self {
            segments: segments.min(MOST_SEGMENTS),
            leases: Vec::new(),
        }
    }

    /// The segments that are not lent, in ascending order.
    fn free(&self) -> Vec<u32> {
        let is_lent = |segment: &u32| self.leases.iter().any(|(_, lent)| lent.contains(segment));
        let all = KEPT..self.segments.max(KEPT);
        all.filter(|segment| !is_lent(segment)).collect()
    }

    /// Carries a command out: the result, and the first segment and the number of those lent. Of a
    /// command that borrows none the number is that of all that are free.
    pub(super) fn takes(
        &mut self,
        command: Command,
        program: Program,
        setting: u32,
    ) -> (Held, Range<u32>) {
        let free = self.free();
        match command {
            Command::Borrow if setting == 0 => (Held(None), 0..free.len() as u32),
            Command::Borrow => {
                let Some(run) = run_of(&free, setting) else {
                    return (Held(None), 0..0);
                };
                let lent = run[0]..run[0] + run.len() as u32;
                self.leases.push((program, lent.clone()));
                (Held(Some(program)), lent)
            }
            _ => {
                let is_meant = |first| setting == 0 || setting == first;
                self.leases
                    .retain(|(of, lent)| *of != program || !is_meant(lent.start));
                (Held(Some(program)), 0..0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No segment is lent twice, none that is kept is lent, and all come back.
        #[test]
        fn segments_are_conserved(
            asked in prop::collection::vec((0..3_u8, 0..9_u32, any::<bool>()), 0..40),
        ) {
            let mut lender = Lender::new(16);
            let mut out: Vec<(Program, Range<u32>)> = Vec::new();
            for (program, setting, borrows) in asked {
                if borrows {
                    let lent = out.iter().map(|(_, lent)| lent.len() as u32).sum::<u32>();
                    let (held, run) = lender.takes(Command::Borrow, program, setting);
                    if setting == 0 {
                        prop_assert_eq!(run, 0..16 - KEPT - lent);
                        continue;
                    }
                    prop_assert_eq!(held.0.is_some(), lent < 16 - KEPT);
                    prop_assert!(run.len() as u32 <= setting);
                    for segment in run.clone() {
                        prop_assert!((KEPT..16).contains(&segment));
                        prop_assert!(out.iter().all(|(_, lent)| !lent.contains(&segment)));
                    }
                    if held.0.is_some() {
                        out.push((program, run));
                    }
                } else if setting == 0 {
                    lender.takes(Command::Return, program, 0);
                    out.retain(|(of, _)| *of != program);
                } else if let Some(at) = out.iter().position(|(of, _)| *of == program) {
                    let (_, run) = out.swap_remove(at);
                    lender.takes(Command::Return, program, run.start);
                }
            }
            for program in 0..3 {
                lender.takes(Command::Return, program, 0);
            }
            prop_assert_eq!(lender.free().len() as u32, 16 - KEPT);
        }
    }
}
