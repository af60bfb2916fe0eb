//! Shared-memory programs on a simulated cluster: a kernel of `sme-fft-demo`, its data spread over
//! the nodes' memory, its threads, and a barrier that is the point at which memory becomes
//! coherent.
//!
//! A program of one's own is a [`Kernel`]: its data in [`Array`]s, which a [`Pool`] spreads over
//! the nodes by a [`Placement`], and what each thread does as a member of a [`Team`]. A [`Program`]
//! says where it runs.
//!
//! Called by the commands; calls `sme-sim` for the machine and `sme-barrier` for the barrier.

mod kernels;
mod team;
mod unwritten;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use sme_barrier::lock::{Coherence, Cohort, CohortSpec, LockError, LockKind};
use sme_barrier::{
    Barrier, Coherent, CoherentSpec, Extent, Layout, Mapping, Member, SpecError, Tree, TreeShape,
    TreeSpec,
};
use sme_memory::{Atomic, Capabilities, Capability, Lacks, Place, Route};
use sme_sim::kernel::peers::{Alone, Peers};
use sme_sim::machine::{CannotBuild, Machine, Readable, Setup, explained};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::{EPISODE, Overtaken, SpanTimes, ThreadSpan, overtaken};
use sme_sim::observe::staleness::{StaleLoad, StaleReport, TooManyThreads};
use sme_sim::observe::timeline::{Recorded, TooManyNodes};
use sme_sim::observe::traffic::{CacheTraffic, LinkLoad, Traffic};
use sme_sim::observe::words;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

pub use kernels::{FftKernel, LuKernel, RadixKernel, random_points};
pub use sme_barrier::CoherencePoint;
pub use sme_fft_demo::{Array, ArrayError, Placement, Pool, Team};
use team::SimulatedTeam;
pub use unwritten::NotWrittenBack;
use unwritten::element;

use crate::experiment::TooManyCores;

/// The mapping of a program's shared data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Every access goes through the engine, a word at a time.
    Uncached,
    /// Lines are kept by the caches of the node that uses them.
    Cached,
}

sme_barrier::names!(Mapped, "memory", { Uncached => "uncached", Cached => "cached" });

impl Mapped {
    /// By which addresses a program reaches its shared data.
    pub fn route(self) -> Route {
        match self {
            Mapped::Uncached => Route::Global,
            Mapped::Cached => Route::Cached,
        }
    }

    /// The capabilities that the machine must have.
    pub fn needs(self) -> Capabilities {
        match self {
            Mapped::Uncached => Capabilities::LEAST,
            Mapped::Cached => Capabilities::of(&[Capability::Caching]),
        }
    }
}

/// On what, and by how many threads, a program is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The network.
    pub topology: Topology,
    /// Nodes whose memory holds the data, unless a pool's does: the first so many positions.
    pub memory_nodes: u32,
    /// Nodes whose cores run the program: the first so many of these.
    pub nodes: u32,
    /// Threads on each.
    pub cores: u32,
    /// The mapping of the data.
    pub mapped: Mapped,
    /// The action of a barrier on memory.
    pub point: CoherencePoint,
    /// Bytes of a page: data is spread in such pieces.
    pub page_bytes: u64,
    /// Whether every load is checked.
    pub checked: bool,
    /// Whether what each thread does and when is recorded.
    pub timeline: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads of the host.
    pub workers: usize,
}

/// The code that all threads of a program run.
pub trait Kernel: Send + Sync + 'static {
    /// Returns the phases between barriers, in order: one barrier ends each, and each barrier one.
    fn phases(&self) -> Vec<&'static str>;

    /// Returns the words that must be in memory before the threads start.
    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_>;

    /// The words of loads and stores by which its threads tell each other that something is done,
    /// for who checks the loads: those of its locks ([`Cohort::synchronizing`]).
    fn synchronizing(&self) -> Vec<Place> {
        Vec::new()
    }

    /// The arrays that it stores to, by name, for reports.
    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        Vec::new()
    }

    /// The name of the variable at `place`, for reports, if it is in none of [these](Self::arrays):
    /// of its locks ([`sme_barrier::lock::Lock::variable`]).
    fn variable(&self, place: Place) -> Option<String> {
        let _ = place;
        None
    }

    /// Runs one thread's part.
    fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) -> impl Future<Output = ()> + Send;
}

