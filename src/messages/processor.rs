//! A simulated core as the processor of a rank: what the library's work takes is the machine's to say.

use sme_mpi::channel::{Processor, Work};
use sme_sim::machine::Software;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

/// The core of one rank.
#[derive(Clone, Debug)]
pub struct Core {
    memory: ThreadMemory,
    software: Software,
}

impl Core {
    /// The core that has `memory`, on a machine where work takes what `software` says.
    pub fn new(memory: ThreadMemory, software: Software) -> Self {
        Self { memory, software }
    }
}

impl Processor for Core {
    async fn work(&self, work: Work, times: u32) {
        let one = match work {
            Work::Call => self.software.call,
            Work::Send => self.software.send,
            Work::Packet => self.software.packet,
            Work::Match => self.software.compare,
        };
        let all = one.times(times.into());
        if all > Time::ZERO {
            self.memory.delay(all).await;
        }
    }

    async fn enters(&self, _: &'static str, _: Option<u32>, _: u64) {}

    async fn leaves(&self, _: &'static str) {}
}
