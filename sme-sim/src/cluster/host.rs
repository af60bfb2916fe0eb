//! Between a node's cores and its engine: the sockets' slots for uncached loads, the
//! HyperTransport link with its credits, and the I/O bridge that takes the engine's packets into
//! memory.
//!
//! A core's uncached load waits for its socket's only slot (Fröning et al., Sec. IV-B), crosses
//! the link, and holds the slot until the answer is back and the slot has turned around. A store
//! is posted: it leaves the core and is forgotten. In the other direction the bridge takes the
//! engine's posted writes strictly in order, each after the one before has been performed.

use std::collections::VecDeque;
use std::future::Future;

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::agenda::Event;
use super::constants::Constants;
use super::content::Bytes;
use super::core::Waiting;
use super::domain::{Kind, Transaction, hops_between};
use super::node::Node;
use super::stores::Store;
use super::tables;
use crate::engine::{EngineModel, HtChannel, HtPacket, Input};
use crate::kernel::address::FaultReason;
use crate::machine::{Arbitration, ClusterSpec, HostSpec};
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

/// Host side of the HyperTransport link.
#[derive(Debug)]
pub(super) struct HostLink {
    /// Packets for the engine, by channel.
    queues: [VecDeque<HtPacket>; 3],
    credits: [u32; 3],
    /// Until then the direction to the engine is busy.
    free_at: Time,
    ready_pending: bool,
    /// Until then the direction from the engine is busy.
    back_free_at: Time,
    /// Posted packets that have been sent.
    pub(super) posted: u64,
}

impl HostLink {
    pub(super) fn new(spec: &HostSpec) -> Self {
        Self {
            queues: Default::default(),
            credits: all_credits(spec),
            free_at: Time::ZERO,
            ready_pending: false,
            back_free_at: Time::ZERO,
            posted: 0,
        }
    }

    /// Whether no packet waits and every credit is back.
    pub(super) fn is_quiet(&self, spec: &HostSpec) -> bool {
        self.queues.iter().all(VecDeque::is_empty) && self.credits == all_credits(spec)
    }

    /// Whether the oldest packet of a channel can go.
    fn may_send(&self, channel: usize) -> bool {
        let behind = channel == HtChannel::NonPosted as usize
            && !self.queues[HtChannel::Posted as usize].is_empty();
        self.credits[channel] > 0 && !self.queues[channel].is_empty() && !behind
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.queues.iter().map(tables::queue_bytes).sum()
    }
}

/// By channel.
fn all_credits(spec: &HostSpec) -> [u32; 3] {
    [
        spec.posted_credits,
        spec.nonposted_credits,
        spec.response_credits,
    ]
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

impl<F: Future<Output = ()>, E: EngineModel> Node<F, E> {
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
                coherent: self.constants.coherent_stores,
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
        self.sets_out(way, packet);
    }

    /// The same from the first socket itself.
    pub(super) fn leaves_first_socket(&mut self, packet: HtPacket) {
        self.sets_out(self.constants.host_way, packet);
    }

    fn sets_out(&mut self, way: Time, packet: HtPacket) {
        self.agenda
            .tell(|t| t.leaves_for_host_link(self.now + way, &packet));
        let number = tables::insert(&mut self.packets, packet);
        self.agenda.push(self.now + way, Event::HostSend(number));
    }

    pub(super) fn way_to_first_socket(&self, core: u16) -> Time {
        let socket = usize::from(self.cores[usize::from(core)].socket);
        self.constants
            .spec
            .coherence
            .hop
            .times(hops_between(socket, 0))
    }

    /// [`Event::HostSend`]
    pub(super) fn send_over_host_link(&mut self, number: u32) {
        let packet = self.packets.remove(number as usize);
        tables::push_back(&mut self.host.queues[packet.channel() as usize], packet);
        self.transmit();
    }

    /// [`Event::HostReady`]
    pub(super) fn host_link_ready(&mut self) {
        self.host.ready_pending = false;
        self.transmit();
    }

    /// [`Event::HostCredit`]
    pub(super) fn host_credit(&mut self, channel: u8) {
        self.host.credits[usize::from(channel)] += 1;
        self.transmit();
    }

    /// Sends what has a credit: responses first, then posted writes, then reads, so that nothing
    /// that frees others waits behind what needs them. A read overtakes no posted write, not even
    /// one that waits for a credit.
    fn transmit(&mut self) {
        loop {
            let order = [HtChannel::Response, HtChannel::Posted, HtChannel::NonPosted];
            let ready = order
                .into_iter()
                .map(|c| c as usize)
                .find(|&c| self.host.may_send(c));
            let Some(channel) = ready else {
                return;
            };
            if self.host.free_at > self.now {
                if !self.host.ready_pending {
                    self.host.ready_pending = true;
                    self.agenda.push(self.host.free_at, Event::HostReady);
                }
                return;
            }
            let Some(packet) = self.host.queues[channel].pop_front() else {
                return;
            };
            self.host.credits[channel] -= 1;
            if channel == HtChannel::Posted as usize {
                self.host.posted += 1;
                self.posted_have_left();
            }
            self.host.free_at = self.now + self.constants.on_host_link(&packet);
            let cycle = self.constants.engine_samples(self.host.free_at);
            self.agenda
                .tell(|t| t.over_host_link(self.now, self.host.free_at, cycle, &packet));
            self.present(cycle, Input::Host(packet));
        }
    }

    /// A packet that the engine gave at edge `cycle` crosses the link to the host.
    pub(super) fn host_link_brings(&mut self, cycle: u64, packet: HtPacket) {
        let from = self
            .constants
            .engine_gave(cycle)
            .max(self.host.back_free_at);
        self.host.back_free_at = from + self.constants.on_host_link(&packet);
        let at = self.host.back_free_at + self.constants.host_way;
        self.agenda
            .tell(|t| t.leaves_engine(cycle, from, at, &packet));
        let number = tables::insert(&mut self.packets, packet);
        self.agenda.push(at, Event::HostReceive(number));
    }

    /// [`Event::HostReceive`]
    pub(super) fn host_receives(&mut self, number: u32) {
        let packet = self.packets.remove(number as usize);
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
        let value = bytes.pick(data);
        self.agenda.tell(|t| t.answered(self.now, core, value));
        self.cores[usize::from(core)].looks += 1;
        self.loaded(core, address, value, back);
    }

    /// Tells the engine that the host has taken a packet of `channel`.
    fn return_credit(&mut self, channel: HtChannel) {
        let cycle = self
            .constants
            .engine_samples(self.now + self.constants.host_way);
        self.present(cycle, Input::HostCredit(channel));
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
        let packet = HtPacket::Response {
            data: transaction.bytes.place(transaction.value),
            tag,
            error: false,
            trace,
        };
        self.agenda
            .tell(|t| t.leaves_for_host_link(self.now + self.constants.host_way, &packet));
        let number = tables::insert(&mut self.packets, packet);
        self.agenda
            .push(self.now + self.constants.host_way, Event::HostSend(number));
    }
}
