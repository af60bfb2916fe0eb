//! Puts a machine (`sme-sim`) and an algorithm (`sme-barrier`) together and runs them.

use std::future::Future;
use std::sync::Arc;

use sme_barrier::{Barrier, BarrierSpec, Extent, Layout, Member, Ranks, SpecError, Use, build};
use sme_memory::{Leader, Memory, Place, Route};
use sme_sim::kernel::peers::{self, Alone, Peers};
use sme_sim::machine::{Machine, Pinning, Readable, Setup, System, explained};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::gauge::{Gauge, Progress};
use sme_sim::observe::spans::{EPISODE, SpanTimes, overtaken};
use sme_sim::observe::timeline::Recorded;
use sme_sim::observe::words;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::applies;
use super::noise::Skews;
use super::watch::Watch;
use super::{
    Algorithm, EngineKind, Error, Experiment, FlagLayout, Observe, Outcome, PathStep, Pin,
    ThreadEpisode, TooManyCores, VariablePlacement, extras,
};

/// Data that does not fit the nodes' shared partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Those partitions.
    #[error(
        "node.shared_memory: the data does not fit: it takes {needed} bytes of each node's {available}"
    )]
    Shared {
        /// In bytes.
        needed: u64,
        /// In bytes.
        available: u64,
    },
    /// The buffers at their beginning.
    #[error(
        "--placement buffer: the barrier takes {needed} bytes of each message passing buffer's \
         {available}; --placement memory has room"
    )]
    Buffer {
        /// In bytes.
        needed: u64,
        /// In bytes.
        available: u64,
    },
}

impl Full {
    /// # Errors
    /// [`Full`] if a node of `machine` has less than `needed` bytes.
    pub fn check(machine: &Machine, needed: u64) -> Result<(), Full> {
        let available = machine.shape().shared_bytes;
        match needed > available {
            true => Err(Full::Shared { needed, available }),
            false => Ok(()),
        }
    }
}

impl Experiment {
    /// Simulates; `watch` is told of every counted episode.
    ///
    /// # Errors
    /// [`Error::Cores`] if a node has fewer cores, [`Error::Spec`] if the barrier cannot be built,
    /// [`Error::Failure`] if a thread's access faults or the run ends in a deadlock,
    /// [`Error::Overtaken`] if the barrier does not hold.
    pub fn run(&self, observe: &Observe<'_>, watch: &dyn Watch) -> Result<Outcome, Error> {
        self.run_among(&mut Alone, observe, watch)
    }

