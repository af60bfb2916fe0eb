//! The switch: six link ports and the host port, four virtual channels each.
//!
//! ```text
//! arriving ────> route ─ register ─┐  way  ┌ 26 × switch_input ┐ head         ┌ 7 × switch_output ┐
//! receive ─────────────────────────┴──────>│ routes, pointers  ├──> request ─>│ round robin       ├──> transmit_valid
//! request ─────> route ───────────────────>│                   │              │                   │
//! response ────> route ───────────────────>└───┬───────────^───┘  & place     └──┬──────────┬─────┘
//!                                              │ addresses └──────── taken ──────┘ grant    │ select: a register
//!                                          ┌───v────────────────────────────────────────────v┐
//!                              packets ───>│ buffers: 26 memories, 8 multiplexers            ├──> transmit_packet
//!                                          └─────────────────────────────────────────────────┘
//! ```
//!
//! A link's packet finds its route a cycle before it is received, as its link port says where it
//! goes; one of the host does while it is written into its receive buffer. There is one for each
//! virtual channel of a link and one for each class of the host. In the next cycle it may leave: an
//! input requests the output of its first packet, and every output takes one of the requests for
//! whose virtual channel it has a place, round robin. So a cycle's outputs follow the registers and
//! the readers' *ready*, and nothing else. The packet itself follows a cycle later, when the winner
//! is in a register; the FIFOs behind a switch know that
//! ([`LateFifo`](crate::blocks::late_fifo::LateFifo)).
//!
//! ```text
//! cycle                0   1   2   3   4
//! arriving_on[1]       1   0   0   0   0     and one more in the cycle before
//! receive_valid[1]     1   1   0   0   0     two packets from x-, channel 0, to y+
//! receive_valid[3]     1   0   0   0   0     one from y- to y+
//! transmit_valid[2]    0   1   1   1   0
//! transmit_packet[2]           a   c   b
//! credit[1]            0   1   0   1   0     in cycle 2 y- has its turn
//! credit[3]            0   0   1   0   0
//! ```
//!
//! Input 4 · p + c is channel c of link port p; the host's requests are input 24, its responses 25.
//! A sender without a place must not write: the links' credits see to that. Which of these inputs
//! there are, and which outputs they reach, depends on the topology: see [`Turns`].

use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::wires::DEPTH;
use sme_sim::parts::fabric::Topology;

use crate::beat::PacketBeat;
use crate::blocks::MAX_PLACES;
use crate::blocks::primitive::buffers::{INPUTS, OUTPUTS, READERS, WRITERS};
use crate::blocks::primitive::{Buffers, Stages};
use crate::blocks::resting::Resting;
use crate::blocks::router::Route;
use crate::blocks::switch_input::SwitchInput;
use crate::blocks::switch_output::SwitchOutput;
use crate::blocks::turns::Turns;

/// The host's request input; its responses are the next.
const HOST_INPUT: usize = INPUTS - 2;

/// The switch of a position.
#[derive(Clone, Debug, LogicBlock)]
pub struct Switch {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties every buffer.
    pub reset: Signal<In, Bit>,
    /// The position's coordinate along x.
    pub x: Signal<In, Bits<20>>,
    /// Along y.
    pub y: Signal<In, Bits<20>>,
    /// Along z.
    pub z: Signal<In, Bits<20>>,
    /// The channel on which a packet may be received from a link in the next cycle, one-hot.
    pub arriving_on: [Signal<In, Bits<4>>; 6],
    /// The node that this packet goes to.
    pub arriving_target: [Signal<In, Bits<20>>; 6],
    /// A packet from a link, bit by bit for its virtual channel; at most one in a cycle, and as it
    /// was told of.
    pub receive_valid: [Signal<In, Bits<4>>; 6],
    /// The received packet.
    pub receive_data: [Signal<In, PacketBeat>; 6],
    /// The host side offers a request.
    pub request_valid: Signal<In, Bit>,
    /// The request from the crossbar.
    pub request_data: Signal<In, PacketBeat>,
    /// The request is taken, if valid.
    pub request_ready: Signal<Out, Bit>,
    /// The host side offers a response.
    pub response_valid: Signal<In, Bit>,
    /// The response from the crossbar.
    pub response_data: Signal<In, PacketBeat>,
    /// The response is taken, if valid.
    pub response_ready: Signal<Out, Bit>,
    /// A place of a link's receive buffer is free again.
    pub credit: [Signal<Out, Bits<4>>; 6],
    /// A link port's transmit FIFOs that have a place.
    pub transmit_ready: [Signal<In, Bits<4>>; 6],
    /// The transmit FIFO that is written.
    pub transmit_valid: [Signal<Out, Bits<4>>; 6],
    /// The packet written into one in the cycle before.
    pub transmit_packet: [Signal<Out, PacketBeat>; 6],
    /// The host side takes a request.
    pub request_out_ready: Signal<In, Bit>,
    /// The host side takes a request now, `request_out_packet` in the next cycle.
    pub request_out_valid: Signal<Out, Bit>,
    /// The request that it took in the cycle before.
    pub request_out_packet: Signal<Out, PacketBeat>,
    /// The host side takes a response.
    pub response_out_ready: Signal<In, Bit>,
    /// The same of a response; never together with a request.
    pub response_out_valid: Signal<Out, Bit>,
    /// The response that it took in the cycle before.
    pub response_out_packet: Signal<Out, PacketBeat>,
    // Many and large: on the heap.
    routes: Vec<Resting<Route>>,
    /// The ways of what is received from links.
    pub(crate) ways: [Stages<Bits<8>>; 6],
    inputs: Vec<Resting<SwitchInput>>,
    pub(crate) outputs: Vec<Resting<SwitchOutput>>,
    buffers: Buffers,
    /// By output, the virtual channels that have a place.
    places: [Signal<Local, Bits<4>>; OUTPUTS],
    /// The way of an input's first packet.
    head: Signal<Local, Bits<8>>,
    request: [Signal<Local, Bits<INPUTS>>; OUTPUTS],
    crossed: Signal<Local, Bits<INPUTS>>,
    written: Signal<Local, Bits<INPUTS>>,
    taken: Signal<Local, Bits<INPUTS>>,
    channel: [Signal<Local, Bits<2>>; 6],
    freed: [Signal<Local, Bits<4>>; 6],
    /// The arriving and the received packets, where packets can come.
    arrives: [Signal<Local, Bits<4>>; 6],
    received: [Signal<Local, Bits<4>>; 6],
    /// The virtual channels that a link has.
    channels: [Constant<Bits<4>>; 6],
    /// The place where the packets of a route arrive.
    pub(crate) arrived: [Constant<Bits<3>>; WRITERS],
}

