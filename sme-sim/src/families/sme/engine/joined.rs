//! The engine: its blocks, joined, and the order of a cycle.

use super::completer::Completer;
use super::counters::{ChannelCounters, Counters, Faults};
use super::crossbar::Crossbar;
use super::design::Design;
use super::ht::HtChannel;
use super::ht_port::HtPort;
use super::link_port::{ARRIVAL_CYCLES, LinkPort};
use super::model::{EngineModel, Input, Output, Shortcuts, Transit};
use super::packet::Packet;
use super::pending_credit::{Credit, PendingCredit};
use super::requester::Requester;
use super::responder::Responder;
use super::switch::Switch;
use super::wires::{
    COMPLETER, CROSSBAR, HT_RECEIVE, HT_TRANSMIT, HostFifos, PACKET_FIFOS, PacketFifos,
    REQUESTER_POSTED, REQUESTER_RESPONSE, RESPONDER, SWITCH_OUTPUTS, any, bits, port_and_channel,
    switch_input,
};
use crate::families::sme::spec::ClusterSpec;
use crate::kernel::prefetch::prefetch;
use crate::parts::fabric::{CHANNELS, HOST_PORT, LINK_PORTS, Topology};
use crate::parts::inline::{ByChannel, Single, heap_bytes};
use smallvec::SmallVec;
use std::mem::offset_of;
use std::sync::Arc;

/// Transmit FIFOs of the six link ports.
const TRANSMIT_FIFOS: usize = LINK_PORTS * CHANNELS;

/// One node's engine, or a switch at a position without a node.
///
/// It implements [`EngineModel`]; see there for the ports, and [`super`] for the drawing. The
/// fields that a packet touches when it passes an idle engine come first.
#[derive(Debug)]
#[repr(C)]
pub struct Engine {
    design: Arc<Design>,
    switch: Switch,
    /// Bit by bit, at [`CHANNELS`] · port: the link port's serializer is at work, and what it sends
    /// has not been given out.
    sending: u32,
    /// The last cycle changed something; if not, the next would not either.
    changed: bool,
    /// The blocks on the host's side have something to do.
    host_busy: bool,
    /// No packet is in here, but those on links that have been given out.
    idle: bool,
    /// The first edge that is not stepped yet.
    next_edge: u64,
    host: Option<Box<HostSide>>,
    /// No packet or credit that is pending has an earlier edge.
    earliest: u64,
    /// Credits that do not count yet, in order of time: with nothing to send, many gather.
    credits: SmallVec<[PendingCredit; NEAR_CREDITS]>,
    /// Of one of these a packet needs the line.
    links: [LinkPort; LINK_PORTS],
    packets: PacketFifos,
    /// Packets that are not in a buffer yet, as they were presented, and the edges at which they
    /// will be.
    pending: Single<(u64, Input)>,
    /// Counts that the link ports do not keep: mostly those of packets that have waited.
    counters: Option<Box<FarCounters>>,
}

/// Counters of the channels that need any.
type FarCounters = ByChannel<ChannelCounters, 1>;

/// Credits that do not count yet of which the list stands in the engine.
const NEAR_CREDITS: usize = 6;

/// Bytes of an engine from the beginning with which every packet has to do.
pub(crate) const NEAR_BYTES: usize = offset_of!(Engine, links);

/// The blocks between the switch and the host.
#[derive(Debug)]
struct HostSide {
    fifos: HostFifos,
    port: HtPort,
    requester: Requester,
    completer: Completer,
    responder: Responder,
    crossbar: Crossbar,
    faults: Faults,
}

impl Engine {
    /// The engine of node `node`, alone; for many engines see [`Engine::with_design`].
    ///
    /// # Panics
    /// If [`Design::new`] refuses the machine, or the node is none of the `hosts`.
    pub fn new(spec: &ClusterSpec, node: u32, topology: &Topology, hosts: u32) -> Self {
        match Design::new(spec, topology, hosts) {
            Ok(design) => Self::with_design(&Arc::new(design), node),
            Err(error) => panic!("{error}"),
        }
    }

