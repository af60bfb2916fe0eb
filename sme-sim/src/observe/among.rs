//! A machine that several processes share: which nodes are this process's, and what the others say
//! of theirs when a run has ended.
//!
//! After a run every process knows what all did, so that all fail alike, with the same report.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::spans::Spans;
use super::stuck::{LISTED, Stuck};
use super::traffic::Traffic;
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
    /// The figures of the nodes of all processes, as of the end of a run.
    pub all: Figures,
    /// The traffic between processes.
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
    ///
    /// # Errors
    /// [`PeerError`] if a process has gone.
    pub fn tell(&mut self, peers: &mut dyn Peers, own: Figures) -> Result<(), PeerError> {
        let all = peers::all(peers, own)?.into_iter();
        self.all = all.fold(Figures::default(), Figures::and);
        Ok(())
    }
}

/// Figures of nodes, in sum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Their threads' spans.
    pub spans: Spans,
    /// Their traffic.
    pub traffic: Traffic,
    /// The number of events.
    pub events: u64,
    /// The time at which the last of them happened.
    pub end: Time,
}

impl Figures {
    /// Adds what another node did.
    pub fn add(&mut self, spans: &Spans, traffic: Traffic, (events, end): (u64, Time)) {
        self.spans.add(spans);
        self.traffic = self.traffic.and(traffic);
        self.events += events;
        self.end = self.end.max(end);
    }

    fn and(mut self, other: Figures) -> Self {
        self.add(&other.spans, other.traffic, (other.events, other.end));
        self
    }
}

/// The first threads that wait, and how many wait besides, over all processes; of this one they
/// are `stuck` and `more`.
///
/// # Errors
/// [`PeerError`] if a process has gone.
pub fn all_stuck(
    peers: &mut dyn Peers,
    mut stuck: Vec<Stuck>,
    mut more: u64,
) -> Result<(Vec<Stuck>, u64), PeerError> {
    more += stuck.len().saturating_sub(LISTED) as u64;
    stuck.truncate(LISTED);
    let mut all = Vec::new();
    let mut besides = 0;
    for (stuck, more) in peers::all(peers, (stuck, more))? {
        all.extend(stuck);
        besides += more;
    }
    besides += all.len().saturating_sub(LISTED) as u64;
    all.truncate(LISTED);
    Ok((all, besides))
}
