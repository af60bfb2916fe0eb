//! A fork: the first packet of a FIFO of two places goes one of two ways.
//!
//! ```text
//! aside ──┬── if ready ────────────┬─> of the first packet,
//!         └─ behind: the second's ─┘   if there is one  ──┬─ register ─> goes_straight
//!                    read ── whether it is another ───────┴─ register ─> goes_aside
//! ```
//!
//! It stands beside a [`SkidBuffer`](super::skid_buffer::SkidBuffer) or
//! [`PingPong`](super::ping_pong::PingPong), with the same `write` and `read`, and knows of each
//! packet one bit. Its reader decides by whether there is a packet and where it goes; here both are
//! in one register, that is, none of the cycle is spent on it.
//!
//! ```text
//! cycle          0   1   2   3   4
//! write         ▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁
//! aside         ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁     of the packet that is written
//! ready         ▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔▔▔▔▔     the buffer's
//! goes_straight ▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! goes_aside    ▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁
//! read          ▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▁▁▁▁
//! ```

use crate::blocks::primitive::{Kept, Register};
use rust_hdl::prelude::*;

/// The ways of a FIFO's packets.
#[derive(Clone, Debug, LogicBlock)]
pub struct Fork {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Empties the FIFO.
    pub reset: Signal<In, Bit>,
    /// The FIFO is not full.
    pub ready: Signal<In, Bit>,
    /// Something is written to it, if it is ready.
    pub write: Signal<In, Bit>,
    /// The written packet goes aside.
    pub aside: Signal<In, Bit>,
    /// The first packet is taken, if there is one.
    pub read: Signal<In, Bit>,
    /// There is a first packet, and it does not go aside.
    pub goes_straight: Signal<Out, Bit>,
    /// There is one, and it does.
    pub goes_aside: Signal<Out, Bit>,
    straight: Register<Bit>,
    sideways: Register<Bit>,
    /// Of the second packet.
    behind: Kept<Bit>,
    /// There is a packet that comes first if the first one goes: the one that is offered, or, if
    /// the FIFO is full, the second.
    follows: Signal<Local, Bit>,
    /// The way of that packet.
    way: Signal<Local, Bit>,
    /// The first packet is not the same in the next cycle.
    moves: Signal<Local, Bit>,
}

impl Default for Fork {
    /// Beside an empty FIFO.
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            ready: Signal::default(),
            write: Signal::default(),
            aside: Signal::default(),
            read: Signal::default(),
            goes_straight: Signal::default(),
            goes_aside: Signal::default(),
            straight: Register::default(),
            sideways: Register::default(),
            behind: Kept::default(),
            follows: Signal::default(),
            way: Signal::default(),
            moves: Signal::default(),
        }
    }
}

impl Logic for Fork {
    #[hdl_gen]
    fn update(&mut self) {
        self.straight.clock.next = self.clock.val();
        self.sideways.clock.next = self.clock.val();
        self.behind.clock.next = self.clock.val();
        self.straight.reset.next = self.reset.val();
        self.sideways.reset.next = self.reset.val();

        self.goes_straight.next = self.straight.q.val();
        self.goes_aside.next = self.sideways.q.val();
        self.behind.enable.next = self.ready.val();
        self.behind.d.next = self.aside.val();
        self.follows.next = self.write.val() | !self.ready.val();
        self.way.next = self.behind.q.val();
        if self.ready.val() {
            self.way.next = self.aside.val();
        }
        self.moves.next = self.read.val() | !(self.straight.q.val() | self.sideways.q.val());
        self.straight.d.next = self.straight.q.val();
        self.sideways.d.next = self.sideways.q.val();
        if self.moves.val() {
            self.straight.d.next = self.follows.val() & !self.way.val();
            self.sideways.d.next = self.follows.val() & self.way.val();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Clocked, Device};
    use crate::pins;
    use crate::value::Value;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    pins!(Fork { in: ready, write, aside, read; out: goes_straight, goes_aside });

    proptest! {
        /// Beside a queue of two places.
        #[test]
        fn it_knows_the_way_of_the_first_packet(
            cycles in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..200),
        ) {
            let mut fork = Clocked::new(Fork::default());
            let (mut queue, mut outputs) = (VecDeque::new(), Vec::new());
            for (write, aside, read) in cycles {
                let ready = queue.len() < 2;
                let inputs = [ready, write, aside, read].map(Value::from);
                fork.cycle(&inputs, &mut outputs);
                let first = queue.front().copied();
                let expected = [first == Some(false), first == Some(true)].map(Value::from);
                prop_assert_eq!(&outputs[..], expected);
                if read {
                    queue.pop_front();
                }
                if write && ready {
                    queue.push_back(aside);
                }
            }
        }
    }
}
