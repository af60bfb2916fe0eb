//! The engine: its blocks, joined, and the order of a cycle.

use super::completer::Completer;
use super::counters::Counters;
use super::crossbar::Crossbar;
use super::design::Design;
use super::ht::HtChannel;
use super::ht_port::HtPort;
use super::link_port::LinkPort;
use super::model::{EngineModel, Input, Output};
use super::requester::Requester;
use super::responder::Responder;
use super::switch::Switch;
use super::wires::{
    COMPLETER, CROSSBAR, HT_RECEIVE, HT_TRANSMIT, HostFifos, PacketFifos, REQUESTER_POSTED,
    REQUESTER_RESPONSE, RESPONDER, SWITCH_OUTPUTS, any, switch_input,
};
use crate::fabric::{CHANNELS, HOST_PORT, LINK_PORTS, Topology};
use crate::machine::ClusterSpec;
use std::sync::Arc;

/// Transmit FIFOs of the six link ports.
const TRANSMIT_FIFOS: usize = LINK_PORTS * CHANNELS;

/// One node's engine, or a switch at a position without a node.
///
/// It implements [`EngineModel`]; see there for the ports, and [`super`] for the drawing.
#[derive(Debug)]
pub struct Engine {
    design: Arc<Design>,
    packets: PacketFifos,
    switch: Switch,
    /// Bit by bit, at [`CHANNELS`] · port: the link port's serializer is at work.
    sending: u32,
    /// The last cycle changed something; if not, the next would not either.
    changed: bool,
    /// The blocks on the host's side have something to do.
    host_busy: bool,
    /// The first edge that is not stepped yet.
    next_edge: u64,
    links: [LinkPort; LINK_PORTS],
    host: Option<Box<HostSide>>,
    /// Inputs that are not sampled yet, as they were presented.
    pending: Vec<(u64, Input)>,
    /// The earliest edge of any of them.
    earliest: u64,
    counters: Counters,
}

