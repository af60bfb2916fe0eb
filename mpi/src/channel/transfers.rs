//! Transfers: the data of a message go straight from the memory of its sender to a place in the
//! receiver's that is ready for them, and take no room in a stream (MPIDT of Ho et al., Sec. II).
//!
//! The receiver opens a place and tells the sender its ticket; the sender hands its data and the
//! ticket over. The device decides which rank tells which, and when.

use std::future::Future;

/// The number of a place that is ready for the data of one message.
pub type Ticket = u16;

/// The ways of messages by their lengths: the parameters of MPPA-MPI (Ho et al., Sec. III-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// The longest message that goes at once, in pieces where it needs several, in bytes. Without
    /// it all messages ask first, empty ones too.
    pub eager_bytes: Option<u64>,
    /// The longest message of a blocking send that the sender copies and the server sends when the
    /// receive is there, in bytes (LAZY_THRESHOLD); without it none.
    pub lazy_bytes: Option<u64>,
    /// The shortest message of a blocking send that a DMA channel sends and not the core, in bytes
    /// (DMA_THRESHOLD); without it none.
    pub engine_bytes: Option<u64>,
}

impl Modes {
    /// All messages wait for their receives, and the core sends them.
    pub const NORMAL: Self = Self {
        eager_bytes: None,
        lazy_bytes: None,
        engine_bytes: None,
    };
}

/// The abilities of a channel's transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The ways of messages by their lengths.
    pub modes: Modes,
    /// Whether a *server*, a thread beside the rank itself, hears what the rank is sent and starts
    /// transfers on its behalf.
    pub has_server: bool,
    /// Whether a rank sees that data have come to its place ([`Transfers::take`]). Otherwise their
    /// sender says so in the stream, behind which the data never are.
    pub shows_arrivals: bool,
}

/// Data to send to a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbound {
    /// The rank.
    pub to: u32,
    /// The place.
    pub ticket: Ticket,
    /// The data.
    pub bytes: Vec<u8>,
    /// Their address in the sender's own memory, where they have one.
    pub address: Option<u64>,
}

/// A transfer that a DMA channel makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started(pub u32);

/// The transfers of a rank.
pub trait Transfers: Send + Sync {
    /// The things that they can do.
    fn abilities(&self) -> Abilities;

    /// Makes a place of so many bytes ready, at `address` of the rank's own memory if there is one;
    /// none if no place is free.
    fn open(&self, bytes: u64, address: Option<u64>)
    -> impl Future<Output = Option<Ticket>> + Send;

    /// The first `bytes` of the data that have come to a place, or all of its room, which then is
    /// not open any more; none if they have not. Where arrivals are not shown it is asked when they
    /// have.
    fn take(&self, ticket: Ticket, bytes: u64) -> impl Future<Output = Option<Vec<u8>>> + Send;

    /// Closes a place to which nothing was sent.
    fn close(&self, ticket: Ticket) -> impl Future<Output = ()> + Send;

    /// Sends by the rank's own core; ends when the data have left.
    ///
    /// # Errors
    /// The data, if the library has no memory for them.
    fn push(&self, data: Outbound) -> impl Future<Output = Result<(), Outbound>> + Send;

    /// Lets a DMA channel send; ends at once.
    ///
    /// # Errors
    /// The data, if the library has no memory for them.
    fn start(&self, data: Outbound) -> impl Future<Output = Result<Started, Outbound>> + Send;

    /// Returns whether the data of a transfer have left; if so it exists no longer.
    fn has_left(&self, started: Started) -> impl Future<Output = bool> + Send;

    /// Copies data to a buffer of the library's, if it has room: their address there, until
    /// [`Self::push`] has sent them.
    fn copy(&self, bytes: &[u8], address: Option<u64>) -> impl Future<Output = Option<u64>> + Send;

    /// Wakes the server: there is a transfer for it to start.
    fn wake_server(&self) -> impl Future<Output = ()> + Send;
}

/// The transfers of a channel that has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTransfers;

impl Transfers for NoTransfers {
    fn abilities(&self) -> Abilities {
        Abilities {
            modes: Modes::NORMAL,
            has_server: false,
            shows_arrivals: false,
        }
    }

    async fn open(&self, _: u64, _: Option<u64>) -> Option<Ticket> {
        None
    }

    async fn take(&self, _: Ticket, _: u64) -> Option<Vec<u8>> {
        None
    }

    async fn close(&self, _: Ticket) {}

    async fn push(&self, data: Outbound) -> Result<(), Outbound> {
        Err(data)
    }

    async fn start(&self, data: Outbound) -> Result<Started, Outbound> {
        Err(data)
    }

    async fn has_left(&self, _: Started) -> bool {
        true
    }

    async fn copy(&self, _: &[u8], _: Option<u64>) -> Option<u64> {
        None
    }

    async fn wake_server(&self) {}
}
