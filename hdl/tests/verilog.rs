//! The generated Verilog of every block, in other people's tools: Verilator and iverilog simulate
//! it as the cycle model does, Verilator and Yosys find nothing to object to, and what lies beside
//! it runs them. A tool that is not installed is said to be missing, and what needs it is skipped.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use sme_hdl::bench::{BENCHES, Bench, ENGINE, EngineSite, find};
use sme_hdl::device::{Device, Port};
use sme_hdl::lockstep::Pair;
use sme_hdl::lockstep::random::Random;
use sme_hdl::netlist::VerilogError;
use sme_hdl::synthesis::{Objections, SynthesisError, check, report};
use sme_hdl::tool::{self, ToolError};
use sme_hdl::value::Value;
use sme_hdl::verilated::{Toolchain, VerilatedError};
use sme_hdl::verilog::{Files, Origin, directory, module_name};
use sme_sim::machine::Machine;

/// Chooses sizes and traffic.
const SEED: u64 = 3;

/// Features that blocks of [`SEED`] do not have: a link port without time to fetch its packets,
/// rings, three dimensions, and an engine with all of it.
const MORE: [(&str, u64); 4] = [
    ("link_port", 5),
    ("router", 2),
    ("switch", 2),
    ("engine", 5),
];

/// A block, and where its sizes come from.
#[derive(Clone, Copy)]
struct Case {
    bench: &'static Bench,
    /// Chooses the traffic, and the sizes if the machine does not.
    seed: u64,
    /// Of the prototype's engine.
    of_machine: bool,
}

impl Case {
    fn of_seed(bench: &'static Bench, seed: u64) -> Self {
        let of_machine = false;
        Self {
            bench,
            seed,
            of_machine,
        }
    }

    fn of_machine(bench: &'static Bench) -> Self {
        let (seed, of_machine) = (SEED, true);
        Self {
            bench,
            seed,
            of_machine,
        }
    }

    fn pair(&self) -> Pair {
        if self.of_machine {
            self.bench.of(&prototype())
        } else {
            (self.bench.build)(self.seed, None)
        }
    }
}

/// In the middle of a mesh of 8 × 8 prototypes.
fn prototype() -> EngineSite {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let topology = "mesh:8x8".parse().unwrap();
    EngineSite::new(
        sme_sim::families::sme::of(&machine).unwrap(),
        &topology,
        64,
        36,
    )
    .unwrap()
}

/// Cycles of each block under Verilator.
const CYCLES: u64 = 4_000;

/// Cycles of each block under iverilog, which is slower.
const BENCH_CYCLES: u64 = 300;

/// Says on stderr, past the capture of tests, that `tool` is missing.
fn skipped(tool: &str) {
    let _ = writeln!(std::io::stderr().lock(), "skipped: {tool} is not installed");
}

fn needs(tool: &str, version_flag: &str) -> bool {
    let installed = tool::is_installed(tool, version_flag);
    if !installed {
        skipped(tool);
    }
    installed
}

/// Verilator, with what it builds kept beside the test's program.
fn verilator() -> Option<Toolchain> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verilated");
    match Toolchain::find() {
        Ok(toolchain) => Some(toolchain.cached_in(&cache).for_a_short_run()),
        Err(VerilatedError::Tool(ToolError::Missing(tool))) => {
            skipped(&tool);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Does `check` for every block of its seed, and the machine's engine, two at a time.
fn each_block(check: impl Fn(&'static Bench, Case) + Sync) {
    let of_seed = |bench| Case::of_seed(bench, SEED);
    let mut queue: VecDeque<_> = BENCHES.iter().map(of_seed).collect();
    for (name, seed) in MORE {
        queue.push_front(Case::of_seed(find(name).unwrap(), seed));
    }
    queue.push_front(Case::of_machine(find(ENGINE).unwrap()));
    let queue = Mutex::new(queue);
    let next = || queue.lock().unwrap().pop_front();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| std::iter::from_fn(next).for_each(|case| check(case.bench, case)));
        }
    });
}

/// The files of a block in a directory of their own.
fn written(case: Case, cycles: u64, kind: &str) -> PathBuf {
    let Case { bench, seed, .. } = case;
    let sizes = if case.of_machine {
        "machine".to_owned()
    } else {
        seed.to_string()
    };
    let name = format!("{}-{sizes}-{kind}", bench.name);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    let files = Files::new(bench, case.pair(), &Origin::default(), cycles, seed);
    for (name, text) in files.unwrap().files {
        fs::write(directory.join(name), text).unwrap();
    }
    directory
}

