//! Between a node's cores and its engine: the sockets' slots for uncached loads, the
//! HyperTransport link with its credits, and the I/O bridge that takes the engine's packets into
//! memory.
//!
//! A core's uncached load waits for its socket's only slot (Fröning et al., Sec. IV-B), crosses
//! the link, and holds the slot until the answer is back and the slot has turned around. A store
//! is posted: it leaves the core and is forgotten. In the other direction the bridge takes the
//! engine's posted writes strictly in order, each after the one before has been performed.

use std::collections::VecDeque;

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::agenda::Event;
use super::constants::Constants;
use super::core::Waiting;
use super::domain::{Kind, Transaction, hops_between};
use super::node::Node;
use crate::families::sme::address::FaultReason;
use crate::families::sme::engine::{HtChannel, HtPacket};
use crate::families::sme::spec::{Arbitration, ClusterSpec};
use crate::parts::line::Bytes;
use crate::parts::store_buffer::Store;
use crate::parts::tables;
use crate::time::Time;

/// Who loads from behind the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A core, past its caches.
    Core(u16),
    /// The fill of a line; once it has a tag, for this word.
    Fill(u16, u8),
}

/// The sockets' slots for loads from behind the engine, of a node that has ever had one.
#[derive(Debug)]
pub(super) struct Slots {
    /// Free slots of each socket, and who waits for one.
    sockets: Vec<(u32, Vec<Asker>)>,
    /// Who reads under each source tag.
    readers: [Asker; 32],
    free_tags: u32,
    random: Pcg32,
}

impl Slots {
    pub(super) fn new(constants: &Constants, node: u32) -> Self {
        let spec = &constants.spec;
        let slots = spec.uncached.outstanding_loads_per_socket;
        // A stream of its own for each node, and another than the one of its caches.
        let stream = u64::from(node) | 1 << 32;
        Self {
            sockets: vec![(slots, Vec::new()); spec.node.sockets as usize],
            readers: [Asker::Core(0); 32],
            free_tags: u32::MAX,
            random: Pcg32::new(constants.seed, stream),
        }
    }

    /// Whether no load waits or is under way.
    pub(super) fn is_quiet(&self, spec: &ClusterSpec) -> bool {
        let slots = spec.uncached.outstanding_loads_per_socket;
        let idle = |(free, waiting): &(u32, Vec<Asker>)| *free == slots && waiting.is_empty();
        self.free_tags == u32::MAX && self.sockets.iter().all(idle)
    }

    pub(super) fn bytes(&self) -> usize {
        let waiting: usize = self
            .sockets
            .iter()
            .map(|(_, waiting)| waiting.capacity())
            .sum();
        size_of::<Self>()
            + self.sockets.capacity() * size_of::<(u32, Vec<Asker>)>()
            + waiting * size_of::<Asker>()
    }

    fn take_tag(&mut self) -> Option<u8> {
        if self.free_tags == 0 {
            return None;
        }
        let tag = self.free_tags.trailing_zeros() as u8;
        self.free_tags &= self.free_tags - 1;
        Some(tag)
    }
}

/// The I/O bridge: the engine's reads and writes of this node's memory.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    queue: VecDeque<HtPacket>,
    /// A packet is being taken in, or a posted write is being performed.
    busy: bool,
    /// Reads under way in the coherent domain: transaction, source tag, trace.
    reads: Vec<(u32, u8, u32)>,
    /// Posted writes performed in this node's memory.
    pub(super) performed: u64,
    /// Posted writes that this node's cores sent anywhere.
    pub(super) posted: u64,
}

impl Bridge {
    /// Whether no packet waits and no access is under way.
    pub(super) fn is_quiet(&self) -> bool {
        !self.busy && self.queue.is_empty() && self.reads.is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        tables::queue_bytes(&self.queue) + self.reads.capacity() * size_of::<(u32, u8, u32)>()
    }
}

impl Node {
    pub(super) fn origin(&self, core: u16) -> u32 {
        let counted = self.cores[usize::from(core)].counted;
        self.constants.trace(self.me, core, counted)
    }

    /// The uncached load of `core` waits for its socket's slot.
    pub(super) fn queue_for_slot(&mut self, core: u16) {
        self.cores[usize::from(core)].waiting = Waiting::Uncached;
        let socket = self.cores[usize::from(core)].socket;
        self.agenda.tell(|t| t.waits_for_slot(core));
        self.queue_for_slot_of(socket, Asker::Core(core));
    }

    /// `asker` waits for the slot of `socket`.
    pub(super) fn queue_for_slot_of(&mut self, socket: u8, asker: Asker) {
        let slots = self
            .slots
            .get_or_insert_with(|| Box::new(Slots::new(&self.constants, self.me)));
        slots.sockets[usize::from(socket)].1.push(asker);
        self.grant_slots(socket);
    }

