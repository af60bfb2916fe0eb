//! What a node's observer writes down: arrivals and departures, traffic.

use crate::fabric::{CHANNELS, LINK_PORTS};
use crate::kernel::thread::Note;
use crate::time::Time;

/// Arrivals and departures of one node's threads in one episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeTimes {
    /// The last arrival.
    pub last_arrival: Time,
    /// The first departure.
    pub first_departure: Time,
    /// The last departure.
    pub last_departure: Time,
}

impl EpisodeTimes {
    /// Of nobody.
    pub const NONE: EpisodeTimes = EpisodeTimes {
        last_arrival: Time::ZERO,
        first_departure: Time::NEVER,
        last_departure: Time::ZERO,
    };

    /// Of both.
    pub fn and(self, other: EpisodeTimes) -> EpisodeTimes {
        EpisodeTimes {
            last_arrival: self.last_arrival.max(other.last_arrival),
            first_departure: self.first_departure.min(other.first_departure),
            last_departure: self.last_departure.max(other.last_departure),
        }
    }
}

/// One thread in one episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Episode, the warm-up is 0.
    pub episode: u32,
    /// Thread number in its node.
    pub core: u16,
    /// When it entered the barrier.
    pub arrive: Time,
    /// When it left.
    pub leave: Time,
}

/// Traffic of one node over the counted episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Loads through the engine.
    pub remote_loads: u64,
    /// Stores through the engine.
    pub remote_stores: u64,
    /// Bytes sent over this node's network links.
    pub link_bytes: u64,
}

/// Bytes and packets by link port and virtual channel.
pub type LinkTraffic = [[(u64, u64); CHANNELS]; LINK_PORTS];

/// The record of one node.
#[derive(Clone, Debug)]
pub struct Record {
    /// By episode, the warm-up first.
    pub episodes: Vec<EpisodeTimes>,
    /// Every visit in the order of departure, where that was asked for.
    pub visits: Option<Vec<Visit>>,
    /// Traffic.
    pub traffic: Traffic,
    /// Bytes and packets by link port and virtual channel over the counted episodes; there once
    /// one has been sent.
    pub links: Option<Box<LinkTraffic>>,
    arrivals: Vec<Time>,
}

impl Record {
    /// For `threads` threads; `visits` asks for every visit.
    pub fn new(threads: usize, visits: bool) -> Self {
        Self {
            episodes: Vec::new(),
            visits: visits.then(Vec::new),
            traffic: Traffic::default(),
            links: None,
            arrivals: if visits {
                vec![Time::ZERO; threads]
            } else {
                Vec::new()
            },
        }
    }

    /// Writes down what thread `core` says at `now`.
    #[inline]
    pub fn note(&mut self, now: Time, core: u16, note: Note) {
        match note {
            Note::Arrive(episode) => {
                let times = self.episode(episode);
                times.last_arrival = times.last_arrival.max(now);
                if self.visits.is_some() {
                    self.arrivals[usize::from(core)] = now;
                }
            }
            Note::Leave(episode) => {
                let times = self.episode(episode);
                times.first_departure = times.first_departure.min(now);
                times.last_departure = times.last_departure.max(now);
                if let Some(visits) = &mut self.visits {
                    visits.push(Visit {
                        episode,
                        core,
                        arrive: self.arrivals[usize::from(core)],
                        leave: now,
                    });
                }
            }
        }
    }

    /// Counts a packet of `bytes` bytes that leaves over a link.
    #[inline]
    pub fn sent(&mut self, port: u8, channel: u8, bytes: u64) {
        self.traffic.link_bytes += bytes;
        let links = self.links.get_or_insert_default();
        let (sum, packets) = &mut links[usize::from(port)][usize::from(channel)];
        *sum += bytes;
        *packets += 1;
    }

    fn episode(&mut self, episode: u32) -> &mut EpisodeTimes {
        let index = episode as usize;
        if index >= self.episodes.len() {
            self.episodes.resize(index + 1, EpisodeTimes::NONE);
        }
        &mut self.episodes[index]
    }
}
