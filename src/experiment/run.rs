//! Puts a machine (`sme-sim`) and an algorithm (`sme-barrier`) together and runs them.

use std::sync::Arc;

use sme_barrier::{
    Barrier, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, Extent, FlagPhase,
    FlagPhaseSpec, Flat, FlatSpec, Layout, Member, NodeTree, NodeTreeSpec, Pthread, PthreadSpec,
    Ranks, SpecError, Tree, TreeSpec,
};
use sme_hdl::blocks::engine::Unsupported;
use sme_hdl::verilated::VerilatedError;
use sme_memory::{Memory, Place, Route};
use sme_sim::families::sme::cluster::{
    Cluster, EpisodeTimes, Failure, Pinning, Progress, Setup, Traffic,
};
use sme_sim::families::sme::engine::DesignError;
use sme_sim::kernel::peers::{self, Alone, Peers};
use sme_sim::machine::Machine;
use sme_sim::observe::gauge::Gauge;
use sme_sim::parts::contract::{Note, ThreadMemory};
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

use super::noise::Skews;
use super::{
    Algorithm, Experiment, FlagLayout, Observe, Outcome, PathStep, Pin, Placement, ThreadEpisode,
};
use crate::progress::Watch;

/// Data that does not fit the nodes' shared partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "node.shared_memory: the data does not fit: it takes {needed} bytes of each node's {available}"
)]
pub struct Full {
    needed: u64,
    available: u64,
}

impl Full {
    /// # Errors
    /// [`Full`] if a node of `machine` has less than `needed` bytes.
    pub fn check(machine: &Machine, needed: u64) -> Result<(), Full> {
        let available = machine.cluster().node.shared_bytes;
        match needed > available {
            true => Err(Full { needed, available }),
            false => Ok(()),
        }
    }
}

