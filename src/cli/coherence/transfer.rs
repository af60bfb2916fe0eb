//! `sme coherence transfer`.

use clap::Args;

use super::host::{Host, HostFlags};
use super::host_transfer;
use super::simulated::{CoherentFlags, MessageFlags, stopped};
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read;
use crate::coherence::bench::Bench;
use crate::coherence::model::Flush;
use crate::coherence::transfer::{Direction, Home, Transfer};
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::Stop;
use crate::validate::measure::over;
use crate::validate::papers::On;

/// The flags of `sme coherence transfer`.
#[derive(Args, Clone, Debug)]
pub struct TransferFlags {
    #[command(flatten)]
    machine: CoherentFlags,
    #[command(flatten)]
    messages: MessageFlags,
    /// Directions of a chunk: the same every time, or alternating
    #[arg(long, value_name = "NAME", default_value = "same")]
    direction: String,
    /// How chunks are brought to memory: none, sender (clflush of each chunk), receiver, or
    /// non-temporal (the sender's stores go past its caches)
    #[arg(long, value_name = "NAME", default_value = "none")]
    flush: String,
    /// The socket whose memory the chunks are in: that of the sender or of the receiver
    #[arg(long, value_name = "NAME", default_value = "sender")]
    home: String,
    /// Which application buffers are used again: both, sender, receiver or none
    #[arg(long, value_name = "NAME", default_value = "both")]
    reuse: String,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    /// Measure on this computer instead of simulating: between two pinned threads
    #[arg(long, conflicts_with_all = ["machine", "set", "workers"])]
    host: bool,
    #[command(flatten)]
    on_host: HostFlags,
    /// With --host: the machine's name in the rows [default: what the system calls the processor]
    #[arg(long, value_name = "TEXT", requires = "host")]
    name: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// Transfers whose flags fit together.
#[derive(Debug)]
pub(super) struct TransferRun {
    on: Where,
    transfers: Vec<Transfer>,
    file: FileFlags,
}

/// The machine on which they run.
#[derive(Debug)]
enum Where {
    /// A simulated one, by so many threads.
    Simulated(Bench, usize),
    /// This computer.
    Host(Host),
}

const HEADING: [&str; 14] = [
    "version",
    "machine",
    "machine_hash",
    "set",
    "placement",
    "direction",
    "flush",
    "home",
    "reuse",
    "message_bytes",
    "chunk_bytes",
    "ring_chunks",
    "time_us",
    "gb_per_s",
];

/// The most chunks of a ring.
const MOST_CHUNKS: u64 = 1 << 16;

impl TransferFlags {
    pub(super) fn read(&self) -> Result<TransferRun, Stop> {
        let on = self.place()?;
        let reuse: super::predict::Reuse = read::name("--reuse", &self.reuse)?;
        let direction = read::name::<Direction>("--direction", &self.direction)?;
        let flush = read::name::<Flush>("--flush", &self.flush)?;
        let home = read::name::<Home>("--home", &self.home)?;
        let mut transfers = self.messages.read(MOST_CHUNKS)?;
        for transfer in &mut transfers {
            transfer.direction = direction;
            transfer.flush = flush;
            transfer.home = home;
            transfer.reuses = reuse.of_sides();
            if self.host {
                transfer.rounds = self.on_host.rounds()?;
            }
        }
        for transfer in &transfers {
            transfer
                .check()
                .map_err(|error| Stop::flag("--ring", error))?;
        }
        Ok(TransferRun {
            on,
            transfers,
            file: self.file.clone(),
        })
    }

    fn place(&self) -> Result<Where, Stop> {
        if self.host {
            let host = self.on_host.read(self.name.as_deref())?;
            return Ok(Where::Host(host));
        }
        let workers = match &self.workers {
            Some(text) => read::host_threads("--workers", text)?,
            None => read::all_host_threads(),
        };
        Ok(Where::Simulated(self.machine.bench()?, workers))
    }
}

impl TransferRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let timed = match &self.on {
            Where::Simulated(bench, workers) => self.simulated(bench, *workers)?,
            Where::Host(host) => host_transfer::rows(host, &self.transfers)?,
        };
        let row = |(machine, transfer, ns): ([Cell; 3], Transfer, f64)| {
            let setting = [
                Cell::text(transfer.placement),
                Cell::text(transfer.direction),
                Cell::text(transfer.flush),
                Cell::text(transfer.home),
                Cell::text(super::predict::Reuse::of(transfer.reuses)),
                Cell::Count(transfer.message_bytes),
                Cell::Count(transfer.chunk_bytes),
                Cell::Count(transfer.ring.into()),
                Cell::real(ns / 1e3),
                Cell::real(transfer.message_bytes as f64 / ns),
            ];
            let version = Cell::text(env!("CARGO_PKG_VERSION"));
            [version]
                .into_iter()
                .chain(machine)
                .chain(setting)
                .collect()
        };
        let rows: Vec<Vec<Cell>> = timed.into_iter().map(row).collect();
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }

    /// The name, hash and overrides of the machine, each transfer, and its time (ns).
    fn simulated(
        &self,
        bench: &Bench,
        workers: usize,
    ) -> Result<Vec<([Cell; 3], Transfer, f64)>, Stop> {
        let times = over(
            &self.transfers,
            workers,
            |transfer| transfer.message_bytes,
            |transfer| transfer.time(bench),
        );
        let on = On::new(bench.machine());
        let machine = [&on.machine, &on.machine_hash, &on.set].map(Cell::text);
        let timed = self.transfers.iter().zip(times).map(|(&transfer, time)| {
            let time = time.map_err(stopped)?;
            Ok((machine.clone(), transfer, time.as_ns()))
        });
        timed.collect()
    }
}
