//! `sme latency`: the parts of every operation add up to a time that is measured otherwise, on
//! every machine, and are those that the machine's constants say.

use serde_json::Value;
use sme::latency::budget::{Budget, Operation, budgets, distances};
use sme::latency::remote_load_latency;
use sme_memory::Capability;
use sme_sim::machine::Machine;
use sme_sim::observe::path::Part;
use sme_sim::time::Time;

use crate::command::{sme, stdout, text};

fn all(machine: &Machine, nodes: u32) -> Vec<Budget> {
    let shape = machine.shape();
    let topology = shape.topology(nodes);
    let homes = distances(&topology, shape.homes(nodes));
    budgets(machine, (&topology, nodes), &homes).unwrap()
}

fn part(budget: &Budget, part: Part) -> u64 {
    budget.parts[part as usize].as_ps()
}

fn of(budgets: &[Budget], operation: Operation, hops: Option<u32>) -> &Budget {
    let of_hops = |b: &&Budget| b.operation == operation && b.home.map(|h| h.hops) == hops;
    budgets.iter().find(of_hops).unwrap()
}

#[test]
fn the_parts_are_the_whole_on_every_machine() {
    for builtin in Machine::builtins() {
        let machine = Machine::builtin(builtin.name).unwrap();
        let budgets = all(&machine, machine.shape().nodes.min(6));
        let distances = match builtin.name {
            // Of six nodes in a mesh of 3 x 2; of 2 x 2 x 2; of devices; behind a switch.
            "sme-prototype" | "sme-asic" | "ideal" | "opteron-6272" => 4,
            // Of three tiles of two cores.
            "scc" | "scc-800" => 4,
            "exascale" => 3,
            "cxl-pool" => 1,
            _ => 2,
        };
        // Four operations within a node, and four between nodes; where a node has one core, those
        // of two threads are neither within a node nor at distance 0. Where no node reaches
        // another's memory, only the former are there.
        let reaches_others = machine.capabilities().has(Capability::Remote);
        let expected = match machine.shape().cores {
            _ if !reaches_others => 4,
            1 => 2 + 2 * distances + 2 * (distances - 1),
            _ => 4 + 4 * distances,
        };
        assert_eq!(budgets.len(), expected, "{}", builtin.name);
        for budget in &budgets {
            let parts: u64 = budget.parts.iter().map(|part| part.as_ps()).sum();
            assert_eq!(parts, budget.total.as_ps(), "{}: {budget:?}", builtin.name);
            assert!(budget.total > Time::ZERO, "{}: {budget:?}", builtin.name);
        }
    }
}

/// The times are those of the loads that `sme validate` compares.
#[test]
fn remote_loads_take_what_they_take_elsewhere() {
    for name in ["sme-prototype", "sme-asic", "ideal"] {
        let machine = Machine::builtin(name).unwrap();
        let budgets = all(&machine, 2);
        for (hops, loopback) in [(0, true), (1, false)] {
            let budget = of(&budgets, Operation::RemoteLoad, Some(hops));
            let otherwise = remote_load_latency(&machine, loopback).unwrap();
            assert_eq!(budget.total, otherwise, "{name}, {hops} hops");
        }
    }
}

/// A miss of a node's own memory on the prototype, by hand: the core knows it after 22 ns; the
/// home, its own socket, asks all four sockets, of which the farthest is two hops of 15 ns away; it
/// looks for 33 ns and answers over two hops, after memory has. 6 cycles of 2.2 GHz are the
/// program's own.
#[test]
fn a_local_miss_is_made_of_the_machines_constants() {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let miss = of(&all(&machine, 1), Operation::LoadMiss, None).clone();
    assert_eq!(part(&miss, Part::Cache), 22_000 + 33_000);
    assert_eq!(part(&miss, Part::HyperTransport), 4 * 15_000);
    assert_eq!(part(&miss, Part::Memory), 0);
    assert_eq!(part(&miss, Part::Core) / 10, 6 * 10_000 / 22 / 10);

    // With slow memory that is what the load waits for, and not the probes.
    let slow = machine.with(&[("coherence.dram", "200ns")]).unwrap();
    let miss = of(&all(&slow, 1), Operation::LoadMiss, None).clone();
    assert_eq!(part(&miss, Part::Memory), 200_000);
    assert_eq!(part(&miss, Part::Cache), 22_000);
    assert_eq!(part(&miss, Part::HyperTransport), 0);
}

