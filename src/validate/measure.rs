//! The simulations that figures need: each point once, however many figures look at it.
//!
//! Called by [`super::Validation`]. Each paper ([`super::papers`]) has points of its own, and its
//! own simulation of them ([`Simulate`]); its estimators only see [`Measurements`]. All times are
//! in microseconds.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::progress::Watch;

/// One simulation; displayed as what it simulates.
pub trait Point: Copy + PartialEq + fmt::Display + Send + Sync {
    /// Grows with what the simulation costs.
    fn cost(&self) -> u64;

    /// Returns whether it runs a program, which takes a minute and not a few seconds.
    fn is_program(&self) -> bool;

    /// Returns whether it is of a size that the paper only extrapolates to, which takes half of the
    /// time of all that runs no program.
    fn is_large(&self) -> bool;
}

/// A simulation of points.
pub trait Simulate<P>: Sync {
    /// The point's latency in microseconds, or why there is none. The same on every call.
    fn microseconds(&self, point: &P) -> Result<f64, String>;
}

/// The latency of every point.
#[derive(Clone, Debug)]
pub struct Measurements<P> {
    points: Vec<(P, Result<f64, String>)>,
}

impl<P: Point> Measurements<P> {
    /// Simulates `points`, each once, on `workers` threads. The outcome does not depend on how
    /// many these are.
    pub fn take(
        points: impl IntoIterator<Item = P>,
        simulate: &dyn Simulate<P>,
        workers: usize,
        watch: &dyn Watch,
    ) -> Self {
        let mut once: Vec<P> = Vec::new();
        for point in points {
            if !once.contains(&point) {
                once.push(point);
            }
        }
        watch.begin("points", once.len() as u64);
        let results = over(&once, workers, P::cost, |point| {
            let result = simulate.microseconds(point);
            watch.advance(1);
            result
        });
        watch.end();
        Self {
            points: once.into_iter().zip(results).collect(),
        }
    }

    /// Measurements that are known already.
    pub fn known(points: Vec<(P, Result<f64, String>)>) -> Self {
        Self { points }
    }

    /// A point's latency in microseconds, or why there is none.
    pub fn microseconds(&self, point: P) -> Result<f64, String> {
        match self.points.iter().find(|(known, _)| *known == point) {
            Some((_, Ok(latency))) if latency.is_finite() => Ok(*latency),
            Some((_, Ok(_))) => Err(format!("{point}: the latency is not a number")),
            Some((_, Err(reason))) => Err(format!("{point}: {reason}")),
            None => Err(format!("{point}: was not simulated")),
        }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// `work` on every item, on `workers` threads, the results in the order of the items. The dearest
/// items go first, so that no worker is left alone with one in the end.
pub fn over<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    cost: impl Fn(&T) -> u64,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut queue: Vec<(usize, &T)> = items.iter().enumerate().collect();
    queue.sort_by_key(|(_, item)| std::cmp::Reverse(cost(item)));
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some(&(index, item)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    done.lock().push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::{Measurements, Mutex, Simulate, over};
    use crate::experiment::Algorithm;
    use crate::progress::Silent;
    use crate::validate::papers::sme::points::Point;

    /// Counts how often each point is simulated.
    struct Counting(Mutex<Vec<Point>>);

    impl Simulate<Point> for Counting {
        fn microseconds(&self, point: &Point) -> Result<f64, String> {
            self.0.lock().push(*point);
            match point {
                Point::Barrier { nodes: 3, .. } => Err("deadlock".into()),
                Point::Barrier { nodes: 4, .. } => Ok(f64::NAN),
                Point::Barrier { nodes, .. } => Ok(f64::from(*nodes)),
                Point::Large { .. } | Point::Load { .. } | Point::Fft { .. } => Ok(1.0),
            }
        }
    }

    #[test]
    fn each_point_is_simulated_once_and_found_again() {
        let points: Vec<_> = (1..=40)
            .map(|n| Point::barrier(Algorithm::Tree, n, 1))
            .collect();
        for workers in [0, 1, 2, 7, 100] {
            let simulate = Counting(Mutex::new(Vec::new()));
            let twice = points.iter().chain(&points).copied();
            let taken = Measurements::take(twice, &simulate, workers, &Silent);
            assert_eq!(simulate.0.lock().len(), 40);
            assert_eq!(taken.microseconds(points[9]), Ok(10.0));
            let failed = taken.microseconds(points[2]).unwrap_err();
            assert_eq!(failed, "Tree, 3 nodes of 1 threads: deadlock");
            assert!(
                taken
                    .microseconds(points[3])
                    .unwrap_err()
                    .contains("not a number")
            );
            let unknown = Point::barrier(Algorithm::Flat, 1, 1);
            assert!(
                taken
                    .microseconds(unknown)
                    .unwrap_err()
                    .contains("was not simulated")
            );
        }
    }

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..500).collect();
        for workers in [1, 3, 16] {
            let squares = over(&items, workers, |n| n % 7, |n| n * n);
            assert!(
                squares
                    .iter()
                    .zip(&items)
                    .all(|(square, n)| *square == n * n)
            );
        }
        assert!(over(&[0u8; 0], 4, |_| 0, |_| ()).is_empty());
    }
}
