//! A register with a synchronous reset.

use rust_hdl::prelude::*;

/// Takes `d` at each rising edge, or its initial value while `reset` is high. It has the initial
/// value from power-on, too.
#[derive(Clone, Debug, LogicBlock)]
pub struct Register<T: Synth> {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Whether the initial value is taken.
    pub reset: Signal<In, Bit>,
    /// The next value.
    pub d: Signal<In, T>,
    /// The value.
    pub q: Signal<Out, T>,
    _initial: T,
}

impl<T: Synth> Register<T> {
    /// With this initial value.
    pub fn new(initial: T) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            d: Signal::default(),
            q: Signal::new_with_default(initial),
            _initial: initial,
        }
    }
}

impl<T: Synth> Default for Register<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Synth> Logic for Register<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.q.next = if self.reset.val() {
                self._initial
            } else {
                self.d.val()
            };
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        let initial = self._initial.verilog();
        Verilog::Custom(format!(
            "\
initial begin
    q = {initial:x};
end

always @(posedge clock) begin
    if (reset) q <= {initial:x};
    else q <= d;
end"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        vec![TimingInfo {
            name: "register".into(),
            clock: "clock".into(),
            inputs: vec!["reset".into(), "d".into()],
            outputs: vec!["q".into()],
        }]
    }
}
