//! The engine: its blocks, joined.
//!
//! ```text
//!            ┌────────────────────────── requester ───────┐
//!            │                                            │
//! host <─> ht_port <─── completer <──────────────────── crossbar <──> switch <──> 6 × link_port <─> links
//!            │              ┆ source tags                 │
//!            └────────> responder ────────────────────────┘
//! ```
//!
//! Nothing but wires: every arrow ends in a FIFO of the block it points to. One netlist serves
//! every node of a cluster; the node's number and its coordinates are inputs that never change.
//!
//! A read of another node's memory, without contention (cycles as
//! [`sme_sim::families::sme::engine`] counts them; the link's cycles are those of the prototype):
//!
//! ```text
//! cycle                0   1   2   3   4   5   6   7   8
//! host_in_valid       ▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁    sampled at the end of cycle 0
//! ht_port: receive    ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁    host_out_credit: a place is free
//! requester: nonposted▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁    takes a source tag
//! crossbar: requester ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! switch: host input  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁    its route is known already
//! link_port: transmit ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁    begun
//! link_out_valid      ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔    its last bytes leave
//! ```

use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::Kind;
use sme_sim::families::sme::spec::{ClusterSpec, Forwarding};
use sme_sim::parts::fabric::{LINK_PORTS, Topology, TopologyKind};

use crate::beat::{DoublewordsBeat, PacketBeat};
use crate::blocks::MAX_PLACES;
use crate::blocks::completer::Completer;
use crate::blocks::crossbar::Crossbar;
use crate::blocks::ht_port::HtPort;
use crate::blocks::link_port::{LinkPort, MAX_CYCLES};
use crate::blocks::requester::Requester;
use crate::blocks::responder::Responder;
use crate::blocks::switch::Switch;
use crate::blocks::turns::exists;
use crate::device::{Clocked, Device};

/// One engine of a cluster.
#[derive(LogicBlock)]
pub struct Engine {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Brings every register that says what is valid into its initial state; packets in registers
    /// and memories stay.
    pub reset: Signal<In, Bit>,
    /// The node's number.
    pub node: Signal<In, Bits<20>>,
    /// The node's coordinate in the first dimension.
    pub x: Signal<In, Bits<20>>,
    /// In the second.
    pub y: Signal<In, Bits<20>>,
    /// In the third.
    pub z: Signal<In, Bits<20>>,

    /// A packet comes from the host, which holds a credit for it.
    pub host_in_valid: Signal<In, Bit>,
    /// The packet from the host.
    pub host_in_data: Signal<In, DoublewordsBeat>,
    /// The host has a place again: posted, non-posted, response.
    pub host_in_credit: Signal<In, Bits<3>>,
    /// A packet goes to the host.
    pub host_out_valid: Signal<Out, Bit>,
    /// The packet to the host.
    pub host_out_data: Signal<Out, DoublewordsBeat>,
    /// The engine has a place again, by channel.
    pub host_out_credit: Signal<Out, Bits<3>>,

    /// The last bytes of a packet come over the link.
    pub link_in_valid: [Signal<In, Bit>; 6],
    /// Its virtual channel.
    pub link_in_channel: [Signal<In, Bits<2>>; 6],
    /// The packet, apart from its CRC.
    pub link_in_data: [Signal<In, PacketBeat>; 6],
    /// Its CRC.
    pub link_in_crc: [Signal<In, Bits<16>>; 6],
    /// The receiver has a place again, by virtual channel.
    pub link_in_credit: [Signal<In, Bits<4>>; 6],
    /// The last bytes of a packet leave over the link.
    pub link_out_valid: [Signal<Out, Bit>; 6],
    /// Its virtual channel.
    pub link_out_channel: [Signal<Out, Bits<2>>; 6],
    /// The packet, apart from its CRC.
    pub link_out_data: [Signal<Out, PacketBeat>; 6],
    /// Its CRC.
    pub link_out_crc: [Signal<Out, Bits<16>>; 6],
    /// The switch's buffer has a place again, by virtual channel.
    pub link_out_credit: [Signal<Out, Bits<4>>; 6],

    /// The channel that begins a packet in this cycle.
    pub begun: [Signal<Out, Bits<4>>; 6],
    /// A packet with a wrong CRC came and was dropped.
    pub crc_error: [Signal<Out, Bit>; 6],
    /// A write to an address of no node is dropped.
    pub dropped_valid: Signal<Out, Bit>,
    /// A read of an address of no node is answered with an error.
    pub failed_valid: Signal<Out, Bit>,
    /// Responses, of the network and of the host, whose tags no read held.
    pub unknown_tags: Signal<Out, Bits<2>>,

