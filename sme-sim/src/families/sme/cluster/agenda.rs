//! The pending events inside one node, and the list that holds them.

use super::core::Wants;
use super::trace::Trace;
use crate::families::sme::engine::HtChannel;
use crate::kernel::queue::{EventQueue, Key};
use crate::time::Time;

/// Something that happens at a known time inside a node. Numbers are indices into the node's own
/// tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operation of this core's thread is done: its answer waits in the core.
    Resume(u16),
    /// A core's oldest buffered store may leave.
    Drain(u16),
    /// A transaction reaches its line's home memory controller.
    Home(u32),
    /// The home controller has finished with a line and takes the next transaction.
    Release(u32),
    /// A transaction's data or permission reaches its requester.
    Complete(u32),
    /// A socket can issue its next uncached load.
    SlotFree(u8),
    /// A core's packet reaches the host link.
    HostSend(u32),
    /// The host link can send its next packet.
    HostReady,
    /// The engine returns a credit of this channel to the host.
    HostCredit(u8),
    /// A packet reaches a port of the engine.
    EnginePacket(u32),
    /// A credit of the host reaches the engine.
    EngineHostCredit(HtChannel),
    /// A packet from the engine reaches the host.
    HostReceive(u32),
    /// The I/O bridge takes its next packet.
    Bridge,
    /// A sleeping thread has been woken and runs again.
    Woken(u16),
    /// The operating system takes a thread's next futex call.
    System(u16),
    /// A core begins what its thread asked for at the end of a run ahead of its node, or looks
    /// again at a copy that it has lost.
    Begin(u16),
    /// A miss of a core's private caches takes its place in the order of accesses to its line.
    Ordered(u16, Wants),
    /// A line has come through the engine.
    Filled(u16),
    /// A core's oldest buffered store has been performed in its private caches.
    Stored(u16),
    /// All caches of the node have been walked through.
    WrittenBack(u16),
    /// The quantum of the thread that has this core may be over.
    TimesOut(u16),
    /// A signal that a thread has asked for is due.
    Rings(u16),
}

/// The pending events of one node, and the trace of what causes them where that was asked for.
#[derive(Debug)]
pub struct Agenda {
    queue: EventQueue<Event>,
    node: u32,
    sequence: u64,
    trace: Option<Box<Trace>>,
}

impl Agenda {
    /// The empty agenda of node `node`.
    pub fn new(node: u32) -> Self {
        Self {
            queue: EventQueue::new(),
            node,
            sequence: 0,
            trace: None,
        }
    }

    /// From now on everything is told to `trace`.
    pub(super) fn set_trace(&mut self, trace: Trace) {
        self.trace = Some(Box::new(trace));
    }

    /// Returns the trace, if there is one.
    pub(super) fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// Tells the trace, if there is one.
    #[inline]
    pub(super) fn tell(&mut self, something: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.trace {
            something(trace);
        }
    }

    /// Lets `event` happen at `at`, after everything put in for that time before.
    #[inline]
    pub fn push(&mut self, at: Time, event: Event) {
        let sequence = self.next_sequence();
        self.queue.push(at, self.node, sequence, event);
    }

    /// Lets `event`, caused by another node, happen at `at`.
    #[inline]
    pub fn push_from(&mut self, at: Time, source: u32, sequence: u64, event: Event) {
        self.queue.push(at, source, sequence, event);
    }

    /// Numbers the node's next act.
    #[inline]
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the time of the first event.
    #[inline]
    pub fn next(&self) -> Time {
        self.queue.next()
    }

    /// Returns the place of the first event in the order of events.
    #[inline]
    pub fn next_key(&self) -> Key {
        self.queue.next_key()
    }

    /// Takes the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        self.queue.pop()
    }

    /// Asks for what lies elsewhere.
    #[inline]
    pub fn prefetch(&self) {
        self.queue.prefetch();
    }

    /// Bytes on the heap, a trace apart.
    pub fn heap_bytes(&self) -> usize {
        self.queue.bytes()
    }
}
