//! The switch: six link ports and the host port, four virtual channels each.
//!
//! ```text
//! cycle 0   a packet is written into its receive buffer; its output port and channel are decided
//! cycle 1   allocation; it moves into the output's transmit FIFO (or the crossbar's input)
//! ```
//!
//! The inputs are the receive buffers, one FIFO per port and virtual channel. In each cycle every
//! output port takes one packet: round robin among the inputs whose first packet wants it and
//! whose virtual channel there has a place. A channel without a place thus holds up nobody else,
//! and the two classes cannot wait for each other. The route is decided hop by hop by
//! [`Router`](crate::fabric::Router), when a packet is written into its buffer.

use super::arbiter::round_robin;
use super::wires::{PacketFifos, SWITCH_OUTPUTS, switch_output};
use crate::fabric::{CHANNELS, HOST_PORT, Here, LINK_PORTS, Router};

/// Bit by bit, the inputs.
const INPUTS: u64 = (1 << SWITCH_OUTPUTS) - 1;

/// Registers, apart from the FIFOs.
#[derive(Clone, Debug)]
pub struct Switch {
    here: Here,
    /// The input that each output served last.
    last: [u8; LINK_PORTS + 1],
}

/// What moved in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Inputs that gave a packet away, bit by bit: port · 4 + channel.
    pub freed: u32,
    /// Transmit FIFOs that were empty and got a packet, bit by bit, likewise.
    pub begun: u32,
}

impl Switch {
    /// After reset, at `here`.
    pub fn new(here: Here) -> Self {
        Self { here, last: [SWITCH_OUTPUTS as u8 - 1; LINK_PORTS + 1] }
    }

    /// The output, as [`switch_output`] numbers it, of a packet to `target` that is written into
    /// the buffer of a port and channel.
    pub fn output(&self, router: &Router, port: u8, channel: u8, target: u32) -> u16 {
        let (leaves, channel) = router.step(self.here, port, channel, target);
        switch_output(leaves.index(), channel) as u16
    }

    /// One cycle.
    pub fn step(&mut self, fifos: &mut PacketFifos) -> Moves {
        let mut moves = Moves::default();
        let mut inputs = fifos.valid() & INPUTS;
        if inputs == 0 {
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
            self.last[output] = input;
            let from = usize::from(input);
            let to = usize::from(fifos.side(from));
            // Only the first packet of a FIFO begins to wait for the link.
            if output < usize::from(HOST_PORT) && fifos.next_valid() >> to & 1 == 0 {
                moves.begun |= 1 << (to - SWITCH_OUTPUTS);
            }
            fifos.transfer(from, to, 0);
            moves.freed |= 1 << input;
        }
        moves
    }
}
