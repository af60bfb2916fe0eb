//! Rows that were measured on one placement of the CPUs, kept from those that were not.
//!
//! A virtual machine may put its CPUs on other cores at any time, and nothing in it says so but the
//! round trip of a cache line. A table would then be of two machines. Called by [`super::run`] when
//! all rows are measured. Times in nanoseconds.

use std::collections::BTreeMap;

use crate::coherence::table::Row;
use crate::coherence::transition::{Curve, Placement};

/// By which factor a round trip may differ: before a row from that after it, and either from the
/// median of all rows.
pub const MOST_CHANGE: f64 = 1.5;

/// Round trips between the measuring CPU and another one, before a row and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trips {
    /// The other CPU.
    pub cpu: usize,
    /// Where it is.
    pub placement: Placement,
    /// The round trip before the row (ns).
    pub before: f64,
    /// The round trip after it (ns).
    pub after: f64,
}

impl Trips {
    /// Whether the two are alike.
    pub fn is_steady(self) -> bool {
        are_alike(self.before, self.after)
    }
}

/// A row and what was measured around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The curve of the row.
    pub curve: Curve,
    /// The row.
    pub row: Row,
    /// The round trips, where there is another CPU.
    pub trips: Option<Trips>,
}

/// A round trip of a cache line between the measuring CPU and another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// The other CPU.
    pub cpu: usize,
    /// Where it is.
    pub placement: Placement,
    /// The median of all before and after rows (ns).
    pub ns: f64,
}

/// A row that was measured and not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// Its curve.
    pub curve: Curve,
    /// Its size (bytes).
    pub buffer_bytes: u64,
    /// Why.
    pub reason: String,
}

/// The rows whose round trips are like the median of all with the same CPU, the others, and these
/// medians.
pub fn settled(candidates: Vec<Candidate>) -> (Vec<Row>, Vec<Dropped>, Vec<RoundTrip>) {
    let mut of_cpu: BTreeMap<usize, (Placement, Vec<f64>)> = BTreeMap::new();
    for trips in candidates.iter().filter_map(|candidate| candidate.trips) {
        let (_, all) = of_cpu
            .entry(trips.cpu)
            .or_insert((trips.placement, Vec::new()));
        all.extend([trips.before, trips.after]);
    }
    let median = |(cpu, (placement, mut all)): (usize, (Placement, Vec<f64>))| {
        all.sort_unstable_by(f64::total_cmp);
        // Of an even number the upper one of the middle; there are two for each row.
        let ns = all[all.len() / 2];
        RoundTrip { cpu, placement, ns }
    };
    let medians: Vec<RoundTrip> = of_cpu.into_iter().map(median).collect();

    let (mut rows, mut dropped) = (Vec::new(), Vec::new());
    for Candidate { curve, row, trips } in candidates {
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
            Some((ns, usual)) => dropped.push(Dropped {
                curve,
                buffer_bytes: row.buffer_bytes,
                reason: format!("the round trip was {ns:.0} ns, and {usual:.0} ns with most rows"),
            }),
        }
    }
    (rows, dropped, medians)
}

fn are_alike(one: f64, other: f64) -> bool {
    one.max(other) <= MOST_CHANGE * one.min(other)
}

#[cfg(test)]
mod tests {
    use super::super::super::transition::of_tables;
    use super::*;

    fn candidates(trips: &[Option<(usize, f64, f64)>]) -> Vec<Candidate> {
        let candidate = |(curve, trips): (Curve, &Option<(usize, f64, f64)>)| Candidate {
            curve,
            row: Row::new("m", curve, 64, 1.0),
            trips: trips.map(|(cpu, before, after)| Trips {
                cpu,
                placement: Placement::Socket,
                before,
                after,
            }),
        };
        of_tables().into_iter().zip(trips).map(candidate).collect()
    }

    #[test]
    fn rows_of_another_placement_than_most_are_dropped() {
        let all = candidates(&[
            Some((1, 200.0, 210.0)),
            Some((1, 60.0, 60.0)),
            None,
            Some((1, 200.0, 200.0)),
            Some((2, 60.0, 89.0)),
            Some((1, 205.0, 308.0)),
        ]);
        let (rows, dropped, medians) = settled(all.clone());
        let kept = [0, 2, 3, 4].map(|at: usize| all[at].row.clone());
        assert_eq!(rows, kept);
        let curves: Vec<Curve> = dropped.iter().map(|row| row.curve).collect();
        assert_eq!(curves, [all[1].curve, all[5].curve]);
        assert_eq!(
            dropped[0].reason,
            "the round trip was 60 ns, and 200 ns with most rows"
        );
        let medians: Vec<(usize, f64)> = medians.iter().map(|trip| (trip.cpu, trip.ns)).collect();
        assert_eq!(medians, [(1, 200.0), (2, 89.0)]);
    }

    #[test]
    fn without_another_cpu_every_row_is_kept() {
        let all = candidates(&[None, None]);
        let (rows, dropped, medians) = settled(all);
        assert_eq!((rows.len(), dropped.len(), medians.len()), (2, 0, 0));
        assert_eq!(settled(Vec::new()), (Vec::new(), Vec::new(), Vec::new()));
    }
}
