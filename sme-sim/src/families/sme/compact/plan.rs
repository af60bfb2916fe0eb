//! The constants that all nodes of compact form share: where flags lie, times, and the leading
//! thread.
//!
//! Times are picoseconds here and in the whole compact form.

use std::ops::Range;
use std::sync::Arc;

use sme_memory::{Followers, Leader, Step};

use crate::families::sme::cluster::constants::Constants;
use crate::families::sme::cluster::latencies::Latencies;
use crate::families::sme::spec::{BridgeWrites, HomeSockets};
use crate::observe::gauge::Gauge;
use crate::parts::line_size::LineSize;
use crate::time::Time;

/// The delay with which thread `core` of a node arrives in an episode: node, core, episode.
pub type Skew = dyn Fn(u32, u32, u32) -> Time + Send + Sync;

/// The reason why a barrier does not run in compact form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCompact {
    /// Two flags of a node share a line of its caches.
    #[error("in compact form every flag has a cache line of its own (--layout padded)")]
    SharedLines,
    /// Lines have their homes on several sockets.
    #[error("in compact form all lines have their home on the first socket (coherence.homes)")]
    Homes,
    /// Nodes share a pool.
    #[error("in compact form nodes share no pool (pool.devices)")]
    Pool,
    /// The I/O bridge pipelines writes.
    #[error("in compact form the I/O bridge performs one write at a time (host.bridge_writes)")]
    Bridge,
    /// More flags in a node than are numbered.
    #[error("in compact form a node has at most 65,535 flags")]
    TooManyFlags,
}

/// The plan of a run.
pub struct RunPlan<L> {
    /// The algorithm.
    pub leader: L,
    /// The machine.
    pub(in crate::families::sme) constants: Arc<Constants>,
    /// The last episode's number; the first's is 0.
    pub last_episode: u32,
    /// The delays of threads that arrive late.
    pub skew: Option<Box<Skew>>,
    /// The inner layout and times of each node.
    pub form: NodeForm,
    /// The progress of the run.
    pub gauge: Arc<Gauge>,
}

/// The inner layout and times of each node in compact form. Times in picoseconds.
#[derive(Debug)]
pub struct NodeForm {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Threads.
    pub threads: u32,
    /// The length of a line.
    pub line: LineSize,
    /// Lines of each node.
    pub lines: usize,
    /// The line of the phase.
    pub phase: u16,
    /// The line of thread 1's flag; the others' follow.
    pub first_flag: u16,
    /// The class of each thread's socket, and, last, of the bridge's.
    pub classes: Vec<u8>,
    /// The times of transactions, by class.
    pub ways: Vec<Ways>,
    /// Whether the time from a follower's read of the phase until it sets its flag is known:
    /// nothing disturbs it, and no follower arrives late.
    pub foretells: bool,
    /// Of each class, the first that takes as long to ask, and to ask again.
    pub asks_as: Vec<usize>,
    /// A hit, and what the program does with it.
    pub hit: u64,
    /// The program's own instructions around an operation.
    pub operation: u64,
    /// A hit in level 1.
    pub l1: u64,
    /// The least time for which a transaction occupies a line's home.
    pub occupancy: u64,
    /// From a core's store to the host link's queue, for thread 0.
    pub to_link: u64,
    /// The time that the bridge takes for a packet.
    pub bridge: u64,
    /// Between two posted stores of a core.
    pub store_gap: u64,
    /// Stores that a core can buffer.
    pub store_buffer: usize,
    /// Lines that a core fetches at once.
    pub misses: u32,
}

/// The times of a core's transactions, by the place of its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// From a miss to the line's home.
    pub home: u64,
    /// From a probe's start at the home to the new request's arrival there.
    pub again: u64,
    /// From a transaction's start to its end.
    pub settled: u64,
}

