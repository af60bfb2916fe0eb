//! The model of a message's cost: a line, t = K N + h for N bytes (Ho et al., Sec. IV, Eq. 1 to 4).

/// A line of cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// K, in units of time a byte.
    pub per_byte: f64,
    /// h, the cost of an empty message, in the same unit.
    pub fixed: f64,
}

/// A line through measured points, and how well they lie on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The line, by least squares.
    pub line: Line,
    /// The coefficient of determination: 1 if all points lie on the line.
    pub r2: f64,
}

impl Line {
    /// The time of a message of so many bytes (Eq. 1).
    pub fn time(&self, bytes: f64) -> f64 {
        self.per_byte * bytes + self.fixed
    }

    /// The time there and back (Eq. 2).
    pub fn round_trip(&self, bytes: f64) -> f64 {
        2.0 * self.time(bytes)
    }

    /// Bytes in a unit of time (Eq. 3).
    pub fn throughput(&self, bytes: f64) -> f64 {
        bytes / self.time(bytes)
    }

    /// Bytes in a unit of time for messages of any length (Eq. 4).
    pub fn most_throughput(&self) -> f64 {
        1.0 / self.per_byte
    }

    /// Messages in a unit of time, where each takes the sender so long.
    pub fn rate(&self, bytes: f64) -> f64 {
        1.0 / self.time(bytes)
    }

    /// The bytes from which on `self` takes less time than `other`, which takes less for short
    /// ones; none if it never does, or always.
    pub fn crossover(&self, other: &Self) -> Option<f64> {
        let bytes = (self.fixed - other.fixed) / (other.per_byte - self.per_byte);
        (self.per_byte < other.per_byte && bytes > 0.0).then_some(bytes)
    }

    /// The line through points (bytes, time), of which there must be two with different bytes.
    pub fn through(points: &[(f64, f64)]) -> Option<Fitted> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for point in points {
            let (dx, dy) = (point.0 - x, point.1 - y);
            xx += dx * dx;
            xy += dx * dy;
            yy += dy * dy;
        }
        // Without two different lengths this is no number.
        let per_byte = xy / xx;
        let line = Self {
            per_byte,
            fixed: y - per_byte * x,
        };
        let r2 = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
        per_byte.is_finite().then_some(Fitted { line, r2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEND: Line = Line {
        per_byte: 0.98,
        fixed: 31430.0,
    };
    const ISEND: Line = Line {
        per_byte: 0.27,
        fixed: 33690.0,
    };

    #[test]
    fn the_papers_figures_follow_from_its_lines() {
        // Sec. V-A: 408 and 1481 MB/s at 400 MHz.
        assert_eq!((400.0 * SEND.most_throughput()).round(), 408.0);
        assert_eq!((400.0 * ISEND.most_throughput()).round(), 1481.0);
        let from = ISEND.crossover(&SEND);
        assert_eq!(from.map(f64::round), Some(3183.0));
        assert_eq!(SEND.crossover(&ISEND), None);
        assert_eq!(SEND.round_trip(100.0), 2.0 * 31528.0);
        assert!((SEND.rate(0.0) * 31430.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_line_needs_two_lengths() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(8.0, 1.0), (8.0, 2.0)]), None);
    }

    proptest! {
        #[test]
        fn points_on_a_line_give_it_back(per_byte in 0.01..20.0, fixed in 1.0..1e6) {
            let line = Line { per_byte, fixed };
            let points = [0.0, 64.0, 512.0, 1e5].map(|bytes| (bytes, line.time(bytes)));
            let Fitted { line: found, r2 } = Line::through(&points).unwrap();
            prop_assert!((found.per_byte / per_byte - 1.0).abs() < 1e-6);
            prop_assert!((found.fixed - fixed).abs() < 1e-6 * (fixed + 1e5 * per_byte));
            prop_assert!(r2 > 0.999_999);
            // Off the line r2 is less.
            let mut bent = points;
            bent[1].1 += line.time(1e5);
            prop_assert!(Line::through(&bent).unwrap().r2 < 0.9);
        }
    }
}
