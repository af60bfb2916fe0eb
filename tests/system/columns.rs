//! `--columns` chooses columns of the rows of every command: what is printed is those of the whole
//! rows.

use std::collections::BTreeSet;
use std::path::Path;

use crate::command::{sme_in, text};

/// A small run of every command that has rows, but for those that need further tools or minutes.
const RUNS: [&str; 25] = [
    "barrier --nodes 2 --cores 1 --episodes 1 --no-host",
    "sweep --nodes 2,4 --cores 1 --episodes 1 --no-host",
    "lock --nodes 2 --cores 1 --no-host",
    "latency --nodes 2",
    "network --topology mesh:2x2 --load 0.1 --measure 5us --no-host",
    "native --threads 2 --repetitions 3",
    "machines list",
    "machines show ideal",
    "litmus litmus/SB.litmus --runs 10",
    "fft --log2n 4 --nodes 1,2 --cores 1 --memory-nodes 2 --no-host",
    "lu --n 16 --nodes 2 --cores 1 --memory-nodes 2 --no-host",
    "radix --keys 64 --nodes 2 --cores 1 --memory-nodes 2 --no-host",
    "mpi pingpong --machine scc --ranks 2 --sizes 8 --rounds 1 --no-host",
    "mpi collective barrier --machine scc --ranks 2 --no-host",
    "mpi pscw --machine scc --targets 1 --rounds 2 --no-host",
    "mpi nas bt --machine scc --ranks 1 --steps 1 --no-host",
    "mpi tune --machine scc --ranks 2 --most 64",
    "mpi hpl --machine scc --n 16 --nb 8 --p 1 --q 1 --no-host",
    "mpi compare --machines scc --ranks 2",
    "coherence bench --transitions LMM --sizes 4096",
    "coherence transfer --sizes 65536",
    "coherence compare --sizes 65536",
    "rtl lockstep --block fifo --cycles 10",
    "validate --paper rcce --no-programs --no-host",
    "extrapolate --paper",
];

