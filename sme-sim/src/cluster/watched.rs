//! The engine as a cluster has it: in debug builds with a protocol checker on every port.
//!
//! A violation is a mistake of the simulator, not of what it simulates: it panics in the cycle in
//! which it shows, and names the node, the port and the packet. Release builds have the bare
//! engine, and pay nothing.

use std::sync::Arc;

#[cfg(debug_assertions)]
use crate::engine::Checked;
use crate::engine::{Design, Engine, EngineModel, Input, Output};
use crate::machine::ClusterSpec;

/// A cycle model of an engine, checked in debug builds.
#[derive(Debug)]
pub struct Watched {
    #[cfg(debug_assertions)]
    engine: Checked<Engine>,
    #[cfg(debug_assertions)]
    position: u32,
    #[cfg(not(debug_assertions))]
    engine: Engine,
}

impl Watched {
    /// The engine at `position`; only a switch beyond the last of the `hosts` nodes.
    pub(super) fn new(design: &Arc<Design>, spec: &ClusterSpec, position: u32, hosts: u32) -> Self {
        let engine = if position < hosts {
            Engine::with_design(design, position)
        } else {
            Engine::switch_only(design, position)
        };
        #[cfg(debug_assertions)]
        return Self {
            engine: Checked::new(engine, spec, position, hosts),
            position,
        };
        #[cfg(not(debug_assertions))]
        {
            let _ = spec;
            Self { engine }
        }
    }

    /// The engine itself.
    #[cfg(debug_assertions)]
    pub fn engine(&self) -> &Engine {
        self.engine.engine()
    }

    /// The engine itself.
    #[cfg(not(debug_assertions))]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl EngineModel for Watched {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.engine.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.engine.step(cycle, out);
        #[cfg(debug_assertions)]
        if let Some(violation) = self.engine.violation() {
            panic!("engine of node {}: {violation}", self.position);
        }
    }

    fn ended(&self) {
        #[cfg(debug_assertions)]
        if let Err(violation) = self.engine.finish() {
            panic!("engine of node {}: {violation}", self.position);
        }
    }
}
