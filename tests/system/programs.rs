//! The commands that run programs over memory that is not coherent between nodes: their rows,
//! files, complaints and exit status.

use std::fs;

use crate::command::{sme, sme_in, stdout, text};
use num_complex::Complex64;
use serde_json::Value;
use sme_fft_demo::npy;

/// The rows of a command that must succeed.
fn rows(arguments: &str) -> Vec<Value> {
    let lines = stdout(&format!("{arguments} --no-host --format json"));
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const SMALL: &str = "fft --log2n 7 --memory-nodes 4";

#[test]
fn a_row_has_every_key_in_order() {
    let row = stdout(&format!("{SMALL} --nodes 2 --cores 2 --format json"));
    let keys = [
        "version",
        "machine",
        "machine_hash",
        "set",
        "program",
        "memory",
        "placement",
        "coherence_point",
        "topology",
        "memory_nodes",
        "nodes",
        "cores_per_node",
        "threads",
        "log2n",
        "direction",
        "page_bytes",
        "seed",
        "time_us",
        "speedup",
        "efficiency",
        "columns_us",
        "columns_barrier_us",
        "rows_us",
        "rows_barrier_us",
        "result_us",
        "result_barrier_us",
        "remote_loads",
        "remote_stores",
        "link_bytes",
        "busiest_link_fraction",
        "cache_hits",
        "second_level_hits",
        "transfers",
        "line_fills",
        "write_backs",
        "displaced",
        "flush_us",
        "stale_reads",
        "not_written_back",
        "correct",
        "events",
        "host",
        "wall_s",
        "events_per_s",
        "peak_rss_bytes",
        "bytes_per_thread",
    ];
    let found = keys.map(|key| {
        row.find(&format!("\"{key}\":"))
            .unwrap_or_else(|| panic!("{key}"))
    });
    assert!(found.is_sorted());
    let row: Value = serde_json::from_str(&row).unwrap();
    assert_eq!(row.as_object().unwrap().len(), keys.len() - 4);
    assert_eq!(row["correct"], true);
    assert_eq!(row["stale_reads"], Value::Null);
    assert_eq!(row["not_written_back"], 0);
    assert_eq!(row["threads"], 4);
    // The phases are all of the time.
    let of = |key: &str| row[key].as_f64().unwrap();
    let phases = keys[20..26].iter().map(|key| of(key)).sum::<f64>();
    assert!((phases - of("time_us")).abs() < 1e-6);
}

/// Every combination computes the right result, and memory that is cached loads less.
#[test]
fn every_memory_and_placement_is_right() {
    for placement in ["random", "block"] {
        let of = |memory: &str| {
            let lists = "--nodes 1,2,4 --cores 1,2";
            rows(&format!(
                "{SMALL} {lists} --memory {memory} --placement {placement}"
            ))
        };
        let (cached, uncached) = (of("cached"), of("uncached"));
        assert_eq!((cached.len(), uncached.len()), (6, 6));
        for (cached, uncached) in cached.iter().zip(&uncached) {
            assert_eq!(
                (&cached["correct"], &uncached["correct"]),
                (&true.into(), &true.into())
            );
            assert_eq!(cached["threads"], uncached["threads"]);
            assert!(cached["cache_hits"].as_u64() > Some(1_000));
            assert_eq!(uncached["cache_hits"], 0);
            let count = |row: &Value| row["remote_loads"].as_u64().unwrap();
            assert!(count(cached) < count(uncached), "{cached} {uncached}");
        }
        // The first row has one thread: the others are compared with it.
        let time = |row: &Value| row["time_us"].as_f64().unwrap();
        for row in &uncached {
            let speedup = time(&uncached[0]) / time(row);
            assert!(
                (row["speedup"].as_f64().unwrap() - speedup).abs() < 0.001,
                "{row}"
            );
            let efficiency = speedup / row["threads"].as_f64().unwrap();
            assert!(
                (row["efficiency"].as_f64().unwrap() - efficiency).abs() < 0.001,
                "{row}"
            );
        }
        assert!(
            uncached[5]["speedup"].as_f64() > Some(2.0),
            "{}",
            uncached[5]
        );
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_in_every_format() {
    let run = "--nodes 1,4 --cores 2 --no-host";
    for format in ["json", "csv", "table"] {
        let with = |workers| {
            stdout(&format!(
                "{SMALL} {run} --format {format} --workers {workers}"
            ))
        };
        assert_eq!(with(1), with(2));
    }
    let json = rows(&format!("{SMALL} --nodes 1,4 --cores 2"));
    let csv = stdout(&format!("{SMALL} {run} --format csv"));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let keys = lines.next().unwrap();
    for (cells, row) in lines.zip(&json) {
        assert_eq!(keys.len(), row.as_object().unwrap().len());
        for (key, cell) in keys.iter().zip(cells) {
            let same = match &row[*key] {
                Value::Null => cell.is_empty(),
                Value::String(text) => text == cell,
                Value::Bool(truth) => truth.to_string() == cell,
                number => number.as_f64() == Some(cell.parse().unwrap()),
            };
            assert!(same, "{key}: {} and {cell}", row[*key]);
        }
    }
    // Of two rows, what they share stands above.
    let table = stdout(&format!("{SMALL} {run}"));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>() == ["correct", "true"];
    assert!(table.lines().any(words), "{table}");
    assert!(table.contains("\nnodes  threads "), "{table}");
    assert!(!table.contains("wall_s"));
}

#[test]
fn without_a_coherence_point_the_result_is_wrong_and_the_checker_says_where() {
    let run = "fft --log2n 8 --nodes 4 --cores 1 --memory-nodes 4 --coherence-point none";
    let output = sme(&format!("{run} --stale --no-host --format json"));
    assert_eq!(output.status.code(), Some(1));
    let row: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(row["correct"], false);
    assert!(row["stale_reads"].as_u64() > Some(100), "{row}");
    let (report, complaint) = text(&output.stderr).trim_end().rsplit_once('\n').unwrap();
    assert!(report.contains(" stale reads of "), "{report}");
    assert!(report.contains("steps.rs"), "{report}");
    let begin = "sme: --nodes 4 --cores 1: the result is wrong: the largest error is ";
    assert!(complaint.starts_with(begin), "{complaint}");

    // Without a check there is no complaint; and with the barrier nothing is stale.
    let unchecked = sme(&format!("{run} --no-check --no-host --format json"));
    assert_eq!(unchecked.status.code(), Some(0));
    let row: Value = serde_json::from_str(text(&unchecked.stdout)).unwrap();
    assert_eq!(row["correct"], Value::Null);
    let right = "fft --log2n 8 --nodes 4 --cores 1 --memory-nodes 4 --stale --no-host";
    let table = stdout(right);
    assert!(table.contains("\nstale_reads            0\n"), "{table}");
    assert!(
        table.contains("\n--nodes 4 --cores 1: 0 stale reads of "),
        "{table}"
    );
}

/// Words still in caches when a program ends are told of, checked or not: here one thread has all
/// the result in its own, reads nothing stale, and leaves old values at home.
#[test]
fn what_is_not_written_back_is_told_of() {
    let run = "fft --log2n 6 --nodes 1 --cores 1 --memory-nodes 2 --no-host --coherence-point none";
    for (flags, stale) in [("--stale", Value::from(0)), ("", Value::Null)] {
        let output = sme(&format!("{run} {flags} --format json"));
        let row: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert_eq!(row["stale_reads"], stale);
        assert_eq!(row["correct"], false);
        let words = row["not_written_back"].as_u64().unwrap();
        // 64 points of two words, and what the scratch matrix has.
        assert!(words >= 128, "{row}");
        let said = text(&output.stderr);
        let counted = format!("{words} words are not written back: ");
        assert!(said.contains(&counted), "{said}");
        assert!(
            said.contains("\n  scratch[") || said.contains("\n  input["),
            "{said}"
        );
        assert!(
            said.contains(" in the cache of node 0 core 0 and "),
            "{said}"
        );
        assert!(
            said.contains(&format!("\n  and {} more\n", words - 8)),
            "{said}"
        );
    }
    let table = stdout("fft --log2n 6 --nodes 1 --cores 1 --memory-nodes 2 --no-host");
    assert!(!table.contains("are not written back"), "{table}");
}

#[test]
fn vectors_go_through_files_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let output = sme_in(
            directory.path(),
            &format!("{arguments} --memory-nodes 4 --nodes 2"),
        );
        assert_eq!(text(&output.stderr), "", "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
    };
    let file = |name: &str| directory.path().join(name);
    let points: Vec<_> = (0..128)
        .map(|i| Complex64::new(f64::from(i), f64::from(i * i % 7) - 3.0))
        .collect();
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, &points).unwrap();
    fs::write(file("x.npy"), bytes).unwrap();

    run("fft --input x.npy --result y.npy -o row.json --link-load links.csv");
    let y = npy::read(&file("y.npy")).unwrap();
    let sum: Complex64 = points.iter().sum();
    assert!((y[0] - sum).norm() < 1e-9 * sum.norm());
    let row: Value = serde_json::from_str(&fs::read_to_string(file("row.json")).unwrap()).unwrap();
    assert_eq!((&row["log2n"], &row["correct"]), (&7.into(), &true.into()));
    let links = fs::read_to_string(file("links.csv")).unwrap();
    let bytes = links
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(3).unwrap());
    let bytes: u64 = bytes.map(|bytes| bytes.parse::<u64>().unwrap()).sum();
    assert_eq!(row["link_bytes"], bytes);

    run("fft --log2n 7 --inverse --input y.npy --result z.npy -o /dev/null");
    for (point, back) in points.iter().zip(npy::read(&file("z.npy")).unwrap()) {
        assert!((point - back).norm() < 1e-9, "{point} {back}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5);
}

/// Where the rows go elsewhere.
#[cfg(unix)]
#[test]
fn a_vector_may_go_to_stdout() {
    let output =
        sme("fft --log2n 2 --nodes 1 --cores 2 --memory-nodes 1 --result /dev/stdout -o /dev/null");
    assert_eq!(text(&output.stderr), "");
    let found = npy::read_from(&*output.stdout, output.stdout.len() as u64).unwrap();
    assert_eq!(found.len(), 4);
}

#[test]
fn the_factorization_is_checked() {
    let run = "lu --n 40 --block 8 --memory-nodes 4 --cores 2";
    for more in [
        "",
        "--memory uncached",
        "--placement block",
        "--coherence-point writeback-only",
    ] {
        for row in rows(&format!("{run} --nodes 1,4 {more}")) {
            assert_eq!(row["correct"], true, "{more}");
            assert_eq!((&row["n"], &row["block"]), (&40.into(), &8.into()));
            let of = |key: &str| row[key].as_f64().unwrap();
            let phases = ["diagonal", "perimeter", "interior"];
            let sum = |phase| of(&format!("{phase}_us")) + of(&format!("{phase}_barrier_us"));
            let all: f64 = phases.into_iter().map(sum).sum();
            assert!((all - of("time_us")).abs() < 1e-6, "{row}");
        }
    }
    let wrong = sme(&format!(
        "{run} --nodes 4 --coherence-point none --format json"
    ));
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stdout).contains("\"correct\":false"));
    assert!(text(&wrong.stderr).contains("--nodes 4 --cores 2: the result is wrong: the product"));
}