    /// A source tag that is free.
    pub(super) fn take_tag(&mut self) -> Option<u8> {
        self.slots.as_mut()?.take_tag()
    }

    /// The answer under `tag` is for `asker`.
    pub(super) fn reads_under(&mut self, tag: u8, asker: Asker) {
        if let Some(slots) = &mut self.slots {
            slots.readers[usize::from(tag)] = asker;
        }
    }

    /// [`Event::SlotFree`]
    pub(super) fn slot_freed(&mut self, socket: u8) {
        if let Some(slots) = &mut self.slots {
            slots.sockets[usize::from(socket)].0 += 1;
        }
        self.grant_slots(socket);
    }

    fn grant_slots(&mut self, socket: u8) {
        loop {
            let Some(slots) = &mut self.slots else {
                return;
            };
            let (free, waiting) = &mut slots.sockets[usize::from(socket)];
            if *free == 0 || waiting.is_empty() {
                return;
            }
            let chosen = match self.constants.spec.uncached.arbitration {
                Arbitration::Fifo => 0,
                Arbitration::Random => slots.random.next_u32() as usize % waiting.len(),
            };
            // Removing shifts the others, so that they stay in the order of their arrival.
            let asker = waiting.remove(chosen);
            let Some(tag) = slots.take_tag() else {
                slots.sockets[usize::from(socket)].1.insert(0, asker);
                return;
            };
            slots.sockets[usize::from(socket)].0 -= 1;
            slots.readers[usize::from(tag)] = asker;
            match asker {
                Asker::Core(core) => {
                    self.agenda.tell(|t| t.has_slot(self.now, core));
                    self.load_over_engine(core, tag);
                }
                Asker::Fill(fill, _) => self.ask_for_words(fill, Some(tag)),
            }
        }
    }

    fn load_over_engine(&mut self, core: u16, tag: u8) {
        let Some((address, bytes, _)) = self.awaited(core) else {
            return;
        };
        let trace = self.origin(core);
        self.count_remote_load(trace);
        self.towards_host_link(
            core,
            HtPacket::Read {
                address: address & !7,
                enables: bytes.enables,
                tag,
                trace,
            },
        );
    }

    /// Posts a store of `core`.
    pub(super) fn post(&mut self, core: u16, store: Store) {
        let trace = store.origin;
        self.count_posted(trace);
        self.towards_host_link(
            core,
            HtPacket::Write {
                address: store.address & !7,
                data: store.bytes.place(store.value),
                enables: store.bytes.enables,
                coherent: self.constants.spec.uncached.coherent_stores,
                trace,
            },
        );
    }

    /// A load of the thread `origin` goes through the engine.
    pub(super) fn count_remote_load(&mut self, origin: u32) {
        if self.constants.counts(origin) {
            self.record.traffic.remote_loads += 1;
        }
    }

    /// A store of the thread `origin` goes through the engine.
    pub(super) fn count_posted(&mut self, origin: u32) {
        self.bridge.posted += 1;
        if self.constants.counts(origin) {
            self.record.traffic.remote_stores += 1;
        }
    }

    /// From a core to the first socket's link interface.
    fn towards_host_link(&mut self, core: u16, packet: HtPacket) {
        let way = self.way_to_first_socket(core) + self.constants.host_way;
        self.way.sets_out(self.now, way, packet, &mut self.agenda);
    }

    /// The same from the first socket itself.
    pub(super) fn leaves_first_socket(&mut self, packet: HtPacket) {
        let way = self.constants.host_way;
        self.way.sets_out(self.now, way, packet, &mut self.agenda);
    }

    pub(super) fn way_to_first_socket(&self, core: u16) -> Time {
        let socket = usize::from(self.cores[usize::from(core)].socket);
        self.constants
            .spec
            .coherence
            .hop
            .times(hops_between(socket, 0))
    }

    /// [`Event::HostReceive`]
    pub(super) fn host_receives(&mut self, number: u32) {
        let packet = self.way.received(number);
        match packet {
            HtPacket::Response {
                data, tag, error, ..
            } => {
                self.return_credit(HtChannel::Response);
                self.uncached_load_answered(tag, data, error);
            }
            HtPacket::Read { .. } | HtPacket::Write { .. } => {
                tables::push_back(&mut self.bridge.queue, packet);
                self.bridge_starts();
            }
        }
    }