    // The outputs below are for the simulator, which the cycle model tells otherwise.
    /// The address of the dropped write.
    pub dropped_data: Signal<Out, Bits<64>>,
    /// The address of the failed read.
    pub failed_data: Signal<Out, Bits<64>>,
    /// The channels that have a packet waiting for the link.
    pub waiting: [Signal<Out, Bits<4>>; 6],
    /// The packet that begins is a posted write, the longest.
    pub begun_write: [Signal<Out, Bit>; 6],
    /// Some packet moves on in this cycle, or a tag can be taken from the next cycle on.
    pub moved: Signal<Out, Bit>,
    /// A request of the host moves on towards the network.
    pub requested: Signal<Out, Bit>,
    /// The responder takes in an answer of the host's memory whose read it finds.
    pub responded: Signal<Out, Bit>,
    /// An answer of the network moves on towards the host.
    pub answered: Signal<Out, Bit>,
    /// The completer takes a request.
    pub taken: Signal<Out, Bit>,
    /// The node it came from.
    pub taken_source: Signal<Out, Bits<20>>,
    /// Whether it is a read.
    pub taken_read: Signal<Out, Bit>,
    /// A response of the network had a tag that no read held.
    pub unknown_response: Signal<Out, Bit>,

    ht_port: HtPort,
    requester: Requester,
    completer: Completer,
    responder: Responder,
    crossbar: Crossbar,
    switch: Switch,
    /// Six; on the heap, since an engine in one piece is too large for a stack.
    link_ports: Vec<LinkPort>,
    /// Whether there are links at a port, at any position; where there are none, nothing arrives.
    linked: [Constant<Bit>; 6],
    /// A packet moves through the switch or a link port.
    switching: Signal<Local, Bit>,
    /// A packet moves through the crossbar.
    forwarding: Signal<Local, Bit>,
}

/// The reason why there is no RTL for a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// A channel has more credits than the RTL's buffers have places.
    #[error("{key} is {value}; the RTL's buffers hold at most {MAX_PLACES}")]
    Credits {
        /// Key in the machine file.
        key: &'static str,
        /// Its value.
        value: u32,
    },
    /// The engine's own switch routes in a mesh or torus only.
    #[error("there is no RTL for {shape} networks, only for meshes and tori")]
    Network {
        /// The network's kind.
        shape: TopologyKind,
    },
    /// A read asks for more than the RTL's packets have room for.
    #[error("uncached.load_payload is {bytes} B; the RTL's packets carry 8 B")]
    LongLoads {
        /// Bytes that a load of a line fill carries.
        bytes: u64,
    },
    /// A switch sends a packet on before all of it has come.
    #[error("link.forwarding is cut-through; the RTL's switches store and forward")]
    CutThrough,
    /// A link is so slow that the RTL's counter of its cycles overflows.
    #[error(
        "at link.bandwidth a packet takes {cycles} cycles; the RTL counts to {}",
        MAX_CYCLES
    )]
    SlowLink {
        /// Cycles of the longest packet.
        cycles: u64,
    },
}

