//! `--stale-list`: a row for each stale load, the same with any number of workers, in a file that
//! appears whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::command::{sme, sme_in, stdout, text};
use serde_json::Value;

/// The rows of a list in CSV, by their keys.
fn csv_rows(list: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = list.lines();
    let keys: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), keys.len(), "{line}");
        let pairs = keys.iter().zip(cells);
        pairs
            .map(|(key, cell)| ((*key).to_owned(), cell.to_owned()))
            .collect()
    };
    lines.map(row).collect()
}

/// Runs a program that is to list its stale loads, and gives the list, stdout and the report.
fn listed(directory: &Path, file: &str, arguments: &str) -> (String, Value, String) {
    let arguments = format!(
        "{arguments} --memory-nodes 4 --no-check --no-host --format json --stale --stale-list {file}"
    );
    let output = sme_in(directory, &arguments);
    let report = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {report}");
    let list = fs::read_to_string(directory.join(file)).unwrap();
    let row = serde_json::from_str(text(&output.stdout)).unwrap();
    (list, row, report)
}

/// Returns the numbers of stale loads, and of stale but equal ones, in the report.
fn sums(report: &str) -> (usize, usize) {
    let before = |what: &str| {
        let (begin, _) = report.split_once(what).unwrap();
        let count = begin.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
        count.parse().unwrap()
    };
    (before(" stale reads of "), before(" stale but equal;"))
}

/// Returns the number of rows of each group of the report: those of one place, one place of the
/// store, one cause.
fn groups(rows: &[BTreeMap<String, String>]) -> Vec<usize> {
    let mut groups: BTreeMap<_, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["equal"] == "false") {
        let of = |key: &str| row[key].clone();
        let by = match &*row["cause"] {
            "lost_update" => of("missing_node"),
            _ => String::new(),
        };
        let group = (of("load_site"), of("store_site"), of("cause"), by);
        *groups.entry(group).or_default() += 1;
    }
    groups.into_values().collect()
}

const WRONG: [(&str, &str); 4] = [
    (
        "fft --log2n 8 --nodes 4 --cores 2 --coherence-point none",
        "fft",
    ),
    (
        "fft --log2n 8 --nodes 4 --cores 1 --coherence-point writeback-only --set cache.writeback=mask",
        "fft",
    ),
    (
        "lu --n 32 --block 8 --nodes 4 --cores 1 --coherence-point none",
        "lu",
    ),
    (
        "radix --keys 500 --key-bits 12 --digit-bits 4 --nodes 4 --cores 2 --borders shared",
        "radix",
    ),
];

#[test]
fn there_is_a_row_for_each_stale_load() {
    let directory = tempfile::tempdir().unwrap();
    let mut causes = BTreeMap::new();
    for (arguments, program) in WRONG {
        let (list, row, report) = listed(directory.path(), "list.csv", arguments);
        let rows = csv_rows(&list);
        let (stale, equal) = sums(&report);
        assert!(stale > 0, "{arguments}");
        assert_eq!(row["stale_reads"], stale, "{arguments}");
        let count = |truth: &str| rows.iter().filter(|row| row["equal"] == truth).count();
        assert_eq!((count("false"), count("true")), (stale, equal), "{report}");
        let time = |row: &BTreeMap<String, String>| row["time_ps"].parse::<u64>().unwrap();
        assert!(rows.is_sorted_by_key(time), "{arguments}");
        for row in &rows {
            *causes.entry(row["cause"].clone()).or_insert(0) += 1;
            assert_eq!(
                row["equal"] == "true",
                row["seen"] == row["newer"],
                "{row:?}"
            );
            assert!(
                row["load_site"].contains(&format!("fft-demo/src/{program}")),
                "{row:?}"
            );
            assert_eq!((&*row["size_bytes"], &*row["way"]), ("8", "cached"));
            let (flush, side) = match &*row["cause"] {
                "not_written_back" => ("write_back", "writer"),
                "not_invalidated" => ("invalidate", "reader"),
                "in_flight" => ("read_back", "writer"),
                "lost_update" => ("padding", "overwriter"),
                cause => panic!("{cause}"),
            };
            assert_eq!((&*row["missing"], &*row["missing_side"]), (flush, side));
            match side {
                "overwriter" => assert_ne!(row["missing_node"], row["writer_node"]),
                side => assert_eq!(row["missing_node"], row[&format!("{side}_node")]),
            }
            assert_ne!(row["store_site"], "");
        }
        let mut counts = groups(&rows);
        counts.sort_unstable();
        let shown = report.lines().filter_map(|line| line.split_once("× node "));
        let mut shown: Vec<usize> = shown
            .map(|(count, _)| count.trim().parse().unwrap())
            .collect();
        shown.sort_unstable();
        assert_eq!(shown, counts, "{report}");
    }
    assert!(causes.len() >= 3, "{causes:?}");
}

#[test]
fn the_list_is_the_same_in_either_format_and_with_any_number_of_workers() {
    let directory = tempfile::tempdir().unwrap();
    let (arguments, _) = WRONG[0];
    let run = |file: &str, workers: u32| {
        listed(
            directory.path(),
            file,
            &format!("{arguments} --workers {workers}"),
        )
    };
    let csv = run("list.csv", 1);
    assert_eq!(run("list.csv", 2), csv);
    assert_eq!(run("list.csv", 3), csv);
    let json = run("list.jsonl", 1);
    assert_eq!(run("list.json", 2), json);
    assert_eq!((&json.1, &json.2), (&csv.1, &csv.2));
    let rows = csv_rows(&csv.0);
    assert_eq!(json.0.lines().count(), rows.len());
    let keys: Vec<&str> = csv.0.lines().next().unwrap().split(',').collect();
    for (line, row) in json.0.lines().zip(&rows) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object.as_object().unwrap().len(), keys.len());
        for key in &keys {
            let same = match &object[*key] {
                Value::Null => row[*key].is_empty(),
                Value::String(text) => *text == row[*key],
                value => {
                    let text = value.to_string();
                    text == row[*key]
                }
            };
            assert!(same, "{key}: {line} and {row:?}");
        }
    }
}

