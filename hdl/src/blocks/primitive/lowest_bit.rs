//! The lowest of the bits that are set.

use rust_hdl::prelude::*;

/// Which of 32 bits is the first that is set, one-hot and as a number; both are 0 if none is.
///
/// Few levels of logic: each bit learns whether one of the three below it is set, then one of
/// fifteen, then any; the lowest is the only one that knows of itself but whose neighbour below
/// knows of none. rust-hdl shifts short numbers as big ones, which is slow.
#[derive(Clone, Debug, LogicBlock)]
pub struct LowestBit {
    /// The bits.
    pub bits: Signal<In, Bits<32>>,
    /// The lowest of them alone.
    pub first: Signal<Out, Bits<32>>,
    /// Its number.
    pub number: Signal<Out, Bits<5>>,
    /// Ones above it; 0 if none is set.
    pub above: Signal<Out, Bits<32>>,
    /// Which of the number's bits can be 1; all but in a broken variant.
    pub(crate) _mask: u32,
}

impl Default for LowestBit {
    fn default() -> Self {
        Self {
            bits: Signal::default(),
            first: Signal::default(),
            number: Signal::default(),
            above: Signal::default(),
            _mask: 31,
        }
    }
}

impl Logic for LowestBit {
    fn update(&mut self) {
        let bits = u64::from(self.bits.val()) as u32;
        let number = if bits == 0 { 0 } else { bits.trailing_zeros() };
        self.first.next = u64::from(bits & bits.wrapping_neg()).into();
        self.number.next = u64::from(number & self._mask).into();
        // Negation keeps the lowest bit that is set and turns all above it round.
        self.above.next = u64::from(bits ^ bits.wrapping_neg()).into();
    }

    fn connect(&mut self) {
        self.first.connect();
        self.number.connect();
        self.above.connect();
    }

    fn hdl(&self) -> Verilog {
        let mask = self._mask;
        Verilog::Custom(format!(
            "\
wire [31:0] near, below, reached, lowest;
assign near = bits | (bits << 1) | (bits << 2) | (bits << 3);
assign below = near | (near << 4) | (near << 8) | (near << 12);
assign reached = below | (below << 16);
assign lowest = reached & ~(reached << 1);
always @(*) begin
    first = lowest;
    above = reached << 1;
    number = {{|(lowest & 32'hffff0000), |(lowest & 32'hff00ff00), |(lowest & 32'hf0f0f0f0),
        |(lowest & 32'hcccccccc), |(lowest & 32'haaaaaaaa)}} & 5'h{mask:x};
end"
        ))
    }
}
