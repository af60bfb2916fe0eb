//! The channel of a rank of a simulated machine, whichever it is.

use std::panic::Location;

use sme_mpi::channel::chunks::Chunks;
use sme_mpi::channel::queues::Queues;
use sme_mpi::channel::sections::Sections;
use sme_mpi::channel::shared::Shared;
use sme_mpi::channel::transfers::{Abilities, NoTransfers, Outbound, Started, Ticket, Transfers};
use sme_mpi::channel::{Channel, Pending, Segment};
use sme_mpi::mppaipc::IpcError;
use sme_sim::parts::contract::ThreadMemory;

use super::processor::Core;

/// One of the channels that there are.
pub enum SimulatedChannel {
    /// Through sections of shared memory.
    Sections(Box<Sections<ThreadMemory, Core>>),
    /// Through rings of chunks in coherent memory.
    Chunks(Box<Chunks<ThreadMemory, Core>>),
    /// Through queues of a network on chip.
    Queues(Box<Queues<ThreadMemory, Core>>),
}

/// Does the same with the channel that it is.
macro_rules! of_each {
    ($channel:ident, $inner:ident => $does:expr) => {
        match $channel {
            SimulatedChannel::Sections($inner) => $does,
            SimulatedChannel::Chunks($inner) => $does,
            SimulatedChannel::Queues($inner) => $does,
        }
    };
}

/// Does the same with the transfers that it has.
macro_rules! of_transfers {
    ($channel:ident, $inner:ident => $does:expr) => {
        match $channel {
            SimulatedChannel::Sections($inner) => $does,
            SimulatedChannel::Chunks(_) => {
                let $inner = &NoTransfers;
                $does
            }
            SimulatedChannel::Queues(queues) => {
                let $inner = queues.portals();
                $does
            }
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
            Self::Sections(_) | Self::Chunks(_) => Ok(()),
            Self::Queues(queues) => queues.meet().await,
        }
    }

    /// The rank makes no calls any more: what the channel has started ends.
    pub async fn stop(&self) {
        match self {
            Self::Sections(_) | Self::Chunks(_) => {}
            Self::Queues(queues) => queues.stop().await,
        }
    }
}

impl Transfers for SimulatedChannel {
    fn abilities(&self) -> Abilities {
        of_transfers!(self, inner => inner.abilities())
    }

    async fn open(&self, bytes: u64, address: Option<u64>) -> Option<Ticket> {
        of_transfers!(self, inner => inner.open(bytes, address).await)
    }

    async fn take(&self, ticket: Ticket, bytes: u64) -> Option<Vec<u8>> {
        of_transfers!(self, inner => inner.take(ticket, bytes).await)
    }

    async fn close(&self, ticket: Ticket) {
        of_transfers!(self, inner => inner.close(ticket).await);
    }

    async fn push(&self, data: Outbound) -> Result<(), Outbound> {
        of_transfers!(self, inner => inner.push(data).await)
    }

    async fn start(&self, data: Outbound) -> Result<Started, Outbound> {
        of_transfers!(self, inner => inner.start(data).await)
    }

    async fn has_left(&self, started: Started) -> bool {
        of_transfers!(self, inner => inner.has_left(started).await)
    }

    async fn copy(&self, bytes: &[u8], address: Option<u64>) -> Option<u64> {
        of_transfers!(self, inner => inner.copy(bytes, address).await)
    }

    async fn wake_server(&self) {
        of_transfers!(self, inner => inner.wake_server().await);
    }
}

impl Channel for SimulatedChannel {
    type Area = Shared<ThreadMemory, Core>;
    type Processor = Core;
    type Transfers = Self;

    fn transfers(&self) -> Option<&Self> {
        of_each!(self, inner => inner.transfers().map(|_| self))
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

    async fn wait_until_read(&self, site: &'static Location<'static>) {
        of_each!(self, inner => inner.wait_until_read(site).await);
    }

    fn unread(&self) -> Vec<u32> {
        of_each!(self, inner => inner.unread())
    }

    async fn now(&self) -> u64 {
        of_each!(self, inner => inner.now().await)
    }
}
