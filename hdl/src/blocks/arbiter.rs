//! Round-robin arbiter: who of several wins a cycle.
//!
//! ```text
//! want ─ & ─> first after the last winner, ──┬─> grant, one-hot ──> winner, its number
//! can ───┘    or else first of all           └─> ones above it ─┐
//!               ^                                               │ take
//!               └── a register: ones above the last winner <────┘
//! ```
//!
//! The winner is the first after the last one, cyclically, that wants and can: none waits for more
//! than one packet of each other. Both searches run side by side, in few levels of logic.
//!
//! ```text
//! cycle    0   1   2   3
//! want     011 011 111 100     initially, the last winner is 2; all can
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
    /// The inputs that want the cycle, if they can use it.
    pub want: Signal<In, Bits<N>>,
    /// Whether they can use it: bit 1 for the inputs of the `kind`, bit 0 for the others.
    pub can: Signal<In, Bits<2>>,
    /// The winner uses the cycle, and comes last in the next decision. Without a winner it does
    /// nothing.
    pub take: Signal<In, Bit>,
    /// The winner; 0 if no input wants and can.
    pub winner: Signal<Out, Bits<I>>,
    /// The winner's bit; 0 if no input does.
    pub grant: Signal<Out, Bits<N>>,
    /// At least one input does.
    pub any: Signal<Out, Bit>,
    /// Ones above the last winner.
    pub after: Signal<Out, Bits<N>>,
    /// The register behind `after`.
    last: Register<Bits<N>>,
    pub(crate) turn: InTurn,
    wants: Signal<Local, Bits<N>>,
    moves: Signal<Local, Bit>,
    /// The inputs that are not of the kind, and those that are.
    others: Constant<Bits<N>>,
    kind: Constant<Bits<N>>,
}

impl<const N: usize, const I: usize> RoundRobin<N, I> {
    /// An arbiter whose initial last winner is `last`, below `N`.
    pub fn new(last: usize) -> Self {
        Self::among(u32::MAX, 0, last)
    }

    /// The same, if none but these ever wants a cycle, bit by bit; those of a `kind` have a bit of
    /// `can` of their own.
    pub fn among(inputs: u32, kind: u32, last: usize) -> Self {
        assert!((1..=32).contains(&N) && I <= 5 && N <= 1 << I && last < N);
        let all = u64::from(u32::MAX) >> (32 - N);
        let inputs = inputs & all as u32;
        let after = all & all << last << 1;
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            want: Signal::default(),
            can: Signal::default(),
            take: Signal::default(),
            winner: Signal::default(),
            grant: Signal::default(),
            any: Signal::default(),
            after: Signal::default(),
            last: Register::new(after.into()),
            turn: InTurn::among(inputs, kind, after as u32),
            wants: Signal::default(),
            moves: Signal::default(),
            others: Constant::new((all & !u64::from(kind)).into()),
            kind: Constant::new((all & u64::from(kind)).into()),
        }
    }
}

impl<const N: usize, const I: usize> Logic for RoundRobin<N, I> {
    #[hdl_gen]
    fn update(&mut self) {
        self.last.clock.next = self.clock.val();
        self.last.reset.next = self.reset.val();
        self.turn.clock.next = self.clock.val();
        self.turn.reset.next = self.reset.val();

        self.after.next = self.last.q.val();
        self.turn.asks.next = bit_cast::<32, N>(self.want.val());
        self.turn.can.next = self.can.val();
        self.turn.after.next = bit_cast::<32, N>(self.last.q.val());
        self.wants.next = 0.into();
        if self.can.val().get_bit(0) {
            self.wants.next = self.want.val() & self.others.val();
        }
        if self.can.val().get_bit(1) {
            self.wants.next = self.wants.val() | (self.want.val() & self.kind.val());
        }
        self.any.next = self.wants.val().any();
        self.grant.next = bit_cast::<N, 32>(self.turn.grant.val());
        self.winner.next = bit_cast::<I, 5>(self.turn.number.val());

        self.moves.next = self.take.val() & self.any.val();
        self.turn.moves.next = self.moves.val();
        self.last.d.next = self.last.q.val();
        if self.moves.val() {
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
        in: want, can, take;
        out: winner, grant, any
    });

    /// Holds an arbiter against the rule, told one input after the other.
    fn follows_the_rule<const N: usize, const I: usize>(
        last: usize,
        kind: u32,
        cycles: &[(u32, u8, bool)],
    ) -> Result<(), TestCaseError> {
        let mut last = last % N;
        let mut arbiter = Clocked::new(RoundRobin::<N, I>::among(u32::MAX, kind, last));
        let mut outputs = Vec::new();
        for &(want, can, take) in cycles {
            let want = want & u32::MAX >> (32 - N);
            let mut winner = (1..=N).map(|step| (last + step) % N);
            let can_use = |input: usize| can >> (kind >> input & 1) & 1 == 1;
            let winner = winner.find(|&input| want >> input & 1 == 1 && can_use(input));
            let grant = winner.map_or(0, |winner| 1 << winner);
            let inputs = [want.into(), can.into(), u64::from(take)].map(Value::from);
            arbiter.cycle(&inputs, &mut outputs);
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
            kind: u32,
            cycles in prop::collection::vec((any::<u32>(), 0u8..4, any::<bool>()), 1..60),
        ) {
            follows_the_rule::<2, 1>(last, kind, &cycles)?;
            follows_the_rule::<3, 2>(last, kind, &cycles)?;
            follows_the_rule::<4, 2>(last, kind, &cycles)?;
            follows_the_rule::<26, 5>(last, kind, &cycles)?;
            follows_the_rule::<28, 5>(last, kind, &cycles)?;
            follows_the_rule::<32, 5>(last, kind, &cycles)?;
        }
    }
}
