//! The places that a sender knows to be free at the receiver.
//!
//! ```text
//! returned ──> +1 ┐
//!                 ├─> count, a register      available = not zero, a register
//! used ──────> −1 ┘
//! ```
//!
//! `used` while nothing is available, and a credit more than there are places, are mistakes of
//! those around it: the former does nothing, the latter is lost.
//!
//! ```text
//! cycle      0   1   2   3
//! used       ▔▔▔▔▁▁▁▁▔▔▔▔▁▁▁▁     one place
//! returned   ▁▁▁▁▔▔▔▔▁▁▁▁▁▁▁▁
//! available  ▔▔▔▔▁▁▁▁▔▔▔▔▁▁▁▁
//! ```

use crate::blocks::primitive::Register;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::design::MAX_CREDITS;

/// The credits of one channel.
#[derive(Clone, Debug, LogicBlock)]
pub struct Credits {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// All places are free again.
    pub reset: Signal<In, Bit>,
    /// The receiver has a place again.
    pub returned: Signal<In, Bit>,
    /// A place is taken.
    pub used: Signal<In, Bit>,
    /// There is a place.
    pub available: Signal<Out, Bit>,
    /// There is one in the next cycle, for senders that decide ahead.
    pub available_next: Signal<Out, Bit>,
    count: Register<Bits<12>>,
    not_zero: Register<Bit>,
    taken: Signal<Local, Bit>,
    /// All places.
    all: Constant<Bits<12>>,
}

impl Credits {
    /// All of `places` are free: 1 to [`MAX_CREDITS`].
    pub fn new(places: u16) -> Self {
        assert!((1..=MAX_CREDITS).contains(&places.into()));
        let all = u64::from(places).into();
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            returned: Signal::default(),
            used: Signal::default(),
            available: Signal::default(),
            available_next: Signal::default(),
            count: Register::new(all),
            not_zero: Register::new(true),
            taken: Signal::default(),
            all: Constant::new(all),
        }
    }
}

impl Logic for Credits {
    #[hdl_gen]
    fn update(&mut self) {
        self.count.clock.next = self.clock.val();
        self.count.reset.next = self.reset.val();
        self.not_zero.clock.next = self.clock.val();
        self.not_zero.reset.next = self.reset.val();

        self.available.next = self.not_zero.q.val();
        self.taken.next = self.used.val() & self.not_zero.q.val();
        self.count.d.next = self.count.q.val();
        if self.taken.val() & !self.returned.val() {
            self.count.d.next = self.count.q.val() - 1;
        } else if self.returned.val() & !self.taken.val() & (self.count.q.val() != self.all.val()) {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.available_next.next = self.returned.val() | self.not_zero.q.val();
        if self.taken.val() {
            self.available_next.next = self.returned.val() | (self.count.q.val() != 1);
        }
        self.not_zero.d.next = self.available_next.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Clocked, Device};
    use crate::pins;
    use crate::value::Value;
    use proptest::prelude::*;

    pins!(Credits { in: returned, used; out: available, available_next });

    proptest! {
        /// Credits that are used without being there, and returned although all are, too.
        #[test]
        fn they_are_counted_and_never_more_than_the_places(
            places in 1u16..6,
            cycles in prop::collection::vec((any::<bool>(), any::<bool>()), 1..200),
        ) {
            let mut credits = Clocked::new(Credits::new(places));
            let (mut left, mut outputs) = (places, Vec::new());
            for (returned, used) in cycles {
                credits.cycle(&[returned.into(), used.into()], &mut outputs);
                let (available, taken) = (left > 0, used && left > 0);
                left = (left - u16::from(taken) + u16::from(returned)).min(places);
                prop_assert_eq!(&outputs[..], [available, left > 0].map(Value::from));
            }
        }
    }
}
