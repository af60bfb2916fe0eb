//! Least squares: the estimators by which curves are read off, here as in the papers.
//!
//! Called by `validate` and by the extrapolation; works on plain numbers, in the units of
//! the caller. Linear algebra is `nalgebra`'s, Student's t distribution `statrs`'.

mod surface;

use nalgebra::{DMatrix, DVector, SMatrix};
use statrs::distribution::{ContinuousCDF, StudentsT};

pub use surface::{Prediction, Surface, SurfaceFit, surface};

/// Why nothing could be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are not enough points for the number of coefficients.
    #[error("{found} points do not determine the fit, which needs {needed}")]
    TooFew {
        /// Points that would do.
        needed: usize,
        /// Points given.
        found: usize,
    },
    /// The points do not determine the coefficients, however many they are.
    #[error("the points do not determine the fit: too many of them share a coordinate")]
    Degenerate,
    /// A coordinate is infinite, not a number, or not positive under a logarithm.
    #[error("a coordinate is not a number that the fit can use")]
    NotANumber,
}

/// The confidence of a two-sided interval: between 0 and 100 percent, neither included.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence {
    percent: f64,
}

impl Confidence {
    /// The usual confidence.
    pub const USUAL: Self = Self { percent: 95.0 };

    /// So many percent; none where no interval, or only an infinite one, is so sure.
    pub fn new(percent: f64) -> Option<Self> {
        (percent > 0.0 && percent < 100.0).then_some(Self { percent })
    }

    /// Percent.
    pub fn percent(self) -> f64 {
        self.percent
    }

    /// The quantile of Student's t distribution that ends such an interval on the right; none
    /// without a degree of freedom.
    fn student(self, freedom: usize) -> Option<f64> {
        let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
        Some(distribution.inverse_cdf(0.5 + self.percent / 200.0))
    }
}

/// A coefficient with its two-sided confidence interval: of 95 % where nothing else was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficient {
    /// The estimate.
    pub value: f64,
    /// Half the interval's width; infinite where the points leave no degree of freedom.
    pub margin: f64,
}

impl Coefficient {
    /// The interval's lower end.
    pub fn low(self) -> f64 {
        self.value - self.margin
    }

    /// The interval's upper end.
    pub fn high(self) -> f64 {
        self.value + self.margin
    }
}

/// y = slope·x + intercept, or y = slope·ln(x) + intercept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// y per x, or per ln(x).
    pub slope: Coefficient,
    /// y at x = 0, or at ln(x) = 0.
    pub intercept: Coefficient,
    /// Coefficient of determination; 0 where every y is the same and there is nothing to explain.
    pub r_squared: f64,
    /// Sum of the squared residuals.
    pub residual: f64,
}

/// The straight line through (x, y) points, at least two.
pub fn line(points: &[(f64, f64)]) -> Result<Line, FitError> {
    let rows: Vec<[f64; 2]> = points.iter().map(|&(x, _)| [x, 1.0]).collect();
    let y: Vec<f64> = points.iter().map(|&(_, y)| y).collect();
    let fit = least_squares(&rows, &y)?;
    let [slope, intercept] = fit.coefficients;
    Ok(Line {
        slope,
        intercept,
        r_squared: fit.r_squared,
        residual: fit.residual,
    })
}

/// y = a·ln(x) + b through (x, y) points, at least two; every x is positive.
pub fn logarithm(points: &[(f64, f64)]) -> Result<Line, FitError> {
    if points.iter().any(|&(x, _)| x <= 0.0) {
        return Err(FitError::NotANumber);
    }
    let over_logarithm: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y)).collect();
    line(&over_logarithm)
}

/// y = over_first·x₁ + over_second·x₂ + rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// y per x₁.
    pub over_first: Coefficient,
    /// y per x₂.
    pub over_second: Coefficient,
    /// y where both are 0.
    pub rest: Coefficient,
    /// Coefficient of determination.
    pub r_squared: f64,
}

/// The plane through (x₁, x₂, y) points, at least three.
pub fn plane(points: &[(f64, f64, f64)]) -> Result<Plane, FitError> {
    let rows: Vec<[f64; 3]> = points.iter().map(|&(x1, x2, _)| [x1, x2, 1.0]).collect();
    let y: Vec<f64> = points.iter().map(|&(_, _, y)| y).collect();
    let fit = least_squares(&rows, &y)?;
    let [over_first, over_second, rest] = fit.coefficients;
    Ok(Plane {
        over_first,
        over_second,
        rest,
        r_squared: fit.r_squared,
    })
}

/// Two straight lines over one range of x, independent of each other: the curve may step where
/// one ends and the other begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoLines {
    /// The break point: x of the last point that belongs to the first line.
    pub last_of_first: f64,
    /// Through the points up to the break point.
    pub first: Line,
    /// Through the points beyond it.
    pub second: Line,
}

