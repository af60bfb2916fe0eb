//! Extras of a barrier experiment on a cluster with Shared Memory Engines and on no other machine:
//! engines in RTL, waveforms of engines' ports, and nodes in compact form.

mod compact;
mod engines;

use std::future::Future;

use sme_sim::families::sme;
use sme_sim::families::sme::cluster::Cluster;
pub use sme_sim::families::sme::engine::DesignError;
pub use sme_sim::families::sme::engine::waves::Recorder;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::kernel::peers::Peers;
use sme_sim::machine::{Readable, Setup};
use sme_sim::parts::contract::ThreadMemory;

use super::{Error, Experiment};

/// The machine of `experiment` with the engines that it names, their ports recorded by `waves`.
pub(super) fn with_engines<F: Future<Output = ()> + Send + 'static>(
    experiment: &Experiment,
    peers: &dyn Peers,
    setup: Setup,
    program: impl FnMut(ThreadMemory, u32, u32) -> F,
    waves: Option<&Recorder>,
) -> Result<Box<dyn Readable>, Error> {
    let engine = experiment.engines()?;
    let spec = spec(experiment)?;
    let mut cluster = Cluster::among(peers, (spec, setup), program, engine);
    if let Some(waves) = waves {
        cluster.record_waves(waves);
    }
    Ok(Box::new(cluster))
}

/// The machine of `experiment` as one that has engines.
fn spec(experiment: &Experiment) -> Result<&ClusterSpec, Error> {
    let machine = &experiment.machine;
    sme::of(machine).ok_or_else(|| Error::NoEngines(machine.name().to_owned()))
}
