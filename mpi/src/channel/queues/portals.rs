//! Transfers over portals: a place is a receive tag whose buffer is the receive's own, and the data
//! are written there by the sender's core or by a DMA channel (Ho et al., Sec. II, Tables II and
//! III).
//!
//! Data lie at their address in the node's memory; those that have none, or whose address is not
//! that of a word, lie in a buffer of the library's.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Flag, NodeSet, Own};

use crate::channel::arena::Arena;
use crate::channel::transfers::{Abilities, Modes, Outbound, Started, Ticket, Transfers};
use crate::channel::{bytes_of, own, words_of};
use crate::mppaipc::portal::{Piece, PortalRx, Read, WhenBusy, Write};
use crate::mppaipc::{Fabric, Ipc, IpcError};
use crate::processor::{Processor, Work};

/// Bytes of the library's buffers: for data that are received, that are sent, and that are sent
/// later (LAZY_BUFFER_LENGTH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Sent later.
    pub lazy: u64,
}

/// The transfers of a node, as one of its threads has them.
#[derive(Debug)]
pub struct Portals<M, P> {
    ipc: Ipc<M, P>,
    shared: Arc<Shared<M, P>>,
}

/// The transfers of a node, which its threads share.
#[derive(Debug)]
pub(super) struct Shared<M, P> {
    modes: Modes,
    /// Memory from there on is the library's.
    library: u64,
    /// Wakes the server.
    server: Flag,
    kept: Mutex<Kept<M, P>>,
}

/// The things that change.
#[derive(Debug)]
struct Kept<M, P> {
    places: HashMap<Ticket, OpenPlace<M, P>>,
    /// By their numbers.
    writes: HashMap<u32, Leaving>,
    started: u32,
    received: Arena,
    sent: Arena,
    lazy: Arena,
}

/// A place that is open for a transfer: its portal, and its bytes in the memory of this node.
#[derive(Debug)]
struct OpenPlace<M, P> {
    portal: PortalRx<M, P>,
    read: Read,
    at: u64,
    bytes: u64,
}

/// A write by a DMA channel, and the buffer of the library's that it is from.
#[derive(Debug)]
struct Leaving {
    write: Write,
    staged: Option<u64>,
}

impl<M: Fabric, P: Processor + Clone> Portals<M, P> {
    /// With buffers out of the node's memory; `library` is where the library's begins, and
    /// `server` the flag that wakes the server.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub(super) fn new(
        ipc: Ipc<M, P>,
        (modes, buffers): (Modes, Buffers),
        library: u64,
        server: Flag,
    ) -> Result<Self, IpcError> {
        let arena = |bytes| {
            let begin = ipc.reserve_own("data under way", bytes);
            begin.map(|begin| Arena::new(begin.0, bytes))
        };
        let kept = Kept {
            places: HashMap::new(),
            writes: HashMap::new(),
            started: 0,
            received: arena(buffers.received)?,
            sent: arena(buffers.sent)?,
            lazy: arena(buffers.lazy)?,
        };
        let shared = Shared {
            modes,
            library,
            server,
            kept: Mutex::new(kept),
        };
        Ok(Self::of(ipc, Arc::new(shared)))
    }

    /// Those of another thread of the node, which has this library.
    pub(super) fn of(ipc: Ipc<M, P>, shared: Arc<Shared<M, P>>) -> Self {
        Self { ipc, shared }
    }

    /// The part that the node's threads share.
    pub(super) fn shared(&self) -> Arc<Shared<M, P>> {
        Arc::clone(&self.shared)
    }

    /// The address, if data of so many bytes may lie there: whole words of the rank's own memory.
    fn in_place(&self, address: Option<u64>, bytes: u64) -> Option<u64> {
        address.filter(|&at| {
            let end = at.checked_add(bytes);
            at.is_multiple_of(8) && end.is_some_and(|end| end <= self.shared.library)
        })
    }

    /// Lays data down where they are sent from, by this core through its cache or by a channel: the
    /// piece to send, and the library's buffer that it is in.
    async fn stages(&self, data: &Outbound, by_core: bool) -> Option<(Piece, Option<u64>)> {
        let length = data.bytes.len() as u64;
        let bytes = u32::try_from(length).ok()?;
        let (at, staged) = {
            let mut kept = self.shared.kept.lock();
            let lazy = data.address.filter(|&at| kept.lazy.holds(at));
            // The rest of a last word may be data of another send.
            let whole = data.address.filter(|_| length.is_multiple_of(8));
            match lazy.or_else(|| self.in_place(whole, length)) {
                Some(at) => (at, lazy),
                None => {
                    let at = kept.sent.take(length)?;
                    (at, Some(at))
                }
            }
        };
        let words = words_of(&data.bytes);
        // The memory of a subsystem, which is behind its chip, cores read past their caches.
        let is_cluster = self.ipc.node() < self.ipc.resources().hardware().clusters;
        let from = match by_core && is_cluster {
            true => self.ipc.cached(at),
            false => self.ipc.word(at),
        };
        self.ipc.memory().lay(from, &words).await;
        let offset = 0;
        let piece = Piece {
            from,
            bytes,
            offset,
        };
        Some((piece, staged))
    }

    /// A buffer from which data were sent is free.
    fn frees(&self, staged: Option<u64>) {
        if let Some(at) = staged {
            let mut kept = self.shared.kept.lock();
            let _was_sent = kept.sent.give(at) || kept.lazy.give(at);
        }
    }

    /// Takes a tag and a buffer for a place.
    fn place(&self, bytes: u64, address: Option<u64>) -> Option<(PortalRx<M, P>, u64)> {
        let portal = self.ipc.any_portal_rx().ok()?;
        let at = match self.in_place(address, bytes) {
            Some(at) => Some(at),
            None => self.shared.kept.lock().received.take(bytes),
        };
        match at {
            Some(at) => Some((portal, at)),
            None => {
                portal.close();
                None
            }
        }
    }
}