/// The two straight lines of least common residual among all ways to divide the points, in the
/// order of their x, into two runs of at least three (any line passes through two).
///
/// Every point belongs to exactly one line, and the lines need not meet: a latency that steps up
/// breaks where it steps. Of equally good divisions the one with the longer first run counts, so
/// that a curve whose lines meet in a point breaks in that point.
pub fn two_lines(points: &[(f64, f64)]) -> Result<TwoLines, FitError> {
    const LEAST: usize = 3;
    if points.len() < 2 * LEAST {
        return Err(FitError::TooFew {
            needed: 2 * LEAST,
            found: points.len(),
        });
    }
    let points = sorted(points)?;
    let scale = points.iter().map(|&(_, y)| y * y).sum::<f64>();
    let mut best: Option<TwoLines> = None;
    for division in LEAST..=points.len() - LEAST {
        let (left, right) = points.split_at(division);
        let (Ok(first), Ok(second), Some(&(last_of_first, _))) =
            (line(left), line(right), left.last())
        else {
            continue;
        };
        let found = TwoLines {
            last_of_first,
            first,
            second,
        };
        // The allowance makes rounding errors a tie.
        if best.is_none_or(|best| found.residual() <= best.residual() + 1e-20 * scale) {
            best = Some(found);
        }
    }
    best.ok_or(FitError::Degenerate)
}

impl TwoLines {
    /// Sum of the squared residuals of both lines.
    pub fn residual(&self) -> f64 {
        self.first.residual + self.second.residual
    }
}

/// Two straight lines that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bend {
    /// x of the point where they meet, one of the given x.
    pub at: f64,
    /// y per x before it.
    pub slope_before: f64,
    /// y per x after it.
    pub slope_after: f64,
    /// Sum of the squared residuals.
    pub residual: f64,
}

/// The continuous counterpart of [`two_lines`]: of all polylines with one bend, at the x of a
/// point with at least one point on either side, the one of least residual.
pub fn bend(points: &[(f64, f64)]) -> Result<Bend, FitError> {
    if points.len() < 4 {
        return Err(FitError::TooFew {
            needed: 4,
            found: points.len(),
        });
    }
    let points = sorted(points)?;
    let y: Vec<f64> = points.iter().map(|&(_, y)| y).collect();
    let mut best: Option<Bend> = None;
    for &(at, _) in &points[1..points.len() - 1] {
        let rows: Vec<[f64; 3]> = points
            .iter()
            .map(|&(x, _)| [x, (x - at).max(0.0), 1.0])
            .collect();
        let Ok(fit) = least_squares(&rows, &y) else {
            continue;
        };
        let [slope, change, _] = fit.coefficients;
        let found = Bend {
            at,
            slope_before: slope.value,
            slope_after: slope.value + change.value,
            residual: fit.residual,
        };
        if best.is_none_or(|best| found.residual < best.residual) {
            best = Some(found);
        }
    }
    best.ok_or(FitError::Degenerate)
}

/// A time as cycles of the HyperTransport clock and a part that no clock changes:
/// time = cycles_fixed / f_HT + time_absolute (Fröning et al., Sec. IV-C, Eq. 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockSplit {
    /// Cycles of the HyperTransport clock.
    pub cycles: f64,
    /// The part that stays, in nanoseconds.
    pub absolute_ns: f64,
}

impl ClockSplit {
    /// Solves Eq. 1 for two measurements, each (clock in MHz, time in ns), at different clocks.
    pub fn from_two(one: (f64, f64), other: (f64, f64)) -> Result<Self, FitError> {
        let periods = (1e3 / one.0, 1e3 / other.0);
        if !(periods.0.is_finite() && periods.1.is_finite()) {
            return Err(FitError::NotANumber);
        }
        if periods.0 == periods.1 {
            return Err(FitError::Degenerate);
        }
        let cycles = (one.1 - other.1) / (periods.0 - periods.1);
        Ok(Self {
            cycles,
            absolute_ns: one.1 - cycles * periods.0,
        })
    }

    /// The time at a clock of `mhz`, in nanoseconds.
    pub fn at_mhz(self, mhz: f64) -> f64 {
        self.cycles * 1e3 / mhz + self.absolute_ns
    }
}

/// The result of linear least squares in `N` coefficients.
struct Fit<const N: usize> {
    coefficients: [Coefficient; N],
    residual: f64,
    r_squared: f64,
    /// The covariance of the coefficients per variance of a point: the inverse of the normal
    /// equations' matrix.
    covariance: SMatrix<f64, N, N>,
    /// Points beyond those that determine the coefficients.
    freedom: usize,
}

