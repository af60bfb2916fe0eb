//! Connecting two worlds, measured as Fig. 5 (a) of Comprés et al. has it: one accepts at a port,
//! the other connects to it, and both are one communicator then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sme_mpi::channel::sections::Sections;
use sme_mpi::op::Op;
use sme_mpi::rank::Mpi;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Measurement;
use super::channel::SimulatedChannel;
use super::job::{Error, Job, Observe, Observed, times};

/// The calls, at all ranks.
pub const CONNECTS: &str = "connects";

/// The time from the begin until ranks accept or connect: the port is open by then, and all are
/// there.
const BEGIN: Time = Time::from_ns(500_000);

/// Two worlds that connect.
#[derive(Clone, Debug)]
pub struct Connect {
    /// The machine, with a core for each rank.
    pub job: Job,
    /// Ranks of the world that accepts, at least 1, on the cores with the lowest numbers.
    pub parents: u32,
    /// Ranks of the one that connects, at least 1, on the next ones.
    pub children: u32,
}

impl Connect {
    /// Rank `me`; the messages that it has sent.
    async fn course(
        self,
        memory: ThreadMemory,
        me: u32,
        sum: Arc<AtomicU32>,
    ) -> Result<u64, Error> {
        let ranks = self.parents + self.children;
        if me >= ranks {
            return Ok(0);
        }
        let core = self.job.core(&memory);
        let channel = Sections::new(memory.clone(), core, me, self.job.layout())?;
        let channel = SimulatedChannel::Sections(Box::new(channel));
        let is_parent = me < self.parents;
        let own: Vec<u32> = match is_parent {
            true => (0..self.parents).collect(),
            false => (self.parents..ranks).collect(),
        };
        let mpi = Mpi::within(channel, &own, 0)?;
        let world = mpi.world();
        // The first port of the first rank has this name.
        let port = "rank 0, port 1";
        if me == 0 {
            mpi.open_port().await?;
        }
        memory.delay(BEGIN).await;
        let span = Span::new(CONNECTS, 0);
        memory.begin(span).await;
        let both = match is_parent {
            true => world.accept(port, 0).await,
            false => world.connect(port, 0).await,
        };
        memory.end(span).await;
        let both = both?;
        let all = both.merge(!is_parent).await?;
        let mut counted = [0_u32];
        all.allreduce(&[1_u32], &mut counted, &Op::Sum).await?;
        sum.fetch_max(counted[0], Ordering::Relaxed);
        all.disconnect().await?;
        both.disconnect().await?;
        mpi.finalize().await?;
        Ok(mpi.messages())
    }
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// From the begin of the calls until they have ended at all ranks.
    pub connects: Time,
    /// Ranks of both worlds, as they have counted them.
    pub ranks: u32,
}

impl Measurement for Connect {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        // Of each rank: accept or connect, merge, one reduction, two disconnects, finalize, port.
        8 * u64::from(self.parents + self.children)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let sum = Arc::new(AtomicU32::new(0));
        let observed = self.job.run(observe, |memory, me| {
            self.clone().course(memory, me, Arc::clone(&sum))
        })?;
        let span = times(&observed.spans, CONNECTS);
        let outcome = Outcome {
            connects: span.last_end.since(span.first_begin),
            ranks: sum.load(Ordering::Relaxed),
        };
        Ok((outcome, observed))
    }
}