impl<M: Fabric, P: Processor + Clone> Transfers for Portals<M, P> {
    fn abilities(&self) -> Abilities {
        Abilities {
            modes: self.shared.modes,
            has_server: true,
            shows_arrivals: true,
        }
    }

    async fn open(&self, bytes: u64, address: Option<u64>) -> Option<Ticket> {
        let short = u32::try_from(bytes).ok()?;
        let (portal, at) = self.place(bytes, address)?;
        match portal.aio_read(self.ipc.word(at), short, 1).await {
            Ok(read) => {
                let ticket = portal.tag();
                let place = OpenPlace {
                    portal,
                    read,
                    at,
                    bytes,
                };
                self.shared.kept.lock().places.insert(ticket, place);
                Some(ticket)
            }
            Err(_) => {
                self.shared.kept.lock().received.give(at);
                portal.close();
                None
            }
        }
    }

    async fn take(&self, ticket: Ticket, bytes: u64) -> Option<Vec<u8>> {
        let place = self.shared.kept.lock().places.remove(&ticket)?;
        if !place.portal.has_come(&place.read).await {
            self.shared.kept.lock().places.insert(ticket, place);
            return None;
        }
        place.portal.wait(place.read).await;
        place.portal.close();
        let bytes = bytes.min(place.bytes);
        let mut words = vec![0; bytes.div_ceil(8) as usize];
        let from = self.ipc.word(place.at);
        self.ipc.memory().view(from, &mut words).await;
        self.shared.kept.lock().received.give(place.at);
        Some(bytes_of(&words, bytes))
    }

    async fn close(&self, ticket: Ticket) {
        let place = self.shared.kept.lock().places.remove(&ticket);
        if let Some(place) = place {
            place.portal.withdraw(place.read).await;
            place.portal.close();
            self.shared.kept.lock().received.give(place.at);
        }
    }

    async fn push(&self, data: Outbound) -> Result<(), Outbound> {
        let Some((piece, staged)) = self.stages(&data, true).await else {
            return Err(data);
        };
        let portal = self.ipc.portal_to(NodeSet::one(data.to), data.ticket);
        portal.pwrite(piece).await;
        self.frees(staged);
        Ok(())
    }

    async fn start(&self, data: Outbound) -> Result<Started, Outbound> {
        let Some((piece, staged)) = self.stages(&data, false).await else {
            return Err(data);
        };
        let portal = self.ipc.portal_to(NodeSet::one(data.to), data.ticket);
        match portal.aio_write(piece, WhenBusy::Wait).await {
            Ok(write) => {
                let leaving = Leaving { write, staged };
                let mut kept = self.shared.kept.lock();
                let number = kept.started;
                kept.started = number.wrapping_add(1);
                kept.writes.insert(number, leaving);
                Ok(Started(number))
            }
            Err(_) => {
                self.frees(staged);
                Err(data)
            }
        }
    }

    async fn has_left(&self, started: Started) -> bool {
        let taken = self.shared.kept.lock().writes.remove(&started.0);
        let Some(leaving) = taken else {
            return true;
        };
        if !self.ipc.has_left(&leaving.write).await {
            self.shared.kept.lock().writes.insert(started.0, leaving);
            return false;
        }
        self.ipc.wait_write(leaving.write).await;
        self.frees(leaving.staged);
        true
    }

    async fn copy(&self, bytes: &[u8], address: Option<u64>) -> Option<u64> {
        let length = bytes.len() as u64;
        let to = self.shared.kept.lock().lazy.take(length)?;
        self.ipc.core().work(&[(Work::Keep, 1)]).await;
        let words = u32::try_from(length.div_ceil(8)).ok()?;
        // Data without an address are in the cache: as if they lay where they go.
        let from = address.map_or(Own(to), own);
        self.ipc.memory().copy(from, Own(to), words).await;
        Some(to)
    }

    async fn wake_server(&self) {
        self.ipc.memory().set(self.shared.server, 1).await;
    }
}