    /// The engine of node `node`, after reset.
    ///
    /// # Panics
    /// If the node has no host.
    pub fn with_design(design: &Arc<Design>, node: u32) -> Self {
        assert!(node < design.requester.hosts, "node {node} has no host");
        let host = HostSide {
            fifos: HostFifos::sharing(&design.host_depths),
            port: HtPort::new(&design.ht_port),
            requester: Requester::new(&design.requester, node),
            completer: Completer::new(),
            responder: Responder::new(node),
            crossbar: Crossbar::new(node),
            faults: Faults::default(),
        };
        Self {
            host: Some(Box::new(host)),
            ..Self::switch_only(design, node)
        }
    }

    /// The switch at a position without a host, after reset.
    pub fn switch_only(design: &Arc<Design>, position: u32) -> Self {
        Self {
            packets: PacketFifos::sharing(&design.packet_depths),
            switch: Switch::new(design.router.here(position)),
            sending: 0,
            changed: false,
            host_busy: false,
            idle: true,
            next_edge: 0,
            links: std::array::from_fn(|_| LinkPort::new(&design.link_port)),
            host: None,
            pending: Single::default(),
            credits: SmallVec::new(),
            earliest: u64::MAX,
            counters: None,
            design: Arc::clone(design),
        }
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> Counters {
        let of = |port: u16, channel| {
            let link = &self.links[usize::from(port)];
            let mut counted = link.counted(channel, &self.design.link_port);
            let others = self.counters.as_ref().and_then(|c| c.get(port, channel));
            if let Some(others) = others {
                counted.add(others);
            }
            counted
        };
        let channels = |port| std::array::from_fn(|channel| of(port, channel as u8));
        Counters {
            links: (0..LINK_PORTS as u16).map(channels).collect(),
            faults: self
                .host
                .as_ref()
                .map_or_else(Faults::default, |host| host.faults),
        }
    }

    /// Returns whether nothing is under way: every buffer empty, every tag free, every credit back.
    pub fn is_quiet(&self) -> bool {
        let of_a_link = |credit: &&PendingCredit| matches!(credit.credit(), Credit::Link { .. });
        let link_credits = self.credits.iter().filter(of_a_link).count() as u32;
        let host_credits = self.credits.len() as u32 - link_credits;
        let spec = &self.design.link_port;
        let missing: u32 = self.links.iter().map(|link| link.missing(spec)).sum();
        self.pending.is_empty()
            && self.sending == 0
            && self.packets.next_valid() == 0
            && missing == link_credits
            && self.host.as_ref().is_none_or(|host| {
                host.fifos.next_valid() == 0
                    && host.port.missing(&self.design.ht_port) == host_credits
                    && host.requester.is_quiet()
                    && host.completer.reads.is_quiet()
            })
    }

    /// Bytes of state, the heap's included, without the design that all engines share.
    pub fn state_bytes(&self) -> usize {
        let host = self.host.as_ref().map_or(0, |host| {
            size_of::<HostSide>()
                + host.fifos.heap_bytes()
                + host.requester.heap_bytes()
                + host.completer.reads.heap_bytes()
        });
        size_of::<Self>()
            + host
            + self.packets.heap_bytes()
            + self.counters.as_ref().map_or(0, |counters| {
                size_of_val(&**counters) + counters.heap_bytes()
            })
            + self.pending.heap_bytes()
            + heap_bytes(&self.credits)
    }

    /// Takes in what is due at edges up to `cycle`.
    fn sample(&mut self, cycle: u64) {
        while let Some((_, input)) = self.pending.take(|&(edge, _)| edge <= cycle) {
            self.apply(input);
        }
        let edges = self.pending.iter().map(|&(edge, _)| edge);
        self.earliest = edges.min().unwrap_or(u64::MAX);
        self.sample_credits(cycle);
        if let Some(first) = self.credits.first() {
            self.earliest = self.earliest.min(first.cycle());
        }
    }

    /// Takes in the credits that are due at edges up to `cycle`.
    fn sample_credits(&mut self, cycle: u64) {
        let mut due = 0;
        while let Some(&pending) = self.credits.get(due)
            && pending.cycle() <= cycle
        {
            self.apply_credit(pending.credit());
            due += 1;
        }
        self.credits.drain(..due);
    }

    /// Notes whether any packet is in here.
    fn set_idle(&mut self) {
        self.idle = self.packets.next_valid() == 0
            && self.sending == 0
            && !self.host_busy
            && self.pending.is_empty();
    }

    fn apply_credit(&mut self, credit: Credit) {
        self.changed = true;
        match credit {
            Credit::Link { port, channel } => {
                self.links[usize::from(port)].credit(channel, &self.design.link_port);
            }
            Credit::Host(channel) => {
                let host = self
                    .host
                    .as_mut()
                    .expect("a switch without a host has no host port");
                host.port.credit(channel, &self.design.ht_port);
            }
        }
    }

    fn apply(&mut self, input: Input) {
        self.changed = true;
        match input {
            Input::Link {
                port,
                channel,
                packet,
            } => {
                let output = self
                    .switch
                    .output(&self.design.router, port, channel, packet.target);
                self.packets
                    .push(switch_input(port, channel), packet, output);
            }
            Input::Host(packet) => {
                let host = self
                    .host
                    .as_mut()
                    .expect("a switch without a host has no host port");
                host.port.receive(packet, &mut host.fifos);
                self.host_busy = true;
            }
            Input::LinkCredit { port, channel } => {
                self.apply_credit(Credit::Link { port, channel });
            }
            Input::HostCredit(channel) => self.apply_credit(Credit::Host(channel)),
        }
    }

    /// The link ports' part of a cycle.
    fn step_links(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let waiting = (self.packets.valid() >> SWITCH_OUTPUTS) as u32 & ((1 << TRANSMIT_FIFOS) - 1);
        let mut active = waiting | self.sending;
        while active != 0 {
            let port = active.trailing_zeros() / CHANNELS as u32;
            let shift = port * CHANNELS as u32;
            active &= !(0xf << shift);
            let link = &mut self.links[port as usize];
            let (spec, packets) = (&self.design.link_port, &mut self.packets);
            let waiting = (waiting >> shift) as u8 & 0xf;
            let step = link.step(port as u16, cycle, waiting, spec, packets);
            self.sending &= !(1 << shift);
            self.sending |= u32::from(link.next_change().is_some()) << shift;
            if let Some((channel, counted)) = step.began {
                self.changed = true;
                let counted = match counted.stall_cycles {
                    0 => link.count(channel, counted.bytes, spec),
                    _ => Some(counted),
                };
                if let Some(counted) = counted {
                    count(&mut self.counters, (port as u16, channel), &counted);
                }
            }
            if let Some((channel, held)) = step.delivered {
                self.changed = true;
                out.push(Output::Link {
                    port: port as u16,
                    channel,
                    packet: *packets.held(&held),
                });
                packets.release(held);
            }
        }
    }

    /// The switch's part of a cycle.
    fn step_switch(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let moves = self.switch.step(&mut self.packets);
        self.changed |= moves.freed != 0;
        for (port, channel) in bits(moves.begun).map(port_and_channel) {
            self.links[usize::from(port)].starts_waiting(channel, cycle);
        }
        let from_links = moves.freed & ((1 << switch_input(HOST_PORT, 0)) - 1);
        for (port, channel) in bits(from_links).map(port_and_channel) {
            out.push(Output::LinkCredit { port, channel });
        }
    }
}

impl HostSide {
    /// The blocks between switch and host; whether anything changed.
    fn step(
        &mut self,
        design: &Design,
        switch: &Switch,
        packets: &mut PacketFifos,
        out: &mut Vec<Output>,
    ) -> bool {
        self.fifos.latch();
        let (to_host, to_network) = (self.fifos.valid(), packets.valid());
        let mut changed = self.requester.latch() | self.completer.reads.latch();
        if any(to_host, HT_TRANSMIT, 3)
            && let Some(packet) = self.port.transmit(&mut self.fifos)
        {
            out.push(Output::Host(packet));
            changed = true;
        }
        if any(to_host, HT_RECEIVE, 3) {
            let mut freed = self.port.forward(&mut self.fifos);
            // Before the completer, which may take a tag in this cycle.
            let (reads, faults) = (&mut self.completer.reads, &mut self.faults);
            if self
                .responder
                .receive(reads, &mut self.fifos, packets, faults)
            {
                freed |= 1 << HtChannel::Response as u8;
            }
            changed |= freed != 0;
            let credits = HtChannel::ALL
                .into_iter()
                .filter(|&channel| freed >> channel as u8 & 1 == 1);
            out.extend(credits.map(Output::HostCredit));
        }
        if any(to_host, REQUESTER_POSTED, 2) || any(to_network, REQUESTER_RESPONSE, 1) {
            let (spec, faults) = (&design.requester, &mut self.faults);
            changed |= self
                .requester
                .step(spec, &mut self.fifos, packets, &mut self.port, faults);
        }
        if any(to_network, COMPLETER, 1) {
            changed |=
                self.completer
                    .step(&design.completer, packets, &mut self.fifos, &mut self.port);
        }
        if any(to_network, RESPONDER, 1) {
            changed |= self.responder.step(packets);
        }
        if any(to_network, CROSSBAR, 4) {
            let output =
                |channel, target| switch.output(&design.router, HOST_PORT, channel, target);
            changed |= self.crossbar.step(packets, output);
        }
        changed
    }
}

impl EngineModel for Engine {
    fn next_cycle(&self) -> Option<u64> {
        let packets_wait = self.packets.next_valid() != 0;
        if self.changed && (packets_wait || self.host_busy) {
            return Some(self.next_edge);
        }
        let of_link = |bit: u32| &self.links[bit as usize / CHANNELS];
        let ends = bits(self.sending).filter_map(|bit| of_link(bit).next_change());
        // Where the end has been given out already, only those behind it have to know.
        let waiting = (self.packets.next_valid() >> SWITCH_OUTPUTS) as u32;
        let frees = bits(waiting & ((1 << TRANSMIT_FIFOS) - 1))
            .map(|bit| of_link(bit).free_from())
            .filter(|&free_from| free_from >= self.next_edge);
        let mut next = ends.chain(frees).min().unwrap_or(u64::MAX);
        for &(cycle, _) in self.pending.iter() {
            next = next.min(cycle.max(self.next_edge));
        }
        // A credit for which no packet waits is sampled at the next edge that is stepped anyhow.
        if self.host_busy || packets_wait {
            let matters = |pending: &&PendingCredit| match pending.is_hosts() {
                true => self.host_busy,
                false => packets_wait,
            };
            if let Some(first) = self.credits.iter().find(matters) {
                next = next.min(first.cycle().max(self.next_edge));
            }
        }
        (next != u64::MAX).then_some(next)
    }

