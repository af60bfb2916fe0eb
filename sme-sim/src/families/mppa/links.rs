//! The links of a network on chip, which all nodes share: each carries one packet after the other,
//! and only as many as the buffer behind it has room for.
//!
//! A packet takes all links of its way when it sets out. Each is taken from when the packet's first
//! flit is there, the link is free, and the buffer of the next router has room for the whole packet
//! (its sender has the credits), until the last flit has gone. So packets queue behind those that
//! set out before them, back to the sender, whose next packet waits. Links join routers in fixed
//! time, and packets of one way arrive in order.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::layout::{Interface, Layout, Way};
use crate::time::Time;

/// The times of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// A router, from when a flit is there until it leaves.
    pub router: Time,
    /// From one router to the next.
    pub link: Time,
    /// One flit over a link.
    pub flit: Time,
    /// Flits for which the buffer behind a link has room.
    pub buffer_flits: u64,
}

/// A link, and the buffer behind it.
#[derive(Clone, Debug, Default)]
struct Link {
    /// The time until which it is taken.
    until: Time,
    /// Packets in the buffer: when the credits of each are back, and its flits.
    held: VecDeque<(Time, u64)>,
    held_flits: u64,
}

/// The journey of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Journey {
    /// The time at which its last flit has left the sender.
    pub gone: Time,
    /// The time at which its last flit has arrived.
    pub there: Time,
}

/// All links.
#[derive(Debug)]
pub(super) struct Links {
    layout: Layout,
    pace: Pace,
    links: Vec<Link>,
    /// The ways that packets have gone.
    ways: FxHashMap<(Interface, Interface), Arc<Way>>,
    /// The links that the packet which sets out has taken already, on its way elsewhere.
    taken: Vec<(usize, Time)>,
}

impl Links {
    /// Nothing is on its way.
    pub fn new(layout: Layout, pace: Pace) -> Self {
        Self {
            links: vec![Link::default(); layout.links()],
            layout,
            pace,
            ways: FxHashMap::default(),
            taken: Vec::new(),
        }
    }

    /// A packet of so many `flits` is at interface `from` at `now` and sets out for each of `to`;
    /// where it goes more ways than one it is copied where they part.
    pub fn travels(
        &mut self,
        now: Time,
        from: Interface,
        to: impl Iterator<Item = Interface>,
        flits: u64,
    ) -> Vec<Journey> {
        self.taken.clear();
        let mut journeys = Vec::new();
        for to in to {
            let way = self.way(from, to);
            journeys.push(self.goes(now, &way, flits));
        }
        journeys
    }

    fn way(&mut self, from: Interface, to: Interface) -> Arc<Way> {
        let layout = &self.layout;
        let way = self.ways.entry((from, to));
        Arc::clone(way.or_insert_with(|| Arc::new(layout.way(from, to))))
    }

    fn goes(&mut self, now: Time, way: &Way, flits: u64) -> Journey {
        let Pace {
            router, link, flit, ..
        } = self.pace;
        let busy = flit.times(flits);
        let mut gone = now;
        let mut at = now;
        let mut before: Option<(usize, bool)> = None;
        for (place, &number) in way.links.iter().enumerate() {
            let known = self.taken.iter().find(|&&(taken, _)| taken == number);
            let (begin, is_new) = match known {
                Some(&(_, begin)) => (begin, false),
                None => (self.takes(number, at, flits), true),
            };
            if place == 0 {
                gone = begin + busy;
            }
            if let Some((before, true)) = before {
                self.links[before].hold((begin + busy + link, flits));
            }
            // The interface is beside its router.
            let is_last = place + 1 == way.links.len();
            at = match (place, is_last) {
                (_, true) => begin,
                (0, false) => begin + router,
                _ => begin + link + router,
            };
            before = Some((number, is_new));
        }
        Journey {
            gone,
            there: at + busy,
        }
    }

    /// Takes a link from `at` on, or later; the time from which it is taken.
    fn takes(&mut self, number: usize, at: Time, flits: u64) -> Time {
        let (room, flit) = (self.pace.buffer_flits, self.pace.flit);
        let link = &mut self.links[number];
        let begin = link.begin(at.max(link.until), flits, room);
        link.until = begin + flit.times(flits);
        self.taken.push((number, begin));
        begin
    }
}

impl Link {
    /// The time from `at` on at which the buffer has room for so many flits more.
    fn begin(&mut self, at: Time, flits: u64, room: u64) -> Time {
        let mut begin = at;
        while let Some(&(back, of_packet)) = self.held.front() {
            if back > begin {
                if self.held_flits + flits <= room {
                    break;
                }
                begin = back;
            }
            self.held_flits -= of_packet;
            self.held.pop_front();
        }
        begin
    }

