//! The dissemination barrier: D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier
//! Synchronization", International Journal of Parallel Programming 17(1), 1988; the flags
//! with parity and sense are those of J. Mellor-Crummey, M. Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991.
//!
//! Among the local masters: in round k rank i notifies rank i + 2^k modulo the nodes and waits to
//! be notified itself; after ⌈log2 nodes⌉ rounds every master has heard of every other. No master,
//! no release. Inside a node threads are gathered before and released after; with one thread per
//! node nothing but the published algorithm is left. It takes nodes ⌈log2 nodes⌉ remote stores per
//! episode.

use std::future::Future;

use sme_memory::{Flag, Followers, Leader, Memory, Place, Step, Until};

use crate::episode::Episode;
use crate::layout::Row;
use crate::local::{NodeVariables, flip};
use crate::{Barrier, Layout, Member, Ranks, SpecError};

/// Description of a dissemination barrier.
#[derive(Clone, Debug)]
pub struct DisseminationSpec {
    /// The order of the nodes.
    pub ranks: Ranks,
    /// Threads per node.
    pub cores: u32,
    /// The layout of flags and phases.
    pub layout: Layout,
}

/// The dissemination barrier.
#[derive(Clone, Debug)]
pub struct Dissemination {
    ranks: Ranks,
    local: NodeVariables,
    rounds: u32,
    /// Of each node: a flag for each parity and round.
    flags: Row,
    bytes: u64,
}

impl Dissemination {
    /// Lays the barrier out.
    ///
    /// # Errors
    /// If there is no thread or the layout is of no use.
    pub fn new(spec: DisseminationSpec) -> Result<Self, SpecError> {
        let mut allocator = spec.layout.allocator()?;
        let rounds = u64::from(spec.ranks.nodes())
            .next_power_of_two()
            .trailing_zeros();
        Ok(Self {
            local: NodeVariables::new(&mut allocator, spec.cores)?,
            rounds,
            flags: allocator.shared_flags(2 * rounds, spec.ranks.nodes())?,
            bytes: allocator.bytes()?,
            ranks: spec.ranks,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Rounds among the masters: ⌈log2 nodes⌉.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The node that `rank` notifies in a round.
    fn partner(&self, rank: u32, round: u32) -> u32 {
        let partner = (u64::from(rank) + (1 << round)) % u64::from(self.ranks.nodes());
        self.ranks.node(partner as u32)
    }

    /// The flag by which `node` is notified in a round.
    fn flag<M: Memory>(&self, memory: &M, node: u32, parity: u32, round: u32) -> Flag {
        self.flags.flag(memory, node, parity * self.rounds + round)
    }
}

impl<M: Memory> Barrier<M> for Dissemination {
    type Local = Episode;

    fn wait(&self, memory: &M, me: Member, local: &mut Episode) -> impl Future<Output = ()> + Send {
        let episode = local.next();
        self.local.with_master(memory, me.core, move || async move {
            self.local.gather(memory, episode.phase()).await;

            for round in 0..self.rounds {
                let partner = self.partner(self.ranks.rank(memory.node()), round);
                let theirs = self.flag(memory, partner, episode.parity(), round);
                memory.set(theirs, episode.sense()).await;
                let mine = self.flag(memory, memory.node(), episode.parity(), round);
                memory.wait(mine, Until::Is(episode.sense())).await;
            }

            if self.local.has_slaves() {
                memory
                    .set(self.local.phase(memory), flip(episode.phase()))
                    .await;
            }
        })
    }

    fn variable(&self, place: Place) -> Option<String> {
        self.local.variable(place).or_else(|| {
            let (node, index) = self.flags.find(place)?;
            let round = index % self.rounds;
            Some(format!("node {node}'s flag of round {round}"))
        })
    }
}

/// The state of a local master in its episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisseminationState {
    at: At,
    /// Counts the next episode.
    local: Episode,
    /// The episode that it is in.
    episode: Episode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Begin,
    /// Notifies in this round.
    Notifying(u32),
    /// Waits in this round.
    Waiting(u32),
    Over,
}

/// The same barrier, master by master, as steps.
impl Leader for Dissemination {
    type State = DisseminationState;

    fn next(&self, node: u32, state: &mut DisseminationState, _answer: u8) -> Step {
        let episode = state.episode;
        let flag = |node, round| {
            let index = episode.parity() * self.rounds + round;
            self.flags.place(node, index)
        };
        match state.at {
            At::Begin => {
                state.episode = state.local.next();
                state.at = At::Notifying(0);
                let until = Until::IsNot(state.episode.phase());
                Step::WaitAll(self.local.slaves(), until)
            }
            At::Notifying(round) if round < self.rounds => {
                let partner = self.partner(self.ranks.rank(node), round);
                state.at = At::Waiting(round);
                Step::Set(flag(partner, round), episode.sense())
            }
            At::Waiting(round) => {
                state.at = At::Notifying(round + 1);
                Step::Wait(flag(node, round).offset, Until::Is(episode.sense()))
            }
            At::Notifying(_) if self.local.has_slaves() => {
                state.at = At::Over;
                Step::Set(self.local.phase_at(node), flip(episode.phase()))
            }
            At::Notifying(_) | At::Over => {
                state.at = At::Begin;
                Step::Leave
            }
        }
    }

    fn followers(&self) -> Followers {
        self.local.followers()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
