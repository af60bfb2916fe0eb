//! The data read from one of four FIFOs, a cycle after the read.
//!
//! ```text
//! write, by channel ──┤register├─┤register├─┐    ┌────── memory ───────┐
//!                                           ├────┤ channel, its write  │
//! write_data ────────────────────┤register├─┤    │ pointer             │
//! (of the write of the cycle before)        │    │                     ├──┬─> data
//!                     ┌ channel, its read   │    │                     │  │
//! read, by channel ─┬─┴ pointer ─┤register├─│────┤                     │  │
//!                   │                       │    └─────────────────────┘  │
//!                   ├─ just came ┤register├─└───── if that is the one ────┘
//!                   └────────────┤register├───────────────────────────────────> valid
//! ```
//!
//! It stands beside [`LateFifo`](super::late_fifo::LateFifo)s of two places, one for each virtual
//! channel, and is told what they take in and give out; of each, at most one in a cycle. So a
//! single memory holds the packets of all, and who decides late in a cycle what it reads has only a
//! number to choose here, in the next one, instead of a packet. A packet from afar goes through a
//! register before it is written. In the cycle after a read the packet is there, even if it came in
//! the very cycle of the read: then it is in that register still. And it is there still: its place
//! is next for the packet that is two behind it, which the FIFO takes in at the earliest in the
//! cycle after the read.
//!
//! ```text
//! cycle      0   1   2   3   4
//! write      1   2   0   0   0      a packet of channel 0, one of channel 1
//! write_data      a   b
//! read       0   1   0   2   0
//! valid      ▁▁▁▁▁▁▁▁▔▔▔▔▁▁▁▁▔▔▔▔
//! data                a       b
//! ```

use crate::blocks::primitive::{Kept, LutRam, Register, Stages};
use crate::blocks::resting::Rests;
use rust_hdl::prelude::*;

/// Beside four FIFOs of two places.
#[derive(Clone, Debug, LogicBlock)]
pub struct Fetch<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// The FIFOs are emptied.
    pub reset: Signal<In, Bit>,
    /// The FIFO that takes something in, one-hot.
    pub write: Signal<In, Bits<4>>,
    /// The data that one has taken in in the cycle before.
    pub write_data: Signal<In, T>,
    /// The FIFO that gives something out, one-hot.
    pub read: Signal<In, Bits<4>>,
    /// One has in the cycle before.
    pub valid: Signal<Out, Bit>,
    /// The data that was read.
    pub data: Signal<Out, T>,
    memory: LutRam<T, 3>,
    /// The FIFO whose packet comes in this cycle, one-hot.
    comes: Register<Bits<4>>,
    /// The FIFO whose packet came in the cycle before, one-hot.
    came: Register<Bits<4>>,
    /// The packet that arrived.
    arrival: Kept<T>,
    /// By channel, the place of the next packet.
    write_pointers: Register<Bits<4>>,
    /// The FIFO that was read in the cycle before, one-hot.
    pub(crate) was_read: Stages<Bits<4>>,
    /// By channel, the place of the first packet.
    read_pointers: Register<Bits<4>>,
    /// The address in memory of the packet that was read.
    read_address: Register<Bits<3>>,
    /// The data that was read arrived in the cycle before, and is not in the memory.
    just_came: Register<Bit>,
    /// The pointers of the next cycle.
    next_write: Signal<Local, Bits<4>>,
    next_read: Signal<Local, Bits<4>>,
    /// By channel: the pointers differ in the next cycle.
    unequal: Signal<Local, Bits<4>>,
    /// The FIFO whose packet comes in this cycle, if it is its only one, one-hot.
    fresh: Signal<Local, Bits<4>>,
    /// Of the packet that is written.
    written: SlotAddress,
    /// Of the packet that is read.
    found: SlotAddress,
    /// The channels of which a packet is found in the register as well; all but in a broken
    /// variant.
    pub(crate) late: Constant<Bits<4>>,
}

impl<T: Synth> Default for Fetch<T> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            write: Signal::default(),
            write_data: Signal::default(),
            read: Signal::default(),
            valid: Signal::default(),
            data: Signal::default(),
            memory: LutRam::default(),
            comes: Register::default(),
            came: Register::default(),
            arrival: Kept::default(),
            write_pointers: Register::default(),
            was_read: Stages::new(1, 0.into()),
            read_pointers: Register::default(),
            read_address: Register::default(),
            just_came: Register::default(),
            next_write: Signal::default(),
            next_read: Signal::default(),
            unequal: Signal::default(),
            fresh: Signal::default(),
            written: SlotAddress::default(),
            found: SlotAddress::default(),
            late: Constant::new(15.into()),
        }
    }
}

