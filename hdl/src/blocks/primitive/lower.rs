//! A comparison of two short numbers.

use rust_hdl::prelude::*;

/// Compares two numbers of five bits: whether the first is lower. Yosys makes a carry chain of
/// every `<`; for so short ones two levels of look-up tables are faster.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Lower {
    /// The one.
    pub left: Signal<In, Bits<5>>,
    /// The other.
    pub right: Signal<In, Bits<5>>,
    /// The one is lower.
    pub lower: Signal<Out, Bit>,
}

impl Logic for Lower {
    fn update(&mut self) {
        self.lower.next = self.left.val() < self.right.val();
    }

    fn connect(&mut self) {
        self.lower.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "\
wire [4:0] below = ~left & right;
wire [4:0] same = ~(left ^ right);
always @(*) lower = below[4] | (same[4] & below[3]) | (&same[4:3] & below[2])
    | (&same[4:2] & (below[1] | (same[1] & below[0])));"
                .into(),
        )
    }
}