impl<L: Leader> RunPlan<L> {
    /// For `leader`'s barrier on a machine, episodes 0 to `last_episode`.
    ///
    /// # Errors
    /// [`NotCompact`]
    pub(in crate::families::sme) fn new(
        leader: L,
        constants: Arc<Constants>,
        threads: u32,
        last_episode: u32,
        skew: Option<Box<Skew>>,
    ) -> Result<Self, NotCompact> {
        let spec = &constants.spec;
        if spec.coherence.homes != HomeSockets::First {
            return Err(NotCompact::Homes);
        }
        if spec.pool.devices > 0 {
            return Err(NotCompact::Pool);
        }
        if spec.host.bridge_writes != BridgeWrites::Serial {
            return Err(NotCompact::Bridge);
        }
        let line = constants.map.line;
        let line_bytes = line.bytes();
        let Followers { phase, flags } = leader.followers();
        let apart = u64::from(flags.stride) == line_bytes && flags.first.is_multiple_of(line_bytes);
        if !phase.is_multiple_of(line_bytes) || (flags.count > 0 && !apart) {
            return Err(NotCompact::SharedLines);
        }
        let lines = leader.bytes().div_ceil(line_bytes);
        if lines >= u64::from(u16::MAX) {
            return Err(NotCompact::TooManyFlags);
        }
        let latencies = Arc::clone(&constants.latencies);
        let mut ways: Vec<Ways> = Vec::new();
        let mut class_of = |socket: u8| {
            let found = ways_of(&latencies, socket);
            let known = ways.iter().position(|known| *known == found);
            known.unwrap_or_else(|| {
                ways.push(found);
                ways.len() - 1
            }) as u8
        };
        let mut classes: Vec<u8> = (0..threads)
            .map(|thread| class_of(constants.socket_of(thread)))
            .collect();
        classes.push(class_of(0));
        let leaders_way = latencies.between(constants.socket_of(0), 0);
        let asks = |ways: &Ways| (ways.home, ways.again);
        let first_as = |one: &Ways| ways.iter().position(|other| asks(other) == asks(one));
        let asks_as = (ways.iter().enumerate())
            .map(|(class, ways)| first_as(ways).unwrap_or(class))
            .collect();
        let hit = constants.l1 + constants.operation;
        let form = NodeForm {
            foretells: skew.is_none() && constants.is_quiet(),
            asks_as,
            seed: constants.seed,
            threads,
            lines: lines as usize,
            line,
            phase: line.number(phase) as u16,
            first_flag: line.number(flags.first) as u16,
            classes,
            ways,
            hit: hit.as_ps(),
            operation: constants.operation.as_ps(),
            l1: constants.l1.as_ps(),
            occupancy: latencies.occupancy().as_ps(),
            to_link: (leaders_way + constants.host_way).as_ps(),
            bridge: spec.host.bridge.as_ps(),
            store_gap: spec.uncached.store_gap.as_ps(),
            store_buffer: spec.core.store_buffer as usize,
            misses: spec.core.outstanding_misses,
        };
        Ok(Self {
            leader,
            constants,
            last_episode,
            skew,
            form,
            gauge: Arc::default(),
        })
    }
}

impl NodeForm {
    /// Returns the class of thread `core`, and the times of its transactions.
    #[inline]
    pub fn ways(&self, core: u16) -> (usize, Ways) {
        let class = usize::from(self.classes[usize::from(core)]);
        (class, self.ways[class])
    }

    /// The lines of the followers' flags.
    pub fn flags(&self) -> Range<usize> {
        let first = usize::from(self.first_flag);
        first..first + self.threads as usize - 1
    }

    /// Returns whether a line has to do with followers: it is the phase, or the flag of one of
    /// them.
    pub fn is_followers(&self, line: u16) -> bool {
        line == self.phase || self.follower_of(line).is_some()
    }

    /// Returns whether what a leader asks for has to do with them.
    pub fn asks_followers(&self, node: u32, step: Step) -> bool {
        match step {
            Step::Read(offset) | Step::Wait(offset, _) => self.is_followers(self.line(offset)),
            Step::Set(place, _) => place.node == node && self.is_followers(self.line(place.offset)),
            Step::WaitAll(row, _) => (0..row.count).any(|index| {
                let offset = row.first + u64::from(index) * u64::from(row.stride);
                self.is_followers(self.line(offset))
            }),
            Step::Leave => false,
        }
    }

    /// The line of the flag of thread `core`, above 0.
    #[inline]
    pub fn flag_of(&self, core: u16) -> u16 {
        self.first_flag + core - 1
    }

    /// The thread whose flag lies in `line`, if it is a follower's.
    #[inline]
    pub fn follower_of(&self, line: u16) -> Option<u16> {
        let core = line.checked_sub(self.first_flag)? + 1;
        (u32::from(core) < self.threads).then_some(core)
    }

    /// The line at an offset into the shared partition.
    #[inline]
    pub fn line(&self, offset: u64) -> u16 {
        self.line.number(offset) as u16
    }

    /// The offset of a line.
    pub fn offset(&self, line: u16) -> u64 {
        self.line.address(line.into())
    }
}

fn ways_of(latencies: &Latencies, socket: u8) -> Ways {
    let way = latencies.between(socket, 0);
    let home = latencies.miss() + way;
    Ways {
        home: home.as_ps(),
        again: (latencies.between(0, socket) + latencies.probe() + home).as_ps(),
        settled: latencies.settles(0, socket, true).as_ps(),
    }
}
