//! Repetitions of a pass, and the row that they give: a low quantile of their times, unless the
//! threads or the computer moved meanwhile.
//!
//! Called by `sme coherence measure`. Times in nanoseconds.

use std::collections::BTreeMap;
use std::fs;

use sme_sim::time::Time;

use super::MeasureError;
use super::cpus::Cpus;
use super::drift::{Candidate, Dropped, RoundTrip, Trips, settled};
use super::lines::{HAS_FLUSH, LINE_BYTES};
use super::recipe::{self, Means, Pass, Recipe, Unmeasurable, Who};
use super::team::{Team, with_team};
use crate::coherence::table::Row;
use crate::coherence::transition::of_tables;
use crate::coherence::transition::{Curve, Holder, Placement, Transition};
use crate::progress::Watch;
use crate::quantile::nearest_rank;

/// The percentile of the times of a row, by nearest rank: of 21 the third shortest. Interrupts and
/// other processes only ever add time, and the very shortest may be a clock that was corrected.
pub const PERCENTILE: usize = 10;
/// How often a row is measured until nothing has moved.
pub const ATTEMPTS: u32 = 3;
/// How many times as long as a look at the clock a pass must take.
pub const LEAST_CLOCKS: u64 = 4;

/// A measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name in the rows.
    pub machine: String,
    /// The CPUs.
    pub cpus: Cpus,
    /// Sizes of the buffer (bytes), each a multiple of a line's.
    pub sizes: Vec<usize>,
    /// Passes that are timed for each row.
    pub repetitions: u32,
    /// The transitions that are measured, all where it is empty.
    pub transitions: Vec<Transition>,
}

/// The rows that were measured, and those that were not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// The curves that cannot be measured here, by the reason.
    pub unmeasurable: BTreeMap<Unmeasurable, Vec<Curve>>,
    /// The rows that were dropped.
    pub dropped: Vec<Dropped>,
    /// Round trips to the first other CPU at each placement.
    pub round_trips: Vec<RoundTrip>,
}

/// Measures `plan`; `watch` is told of every row.
///
/// # Errors
/// The system gives no threads, CPUs or memory.
pub fn measure(plan: &Plan, watch: &dyn Watch) -> Result<Report, MeasureError> {
    let largest = plan.sizes.iter().copied().max().unwrap_or_default();
    let means = Means {
        on_socket: plan.cpus.holders_at(Placement::Socket).len(),
        remote: plan.cpus.holders_at(Placement::Remote).len(),
        has_flush: HAS_FLUSH,
        has_owned: has_owned(),
    };
    let mut report = Report::default();
    let mut recipes = Vec::new();
    for curve in of_tables() {
        if !plan.transitions.is_empty() && !plan.transitions.contains(&curve.transition()) {
            continue;
        }
        match recipe::recipe(curve, means) {
            Ok(recipe) => recipes.push((curve, recipe)),
            Err(reason) => report.unmeasurable.entry(reason).or_default().push(curve),
        }
    }
    watch.begin("rows", (recipes.len() * plan.sizes.len()) as u64);
    let measured = with_team(&plan.cpus, largest, |team| {
        let mut run = Run {
            plan,
            team,
            clock_ns: clock_ns(team),
            measured: Vec::new(),
            dropped: Vec::new(),
        };
        for (curve, recipe) in &recipes {
            for &bytes in &plan.sizes {
                run.row(*curve, recipe, bytes)?;
                watch.advance(1);
            }
        }
        Ok((run.measured, run.dropped))
    });
    watch.end();
    let (measured, dropped) = measured?;
    report.dropped = dropped;
    let (rows, elsewhere, round_trips) = settled(measured);
    report.rows = rows;
    report.dropped.extend(elsewhere);
    report.round_trips = round_trips;
    Ok(report)
}

/// The shortest time of a pass over nothing (ns): the clock and the fence.
fn clock_ns(team: &Team<'_>) -> u64 {
    let times = (0..1_000).map(|_| team.pass(Pass::Load, 0));
    times.min().unwrap_or_default().max(1)
}

struct Run<'r> {
    plan: &'r Plan,
    team: &'r Team<'r>,
    clock_ns: u64,
    measured: Vec<Candidate>,
    dropped: Vec<Dropped>,
}

