//! `sme mpi nas NAME`.

use std::ops::RangeInclusive;

use clap::Args;

use super::{Point, Points, WatchFlags, channel, jobs, most_ranks, rounds};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::cli::read::{self, Values};
use crate::messages::job::Library;
pub(super) use crate::messages::nas::NasRun;
use crate::messages::nas::{Class, Kernel, Outcome, STEPS};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi nas`.
#[derive(Args, Clone, Debug)]
pub struct NasFlags {
    /// The benchmark: bt or lu
    #[arg(value_name = "KERNEL")]
    kernel: String,
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The size of the benchmark: S, W, A or B
    #[arg(long, value_name = "CLASS", default_value = "A")]
    class: String,
    /// Seconds that one core needs for all steps of the benchmark [default: those of the SCC, for
    /// class A]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    core_seconds: Option<String>,
    /// The channel that carries the messages: rcce (RCCE's blocking calls), sccmpb, sccshm,
    /// sections, registered, chunks or queues (MPI) [default: rcce on a chip with message passing
    /// buffers, queues on one with networks between its memories, chunks where all memory is
    /// coherent, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Ranks of the job; they fill one node after the other: squares for bt, powers of two for lu
    /// [default: all that the machine has cores for, up to 36 or 32]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// Steps that are simulated and count; one more comes first
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true
    )]
    steps: String,
    #[command(flatten)]
    watch: WatchFlags,
}

/// The times that one core may take for a benchmark \[s\]: from a millisecond, so that a share of a
/// step is some picoseconds, to more than a hundred days.
pub(super) const SECONDS: RangeInclusive<f64> = 1e-3..=1e7;

impl NasFlags {
    pub(super) fn read(&self) -> Result<Points<NasRun>, Stop> {
        let kernel: Kernel = read::name("KERNEL", &self.kernel)?;
        let class: Class = read::name("--class", &self.class)?;
        let core_seconds = self.core_seconds(kernel, class)?;
        let machine = args::machine(&self.machine)?;
        let library = match &self.channel {
            None if machine.shape().buffer_bytes > 0 => Library::Rcce,
            text => channel(text.as_ref(), &machine)?,
        };
        let ranks = ranks(
            ("--ranks", self.ranks.as_ref()),
            (kernel, class),
            most_ranks(&machine),
        )?;
        let steps = rounds("--steps", &self.steps)?;
        let jobs = jobs((machine, library), ranks, self.watch.workers()?);
        let points = jobs.into_iter().map(|job| NasRun {
            job,
            kernel,
            class,
            core_seconds,
            steps,
        });
        Points::new(points.collect(), &self.watch, "--ranks are")
    }

    fn core_seconds(&self, kernel: Kernel, class: Class) -> Result<f64, Stop> {
        const FLAG: &str = "--core-seconds";
        match &self.core_seconds {
            None if class == Class::A => Ok(kernel.core_seconds()),
            None => Err(Stop::flag(
                FLAG,
                format!("has to be given for class {class}"),
            )),
            Some(text) => read::real(FLAG, text, &SECONDS),
        }
    }
}

/// Reads the ranks that `flag` has, for which the benchmark has to be made; by default the usual
/// ones, of at most `most`.
pub(super) fn ranks(
    (flag, text): (&str, Option<&String>),
    (kernel, class): (Kernel, Class),
    most: u32,
) -> Result<Vec<u32>, Stop> {
    let Some(text) = text else {
        let usual: &[u32] = match kernel {
            Kernel::Bt => &[1, 4, 9, 16, 25, 36],
            Kernel::Lu => &[1, 2, 4, 8, 16, 32],
        };
        let fits = |ranks: &u32| *ranks <= most && kernel.check(class, *ranks).is_ok();
        return Ok(usual.iter().copied().filter(fits).collect());
    };
    let ranks = read::counts(flag, text, 1, most, Values::Many)?;
    let wrong = ranks
        .iter()
        .find_map(|&ranks| kernel.check(class, ranks).err());
    match wrong {
        None => Ok(ranks),
        Some(wrong) => Err(Stop::flag(flag, wrong)),
    }
}

impl Point for NasRun {
    const KEYS: &[&str] = &[
        "kernel",
        "class",
        "core_s",
        "ranks",
        "steps",
        "step_ms",
        "compute_ms",
        "total_s",
        "speedup",
    ];

    const EXPLAINED: (&str, &str) = (STEPS, "the last step");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        vec![
            Cell::text(self.kernel),
            Cell::text(self.class),
            Cell::fraction(self.core_seconds),
            Cell::Count(self.job.ranks.into()),
            Cell::Count(self.steps.into()),
            Cell::fraction(outcome.step.as_us() / 1e3),
            Cell::fraction(outcome.computes.as_us() / 1e3),
            Cell::fraction(self.seconds(outcome)),
            Cell::fraction(self.speedup(outcome)),
        ]
    }
}
