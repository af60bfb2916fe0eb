//! Runs litmus tests on the simulated cluster: a machine for each run, many runs with different
//! timings, and a histogram of the states in which they end.
//!
//! Called by `sme litmus`; the tests are those of `sme_fft_demo::litmus`. An [`Exploration`]
//! decides how the runs differ: `timing` draws them, `direct` lets them follow what the model
//! allows. The simulated threads do what stands in `roles`.

mod direct;
mod explore;
mod roles;
mod timing;

use std::sync::Arc;

use sme_fft_demo::litmus::{MOST_LOCATIONS, MOST_THREADS, Model, Test};
use sme_sim::machine::{CannotBuild, Machine};
use sme_sim::observe::failure::Failure;

use crate::experiment::Full;
pub use explore::Exploration;

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
    /// the nodes, or at that device of the pool.
    pub homes: Option<Vec<u32>>,
    /// The number of runs.
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
    /// Nodes share no memory of their own.
    #[error(
        "--memory local is not there: all memory that threads of this machine share is its pool's; \
         use --memory engine or cached"
    )]
    LocalPool,
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
    /// The memory that the threads reach does not fit a node.
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
    #[error("--homes names node {home}; memory that nodes share is that of {first} to {last}")]
    Home {
        /// The home named.
        home: u32,
        /// The first node, or the first device of a pool, which are numbered behind the nodes.
        first: u32,
        /// The last.
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
    /// Returns the number of nodes of the machine of `test`.
    pub fn nodes_for(&self, test: &Test) -> u32 {
        match self.memory {
            MemoryKind::Local => 1,
            _ => self.nodes.unwrap_or((test.threads.len() as u32).max(2)),
        }
    }

    /// Returns whether `test` can be run so.
    ///
    /// # Errors
    /// [`Unfit`], which says what would fit.
    pub fn check(&self, test: &Test) -> Result<(), Unfit> {
        let threads = test.threads.len() as u32;
        let nodes = self.nodes_for(test);
        if self.memory == MemoryKind::Local {
            if self.machine.shape().pool_devices > 0 {
                return Err(Unfit::LocalPool);
            }
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
        let shape = self.machine.shape();
        let homes = shape.homes(nodes);
        let rows = u64::from(nodes.div_ceil(homes.len() as u32));
        Full::check(
            &self.machine,
            rows * roles::LINES * u64::from(shape.line_bytes),
        )?;
        match self
            .homes
            .iter()
            .flatten()
            .find(|&home| !homes.contains(home))
        {
            Some(&home) => {
                let (first, last) = (homes.start, homes.end - 1);
                Err(Unfit::Home { home, first, last })
            }
            None => Ok(()),
        }
    }

    fn cores(&self) -> u32 {
        self.machine.shape().cores
    }

    /// The model of memory that says what a run of `test` may show.
    pub fn model(&self, test: &Test) -> Model {
        let nodes = self.nodes_of(test);
        match self.memory {
            MemoryKind::Local => Model::TotalStoreOrder,
            // In every round the same locations share a home; which it is makes no difference.
            MemoryKind::Engine => Model::Posted {
                homes: renumbered(&self.homes_of(test, 0)),
                nodes,
            },
            MemoryKind::Cached => Model::Incoherent { nodes },
        }
    }

    /// The name of that model in docs/litmus.md.
    pub fn model_name(&self) -> &'static str {
        match (self.memory, self.spread) {
            (MemoryKind::Local, _) | (MemoryKind::Cached, Spread::OneNode) => "x86-TSO",
            (MemoryKind::Engine, _) => "posted",
            (MemoryKind::Cached, Spread::OnePerNode) => "incoherent",
        }
    }

    /// The node of each thread.
    fn nodes_of(&self, test: &Test) -> Vec<u32> {
        let threads = 0..test.threads.len() as u32;
        let node = |thread| match self.spread {
            Spread::OneNode => 0,
            Spread::OnePerNode => thread,
        };
        threads.map(node).collect()
    }

    /// The home of each location in a round of runs.
    fn homes_of(&self, test: &Test, round: u32) -> Vec<u32> {
        let all = self.machine.shape().homes(self.nodes_for(test));
        let count = all.len() as u32;
        (0..test.locations.len())
            .map(|location| match &self.homes {
                Some(homes) if !homes.is_empty() => homes[location % homes.len()],
                _ if self.memory == MemoryKind::Local => 0,
                _ => all.start + (location as u32 % count + round % count) % count,
            })
            .collect()
    }
}

/// The same with its different numbers called 0, 1, 2, …, in the order in which they appear.
fn renumbered(numbers: &[u32]) -> Vec<u32> {
    let mut known: Vec<u32> = Vec::new();
    let number_of = |number: &u32| {
        let place = known.iter().position(|other| other == number);
        place.unwrap_or_else(|| {
            known.push(*number);
            known.len() - 1
        }) as u32
    };
    numbers.iter().map(number_of).collect()
}

const _: () = assert!(MOST_LOCATIONS <= roles::MOST_LINES && MOST_THREADS <= roles::MOST_LINES);
