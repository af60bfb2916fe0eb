//! Turns: the first of the bits that are set, from a place on and round.

use std::fmt::Write;

use rust_hdl::prelude::*;

use super::net_to_keep;

/// Finds the first of 32 bits that is set and stands after the last winner, or, if none does, the
/// first that is set; one-hot and as a number, both 0 if none is.
///
/// Both searches run side by side, in few levels of logic, over those of the bits only that can be
/// set: first what groups of four neighbours have, then what stands before each group, then what
/// stands before a bit in its group. Of eight bits or fewer, each is compared with every other: who
/// of two comes first follows from `after`, but stands in a register of its own besides, so that
/// nothing has to find it out. Then three tables follow each other: of pairs of bits; whether a bit
/// wins among its kind; whether none of the other kind comes before it.
#[derive(Clone, Debug, LogicBlock)]
pub struct InTurn {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Goes on from the initial last winner.
    pub reset: Signal<In, Bit>,
    /// The bits; they count where `can` says so.
    pub asks: Signal<In, Bits<32>>,
    /// Whether they count: bit 1 for those of the kind, bit 0 for the others.
    pub can: Signal<In, Bits<2>>,
    /// Ones above the last winner; a register.
    pub after: Signal<In, Bits<32>>,
    /// In the next cycle `after` is `above`; otherwise it stays as it is.
    pub moves: Signal<In, Bit>,
    /// The winner's bit.
    pub grant: Signal<Out, Bits<32>>,
    /// Its number.
    pub number: Signal<Out, Bits<5>>,
    /// Ones above it; anything if there is none.
    pub above: Signal<Out, Bits<32>>,
    /// The bits that can be set.
    _inputs: u32,
    /// Those of the kind.
    _kind: u32,
    /// The initial value of `after`.
    _initial: u32,
    /// The bits of the number that can be 1; all but in a broken variant.
    pub(crate) _mask: u32,
}

/// Up to so many inputs, each is compared with every other.
const PAIRED: u32 = 8;

impl InTurn {
    /// Among these bits, of which some are of a `kind`, and with this `initial` `after`.
    pub fn among(inputs: u32, kind: u32, initial: u32) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            asks: Signal::default(),
            can: Signal::default(),
            after: Signal::default(),
            moves: Signal::default(),
            grant: Signal::default(),
            number: Signal::default(),
            above: Signal::default(),
            _inputs: inputs,
            _kind: kind,
            _initial: initial,
            _mask: 31,
        }
    }
}

impl Logic for InTurn {
    fn update(&mut self) {
        let can = self.can.val();
        let of_kind = |can, inputs| if can { inputs } else { 0 };
        let inputs = of_kind(can.get_bit(0), !self._kind) | of_kind(can.get_bit(1), self._kind);
        let search = candidates(self.asks.val(), self.after.val(), self._inputs & inputs);
        let number = match search.trailing_zeros() {
            32 => 0,
            winner => winner,
        };
        self.grant.next = u64::from(search & search.wrapping_neg()).into();
        self.number.next = u64::from(number & self._mask).into();
        // Negation keeps the lowest bit that is set and turns all above it round.
        self.above.next = u64::from(search ^ search.wrapping_neg()).into();
    }

    fn connect(&mut self) {
        self.grant.connect();
        self.number.connect();
        self.above.connect();
    }

