//! `sme rtl`: its files, its tables, its complaints and its exit status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::command::skipped;

/// Runs `sme rtl` with these arguments, separated by blanks, in `directory`.
fn rtl_in(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .arg("rtl")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn rtl(arguments: &str) -> Output {
    rtl_in(Path::new("."), &words(arguments))
}

fn words(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The one line of complaint about bad input.
fn complaint(arguments: &str) -> String {
    let output = rtl(arguments);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {line}");
    assert_eq!(text(&output.stdout), "", "{arguments}");
    assert_eq!(line.lines().count(), 1, "{arguments}: {line}");
    line.to_owned()
}

#[test]
fn a_misspelt_block_gets_the_nearest() {
    for command in ["lockstep", "report", "verilog --out never-made"] {
        let line = complaint(&format!("{command} --block fifi"));
        assert!(
            line.contains("--block: 'fifi' is not known; did you mean 'fifo'?"),
            "{line}"
        );
        assert!(line.contains("all)"), "{line}");
    }
    assert!(!Path::new("never-made").exists());
}

#[test]
fn impossible_numbers_are_refused() {
    for (arguments, flag) in [
        ("lockstep --cycles 0", "--cycles"),
        ("lockstep --cycles -3", "--cycles"),
        ("lockstep --cycles many", "--cycles"),
        ("lockstep --cycles 99999999999999", "--cycles"),
        ("lockstep --seed 18446744073709551616", "--seed"),
        ("verilog --out never-made --cycles 100001", "--cycles"),
        ("verilog --out never-made --seed x", "--seed"),
        ("lockstep --engine cycle", "--engine"),
        (
            "lockstep --block fifo,tags --fault x",
            "--fault: only with one --block",
        ),
        (
            "lockstep --block fifo --fault deeper",
            "--fault: 'deeper' is not known",
        ),
        (
            "lockstep --block fifo --vcd no/such/directory/a.vcd",
            "--vcd no/such/directory/a.vcd",
        ),
        (
            "lockstep --block tags,engine --topology mesh:2x2",
            "--topology: only with --block engine",
        ),
        (
            "lockstep --set engine.tags=3",
            "--set: only with --block engine",
        ),
        (
            "lockstep --block fifo --machine sme-asic",
            "--machine: only",
        ),
        ("lockstep --block fifo --nodes 3", "--nodes: only"),
        (
            "lockstep --block engine --topology mesh:2x2 --nodes 5",
            "--nodes 5: 5 is too large; at most 4",
        ),
        (
            "lockstep --block engine --topology fattree:4x2",
            "there is no RTL for fattree networks",
        ),
        (
            "lockstep --block engine --set uncached.load_payload=64B",
            "uncached.load_payload is 64 B; the RTL's packets carry 8 B",
        ),
        (
            "lockstep --block engine --set link.forwarding=cut-through",
            "link.forwarding is cut-through; the RTL's switches store and forward",
        ),
    ] {
        let line = complaint(arguments);
        assert!(line.contains(flag), "{line}");
    }
    assert!(complaint("").contains("command is missing"));
}

#[test]
fn lockstep_prints_a_row_for_each_block() {
    let output = rtl("lockstep --block fifo,tags --cycles 3000 --seed 4 --format csv");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    assert_eq!(
        lines[0],
        "version,block,engine,seed,cycles,transactions,mismatches"
    );
    assert_eq!(lines.len(), 3);
    for (line, block) in lines[1..].iter().zip(["fifo", "tags"]) {
        let cells: Vec<_> = line.split(',').collect();
        assert_eq!(cells[1..5], [block, "rtl", "4", "3000"], "{line}");
        assert!(cells[5].parse::<u64>().unwrap() > 100, "{line}");
        assert_eq!(cells[6], "0", "{line}");
    }
    let again = rtl("lockstep --block fifo,tags --cycles 3000 --seed 4 --format csv");
    assert_eq!(output.stdout, again.stdout);
}

#[test]
fn a_difference_ends_the_run_and_leaves_a_waveform() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| rtl_in(directory.path(), arguments);
    let fault = ["lockstep", "--block", "fifo", "--fault", "one place more"];
    let output = run(&fault);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let expected = "\
fifo: seed 1 (3 places), cycle 122: ready is 0x1 in the RTL, 0x0 in the model
fifo: the shortest traffic that fails (4 cycles; none can be left out):
  cycle 0-2: write
  cycle   3: nothing
  cycle 3: ready is 0x1 in the RTL, 0x0 in the model
fifo: waveform of the cycles before the first difference: lockstep-fifo.vcd
sme: fifo: RTL and cycle model differ
";
    // Before it, how long that took.
    assert!(said.ends_with(expected), "{said}");
    let table = text(&output.stdout);
    let mismatches = table.lines().find(|line| line.starts_with("mismatches"));
    assert!(
        mismatches.is_some_and(|line| line.ends_with(" 1")),
        "{table}"
    );

    let waveform = fs::read_to_string(directory.path().join("lockstep-fifo.vcd")).unwrap();
    for scope in ["$scope module rtl", "$scope module model"] {
        assert!(waveform.contains(scope), "{waveform}");
    }
    let named = run(&[&fault[..], &["--vcd", "named.vcd"]].concat());
    assert_eq!(named.status.code(), Some(1));
    assert_eq!(
        fs::read_to_string(directory.path().join("named.vcd")).unwrap(),
        waveform
    );
}

/// A difference is told in spite of any fault of the files.
#[cfg(target_os = "linux")]
#[test]
fn a_difference_is_told_where_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let fault = ["lockstep", "--block", "fifo", "--fault", "one place more"];
    for full in ["--vcd", "-o"] {
        let output = rtl_in(
            directory.path(),
            &[&fault[..], &[full, "/dev/full"]].concat(),
        );
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in [
            "cycle 122: ready is 0x1",
            "  cycle 0-2: write\n",
            &format!("\nsme: {full} /dev/full: cannot be written: "),
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(text(&output.stdout).contains("mismatches"), full == "--vcd");
    }

    // Where files cannot be made, that is known before the first cycle, if one was asked for.
    let named = [&fault[..], &["--vcd", "fifo.vcd"]].concat();
    let output = rtl_in(Path::new("/proc"), &named);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("sme: --vcd fifo.vcd: cannot be written: "),
        "{said}"
    );
    let output = rtl_in(Path::new("/proc"), &fault);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("\nsme: --vcd lockstep-fifo.vcd: cannot be written: "),
        "{said}"
    );
    let output = rtl_in(Path::new("/proc"), &fault[..3]);
    assert_eq!(output.status.code(), Some(0));
}