/// The blocks between the switch and the host.
#[derive(Debug)]
struct HostSide {
    fifos: HostFifos,
    port: HtPort,
    requester: Requester,
    completer: Completer,
    responder: Responder,
    crossbar: Crossbar,
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
            fifos: HostFifos::new(&design.host_depths),
            port: HtPort::new(&design.ht_port),
            requester: Requester::new(&design.requester, node),
            completer: Completer::new(),
            responder: Responder::new(node),
            crossbar: Crossbar::new(node),
        };
        Self {
            host: Some(Box::new(host)),
            ..Self::switch_only(design, node)
        }
    }

    /// The switch at a position without a host, after reset.
    pub fn switch_only(design: &Arc<Design>, position: u32) -> Self {
        Self {
            packets: PacketFifos::new(&design.packet_depths),
            switch: Switch::new(design.router.here(position)),
            sending: 0,
            changed: false,
            host_busy: false,
            next_edge: 0,
            links: std::array::from_fn(|_| LinkPort::new(&design.link_port)),
            host: None,
            pending: Vec::new(),
            earliest: u64::MAX,
            counters: Counters::default(),
            design: Arc::clone(design),
        }
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether nothing is under way: every buffer empty, every tag free, every credit back.
    pub fn is_quiet(&self) -> bool {
        let (mut link_credits, mut host_credits) = (0, 0);
        for (_, input) in &self.pending {
            match input {
                Input::LinkCredit { .. } => link_credits += 1,
                Input::HostCredit(_) => host_credits += 1,
                Input::Host(_) | Input::Link { .. } => return false,
            }
        }
        let missing: u32 = self
            .links
            .iter()
            .map(|link| link.missing(&self.design.link_port))
            .sum();
        self.sending == 0
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
            + self.pending.capacity() * size_of::<(u64, Input)>()
    }

    /// Samples the inputs of edges up to `cycle`.
    fn sample(&mut self, cycle: u64) {
        let mut kept = 0;
        self.earliest = u64::MAX;
        for index in 0..self.pending.len() {
            let (edge, input) = self.pending[index];
            if edge <= cycle {
                self.apply(input);
            } else {
                self.earliest = self.earliest.min(edge);
                self.pending[kept] = (edge, input);
                kept += 1;
            }
        }
        self.pending.truncate(kept);
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
            Input::LinkCredit { port, channel } => {
                self.links[usize::from(port)].credit(channel, &self.design.link_port);
            }
            Input::Host(packet) => {
                let host = self
                    .host
                    .as_mut()
                    .expect("a switch without a host has no host port");
                host.port.receive(packet, &mut host.fifos);
                self.host_busy = true;
            }
            Input::HostCredit(channel) => {
                let host = self
                    .host
                    .as_mut()
                    .expect("a switch without a host has no host port");
                host.port.credit(channel, &self.design.ht_port);
            }
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
            let index = port as usize;
            let link = &mut self.links[index];
            let (delivered, changed) = link.step(
                port as u8,
                cycle,
                (waiting >> shift) as u8 & 0xf,
                &self.design.link_port,
                &mut self.packets,
                &mut self.counters.links[index],
            );
            self.changed |= changed;
            self.sending &= !(1 << shift);
            self.sending |= u32::from(link.next_change().is_some()) << shift;
            if let Some((channel, packet)) = delivered {
                out.push(Output::Link {
                    port: port as u8,
                    channel,
                    packet,
                });
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
        counters: &mut Counters,
        out: &mut Vec<Output>,
    ) -> bool {
        self.fifos.latch();
        let (to_host, to_network) = (self.fifos.valid(), packets.valid());
        let mut changed = false;
        if any(to_host, HT_TRANSMIT, 3)
            && let Some(packet) = self.port.transmit(&mut self.fifos)
        {
            out.push(Output::Host(packet));
            changed = true;
        }
        if any(to_host, HT_RECEIVE, 3) {
            let freed = self.port.forward(&mut self.fifos);
            changed |= freed != 0;
            let credits = HtChannel::ALL
                .into_iter()
                .filter(|&channel| freed >> channel as u8 & 1 == 1);
            out.extend(credits.map(Output::HostCredit));
        }
        if any(to_host, REQUESTER_POSTED, 2) || any(to_network, REQUESTER_RESPONSE, 1) {
            let (spec, faults) = (&design.requester, &mut counters.faults);
            changed |= self
                .requester
                .step(spec, &mut self.fifos, packets, &mut self.port, faults);
        }
        if any(to_network, COMPLETER, 1) {
            changed |=
                self.completer
                    .step(&design.completer, packets, &mut self.fifos, &mut self.port);
        }
        if any(to_host, RESPONDER, 1) {
            let reads = &mut self.completer.reads;
            changed |= self
                .responder
                .step(reads, &mut self.fifos, packets, &mut counters.faults);
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
        let mut next = bits(self.sending)
            .filter_map(|bit| self.links[(bit / CHANNELS as u32) as usize].next_change())
            .min()
            .unwrap_or(u64::MAX);
        for &(cycle, input) in &self.pending {
            // A credit that nobody waits for is sampled at the next edge that is stepped anyhow.
            let matters = match input {
                Input::Host(_) | Input::Link { .. } => true,
                Input::HostCredit(_) => self.host_busy,
                Input::LinkCredit { .. } => packets_wait,
            };
            if matters {
                next = next.min(cycle.max(self.next_edge));
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
        self.earliest = self.earliest.min(cycle);
        self.pending.push((cycle, input));
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        debug_assert!(
            cycle >= self.next_edge,
            "edge {cycle} is over; the next is {}",
            self.next_edge
        );
        self.packets.latch();
        self.changed = false;
        if (self.host_busy || any(self.packets.valid(), CROSSBAR, 6))
            && let Some(host) = &mut self.host
        {
            let (packets, counters) = (&mut self.packets, &mut self.counters);
            self.changed = host.step(&self.design, &self.switch, packets, counters, out);
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
    }
}

/// Of a bit of a mask that has one for each channel of each port.
fn port_and_channel(bit: u32) -> (u8, u8) {
    ((bit / CHANNELS as u32) as u8, (bit % CHANNELS as u32) as u8)
}

/// The set bits, lowest first.
fn bits(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 32).then_some(bit)
    })
}
