//! The decorator of an engine that writes down what passes its ports, if a [`Tap`] asks for it.

use std::ops::Range;
use std::sync::Arc;

use super::{Shared, lock};
use crate::families::sme::engine::{EngineModel, Input, Output, Packet, Shortcuts, Transit};

/// Where an engine's decorator writes, and the recorder reads.
#[derive(Clone, Debug)]
pub struct Tap {
    pub(super) node: u32,
    /// The cycles that are recorded.
    pub(super) cycles: Range<u64>,
    pub(super) heard: Shared<Vec<Heard>>,
}

impl Tap {
    pub(super) fn new(node: u32, cycles: Range<u64>) -> Self {
        Self {
            node,
            cycles,
            heard: Arc::default(),
        }
    }
}

/// Something that passed a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) cycle: u64,
    pub(super) passed: Passed,
}

// What the documentation says about memory.
const _: () = assert!(size_of::<(usize, Heard)>() <= 64);

/// In which direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passed {
    In(Input),
    Out(Output),
}

/// An engine whose ports are recorded if there is a tap. Without one it costs a comparison.
#[derive(Debug)]
pub struct Recorded<'a, E> {
    engine: &'a mut E,
    tap: Option<&'a Tap>,
}

impl<'a, E> Recorded<'a, E> {
    /// What passes the ports of `engine` is told to `tap`.
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
        if let Some(tap) = &self.tap
            && tap.cycles.contains(&cycle)
        {
            let passed = Passed::In(input);
            lock(&tap.heard).push(Heard { cycle, passed });
        }
        self.engine.input(cycle, input);
    }

    #[inline]
    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let before = out.len();
        self.engine.step(cycle, out);
        if let Some(tap) = &self.tap
            && out.len() > before
            && tap.cycles.contains(&cycle)
        {
            let heard = out.iter().skip(before).map(|&output| Heard {
                cycle,
                passed: Passed::Out(output),
            });
            lock(&tap.heard).extend(heard);
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

    /// Likewise.
    #[inline]
    fn transit(&mut self, cycle: u64, port: u8, channel: u8, packet: &Packet) -> Option<Transit> {
        match self.tap {
            None => self.engine.transit(cycle, port, channel, packet),
            Some(_) => None,
        }
    }

    /// Likewise.
    #[inline]
    fn late_credit(&mut self, port: u8, channel: u8) -> bool {
        self.tap.is_none() && self.engine.late_credit(port, channel)
    }

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        self.tap.is_some() || self.engine.awaits_link_credits()
    }
}
