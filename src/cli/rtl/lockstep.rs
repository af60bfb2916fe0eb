//! `sme rtl lockstep`: RTL and cycle model under the same traffic, every output of every port
//! compared in every cycle.
//!
//! Long runs are made of shorter ones, each with the next seed and therefore other sizes, loads and
//! traffic. The first difference ends everything.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use sme_hdl::bench::Bench;
use sme_hdl::lockstep::shortest::shortest;
use sme_hdl::lockstep::{Outcome, Pair, text, vcd};
use sme_hdl::verilated::Toolchain;

use super::super::flags::{FileFlags, Heading};
use super::super::names;
use super::super::read;
use crate::progress;
use crate::report::output::{self, Output};
use crate::report::row::Cell;
use crate::report::stop::{Stop, one_line, to_stderr};

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
    /// Seed of traffic and sizes; every 20000 cycles the next seed begins, whose sizes come with it
    /// unless Verilator has built those of the first
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true
    )]
    seed: String,
    /// The other model: the RTL as it is written, or its Verilog in Verilator
    #[arg(long, value_name = "NAME", default_value = "rtl")]
    engine: RtlEngine,
    /// Break the RTL, to see that it is found out
    ///
    /// The end of this text lists the broken variants of each block.
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Waveform of the last 200 cycles up to the first difference (of the traffic of the run, not
    /// the shortest) [default: lockstep-BLOCK.vcd]
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    #[command(flatten)]
    output: FileFlags,
    #[command(flatten)]
    machine: super::AnyEngineFlags,
}

/// The simulation that the RTL runs in.
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

/// Cycles that may be simulated to find the shortest traffic.
const SHORTEST_CYCLES: u64 = 300_000;

/// Lines of the shortest traffic that are printed.
const SHOWN_LINES: usize = 60;

/// Flags that fit together.
#[derive(Debug)]
pub struct LockstepRun {
    blocks: Vec<&'static Bench>,
    cycles: u64,
    seed: u64,
    engine: RtlEngine,
    fault: Option<&'static str>,
    /// The machine whose engine it is; `None` for those of the bench, and for other blocks.
    machine: Option<super::MachineEngine>,
    vcd: Option<PathBuf>,
    output: FileFlags,
}

/// The outcome of a block's runs.
struct Compared {
    cycles: u64,
    transactions: u64,
    /// Seed and end of the run that found a difference.
    failing: Option<(u64, Outcome)>,
}

