//! Whose turn it is: the first of the bits that are set, from a place on and round.

use std::fmt::Write;

use rust_hdl::prelude::*;

/// Which of 32 bits is the first that is set and stands after the last winner, or, if none does, the
/// first that is set; one-hot and as a number, both 0 if none is.
///
/// Both searches run side by side, in few levels of logic, over those of the bits only that can be
/// set: first what groups of four neighbours have, then what stands before each group, then what
/// stands before a bit in its group. Of eight bits or fewer, the winner is found by comparing each
/// with every other.
#[derive(Clone, Debug, LogicBlock)]
pub struct InTurn {
    /// The bits.
    pub want: Signal<In, Bits<32>>,
    /// Ones above the last winner.
    pub after: Signal<In, Bits<32>>,
    /// The winner's bit.
    pub grant: Signal<Out, Bits<32>>,
    /// Its number.
    pub number: Signal<Out, Bits<5>>,
    /// Ones above it; anything if there is none.
    pub above: Signal<Out, Bits<32>>,
    /// The bits that can be set.
    _inputs: u32,
    /// Which of the number's bits can be 1; all but in a broken variant.
    pub(crate) _mask: u32,
}

/// Up to so many inputs, each is compared with every other.
const PAIRED: u32 = 8;

impl InTurn {
    /// Among these bits.
    pub fn among(inputs: u32) -> Self {
        Self {
            want: Signal::default(),
            after: Signal::default(),
            grant: Signal::default(),
            number: Signal::default(),
            above: Signal::default(),
            _inputs: inputs,
            _mask: 31,
        }
    }
}

impl Logic for InTurn {
    fn update(&mut self) {
        let search = candidates(self.want.val(), self.after.val(), self._inputs);
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
        let mut code = compared(&groups);
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
                let grant = match self._inputs.count_ones() {
                    ..=PAIRED => paired_grant(self._inputs, *i),
                    _ => format!("after[{i}] ? next_below{i} : below{i} | some_next"),
                };
                let _ = write!(
                    assigned,
                    "    grant[{i}] = want[{i}] & ~({grant});
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

/// In Verilog, for one of few inputs: one that comes before it wants to win. Pairs of the others, since
/// two of them and whether this one stands after the last winner are five bits, as many as one table takes.
fn paired_grant(inputs: u32, input: usize) -> String {
    let comes_before = |other: usize| match other < input {
        true => format!("(want[{other}] & (after[{other}] | ~after[{input}]))"),
        false => format!("(want[{other}] & after[{other}] & ~after[{input}])"),
    };
    let others: Vec<usize> = (0..32)
        .filter(|&other| inputs >> other & 1 == 1 && other != input)
        .collect();
    let pairs = others.chunks(2).map(|pair| {
        let pair = term(pair.iter().map(|&other| comes_before(other)));
        format!("({pair})")
    });
    term(pairs)
}

/// The inputs, four and four, whose turn is looked for together.
pub(super) fn groups(inputs: u32) -> Vec<Vec<usize>> {
    let inputs: Vec<usize> = (0..32).filter(|i| inputs >> i & 1 == 1).collect();
    inputs.chunks(4).map(<[usize]>::to_vec).collect()
}

/// The bits of which the lowest wins: what `want`s among the `inputs`, and stands after the last winner
/// if anything does.
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
