//! Counts of packets, and the proof that none is lost and none arrives twice.
//!
//! A packet's data name its source and the cycle in which it was generated, so no two are the same.
//! The sum of a hash of these names over all packets sent must be the sum over all that have
//! arrived: any packet lost, doubled or changed on the way shows. Kept by
//! [`super::position::Position`], summed up by [`super::Traffic::run`]; times are cycles.

use super::pattern::PatternError;
use crate::families::sme::engine::DesignError;

/// Bits of a name that hold the cycle.
const CYCLE_BITS: u32 = 44;

/// A packet's name: source above, cycle of its generation below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ident(pub(super) u64);

impl Ident {
    pub(super) fn new(source: u32, cycle: u64) -> Self {
        Self(u64::from(source) << CYCLE_BITS | (cycle & ((1 << CYCLE_BITS) - 1)))
    }

    /// Returns the cycle in which it was generated.
    pub(super) fn cycle(self) -> u64 {
        self.0 & ((1 << CYCLE_BITS) - 1)
    }

    /// A number in which every bit depends on all bits of the name (the finalizer of SplitMix64).
    fn hash(self) -> u64 {
        let mut hash = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ hash >> 31
    }
}

/// So many packets, and the sum of their names' hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, ident: Ident) {
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(ident.hash());
    }
}

/// The counts of one position, or of all. *Measured* are packets that were generated in the
/// measurement window.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Measured packets, when they were generated.
    pub(super) sent: Sum,
    /// Measured packets, when they arrived.
    pub(super) received: Sum,
    /// All packets that were generated.
    pub(super) all_sent: u64,
    /// All packets that arrived.
    pub(super) all_received: u64,
    /// Packets that arrived in the measurement window, whenever they were generated.
    pub(super) accepted: u64,
    /// Packets that arrived where they were not sent to.
    pub(super) strayed: u64,
    /// Of every measured packet that arrived: cycles from its generation.
    pub(super) latencies: Vec<u32>,
}

impl Tally {
    /// A packet is generated; `counts` if it is measured.
    pub(super) fn sends(&mut self, ident: Ident, counts: bool) {
        self.all_sent += 1;
        if counts {
            self.sent.add(ident);
        }
    }

    /// A packet arrives in `cycle`; `counts` if it is measured.
    pub(super) fn receives(
        &mut self,
        ident: Ident,
        cycle: u64,
        at_target: bool,
        counts: bool,
        in_window: bool,
    ) {
        self.all_received += 1;
        self.accepted += u64::from(in_window);
        self.strayed += u64::from(!at_target);
        if counts {
            self.received.add(ident);
            let latency = cycle.saturating_sub(ident.cycle());
            self.latencies
                .push(u32::try_from(latency).unwrap_or(u32::MAX));
        }
    }

