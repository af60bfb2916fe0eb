//! `sme coherence curves`.

mod chart;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sme_sim::machine::Machine;

use super::simulated::{CoherentFlags, bench, sizes, stopped};
use crate::cli::charts::Charts;
use crate::cli::flags::{FileFlags, Heading};
use crate::cli::read::{self, Values};
use crate::coherence::bench::Bench;
use crate::coherence::figures::{self, Figure};
use crate::coherence::point::{Node, What};
use crate::progress::{self, Watch};
use crate::report::output::{self, Output};
use crate::report::row::Cell;
use crate::report::stop::{Stop, to_stderr};
use crate::validate::measure::over;
use crate::validate::papers::On;

/// The flags of `sme coherence curves`.
#[derive(Args, Clone, Debug)]
pub struct CurvesFlags {
    /// Which figures of the paper: 2, 4, 5, 6, 8, 9, 10, 12, 13, 14 [default: all]
    #[arg(long, value_name = "LIST", allow_negative_numbers = true)]
    paper: Option<String>,
    /// A machine whose nodes are coherent: xeon-e5-2650, opteron-6272, or a file [default: the one
    /// of each figure]
    #[arg(id = "machine", long = "machine", value_name = "NAME|FILE.toml")]
    machine: Option<String>,
    /// Override a constant of that machine, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE", requires = "machine")]
    set: Vec<String>,
    /// Sizes in bytes of buffers and messages (multiples of 64)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "4096..16777216*2",
        allow_negative_numbers = true
    )]
    sizes: String,
    /// How many threads of this computer simulate [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    workers: Option<String>,
    /// Draw each figure: coherence-2.svg and so on, and all of them in coherence.svg, in this
    /// directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Output")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    file: FileFlags,
}

/// Figures whose flags fit together.
#[derive(Debug)]
pub(super) struct CurvesRun {
    /// Each with the machine that it is simulated on.
    figures: Vec<(Figure, Arc<Bench>)>,
    sizes: Vec<u64>,
    workers: usize,
    directory: Option<PathBuf>,
    file: FileFlags,
}

/// A figure with its throughputs, size by size and line by line.
struct Simulated<'f> {
    figure: &'f Figure,
    on: On,
    rates: Vec<(u64, Vec<Option<f64>>)>,
}

const HEADING: [&str; 9] = [
    "version",
    "figure",
    "machine",
    "machine_hash",
    "set",
    "line",
    "source",
    "size_bytes",
    "gb_per_s",
];

/// The name of the file of one figure, or of all.
fn file_name(number: Option<u32>) -> String {
    match number {
        Some(number) => format!("coherence-{number}.svg"),
        None => "coherence.svg".into(),
    }
}

impl CurvesFlags {
    pub(super) fn read(&self) -> Result<CurvesRun, Stop> {
        let sizes = sizes("--sizes", &self.sizes, 64, Values::Many)?;
        let mut figures = figures::all().map_err(|error| Stop::Failed(error.to_string()))?;
        if let Some(text) = &self.paper {
            let wanted = read::counts("--paper", text, 1, 99, Values::Many)?;
            let numbers: Vec<u32> = figures.iter().map(|figure| figure.number).collect();
            if let Some(other) = wanted.iter().find(|number| !numbers.contains(number)) {
                let why = format!("figure {other} shows no throughputs; 2, 4 or 14 does");
                return Err(Stop::flag("--paper", why));
            }
            figures.retain(|figure| wanted.contains(&figure.number));
        }
        let figures = self.with_machines(figures)?;
        if let Some(directory) = &self.figures {
            let numbers = figures.iter().map(|(figure, _)| Some(figure.number));
            for number in numbers.chain([None]) {
                output::distinct(&[
                    ("-o", self.file.output.as_deref()),
                    ("--figures", Some(&directory.join(file_name(number)))),
                ])?;
            }
        }
        Ok(CurvesRun {
            figures,
            sizes,
            workers: match &self.workers {
                Some(text) => read::host_threads("--workers", text)?,
                None => read::all_host_threads(),
            },
            directory: self.figures.clone(),
            file: self.file.clone(),
        })
    }