/// With packets by their fields, as docs/rtl.md shows it.
#[test]
fn the_chapter_on_rtl_shows_the_shortest_traffic_that_fails() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapter = fs::read_to_string(root.join("docs/rtl.md")).unwrap();
    let fault = "a read passes a write that is queued";
    let command = format!("--fault \"{fault}\" --seed 2\n");
    let (_, shown) = chapter.split_once(&command).unwrap();
    let shown = shown.split("```").next().unwrap();

    let directory = tempfile::tempdir().unwrap();
    let block = "lockstep --block ht_port --seed 2 --fault";
    let output = rtl_in(directory.path(), &[&words(block)[..], &[fault]].concat());
    assert_eq!(output.status.code(), Some(1));
    // Between how long it took, and what went wrong.
    let (_, said) = text(&output.stderr).split_once('\n').unwrap();
    assert_eq!(said.split("sme: ").next().unwrap(), shown);
}

/// Every broken variant is named, however many there are.
#[test]
fn broken_variants_are_listed() {
    let help = rtl("lockstep --help");
    let help = text(&help.stdout).split_whitespace().collect::<Vec<_>>();
    let help = help.join(" ");
    for bench in sme_hdl::bench::BENCHES {
        let block = bench.name;
        let line = complaint(&format!("lockstep --block {block} --fault none"));
        for fault in bench.faults {
            assert!(help.contains(fault), "{block}: {fault}: {help}");
            assert!(line.contains(fault), "{block}: {fault}: {line}");
        }
    }
}

#[test]
fn the_engine_of_a_machine_is_compared() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "lockstep --block engine --cycles 500 --topology mesh:3x2 --nodes 5 \
                 --set engine.tags=3 --format csv";
    let output = rtl_in(directory.path(), &words(flags));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let row = text(&output.stdout).lines().nth(1).unwrap();
    assert!(row.ends_with(",0") && row.contains(",engine,rtl,1,500,"));

    let fault = ["--fault", "links of half the bandwidth"];
    let output = rtl_in(directory.path(), &[&words(flags)[..], &fault].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let sizes = " of 5 in mesh:3x2, 3 tags, links of ";
    assert!(said.contains(sizes), "{said}");
}

