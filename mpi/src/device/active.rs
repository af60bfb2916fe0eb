//! Packets for handlers: the handler of a context has each when it has arrived, without a receive.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

use parking_lot::Mutex;

use super::packet::{Header, Kind};
use super::{Activity, Device, Outcome};
use crate::processor::Work;

/// Takes the packets of one context.
pub(crate) trait Handler: Send {
    /// A packet with `bytes` has come `from` a rank of the job.
    fn packet(&mut self, from: u32, bytes: &[u8], device: &Device);
}

/// A packet: its context, the rank that it is from, and its data.
type Unclaimed = (u64, u32, Vec<u8>);

/// The handlers of a rank.
#[derive(Default)]
pub(super) struct Handlers {
    by_context: HashMap<u64, Arc<Mutex<dyn Handler>>>,
    /// Packets of contexts that have no handler yet.
    unclaimed: Vec<Unclaimed>,
}

impl Device {
    /// Lets `handler` have the packets of `context`, from the first on.
    pub(crate) fn set_handler(&self, context: u64, handler: Arc<Mutex<dyn Handler>>) {
        let unclaimed = {
            let mut state = self.state.lock();
            let handlers = &mut state.handlers;
            handlers.by_context.insert(context, handler);
            take(&mut handlers.unclaimed)
        };
        for (context, from, bytes) in unclaimed {
            self.hands_over(context, from, bytes);
        }
    }

    /// Takes the handler of `context` away.
    pub(crate) fn remove_handler(&self, context: u64) {
        self.state.lock().handlers.by_context.remove(&context);
    }

    /// Sends `data` to the handler of `context` at rank `to` of the job.
    pub(crate) fn send_active(&self, to: u32, context: u64, data: Vec<u8>) {
        let header = Header {
            context,
            length: data.len() as u64,
            ..Header::of(Kind::Active)
        };
        let mut state = self.state.lock();
        state.owe(Work::Request, 1);
        state.sends += 1;
        state.queue(to, header, data, None);
    }

    /// A request that is over when [`Device::ends_reply`] says so.
    pub(crate) fn begin_reply(&self) -> usize {
        self.state.lock().begin(Activity::Task)
    }

    /// Ends it with these bytes.
    pub(crate) fn ends_reply(&self, request: usize, bytes: Vec<u8>) {
        let outcome = Outcome {
            bytes,
            ..Outcome::default()
        };
        self.state.lock().ends(request, outcome);
    }

    /// A packet of `context` is there.
    pub(super) fn hands_over(&self, context: u64, from: u32, bytes: Vec<u8>) {
        let handler = {
            let mut state = self.state.lock();
            let handlers = &mut state.handlers;
            let Some(handler) = handlers.by_context.get(&context) else {
                return handlers.unclaimed.push((context, from, bytes));
            };
            Arc::clone(handler)
        };
        handler.lock().packet(from, &bytes, self);
        // A task may have waited for it.
        self.state.lock().is_changed = true;
    }
}
