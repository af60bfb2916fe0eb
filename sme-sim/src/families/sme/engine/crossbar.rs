//! The on-chip crossbar: joins requester, completer, responder and switch.
//!
//! ```text
//! requests:   requester ──┬─> completer   responses:  responder ──┬─> requester
//!             switch ─────┘                           switch ─────┘
//!             requester ────> switch                  responder ────> switch
//! ```
//!
//! A packet to the own node turns round here and never sees the switch. Requests and responses have
//! separate FIFOs and outputs throughout; each output takes one packet per cycle, and where two
//! want it they take turns.

use super::wires::{
    COMPLETER, CROSSBAR_REQUESTER, CROSSBAR_RESPONDER, CROSSBAR_SWITCH_REQUEST,
    CROSSBAR_SWITCH_RESPONSE, PacketFifos, REQUESTER_RESPONSE, switch_input,
};
use crate::parts::fabric::{Class, HOST_PORT};

/// Registers, apart from the FIFOs.
#[derive(Clone, Debug)]
pub struct Crossbar {
    node: u32,
    /// Of each class: whether the last packet to the own node came from the switch.
    last_from_switch: [bool; 2],
}

impl Crossbar {
    /// After reset, in node `node`.
    pub fn new(node: u32) -> Self {
        Self {
            node,
            last_from_switch: [true; 2],
        }
    }

    /// One cycle; whether anything changed. `output` tells the switch output that a packet from
    /// the host port's `channel` to a target wants.
    pub fn step(&mut self, packets: &mut PacketFifos, output: impl Fn(u8, u32) -> u16) -> bool {
        let requests = (CROSSBAR_REQUESTER, CROSSBAR_SWITCH_REQUEST, COMPLETER);
        let responses = (
            CROSSBAR_RESPONDER,
            CROSSBAR_SWITCH_RESPONSE,
            REQUESTER_RESPONSE,
        );
        let mut changed = false;
        for (class, (own, switch, home)) in
            [(Class::Request, requests), (Class::Response, responses)]
        {
            // Both offers come from the registers as they were; only then do these change.
            let homeward = self.homeward(class, own, switch, packets);
            let own_target = packets.is_valid(own).then(|| packets.head(own).target);
            if let Some(target) = own_target.filter(|&target| target != self.node) {
                let channel = class.channel(false);
                let input = switch_input(HOST_PORT, channel);
                if packets.is_ready(input) {
                    packets.transfer(own, input, output(channel, target));
                    changed = true;
                }
            }
            if let Some(from) = homeward
                && packets.is_ready(home)
            {
                packets.transfer(from, home, 0);
                self.last_from_switch[class as usize] = from == switch;
                changed = true;
            }
        }
        changed
    }

    /// Returns the input that offers a packet to the own node in this cycle.
    fn homeward(
        &self,
        class: Class,
        own: usize,
        switch: usize,
        packets: &PacketFifos,
    ) -> Option<usize> {
        let from_own = packets.is_valid(own) && packets.head(own).target == self.node;
        match (from_own, packets.is_valid(switch)) {
            (true, true) if self.last_from_switch[class as usize] => Some(own),
            (_, true) => Some(switch),
            (true, false) => Some(own),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Kind, Packet};
    use super::super::wires::PACKET_FIFOS;
    use super::*;

    #[test]
    fn own_packets_and_those_of_the_switch_take_turns() {
        for (class, kind, inputs, home) in [
            (
                Class::Request,
                Kind::PostedWrite,
                [CROSSBAR_REQUESTER, CROSSBAR_SWITCH_REQUEST],
                COMPLETER,
            ),
            (
                Class::Response,
                Kind::ReadResponse,
                [CROSSBAR_RESPONDER, CROSSBAR_SWITCH_RESPONSE],
                REQUESTER_RESPONSE,
            ),
        ] {
            let mut crossbar = Crossbar::new(7);
            let mut fifos = PacketFifos::new(&[4; PACKET_FIFOS]);
            let (data, offset, flag, tag, enables) = (0, 0, false, 0, 0);
            for number in 0..4 {
                for (origin, fifo) in inputs.into_iter().enumerate() {
                    let (source, trace) = (origin as u32, number);
                    let packet = Packet {
                        data,
                        offset,
                        target: 7,
                        source,
                        trace,
                        kind,
                        flag,
                        tag,
                        enables,
                    };
                    fifos.push(fifo, packet, 0);
                }
            }
            let mut order = Vec::new();
            for _ in 0..20 {
                fifos.latch();
                if fifos.is_valid(home) {
                    let packet = fifos.pop(home);
                    order.push((packet.trace, packet.source));
                }
                crossbar.step(&mut fifos, |_, _| {
                    unreachable!("nothing goes to the switch")
                });
            }
            let turns: Vec<_> = (0..4)
                .flat_map(|number| [(number, 0), (number, 1)])
                .collect();
            assert_eq!(order, turns, "{class:?}");
        }
    }

    #[test]
    fn a_packet_to_another_node_passes_by_where_the_completer_is_stuck() {
        let mut crossbar = Crossbar::new(7);
        let mut fifos = PacketFifos::new(&[1; PACKET_FIFOS]);
        let (data, offset, trace, flag, tag, enables) = (0, 0, 0, false, 0, 0);
        let kind = Kind::PostedWrite;
        let to = |target| Packet {
            data,
            offset,
            target,
            source: 7,
            trace,
            kind,
            flag,
            tag,
            enables,
        };
        fifos.push(COMPLETER, to(7), 0);
        fifos.push(CROSSBAR_SWITCH_REQUEST, to(7), 0);
        fifos.push(CROSSBAR_REQUESTER, to(8), 0);
        fifos.latch();
        assert!(
            crossbar.step(&mut fifos, |channel, target| u16::from(channel)
                + target as u16)
        );
        fifos.latch();
        let input = switch_input(HOST_PORT, 0);
        assert!(fifos.is_valid(input) && fifos.side(input) == 8);
        assert!(fifos.is_valid(CROSSBAR_SWITCH_REQUEST));
    }
}