/// The builder of the pair of a seed.
type Builder = Box<dyn Fn(u64) -> Pair>;

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
        let machine = super::MachineEngine::read_any(&flags.machine, &blocks)?;
        let seed = read::seed(&flags.seed)?;
        if let Some(machine) = &machine {
            let broken = machine.any_node(seed, fault);
            broken.map_err(|error| Stop::flag("--fault", error))?;
        }
        for bench in &blocks {
            let waveform = waveform(flags.vcd.as_deref(), bench);
            let rows = ("-o", flags.output.output.as_deref());
            output::distinct(&[("--vcd", Some(&waveform)), rows])?;
        }
        Ok(Self {
            cycles: super::cycles(&flags.cycles, MAX_CYCLES)?,
            seed,
            engine: flags.engine,
            vcd: flags.vcd.clone(),
            output: flags.output.clone(),
            blocks,
            fault,
            machine,
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(HEADING, false)
    }

    /// Runs, and writes a row for each block; at a difference also the waveform, and to stderr the
    /// shortest traffic that shows it.
    pub fn run(&self) -> Result<(), Stop> {
        let output = Output::file_or_stdout(self.output.output.as_deref())?;
        // An impossible place is known before the run, not after it; but where no flag asks for a
        // waveform, it is missing only if there is a difference.
        let vcd = self.vcd.as_deref().map(|path| Output::file("--vcd", path));
        let mut vcd = vcd.transpose()?;
        let mut rows = Vec::new();
        let mut ended = Ok(());
        for bench in &self.blocks {
            ended = self.block(bench, &mut vcd, &mut rows);
            if ended.is_err() {
                break;
            }
        }
        let printed = self.print(output, &rows);
        match (ended, printed) {
            (Ok(()), printed) => printed,
            (Err(stop), _) if rows.is_empty() => Err(stop),
            (Err(stop), printed) => {
                if let Err(stop @ (Stop::Input(_) | Stop::Failed(_))) = printed {
                    complain(&stop);
                }
                // Something was simulated.
                Err(Stop::Failed(stop.to_string()))
            }
        }
    }

    /// Writes the rows that there are, also before an error.
    fn print(&self, mut output: Output, rows: &[Vec<Cell>]) -> Result<(), Stop> {
        if rows.is_empty() {
            return Ok(());
        }
        output.push(&self.output.rendered(HEADING, rows)?)?;
        output.commit()
    }

    /// Runs `bench` and adds its row; a difference is an error, and leaves its waveform in `vcd`,
    /// or in a file called after the block.
    fn block(
        &self,
        bench: &'static Bench,
        vcd: &mut Option<Output>,
        rows: &mut Vec<Vec<Cell>>,
    ) -> Result<(), Stop> {
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
        let Some((seed, outcome)) = compared.failing else {
            if let Some(fault) = self.fault {
                to_stderr(&format!(
                    "{}: '{fault}' has not been found out: it changes nothing in these sizes, or needs \
                     more cycles or another seed\n",
                    bench.name
                ));
            }
            return Ok(());
        };
        let build = || pair(seed);
        explain(bench, seed, &build, &outcome);
        let path = waveform(self.vcd.as_deref(), bench);
        match write_waveform(&build(), &outcome, vcd.take(), &path) {
            Ok(()) => to_stderr(&format!(
                "{}: waveform of the cycles before the first difference: {}\n",
                bench.name,
                path.display()
            )),
            // The difference counts, with a waveform or without one.
            Err(stop) => complain(&stop),
        }
        let differ = format!("{}: RTL and cycle model differ", bench.name);
        Err(Stop::Failed(differ))
    }

    fn builder(&self, bench: &'static Bench) -> Result<Builder, Stop> {
        let (seed, fault, machine) = (self.seed, self.fault, self.machine.clone());
        let pair = move |seed| match &machine {
            // `read` has built one of the same sizes already.
            Some(machine) => {
                let engine = machine.any_node(seed, fault);
                engine.unwrap_or_else(|_| (bench.build)(seed, fault))
            }
            None => (bench.build)(seed, fault),
        };
        if self.engine == RtlEngine::Rtl {
            return Ok(Box::new(pair));
        }
        // Other sizes would be other Verilog: only the traffic changes from seed to seed.
        let unbuilt = |error| Stop::flag("--engine verilated", error);
        let toolchain = Toolchain::find().map_err(unbuilt)?;
        let built = toolchain.build(&*pair(seed).rtl);
        let model = built.map_err(unbuilt)?;
        Ok(Box::new(move |_| Pair {
            rtl: Box::new(model.device()),
            ..pair(seed)
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
                compared.failing = Some((seed, outcome));
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
}

/// Says what differs, and the shortest traffic that shows it.
fn explain(bench: &Bench, seed: u64, build: &dyn Fn() -> Pair, outcome: &Outcome) {
    let differs = |outcome: &Outcome| outcome.mismatch.as_ref().map(text::difference);
    let pair = build();
    let (block, sizes) = (bench.name, &pair.sizes);
    // At once: what follows takes a while.
    let first = differs(outcome).unwrap_or_default();
    to_stderr(&format!("{block}: seed {seed} ({sizes}), {first}\n"));
    let found = shortest(build, outcome.words.clone(), SHORTEST_CYCLES);
    let outcome = &found.outcome;
    let cycles = match outcome.cycles {
        1 => "1 cycle".to_owned(),
        cycles => format!("{cycles} cycles"),
    };
    let found = if found.is_minimal {
        "none can be left out".to_owned()
    } else {
        format!("found in {SHORTEST_CYCLES} cycles of search")
    };
    to_stderr(&format!(
        "{block}: the shortest traffic that fails ({cycles}; {found}):\n{}  {}\n",
        text::traffic(outcome, &pair.rtl.inputs(), SHOWN_LINES),
        differs(outcome).unwrap_or_default(),
    ));
}

/// Writes the history of `outcome` to `path`, or to `file`, which is open there already.
fn write_waveform(
    pair: &Pair,
    outcome: &Outcome,
    file: Option<Output>,
    path: &Path,
) -> Result<(), Stop> {
    let mut file = match file {
        Some(file) => file,
        None => Output::file("--vcd", path)?,
    };
    let (inputs, rtl) = (pair.rtl.inputs(), pair.rtl.outputs());
    let mut waveform = Vec::new();
    vcd::write(outcome, &inputs, &rtl, &pair.model.outputs(), &mut waveform)
        .map_err(|error| Stop::unwritable("--vcd", path, &error))?;
    file.push(&String::from_utf8_lossy(&waveform))?;
    file.commit()
}

/// Says why something is missing that is not what the command ends with.
fn complain(stop: &Stop) {
    to_stderr(&format!("sme: {stop}\n"));
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
    // Not `Stop::flag`, which cuts what is long: all of them are named.
    let unknown = || names::unknown(&one_line(text), bench.faults);
    found
        .copied()
        .ok_or_else(|| Stop::Input(format!("--fault: {}", unknown())))
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