    fn hdl(&self) -> Verilog {
        let groups = groups(self._inputs);
        let paired = self._inputs.count_ones() <= PAIRED;
        let (kind, others) = (self._kind, !self._kind);
        let mut code = format!(
            "\
wire [31:0] want = asks
    & (({{32{{can[0]}}}} & 32'h{others:x}) | ({{32{{can[1]}}}} & 32'h{kind:x}));
"
        );
        code += &compared(&groups);
        if paired {
            code += &orders(self._inputs, self._initial);
            code += &comparisons(self._inputs, self._kind);
        }
        let mut assigned = String::new();
        for (g, group) in groups.iter().enumerate() {
            let before = term((0..g).map(|h| format!("wanted{h}")));
            let next_before = term((0..g).map(|h| format!("next{h}")));
            for (place, i) in group.iter().enumerate() {
                let (here, next_here) = (wanted_in(&group[..place]), next_in(&group[..place]));
                // Writing to a string cannot fail.
                let _ = write!(
                    code,
                    "\
wire next_below{i} = {next_before} | {next_here};
wire below{i} = {before} | {here};
"
                );
                let wins = match paired {
                    true => format!("first_of_kind{i} & ~other_kind_first{i}"),
                    false => {
                        format!("want[{i}] & ~(after[{i}] ? next_below{i} : below{i} | some_next)")
                    }
                };
                let _ = write!(
                    assigned,
                    "    grant[{i}] = {wins};
    above[{i}] = some_next ? next_below{i} : below{i};
"
                );
            }
        }
        let mask = self._mask;
        // Simulators evaluate a block when something that it reads changes: it reads something even
        // if there are no inputs.
        Verilog::Custom(format!(
            "\
{code}always @(*) begin
    grant = want & 32'h0;
    above = want & 32'h0;
{assigned}    number = {{|(grant & 32'hffff0000), |(grant & 32'hff00ff00), |(grant & 32'hf0f0f0f0),
        |(grant & 32'hcccccccc), |(grant & 32'haaaaaaaa)}} & 5'h{mask:x};
end"
        ))
    }
}

/// In Verilog, of each two of few inputs: a register that says that the first comes before the
/// second. It does unless the last winner is it or stands between them.
fn orders(inputs: u32, initial: u32) -> String {
    let mut code = String::new();
    for second in members(inputs) {
        for first in members(inputs & !(u32::MAX << second)) {
            let initial = initial >> first & 1 == 1 || initial >> second & 1 == 0;
            let (order, initial) = (order(first, second), u8::from(initial));
            // Writing to a string cannot fail.
            let _ = write!(
                code,
                "\
reg {order} = {initial};
always @(posedge clock) begin
    if (reset) {order} <= {initial};
    else if (moves) {order} <= above[{first}] | ~above[{second}];
end
"
            );
        }
    }
    code
}

/// In Verilog, for each of few inputs: whether it is the first of its kind, and whether one of the
/// other kind comes before it.
fn comparisons(inputs: u32, kind: u32) -> String {
    let mut code = String::new();
    for input in members(inputs) {
        let (own, of_own) = match kind >> input & 1 {
            1 => (1, kind),
            _ => (0, !kind),
        };
        let others = inputs & !(1 << input);
        let same = pairs(&mut code, "same", input, others & of_own);
        let other = pairs(&mut code, "other", input, others & !of_own);
        // Writing to a string cannot fail.
        let _ = write!(
            code,
            "\
wire first_of_kind{input} = asks[{input}] & can[{own}] & ~({same});
wire other_kind_first{input} = can[{}] & ({other});
",
            own ^ 1
        );
    }
    code
}

/// In Verilog: one of these others comes before an input. Declares nets for pairs of them: two,
/// each with its register, are four bits, as many as one table takes.
///
/// Several pairs are kept as they are. Yosys would take longer ways through fewer tables, since the
/// longest of the design is not here, and it does not know how far from here the grant is needed.
fn pairs(code: &mut String, name: &str, input: usize, others: u32) -> String {
    let others: Vec<usize> = members(others).collect();
    let is_kept = others.len() > 2;
    let nets = others.chunks(2).enumerate().map(|(place, pair)| {
        let before = term(pair.iter().map(|&other| asks_before(other, input)));
        let net = format!("{name}{input}_{place}");
        *code += &match is_kept {
            true => net_to_keep(&net, &before),
            false => format!("wire {net} = {before};\n"),
        };
        net
    });
    term(nets)
}

/// In Verilog: another input asks, and comes before this one.
fn asks_before(other: usize, input: usize) -> String {
    let before = match other < input {
        true => order(other, input),
        false => format!("~{}", order(input, other)),
    };
    format!("(asks[{other}] & {before})")
}

/// In Verilog: the register of two inputs.
fn order(first: usize, second: usize) -> String {
    format!("before{first}_{second}")
}

/// The inputs, one by one.
fn members(inputs: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| inputs >> i & 1 == 1)
}