#[test]
fn the_sort_is_checked() {
    let run = "radix --keys 500 --key-bits 12 --digit-bits 4 --memory-nodes 4 --cores 2";
    for more in [
        "",
        "--memory uncached",
        "--borders shared --set cache.writeback=mask",
    ] {
        for row in rows(&format!("{run} --nodes 1,4 {more}")) {
            assert_eq!(row["correct"], true, "{more}");
            assert_eq!((&row["keys"], &row["digit_bits"]), (&500.into(), &4.into()));
        }
    }
    // Whole lines that two nodes write lose keys.
    for wrong in ["--coherence-point none", "--borders shared"] {
        let wrong = sme(&format!("{run} --nodes 4 --format csv {wrong}"));
        assert_eq!(wrong.status.code(), Some(1));
        assert!(text(&wrong.stdout).contains(",false,"));
        assert!(text(&wrong.stderr).contains(" keys are not where they belong"));
    }
}

/// Threads without work are allowed, and so is the smallest of everything; of the transform's
/// threads without a row there is a warning.
#[test]
fn the_smallest_is_right() {
    for (arguments, warning) in [
        (
            "fft --log2n 0 --nodes 2 --memory-nodes 2",
            "--log2n 0: the matrix's rows are 1,",
        ),
        (
            "fft --log2n 1 --nodes 1 --cores 4 --topology mesh:2x1",
            "--log2n 1: the matrix's rows are 1,",
        ),
        (
            "fft --log2n 4 --nodes 4 --cores 4 --memory-nodes 4 --page 64B",
            "--log2n 4: the matrix's rows are 4,",
        ),
        ("fft --log2n 4 --nodes 2 --cores 2 --memory-nodes 4", ""),
        ("lu --n 1 --nodes 2 --memory-nodes 2", ""),
        ("radix --keys 1 --nodes 2 --memory-nodes 2", ""),
    ] {
        let output = sme(&format!("{arguments} --no-host --format json"));
        let row: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert_eq!(row["correct"], true, "{arguments}");
        let said = text(&output.stderr);
        match warning {
            "" => assert_eq!(said, "", "{arguments}"),
            _ => assert!(
                said.starts_with(&format!("warning: {warning}")) && said.lines().count() == 1,
                "{arguments}: {said}"
            ),
        }
    }
}