    /// The same, together with `peers`, who do the same with the same experiment. What is recorded
    /// of single threads and links is at process 0 only; critical path and ports cannot be
    /// recorded.
    ///
    /// # Errors
    /// Those of [`Self::run`], and [`Failure::Peers`] within [`Error::Failure`].
    pub fn run_among(
        &self,
        peers: &mut dyn Peers,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error> {
        TooManyCores::check(&self.machine, self.cores)?;
        let what = format!("the {} barrier", self.algorithm);
        let needs = self.algorithm.needs().on_nodes(self.nodes);
        self.machine.suffices(&what, needs)?;
        let run = Named {
            experiment: self,
            peers,
            observe,
            watch,
        };
        build(&self.barrier()?, run)?
    }

    /// The barrier that the parameters name.
    fn barrier(&self) -> Result<BarrierSpec, SpecError> {
        Ok(BarrierSpec {
            route: match self.placement {
                VariablePlacement::Local
                | VariablePlacement::Coherent
                | VariablePlacement::Buffer
                | VariablePlacement::Memory => Route::Nearest,
                VariablePlacement::Engine | VariablePlacement::Remote => Route::Global,
            },
            home: match self.placement {
                VariablePlacement::Local if self.algorithm != Algorithm::Counter => 0,
                _ => self.machine.shape().homes(self.nodes).start,
            },
            fan_in: self.fan_in,
            tree_shape: self.tree_shape,
            local_fan_in: self.local_fan_in,
            ..BarrierSpec::new(self.algorithm, self.ranks()?, self.cores, self.layout())
        })
    }

    /// `--layout`, or the algorithm's own.
    pub fn flag_layout(&self) -> FlagLayout {
        self.layout.unwrap_or(match self.algorithm {
            Algorithm::FlagPhase | Algorithm::Pthread | Algorithm::Counter => FlagLayout::Packed,
            _ => FlagLayout::Padded,
        })
    }

    fn layout(&self) -> Layout {
        let shape = self.machine.shape();
        let layout = match self.flag_layout() {
            FlagLayout::Packed => Layout::packed(shape.line_bytes),
            FlagLayout::Split => Layout::split(shape.line_bytes),
            FlagLayout::Padded => Layout::padded(shape.line_bytes),
        };
        let base = match self.placement {
            VariablePlacement::Memory => shape.buffer_bytes,
            _ => 0,
        };
        Layout { base, ..layout }.at(shape.sharing(self.nodes))
    }

    /// The barrier takes `bytes` bytes of each node's shared memory.
    fn fits(&self, bytes: u64) -> Result<(), Full> {
        let shape = self.machine.shape();
        match self.placement {
            VariablePlacement::Buffer if bytes > shape.buffer_bytes => Err(Full::Buffer {
                needed: bytes,
                available: shape.buffer_bytes,
            }),
            _ => Full::check(&self.machine, bytes),
        }
    }

    fn ranks(&self) -> Result<Ranks, SpecError> {
        // These know one node, or two, in the order of their numbers.
        if !applies::mapping(self.algorithm) {
            return Ranks::new((0..self.nodes).collect());
        }
        let [width, height, depth] = self.topology.sizes();
        let extent = Extent {
            width,
            height,
            depth,
        };
        self.mapping.ranks(extent, self.nodes)
    }

    /// Returns the settings from which the machine is built.
    pub(super) fn setup(&self) -> Setup {
        Setup::new(self.machine.shape(), self.nodes, self.cores)
            .on(self.topology.clone())
            .pinned(match self.pin {
                Pin::Scatter => Pinning::Scatter,
                Pin::Compact => Pinning::Compact,
            })
            .seeded(self.seed)
            .with_noise(self.disturbance.noise)
    }

    pub(super) fn skews(&self) -> Skews {
        Skews {
            work: self.disturbance.work,
            skew: self.skew,
            distribution: self.disturbance.skew_distribution,
            seed: self.seed,
        }
    }

    /// Simulates `barrier`, of any crate, in place of the one that the parameters name; the other
    /// parameters hold. `watch` is told of every counted episode.
    ///
    /// # Errors
    /// [`Error::Failure`] if a thread's access faults or the run ends in a deadlock,
    /// [`Error::Overtaken`] if the barrier does not hold.
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
        let plan = Arc::new(EpisodePlan {
            barrier,
            count: self.episodes,
            skews: self.skews(),
        });
        let program = |memory: ThreadMemory, node, core| {
            debug_assert_eq!(me(&memory), Member { node, core });
            episodes(memory, Arc::clone(&plan))
        };
        let setup = self
            .setup()
            .with_each_span(observe.per_thread || observe.timeline);
        let build = |peers: &dyn Peers, waves| -> Result<Box<dyn Readable>, Error> {
            Ok(match (self.engine, waves) {
                (EngineKind::Cycle, None) => {
                    self.machine.build_among(peers, setup.clone(), program)?
                }
                (_, waves) => extras::with_engines(self, peers, setup.clone(), program, waves)?,
            })
        };
        let mut machine = build(&*peers, observe.waves)?;
        if observe.timeline {
            machine.record_timeline()?;
        }
        let gauge = Arc::new(Gauge::default());
        watch.gauge(Arc::clone(&gauge));
        let mut counted = Counted::new(self.episodes, watch);
        let ran = machine.run_among(peers, self.workers, &mut |progress: Progress| {
            gauge.is_at(progress.now, progress.events);
            if let Some(waves) = observe.waves {
                waves.write_until(progress.now);
            }
            counted.is_at(&progress);
        });
        if let Err(failure) = ran {
            drop(machine);
            let again = |peers: &mut dyn Peers| build(&*peers, None);
            let name = |place| plan.barrier.variable(place);
            return Err(explained(failure, again, (peers, self.workers), &name).into());
        }
        let outcome = self.outcome(peers, &*machine, counted, observe)?;
        Ok(Outcome {
            per_thread: match observe.per_thread {
                true => per_thread(peers, &*machine)?,
                false => Vec::new(),
            },
            timeline: match observe.timeline {
                true => machine.recorded(&|place| named(&plan.barrier, place)),
                false => Recorded::default(),
            },
            critical_path: match observe.critical_path {
                true => self.critical_path(&plan, machine.spans().called(EPISODE))?,
                false => Vec::new(),
            },
            ..outcome
        })
    }