    /// Adds what another position has counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
        ] {
            sum.count += more.count;
            sum.hashes = sum.hashes.wrapping_add(more.hashes);
        }
        self.all_sent += other.all_sent;
        self.all_received += other.all_received;
        self.accepted += other.accepted;
        self.strayed += other.strayed;
        self.latencies.extend_from_slice(&other.latencies);
    }

    /// Returns whether every packet that has arrived was sent, here, and once; and, if as many
    /// measured packets have arrived as were sent, whether they are the same.
    pub(super) fn check(&self) -> Result<(), TrafficError> {
        if self.strayed > 0 {
            return Err(TrafficError::Strayed {
                packets: self.strayed,
            });
        }
        let complete = self.received.count >= self.sent.count;
        if complete && self.received != self.sent || self.all_received > self.all_sent {
            return Err(self.changed());
        }
        Ok(())
    }

    /// The same when nothing is under way any more: everything has arrived.
    pub(super) fn check_all(&self) -> Result<(), TrafficError> {
        self.check()?;
        match self.all_received == self.all_sent && self.received == self.sent {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    fn changed(&self) -> TrafficError {
        TrafficError::Changed {
            sent: self.sent.count,
            received: self.received.count,
        }
    }
}

/// The reason why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrafficError {
    /// The machine's engines cannot be built.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// There is no such traffic.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There is no traffic among fewer than two nodes.
    #[error("{topology} has {nodes} node; traffic needs at least two nodes")]
    Alone {
        /// The network.
        topology: String,
        /// Its nodes.
        nodes: u32,
    },
    /// The links can carry more than an engine can inject.
    #[error(
        "at full load a node injects {per_kilocycle} packets in 1000 cycles of its engine, whose host port takes 500: lower link.bandwidth, or raise engine.clock"
    )]
    HostPort {
        /// Packets per node at full load, in 1000 cycles.
        per_kilocycle: u64,
    },
    /// The links are so slow, or the network is so large, that a source cannot tell loads apart.
    #[error("at full load a node injects a packet in {cycles} cycles; at most 2^32 are simulated")]
    TooSlow {
        /// Cycles between two packets of a node, at full load.
        cycles: u64,
    },
    /// Theory says nothing of so large a network that is neither a whole mesh nor a whole torus.
    #[error("{nodes} nodes; other networks than a whole mesh or torus may have at most {most}")]
    TooLarge {
        /// Its nodes.
        nodes: u32,
        /// The most.
        most: u32,
    },
    /// Fatal: a mistake of the simulator or of an engine.
    #[error("{packets} packets have arrived where they were not sent to")]
    Strayed {
        /// The number of packets.
        packets: u64,
    },
    /// Fatal: a mistake of the simulator or of an engine.
    #[error(
        "{received} packets have arrived for {sent} that were sent: some are lost, doubled or changed"
    )]
    Changed {
        /// Measured packets that were sent.
        sent: u64,
        /// Measured packets that arrived.
        received: u64,
    },
    /// Fatal, a mistake of the simulator or of an engine: the fabric is deadlocked.
    #[error("no packet has arrived during the last {span_ns} ns, and {waiting} wait: a deadlock")]
    Stuck {
        /// Nanoseconds.
        span_ns: u64,
        /// Packets under way.
        waiting: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(idents: &[Ident]) -> Tally {
        let mut tally = Tally::default();
        for &ident in idents {
            tally.sends(ident, true);
        }
        tally
    }

    proptest! {
        #[test]
        fn the_same_packets_in_any_order_are_the_same(
            names in prop::collection::btree_set((0u32..1 << 20, 0u64..1 << 44), 1..40),
            spoilt: prop::sample::Index,
            how in 0..4,
        ) {
            let sent: Vec<Ident> = names.iter().map(|&(s, c)| Ident::new(s, c)).collect();
            let mut all = tally(&sent);
            let mut arrived: Vec<Ident> = sent.iter().rev().copied().collect();
            let index = spoilt.index(arrived.len());
            // Intact; one doubled and another lost; one's target changed; one's data changed.
            match how {
                1 if arrived.len() > 1 => {
                    let next = (index + 1) % arrived.len();
                    arrived[index] = arrived[next];
                }
                3 => arrived[index].0 ^= 1 << 50,
                _ => {}
            }
            for (number, &ident) in arrived.iter().enumerate() {
                let at_target = how != 2 || number != index;
                all.receives(ident, ident.cycle() + 7, at_target, true, true);
            }
            let intact = how == 0 || how == 1 && arrived.len() == 1;
            prop_assert_eq!(all.check().is_ok(), intact, "{:?}", all.check());
        }
    }

    #[test]
    fn a_doubled_packet_shows_at_once() {
        let ident = Ident::new(3, 5);
        let mut all = tally(&[ident]);
        for _ in 0..2 {
            all.receives(ident, 9, true, true, true);
        }
        let changed = TrafficError::Changed {
            sent: 1,
            received: 2,
        };
        assert_eq!(all.check(), Err(changed));
    }
}