/// The pieces in which data is spread are lines of the caches by default.
#[test]
fn data_is_spread_by_the_line() {
    let run = |more: &str| {
        rows(&format!(
            "{SMALL} --nodes 2 --cores 1 --memory uncached {more}"
        ))
    };
    let by_line = run("");
    assert_eq!(by_line[0]["page_bytes"], 64);
    assert_eq!(by_line, run("--page 64B"));
    assert_eq!(run("--page 4KiB")[0]["page_bytes"], 4096);
    for program in ["lu --n 16 --block 4", "radix --keys 64"] {
        let row = &rows(&format!("{program} --nodes 2 --memory-nodes 2"))[0];
        assert_eq!(row["page_bytes"], 64, "{program}");
    }
}

#[test]
fn the_figures_of_the_paper_are_tables_and_files() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &str| {
        let arguments = format!("fft --paper --log2n 8 --nodes 1,2 --cores 1,2 {more}");
        let output = sme_in(directory.path(), &arguments);
        assert_eq!(text(&output.stderr), "", "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
        let file = |name| fs::read_to_string(directory.path().join("results").join(name)).unwrap();
        let files = ["fig12.csv", "fig12.svg", "fig13.csv", "fig13.svg"].map(file);
        (text(&output.stdout).to_owned(), files)
    };
    let (printed, files) = run("--workers 1");
    assert_eq!(run(""), (printed.clone(), files.clone()));
    for figure in ["Fig. 12: uncached", "Fig. 13: cached"] {
        assert!(printed.contains(&format!(
            "\n{figure}\n\ncores_per_node  nodes  threads  time_ms"
        )));
    }
    // The rows are those of a run for itself.
    for (csv, memory) in [(&files[0], "uncached"), (&files[2], "cached")] {
        let alone = format!(
            "fft --log2n 8 --nodes 1,2 --cores 2 --topology mesh:8x8 --memory {memory} --no-host"
        );
        let alone = stdout(&format!("{alone} --format csv"));
        let header = csv.lines().next();
        let two = csv
            .lines()
            .filter(|line| line.contains("mesh:8x8,64,") && line.contains(",2,"));
        let two: Vec<_> = two
            .filter(|line| line.split(',').nth(11) == Some("2"))
            .collect();
        assert_eq!(
            header.into_iter().chain(two).collect::<Vec<_>>(),
            alone.lines().collect::<Vec<_>>()
        );
    }
    let one = run("--seed 2 --page 4KiB");
    assert!(one.1[0] != files[0] && one.1[0].contains(",4096,2,"));
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let three = [Complex64::default(); 3];
    let huge = [Complex64::new(f64::MAX, 0.0); 4];
    for (name, points) in [
        ("three.npy", &three[..]),
        ("huge.npy", &huge),
        ("four.npy", &huge),
    ] {
        let mut bytes = Vec::new();
        npy::write_to(&mut bytes, points).unwrap();
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    fs::write(directory.path().join("text.npy"), "1 2 3").unwrap();
    for (arguments, named) in [
        ("fft --nodes 0", "--nodes 0"),
        ("fft --nodes 4,x", "--nodes 4,x"),
        ("fft --nodes 1..64+0", "--nodes 1..64+0"),
        ("fft --cores 1,17", "--cores 17"),
        ("fft --log2n 31", "--log2n 31"),
        ("fft --log2n -1", "--log2n -1"),
        ("fft --log2n 30", "memory"),
        ("fft --memory local", "--memory"),
        ("fft --placement blok", "did you mean 'block'"),
        ("fft --coherence-point non", "did you mean 'none'"),
        ("fft --memory-nodes 2 --nodes 4", "--memory-nodes 2"),
        ("fft --topology mesh:2x2 --nodes 5", "--nodes 5"),
        (
            "fft --topology mesh:2x2 --memory-nodes 5 --nodes 2",
            "--memory-nodes 5",
        ),
        ("fft --page 1000", "--page"),
        ("fft --page 32B", "--page"),
        ("fft --page 4GiB", "--log2n 16"),
        ("fft --nodes 1..60000 --cores 1..16", "combinations"),
        ("fft --check --no-check", "--no-check"),
        ("fft --engine rtl", "--engine"),
        ("fft --nodes 1,2 --input three.npy", "--input"),
        ("fft --nodes 1,2 --result y.npy", "--result"),
        ("fft --nodes 1,2 --link-load l.csv", "--link-load"),
        ("fft --result a --link-load a", "--result a"),
        ("fft --result /dev/stdout", "-o FILE"),
        ("fft --result /dev/stdout -o /dev/stdout", "-o FILE"),
        ("fft --input /dev/null", "--input /dev/null"),
        ("fft --nodes 4096 --cores 2 --stale", "--stale"),
        ("fft --result a -o a", "--result a"),
        ("fft --link-load a -o ./a", "--link-load a"),
        ("fft --result no/such/y.npy", "no/such/y.npy"),
        ("fft --input no.npy", "--input no.npy"),
        ("fft --input .", "--input ."),
        ("fft --input text.npy", "--input text.npy"),
        ("fft --input three.npy", "power of two"),
        ("fft --input huge.npy", "--no-check"),
        ("fft --input four.npy --log2n 3 --no-check", "--log2n 3"),
        ("fft --set cache.lin=64B", "cache.lin"),
        ("fft --paper --memory cached", "--memory"),
        ("fft --paper --memory-nodes 64", "--memory-nodes"),
        ("fft --paper --topology mesh:8x8", "--topology"),
        ("fft --paper --placement block", "--placement"),
        ("fft --paper --coherence-point none", "--coherence-point"),
        ("fft --paper --no-check", "--no-check"),
        ("fft --paper --stale", "--stale"),
        ("fft --paper --inverse", "--inverse"),
        ("fft --paper --input three.npy", "--input"),
        ("fft --paper --result y.npy", "--result"),
        ("fft --paper -o rows.csv", "-o"),
        ("fft --paper --format csv", "--format"),
        ("fft --paper --no-host", "--no-host"),
        ("fft --paper --link-load l.csv", "--link-load"),
        ("fft --paper --nodes 2,4", "--nodes 2,4"),
        ("fft --paper --nodes 1,65", "65"),
        ("fft --paper --cores 17", "--cores 17"),
        ("fft --paper --log2n 2 --cores 4", "--log2n 2"),
        ("fft --paper --log2n 8,9", "--log2n 8,9"),
        ("fft --paper --workers 0", "--workers 0"),
        ("lu --paper", "--paper"),
        ("lu --n 0", "--n 0"),
        ("lu --n 32769", "--n 32769"),
        ("lu --block 1025", "--block 1025"),
        ("lu --n 32768 --block 1 --memory-nodes 64", "--n 32768"),
        ("radix --keys 0", "--keys 0"),
        ("radix --key-bits 65", "--key-bits 65"),
        ("radix --digit-bits 17", "--digit-bits 17"),
        ("radix --borders share", "did you mean 'shared'"),
    ] {
        let output = sme_in(directory.path(), arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(text(&output.stdout), "", "{arguments}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.contains(named), "{arguments}: {complaint}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn help_has_examples_that_parse() {
    for command in ["fft", "lu", "radix"] {
        let help = stdout(&format!("{command} --help"));
        let examples = help.split("Examples:").nth(1).unwrap();
        for example in examples
            .lines()
            .filter_map(|line| line.strip_prefix("  sme "))
        {
            let output = sme(&format!("{example} --no-such-flag"));
            let complaint = text(&output.stderr);
            assert!(
                complaint.contains("'--no-such-flag'"),
                "{example}: {complaint}"
            );
        }
        for name in [
            "uncached",
            "cached",
            "random",
            "block",
            "none",
            "writeback-only",
        ] {
            assert!(help.contains(name), "{command}: {name}");
        }
    }
}
