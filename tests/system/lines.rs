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

/// With loads of a line each, fills take an eighth of the loads; the result is right, and what is
/// stale is found.
#[test]
fn programs_run_on_loads_of_a_line() {
    for program in ["fft --log2n 8", "lu --n 16 --block 4", "radix --keys 256"] {
        let of = |payload: u32, point| {
            sme(&format!(
                "{program} --machine sme-prototype --set uncached.load_payload={payload}B --nodes 4 \
                 --cores 2 --no-host --stale --coherence-point {point}"
            ))
        };
        let [short, long] = [8, 64].map(|payload| {
            let output = of(payload, "barrier");
            assert_eq!(output.status.code(), Some(0), "{program}: {output:?}");
            let table = text(&output.stdout);
            assert_eq!(cell(table, "stale_reads"), "0", "{program}");
            ["line_fills", "remote_loads"].map(|column| cell(table, column).parse::<u64>().unwrap())
        });
        let [fills, loads] = short;
        assert_eq!(long, [fills, loads - 7 * fills], "{program}");
        let stale = of(64, "none");
        assert_eq!(stale.status.code(), Some(1), "{program}");
        assert_ne!(cell(text(&stale.stdout), "stale_reads"), "0", "{program}");
    }
}

/// Padded flags have a line each, however long lines are, and are not filled from behind the
/// engine: the payload of fills does not change the time of a barrier, in both forms.
#[test]
fn padded_barriers_take_the_same_on_shorter_lines() {
    for algorithm in ["tree", "dissemination"] {
        let of = |(line, payload): (u32, u32), form: &str| {
            let mut row = row(&format!(
                "barrier --algorithm {algorithm} --nodes 5 --cores 7 --set cache.line={line}B \
                 --set uncached.load_payload={payload}B --form {form}"
            ));
            for key in ["machine_hash", "set"] {
                row.as_object_mut().unwrap().remove(key);
            }
            row
        };
        let readable = of((64, 8), "readable");
        for machine in [(64, 8), (32, 8), (64, 64), (32, 32)] {
            for form in ["compact", "readable"] {
                assert_eq!(
                    of(machine, form),
                    readable,
                    "{algorithm} {machine:?} {form}"
                );
            }
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
