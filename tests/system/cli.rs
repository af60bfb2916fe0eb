//! The program itself: its output, its files, its complaints and its exit status.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{sme, sme_in, stdout, text};
use sme::experiment::{Algorithm, FlagLayout, Pin, VariablePlacement};
use sme::lock::Data;
use sme::program::{CoherencePoint, Mapped};
use sme_barrier::{Mapping, TreeShape};

const SMALL: &str = "--nodes 4 --cores 2 --episodes 3 --no-host";

#[test]
fn a_json_row_has_every_key_in_order() {
    let row = stdout("barrier --nodes 4 --cores 2 --episodes 3 --format json");
    assert_eq!(row.lines().count(), 1);
    let keys = [
        "version",
        "machine",
        "machine_hash",
        "set",
        "engine",
        "algorithm",
        "placement",
        "topology",
        "nodes",
        "cores_per_node",
        "threads",
        "episodes",
        "seed",
        "pin",
        "layout",
        "fan_in",
        "tree_shape",
        "mapping",
        "local_fan_in",
        "skew_ns",
        "skew_distribution",
        "work_ns",
        "noise_period_ns",
        "noise_duration_ns",
        "noise_distribution",
        "noise_duration_distribution",
        "latency_mean_us",
        "latency_min_us",
        "latency_p50_us",
        "latency_p99_us",
        "latency_max_us",
        "remote_loads",
        "remote_stores",
        "link_bytes",
        "events",
        "host",
        "wall_s",
        "events_per_s",
        "peak_rss_bytes",
        "bytes_per_thread",
    ];
    let places: Vec<_> = keys
        .iter()
        .map(|key| row.find(&format!("\"{key}\":")).unwrap())
        .collect();
    assert!(places.is_sorted());
    let value: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 36);
    assert_eq!(value["threads"], 8);
    assert_eq!(value["set"], "");
    assert!(value["host"]["wall_s"].as_f64().unwrap() > 0.0);
    let latency = |key: &str| value[key].as_f64().unwrap();
    assert!(latency("latency_min_us") > 0.1);
    assert!(latency("latency_min_us") <= latency("latency_p50_us"));
    assert!(latency("latency_p99_us") <= latency("latency_max_us"));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for format in ["json", "csv", "table"] {
        let run = |workers| {
            let workers = format!("barrier {SMALL} --format {format} --workers {workers}");
            stdout(&workers)
        };
        let once = run(1);
        assert_eq!(run(1), once);
        assert_eq!(run(2), once);
        assert!(!once.contains("wall_s"));
    }
}

#[test]
fn the_form_of_the_simulator_changes_nothing() {
    for algorithm in ["tree", "dissemination"] {
        for late in ["", "--skew 5us --noise-period 50us --noise-duration 2us"] {
            let run = |form| {
                stdout(&format!(
                    "barrier --machine exascale --nodes 6 --cores 40 --episodes 2 {late} \
                     --algorithm {algorithm} --form {form} --no-host --format json"
                ))
            };
            assert_eq!(run("compact"), run("readable"), "{algorithm} {late}");
        }
    }
}

