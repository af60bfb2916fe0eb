//! `sme rtl lockstep`: RTL and cycle model under the same traffic, every output of every port
//! compared in every cycle.
//!
//! Long runs are made of shorter ones, each with the next seed and therefore other sizes, loads and
//! traffic. The first difference ends everything.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use sme_hdl::bench::Bench;
use sme_hdl::lockstep::shortest::{Failing, compact, shortest};
use sme_hdl::lockstep::{Pair, vcd};
use sme_hdl::verilated::Toolchain;

use super::super::flags::FileFlags;
use super::super::names;
use super::super::output::{self, Output};
use super::super::read;
use super::super::row::{Cell, rendered};
use super::super::stop::{Stop, to_stderr};
use crate::progress;

/// The flags of `sme rtl lockstep`.
#[derive(Args, Clone, Debug)]
pub struct LockstepFlags {
    /// Blocks, e.g. switch,link_port, or all
    #[arg(long, value_name = "NAME", default_value = super::ALL)]
    block: String,
    /// Cycles of each block
    #[arg(
        long,
        value_name = "N",
        default_value = "100000",
        allow_negative_numbers = true
    )]
    cycles: String,
    /// Seed of traffic and sizes; every 20000 cycles the next seed begins
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true
    )]
    seed: String,
    /// What runs beside the cycle model: the RTL as it is written, or its Verilog in Verilator
    #[arg(long, value_name = "NAME", default_value = "rtl")]
    engine: RtlEngine,
    /// Break the RTL, to see that it is found out: the name of a broken variant of the block
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Waveform of the last 200 cycles before a difference [default: lockstep-BLOCK.vcd]
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    #[command(flatten)]
    output: FileFlags,
}

/// What the RTL runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RtlEngine {
    /// rust-hdl's simulation.
    Rtl,
    /// The generated Verilog, compiled by Verilator.
    Verilated,
}

/// The most cycles of a run.
const MAX_CYCLES: u64 = 1_000_000_000_000;

/// Cycles after which the next seed begins.
const CYCLES_OF_A_SEED: u64 = 20_000;

/// How many other seeds are tried for a shorter run, and for how many cycles in all.
const SHORTEST_SEEDS: u64 = 200;
const SHORTEST_CYCLES: u64 = 100_000;

/// Cycles of the shortest run that are printed.
const SHOWN_CYCLES: usize = 24;

/// Flags that fit together.
#[derive(Debug)]
pub struct LockstepRun {
    blocks: Vec<&'static Bench>,
    cycles: u64,
    seed: u64,
    engine: RtlEngine,
    fault: Option<&'static str>,
    vcd: Option<PathBuf>,
    output: FileFlags,
}

/// What came out of a block's runs.
struct Compared {
    cycles: u64,
    transactions: u64,
    failing: Option<Failing>,
}

impl LockstepRun {
    /// Reads the flags.
    pub fn read(flags: &LockstepFlags) -> Result<Self, Stop> {
        let blocks = super::blocks(&flags.block)?;
        let fault = match &flags.fault {
            None => None,
            Some(_) if flags.engine == RtlEngine::Verilated => {
                return Err(Stop::flag("--fault", "only with --engine rtl"));
            }
            Some(text) => Some(fault(text, &blocks)?),
        };
        for bench in &blocks {
            let waveform = waveform(flags.vcd.as_deref(), bench);
            let rows = ("-o", flags.output.output.as_deref());
            output::distinct(&[("--vcd", Some(&waveform)), rows])?;
        }
        Ok(Self {
            cycles: super::cycles(&flags.cycles, MAX_CYCLES)?,
            seed: read::seed(&flags.seed)?,
            engine: flags.engine,
            vcd: flags.vcd.clone(),
            output: flags.output.clone(),
            blocks,
            fault,
        })
    }