/// The coefficients that minimize the squared distance of `rows`·coefficients from `y`, through
/// the pseudo-inverse, with the confidence that independent errors of equal variance leave.
fn least_squares<const N: usize>(rows: &[[f64; N]], y: &[f64]) -> Result<Fit<N>, FitError> {
    least_squares_with(rows, y, Confidence::USUAL)
}

/// The same with intervals of another confidence.
fn least_squares_with<const N: usize>(
    rows: &[[f64; N]],
    y: &[f64],
    confidence: Confidence,
) -> Result<Fit<N>, FitError> {
    if rows.len() < N {
        return Err(FitError::TooFew {
            needed: N,
            found: rows.len(),
        });
    }
    if !rows
        .iter()
        .flatten()
        .chain(y)
        .all(|number| number.is_finite())
    {
        return Err(FitError::NotANumber);
    }
    let design = DMatrix::from_fn(rows.len(), N, |row, column| rows[row][column]);
    let y = DVector::from_column_slice(y);
    let decomposition = design.clone().svd(true, true);
    let smallest = decomposition.singular_values.max() * 1e-12;
    if decomposition.rank(smallest) < N {
        return Err(FitError::Degenerate);
    }
    let inverse = decomposition
        .pseudo_inverse(smallest)
        .map_err(|_| FitError::Degenerate)?;
    let estimates = &inverse * &y;
    let residual = (&design * &estimates - &y).norm_squared();
    let total = y.add_scalar(-y.mean()).norm_squared();
    let freedom = rows.len() - N;
    let t = confidence.student(freedom);
    let product = &inverse * inverse.transpose();
    let covariance = SMatrix::from_fn(|row, column| product[(row, column)]);
    let coefficients = std::array::from_fn(|index| Coefficient {
        value: estimates[index],
        margin: match t {
            Some(t) => t * (residual / freedom as f64 * covariance[(index, index)]).sqrt(),
            None => f64::INFINITY,
        },
    });
    Ok(Fit {
        coefficients,
        residual,
        covariance,
        freedom,
        r_squared: if total > 0.0 {
            1.0 - residual / total
        } else {
            0.0
        },
    })
}

