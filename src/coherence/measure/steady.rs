//! A row that is measured until nothing has moved meanwhile: the round trip of a cache line before
//! and after it, where the threads ran, and whether the clock is fine enough.
//!
//! Called by [`super::run`] and [`super::transfer`]. Times in nanoseconds.

use sme_sim::observe::quantile::nearest_rank;
use sme_sim::time::Time;

use super::MeasureError;
use super::drift::Trips;
use super::recipe::Pass;
use super::team::Team;
use crate::coherence::transition::CoreDistance;

/// The percentile of the times of a row, by nearest rank: of 21 the third shortest. Interrupts and
/// other processes only ever add time, and the very shortest may be a clock that was corrected.
pub const PERCENTILE: usize = 10;
/// The most attempts to measure a row until nothing has moved.
pub const ATTEMPTS: u32 = 3;
/// The least length of what is timed, in readings of the clock.
pub const LEAST_CLOCKS: u64 = 4;

/// The shortest time of a pass over nothing (ns): the clock and the fence.
pub fn clock_ns(team: &Team<'_>) -> u64 {
    let times = (0..1_000).map(|_| team.pass(Pass::Load, 0));
    times.min().unwrap_or_default().max(1)
}

/// The low quantile of `times` (ns), without the clock's.
pub fn low_ns(times: &[u64], clock_ns: u64) -> u64 {
    let without =
        |&ns: &u64| Time::from_ps(ns.saturating_sub(clock_ns).max(1).saturating_mul(1_000));
    let mut times: Vec<Time> = times.iter().map(without).collect();
    times.sort_unstable();
    nearest_rank(&times, PERCENTILE).as_ps() / 1_000
}

/// The low quantile of the times of `measure` (ns), in which the measuring thread and the first
/// `used` of `holders`, at `placement`, have not moved; with the round trips to the first holder
/// around it. Or the reason why there is none. `what` is timed.
///
/// # Errors
/// A thread is gone, or what `measure` returns.
pub fn steadily(
    team: &Team<'_>,
    (holders, used, placement): (&[usize], usize, CoreDistance),
    (what, clock_ns): (&str, u64),
    mut measure: impl FnMut() -> Result<Vec<u64>, MeasureError>,
) -> Result<Result<(u64, Option<Trips>), String>, MeasureError> {
    let round_trip = || {
        let first = holders.first().copied();
        first.map(|first| team.round_trip_ns(first)).transpose()
    };
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        let before = round_trip()?;
        let ns = low_ns(&measure()?, clock_ns);
        let after = round_trip()?;
        if !team.is_in_place(&holders[..used.min(holders.len())]) {
            reason = "a thread ran on another CPU than its own".to_owned();
            continue;
        }
        let first = holders.first().zip(before.zip(after));
        let trips = first.map(|(&first, (before, after))| Trips {
            cpu: team.cpu_of(first),
            placement,
            before,
            after,
        });
        if let Some(trips) = trips.filter(|trips| !trips.is_steady()) {
            let Trips { before, after, .. } = trips;
            reason = format!("the round trip went from {before:.0} to {after:.0} ns");
            continue;
        }
        if ns < LEAST_CLOCKS * clock_ns {
            let reason = format!("{what} takes {ns} ns, reading the clock {clock_ns} ns");
            return Ok(Err(reason));
        }
        return Ok(Ok((ns, trips)));
    }
    Ok(Err(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_quantile_is_without_the_clock() {
        let times: Vec<u64> = (0..21).map(|at| 1_000 - at * 8 % 21).collect();
        assert_eq!(low_ns(&times, 30), 1_000 - 20 + 2 - 30);
        assert_eq!(low_ns(&[10], 30), 1);
    }
}