    /// Runs, and writes a row for each block; at a difference also the waveform, and to stderr the
    /// shortest traffic that shows it.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.output.output.as_deref())?;
        // An impossible place is known before the run, not after it.
        let vcd = self.vcd.as_deref().map(|path| Output::file("--vcd", path));
        let mut vcd = vcd.transpose()?;
        let mut rows = Vec::new();
        let mut failed = Ok(());
        for bench in &self.blocks {
            let pair = self.builder(bench)?;
            let compared = self.compare(bench, &pair);
            rows.push(vec![
                Cell::text(env!("CARGO_PKG_VERSION")),
                Cell::text(bench.name),
                Cell::text(match self.engine {
                    RtlEngine::Rtl => "rtl",
                    RtlEngine::Verilated => "verilated",
                }),
                Cell::Count(self.seed),
                Cell::Count(compared.cycles),
                Cell::Count(compared.transactions),
                Cell::Count(compared.failing.is_some().into()),
            ]);
            if let Some(failing) = compared.failing {
                failed = self.explain(bench, &pair, failing, vcd.take());
                break;
            }
        }
        output.push(&rendered(HEADING, &rows, self.output.format()))?;
        output.commit()?;
        failed
    }

    /// What makes the pair of a seed.
    fn builder(&self, bench: &'static Bench) -> Result<Box<dyn Fn(u64) -> Pair>, Stop> {
        let (seed, fault) = (self.seed, self.fault);
        if self.engine == RtlEngine::Rtl {
            return Ok(Box::new(move |seed| (bench.build)(seed, fault)));
        }
        // Other sizes would be other Verilog: only the traffic changes from seed to seed.
        let unbuilt = |error| Stop::flag("--engine verilated", error);
        let toolchain = Toolchain::find().map_err(unbuilt)?;
        let built = toolchain.build(&*(bench.build)(seed, None).rtl);
        let model = built.map_err(unbuilt)?;
        Ok(Box::new(move |_| Pair {
            rtl: Box::new(model.device()),
            ..(bench.build)(seed, None)
        }))
    }

    fn compare(&self, bench: &Bench, pair: &dyn Fn(u64) -> Pair) -> Compared {
        let watch = progress::on_stderr();
        watch.begin(&format!("cycles of {}", bench.name), self.cycles);
        let began = Instant::now();
        let mut compared = Compared {
            cycles: 0,
            transactions: 0,
            failing: None,
        };
        for run in 0.. {
            let most = CYCLES_OF_A_SEED.min(self.cycles - compared.cycles);
            if most == 0 || compared.failing.is_some() {
                break;
            }
            let seed = self.seed.wrapping_add(run);
            let outcome = pair(seed).run(most, seed);
            watch.advance(outcome.cycles);
            compared.cycles += outcome.cycles;
            compared.transactions += outcome.transactions;
            if outcome.mismatch.is_some() {
                compared.failing = Some(Failing { seed, outcome });
            }
        }
        watch.end();
        let wall = began.elapsed().as_secs_f64();
        to_stderr(&format!(
            "{}: {} cycles in {wall:.1} s\n",
            bench.name, compared.cycles
        ));
        compared
    }

    /// Writes the waveform, and says what differs and how to see it soonest.
    fn explain(
        &self,
        bench: &Bench,
        pair: &dyn Fn(u64) -> Pair,
        failing: Failing,
        vcd: Option<Output>,
    ) -> Result<(), Stop> {
        let ports = pair(failing.seed);
        let (inputs, model) = (ports.rtl.inputs(), ports.model.outputs());
        let rtl = ports.rtl.outputs();
        let path = waveform(self.vcd.as_deref(), bench);
        let mut file = match vcd {
            Some(file) => file,
            None => Output::file("--vcd", &path)?,
        };
        let mut waveform = Vec::new();
        vcd::write(&failing.outcome, &inputs, &rtl, &model, &mut waveform)
            .map_err(|error| Stop::unwritable("--vcd", &path, &error))?;
        file.push(&String::from_utf8_lossy(&waveform))?;
        file.commit()?;

        let differs = |failing: &Failing| match &failing.outcome.mismatch {
            None => String::new(),
            Some(found) => format!(
                "seed {}, cycle {}: {} is {} in the RTL, {} in the model",
                failing.seed, found.cycle, found.port.name, found.rtl, found.model
            ),
        };
        let first = differs(&failing);
        let found = shortest(pair, failing, SHORTEST_SEEDS, SHORTEST_CYCLES);
        to_stderr(&format!(
            "{}: {first}\nwaveform of the cycles before it: {}\n\
             the shortest traffic found that fails, of {} cycles: {}\n{}",
            bench.name,
            path.display(),
            found.outcome.cycles,
            differs(&found),
            compact(&found.outcome, &inputs, SHOWN_CYCLES),
        ));
        Err(Stop::Failed(format!(
            "{}: RTL and cycle model differ",
            bench.name
        )))
    }
}

/// Where the waveform of `bench` goes: what `--vcd` says, else a file called after it.
fn waveform(vcd: Option<&Path>, bench: &Bench) -> PathBuf {
    let usual = || PathBuf::from(format!("lockstep-{}.vcd", bench.name));
    vcd.map_or_else(usual, Path::to_owned)
}

/// The broken variant called `text`; only one block has it.
fn fault(text: &str, blocks: &[&'static Bench]) -> Result<&'static str, Stop> {
    let [bench] = blocks else {
        return Err(Stop::flag("--fault", "only with one --block"));
    };
    let found = bench.faults.iter().find(|fault| **fault == text);
    let unknown = || Stop::flag("--fault", names::unknown(text, bench.faults));
    found.copied().ok_or_else(unknown)
}

const HEADING: &[&str] = &[
    "version",
    "block",
    "engine",
    "seed",
    "cycles",
    "transactions",
    "mismatches",
];
