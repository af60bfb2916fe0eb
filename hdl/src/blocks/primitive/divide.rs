//! Division by a constant, within the cycle.

use rust_hdl::prelude::*;

/// Bits of what is divided.
const BITS: usize = 20;

/// Quotient and remainder of `value` by a constant of the instance.
///
/// By a power of two they are wires. By another number d the quotient is the product with
/// ⌈2^k / d⌉, shifted right by k: with 2^(k − 20) ≥ d that is exact for every value below 2^20
/// (the product is too large by less than value · d ≤ 2^k, over d · 2^k, hence by less than 1/d).
#[derive(Clone, Debug, LogicBlock)]
pub struct Divide {
    /// The dividend.
    pub value: Signal<In, Bits<BITS>>,
    /// The quotient.
    pub quotient: Signal<Out, Bits<BITS>>,
    /// The remainder.
    pub remainder: Signal<Out, Bits<BITS>>,
    _divisor: u32,
}

impl Divide {
    /// By `divisor`, 1 to 2^20.
    pub fn new(divisor: u32) -> Self {
        assert!((1..=1 << BITS).contains(&divisor));
        Self {
            value: Signal::default(),
            quotient: Signal::default(),
            remainder: Signal::default(),
            _divisor: divisor,
        }
    }
}

impl Logic for Divide {
    fn update(&mut self) {
        let value = u64::from(self.value.val());
        let divisor = u64::from(self._divisor);
        self.quotient.next = (value / divisor).into();
        self.remainder.next = (value % divisor).into();
    }

    fn connect(&mut self) {
        self.quotient.connect();
        self.remainder.connect();
    }

    fn hdl(&self) -> Verilog {
        let divisor = self._divisor;
        let bits = divisor.next_power_of_two().trailing_zeros();
        Verilog::Custom(if divisor.is_power_of_two() {
            let mask = divisor - 1;
            format!(
                "\
always @(*) begin
    quotient = value >> {bits};
    remainder = value & 20'h{mask:x};
end"
            )
        } else {
            let (reciprocal, shift) = reciprocal(divisor);
            let last = bits - 1;
            // Of the remainder only as many bits are computed as it can have.
            format!(
                "\
wire [40:0] product = value * 21'h{reciprocal:x};
wire [{last}:0] multiple = quotient[{last}:0] * {bits}'h{divisor:x};
wire [{last}:0] rest = value[{last}:0] - multiple;

always @(*) begin
    quotient = product >> {shift};
    remainder = rest;
end"
            )
        })
    }
}

/// ⌈2^k / divisor⌉, below 2^21, and k.
fn reciprocal(divisor: u32) -> (u64, u32) {
    let shift = BITS as u32 + divisor.next_power_of_two().trailing_zeros();
    ((1u64 << shift).div_ceil(divisor.into()), shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_product_is_the_quotient(
            divisor in prop_oneof![1u32..200, 1..=1u32 << BITS],
            values in prop::collection::vec(0u32..1 << BITS, 50),
        ) {
            let (reciprocal, shift) = reciprocal(divisor);
            prop_assert!(reciprocal < 1 << 21);
            let multiples = values.iter().map(|value| value / divisor * divisor);
            let edges = multiples.flat_map(|value| [value.saturating_sub(1), value, value + 1]);
            for value in edges.chain([(1 << BITS) - 1]).chain(values.iter().copied()) {
                let quotient = (u64::from(value) * reciprocal) >> shift;
                prop_assert_eq!(quotient, u64::from(value / divisor));
            }
        }
    }
}
