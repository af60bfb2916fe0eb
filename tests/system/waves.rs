//! `sme barrier --waves`: the file, its names and times, what is refused, and that nothing else
//! changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use vcd::{IdCode, ScopeItem, Value};

use crate::command::skipped;

/// Runs `sme barrier` on four nodes with these arguments, in `directory`.
fn barrier_in(directory: &Path, arguments: &str) -> Output {
    let small = "barrier --nodes 4 --cores 2 --episodes 3 --no-host";
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(small.split_whitespace())
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The file that these arguments give, and what stands on stdout.
fn recorded(file: &str, arguments: &str) -> (Vec<u8>, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = barrier_in(directory.path(), &format!("--waves {file} {arguments}"));
    assert_eq!(text(&output.stderr), "", "{arguments}");
    assert_eq!(output.status.code(), Some(0), "{arguments}");
    // Only the file is left behind.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let bytes = fs::read(directory.path().join(file)).unwrap();
    (bytes, text(&output.stdout).to_owned())
}

/// Scope, name and width of every signal, in order.
fn signals(bytes: &[u8]) -> Vec<(String, String, u32)> {
    let header = vcd::Parser::new(bytes).parse_header().unwrap();
    let [ScopeItem::Scope(top)] = &header.items[..] else {
        panic!("one scope holds all");
    };
    assert_eq!(top.identifier, "cluster");
    let scopes = top.items.iter().map(|item| match item {
        ScopeItem::Scope(scope) => scope,
        other => panic!("{other:?} in the cluster"),
    });
    let signals = scopes.flat_map(|scope| {
        scope.items.iter().map(|item| match item {
            ScopeItem::Var(var) => (scope.identifier.clone(), var.reference.clone(), var.size),
            other => panic!("{other:?} in an engine"),
        })
    });
    signals.collect()
}

/// The file's times, in femtoseconds.
fn times(bytes: &[u8]) -> Vec<u64> {
    let times = text(bytes)
        .lines()
        .filter_map(|line| line.strip_prefix('#'));
    times.map(|time| time.parse().unwrap()).collect()
}

/// Packets that leave over links, where no two are in one cycle of a port: cycles times bits of
/// `link_out_valid`.
fn packets_out(bytes: &[u8]) -> u64 {
    let mut parser = vcd::Parser::new(bytes);
    let header = parser.parse_header().unwrap();
    let mut valids: BTreeMap<IdCode, IdCode> = BTreeMap::new();
    for (scope, ..) in signals(bytes) {
        let code = |name| header.find_var(&["cluster", &scope, name]).unwrap().code;
        valids.insert(code("cycle"), code("link_out_valid"));
    }
    let mut values: BTreeMap<IdCode, u64> = BTreeMap::new();
    let mut stepped = Vec::new();
    let mut packets = 0;
    for command in parser {
        match command.unwrap() {
            vcd::Command::Timestamp(_) => {
                let valid = stepped
                    .drain(..)
                    .filter_map(|code| values.get(&valids[&code]));
                packets += valid
                    .map(|valid| u64::from(valid.count_ones()))
                    .sum::<u64>();
            }
            vcd::Command::ChangeVector(code, bits) => {
                let bit = |value| u64::from(value == Value::V1);
                let value = bits.iter().fold(0, |sum, value| sum << 1 | bit(value));
                values.insert(code, value);
                if valids.contains_key(&code) {
                    stepped.push(code);
                }
            }
            _ => {}
        }
    }
    packets
}

#[test]
fn signals_are_called_as_the_ports_of_the_rtl() {
    let mut names: Vec<(String, u32)> = vec![("cycle".into(), 64)];
    for way in ["in", "out"] {
        for (field, width) in [
            ("valid", 1),
            ("extension", 32),
            ("command", 64),
            ("mask", 32),
            ("data", 64),
            ("kind", 2),
            ("address", 64),
            ("enables", 8),
            ("tag", 5),
            ("coherent", 1),
            ("credit", 3),
        ] {
            names.push((format!("host_{way}_{field}"), width));
        }
        names.push((format!("link_{way}_valid"), 6));
        for port in 0..6 {
            for (field, width) in [
                ("channel", 2),
                ("kind", 2),
                ("flag", 1),
                ("tag", 5),
                ("target", 20),
                ("source", 20),
                ("offset", 40),
                ("enables", 8),
                ("data", 64),
                ("crc", 16),
                ("credit", 4),
            ] {
                names.push((format!("link{port}_{way}_{field}"), width));
            }
        }
    }
    names.sort();
    let (bytes, _) = recorded("a.vcd", "--waves-nodes 2,0,2");
    for scope in ["engine_0", "engine_2"] {
        let found = signals(&bytes).into_iter().filter(|(of, ..)| of == scope);
        let mut found: Vec<_> = found.map(|(_, name, width)| (name, width)).collect();
        found.sort();
        assert_eq!(found, names, "{scope}");
    }
    assert_eq!(signals(&bytes).len(), 2 * names.len());
    // Node 0 without a word.
    let (bytes, _) = recorded("a.VCD", "");
    assert!(
        signals(&bytes)
            .iter()
            .all(|(scope, ..)| scope == "engine_0")
    );
}

#[test]
fn recording_changes_nothing_and_is_the_same_with_any_number_of_workers() {
    let directory = tempfile::tempdir().unwrap();
    let plain = barrier_in(directory.path(), "--explain");
    for file in ["a.vcd", "a.fst"] {
        let (once, stdout) = recorded(file, "--explain --waves-nodes 0..3");
        assert_eq!(stdout, text(&plain.stdout));
        assert!(once.len() > 10_000, "{file} has {} bytes", once.len());
        for workers in [1, 2, 3] {
            let flags = format!("--explain --waves-nodes 0..3 --workers {workers}");
            let (again, stdout) = recorded(file, &flags);
            assert!(again == once, "{file}, {workers} workers");
            assert_eq!(stdout, text(&plain.stdout));
        }
    }
}

#[test]
fn only_the_window_is_recorded() {
    let (whole, _) = recorded("a.vcd", "--waves-nodes 0..3");
    let (part, _) = recorded(
        "a.vcd",
        "--waves-nodes 0..3 --waves-from 4us --waves-to 7.5us",
    );
    let (whole, part) = (times(&whole), times(&part));
    let cycle = 6_410_257;
    let (from, to) = (4_000_000_000, 7_500_000_000);
    assert_eq!(whole[0], 0);
    assert!((from..from + cycle + 1).contains(&part[0]), "{}", part[0]);
    // What passes in the last cycle is over in the next.
    let last = *part.last().unwrap();
    assert!((to..=to + 2 * cycle).contains(&last), "{last}");
    let inside = whole
        .iter()
        .filter(|&&time| (from + cycle..to).contains(&time));
    assert!(inside.clone().count() > 50);
    assert!(inside.clone().all(|time| part.contains(time)));
    // Edges are exact: some time is that of every 39th edge, which is a whole number.
    let exact = |time: &u64| {
        let number = u128::from(*time) * 156_000_000 / 1_000_000_000_000_000;
        (number * 1_000_000_000_000_000).div_ceil(156_000_000) == u128::from(*time)
    };
    assert!(whole.iter().all(exact));
}

#[test]
fn the_packets_are_those_that_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let run = "--waves a.vcd --waves-nodes 0..3 --link-load links.csv";
    let output = barrier_in(directory.path(), run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let links = fs::read_to_string(directory.path().join("links.csv")).unwrap();
    let counted: u64 = links
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(4).unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(counted > 0);
    // Three episodes are counted, the warm-up is not.
    let recorded = packets_out(&fs::read(directory.path().join("a.vcd")).unwrap());
    assert_eq!(recorded * 3, counted * 4);
}

#[test]
fn bad_flags_are_one_line_and_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("old.vcd"), "before").unwrap();
    for (arguments, named) in [
        ("--waves old.txt", ".vcd or .fst"),
        ("--waves old", ".vcd or .fst"),
        ("--waves", "--waves"),
        ("--waves no/such/a.vcd", "no/such/a.vcd"),
        (
            "--waves old.vcd --waves-nodes 4",
            "--waves-nodes 4: 4 is too large; at most 3",
        ),
        ("--waves old.vcd --waves-nodes 0..3,x", "'x'"),
        ("--waves old.vcd --waves-nodes -1", "'-1'"),
        (
            "--waves old.vcd --waves-nodes 0..2000 --topology mesh:64x64",
            "at most 1024",
        ),
        ("--waves old.vcd --waves-from 3", "--waves-from"),
        (
            "--waves old.vcd --waves-to 3us --waves-from 3000ns",
            "--waves-to",
        ),
        ("--waves old.vcd --waves-to 0ns", "--waves-to"),
        ("--waves-nodes 0", "--waves <FILE>"),
        ("--waves-from 1us", "--waves <FILE>"),
        ("--waves-to 1us", "--waves <FILE>"),
        (
            "--waves old.vcd --link-load old.vcd",
            "is the file of --link-load",
        ),
    ] {
        let output = barrier_in(directory.path(), arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(text(&output.stdout), "", "{arguments}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.contains(named), "{arguments}: {complaint}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let old = fs::read_to_string(directory.path().join("old.vcd")).unwrap();
    assert_eq!(old, "before");
}

#[test]
fn of_a_run_that_failed_there_is_a_waveform() {
    let directory = tempfile::tempdir().unwrap();
    // Longer than the simulator's clock can hold: all else that could fail is refused before.
    let slow = "barrier --algorithm flag-phase --placement engine --nodes 1 --cores 1 \
                --episodes 1500000 --waves a.vcd --waves-to 1s --set core.clock=1MHz \
                --set core.operation=900000cycles --set cache.l1=1000000cycles \
                --noise-period 1s --noise-duration 500ms";
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(slow.split_whitespace())
        .current_dir(directory.path())
        .output()
        .unwrap();
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(
        complaint.starts_with("sme: the run has come to 53 days "),
        "{complaint}"
    );
    let bytes = fs::read(directory.path().join("a.vcd")).unwrap();
    assert!(times(&bytes).len() > 10);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_complaint() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["full.vcd", "full.fst"] {
        std::os::unix::fs::symlink("/dev/full", directory.path().join(file)).unwrap();
        let output = barrier_in(directory.path(), &format!("--waves {file}"));
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(
            complaint.starts_with(&format!("sme: --waves {file}: ")),
            "{complaint}"
        );
        assert_eq!(text(&output.stdout), "");
    }
}

/// GTKWave's own converters read both formats, and find the same in them.
#[test]
fn the_tools_of_gtkwave_take_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let run = |tool: &str, arguments: &str| {
        Command::new(tool)
            .args(arguments.split_whitespace())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .output()
    };
    if run("vcd2fst", "--help").is_err() || run("fst2vcd", "--help").is_err() {
        skipped("gtkwave");
        return;
    }
    for file in ["a.vcd", "a.fst"] {
        let flags = format!("--waves {file} --waves-nodes 0..3");
        assert!(barrier_in(directory.path(), &flags).status.success());
    }
    for (tool, arguments) in [
        ("vcd2fst", "a.vcd theirs.fst"),
        ("fst2vcd", "-f theirs.fst -o theirs.vcd"),
        ("fst2vcd", "-f a.fst -o ours.vcd"),
    ] {
        let output = run(tool, arguments).unwrap();
        assert!(output.status.success(), "{tool}: {}", text(&output.stderr));
    }
    // How they say that all is zero at first, and the order of changes at one time, is the tools'
    // affair.
    let changes = |file: &str| {
        let text = fs::read_to_string(directory.path().join(file)).unwrap();
        let (header, rest) = text.split_once("$enddefinitions").unwrap();
        let names = header.lines().filter(|line| line.starts_with("$var"));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let instants = rest.split("\n#").skip(1).map(|instant| {
            let lines = instant.lines().filter(|line| !line.starts_with('$'));
            let mut changes: Vec<String> = lines.map(str::to_owned).collect();
            changes[1..].sort();
            changes
        });
        let instants = instants.filter(|changes| changes[0] != "0");
        (names, instants.collect::<Vec<_>>())
    };
    let (ours, theirs) = (changes("ours.vcd"), changes("theirs.vcd"));
    assert_eq!(ours.0, theirs.0);
    assert!(ours.1.len() > 100);
    assert!(ours.1 == theirs.1);
}
