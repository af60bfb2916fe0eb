//! `--engine`: every kind of engine gives the same output, byte for byte.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::command::skipped;

/// Runs `sme barrier` with these arguments and this engine, in `directory`.
fn barrier(directory: &Path, engine: &str, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(["barrier", "--no-host", "--engine", engine])
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Returns what stands on stdout, without the engine's name, and in the files that the run leaves.
fn outcome(engine: &str, arguments: &str) -> (String, Vec<(String, Vec<u8>)>) {
    let directory = tempfile::tempdir().unwrap();
    let output = barrier(directory.path(), engine, arguments);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {complaint}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let name = format!("\"engine\":\"{engine}\"");
    assert!(printed.contains(&name), "{printed}");
    let mut files: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    (printed.replace(&name, ""), files)
}

/// Small clusters in which every path through the engine is taken.
const RUNS: [&str; 6] = [
    "--nodes 4 --cores 4 --topology mesh:2x2 --algorithm tree --episodes 2",
    "--nodes 2 --cores 4 --algorithm flat --episodes 2",
    "--nodes 6 --cores 2 --topology torus:3x2 --algorithm dissemination --episodes 2",
    "--nodes 1 --cores 4 --algorithm flag-phase --placement engine --episodes 2",
    "--nodes 2 --cores 2 --algorithm flag-phase --placement remote --episodes 2",
    "--nodes 2 --cores 4 --algorithm flag-phase --placement coherent --episodes 2",
];

const FILES: &str = "--format json --per-thread threads.csv --link-load links.csv --waves ports.vcd --waves-nodes 0";

#[test]
fn engines_in_rtl_change_nothing() {
    for run in RUNS {
        let arguments = format!("{run} {FILES}");
        let cycle = outcome("cycle", &arguments);
        assert_eq!(cycle.1.len(), 3, "{run}");
        assert!(cycle == outcome("rtl", &arguments), "{run}");
    }
    let arguments = format!("{} {FILES}", RUNS[0]);
    let alone = outcome("rtl", &arguments);
    assert!(alone == outcome("rtl", &format!("{arguments} --workers 2")));
}

#[test]
fn a_sweep_runs_over_engines() {
    let directory = tempfile::tempdir().unwrap();
    let sweep =
        "sweep --nodes 2..3 --cores 1,2 --episodes 1 --engine cycle,rtl --jobs 2 --format csv";
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(sweep.split_whitespace())
        .arg("--no-host")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let rows = String::from_utf8(output.stdout).unwrap();
    let of = |engine: &str| {
        let cell = format!(",{engine},");
        let rows = rows.lines().filter(|row| row.contains(&cell));
        rows.map(|row| row.replace(&cell, ",")).collect::<Vec<_>>()
    };
    assert_eq!(of("cycle").len(), 4);
    assert_eq!(of("cycle"), of("rtl"));
}

#[test]
fn verilated_engines_change_nothing() {
    let here = tempfile::tempdir().unwrap();
    if Command::new("verilator").arg("--version").output().is_err() {
        skipped("verilator");
        // Then a user is told, in a line.
        let output = barrier(here.path(), "verilated", RUNS[0]);
        assert_eq!(output.status.code(), Some(2));
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains("verilator") && complaint.lines().count() == 1);
        return;
    }
    let arguments = format!("{} {FILES}", RUNS[0]);
    assert!(outcome("cycle", &arguments) == outcome("verilated", &arguments));
}

#[test]
fn the_critical_path_is_the_same() {
    let explained = |engine| {
        let directory = tempfile::tempdir().unwrap();
        let arguments = "--nodes 3 --cores 2 --episodes 2 --explain";
        let output = barrier(directory.path(), engine, arguments);
        assert_eq!(output.status.code(), Some(0));
        let printed = String::from_utf8(output.stdout).unwrap();
        let (before, line) = printed.split_once("\nengine ").unwrap();
        let (name, after) = line.split_once('\n').unwrap();
        assert_eq!(name.trim(), engine);
        format!("{before}\n{after}")
    };
    assert_eq!(explained("cycle"), explained("rtl"));
}

#[test]
fn a_machine_that_the_rtl_cannot_hold_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (set, found) in [
        ("link.channel_credits=33", "link.channel_credits is 33"),
        ("host.posted_credits=64", "host.posted_credits is 64"),
        ("link.bandwidth=1kB/s", "link.bandwidth"),
        (
            "uncached.load_payload=16B",
            "uncached.load_payload is 16 B; the RTL's packets carry 8 B",
        ),
        (
            "link.forwarding=cut-through",
            "link.forwarding is cut-through; the RTL's switches store and forward",
        ),
    ] {
        let output = barrier(directory.path(), "rtl", &format!("--nodes 2 --set {set}"));
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{set}: {complaint}");
        assert!(complaint.contains(found), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}
