//! A number as one of 32 bits.

use rust_hdl::prelude::*;

/// The bit of a number, alone. rust-hdl shifts short numbers as big ones, which is slow.
#[derive(Clone, Debug, LogicBlock)]
pub struct OneHot {
    /// The number.
    pub number: Signal<In, Bits<5>>,
    /// Its bit, of 32.
    pub one: Signal<Out, Bits<32>>,
    /// The bit of its group of four, of eight.
    pub group: Signal<Out, Bits<8>>,
    /// The code of 0; bit 0 but in a broken variant.
    pub(crate) _zero: u32,
}

impl Default for OneHot {
    fn default() -> Self {
        Self {
            number: Signal::default(),
            one: Signal::default(),
            group: Signal::default(),
            _zero: 1,
        }
    }
}

impl Logic for OneHot {
    fn update(&mut self) {
        let number = u64::from(self.number.val()) as u32;
        self.one.next = u64::from(self._zero << number).into();
        self.group.next = (1u64 << (number / 4)).into();
    }

    fn connect(&mut self) {
        self.one.connect();
        self.group.connect();
    }

    fn hdl(&self) -> Verilog {
        let zero = self._zero;
        Verilog::Custom(format!(
            "\
always @(*) begin
    one = 32'h{zero:x} << number;
    group = 8'h1 << number[4:2];
end"
        ))
    }
}
