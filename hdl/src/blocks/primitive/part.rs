//! A part of a word, at a place that is chosen when the block is made.

use rust_hdl::prelude::*;

/// The `M` bits, up to 32, of a 64-bit word from a constant bit on; zeros beyond its end. In
/// Verilog it is wires alone. rust-hdl shifts short numbers as big ones, which is slow, and long
/// ones bit by bit.
#[derive(Clone, Debug, LogicBlock)]
pub struct Part<const M: usize> {
    /// Bits 0–31 of the word.
    pub low: Signal<In, Bits<32>>,
    /// Bits 32–63.
    pub high: Signal<In, Bits<32>>,
    /// The part.
    pub part: Signal<Out, Bits<M>>,
    _offset: u32,
}

impl<const M: usize> Part<M> {
    /// The part from bit `offset` on, below 64.
    pub fn new(offset: u32) -> Self {
        assert!((1..=32).contains(&M) && offset < 64);
        Self {
            low: Signal::default(),
            high: Signal::default(),
            part: Signal::default(),
            _offset: offset,
        }
    }
}

impl<const M: usize> Logic for Part<M> {
    fn update(&mut self) {
        let word = u64::from(self.high.val()) << 32 | u64::from(self.low.val());
        let mask = u64::from(u32::MAX) >> (32 - M);
        self.part.next = (word >> self._offset & mask).into();
    }

    fn connect(&mut self) {
        self.part.connect();
    }

    fn hdl(&self) -> Verilog {
        let (offset, last) = (self._offset, M - 1);
        Verilog::Custom(format!(
            "\
wire [63:0] shifted;
assign shifted = {{high, low}} >> {offset};
always @(*) part = shifted[{last}:0];"
        ))
    }
}
