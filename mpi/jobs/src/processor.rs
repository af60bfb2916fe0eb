//! A simulated core as the processor of a rank: charges the library's work what the machine says it
//! takes, and tells observers of the calls that the rank enters and leaves.

use std::panic::Location;

use sme_mpi::processor::{Clock, Processor, Work};
use sme_sim::machine::Software;
use sme_sim::parts::contract::{Call, ThreadMemory, Toward};
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
    async fn work(&self, work: &[(Work, u32)]) {
        let all = work.iter().map(|&(work, times)| {
            let one = match work {
                Work::Call => self.software.call,
                Work::Request => self.software.request,
                Work::Packet => self.software.packet,
                Work::Match => self.software.compare,
                Work::Combine => self.software.combine,
                Work::Group => self.software.group,
                Work::Target => self.software.target,
                Work::Post => self.software.post,
                Work::Callback => self.software.callback,
                Work::Open => self.software.open,
                Work::Find => self.software.find,
                Work::Keep => self.software.keep,
                Work::Setup => self.software.setup,
                Work::Completion => self.software.completion,
                Work::Fork => self.software.fork,
                Work::Exec => self.software.exec,
                Work::Init => self.software.init,
                Work::Serve => self.software.serve,
                Work::ServeSocket => self.software.serve_socket,
                Work::Login => self.software.login,
            };
            one.times(times.into()).as_ps()
        });
        let all = Time::from_ps(all.sum());
        if all > Time::ZERO {
            self.memory.delay(all).await;
        }
    }

    async fn computes(&self, ps: u64) {
        if ps > 0 {
            self.memory.delay(Time::from_ps(ps)).await;
        }
    }

    fn entering_ps(&self) -> u64 {
        self.software.call.as_ps()
    }

    async fn begins_next(&self, is_done: bool) -> Clock {
        let ago = if is_done {
            self.software.call
        } else {
            Time::ZERO
        };
        Clock {
            at_ps: self.memory.begins_next(ago).await,
            reading_ps: self.software.clock.as_ps(),
        }
    }

    async fn enters(&self, call: &'static str, peer: Option<u32>, bytes: u64) {
        let call = match peer {
            Some(peer) => Call::new(call, bytes).of(toward(call), peer),
            None => Call::new(call, bytes),
        };
        self.memory.enters(call).await;
    }

    async fn leaves(&self, _: &'static str) {
        self.memory.leaves().await;
    }

    async fn waits(&self, site: &'static Location<'static>) {
        self.memory.at(site).await;
    }
}

/// The relation of a call with this name to its peer.
fn toward(call: &str) -> Toward {
    match call {
        "MPI_Send" | "MPI_Ssend" | "MPI_Bsend" | "MPI_Rsend" | "MPI_Isend" | "MPI_Issend"
        | "MPI_Ibsend" | "MPI_Irsend" | "MPI_Put" | "MPI_Accumulate" | "RCCE_send" => Toward::To,
        "MPI_Recv" | "MPI_Irecv" | "MPI_Probe" | "MPI_Iprobe" | "MPI_Mprobe" | "MPI_Improbe"
        | "MPI_Get" | "RCCE_recv" => Toward::From,
        _ => Toward::With,
    }
}
