//! A comparison of a word with a constant.

use rust_hdl::prelude::*;
use std::fmt::Write;

/// Compares a 64-bit word with a constant of the instance: whether the word is below it. Yosys
/// makes a carry chain of every `<`, as long as the word; this is a tree, and nothing is left of it
/// where the constant has but zeros at its end. rust-hdl compares long numbers bit by bit, which is
/// slow.
#[derive(Clone, Debug, LogicBlock)]
pub struct Below {
    /// Bits 0–31 of the word.
    pub low: Signal<In, Bits<32>>,
    /// Bits 32–63.
    pub high: Signal<In, Bits<32>>,
    /// The word is below the constant.
    pub below: Signal<Out, Bit>,
    _bound: u128,
}

impl Below {
    /// Below `bound`.
    pub fn new(bound: u128) -> Self {
        Self {
            low: Signal::default(),
            high: Signal::default(),
            below: Signal::default(),
            _bound: bound,
        }
    }
}

impl Logic for Below {
    fn update(&mut self) {
        let word = u64::from(self.high.val()) << 32 | u64::from(self.low.val());
        self.below.next = u128::from(word) < self._bound;
    }

    fn connect(&mut self) {
        self.below.connect();
    }

    fn hdl(&self) -> Verilog {
        let Ok(bound) = u64::try_from(self._bound) else {
            return Verilog::Custom("always @(*) below = 1'b1;".into());
        };
        let mut code = format!(
            "\
wire [63:0] word = {{high, low}};
wire [63:0] less0 = ~word & 64'h{bound:x};
wire [63:0] same0 = ~(word ^ 64'h{bound:x});
"
        );
        // Of two neighbours, the higher decides, or if it is the same, the lower.
        for level in 1..=6 {
            let (last, from) = ((64 >> level) - 1, level - 1);
            let _ = writeln!(code, "wire [{last}:0] less{level}, same{level};");
            for bit in 0..=last {
                let (lower, higher) = (2 * bit, 2 * bit + 1);
                let _ = writeln!(
                    code,
                    "assign less{level}[{bit}] = \
                     less{from}[{higher}] | (same{from}[{higher}] & less{from}[{lower}]);
assign same{level}[{bit}] = same{from}[{higher}] & same{from}[{lower}];"
                );
            }
        }
        code.push_str("always @(*) below = less6[0];");
        Verilog::Custom(code)
    }
}
