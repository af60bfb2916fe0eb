//! `sme mpi power`.

use clap::Args;
use sme_memory::{Domains, MOST_DIVIDER};
use sme_sim::observe::energy::Energy;
use sme_sim::time::Time;

use super::managed::{ProgramFlags, energy};
use super::simpson::{IntegrationFlags, seconds};
use super::{Point, Points, WatchFlags};
use crate::cli::read::{self, Values};
use crate::messages::Measurement;
use crate::messages::job::{Error, Job, Observe, Observed};
use crate::messages::simpson::{Outcome, Simpson, Slow, Variant, WHOLE_RUN};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme mpi power`.
#[derive(Args, Clone, Debug)]
pub struct PowerFlags {
    #[command(flatten)]
    program: ProgramFlags,
    /// Dividers of the clock of cores that wait, such as 2,4,16 [default: the one with which all
    /// begin, and others up to 16]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    dividers: Option<String>,
    /// Leave the voltage of islands whose cores all wait as it is
    #[arg(long)]
    keep_voltage: bool,
    #[command(flatten)]
    integration: IntegrationFlags,
    #[command(flatten)]
    watch: WatchFlags,
}

/// An integration whose processes slow their cores down while they wait.
#[derive(Clone, Debug)]
pub(super) struct Slowed {
    simpson: Simpson,
    divider: u32,
    /// The clock of cores that wait \[MHz\].
    megahertz: f64,
    /// The voltage that these want \[mV\].
    millivolts: u32,
}

impl PowerFlags {
    pub(super) fn read(&self) -> Result<Points<Slowed>, Stop> {
        let (job, _) = self.program.job(&self.watch)?;
        let Some(domains) = job.machine.shape().domains.clone() else {
            return Err(Stop::flag("--machine", "its clocks and voltages are fixed"));
        };
        let least = domains.divider;
        let others = [4, 8, MOST_DIVIDER];
        let others = others.into_iter().filter(|&divider| divider > least);
        let default: Vec<String> = [least]
            .into_iter()
            .chain(others)
            .map(|d| d.to_string())
            .collect();
        let default = default.join(",");
        let text = self.dividers.as_ref().unwrap_or(&default);
        let dividers = read::counts("--dividers", text, least, MOST_DIVIDER, Values::Many)?;
        let (tolerance, points) = self.integration.read()?;
        let base = job.machine.megahertz("core.clock").unwrap_or_default();
        let runs = dividers.into_iter().map(|divider| {
            let millivolts = self.voltage(&domains, divider);
            let slow = Slow {
                divider: divider as u8,
                tenths: (millivolts < domains.millivolts).then_some((millivolts / 100) as u8),
            };
            Slowed {
                simpson: Simpson {
                    job: job.clone(),
                    variant: Variant::Invasive,
                    tolerance,
                    points,
                    waiting: (divider != domains.divider).then_some(slow),
                },
                divider,
                megahertz: base * f64::from(domains.divider) / f64::from(divider),
                millivolts,
            }
        });
        Points::new(runs.collect(), &self.watch, "--dividers makes")
    }

    /// The voltage that cores with that divider want \[mV\].
    fn voltage(&self, domains: &Domains, divider: u32) -> u32 {
        match self.keep_voltage || divider == domains.divider {
            true => domains.millivolts,
            false => domains.voltage_of(divider),
        }
    }
}

impl Measurement for Slowed {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        self.simpson.job()
    }

    fn calls(&self) -> u64 {
        self.simpson.calls()
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        self.simpson.observed(observe)
    }
}

impl Point for Slowed {
    const KEYS: &[&str] = &[
        "tolerance",
        "points",
        "divider",
        "frequency_mhz",
        "voltage_v",
        "time_s",
        "run_s",
        "energy_j",
        "cores_j",
        "mesh_j",
        "memory_j",
        "clock_j",
        "mean_power_w",
        "energy_delay_js",
        "busy_core_s",
        "slowed_core_s",
        "lowered_core_s",
    ];

    const EXPLAINED: (&str, &str) = (WHOLE_RUN, "the integration");

    fn cells(&self, outcome: &Outcome) -> Vec<Cell> {
        let of_run = |of: fn(&Energy) -> f64| energy(outcome.energy.as_ref(), of);
        let core_time = |of: fn(&Energy) -> Time| match &outcome.energy {
            Some(energy) => seconds(of(energy)),
            None => Cell::Absent,
        };
        fn run_s(energy: &Energy) -> f64 {
            energy.until.as_us() * 1e-6
        }
        vec![
            Cell::text(self.simpson.tolerance),
            Cell::Count(self.simpson.points),
            Cell::Count(self.divider.into()),
            Cell::real(self.megahertz),
            Cell::real(f64::from(self.millivolts) / 1e3),
            seconds(outcome.time),
            of_run(run_s),
            of_run(Energy::total_j),
            of_run(Energy::all_cores_j),
            of_run(|energy| energy.mesh_j),
            of_run(|energy| energy.memory_j),
            of_run(|energy| energy.clock_j),
            of_run(|energy| energy.total_j() / run_s(energy)),
            of_run(|energy| energy.total_j() * run_s(energy)),
            core_time(|energy| energy.busy),
            core_time(|energy| energy.slowed),
            core_time(|energy| energy.lowered),
        ]
    }
}