/// One hop more costs time in the engine's blocks and the links only, in every operation.
#[test]
fn a_hop_adds_engine_and_link() {
    let machine = Machine::builtin("sme-asic").unwrap();
    let budgets = all(&machine, 6);
    for operation in [Operation::RemoteLoad, Operation::StoreVisible] {
        let [near, far] = [1, 3].map(|hops| of(&budgets, operation, Some(hops)));
        let ways = match operation {
            Operation::RemoteLoad => 2,
            _ => 1,
        };
        // 800 MHz; 24 bytes at 624 MB/s are 31 cycles, 16 bytes 21; 27 of the transceivers, 15 ns.
        for name in [Part::Core, Part::Cache, Part::Memory, Part::HyperTransport] {
            assert_eq!(part(near, name), part(far, name), "{operation} {name:?}");
        }
        assert!(part(far, Part::Link) >= part(near, Part::Link) + 2 * ways * (27 * 1_250 + 15_000));
        assert!(part(far, Part::Engine) > part(near, Part::Engine));
    }
}

#[test]
fn rows_say_which_figures_validate_them() {
    let validated = |arguments: &str| -> Vec<(String, String)> {
        let output = stdout(&format!("latency --nodes 4 --format json {arguments}"));
        let rows = output
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let rows = rows.filter(|row| row["validated"] != "none");
        rows.map(|row| {
            let of = format!("{} {}", row["operation"].as_str().unwrap(), row["hops"]);
            (of, row["validated"].as_str().unwrap().to_owned())
        })
        .collect()
    };
    let pair = |of: &str, figure: &str| (of.to_owned(), figure.to_owned());
    assert_eq!(
        validated(""),
        [
            pair("remote-load 0", "sme.load_latency.local_engine"),
            pair("remote-load 1", "sme.load_latency.remote"),
        ]
    );
    assert_eq!(
        validated("--machine sme-asic"),
        [pair("remote-load 1", "sme.fig4.asic_remote_load")]
    );
    assert_eq!(validated("--set link.wire=16ns"), []);
    assert_eq!(validated("--machine exascale"), []);
}

#[test]
fn bad_flags_are_refused_in_a_line() {
    for (arguments, reason) in [
        ("--hops 99", "no node is so far away; there are 0, 1"),
        ("--hops 1,1", "1 is given twice"),
        ("--hops x", "--hops"),
        ("--nodes 0", "--nodes"),
        ("--nodes 5 --topology mesh:2x2", "do not hold 5 nodes"),
        ("--machine none.toml", "--machine"),
    ] {
        let output = sme(&format!("latency {arguments}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(said.contains(reason), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    }
}

/// A load that no cache has finds nothing that was fetched ahead of it: it takes what it takes
/// where nothing is.
#[test]
fn a_miss_is_not_fetched_ahead() {
    for machine in ["xeon-e5-2650", "opteron-6272"] {
        let of = |more: &str| {
            let output = stdout(&format!(
                "latency --machine {machine} --nodes 2 --format json {more}"
            ));
            let rows = output.lines();
            let rows = rows.map(|line| serde_json::from_str::<Value>(line).unwrap());
            let rows = rows.filter(|row| {
                ["load-miss", "line-fill"].contains(&row["operation"].as_str().unwrap())
            });
            rows.map(|row| row["total_ns"].as_f64().unwrap())
                .collect::<Vec<f64>>()
        };
        let times = of("");
        assert_eq!(times, of("--set core.ahead=0"), "{machine}");
        assert!(
            times.len() > 1 && times.iter().all(|&ns| ns > 50.0),
            "{machine}: {times:?}"
        );
    }
}
