//! `sme coherence` as its users meet it: predictions from a table that the test writes, tables that
//! are refused, and measurements of this computer, of which no figure is looked at.

use std::fs;
use std::path::Path;

use sme::coherence::table::Table;
use tempfile::TempDir;

use crate::command::{skipped, sme, sme_in, text};

/// The first cell of every row that was simulated or measured.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A table of the four accesses of Table II on one socket, flat over the size.
fn flat_table() -> String {
    let row = |cells: &str, holder: &str, bytes: u64, rate: f64| {
        format!(
            "{{\"machine\":\"toy\",{cells},\"holder\":\"{holder}\",\"variant\":\"plain\",\
             \"buffer_bytes\":{bytes},\"gb_per_s\":{rate}}}\n"
        )
    };
    let mut table = String::new();
    for bytes in [1024, 1 << 20] {
        let mut add = |access, copy, state, holder, rate| {
            let cells =
                format!("\"access\":\"{access}\",\"copy\":\"{copy}\",\"state\":\"{state}\"");
            table += &row(&cells, holder, bytes, rate);
        };
        add("load", "hit", "modified", "local", 20.0);
        add("store", "hit", "shared", "socket", 10.0);
        add("load", "miss", "modified", "socket", 5.0);
        add("store", "hit", "modified", "local", 15.0);
    }
    table
}

fn with_table(table: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("table.json"), table).unwrap();
    directory
}

const PREDICT: &str = "coherence predict --table table.json";

fn predicted(directory: &Path, flags: &str) -> String {
    let output = sme_in(directory, &format!("{PREDICT} {flags}"));
    assert_eq!(text(&output.stderr), "", "{flags}");
    assert_eq!(output.status.code(), Some(0), "{flags}");
    text(&output.stdout).to_owned()
}