impl Switch {
    /// A switch of `topology`, with receive buffers of `link_credits` places, 1 to
    /// [`MAX_PLACES`].
    pub fn new(topology: &Topology, link_credits: u16) -> Self {
        Self::with(topology, link_credits, INPUTS - 1, Turns::of(topology))
    }

    /// The same, with another initial last winner of every output, or other turns.
    pub(crate) fn with(topology: &Topology, link_credits: u16, last: usize, turns: Turns) -> Self {
        assert!((1..=MAX_PLACES).contains(&link_credits));
        let depths = std::array::from_fn(|input| {
            usize::from(if input < HOST_INPUT {
                link_credits
            } else {
                DEPTH
            })
        });
        let is_response = |input: usize| input % 4 >= 2 || input == HOST_INPUT + 1;
        let responses = (0..INPUTS).fold(0, |mask, i| mask | u32::from(is_response(i)) << i);
        let mut reads = [0; READERS];
        reads[..OUTPUTS].copy_from_slice(&turns.into);
        reads[6] = turns.into[6] & !responses;
        reads[7] = turns.into[6] & responses;
        let input = |input: usize| {
            Resting::new(match input {
                ..HOST_INPUT => SwitchInput::of_link(depths[input], turns.ways(input)),
                _ => SwitchInput::of_host(depths[input], turns.ways(input)),
            })
        };
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            x: Signal::default(),
            y: Signal::default(),
            z: Signal::default(),
            arriving_on: Default::default(),
            arriving_target: Default::default(),
            receive_valid: Default::default(),
            receive_data: Default::default(),
            request_valid: Signal::default(),
            request_data: Signal::default(),
            request_ready: Signal::default(),
            response_valid: Signal::default(),
            response_data: Signal::default(),
            response_ready: Signal::default(),
            credit: Default::default(),
            transmit_ready: Default::default(),
            transmit_valid: Default::default(),
            transmit_packet: Default::default(),
            request_out_ready: Signal::default(),
            request_out_valid: Signal::default(),
            request_out_packet: Signal::default(),
            response_out_ready: Signal::default(),
            response_out_valid: Signal::default(),
            response_out_packet: Signal::default(),
            routes: (0..WRITERS)
                .map(|_| Resting::new(Route::new(topology)))
                .collect(),
            ways: std::array::from_fn(|_| Stages::new(1, 0.into())),
            inputs: (0..INPUTS).map(input).collect(),
            outputs: (turns.into.iter())
                .map(|&into| Resting::new(SwitchOutput::new(last, responses, into, turns.crossing)))
                .collect(),
            buffers: Buffers::new(&depths, &reads),
            places: Default::default(),
            head: Signal::default(),
            request: Default::default(),
            crossed: Signal::default(),
            written: Signal::default(),
            taken: Signal::default(),
            channel: Default::default(),
            freed: Default::default(),
            arrives: Default::default(),
            received: Default::default(),
            channels: std::array::from_fn(|port| {
                Constant::new((turns.inputs() >> (4 * port) & 15).to_bits())
            }),
            arrived: std::array::from_fn(|route| Constant::new(route.min(6).to_bits())),
        }
    }
}