/// Why a program has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node does not have so many cores.
    #[error(transparent)]
    Cores(#[from] TooManyCores),
    /// Nodes that run the program are not among those that hold its data.
    #[error("--memory-nodes {memory_nodes}: the {nodes} nodes of --nodes are among them")]
    MemoryNodes {
        /// The nodes that hold the data.
        memory_nodes: u32,
        /// The nodes that run the program.
        nodes: u32,
    },
    /// The kernel does not name as many phases as there are barriers.
    #[error(
        "the kernel names {names} phases and its threads meet at {barriers} barriers: name what \
         each barrier ends"
    )]
    Phases {
        /// The names.
        names: usize,
        /// The barriers.
        barriers: usize,
    },
    /// The barrier cannot be built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The lock cannot be built.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data does not fit.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The machine cannot do what the program needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The barrier between phases does not hold.
    #[error(transparent)]
    Overtaken(#[from] Overtaken),
    /// There are too many threads to check their loads.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
    /// There are too many nodes to record what their threads do.
    #[error("--timeline: {0}")]
    Timeline(#[from] TooManyNodes),
}

/// Who is told of each stale load of a run, in their order.
pub type EachStale = Box<dyn FnMut(&StaleLoad) + Send>;

/// One phase of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Its name.
    pub name: &'static str,
    /// From the last departure from the barrier before to the last arrival at its own.
    pub work: Time,
    /// From the last arrival to the last departure: the coherence point is part of it.
    pub barrier: Time,
}

/// The outcome of a run; that of one without phases by default.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The phases that count, in order: not the first, in which the threads line up.
    pub phases: Vec<PhaseTimes>,
    /// Loads and stores through the engine in these phases.
    pub traffic: Traffic,
    /// The traffic of the caches.
    pub caches: CacheTraffic,
    /// The load of every link.
    pub links: Vec<LinkLoad>,
    /// Simulated events.
    pub events: u64,
    /// Which loads were stale, if they were checked.
    pub stale: Option<StaleReport>,
    /// The words that were stored and not written back when the program ended.
    pub unwritten: NotWrittenBack,
    /// Phases, barriers and waits of all threads, if they were recorded.
    pub timeline: Recorded,
}

impl Outcome {
    /// Time of all phases that count.
    pub fn time(&self) -> Time {
        let phases = self.phases.iter();
        phases.fold(Time::ZERO, |sum, phase| sum + phase.work + phase.barrier)
    }
}

impl Program {
    /// On `nodes` nodes of `cores` threads each: on the machine's usual network, cached data spread
    /// line by line over all of them or over the pool, and barriers that are coherence points where
    /// [that is needed](Self::usual_point). Loads are not checked, the seed is 1, and one thread of
    /// the host simulates it.
    pub fn new(machine: Arc<Machine>, nodes: u32, cores: u32) -> Self {
        Self {
            topology: machine.shape().topology(nodes),
            point: Self::usual_point(&machine),
            machine,
            memory_nodes: nodes,
            nodes,
            cores,
            mapped: Mapped::Cached,
            page_bytes: 64,
            checked: false,
            timeline: false,
            seed: 1,
            workers: 1,
        }
    }

    /// Returns what barriers do to memory unless it is said: all that nodes without coherence need,
    /// and nothing where nodes are coherent.
    pub fn usual_point(machine: &Machine) -> CoherencePoint {
        match machine.shape().coherence {
            Some(_) => CoherencePoint::None,
            None => CoherencePoint::Barrier,
        }
    }

    /// Threads of the team; of more than a `u32` holds, that many.
    pub fn threads(&self) -> u32 {
        self.nodes.saturating_mul(self.cores)
    }

    /// Checks that each thread has a core, and that the nodes which run the program have memory.
    fn check(&self) -> Result<(), Error> {
        TooManyCores::check(&self.machine, self.cores)?;
        let (memory_nodes, nodes) = (self.memory_nodes, self.nodes);
        if memory_nodes < nodes {
            return Err(Error::MemoryNodes {
                memory_nodes,
                nodes,
            });
        }
        Ok(())
    }

