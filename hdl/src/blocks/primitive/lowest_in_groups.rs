//! The lowest of the bits that are set, where it is known which groups of four have one.

use rust_hdl::prelude::*;

/// Finds the first of 32 bits that is set, when `groups` says, bit by bit, in which four neighbours
/// there is one. The block trusts `groups`.
///
/// Few levels of logic: the first group is found and the first bit of each group at the same time.
#[derive(Clone, Debug, LogicBlock)]
pub struct LowestInGroups {
    /// The bits.
    pub bits: Signal<In, Bits<32>>,
    /// The groups of four bits that have one set.
    pub groups: Signal<In, Bits<8>>,
    /// The number of a bit.
    pub limit: Signal<In, Bits<5>>,
    /// The lowest bit alone; 0 if none is set.
    pub first: Signal<Out, Bits<32>>,
    /// Its number; 0 if none is set.
    pub number: Signal<Out, Bits<5>>,
    /// Its group alone, if it is the only one there; else 0.
    pub emptied: Signal<Out, Bits<8>>,
    /// No bit up to `limit` is set.
    pub none_up_to: Signal<Out, Bit>,
    /// The bits of the number that can be 1; all but in a broken variant.
    pub(crate) _mask: u32,
}

impl Default for LowestInGroups {
    fn default() -> Self {
        Self {
            bits: Signal::default(),
            groups: Signal::default(),
            limit: Signal::default(),
            first: Signal::default(),
            number: Signal::default(),
            emptied: Signal::default(),
            none_up_to: Signal::default(),
            _mask: 31,
        }
    }
}

impl Logic for LowestInGroups {
    fn update(&mut self) {
        let bits = u64::from(self.bits.val()) as u32;
        let groups = u64::from(self.groups.val()) as u32;
        let limit = u64::from(self.limit.val()) as u32;
        let group = groups.trailing_zeros();
        let (mut first, mut number, mut emptied) = (0, 0, 0);
        if group < 8 {
            let four = bits >> (4 * group) & 15;
            let low = four & four.wrapping_neg();
            first = low << (4 * group);
            number = 4 * group + if four == 0 { 0 } else { low.trailing_zeros() };
            emptied = u32::from(four == low) << group;
        }
        let before = groups & ((1 << (limit / 4)) - 1);
        let within = bits >> (limit / 4 * 4) & ((2 << (limit % 4)) - 1);
        self.first.next = u64::from(first).into();
        self.number.next = u64::from(number & self._mask).into();
        self.emptied.next = u64::from(emptied).into();
        self.none_up_to.next = before == 0 && within == 0;
    }

    fn connect(&mut self) {
        self.first.connect();
        self.number.connect();
        self.emptied.connect();
        self.none_up_to.connect();
    }

    fn hdl(&self) -> Verilog {
        let mask = self._mask;
        let mut code = "\
wire [7:0] low0, low1, selected, single, in_group;
wire [31:0] lowest;
wire [3:0] up_to = ~(4'he << limit[1:0]);
wire [7:0] lower_groups = ~(8'hff << limit[4:2]);
"
        .to_owned();
        for group in 0..8 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|bit| format!("bits[{}]", 4 * group + bit));
            let (low, high) = (4 * group, 4 * group + 3);
            let earlier = if group == 0 {
                "1'b1".to_owned()
            } else {
                format!("~|groups[{}:0]", group - 1)
            };
            code += &format!(
                "
assign selected[{group}] = groups[{group}] & {earlier};
assign lowest[{high}:{low}] = {{{d} & ~{c} & ~{b} & ~{a}, {c} & ~{b} & ~{a}, {b} & ~{a}, {a}}};
assign low0[{group}] = ~{a} & ({b} | (~{c} & {d}));
assign low1[{group}] = ~{a} & ~{b} & ({c} | {d});
assign single[{group}] = lowest[{high}:{low}] == bits[{high}:{low}];
assign in_group[{group}] = limit[4:2] == 3'd{group} & |(bits[{high}:{low}] & up_to);
always @(*) first[{high}:{low}] = lowest[{high}:{low}] & {{4{{selected[{group}]}}}};
"
            );
        }
        // Of each two, four, eight groups, the first that has a bit.
        for bit in ["low0", "low1"] {
            code += &format!(
                "
wire [3:0] {bit}_of_2;
wire [1:0] {bit}_of_4;
wire {bit}_of_8 = |groups[3:0] ? {bit}_of_4[0] : {bit}_of_4[1];
assign {bit}_of_2 = {{groups[6] ? {bit}[6] : {bit}[7], groups[4] ? {bit}[4] : {bit}[5],
    groups[2] ? {bit}[2] : {bit}[3], groups[0] ? {bit}[0] : {bit}[1]}};
assign {bit}_of_4 = {{|groups[5:4] ? {bit}_of_2[2] : {bit}_of_2[3],
    |groups[1:0] ? {bit}_of_2[0] : {bit}_of_2[1]}};
"
            );
        }
        code += &format!(
            "
always @(*) begin
    number = {{|selected[7:4], |(selected & 8'hcc), |(selected & 8'haa), low1_of_8, low0_of_8}}
        & 5'h{mask:x};
    emptied = selected & single;
    none_up_to = ~|(groups & lower_groups) & ~|in_group;
end"
        );
        Verilog::Custom(code)
    }
}
