//! An engine whose cycles are those of its RTL, where a node expects an [`EngineModel`].
//!
//! It puts the node's packets and credits on the pins, edge by edge, and gives out what the pins
//! show. The device may be the RTL in rust-hdl's simulation or the Verilog made of it.
//!
//! An engine without packets inside is not clocked. One with packets is clocked at every edge; but
//! what the node sees as the engine's edges are those at which something can happen, by the same
//! two facts as in the cycle model: if no packet moved, no tag came back and nothing came, nothing
//! moves at the next edge either; and a link port knows when its packet ends. So both do the same
//! work in the same number of events.

use std::sync::Arc;

use sme_sim::families::sme::engine::link_port::{ARRIVAL_CYCLES, LinkPortSpec};
use sme_sim::families::sme::engine::requester::RequesterSpec;
use sme_sim::families::sme::engine::{
    Counters, EngineModel, HtChannel, Input, Inspect, Kind, Output, Shortcuts,
};
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::parts::fabric::{CHANNELS, LINK_PORTS, Topology};

use crate::device::Device;
use crate::engine_pins::{InputPins, OutputPins};
use crate::traces::Traces;
use crate::value::Value;

/// The surroundings of an engine's RTL, the same for all engines of a cluster.
#[derive(Clone, Debug)]
pub struct Surroundings {
    requester: RequesterSpec,
    link: LinkPortSpec,
    topology: Topology,
}

impl Surroundings {
    /// Of the engines of a cluster of `hosts` nodes in `topology`.
    pub fn new(spec: &ClusterSpec, topology: &Topology, hosts: u32) -> Self {
        Self {
            requester: RequesterSpec {
                global_base: spec.node.global_base,
                shared_bits: spec.node.shared_bytes.trailing_zeros(),
                hosts,
                tags: spec.engine.tags,
            },
            link: LinkPortSpec::of(spec),
            topology: topology.clone(),
        }
    }
}

/// One node's engine in RTL.
#[derive(Debug)]
pub struct RtlEngine<D> {
    device: D,
    surroundings: Arc<Surroundings>,
    node: u32,
    inputs: InputPins,
    outputs: Vec<Value>,
    traces: Traces,
    /// Packets inside, in HyperTransport's form and in the network's.
    waiting: [u32; 2],
    /// The edge that ends the packet on each link.
    sending: [Option<u64>; LINK_PORTS],
    /// The last edge that the node asked for changed something.
    changed: bool,
    /// The first edge that is not over.
    next_edge: u64,
    /// Inputs that are not sampled yet, as they were presented.
    pending: Vec<(u64, Input)>,
    /// Inputs that the last edges brought from links: they are in the registers of the link ports,
    /// where nothing can hold them up, and come out at these edges.
    arriving: Vec<(u64, Input)>,
    counters: Counters,
}

const HOST: usize = 0;
const NETWORK: usize = 1;

