//! `sme coherence compare`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use sme_mpi::channel::chunks::Ring;

use super::host::{Host, HostFlags};
use super::host_transfer;
use super::simulated::{CoherentFlags, MessageFlags, stopped};
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read;
use crate::coherence::bench::Bench;
use crate::coherence::compare::{CompareError, Compared};
use crate::coherence::model::{Ports, Prediction};
use crate::coherence::table::Table;
use crate::coherence::transfer::Transfer;
use crate::messages::Measurement;
use crate::progress::{self, Watch};
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line};
use crate::validate::measure::over;
use crate::validate::papers::On;

/// The flags of `sme coherence compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareFlags {
    #[command(flatten)]
    machine: CoherentFlags,
    #[command(flatten)]
    messages: MessageFlags,
    /// For the model: loads and stores of a copy take turns at one port, instead of overlapping
    #[arg(long)]
    shared_port: bool,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    /// Predict from --table, and measure on this computer: the transfer between two pinned threads,
    /// without MPI
    #[arg(
        long,
        requires = "table",
        conflicts_with_all = ["machine", "set", "workers"]
    )]
    host: bool,
    /// With --host: this computer's throughput table, of sme coherence measure
    #[arg(long, value_name = "FILE", requires = "host")]
    table: Option<PathBuf>,
    #[command(flatten)]
    on_host: HostFlags,
    #[command(flatten)]
    file: FileFlags,
}

/// Comparisons whose flags fit together.
#[derive(Debug)]
pub(super) struct CompareRun {
    on: Where,
    compared: Vec<Compared>,
    file: FileFlags,
}

/// The machine.
#[derive(Debug)]
enum Where {
    /// A simulated one, by so many threads.
    Simulated(Bench, usize),
    /// This computer, with its table; so many round trips are timed.
    Host(Host, Table, u32),
}

/// The figures of one message.
struct Found {
    /// Name, hash and overrides.
    machine: [Cell; 3],
    predicted: Prediction,
    transfer_gb_per_s: f64,
    mpi_gb_per_s: Option<f64>,
}

const HEADING: [&str; 16] = [
    "version",
    "machine",
    "machine_hash",
    "set",
    "placement",
    "chunk_bytes",
    "ring_chunks",
    "message_bytes",
    "sequential_gb_per_s",
    "pipelined_gb_per_s",
    "parallel_gb_per_s",
    "transfer_gb_per_s",
    "mpi_gb_per_s",
    "pipelined_over_transfer",
    "mpi_over_transfer",
    "bound_by",
];

impl CompareFlags {
    pub(super) fn read(&self) -> Result<CompareRun, Stop> {
        let not_zero = |flag: &str, size: u64| {
            NonZero::new(size).ok_or_else(|| Stop::flag(flag, "0 is too small"))
        };
        let mut compared = Vec::new();
        for transfer in self.messages.read(Ring::MOST_CHUNKS.into())? {
            compared.push(Compared {
                placement: transfer.placement,
                message_bytes: not_zero("--sizes", transfer.message_bytes)?,
                chunk_bytes: not_zero("--chunk", transfer.chunk_bytes)?,
                ring: transfer.ring,
                ports: match self.shared_port {
                    true => Ports::Shared,
                    false => Ports::Separate,
                },
            });
        }
        let on = self.place()?;
        let refused = |error: &dyn std::fmt::Display| Stop::flag("--chunk or --ring", error);
        for one in &compared {
            let is_possible = transfer(one, 1).check();
            is_possible.map_err(|error| refused(&error))?;
            if let Where::Simulated(bench, _) = &on {
                let ping_pong = one.ping_pong(bench).map_err(failed)?;
                let is_possible = ping_pong.job().check();
                is_possible.map_err(|error| refused(&error))?;
            }
        }
        Ok(CompareRun {
            on,
            compared,
            file: self.file.clone(),
        })
    }

    fn place(&self) -> Result<Where, Stop> {
        if let Some(table) = &self.table {
            let host = self.on_host.read(None)?;
            let repetitions = self.on_host.rounds()?;
            let table =
                Table::read(table).map_err(|error| Stop::Input(one_line(&error.to_string())))?;
            return Ok(Where::Host(host, table, repetitions));
        }
        let workers = match &self.workers {
            Some(text) => read::host_threads("--workers", text)?,
            None => read::all_host_threads(),
        };
        Ok(Where::Simulated(self.machine.bench()?, workers))
    }
}

