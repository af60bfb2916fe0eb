//! A comparison of two numbers, part by part.

use rust_hdl::prelude::*;

use super::net_to_keep;

/// Compares two numbers of 20 bits part by part: their lowest 8 bits, the next 6, and the highest
/// 6.
///
/// A block without time for a whole comparison keeps this, and compares the rest on reading. Two
/// levels of tables: what pairs of bits say is kept as it is, or synthesis would take as many
/// tables one behind the other.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct SameParts {
    /// A number.
    pub left: Signal<In, Bits<20>>,
    /// Another.
    pub right: Signal<In, Bits<20>>,
    /// Of each part, the lowest first: it is the same.
    pub same: Signal<Out, Bits<3>>,
}

impl Logic for SameParts {
    fn update(&mut self) {
        let difference = u64::from(self.left.val() ^ self.right.val());
        let same = |bits: u64| u64::from(difference & bits == 0);
        self.same.next = (same(0xff) | same(0x3f00) << 1 | same(0xfc000) << 2).into();
    }

    fn connect(&mut self) {
        self.same.connect();
    }

    fn hdl(&self) -> Verilog {
        let pairs = |pairs: std::ops::Range<usize>| {
            let pairs: Vec<_> = pairs.map(|pair| format!("pair{pair}")).collect();
            pairs.join(" & ")
        };
        let mut code = String::new();
        for pair in 0..10 {
            let (high, low) = (2 * pair + 1, 2 * pair);
            let equal = format!("left[{high}:{low}] == right[{high}:{low}]");
            code += &net_to_keep(&format!("pair{pair}"), &equal);
        }
        let (low, middle, high) = (pairs(0..4), pairs(4..7), pairs(7..10));
        Verilog::Custom(format!(
            "{code}always @(*) same = {{{high}, {middle}, {low}}};"
        ))
    }
}