    /// The critical path of the last episode, which is simulated once more; `times` are those of
    /// the first time.
    fn critical_path<B>(
        &self,
        plan: &Arc<EpisodePlan<B>>,
        times: &[SpanTimes],
    ) -> Result<Vec<PathStep>, Error>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        let last = self.episodes as usize;
        let program = |memory: ThreadMemory, _, _| episodes(memory, Arc::clone(plan));
        let mut again = match self.engine {
            EngineKind::Cycle => self.machine.build(self.setup(), program)?,
            _ => extras::with_engines(self, &Alone, self.setup(), program, None)?,
        };
        // From an episode earlier, so that operations under way at the beginning are known.
        let from = last.checked_sub(2).map(|e| times[e].last_end);
        again.trace_from(from.unwrap_or(Time::ZERO));
        again.run(self.workers, |_| {})?;
        let before = last.checked_sub(1);
        let start = before.map_or(Time::ZERO, |before| times[before].last_end);
        let span = Span::new(EPISODE, self.episodes);
        Ok(again.critical_path(span.into(), start, &|place| named(&plan.barrier, place)))
    }

    /// Returns the part of the outcome that every `machine` can tell.
    ///
    /// # Errors
    /// [`Error::Overtaken`] if the barrier did not hold.
    pub(super) fn outcome(
        &self,
        peers: &mut dyn Peers,
        machine: &dyn System,
        mut counted: Counted<'_>,
        observe: &Observe<'_>,
    ) -> Result<Outcome, Error> {
        let times = machine.spans().called(EPISODE);
        overtaken(times)?;
        counted.all();
        let traffic = machine.traffic();
        let latencies = times
            .windows(2)
            .map(|pair| pair[1].last_end.since(pair[0].last_end));
        Ok(Outcome {
            latencies: latencies.collect(),
            remote_loads: traffic.remote_loads,
            remote_stores: traffic.remote_stores,
            link_bytes: traffic.link_bytes,
            events: machine.events(),
            end: machine.end(),
            per_thread: Vec::new(),
            link_load: match observe.link_load {
                true => peers::collected(peers, machine.link_loads()).map_err(Failure::from)?,
                false => Vec::new(),
            },
            critical_path: Vec::new(),
            timeline: Recorded::default(),
            bytes_per_thread: machine.bytes_per_thread(),
        })
    }
}

/// The name of the variable of `barrier` at `place`.
fn named<B: Barrier<ThreadMemory>>(barrier: &B, place: Place) -> String {
    let name = barrier.variable(place);
    name.unwrap_or_else(|| words::place(place))
}

/// The run of the barrier that an experiment names, when its type is known.
struct Named<'a, 'o> {
    experiment: &'a Experiment,
    peers: &'a mut dyn Peers,
    observe: &'a Observe<'o>,
    watch: &'a dyn Watch,
}

impl Use<ThreadMemory> for Named<'_, '_> {
    type Output = Result<Outcome, Error>;

    fn barrier<B>(self, barrier: B, bytes: u64) -> Result<Outcome, Error>
    where
        B: Barrier<ThreadMemory> + 'static,
    {
        self.experiment.fits(bytes)?;
        (self.experiment).simulate_among(self.peers, barrier, self.observe, self.watch)
    }

    fn leader<B>(self, barrier: B, bytes: u64) -> Result<Outcome, Error>
    where
        B: Barrier<ThreadMemory> + Leader + Clone + 'static,
    {
        // In the compact form what lies beyond a node's memory would never be seen.
        self.experiment.fits(bytes)?;
        (self.experiment).simulate_in_its_form(self.peers, barrier, self.observe, self.watch)
    }
}

