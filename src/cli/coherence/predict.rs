//! `sme coherence predict`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read::{self, Values};
use crate::coherence::model::{
    Buffer, Chunks, Flush, Ports, PredictError, Prediction, SharedBuffer, Transfer,
};
use crate::coherence::table::{LookupError, MAX_BUFFER_BYTES, Table};
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line};

/// The flags of `sme coherence predict`.
#[derive(Args, Clone, Debug)]
pub struct PredictFlags {
    /// The throughput table: JSON lines, of one machine
    #[arg(long, value_name = "FILE")]
    table: PathBuf,
    /// Sizes of the message in bytes (a list such as 65536,1048576 or 32768..4194304*2)
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    size: String,
    /// Size of a chunk in bytes; Open MPI has 32768, MPICH 65536
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "32768",
        allow_negative_numbers = true
    )]
    chunk: String,
    /// Where the two cores are: socket (the same) or remote (different ones)
    #[arg(long, value_name = "NAME", default_value = "socket")]
    placement: String,
    /// Which application buffers were used shortly before: both, sender, receiver or none; others
    /// are in memory
    #[arg(long, value_name = "NAME", default_value = "both")]
    reuse: String,
    /// The shared buffer in the sender's cache: shared (SHS), owned (SHO, MOESI in one direction)
    /// or modified (SHM, where the store buffer hides the invalidation of the receiver's copy)
    #[arg(long, value_name = "NAME", default_value = "shared")]
    shared_buffer: String,
    /// Who writes copies of the shared buffer back: none, sender, receiver (whose time for that is
    /// not counted) or non-temporal (the sender's stores go to memory)
    #[arg(long, value_name = "NAME", default_value = "none")]
    flush: String,
    /// Loads and stores of a copy take turns at one port (instead of overlapping)
    #[arg(long)]
    shared_port: bool,
    #[command(flatten)]
    file: FileFlags,
}

/// The application buffers that are reused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reuse {
    Both,
    Sender,
    Receiver,
    None,
}

sme_barrier::names!(Reuse, "reuse", {
    Both => "both",
    Sender => "sender",
    Receiver => "receiver",
    None => "none",
});

impl Reuse {
    /// Of the sender's buffer and of the receiver's.
    pub(super) fn of(sides: (bool, bool)) -> Self {
        match sides {
            (true, true) => Self::Both,
            (true, false) => Self::Sender,
            (false, true) => Self::Receiver,
            (false, false) => Self::None,
        }
    }

    /// Whether the sender's buffer is reused, and whether the receiver's is.
    pub(super) fn of_sides(self) -> (bool, bool) {
        let [sender, receiver] = self.buffers();
        (sender == Buffer::Reused, receiver == Buffer::Reused)
    }

    /// The sender's buffer and the receiver's.
    fn buffers(self) -> [Buffer; 2] {
        match self {
            Self::Both => [Buffer::Reused, Buffer::Reused],
            Self::Sender => [Buffer::Reused, Buffer::NotReused],
            Self::Receiver => [Buffer::NotReused, Buffer::Reused],
            Self::None => [Buffer::NotReused, Buffer::NotReused],
        }
    }
}

/// Predictions whose flags fit together.
#[derive(Debug)]
pub(super) struct PredictRun {
    table: Table,
    transfer: Transfer,
    messages: Vec<Chunks>,
    file: FileFlags,
}

const HEADING: [&str; 8] = [
    "machine",
    "message_bytes",
    "chunk_bytes",
    "chunks",
    "sequential_gb_per_s",
    "parallel_gb_per_s",
    "pipelined_gb_per_s",
    "bound_by",
];

impl PredictFlags {
    pub(super) fn read(&self) -> Result<PredictRun, Stop> {
        let messages = sizes("--size", &self.size, Values::Many)?;
        let chunk = read::one("--chunk", sizes("--chunk", &self.chunk, Values::One)?)?;
        let reuse: Reuse = read::name("--reuse", &self.reuse)?;
        let [sender, receiver] = reuse.buffers();
        let transfer = Transfer {
            placement: read::name("--placement", &self.placement)?,
            sender,
            receiver,
            shared: read::name::<SharedBuffer>("--shared-buffer", &self.shared_buffer)?,
            flush: read::name::<Flush>("--flush", &self.flush)?,
            ports: match self.shared_port {
                true => Ports::Shared,
                false => Ports::Separate,
            },
        };
        if let Err(error) = transfer.steps() {
            return Err(Stop::flag(&format!("--flush {}", self.flush), error));
        }
        // Its message names the file, and the line where there is one.
        let table =
            Table::read(&self.table).map_err(|error| Stop::Input(one_line(&error.to_string())))?;
        Ok(PredictRun {
            table,
            transfer,
            messages: (messages.into_iter())
                .map(|size| Chunks::new(size, chunk))
                .collect(),
            file: self.file.clone(),
        })
    }
}

/// Reads sizes in bytes, each from 1 to what a table can have.
fn sizes(flag: &str, text: &str, values: Values) -> Result<Vec<NonZero<u64>>, Stop> {
    let sizes = read::numbers(flag, text, 1, MAX_BUFFER_BYTES, values)?;
    // The list has kept the bounds.
    Ok(sizes.into_iter().filter_map(NonZero::new).collect())
}

impl PredictRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let mut rows = Vec::with_capacity(self.messages.len());
        for &chunks in &self.messages {
            let predicted = self.transfer.predict(&self.table, chunks);
            rows.push(self.row(predicted.map_err(|error| self.refused(chunks, &error))?));
        }
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }

    /// The flag that asks for what the table does not have.
    fn refused(&self, chunks: Chunks, error: &PredictError) -> Stop {
        let flag = match error {
            PredictError::Lookup(LookupError::Size { .. }) => {
                format!("--size {}", chunks.message_bytes())
            }
            PredictError::Lookup(LookupError::Curve(curve))
                if !self
                    .table
                    .curves()
                    .any(|known| known.holder() == curve.holder()) =>
            {
                format!("--placement {}", self.transfer.placement)
            }
            _ => "--table".to_owned(),
        };
        Stop::flag(&flag, error)
    }

    fn row(&self, predicted: Prediction) -> Vec<Cell> {
        let chunks = predicted.chunks;
        vec![
            Cell::text(self.table.machine()),
            Cell::Count(chunks.message_bytes()),
            Cell::Count(chunks.chunk_bytes()),
            Cell::Count(chunks.count()),
            Cell::real(predicted.sequential_gb_per_s),
            Cell::real(predicted.parallel_gb_per_s),
            Cell::real(predicted.pipelined_gb_per_s),
            Cell::text(predicted.bound_by),
        ]
    }
}