#[test]
fn csv_and_json_say_the_same() {
    let csv = stdout(&format!("barrier {SMALL} --format csv"));
    let (header, record) = csv.trim_end().split_once('\n').unwrap();
    let json = stdout(&format!("barrier {SMALL} --format json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (key, cell) in header.split(',').zip(record.split(',')) {
        let same = match &json[key] {
            serde_json::Value::Null => cell.is_empty(),
            serde_json::Value::String(text) => text == cell,
            number => number.as_f64() == Some(cell.parse().unwrap()),
        };
        assert!(same, "{key}: {} and {cell}", json[key]);
    }
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    for (arguments, named) in [
        ("barrier --nodes 0", "--nodes 0"),
        ("barrier --nodes 99999999999999999999", "--nodes"),
        ("barrier --cores 17", "--cores 17"),
        ("barrier --form compact --layout packed", "--layout padded"),
        (
            "barrier --form compact --algorithm flat",
            "--form compact: only the tree",
        ),
        ("barrier --form compact --explain", "--form compact"),
        ("barrier --algorithm tre", "did you mean 'tree'"),
        ("barrier --algorthm tree", "--algorithm"),
        (
            "barrier --topology mesh:2x2 --nodes 5",
            "--topology mesh:2x2",
        ),
        ("barrier --topology mesh:0x2", "--topology"),
        ("barrier --topology mesh:99999999999x2", "--topology"),
        ("barrier --machine sme-prototyp", "sme-prototype"),
        ("barrier --machine no-such.toml", "no-such.toml"),
        ("barrier --set engine.clok=1GHz", "engine.clock"),
        ("barrier --set engine.clock=156", "engine.clock"),
        ("barrier --format xml", "--format"),
        ("barrier --nodes", "--nodes"),
        (
            "barrier -o no/such/directory/a.csv",
            "no/such/directory/a.csv",
        ),
        ("barrier -o /", "-o /"),
        ("barrier --per-thread no/such/a", "--per-thread no/such/a"),
        ("barrier --per-thread a --link-load a", "--link-load a"),
        (
            "barrier --nodes 64 --episodes 10000000 --per-thread a",
            "--per-thread",
        ),
        ("sweep --nodes 1..64+0", "--nodes 1..64+0"),
        ("sweep --cores 1..17", "--cores 17"),
        ("sweep --resume", "--output"),
        ("sweep -o a.txt --resume", "--resume"),
        ("sweep --jobs 0", "--jobs 0"),
        ("machines show nothing", "nothing"),
        ("machines", "command"),
        ("native --threads 0", "--threads 0"),
        ("native --algorithm flat --fan-in 3", "--fan-in"),
        ("validate --episodes 0", "--episodes 0"),
        (
            "validate --paper SME",
            "--paper: 'SME' is not known; did you mean 'sme'? (one of sme, scc, rcce, scosco, impi, mppa, coherence)",
        ),
        ("validat", "validate"),
        ("extra", "extra"),
    ] {
        let output = sme(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(text(&output.stdout), "", "{arguments}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.contains(named), "{arguments}: {complaint}");
    }
    assert!(!Path::new("a").exists());
}

#[test]
fn a_complaint_is_pinned() {
    let output = sme("barrier --nodes 5 --topology mesh:2x2");
    let expected = "sme: --topology mesh:2x2: its 4 positions do not hold 5 nodes\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn every_help_has_examples_and_they_parse() {
    let directory = tempfile::tempdir().unwrap();
    let all = sme::cli::command();
    let commands = all.get_subcommands().map(clap::Command::get_name);
    for command in commands.chain([""]) {
        let help = stdout(&format!("{command} --help"));
        let examples = help.split("Examples:").nth(1).unwrap();
        assert!(examples.contains("  sme "), "{command}");
        for example in examples
            .lines()
            .filter_map(|line| line.strip_prefix("  sme"))
        {
            // Nothing is run: a directory that does not exist ends every command early. What stands
            // in quotes is one word.
            let example: String = (0..)
                .zip(example.split('"'))
                .map(|(n, part)| match n % 2 {
                    1 => part.replace(' ', ""),
                    _ => part.to_owned(),
                })
                .collect();
            if example.is_empty() || example.contains("mine.toml") {
                continue;
            }
            let output = sme_in(directory.path(), &format!("{example} --no-such-flag"));
            let complaint = text(&output.stderr);
            assert!(
                complaint.contains("'--no-such-flag'"),
                "{example}: {complaint}"
            );
        }
    }
}

/// The names stand in the text of the flags: a new one must not be forgotten there.
#[test]
fn help_lists_every_name() {
    for command in ["barrier", "sweep", "native"] {
        let help = stdout(&format!("{command} --help"));
        let of_machines = [
            VariablePlacement::NAMES,
            Pin::NAMES,
            TreeShape::NAMES,
            Mapping::NAMES,
        ];
        let lists = [Algorithm::NAMES, FlagLayout::NAMES];
        let simulated = of_machines.iter().filter(|_| command != "native");
        for name in lists.iter().chain(simulated).copied().flatten() {
            assert!(has_word(&help, name), "{command}: {name}");
        }
    }
    for command in ["fft", "lu", "radix"] {
        let help = stdout(&format!("{command} --help"));
        let lists = [
            Mapped::NAMES,
            CoherencePoint::NAMES,
            sme_fft_demo::Placement::NAMES,
        ];
        for name in lists.iter().copied().flatten() {
            assert!(has_word(&help, name), "{command}: {name}");
        }
    }
    let help = stdout("lock --help");
    for name in Data::NAMES {
        assert!(has_word(&help, name), "lock: {name}");
    }
}

fn has_word(help: &str, name: &str) -> bool {
    let mut words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.any(|word| word == name)
}

/// Fields that depend on this computer stand apart and may be left out, as in the rows of barriers.
#[test]
fn the_lock_says_what_it_cost_this_computer() {
    const SMALL: &str = "lock --nodes 2 --cores 2 --acquisitions 2 --format json";
    let row = |more: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(&format!("{SMALL} {more}"))).unwrap()
    };
    let (with, mut without) = (row(""), row("--no-host"));
    assert!(with["host"]["wall_s"].is_number(), "{with}");
    assert!(without.get("host").is_none(), "{without}");
    assert_eq!(without["acquisitions"], 8);
    without["host"] = with["host"].clone();
    assert_eq!(with, without);
}

#[test]
fn observations_go_to_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let run = format!("barrier {SMALL} -o row.json --per-thread threads.csv --link-load links.csv");
    let output = sme_in(directory.path(), &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();

    let threads = read("threads.csv");
    let mut lines = threads.lines();
    assert_eq!(lines.next(), Some("episode,node,core,arrive_ns,leave_ns"));
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 3 * 4 * 2);
    // The latencies of the row are the distances between last departures, and no thread leaves
    // before the last has arrived.
    let of = |episode: f64, column: usize| {
        let rows = rows.iter().filter(move |row| row[0] == episode);
        rows.map(|row| row[column]).collect::<Vec<_>>()
    };
    let last = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
    for episode in [0.0, 1.0, 2.0] {
        let first_departure = of(episode, 4).into_iter().fold(f64::MAX, f64::min);
        assert!(last(of(episode, 3)) <= first_departure);
    }
    let row: serde_json::Value = serde_json::from_str(&read("row.json")).unwrap();
    let longest = [1.0, 2.0].map(|e| last(of(e, 4)) - last(of(e - 1.0, 4)));
    let longest = longest.into_iter().fold(0.0, f64::max) / 1e3;
    assert!(longest <= row["latency_max_us"].as_f64().unwrap() + 1e-9);
    assert!(longest >= row["latency_min_us"].as_f64().unwrap() - 1e-9);

    let links = read("links.csv");
    let header = "from,to,channel,bytes,packets,busy_fraction,stall_fraction";
    assert_eq!(links.lines().next(), Some(header));
    let bytes: u64 = links
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(3).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(row["link_bytes"].as_u64(), Some(bytes));
}

