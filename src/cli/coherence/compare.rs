//! `sme coherence compare`.

use std::num::NonZero;

use clap::Args;

use super::simulated::{CoherentFlags, sizes, stopped};
use crate::cli::flags::FileFlags;
use crate::cli::read::{self, Values};
use crate::coherence::bench::Bench;
use crate::coherence::compare::{CompareError, Compared, Outcome};
use crate::coherence::model::Ports;
use crate::coherence::transition::Placement;
use crate::messages::Measurement;
use crate::progress::{self, Watch};
use crate::report::output::Output;
use crate::report::row::{Cell, rendered};
use crate::report::stop::{Stop, one_line};
use crate::validate::measure::over;
use crate::validate::papers::On;
use sme_mpi::channel::chunks::Ring;

/// The flags of `sme coherence compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareFlags {
    #[command(flatten)]
    machine: CoherentFlags,
    /// Sizes of the message in bytes, multiples of 64, a list such as 65536,1048576 or
    /// 32768..4194304*2
    #[arg(
        long,
        value_name = "LIST",
        default_value = "16384..4194304*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// Size of a chunk in bytes, a multiple of 64; Open MPI has 32768, MPICH 65536
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "32768",
        allow_negative_numbers = true
    )]
    chunk: String,
    /// Chunks of a ring
    #[arg(
        long,
        value_name = "N",
        default_value = "8",
        allow_negative_numbers = true
    )]
    ring: String,
    /// Where the two cores are: socket (the same) or remote (different ones)
    #[arg(long, value_name = "NAME", default_value = "socket")]
    placement: String,
    /// For the model: loads and stores of a copy take turns at one port, instead of overlapping
    #[arg(long)]
    shared_port: bool,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// Comparisons whose flags fit together.
#[derive(Debug)]
pub(super) struct CompareRun {
    bench: Bench,
    compared: Vec<Compared>,
    workers: usize,
    file: FileFlags,
}

const HEADING: [&str; 15] = [
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
        let bench = self.machine.bench()?;
        let not_zero = |flag: &str, size: u64| {
            NonZero::new(size).ok_or_else(|| Stop::flag(flag, "0 is too small"))
        };
        let chunk = read::one("--chunk", sizes("--chunk", &self.chunk, 64, Values::One)?)?;
        let chunk_bytes = not_zero("--chunk", chunk)?;
        let ring = read::counts("--ring", &self.ring, 1, Ring::MOST_CHUNKS, Values::One)?;
        let ring = read::one("--ring", ring)?;
        let placement: Placement = read::name("--placement", &self.placement)?;
        let mut compared = Vec::new();
        for size in sizes("--sizes", &self.sizes, 64, Values::Many)? {
            compared.push(Compared {
                placement,
                message_bytes: not_zero("--sizes", size)?,
                chunk_bytes,
                ring,
                ports: match self.shared_port {
                    true => Ports::Shared,
                    false => Ports::Separate,
                },
            });
        }
        for one in &compared {
            let ping_pong = one.ping_pong(&bench).map_err(stopped)?;
            let is_possible = ping_pong.job().check();
            is_possible.map_err(|error| Stop::flag("--chunk or --ring", error))?;
        }
        Ok(CompareRun {
            bench,
            compared,
            workers: match &self.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            file: self.file.clone(),
        })
    }
}

impl CompareRun {
    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let watch = progress::on_stderr();
        let watch: &dyn Watch = watch.as_ref();
        watch.begin("messages", self.compared.len() as u64);
        let cost = |one: &Compared| one.message_bytes.get();
        let outcomes = over(&self.compared, self.workers, cost, |one| {
            let outcome = one.simulate(&self.bench);
            watch.advance(1);
            outcome
        });
        watch.end();
        let mut rows = Vec::with_capacity(outcomes.len());
        for (one, outcome) in self.compared.iter().zip(outcomes) {
            rows.push(self.row(one, &outcome.map_err(failed)?));
        }
        output.push(&rendered(&HEADING, &rows, self.file.format()))?;
        output.commit()
    }

    fn row(&self, one: &Compared, outcome: &Outcome) -> Vec<Cell> {
        let on = On::new(self.bench.machine());
        let Outcome {
            predicted,
            transfer_gb_per_s,
            mpi_gb_per_s,
        } = outcome;
        vec![
            Cell::text(&on.machine),
            Cell::text(&on.machine_hash),
            Cell::text(&on.set),
            Cell::text(one.placement),
            Cell::Count(one.chunk_bytes.get()),
            Cell::Count(one.ring.into()),
            Cell::Count(one.message_bytes.get()),
            Cell::real(predicted.sequential_gb_per_s),
            Cell::real(predicted.pipelined_gb_per_s),
            Cell::real(predicted.parallel_gb_per_s),
            Cell::real(*transfer_gb_per_s),
            Cell::real(*mpi_gb_per_s),
            Cell::real(predicted.pipelined_gb_per_s / transfer_gb_per_s),
            Cell::real(mpi_gb_per_s / transfer_gb_per_s),
            Cell::text(predicted.bound_by),
        ]
    }
}

fn failed(error: CompareError) -> Stop {
    match error {
        CompareError::Bench(error) => stopped(error),
        other => Stop::Failed(one_line(&other.to_string())),
    }
}
