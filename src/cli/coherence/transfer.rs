//! `sme coherence transfer`.

use clap::Args;

use super::simulated::{CoherentFlags, sizes, stopped};
use crate::cli::flags::FileFlags;
use crate::cli::read::{self, Values};
use crate::coherence::bench::Bench;
use crate::coherence::model::Flush;
use crate::coherence::transfer::{Direction, Home, Transfer};
use crate::coherence::transition::Placement;
use crate::report::output::Output;
use crate::report::row::{Cell, rendered};
use crate::report::stop::Stop;
use crate::validate::measure::over;
use crate::validate::papers::On;

/// The flags of `sme coherence transfer`.
#[derive(Args, Clone, Debug)]
pub struct TransferFlags {
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
    /// Whether a chunk goes the same way every time, or in alternating directions: same or
    /// alternating
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
    #[command(flatten)]
    file: FileFlags,
}

/// Transfers whose flags fit together.
#[derive(Debug)]
pub(super) struct TransferRun {
    bench: Bench,
    transfers: Vec<Transfer>,
    workers: usize,
    file: FileFlags,
}

const HEADING: [&str; 13] = [
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
        let bench = self.machine.bench()?;
        let messages = sizes("--sizes", &self.sizes, 64, Values::Many)?;
        let chunk = read::one("--chunk", sizes("--chunk", &self.chunk, 64, Values::One)?)?;
        let ring = read::numbers("--ring", &self.ring, 1, MOST_CHUNKS, Values::One)?;
        let ring = read::one("--ring", ring)? as u32;
        let placement: Placement = read::name("--placement", &self.placement)?;
        let reuse: super::predict::Reuse = read::name("--reuse", &self.reuse)?;
        let plain = Transfer {
            chunk_bytes: chunk,
            ring,
            direction: read::name::<Direction>("--direction", &self.direction)?,
            flush: read::name::<Flush>("--flush", &self.flush)?,
            home: read::name::<Home>("--home", &self.home)?,
            reuses: reuse.of_sides(),
            ..Transfer::of_open_mpi(placement, chunk)
        };
        let transfers = messages.into_iter().map(|message_bytes| Transfer {
            message_bytes,
            ..plain
        });
        let transfers: Vec<Transfer> = transfers.collect();
        for transfer in &transfers {
            transfer
                .check()
                .map_err(|error| Stop::flag("--ring", error))?;
        }
        Ok(TransferRun {
            bench,
            transfers,
            workers: match &self.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            file: self.file.clone(),
        })
    }
}

impl TransferRun {
    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let times = over(
            &self.transfers,
            self.workers,
            |transfer| transfer.message_bytes,
            |transfer| transfer.time(&self.bench),
        );
        let on = On::new(self.bench.machine());
        let mut rows = Vec::with_capacity(times.len());
        for (transfer, time) in self.transfers.iter().zip(times) {
            let time = time.map_err(stopped)?;
            rows.push(vec![
                Cell::text(&on.machine),
                Cell::text(&on.machine_hash),
                Cell::text(&on.set),
                Cell::text(transfer.placement),
                Cell::text(transfer.direction),
                Cell::text(transfer.flush),
                Cell::text(transfer.home),
                Cell::text(super::predict::Reuse::of(transfer.reuses)),
                Cell::Count(transfer.message_bytes),
                Cell::Count(transfer.chunk_bytes),
                Cell::Count(transfer.ring.into()),
                Cell::real(time.as_us()),
                Cell::real(transfer.message_bytes as f64 / time.as_ns()),
            ]);
        }
        output.push(&rendered(&HEADING, &rows, self.file.format()))?;
        output.commit()
    }
}
