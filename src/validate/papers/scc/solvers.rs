//! The speed-ups of two NAS benchmarks on the SCC with RCCE's messages: the time of one core is an
//! input.

use std::fmt;
use std::sync::Arc;

use sme_sim::machine::Machine;

use super::{Estimator, Finding, Point};
use crate::messages::Measurement;
use crate::messages::job::{Job, Library};
use crate::messages::nas::{Class, Kernel, NasRun};

/// A benchmark of class A on so many cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solved {
    kernel: Kernel,
    ranks: u32,
}

impl fmt::Display for Solved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, ranks } = self;
        write!(f, "{kernel} of class A on {ranks} cores")
    }
}

impl Solved {
    /// The one of figure `id`, such as `rcce.bt_a.36`.
    fn of(id: &str) -> Option<Self> {
        let (name, ranks) = id.strip_prefix("rcce.")?.split_once("_a.")?;
        let kernel = name.parse().ok()?;
        let ranks = ranks.parse().ok()?;
        Some(Self { kernel, ranks })
    }

    /// The simulation's time, about.
    pub(super) fn cost(self) -> u64 {
        u64::from(self.ranks) << 16
    }

    /// The time of the whole benchmark [us].
    pub(super) fn time(self, machine: &Arc<Machine>) -> Result<f64, String> {
        let run = NasRun {
            job: Job::new(Arc::clone(machine), Library::Rcce, self.ranks),
            kernel: self.kernel,
            class: Class::A,
            core_seconds: self.kernel.core_seconds(),
            steps: 1,
        };
        let outcome = run.run().map_err(|error| error.to_string())?;
        Ok(run.seconds(&outcome) * 1e6)
    }
}

/// The estimator of a speed-up.
pub(super) fn estimator(id: &str) -> Option<Estimator<Point>> {
    let solved = Solved::of(id)?;
    let point = Point::Solved(solved);
    Some(Estimator {
        points: Box::new(move || vec![point]),
        find: Box::new(move |measured| {
            let core_us = solved.kernel.core_seconds() * 1e6;
            Ok(Finding::of(core_us / measured.microseconds(point)?))
        }),
    })
}

/// The times of one core [s], which the simulation takes as they are.
pub(super) fn inputs() -> Vec<(&'static str, f64)> {
    vec![
        ("rcce.bt_a.core", Kernel::Bt.core_seconds()),
        ("rcce.lu_a.core", Kernel::Lu.core_seconds()),
    ]
}