/// A file that is open already is written to where it is, not replaced while another process uses
/// it.
#[cfg(unix)]
#[test]
fn results_follow_each_other_where_stdout_goes() {
    let directory = tempfile::tempdir().unwrap();
    let small = format!("{} barrier {SMALL} --format csv", env!("CARGO_BIN_EXE_sme"));
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).current_dir(directory.path());
        let output = shell.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{line}: {}",
            text(&output.stderr)
        );
        text(&output.stdout).to_owned()
    };
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();

    let row = shell(&small);
    shell(&format!(
        "{small} --per-thread threads.csv --link-load links.csv > row"
    ));
    let (threads, links) = (read("threads.csv"), read("links.csv"));
    assert_eq!(read("row"), row);
    let all = format!("before\n{threads}{links}{row}after\n");
    let to = |place: &str| {
        format!("(echo before; {small} --per-thread {place} --link-load {place}; echo after)")
    };

    // A file, a pipe, and a file by its own name or opened by the shell.
    shell(&format!("{} > a", to("/dev/stdout")));
    assert_eq!(read("a"), all);
    assert_eq!(shell(&to("/dev/stdout")), all);
    shell(&format!("{} > b", to("b")));
    assert_eq!(read("b"), all);
    let third = format!("before\n{threads}{links}");
    shell("echo before > c");
    assert_eq!(
        shell(&format!(
            "{small} --per-thread /dev/fd/3 --link-load /dev/fd/3 3>> c"
        )),
        row
    );
    assert_eq!(read("c"), third);
    shell(&format!(
        "{small} -o /dev/stderr --per-thread /dev/stderr 2> d"
    ));
    assert_eq!(read("d"), format!("{threads}{row}"));

    // A sweep's rows too, and no file beside it.
    let sweep = format!(
        "{} sweep {SMALL} --seed 1,2 --format csv",
        env!("CARGO_BIN_EXE_sme")
    );
    let rows = shell(&sweep);
    shell(&format!("(echo before; {sweep} -o /dev/stdout) > e"));
    assert_eq!(read("e"), format!("before\n{rows}"));

    // A FIFO stays one.
    shell(&format!(
        "mkfifo f && (cat f > g & {small} --per-thread f > /dev/null; wait)"
    ));
    assert_eq!(read("g"), threads);
    let mut left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let expected = [
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
        "links.csv",
        "row",
        "threads.csv",
    ];
    assert_eq!(left, expected);
}

