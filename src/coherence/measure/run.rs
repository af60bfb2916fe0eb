//! Repetitions of a pass, and the row that they give: a low quantile of their times, unless the
//! threads or the computer moved meanwhile.
//!
//! Called by `sme coherence measure`. Times in nanoseconds.

use std::collections::BTreeMap;

use super::MeasureError;
use super::cpus::Cpus;
use super::drift::{Candidate, RoundTrip, settled};
use super::lines::{HAS_FLUSH, LINE_BYTES};
use super::recipe::{self, Means, Recipe, Unmeasurable, Who};
use super::steady::{clock_ns, steadily};
use super::team::{Team, with_team};
use crate::coherence::table::Row;
use crate::coherence::transition::of_tables;
use crate::coherence::transition::{CoreDistance, Curve, Holder, Transition};
use crate::host;
use crate::progress::Watch;

/// The plan of a measurement.
#[derive(Clone, Debug)]
pub struct MeasurementPlan {
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
pub fn measure(plan: &MeasurementPlan, watch: &dyn Watch) -> Result<Report, MeasureError> {
    let largest = plan.sizes.iter().copied().max().unwrap_or_default();
    let means = Means {
        on_socket: plan.cpus.holders_at(CoreDistance::Socket).len(),
        remote: plan.cpus.holders_at(CoreDistance::Remote).len(),
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
    let settled = settled(measured);
    report.rows = settled.rows.into_iter().map(|(_, row)| row).collect();
    let elsewhere = settled.dropped.into_iter();
    report
        .dropped
        .extend(elsewhere.map(|((curve, row), reason)| Dropped {
            curve,
            buffer_bytes: row.buffer_bytes,
            reason,
        }));
    report.round_trips = settled.round_trips;
    Ok(report)
}

/// A row that was measured and not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// Its curve.
    pub curve: Curve,
    /// Its size (bytes).
    pub buffer_bytes: u64,
    /// The reason.
    pub reason: String,
}

struct Run<'r> {
    plan: &'r MeasurementPlan,
    team: &'r Team<'r>,
    clock_ns: u64,
    measured: Vec<Candidate<(Curve, Row)>>,
    dropped: Vec<Dropped>,
}

impl Run<'_> {
    fn row(&mut self, curve: Curve, recipe: &Recipe, bytes: usize) -> Result<(), MeasureError> {
        let placement = match curve.holder() {
            Holder::Remote => CoreDistance::Remote,
            Holder::Local | Holder::Socket => CoreDistance::Socket,
        };
        let holders = self.plan.cpus.holders_at(placement);
        let measured = steadily(
            self.team,
            (&holders, used(recipe), placement),
            ("a pass", self.clock_ns),
            || self.repetitions(recipe, &holders, bytes),
        )?;
        match measured {
            Ok((ns, trips)) => {
                let gb_per_s = bytes as f64 / ns as f64;
                let machine = self.plan.machine.as_str();
                let row = Row::new(machine, curve, bytes as u64, gb_per_s);
                self.measured.push(Candidate {
                    row: (curve, row),
                    trips,
                });
            }
            Err(reason) => self.dropped.push(Dropped {
                curve,
                buffer_bytes: bytes as u64,
                reason,
            }),
        }
        Ok(())
    }

    /// The times of a pass (ns).
    fn repetitions(
        &self,
        recipe: &Recipe,
        holders: &[usize],
        bytes: usize,
    ) -> Result<Vec<u64>, MeasureError> {
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
            times.push(self.team.pass(recipe.timed, count));
        }
        Ok(times)
    }
}

/// Returns the number of holders that a recipe uses; the first has made round trips in any case.
fn used(recipe: &Recipe) -> usize {
    let is_shared = recipe
        .preparation
        .iter()
        .any(|&(who, _)| who == Who::Sharer);
    if is_shared { 2 } else { 1 }
}

/// Returns whether the vendor documents an owned state in the caches of its processors (MOESI).
fn has_owned() -> bool {
    let vendor = host::cpuinfo("vendor_id");
    matches!(vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::coherence::table::Table;
    use crate::progress::Silent;

    fn plan(cpus: Cpus) -> MeasurementPlan {
        MeasurementPlan {
            machine: host::processor(),
            cpus,
            sizes: vec![1 << 16, 1 << 17],
            repetitions: 3,
            transitions: Vec::new(),
        }
    }

    /// Every curve is a row, dropped, or told with a reason: never lost.
    fn is_accounted_for(plan: &MeasurementPlan) -> Report {
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
            let has_remote = !cpus.holders_at(CoreDistance::Remote).is_empty();
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
        let report = is_accounted_for(&MeasurementPlan {
            transitions: vec!["LMS".parse().unwrap(), "SMS".parse().unwrap()],
            ..plan(cpus)
        });
        let told = report.unmeasurable.values().flatten().count();
        assert_eq!(told, if HAS_FLUSH { 2 } else { 4 });
    }

    #[test]
    fn a_buffer_too_small_for_the_clock_is_no_row() {
        let report = is_accounted_for(&MeasurementPlan {
            sizes: vec![LINE_BYTES],
            transitions: vec![Transition::LHM],
            ..plan(Cpus::default_of_process().unwrap())
        });
        for row in &report.dropped {
            assert!(!row.reason.is_empty());
        }
    }
}