    fn hold(&mut self, packet: (Time, u64)) {
        self.held_flits += packet.1;
        self.held.push_back(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::mppa::layout::Side;

    const CYCLE: Time = Time::from_ps(2_500);

    const PACE: Pace = Pace {
        router: Time::from_ps(7 * 2_500),
        link: Time::from_ps(8 * 2_500),
        flit: CYCLE,
        buffer_flits: 64,
    };

    const LAYOUT: Layout = Layout::new(4, 4);

    fn links() -> Links {
        Links::new(LAYOUT, PACE)
    }

    fn cluster(node: u32) -> Interface {
        Interface { node, number: 0 }
    }

    /// One packet of so many flits, from and to.
    fn goes(links: &mut Links, now: u64, from: u32, to: u32, flits: u64) -> Journey {
        let to = [cluster(to)].into_iter();
        let journeys = links.travels(CYCLE.times(now), cluster(from), to, flits);
        journeys[0]
    }

    fn cycles(time: Time) -> u64 {
        assert_eq!(time.as_ps() % CYCLE.as_ps(), 0);
        time.as_ps() / CYCLE.as_ps()
    }

    /// Ho et al., Sec. IV: 7 x 8 + 8 x (8 - 1) cycles.
    #[test]
    fn the_worst_distance_is_112_cycles() {
        let north = LAYOUT.subsystem(Side::North);
        let mut worst = 0;
        for cluster in 0..16 {
            for other in 0..20 {
                for (from, to) in [(cluster, other), (other, cluster)] {
                    let journey = goes(&mut links(), 0, from, to, 1);
                    // Its only flit takes a cycle to arrive.
                    worst = worst.max(cycles(journey.there) - 1);
                }
            }
        }
        assert_eq!(worst, 112);
        assert_eq!(cycles(goes(&mut links(), 0, 15, north, 1).there), 113);
        assert_eq!(cycles(goes(&mut links(), 0, 0, 15, 1).there), 98);
        assert_eq!(cycles(goes(&mut links(), 0, 9, 9, 1).there), 8);
    }

    #[test]
    fn one_sender_has_a_flit_a_cycle_through() {
        let mut links = links();
        let (mut now, mut last) = (0, Time::ZERO);
        for _ in 0..100 {
            let journey = goes(&mut links, now, 0, 15, 17);
            (now, last) = (cycles(journey.gone), journey.there);
        }
        assert_eq!((now, cycles(last)), (1700, 1700 + 97));
    }

    /// Of two senders to one node each gets half, and has to wait where it sends.
    #[test]
    fn packets_queue_back_to_their_senders() {
        let mut links = links();
        let (mut now, mut sent) = ([0; 2], [0; 2]);
        let mut last = Time::ZERO;
        while now[0].min(now[1]) < 4000 {
            let sender = usize::from(now[1] < now[0]);
            let from = [1, 4][sender];
            let journey = goes(&mut links, now[sender], from, 0, 17);
            // A late packet was held up at its sender: the buffers of its way hold little.
            assert!(cycles(journey.there) - cycles(journey.gone) < 200);
            now[sender] = cycles(journey.gone);
            sent[sender] += 1;
            last = last.max(journey.there);
        }
        let all: i32 = sent.iter().sum();
        assert!(
            (all * 17).abs_diff(cycles(last) as i32) < 200,
            "{sent:?} {last:?}"
        );
        assert!(i32::abs(sent[0] - sent[1]) < 10, "{sent:?}");
    }

    /// A link behind which packets wait for another is not taken by more of them than its buffer
    /// holds, and those that go elsewhere wait behind them.
    #[test]
    fn a_full_buffer_stops_what_comes_behind() {
        let mut links = links();
        // The last link, to the interface of cluster 2, is taken for long.
        for _ in 0..20 {
            goes(&mut links, 0, 3, 2, 64);
        }
        let begun: Vec<u64> = (0..6)
            .map(|_| cycles(goes(&mut links, 0, 0, 2, 30).gone))
            .collect();
        // Two wait behind each link, that from the interface included; then nothing goes.
        assert!(begun[5] < 300, "{begun:?}");
        let next = cycles(goes(&mut links, 0, 0, 2, 30).gone);
        let elsewhere = cycles(goes(&mut links, 0, 0, 1, 1).gone);
        assert!(
            next > 1000 && elsewhere > next,
            "{begun:?} {next} {elsewhere}"
        );
    }

    /// Where several nodes lie on one way its links are taken once.
    #[test]
    fn a_packet_for_several_nodes_is_copied_where_their_ways_part() {
        let mut links = links();
        let to = [1, 2, 3, 7].map(cluster);
        let journeys = links.travels(Time::ZERO, cluster(0), to.into_iter(), 17);
        let there: Vec<u64> = journeys.iter().map(|j| cycles(j.there)).collect();
        let alone = [1, 2, 3, 7].map(|to| cycles(goes(&mut self::links(), 0, 0, to, 17).there));
        assert_eq!(there, alone);
        // The next one follows as behind a single packet.
        assert_eq!(cycles(goes(&mut links, 17, 0, 3, 17).there), alone[2] + 17);
    }
}
