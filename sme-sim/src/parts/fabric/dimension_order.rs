//! Dimension-order routing in a mesh or torus, with dateline channels.
//!
//! A packet first travels along x, then y, then z, each the shorter way round (the + way if both
//! are as long). In a torus each ring would close a cycle of buffers that wait for each other; so
//! a packet begins each dimension on dateline channel 0 and continues on 1 once it has crossed
//! that ring's wrap-around link (W. J. Dally and C. L. Seitz, Deadlock-Free Message Routing in
//! Multiprocessor Interconnection Networks, IEEE Trans. Computers C-36(5), 1987). A mesh uses
//! channel 0 only.
//!
//! [`super::Router`] asks once a packet and hop, so nothing is stored per target and nothing is
//! divided.

use super::grid::Grid;
use super::routing::Port;

/// The facts about a grid that routing needs, prepared for speed.
#[derive(Clone, Debug)]
pub(super) struct DimensionOrder {
    sizes: [u32; 3],
    wraps: [bool; 3],
    /// ⌈2^40 / size⌉ of x and y: a product and a shift instead of a division, exact below 2^20.
    reciprocals: [u64; 2],
}

impl DimensionOrder {
    pub fn new(grid: &Grid) -> Self {
        let sizes = grid.sizes();
        let reciprocal = |size: u32| (1u64 << 40).div_ceil(u64::from(size));
        Self {
            sizes,
            wraps: [0, 1, 2].map(|dimension| grid.wraps(dimension)),
            reciprocals: [reciprocal(sizes[0]), reciprocal(sizes[1])],
        }
    }

    /// The next step from `here` to `target`: the port, minimal in hops.
    pub fn route(&self, here: [u32; 3], target: u32) -> Port {
        let there = self.coordinates(target);
        for (dimension, (&from, &to)) in here.iter().zip(&there).enumerate() {
            if from != to {
                let minus = if self.wraps[dimension] {
                    let size = self.sizes[dimension];
                    let ahead = if to > from {
                        to - from
                    } else {
                        to + size - from
                    };
                    ahead * 2 > size
                } else {
                    to < from
                };
                return Port::Link(dimension as u16 * 2 + u16::from(minus));
            }
        }
        Port::Host
    }

    /// Returns whether a packet that came in by port `arrived`, on dateline channel 1 or not, and
    /// goes on by `leaves` has crossed the dateline of its ring.
    pub fn crossed(&self, here: [u32; 3], arrived: u16, second: bool, leaves: u16) -> bool {
        // Straight on in the same ring: it arrived at the port opposite to the one it leaves by.
        let straight = leaves ^ 1 == arrived;
        straight && (second || self.arrived_by_wrap(here, leaves))
    }

    /// Returns whether a packet that travels in the direction of `port` came `here` over the ring's
    /// wrap-around link.
    fn arrived_by_wrap(&self, here: [u32; 3], port: u16) -> bool {
        let dimension = usize::from(port / 2);
        let first = if port.is_multiple_of(2) {
            0
        } else {
            self.sizes[dimension] - 1
        };
        self.wraps[dimension] && here[dimension] == first
    }

    pub fn coordinates(&self, position: u32) -> [u32; 3] {
        let (row, x) = self.divide(position, 0);
        let (z, y) = self.divide(row, 1);
        [x, y, z]
    }

    /// Quotient and remainder of `value` by the size of `dimension`.
    fn divide(&self, value: u32, dimension: usize) -> (u32, u32) {
        let quotient = ((u64::from(value) * self.reciprocals[dimension]) >> 40) as u32;
        (
            quotient,
            value.wrapping_sub(quotient.wrapping_mul(self.sizes[dimension])),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::MAX_HOSTS;
    use super::*;

    #[test]
    fn the_product_and_shift_is_a_division() {
        for size in (1..2000).chain([4095, 4096, 4097, 524_287, 524_288, MAX_HOSTS - 1, MAX_HOSTS])
        {
            let router = DimensionOrder::new(&Grid::new(false, &[size, 1]));
            let multiples = (1..=MAX_HOSTS / size)
                .rev()
                .take(50)
                .chain(1..50)
                .map(|n| n * size);
            for value in multiples
                .flat_map(|n| [n.saturating_sub(1), n, n + 1])
                .filter(|&n| n < MAX_HOSTS)
            {
                assert_eq!(router.divide(value, 0), (value / size, value % size));
            }
        }
    }
}
