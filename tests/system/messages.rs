//! `sme mpi`: the calls of a ping-pong as a timeline, and the critical path of its last round, say
//! what its row says.

use std::fs;
use std::process::Command;

use crate::command::{cell, sme_in, text};

/// A row of a timeline; times in picoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    rank: u32,
    call: String,
    begin: u64,
    end: u64,
    peer: u32,
    bytes: u64,
}

/// Picoseconds of nanoseconds with three decimals.
fn ps(ns: &str) -> u64 {
    ns.replace('.', "").parse().unwrap()
}

fn read(timeline: &str) -> Vec<Row> {
    let mut lines = timeline.lines();
    assert_eq!(lines.next(), Some("rank,call,begin_ns,end_ns,peer,bytes"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [rank, call, begin, end, peer, bytes] = cells[..] else {
            panic!("{line}");
        };
        Row {
            rank: rank.parse().unwrap(),
            call: call.to_owned(),
            begin: ps(begin),
            end: ps(end),
            peer: peer.parse().unwrap(),
            bytes: bytes.parse().unwrap(),
        }
    };
    lines.map(row).collect()
}

/// The outputs of a ping-pong that succeeds: stdout, stderr, and its timeline.
fn pingpong(flags: &str) -> (String, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("mpi pingpong --machine scc --no-host --rounds 3 {flags}");
    let output = sme_in(directory.path(), &line);
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{flags}: {complaint}");
    let timeline = fs::read_to_string(directory.path().join("t.csv"));
    (
        said.to_owned(),
        complaint.to_owned(),
        timeline.unwrap_or_default(),
    )
}

/// Beside the calls of both libraries: sizes in one piece and in several, partners near and far.
const CASES: [(&str, [&str; 2]); 3] = [
    (
        "--channel rcce --sizes 64 --partner 2",
        ["RCCE_send", "RCCE_recv"],
    ),
    (
        "--channel sccmpb --sizes 8 --ranks 2",
        ["MPI_Send", "MPI_Recv"],
    ),
    (
        "--channel sccmpb --sizes 4096 --partner 47",
        ["MPI_Send", "MPI_Recv"],
    ),
];

#[test]
fn a_timeline_has_every_call_and_agrees_with_the_row() {
    for (flags, [send, receive]) in CASES {
        let (plain, silent, none) = pingpong(flags);
        let (watched, _, timeline) = pingpong(&format!("{flags} --timeline t.csv"));
        let (.., again) = pingpong(&format!("{flags} --timeline t.csv"));
        assert_eq!((silent.as_str(), none.as_str()), ("", ""), "{flags}");
        assert_eq!(plain, watched, "{flags}: watching changes nothing");
        assert_eq!(timeline, again, "{flags}: the same bytes");

        let rows = read(&timeline);
        assert!(rows.is_sorted_by_key(|row| (row.begin, row.rank)));
        let bytes: u64 = cell(&plain, "size_bytes").parse().unwrap();
        let partner: u32 = cell(&plain, "partner").parse().unwrap();
        for (rank, peer, calls) in [(0, partner, [send, receive]), (partner, 0, [receive, send])] {
            let own: Vec<&Row> = rows.iter().filter(|row| row.rank == rank).collect();
            assert_eq!(own.len(), 10, "two calls a round, of which there are five");
            for (row, call) in own.iter().zip(calls.iter().cycle()) {
                assert_eq!(row.call, *call);
                assert_eq!((row.peer, row.bytes), (peer, bytes));
                assert!(row.begin < row.end);
            }
            for pair in own.windows(2) {
                assert_eq!(pair[0].end, pair[1].begin, "calls follow each other");
            }
        }
        assert_eq!(rows.len(), 20, "the other ranks make no call");

        let own: Vec<&Row> = rows.iter().filter(|row| row.rank == 0).collect();
        let counted = own[9].end - own[4].begin;
        assert_eq!(ps(&cell(&plain, "latency_us")), counted / 6);
    }
}

/// The steps of a critical path: begin, duration, node, and the rest.
fn steps(path: &str) -> Vec<(u64, u64, String)> {
    let lines = path.lines().skip_while(|line| !line.contains("at_ns"));
    let lines = lines.skip(1).take_while(|line| !line.is_empty());
    let step = |line: &str| {
        let (at, rest) = line.trim_start().split_once(' ').unwrap();
        let (took, what) = rest.trim_start().split_once(' ').unwrap();
        (ps(at), ps(took), what.trim_start().to_owned())
    };
    lines.map(step).collect()
}

#[test]
fn the_steps_of_the_last_round_add_up() {
    for (flags, _) in CASES {
        let (plain, ..) = pingpong(flags);
        let (explained, silent, timeline) =
            pingpong(&format!("{flags} --explain --timeline t.csv"));
        assert_eq!(silent, "");
        let path = explained.strip_prefix(&plain).expect("the row comes first");
        let rows = read(&timeline);
        let own: Vec<&Row> = rows.iter().filter(|row| row.rank == 0).collect();
        let (begin, end) = (own[8].begin, own[9].end);
        let heading = format!(
            "\ncritical path of the last round\nwhich begins at {}.{:03} ns\n\n",
            begin / 1000,
            begin % 1000
        );
        assert!(path.starts_with(&heading), "{path}");
        let mut at = 0;
        for (from, took, what) in steps(path) {
            assert_eq!(from, at, "steps are contiguous: {what}");
            assert!(took > 0 && !what.contains("before the trace"), "{what}");
            at += took;
        }
        assert_eq!(at, end - begin, "{path}");
        assert!(path.ends_with(" 100.0\n"), "{path}");

        let (json, stderr, _) = pingpong(&format!("{flags} --explain --format json"));
        assert_eq!(json.lines().count(), 1);
        assert_eq!(stderr, path.trim_start());
    }
}

#[test]
fn a_timeline_that_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (flags, says) in [
        (
            "--sizes 8,16 --timeline t.csv",
            "--timeline: of one run; --sizes, --call and --mode are 2",
        ),
        (
            "--timeline t.csv",
            "--timeline: of one run; --sizes, --call and --mode are 18",
        ),
        (
            "--explain",
            "--explain: of one run; --sizes, --call and --mode are 18",
        ),
        (
            "--sizes 8 --rounds 16777216 --timeline t.csv",
            "--timeline: 67108872 rows; at most 16777216: fewer --rounds",
        ),
        ("--sizes 8 --timeline x/t.csv", "--timeline x/t.csv"),
        (
            "--sizes 8 --timeline t.csv -o t.csv",
            "--timeline t.csv: is the file of -o already",
        ),
    ] {
        let line = format!("mpi pingpong --machine scc {flags}");
        let output = sme_in(directory.path(), &line);
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let said = text(&output.stderr);
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// The standard output of a collective that succeeds.
fn collective(flags: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("mpi collective {flags} --machine scc --no-host --rounds 2");
    let output = sme_in(directory.path(), &line);
    let (said, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{flags}: {complaint}");
    said.to_owned()
}

#[test]
fn the_algorithm_that_is_chosen_is_the_one_that_runs() {
    for call in [
        "barrier --ranks 5",
        "bcast --ranks 5 --sizes 64",
        "bcast --ranks 5 --sizes 16384",
        "allgather --ranks 4 --sizes 8",
        "allgather --ranks 5 --sizes 8",
        "alltoall --ranks 9 --sizes 8",
        "allreduce --ranks 3 --sizes 16384",
    ] {
        let own_row = collective(call);
        let algorithm = cell(&own_row, "algorithm");
        let named = collective(&format!("{call} --algorithm {algorithm}"));
        assert_eq!(own_row, named);
        let all = collective(&format!("{call} --algorithm all --format csv"));
        let rows = all.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let mut rows: Vec<(&str, &str)> = rows.map(|row| (row[6], row[9])).collect();
        assert_eq!(rows.remove(0), ("algorithm", "latency_us"));
        assert!(rows.len() >= 2, "{all}");
        let mut latencies: Vec<&str> = rows.iter().map(|row| row.1).collect();
        latencies.sort_unstable();
        latencies.dedup();
        assert_eq!(
            latencies.len(),
            rows.len(),
            "each has its own latency: {all}"
        );
        let own = rows.iter().find(|row| row.0 == algorithm);
        assert_eq!(
            own.map(|row| row.1),
            Some(cell(&own_row, "latency_us").as_str())
        );
    }
}

#[test]
fn the_steps_of_the_last_call_add_up_to_its_latency() {
    for call in [
        "barrier --ranks 3",
        "reduce --ranks 4 --sizes 64",
        "scan --ranks 3 --sizes 4096",
    ] {
        let said = collective(&format!("{call} --explain"));
        let steps = steps(&said[said.find("critical path").expect("a path")..]);
        let whole: u64 = steps.iter().map(|(_, took, _)| took).sum();
        // The mean of two calls, of which the path explains the second.
        let mean: f64 = cell(&said, "latency_us").parse().unwrap();
        let ratio = whole as f64 / (mean * 1e6);
        assert!((0.98..1.02).contains(&ratio), "{call}: {ratio}");
    }
}

#[test]
fn a_collective_that_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (flags, says) in [
        (
            "brcast",
            "CALL: 'brcast' is not known; did you mean 'bcast'?",
        ),
        ("bcast --algorithm ring", "--algorithm: 'ring' is not known"),
        ("bcast --channel rcce", "--channel: rcce has no MPI calls"),
        ("barrier --sizes 8", "--sizes: a barrier has no data"),
        ("gather --sizes 12", "--sizes: 12 is not a multiple of 8"),
        (
            "alltoall --sizes 2000000",
            "--sizes: the blocks of all ranks are 96000000 bytes; at most 67108864",
        ),
        (
            "allgather --ranks 3,6 --algorithm recursive-doubling",
            "--algorithm: recursive-doubling needs a power of two",
        ),
        (
            "scan --ranks 2,3 --sizes 8 --explain",
            "--explain: of one run; --ranks, --sizes and --algorithm make 2",
        ),
        ("scan --ranks 49", "--ranks 49"),
        (
            "alltoall --machine sme-prototype --ranks 16384 --sizes 8",
            "--ranks 16384: takes about",
        ),
    ] {
        let machine = if flags.contains("--machine") {
            ""
        } else {
            "--machine scc"
        };
        let line = format!("mpi collective {flags} {machine}");
        let output = sme_in(directory.path(), &line);
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let said = text(&output.stderr);
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    let output = sme_in(
        directory.path(),
        "mpi collective barrier --machine cxl-pool --channel chunks",
    );
    assert_eq!(output.status.code(), Some(2));
    let says = "channel chunks needs memory of each node that the others reach; nodes of machine";
    assert!(text(&output.stderr).contains(says));
    for channel in ["rcce", "sccmpb", "sccshm"] {
        let line = format!("mpi pingpong --channel {channel} --sizes 8");
        let output = sme_in(directory.path(), &line);
        assert_eq!(output.status.code(), Some(2));
        let says = format!("{channel} needs message passing buffers, which machine sme-prototype");
        assert!(text(&output.stderr).contains(&says));
    }
}

/// A row of `sme mpi pscw`, as numbers by key.
fn pscw(flags: &str) -> serde_json::Value {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("mpi pscw --machine scc --rounds 21 --no-host --format json {flags}");
    let output = sme_in(directory.path(), &line);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{flags}: {complaint}");
    serde_json::from_str(text(&output.stdout)).unwrap()
}

/// A class waits where its name says; the sums are those of the calls.
#[test]
fn each_class_waits_in_its_own_call() {
    let row = |sync: &str| pscw(&format!("--targets 6 --sync {sync}"));
    let us = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let all = ["deferred", "immediate", "trigger-only"].map(row);
    for row in &all {
        for (sum, parts) in [
            ("origin_us", ["start_us", "complete_us"]),
            ("target_us", ["post_us", "wait_us"]),
        ] {
            let parts: f64 = parts.iter().map(|part| us(row, part)).sum();
            assert!((us(row, sum) - parts).abs() < 1e-5, "{row}");
        }
        for call in ["start", "complete", "post", "wait"] {
            let median = us(row, &format!("{call}_us"));
            assert!(us(row, &format!("{call}_q1_us")) <= median, "{row}");
            assert!(us(row, &format!("{call}_q3_us")) >= median, "{row}");
        }
    }
    let [deferred, immediate, trigger] = &all;
    assert!(us(deferred, "start_us") < us(deferred, "complete_us") / 3.0);
    assert!(us(immediate, "start_us") > us(immediate, "complete_us"));
    assert!(us(trigger, "start_us") < us(trigger, "complete_us") / 3.0);
    assert!(us(trigger, "target_us") < us(deferred, "target_us") / 4.0);
}

/// The timeline of a round without others: its calls take what the row says.
#[test]
fn the_calls_of_a_timeline_are_those_of_the_row() {
    let directory = tempfile::tempdir().unwrap();
    let line =
        "mpi pscw --machine scc --targets 2 --sync deferred --rounds 1 --no-host --timeline t.csv";
    let output = sme_in(directory.path(), line);
    let said = text(&output.stdout);
    let timeline = fs::read_to_string(directory.path().join("t.csv")).unwrap();
    for (call, key) in [
        ("MPI_Win_start", "start_us"),
        ("MPI_Win_complete", "complete_us"),
    ] {
        let mut rows = timeline.lines().filter(|row| row.contains(call));
        let row: Vec<&str> = rows.next().unwrap().split(',').collect();
        assert!(rows.next().is_none(), "one origin, one round");
        let us: f64 = cell(said, key).parse().unwrap();
        assert_eq!(ps(row[3]) - ps(row[2]), (us * 1e6).round() as u64, "{call}");
    }
}

#[test]
fn a_synchronization_that_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (flags, says) in [
        (
            "--sync defered",
            "--sync: 'defered' is not known; did you mean 'deferred'?",
        ),
        ("--channel rcce", "--channel: rcce has no MPI calls"),
        ("--targets 48", "--targets 48"),
        ("--targets 0", "--targets 0"),
        (
            "--targets 2 --explain",
            "--explain: of one run; --targets and --sync make 2",
        ),
        ("--targets 1 --figures .", ""),
        (
            "--targets 1 --figures . --format csv -o fig5.svg",
            "is the file of -o already",
        ),
        (
            "--machine sme-prototype --sync trigger-only",
            "--sync: trigger-only needs test-and-set registers",
        ),
    ] {
        let machine = if flags.contains("--machine") {
            ""
        } else {
            "--machine scc"
        };
        let line = format!("mpi pscw {machine} --rounds 1 {flags}");
        let output = sme_in(directory.path(), &line);
        let said = text(&output.stderr);
        if says.is_empty() {
            assert_eq!(output.status.code(), Some(0), "{said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    // A file stands where the directory should.
    fs::write(directory.path().join("taken"), "mine").unwrap();
    let output = sme_in(
        directory.path(),
        "mpi pscw --machine scc --targets 1 --rounds 1 --figures taken",
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(directory.path().join("taken")).unwrap(), b"mine");
}

/// The command checks the result of every rank: on every channel, for every call and algorithm.
#[test]
fn every_channel_carries_every_collective() {
    let directory = tempfile::tempdir().unwrap();
    let calls = [
        "barrier",
        "bcast",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "reduce",
        "allreduce",
        "reduce_scatter",
        "scan",
        "neighbor_allgather",
        "neighbor_alltoall",
    ];
    // Hosts of two cores.
    let pool = "cxl-pool --set node.cores_per_socket=1";
    for (machine, channel, ranks) in [
        ("scc", "sccmpb", "3,8"),
        ("scc", "sccshm", "3,8"),
        ("sme-prototype", "sections", "3,21"),
        ("ualink", "sections", "5"),
        (pool, "sections", "5"),
        (pool, "registered", "3"),
        ("ideal", "sections", "5"),
        ("sme-prototype", "chunks", "3,21"),
        ("xeon-e5-2650", "chunks", "3,16"),
        ("mppa256", "queues", "3,16"),
    ] {
        for call in calls {
            let sizes = if call == "barrier" {
                ""
            } else {
                "--sizes 8,1600"
            };
            let line = format!(
                "mpi collective {call} --machine {machine} --channel {channel} --ranks {ranks} {sizes} \
                 --algorithm all --rounds 1 --format csv"
            );
            let output = sme_in(directory.path(), &line);
            let complaint = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{line}: {complaint}");
        }
    }
}

/// The copies of a message are charged where its data are: beyond the first and the second level
/// MPI's bandwidth falls as RCCE's does.
#[test]
fn a_message_that_leaves_the_caches_is_slower() {
    for channel in ["rcce", "sccmpb"] {
        let bandwidth = |size: u32| -> f64 {
            let flags = format!("--channel {channel} --ranks 2 --sizes {size}");
            cell(&pingpong(&flags).0, "bandwidth_mb_per_s")
                .parse()
                .unwrap()
        };
        let [first, second, memory] = [4 << 10, 64 << 10, 1 << 20].map(bandwidth);
        assert!(
            first > 1.1 * second && second > 1.1 * memory,
            "{channel}: {first} {second} {memory}"
        );
    }
}

/// Nothing depends on the threads of this computer: rows, timelines, critical paths.
#[test]
fn the_number_of_workers_changes_nothing() {
    for line in [
        "collective allreduce --ranks 40 --sizes 64 --rounds 1 --explain --timeline t.csv",
        "collective bcast --ranks 33 --sizes 20000 --rounds 2",
        "pingpong --ranks 32 --partner 31 --sizes 8,5000 --rounds 2",
        "pscw --targets 20 --rounds 3 --sync all",
        "nas lu --ranks 32 --class W --core-seconds 1 --steps 1 --explain --timeline t.csv",
    ] {
        let ran = [1, 2, 3].map(|workers| {
            let directory = tempfile::tempdir().unwrap();
            let line = format!("mpi {line} --no-host --workers {workers}");
            let output = sme_in(directory.path(), &line);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            (output.stdout, fs::read(directory.path().join("t.csv")).ok())
        });
        assert!(ran[0] == ran[1] && ran[1] == ran[2], "{line}");
    }
}

/// A rank keeps something of those with which it exchanges messages: a job whose pairs of ranks
/// would take 3 GB fits into 2.
#[cfg(target_os = "linux")]
#[test]
fn ranks_that_exchange_nothing_take_no_memory() {
    let run = "ulimit -v 2000000 && exec \"$0\" mpi collective allreduce --ranks 4096 --sizes 8 \
               --rounds 1 --format json";
    let output = Command::new("sh")
        .args(["-c", run, env!("CARGO_BIN_EXE_sme")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\"ranks\":4096"));
}