#[test]
fn explain_leaves_json_one_line() {
    let output = sme(&format!("barrier {SMALL} --explain --format json"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert!(text(&output.stderr).starts_with("critical path of the last episode\n"));
    let table = stdout(&format!("barrier {SMALL} --explain"));
    assert!(table.contains("\ncritical path of the last episode\n"));
    assert!(table.contains("share_percent"));
}

#[test]
fn a_sweep_goes_on_where_it_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = "sweep --nodes 1..6 --cores 1,2 --algorithm flat,tree --episodes 2 --no-host";
    let whole = stdout(&format!("{sweep} --format csv --jobs 1"));
    assert_eq!(stdout(&format!("{sweep} --format csv --jobs 3")), whole);
    assert_eq!(whole.lines().count(), 1 + 24);

    let (file, partial) = (
        directory.path().join("a.csv"),
        directory.path().join("a.csv.partial"),
    );
    for cut in [0, 1, whole.len() / 3, whole.len() - 1, whole.len()] {
        fs::write(&partial, &whole.as_bytes()[..cut]).unwrap();
        let output = sme_in(directory.path(), &format!("{sweep} -o a.csv"));
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("--resume"));
        let output = sme_in(directory.path(), &format!("{sweep} -o a.csv --resume"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(&file).unwrap(), whole);
        assert!(!partial.exists());
        fs::remove_file(&file).unwrap();
    }
    fs::write(&partial, &whole).unwrap();
    let other = sme_in(
        directory.path(),
        &format!("{sweep} -o a.csv --resume --seed 2"),
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(
        text(&other.stderr).contains("seed"),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(fs::read_to_string(&partial).unwrap(), whole);
}

#[test]
fn a_killed_sweep_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = "sweep --nodes 1..20 --cores 4 --algorithm flat,tree --episodes 5 --no-host";
    let whole = stdout(&format!("{sweep} --format json"));
    let (file, partial) = (
        directory.path().join("a.json"),
        directory.path().join("a.json.partial"),
    );
    let mut resumed = 0;
    while !file.exists() {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sme"))
            .args(format!("{sweep} -o a.json --resume --jobs 2").split_whitespace())
            .current_dir(directory.path())
            .spawn()
            .unwrap();
        let before = fs::metadata(&partial).map_or(0, |file| file.len());
        // Killed as soon as it has written something more.
        while child.try_wait().unwrap().is_none() {
            if fs::metadata(&partial).is_ok_and(|file| file.len() > before + 300) {
                child.kill().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        resumed += 1;
        assert!(resumed < 1_000);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
}

#[test]
fn machines_are_listed_and_shown() {
    let list = stdout("machines list");
    assert!(list.contains("sme-prototype") && list.contains("sme-asic"));
    let shown = stdout("machines show sme-asic");
    assert!(shown.contains("engine.clock"));
    let constants = stdout("machines show --format json --set engine.clock=200MHz");
    let clock = constants
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|constant| constant["constant"] == "engine.clock")
        .unwrap();
    assert!(clock["value"].as_str().unwrap().starts_with("200"));
}

#[test]
fn native_measures_on_this_computer() {
    let row = stdout("native --threads 2 --repetitions 1 --turn 1ms --format json");
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(row["threads"], 2);
    assert!(row["sme_median_ns"].as_f64().unwrap() > 1.0);
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_panic() {
    for arguments in [
        "--help",
        "sweep --nodes 1..8 --cores 1 --episodes 1 --format csv",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sme"))
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "", "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_complaint() {
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let run = |stdout: Stdio, stderr: Stdio, arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
        command.args(arguments.split_whitespace());
        command.stdout(stdout).stderr(stderr);
        command.spawn().unwrap().wait_with_output().unwrap()
    };
    let row = format!("barrier {SMALL}");
    let output = run(full().into(), Stdio::piped(), &row);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).lines().count(), 1);
    // There is no reader to tell, and nothing else happens.
    let output = run(Stdio::piped(), full().into(), "barrier --nodes 0");
    assert_eq!(output.status.code(), Some(2));
}

/// A shell's limit of the address space is one of memory: the run is refused and does not abort.
#[cfg(target_os = "linux")]
#[test]
fn what_a_shell_allows_is_not_exceeded() {
    let run = "ulimit -v 4000000 && exec \"$0\" barrier --nodes 1048576 --cores 16 --form readable";
    let output = Command::new("sh")
        .args(["-c", run, env!("CARGO_BIN_EXE_sme")])
        .output()
        .unwrap();
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    let available = complaint.split_once("takes about 16385 MiB of memory; ");
    let available = available.and_then(|(_, rest)| rest.strip_suffix(" MiB are available\n"));
    let mebibytes: u64 = available.expect(complaint).parse().expect(complaint);
    assert!(mebibytes < 4000, "{complaint}");
}
