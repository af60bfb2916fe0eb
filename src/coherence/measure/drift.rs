//! Rows that were measured on one placement of the CPUs, kept from those that were not.
//!
//! A virtual machine may put its CPUs on other cores at any time, and nothing in it says so but the
//! round trip of a cache line. A table would then be of two machines. Called by [`super::run`]
//! and [`super::transfer`] when all rows are measured. Times in nanoseconds.

use std::collections::BTreeMap;

use crate::coherence::transition::CoreDistance;

/// By which factor a round trip may differ: before a row from that after it, and either from the
/// median of all rows.
pub const MOST_CHANGE: f64 = 1.5;

/// Round trips between the measuring CPU and another one, before a row and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trips {
    /// The other CPU.
    pub cpu: usize,
    /// Where it is.
    pub placement: CoreDistance,
    /// The round trip before the row (ns).
    pub before: f64,
    /// The round trip after it (ns).
    pub after: f64,
}

impl Trips {
    /// Returns whether the two are alike.
    pub fn is_steady(self) -> bool {
        are_alike(self.before, self.after)
    }
}

/// A row and what was measured around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<R> {
    /// The row.
    pub row: R,
    /// The round trips, where there is another CPU.
    pub trips: Option<Trips>,
}

/// A round trip of a cache line between the measuring CPU and another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// The other CPU.
    pub cpu: usize,
    /// Where it is.
    pub placement: CoreDistance,
    /// The median of all before and after rows (ns).
    pub ns: f64,
}

/// Rows, and round trips of their CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled<R> {
    /// The rows whose round trips are like the median of all with the same CPU.
    pub rows: Vec<R>,
    /// The others, and why each was dropped.
    pub dropped: Vec<(R, String)>,
    /// The medians.
    pub round_trips: Vec<RoundTrip>,
}

/// Compares the round trips of all rows.
pub fn settled<R>(candidates: Vec<Candidate<R>>) -> Settled<R> {
    let mut of_cpu: BTreeMap<usize, (CoreDistance, Vec<f64>)> = BTreeMap::new();
    for trips in candidates.iter().filter_map(|candidate| candidate.trips) {
        let (_, all) = of_cpu
            .entry(trips.cpu)
            .or_insert((trips.placement, Vec::new()));
        all.extend([trips.before, trips.after]);
    }
    let median = |(cpu, (placement, mut all)): (usize, (CoreDistance, Vec<f64>))| {
        all.sort_unstable_by(f64::total_cmp);
        // Of an even number the upper one of the middle; there are two for each row.
        let ns = all[all.len() / 2];
        RoundTrip { cpu, placement, ns }
    };
    let medians: Vec<RoundTrip> = of_cpu.into_iter().map(median).collect();

    let (mut rows, mut dropped) = (Vec::new(), Vec::new());
    for Candidate { row, trips } in candidates {
        let usual = |trips: Trips| {
            let of_cpu = medians.iter().find(|trip| trip.cpu == trips.cpu);
            of_cpu.map_or(trips.before, |trip| trip.ns)
        };
        let off = trips.and_then(|trips| {
            let both = [trips.before, trips.after].into_iter();
            let mut off = both.filter(|&ns| !are_alike(ns, usual(trips)));
            Some((off.next()?, usual(trips)))
        });
        match off {
            None => rows.push(row),
            Some((ns, usual)) => dropped.push((
                row,
                format!("the round trip was {ns:.0} ns, and {usual:.0} ns with most rows"),
            )),
        }
    }
    Settled {
        rows,
        dropped,
        round_trips: medians,
    }
}

fn are_alike(one: f64, other: f64) -> bool {
    one.max(other) <= MOST_CHANGE * one.min(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are numbered.
    fn candidates(trips: &[Option<(usize, f64, f64)>]) -> Vec<Candidate<usize>> {
        let candidate = |(row, trips): (usize, &Option<(usize, f64, f64)>)| Candidate {
            row,
            trips: trips.map(|(cpu, before, after)| Trips {
                cpu,
                placement: CoreDistance::Socket,
                before,
                after,
            }),
        };
        trips.iter().enumerate().map(candidate).collect()
    }

    #[test]
    fn rows_of_another_placement_than_most_are_dropped() {
        let settled = settled(candidates(&[
            Some((1, 200.0, 210.0)),
            Some((1, 60.0, 60.0)),
            None,
            Some((1, 200.0, 200.0)),
            Some((2, 60.0, 89.0)),
            Some((1, 205.0, 308.0)),
        ]));
        assert_eq!(settled.rows, [0, 2, 3, 4]);
        let dropped: Vec<usize> = settled.dropped.iter().map(|&(row, _)| row).collect();
        assert_eq!(dropped, [1, 5]);
        assert_eq!(
            settled.dropped[0].1,
            "the round trip was 60 ns, and 200 ns with most rows"
        );
        let of_cpu = |trip: &RoundTrip| (trip.cpu, trip.ns);
        let medians: Vec<(usize, f64)> = settled.round_trips.iter().map(of_cpu).collect();
        assert_eq!(medians, [(1, 200.0), (2, 89.0)]);
    }

    #[test]
    fn without_another_cpu_every_row_is_kept() {
        let all = settled(candidates(&[None, None]));
        assert_eq!(
            (all.rows, all.dropped, all.round_trips),
            (vec![0, 1], vec![], vec![])
        );
        assert_eq!(settled(candidates(&[])).rows, [0; 0]);
    }
}
