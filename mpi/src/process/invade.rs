//! Invading: cores are surveyed and reserved, as many as are wanted and to be had.

use super::alert::Means;
use super::command::{Command, Held, Program};
use super::sigmod::Sigmod;
use crate::processor::Processor;

/// The cores that a program wants beside those that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// With fewer it wants none.
    pub least: u32,
    /// The most cores that the program wants.
    pub most: u32,
    /// The cores that it takes, the ones that it likes best first, each once.
    pub candidates: Vec<u32>,
    /// Whether the cores must have consecutive numbers.
    pub contiguous: bool,
}

impl<M, P> Sigmod<M, P>
where
    M: Means,
    P: Processor,
{
    /// A wish for any cores but the own one, from `least` to `most` of them, those with the lowest
    /// numbers first.
    pub fn any(&self, least: u32, most: u32) -> Wish {
        let me = self.memory.node();
        Wish {
            least,
            most,
            candidates: (0..self.board.cores).filter(|&core| core != me).collect(),
            contiguous: false,
        }
    }

    /// Reserves cores for `program`: those of them that it has not held before, in the order of
    /// their numbers.
    pub async fn invade(&self, program: Program, wish: &Wish) -> Vec<u32> {
        let mut held = match wish.contiguous {
            true => self.invade_contiguous(program, wish).await,
            false => self.invade_any(program, wish).await,
        };
        if (held.len() as u64) < wish.least.into() {
            self.release(program, &held).await;
            held.clear();
        }
        held.sort_unstable();
        held
    }

    /// Gives `cores` back.
    pub async fn release(&self, program: Program, cores: &[u32]) {
        self.all(cores, Command::Release(program)).await;
    }

    /// Returns the holder of each of `cores`, in their order.
    pub async fn survey(&self, cores: &[u32]) -> Vec<Held> {
        self.all(cores, Command::Query).await
    }

    /// Gives all of `cores` a command, and then collects the results; one process of the core at a
    /// time.
    pub async fn all(&self, cores: &[u32], command: Command) -> Vec<Held> {
        if cores.is_empty() {
            return Vec::new();
        }
        self.board.takes_turn(&self.memory).await;
        for &core in cores {
            self.requests(core, command).await;
        }
        let results = self.results(cores).await;
        self.board.ends_turn(&self.memory).await;
        results
    }

    /// The results of `cores`, all of which have a command, in their order.
    pub(super) async fn results(&self, cores: &[u32]) -> Vec<Held> {
        let mut results = Vec::with_capacity(cores.len());
        for &core in cores {
            results.push(self.result(core).await);
        }
        results
    }

    /// Asks as many at a time as are still wanted; when some of them were not free, only those of
    /// the others that a survey shows to be.
    async fn invade_any(&self, program: Program, wish: &Wish) -> Vec<u32> {
        let mut left = wish.candidates.clone();
        let mut held = Vec::new();
        loop {
            let wanted = (wish.most as usize).saturating_sub(held.len());
            let rest = left.split_off(wanted.min(left.len()));
            if left.is_empty() {
                return held;
            }
            held.extend(self.reserved(program, &left).await);
            left = rest;
            if held.len() < wish.most as usize {
                left = self.free(left).await;
            }
        }
    }

    /// Those of `cores` that are free.
    async fn free(&self, mut cores: Vec<u32>) -> Vec<u32> {
        let holders = self.survey(&cores).await;
        let mut holders = holders.iter();
        cores.retain(|_| holders.next() == Some(&Held(None)));
        cores
    }

    /// Surveys all, and reserves the first run that is long enough, or else the longest.
    async fn invade_contiguous(&self, program: Program, wish: &Wish) -> Vec<u32> {
        let mut free = wish.candidates.clone();
        free.sort_unstable();
        free = self.free(free).await;
        loop {
            let Some(run) = run_of(&free, wish.most) else {
                return Vec::new();
            };
            let held = self.reserved(program, &run).await;
            if held.len() == run.len() {
                return held;
            }
            // Other programs have been faster: the cores that they hold are not free.
            self.release(program, &held).await;
            free.retain(|core| !run.contains(core) || held.contains(core));
        }
    }

    /// Those of `cores` that could be reserved.
    async fn reserved(&self, program: Program, cores: &[u32]) -> Vec<u32> {
        let results = self.all(cores, Command::Reserve(program)).await;
        let granted = cores.iter().zip(results);
        let granted = granted.filter(|(_, held)| *held == Held(Some(program)));
        granted.map(|(&core, _)| core).collect()
    }
}

/// The first run of at most so many numbers in `free`, which ascend, that is so long, or else the
/// first of the longest; none if there is none.
pub(super) fn run_of(free: &[u32], most: u32) -> Option<Vec<u32>> {
    let runs = free.chunk_by(|one, next| one + 1 == *next);
    let cut = |run: &[u32]| run[..run.len().min(most as usize)].to_vec();
    let mut best: Option<Vec<u32>> = None;
    for run in runs.map(cut) {
        if best.as_ref().is_none_or(|best| run.len() > best.len()) {
            best = Some(run);
        }
    }
    best.filter(|run| !run.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_that_is_long_enough_is_taken() {
        let free = [1, 2, 4, 5, 6, 9, 10, 11, 12];
        assert_eq!(run_of(&free, 2), Some(vec![1, 2]));
        assert_eq!(run_of(&free, 3), Some(vec![4, 5, 6]));
        assert_eq!(run_of(&free, 9), Some(vec![9, 10, 11, 12]));
        assert_eq!((run_of(&free, 0), run_of(&[], 4)), (None, None));
    }
}