#[test]
fn a_correct_program_lists_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        "fft --log2n 8 --nodes 4 --cores 1",
        "lu --n 32 --block 8 --nodes 2 --cores 2",
        "radix --keys 500 --key-bits 12 --digit-bits 4 --nodes 4 --cores 1",
    ] {
        let (list, row, report) = listed(directory.path(), "list.csv", arguments);
        assert_eq!((&row["stale_reads"], sums(&report)), (&0.into(), (0, 0)));
        assert_eq!(list.lines().count(), 1);
        assert!(
            list.starts_with("time_ps,reader_node,reader_core,"),
            "{list}"
        );
        let (list, _, _) = listed(directory.path(), "list.jsonl", arguments);
        assert_eq!(list, "");
    }
}

/// The report has room for 64 groups, and says how many more there are and how to see them.
#[test]
fn the_list_has_what_the_report_has_no_room_for() {
    let run = "radix --keys 2048 --key-bits 12 --digit-bits 6 --nodes 40 --cores 1 \
               --memory-nodes 64 --borders shared --no-check --no-host --stale";
    let directory = tempfile::tempdir().unwrap();
    let table = text(&sme(run).stdout).to_owned();
    let hint = "--stale-list FILE writes every stale read\n";
    let report = table.strip_suffix(hint).unwrap();
    let listed = sme_in(directory.path(), &format!("{run} --stale-list list.csv"));
    assert_eq!(text(&listed.stdout), report);
    let (_, last) = report.trim_end().rsplit_once('\n').unwrap();
    let (further, more) = last.split_once(" further stale reads in ").unwrap();
    let more = more.strip_suffix(" more groups").unwrap();
    let list = fs::read_to_string(directory.path().join("list.csv")).unwrap();
    let groups = groups(&csv_rows(&list));
    assert_eq!(
        groups.len(),
        64 + more.parse::<usize>().unwrap(),
        "{report}"
    );
    let shown = report.lines().filter_map(|line| line.split_once("× node "));
    let shown: usize = shown
        .map(|(count, _)| count.trim().parse::<usize>().unwrap())
        .sum();
    let further: usize = further.parse().unwrap();
    assert_eq!(shown + further, groups.iter().sum::<usize>());
    assert_eq!(shown + further, sums(report).0);
}

#[test]
fn every_command_that_checks_loads_can_list_them() {
    for command in ["fft", "lu", "radix"] {
        let help = stdout(&format!("{command} --help"));
        assert!(help.contains("--stale-list <FILE>"), "{command}");
    }
}

/// Nothing is simulated, nothing is left, and what was there stays.
#[test]
fn what_cannot_be_listed_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("folder")).unwrap();
    fs::write(directory.path().join("kept.csv"), "kept").unwrap();
    let small = "fft --log2n 4 --memory-nodes 4 --nodes 2 --cores 1";
    for (flags, named) in [
        (
            "--stale --stale-list no/such/list.csv",
            "--stale-list no/such/list.csv",
        ),
        ("--stale --stale-list folder", "--stale-list folder"),
        (
            "--stale --stale-list kept.csv/list.csv",
            "--stale-list kept.csv/list.csv",
        ),
        ("--stale --stale-list kept.csv -o kept.csv", "kept.csv"),
        (
            "--stale --stale-list kept.csv --link-load ./kept.csv",
            "kept.csv",
        ),
        (
            "--stale --stale-list kept.csv --output kept.csv",
            "kept.csv",
        ),
        ("--stale --stale-list kept.csv --nodes 1,2", "--stale-list"),
        ("--stale-list kept.csv", "--stale"),
        ("--paper --stale-list kept.csv", "--stale"),
    ] {
        // The later of two --nodes would be refused itself.
        let small = match flags.contains("--nodes") || flags.contains("--paper") {
            true => "fft --log2n 4",
            false => small,
        };
        let output = sme_in(directory.path(), &format!("{small} {flags}"));
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {complaint}");
        assert_eq!(text(&output.stdout), "", "{flags}");
        assert_eq!(complaint.lines().count(), 1, "{flags}: {complaint}");
        assert!(complaint.contains(named), "{flags}: {complaint}");
    }
    assert_eq!(
        fs::read(directory.path().join("kept.csv")).unwrap(),
        b"kept"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full_is_said_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.path().join("list.csv")).unwrap();
    let output = sme_in(
        directory.path(),
        &format!(
            "{} --memory-nodes 4 --no-check --stale --stale-list list.csv",
            WRONG[0].0
        ),
    );
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(
        complaint.contains("--stale-list list.csv: cannot be written: "),
        "{complaint}"
    );
}

/// A wrong result fails the run, and the list that shows why is there; a file that was there before
/// is replaced.
#[test]
fn a_wrong_result_has_its_list() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("list.csv");
    fs::write(&file, "before").unwrap();
    let run = format!(
        "{} --memory-nodes 4 --stale --stale-list {}",
        WRONG[0].0,
        file.display()
    );
    let output = sme(&run);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the result is wrong"));
    let list = fs::read_to_string(&file).unwrap();
    assert_eq!(
        sums(text(&output.stdout)).0,
        csv_rows(&list)
            .iter()
            .filter(|row| row["equal"] == "false")
            .count()
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
