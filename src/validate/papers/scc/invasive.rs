//! The figures of Comprés et al. on invasive MPI, as far as they are simulated.

use std::fmt;
use std::sync::Arc;

use sme_mpi::process::manager::Kind;
use sme_sim::machine::Machine;

use super::{Estimator, Finding, Fit, Point};
use crate::messages::Measurement;
use crate::messages::infect::{Infect, Outcome};
use crate::messages::invade::Invade;
use crate::messages::job::Job;
use crate::messages::nas::{Class, Kernel, Launched};
use crate::messages::simpson::{self, POINTS, Simpson, TOLERANCE, Variant};
use crate::messages::spawn::Spawn;

/// One experiment on a chip whose cores have daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// MPI_Init of a program of one process.
    Initialize,
    /// A program gets so many cores, its own included.
    Invade(u32),
    /// A program of one process starts so many others.
    Spawn(u32),
    /// The world of a program of one process grows by so many.
    Infect(u32),
    /// They leave it again: the time at the one that stays.
    Retreat(u32),
    /// A function is integrated.
    Simpson(Variant),
    /// BT of class W on so many processes, from the begin of its manager on.
    Bt(Kind, u32),
}

/// Milliseconds of a microsecond.
const MS: f64 = 1e-3;

/// Seconds of a microsecond.
const S: f64 = 1e-6;

/// The runs whose order Fig. 3 shows.
const ORDERED: [Experiment; 4] = [
    Experiment::Bt(Kind::Mpd, 25),
    Experiment::Bt(Kind::Mpd, 36),
    Experiment::Bt(Kind::Invasive, 25),
    Experiment::Bt(Kind::Invasive, 36),
];

/// The most processes beside the first.
const MOST: u32 = 47;

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Initialize => write!(f, "MPI_Init of one process"),
            Self::Invade(cores) => write!(f, "{cores} cores reserved"),
            Self::Spawn(processes) => write!(f, "{processes} processes started"),
            Self::Infect(processes) => write!(f, "a world that grows by {processes}"),
            Self::Retreat(processes) => write!(f, "a world that shrinks by {processes}"),
            Self::Simpson(variant) => write!(f, "the {variant} integration"),
            Self::Bt(manager, processes) => {
                write!(f, "bt of class W on {processes} processes with {manager}")
            }
        }
    }
}

impl Experiment {
    pub(super) fn cost(self) -> u64 {
        match self {
            Self::Initialize => 1 << 8,
            // The sums are calculated.
            Self::Simpson(_) => 1 << 20,
            Self::Bt(_, processes) => u64::from(processes) << 13,
            Self::Invade(cores)
            | Self::Spawn(cores)
            | Self::Infect(cores)
            | Self::Retreat(cores) => u64::from(cores) << 8,
        }
    }

    /// Its time [us].
    pub(super) fn time(self, machine: &Arc<Machine>) -> Result<f64, String> {
        let job = Job::managed(Arc::clone(machine));
        let infect = |processes| {
            let (job, parents) = (job.clone(), 1);
            let infect = Infect {
                job,
                parents,
                processes,
            };
            infect.run()
        };
        let time = match self {
            Self::Initialize => infect(1).map(
                |Outcome {
                     initializes_first, ..
                 }| initializes_first,
            ),
            Self::Infect(processes) => infect(processes).map(|Outcome { infects, .. }| infects),
            Self::Retreat(processes) => infect(processes).map(|Outcome { retreats, .. }| retreats),
            Self::Invade(cores) => {
                let contiguous = false;
                let invade = Invade {
                    near_memory: false,
                    job,
                    cores,
                    contiguous,
                };
                invade.run().map(|outcome| outcome.invades)
            }
            Self::Spawn(processes) => {
                let spawn = Spawn { job, processes };
                spawn.run().map(|outcome| outcome.spawns)
            }
            Self::Bt(manager, processes) => {
                let core_seconds = Kernel::Bt.scaled_seconds(Class::W, machine);
                let of = (Class::W, processes);
                let launched = Launched::new(job, manager, of, (core_seconds, 1));
                let outcome = launched.run().map_err(|error| error.to_string())?;
                return Ok(launched.seconds(&outcome) * 1e6);
            }
            Self::Simpson(variant) => {
                let simpson = Simpson {
                    job,
                    variant,
                    tolerance: TOLERANCE,
                    points: POINTS,
                    waiting: None,
                };
                let total = |outcome: simpson::Outcome| match variant {
                    // It needs no process manager.
                    Variant::Serial => outcome.time,
                    Variant::Invasive => outcome.total,
                };
                simpson.run().map(total)
            }
        };
        time.map(|time| time.as_us())
            .map_err(|error| error.to_string())
    }
}

/// The estimator of a figure.
pub(super) fn estimator(id: &str) -> Option<Estimator<Point>> {
    use Experiment::{Infect, Initialize, Invade, Retreat, Spawn};
    let single = |of, factor| Some(Estimator::single(Point::Managed(of), factor));
    match id {
        "impi.mpi_init.1_process" => single(Initialize, MS),
        "impi.fig4.invade" => single(Invade(48), 1.0),
        "impi.spawn.1_process" => single(Spawn(1), MS),
        "impi.fig6.infect_spread" => Some(Estimator::new(
            || [1, MOST].map(|of| Point::Managed(Infect(of))).to_vec(),
            |measured| {
                let [fewest, most] =
                    [1, MOST].map(|of| measured.microseconds(Point::Managed(Infect(of))));
                Ok(Finding::of((most? - fewest?) * MS))
            },
        )),
        "impi.simpson.serial" => single(Experiment::Simpson(Variant::Serial), S),
        "impi.simpson.invasive" => single(Experiment::Simpson(Variant::Invasive), S),
        "impi.fig3.bt" => Some(Estimator::new(
            || ORDERED.map(Point::Managed).to_vec(),
            |measured| {
                let times = ORDERED.map(|of| measured.microseconds(Point::Managed(of)));
                let [mpd_25, mpd_36, ipm_25, ipm_36] = times;
                let is_slower = mpd_36? > mpd_25?;
                let gains = ipm_36? < ipm_25?;
                Ok(Finding::of(36.0)
                    .provided(is_slower, "with mpd 36 processes are slower than 25")
                    .provided(gains, "with ipm 36 processes are faster than 25"))
            },
        )),
        // The worst case.
        "impi.fig7.retreat" => Some(Estimator::new(
            || {
                let both = |of| [Infect(of), Retreat(of)];
                let all = [1, MOST].into_iter().flat_map(both);
                all.map(Point::Managed).collect()
            },
            |measured| {
                let ratio = |of| {
                    let infect = measured.microseconds(Point::Managed(Infect(of)))?;
                    let retreat = measured.microseconds(Point::Managed(Retreat(of)))?;
                    Ok::<f64, String>(infect / retreat)
                };
                Ok(Finding::of(ratio(1)?.min(ratio(MOST)?)))
            },
        )),
        _ => None,
    }
}

/// The choices that were made by figures.
pub(super) fn choices() -> Vec<Fit> {
    vec![
        Fit::choice(
            "cycles of a point with an exponential",
            &["impi.simpson.serial"],
        ),
        Fit::choice(
            "the criterion of the tree",
            &["impi.simpson.serial", "impi.simpson.invasive"],
        ),
    ]
}
