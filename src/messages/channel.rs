//! The channel of a rank of a simulated machine, whichever it is.

use std::panic::Location;

use sme_mpi::channel::queues::Queues;
use sme_mpi::channel::queues::portals::Portals;
use sme_mpi::channel::sections::Sections;
use sme_mpi::channel::shared::Shared;
use sme_mpi::channel::{Channel, Pending, Segment};
use sme_mpi::mppaipc::IpcError;
use sme_sim::parts::contract::ThreadMemory;

use super::processor::Core;

/// One of the channels that there are.
pub enum SimulatedChannel {
    /// Through sections of shared memory.
    Sections(Box<Sections<ThreadMemory, Core>>),
    /// Through queues of a network on chip.
    Queues(Box<Queues<ThreadMemory, Core>>),
}

/// Does the same with the channel that it is.
macro_rules! of_each {
    ($channel:ident, $inner:ident => $does:expr) => {
        match $channel {
            SimulatedChannel::Sections($inner) => $does,
            SimulatedChannel::Queues($inner) => $does,
        }
    };
}

impl SimulatedChannel {
    /// Ends when all ranks can be sent messages.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn meet(&self) -> Result<(), IpcError> {
        match self {
            Self::Sections(_) => Ok(()),
            Self::Queues(queues) => queues.meet().await,
        }
    }

    /// The rank makes no calls any more: what the channel has started ends.
    pub async fn stop(&self) {
        match self {
            Self::Sections(_) => {}
            Self::Queues(queues) => queues.stop().await,
        }
    }
}

impl Channel for SimulatedChannel {
    type Area = Shared<ThreadMemory, Core>;
    type Processor = Core;
    type Transfers = Portals<ThreadMemory, Core>;

    fn transfers(&self) -> Option<&Self::Transfers> {
        match self {
            Self::Sections(_) => None,
            Self::Queues(queues) => queues.transfers(),
        }
    }

    fn serves(&self, sends: Pending) {
        of_each!(self, inner => inner.serves(sends));
    }

    fn processor(&self) -> &Core {
        of_each!(self, inner => inner.processor())
    }

    fn area(&self) -> Option<&Self::Area> {
        of_each!(self, inner => inner.area())
    }

    fn rank(&self) -> u32 {
        of_each!(self, inner => inner.rank())
    }

    fn ranks(&self) -> u32 {
        of_each!(self, inner => inner.ranks())
    }

    fn eager_bytes(&self) -> Option<u64> {
        of_each!(self, inner => inner.eager_bytes())
    }

    fn outside(&self) -> u32 {
        of_each!(self, inner => inner.outside())
    }

    fn per_node(&self) -> u32 {
        of_each!(self, inner => inner.per_node())
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        of_each!(self, inner => inner.write(to, segments).await)
    }

    async fn arrived(&self) -> Option<u32> {
        of_each!(self, inner => inner.arrived().await)
    }

    async fn read(
        &self,
        from: u32,
        most: usize,
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> usize {
        of_each!(self, inner => inner.read(from, most, address, into).await)
    }

    async fn wait(&self, full: &[u32], site: &'static Location<'static>) {
        of_each!(self, inner => inner.wait(full, site).await);
    }

    async fn now(&self) -> u64 {
        of_each!(self, inner => inner.now().await)
    }
}
