//! `sme network` as a user runs it: rows, formats, the chart, bad input; and the saturation point
//! of dimension-order routing beside the published one.

use crate::command::{sme, stdout, text};
use serde_json::Value;

/// Windows that a test has time for.
const SHORT: &str = "--warmup 5us --measure 15us --drain 15us --no-host";

fn rows(arguments: &str) -> Vec<Value> {
    let text = stdout(&format!("network --format json {arguments}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// With queues without end, greedy routing in dimension order on an array is stable up to its
/// capacity, 4/n packets per node and unit of time: the saturation point that N. Kahale and
/// F. T. Leighton (Greedy Dynamic Routing on Arrays, J. Algorithms 29, 1998) and M. Mitzenmacher
/// (Bounds on the Greedy Routing Algorithm for Array Networks, J. Computer and System Sciences 53,
/// 1996) publish. This switch is six times as fast as a link, but its buffers hold 16 packets; that
/// costs a part of it.
#[test]
fn an_eight_by_eight_mesh_saturates_within_ten_percent_of_what_is_published() {
    const PUBLISHED: f64 = 1.0;
    let of = |loads: &str, set: &str| {
        let windows = "--warmup 30us --measure 60us --drain 60us";
        let rows = rows(&format!(
            "--no-host --workers 2 --load {loads} {windows} {set}"
        ));
        let saturation = number(&rows[0], "saturation_load");
        let all = number(rows.last().unwrap(), "accepted_load");
        (saturation, all)
    };
    let (saturation, accepted) = of("0.9,0.95,1", "");
    assert!((saturation / PUBLISHED - 1.0).abs() < 0.1, "{saturation}");
    // What is accepted at full load says the same.
    assert!((accepted / PUBLISHED - 1.0).abs() < 0.1, "{accepted}");
    // The same test tells a network that is not as good from one that is: credits for a fifth of
    // the round trip over a link.
    let (starved, accepted) = of("0.5,0.7,1", "--set link.channel_credits=8");
    assert!(starved < 0.85 && accepted < 0.85, "{starved} {accepted}");
}

#[test]
fn rows_are_the_same_for_any_number_of_workers() {
    for format in ["table", "csv", "json"] {
        let of = |workers| {
            stdout(&format!(
                "network --topology torus:4x4 --traffic uniform,tornado --load 0.2,0.7..0.9+0.1 \
                 {SHORT} --format {format} --workers {workers}"
            ))
        };
        assert_eq!(of(1), of(2), "{format}");
    }
}

#[test]
fn a_row_holds_what_identifies_the_run_and_what_came_out() {
    let arguments = "--topology mesh:4x4 --traffic transpose --load 0.3 --seed 7";
    let rows = rows(&format!("{arguments} {SHORT}"));
    let [row] = &rows[..] else { panic!("one row") };
    for (key, value) in [
        ("machine", Value::from("sme-prototype")),
        ("topology", Value::from("mesh:4x4")),
        ("traffic", Value::from("transpose")),
        ("nodes", Value::from(16)),
        ("seed", Value::from(7)),
        ("packet_bytes", Value::from(24)),
        ("undelivered", Value::from(0)),
        ("saturated", Value::from(false)),
        ("saturation_load", Value::Null),
    ] {
        assert_eq!(row[key], value, "{key}");
    }
    // Uniform: k/4 · 16/15 packets over the busiest link; transpose: k - 1.
    assert!((number(row, "capacity_mb_per_s") - 624.0 * 15.0 / 16.0).abs() < 1e-3);
    assert!((number(row, "bound_load") - (16.0 / 15.0) / 3.0).abs() < 1e-5);
    assert!(number(row, "latency_mean_ns") > number(row, "zero_load_latency_ns") * 0.9);
    assert!(number(row, "latency_p50_ns") <= number(row, "latency_p99_ns"));
    assert!(number(row, "latency_p99_ns") <= number(row, "latency_max_ns"));
}

#[test]
fn the_chart_has_labelled_axes_and_a_curve_for_each_pattern() {
    let directory = tempfile::tempdir().unwrap();
    let plot = directory.path().join("latency.svg");
    let table = stdout(&format!(
        "network --topology mesh:4x4 --traffic uniform,transpose --load 0.1..0.9+0.4 {SHORT} \
         --plot {}",
        plot.display()
    ));
    assert!(table.contains("latency_mean_ns"), "{table}");
    let svg = std::fs::read_to_string(plot).unwrap();
    for label in [
        "offered load [fraction of the capacity under uniform traffic]",
        "latency [ns]",
        "uniform",
        "transpose",
        "mean",
        "99th percentile",
        "saturation load",
    ] {
        assert!(svg.lines().any(|line| line == label), "{label}\n{svg}");
    }
}

#[test]
fn a_table_says_which_patterns_do_not_saturate() {
    let small = format!("network --topology mesh:4x4 {SHORT}");
    let run = format!("{small} --load 0.1,0.2");
    let table = stdout(&run);
    assert!(
        table.ends_with("\n\nuniform: not saturated up to 0.2\n"),
        "{table}"
    );
    let table = stdout(&format!("{small} --traffic transpose --load 0.9"));
    assert!(
        table.ends_with("\n\ntranspose: saturated at 0.9 already\n"),
        "{table}"
    );
    for format in ["csv", "json"] {
        let rows = stdout(&format!("{run} --format {format}"));
        assert!(!rows.contains("not saturated"), "{rows}");
    }
}

#[test]
fn help_has_examples_that_parse_and_every_name() {
    let help = stdout("network --help");
    let examples = help.split("Examples:").nth(1).unwrap();
    let mut count = 0;
    let lines = examples.lines().map(str::trim);
    for example in lines.filter_map(|line| line.strip_prefix("sme ")) {
        let output = sme(&format!("{example} --no-such-flag"));
        let complaint = text(&output.stderr);
        let parsed = complaint.contains("'--no-such-flag'");
        assert!(parsed, "{example}: {complaint}");
        let output = sme(&format!("{example} --seed x"));
        let complaint = text(&output.stderr);
        assert!(complaint.contains("--seed"), "{example}: {complaint}");
        count += 1;
    }
    assert!(count >= 4, "{help}");
    for pattern in sme_sim::families::sme::traffic::Pattern::ALL {
        assert!(help.contains(pattern.name()), "{pattern}");
    }
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    for (arguments, reason) in [
        ("--load 0", "--load 0: 0 is too small"),
        ("--load -0.1", "--load -0.1: '-0.1' is not a fraction"),
        ("--load 1.01", "--load 1.01: 1.01 is too large"),
        ("--load nan", "--load nan: 'nan' is not a fraction"),
        ("--load 0.5..0.1", "runs backwards"),
        ("--load 0.5,0.5", "0.5 is given twice"),
        ("--traffic unifrom", "did you mean 'uniform'?"),
        ("--traffic uniform,uniform", "uniform is given twice"),
        (
            "--topology mesh:8x4 --traffic transpose",
            "a square of two dimensions",
        ),
        (
            "--topology mesh:3x3 --traffic bit-complement",
            "power of two",
        ),
        ("--topology mesh:1x1", "at least two nodes"),
        (
            "--topology dragonfly:1x1x1x1 --traffic tornado",
            "dragonfly:1x1x1x1 has 1 node; traffic needs at least two nodes",
        ),
        ("--topology mesh:2000x2000", "--topology"),
        ("--topology mesh:1024x1024 --measure 1s", "of memory"),
        (
            "--topology torus:3x3x3 --set link.bandwidth=3744MB/s",
            "lower link.bandwidth",
        ),
        ("--measure 0", "--measure"),
        ("--measure 5", "--measure"),
        ("--warmup -1us", "-1"),
        ("--seed x", "--seed x"),
        ("--workers 0", "--workers 0"),
        ("--machine none.toml", "--machine"),
        ("--plot /no/such/place.svg --load 0.1", "--plot"),
        ("-o a.svg --plot a.svg", "is the file of"),
    ] {
        let output = sme(&format!("network {arguments}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(
            said.starts_with("sme: ") && said.contains(reason),
            "{arguments}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    }
}

/// Without packets there is no latency: 0 would be the best of all.
#[test]
fn a_window_without_packets_has_no_latencies() {
    let row = &rows("--topology mesh:2x2 --load 0.001 --measure 1us --no-host")[0];
    assert_eq!(row["packets"], 0);
    for key in ["mean", "p50", "p99", "max"] {
        assert_eq!(row[format!("latency_{key}_ns")], Value::Null, "{row}");
    }
}

/// The network is the machine's own unless another is given.
#[test]
fn the_network_is_the_machines_own() {
    let small = "--load 0.1 --warmup 1us --measure 2us --drain 5us --format json";
    for (machine, network) in [("sme-prototype", "mesh:8x8"), ("exascale", "torus:4x4x4")] {
        let rows = stdout(&format!("network --machine {machine} {small}"));
        assert!(
            rows.contains(&format!("\"topology\":\"{network}\"")),
            "{rows}"
        );
    }
    let output = sme(&format!("network --machine cxl-pool {small}"));
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    let expected = "cxl-pool, whose network is fattree:64x1: at full load a node injects";
    assert!(said.contains(expected), "{said}");
}