impl<D: Device> RtlEngine<D> {
    /// The engine at position `node`, after power-on; `device` has the ports of
    /// [`Engine`](crate::blocks::engine::Engine).
    pub fn new(device: D, surroundings: &Arc<Surroundings>, node: u32) -> Self {
        let here = surroundings.topology.coordinates(node);
        Self {
            device,
            inputs: InputPins::new(node, here),
            surroundings: Arc::clone(surroundings),
            node,
            outputs: Vec::new(),
            traces: Traces::default(),
            waiting: [0; 2],
            sending: [None; LINK_PORTS],
            changed: false,
            next_edge: 0,
            pending: Vec::new(),
            arriving: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Returns the device that is clocked.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// One edge with the inputs that are due at it.
    fn edge(&mut self, edge: u64, out: &mut Vec<Output>) {
        self.inputs.clear();
        let mut came = Vec::new();
        self.pending.retain(|&(due, input)| {
            if due == edge {
                came.push(input);
            }
            due != edge
        });
        came.iter().for_each(|input| self.inputs.put(input));
        self.device.cycle(self.inputs.values(), &mut self.outputs);
        self.give(out);
        self.observe(edge);
        // Taken in at the edge that ends the cycle: nothing of it was inside before.
        let (links, host): (Vec<_>, Vec<_>) = came.into_iter().partition(of_a_link);
        let links = links
            .into_iter()
            .map(|input| (taken_in(edge, &input), input));
        self.arriving.extend(links);
        let arrived = self
            .arriving
            .extract_if(.., |&mut (taken, _)| taken == edge);
        let arrived: Vec<_> = arrived.map(|(_, input)| input).collect();
        for input in arrived.into_iter().chain(host) {
            self.changed = true;
            match input {
                Input::Host(packet) => {
                    let requester = &self.surroundings.requester;
                    self.traces.host_in(&packet, self.node, requester);
                    self.waiting[HOST] += 1;
                }
                Input::Link { packet, .. } => {
                    self.traces.link_in(&packet, self.node);
                    self.waiting[NETWORK] += 1;
                }
                Input::HostCredit(_) | Input::LinkCredit { .. } => {}
            }
        }
    }

    /// Gives the outputs on the pins, in the order that [`EngineModel::step`] asks for.
    fn give(&mut self, out: &mut Vec<Output>) {
        let pins = OutputPins(&self.outputs);
        if let Some(beat) = pins.host() {
            let trace = self.traces.host_out(&beat.packet(0));
            out.push(Output::Host(beat.packet(trace)));
            self.waiting[HOST] -= 1;
        }
        let freed = pins.host_credit();
        let channels = HtChannel::ALL.into_iter();
        let freed = channels.filter(|&channel| freed >> channel as u8 & 1 == 1);
        out.extend(freed.map(Output::HostCredit));
        for port in 0..LINK_PORTS {
            if let Some((channel, beat)) = pins.link(port) {
                let trace = self.traces.link_out(&beat.packet(0));
                out.push(Output::Link {
                    port: port as u16,
                    channel,
                    packet: beat.packet(trace),
                });
            }
        }
        for port in 0..LINK_PORTS {
            let freed = pins.link_credit(port);
            let freed = (0..CHANNELS as u8).filter(|channel| freed >> channel & 1 == 1);
            let port = port as u16;
            out.extend(freed.map(|channel| Output::LinkCredit { port, channel }));
        }
    }

    /// Observes the moves inside and the events that concern counters only.
    fn observe(&mut self, edge: u64) {
        let pins = OutputPins(&self.outputs);
        let moves = pins.moves();
        self.changed |= moves.any;
        self.waiting[NETWORK] += moves.to_network;
        self.waiting[HOST] += moves.to_host;
        self.waiting[NETWORK] -= moves.to_host + moves.lost_in_network;
        self.waiting[HOST] -= moves.to_network + moves.lost_from_host;
        if let Some((source, is_read)) = pins.completer_takes() {
            self.traces.completer_takes(source, self.node, is_read);
        }
        for (port, links) in self.counters.links.iter_mut().enumerate() {
            if let Some((channel, is_write)) = pins.begun(port) {
                let kind = if is_write {
                    Kind::PostedWrite
                } else {
                    Kind::ReadRequest
                };
                let cycles = self.surroundings.link.cycles(kind.bytes());
                let counters = &mut links[channel];
                counters.packets += 1;
                counters.bytes += kind.bytes();
                counters.busy_cycles += cycles;
                self.waiting[NETWORK] -= 1;
                self.sending[port] = Some(edge.saturating_add(cycles - 1));
            }
            if pins.link(port).is_some() {
                self.sending[port] = None;
            }
            let stalled = pins.stalled(port);
            for (channel, counters) in links.iter_mut().enumerate() {
                counters.stall_cycles += stalled >> channel & 1;
            }
        }
        let faults = &mut self.counters.faults;
        if let Some(address) = pins.dropped() {
            faults.dropped_writes += 1;
            faults.first_dropped_write.get_or_insert(address);
            self.waiting[HOST] -= 1;
        }
        if let Some(address) = pins.failed() {
            faults.failed_reads += 1;
            faults.first_failed_read.get_or_insert(address);
        }
        faults.unknown_tags += u64::from(moves.lost_in_network + moves.lost_from_host);
    }

    fn is_idle(&self) -> bool {
        self.waiting == [0; 2] && self.sending == [None; LINK_PORTS]
    }
}

/// Returns whether it comes over a link, and so through registers of its link port.
fn of_a_link(input: &Input) -> bool {
    matches!(input, Input::Link { .. } | Input::LinkCredit { .. })
}

/// The edge at which what is on its pin at edge `due` reaches a buffer, or counts.
fn taken_in(due: u64, input: &Input) -> u64 {
    due + if of_a_link(input) { ARRIVAL_CYCLES } else { 0 }
}

impl<D: Device + Send> EngineModel for RtlEngine<D> {
    fn next_cycle(&self) -> Option<u64> {
        let [host_waits, network_waits] = self.waiting.map(|packets| packets > 0);
        if self.changed && (host_waits || network_waits) {
            return Some(self.next_edge);
        }
        let ends = self.sending.iter().flatten().copied();
        let matters = |input: &Input| match input {
            Input::Host(_) | Input::Link { .. } => true,
            Input::HostCredit(_) => host_waits,
            Input::LinkCredit { .. } => network_waits,
        };
        let comes = self.pending.iter().filter(|(_, input)| matters(input));
        let comes = comes.map(|&(due, input)| taken_in(due, &input).max(self.next_edge));
        let arrives = self.arriving.iter().filter(|(_, input)| matters(input));
        let arrives = arrives.map(|&(taken, _)| taken);
        ends.chain(comes).chain(arrives).min()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.pending.push((cycle, input));
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.changed = false;
        while self.next_edge < cycle {
            if self.is_idle() && self.arriving.is_empty() {
                // Only what does nothing before `cycle` can come until then: credits, and a packet
                // of a link into its registers.
                let comes = self.pending.iter().map(|&(due, _)| due);
                let next = comes.min().unwrap_or(cycle);
                self.next_edge = next.clamp(self.next_edge, cycle);
                if self.next_edge == cycle {
                    break;
                }
            }
            self.edge(self.next_edge, out);
            self.next_edge += 1;
        }
        self.edge(cycle, out);
        self.next_edge = cycle + 1;
    }
}

impl<D: Device + Send> Shortcuts for RtlEngine<D> {}

impl<D: Device + Send> Inspect for RtlEngine<D> {
    fn counters(&self) -> Counters {
        self.counters.clone()
    }

    fn is_quiet(&self) -> bool {
        let comes = |input: &Input| matches!(input, Input::Host(_) | Input::Link { .. });
        let mut inside = self.pending.iter().chain(&self.arriving);
        self.is_idle() && !inside.any(|(_, input)| comes(input))
    }

    fn state_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::engine::Engine;
    use crate::device::{Clocked, Port};
    use sme_sim::families::sme::engine::HtPacket;
    use sme_sim::machine::Machine;

    /// A device that counts its edges.
    struct Counted<D> {
        device: D,
        edges: u64,
    }

    impl<D: Device> Device for Counted<D> {
        fn inputs(&self) -> Vec<Port> {
            self.device.inputs()
        }

        fn outputs(&self) -> Vec<Port> {
            self.device.outputs()
        }

        fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
            self.edges += 1;
            self.device.cycle(inputs, outputs);
        }
    }

    #[test]
    fn an_idle_engine_is_not_clocked() {
        let machine = Machine::builtin("sme-prototype").expect("it is built in");
        let (spec, topology) = (
            sme_sim::families::sme::of(&machine).unwrap(),
            "mesh:2x1".parse().expect("a topology"),
        );
        let rtl = Clocked::new(Engine::new(spec, &topology, 2).expect("few credits"));
        let (device, surroundings) = (
            Counted {
                device: rtl,
                edges: 0,
            },
            Arc::new(Surroundings::new(spec, &topology, 2)),
        );
        let mut engine = RtlEngine::new(device, &surroundings, 0);
        let mut out = Vec::new();
        engine.step(1_000_000, &mut out);
        assert_eq!(engine.device().edges, 1);

        // A read of the other node: clocked while it is inside, then not until its answer comes.
        let read = HtPacket::Read {
            extra_words: 0,
            address: spec.node.global_base + spec.node.shared_bytes,
            enables: 0xff,
            tag: 3,
            trace: 0,
        };
        engine.input(1_000_010, Input::Host(read));
        let mut last = 0;
        while let Some(cycle) = engine.next_cycle() {
            engine.step(cycle, &mut out);
            last = cycle;
        }
        assert!(
            out.iter()
                .any(|output| matches!(output, Output::Link { .. }))
        );
        // One edge for each cycle from that in which it came.
        assert_eq!(engine.device().edges, 1 + last - 1_000_010 + 1);
        engine.step(2_000_000, &mut out);
        assert_eq!(engine.device().edges, 1 + last - 1_000_010 + 2);
    }
}
