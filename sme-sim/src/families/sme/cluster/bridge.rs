//! The I/O bridge: the engine's reads and writes of this node's memory.
//!
//! The bridge takes the engine's packets strictly in order, and what comes behind a posted write
//! only when that is complete, or, if its writes are pipelined (`host.bridge_writes`), when it has
//! taken effect at its line's home. So neither a write nor a read passes a write.

use std::collections::VecDeque;

use super::agenda::Event;
use super::constants::Constants;
use super::domain::Domain;
use super::here::Here;
use super::transaction::{Kind, Transaction};
use super::way::Way;
use crate::families::sme::engine::{HtChannel, HtPacket};
use crate::families::sme::spec::BridgeWrites;
use crate::parts::line::Bytes;
use crate::parts::tables;
use crate::time::Time;

/// The bridge of a node.
#[derive(Debug, Default)]
pub struct Bridge {
    queue: VecDeque<HtPacket>,
    /// A packet is being taken in, or a posted write holds up what comes behind it.
    busy: bool,
    /// Reads under way in the coherent domain: transaction, source tag, trace.
    reads: Vec<(u32, u8, u32)>,
}

impl Bridge {
    /// Returns whether no packet waits and no access is under way.
    pub fn is_quiet(&self) -> bool {
        !self.busy && self.queue.is_empty() && self.reads.is_empty()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        tables::queue_bytes(&self.queue) + self.reads.capacity() * size_of::<(u32, u8, u32)>()
    }

    /// The request `packet` has come from the engine.
    pub fn takes(&mut self, packet: HtPacket, here: &mut Here) {
        tables::push_back(&mut self.queue, packet);
        self.starts(here);
    }

    fn starts(&mut self, here: &mut Here) {
        if !self.busy
            && let Some(packet) = self.queue.front()
        {
            self.busy = true;
            here.after(takes(&here.constants, packet), Event::Bridge);
        }
    }

    /// [`Event::Bridge`]: the oldest packet enters the coherent domain. A read lets the next
    /// packet follow at once, a posted write when it is complete or [ordered](Self::ordered).
    pub fn next(&mut self, here: &mut Here, domain: &mut Domain, way: &mut Way) {
        let Some(packet) = self.queue.pop_front() else {
            return;
        };
        let took = takes(&here.constants, &packet);
        here.agenda.tell(|t| t.over_bridge(here.now, took, &packet));
        let mut access = |here: &mut Here, physical, what, trace| {
            let line = domain.line(physical);
            domain.request_from_bridge(here.now, line, what, trace, &mut here.agenda)
        };
        match packet {
            HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace,
            } => {
                let bytes = Bytes::enabled(address, enables);
                access(
                    here,
                    address,
                    (Kind::Write { coherent }, bytes, data),
                    trace,
                );
            }
            HtPacket::Read {
                address,
                enables,
                extra_words,
                tag,
                trace,
            } => {
                let bytes = Bytes::enabled(address, enables);
                let number = access(
                    here,
                    address,
                    (Kind::Fetch { extra_words }, bytes, 0),
                    trace,
                );
                self.reads.push((number, tag, trace));
                way.return_credit(here.now, HtChannel::NonPosted, &mut here.agenda);
                self.busy = false;
                self.starts(here);
            }
            HtPacket::Response { .. } => {}
        }
    }

    /// The posted write that entered last has taken effect at its line's home. If writes are
    /// pipelined, it has left the bridge's buffer, and the next packet follows.
    pub fn ordered(&mut self, here: &mut Here, way: &mut Way) {
        if here.constants.spec.host.bridge_writes == BridgeWrites::Pipelined {
            self.lets_next(here, way);
        }
    }

    /// A posted write lets what comes behind it follow.
    fn lets_next(&mut self, here: &mut Here, way: &mut Way) {
        self.busy = false;
        way.return_credit(here.now, HtChannel::Posted, &mut here.agenda);
        self.starts(here);
    }

    /// The bridge's transaction `number`, on the line at `physical`, is complete.
    pub fn answered(
        &mut self,
        number: u32,
        (physical, transaction): (u64, &Transaction),
        here: &mut Here,
        way: &mut Way,
    ) {
        let Kind::Fetch { extra_words } = transaction.kind else {
            here.performed += 1;
            here.progress += 1;
            here.log_performed(physical, transaction);
            if here.constants.spec.host.bridge_writes == BridgeWrites::Serial {
                self.lets_next(here, way);
            }
            return;
        };
        let Some(place) = self.reads.iter().position(|r| r.0 == number) else {
            return;
        };
        let (_, tag, trace) = self.reads.swap_remove(place);
        here.log_read(physical, trace);
        // The memory controller answers the link interface of its own socket.
        let bytes = transaction.bytes;
        let packet = HtPacket::Response {
            data: HtPacket::answer(bytes.enables, bytes.place(transaction.value)),
            single: HtPacket::is_single(bytes.enables),
            extra_words,
            tag,
            error: false,
            trace,
        };
        way.sets_out(here.now, 0, packet, &mut here.agenda);
    }
}

/// The time for which a packet occupies the bridge before it enters the coherent domain.
fn takes(constants: &Constants, packet: &HtPacket) -> Time {
    match packet {
        HtPacket::Write { .. } => constants.spec.host.bridge,
        _ => Time::ZERO,
    }
}

#[cfg(test)]
mod tests;
