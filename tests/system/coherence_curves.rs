//! `sme coherence curves` and `compare` as their users meet them: figures of the paper as rows and
//! as charts, and predictions beside what comes out.

use std::fs;

use tempfile::TempDir;

use crate::command::{sme_in, text};

/// The CSV rows of a command, each as its cells.
fn rows(directory: &TempDir, line: &str) -> Vec<Vec<String>> {
    let output = sme_in(directory.path(), line);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {complaint}");
    let lines = text(&output.stdout).lines().skip(1);
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    lines.map(cells).collect()
}

fn rate(cell: &str) -> f64 {
    cell.parse().unwrap()
}

/// Stores to owned lines are slower than to shared ones, the published line is a third of the
/// latter, and the rows are those of `bench`.
#[test]
fn a_line_is_what_the_benchmark_gives() {
    let directory = TempDir::new().unwrap();
    let line = "coherence curves --paper 13 --sizes 65536 --format csv";
    let all = rows(&directory, line);
    let of = |name: &str| {
        let found = all.iter().find(|row| row[5] == name).unwrap();
        (found[6].as_str(), rate(&found[8]))
    };
    let (shared, owned, published) = (of("shared"), of("owned"), of("shared / 3"));
    assert_eq!((shared.0, published.0), ("simulated", "published"));
    assert!(owned.1 < 0.6 * shared.1, "{owned:?} {shared:?}");
    assert!((published.1 - shared.1 / 3.0).abs() < 1e-5);
    let line =
        "coherence bench --machine opteron-6272 --transitions SHO --sizes 65536 --format json";
    let bench = sme_in(directory.path(), line);
    let bench = text(&bench.stdout);
    let socket = bench.lines().find(|row| row.contains("socket")).unwrap();
    let there = socket.rsplit(':').next().unwrap().trim_end_matches('}');
    assert!((rate(there) - owned.1).abs() < 1e-5, "{socket} {owned:?}");
}

#[test]
fn figures_are_drawn_each_and_all_together() {
    let directory = TempDir::new().unwrap();
    let line = "coherence curves --paper 4,12 --sizes 65536,131072 --figures plots -o rows.jsonl";
    let output = sme_in(directory.path(), line);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let plot = |name: &str| fs::read_to_string(directory.path().join("plots").join(name)).unwrap();
    for (name, texts) in [
        (
            "coherence-4.svg",
            vec!["(Fig. 4)", "pipelined", "Throughput [GB/s]"],
        ),
        ("coherence-12.svg", vec!["(Fig. 12)", "1.05 x not flushed"]),
        ("coherence.svg", vec!["(Fig. 4)", "(Fig. 12)"]),
    ] {
        let svg = plot(name);
        for text in texts {
            assert!(svg.contains(text), "{name} has no {text}");
        }
    }
    let written = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    // Four lines of two sizes; two, and two of which the text says nothing at 64 KiB.
    assert_eq!(written.lines().count(), 8 + 4 + 2);
}

#[test]
fn figures_that_a_machine_cannot_have_are_left_out_or_refused() {
    let directory = TempDir::new().unwrap();
    let line = "coherence curves --machine xeon-e5-2650 --sizes 64 --format csv";
    let output = sme_in(directory.path(), line);
    assert_eq!(output.status.code(), Some(0));
    let reason = "machine xeon-e5-2650 has no protocol with owned copies";
    let left_out = format!("left out: figure 13: {reason}\n");
    assert!(text(&output.stderr).contains(&left_out));
    assert!(!text(&output.stdout).contains("\n13,"));
    for (line, expected) in [
        (
            "--machine xeon-e5-2650 --paper 13",
            format!("sme: --machine: {reason}\n"),
        ),
        (
            "--paper 3",
            "sme: --paper: figure 3 shows no throughputs; 2, 4 or 14 does\n".to_owned(),
        ),
        (
            "--sizes 65",
            "sme: --sizes: 65 is not a multiple of 64\n".to_owned(),
        ),
        (
            "--paper 2 --figures . --format csv -o coherence-2.svg",
            "sme: --figures ./coherence-2.svg: is the file of -o already\n".to_owned(),
        ),
    ] {
        let output = sme_in(directory.path(), &format!("coherence curves {line}"));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(text(&output.stderr), expected, "{line}");
    }
}

/// The file of one chart cannot be written: nothing is simulated, and no other file appears.
#[test]
fn nothing_is_drawn_where_one_chart_cannot_be() {
    let directory = TempDir::new().unwrap();
    fs::create_dir_all(directory.path().join("plots/coherence-13.svg")).unwrap();
    for line in [
        "coherence curves --paper 12,13 --figures plots -o rows.csv",
        "coherence curves --machine xeon-e5-2650 --set machine.cores=1 --set machine.sockets=1 \
         --figures plots -o rows.csv",
    ] {
        let output = sme_in(directory.path(), line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(!directory.path().join("rows.csv").exists(), "{line}");
        let files = fs::read_dir(directory.path().join("plots")).unwrap();
        assert_eq!(files.count(), 1, "{line}");
    }
}

/// A row of `compare` has the figures of `transfer`; its order of predictions is that of the model.
#[test]
fn predictions_stand_beside_what_comes_out() {
    let directory = TempDir::new().unwrap();
    let line = "coherence compare --sizes 65536 --placement remote --format csv";
    let [row] = &rows(&directory, line)[..] else {
        panic!("one size is one row");
    };
    let [sequential, pipelined, parallel, transfer, mpi] =
        [8, 9, 10, 11, 12].map(|cell| rate(&row[cell]));
    assert!(sequential < pipelined && pipelined < parallel);
    assert!(mpi < transfer && mpi > 0.8 * transfer, "{mpi} {transfer}");
    assert!((rate(&row[13]) - pipelined / transfer).abs() < 1e-5);
    let line = "coherence transfer --sizes 65536 --placement remote --format csv";
    let bare = rows(&directory, line);
    assert_eq!(bare[0].last(), Some(&row[11]));
    for (flags, expected) in [
        ("--ring 0", "sme: --ring 0: 0 is too small; at least 1\n"),
        ("--ring 65", "sme: --ring 65: 65 is too large; at most 64\n"),
        (
            "--chunk 8388608 --ring 64 --sizes 65536",
            "sme: --chunk or --ring: a buffer of 536870912 bytes: it must be a multiple of 8, at \
             least 8 and at most 268435456\n",
        ),
        (
            "--machine scc",
            "sme: --machine scc: machine scc is not coherent between its nodes; xeon-e5-2650 is, \
             for example\n",
        ),
    ] {
        let output = sme_in(directory.path(), &format!("coherence compare {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert_eq!(text(&output.stderr), expected, "{flags}");
    }
}
