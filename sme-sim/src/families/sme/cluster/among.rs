//! A cluster whose nodes several processes share: which are this process's, and what the others
//! say of theirs when a run has ended.
//!
//! Called by [`super::Cluster::run_among`] and its compact counterpart. After a run every process
//! knows what all did, so that all fail alike, with the same report.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sme_memory::Until;

use super::failure::{Awaited, NAMED, Stuck};
use super::record::{EpisodeTimes, Record, Traffic};
use crate::kernel::peers::{self, PeerError, Peers, Shares};
use crate::kernel::window::Exchanged;
use crate::time::Time;

/// The nodes of this process among all.
#[derive(Clone, Debug)]
pub struct Among {
    /// Positions, in all processes.
    pub positions: u32,
    /// Those of this process.
    pub mine: Range<u32>,
    /// What the nodes of all processes did, as of the end of a run.
    pub all: Figures,
    /// What was exchanged with them.
    pub exchanged: Exchanged,
}

impl Among {
    /// Of `positions`, shared with `peers`.
    pub fn new(peers: &dyn Peers, positions: u32) -> Self {
        Self {
            positions,
            mine: Shares::new(positions, peers.count()).of(peers.me()),
            all: Figures::default(),
            exchanged: Exchanged::default(),
        }
    }

    /// A run has ended: tells the others what own nodes did, and remembers what all did.
    pub fn tell(&mut self, peers: &mut dyn Peers, own: Figures) -> Result<(), PeerError> {
        let all = peers::all(peers, own)?.into_iter();
        self.all = all.fold(Figures::default(), |sum, figures| sum.and(&figures));
        Ok(())
    }
}

/// What nodes did, in sum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    pub episodes: Vec<EpisodeTimes>,
    pub traffic: Traffic,
    pub events: u64,
    /// When the last of them happened.
    pub end: Time,
}

impl Figures {
    /// Of nodes, each with its record and the number of its events.
    pub fn of<'a>(nodes: impl Iterator<Item = (&'a Record, u64)>) -> Self {
        let mut all = Self::default();
        for (record, events) in nodes {
            all.add(&record.episodes, record.traffic, (events, record.last));
        }
        all
    }

    /// Of both.
    pub fn and(mut self, other: &Figures) -> Self {
        self.add(&other.episodes, other.traffic, (other.events, other.end));
        self
    }

    fn add(&mut self, episodes: &[EpisodeTimes], traffic: Traffic, (events, end): (u64, Time)) {
        if episodes.len() > self.episodes.len() {
            self.episodes.resize(episodes.len(), EpisodeTimes::NONE);
        }
        for (sum, times) in self.episodes.iter_mut().zip(episodes) {
            *sum = sum.and(*times);
        }
        self.traffic = self.traffic.and(traffic);
        self.events += events;
        self.end = self.end.max(end);
    }
}

/// The first threads that wait, and how many wait besides, over all processes; of this one they
/// are `stuck` and `more`.
pub fn all_stuck(
    peers: &mut dyn Peers,
    mut stuck: Vec<Stuck>,
    mut more: u64,
) -> Result<(Vec<Stuck>, u64), PeerError> {
    if peers.count() == 1 {
        return Ok((stuck, more));
    }
    more += stuck.len().saturating_sub(NAMED) as u64;
    stuck.truncate(NAMED);
    let told: Vec<Told> = stuck.iter().map(Told::new).collect();
    let mut all = Vec::new();
    let mut besides = 0;
    for (told, more) in peers::all(peers, (told, more))? {
        all.extend(told.into_iter().map(Told::stuck));
        besides += more;
    }
    besides += all.len().saturating_sub(NAMED) as u64;
    all.truncate(NAMED);
    Ok((all, besides))
}

/// What a thread that waits for ever may be doing.
const DOING: [&str; 4] = [
    "does not get any further",
    "spins in its cache",
    "polls through the engine",
    "sleeps on a futex",
];

/// A [`Stuck`] as one process tells it another.
#[derive(Serialize, Deserialize)]
struct Told {
    node: u32,
    core: u16,
    doing: u8,
    awaited: Option<ToldAwaited>,
}

#[derive(Serialize, Deserialize)]
struct ToldAwaited {
    address: u64,
    /// Whether it is to be this, or not to be this.
    until: Option<(bool, u8)>,
    at_home: u64,
    in_memory: u64,
    cached: Option<u64>,
    writer: Option<(u32, u16)>,
}

impl Told {
    fn new(stuck: &Stuck) -> Self {
        let doing = DOING.iter().position(|&doing| doing == stuck.doing);
        Self {
            node: stuck.node,
            core: stuck.core,
            doing: doing.unwrap_or(0) as u8,
            awaited: stuck.awaited.as_ref().map(|awaited| ToldAwaited {
                address: awaited.address,
                until: awaited.until.map(|until| match until {
                    Until::Is(value) => (true, value),
                    Until::IsNot(value) => (false, value),
                }),
                at_home: awaited.at_home,
                in_memory: awaited.in_memory,
                cached: awaited.cached,
                writer: awaited.writer,
            }),
        }
    }

    fn stuck(self) -> Stuck {
        Stuck {
            node: self.node,
            core: self.core,
            doing: DOING.get(usize::from(self.doing)).unwrap_or(&DOING[0]),
            awaited: self.awaited.map(|awaited| Awaited {
                address: awaited.address,
                until: awaited.until.map(|(is, value)| match is {
                    true => Until::Is(value),
                    false => Until::IsNot(value),
                }),
                at_home: awaited.at_home,
                in_memory: awaited.in_memory,
                cached: awaited.cached,
                writer: awaited.writer,
            }),
        }
    }
}