/// Verilator gives up at the second block.
#[cfg(unix)]
#[test]
fn rows_before_an_error_are_printed() {
    use std::os::unix::fs::PermissionsExt;

    if Command::new("verilator").arg("--version").output().is_err() {
        skipped("verilator");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = "#!/bin/sh\n\
        PATH=${PATH#*:}\n\
        case $1 in --version | --getenv) exec verilator \"$@\" ;; esac\n\
        mkdir \"$(dirname \"$0\")/once\" || exit 1\n\
        exec verilator \"$@\"\n";
    let verilator = here.join("bin/verilator");
    fs::create_dir(here.join("bin")).unwrap();
    fs::write(&verilator, script).unwrap();
    fs::set_permissions(&verilator, fs::Permissions::from_mode(0o700)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(words(
            "rtl lockstep --block fifo,tags --cycles 50 --engine verilated --format csv",
        ))
        .current_dir(here)
        .env("PATH", format!("{}:{path}", here.join("bin").display()))
        .env("XDG_CACHE_HOME", here.join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let rows: Vec<_> = text(&output.stdout).lines().collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[1].contains(",fifo,verilated,1,50,"), "{rows:?}");
    assert!(
        said.contains("sme: --engine verilated: verilator "),
        "{said}"
    );
}

#[test]
fn a_broken_variant_that_shows_nowhere_is_said_to() {
    let directory = tempfile::tempdir().unwrap();
    // Of one tag none can be missing.
    let fault = "one source tag less";
    let run = |machine: &str| {
        let block = "lockstep --block engine --cycles 2000 --fault";
        let arguments = [&words(block)[..], &[fault], &words(machine)[..]].concat();
        let output = rtl_in(directory.path(), &arguments);
        let said = text(&output.stderr).to_owned();
        (
            output.status.code(),
            said.contains("has not been found out"),
            said,
        )
    };
    let (status, said_so, said) = run("--set engine.tags=1");
    assert_eq!((status, said_so), (Some(0), true), "{said}");
    let (status, said_so, said) = run("--set engine.tags=4");
    assert_eq!((status, said_so), (Some(1), false), "{said}");
}

#[test]
fn a_run_without_a_difference_leaves_no_waveform() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = "lockstep --block fifo --cycles 100 --vcd fifo.vcd";
    let output = rtl_in(directory.path(), &words(arguments));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn verilog_is_the_same_whenever_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &str| rtl_in(directory.path(), &words(arguments));
    let output = run("verilog --out a/b --block fifo,tags --cycles 20");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let again = run("verilog --out c --block fifo,tags --cycles 20");
    assert_eq!(output.stdout, again.stdout);
    let files = |place: &str| {
        let entries = fs::read_dir(directory.path().join(place)).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect();
        files.sort();
        files
    };
    assert_eq!(files("a/b"), files("c"));
    let names: Vec<_> = files("c").into_iter().map(|(name, _)| name).collect();
    let expected = [
        "fifo.v",
        "fifo_bench.v",
        "fifo_vectors.hex",
        "tags.v",
        "tags_bench.v",
    ];
    for name in expected {
        assert!(names.contains(&format!("sme_{name}")), "{names:?}");
    }
    for name in ["Makefile", "README.md"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert_eq!(names.len(), 8, "{names:?}");
}

#[test]
fn the_engine_is_that_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let output = rtl_in(
        directory.path(),
        &words(
            "verilog --out v --block engine --cycles 10 --set engine.tags=4 --topology torus:3x3",
        ),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("sme_engine_vectors.hex"));
    let files = [
        "sme_engine",
        "sme_engine_bench",
        "sme_engine_top",
        "sme_engine_top_bench",
    ];
    for file in files.map(|name| format!("{name}.v")) {
        let verilog = fs::read_to_string(directory.path().join("v").join(&file)).unwrap();
        let sizes = "--machine sme-prototype --set engine.tags=4 --topology torus:3x3";
        assert!(verilog.contains(sizes), "{file}");
    }
    for (arguments, found) in [
        (
            "--set link.channel_credits=33",
            "link.channel_credits is 33",
        ),
        ("--machine sme-prototyp", "sme-prototype"),
        ("--topology mesh:0x2", "--topology"),
    ] {
        let line = complaint(&format!("verilog --out never-made {arguments}"));
        assert!(line.contains(found), "{line}");
    }
}

#[test]
fn the_blocks_are_those_of_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let output = rtl_in(directory.path(), &words(arguments));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    let read = |file: &str| fs::read_to_string(directory.path().join(file)).unwrap();
    run("verilog --out one --block requester,ht_port --cycles 10 --set engine.tags=4");
    run("verilog --out two --block requester --cycles 10 --set engine.tags=4 --seed 2");
    let requester = read("one/sme_requester.v");
    for found in [
        "// sme_requester, the requester: turns the host's loads",
        "// Of sme-prototype (",
        ") in mesh:8x8.",
        "// Sizes: 64 partitions of 2^32 bytes from 0x10000000000 on, 4 tags.",
        "iverilog -g2001 -o bench.vvp sme_requester.v sme_requester_bench.v",
    ] {
        assert!(requester.contains(found), "{found}: {requester}");
    }
    // The seed chooses traffic, and nothing else.
    let module = |text: &str| text.split_once("\nmodule ").unwrap().1.to_owned();
    assert_eq!(module(&requester), module(&read("two/sme_requester.v")));
    assert_ne!(
        read("one/sme_requester_vectors.hex"),
        read("two/sme_requester_vectors.hex")
    );
    assert!(!read("one/sme_ht_port.v").contains("16'hff9"));
}