impl CompareRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let found = match &self.on {
            Where::Simulated(bench, workers) => self.simulated(bench, *workers)?,
            Where::Host(host, table, repetitions) => self.measured(host, table, *repetitions)?,
        };
        let rows: Vec<Vec<Cell>> = found.into_iter().map(row).collect();
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }

    fn simulated(&self, bench: &Bench, workers: usize) -> Result<Vec<(Compared, Found)>, Stop> {
        let watch = progress::on_stderr();
        let watch: &dyn Watch = watch.as_ref();
        watch.begin("messages", self.compared.len() as u64);
        let cost = |one: &Compared| one.message_bytes.get();
        let outcomes = over(&self.compared, workers, cost, |one| {
            let outcome = one.simulate(bench);
            watch.advance(1);
            outcome
        });
        watch.end();
        let on = On::new(bench.machine());
        let machine = [&on.machine, &on.machine_hash, &on.set].map(Cell::text);
        let found = self.compared.iter().zip(outcomes).map(|(&one, outcome)| {
            let outcome = outcome.map_err(failed)?;
            let found = Found {
                machine: machine.clone(),
                predicted: outcome.predicted,
                transfer_gb_per_s: outcome.transfer_gb_per_s,
                mpi_gb_per_s: Some(outcome.mpi_gb_per_s),
            };
            Ok((one, found))
        });
        found.collect()
    }

    /// The rows of the transfers that were not dropped.
    fn measured(
        &self,
        host: &Host,
        table: &Table,
        rounds: u32,
    ) -> Result<Vec<(Compared, Found)>, Stop> {
        let mut predictions = Vec::with_capacity(self.compared.len());
        for one in &self.compared {
            let predicted = one.predicted(table);
            predictions.push(predicted.map_err(|error| Stop::flag("--table", error))?);
        }
        let transfers = self.compared.iter().map(|one| transfer(one, rounds));
        let transfers: Vec<Transfer> = transfers.collect();
        let timed = host_transfer::rows(host, &transfers)?;
        let mut found = Vec::with_capacity(timed.len());
        for ([_, hash, set], transfer, ns) in timed {
            let bytes = transfer.message_bytes;
            let of = (self.compared.iter()).position(|one| one.message_bytes.get() == bytes);
            let Some(index) = of else { continue };
            let one = Found {
                machine: [Cell::text(table.machine()), hash, set],
                predicted: predictions[index],
                transfer_gb_per_s: bytes as f64 / ns,
                mpi_gb_per_s: None,
            };
            found.push((self.compared[index], one));
        }
        Ok(found)
    }
}

/// The transfer of so many rounds.
fn transfer(one: &Compared, rounds: u32) -> Transfer {
    Transfer {
        chunk_bytes: one.chunk_bytes.get(),
        ring: one.ring,
        rounds,
        ..Transfer::of_open_mpi(one.placement, one.message_bytes.get())
    }
}

fn row((one, found): (Compared, Found)) -> Vec<Cell> {
    let Found {
        machine,
        predicted,
        transfer_gb_per_s,
        mpi_gb_per_s,
    } = found;
    let optional = |value: Option<f64>| value.map_or(Cell::Absent, Cell::real);
    let figures = [
        Cell::text(one.placement),
        Cell::Count(one.chunk_bytes.get()),
        Cell::Count(one.ring.into()),
        Cell::Count(one.message_bytes.get()),
        Cell::real(predicted.sequential_gb_per_s),
        Cell::real(predicted.pipelined_gb_per_s),
        Cell::real(predicted.parallel_gb_per_s),
        Cell::real(transfer_gb_per_s),
        optional(mpi_gb_per_s),
        Cell::real(predicted.pipelined_gb_per_s / transfer_gb_per_s),
        optional(mpi_gb_per_s.map(|mpi| mpi / transfer_gb_per_s)),
        Cell::text(predicted.bound_by),
    ];
    let version = Cell::text(env!("CARGO_PKG_VERSION"));
    [version]
        .into_iter()
        .chain(machine)
        .chain(figures)
        .collect()
}

fn failed(error: CompareError) -> Stop {
    match error {
        CompareError::Bench(error) => stopped(error),
        CompareError::Ring(error) => Stop::flag("--chunk or --ring", error),
        other => Stop::Failed(one_line(&other.to_string())),
    }
}
