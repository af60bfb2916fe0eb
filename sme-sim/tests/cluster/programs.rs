//! Programs of different threads as one type, and clusters that run them.

use std::future::Future;
use std::pin::Pin;

use sme_memory::{Memory, Place, Route, Word};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::Cluster;
use sme_sim::families::sme::engine::DesignError;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The program that does nothing.
pub fn nothing() -> Program {
    Box::pin(async {})
}

/// A machine, and what a run of it is built from.
#[derive(Clone, Debug)]
pub struct Setting {
    pub spec: ClusterSpec,
    pub setup: Setup,
}

impl Setting {
    /// The same with its setup changed.
    pub fn with(self, change: impl FnOnce(Setup) -> Setup) -> Self {
        Self {
            setup: change(self.setup),
            ..self
        }
    }
}

/// A cluster of that, with a program on every thread.
pub fn cluster<F: Future<Output = ()> + Send + 'static>(
    setting: Setting,
    program: impl FnMut(ThreadMemory, u32, u32) -> F,
) -> Result<Cluster, DesignError> {
    Cluster::new(&setting.spec, setting.setup, program)
}

/// The prototype, with the first `nodes` positions of `topology` taken by nodes.
pub fn setup(topology: &str, nodes: u32, threads: u32) -> Setting {
    setup_with(&[], topology, nodes, threads)
}

/// The same with some of the prototype's constants changed.
pub fn setup_with(constants: &[(&str, &str)], topology: &str, nodes: u32, threads: u32) -> Setting {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let machine = machine.with(constants).unwrap();
    Setting {
        spec: sme::of(&machine).unwrap().clone(),
        setup: Setup::new(machine.shape(), nodes, threads).on(topology.parse().unwrap()),
    }
}

/// Runs to the end; a run that ends well must leave nothing under way.
pub fn run(
    setting: Setting,
    program: impl FnMut(ThreadMemory, u32, u32) -> Program,
) -> Result<(), Failure> {
    let mut cluster = cluster(setting, program).unwrap();
    let outcome = cluster.run(1, |_| {});
    if outcome.is_ok() {
        assert!(cluster.is_quiet(), "something is still under way");
    }
    outcome
}

/// A byte offset in the shared partition of `node`.
pub fn place(node: u32, offset: u64) -> Place {
    Place { node, offset }
}

/// A word by its nearest address.
pub fn word(memory: &ThreadMemory, node: u32, offset: u64) -> Word {
    memory.word(place(node, offset), Route::Nearest)
}

pub const fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}
