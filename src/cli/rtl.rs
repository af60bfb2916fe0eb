//! `sme rtl`: the engine's blocks in RTL, as Verilog, in lockstep with the cycle model, and what
//! they take in an FPGA.
//!
//! Called by [`super::main`]; the work is that of `sme_hdl`.

mod lockstep;
mod report;
mod verilog;

use clap::{Args, Subcommand};
use sme_hdl::bench::{BENCHES, Bench, ENGINE, engine_of};
use sme_hdl::blocks::engine::Engine;
use sme_hdl::device::Device;
use sme_hdl::lockstep::Pair;
use sme_sim::engine::Design;
use sme_sim::fabric::Topology;
use sme_sim::machine::Machine;

use super::args;
use super::flags::MachineFlags;
use super::help;
use super::names;
use super::read::{self, Values};
use super::stop::{self, Stop};

/// The subcommands of `sme rtl`.
#[derive(Subcommand, Clone, Debug)]
pub enum RtlCommand {
    /// Write the blocks as Verilog, each with a test bench that checks itself
    Verilog(verilog::VerilogFlags),
    /// Run RTL and cycle model under the same random traffic and compare every output
    #[command(after_help = help::lockstep())]
    Lockstep(lockstep::LockstepFlags),
    /// Synthesize the blocks for an FPGA: look-up tables, flip-flops, memories, clock
    Report(report::ReportFlags),
}

/// What is to be done, read and checked.
#[derive(Debug)]
pub enum Rtl {
    /// `sme rtl verilog`
    Verilog(verilog::VerilogRun),
    /// `sme rtl lockstep`
    Lockstep(lockstep::LockstepRun),
    /// `sme rtl report`
    Report(report::ReportRun),
}

impl Rtl {
    /// Reads the flags.
    pub fn read(command: &RtlCommand) -> Result<Self, Stop> {
        Ok(match command {
            RtlCommand::Verilog(flags) => Self::Verilog(verilog::VerilogRun::read(flags)?),
            RtlCommand::Lockstep(flags) => Self::Lockstep(lockstep::LockstepRun::read(flags)?),
            RtlCommand::Report(flags) => Self::Report(report::ReportRun::read(flags)?),
        })
    }

    /// Does it.
    pub fn run(self) -> Result<(), Stop> {
        match self {
            Self::Verilog(run) => run.run(),
            Self::Lockstep(run) => run.run(),
            Self::Report(run) => run.run(),
        }
    }
}

/// Reads `--block`: names, or `all`. A block that is named twice is done once.
fn blocks(text: &str) -> Result<Vec<&'static Bench>, Stop> {
    let mut chosen: Vec<&'static Bench> = Vec::new();
    for word in read::words("--block", text, Values::Many)? {
        let named: Vec<&Bench> = BENCHES
            .iter()
            .filter(|bench| word == ALL || word == bench.name)
            .collect();
        if named.is_empty() {
            let mut known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
            known.push(ALL);
            return Err(Stop::flag("--block", names::unknown(word, &known)));
        }
        for bench in named {
            if chosen.iter().all(|other| other.name != bench.name) {
                chosen.push(bench);
            }
        }
    }
    Ok(chosen)
}

/// The machine whose engine is meant.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Of the engine")]
pub struct EngineFlags {
    /// The machine.
    #[command(flatten)]
    machine: MachineFlags,
    /// The network it stands in; every position has a node
    #[arg(long, value_name = "SHAPE", default_value = "mesh:8x8")]
    topology: String,
}

/// A machine's engine.
#[derive(Debug)]
struct MachineEngine {
    machine: Machine,
    topology: Topology,
}

impl MachineEngine {
    fn read(flags: &EngineFlags) -> Result<Self, Stop> {
        let topologies = read::topologies(&flags.topology, Values::One)?;
        let engine = Self {
            machine: args::machine(&flags.machine)?,
            topology: read::one("--topology", topologies)?,
        };
        let (spec, hosts) = (engine.machine.cluster(), engine.topology.hosts());
        let refused =
            |error: &dyn std::fmt::Display| Stop::Input(stop::one_line(&error.to_string()));
        Design::new(spec, &engine.topology, hosts).map_err(|error| refused(&error))?;
        Engine::new(spec, &engine.topology, hosts).map_err(|error| refused(&error))?;
        Ok(engine)
    }

    /// RTL, model and traffic of `bench`: of this machine if it is the engine's, else of the sizes
    /// that `seed` chooses.
    fn pair(&self, bench: &Bench, seed: u64) -> Pair {
        let (spec, hosts) = (self.machine.cluster(), self.topology.hosts());
        // In the middle, where all links of a mesh are.
        let node = hosts / 2 + self.topology.sizes()[0] / 2;
        let node = node.min(hosts - 1);
        let engine = (bench.name == ENGINE).then(|| engine_of(spec, &self.topology, hosts, node));
        // `read` has built one of the same sizes already.
        let engine = engine.and_then(Result::ok);
        engine.unwrap_or_else(|| (bench.build)(seed, None))
    }

    /// The RTL of `bench`: what stands in this machine's engine if that has one of the kind whose
    /// size it decides, else of the sizes that `seed` chooses.
    fn rtl(&self, bench: &Bench, seed: u64) -> Box<dyn Device> {
        let (spec, hosts) = (self.machine.cluster(), self.topology.hosts());
        // `read` has built one of the same sizes already.
        let engine = Engine::new(spec, &self.topology, hosts).ok();
        let part = engine.and_then(|engine| engine.into_part(bench.name));
        part.unwrap_or_else(|| self.pair(bench, seed).rtl)
    }

    /// The arguments that say so.
    fn arguments(&self, bench: &Bench) -> String {
        if bench.name != ENGINE {
            return String::new();
        }
        let set = self.machine.overrides().iter();
        let set: String = set
            .map(|(key, value)| format!(" --set {key}={value}"))
            .collect();
        let (machine, topology) = (self.machine.name(), &self.topology);
        format!(" --machine {machine}{set} --topology {topology}")
    }
}

/// The name of all blocks.
const ALL: &str = "all";

/// Reads `--cycles`, from 1 to `most`.
fn cycles(text: &str, most: u64) -> Result<u64, Stop> {
    let flag = "--cycles";
    read::one(flag, read::numbers(flag, text, 1, most, Values::One)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        blocks(text)
            .unwrap()
            .iter()
            .map(|bench| bench.name)
            .collect()
    }

    #[test]
    fn blocks_are_chosen_by_name_each_once() {
        assert_eq!(names("fifo"), ["fifo"]);
        assert_eq!(names("tags,fifo,tags"), ["tags", "fifo"]);
        assert_eq!(names("all").len(), BENCHES.len());
        assert_eq!(names("fifo,all").len(), BENCHES.len());
    }
}
