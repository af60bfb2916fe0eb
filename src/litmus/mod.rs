//! Runs litmus tests on the simulated cluster: a machine for each run, many runs with different
//! timings, and a histogram of the states in which they end.
//!
//! Called by `sme litmus`; the tests are those of `sme_fft_demo::litmus`. How the runs differ stands
//! in `timing`, what the simulated threads do in `roles`.

mod roles;
mod timing;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_fft_demo::litmus::{FinalState, Histogram, MOST_LOCATIONS, MOST_THREADS, Model, Test};
use sme_memory::Route;
use sme_sim::machine::{CannotBuild, Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::time::Time;

use crate::experiment::Full;
use crate::progress::Watch;
use roles::Plan;
use timing::Timing;

/// Through what the threads reach the locations of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The coherent memory of the node on which all threads are.
    Local,
    /// Behind the engine, uncached, one's own node's memory too.
    Engine,
    /// Behind the engine, through caches that nothing keeps coherent between nodes.
    Cached,
}

sme_barrier::names!(MemoryKind, "kind of memory", {
    Local => "local",
    Engine => "engine",
    Cached => "cached",
});

/// Where the threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All on the first node.
    OneNode,
    /// Thread i on node i.
    OnePerNode,
}

sme_barrier::names!(Spread, "spread", {
    OneNode => "one-node",
    OnePerNode => "one-per-node",
});

/// On what a test is run, and how often.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Through what the locations are reached.
    pub memory: MemoryKind,
    /// Where the threads are.
    pub spread: Spread,
    /// Nodes of the machine; none is as many as the test has threads, and one for local memory.
    pub nodes: Option<u32>,
    /// The nodes that hold the locations: location i lies at home `homes[i % homes.len()]`. None
    /// lets round r, which has a run on each scale of lags, have location i at node i + r modulo
    /// the nodes.
    pub homes: Option<Vec<u32>>,
    /// How many runs.
    pub runs: u32,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

/// Why a test cannot be run in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Local memory belongs to one node.
    #[error(
        "--memory local is the coherent memory of one node, which no other node's threads can reach \
         but through the engine: use --spread one-node, or --memory engine"
    )]
    LocalSpread,
    /// Local memory has one home.
    #[error(
        "--memory local lies on the threads' node: --homes and --nodes are for the other kinds"
    )]
    LocalHomes,
    /// There are not enough cores.
    #[error(
        "the test has {threads} threads; a node of this machine has room for {room} besides the core \
         that starts them"
    )]
    Cores {
        /// Threads of the test.
        threads: u32,
        /// Threads that fit on a node.
        room: u32,
    },
    /// Not even one thread fits on a node.
    #[error(
        "the test has {threads} threads, one a node; a node of this machine has no core for it \
         besides the core that starts it"
    )]
    NoCore {
        /// Threads of the test.
        threads: u32,
    },
    /// What the threads reach does not fit a node.
    #[error(transparent)]
    Memory(#[from] Full),
    /// There are not enough nodes.
    #[error("the test has {threads} threads, one a node, and --nodes gives {nodes}")]
    Nodes {
        /// Threads of the test.
        threads: u32,
        /// Nodes there are.
        nodes: u32,
    },
    /// A home is no node.
    #[error("--homes names node {home}; there are nodes 0 to {last}")]
    Home {
        /// The home named.
        home: u32,
        /// The last node.
        last: u32,
    },
}

/// Why runs have no outcome.
#[derive(Debug, thiserror::Error)]
pub enum LitmusError {
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
}

impl Setting {
    /// How many nodes the machine of `test` has.
    pub fn nodes_for(&self, test: &Test) -> u32 {
        match self.memory {
            MemoryKind::Local => 1,
            _ => self.nodes.unwrap_or((test.threads.len() as u32).max(2)),
        }
    }

    /// Whether `test` can be run so.
    ///
    /// # Errors
    /// [`Unfit`], which says what would fit.
    pub fn check(&self, test: &Test) -> Result<(), Unfit> {
        let threads = test.threads.len() as u32;
        let nodes = self.nodes_for(test);
        if self.memory == MemoryKind::Local {
            if self.spread == Spread::OnePerNode {
                return Err(Unfit::LocalSpread);
            }
            if self.homes.is_some() || self.nodes.is_some() {
                return Err(Unfit::LocalHomes);
            }
        }
        let room = self.cores().saturating_sub(1);
        match self.spread {
            Spread::OneNode if threads > room => return Err(Unfit::Cores { threads, room }),
            Spread::OnePerNode if threads > nodes => return Err(Unfit::Nodes { threads, nodes }),
            Spread::OnePerNode if room == 0 => return Err(Unfit::NoCore { threads }),
            _ => {}
        }
        let line_bytes = u64::from(self.machine.shape().line_bytes);
        Full::check(&self.machine, roles::LINES * line_bytes)?;
        let last = nodes - 1;
        match self.homes.iter().flatten().find(|&&home| home > last) {
            Some(&home) => Err(Unfit::Home { home, last }),
            None => Ok(()),
        }
    }

