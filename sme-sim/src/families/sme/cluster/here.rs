//! State that all parts of a node share: its number, the time, the agenda of its events, and its
//! records.
//!
//! A part keeps its other state to itself. The node lends it [`Here`], and the other parts on which
//! it works, for each event.

use std::sync::Arc;

use super::agenda::{Agenda, Event};
use super::constants::Constants;
use super::core::Core;
use super::record::Record;
use crate::observe::failure::Fault;
use crate::observe::log::Log;
use crate::time::Time;

/// The shared state of one node.
pub struct Here {
    /// The node.
    pub me: u32,
    /// The machine.
    pub constants: Arc<Constants>,
    /// The time.
    pub now: Time,
    /// The events to come.
    pub agenda: Agenda,
    /// The counts and spans.
    pub record: Record,
    /// The log for the checker of stale reads, where there is one.
    pub log: Option<Box<Log>>,
    /// The first access that could not be performed.
    pub fault: Option<Fault>,
    /// Operations that changed something or ended a wait: a run in which this stands still is
    /// stuck even if loads are polling.
    pub progress: u64,
    /// Events that have happened.
    pub events: u64,
    /// Posted writes that this node's cores sent anywhere.
    pub posted: u64,
    /// Posted writes performed in this node's memory.
    pub performed: u64,
}

impl Here {
    /// At the beginning of a run.
    pub fn new(me: u32, constants: Arc<Constants>, each_span: bool) -> Self {
        Self {
            me,
            constants,
            now: Time::ZERO,
            agenda: Agenda::new(me),
            record: Record::new(each_span),
            log: None,
            fault: None,
            progress: 0,
            events: 0,
            posted: 0,
            performed: 0,
        }
    }

    /// Lets `event` happen in `span` from now.
    #[inline]
    pub fn after(&mut self, span: Time, event: Event) {
        self.agenda.push(self.now + span, event);
    }

    /// The name in traces of the accesses of the thread of core number `core`.
    pub fn origin(&self, core: u16, state: &Core) -> u32 {
        self.constants.trace(self.me, core, state.counted)
    }

    /// A load of the thread `origin` goes through the engine.
    pub fn count_remote_load(&mut self, origin: u32) {
        if self.constants.counts(origin) {
            self.record.traffic.remote_loads += 1;
        }
    }

    /// A store of the thread `origin` goes through the engine.
    pub fn count_posted(&mut self, origin: u32) {
        self.posted += 1;
        if self.constants.counts(origin) {
            self.record.traffic.remote_stores += 1;
        }
    }
}
