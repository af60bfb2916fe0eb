//! `sme coherence tune`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

use super::simulated::{CoherentFlags, sizes, stopped};
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read::{self, Values};
use crate::coherence::bench::{Bench, BenchError};
use crate::coherence::model::{Flush, Ports};
use crate::coherence::table::Table;
use crate::coherence::tune::{Search, Setting};
use crate::progress::{self, Watch};
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line};
use crate::validate::measure::over;

/// The flags of `sme coherence tune`.
#[derive(Args, Clone, Debug)]
pub struct TuneFlags {
    #[command(flatten)]
    machine: CoherentFlags,
    /// Predict from this throughput table alone, and simulate nothing
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Size of the message in bytes, a multiple of 64
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "262144",
        allow_negative_numbers = true
    )]
    size: String,
    /// Where the two cores are: socket (the same) or remote (different ones)
    #[arg(long, value_name = "NAME", default_value = "socket")]
    placement: String,
    /// Sizes of chunks in bytes (multiples of 64)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "8192..131072*2",
        allow_negative_numbers = true
    )]
    chunks: String,
    /// Numbers of chunks of a ring
    #[arg(
        long,
        value_name = "LIST",
        default_value = "2..16*2",
        allow_negative_numbers = true
    )]
    rings: String,
    /// Settings that are shown: so many of the best, beside Open MPI's
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        allow_negative_numbers = true
    )]
    best: String,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// A search whose flags fit together.
#[derive(Debug)]
pub(super) struct TuneRun {
    bench: Option<Bench>,
    table: Option<Table>,
    search: Search,
    best: usize,
    workers: usize,
    file: FileFlags,
}

/// A setting that was tried.
struct Tried {
    setting: Setting,
    predicted: f64,
    simulated: Option<f64>,
}

impl Tried {
    /// The throughput that decides.
    fn rate(&self) -> f64 {
        self.simulated.unwrap_or(self.predicted)
    }
}

const HEADING: [&str; 11] = [
    "machine",
    "message_bytes",
    "placement",
    "chunk_bytes",
    "ring_chunks",
    "direction",
    "flush",
    "predicted_gb_per_s",
    "predicted_gain",
    "simulated_gb_per_s",
    "simulated_gain",
];

impl TuneFlags {
    pub(super) fn read(&self) -> Result<TuneRun, Stop> {
        let lists = |flag, text, values| {
            let list = sizes(flag, text, 64, values)?;
            // None is zero: each is a multiple of 64, and at least that.
            Ok::<_, Stop>(
                list.into_iter()
                    .filter_map(NonZero::new)
                    .collect::<Vec<_>>(),
            )
        };
        let rings = read::counts("--rings", &self.rings, 1, 1 << 16, Values::Many)?;
        let search = Search {
            placement: read::name("--placement", &self.placement)?,
            message_bytes: read::one("--size", lists("--size", &self.size, Values::One)?)?,
            chunks: lists("--chunks", &self.chunks, Values::Many)?,
            rings,
        };
        let table = self.table.as_ref().map(|path| {
            Table::read(path).map_err(|error| Stop::Input(one_line(&error.to_string())))
        });
        let table = table.transpose()?;
        let best = read::numbers("--best", &self.best, 1, 1 << 20, Values::One)?;
        Ok(TuneRun {
            bench: match table {
                Some(_) => None,
                None => Some(self.machine.bench()?),
            },
            table,
            search,
            best: read::one("--best", best)? as usize,
            workers: match &self.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            file: self.file.clone(),
        })
    }
}

impl TuneRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let table = match (&self.table, &self.bench) {
            (Some(table), _) => table.clone(),
            (None, Some(bench)) => {
                let rows = self.search.rows(bench, Flush::ALL).map_err(refused)?;
                Table::new(rows).map_err(|error| Stop::Failed(one_line(&error.to_string())))?
            }
            (None, None) => return Err(Stop::Failed("neither a table nor a machine".into())),
        };
        let mut tried = self.tried(&table)?;
        let first = tried.remove(0);
        // The sort keeps the order of equals: the smaller ring and chunk first.
        tried.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        tried.truncate(self.best);
        let rows: Vec<Vec<Cell>> = (tried.iter().chain([&first]))
            .map(|one| self.row(&table, one, &first))
            .collect();
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }

    /// All settings, Open MPI's first.
    fn tried(&self, table: &Table) -> Result<Vec<Tried>, Stop> {
        let settings = self.search.settings();
        let watch = progress::on_stderr();
        let watch: &dyn Watch = watch.as_ref();
        watch.begin("settings", settings.len() as u64);
        let simulated = over(
            &settings,
            self.workers,
            |_| 1,
            |&setting| {
                let rate = self
                    .bench
                    .as_ref()
                    .map(|bench| self.search.simulated(bench, setting));
                watch.advance(1);
                rate.transpose()
            },
        );
        watch.end();
        let mut tried = Vec::with_capacity(settings.len());
        for (setting, simulated) in settings.into_iter().zip(simulated) {
            let predicted = self.search.predicted(table, setting, Ports::Separate);
            tried.push(Tried {
                setting,
                predicted: predicted
                    .map_err(|error| Stop::flag("--table", error))?
                    .pipelined_gb_per_s,
                simulated: simulated.map_err(refused)?,
            });
        }
        Ok(tried)
    }

    fn row(&self, table: &Table, one: &Tried, first: &Tried) -> Vec<Cell> {
        let Setting {
            chunk_bytes,
            ring,
            direction,
            flush,
        } = one.setting;
        let gain = |rate: f64, of: f64| Cell::real(rate / of);
        let simulated = one.simulated.zip(first.simulated);
        vec![
            Cell::text(table.machine()),
            Cell::Count(self.search.message_bytes.get()),
            Cell::text(self.search.placement),
            Cell::Count(chunk_bytes.get()),
            Cell::Count(ring.into()),
            Cell::text(direction),
            Cell::text(flush),
            Cell::real(one.predicted),
            gain(one.predicted, first.predicted),
            one.simulated.map_or(Cell::Absent, Cell::real),
            simulated.map_or(Cell::Absent, |(rate, of)| gain(rate, of)),
        ]
    }
}

fn refused(error: BenchError) -> Stop {
    match error {
        BenchError::Size { .. } => Stop::flag("--size, --chunks or --rings", error),
        other => stopped(other),
    }
}
