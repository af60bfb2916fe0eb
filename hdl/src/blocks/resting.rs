//! Blocks that the simulation leaves alone while nothing can change in them.
//!
//! Every evaluation of a design visits every signal of it, though most blocks have nothing to do in
//! most cycles. A block that can tell so ([`Rests`]) is wrapped in [`Resting`]: once it has settled
//! it is not visited until its inputs say otherwise. In the Verilog the wrapper does not exist.

use std::ops::{Deref, DerefMut};

use rust_hdl::ast::Verilog;
use rust_hdl::prelude::*;
use rust_hdl::probe::Probe;

/// A block that knows when it has nothing to do.
pub trait Rests: Block {
    /// Whether, with what its inputs hold and are about to hold, no edge of the clock would change
    /// a register, and no output would change.
    fn rests(&self) -> bool;

    /// Returns whether the clock, as the block sees it, is high; true without a clock.
    fn clock_is_high(&self) -> bool;
}

/// A block that is not evaluated while it rests.
///
/// It falls asleep only while its clock is high: whenever it wakes, the clock that it remembers is
/// high, so that it takes no edge that was over before its inputs changed.
#[derive(Clone, Debug, Default)]
pub struct Resting<B> {
    block: B,
    asleep: bool,
}

impl<B: Rests> Resting<B> {
    /// Awake.
    pub fn new(block: B) -> Self {
        let asleep = false;
        Self { block, asleep }
    }
}

impl<B> Deref for Resting<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.block
    }
}

impl<B> DerefMut for Resting<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.block
    }
}

impl<B: Rests> Logic for Resting<B> {
    fn update(&mut self) {
        self.block.update();
    }

    fn connect(&mut self) {
        self.block.connect();
    }

    fn hdl(&self) -> Verilog {
        self.block.hdl()
    }

    fn timing(&self) -> Vec<TimingInfo> {
        self.block.timing()
    }
}

impl<B: Rests> Block for Resting<B> {
    fn connect_all(&mut self) {
        self.block.connect_all();
    }

    fn update_all(&mut self) {
        if self.asleep && self.block.rests() {
            return;
        }
        self.block.update_all();
        self.asleep = self.block.clock_is_high() && self.block.rests() && !self.block.has_changed();
    }

    fn has_changed(&self) -> bool {
        !self.asleep && self.block.has_changed()
    }

    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        self.block.accept(name, probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::switch_input::SwitchInput;
    use crate::device::{Clocked, Device};
    use crate::pins;
    use crate::value::Value;
    use proptest::prelude::*;

    pins!(SwitchInput { in: write, way, taken; out: ready, written, write_address, read_address, head });
    pins!(Resting<SwitchInput> {
        in: write, way, taken;
        out: ready, written, write_address, read_address, head
    });

    proptest! {
        /// Long pauses, so that it falls asleep, empty and not.
        #[test]
        fn a_resting_block_is_the_same_block(
            depth in 1usize..6,
            cycles in prop::collection::vec((0u8..8, 1u64..255), 1..300),
        ) {
            let mut awake = Clocked::new(SwitchInput::of_host(depth, 255));
            let mut resting = Clocked::new(Resting::new(SwitchInput::of_host(depth, 255)));
            let (mut expected, mut found) = (Vec::<Value>::new(), Vec::new());
            for (action, way) in cycles {
                let holds = awake.block().head.val().any();
                let taken = holds && action & 3 == 1;
                let inputs = [(action & 6 == 4).into(), way.into(), taken.into()];
                awake.cycle(&inputs, &mut expected);
                resting.cycle(&inputs, &mut found);
                prop_assert_eq!(&expected, &found);
            }
        }

        #[test]
        fn what_does_not_rest_is_never_left_alone(writes in prop::collection::vec(any::<bool>(), 1..50)) {
            // The memory of a resting block is as full as that of one that is always awake.
            let mut resting = Clocked::new(Resting::new(SwitchInput::of_host(32, 255)));
            let mut outputs = Vec::new();
            for &write in &writes {
                resting.cycle(&[write.into(), 1u64.into(), false.into()], &mut outputs);
            }
            resting.cycle(&[false.into(), 0u64.into(), false.into()], &mut outputs);
            let held = writes.iter().filter(|&&write| write).count();
            prop_assert_eq!(outputs[2], Value::from(held.min(32) as u64 % 32));
        }
    }
}