/// Commands of which the test sees only that they refuse an unknown column, before they simulate:
/// the first would take hours.
const REFUSE: [&str; 16] = [
    "lu --n 1024 --nodes 64",
    "mpi invade",
    "mpi borrow",
    "mpi infect",
    "mpi retreat",
    "mpi simpson",
    "mpi power",
    "mpi cg",
    "mpi bt",
    "mpi spawn",
    "mpi connect",
    "coherence curves --paper 2",
    "coherence measure --sizes 4096",
    "coherence tune --size 65536",
    "rtl report --block fifo --no-clock",
    "rtl verilog --out no-such-directory --block fifo",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed(line: &str) -> String {
    let output = sme_in(root(), line);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The columns that a command says it has, in the order of its rows.
fn refused(line: &str) -> Vec<String> {
    let output = sme_in(root(), &format!("{line} --columns nonsense"));
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {complaint}");
    assert_eq!(text(&output.stdout), "", "{line}");
    let lines: Vec<&str> = complaint.lines().collect();
    let of_columns = lines.iter().filter(|line| line.contains("--columns: "));
    let [said] = of_columns.collect::<Vec<_>>()[..] else {
        panic!("{line}: {complaint}");
    };
    let (begin, columns) = said.split_once("; the columns are ").unwrap();
    assert_eq!(begin, "sme: --columns: 'nonsense' is no column", "{line}");
    columns.split(", ").map(str::to_owned).collect()
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn columns_are_those_of_the_whole_rows() {
    for line in RUNS {
        let keys = refused(line);
        let whole = printed(&format!("{line} --format csv"));
        let whole: Vec<Vec<String>> = whole.lines().map(cells).collect();
        assert_eq!(whole[0], keys, "{line}");
        // What `native` measures differs from run to run.
        let chosen = match line.starts_with("native") {
            true => [1, 0],
            false => [keys.len() - 1, 1],
        };
        let expected: Vec<Vec<&str>> = whole
            .iter()
            .map(|row| chosen.iter().map(|&at| row[at].as_str()).collect())
            .collect();
        let names = chosen.map(|at| keys[at].as_str());
        let line = format!("{line} --columns {}", names.join(","));

        let csv = printed(&format!("{line} --format csv"));
        let csv: Vec<Vec<String>> = csv.lines().map(cells).collect();
        assert_eq!(csv, expected, "{line}");

        let json = printed(&format!("{line} --format json"));
        let rows = json.lines().filter(|line| line.contains(names[1]));
        let rows: Vec<serde_json::Value> =
            rows.map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!(rows.len(), expected.len() - 1, "{line}");
        for (row, expected) in rows.iter().zip(&expected[1..]) {
            assert_eq!(row.as_object().unwrap().len(), 2, "{line}");
            for (name, expected) in names.iter().zip(expected) {
                let said = match &row[*name] {
                    serde_json::Value::Null => String::new(),
                    serde_json::Value::String(said) => said.clone(),
                    number => number.to_string(),
                };
                let parsed = |text: &str| text.parse::<f64>().ok();
                let is_same = said.as_str() == *expected
                    || parsed(&said).is_some() && parsed(&said) == parsed(expected);
                assert!(is_same, "{line}: {said} for {expected}");
            }
        }

        let table = printed(&format!("{line} --format table"));
        let mut lines = table.lines();
        let heading: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(heading, names, "{line}: {table}");
        assert!(lines.count() >= expected.len() - 1, "{line}: {table}");
    }
}

/// A new command with rows is one that this file knows.
#[test]
fn every_command_with_rows_has_columns() {
    for line in REFUSE {
        assert!(refused(line).len() > 4, "{line}");
    }
    let known: BTreeSet<String> = RUNS
        .iter()
        .chain(&REFUSE)
        .map(|line| {
            let words = line.split(' ').take_while(|word| !word.starts_with('-'));
            words.take(2).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let all = sme::cli::command();
    let mut seen = 0;
    for command in all.get_subcommands() {
        let name = command.get_name();
        let leaves: Vec<(String, &clap::Command)> = match command.has_subcommands() {
            true => command
                .get_subcommands()
                .map(|sub| (format!("{name} {}", sub.get_name()), sub))
                .collect(),
            false => vec![(name.to_owned(), command)],
        };
        for (name, leaf) in leaves {
            let has = |id: &str| leaf.get_arguments().any(|argument| argument.get_id() == id);
            assert_eq!(has("format"), has("columns"), "{name}");
            // A picture is no row, and the rows of experiments are in files.
            let writes_rows = has("output") && name != "plot";
            assert_eq!(has("format"), writes_rows, "{name}");
            // The throughput table of a machine comes from a file.
            if has("columns") && name != "coherence predict" {
                let is_known = known.iter().any(|known| known.starts_with(&name));
                assert!(is_known, "{name} is in neither list");
                seen += 1;
            }
        }
    }
    assert!(seen >= RUNS.len() + REFUSE.len() - 2, "{seen} commands");
}

#[test]
fn a_sweep_writes_its_columns_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let line = "sweep --nodes 2,4 --cores 1 --episodes 1 --no-host --columns nodes,threads";
    for (file, expected) in [
        ("s.csv", "nodes,threads\n2,2\n4,4\n"),
        (
            "s.json",
            "{\"nodes\":2,\"threads\":2}\n{\"nodes\":4,\"threads\":4}\n",
        ),
        ("s.txt", "nodes  threads\n    2        2\n    4        4\n"),
    ] {
        let output = sme_in(directory.path(), &format!("{line} -o {file}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let written = std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert_eq!(written, expected);
    }
    let output = sme_in(directory.path(), &format!("{line} -o s.csv --resume"));
    assert_eq!(output.status.code(), Some(2));
}