impl Logic for Switch {
    #[hdl_gen]
    fn update(&mut self) {
        // Routes.
        for i in 0..8 {
            self.routes[i].clock.next = self.clock.val();
            self.routes[i].reset.next = self.reset.val();
            self.routes[i].x.next = self.x.val();
            self.routes[i].y.next = self.y.val();
            self.routes[i].z.next = self.z.val();
            self.routes[i].arrived.next = self.arrived[i].val();
        }
        for p in 0..6 {
            self.arrives[p].next = self.arriving_on[p].val() & self.channels[p].val();
            self.channel[p].next = 0.into();
            self.channel[p].next = self.channel[p].val().replace_bit(
                0,
                self.arrives[p].val().get_bit(1) | self.arrives[p].val().get_bit(3),
            );
            self.channel[p].next = self.channel[p].val().replace_bit(
                1,
                self.arrives[p].val().get_bit(2) | self.arrives[p].val().get_bit(3),
            );
            self.routes[p].channel.next = self.channel[p].val();
            self.routes[p].target.next = self.arriving_target[p].val();
            self.ways[p].clock.next = self.clock.val();
            self.ways[p].reset.next = self.reset.val();
            self.ways[p].d.next = self.routes[p].way.val();
            self.received[p].next = self.receive_valid[p].val() & self.channels[p].val();
            self.buffers.write_data[p].next = self.receive_data[p].val();
        }
        self.routes[6].target.next = self.request_data.val().get_value_target();
        self.routes[7].target.next = self.response_data.val().get_value_target();
        self.routes[6].channel.next = 0.into();
        self.routes[7].channel.next = 2.into();
        self.buffers.write_data[6].next = self.request_data.val();
        self.buffers.write_data[7].next = self.response_data.val();

        // Places behind the outputs.
        for o in 0..6 {
            self.places[o].next = self.transmit_ready[o].val();
        }
        self.places[6].next = 0.into();
        self.places[6].next = self.places[6]
            .val()
            .replace_bit(0, self.request_out_ready.val());
        self.places[6].next = self.places[6]
            .val()
            .replace_bit(2, self.response_out_ready.val());

        // Requests: an input's first packet, if there is one, to its output.
        for o in 0..7 {
            self.request[o].next = 0.into();
        }
        self.crossed.next = 0.into();
        for i in 0..26 {
            self.head.next = self.inputs[i].head.val();
            if self.head.val().any() {
                self.crossed.next = (self.crossed.val()).replace_bit(i, self.head.val().get_bit(7));
                for o in 0..7 {
                    self.request[o].next =
                        (self.request[o].val()).replace_bit(i, self.head.val().get_bit(o));
                }
            }
        }

        // Allocation.
        self.taken.next = 0.into();
        for o in 0..7 {
            self.outputs[o].clock.next = self.clock.val();
            self.outputs[o].reset.next = self.reset.val();
            self.outputs[o].request.next = self.request[o].val();
            self.outputs[o].crossed.next = self.crossed.val();
            self.outputs[o].places.next = self.places[o].val();
            self.buffers.select[o].next = self.outputs[o].select.val();
            self.taken.next = self.taken.val() | self.outputs[o].grant.val();
        }
        for o in 0..6 {
            self.transmit_valid[o].next = self.outputs[o].valid.val();
            self.transmit_packet[o].next = self.buffers.data[o].val();
        }
        self.request_out_valid.next = self.outputs[6].valid.val().get_bit(0);
        self.response_out_valid.next = self.outputs[6].valid.val().get_bit(2);
        // The host's output has a multiplexer for each class: half as deep, and so are the ways on.
        self.buffers.select[7].next = self.outputs[6].select.val();
        self.request_out_packet.next = self.buffers.data[6].val();
        self.response_out_packet.next = self.buffers.data[7].val();

        // Buffers.
        self.buffers.clock.next = self.clock.val();
        for p in 0..6 {
            self.freed[p].next = 0.into();
            for c in 0..4 {
                self.inputs[p * 4 + c].write.next = self.received[p].val().get_bit(c);
                self.inputs[p * 4 + c].way.next = self.ways[p].q.val();
                self.freed[p].next =
                    (self.freed[p].val()).replace_bit(c, self.taken.val().get_bit(p * 4 + c));
            }
            self.credit[p].next = self.freed[p].val();
        }
        self.inputs[24].write.next = self.request_valid.val();
        self.inputs[24].way.next = self.routes[6].way.val();
        self.request_ready.next = self.inputs[24].ready.val();
        self.inputs[25].write.next = self.response_valid.val();
        self.inputs[25].way.next = self.routes[7].way.val();
        self.response_ready.next = self.inputs[25].ready.val();
        self.written.next = 0.into();
        for i in 0..26 {
            self.inputs[i].clock.next = self.clock.val();
            self.inputs[i].reset.next = self.reset.val();
            self.inputs[i].taken.next = self.taken.val().get_bit(i);
            self.written.next = (self.written.val()).replace_bit(i, self.inputs[i].written.val());
            self.buffers.write_address[i].next = self.inputs[i].write_address.val();
            self.buffers.read_address[i].next = self.inputs[i].read_address.val();
        }
        self.buffers.write.next = self.written.val();
    }
}
