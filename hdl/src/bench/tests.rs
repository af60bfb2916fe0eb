use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;

use super::*;
use crate::lockstep::random::Random;

/// Cycles of each block's run here; `sme rtl lockstep` runs longer ones.
const CYCLES: u64 = 3_000;

#[test]
fn rtl_and_cycle_model_are_the_same_machine() {
    for bench in BENCHES {
        for seed in 0..6 {
            let outcome = (bench.build)(seed, None).run(CYCLES, seed);
            assert_eq!(outcome.mismatch, None, "{}, seed {seed}", bench.name);
            assert!(outcome.transactions > CYCLES / 20, "{} is idle", bench.name);
        }
    }
}

/// Of the sizes that become hardware.
#[test]
fn the_blocks_of_a_machine_are_its_cycle_models() {
    let machine = Machine::builtin("sme-prototype").unwrap();
    for topology in ["mesh:8x8", "torus:3x4x5"] {
        let topology: Topology = topology.parse().unwrap();
        let site = EngineSite::of_cluster(
            sme_sim::families::sme::of(&machine).unwrap(),
            &topology,
            topology.hosts(),
        )
        .unwrap();
        for bench in BENCHES {
            let mut pair = bench.of(&site);
            let built = (bench.of)(&site, None).rtl.verilog("block");
            assert_eq!(pair.rtl.verilog("block"), built, "{}", bench.name);
            let outcome = pair.run(CYCLES / 2, 7);
            assert_eq!(outcome.mismatch, None, "{} in {topology}", bench.name);
            assert!(outcome.transactions > CYCLES / 40, "{} is idle", bench.name);
        }
    }
}

#[test]
fn broken_variants_are_found_out() {
    for bench in BENCHES {
        for &fault in bench.faults {
            let found = (0..6).any(|seed| {
                let outcome = (bench.build)(seed, Some(fault)).run(CYCLES, seed);
                outcome.mismatch.is_some()
            });
            assert!(found, "{}: {fault}", bench.name);
        }
    }
}

/// Faults that change nothing in a machine's engine: packets take its links for several cycles, and
/// it has as many tags as there are numbers.
const NO_FAULTS: [(&str, &str); 5] = [
    ("link_port", "packets are fetched, and timed as if not"),
    (
        "link_port",
        "a packet of one cycle leaves its FIFO unnoticed",
    ),
    ("tags", "one tag more"),
    ("tags", "tags that do not exist are found in use"),
    ("requester", "a tag more"),
];

/// Of the sizes that become hardware, too: all tags and credits come into use, and links wrap.
#[test]
fn broken_variants_of_a_machines_blocks_are_found_out() {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let places = ["mesh:8x8", "torus:3x4x5"].map(|topology| {
        let topology: Topology = topology.parse().unwrap();
        EngineSite::of_cluster(
            sme_sim::families::sme::of(&machine).unwrap(),
            &topology,
            topology.hosts(),
        )
        .unwrap()
    });
    let runs = || {
        places
            .iter()
            .flat_map(|site| (0..6).map(move |seed| (site, seed)))
    };
    for bench in BENCHES {
        for &fault in bench.faults {
            let found = runs().any(|(site, seed)| {
                let outcome = (bench.of)(site, Some(fault)).run(CYCLES, seed);
                outcome.mismatch.is_some()
            });
            let can_be = !NO_FAULTS.contains(&(bench.name, fault));
            assert_eq!(found, can_be, "{}: {fault}", bench.name);
        }
    }
}

/// Test benches as long as those of `sme rtl verilog` use all tags and credits, at any seed.
#[test]
fn the_vectors_of_a_bench_use_all_tags_and_credits() {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let topology: Topology = "mesh:8x8".parse().unwrap();
    let site = EngineSite::of_cluster(
        sme_sim::families::sme::of(&machine).unwrap(),
        &topology,
        topology.hosts(),
    )
    .unwrap();
    for (block, fault) in [
        ("fifo", "one place less"),
        ("fifo", "one place more"),
        ("link_port", "a credit less than places"),
        ("link_port", "a credit more than places"),
        ("tags", "one tag less"),
        ("completer", "one tag less"),
        ("switch", "one place less"),
        ("ht_port", "the host has a place more"),
        ("requester", "a tag less"),
        ("engine", "one source tag less"),
        ("engine", "one credit more"),
    ] {
        let bench = find(block).unwrap();
        for seed in 1..5 {
            let outcome = (bench.of)(&site, Some(fault)).run(2000, seed);
            assert!(outcome.mismatch.is_some(), "{block}: {fault}, seed {seed}");
        }
    }
}

/// Of blocks that rest while nothing comes, too.
#[test]
fn a_reset_restores_the_state_of_power_on() {
    for bench in BENCHES {
        for seed in 0..3 {
            let mut before = (bench.build)(seed, None);
            let mut random = Random::seeded(seed + 99);
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            for _ in 0..777 {
                inputs.clear();
                before.traffic.inputs(&mut random, &outputs, &mut inputs);
                before.rtl.cycle(&inputs, &mut outputs);
            }
            before.rtl.reset();
            let mut after = Pair {
                rtl: before.rtl,
                ..(bench.build)(seed, None)
            };
            let outcome = after.run(CYCLES / 2, seed);
            assert_eq!(outcome.mismatch, None, "{}, seed {seed}", bench.name);
        }
    }
}
