//! Machines whose cache lines have another length, and whose memory lies on several sockets.

use crate::command::{cell, sme, stdout, text};
use serde_json::Value;

fn row(arguments: &str) -> Value {
    serde_json::from_str(&stdout(&format!("{arguments} --no-host --format json"))).unwrap()
}

/// Of short lines more are filled; the result is right, and what is stale is found.
#[test]
fn programs_run_on_lines_of_32_bytes() {
    let machines = [("ideal", "node.line"), ("sme-prototype", "cache.line")];
    let programs = ["fft --log2n 8", "lu --n 16 --block 4", "radix --keys 256"];
    for (machine, key) in machines {
        for program in programs {
            let said = format!("{program} on {machine}");
            let of = |line: u32, point| {
                sme(&format!(
                    "{program} --machine {machine} --set {key}={line}B --nodes 4 --cores 2 \
                     --no-host --stale --coherence-point {point}"
                ))
            };
            let fills = |line| {
                let output = of(line, "barrier");
                assert_eq!(output.status.code(), Some(0), "{said}: {output:?}");
                let table = text(&output.stdout);
                assert_eq!(cell(table, "stale_reads"), "0", "{said}");
                cell(table, "line_fills").parse::<u64>().unwrap()
            };
            let (short, long) = (fills(32), fills(64));
            assert!(long < short && short <= 2 * long, "{said}: {short} {long}");
            let stale = of(32, "none");
            assert_eq!(stale.status.code(), Some(1), "{said}");
            assert_ne!(cell(text(&stale.stdout), "stale_reads"), "0", "{said}");
        }
    }
}

/// Padded flags have a line each, however long lines are: barriers take the same time, in both
/// forms.
#[test]
fn padded_barriers_take_the_same_on_shorter_lines() {
    for algorithm in ["tree", "dissemination"] {
        let of = |line: u32, form: &str| {
            let mut row = row(&format!(
                "barrier --algorithm {algorithm} --nodes 5 --cores 7 --set cache.line={line}B \
                 --form {form}"
            ));
            for key in ["machine_hash", "set"] {
                row.as_object_mut().unwrap().remove(key);
            }
            row
        };
        let readable = of(64, "readable");
        for (line, form) in [(64, "compact"), (32, "readable"), (32, "compact")] {
            assert_eq!(of(line, form), readable, "{algorithm} {line} {form}");
        }
    }
}

/// A home on another socket is nearer to some threads and farther from the bridge.
#[test]
fn homes_on_all_sockets_cost_time() {
    let of = |homes: &str, more: &str| {
        row(&format!(
            "barrier --nodes 2 --cores 16 --set coherence.homes={homes} {more}"
        ))
    };
    let mean = |row: &Value| row["latency_mean_us"].as_f64().unwrap();
    let (first, lines) = (of("first", ""), of("lines", ""));
    assert_eq!(
        mean(&first),
        mean(&of("pages", "")),
        "all flags are in one page"
    );
    assert_ne!(mean(&first), mean(&lines));
    // Of itself the run is in the form that can do it.
    assert_eq!(mean(&lines), mean(&of("lines", "--form readable")));
    let refused = sme("barrier --nodes 2 --set coherence.homes=lines --form compact");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("coherence.homes") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn lines_of_other_lengths_are_refused() {
    for (machine, key) in [("ideal", "node.line"), ("sme-prototype", "cache.line")] {
        for line in ["48B", "16B", "128B"] {
            let output = sme(&format!("barrier --machine {machine} --set {key}={line}"));
            assert_eq!(output.status.code(), Some(2), "{machine} {line}");
            let said = text(&output.stderr);
            assert!(said.contains(key) && said.lines().count() == 1, "{said}");
        }
    }
}