/// Every thread's arrivals and departures in the episodes that count, by episode, node and core.
fn per_thread(peers: &mut dyn Peers, machine: &dyn Readable) -> Result<Vec<ThreadEpisode>, Error> {
    let own: Vec<ThreadEpisode> = machine
        .each_span()
        .filter(|(_, each)| each.span.name == EPISODE && each.span.number > 0)
        .map(|(node, each)| ThreadEpisode {
            episode: each.span.number - 1,
            node,
            core: u32::from(each.thread),
            arrive: each.begin,
            leave: each.end,
        })
        .collect();
    let mut all = peers::collected(peers, own).map_err(Failure::from)?;
    all.sort_unstable_by_key(|row| (row.episode, row.node, row.core));
    Ok(all)
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
        self.are_over(progress.finished(EPISODE).min(self.episodes));
    }

    /// The run has ended.
    fn all(&mut self) {
        self.are_over(self.episodes);
    }

    fn are_over(&mut self, episodes: u32) {
        self.watch
            .advance(u64::from(episodes.saturating_sub(self.told)));
        self.told = self.told.max(episodes);
    }
}

/// The barrier and the lateness of threads in a run, shared by all of them.
struct EpisodePlan<B> {
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

/// Runs the episodes of one thread: a warm-up, and those that count.
#[allow(
    clippy::manual_async_fn,
    reason = "an `async fn` would keep its arguments twice in every thread"
)]
fn episodes<B: Barrier<ThreadMemory>>(
    memory: ThreadMemory,
    plan: Arc<EpisodePlan<B>>,
) -> impl Future<Output = ()> + Send {
    async move {
        let mut local = B::Local::default();
        let mut episode = 0;
        // Not a range: that would keep its end too, and whether it is exhausted.
        while episode <= plan.count {
            if !plan.skews.none() {
                memory.delay(plan.skews.of(me(&memory), episode)).await;
            }
            memory.begin(Span::new(EPISODE, episode)).await;
            plan.barrier.wait(&memory, me(&memory), &mut local).await;
            memory.end(Span::new(EPISODE, episode)).await;
            if episode == 0 {
                memory.counts().await;
            }
            episode += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::*;
    use crate::watch::Silent;

    /// 64 nodes of 16 threads; what BENCHMARKS.md says is measured in the same way.
    #[test]
    fn a_simulated_thread_takes_little() -> Result<(), Box<dyn std::error::Error>> {
        let machine = Arc::new(Machine::builtin("sme-prototype")?);
        for (algorithm, form, most) in [
            (Algorithm::Tree, Form::Auto, 200),
            (Algorithm::Tree, Form::Readable, 500),
            (Algorithm::Butterfly, Form::Auto, 580),
        ] {
            let experiment = Experiment {
                algorithm,
                nodes: 64,
                cores: 16,
                episodes: 3,
                form,
                ..Experiment::new(machine.clone())
            };
            let outcome = experiment.run(&Observe::default(), &Silent)?;
            let bytes = outcome.bytes_per_thread;
            assert!(
                bytes <= most,
                "{algorithm:?}, {form:?}: {bytes} bytes per thread"
            );
        }
        Ok(())
    }

    #[test]
    fn a_node_has_a_core_for_each_thread() -> Result<(), Box<dyn std::error::Error>> {
        let machine = Arc::new(Machine::builtin("sme-prototype")?);
        for form in [Form::Compact, Form::Readable] {
            let experiment = Experiment {
                nodes: 2,
                cores: 17,
                episodes: 1,
                form,
                ..Experiment::new(machine.clone())
            };
            let refused = experiment.run(&Observe::default(), &Silent);
            let told = refused.map(|outcome| outcome.latencies);
            let expected = "--cores 17: a node of sme-prototype has 16 cores";
            assert_eq!(
                told.map_err(|error| error.to_string()),
                Err(expected.into())
            );
        }
        Ok(())
    }
}
