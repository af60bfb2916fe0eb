//! A simulated thread as a member of a team.

use std::sync::Arc;

use sme_barrier::{Barrier, Coherent, CoherentLocal, Member, Tree};
use sme_fft_demo::Team;
use sme_sim::observe::spans::EPISODE;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Program;

/// A simulated thread, its number, and its part of the barrier.
pub struct SimulatedTeam {
    memory: ThreadMemory,
    me: Member,
    number: u32,
    size: u32,
    barrier: Arc<Coherent<Tree>>,
    local: CoherentLocal<()>,
    episode: u32,
    arithmetic: Time,
}

impl SimulatedTeam {
    /// The thread `me` of those that run `program`; an operation on registers takes `arithmetic`.
    pub fn new(
        memory: ThreadMemory,
        me: Member,
        program: &Program,
        barrier: Arc<Coherent<Tree>>,
        arithmetic: Time,
    ) -> Self {
        Self {
            memory,
            me,
            number: me.node * program.cores + me.core,
            size: program.threads(),
            barrier,
            local: CoherentLocal::default(),
            episode: 0,
            arithmetic,
        }
    }
}

impl Team for SimulatedTeam {
    type Memory = ThreadMemory;

    #[inline]
    fn memory(&self) -> &ThreadMemory {
        &self.memory
    }

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }

    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    async fn barrier(&mut self) {
        let span = Span::new(EPISODE, self.episode);
        self.memory.begin(span).await;
        self.barrier
            .wait(&self.memory, self.me, &mut self.local)
            .await;
        self.memory.end(span).await;
        if self.episode == 0 {
            // All are there: from here on it counts.
            self.memory.counts().await;
        }
        self.episode += 1;
    }

    #[inline]
    async fn compute(&mut self, operations: u32) {
        let span = self.arithmetic.times(u64::from(operations));
        self.memory.delay(span).await;
    }
}
