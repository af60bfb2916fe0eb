//! Fat trees and dragonflies from the command line: every barrier runs on them, with the same bytes
//! out however it is simulated, and what cannot be is refused with a reason.

use crate::command::{sme, stdout, text};

const NETWORKS: [(&str, u32); 4] = [
    ("fattree:4x3", 16),
    ("fattree:6x2", 11),
    ("dragonfly:2x2x1", 12),
    ("dragonfly:1x3x2x4", 9),
];

#[test]
fn every_barrier_among_nodes_runs_on_every_network() {
    for (topology, nodes) in NETWORKS {
        for algorithm in ["flat", "tree", "butterfly", "dissemination"] {
            let flags = format!(
                "barrier --algorithm {algorithm} --topology {topology} --nodes {nodes} --cores 2 \
                 --episodes 2 --seed 3 --format json --no-host"
            );
            let one = stdout(&format!("{flags} --workers 1"));
            assert!(
                one.contains(&format!("\"topology\":\"{topology}\"")),
                "{one}"
            );
            assert_eq!(one, stdout(&format!("{flags} --workers 3")), "{flags}");
        }
    }
}

#[test]
fn all_of_a_network_is_its_hosts() {
    let row = stdout("barrier --topology fattree:4x2 --cores 1 --episodes 1 --format json");
    assert!(
        row.contains("\"topology\":\"fattree:4x2\",\"nodes\":8,"),
        "{row}"
    );
}

/// A dragonfly's nodes are nearer to each other than those of a mesh; a barrier shows it.
#[test]
fn a_barrier_is_faster_where_the_network_is_closer() {
    let latency = |topology: &str| -> f64 {
        let row = stdout(&format!(
            "barrier --topology {topology} --nodes 64 --cores 1 --episodes 2 --format json"
        ));
        let (_, rest) = row.split_once("\"latency_mean_us\":").unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    };
    let line = latency("mesh:64x1");
    assert!(latency("fattree:8x3") < line);
    assert!(latency("dragonfly:2x4x2") < line);
}

#[test]
fn what_is_no_network_is_refused_with_a_reason() {
    for (flags, reason) in [
        ("barrier --topology fattre:4x3", "did you mean 'fattree'?"),
        ("barrier --topology fattree:5x3", "an even number of links"),
        ("barrier --topology fattree:64x6", "more than 1048576"),
        (
            "barrier --topology dragonfly:4x8",
            "global links per router",
        ),
        ("barrier --topology dragonfly:4x8x4x99", "at most 33 groups"),
        (
            "barrier --topology fattree:4x2 --nodes 9",
            "its 8 positions do not hold 9 nodes",
        ),
        (
            "barrier --topology fattree:4x2 --cores 1 --engine rtl",
            "there is no RTL for fattree networks",
        ),
        (
            "barrier --topology dragonfly:2x2x1 --cores 1 --engine rtl",
            "there is no RTL for dragonfly networks",
        ),
    ] {
        let output = sme(flags);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {message}");
        assert!(message.contains(reason), "{flags}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