fn sorted(points: &[(f64, f64)]) -> Result<Vec<(f64, f64)>, FitError> {
    if points
        .iter()
        .any(|(x, y)| !(x.is_finite() && y.is_finite()))
    {
        return Err(FitError::NotANumber);
    }
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
    }

    /// Points with x apart from each other and any y.
    fn scatter() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec(-100.0..100.0f64, 3..40).prop_map(|y| {
            let step = |index: usize| 1.0 + index as f64 + 0.3 * (index % 3) as f64;
            y.into_iter()
                .enumerate()
                .map(|(index, y)| (step(index), y))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_line_is_recovered(slope in -50.0..50.0f64, intercept in -50.0..50.0f64, count in 3usize..40) {
            let points: Vec<_> = (0..count).map(|x| (x as f64, slope * x as f64 + intercept)).collect();
            let found = line(&points).unwrap();
            prop_assert!(near(found.slope.value, slope, 1e-9));
            prop_assert!(near(found.intercept.value, intercept, 1e-9));
        }

        #[test]
        fn r_squared_is_the_square_of_pearsons_correlation(points in scatter()) {
            let count = points.len() as f64;
            let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
            let (x, y) = (mean(|p| p.0), mean(|p| p.1));
            let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
            for p in &points {
                xx += (p.0 - x) * (p.0 - x);
                xy += (p.0 - x) * (p.1 - y);
                yy += (p.1 - y) * (p.1 - y);
            }
            prop_assume!(yy > 1e-6);
            let found = line(&points).unwrap();
            prop_assert!(near(found.r_squared, xy * xy / (xx * yy), 1e-9));
            // The textbook's standard error of a slope.
            let error = ((yy - xy * xy / xx).max(0.0) / (count - 2.0) / xx).sqrt();
            let t = Confidence::USUAL.student(points.len() - 2).unwrap();
            prop_assert!(near(found.slope.margin, t * error, 1e-6));
        }

        #[test]
        fn a_plane_is_recovered(a in -9.0..9.0f64, b in -9.0..9.0f64, c in -9.0..9.0f64) {
            let points: Vec<_> = (1..20).map(|x| (f64::from(x), f64::from(x * x)))
                .map(|(x1, x2)| (x1, x2, a * x1 + b * x2 + c)).collect();
            let found = plane(&points).unwrap();
            prop_assert!(near(found.over_first.value, a, 1e-8) && near(found.over_second.value, b, 1e-8));
            prop_assert!(near(found.rest.value, c, 1e-8));
        }

        #[test]
        fn no_other_line_fits_better(points in scatter(), turn in -0.1..0.1f64, lift in -0.1..0.1f64) {
            let found = line(&points).unwrap();
            let other: f64 = points
                .iter()
                .map(|(x, y)| (found.slope.value + turn) * x + found.intercept.value + lift - y)
                .map(|distance| distance * distance)
                .sum();
            prop_assert!(other >= found.residual - 1e-9 * (1.0 + found.residual));
        }

        #[test]
        fn a_logarithm_is_recovered(a in -20.0..20.0f64, b in -20.0..20.0f64) {
            let points: Vec<_> = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0f64].iter().map(|&n| (n, a * n.ln() + b)).collect();
            let found = logarithm(&points).unwrap();
            prop_assert!(near(found.slope.value, a, 1e-9) && near(found.intercept.value, b, 1e-9));
        }

        #[test]
        fn a_step_and_its_place_are_recovered(at in 3usize..13, step in 1.0..20.0f64, slopes in (-3.0..3.0f64, -3.0..3.0f64)) {
            let points: Vec<_> = (1..=16usize)
                .map(|x| {
                    let beyond = x.saturating_sub(at) as f64;
                    let jump = if x > at { step.copysign(slopes.1 - slopes.0) } else { 0.0 };
                    (x as f64, slopes.0 * x.min(at) as f64 + slopes.1 * beyond + jump)
                })
                .collect();
            let found = two_lines(&points).unwrap();
            prop_assert_eq!(found.last_of_first, at as f64);
            prop_assert!(near(found.first.slope.value, slopes.0, 1e-6));
            prop_assert!(near(found.second.slope.value, slopes.1, 1e-6));
        }

        #[test]
        fn lines_that_meet_break_where_they_meet(at in 3usize..60, before in 0.0..2.0f64, more in 0.1..3.0f64) {
            let points: Vec<_> = (1..=64usize)
                .map(|x| (x as f64, before * x as f64 + more * x.saturating_sub(at) as f64))
                .collect();
            prop_assert_eq!(two_lines(&points).unwrap().last_of_first, at as f64);
            let found = bend(&points).unwrap();
            prop_assert_eq!(found.at, at as f64);
            prop_assert!(near(found.slope_before, before, 1e-6));
            prop_assert!(near(found.slope_after, before + more, 1e-6));
        }

        #[test]
        fn two_lines_leave_no_more_than_one(points in scatter()) {
            prop_assume!(points.len() >= 6);
            let allowance = 1e-9 * (1.0 + line(&points).unwrap().residual);
            let one = line(&points).unwrap().residual + allowance;
            prop_assert!(two_lines(&points).unwrap().residual() <= one);
            prop_assert!(bend(&points).unwrap().residual <= one);
        }

        #[test]
        fn eq_1_is_recovered(cycles in 0.0..1000.0f64, absolute in 0.0..2000.0f64, clocks in (100.0..900.0f64, 1000.0..3000.0f64), at in 100.0..4000.0f64) {
            let truth = ClockSplit { cycles, absolute_ns: absolute };
            let found = ClockSplit::from_two((clocks.0, truth.at_mhz(clocks.0)), (clocks.1, truth.at_mhz(clocks.1))).unwrap();
            prop_assert!(near(found.at_mhz(at), cycles * 1e3 / at + absolute, 1e-9));
        }

        #[test]
        fn nothing_panics(points in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..12)) {
            let _ = (line(&points), logarithm(&points), two_lines(&points), bend(&points));
        }
    }

    #[test]
    fn students_t_is_the_tables() {
        for (freedom, quantile) in [(1, 12.706), (4, 2.776), (26, 2.056)] {
            assert!((Confidence::USUAL.student(freedom).unwrap() - quantile).abs() < 1e-3);
        }
        assert_eq!(Confidence::USUAL.student(0), None);
        let wide = Confidence::new(99.0).unwrap();
        assert!((wide.student(10).unwrap() - 3.169).abs() < 1e-3);
        assert!(
            [0.0, 100.0, -1.0, f64::NAN]
                .map(Confidence::new)
                .iter()
                .all(Option::is_none)
        );
    }

    #[test]
    fn points_that_determine_nothing_are_refused() {
        assert_eq!(
            line(&[(1.0, 2.0)]),
            Err(FitError::TooFew {
                needed: 2,
                found: 1
            })
        );
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), Err(FitError::Degenerate));
        assert_eq!(
            line(&[(1.0, f64::NAN), (2.0, 3.0)]),
            Err(FitError::NotANumber)
        );
        assert_eq!(
            logarithm(&[(0.0, 1.0), (2.0, 3.0)]),
            Err(FitError::NotANumber)
        );
        assert_eq!(
            ClockSplit::from_two((400.0, 1.0), (400.0, 2.0)),
            Err(FitError::Degenerate)
        );
    }
}