    fn input(&mut self, cycle: u64, input: Input) {
        debug_assert!(
            cycle >= self.next_edge,
            "edge {cycle} is over; the next is {}",
            self.next_edge
        );
        let cycle = match input {
            Input::Link { .. } | Input::LinkCredit { .. } => cycle + ARRIVAL_CYCLES,
            Input::Host(_) | Input::HostCredit(_) => cycle,
        };
        self.earliest = self.earliest.min(cycle);
        let credit = match input {
            Input::LinkCredit { port, channel } => Credit::Link { port, channel },
            Input::HostCredit(channel) => Credit::Host(channel),
            Input::Host(_) | Input::Link { .. } => {
                self.pending.push((cycle, input));
                self.idle = false;
                return;
            }
        };
        if self.credits.len() == self.credits.capacity() {
            self.credits.reserve_exact((self.credits.len() / 4).max(4));
        }
        let pending = PendingCredit::new(cycle, credit);
        let before = self.credits.iter().rposition(|&other| other <= pending);
        let place = before.map_or(0, |before| before + 1);
        self.credits.insert(place, pending);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        debug_assert!(
            cycle >= self.next_edge,
            "edge {cycle} is over; the next is {}",
            self.next_edge
        );
        self.packets.latch();
        self.changed = false;
        // A block that gives a tag back leaves a packet behind, so that the tables are latched in
        // time.
        if (self.host_busy || any(self.packets.valid(), CROSSBAR, PACKET_FIFOS - CROSSBAR))
            && let Some(host) = &mut self.host
        {
            self.changed = host.step(&self.design, &self.switch, &mut self.packets, out);
            self.host_busy = host.fifos.next_valid() != 0;
        }
        self.step_links(cycle, out);
        if any(self.packets.valid(), 0, SWITCH_OUTPUTS) {
            self.step_switch(cycle, out);
        }
        // Credits of edges that were skipped come late here, and in time nevertheless: nothing
        // waited for them until now.
        if self.earliest <= cycle {
            self.sample(cycle);
        }
        self.next_edge = cycle + 1;
        self.set_idle();
    }
}

impl Shortcuts for Engine {
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        for bit in bits(std::mem::take(&mut self.sending)) {
            let port = (bit / CHANNELS as u32) as u16;
            let Some((cycle, channel, held)) = self.links[usize::from(port)].foresee() else {
                continue;
            };
            let packet = *self.packets.held(&held);
            self.packets.release(held);
            let output = Output::Link {
                port,
                channel,
                packet,
            };
            out.push((cycle, output));
        }
        self.set_idle();
    }

