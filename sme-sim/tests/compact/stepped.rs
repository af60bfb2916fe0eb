//! An engine that says nothing before its time: it is stepped edge by edge, as RTL is.

use std::sync::Arc;

use sme_sim::families::sme::cluster::Plugged;
use sme_sim::families::sme::engine::{
    Counters, Design, Engine, EngineModel, Input, Inspect, Output, Shortcuts, WideSwitch,
};

/// The cycle model, without what it can tell ahead.
struct Stepped<E>(E);

impl<E: EngineModel> EngineModel for Stepped<E> {
    fn next_cycle(&self) -> Option<u64> {
        self.0.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.0.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.0.step(cycle, out);
    }
}

impl<E: Shortcuts> Shortcuts for Stepped<E> {}

impl<E: Inspect> Inspect for Stepped<E> {
    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn is_quiet(&self) -> bool {
        self.0.is_quiet()
    }

    fn state_bytes(&self) -> usize {
        self.0.state_bytes()
    }
}

/// The engine at `position` of a cluster of `hosts` nodes.
pub fn engine(design: &Arc<Design>, position: u32, hosts: u32) -> Plugged {
    Plugged::Other(if design.is_switch(position) {
        Box::new(Stepped(WideSwitch::new(design, position)))
    } else if position < hosts {
        Box::new(Stepped(Engine::with_design(design, position)))
    } else {
        Box::new(Stepped(Engine::switch_only(design, position)))
    })
}
