//! A traffic source: what stands in the place of a node's cores.
//!
//! Open loop: in each cycle of the engine's clock a packet is generated with a fixed probability
//! (Bernoulli), independent of those before, and waits in a queue without end until the engine's
//! host port takes it. Every source draws from a stream of its own. Called by
//! [`super::position::Position`]; times are cycles.

use std::collections::VecDeque;

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::pattern::Aim;

/// Streams of random numbers from here on are those of traffic sources.
const STREAMS: u64 = 1 << 33;

/// A generated packet: its cycle, and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generated {
    pub(super) cycle: u64,
    pub(super) target: u32,
}

/// The orders of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) node: u32,
    /// Nodes that can be sent to.
    pub(super) nodes: u32,
    pub(super) aim: Aim,
    /// Packets per cycle, below 1.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// The first cycle in which none is generated any more.
    pub(super) until: u64,
}

/// A source and its queue.
#[derive(Debug)]
pub(super) struct Source {
    order: Order,
    random: Pcg32,
    /// 2^64 times the chance of a packet in a cycle.
    chance: u64,
    /// The cycle of the next packet; `u64::MAX` where none comes any more.
    next: u64,
    waiting: VecDeque<Generated>,
}

impl Source {
    /// A source before its first cycle.
    pub(super) fn new(order: Order) -> Self {
        const WHOLE: f64 = 18_446_744_073_709_551_616.0;
        let mut source = Self {
            order,
            random: Pcg32::new(order.seed, u64::from(order.node) | STREAMS),
            // Saturates.
            chance: (order.rate * WHOLE) as u64,
            next: 0,
            waiting: VecDeque::new(),
        };
        source.draw(0);
        source
    }

    /// The cycle in which the next packet is generated.
    pub(super) fn next(&self) -> Option<u64> {
        (self.next != u64::MAX).then_some(self.next)
    }

    /// Generates the packet that is due; it waits.
    pub(super) fn generate(&mut self) -> Option<Generated> {
        let cycle = self.next()?;
        let target = match self.order.aim {
            Aim::Nowhere => return None,
            Aim::One(target) => target,
            Aim::Others => {
                // One of the others, by a product instead of a division.
                let others = u64::from(self.order.nodes - 1);
                let drawn = ((u64::from(self.random.next_u32()) * others) >> 32) as u32;
                drawn + u32::from(drawn >= self.order.node)
            }
        };
        let generated = Generated { cycle, target };
        self.waiting.push_back(generated);
        self.draw(cycle + 1);
        Some(generated)
    }

    /// Takes the packet that has waited longest.
    pub(super) fn take(&mut self) -> Option<Generated> {
        self.waiting.pop_front()
    }

    /// Returns whether nothing waits.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Tosses for every cycle from `first` on, up to the first that has a packet.
    fn draw(&mut self, first: u64) {
        self.next = match self.order.aim {
            Aim::Nowhere => u64::MAX,
            _ => (first..self.order.until)
                .find(|_| self.random.next_u64() < self.chance)
                .unwrap_or(u64::MAX),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(node: u32, aim: Aim) -> Order {
        Order {
            node,
            nodes: 5,
            aim,
            rate: 0.25,
            seed: 3,
            until: 80_000,
        }
    }

    fn all(order: Order) -> Vec<Generated> {
        let mut source = Source::new(order);
        std::iter::from_fn(|| source.generate()).collect()
    }

    #[test]
    fn packets_come_at_the_rate_asked_for_and_go_to_all_others() {
        let packets = all(order(2, Aim::Others));
        // 20,000 expected, with a standard deviation of 122.
        assert!(
            packets.len().abs_diff(20_000) < 4 * 122,
            "{}",
            packets.len()
        );
        assert!(packets.is_sorted_by(|a, b| a.cycle < b.cycle));
        let to = |node| packets.iter().filter(|p| p.target == node).count();
        assert_eq!(to(2), 0);
        for other in [0, 1, 3, 4] {
            // A quarter of them, with a standard deviation of 61.
            let of_all = packets.len() / 4;
            assert!(to(other).abs_diff(of_all) < 4 * 61, "{other}");
        }
    }

    #[test]
    fn gaps_are_those_of_independent_tosses() {
        let packets = all(order(1, Aim::One(0)));
        let gaps: Vec<u64> = packets
            .windows(2)
            .map(|p| p[1].cycle - p[0].cycle)
            .collect();
        for gap in 1..6 {
            let share = gaps.iter().filter(|&&g| g == gap).count() as f64 / gaps.len() as f64;
            let expected = 0.25 * 0.75f64.powi(gap as i32 - 1);
            assert!(
                (share - expected).abs() < 0.013,
                "{gap}: {share} {expected}"
            );
        }
    }

    #[test]
    fn each_source_has_its_own_stream_and_each_seed_another() {
        let first = all(order(1, Aim::One(0)));
        assert_eq!(first, all(order(1, Aim::One(0))));
        assert_ne!(first, all(order(2, Aim::One(0))));
        let reseeded = Order {
            seed: 4,
            ..order(1, Aim::One(0))
        };
        assert_ne!(first, all(reseeded));
        assert_eq!(all(order(1, Aim::Nowhere)), []);
    }
}