    fn barrier(&self) -> Result<Coherent<Tree>, SpecError> {
        let [width, height, depth] = self.topology.sizes();
        let extent = Extent {
            width,
            height,
            depth,
        };
        let layout = self.layout();
        let tree = Tree::new(TreeSpec {
            ranks: Mapping::SubMesh.ranks(extent, self.nodes)?,
            cores: self.cores,
            fan_in: 8,
            shape: TreeShape::Heap,
            layout,
        })?;
        Coherent::new(CoherentSpec {
            layout: Layout {
                base: tree.bytes(),
                ..layout
            },
            barrier: tree,
            point: self.point,
            cached: self.mapped == Mapped::Cached,
            homes: self.homes(),
            cores: self.cores,
        })
    }

    /// The nodes, or devices of a pool, whose memory holds the data.
    pub fn homes(&self) -> Range<u32> {
        self.machine.shape().homes(self.memory_nodes)
    }

    fn layout(&self) -> Layout {
        let shape = self.machine.shape();
        Layout::padded(shape.line_bytes).at(shape.sharing(self.memory_nodes))
    }

    /// The memory that the program's data can have. Every call begins anew: all arrays and locks of
    /// a program come from one pool, or they lie in the same memory.
    ///
    /// # Errors
    /// If a page is of no use.
    pub fn pool(&self) -> Result<Pool, Error> {
        let shared = self.machine.shape().shared_bytes;
        // Behind the message passing buffers of a chip, and the barrier.
        let from = self
            .machine
            .shape()
            .buffer_bytes
            .max(self.barrier()?.bytes());
        let pool = Pool::over(self.homes(), (from, shared), self.page_bytes, self.seed)?;
        Ok(pool)
    }

    /// A lock for all threads, its variables in memory from `pool`. It is passed on within a node
    /// up to `passes` times in a row, and does for the data that it protects what `coherence` says.
    ///
    /// # Errors
    /// If its variables do not fit, the data lies on nodes that do not run the program, or the
    /// machine lacks a capability that the lock takes.
    pub fn lock(
        &self,
        pool: &mut Pool,
        passes: u32,
        coherence: Coherence,
    ) -> Result<Cohort, Error> {
        let needs = LockKind::Cohort.needs().and(coherence.needs());
        let needs = needs.on_nodes(self.memory_nodes);
        self.machine.suffices("the cohort lock", needs)?;
        let mut spec = CohortSpec {
            nodes: self.nodes,
            cores: self.cores,
            passes,
            coherence,
            layout: self.layout(),
        };
        spec.layout.base = pool.reserve(Cohort::new(spec.clone())?.bytes())?;
        Ok(Cohort::new(spec)?)
    }

    /// Runs `kernel`, and lets `result` read what it has left in memory.
    ///
    /// # Errors
    /// [`Error::Cores`] and [`Error::MemoryNodes`] if it cannot be run so, [`Error::Failure`] if an
    /// access faults or threads wait for ever, [`Error::Phases`] if barriers and
    /// [phases](Kernel::phases) are not as many.
    pub fn run<K: Kernel, R>(
        &self,
        kernel: &Arc<K>,
        result: impl FnOnce(&K, &dyn Fn(Place) -> u64) -> R,
    ) -> Result<(Outcome, R), Error> {
        self.run_watched(kernel, |_| {}, None, result)
    }

