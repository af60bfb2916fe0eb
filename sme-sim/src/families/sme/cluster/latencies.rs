//! The times of the parts of a transaction, by the sockets they involve.

use crate::families::sme::spec::ClusterSpec;
use crate::time::Time;

/// The latencies that follow from the machine's constants, socket by socket.
#[derive(Debug)]
pub struct Latencies {
    sockets: usize,
    /// One way between two sockets.
    between: Vec<Time>,
    /// From a transaction's start at the home to its end at the requester; home, requester.
    probed: Vec<Time>,
    /// The same without probes.
    unprobed: Vec<Time>,
    /// The reason for `probed`, and how far apart its parts are.
    bounds: Vec<Bound>,
    /// From the first socket's probes to the last answer at the requester, nothing being read.
    probed_alone: Vec<Time>,
    /// Until memory's data departs.
    dram: Time,
    /// A probe's look-up, after which a spinning core notices.
    probe: Time,
    /// Until a core knows that it misses.
    miss: Time,
    occupancy: Time,
}

impl Latencies {
    /// Of a machine.
    pub fn new(spec: &ClusterSpec) -> Self {
        let sockets = spec.node.sockets as usize;
        let coherence = &spec.coherence;
        let hops = |a: usize, b: usize| coherence.hop.times(hops_between(a, b));
        let pairs = || (0..sockets).flat_map(|a| (0..sockets).map(move |b| (a, b)));
        let dram = |home, requester| coherence.dram + hops(home, requester);
        let probe = |home, probed, requester| {
            let reaches = hops(home, probed);
            let answered = reaches + coherence.probe;
            (answered + hops(probed, requester), reaches, answered)
        };
        let slowest = |home, requester| {
            let probes = (0..sockets).map(|probed| probe(home, probed, requester));
            probes
                .max_by_key(|&(settles, ..)| settles)
                .unwrap_or_default()
        };
        let slowest_probe = |home, requester| slowest(home, requester).0;
        let bound = |(home, requester)| {
            let (settles, reaches, answered) = slowest(home, requester);
            if settles > dram(home, requester) {
                Bound::Probe { reaches, answered }
            } else {
                Bound::Memory {
                    read: coherence.dram,
                }
            }
        };
        Self {
            sockets,
            between: pairs().map(|(a, b)| hops(a, b)).collect(),
            probed: pairs()
                .map(|(h, r)| dram(h, r).max(slowest_probe(h, r)))
                .collect(),
            bounds: pairs().map(bound).collect(),
            unprobed: pairs().map(|(h, r)| dram(h, r)).collect(),
            probed_alone: (0..sockets).map(|r| slowest_probe(0, r)).collect(),
            dram: coherence.dram,
            probe: coherence.probe,
            miss: spec.cache.l3,
            occupancy: coherence.occupancy,
        }
    }

    /// Of a device of a pool: one memory controller, and no caches that could be probed.
    pub fn of_device(spec: &ClusterSpec) -> Self {
        let alone = |time| vec![time];
        Self {
            sockets: 1,
            between: alone(Time::ZERO),
            probed: alone(spec.pool.dram),
            unprobed: alone(spec.pool.dram),
            bounds: vec![Bound::Memory {
                read: spec.pool.dram,
            }],
            probed_alone: alone(Time::ZERO),
            dram: spec.pool.dram,
            probe: Time::ZERO,
            miss: Time::ZERO,
            occupancy: spec.coherence.occupancy,
        }
    }

    /// From the first socket's probes to the last answer at `requester`, nothing being read.
    pub fn probed_alone(&self, requester: u8) -> Time {
        self.probed_alone[usize::from(requester)]
    }

    /// A probe's look-up, after which a spinning core notices.
    pub fn probe(&self) -> Time {
        self.probe
    }

    /// Returns the least time for which a transaction occupies a line's home.
    pub fn occupancy(&self) -> Time {
        self.occupancy
    }

    /// Until a core knows that it misses.
    pub fn miss(&self) -> Time {
        self.miss
    }

    /// One way between two sockets.
    #[inline]
    pub fn between(&self, a: u8, b: u8) -> Time {
        self.between[self.pair(a, b)]
    }

    /// The reason for what [`settles`](Self::settles) says.
    pub fn bound(&self, home: u8, requester: u8, probes: bool) -> Bound {
        match probes {
            true => self.bounds[self.pair(home, requester)],
            false => Bound::Memory { read: self.dram },
        }
    }

    fn pair(&self, home: u8, requester: u8) -> usize {
        usize::from(home) * self.sockets + usize::from(requester)
    }

    /// From a transaction's start at the home to its end at the requester.
    #[inline]
    pub fn settles(&self, home: u8, requester: u8, probes: bool) -> Time {
        let pair = self.pair(home, requester);
        if probes {
            self.probed[pair]
        } else {
            self.unprobed[pair]
        }
    }
}

/// The reason for the time from a transaction's start to its end. Times count from the start.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// The memory, whose data departs at `read`.
    Memory {
        /// The departure.
        read: Time,
    },
    /// The slowest probe.
    Probe {
        /// The time at which a probe reaches the caches it looks into.
        reaches: Time,
        /// The time at which its answer is there.
        answered: Time,
    },
}

/// Links between two sockets: four stand on the corners of a square, more on a hypercube's.
fn hops_between(a: usize, b: usize) -> u64 {
    u64::from((a ^ b).count_ones())
}