/// The inputs, four and four, whose turn is looked for together.
pub(super) fn groups(inputs: u32) -> Vec<Vec<usize>> {
    let inputs: Vec<usize> = members(inputs).collect();
    inputs.chunks(4).map(<[usize]>::to_vec).collect()
}

/// The bits of which the lowest wins: what `want`s among the `inputs`, and stands after the last
/// winner if anything does.
pub(super) fn candidates(want: Bits<32>, after: Bits<32>, inputs: u32) -> u32 {
    let want = u64::from(want) as u32 & inputs;
    match want & u64::from(after) as u32 {
        0 => want,
        next => next,
    }
}

/// In Verilog, for each group: whether one of it wants to win, `wanted`, and whether one does that
/// stands after the last winner, `next`; and whether one of any does, `some_next`.
pub(super) fn compared(groups: &[Vec<usize>]) -> String {
    let mut code = String::new();
    for (g, group) in groups.iter().enumerate() {
        let (wanted, next) = (wanted_in(group), next_in(group));
        let _ = writeln!(code, "wire wanted{g} = {wanted};\nwire next{g} = {next};");
    }
    let some_next = term((0..groups.len()).map(|g| format!("next{g}")));
    let _ = writeln!(code, "wire some_next = {some_next};");
    code
}

/// In Verilog: one of these inputs wants to win.
pub(super) fn wanted_in(inputs: &[usize]) -> String {
    term(inputs.iter().map(|i| format!("want[{i}]")))
}

/// In Verilog: one of these inputs does, and stands after the last winner.
pub(super) fn next_in(inputs: &[usize]) -> String {
    term(inputs.iter().map(|i| format!("(want[{i}] & after[{i}])")))
}

/// In Verilog: one of these holds.
pub(super) fn term(terms: impl Iterator<Item = String>) -> String {
    let terms: Vec<String> = terms.collect();
    match terms.len() {
        0 => "1'b0".to_owned(),
        _ => terms.join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The registers that only the Verilog has, by the rule of [`orders`].
    struct Orders(BTreeMap<(usize, usize), bool>);

    impl Orders {
        fn follow(inputs: u32, rule: impl Fn(usize, usize) -> bool) -> Self {
            let pairs = members(inputs).flat_map(|second| {
                let firsts = members(inputs & !(u32::MAX << second));
                firsts.map(move |first| (first, second))
            });
            Self(pairs.map(|pair| (pair, rule(pair.0, pair.1))).collect())
        }

        fn is_before(&self, one: usize, other: usize) -> bool {
            match one < other {
                true => self.0[&(one, other)],
                false => !self.0[&(other, one)],
            }
        }
    }

    fn bit(bits: u32, index: usize) -> bool {
        bits >> index & 1 == 1
    }

    proptest! {
        #[test]
        fn the_order_of_pairs_has_the_same_winner(
            inputs: u32,
            last in 0u32..32,
            cycles in prop::collection::vec((any::<u32>(), any::<bool>()), 1..60),
        ) {
            let mut after = u32::MAX << last << 1;
            let mut orders =
                Orders::follow(inputs, |one, two| bit(after, one) || !bit(after, two));
            for (want, takes) in cycles {
                let search = candidates(u64::from(want).into(), u64::from(after).into(), inputs);
                let wants = |input: &usize| bit(want, *input);
                let winners = members(inputs).filter(wants).filter(|&input| {
                    let mut others = members(inputs).filter(wants).filter(|&other| other != input);
                    !others.any(|other| orders.is_before(other, input))
                });
                let grant = winners.fold(0, |grant, input| grant | 1u32 << input);
                prop_assert_eq!(grant, search & search.wrapping_neg());
                if takes && search != 0 {
                    after = search ^ search.wrapping_neg();
                    orders = Orders::follow(inputs, |one, two| bit(after, one) || !bit(after, two));
                }
            }
        }
    }
}