    fn uncached_load_answered(&mut self, tag: u8, data: u64, error: bool) {
        let Some(slots) = &mut self.slots else {
            debug_assert!(false, "an answer to a load that nobody sent");
            return;
        };
        let asker = slots.readers[usize::from(tag)];
        slots.free_tags |= 1 << tag;
        let sockets = slots.sockets.len() as u8;
        let (socket, done) = match asker {
            Asker::Core(core) => (self.cores[usize::from(core)].socket, true),
            Asker::Fill(fill, word) => {
                let data = if error {
                    Err(FaultReason::NoSuchNode)
                } else {
                    Ok(data)
                };
                (
                    self.socket_of_fill(fill),
                    self.word_arrives(fill, word, data),
                )
            }
        };
        let hops = hops_between(usize::from(socket), 0);
        let back = self.constants.spec.coherence.hop.times(hops);
        // A socket may have a slot and lack a source tag: the next one that does has this.
        for other in 1..=sockets {
            self.grant_slots((socket + other) % sockets);
        }
        if !done {
            return;
        }
        self.agenda.push(
            self.now + back + self.constants.spec.uncached.turnaround,
            Event::SlotFree(socket),
        );
        let core = match asker {
            Asker::Core(core) => core,
            Asker::Fill(fill, _) => return self.line_is_there(fill, back),
        };
        let Some((address, bytes, _)) = self.awaited(core) else {
            return;
        };
        if error {
            self.faults(core, address, FaultReason::NoSuchNode);
            return;
        }
        let value = bytes.pick(HtPacket::placed(bytes.enables, data));
        self.agenda.tell(|t| t.answered(self.now, core, value));
        self.cores[usize::from(core)].looks += 1;
        self.loaded(core, address, value, back);
    }

    /// The host has taken a packet of `channel`.
    fn return_credit(&mut self, channel: HtChannel) {
        self.way.return_credit(self.now, channel, &mut self.agenda);
    }

    fn bridge_starts(&mut self) {
        if !self.bridge.busy && !self.bridge.queue.is_empty() {
            self.bridge.busy = true;
            let took = self.bridge.queue.front().map(|p| self.bridge_takes(p));
            self.agenda
                .push(self.now + took.unwrap_or_default(), Event::Bridge);
        }
    }

    fn bridge_takes(&self, packet: &HtPacket) -> Time {
        match packet {
            HtPacket::Write { .. } => self.constants.spec.host.bridge,
            _ => Time::ZERO,
        }
    }

    /// [`Event::Bridge`]: the oldest packet enters the coherent domain. A read lets the next
    /// packet follow at once, a posted write when it has been performed.
    pub(super) fn bridge_next(&mut self) {
        let Some(packet) = self.bridge.queue.pop_front() else {
            return;
        };
        let took = self.bridge_takes(&packet);
        self.agenda.tell(|t| t.over_bridge(self.now, took, &packet));
        match packet {
            HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace,
            } => {
                let bytes = Bytes::enabled(address, enables);
                self.access_memory(address, (Kind::Write { coherent }, bytes, data), trace);
            }
            HtPacket::Read {
                address,
                enables,
                tag,
                trace,
            } => {
                let bytes = Bytes::enabled(address, enables);
                let number = self.access_memory(address, (Kind::Fetch, bytes, 0), trace);
                self.bridge.reads.push((number, tag, trace));
                self.return_credit(HtChannel::NonPosted);
                self.bridge.busy = false;
                self.bridge_starts();
            }
            HtPacket::Response { .. } => {}
        }
    }

    fn access_memory(&mut self, physical: u64, what: (Kind, Bytes, u64), trace: u32) -> u32 {
        let line = self.domain.line(physical);
        self.domain
            .request_from_bridge(self.now, line, what, trace, &mut self.agenda)
    }

    /// A transaction of the bridge is complete.
    pub(super) fn memory_answers(&mut self, number: u32, transaction: &Transaction) {
        if transaction.kind != Kind::Fetch {
            self.bridge.performed += 1;
            self.progress += 1;
            self.log_performed(transaction);
            self.bridge.busy = false;
            self.return_credit(HtChannel::Posted);
            self.bridge_starts();
            return;
        }
        let Some(place) = self.bridge.reads.iter().position(|r| r.0 == number) else {
            return;
        };
        let (_, tag, trace) = self.bridge.reads.swap_remove(place);
        self.log_read(transaction, trace);
        // The memory controller answers the link interface of its own socket.
        let bytes = transaction.bytes;
        let packet = HtPacket::Response {
            data: HtPacket::answer(bytes.enables, bytes.place(transaction.value)),
            single: HtPacket::is_single(bytes.enables),
            tag,
            error: false,
            trace,
        };
        self.leaves_first_socket(packet);
    }
}
