//! The operations of message layers on real threads. The host is coherent and has no tagged lines;
//! interrupts are a byte for each node. Waits here poll, and yield their processor.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam::utils::CachePadded;

use super::sync::{AtomicU8, yield_now};
use super::{Protocol, Thread};
use crate::{AnyFlag, Blocks, Flags, Interrupts, Memory, Passes, Tagged, Timer, Until};

/// Interrupts that are pending, and when the memory was made.
pub(super) struct Pending {
    nodes: Box<[CachePadded<AtomicU8>]>,
    since: Instant,
}

impl Pending {
    pub(super) fn new(nodes: u32) -> Self {
        let none = |_| CachePadded::new(AtomicU8::new(0));
        Self {
            nodes: (0..nodes).map(none).collect(),
            since: Instant::now(),
        }
    }
}

/// The host is coherent: no copy can be stale.
impl<P: Protocol> Tagged for Thread<P> {
    async fn invalidate_tagged(&self) {}
}

impl<P: Protocol> Blocks for Thread<P> {}

impl<P: Protocol> Passes for Thread<P> {}

impl<P: Protocol> AnyFlag for Thread<P> {
    async fn find_any(&self, flags: Flags, first: u32, until: Until) -> Option<u32> {
        for turn in 0..flags.count {
            let index = (first + turn) % flags.count;
            if until.holds(self.read(flags.at(index)).await) {
                return Some(index);
            }
        }
        None
    }

    async fn wait_any(&self, flags: Flags, until: Until) -> u32 {
        loop {
            if let Some(index) = self.find_any(flags, 0, until).await {
                return index;
            }
            yield_now();
        }
    }
}

/// A node that was not there when the memory was made is never interrupted.
impl<P: Protocol> Interrupts for Thread<P> {
    async fn interrupt(&self, node: u32) {
        if let Some(pending) = self.shared.pending.nodes.get(node as usize) {
            pending.store(1, Ordering::Release);
        }
    }

    async fn take_interrupt(&self) {
        let pending = &self.shared.pending.nodes[self.node as usize];
        while pending.swap(0, Ordering::AcqRel) == 0 {
            yield_now();
        }
    }
}

impl<P: Protocol> Timer for Thread<P> {
    async fn now(&self) -> u64 {
        let since = self.shared.pending.since.elapsed();
        u64::try_from(since.as_nanos()).map_or(u64::MAX, |elapsed| elapsed + 1)
    }
}
