//! Eq. 2 as a fit: the barrier's latency over nodes and cores, with what the fit does not know.
//!
//! Called by `validate` and by the extrapolation. Latencies are in the unit of the caller;
//! the published coefficients are in microseconds.

use nalgebra::{SMatrix, SVector};

use super::{Coefficient, Confidence, FitError, least_squares_with};

/// The barrier's latency over the size of a cluster, t = (a1·c + a0)·ln n + (b1·c + b0) for n
/// nodes of c cores (Fröning et al., Sec. VI-B, Eq. 2). In the paper t is in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// The cost that a core of every node adds to a factor e in the number of nodes.
    pub a1: Coefficient,
    /// The cost of a factor e in the number of nodes without any core.
    pub a0: Coefficient,
    /// The cost of a core within a node.
    pub b1: Coefficient,
    /// The rest.
    pub b0: Coefficient,
    /// Coefficient of determination.
    pub r_squared: f64,
}

impl Surface {
    /// Eq. 2 as published, in microseconds; published without intervals, so these are zero wide.
    pub const PUBLISHED: Surface = {
        const fn exactly(value: f64) -> Coefficient {
            Coefficient { value, margin: 0.0 }
        }
        Surface {
            a1: exactly(0.0216),
            a0: exactly(2.4928),
            b1: exactly(0.0561),
            b0: exactly(0.377),
            r_squared: 1.0,
        }
    };

    /// The surface at `nodes` nodes of `cores` cores. `nodes` may be a fraction: the paper divides
    /// a machine's cores by the cores of a node.
    pub fn at(&self, nodes: f64, cores: f64) -> f64 {
        (self.a1.value * cores + self.a0.value) * nodes.ln()
            + (self.b1.value * cores + self.b0.value)
    }

    /// The coefficients with their names in Eq. 2, in its order.
    pub fn named(&self) -> [(&'static str, Coefficient); 4] {
        [
            ("a1", self.a1),
            ("a0", self.a0),
            ("b1", self.b1),
            ("b0", self.b0),
        ]
    }
}

/// A fitted surface and how far it may be from the next point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceFit {
    /// The surface, its coefficients with intervals of [`SurfaceFit::confidence`].
    pub surface: Surface,
    /// The confidence of the intervals.
    pub confidence: Confidence,
    /// Points it was fitted to.
    pub points: usize,
    /// Variance of a point around the surface; not a number without a degree of freedom.
    variance: f64,
    covariance: SMatrix<f64, 4, 4>,
}

/// The prediction of a fit at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The surface there.
    pub latency: f64,
    /// Half the width of the interval in which one more measurement is expected: the surface's
    /// own uncertainty and a point's distance from it. Infinite without a degree of freedom.
    pub margin: f64,
}

impl Prediction {
    /// The interval's lower end.
    pub fn low(self) -> f64 {
        self.latency - self.margin
    }

    /// The interval's upper end.
    pub fn high(self) -> f64 {
        self.latency + self.margin
    }
}

impl SurfaceFit {
    /// Fits Eq. 2 to (nodes, cores per node, latency): linear least squares in four coefficients.
    ///
    /// # Errors
    /// Fewer than four points, points that share too many coordinates (one size, one number of
    /// nodes or of cores), or coordinates that are no numbers.
    pub fn new(samples: &[(f64, f64, f64)], confidence: Confidence) -> Result<Self, FitError> {
        if samples.iter().any(|&(nodes, _, _)| nodes <= 0.0) {
            return Err(FitError::NotANumber);
        }
        let rows: Vec<[f64; 4]> = samples
            .iter()
            .map(|&(nodes, cores, _)| regressors(nodes, cores))
            .collect();
        let latencies: Vec<f64> = samples.iter().map(|&(_, _, latency)| latency).collect();
        let fit = least_squares_with(&rows, &latencies, confidence)?;
        let [a1, a0, b1, b0] = fit.coefficients;
        Ok(Self {
            surface: Surface {
                a1,
                a0,
                b1,
                b0,
                r_squared: fit.r_squared,
            },
            confidence,
            points: samples.len(),
            variance: fit.residual / fit.freedom as f64,
            covariance: fit.covariance,
        })
    }

