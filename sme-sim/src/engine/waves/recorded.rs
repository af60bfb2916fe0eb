//! The decorator of an engine that writes down what passes its ports, if a [`Tap`] asks for it.

use std::ops::Range;
use std::sync::Arc;

use super::{Shared, lock};
use crate::engine::{EngineModel, Input, Output, Packet, Transit};

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

/// An engine whose ports are recorded while there is a tap. Without one it costs a comparison.
#[derive(Debug)]
pub struct Recorded<E> {
    engine: E,
    tap: Option<Box<Tap>>,
}

impl<E> Recorded<E> {
    /// `engine`, not recorded yet.
    pub fn new(engine: E) -> Self {
        Self { engine, tap: None }
    }

    /// Records from now on.
    pub fn record(&mut self, tap: Tap) {
        self.tap = Some(Box::new(tap));
    }

    /// The engine within.
    pub fn engine(&self) -> &E {
        &self.engine
    }
}

impl<E: EngineModel> EngineModel for Recorded<E> {
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

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        self.tap.is_some() || self.engine.awaits_link_credits()
    }

    fn ended(&self) {
        self.engine.ended();
    }
}
