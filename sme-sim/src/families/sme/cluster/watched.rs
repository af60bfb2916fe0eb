//! The engine as a cluster has it: in debug builds with a protocol checker on every port.
//!
//! It may be the cycle model or anything else that gives the same outputs, such as its RTL. A
//! violation of the protocol is a mistake of the simulator, not of what it simulates: it panics in
//! the cycle in which it shows, and names the node, the port and the packet. Release builds have
//! the bare engine, and pay nothing.

use std::fmt;
use std::sync::Arc;

#[cfg(debug_assertions)]
use crate::families::sme::engine::Checked;
use crate::families::sme::engine::{
    Counters, Design, Engine, EngineModel, Input, Inspect, Output, Packet, Shortcuts, Transit,
    WideSwitch,
};
use crate::families::sme::spec::ClusterSpec;

/// The engine or switch at a position.
// The cycle model, which nearly every run has, is not worth a box.
#[allow(clippy::large_enum_variant)]
pub enum Plugged {
    /// The cycle model.
    Cycle(Engine),
    /// Something else.
    Other(Box<dyn Inspect>),
}

impl Plugged {
    /// The cycle model of the engine at `position`; only a switch beyond the last of the `hosts`,
    /// and one of another kind where it stands outside the engines.
    pub fn cycle(design: &Arc<Design>, position: u32, hosts: u32) -> Self {
        if design.is_switch(position) {
            return Self::Other(Box::new(WideSwitch::new(design, position)));
        }
        Self::Cycle(if position < hosts {
            Engine::with_design(design, position)
        } else {
            Engine::switch_only(design, position)
        })
    }
}

impl fmt::Debug for Plugged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(engine) => engine.fmt(f),
            Self::Other(_) => f.write_str("Other"),
        }
    }
}

impl EngineModel for Plugged {
    #[inline]
    fn next_cycle(&self) -> Option<u64> {
        match self {
            Self::Cycle(engine) => engine.next_cycle(),
            Self::Other(engine) => engine.next_cycle(),
        }
    }

    #[inline]
    fn input(&mut self, cycle: u64, input: Input) {
        match self {
            Self::Cycle(engine) => engine.input(cycle, input),
            Self::Other(engine) => engine.input(cycle, input),
        }
    }

    #[inline]
    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        match self {
            Self::Cycle(engine) => engine.step(cycle, out),
            Self::Other(engine) => engine.step(cycle, out),
        }
    }
}

impl Shortcuts for Plugged {
    #[inline]
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        match self {
            Self::Cycle(engine) => engine.foresee(out),
            Self::Other(engine) => engine.foresee(out),
        }
    }

    #[inline]
    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        match self {
            Self::Cycle(engine) => engine.transit(cycle, port, channel, packet),
            Self::Other(engine) => engine.transit(cycle, port, channel, packet),
        }
    }

    #[inline]
    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        match self {
            Self::Cycle(engine) => engine.late_credit(port, channel),
            Self::Other(engine) => engine.late_credit(port, channel),
        }
    }

    #[inline]
    fn prefetch(&self, coming: &Input) {
        match self {
            Self::Cycle(engine) => engine.prefetch(coming),
            Self::Other(engine) => engine.prefetch(coming),
        }
    }

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        match self {
            Self::Cycle(engine) => engine.awaits_link_credits(),
            Self::Other(engine) => engine.awaits_link_credits(),
        }
    }
}

impl Inspect for Plugged {
    fn counters(&self) -> Counters {
        match self {
            Self::Cycle(engine) => engine.counters(),
            Self::Other(engine) => engine.counters(),
        }
    }

    fn is_quiet(&self) -> bool {
        match self {
            Self::Cycle(engine) => engine.is_quiet(),
            Self::Other(engine) => engine.is_quiet(),
        }
    }

    fn state_bytes(&self) -> usize {
        match self {
            Self::Cycle(engine) => size_of::<Self>() - size_of::<Engine>() + engine.state_bytes(),
            Self::Other(engine) => size_of::<Self>() + engine.state_bytes(),
        }
    }
}

/// An engine, checked in debug builds.
#[derive(Debug)]
pub struct Watched {
    #[cfg(debug_assertions)]
    engine: Checked<Plugged>,
    #[cfg(debug_assertions)]
    position: u32,
    #[cfg(not(debug_assertions))]
    engine: Plugged,
}

impl Watched {
    /// The engine at `position` of a cluster of `hosts` nodes.
    pub(crate) fn new(engine: Plugged, spec: &ClusterSpec, position: u32, hosts: u32) -> Self {
        #[cfg(debug_assertions)]
        return Self {
            engine: Checked::new(engine, spec, position, hosts),
            position,
        };
        #[cfg(not(debug_assertions))]
        {
            let _ = (spec, position, hosts);
            Self { engine }
        }
    }

    #[cfg(debug_assertions)]
    fn stop_at_violation(&self) {
        if let Some(violation) = self.engine.violation() {
            panic!("engine of node {}: {violation}", self.position);
        }
    }

    /// A run has ended, and nothing is under way any more: in debug builds, panics if anything was
    /// lost.
    pub fn ended(&self) {
        #[cfg(debug_assertions)]
        if let Err(violation) = self.engine.finish() {
            panic!("engine of node {}: {violation}", self.position);
        }
    }

    /// The engine itself.
    #[cfg(debug_assertions)]
    pub fn engine(&self) -> &Plugged {
        self.engine.engine()
    }

    /// The engine itself.
    #[cfg(not(debug_assertions))]
    pub fn engine(&self) -> &Plugged {
        &self.engine
    }
}

impl EngineModel for Watched {
    #[inline]
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    #[inline]
    fn input(&mut self, cycle: u64, input: Input) {
        self.engine.input(cycle, input);
    }

    #[inline]
    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.engine.step(cycle, out);
        #[cfg(debug_assertions)]
        self.stop_at_violation();
    }
}

impl Shortcuts for Watched {
    #[inline]
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        self.engine.foresee(out);
        #[cfg(debug_assertions)]
        self.stop_at_violation();
    }

    #[inline]
    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        let transit = self.engine.transit(cycle, port, channel, packet);
        #[cfg(debug_assertions)]
        self.stop_at_violation();
        transit
    }

    #[inline]
    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        self.engine.late_credit(port, channel)
    }

    #[inline]
    fn prefetch(&self, coming: &Input) {
        self.engine.prefetch(coming);
    }

    #[inline]
    fn awaits_link_credits(&self) -> bool {
        self.engine.awaits_link_credits()
    }
}
