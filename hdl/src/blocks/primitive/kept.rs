//! A register that keeps its value until it is told to take another.

use rust_hdl::prelude::*;

/// Takes `d` at a rising edge with `enable` high. It is zero from power-on and is not reset:
/// the reader knows what was written.
#[derive(Clone, Debug, LogicBlock)]
pub struct Kept<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Whether `d` is taken.
    pub enable: Signal<In, Bit>,
    /// The next value.
    pub d: Signal<In, T>,
    /// The value.
    pub q: Signal<Out, T>,
}

impl<T: Synth> Default for Kept<T> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            enable: Signal::default(),
            d: Signal::default(),
            q: Signal::new_with_default(T::default()),
        }
    }
}

impl<T: Synth> Logic for Kept<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.enable.val() {
            self.q.next = self.d.val();
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(
            "\
initial begin
    q = 0;
end

always @(posedge clock) begin
    if (enable) q <= d;
end"
            .into(),
        )
    }

    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "kept".into(),
            clock: "clock".into(),
            inputs: vec!["enable".into(), "d".into()],
            outputs: vec!["q".into()],
        }]
    }
}
