//! `sme extrapolate` as a user runs it: the paper's points, one's own fit, hostile files.

use std::fs;

use crate::command::{sme, sme_in, stdout, text};
use serde_json::Value;

/// Eq. 2 as the paper has it.
fn eq2(nodes: f64, cores: f64) -> f64 {
    (0.0216 * cores + 2.4928) * nodes.ln() + (0.0561 * cores + 0.377)
}

fn rows(json: &str) -> Vec<Value> {
    json.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A sweep's file of Eq. 2, to which `noise` is added.
fn sweep(noise: impl Fn(usize) -> f64) -> String {
    let mut csv = String::from("nodes,cores_per_node,latency_us,machine,seed\n");
    for nodes in [2, 4, 8, 16, 32, 64] {
        for cores in [1, 2, 4, 8, 16] {
            let index = csv.lines().count() - 1;
            let latency = eq2(f64::from(nodes), f64::from(cores)) + noise(index);
            csv += &format!("{nodes},{cores},{latency},mine,7\n");
        }
    }
    csv
}

const SMALL: &str = "--fit-nodes 2,4,8 --fit-cores 1,2 --episodes 2";

#[test]
fn the_papers_points_are_printed_beside_ones_own() {
    let found = rows(&stdout(&format!(
        "extrapolate --paper {SMALL} --format json"
    )));
    let expected = [
        (262_144, 768, 282.0),
        (13_750, 16, 28.0),
        (3_438, 64, 35.0),
        (859, 256, 69.0),
    ];
    assert_eq!(found.len(), expected.len());
    for (row, (nodes, cores, printed)) in found.iter().zip(expected) {
        assert_eq!(row["nodes"], nodes);
        assert_eq!(row["cores_per_node"], cores);
        assert_eq!(row["source"], "paper");
        assert_eq!(row["published_us"], printed);
        let latency = row["latency_us"].as_f64().unwrap();
        assert!((latency - eq2(f64::from(nodes), f64::from(cores))).abs() < 1e-6);
        assert!(
            latency.round() == printed || latency.floor() == printed,
            "{latency}"
        );
        assert_eq!(row["a0_us"], 2.4928);
        assert_eq!(row["a0_low_us"], Value::Null);
        // Simulated, so another number, with an interval around it.
        let own = row["fitted_latency_us"].as_f64().unwrap();
        assert!(own > 0.0 && (own - latency).abs() > 1e-3);
        assert!(row["fitted_low_us"].as_f64().unwrap() < own);
        assert!(row["fitted_high_us"].as_f64().unwrap() > own);
        // What identifies the run.
        assert_eq!(row["machine"], "sme-prototype");
        assert_eq!(
            (row["seed"].as_u64(), row["episodes"].as_u64()),
            (Some(1), Some(2))
        );
        assert!(row["machine_hash"].as_str().unwrap().len() >= 8);
        assert_eq!(row["topology"], "mesh:8x8");
    }
    let table = stdout(&format!("extrapolate --paper {SMALL}"));
    for exact in ["281.5", "28.3", "35.5", "68.9"] {
        assert!(table.contains(exact), "{exact}\n{table}");
    }
}

#[test]
fn the_same_bytes_for_any_number_of_workers_and_the_same_rows_in_every_format() {
    let json = stdout(&format!("extrapolate {SMALL} --format json"));
    assert_eq!(
        stdout(&format!("extrapolate {SMALL} --format json --workers 3")),
        json
    );
    let csv = stdout(&format!("extrapolate {SMALL} --format csv"));
    let mut lines = csv.lines();
    let keys: Vec<&str> = lines.next().unwrap().split(',').collect();
    for row in rows(&json) {
        assert_eq!(row.as_object().unwrap().len(), keys.len());
        assert!(lines.next().unwrap().contains(",formula,"));
        assert!(row["latency_low_us"].as_f64() < row["latency_us"].as_f64());
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn without_noise_the_coefficients_come_back() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("sweep.csv"), sweep(|_| 0.0)).unwrap();
    let line =
        "extrapolate sweep.csv --nodes 64,1048576 --cores 1..3 --format json --lines lines.json";
    let output = sme_in(directory.path(), line);
    assert_eq!(text(&output.stderr), "");
    let found = rows(text(&output.stdout));
    assert_eq!(found.len(), 6);
    for row in &found {
        for (key, value) in [
            ("a1", 0.0216),
            ("a0", 2.4928),
            ("b1", 0.0561),
            ("b0", 0.377),
        ] {
            for end in ["us", "low_us", "high_us"] {
                let found = row[format!("{key}_{end}")].as_f64();
                // An interval without width has no ends where it is exactly so.
                assert!(
                    found.is_none_or(|found| (found - value).abs() < 1e-5),
                    "{row}"
                );
            }
            assert!(row[format!("{key}_us")].is_number());
        }
        let size = ["nodes", "cores_per_node"].map(|key| row[key].as_f64().unwrap());
        assert!((row["latency_us"].as_f64().unwrap() - eq2(size[0], size[1])).abs() < 1e-5);
        assert_eq!((&row["machine"], &row["seed"]), (&"mine".into(), &7.into()));
        assert_eq!(row["fit_points"], 30);
        assert_eq!(row["r_squared"], 1.0);
    }
    let lines = rows(&fs::read_to_string(directory.path().join("lines.json")).unwrap());
    // Four coefficients; five and six lines, each under two laws.
    assert_eq!(lines.len(), 4 + 2 * (5 + 6));
    for line in &lines {
        let r_squared = line["r_squared"].as_f64().unwrap();
        match (
            line["line"].as_str().unwrap(),
            line["law"].as_str().unwrap(),
        ) {
            ("over nodes", "linear") => assert!((r_squared - 40_401.0 / 49_245.0).abs() < 1e-5),
            ("over cores", "logarithmic") => assert!(r_squared < 0.9),
            _ => assert!(r_squared > 0.999_999, "{line}"),
        }
    }
}

#[test]
fn more_confidence_is_a_wider_interval_around_the_same_value() {
    let directory = tempfile::tempdir().unwrap();
    let noise = |index: usize| ((index * 7919) % 13) as f64 / 13.0;
    fs::write(directory.path().join("sweep.csv"), sweep(noise)).unwrap();
    let widths = ["50", "95", "99.9"].map(|percent| {
        let line = format!("extrapolate sweep.csv --confidence {percent} --format json");
        let output = sme_in(directory.path(), &line);
        let row = rows(text(&output.stdout)).remove(0);
        assert_eq!(
            row["confidence_percent"].to_string().parse::<f64>(),
            percent.parse()
        );
        let [low, at, high] = ["latency_low_us", "latency_us", "latency_high_us"]
            .map(|key| row[key].as_f64().unwrap());
        assert!(((at - low) - (high - at)).abs() < 1e-5);
        high - low
    });
    // Quantiles of Student's t with 26 degrees of freedom, by a table.
    assert!(
        (widths[1] / widths[0] - 2.0555 / 0.6840).abs() < 1e-2,
        "{widths:?}"
    );
    assert!(
        (widths[2] / widths[1] - 3.7066 / 2.0555).abs() < 1e-2,
        "{widths:?}"
    );
}

#[test]
fn a_sweep_of_this_program_is_what_it_fits() {
    let directory = tempfile::tempdir().unwrap();
    let line = "sweep --topology mesh:8x8 --nodes 2,4,8 --cores 1,2 --algorithm tree,flat --episodes 2 -o sweep.json";
    let swept = sme_in(directory.path(), line);
    assert_eq!(swept.status.code(), Some(0), "{}", text(&swept.stderr));
    let mixed = sme_in(directory.path(), "extrapolate sweep.json");
    assert_eq!(mixed.status.code(), Some(2));
    let complaint = text(&mixed.stderr);
    assert!(
        complaint.starts_with("sme: sweep.json: line 7: has algorithm "),
        "{complaint}"
    );
    let from_file = sme_in(
        directory.path(),
        "extrapolate sweep.json --where algorithm=tree --format json",
    );
    assert_eq!(text(&from_file.stderr), "");
    let simulated = stdout(&format!("extrapolate {SMALL} --format json"));
    for (one, other) in rows(text(&from_file.stdout)).iter().zip(rows(&simulated)) {
        let keys = other.as_object().unwrap().keys();
        for key in
            keys.filter(|key| *key != "skew_ns" && !key.starts_with("noise") && *key != "work_ns")
        {
            assert_eq!(one[key], other[key], "{key}");
        }
    }
}

#[test]
fn odd_files_are_refused_in_a_line_that_names_them() {
    let directory = tempfile::tempdir().unwrap();
    let good = sweep(|_| 0.0);
    let few: String = good
        .lines()
        .take(4)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let one_size = "nodes,cores_per_node,latency_us\n".to_owned() + &"8,8,6\n".repeat(9);
    let one_node =
        "nodes,cores_per_node,latency_us\n8,1,6\n8,2,7\n8,3,8\n8,4,9\n8,5,1\n".to_owned();
    for (content, complaint) in [
        (String::new(), "odd: has no row"),
        (
            "{\"nodes\":2,".to_owned(),
            "odd: line 1: is no JSON object: ",
        ),
        (
            good.replace(",7\n", "\n"),
            "odd: line 2: has 4 cells under a header of 5",
        ),
        (
            good.replace("latency_us", "latency"),
            "odd: line 1: has no column latency_us or latency_mean_us",
        ),
        (
            good.clone() + "4,4,NaN,mine,7\n",
            "odd: line 32: has latency_us NaN",
        ),
        (
            good.clone() + "4,4,inf,mine,7\n",
            "odd: line 32: has latency_us inf",
        ),
        (
            good.clone() + "4,4,-3,mine,7\n",
            "odd: line 32: has latency_us -3",
        ),
        (good.clone() + "0,4,3,mine,7\n", "odd: line 32: has nodes 0"),
        (
            good.clone() + "4,4,3,yours,7\n",
            "odd: line 32: has machine yours, but odd: line 2 has mine",
        ),
        (few, "odd: 3 points do not determine the fit, which needs 4"),
        (one_size, "odd: the points do not determine the fit"),
        (one_node, "odd: the points do not determine the fit"),
    ] {
        fs::write(directory.path().join("odd"), content).unwrap();
        let output = sme_in(directory.path(), "extrapolate odd");
        let said = text(&output.stderr);
        assert!(
            said.starts_with(&format!("sme: {complaint}")),
            "{complaint}: {said}"
        );
        assert_eq!(said.lines().count(), 1);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    }
    let missing = sme("extrapolate nowhere.csv");
    assert!(text(&missing.stderr).starts_with("sme: nowhere.csv: cannot be read: "));
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn flags_that_do_not_fit_are_refused_before_anything_is_simulated() {
    for (flags, complaint) in [
        (
            "--confidence 100",
            "--confidence 100: a number of percent between 0 and 100",
        ),
        ("--confidence x", "--confidence x: "),
        ("--nodes 0", "--nodes 0: 0 is too small"),
        (
            "--fit-nodes 2,4 --fit-cores 2,17",
            "--fit-cores 2,17: 17 is too large; at most 16",
        ),
        (
            "--algorithm tree,flat",
            "one fit takes one barrier on one machine: algorithm is ",
        ),
        (
            "--against-simulation --topologies ring",
            "--topologies: 'ring' is not known",
        ),
        (
            "--against-simulation --topology mesh:8x8",
            "--topology: --against-simulation grows its own",
        ),
        (
            "--against-simulation --nodes 2097152",
            "--nodes 2097152: 2097152 is too large",
        ),
        (
            "--against-simulation --paper",
            "the argument '--against-simulation' cannot be used",
        ),
        (
            "--plot a.svg",
            "the following required arguments were not provided",
        ),
        (
            "--where a=b",
            "the following required arguments were not provided",
        ),
        ("x.csv --where a", "--where a: write KEY=VALUE"),
        (
            "--lines a.csv -o a.csv",
            "--lines a.csv: is the file of -o already",
        ),
        (
            "--fit-nodes 8",
            "--fit-nodes, --fit-cores: the points do not determine the fit",
        ),
    ] {
        let output = sme(&format!("extrapolate {flags}"));
        let said = text(&output.stderr);
        assert!(
            said.starts_with(&format!("sme: {complaint}")),
            "{flags}: {said}"
        );
        assert_eq!(output.status.code(), Some(2), "{flags}");
    }
}

#[test]
fn formula_and_simulation_stand_beside_each_other_in_rows_and_picture() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "extrapolate --against-simulation {SMALL} --nodes 16,64 --cores 1,2 --large-episodes 1 --format json"
    );
    let output = sme_in(directory.path(), &line);
    assert_eq!(text(&output.stderr), "");
    let found = rows(text(&output.stdout));
    let kinds = ["mesh:", "torus:", "fattree:", "dragonfly:"];
    assert_eq!(found.len(), kinds.len() * 2 * 2 * 2);
    for (pair, kind) in found.chunks(2).zip(kinds.iter().flat_map(|kind| [kind; 4])) {
        let [simulated, formula] = pair else {
            panic!("{pair:?}");
        };
        assert_eq!(
            (&simulated["source"], &formula["source"]),
            (&"simulation".into(), &"formula".into())
        );
        for key in [
            "topology",
            "nodes",
            "cores_per_node",
            "threads",
            "machine_hash",
        ] {
            assert_eq!(simulated[key], formula[key]);
        }
        assert!(simulated["topology"].as_str().unwrap().starts_with(kind));
        assert_eq!(simulated["fitted_latency_us"], formula["latency_us"]);
        assert_eq!(simulated["episodes"], 1);
        assert_eq!(simulated["latency_low_us"], Value::Null);
    }
    // The simulated row is the one that the barrier's own command has.
    let row = &found[0];
    let same = stdout(&format!(
        "barrier --nodes 16 --cores 1 --topology {} --episodes 1 --format json --no-host",
        row["topology"].as_str().unwrap()
    ));
    assert_eq!(rows(&same)[0]["latency_mean_us"], row["latency_us"]);

    let svg = fs::read_to_string(directory.path().join("results/extrapolate.svg")).unwrap();
    for label in [
        "Mesh of two dimensions",
        "Torus of three dimensions",
        "Balanced dragonfly",
    ] {
        assert!(svg.lines().any(|line| line == label), "{label}");
    }
    // Each panel has two curves with a band.
    assert_eq!(svg.matches("opacity=\"0.14\"").count(), 2 * kinds.len());
}

/// Machines that are too small, or have one core per node, are told by the flags that are theirs.
#[test]
fn machines_that_cannot_be_fitted_are_refused() {
    for (machine, complaint) in [
        (
            "scc",
            "sme: --machine scc: its nodes have one core, and Eq. 2 is fitted over several numbers \
             of cores\n",
        ),
        ("mppa256", "sme: --fit-nodes 32: machine mppa256 has 20\n"),
    ] {
        let output = sme(&format!("extrapolate --machine {machine}"));
        assert_eq!(output.status.code(), Some(2), "{machine}");
        assert_eq!(text(&output.stderr), complaint);
    }
}