#[test]
fn a_readme_of_somebody_else_stays() {
    let directory = tempfile::tempdir().unwrap();
    let readme = directory.path().join("README.md");
    fs::write(&readme, "mine").unwrap();
    let arguments = ["verilog", "--out", ".", "--block", "fifo", "--cycles", "10"];
    let output = rtl_in(directory.path(), &arguments);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(
        line.contains("README.md: is there, and not of sme"),
        "{line}"
    );
    assert_eq!(fs::read_to_string(&readme).unwrap(), "mine");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    fs::remove_file(&readme).unwrap();
    for _ in 0..2 {
        assert_eq!(rtl_in(directory.path(), &arguments).status.code(), Some(0));
    }
}

#[test]
fn verilog_goes_nowhere_else_than_into_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "mine").unwrap();
    for place in ["file", "file/below"] {
        let output = rtl_in(
            directory.path(),
            &["verilog", "--out", place, "--block", "fifo"],
        );
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains("--out file"), "{line}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn without_its_tools_a_command_says_which_is_missing() {
    let empty = tempfile::tempdir().unwrap();
    let without_tools = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
        command.arg("rtl").args(arguments.split_whitespace());
        command.env("PATH", empty.path()).stdin(Stdio::null());
        command.output().unwrap()
    };
    let output = without_tools("report --block fifo --no-clock");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "sme: yosys is not installed\n");
    let output = without_tools("lockstep --block fifo --engine verilated");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "sme: --engine verilated: verilator is not installed\n"
    );
}

/// Reads with `sme rtl report` the output of tools, whose place scripts take here.
#[cfg(unix)]
#[test]
fn a_report_has_what_the_tools_found_and_the_clocks_of_all_seeds_in_order() {
    use std::os::unix::fs::PermissionsExt;

    let tools = tempfile::tempdir().unwrap();
    let script = |name: &str, lines: &str| {
        let path = tools.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script(
        "yosys",
        r#"[ "$1" != -V ] || exit 0
echo 'Found and reported 0 problems.' >check.txt
: >latches.txt
echo '{"design": {"num_cells_by_type": {"LUT4": 70, "TRELLIS_FF": 8}}}' >stat.json
"#,
    );
    // Seed 2 is the fastest, and the first to end.
    let route = |failing: &str| {
        let lines = r#"while [ $# -gt 1 ]; do
    case $1 in --report) report=$2 ;; --seed) seed=$2 ;; esac
    shift
done
[ "$seed" != FAILING ] || { echo 'ERROR: no room' >&2; exit 1; }
[ "$seed" = 2 ] || sleep 0.2
[ -z "$report" ] ||
    echo '{"fmax": {"clock": {"achieved": '$((160 + seed % 3 * 10))'.26}}}' >"$report"
"#;
        script("nextpnr-ecp5", &lines.replace("FAILING", failing));
    };
    let report = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
        command.args(["rtl", "report", "--block", "fifo", "--format", "json"]);
        command.args(arguments.split_whitespace());
        let path = format!("{}:/usr/bin:/bin", tools.path().display());
        command.env("PATH", path).stdin(Stdio::null());
        command.current_dir(tools.path()).output().unwrap()
    };
    route("none");
    let output = report("");
    let (row, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for part in [
        r#""luts":70,"carries":0,"flip_flops":8,"#,
        r#""clock_min_mhz":160.3,"clock_median_mhz":170.3,"clock_max_mhz":180.3"#,
    ] {
        assert!(row.contains(part), "{row}");
    }
    let row = report("--no-clock").stdout;
    assert!(
        text(&row).contains(r#""clock_min_mhz":null"#),
        "{}",
        text(&row)
    );
    route("3");
    let output = report("");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("fifo: nextpnr-ecp5 failed: ERROR: no room"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn help_shows_examples() {
    for (arguments, part) in [
        ("--help", "sme rtl lockstep --block switch"),
        ("lockstep --help", "--fault"),
        ("lockstep --help", "one place more; one place less"),
        ("report --help", "--no-clock"),
        ("verilog --help", "--out <DIR>"),
    ] {
        let output = rtl(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(part), "{arguments}");
    }
}
