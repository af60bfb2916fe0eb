//! What a node's observer writes down: arrivals and departures, traffic.

use std::mem::offset_of;

use serde::{Deserialize, Serialize};

use crate::families::sme::engine::ShortCount;
use crate::parts::contract::Note;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};
use crate::parts::inline::ByChannel;
use crate::time::Time;

/// Arrivals and departures of one node's threads in one episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Loads through the engine.
    pub remote_loads: u64,
    /// Stores through the engine.
    pub remote_stores: u64,
    /// Bytes sent over this node's network links.
    pub link_bytes: u64,
}

impl Traffic {
    /// Of both.
    pub fn and(self, other: Traffic) -> Traffic {
        Traffic {
            remote_loads: self.remote_loads + other.remote_loads,
            remote_stores: self.remote_stores + other.remote_stores,
            link_bytes: self.link_bytes + other.link_bytes,
        }
    }
}

/// The record of one node. What is counted of passing packets stands together.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Record {
    /// By episode, the warm-up first.
    pub episodes: Vec<EpisodeTimes>,
    visits: Option<Box<Visits>>,
    /// What `links` does not hold of bytes and packets.
    more: Option<Box<ByChannel<(u64, u64), 1>>>,
    /// Traffic.
    pub traffic: Traffic,
    /// When the last event happened.
    pub last: Time,
    /// Bytes and packets sent over links in the counted episodes, by port and channel.
    links: [[ShortCount; CHANNELS]; LINK_PORTS],
}

/// Every visit, where that was asked for.
#[derive(Clone, Debug)]
struct Visits {
    /// In the order of departure.
    ended: Vec<Visit>,
    /// The last arrival of each thread.
    arrivals: Vec<Time>,
}

impl Record {
    /// Where that begins with which passing packets have to do; it ends with the record.
    pub const NEAR_FROM: usize = offset_of!(Self, traffic);

    /// For `threads` threads; `visits` asks for every visit.
    pub fn new(threads: usize, visits: bool) -> Self {
        Self {
            episodes: Vec::new(),
            traffic: Traffic::default(),
            last: Time::ZERO,
            more: None,
            links: Default::default(),
            visits: visits.then(|| {
                Box::new(Visits {
                    ended: Vec::new(),
                    arrivals: vec![Time::ZERO; threads],
                })
            }),
        }
    }

    /// Writes down what thread `core` says at `now`.
    #[inline]
    pub fn note(&mut self, now: Time, core: u16, note: Note) {
        match note {
            Note::Arrive(episode) => {
                let times = self.episode(episode);
                times.last_arrival = times.last_arrival.max(now);
                if let Some(visits) = &mut self.visits {
                    visits.arrivals[usize::from(core)] = now;
                }
            }
            Note::Leave(episode) => {
                let times = self.episode(episode);
                times.first_departure = times.first_departure.min(now);
                times.last_departure = times.last_departure.max(now);
                if let Some(visits) = &mut self.visits {
                    visits.ended.push(Visit {
                        episode,
                        core,
                        arrive: visits.arrivals[usize::from(core)],
                        leave: now,
                    });
                }
            }
        }
    }

    /// How many episodes have begun here, if any: none where threads take no part, or have not come
    /// yet.
    pub fn begun(&self) -> Option<u32> {
        Some(self.episodes.len() as u32).filter(|&episodes| episodes > 0)
    }

    /// Something has happened at `now`.
    #[inline]
    pub fn is_at(&mut self, now: Time) {
        self.last = self.last.max(now);
    }

    /// Adds what was seen of an episode.
    pub fn merge(&mut self, episode: u32, times: EpisodeTimes) {
        let own = self.episode(episode);
        *own = own.and(times);
    }

    /// Counts a packet of `bytes` bytes that leaves over a link.
    #[inline]
    pub fn sent(&mut self, port: u8, channel: u8, bytes: u64) {
        self.traffic.link_bytes += bytes;
        let (packets, bytes) = match self.links.get_mut(usize::from(port)) {
            Some(link) => match link[usize::from(channel)].count(bytes) {
                None => return,
                Some(full) => full,
            },
            None => (1, bytes),
        };
        let more = (self.more).get_or_insert_with(|| Box::new(ByChannel::new()));
        let (sum, count) = more.at(port, channel);
        *sum += bytes;
        *count += packets;
    }

    /// Bytes and packets that left over a link port and virtual channel in the counted episodes.
    pub fn over_link(&self, port: u8, channel: u8) -> (u64, u64) {
        let near = self.links.get(usize::from(port));
        let (packets, bytes) = near.map_or((0, 0), |link| link[usize::from(channel)].sums());
        let more = self.more.as_ref();
        let more = more.and_then(|more| more.get(port, channel).copied());
        let (more_bytes, more_packets) = more.unwrap_or_default();
        (bytes + more_bytes, packets + more_packets)
    }

    /// Every visit in the order of departure, where that was asked for.
    pub fn visits(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().flat_map(|visits| &visits.ended)
    }

    /// Bytes on the heap, without what grows with the number of episodes: the results.
    pub fn heap_bytes(&self) -> usize {
        let more = |more: &ByChannel<_, 1>| size_of_val(more) + more.heap_bytes();
        self.more.as_deref().map_or(0, more)
    }

    fn episode(&mut self, episode: u32) -> &mut EpisodeTimes {
        let index = episode as usize;
        if index >= self.episodes.len() {
            self.episodes.resize(index + 1, EpisodeTimes::NONE);
        }
        &mut self.episodes[index]
    }
}