    /// Predicts one more measurement at `nodes` nodes of `cores` cores. The interval holds as far
    /// as Eq. 2 does, with independent errors of equal variance: it cannot know where another law
    /// begins.
    pub fn predict(&self, nodes: f64, cores: f64) -> Prediction {
        let at = SVector::from(regressors(nodes, cores));
        let of_surface = (self.covariance * at).dot(&at);
        let freedom = self.points.saturating_sub(4);
        Prediction {
            latency: self.surface.at(nodes, cores),
            margin: match self.confidence.student(freedom) {
                Some(t) => t * (self.variance * (1.0 + of_surface)).sqrt(),
                None => f64::INFINITY,
            },
        }
    }

    /// Standard deviation of a point around the surface; not a number where four points leave none.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// Fits Eq. 2 with intervals of 95 %.
///
/// # Errors
/// Those of [`SurfaceFit::new`].
pub fn surface(samples: &[(f64, f64, f64)]) -> Result<Surface, FitError> {
    SurfaceFit::new(samples, Confidence::USUAL).map(|fit| fit.surface)
}

/// Returns the factors of the four coefficients.
fn regressors(nodes: f64, cores: f64) -> [f64; 4] {
    [cores * nodes.ln(), nodes.ln(), cores, 1.0]
}

#[cfg(test)]
#[allow(clippy::needless_range_loop, reason = "matrices read as in a textbook")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
    }

    /// The normal equations by Gauss' elimination, with no help from a library: the coefficients
    /// and the inverse of their matrix.
    fn normal_equations(samples: &[(f64, f64, f64)]) -> ([f64; 4], [[f64; 4]; 4]) {
        // The matrix, the right-hand side, the unit matrix.
        let mut m = [[0.0; 9]; 4];
        for &(nodes, cores, latency) in samples {
            let x = [cores * nodes.ln(), nodes.ln(), cores, 1.0];
            for row in 0..4 {
                for column in 0..4 {
                    m[row][column] += x[row] * x[column];
                }
                m[row][4] += x[row] * latency;
            }
        }
        for (row, line) in m.iter_mut().enumerate() {
            line[5 + row] = 1.0;
        }
        for pivot in 0..4 {
            let largest = (pivot..4)
                .max_by(|&a, &b| m[a][pivot].abs().total_cmp(&m[b][pivot].abs()))
                .unwrap();
            m.swap(pivot, largest);
            let divisor = m[pivot][pivot];
            m[pivot].iter_mut().for_each(|value| *value /= divisor);
            let line = m[pivot];
            for (row, other) in m.iter_mut().enumerate() {
                let factor = other[pivot];
                if row != pivot {
                    other
                        .iter_mut()
                        .zip(line)
                        .for_each(|(value, of_pivot)| *value -= factor * of_pivot);
                }
            }
        }
        (
            m.map(|line| line[4]),
            m.map(|line| [line[5], line[6], line[7], line[8]]),
        )
    }

    proptest! {
        #[test]
        fn a_surface_is_recovered(a1 in -0.1..0.1f64, a0 in -5.0..5.0f64, b1 in -0.5..0.5f64, b0 in -5.0..5.0f64) {
            let exact = |value| Coefficient { value, margin: 0.0 };
            let known = Surface { a1: exact(a1), a0: exact(a0), b1: exact(b1), b0: exact(b0), r_squared: 1.0 };
            let found = surface(&grid(|nodes, cores| known.at(nodes, cores))).unwrap();
            prop_assert!(near(found.a1.value, a1, 1e-8) && near(found.a0.value, a0, 1e-8));
            prop_assert!(near(found.b1.value, b1, 1e-8) && near(found.b0.value, b0, 1e-8));
        }

        /// Coefficients, their intervals and the intervals of predictions, by the textbook's
        /// formulas over another way to solve.
        #[test]
        fn the_normal_equations_say_the_same(noise in prop::collection::vec(-2.0..2.0f64, 30), at in (1.0..1e6f64, 1.0..1000.0f64)) {
            let mut noise = noise.into_iter();
            let samples = grid(|n, c| Surface::PUBLISHED.at(n, c) + noise.next().unwrap());
            let found = SurfaceFit::new(&samples, Confidence::new(90.0).unwrap()).unwrap();
            let (expected, inverse) = normal_equations(&samples);
            // 26 degrees of freedom, 90 % (a table's value).
            let t = 1.705_618;
            let [a1, a0, b1, b0] = expected;
            let value = |n: f64, c: f64| (a1 * c + a0) * n.ln() + b1 * c + b0;
            let variance = samples.iter().map(|&(n, c, us)| (us - value(n, c)).powi(2)).sum::<f64>() / 26.0;
            for (index, (_, coefficient)) in found.surface.named().into_iter().enumerate() {
                prop_assert!(near(coefficient.value, expected[index], 1e-8));
                prop_assert!(near(coefficient.margin, t * (variance * inverse[index][index]).sqrt(), 1e-5));
            }
            prop_assert!(near(found.deviation(), variance.sqrt(), 1e-7));
            let x = [at.1 * at.0.ln(), at.0.ln(), at.1, 1.0];
            let mut form = 0.0;
            for row in 0..4 {
                for column in 0..4 {
                    form += x[row] * inverse[row][column] * x[column];
                }
            }
            let prediction = found.predict(at.0, at.1);
            prop_assert!(near(prediction.latency, value(at.0, at.1), 1e-7));
            prop_assert!(near(prediction.margin, t * (variance * (1.0 + form)).sqrt(), 1e-5));
        }

        #[test]
        fn nothing_panics(samples in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY, prop::num::f64::ANY), 0..12)) {
            if let Ok(fit) = SurfaceFit::new(&samples, Confidence::USUAL) {
                let _ = fit.predict(1e6, 1e3);
            }
        }
    }

    /// The grid on which the paper's surface is compared.
    fn grid(mut latency: impl FnMut(f64, f64) -> f64) -> Vec<(f64, f64, f64)> {
        let nodes = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let cores = [1.0, 2.0, 4.0, 8.0, 16.0];
        nodes
            .iter()
            .flat_map(|&n| cores.iter().map(move |&c| (n, c)))
            .map(|(n, c)| (n, c, latency(n, c)))
            .collect()
    }

    #[test]
    fn the_published_surface_gives_the_published_figures() {
        assert!((Surface::PUBLISHED.at(262_144.0, 768.0) - 281.5).abs() < 0.1);
        assert!((Surface::PUBLISHED.at(64.0, 1.0) - 10.9).abs() < 0.05);
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut state = 1u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for (percent, least, most) in [(95.0, 1_860, 1_940), (80.0, 1_520, 1_680)] {
            let confidence = Confidence::new(percent).unwrap();
            let (mut of_coefficient, mut inside, mut beyond) = (0, 0, 0);
            for _ in 0..2_000 {
                // The sum of twelve uniform numbers is close enough to a normal one.
                let mut noise = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                let samples = grid(|n, c| Surface::PUBLISHED.at(n, c) + noise());
                let found = SurfaceFit::new(&samples, confidence).unwrap();
                let a0 = found.surface.a0;
                of_coefficient += u32::from(a0.low() <= 2.4928 && 2.4928 <= a0.high());
                let mut holds = |n, c| {
                    let next = Surface::PUBLISHED.at(n, c) + noise();
                    let expected = found.predict(n, c);
                    u32::from(expected.low() <= next && next <= expected.high())
                };
                inside += holds(16.0, 4.0);
                beyond += holds(262_144.0, 768.0);
            }
            // The standard deviation of each is 10 and 18.
            for held in [of_coefficient, inside, beyond] {
                assert!(
                    (least..=most).contains(&held),
                    "{held} of 2000, {percent} %"
                );
            }
        }
    }

    #[test]
    fn four_points_determine_a_surface_and_no_interval() {
        let samples: Vec<_> = [(2.0, 1.0), (2.0, 4.0), (8.0, 1.0), (8.0, 4.0)]
            .map(|(n, c)| (n, c, Surface::PUBLISHED.at(n, c)))
            .to_vec();
        let found = SurfaceFit::new(&samples, Confidence::USUAL).unwrap();
        assert!(near(found.surface.a0.value, 2.4928, 1e-9));
        assert!(found.surface.a0.margin.is_infinite());
        assert!(found.predict(64.0, 16.0).margin.is_infinite());
        let few = SurfaceFit::new(&samples[..3], Confidence::USUAL);
        let expected = FitError::TooFew {
            needed: 4,
            found: 3,
        };
        assert_eq!(few, Err(expected));
        let one_size = SurfaceFit::new(&[samples[0]; 9], Confidence::USUAL);
        assert_eq!(one_size, Err(FitError::Degenerate));
    }
}
