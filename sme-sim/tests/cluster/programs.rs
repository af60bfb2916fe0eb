//! Programs of different threads as one type, and clusters that run them.

use std::future::Future;
use std::pin::Pin;

use sme_memory::{Memory, Place, Route, Word};
use sme_sim::families::sme::cluster::{Cluster, Failure, Pinning, Setup};
use sme_sim::machine::Machine;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The program that does nothing.
pub fn nothing() -> Program {
    Box::pin(async {})
}

/// The prototype, with the first `nodes` positions of `topology` taken by nodes.
pub fn setup(topology: &str, nodes: u32, threads: u32) -> Setup {
    Setup {
        spec: Machine::builtin("sme-prototype").unwrap().cluster().clone(),
        topology: topology.parse().unwrap(),
        nodes,
        threads,
        pinning: Pinning::Scatter,
        seed: 1,
        coherent_stores: true,
        visits: false,
        noise: None,
    }
}

/// The same with some of the prototype's constants changed.
pub fn setup_with(constants: &[(&str, &str)], topology: &str, nodes: u32, threads: u32) -> Setup {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let machine = machine.with(constants).unwrap();
    Setup {
        spec: machine.cluster().clone(),
        ..setup(topology, nodes, threads)
    }
}

/// Runs to the end; a run that ends well must leave nothing under way.
pub fn run(
    setup: Setup,
    program: impl FnMut(ThreadMemory, u32, u32) -> Program,
) -> Result<(), Failure> {
    let mut cluster = Cluster::new(setup, program).unwrap();
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
