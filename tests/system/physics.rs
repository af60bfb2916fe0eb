//! The options of a machine file about how packets pass: accepted by every form, engine and number
//! of workers that can do them, refused by the others; and the noise of `sme validate`.

use crate::command::{sme, stdout, text};
use serde_json::Value;

fn rows(arguments: &str) -> Vec<Value> {
    let printed = stdout(&format!("{arguments} --no-host --format json"));
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn mean(arguments: &str) -> f64 {
    rows(arguments)[0]["latency_mean_us"].as_f64().unwrap()
}

/// All options at once: the same row with one worker and with several.
#[test]
fn workers_change_nothing() {
    let of = |workers: u32| {
        rows(&format!(
            "barrier --algorithm flat --topology mesh:4x4 --nodes 16 --cores 4 --episodes 10 \
             --set host.bridge_writes=pipelined --set link.forwarding=cut-through \
             --set link.serdes=90ns --workers {workers}"
        ))
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn a_pipelined_bridge_has_no_compact_form() {
    let barrier = "barrier --nodes 8 --cores 8 --episodes 10 --set host.bridge_writes=pipelined";
    let refused = sme(&format!("{barrier} --form compact"));
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("host.bridge_writes") && said.lines().count() == 1,
        "{said}"
    );
    let (auto, readable) = (rows(barrier), rows(&format!("{barrier} --form readable")));
    assert_eq!(auto, readable);
}

#[test]
fn both_forms_cut_through_alike() {
    let of = |form| {
        rows(&format!(
            "barrier --topology mesh:8x8 --nodes 40 --cores 4 --episodes 10 \
             --set link.forwarding=cut-through --set link.serdes=100ns --form {form}"
        ))
    };
    assert_eq!(of("compact"), of("readable"));
}

/// Many notifications come to one node in a flat barrier, few in a tree; and far nodes gain most.
#[test]
fn options_help_where_packets_queue_or_go_far() {
    let flat = "barrier --algorithm flat --topology mesh:8x8 --nodes 64 --cores 4 --episodes 5";
    let tree = "barrier --algorithm tree --topology mesh:8x8 --nodes 64 --cores 4 --episodes 5";
    for barrier in [flat, tree] {
        let cut = mean(&format!("{barrier} --set link.forwarding=cut-through"));
        assert!(cut < mean(barrier), "{barrier}");
    }
    let gain =
        |barrier| mean(barrier) - mean(&format!("{barrier} --set host.bridge_writes=pipelined"));
    assert!(gain(flat) > 0.5 && gain(tree).abs() < 0.2);
}

/// 27 cycles at 156 MHz are 173.08 ns.
#[test]
fn a_time_in_the_transceivers_is_the_same_at_the_prototypes_clock() {
    let barrier = "barrier --nodes 8 --cores 2 --episodes 5";
    let clock = "--set engine.clock=800MHz";
    let kept = "--set link.serdes=173ns";
    assert_eq!(mean(barrier), mean(&format!("{barrier} {kept}")));
    let (scaled, kept) = (
        format!("{barrier} {clock}"),
        format!("{barrier} {clock} {kept}"),
    );
    assert!(mean(&kept) > mean(&scaled) + 0.2);
}

#[test]
fn a_validation_may_have_noise() {
    let validate = "validate --paper sme --no-programs --no-large --episodes 1";
    for (flags, found) in [
        (
            "--noise-period 100ms",
            "--noise-period: there is none without",
        ),
        (
            "--noise-period 1ms --noise-duration 1ms",
            "--noise-duration: a duration",
        ),
        (
            "--noise-period 1ms,2ms --noise-duration 1us",
            "--noise-period",
        ),
    ] {
        let refused = sme(&format!("{validate} {flags}"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        let said = text(&refused.stderr);
        assert!(said.contains(found) && said.lines().count() == 1, "{said}");
    }
    let of = |flags: &str| {
        let output = sme(&format!("{validate} --format json {flags}"));
        let printed = text(&output.stdout).lines();
        let rows = printed.map(|line| serde_json::from_str(line).unwrap());
        rows.collect::<Vec<Value>>()
    };
    let (quiet, noisy) = (of(""), of("--noise-period 100us --noise-duration 10us"));
    assert_eq!(quiet[0].get("noise_period_ns"), None);
    assert_eq!(noisy[0]["noise_period_ns"], 100_000.0);
    assert_eq!(noisy[0]["noise_distribution"], "periodic");
    let of = |rows: &[Value], id| {
        let row = rows.iter().find(|row| row["id"] == id);
        row.unwrap()["simulated"].as_f64().unwrap()
    };
    let tree = "sme.fig8.tree.64x16";
    assert!(of(&noisy, tree) > 1.2 * of(&quiet, tree));
    let load = "sme.load_latency.remote";
    assert_eq!(of(&noisy, load), of(&quiet, load));
}