impl<T: Synth> Logic for Fetch<T> {
    #[hdl_gen]
    fn update(&mut self) {
        self.memory.clock.next = self.clock.val();
        self.comes.clock.next = self.clock.val();
        self.comes.reset.next = self.reset.val();
        self.came.clock.next = self.clock.val();
        self.came.reset.next = self.reset.val();
        self.arrival.clock.next = self.clock.val();
        self.write_pointers.clock.next = self.clock.val();
        self.write_pointers.reset.next = self.reset.val();
        self.was_read.clock.next = self.clock.val();
        self.was_read.reset.next = self.reset.val();
        self.read_pointers.clock.next = self.clock.val();
        self.read_pointers.reset.next = self.reset.val();
        self.read_address.clock.next = self.clock.val();
        self.read_address.reset.next = self.reset.val();
        self.just_came.clock.next = self.clock.val();
        self.just_came.reset.next = self.reset.val();

        self.comes.d.next = self.write.val();
        self.came.d.next = self.comes.q.val();
        self.arrival.enable.next = self.comes.q.val().any();
        self.arrival.d.next = self.write_data.val();

        self.written.channel.next = self.came.q.val();
        self.written.pointers.next = self.write_pointers.q.val();
        self.memory.write_enable.next = self.came.q.val().any();
        self.memory.write_address.next = self.written.address.val();
        self.memory.write_data.next = self.arrival.q.val();

        self.was_read.d.next = self.read.val();
        self.valid.next = self.was_read.q.val().any();
        self.next_write.next = self.write_pointers.q.val() ^ self.came.q.val();
        self.next_read.next = self.read_pointers.q.val() ^ self.was_read.q.val();
        self.write_pointers.d.next = self.next_write.val();
        self.read_pointers.d.next = self.next_read.val();
        // Of a channel whose pointers meet the memory holds nothing.
        self.unequal.next = self.next_write.val() ^ self.next_read.val();
        self.fresh.next = self.comes.q.val() & self.late.val() & !self.unequal.val();
        self.just_came.d.next = (self.read.val() & self.fresh.val()).any();
        self.found.channel.next = self.read.val();
        self.found.pointers.next = self.next_read.val();
        self.read_address.d.next = self.found.address.val();
        self.memory.read_address.next = self.read_address.q.val();
        self.data.next = self.memory.read_data.val();
        if self.just_came.q.val() {
            self.data.next = self.arrival.q.val();
        }
    }
}

/// The address in the memory to which a channel's pointer points.
#[derive(Clone, Debug, LogicBlock)]
struct SlotAddress {
    /// The channel, one-hot.
    channel: Signal<In, Bits<4>>,
    /// The pointers of all.
    pointers: Signal<In, Bits<4>>,
    /// The channel's number, and below it its pointer.
    address: Signal<Out, Bits<3>>,
    /// The parts of the address, bit by bit.
    nowhere: Constant<Bits<3>>,
}

impl Default for SlotAddress {
    fn default() -> Self {
        Self {
            channel: Signal::default(),
            pointers: Signal::default(),
            address: Signal::default(),
            nowhere: Constant::new(0.into()),
        }
    }
}

impl Logic for SlotAddress {
    #[hdl_gen]
    fn update(&mut self) {
        self.address.next = self
            .nowhere
            .val()
            .replace_bit(0, (self.channel.val() & self.pointers.val()).any())
            .replace_bit(
                1,
                self.channel.val().get_bit(1) | self.channel.val().get_bit(3),
            )
            .replace_bit(
                2,
                self.channel.val().get_bit(2) | self.channel.val().get_bit(3),
            );
    }
}

impl<T: Synth> Rests for Fetch<T> {
    fn rests(&self) -> bool {
        let next = self.reset.next || self.write.next.any() || self.read.next.any();
        let now = self.reset.val() || self.write.val().any() || self.read.val().any();
        let moves = self.comes.q.val() | self.came.q.val() | self.was_read.q.val();
        !(next || now || moves.any())
    }

    fn clock_is_high(&self) -> bool {
        self.clock.val().clk
    }
}