    fn cores(&self) -> u32 {
        self.machine.shape().cores
    }

    /// The model of memory that says what run `run` of `test` may show.
    pub fn model(&self, test: &Test, run: u32) -> Model {
        let threads = 0..test.threads.len() as u32;
        let nodes = threads.map(|thread| match self.spread {
            Spread::OneNode => 0,
            Spread::OnePerNode => thread,
        });
        match self.memory {
            MemoryKind::Local => Model::TotalStoreOrder,
            MemoryKind::Engine => Model::Posted {
                homes: self.homes_of(test, run),
                nodes: nodes.collect(),
            },
            MemoryKind::Cached => Model::Incoherent {
                nodes: nodes.collect(),
            },
        }
    }

    fn homes_of(&self, test: &Test, run: u32) -> Vec<u32> {
        let nodes = self.nodes_for(test);
        (0..test.locations.len())
            .map(|location| match &self.homes {
                Some(homes) if !homes.is_empty() => homes[location % homes.len()],
                _ => (location as u32 % nodes + timing::round_of(run) % nodes) % nodes,
            })
            .collect()
    }

    /// Runs `test` as often as asked for; `watch` is told of every run.
    ///
    /// # Errors
    /// [`LitmusError::Failure`] if a thread's access faults or the simulation stops in a deadlock.
    pub fn run(&self, test: &Arc<Test>, watch: &dyn Watch) -> Result<Histogram, LitmusError> {
        let mut histogram = Histogram::default();
        self.each_run(test, |_, state| {
            histogram.count(state);
            watch.advance(1);
        })?;
        Ok(histogram)
    }

    /// Runs `test` as often as asked for, and hands on the number of each run and the state in
    /// which it ends.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn each_run(
        &self,
        test: &Arc<Test>,
        mut ended: impl FnMut(u32, FinalState),
    ) -> Result<(), LitmusError> {
        // In a rehearsal it is seen when each thread hears of the beginning.
        let plain = Timing::plain(test);
        let unknown = vec![Time::ZERO; test.threads.len()];
        let (_, heard) = self.perform(test, 0, plain, unknown)?;
        let last = heard.iter().copied().max().unwrap_or_default();
        let handicaps: Vec<Time> = heard.iter().map(|&time| last.since(time)).collect();
        for run in 0..self.runs {
            let timing = Timing::new(test, self.memory, run, self.seed);
            let (state, _) = self.perform(test, run, timing, handicaps.clone())?;
            ended(run, state);
        }
        Ok(())
    }

    /// The state in which a run ends, and when each thread has heard of the beginning.
    fn perform(
        &self,
        test: &Arc<Test>,
        run: u32,
        timing: Timing,
        handicaps: Vec<Time>,
    ) -> Result<(FinalState, Vec<Time>), LitmusError> {
        let threads = test.threads.len() as u32;
        let nodes = self.nodes_for(test);
        let starter = match self.spread {
            Spread::OneNode => threads,
            Spread::OnePerNode => 1,
        };
        let crowd = match timing.crowd {
            Some(crowd) => crowd.cores.min(self.cores().saturating_sub(starter + 1)),
            None => 0,
        };
        let plan = Arc::new(Plan {
            route: match self.memory {
                MemoryKind::Local => Route::Nearest,
                MemoryKind::Engine => Route::Global,
                MemoryKind::Cached => Route::Cached,
            },
            homes: self.homes_of(test, run),
            spread: self.spread,
            nodes,
            starter,
            crowd,
            line_bytes: self.machine.shape().line_bytes.into(),
            timing,
            handicaps,
            reached: Mutex::new(test.initial_state()),
            test: Arc::clone(test),
        });
        let setup = Setup::new(self.machine.shape(), nodes, starter + 1 + crowd)
            .seeded(self.seed.wrapping_add(run.into()));
        let mut machine = self.machine.build(setup, |memory, node, core| {
            roles::perform(memory, node, core, Arc::clone(&plan))
        })?;
        machine.run(1, |_| {})?;
        let heard = machine.spans().called(roles::HEARD);
        let heard = heard.iter().map(|thread| thread.first_begin).collect();
        let reached = plan.reached.lock().clone();
        Ok((reached, heard))
    }
}

const _: () = assert!(MOST_LOCATIONS <= roles::MOST_LINES && MOST_THREADS <= roles::MOST_LINES);
