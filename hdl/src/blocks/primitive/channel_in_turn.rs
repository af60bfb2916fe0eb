//! The virtual channel of whose turn it is.

use std::fmt::Write;

use rust_hdl::prelude::*;

use super::in_turn::{candidates, compared, groups, next_in, term, wanted_in};

/// On which virtual channel the winner that [`InTurn`](super::InTurn) finds goes on, one-hot; 0 if
/// none wins.
///
/// It does not wait for the winner: while the groups of four are compared, each knows already by
/// which channel it would go on.
#[derive(Clone, Debug, LogicBlock)]
pub struct ChannelInTurn {
    /// The inputs that want an output.
    pub want: Signal<In, Bits<32>>,
    /// Ones above the last winner.
    pub after: Signal<In, Bits<32>>,
    /// The inputs whose first packet continues on its class's second channel.
    pub crossed: Signal<In, Bits<32>>,
    /// Channels of requests, 0 and 1, and of responses, 2 and 3.
    pub channel: Signal<Out, Bits<4>>,
    /// The inputs that can want it.
    _inputs: u32,
    /// The inputs that carry responses.
    _responses: u32,
}

impl ChannelInTurn {
    /// Among these inputs, of which some carry responses, the others requests.
    pub fn among(inputs: u32, responses: u32) -> Self {
        Self {
            want: Signal::default(),
            after: Signal::default(),
            crossed: Signal::default(),
            channel: Signal::default(),
            _inputs: inputs,
            _responses: responses,
        }
    }
}

impl Logic for ChannelInTurn {
    fn update(&mut self) {
        let search = candidates(self.want.val(), self.after.val(), self._inputs);
        self.channel.next = match search.trailing_zeros() {
            32 => 0,
            winner => {
                let crossed = u64::from(self.crossed.val()) >> winner & 1;
                let response = u64::from(self._responses >> winner & 1);
                1u64 << (2 * response + crossed)
            }
        }
        .into();
    }

    fn connect(&mut self) {
        self.channel.connect();
    }

    fn hdl(&self) -> Verilog {
        let groups = groups(self._inputs);
        let mut code = compared(&groups);
        // Writing to a string cannot fail.
        for (g, group) in groups.iter().enumerate() {
            for channel in 0..4 {
                let response = channel / 2 == 1;
                let of_class = |i: usize| (self._responses >> i & 1 == 1) == response;
                let not = if channel % 2 == 0 { "~" } else { "" };
                let first = |of: fn(&[usize]) -> String| {
                    let places = (0..group.len()).filter(|&place| of_class(group[place]));
                    let one = |place: usize| {
                        let (here, before) = (of(&group[place..=place]), of(&group[..place]));
                        format!("({here}) & ~({before}) & {not}crossed[{}]", group[place])
                    };
                    term(places.map(one))
                };
                let (first_wanted, first_next) = (first(wanted_in), first(next_in));
                let _ = write!(
                    code,
                    "\
wire wanted{g}_{channel} = {first_wanted};
wire next{g}_{channel} = {first_next};
"
                );
            }
        }
        // Simulators evaluate a block when something that it reads changes.
        code += "always @(*) begin\n    channel = want[3:0] & 4'h0;\n";
        for channel in 0..4 {
            let won = (0..groups.len()).map(|g| {
                let next_before = term((0..g).map(|h| format!("next{h}")));
                let wanted_before = term((0..g).map(|h| format!("wanted{h}")));
                format!(
                    "(next{g}_{channel} & ~({next_before}))
        | (wanted{g}_{channel} & ~(some_next | {wanted_before}))"
                )
            });
            let won = term(won);
            let _ = writeln!(code, "    channel[{channel}] = {won};");
        }
        code += "end";
        Verilog::Custom(code)
    }
}
