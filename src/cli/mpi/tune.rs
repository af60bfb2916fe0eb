//! `sme mpi tune`.

use clap::Args;

use super::{HEAD, MpiJob, channel_of_mpi, estimate, head, jobs, ranks, rounds, stop};
use crate::cli::args;
use crate::cli::flags::{FileFlags, Heading, MachineFlags};
use crate::cli::memory;
use crate::cli::read::{self, Values};
use crate::messages::pingpong::data_end;
use crate::messages::tune::{Threshold, Tuned, Tuning, most_bytes};
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::{Cell, rendered};
use crate::report::stop::Stop;

/// The flags of `sme mpi tune`.
#[derive(Args, Clone, Debug)]
pub struct TuneFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The channel that carries the messages: sccmpb, sccshm, sections, registered, chunks or
    /// queues [default: sccmpb on a chip with message passing buffers, queues on one with networks
    /// between its memories, chunks where all memory is coherent, else sections]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Ranks of the job; they fill one node after the other [default: all cores, at most 48]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<String>,
    /// The rank to which rank 0 sends [default: the last]
    #[arg(long, value_name = "RANK", allow_negative_numbers = true)]
    partner: Option<String>,
    /// The longest message in bytes, a multiple of 8 [default: 65536, or what fits into memory]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    most: Option<String>,
    /// Rounds of each ping-pong that count; two more come first
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        allow_negative_numbers = true
    )]
    rounds: String,
    #[command(flatten)]
    file: FileFlags,
}

/// The longest message that may be asked about, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The command whose flags fit together.
#[derive(Debug)]
pub(super) struct TuneRun {
    tuning: Tuning,
    file: FileFlags,
}

impl TuneFlags {
    pub(super) fn read(&self) -> Result<TuneRun, Stop> {
        let machine = args::machine(&self.machine)?;
        let library = channel_of_mpi(self.channel.as_ref(), &machine)?;
        let ranks = read::one(
            "--ranks",
            ranks(self.ranks.as_ref(), &machine, Values::One)?,
        )?;
        let partner = match &self.partner {
            None => ranks - 1,
            Some(text) => {
                let flag = "--partner";
                read::one(flag, read::counts(flag, text, 1, ranks - 1, Values::One)?)?
            }
        };
        let rounds = rounds("--rounds", &self.rounds)?;
        let job = read::one("--ranks", jobs((machine, library), vec![ranks], 1))?;
        job.check().map_err(stop)?;
        let most_bytes = match &self.most {
            None => most_bytes(&job),
            Some(text) => {
                let flag = "--most";
                let bytes = read::numbers(flag, text, 64, MOST_BYTES, Values::One)?;
                let bytes = read::one(flag, bytes)?;
                if !bytes.is_multiple_of(8) {
                    return Err(Stop::flag(flag, format!("{bytes} is not a multiple of 8")));
                }
                bytes
            }
        };
        job.holds(data_end(&job, most_bytes)).map_err(stop)?;
        let needed = estimate::of_job(&job, estimate::PARTNERS);
        memory::enough(&format!("--ranks {ranks}"), needed, memory::available())?;
        let tuning = Tuning {
            job,
            ranks: (0, partner),
            most_bytes,
            rounds,
        };
        let file = self.file.clone();
        Ok(TuneRun { tuning, file })
    }
}

impl MpiJob for TuneRun {
    fn heading(&self) -> Option<Heading> {
        Some(self.file.heading(&keys(), false))
    }

    fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let tuned = self.tuning.run().map_err(stop)?;
        let format = self.file.format();
        output.push(&self.thresholds(&tuned)?)?;
        if format == Format::Table {
            output.push(&format!("\n{}", lines(&tuned)))?;
        }
        output.commit()
    }
}

impl TuneRun {
    /// A row for each threshold: by the lines, and simulated.
    fn thresholds(&self, tuned: &[Tuned]) -> Result<String, Stop> {
        let mut rows = Vec::new();
        for Tuned {
            aim,
            by_lines,
            simulated,
            ..
        } in tuned
        {
            for (by, thresholds) in [("lines", by_lines), ("simulation", simulated)] {
                for &Threshold { from_bytes, way } in thresholds {
                    let mut row = head(&self.tuning.job);
                    row.extend([
                        Cell::text(aim),
                        Cell::text(by),
                        Cell::Count(from_bytes.ceil() as u64),
                        Cell::text(way),
                    ]);
                    rows.push(row);
                }
            }
        }
        self.file.rendered(&keys(), &rows)
    }
}

/// The keys of a row.
fn keys() -> Vec<&'static str> {
    let keys = ["aim", "by", "from_bytes", "mode"];
    HEAD.iter().copied().chain(keys).collect()
}

/// The lines of all ways.
fn lines(tuned: &[Tuned]) -> String {
    let mut rows = Vec::new();
    for Tuned { aim, lines, .. } in tuned {
        rows.extend(lines.iter().map(|(way, line)| {
            vec![
                Cell::text(aim),
                Cell::text(way),
                Cell::real(line.per_byte * 1e3),
                Cell::real(line.fixed),
            ]
        }));
    }
    rendered(
        &["aim", "mode", "k_ns_per_byte", "h_us"],
        &rows,
        Format::Table,
    )
}
