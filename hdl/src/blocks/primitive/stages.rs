//! Registers in a row.

use rust_hdl::prelude::*;
use std::collections::VecDeque;
use std::fmt::Write;

/// Gives out `d` as many rising edges later as it has registers. They have their initial value
/// from power-on, and take it at each rising edge while `reset` is high. One of them is a
/// [`Register`](super::Register); none is a wire.
#[derive(Clone, Debug, LogicBlock)]
pub struct Stages<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Whether the initial value is taken.
    pub reset: Signal<In, Bit>,
    /// The input.
    pub d: Signal<In, T>,
    /// The output.
    pub q: Signal<Out, T>,
    _initial: T,
    /// The contents of the registers, the first in front, without the last one's, which `q` shows.
    _inner: VecDeque<T>,
    _count: usize,
}

impl<T: Synth> Stages<T> {
    /// With so many registers and this initial value.
    pub fn new(count: usize, initial: T) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            d: Signal::default(),
            q: Signal::new_with_default(initial),
            _initial: initial,
            _inner: vec![initial; count.saturating_sub(1)].into(),
            _count: count,
        }
    }
}

impl<T: Synth> Logic for Stages<T> {
    fn update(&mut self) {
        if self._count == 0 {
            self.q.next = self.d.val();
        } else if self.clock.pos_edge() {
            if self.reset.val() {
                self._inner
                    .iter_mut()
                    .for_each(|held| *held = self._initial);
                self.q.next = self._initial;
            } else {
                self._inner.push_front(self.d.val());
                self.q.next = self._inner.pop_back().unwrap_or(self._initial);
            }
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        if self._count == 0 {
            return Verilog::Custom("always @(*) q = d;".into());
        }
        let initial = self._initial.verilog();
        let last = T::BITS - 1;
        let [mut declared, mut set, mut reset, mut moved] = [const { String::new() }; 4];
        let mut before = "d".to_owned();
        for inner in 1..self._count {
            // Writing to a string cannot fail.
            let _ = writeln!(declared, "reg [{last}:0] stage{inner};");
            let _ = writeln!(set, "    stage{inner} = {initial:x};");
            let _ = write!(reset, "stage{inner} <= {initial:x}; ");
            let _ = write!(moved, "stage{inner} <= {before}; ");
            before = format!("stage{inner}");
        }
        // A single one in the very words of a register, so that equal modules become one.
        let (reset, moved) = match self._count {
            1 => (format!("q <= {initial:x};"), "q <= d;".to_owned()),
            _ => (
                format!("begin {reset}q <= {initial:x}; end"),
                format!("begin {moved}q <= {before}; end"),
            ),
        };
        Verilog::Custom(format!(
            "\
{declared}initial begin
{set}    q = {initial:x};
end

always @(posedge clock) begin
    if (reset) {reset}
    else {moved}
end"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        if self._count == 0 {
            return Vec::new();
        }
        vec![TimingInfo {
            name: "stages".into(),
            clock: "clock".into(),
            inputs: vec!["reset".into(), "d".into()],
            outputs: vec!["q".into()],
        }]
    }
}