/// The one line on stderr of a command that must be refused.
fn refused(directory: &Path, flags: &str) -> String {
    let output = sme_in(directory, &format!("{PREDICT} {flags}"));
    assert_eq!(output.status.code(), Some(2), "{flags}");
    assert_eq!(text(&output.stdout), "", "{flags}");
    let stderr = text(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr.to_owned()
}

#[test]
fn messages_are_predicted_by_eq_1() {
    let directory = with_table(&flat_table());
    let csv = predicted(
        directory.path(),
        "--size 16384,65536..131072*2 --chunk 32768 --format csv",
    );
    // Sender 10 and receiver 5 GB/s: n chunks take (n + 1/2) times as long as the receiver's.
    assert_eq!(
        csv,
        "machine,message_bytes,chunk_bytes,chunks,sequential_gb_per_s,parallel_gb_per_s,\
         pipelined_gb_per_s,bound_by\n\
         toy,16384,32768,1,3.333333,5.000000,3.333333,LMM socket\n\
         toy,65536,32768,2,3.333333,5.000000,4.000000,LMM socket\n\
         toy,131072,32768,4,3.333333,5.000000,4.444444,LMM socket\n"
    );
    let json = predicted(directory.path(), "--size 65536 --shared-port --format json");
    // 1/(1/20 + 1/10) and 1/(1/5 + 1/15): 20/3 and 15/4.
    assert_eq!(
        json,
        "{\"machine\":\"toy\",\"message_bytes\":65536,\"chunk_bytes\":32768,\"chunks\":2,\
         \"sequential_gb_per_s\":2.400000,\"parallel_gb_per_s\":3.750000,\
         \"pipelined_gb_per_s\":2.926829,\"bound_by\":\"LMM socket\"}\n"
    );
    let table = predicted(directory.path(), "--size 65536");
    assert!(table.contains("pipelined_gb_per_s"), "{table}");
    predicted(directory.path(), "--size 65536 -o out.csv");
    let file = fs::read_to_string(directory.path().join("out.csv")).unwrap();
    assert!(file.ends_with("4.000000,LMM socket\n"), "{file}");
}

#[test]
fn what_the_table_or_the_flags_lack_is_one_line() {
    let directory = with_table(&flat_table());
    for (flags, expected) in [
        (
            "--size 65536 --reuse none",
            "sme: --table: the table has no row of LMI\n",
        ),
        (
            "--size 65536 --placement remote",
            "sme: --placement remote: the table has no row of SHS remote\n",
        ),
        (
            "--size 1024,2097152",
            "sme: --size 2097152: the table has LHM from 1024 to 1048576 bytes, not at 2097152\n",
        ),
        ("--size 0", "sme: --size 0: 0 is too small; at least 1\n"),
        (
            "--size 1024 --chunk 0",
            "sme: --chunk 0: 0 is too small; at least 1\n",
        ),
        (
            "--size 1024 --chunk 1,2",
            "sme: --chunk 1,2: one value here, not a list\n",
        ),
        (
            "--size 1024 --reuse bot",
            "sme: --reuse: 'bot' is not known; did you mean 'both'? \
             (one of both, sender, receiver, none)\n",
        ),
        (
            "--size 1024 --flush receiver --shared-buffer modified",
            "sme: --flush receiver: SHM cannot be flushed: no other core has a copy to flush\n",
        ),
    ] {
        assert_eq!(refused(directory.path(), flags), expected);
    }
    let output = sme_in(
        directory.path(),
        &format!("{PREDICT} --size 1024 -o table.json"),
    );
    assert_eq!(output.status.code(), Some(2), "the table would be lost");
    assert!(Table::read(&directory.path().join("table.json")).is_ok());
}

#[test]
fn hostile_tables_are_refused_with_file_and_line() {
    let good = flat_table();
    let first = good.lines().next().unwrap();
    for (second, reason) in [
        (
            first.replace("20", "NaN"),
            "is no row of a throughput table",
        ),
        (first.replace("20", "0"), "gb_per_s 0 is not from"),
        (first.replace("20", "-1"), "gb_per_s -1 is not from"),
        (first.replace("20", "1e999"), "number out of range"),
        (first.to_owned(), "LHM at 1024 bytes stands in 1 already"),
        (first.replace("{", "{\"ghz\":2,"), "unknown field `ghz`"),
        (first.replace("toy", "other"), "a table is of one machine"),
        (first.replace("hit", "miss"), "LMM with holder local"),
        (first.replace("load", "lo\\nad"), "unknown variant"),
        ("[]".to_owned(), "is no row"),
    ] {
        let directory = with_table(&format!("{first}\n{second}\n"));
        let error = refused(directory.path(), "--size 1024");
        assert!(error.starts_with("sme: table.json: line 2: "), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    let directory = with_table("");
    let error = refused(directory.path(), "--size 1024");
    assert_eq!(error, "sme: table.json: has no row\n");
    let missing = sme("coherence predict --size 1 --table /nonexistent/table");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("sme: /nonexistent/table: cannot be read: "));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (flags, expected) in [
        ("--sizes 100", "sme: --sizes: 100 is not a multiple of 64\n"),
        ("--sizes 64,64", "sme: --sizes: 64 is given twice\n"),
        (
            "--repetitions 0",
            "sme: --repetitions 0: 0 is too small; at least 1\n",
        ),
        (
            "--transitions LMX",
            "sme: --transitions: 'LMX' is no transition: write L or S, H or M, and one of M, O, E, \
             S and I, such as LMM\n",
        ),
    ] {
        let output = sme(&format!("coherence measure {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert_eq!(text(&output.stderr), expected);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn this_computer_is_measured_into_a_table() {
    let directory = TempDir::new().unwrap();
    let flags = "coherence measure --sizes 65536,131072 --repetitions 3 --name here -o here.json";
    let output = sme_in(directory.path(), flags);
    let stderr = text(&output.stderr);
    assert!(stderr.contains(" is timed"), "{stderr}");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // On a busy computer every row may have been disturbed.
    if output.status.code() == Some(1) {
        assert!(stderr.ends_with("sme: nothing was measured\n"), "{stderr}");
        assert!(!directory.path().join("here.json").exists());
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let table = Table::read(&directory.path().join("here.json")).unwrap();
    assert_eq!(table.machine(), "here");
    for row in table.rows() {
        assert!(row.gb_per_s > 0.0);
        assert!([65536, 131072].contains(&row.buffer_bytes));
    }
    if cpus < 2 {
        assert!(stderr.contains("not measured: "), "{stderr}");
        return skipped("a second CPU for misses");
    }
    let formats = ["csv", "json"].map(|format| {
        let flags = "coherence measure --sizes 65536 --repetitions 3 --transitions LHM";
        sme(&format!(
            "{flags} --columns buffer_bytes,access --format {format}"
        ))
    });
    for (output, row) in formats
        .iter()
        .zip(["65536,load", "{\"buffer_bytes\":65536,"])
    {
        let is_there = text(&output.stdout)
            .lines()
            .any(|line| line.starts_with(row));
        assert!(is_there || output.status.code() == Some(1), "{output:?}");
    }
    let absent = sme("coherence measure --cores 0,1048576 --sizes 4096");
    assert_eq!(absent.status.code(), Some(2));
    let stderr = text(&absent.stderr);
    assert!(
        stderr.starts_with("sme: --cores: this process cannot run on CPU "),
        "{stderr}"
    );
}

#[test]
fn transfers_that_cannot_be_measured_are_refused() {
    for (flags, expected) in [
        ("--cores 0,1", "--host"),
        ("--repetitions 3", "--host"),
        ("--name here", "--host"),
        ("--host --machine xeon-e5-2650", "--machine"),
        ("--host --set core.clock=1GHz", "--set"),
        ("--host --workers 1", "--workers"),
        (
            "--host --repetitions 0",
            "sme: --repetitions 0: 0 is too small; at least 1\n",
        ),
        (
            "--host --sizes 100",
            "sme: --sizes: 100 is not a multiple of 64\n",
        ),
        ("--host --cores 0,x", "sme: --cores 0,x: "),
        ("--host --cores 0,1048577", "1048577 is too large"),
    ] {
        let output = sme(&format!("coherence transfer {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let stderr = text(&output.stderr);
        assert_eq!(
            (stderr.lines().count(), text(&output.stdout)),
            (1, ""),
            "{flags}: {stderr}"
        );
        assert!(stderr.contains(expected), "{flags}: {stderr}");
    }
}

/// A measured row has the columns of a simulated one.
#[test]
#[cfg(target_os = "linux")]
fn transfers_are_measured_on_this_computer() {
    let directory = TempDir::new().unwrap();
    let simulated = sme("coherence transfer --sizes 4096 --format csv");
    let heading = text(&simulated.stdout).lines().next().unwrap().to_owned();
    let settings = [
        ("--reuse both", "socket,same,none,sender,both"),
        #[cfg(target_arch = "x86_64")]
        (
            "--direction alternating --flush non-temporal --home receiver --reuse none",
            "socket,alternating,non-temporal,receiver,none",
        ),
    ];
    for (flags, setting) in settings {
        let command = "coherence transfer --host --sizes 4096,65536 --chunk 16384 --ring 2 \
                       --repetitions 3 --name here -o here.csv";
        let output = sme_in(directory.path(), &format!("{command} {flags}"));
        let stderr = text(&output.stderr);
        if output.status.code() == Some(2) && stderr.contains("there is no other CPU") {
            return skipped("a second CPU to send messages to");
        }
        assert!(stderr.contains(" is timed; "), "{stderr}");
        // On a busy computer both rows may have been disturbed.
        if output.status.code() == Some(1) {
            assert!(stderr.ends_with("sme: nothing was measured\n"), "{stderr}");
            assert!(!directory.path().join("here.csv").exists());
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let file = fs::read_to_string(directory.path().join("here.csv")).unwrap();
        fs::remove_file(directory.path().join("here.csv")).unwrap();
        let (first, rows) = file.split_once('\n').unwrap();
        assert_eq!(first, heading);
        let dropped = stderr.matches("dropped: messages of ").count();
        assert_eq!(rows.lines().count() + dropped, 2, "{file}{stderr}");
        for row in rows.lines() {
            let rest = row
                .strip_prefix(&format!("{VERSION},here,,,{setting},"))
                .unwrap();
            let numbers: Vec<f64> = rest.split(',').map(|cell| cell.parse().unwrap()).collect();
            let [message, chunk, ring, time_us, gb_per_s] = numbers[..] else {
                panic!("{row}");
            };
            assert!([4096.0, 65536.0].contains(&message));
            assert_eq!((chunk, ring), (16384.0, 2.0));
            assert!(
                (message / 1e3 / time_us / gb_per_s - 1.0).abs() < 1e-3,
                "{row}"
            );
        }
    }
    let elsewhere = sme("coherence transfer --host --cores 0 --placement remote");
    assert_eq!(elsewhere.status.code(), Some(2));
    let stderr = text(&elsewhere.stderr);
    assert!(
        stderr.ends_with("there is no other CPU\n") || stderr.contains("cannot run on CPU 0"),
        "{stderr}"
    );
}

/// Predictions from a table of this computer stand beside a transfer on it; there is no MPI.
#[test]
fn predictions_are_compared_with_this_computer() {
    let directory = with_table(&flat_table());
    let command = "coherence compare --sizes 65536 --chunk 32768 --repetitions 3 --format csv";
    let output = sme_in(
        directory.path(),
        &format!("{command} --host --table table.json"),
    );
    let stderr = text(&output.stderr);
    if output.status.code() == Some(2) && stderr.contains("there is no other CPU") {
        return skipped("a second CPU to send messages to");
    }
    if output.status.code() == Some(1) {
        return assert!(stderr.ends_with("sme: nothing was measured\n"), "{stderr}");
    }
    let stdout = text(&output.stdout);
    let row: Vec<&str> = stdout.lines().nth(1).unwrap().split(',').collect();
    let settings = [VERSION, "toy", "", "", "socket", "32768", "8", "65536"];
    assert_eq!(row[..8], settings);
    assert_eq!(row[8..11], ["3.333333", "4.000000", "5.000000"]);
    let transfer: f64 = row[11].parse().unwrap();
    let share: f64 = row[13].parse().unwrap();
    assert!(
        transfer > 0.0 && (share * transfer / 4.0 - 1.0).abs() < 1e-3,
        "{row:?}"
    );
    assert_eq!([row[12], row[14], row[15]], ["", "", "LMM socket"]);
    for (flags, expected) in [
        ("--host", "--table"),
        ("--table table.json", "--host"),
        ("--cores 0,1", "--host"),
        ("--host --table none.json", "none.json"),
        (
            "--host --table table.json --placement remote",
            "the table has no row of SHS remote",
        ),
    ] {
        let output = sme_in(directory.path(), &format!("{command} {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(expected), "{flags}: {stderr}");
    }
}