impl Run<'_> {
    /// Measures a row until nothing moved meanwhile, a few times at most.
    fn row(&mut self, curve: Curve, recipe: &Recipe, bytes: usize) -> Result<(), MeasureError> {
        let placement = match curve.holder() {
            Holder::Remote => Placement::Remote,
            Holder::Local | Holder::Socket => Placement::Socket,
        };
        let holders = self.plan.cpus.holders_at(placement);
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            let before = self.round_trip_ns(&holders)?;
            let ns = self.repetitions(recipe, &holders, bytes)?;
            let after = self.round_trip_ns(&holders)?;
            if !self
                .team
                .is_in_place(&holders[..used(recipe).min(holders.len())])
            {
                reason = "a thread ran on another CPU than its own".to_owned();
                continue;
            }
            let first = holders.first().zip(before.zip(after));
            let trips = first.map(|(&first, (before, after))| Trips {
                cpu: self.plan.cpus.holders[first].id,
                placement,
                before,
                after,
            });
            if let Some(trips) = trips.filter(|trips| !trips.is_steady()) {
                let Trips { before, after, .. } = trips;
                reason = format!("the round trip went from {before:.0} to {after:.0} ns");
                continue;
            }
            if ns < LEAST_CLOCKS * self.clock_ns {
                let clock = self.clock_ns;
                reason = format!("a pass takes {ns} ns, reading the clock {clock} ns");
                break;
            }
            let gb_per_s = bytes as f64 / ns as f64;
            let machine = self.plan.machine.as_str();
            let row = Row::new(machine, curve, bytes as u64, gb_per_s);
            self.measured.push(Candidate { curve, row, trips });
            return Ok(());
        }
        self.dropped.push(Dropped {
            curve,
            buffer_bytes: bytes as u64,
            reason,
        });
        Ok(())
    }

    /// The low quantile of the times of a pass (ns), without the clock's.
    fn repetitions(
        &self,
        recipe: &Recipe,
        holders: &[usize],
        bytes: usize,
    ) -> Result<u64, MeasureError> {
        let count = bytes / LINE_BYTES;
        let mut times = Vec::with_capacity(self.plan.repetitions as usize);
        for _ in 0..self.plan.repetitions {
            for &(who, pass) in &recipe.preparation {
                match who {
                    Who::Measuring => {
                        self.team.pass(pass, count);
                    }
                    // The recipe was made for as many holders as there are.
                    Who::Holder => self.team.pass_of(holders[0], pass, count)?,
                    Who::Sharer => self.team.pass_of(holders[1], pass, count)?,
                }
            }
            let ns = self.team.pass(recipe.timed, count);
            let ns = ns.saturating_sub(self.clock_ns).max(1);
            times.push(Time::from_ps(ns.saturating_mul(1_000)));
        }
        times.sort_unstable();
        Ok(nearest_rank(&times, PERCENTILE).as_ps() / 1_000)
    }

    /// The round trip to the first of `holders` (ns), where there is one.
    fn round_trip_ns(&self, holders: &[usize]) -> Result<Option<f64>, MeasureError> {
        let first = holders.first().copied();
        first
            .map(|first| self.team.round_trip_ns(first))
            .transpose()
    }
}

/// How many holders a recipe uses; the first has made round trips in any case.
fn used(recipe: &Recipe) -> usize {
    let is_shared = recipe
        .preparation
        .iter()
        .any(|&(who, _)| who == Who::Sharer);
    if is_shared { 2 } else { 1 }
}

/// The name of this computer's processor, or of its architecture where the system tells none.
pub fn processor() -> String {
    let name = cpuinfo("model name").filter(|name| !name.is_empty());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Whether the vendor documents an owned state in the caches of its processors (MOESI).
fn has_owned() -> bool {
    let vendor = cpuinfo("vendor_id");
    matches!(vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
}

/// The first value of `key` in `/proc/cpuinfo`.
fn cpuinfo(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::coherence::table::Table;
    use crate::progress::Silent;

    fn plan(cpus: Cpus) -> Plan {
        Plan {
            machine: processor(),
            cpus,
            sizes: vec![1 << 16, 1 << 17],
            repetitions: 3,
            transitions: Vec::new(),
        }
    }

    /// Every curve is a row, dropped, or told with a reason: never lost.
    fn is_accounted_for(plan: &Plan) -> Report {
        let report = measure(plan, &Silent).unwrap();
        let curves = of_tables().into_iter();
        let wanted = |curve: &Curve| {
            plan.transitions.is_empty() || plan.transitions.contains(&curve.transition())
        };
        for curve in curves.filter(wanted) {
            let rows = report.rows.iter().filter(|row| row.curve() == Ok(curve));
            let dropped = report.dropped.iter().filter(|row| row.curve == curve);
            let told = report.unmeasurable.values().flatten();
            let told = told.filter(|&&other| other == curve).count();
            let expected = plan.sizes.len() * (1 - told);
            assert_eq!(rows.count() + dropped.count(), expected, "{curve}");
        }
        if !report.rows.is_empty() {
            Table::new(report.rows.clone()).unwrap();
        }
        report
    }

    #[test]
    fn every_curve_is_accounted_for() {
        let cpus = Cpus::default_of_process().unwrap();
        let report = is_accounted_for(&plan(cpus.clone()));
        for trip in &report.round_trips {
            assert!(cpus.holders.iter().any(|cpu| cpu.id == trip.cpu));
            assert!(trip.ns > 0.0);
        }
        if HAS_FLUSH {
            let has_remote = !cpus.holders_at(Placement::Remote).is_empty();
            assert_eq!(
                report.unmeasurable.is_empty(),
                has_remote && cpus.holders.len() > 3
            );
        }
    }

    #[test]
    fn one_cpu_measures_what_it_can() {
        let cpus = Cpus {
            holders: Vec::new(),
            ..Cpus::default_of_process().unwrap()
        };
        let report = is_accounted_for(&plan(cpus));
        assert_eq!(report.round_trips, []);
        assert!(!report.unmeasurable.is_empty());
        assert!(report.rows.iter().all(|row| row.holder == Holder::Local));
    }

    #[test]
    fn two_holders_prepare_what_takes_two() {
        let mut cpus = Cpus::default_of_process().unwrap();
        // Where there are no three CPUs two threads share one, and the row means nothing.
        let last = *cpus.holders.last().unwrap_or(&cpus.measuring);
        cpus.holders = vec![last, last];
        let report = is_accounted_for(&Plan {
            transitions: vec!["LMS".parse().unwrap(), "SMS".parse().unwrap()],
            ..plan(cpus)
        });
        let told = report.unmeasurable.values().flatten().count();
        assert_eq!(told, if HAS_FLUSH { 2 } else { 4 });
    }

    #[test]
    fn a_buffer_too_small_for_the_clock_is_no_row() {
        let report = is_accounted_for(&Plan {
            sizes: vec![LINE_BYTES],
            transitions: vec![Transition::LHM],
            ..plan(Cpus::default_of_process().unwrap())
        });
        for row in &report.dropped {
            assert!(!row.reason.is_empty());
        }
    }
}
