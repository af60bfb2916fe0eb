//! The switch: six link ports and the host port, four virtual channels each.
//!
//! ```text
//! cycle 0   a packet is written into its receive buffer; its output port and channel are decided
//! cycle 1   allocation; it moves into the output's transmit FIFO (or the crossbar's input)
//! ```
//!
//! The inputs are the receive buffers, one FIFO per port and virtual channel. In each cycle every
//! output port takes one packet: round robin among the inputs whose first packet wants it and whose
//! virtual channel there has a place. A channel without a place thus holds up no other channel, and
//! the two classes cannot wait for each other. The route is decided hop by hop by [`Router`], when
//! a packet is written into its buffer.

use super::arbiter::round_robin;
use super::wires::{PacketFifos, SWITCH_OUTPUTS, switch_output};
use crate::parts::fabric::{CHANNELS, HOST_PORT, Here, LINK_PORTS, Router};

/// Bit by bit, the inputs.
const INPUTS: u64 = (1 << SWITCH_OUTPUTS) - 1;

/// Registers, apart from the FIFOs.
#[derive(Clone, Debug)]
pub struct Switch {
    here: Here,
    /// The input that each output served last.
    last: [u8; LINK_PORTS + 1],
}

/// The moves of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Inputs that gave a packet away, bit by bit: port · 4 + channel.
    pub freed: u32,
    /// Transmit FIFOs that were empty and got a packet, bit by bit: port · 4 + channel.
    pub begun: u32,
}

impl Switch {
    /// After reset, at `here`.
    pub fn new(here: Here) -> Self {
        Self {
            here,
            last: [SWITCH_OUTPUTS as u8 - 1; LINK_PORTS + 1],
        }
    }

    /// The output, as [`switch_output`] numbers it, of a packet to `target` that is written into
    /// the buffer of a port and channel.
    pub fn output(&self, router: &Router, port: u16, channel: u8, target: u32) -> u16 {
        let (leaves, channel) = router.step(self.here, port, channel, target);
        switch_output(leaves.index(), channel) as u16
    }

    /// One cycle.
    pub fn step(&mut self, fifos: &mut PacketFifos) -> Moves {
        let mut moves = Moves::default();
        let mut inputs = fifos.valid() & INPUTS;
        if inputs.is_power_of_two() {
            // One packet alone, the common case, competes with no other.
            let input = inputs.trailing_zeros() as u8;
            let to = usize::from(fifos.side(usize::from(input)));
            if fifos.is_ready(to) {
                self.pass(input, to, fifos, &mut moves);
            }
            return moves;
        }
        let mut want = [0u32; LINK_PORTS + 1];
        let mut wanted = 0u32;
        while inputs != 0 {
            let input = inputs.trailing_zeros() as usize;
            inputs &= inputs - 1;
            let to = usize::from(fifos.side(input));
            if fifos.is_ready(to) {
                let output = (to - SWITCH_OUTPUTS) / CHANNELS;
                want[output] |= 1 << input;
                wanted |= 1 << output;
            }
        }
        while wanted != 0 {
            let output = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            let input = round_robin(want[output], self.last[output]);
            let to = usize::from(fifos.side(usize::from(input)));
            self.pass(input, to, fifos, &mut moves);
        }
        moves
    }

    /// A packet moves from `input` into `to`, as [`switch_output`] numbers it; which output that
    /// is.
    pub fn serves(&mut self, input: u8, to: usize) -> usize {
        let output = (to - SWITCH_OUTPUTS) / CHANNELS;
        self.last[output] = input;
        output
    }

    fn pass(&mut self, input: u8, to: usize, fifos: &mut PacketFifos, moves: &mut Moves) {
        let output = self.serves(input, to);
        // Only the first packet of a FIFO begins to wait for the link.
        if output < usize::from(HOST_PORT) && fifos.next_valid() >> to & 1 == 0 {
            moves.begun |= 1 << (to - SWITCH_OUTPUTS);
        }
        fifos.transfer(usize::from(input), to, 0);
        moves.freed |= 1 << input;
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Kind, Packet};
    use super::super::wires::{PACKET_FIFOS, switch_input};
    use super::*;
    use crate::parts::fabric::Topology;

    struct Bench {
        switch: Switch,
        router: Router,
        fifos: PacketFifos,
    }

    /// The switch in the middle of a 3×3 mesh, every FIFO four deep.
    fn bench() -> Bench {
        let topology: Topology = "mesh:3x3".parse().expect("a topology");
        let router = Router::new(&topology);
        let fifos = PacketFifos::new(&[4; PACKET_FIFOS]);
        Bench {
            switch: Switch::new(router.here(4)),
            router,
            fifos,
        }
    }

    impl Bench {
        fn put(&mut self, port: u16, channel: u8, target: u32) {
            let kind = if channel < 2 {
                Kind::PostedWrite
            } else {
                Kind::ReadResponse
            };
            let trace = port.into();
            let (flag, tag, enables) = (false, 0, 0);
            let packet = Packet {
                data: 0,
                offset: 0,
                target,
                source: 0,
                trace,
                kind,
                flag,
                tag,
                enables,
            };
            let output = self.switch.output(&self.router, port, channel, target);
            self.fifos.push(switch_input(port, channel), packet, output);
        }

        fn step(&mut self) -> Moves {
            self.fifos.latch();
            self.switch.step(&mut self.fifos)
        }
    }

    #[test]
    fn an_output_takes_one_packet_a_cycle_from_each_input_in_turn() {
        let mut bench = bench();
        for _ in 0..2 {
            for port in [1, 2, 3, HOST_PORT] {
                bench.put(port, 0, 5);
            }
        }
        let out = switch_output(0, 0);
        let mut order = Vec::new();
        while bench.step().freed != 0 {
            bench.fifos.latch();
            order.push(bench.fifos.pop(out).trace);
        }
        assert_eq!(order, [1, 2, 3, 6, 1, 2, 3, 6]);
    }

    #[test]
    fn different_outputs_do_not_wait_for_each_other() {
        let mut bench = bench();
        for (port, target) in [(1, 5), (0, 3), (2, 4), (3, 7), (HOST_PORT, 1)] {
            bench.put(port, 0, target);
        }
        // To x+, x-, the host, y+, y-.
        assert_eq!(bench.step().freed.count_ones(), 5);
    }

    #[test]
    fn responses_pass_where_requests_are_stuck() {
        let mut bench = bench();
        for port in [1, 2] {
            for _ in 0..4 {
                bench.put(port, 0, 5);
            }
            bench.put(port, 2, 5);
        }
        // The transmit FIFO of the requests, four deep, is never emptied.
        let moved = (0..20)
            .map(|_| bench.step().freed.count_ones())
            .sum::<u32>();
        assert_eq!(moved, 4 + 2);
        bench.fifos.latch();
        assert!(!bench.fifos.is_ready(switch_output(0, 0)));
        assert!(bench.fifos.is_valid(switch_output(0, 2)));
    }
}
