//! The integral of Comprés et al., Sec. 6: of the function that is 1 up to 0 and exp(x) from there
//! on, over (-100, 15). An interval is halved until Simpson's rule says the same of it and of its
//! halves; then the midpoint rule is used, with many points.

/// The interval of the integral.
pub const WHOLE: Interval = Interval {
    from: -100.0,
    to: 15.0,
};

/// The criterion: of an interval and of its halves Simpson's rule may differ by 15 times this, as
/// McKeeman's algorithm has it, in every interval alike. The paper does not give it. It was chosen
/// with both published times in view: with 40 leaves the serial time leaves 265 cycles for an
/// exponential, which a P54C may well take. With 0.01, 0.05 and 0.1 the serial time leaves 224, 333
/// and 361 cycles, and the invasive version then takes 2.03, 2.17 and 2.29 s.
pub const TOLERANCE: f64 = 0.02;

/// Points of the midpoint rule in each leaf (Sec. 6).
pub const POINTS: u64 = 1_000_000;

/// A part of the integral.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// The function.
fn function(x: f64) -> f64 {
    match x <= 0.0 {
        true => 1.0,
        false => x.exp(),
    }
}

/// The integral over [`WHOLE`] as it is.
pub fn exact() -> f64 {
    -WHOLE.from + WHOLE.to.exp() - 1.0
}

impl Interval {
    fn middle(self) -> f64 {
        f64::midpoint(self.from, self.to)
    }

    /// Its halves.
    pub fn halves(self) -> [Self; 2] {
        let middle = self.middle();
        let (from, to) = (self.from, self.to);
        [Self { from, to: middle }, Self { from: middle, to }]
    }

    fn simpson(self) -> f64 {
        let ends = function(self.from) + function(self.to);
        (self.to - self.from) / 6.0 * (ends + 4.0 * function(self.middle()))
    }

    /// Returns whether it need not be halved.
    pub fn is_leaf(self, tolerance: f64) -> bool {
        let halves: f64 = self.halves().into_iter().map(Self::simpson).sum();
        (halves - self.simpson()).abs() <= 15.0 * tolerance
    }

    fn point(self, number: u64, points: u64) -> f64 {
        self.from + (self.to - self.from) / points as f64 * (number as f64 + 0.5)
    }

    /// The integral by the midpoint rule with so many points.
    pub fn midpoint(self, points: u64) -> f64 {
        let sum: f64 = (0..points)
            .map(|number| function(self.point(number, points)))
            .sum();
        (self.to - self.from) / points as f64 * sum
    }

    /// Points of the midpoint rule that are not above 0, for which no exponential is needed.
    pub fn constant_points(self, points: u64) -> u64 {
        // They are the first ones.
        let (mut below, mut end) = (0, points);
        while below < end {
            let middle = below.midpoint(end);
            match self.point(middle, points) <= 0.0 {
                true => below = middle + 1,
                false => end = middle,
            }
        }
        below
    }
}

/// The levels of the tree, the root first.
#[cfg(test)]
fn levels(tolerance: f64) -> Vec<Vec<Interval>> {
    let mut levels = vec![vec![WHOLE]];
    loop {
        let last = levels.last().into_iter().flatten();
        let split = last.filter(|interval| !interval.is_leaf(tolerance));
        let next: Vec<Interval> = split.flat_map(|interval| interval.halves()).collect();
        if next.is_empty() {
            return levels;
        }
        levels.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tree_is_that_of_the_criterion() {
        let levels = levels(TOLERANCE);
        let sizes: Vec<usize> = levels.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 2, 2, 2, 4, 6, 8, 12, 18, 18, 6]);
        let leaves = levels
            .iter()
            .flatten()
            .filter(|interval| interval.is_leaf(TOLERANCE));
        assert_eq!(leaves.clone().count(), 40);
        // They are the whole, one behind the other.
        let mut leaves: Vec<Interval> = leaves.copied().collect();
        leaves.sort_by(|one, other| one.from.total_cmp(&other.from));
        assert_eq!((leaves[0].from, leaves[39].to), (WHOLE.from, WHOLE.to));
        assert!(leaves.windows(2).all(|pair| pair[0].to == pair[1].from));
        let sum: f64 = leaves.iter().map(|leaf| leaf.midpoint(10_000)).sum();
        assert!((sum / exact() - 1.0).abs() < 1e-6, "{sum} {}", exact());
    }

    proptest! {
        #[test]
        fn constant_points_are_counted(from in -5.0..3.0_f64, length in 0.1..5.0_f64, points in 1..500_u64) {
            let interval = Interval { from, to: from + length };
            let all = (0..points).filter(|&number| interval.point(number, points) <= 0.0);
            prop_assert_eq!(interval.constant_points(points), all.count() as u64);
        }
    }
}
