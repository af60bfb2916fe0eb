//! `sme rtl`: the engine's blocks in RTL, as Verilog, in lockstep with the cycle model, and what
//! they take in an FPGA.
//!
//! Called by [`super::main`]; the work is that of `sme_hdl`.

mod lockstep;
mod report;
mod verilog;

use clap::{Args, Subcommand};
use sme_hdl::bench::{BENCHES, Bench, ENGINE, EngineSite, engine_of};
use sme_hdl::blocks::engine::Unsupported;
use sme_hdl::lockstep::Pair;
use sme_hdl::verilog::Origin;
use sme_sim::families::sme::engine::Design;
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;

use super::args;
use super::flags::{Heading, MachineFlags};
use super::help;
use super::names;
use super::read::{self, Values};
use crate::report::stop::{self, Stop};

/// The subcommands of `sme rtl`.
#[derive(Subcommand, Clone, Debug)]
pub enum RtlCommand {
    /// Write the blocks as Verilog, each with a test bench that checks itself
    #[command(after_long_help = help::RTL_VERILOG)]
    Verilog(verilog::VerilogFlags),
    /// Run RTL and cycle model under the same random traffic and compare every output
    #[command(after_long_help = help::lockstep())]
    Lockstep(lockstep::LockstepFlags),
    /// Synthesize the blocks for an FPGA: look-up tables, flip-flops, memories, clock
    #[command(after_long_help = help::RTL_REPORT)]
    Report(report::ReportFlags),
}

/// The work to be done, read and checked.
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

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        match self {
            Self::Verilog(run) => run.heading(),
            Self::Lockstep(run) => run.heading(),
            Self::Report(run) => run.heading(),
        }
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

/// The same, where there is an engine without a machine, too.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Of the engine")]
pub struct AnyEngineFlags {
    /// Machine whose engine is compared, built in or a file [default: sme-prototype, with any of
    /// these flags; without them the seed chooses sizes and network]
    #[arg(long, value_name = "NAME|FILE.toml")]
    machine: Option<String>,
    /// Override a constant of that machine, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// The network it stands in [default: mesh:8x8]
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// Nodes: the first N positions of the network [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nodes: Option<String>,
}

/// A machine's engine.
#[derive(Clone, Debug)]
struct MachineEngine {
    machine: Machine,
    site: EngineSite,
}

impl MachineEngine {
    fn read(flags: &EngineFlags) -> Result<Self, Stop> {
        Self::of(&flags.machine, &flags.topology, None)
    }

    /// Of flags that are for `blocks` only if these are the engine; `None` if there are no flags.
    fn read_any(flags: &AnyEngineFlags, blocks: &[&Bench]) -> Result<Option<Self>, Stop> {
        let given = [
            ("--machine", flags.machine.is_some()),
            ("--set", !flags.set.is_empty()),
            ("--topology", flags.topology.is_some()),
            ("--nodes", flags.nodes.is_some()),
        ];
        let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) else {
            return Ok(None);
        };
        if blocks.iter().any(|bench| bench.name != ENGINE) {
            return Err(Stop::flag(flag, "only with --block engine"));
        }
        let name = flags.machine.as_deref().unwrap_or("sme-prototype");
        let machine = MachineFlags {
            name: name.to_owned(),
            set: flags.set.clone(),
        };
        let topology = flags.topology.as_deref().unwrap_or("mesh:8x8");
        Self::of(&machine, topology, flags.nodes.as_deref()).map(Some)
    }

    fn of(machine: &MachineFlags, topology: &str, nodes: Option<&str>) -> Result<Self, Stop> {
        let topologies = read::topologies(topology, Values::One)?;
        let topology: Topology = read::one("--topology", topologies)?;
        let machine = args::machine(machine)?;
        let hosts = match nodes {
            None => topology.hosts(),
            Some(text) => {
                let most = topology.hosts().into();
                let nodes = read::numbers("--nodes", text, 1, most, Values::One)?;
                read::one("--nodes", nodes)? as u32
            }
        };
        let spec = args::engines_of(&machine, "sme rtl")?;
        let refused =
            |error: &dyn std::fmt::Display| Stop::Input(stop::one_line(&error.to_string()));
        Design::new(spec, &topology, hosts).map_err(|error| refused(&error))?;
        let site =
            EngineSite::of_cluster(spec, &topology, hosts).map_err(|error| refused(&error))?;
        Ok(Self { machine, site })
    }

    /// The block of `bench` as it stands in this machine's engine.
    fn part(&self, bench: &Bench) -> Pair {
        bench.of(&self.site)
    }

    /// RTL, model and traffic of the engine of some node, which `seed` chooses, or of its broken
    /// variant `fault`.
    fn any_node(&self, seed: u64, fault: Option<&str>) -> Result<Pair, Unsupported> {
        engine_of(&self.site.of_seed(seed), fault)
    }

    /// The origin that its files state, with these `sizes`.
    fn origin(&self, sizes: String) -> Origin {
        let machine = &self.machine;
        Origin {
            machine: format!(
                "{} ({}) in {}",
                machine.name(),
                machine.hash(),
                self.site.topology()
            ),
            sizes,
            arguments: self.arguments(),
        }
    }

    /// The arguments that say so.
    fn arguments(&self) -> String {
        let set = self.machine.overrides().iter();
        let set: String = set
            .map(|(key, value)| format!(" --set {key}={value}"))
            .collect();
        let (machine, topology) = (self.machine.name(), self.site.topology());
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