    /// With nothing else here, what comes at later edges comes too late to compete with the packet:
    /// it is in its receive buffer two cycles after this edge, in its transmit FIFO a cycle later
    /// and on its link in the next, and anything sampled later is one cycle behind it all the way.
    /// A packet that the host presents even at the same edge is two behind.
    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        if !self.idle {
            return None;
        }
        let router = &self.design.router;
        let to = usize::from(self.switch.output(router, port, channel, packet.target));
        if to >= CROSSBAR {
            return None;
        }
        let freed = cycle + ARRIVAL_CYCLES + 1;
        let begins = freed + 1;
        let (leaves, on) = port_and_channel((to - SWITCH_OUTPUTS) as u32);
        let link = &mut self.links[usize::from(leaves)];
        // Credits that count by then, where it takes them: nothing begins before.
        if !link.has_credit(on) || self.credits.len() >= NEAR_CREDITS / 2 {
            self.sample_credits(freed);
        }
        let (link, spec) = (&mut self.links[usize::from(leaves)], &self.design.link_port);
        let delivered = link.passes(on, begins, packet.bytes(), spec)?;
        if let Some(counted) = link.count(on, packet.bytes(), spec) {
            count(&mut self.counters, (leaves, on), &counted);
        }
        self.switch.serves(switch_input(port, channel) as u8, to);
        Some(Transit {
            freed,
            delivered,
            port: leaves,
            channel: on,
        })
    }

    /// With no packet in here, the first to begin on a link is at least four cycles behind what is
    /// sampled from now on.
    #[inline]
    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        if self.idle {
            self.links[usize::from(port)].credit(channel, &self.design.link_port);
        }
        self.idle
    }

    #[inline]
    fn prefetch(&self, coming: &Input) {
        let leaves = match *coming {
            Input::Link {
                port,
                channel,
                packet,
            } => {
                let router = &self.design.router;
                let to = self.switch.output(router, port, channel, packet.target);
                (usize::from(to) - SWITCH_OUTPUTS) / CHANNELS
            }
            Input::LinkCredit { port, .. } => port.into(),
            Input::Host(_) | Input::HostCredit(_) => HOST_PORT.into(),
        };
        match self.links.get(leaves) {
            Some(link) => prefetch(link),
            None => {
                prefetch(&self.packets);
                prefetch(&self.pending);
                if let Some(host) = &self.host {
                    prefetch(&**host);
                }
                if let Some(counters) = &self.counters {
                    prefetch(&**counters);
                }
            }
        }
    }

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        !self.idle && self.packets.next_valid() != 0
    }
}

/// Adds to the counters of a port and channel.
fn count(
    counters: &mut Option<Box<FarCounters>>,
    (port, channel): (u16, u8),
    counted: &ChannelCounters,
) {
    let counters = counters.get_or_insert_default();
    counters.at(port, channel).add(counted);
}