    /// The same; `watch` is told now and then how many barriers all threads have left, and `list`
    /// of each stale load if they are checked.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_watched<K: Kernel, R>(
        &self,
        kernel: &Arc<K>,
        mut watch: impl FnMut(u32),
        list: Option<EachStale>,
        result: impl FnOnce(&K, &dyn Fn(Place) -> u64) -> R,
    ) -> Result<(Outcome, R), Error> {
        self.check()?;
        let needs = self.mapped.needs().on_nodes(self.memory_nodes);
        self.machine.suffices("the program", needs)?;
        let shape = self.machine.shape();
        let setup = Setup::new(shape, self.memory_nodes, self.cores)
            .on(self.topology.clone())
            .seeded(self.seed)
            .with_each_span(self.timeline);
        let barrier = Arc::new(self.barrier()?);
        let arithmetic = shape.arithmetic;
        let build = || {
            let program = |memory: ThreadMemory, node, core| {
                let me = Member { node, core };
                let team = SimulatedTeam::new(memory, me, self, Arc::clone(&barrier), arithmetic);
                let kernel = Arc::clone(kernel);
                let takes_part = node < self.nodes;
                async move {
                    if takes_part {
                        let mut team = team;
                        kernel.run(&mut team).await;
                    }
                }
            };
            self.machine.build(setup.clone(), program)
        };
        let load = |mut machine: Box<dyn Readable>| {
            for (place, value) in kernel.initial() {
                machine.preset(place, value);
            }
            machine
        };
        let mut machine = build()?;
        if self.checked {
            machine.check_loads()?;
            if let Some(list) = list {
                machine.list_stale(list);
            }
            for place in kernel.synchronizing() {
                machine.synchronizing(place);
            }
        }
        if self.timeline {
            machine.record_timeline()?;
        }
        let mut machine = load(machine);
        if let Err(failure) =
            machine.run(self.workers, |progress| watch(progress.finished(EPISODE)))
        {
            drop(machine);
            let again = |_: &mut dyn Peers| build().map(load);
            let name = |place| {
                let of_barrier = || Barrier::<ThreadMemory>::variable(&*barrier, place);
                kernel
                    .variable(place)
                    .or_else(of_barrier)
                    .or_else(|| element(&kernel.arrays(), place))
            };
            return Err(explained(failure, again, (&mut Alone, self.workers), &name).into());
        }
        let episodes = machine.spans().called(EPISODE);
        overtaken(episodes)?;
        let outcome = Outcome {
            phases: phases(&kernel.phases(), episodes)?,
            traffic: machine.traffic(),
            caches: machine.cache_traffic(),
            links: machine.link_loads(),
            events: machine.events(),
            stale: machine.stale_reads(),
            unwritten: NotWrittenBack::of(&*machine, &kernel.arrays()),
            timeline: match self.timeline {
                true => self.recorded(&*machine, &kernel.phases()),
                false => Recorded::default(),
            },
        };
        let read = |place| machine.at_home(place);
        let result = result(kernel, &read);
        Ok((outcome, result))
    }
}

impl Program {
    /// The recorded activity of the threads of `machine`, with the phases between their barriers.
    fn recorded(&self, machine: &dyn Readable, phases: &[&'static str]) -> Recorded {
        let mut recorded = machine.recorded(&words::place);
        let mut last: HashMap<(u32, u16), Time> = HashMap::new();
        // Of each thread in their order.
        let barriers = recorded.spans.iter().filter_map(|&(node, barrier)| {
            let ThreadSpan {
                span,
                thread,
                begin,
                end,
            } = barrier;
            let begins = last.insert((node, thread), end).unwrap_or(Time::ZERO);
            let name = phases.get(span.number as usize)?;
            let phase = ThreadSpan {
                span: Span::new(name, span.number),
                begin: begins,
                end: begin,
                thread,
            };
            Some((node, phase))
        });
        let phases: Vec<_> = barriers.collect();
        recorded.spans.extend(phases);
        recorded
    }
}

fn phases(names: &[&'static str], episodes: &[SpanTimes]) -> Result<Vec<PhaseTimes>, Error> {
    let (named, barriers) = (names.len(), episodes.len());
    if named != barriers {
        return Err(Error::Phases {
            names: named,
            barriers,
        });
    }
    let pairs = episodes.windows(2).zip(names.iter().skip(1));
    let phase = |(pair, &name): (&[SpanTimes], &&'static str)| PhaseTimes {
        name,
        work: pair[1].last_begin.since(pair[0].last_end),
        barrier: pair[1].last_end.since(pair[1].last_begin),
    };
    Ok(pairs.map(phase).collect())
}

#[cfg(test)]
mod tests;