impl Engine {
    /// The engines of a cluster of `hosts` nodes in `topology`, which
    /// [`Design::new`](sme_sim::families::sme::engine::Design::new) must not refuse.
    ///
    /// # Errors
    /// See [`Unsupported`].
    pub fn new(spec: &ClusterSpec, topology: &Topology, hosts: u32) -> Result<Self, Unsupported> {
        if topology.is_indirect() {
            let shape = topology.kind();
            return Err(Unsupported::Network { shape });
        }
        let bytes = spec.uncached.load_bytes;
        if bytes > 8 {
            return Err(Unsupported::LongLoads { bytes });
        }
        if spec.link.forwarding == Forwarding::CutThrough {
            return Err(Unsupported::CutThrough);
        }
        let within = |key, value| {
            if value <= MAX_PLACES.into() {
                Ok(value as u16)
            } else {
                Err(Unsupported::Credits { key, value })
            }
        };
        let host_credits = [
            within("host.posted_credits", spec.host.posted_credits)?,
            within("host.nonposted_credits", spec.host.nonposted_credits)?,
            within("host.response_credits", spec.host.response_credits)?,
        ];
        let link_credits = within("link.channel_credits", spec.link.channel_credits)?;
        let shared_bits = spec.node.shared_bytes.trailing_zeros();
        let link = sme_sim::families::sme::engine::link_port::LinkPortSpec::new(
            spec.link.bytes_per_second,
            spec.engine.clock.hz(),
            link_credits,
        );
        let cycles = link.cycles(Kind::PostedWrite.bytes());
        if cycles > MAX_CYCLES {
            return Err(Unsupported::SlowLink { cycles });
        }
        Ok(Self {
            clock: Signal::default(),
            reset: Signal::default(),
            node: Signal::default(),
            x: Signal::default(),
            y: Signal::default(),
            z: Signal::default(),
            host_in_valid: Signal::default(),
            host_in_data: Signal::default(),
            host_in_credit: Signal::default(),
            host_out_valid: Signal::default(),
            host_out_data: Signal::default(),
            host_out_credit: Signal::default(),
            link_in_valid: Default::default(),
            link_in_channel: Default::default(),
            link_in_data: Default::default(),
            link_in_crc: Default::default(),
            link_in_credit: Default::default(),
            link_out_valid: Default::default(),
            link_out_channel: Default::default(),
            link_out_data: Default::default(),
            link_out_crc: Default::default(),
            link_out_credit: Default::default(),
            begun: Default::default(),
            waiting: Default::default(),
            begun_write: Default::default(),
            crc_error: Default::default(),
            dropped_valid: Signal::default(),
            dropped_data: Signal::default(),
            failed_valid: Signal::default(),
            failed_data: Signal::default(),
            unknown_tags: Signal::default(),
            moved: Signal::default(),
            requested: Signal::default(),
            responded: Signal::default(),
            answered: Signal::default(),
            taken: Signal::default(),
            taken_source: Signal::default(),
            taken_read: Signal::default(),
            unknown_response: Signal::default(),
            switching: Signal::default(),
            forwarding: Signal::default(),
            ht_port: HtPort::new(host_credits),
            requester: Requester::new(spec.node.global_base, shared_bits, hosts, spec.engine.tags),
            completer: Completer::new(spec.node.private_bytes),
            responder: Responder::new(),
            crossbar: Crossbar::new(),
            switch: Switch::new(topology, link_credits),
            link_ports: (0..LINK_PORTS)
                .map(|_| LinkPort::new(link_credits, link.cycles(16), link.cycles(24)))
                .collect(),
            linked: std::array::from_fn(|port| Constant::new(exists(topology, port))),
        })
    }

    /// Its block of this name, alone; the whole where that is the name. None where it has several
    /// of the kind, or none.
    pub fn into_part(self, name: &str) -> Option<Box<dyn Device>> {
        Some(match name {
            "engine" => Box::new(Clocked::new(self)),
            "ht_port" => Box::new(Clocked::new(self.ht_port)),
            "requester" => Box::new(Clocked::new(self.requester)),
            "completer" => Box::new(Clocked::new(self.completer)),
            "responder" => Box::new(Clocked::new(self.responder)),
            "crossbar" => Box::new(Clocked::new(self.crossbar)),
            "switch" => Box::new(Clocked::new(self.switch)),
            // They are all equal.
            "link_port" => Box::new(Clocked::new(self.link_ports.into_iter().next()?)),
            _ => return None,
        })
    }
}