#[test]
fn verilator_and_the_cycle_model_are_the_same_machine() {
    let Some(toolchain) = verilator() else {
        return;
    };
    each_block(|bench, case| {
        let (seed, cycles) = (case.seed, if case.of_machine { CYCLES / 2 } else { CYCLES });
        let built = toolchain.build(&*case.pair().rtl);
        let model = built.unwrap_or_else(|error| panic!("{}: {error}", bench.name));
        let pair = |device| Pair {
            rtl: Box::new(device),
            ..case.pair()
        };
        let outcome = pair(model.device()).run(cycles, seed);
        assert_eq!(outcome.mismatch, None, "{}", bench.name);
        assert!(outcome.transactions > cycles / 20, "{} is idle", bench.name);

        // A reset in the middle of everything restores the state of power-on.
        let mut device = model.device();
        let mut before = case.pair();
        let mut random = Random::seeded(seed);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for _ in 0..777 {
            inputs.clear();
            before.traffic.inputs(&mut random, &outputs, &mut inputs);
            device.cycle(&inputs, &mut outputs);
        }
        device.reset();
        let outcome = pair(device).run(CYCLES / 4, seed);
        assert_eq!(outcome.mismatch, None, "{}, after a reset", bench.name);
    });
}

#[test]
fn verilator_finds_a_broken_variant_out() {
    let Some(toolchain) = verilator() else {
        return;
    };
    let bench = find("fifo").unwrap();
    // Those in the RTL itself; wrong wires around it are not in its Verilog.
    for fault in ["one place more", "one place less"] {
        assert!(bench.faults.contains(&fault));
        let broken = (bench.build)(SEED, Some(fault));
        let device = toolchain.build(&*broken.rtl).unwrap().device();
        let mut pair = Pair {
            rtl: Box::new(device),
            ..broken
        };
        assert!(pair.run(CYCLES, SEED).mismatch.is_some(), "{fault}");
    }
}

#[test]
fn a_library_that_a_loss_of_power_has_left_empty_is_built_again() {
    let Some(toolchain) = verilator() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let [cache, moved] = ["cache", "moved"].map(|name| directory.path().join(name));
    let toolchain = toolchain.cached_in(&cache);
    let bench = find("fifo").unwrap();
    toolchain.build(&*(bench.build)(SEED, None).rtl).unwrap();
    // Elsewhere, for a library that is loaded is known by its path.
    fs::rename(&cache, &moved).unwrap();
    for entry in fs::read_dir(&moved).unwrap() {
        let build = entry.unwrap().path();
        for file in ["libsme_rtl.so", "verilated.o"].map(|file| build.join(file)) {
            // The file that is loaded is not this one.
            if fs::remove_file(&file).is_ok() {
                fs::write(&file, "").unwrap();
            }
        }
    }
    let toolchain = toolchain.cached_in(&moved);
    let device = toolchain
        .build(&*(bench.build)(SEED, None).rtl)
        .unwrap()
        .device();
    let mut pair = Pair {
        rtl: Box::new(device),
        ..(bench.build)(SEED, None)
    };
    assert_eq!(pair.run(CYCLES, SEED).mismatch, None);
}

/// Runs the bench in `directory` under iverilog.
fn iverilog(bench: &Bench, directory: &Path) -> Result<String, ToolError> {
    let module = module_name(bench.name);
    let (verilog, test) = (format!("{module}.v"), format!("{module}_bench.v"));
    let mut compile = Command::new("iverilog");
    compile.args([
        "-g2001",
        "-Wall",
        "-Wno-timescale",
        "-o",
        "bench.vvp",
        &verilog,
        &test,
    ]);
    tool::output(compile.current_dir(directory))?;
    tool::output(
        Command::new("vvp")
            .args(["-n", "bench.vvp"])
            .current_dir(directory),
    )
}

#[test]
fn the_test_benches_pass_under_iverilog() {
    if !needs("iverilog", "-V") {
        return;
    }
    each_block(|bench, case| {
        let said = iverilog(bench, &written(case, BENCH_CYCLES, "iverilog"));
        let said = said.unwrap_or_else(|error| panic!("{}: {error}", bench.name));
        let passed = format!("PASS sme_{}: {BENCH_CYCLES} cycles", bench.name);
        assert!(said.contains(&passed), "{}: {said}", bench.name);
    });
}