/// Why an experiment has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The barrier cannot be built from these parameters.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The machine cannot be built.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The barrier's data does not fit.
    #[error(transparent)]
    Memory(#[from] Full),
    /// The machine cannot be built in RTL.
    #[error(transparent)]
    Rtl(#[from] Unsupported),
    /// The RTL cannot be compiled.
    #[error("--engine verilated: {0}")]
    Verilated(#[from] VerilatedError),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The barrier has no compact form, or not with these parameters.
    #[error("--form compact: {0}")]
    NotCompact(String),
}

impl Experiment {
    /// Simulates; `watch` is told of every counted episode.
    ///
    /// # Errors
    /// [`Error::Spec`] if the barrier cannot be built, [`Error::Failure`] if a thread's access
    /// faults, the run ends in a deadlock, or the barrier does not hold.
    pub fn run(&self, observe: &Observe<'_>, watch: &dyn Watch) -> Result<Outcome, Error> {
        self.run_among(&mut Alone, observe, watch)
    }

    /// The same, together with `peers`, who do the same with the same experiment. What is recorded of
    /// single threads and links is at process 0 only; critical path and ports cannot be recorded.
    ///
    /// # Errors
    /// Those of [`Self::run`], and [`Failure::Peers`] within [`Error::Failure`].
    pub fn run_among(
        &self,
        peers: &mut dyn Peers,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error> {
        let layout = self.layout();
        let cores = self.cores;
        match self.algorithm {
            Algorithm::FlagPhase => {
                let route = match self.placement {
                    Placement::Local | Placement::Coherent => Route::Nearest,
                    Placement::Engine | Placement::Remote => Route::Global,
                };
                let spec = FlagPhaseSpec {
                    threads: vec![cores; self.nodes as usize],
                    home: 0,
                    route,
                    layout,
                };
                let barrier = FlagPhase::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_among(peers, barrier, observe, watch)
            }
            Algorithm::Flat => {
                let ranks = self.ranks()?;
                let spec = FlatSpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Flat::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_among(peers, barrier, observe, watch)
            }
            Algorithm::Tree => {
                let spec = TreeSpec {
                    ranks: self.ranks()?,
                    cores,
                    fan_in: self.fan_in,
                    shape: self.tree_shape,
                    layout,
                };
                if let Some(local_fan_in) = self.local_fan_in {
                    let among = spec;
                    let spec = NodeTreeSpec {
                        among,
                        local_fan_in,
                    };
                    let barrier = NodeTree::new(spec)?;
                    self.holds(barrier.bytes())?;
                    return self.simulate_among(peers, barrier, observe, watch);
                }
                let barrier = Tree::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_in_its_form(peers, barrier, observe, watch)
            }
            Algorithm::Dissemination => {
                let ranks = self.ranks()?;
                let spec = DisseminationSpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Dissemination::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_in_its_form(peers, barrier, observe, watch)
            }
            Algorithm::Butterfly => {
                let ranks = self.ranks()?;
                let spec = ButterflySpec {
                    ranks,
                    cores,
                    layout,
                };
                let barrier = Butterfly::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_among(peers, barrier, observe, watch)
            }
            Algorithm::Pthread => {
                let spec = PthreadSpec {
                    node: 0,
                    threads: cores,
                    layout,
                };
                let barrier = Pthread::new(spec)?;
                self.holds(barrier.bytes())?;
                self.simulate_among(peers, barrier, observe, watch)
            }
        }
    }

    /// Whether nodes hold `bytes`: in the compact form what lies beyond would never be seen.
    fn holds(&self, bytes: u64) -> Result<(), Full> {
        Full::check(&self.machine, bytes)
    }

    /// `--layout`, or the algorithm's own.
    pub fn flag_layout(&self) -> FlagLayout {
        self.layout.unwrap_or(match self.algorithm {
            Algorithm::FlagPhase | Algorithm::Pthread => FlagLayout::Packed,
            _ => FlagLayout::Padded,
        })
    }

    fn layout(&self) -> Layout {
        let line_bytes = self.machine.cluster().cache.line_bytes as u32;
        match self.flag_layout() {
            FlagLayout::Packed => Layout::packed(line_bytes),
            FlagLayout::Split => Layout::split(line_bytes),
            FlagLayout::Padded => Layout::padded(line_bytes),
        }
    }

    fn ranks(&self) -> Result<Ranks, SpecError> {
        let [width, height, depth] = self.topology.sizes();
        let extent = Extent {
            width,
            height,
            depth,
        };
        self.mapping.ranks(extent, self.nodes)
    }

    pub(super) fn setup(&self, visits: bool) -> Setup {
        Setup {
            spec: self.machine.cluster().clone(),
            topology: self.topology.clone(),
            nodes: self.nodes,
            threads: self.cores,
            pinning: match self.pin {
                Pin::Scatter => Pinning::Scatter,
                Pin::Compact => Pinning::Compact,
            },
            seed: self.seed,
            coherent_stores: true,
            visits,
            noise: self.disturbance.noise,
        }
    }

    pub(super) fn skews(&self) -> Skews {
        Skews {
            work: self.disturbance.work,
            skew: self.skew,
            distribution: self.disturbance.skew_distribution,
            seed: self.seed,
        }
    }

    /// Simulates `barrier`, which may be anybody's, in place of the one that the parameters name;
    /// what else they say holds. `watch` is told of every counted episode.
    ///
    /// # Errors
    /// [`Error::Failure`] if a thread's access faults, the run ends in a deadlock, or the barrier
    /// does not hold.
    pub fn simulate<B>(
        &self,
        barrier: B,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        self.simulate_among(&mut Alone, barrier, observe, watch)
    }

    pub(super) fn simulate_among<B>(
        &self,
        peers: &mut dyn Peers,
        barrier: B,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let plan = Arc::new(Plan {
            barrier,
            count: self.episodes,
            skews: self.skews(),
        });
        let engine = self.engines()?;
        let cluster = |peers: &dyn Peers, visits| {
            let program = |memory: ThreadMemory, node, core| {
                debug_assert_eq!(me(&memory), Member { node, core });
                episodes(memory, Arc::clone(&plan))
            };
            Cluster::among(peers, self.setup(visits), program, &engine)
        };
        let critical_path = |times: &[EpisodeTimes]| -> Result<Vec<PathStep>, Error> {
            let last = self.episodes as usize;
            // From an episode earlier, so that whatever is under way at the beginning is known.
            let from = last.checked_sub(2).map(|e| times[e].last_departure);
            let mut again = cluster(&Alone, false);
            again.trace_from(from.unwrap_or(Time::ZERO));
            again.run(self.workers, |_| {})?;
            Ok(again.critical_path(self.episodes, &|place| {
                let name = plan.barrier.variable(place);
                name.unwrap_or_else(|| format!("byte {} of node {}", place.offset, place.node))
            }))
        };
        let mut cluster = cluster(peers, observe.per_thread);
        if let Some(waves) = observe.waves {
            cluster.record_waves(waves);
        }
        let gauge = Arc::new(Gauge::default());
        watch.gauge(Arc::clone(&gauge));
        let mut counted = Counted::new(self.episodes, watch);
        cluster.run_among(peers, self.workers, |progress| {
            gauge.is_at(progress.now, progress.events);
            if let Some(waves) = observe.waves {
                waves.write_until(progress.now);
            }
            counted.is_at(&progress);
        })?;
        counted.all();

        let times = cluster.episodes();
        let per_thread: Vec<ThreadEpisode> = cluster
            .visits()
            .filter(|(_, visit)| visit.episode > 0)
            .map(|(node, visit)| ThreadEpisode {
                episode: visit.episode - 1,
                node,
                core: u32::from(visit.core),
                arrive: visit.arrive,
                leave: visit.leave,
            })
            .collect();
        let mut per_thread = peers::collected(peers, per_thread).map_err(Failure::from)?;
        per_thread.sort_unstable_by_key(|row| (row.episode, row.node, row.core));
        Ok(Outcome {
            events: cluster.events(),
            end: cluster.end(),
            per_thread,
            link_load: if observe.link_load {
                peers::collected(peers, cluster.link_loads()).map_err(Failure::from)?
            } else {
                Vec::new()
            },
            critical_path: if observe.critical_path {
                critical_path(times)?
            } else {
                Vec::new()
            },
            bytes_per_thread: cluster.bytes_per_thread(),
            ..Outcome::of(times, cluster.traffic())
        })
    }
}

impl Outcome {
    /// Of a run in which threads arrived and left at `times`, the warm-up's first; what else there
    /// is to say of it is for the caller.
    pub(super) fn of(times: &[EpisodeTimes], traffic: Traffic) -> Self {
        let latencies = times
            .windows(2)
            .map(|pair| pair[1].last_departure.since(pair[0].last_departure));
        Self {
            latencies: latencies.collect(),
            remote_loads: traffic.remote_loads,
            remote_stores: traffic.remote_stores,
            link_bytes: traffic.link_bytes,
            events: 0,
            end: Time::ZERO,
            per_thread: Vec::new(),
            link_load: Vec::new(),
            critical_path: Vec::new(),
            bytes_per_thread: 0,
        }
    }
}

/// Tells of each counted episode once.
pub(super) struct Counted<'a> {
    watch: &'a dyn Watch,
    episodes: u32,
    told: u32,
}

impl<'a> Counted<'a> {
    /// Of `episodes` that count.
    pub(super) fn new(episodes: u32, watch: &'a dyn Watch) -> Self {
        Self {
            watch,
            episodes,
            told: 0,
        }
    }

    /// The run is that far.
    pub(super) fn is_at(&mut self, progress: &Progress) {
        self.are_over(progress.episodes.min(self.episodes));
    }

    /// The run has ended.
    pub(super) fn all(&mut self) {
        self.are_over(self.episodes);
    }

    fn are_over(&mut self, episodes: u32) {
        self.watch
            .advance(u64::from(episodes.saturating_sub(self.told)));
        self.told = self.told.max(episodes);
    }
}

/// What all threads do, once for all of them.
struct Plan<B> {
    barrier: B,
    count: u32,
    skews: Skews,
}

/// Whose view of memory it is.
fn me(memory: &ThreadMemory) -> Member {
    Member {
        node: memory.node(),
        core: memory.thread(),
    }
}

/// What every thread does: a warm-up episode, and those that count.
#[allow(
    clippy::manual_async_fn,
    reason = "an `async fn` would keep its arguments twice in every thread"
)]
fn episodes<B: Barrier<ThreadMemory>>(
    memory: ThreadMemory,
    plan: Arc<Plan<B>>,
) -> impl Future<Output = ()> + Send {
    async move {
        let mut local = B::Local::default();
        let mut episode = 0;
        // Not a range: that would keep its end too, and whether it is exhausted.
        while episode <= plan.count {
            if !plan.skews.none() {
                memory.delay(plan.skews.of(me(&memory), episode)).await;
            }
            memory.note(Note::Arrive(episode)).await;
            plan.barrier.wait(&memory, me(&memory), &mut local).await;
            memory.note(Note::Leave(episode)).await;
            episode += 1;
        }
    }
}

