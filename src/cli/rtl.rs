//! `sme rtl`: the engine's blocks in RTL, as Verilog, in lockstep with the cycle model, and what
//! they take in an FPGA.
//!
//! Called by [`super::main`]; the work is that of `sme_hdl`.

mod lockstep;
mod report;
mod verilog;

use clap::Subcommand;
use sme_hdl::bench::{BENCHES, Bench};

use super::names;
use super::read::{self, Values};
use super::stop::Stop;

/// The subcommands of `sme rtl`.
#[derive(Subcommand, Clone, Debug)]
pub enum RtlCommand {
    /// Write the blocks as Verilog, each with a test bench that checks itself
    Verilog(verilog::VerilogFlags),
    /// Run RTL and cycle model under the same random traffic and compare every output
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
