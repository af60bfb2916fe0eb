use super::*;

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