/// How long one uncached load takes, from the core's instruction to its value, with nothing else
/// going on: to one's own memory behind the engine (`loopback`), or to a neighbour's.
///
/// # Errors
/// [`Error::Failure`] if the load cannot be performed.
pub fn remote_load_latency(machine: &Machine, loopback: bool) -> Result<Time, Error> {
    let loads = 8;
    let setup = Setup {
        spec: machine.cluster().clone(),
        topology: Topology::for_nodes(2),
        nodes: 2,
        threads: 1,
        pinning: Pinning::Scatter,
        seed: 0,
        coherent_stores: true,
        visits: false,
        noise: None,
    };
    let home = u32::from(!loopback);
    let turnaround = machine.cluster().uncached.turnaround;
    let mut cluster = Cluster::new(setup, move |memory, node, _| async move {
        if node == 0 {
            let word = memory.word(
                Place {
                    node: home,
                    offset: 0,
                },
                Route::Global,
            );
            for load in 0..=loads {
                memory.note(Note::Arrive(load)).await;
                memory.load(word).await;
                memory.note(Note::Leave(load)).await;
                // The slot has turned around before the next load.
                memory.delay(turnaround.times(2)).await;
            }
        }
    })?;
    cluster.run(1, |_| {})?;
    let times = cluster.episodes();
    let total = times[1..]
        .iter()
        .map(|t| t.last_departure.since(t.last_arrival).as_ps());
    Ok(Time::from_ps(total.sum::<u64>() / u64::from(loads)))
}

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::*;
    use crate::progress::Silent;
    use crate::validate::points::Variant;
    use crate::validate::simulator::Simulator;

    /// 64 nodes of 16 threads; what BENCHMARKS.md says is measured in the same way.
    #[test]
    fn a_simulated_thread_takes_little() -> Result<(), Box<dyn std::error::Error>> {
        let machine = Arc::new(Machine::builtin("sme-prototype")?);
        let simulator = Simulator::new(machine, 3, 1)?;
        let experiment = |algorithm| {
            simulator.experiment(Variant::Prototype, algorithm, Placement::Local, 64, 16)
        };
        for (algorithm, form, most) in [
            (Algorithm::Tree, Form::Auto, 200),
            (Algorithm::Tree, Form::Readable, 500),
            (Algorithm::Butterfly, Form::Auto, 580),
        ] {
            let experiment = Experiment {
                form,
                ..experiment(algorithm)
            };
            let outcome = experiment.run(&Observe::default(), &Silent)?;
            let bytes = outcome.bytes_per_thread;
            assert!(
                bytes <= most,
                "{algorithm:?}, {form:?}: {bytes} bytes a thread"
            );
        }
        Ok(())
    }
}
