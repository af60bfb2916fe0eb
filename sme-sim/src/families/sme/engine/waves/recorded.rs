//! The decorator of an engine that writes down what passes its ports, if a [`Tap`] asks for it.

use super::{Tap, signals};
use crate::families::sme::engine::{EngineModel, Input, Output, Packet, Shortcuts, Transit};
use crate::observe::waves::{Heard, Passes, Signal};

// The documentation gives this figure.
const _: () = assert!(size_of::<(usize, Heard<Passed>)>() <= 64);

/// Something that passes a port of an engine, and in which direction.
#[derive(Clone, Copy, Debug)]
pub enum Passed {
    /// To the engine.
    In(Input),
    /// From it.
    Out(Output),
}

impl Passes for Passed {
    const TOP: &'static str = "cluster";

    fn scope(node: u32) -> String {
        format!("engine_{node}")
    }

    fn signals() -> Vec<Signal> {
        signals::all()
    }

    fn release(values: &mut [u64]) {
        signals::release(values);
    }

    fn present(&self, values: &mut [u64]) {
        signals::present(values, self);
    }

    fn port(&self) -> usize {
        signals::port(self)
    }
}

/// An engine whose ports are recorded if there is a tap. Without one it costs a comparison.
#[derive(Debug)]
pub struct Recorded<'a, E> {
    engine: &'a mut E,
    tap: Option<&'a Tap>,
}

impl<'a, E> Recorded<'a, E> {
    /// Lets `tap` hear what passes the ports of `engine`.
    #[inline]
    pub fn new(engine: &'a mut E, tap: Option<&'a Tap>) -> Self {
        Self { engine, tap }
    }
}

impl<E: EngineModel> EngineModel for Recorded<'_, E> {
    #[inline]
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    #[inline]
    fn input(&mut self, cycle: u64, input: Input) {
        if let Some(tap) = self.tap {
            tap.hears(cycle, [Passed::In(input)]);
        }
        self.engine.input(cycle, input);
    }

    #[inline]
    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let before = out.len();
        self.engine.step(cycle, out);
        if let Some(tap) = self.tap
            && out.len() > before
        {
            tap.hears(cycle, out.iter().skip(before).copied().map(Passed::Out));
        }
    }
}

impl<E: Shortcuts> Shortcuts for Recorded<'_, E> {
    /// While the ports are recorded, everything passes them when it does.
    #[inline]
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        if self.tap.is_none() {
            self.engine.foresee(out);
        }
    }

    /// No packet takes this shortcut while the ports are recorded.
    #[inline]
    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        match self.tap {
            None => self.engine.transit(cycle, port, channel, packet),
            Some(_) => None,
        }
    }

    /// No credit takes this shortcut while the ports are recorded.
    #[inline]
    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        self.tap.is_none() && self.engine.late_credit(port, channel)
    }

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        self.tap.is_some() || self.engine.awaits_link_credits()
    }
}