impl Logic for Engine {
    #[hdl_gen]
    fn update(&mut self) {
        self.ht_port.clock.next = self.clock.val();
        self.requester.clock.next = self.clock.val();
        self.completer.clock.next = self.clock.val();
        self.responder.clock.next = self.clock.val();
        self.crossbar.clock.next = self.clock.val();
        self.switch.clock.next = self.clock.val();
        self.ht_port.reset.next = self.reset.val();
        self.requester.reset.next = self.reset.val();
        self.completer.reset.next = self.reset.val();
        self.responder.reset.next = self.reset.val();
        self.crossbar.reset.next = self.reset.val();
        self.switch.reset.next = self.reset.val();
        self.requester.node.next = self.node.val();
        self.responder.node.next = self.node.val();
        self.completer.node.next = self.node.val();
        self.switch.x.next = self.x.val();
        self.switch.y.next = self.y.val();
        self.switch.z.next = self.z.val();

        // Host and HyperTransport port.
        self.ht_port.host_valid.next = self.host_in_valid.val();
        self.ht_port.host_data.next = self.host_in_data.val();
        self.ht_port.host_credit.next = self.host_in_credit.val();
        self.host_out_valid.next = self.ht_port.host_out_valid.val();
        self.host_out_data.next = self.ht_port.host_out_data.val();
        self.host_out_credit.next = self.ht_port.credit.val();

        // HyperTransport port and requester.
        self.requester.posted_valid.next = self.ht_port.posted_valid.val();
        self.requester.posted_data.next = self.ht_port.posted_data.val();
        self.ht_port.posted_ready.next = self.requester.posted_ready.val();
        self.requester.nonposted_valid.next = self.ht_port.nonposted_valid.val();
        self.requester.nonposted_data.next = self.ht_port.nonposted_data.val();
        self.requester.nonposted_before.next = self.ht_port.nonposted_before.val();
        self.ht_port.nonposted_ready.next = self.requester.nonposted_ready.val();
        self.ht_port.answer_valid.next = self.requester.answer_valid.val();
        self.ht_port.answer_data.next = self.requester.answer_data.val();
        self.requester.answer_ready.next = self.ht_port.answer_ready.val();

        // HyperTransport port and completer, responder.
        self.ht_port.write_valid.next = self.completer.write_valid.val();
        self.ht_port.write_data.next = self.completer.write_data.val();
        self.completer.write_ready.next = self.ht_port.write_ready.val();
        self.ht_port.read_valid.next = self.completer.read_valid.val();
        self.ht_port.read_data.next = self.completer.read_data.val();
        self.completer.read_ready.next = self.ht_port.read_ready.val();
        self.responder.memory_valid.next = self.ht_port.memory_valid.val();
        self.responder.memory_data.next = self.ht_port.memory_data.val();
        self.ht_port.memory_ready.next = self.responder.memory_ready.val();
        self.completer.origin_lookup.next = self.responder.origin_lookup.val();
        self.completer.origin_free.next = self.responder.origin_free.val();
        self.responder.origin_used.next = self.completer.origin_used.val();
        self.responder.origin_source.next = self.completer.origin_source.val();
        self.responder.origin_tag.next = self.completer.origin_tag.val();
        self.responder.origin_stays.next = self.completer.origin_stays.val();

        // Crossbar and its neighbours.
        self.crossbar.requester_valid.next = self.requester.request_valid.val();
        self.crossbar.requester_data.next = self.requester.request_data.val();
        self.crossbar.requester_stays.next = self.requester.request_stays.val();
        self.requester.request_ready.next = self.crossbar.requester_ready.val();
        self.crossbar.responder_valid.next = self.responder.response_valid.val();
        self.crossbar.responder_data.next = self.responder.response_data.val();
        self.crossbar.responder_stays.next = self.responder.response_stays.val();
        self.responder.response_ready.next = self.crossbar.responder_ready.val();
        self.completer.request_valid.next = self.crossbar.completer_valid.val();
        self.completer.request_data.next = self.crossbar.completer_data.val();
        self.crossbar.completer_ready.next = self.completer.request_ready.val();
        self.requester.response_valid.next = self.crossbar.answer_valid.val();
        self.requester.response_data.next = self.crossbar.answer_data.val();
        self.crossbar.answer_ready.next = self.requester.response_ready.val();

        // Crossbar and switch.
        self.switch.request_valid.next = self.crossbar.request_valid.val();
        self.switch.request_data.next = self.crossbar.request_data.val();
        self.crossbar.request_ready.next = self.switch.request_ready.val();
        self.switch.response_valid.next = self.crossbar.response_valid.val();
        self.switch.response_data.next = self.crossbar.response_data.val();
        self.crossbar.response_ready.next = self.switch.response_ready.val();
        self.crossbar.switch_request_valid.next = self.switch.request_out_valid.val();
        self.crossbar.switch_request_packet.next = self.switch.request_out_packet.val();
        self.switch.request_out_ready.next = self.crossbar.switch_request_ready.val();
        self.crossbar.switch_response_valid.next = self.switch.response_out_valid.val();
        self.crossbar.switch_response_packet.next = self.switch.response_out_packet.val();
        self.switch.response_out_ready.next = self.crossbar.switch_response_ready.val();

        // Switch, link ports, links.
        for i in 0..6 {
            self.link_ports[i].clock.next = self.clock.val();
            self.link_ports[i].reset.next = self.reset.val();
            self.link_ports[i].transmit_valid.next = self.switch.transmit_valid[i].val();
            self.link_ports[i].transmit_packet.next = self.switch.transmit_packet[i].val();
            self.switch.transmit_ready[i].next = self.link_ports[i].transmit_ready.val();
            self.switch.arriving_on[i].next = self.link_ports[i].arriving_on.val();
            self.switch.arriving_target[i].next = self.link_ports[i].arriving_target.val();
            self.switch.receive_valid[i].next = self.link_ports[i].receive_valid.val();
            self.switch.receive_data[i].next = self.link_ports[i].receive_data.val();
            self.link_out_credit[i].next = self.switch.credit[i].val();
            self.link_ports[i].link_credit.next = self.link_in_credit[i].val();
            self.link_ports[i].link_in_valid.next =
                self.link_in_valid[i].val() & self.linked[i].val();
            self.link_ports[i].link_in_channel.next = self.link_in_channel[i].val();
            self.link_ports[i].link_in_data.next = self.link_in_data[i].val();
            self.link_ports[i].link_in_crc.next = self.link_in_crc[i].val();
            self.link_out_valid[i].next = self.link_ports[i].link_out_valid.val();
            self.link_out_channel[i].next = self.link_ports[i].link_out_channel.val();
            self.link_out_data[i].next = self.link_ports[i].link_out_data.val();
            self.link_out_crc[i].next = self.link_ports[i].link_out_crc.val();
            self.begun[i].next = self.link_ports[i].begun.val();
            self.waiting[i].next = self.link_ports[i].waiting.val();
            self.begun_write[i].next = self.link_ports[i].begun_write.val();
            self.crc_error[i].next = self.link_ports[i].crc_error.val();
        }

        // The moves.
        self.switching.next = (self.switch.request_out_valid.val()
            & self.crossbar.switch_request_ready.val())
            | (self.switch.response_out_valid.val() & self.crossbar.switch_response_ready.val());
        for i in 0..6 {
            self.switching.next = self.switching.val()
                | self.switch.transmit_valid[i].val().any()
                | self.link_ports[i].begun.val().any()
                | self.link_ports[i].link_out_valid.val();
        }
        self.forwarding.next = (self.crossbar.request_valid.val()
            & self.switch.request_ready.val())
            | (self.crossbar.response_valid.val() & self.switch.response_ready.val())
            | (self.crossbar.completer_valid.val() & self.completer.request_ready.val())
            | (self.crossbar.answer_valid.val() & self.requester.response_ready.val());
        self.requested.next =
            self.requester.request_valid.val() & self.crossbar.requester_ready.val();
        self.responded.next = self.ht_port.memory_valid.val()
            & self.responder.memory_ready.val()
            & !self.responder.unknown_tag.val();
        self.answered.next = self.requester.answer_valid.val()
            & self.ht_port.answer_ready.val()
            & !self.requester.failed_valid.val();
        self.unknown_response.next = self.requester.unknown_tag.val();
        self.taken_source.next = self.completer.request_source.val();
        self.taken_read.next = self.completer.read_valid.val() & self.ht_port.read_ready.val();
        self.taken.next = (self.completer.write_valid.val() & self.ht_port.write_ready.val())
            | (self.completer.read_valid.val() & self.ht_port.read_ready.val());
        self.moved.next = self.switching.val()
            | self.forwarding.val()
            | self.ht_port.host_out_valid.val()
            | self.ht_port.credit.val().any()
            | (self.requester.request_valid.val() & self.crossbar.requester_ready.val())
            | (self.responder.response_valid.val() & self.crossbar.responder_ready.val())
            | (self.requester.answer_valid.val() & self.ht_port.answer_ready.val())
            | (self.completer.write_valid.val() & self.ht_port.write_ready.val())
            | (self.completer.read_valid.val() & self.ht_port.read_ready.val())
            | self.requester.dropped_valid.val()
            | self.requester.unknown_tag.val()
            | self.requester.tag_returns.val()
            | self.completer.tag_returns.val();

        // The faults.
        self.dropped_valid.next = self.requester.dropped_valid.val();
        self.dropped_data.next = self.requester.dropped_data.val();
        self.failed_valid.next = self.requester.failed_valid.val();
        self.failed_data.next = self.requester.failed_data.val();
        if self.requester.unknown_tag.val() & self.responder.unknown_tag.val() {
            self.unknown_tags.next = 2.into();
        } else if self.requester.unknown_tag.val() | self.responder.unknown_tag.val() {
            self.unknown_tags.next = 1.into();
        } else {
            self.unknown_tags.next = 0.into();
        }
    }
}

crate::pins!(Engine {
    in: node, x, y, z, host_in_valid, host_in_data, host_in_credit, link_in_valid, link_in_channel,
        link_in_data, link_in_crc, link_in_credit;
    out: host_out_valid, host_out_data, host_out_credit, link_out_valid, link_out_channel,
        link_out_data, link_out_crc, link_out_credit, begun, crc_error, dropped_valid,
        failed_valid, unknown_tags, dropped_data, failed_data, waiting, begun_write, moved, requested, responded,
        answered, taken, taken_source, taken_read, unknown_response
});