    /// Each with its machine; without those that a machine that is named cannot have, unless these
    /// are named, too.
    fn with_machines(&self, figures: Vec<Figure>) -> Result<Vec<(Figure, Arc<Bench>)>, Stop> {
        let Some(name) = &self.machine else {
            let built_in = |node: Node| {
                let machine = Machine::load(node.machine());
                let machine = machine.map_err(|error| Stop::Failed(error.to_string()))?;
                bench("--machine", machine).map(Arc::new)
            };
            let (intel, amd) = (built_in(Node::Intel)?, built_in(Node::Amd)?);
            let with = |figure: Figure| {
                let bench = match figure.node {
                    Node::Intel => &intel,
                    Node::Amd => &amd,
                };
                let bench = Arc::clone(bench);
                (figure, bench)
            };
            return Ok(figures.into_iter().map(with).collect());
        };
        let flags = CoherentFlags::new(name, &self.set);
        let bench = Arc::new(flags.bench()?);
        let mut kept = Vec::new();
        for figure in figures {
            let number = figure.number;
            match figure.fits(&bench) {
                Ok(()) => kept.push((figure, Arc::clone(&bench))),
                Err(error) if self.paper.is_some() => return Err(stopped(error)),
                Err(error) => to_stderr(&format!("left out: figure {number}: {error}\n")),
            }
        }
        match kept.is_empty() {
            true => Err(Stop::flag(
                "--machine",
                format!("{name} can have no figure"),
            )),
            false => Ok(kept),
        }
    }
}

impl CurvesRun {
    /// The keys of its rows.
    pub(super) fn heading(&self) -> Heading {
        self.file.heading(&HEADING, false)
    }

    pub(super) fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.file.output.as_deref())?;
        let numbers = self.figures.iter().map(|(figure, _)| Some(figure.number));
        let names = numbers.chain([None]).map(file_name);
        let charts = Charts::open(self.directory.as_deref(), names)?;
        let simulated = self.simulate()?;
        output.push(&self.file.rendered(&HEADING, &rows(&simulated))?)?;
        if !charts.is_empty() {
            let drawn = chart::drawn(&simulated)?.into_iter();
            let named = drawn.map(|(number, svg)| (file_name(number), svg));
            charts.write(&named.collect::<Vec<_>>())?;
        }
        output.commit()
    }

    /// The throughputs of each experiment, by size.
    fn rates(&self, experiments: &[(&Bench, What)]) -> Result<Vec<Vec<f64>>, Stop> {
        let of = |&(bench, what)| self.sizes.iter().map(move |&bytes| (bench, what, bytes));
        let points: Vec<(&Bench, What, u64)> = experiments.iter().flat_map(of).collect();
        let watch = progress::on_stderr();
        let watch: &dyn Watch = watch.as_ref();
        watch.begin("points", points.len() as u64);
        let cost = |(_, what, bytes): &(&Bench, What, u64)| what.cost(*bytes);
        let rates = over(&points, self.workers, cost, |&(bench, what, bytes)| {
            let rate = what.gb_per_s(bench, bytes);
            watch.advance(1);
            rate
        });
        watch.end();
        let rates = rates.into_iter().collect::<Result<Vec<f64>, _>>();
        let rates = rates.map_err(stopped)?;
        Ok(rates
            .chunks(self.sizes.len())
            .map(<[f64]>::to_vec)
            .collect())
    }

    fn simulate(&self) -> Result<Vec<Simulated<'_>>, Stop> {
        // Figures have experiments in common.
        let mut experiments: Vec<(&Bench, What)> = Vec::new();
        let find = |experiments: &[(&Bench, What)], bench: &Bench, what: What| {
            let mut known = experiments.iter();
            known.position(|&(other, of)| std::ptr::eq(other, bench) && of == what)
        };
        for (figure, bench) in &self.figures {
            for what in figure.needs() {
                if find(&experiments, bench, what).is_none() {
                    experiments.push((bench, what));
                }
            }
        }
        let rates = self.rates(&experiments)?;
        let mut simulated = Vec::new();
        for (figure, bench) in &self.figures {
            let needs = figure.needs().into_iter();
            let places = needs.filter_map(|what| find(&experiments, bench, what));
            let of_needs: Vec<&Vec<f64>> = places.map(|place| &rates[place]).collect();
            let mut by_size = Vec::new();
            for (index, &bytes) in self.sizes.iter().enumerate() {
                let measured: Vec<f64> = of_needs.iter().map(|of| of[index]).collect();
                let rates = figure.rates(bytes, &measured);
                by_size.push((
                    bytes,
                    rates.map_err(|error| Stop::Failed(error.to_string()))?,
                ));
            }
            simulated.push(Simulated {
                figure,
                on: On::new(bench.machine()),
                rates: by_size,
            });
        }
        Ok(simulated)
    }
}

fn rows(simulated: &[Simulated<'_>]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for Simulated { figure, on, rates } in simulated {
        for (index, line) in figure.lines.iter().enumerate() {
            let there = rates
                .iter()
                .filter_map(|(bytes, rates)| Some((*bytes, rates[index]?)));
            rows.extend(there.map(|(bytes, rate)| {
                vec![
                    Cell::text(env!("CARGO_PKG_VERSION")),
                    Cell::Count(figure.number.into()),
                    Cell::text(&on.machine),
                    Cell::text(&on.machine_hash),
                    Cell::text(&on.set),
                    Cell::text(line.name),
                    Cell::text(line.source.name()),
                    Cell::Count(bytes),
                    Cell::real(rate),
                ]
            }));
        }
    }
    rows
}
