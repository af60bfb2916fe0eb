//! `sme coherence bench`.

use clap::Args;

use super::simulated::{CoherentFlags, sizes, stopped};
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read::{self, Values};
use crate::coherence::bench::Bench;
use crate::coherence::table::{HEADING, Row};
use crate::coherence::transition::{Curve, Transition};
use crate::progress::{self, Watch};
use crate::report::output::Output;
use crate::report::stop::Stop;
use crate::validate::measure::over;

/// The flags of `sme coherence bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchFlags {
    #[command(flatten)]
    machine: CoherentFlags,
    /// Sizes of the buffer in bytes (multiples of 64)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "16384..8388608*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// Which accesses are measured, such as LMM,SHS [default: all that the machine has]
    #[arg(long, value_name = "NAMES")]
    transitions: Option<String>,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    #[command(flatten)]
    file: FileFlags,
}

/// Benchmarks whose flags fit together.
#[derive(Debug)]
pub(super) struct BenchRun {
    bench: Bench,
    points: Vec<(Curve, u64)>,
    workers: usize,
    file: FileFlags,
}

impl BenchFlags {
    pub(super) fn read(&self) -> Result<BenchRun, Stop> {
        let bench = self.machine.bench()?;
        let sizes = sizes("--sizes", &self.sizes, 64, Values::Many)?;
        let mut curves = bench.curves();
        if let Some(text) = &self.transitions {
            let flag = "--transitions";
            let mut wanted: Vec<Transition> = Vec::new();
            for word in read::words(flag, text, Values::Many)? {
                let transition: Transition =
                    word.parse().map_err(|error| Stop::flag(flag, error))?;
                if !curves.iter().any(|curve| curve.transition() == transition) {
                    let machine = bench.machine().name();
                    let reason = format!("machine {machine} has no {transition}");
                    return Err(Stop::flag(flag, reason));
                }
                wanted.push(transition);
            }
            curves.retain(|curve| wanted.contains(&curve.transition()));
        }
        let of = |&curve: &Curve| sizes.iter().map(move |&bytes| (curve, bytes));
        Ok(BenchRun {
            points: curves.iter().flat_map(of).collect(),
            bench,
            workers: match &self.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            file: self.file.clone(),
        })
    }
}

impl BenchRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let watch = progress::on_stderr();
        let watch: &dyn Watch = watch.as_ref();
        watch.begin("rows", self.points.len() as u64);
        let rates = over(
            &self.points,
            self.workers,
            |(_, bytes)| *bytes,
            |&(curve, bytes)| {
                let rate = self.bench.throughput(curve, bytes);
                watch.advance(1);
                rate
            },
        );
        watch.end();
        let machine = self.bench.name();
        let mut rows = Vec::with_capacity(self.points.len());
        for (&(curve, bytes), rate) in self.points.iter().zip(rates) {
            let rate = rate.map_err(stopped)?;
            rows.push(Row::new(machine.as_str(), curve, bytes, rate).cells());
        }
        output.push(&self.file.rendered(&HEADING, &rows)?)?;
        output.commit()
    }
}
