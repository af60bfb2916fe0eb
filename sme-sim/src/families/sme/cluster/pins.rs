//! The engine's input pins: each takes one packet, or one credit, an edge.
//!
//! A packet that crosses a clock domain, or comes over a host link that is faster than the engine,
//! may be due at an edge at which the pin has something already. It is sampled at the next that is
//! free, in the order in which it came.

use crate::families::sme::engine::Input;
use crate::parts::fabric::LINK_PORTS;

/// Packets from the host, credits from the host by channel, packets from each link. Credits from a
/// link leave one per edge and all take as long, and so need no place here; nor do the packets that
/// come to a switch outside the engines, which may have more ports than these: those of one link
/// all cross clock domains or all do not.
const PINS: usize = 1 + 3 + LINK_PORTS;

/// From which edge on each pin is free.
#[derive(Debug)]
pub(crate) struct Pins([u64; PINS]);

impl Pins {
    /// All free.
    pub fn new() -> Self {
        Self([0; PINS])
    }

    /// The edge, `due` or a later one, at which `input` is sampled.
    pub fn take(&mut self, due: u64, input: &Input) -> u64 {
        let pin = match *input {
            Input::Host(_) => 0,
            Input::HostCredit(channel) => 1 + channel as usize,
            Input::Link { port, .. } => 4 + usize::from(port),
            Input::LinkCredit { .. } => return due,
        };
        let Some(free) = self.0.get_mut(pin) else {
            return due;
        };
        let edge = due.max(*free);
        *free = edge + 1;
        edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::sme::engine::HtChannel;

    #[test]
    fn a_pin_takes_one_at_an_edge_in_the_order_in_which_they_come() {
        let mut pins = Pins::new();
        let credit = Input::HostCredit(HtChannel::Posted);
        let other = Input::HostCredit(HtChannel::Response);
        let edges = [7, 7, 7, 8, 20].map(|due| pins.take(due, &credit));
        assert_eq!(edges, [7, 8, 9, 10, 20]);
        assert_eq!(pins.take(7, &other), 7, "the pins are independent");
        let link = Input::LinkCredit {
            port: 0,
            channel: 0,
        };
        assert_eq!([pins.take(3, &link), pins.take(3, &link)], [3, 3]);
    }
}
