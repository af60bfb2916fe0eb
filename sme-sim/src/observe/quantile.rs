//! Quantiles of measured times.

use crate::time::Time;

/// The `percent`-th percentile of `sorted` times by nearest rank: of n times the ⌈percent·n/100⌉-th
/// smallest, hence always one that occurred; zero where there are none.
pub fn nearest_rank(sorted: &[Time], percent: usize) -> Time {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
