//! The blocked LU factorization against one without blocks: on real threads, and step by step on a
//! small machine whose memory is not coherent.

mod interleaved;

use interleaved::{Coherence, Machine, Report, Spec, WriteBack};
use proptest::prelude::*;
use sme_fft_demo::lu::{Lu, LuError, LuSpec, Phase};
use sme_fft_demo::native::NativeTeam;
use sme_fft_demo::{ArrayError, Placement, Pool};
use sme_memory::native::{Native, Patience, Size, run};
use sme_memory::{Memory, Place, Route};

const BYTES: u64 = 1 << 18;

fn spec(n: u32, block: u32, threads: u32) -> LuSpec {
    LuSpec {
        n,
        block,
        threads,
        route: Route::Cached,
        seed: u64::from(n),
    }
}

fn lay_out(spec: LuSpec, nodes: u32, placement: Placement) -> Lu {
    let mut pool = Pool::new(nodes, (0, BYTES), 256, 3).expect("a pool");
    Lu::new(spec, &mut pool, placement).expect("a factorization")
}

/// The oracle: Gaussian elimination, column by column.
fn eliminate(n: usize, mut a: Vec<f64>) -> Vec<f64> {
    for k in 0..n {
        for i in k + 1..n {
            a[i * n + k] /= a[k * n + k];
            for j in k + 1..n {
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
            }
        }
    }
    a
}

/// The factors are the oracle's to the last bit: every element sees the same operations in the same
/// order, independent of blocks and threads. And they are factors.
fn check(lu: &Lu, factors: &[f64]) -> Result<(), String> {
    let matrix = lu.matrix();
    let expected = eliminate(lu.spec().n as usize, matrix.clone());
    let residual = lu.residual(&matrix, factors);
    let bits = |elements: &[f64]| elements.iter().map(|e| e.to_bits()).collect::<Vec<_>>();
    if bits(factors) != bits(&expected) {
        return Err(format!("other factors; the residual is {residual}"));
    }
    if residual.is_nan() || residual > 1e-14 {
        return Err(format!("the residual is {residual}"));
    }
    Ok(())
}

/// On real threads, so many on each node.
fn factorize(lu: &Lu, threads: &[u32]) -> Vec<f64> {
    let size = Size {
        nodes: threads.len() as u32,
        flag_bytes: 0,
        word_bytes: BYTES,
    };
    let memory = Native::new(size, Patience::CROWDED);
    let main = memory.thread(0);
    let word = |place| main.word(place, Route::Nearest);
    let matrix = lu.matrix();
    for (place, value) in lu.initial(&matrix).expect("a matrix of the size") {
        run(main.store(word(place), value));
    }
    let members = NativeTeam::members(&memory, threads).expect("a team");
    NativeTeam::run(members, |team| run(lu.run(team)));
    lu.result(|place| run(main.load(word(place))))
}

/// Step by step.
fn interleave(lu: &Lu, machine: Spec) -> (Vec<f64>, Report) {
    let machine = Machine::new(Spec {
        bytes: BYTES,
        ..machine
    });
    let matrix = lu.matrix();
    for (place, value) in lu.initial(&matrix).expect("a matrix of the size") {
        machine.write(place, value);
    }
    let programs = machine
        .members()
        .map(|mut member| async move { lu.run(&mut member).await });
    assert_eq!(machine.run(programs), Ok(()));
    (lu.result(|place| machine.read(place)), machine.report())
}

fn placements() -> impl Strategy<Value = Placement> {
    prop_oneof![Just(Placement::Block), Just(Placement::Random)]
}

