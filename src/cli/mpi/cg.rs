//! `sme mpi cg`.

use clap::Args;
use sme_sim::observe::energy::Energy;

use super::managed::{ProgramFlags, energy};
use super::{Point, Points, WatchFlags, core_gflops, rounds};
use crate::cli::read::{self, Values};
pub(super) use crate::messages::cg::Cg;
use crate::messages::cg::{Outcome, WHOLE};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The longest side.
const MOST_SIDE: u32 = 1 << 12;

/// Processes in each phase, where no flag says otherwise.
const PROCESSES: [u32; 4] = [1, 16, 48, 8];

/// The flags of `sme mpi cg`.
#[derive(Args, Clone, Debug)]
pub struct CgFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Points along each side of the square
    #[arg(
        long,
        value_name = "N",
        default_value = "96",
        allow_negative_numbers = true
    )]
    side: String,
    /// Processes in each phase: the world grows or shrinks between them [default: 1,16,48,8, or all
    /// cores where there are fewer]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    processes: Option<String>,
    /// Iterations of each phase
    #[arg(
        long,
        value_name = "N",
        default_value = "40",
        allow_negative_numbers = true
    )]
    iterations: String,
    /// The rate of one core, in 10^9 floating-point operations per second [default: one operation
    /// in the machine's core.arithmetic]
    #[arg(long, value_name = "GFLOPS", allow_negative_numbers = true)]
    core_gflops: Option<String>,
    #[command(flatten)]
    watch: WatchFlags,
}

impl CgFlags {
    pub(super) fn read(&self) -> Result<Points<Cg>, Stop> {
        let (job, cores) = self.program.job(&self.watch)?;
        let side = read::counts("--side", &self.side, 1, MOST_SIDE, Values::One)?;
        let side = read::one("--side", side)?;
        let most = cores.min(side);
        let processes = match &self.processes {
            None => PROCESSES.map(|processes| processes.min(most)).to_vec(),
            Some(processes) => read::counts("--processes", processes, 1, most, Values::Many)?,
        };
        let iterations = rounds("--iterations", &self.iterations)?;
        let core_gflops = core_gflops(self.core_gflops.as_ref(), &job.machine)?;
        let cg = Cg {
            job,
            side,
            iterations,
            processes,
            core_gflops,
        };
        Points::new(vec![cg], &self.watch, "--processes makes")
    }
}

impl Point for Cg {
    const KEYS: &[&str] = &[
        "side",
        "iterations",
        "core_gflops",
        "processes_max",
        "time_us",
        "energy_j",
        "residual",
    ];
    const BELOW: &[&str] = &["phase", "processes", "deal_us", "begin_us", "end_us"];

    const EXPLAINED: (&str, &str) = (WHOLE, "the solution");

    fn data_bytes(&self) -> u64 {
        Self::data_bytes(self)
    }

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let most = outcome.phases.iter().map(|phase| phase.processes).max();
        vec![
            Cell::Count(self.side.into()),
            Cell::Count(self.iterations.into()),
            Cell::real(self.core_gflops),
            Cell::Count(most.unwrap_or(0).into()),
            Cell::micros(outcome.time),
            energy(outcome.energy.as_ref(), Energy::total_j),
            Cell::Number(format!("{:.3e}", outcome.residual)),
        ]
    }

    fn below(outcomes: &[(&Self, Outcome)]) -> Vec<Vec<Cell>> {
        let phases = outcomes.first().map(|(_, outcome)| &outcome.phases);
        let rows = phases.into_iter().flatten().enumerate();
        let rows = rows.map(|(number, phase)| {
            vec![
                Cell::Count(number as u64),
                Cell::Count(phase.processes.into()),
                Cell::micros(phase.deals),
                Cell::micros(phase.begin),
                Cell::micros(phase.end),
            ]
        });
        rows.collect()
    }
}