#[test]
fn a_wrong_vector_fails_the_test_bench() {
    if !needs("iverilog", "-V") {
        return;
    }
    let bench = find("fifo").unwrap();
    let directory = written(Case::of_seed(bench, SEED), BENCH_CYCLES, "wrong");
    let file = directory.join("sme_fifo_vectors.hex");
    let vectors = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = vectors.lines().map(String::from).collect();
    // Above the inputs (1 + 160 + 1 bits) the lowest output is `ready`: turn it over.
    let digits = lines[100].len();
    let site = digits - 1 - 162 / 4;
    let digit = u32::from_str_radix(&lines[100][site..=site], 16).unwrap() ^ (1 << (162 % 4));
    lines[100].replace_range(site..=site, &format!("{digit:x}"));
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let Err(ToolError::Failed { said, .. }) = iverilog(bench, &directory) else {
        panic!("a wrong vector passes")
    };
    assert!(
        said.contains("FAIL cycle 100 port ready: expected"),
        "{said}"
    );
    assert!(!said.contains("PASS"), "{said}");

    // A file that ends too soon is no success either.
    fs::write(&file, lines[..50].join("\n") + "\n").unwrap();
    assert!(iverilog(bench, &directory).is_err());
}

/// All that `sme rtl verilog` writes, with `benches` of the prototype's engine and `cycles` of
/// traffic.
fn machine_directory(kind: &str, benches: &[&'static Bench], cycles: u64) -> PathBuf {
    let site = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine-{kind}"));
    let _ = fs::remove_dir_all(&site);
    fs::create_dir_all(&site).unwrap();
    let blocks: Vec<_> = benches
        .iter()
        .map(|&bench| {
            let origin = Origin::default();
            let pair = Case::of_machine(bench).pair();
            let files = Files::new(bench, pair, &origin, cycles, SEED).unwrap();
            for (name, text) in files.files {
                fs::write(site.join(name), text).unwrap();
            }
            (bench, origin)
        })
        .collect();
    for (name, text) in directory(&blocks, "") {
        fs::write(site.join(name), text).unwrap();
    }
    site
}

fn make(targets: &[&str], directory: &Path) -> Result<String, ToolError> {
    let mut make = Command::new("make");
    tool::output(make.arg("-j2").args(targets).current_dir(directory))
}

#[test]
fn make_runs_the_test_benches_under_iverilog_and_fails_with_them() {
    if !needs("make", "--version") || !needs("iverilog", "-V") {
        return;
    }
    let all: Vec<_> = BENCHES.iter().collect();
    let directory = machine_directory("iverilog", &all, BENCH_CYCLES);
    let said = make(&["iverilog"], &directory).unwrap();
    for bench in BENCHES {
        let passed = format!("PASS sme_{}: {BENCH_CYCLES} cycles", bench.name);
        assert!(said.contains(&passed), "{}: {said}", bench.name);
    }
    let passed = format!("PASS sme_engine_top: {BENCH_CYCLES} cycles");
    assert!(said.contains(&passed), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let vectors = directory.join("sme_tags_vectors.hex");
    let text = fs::read_to_string(&vectors).unwrap();
    fs::write(&vectors, &text[..text.len() / 2]).unwrap();
    let Err(ToolError::Failed { said, .. }) = make(&["iverilog-tags"], &directory) else {
        panic!("half the vectors pass")
    };
    assert!(
        said.contains("FAIL sme_tags") && !said.contains("PASS"),
        "{said}"
    );
}

#[test]
fn the_top_levels_test_bench_finds_wrong_wires() {
    if !needs("make", "--version") || !needs("iverilog", "-V") {
        return;
    }
    let directory = machine_directory("top", &[find(ENGINE).unwrap()], 2_000);
    let file = directory.join("sme_engine_top.v");
    let right = fs::read_to_string(&file).unwrap();
    let run = || make(&["iverilog-engine_top"], &directory);
    assert!(run().unwrap().contains("PASS sme_engine_top"));
    // An input's may show at any output.
    for (pin, other, found) in [
        ("host_in_mask", "host_in_extension", ""),
        ("link0_in_credit", "link2_in_credit", ""),
        ("link_in_valid[0]", "link_in_valid[2]", ""),
        ("link0_out_tag", "link0_out_enables", "link_out_data$0"),
        ("link_out_valid[0]", "link_out_valid[3]", "link_out_valid$0"),
        ("crc_error[1]", "crc_error[2]", "crc_error$1"),
        ("(dropped_write)", "(failed_read)", "dropped_valid"),
    ] {
        // Behind the ports, where the engine is.
        let (ports, engine) = right.split_once(");").unwrap();
        assert!(engine.contains(pin) && engine.contains(other), "{engine}");
        let engine = engine.replace(pin, "??").replace(other, pin);
        let wrong = format!("{ports});{}", engine.replace("??", other));
        fs::write(&file, wrong).unwrap();
        let Err(ToolError::Failed { said, .. }) = run() else {
            panic!("{pin} in place of {other} passes");
        };
        let complaint = said.lines().find(|line| line.starts_with("FAIL cycle"));
        assert!(
            complaint.is_some_and(|line| line.contains(found)),
            "{pin}: {complaint:?}"
        );
    }
}

#[test]
fn verilator_warns_of_nothing_and_runs_a_test_bench() {
    if !needs("make", "--version") || !needs("verilator", "--version") {
        return;
    }
    let all: Vec<_> = BENCHES.iter().collect();
    let directory = machine_directory("verilator", &all, BENCH_CYCLES);
    let said = make(&["lint", "verilator-fifo"], &directory).unwrap();
    assert!(said.contains("PASS sme_fifo: 300 cycles"), "{said}");
    assert!(!said.contains("%Warning"), "{said}");
    // Test benches, too, and blocks of other sizes.
    each_block(|bench, case| {
        let module = module_name(bench.name);
        let mut lint = Command::new("verilator");
        lint.args(["--lint-only", "--timing", "--top-module"]);
        lint.args([
            &format!("{module}_bench"),
            &format!("{module}.v"),
            &format!("{module}_bench.v"),
        ]);
        let said = tool::output(lint.current_dir(written(case, 1, "lint")));
        let said = said.unwrap_or_else(|error| panic!("{}: {error}", bench.name));
        assert!(!said.contains("%Warning"), "{}: {said}", bench.name);
    });
}

#[test]
fn yosys_elaborates_the_top_level() {
    if !needs("make", "--version") || !needs("yosys", "-V") {
        return;
    }
    let directory = machine_directory("yosys", &[find(ENGINE).unwrap()], BENCH_CYCLES);
    make(&["yosys-engine_top"], &directory).unwrap();
}

/// Returns the objections of Yosys to a block, whose files it forgets.
fn checked(block: &dyn Device) -> Result<Objections, SynthesisError> {
    check(block, tempfile::tempdir()?.path())
}

#[test]
fn yosys_finds_neither_latches_nor_nets_without_a_driver() {
    if !needs("yosys", "-V") {
        return;
    }
    each_block(|bench, case| {
        let found = checked(&*case.pair().rtl);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", bench.name));
        assert_eq!(found, Objections::default(), "{}", bench.name);
    });
}

#[test]
fn yosys_counts_what_a_fifo_takes() {
    if !needs("yosys", "-V") {
        return;
    }
    let fifo = (find("fifo").unwrap().build)(SEED, None).rtl;
    let directory = tempfile::tempdir().unwrap();
    let (found, _) = report(&*fifo, None, &[], directory.path()).unwrap();
    // 160 bits of eight places, four bits per memory; the first packet, two pointers of three bits,
    // a count of four, full, empty and two. A table for each bit of the first packet.
    assert_eq!((found.lut_rams, found.flip_flops), (40, 173), "{found:?}");
    assert!((170..220).contains(&found.luts), "{found:?}");
    assert!(!found.objections.any(), "{found:?}");
}

/// Something whose Verilog is given.
struct Text(&'static str);

impl Device for Text {
    fn inputs(&self) -> Vec<Port> {
        Vec::new()
    }

    fn outputs(&self) -> Vec<Port> {
        Vec::new()
    }

    fn cycle(&mut self, _inputs: &[Value], _outputs: &mut Vec<Value>) {}

    fn verilog(&self, name: &str) -> Result<String, VerilogError> {
        Ok(self.0.replace("NAME", name))
    }
}

#[test]
fn yosys_finds_a_latch_and_a_net_without_a_driver() {
    if !needs("yosys", "-V") {
        return;
    }
    let latch = "module NAME(input wire a, input wire b, output reg c);
        always @(*) if (a) c = b;
        endmodule";
    let found = checked(&Text(latch)).unwrap();
    assert_eq!((found.latches, found.undriven), (1, 0));
    let undriven = "module NAME(input wire a, output wire c);
        wire b;
        assign c = a ^ b;
        endmodule";
    let found = checked(&Text(undriven)).unwrap();
    assert_eq!((found.latches, found.undriven), (0, 1));
    let broken = checked(&Text("module NAME(")).unwrap_err();
    assert!(broken.to_string().starts_with("yosys failed: "), "{broken}");
}
