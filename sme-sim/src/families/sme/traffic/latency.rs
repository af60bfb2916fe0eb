//! The latencies of a run's packets in a few figures.
//!
//! Made by [`super::Traffic::run`].

use crate::time::{Clock, Time};

/// Mean, extremes and percentiles; all zero where no packet arrived. Percentiles are by nearest
/// rank: the p-th percentile of n values is the ⌈p·n/100⌉-th smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Total over number, rounded to the nearest picosecond.
    pub mean: Time,
    /// Shortest.
    pub min: Time,
    /// Median.
    pub p50: Time,
    /// 99th percentile.
    pub p99: Time,
    /// Longest.
    pub max: Time,
}

impl Latencies {
    /// Of latencies in cycles of `clock`; they are sorted in place.
    pub(super) fn new(cycles: &mut [u32], clock: Clock) -> Self {
        cycles.sort_unstable();
        let span = |cycles: u32| clock.span(cycles.into());
        let nearest_rank = |percent: usize| {
            let rank = (cycles.len() * percent).div_ceil(100).max(1);
            cycles.get(rank - 1).copied().map_or(Time::ZERO, span)
        };
        let total: u128 = cycles.iter().map(|&cycles| u128::from(cycles)).sum();
        let divisor = cycles.len().max(1) as u128 * u128::from(clock.hz());
        let mean = (2 * total * 1_000_000_000_000 + divisor) / (2 * divisor);
        Self {
            mean: Time::from_ps(u64::try_from(mean).unwrap_or(u64::MAX)),
            min: cycles.first().copied().map_or(Time::ZERO, span),
            p50: nearest_rank(50),
            p99: nearest_rank(99),
            max: cycles.last().copied().map_or(Time::ZERO, span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_few_latencies() {
        let clock = Clock::from_hz(1_000_000_000).expect("a clock");
        let mut cycles: Vec<u32> = (1..=200).rev().collect();
        let latencies = Latencies::new(&mut cycles, clock);
        let [mean, min, p50, p99, max] = [
            latencies.mean,
            latencies.min,
            latencies.p50,
            latencies.p99,
            latencies.max,
        ]
        .map(Time::as_ps);
        assert_eq!(
            [mean, min, p50, p99, max],
            [100_500, 1_000, 100_000, 198_000, 200_000]
        );
        assert_eq!(Latencies::new(&mut [], clock), Latencies::default());
    }
}
