use sme_sim::machine::Machine;

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
    for (topology, hosts, node) in [("mesh:8x8", 64, 36), ("torus:3x4x5", 60, 17)] {
        let topology = topology.parse().unwrap();
        let place = Place::new(machine.cluster(), &topology, hosts, node).unwrap();
        for bench in BENCHES {
            let mut pair = bench.of(&place);
            let built = (bench.of)(&place).rtl.verilog("block");
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
