//! Transfers over sections: a place is a part of the receiver's registered buffer, to which the
//! sender's core stores the data. The packet that says so goes through the section behind them, and
//! the fence before its flag is theirs too. The receiver copies them to where they belong.

use std::collections::HashMap;

use parking_lot::Mutex;
use sme_memory::{AnyFlag, Blocks, Cacheable, Own, Tagged, TestAndSet, Timer};

use super::Sections;
use crate::channel::arena::Arena;
use crate::channel::layout::LINE;
use crate::channel::transfers::{Abilities, Modes, Outbound, Started, Ticket, Transfers};
use crate::channel::{bytes_of, own, words_of};
use crate::processor::{Processor, Work};

/// The places of a rank.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) modes: Modes,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// The lines of the registered buffer that are taken, in bytes.
    registered: Arena,
    /// The places, by the number of their first line.
    open: HashMap<Ticket, Open>,
}

/// A place that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    bytes: u64,
    /// The address to which its data belong.
    address: Option<Own>,
}

impl Places {
    /// Of a registered buffer of so many bytes.
    pub(super) fn new(modes: Modes, registered: u64) -> Self {
        let kept = Kept {
            registered: Arena::new(0, registered),
            open: HashMap::new(),
        };
        let kept = Mutex::new(kept);
        Self { modes, kept }
    }

    fn open(&self, bytes: u64, address: Option<u64>) -> Option<Ticket> {
        let mut kept = self.kept.lock();
        let lines = bytes.max(1).checked_next_multiple_of(LINE)?;
        let first = kept.registered.take(lines)? / LINE;
        // A ticket has room for every line of the longest registered buffer.
        let ticket = Ticket::try_from(first).ok()?;
        let address = address.map(own);
        kept.open.insert(ticket, Open { bytes, address });
        Some(ticket)
    }

    fn open_place(&self, ticket: Ticket) -> Option<Open> {
        self.kept.lock().open.get(&ticket).copied()
    }

    fn close(&self, ticket: Ticket) {
        let mut kept = self.kept.lock();
        kept.open.remove(&ticket);
        kept.registered.give(u64::from(ticket) * LINE);
    }
}

impl<M, P> Transfers for Sections<M, P>
where
    M: AnyFlag + Blocks + Cacheable + Tagged + TestAndSet + Timer,
    P: Processor,
{
    fn abilities(&self) -> Abilities {
        let modes = self.places.as_ref().map(|places| places.modes);
        Abilities {
            modes: modes.unwrap_or(Modes::NORMAL),
            has_server: false,
            shows_arrivals: false,
        }
    }

    async fn open(&self, bytes: u64, address: Option<u64>) -> Option<Ticket> {
        let ticket = self.places.as_ref()?.open(bytes, address)?;
        self.processor.work(&[(Work::Open, 1)]).await;
        Some(ticket)
    }

    async fn take(&self, ticket: Ticket, bytes: u64) -> Option<Vec<u8>> {
        let places = self.places.as_ref()?;
        let place = places.open_place(ticket)?;
        let bytes = bytes.min(place.bytes);
        let mut words = vec![0; bytes.div_ceil(8) as usize];
        let from = (
            self.layout().registered(self.me, ticket),
            self.layout().reach,
        );
        self.gets(from, &mut words, place.address).await;
        self.processor.work(&[(Work::Completion, 1)]).await;
        places.close(ticket);
        Some(bytes_of(&words, bytes))
    }

    async fn close(&self, ticket: Ticket) {
        if let Some(places) = &self.places {
            places.close(ticket);
        }
    }

    async fn push(&self, data: Outbound) -> Result<(), Outbound> {
        self.processor.work(&[(Work::Setup, 1)]).await;
        let words = words_of(&data.bytes);
        let to = self.layout().registered(data.to, data.ticket);
        let to = (to, self.layout().reach);
        self.puts(to, &words, data.address.map(own)).await;
        Ok(())
    }

    /// There is no DMA engine.
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
