//! Round-robin arbiter: who of several wins a cycle.
//!
//! ```text
//! want ──> first after the last winner, ──┬─> grant, one-hot ──> winner, its number
//!          or else first of all           └─> ones above it ─┐
//!            ^                                               │ take
//!            └── a register: ones above the last winner <────┘
//! ```
//!
//! The winner is the first after the last one, cyclically, that wants; so nobody waits for more
//! than one packet of each other. Both searches run side by side, in few levels of logic.
//!
//! ```text
//! cycle    0   1   2   3
//! want     011 011 111 100     initially, the last winner is 2
//! take     ▔▔▔▔▔▔▔▔▁▁▁▁▔▔▔▔
//! winner   0   1   2   2
//! ```

use crate::blocks::primitive::{InTurn, Register};
use rust_hdl::prelude::*;

/// An arbiter of `N` inputs, at most 32; `I` bits number them, at most 5.
#[derive(Clone, Debug, LogicBlock)]
pub struct RoundRobin<const N: usize, const I: usize> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Makes the initial last winner the last.
    pub reset: Signal<In, Bit>,
    /// Who wants the cycle.
    pub want: Signal<In, Bits<N>>,
    /// The winner uses the cycle, and comes last in the next decision. Without a winner it does
    /// nothing.
    pub take: Signal<In, Bit>,
    /// The winner; 0 if nobody wants.
    pub winner: Signal<Out, Bits<I>>,
    /// The winner's bit; 0 if nobody wants.
    pub grant: Signal<Out, Bits<N>>,
    /// Somebody wants.
    pub any: Signal<Out, Bit>,
    /// Ones above the last winner.
    pub after: Signal<Out, Bits<N>>,
    /// What `after` shows.
    last: Register<Bits<N>>,
    pub(crate) turn: InTurn,
}

impl<const N: usize, const I: usize> RoundRobin<N, I> {
    /// An arbiter whose initial last winner is `last`, below `N`.
    pub fn new(last: usize) -> Self {
        Self::among(u32::MAX, last)
    }

    /// The same, if none but these ever wants a cycle, bit by bit.
    pub fn among(inputs: u32, last: usize) -> Self {
        assert!((1..=32).contains(&N) && I <= 5 && N <= 1 << I && last < N);
        let all = u64::from(u32::MAX) >> (32 - N);
        let inputs = inputs & all as u32;
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            want: Signal::default(),
            take: Signal::default(),
            winner: Signal::default(),
            grant: Signal::default(),
            any: Signal::default(),
            after: Signal::default(),
            last: Register::new((all & all << last << 1).into()),
            turn: InTurn::among(inputs),
        }
    }
}

impl<const N: usize, const I: usize> Logic for RoundRobin<N, I> {
    #[hdl_gen]
    fn update(&mut self) {
        self.last.clock.next = self.clock.val();
        self.last.reset.next = self.reset.val();

        self.after.next = self.last.q.val();
        self.turn.want.next = bit_cast::<32, N>(self.want.val());
        self.turn.after.next = bit_cast::<32, N>(self.last.q.val());
        self.any.next = self.want.val().any();
        self.grant.next = bit_cast::<N, 32>(self.turn.grant.val());
        self.winner.next = bit_cast::<I, 5>(self.turn.number.val());

        self.last.d.next = self.last.q.val();
        if self.take.val() & self.any.val() {
            self.last.d.next = bit_cast::<N, 32>(self.turn.above.val());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Clocked, Device};
    use crate::pins;
    use crate::value::Value;
    use proptest::prelude::*;

    pins!([const N: usize, const I: usize] RoundRobin<N, I> {
        in: want, take;
        out: winner, grant, any
    });

    /// Holds an arbiter against the rule, told one input after the other.
    fn follows_the_rule<const N: usize, const I: usize>(
        last: usize,
        cycles: &[(u32, bool)],
    ) -> Result<(), TestCaseError> {
        let mut last = last % N;
        let mut arbiter = Clocked::new(RoundRobin::<N, I>::new(last));
        let mut outputs = Vec::new();
        for &(want, take) in cycles {
            let want = want & u32::MAX >> (32 - N);
            let winner = (1..=N).map(|step| (last + step) % N);
            let winner = winner.into_iter().find(|&input| want >> input & 1 == 1);
            let grant = winner.map_or(0, |winner| 1 << winner);
            arbiter.cycle(&[u64::from(want).into(), take.into()], &mut outputs);
            let expected = [winner.unwrap_or(0) as u64, grant, winner.is_some().into()];
            prop_assert_eq!(&outputs[..], expected.map(Value::from));
            if let Some(winner) = winner.filter(|_| take) {
                last = winner;
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn the_winner_is_the_first_after_the_last(
            last in 0usize..32,
            cycles in prop::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 1..60),
        ) {
            let cycles: Vec<_> = cycles.into_iter().map(|(a, b, take)| (a & b, take)).collect();
            follows_the_rule::<2, 1>(last, &cycles)?;
            follows_the_rule::<3, 2>(last, &cycles)?;
            follows_the_rule::<4, 2>(last, &cycles)?;
            follows_the_rule::<26, 5>(last, &cycles)?;
            follows_the_rule::<28, 5>(last, &cycles)?;
            follows_the_rule::<32, 5>(last, &cycles)?;
        }
    }
}