fn routes() -> impl Strategy<Value = Route> {
    prop_oneof![
        Just(Route::Cached),
        Just(Route::Global),
        Just(Route::Nearest)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn real_threads_find_the_factors(
        n in 1u32..60, block in 1u32..20,
        threads in prop::collection::vec(1u32..4, 1..4), placement in placements(),
    ) {
        let spec = spec(n, block, threads.iter().sum());
        let lu = lay_out(spec, threads.len() as u32, placement);
        prop_assert_eq!(check(&lu, &factorize(&lu, &threads)), Ok(()));
    }

    /// With any order of steps, route and caches, the factors are right, nothing races, and no line
    /// is of two nodes.
    #[test]
    fn memory_need_not_be_coherent(
        n in 1u32..22, block in 1u32..8, nodes in 1u32..4, cores in 1u32..4,
        lines in 1usize..40, whole: bool, placement in placements(), route in routes(), seed: u64,
    ) {
        let spec = LuSpec { route, ..spec(n, block, nodes * cores) };
        let lu = lay_out(spec, nodes, placement);
        let write_back = if whole { WriteBack::Line } else { WriteBack::Mask };
        let machine = Spec { nodes, cores, lines, write_back, ..Spec::of(seed) };
        let (factors, report) = interleave(&lu, machine);
        prop_assert_eq!(check(&lu, &factors), Ok(()));
        prop_assert_eq!(report.races, []);
        prop_assert_eq!(report.false_sharing, []);
    }
}

#[test]
fn the_sizes_that_people_use() {
    for (n, block) in [(128, 16), (100, 16), (17, 16), (64, 64), (30, 7), (1, 1)] {
        for threads in 1..=5 {
            for &placement in Placement::ALL {
                let lu = lay_out(spec(n, block, threads), 1, placement);
                let checked = check(&lu, &factorize(&lu, &[threads]));
                assert_eq!(checked, Ok(()), "{n} / {block} on {threads}");
            }
        }
    }
}

/// Each barrier left out once: the audit finds a race exactly where there is one, and some order of
/// steps gives wrong factors. SPLASH-2 has no barrier after the interior, and is right. The last
/// barrier prevents no race, but without it the last block stays in its owner's cache.
#[test]
fn a_barrier_left_out_is_found() {
    let lu = lay_out(spec(16, 4, 4), 2, Placement::Block);
    let phases: Vec<Phase> = lu.phases().collect();
    assert_eq!(phases.len(), 1 + 3 * 3 + 1);
    for (skipped, &phase) in (0..).zip(&phases) {
        let needed = matches!(phase, Phase::Diagonal | Phase::Perimeter);
        let last = skipped + 1 == phases.len() as u64;
        let mut wrong = 0;
        for seed in 0..12 {
            let machine = Spec {
                nodes: 2,
                cores: 2,
                skipped: Some(skipped),
                ..Spec::of(seed)
            };
            let (factors, report) = interleave(&lu, machine);
            wrong += u32::from(check(&lu, &factors).is_err());
            let races = !report.races.is_empty();
            assert_eq!(races, needed && !last, "{phase} {skipped} {seed}");
        }
        assert_eq!(wrong > 0, needed, "{phase} {skipped}: {wrong} of 12 wrong");
    }
}

/// Without write-backs others' blocks never come. Invalidating is not needed: a block is read by
/// others only when it has its last values.
#[test]
fn what_the_barrier_must_do_to_the_caches() {
    let lu = lay_out(spec(16, 4, 4), 2, Placement::Block);
    for (coherence, right) in [
        (Coherence::Full, true),
        (Coherence::WriteBackOnly, true),
        (Coherence::None, false),
    ] {
        for seed in 0..8 {
            let machine = Spec {
                nodes: 2,
                cores: 2,
                coherence,
                ..Spec::of(seed)
            };
            let (factors, _) = interleave(&lu, machine);
            assert_eq!(check(&lu, &factors).is_ok(), right, "{coherence:?} {seed}");
        }
    }
}

/// The table of the module's documentation, for one thread; others load block (k, k) once more
/// each.
#[test]
fn how_often_memory_is_touched() {
    let (block, blocks) = (8u64, 6u64);
    let lu = lay_out(spec((block * blocks) as u32, 8, 1), 1, Placement::Block);
    let (_, report) = interleave(&lu, Spec::of(0));
    let (mut loads, mut stores) = (0, 0);
    for k in 0..blocks {
        let rest = blocks - k - 1;
        loads += 1 + u64::from(rest > 0) + 2 * rest + rest + 2 * rest * rest;
        stores += 1 + 2 * rest + rest * rest;
    }
    assert_eq!(report.loads, loads * block * block);
    assert_eq!(report.stores, stores * block * block);
    let operations: u64 = (1..block * blocks).map(|m| m + 2 * m * m).sum();
    assert_eq!(report.operations, operations);
}

#[test]
fn a_wrong_factor_has_a_residual() {
    let lu = lay_out(spec(20, 4, 1), 1, Placement::Block);
    let mut factors = factorize(&lu, &[1]);
    let matrix = lu.matrix();
    factors[47] += 1e-6;
    assert!(lu.residual(&matrix, &factors) > 1e-10);
    assert!(check(&lu, &factors).is_err());
    factors[47] = f64::NAN;
    assert!(lu.residual(&matrix, &factors).is_nan());
    assert_eq!(lu.residual(&matrix, &factors[1..]), f64::INFINITY);
}

#[test]
fn what_cannot_be_is_refused() {
    let build = |spec: LuSpec| {
        let mut pool = Pool::new(2, (0, 1 << 16), 64, 0).expect("a pool");
        Lu::new(spec, &mut pool, Placement::Block).map(|_| ())
    };
    let largest = u32::MAX;
    assert_eq!(build(spec(0, 4, 1)), Err(LuError::Empty));
    assert_eq!(build(spec(4, 0, 1)), Err(LuError::Block { block: 0 }));
    let block = largest;
    assert_eq!(build(spec(4, block, 1)), Err(LuError::Block { block }));
    assert_eq!(build(spec(4, 4, 0)), Err(LuError::NoThreads));
    for block in [1, 1024] {
        let too_large = LuError::TooLarge { n: largest, block };
        assert_eq!(build(spec(largest, block, 1)), Err(too_large));
    }
    let full = build(spec(1 << 10, 16, 4));
    assert!(matches!(full, Err(LuError::Array(ArrayError::Full { .. }))));
    // A prime number of threads is a grid of one column; most have nothing to do.
    assert_eq!(build(spec(4, 4, 4_294_967_291)), Ok(()));

    let lu = lay_out(spec(3, 2, 1), 1, Placement::Block);
    let wrong = lu.initial(&[1.0; 8]).map(|words| words.count());
    let (elements, expected) = (8, 9);
    assert_eq!(wrong, Err(LuError::Length { elements, expected }));
    let places = lu.initial(&[1.0; 9]).map(|words| {
        let mut places: Vec<Place> = words.map(|(place, _)| place).collect();
        places.sort();
        places.dedup();
        places.len()
    });
    assert_eq!(places, Ok(9));
}
