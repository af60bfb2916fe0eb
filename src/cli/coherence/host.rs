//! The parts that `sme coherence measure`, and `transfer` and `compare` with `--host`, share: which
//! CPUs of this computer, under which name, and what is said on stderr.

use clap::Args;

use crate::cli::read::{self, Values};
use crate::coherence::measure::cpus::{Cpu, Cpus};
use crate::coherence::measure::drift::RoundTrip;
use crate::coherence::measure::{Flushed, MeasureError};
use crate::host::processor;
use crate::report::stop::{Stop, one_line, to_stderr};

/// The flags beside `--host` of `sme coherence transfer` and `compare`.
#[derive(Args, Clone, Debug)]
pub(super) struct HostFlags {
    /// With --host: CPUs, the one that is timed first, as Linux numbers them [default: the first
    /// that the process may use, and another one at --placement]
    #[arg(
        long,
        value_name = "A,B",
        requires = "host",
        allow_negative_numbers = true
    )]
    cores: Option<String>,
    /// With --host: how many round trips are timed for each row
    #[arg(
        long,
        value_name = "N",
        requires = "host",
        default_value = "21",
        allow_negative_numbers = true
    )]
    repetitions: String,
}

impl HostFlags {
    /// The host, of that name if there is one.
    pub(super) fn read(&self, name: Option<&str>) -> Result<Host, Stop> {
        Host::read(self.cores.as_deref(), name)
    }

    /// Number of round trips that are timed.
    pub(super) fn rounds(&self) -> Result<u32, Stop> {
        read::repetitions(&self.repetitions)
    }
}

/// The largest number of a CPU.
const MOST_CPU: u64 = 1 << 20;

/// This computer: CPUs that are looked for when a measurement begins, and a name.
#[derive(Clone, Debug)]
pub(super) struct Host {
    cores: Option<Vec<usize>>,
    name: Option<String>,
}

impl Host {
    /// Reads `--cores` and `--name`.
    pub(super) fn read(cores: Option<&str>, name: Option<&str>) -> Result<Self, Stop> {
        let name = name.map(one_line);
        if name.as_ref().is_some_and(String::is_empty) {
            return Err(Stop::flag("--name", "a machine needs a name"));
        }
        let cores = cores.map(|text| {
            let ids = read::numbers("--cores", text, 0, MOST_CPU, Values::Many)?;
            Ok(ids.into_iter().map(|id| id as usize).collect())
        });
        Ok(Self {
            cores: cores.transpose()?,
            name,
        })
    }

    /// Its name: the processor's unless there is another.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| one_line(&processor()))
    }

    /// Its CPUs.
    pub(super) fn cpus(&self) -> Result<Cpus, Stop> {
        let cpus = match &self.cores {
            Some(ids) => Cpus::named(ids),
            None => Cpus::default_of_process(),
        };
        cpus.map_err(stopped)
    }
}

/// The reason for which a measurement came to nothing.
pub(super) fn stopped(error: MeasureError) -> Stop {
    match error {
        MeasureError::NoPinning
        | MeasureError::ManyCpus(_)
        | MeasureError::TwiceCpu(_)
        | MeasureError::ForbiddenCpu { .. } => Stop::flag("--cores", error),
        MeasureError::NoHolder { placement, .. } => {
            Stop::flag(&format!("--placement {placement}"), error)
        }
        MeasureError::NoFlush(Flushed::Chunks) => Stop::flag("--flush", error),
        MeasureError::NoFlush(Flushed::Buffers) => Stop::flag("--reuse", error),
        MeasureError::Memory(_) | MeasureError::Size(_) | MeasureError::Lines(_) => {
            Stop::flag("--sizes", error)
        }
        MeasureError::Affinity(_)
        | MeasureError::NoCpu
        | MeasureError::Pin { .. }
        | MeasureError::Threads(_)
        | MeasureError::Bytes(_)
        | MeasureError::Panicked => Stop::Failed(one_line(&error.to_string())),
    }
}

/// Where `other` is, seen from `first`.
pub(super) fn place(first: Cpu, other: Cpu) -> String {
    let place = first.placement_of(other).name();
    match other.shares_core_with(first) {
        true => {
            format!("{place} of the same core, so that its misses are hits of the shared caches")
        }
        false => place.to_owned(),
    }
}

/// Says on stderr that figures of this program are too low, where it was built so.
pub(super) fn warn_if_unoptimized() {
    if cfg!(debug_assertions) {
        to_stderr("this program was built without optimization: throughputs are too low\n");
    }
}

/// Says on stderr how long round trips from `first` took.
pub(super) fn tell_round_trips(first: Cpu, trips: &[RoundTrip]) {
    for trip in trips {
        to_stderr(&format!(
            "round trip between CPU {} and CPU {} ({}): {:.1} ns\n",
            first.id, trip.cpu, trip.placement, trip.ns
        ));
    }
}
