//! The radix sort against the standard library's: on real threads, and step by step on a small
//! machine whose memory is not coherent.

mod interleaved;

use interleaved::{Coherence, Machine, Report, Spec, WriteBack};
use proptest::prelude::*;
use sme_fft_demo::native::NativeTeam;
use sme_fft_demo::radix::{Borders, Phase, Radix, RadixError, RadixSpec};
use sme_fft_demo::{ArrayError, Placement, Pool};
use sme_memory::native::{Native, Patience, Size, run};
use sme_memory::{Memory, Route};

const BYTES: u64 = 1 << 22;

fn spec(keys: u64, key_bits: u32, radix_bits: u32, threads: u32) -> RadixSpec {
    RadixSpec {
        keys,
        key_bits,
        radix_bits,
        threads,
        route: Route::Cached,
        borders: Borders::Uncached,
        seed: keys,
    }
}

fn lay_out(spec: RadixSpec, nodes: u32, placement: Placement) -> Radix {
    let mut pool = Pool::new(nodes, (0, BYTES), 256, 3).expect("a pool");
    Radix::new(spec, &mut pool, placement).expect("a sort")
}

fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys
}

/// On real threads, so many on each node.
fn sort(radix: &Radix, threads: &[u32], keys: &[u64]) -> Vec<u64> {
    let size = Size {
        nodes: threads.len() as u32,
        flag_bytes: 0,
        word_bytes: BYTES,
    };
    let memory = Native::new(size, Patience::CROWDED);
    let main = memory.thread(0);
    let word = |place| main.word(place, Route::Nearest);
    for (place, value) in radix.initial(keys).expect("as many keys") {
        run(main.store(word(place), value));
    }
    let members = NativeTeam::members(&memory, threads).expect("a team");
    NativeTeam::run(members, |team| run(radix.run(team)));
    radix.result(|place| run(main.load(word(place))))
}

/// Step by step. Whether the keys are sorted, and what was found on the way.
fn interleave(radix: &Radix, machine: Spec) -> (bool, Report) {
    let machine = Machine::new(Spec {
        bytes: BYTES,
        ..machine
    });
    let keys: Vec<u64> = radix.keys().collect();
    for (place, value) in radix.initial(&keys).expect("as many keys") {
        machine.write(place, value);
    }
    let programs = machine
        .members()
        .map(|mut member| async move { radix.run(&mut member).await });
    assert_eq!(machine.run(programs), Ok(()));
    let result = radix.result(|place| machine.read(place));
    (result == sorted(keys), machine.report())
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

/// Keys of any distribution: spread over all bits, or few different ones.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let any = prop::collection::vec(any::<u64>(), 1..600);
    let few = prop::collection::vec(prop::sample::select(vec![0, 7, 1 << 40, u64::MAX]), 1..600);
    prop_oneof![any, few]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn real_threads_sort_any_keys(
        keys in keys(), radix_bits in 1u32..12,
        threads in prop::collection::vec(1u32..4, 1..4), placement in placements(),
    ) {
        let spec = spec(keys.len() as u64, 64, radix_bits, threads.iter().sum());
        let radix = lay_out(spec, threads.len() as u32, placement);
        prop_assert_eq!(sort(&radix, &threads, &keys), sorted(keys));
    }

    /// With any order of steps, route and caches, and the borders past the caches, the keys are
    /// sorted, nothing races, and no node writes back what another wrote.
    #[test]
    fn memory_need_not_be_coherent(
        keys in 1u64..150, key_bits in 1u32..9, radix_bits in 1u32..6,
        nodes in 1u32..4, cores in 1u32..4, lines in 1usize..40,
        whole: bool, placement in placements(), route in routes(), seed: u64,
    ) {
        let spec = RadixSpec { route, ..spec(keys, key_bits, radix_bits, nodes * cores) };
        let radix = lay_out(spec, nodes, placement);
        let write_back = if whole { WriteBack::Line } else { WriteBack::Mask };
        let machine = Spec { nodes, cores, lines, write_back, ..Spec::of(seed) };
        let (right, report) = interleave(&radix, machine);
        prop_assert!(right);
        prop_assert_eq!(report.races, []);
        prop_assert_eq!(report.false_sharing, []);
    }

    /// Through the caches it is right if these write back only what was stored, whenever they do.
    #[test]
    fn shared_borders_are_right_with_dirty_bytes_only(
        keys in 1u64..150, radix_bits in 1u32..5, nodes in 1u32..4, lines in 1usize..40, seed: u64,
    ) {
        let borders = Borders::Shared;
        let spec = RadixSpec { borders, ..spec(keys, 8, radix_bits, nodes * 2) };
        let radix = lay_out(spec, nodes, Placement::Random);
        let machine = Spec { nodes, cores: 2, lines, ..Spec::of(seed) };
        let (right, report) = interleave(&radix, machine);
        prop_assert!(right);
        prop_assert_eq!(report.races, []);
    }
}

#[test]
fn the_sizes_that_people_use() {
    for (keys, key_bits, radix_bits) in [(4096, 32, 8), (5000, 30, 10), (1000, 64, 16), (3, 5, 4)] {
        for threads in 1..=5 {
            for &placement in Placement::ALL {
                let spec = spec(keys, key_bits, radix_bits, threads);
                let radix = lay_out(spec, 1, placement);
                let keys: Vec<u64> = radix.keys().collect();
                assert!(
                    keys.iter()
                        .all(|key| key_bits == 64 || key >> key_bits == 0)
                );
                let result = sort(&radix, &[threads], &keys);
                assert_eq!(result, sorted(keys), "{spec:?}");
            }
        }
    }
}

/// False sharing: two nodes store to the lines at their borders, and with whole lines written back
/// keys are lost, while all else is the same. Among the threads of one node nothing is.
#[test]
fn shared_borders_lose_keys_with_whole_lines() {
    for (nodes, cores, borders, write_back, right, shared) in [
        (2, 2, Borders::Shared, WriteBack::Line, false, true),
        (2, 2, Borders::Shared, WriteBack::Mask, true, true),
        (2, 2, Borders::Uncached, WriteBack::Line, true, false),
        (1, 4, Borders::Shared, WriteBack::Line, true, false),
    ] {
        let spec = RadixSpec {
            borders,
            ..spec(200, 8, 4, 4)
        };
        let radix = lay_out(spec, nodes, Placement::Block);
        for seed in 0..10 {
            let machine = Spec {
                nodes,
                cores,
                write_back,
                ..Spec::of(seed)
            };
            let (sorted, report) = interleave(&radix, machine);
            assert_eq!(sorted, right, "{borders} {write_back:?} {seed}");
            assert_eq!(!report.false_sharing.is_empty(), shared, "{borders} {seed}");
            assert_eq!(report.races, []);
        }
    }
}

/// Each barrier left out once: the audit finds the race in any order of steps, and some order gives
/// a wrong result. Nothing is before the first and after the last.
#[test]
fn a_barrier_left_out_is_found() {
    let radix = lay_out(spec(120, 6, 3, 4), 2, Placement::Block);
    let phases: Vec<Phase> = radix.phases().collect();
    assert_eq!(phases.len(), 1 + 2 * 3);
    for (skipped, &phase) in (0..).zip(&phases) {
        let needed = skipped > 0 && skipped + 1 < phases.len() as u64;
        let mut wrong = 0;
        for seed in 0..12 {
            let machine = Spec {
                nodes: 2,
                cores: 2,
                skipped: Some(skipped),
                ..Spec::of(seed)
            };
            let (right, report) = interleave(&radix, machine);
            wrong += u32::from(!right);
            assert_eq!(!report.races.is_empty(), needed, "{phase} {skipped} {seed}");
        }
        assert_eq!(wrong > 0, needed, "{phase} {skipped}: {wrong} of 12 wrong");
    }
}

/// Counts must be written back, and copies of the pass before dropped.
#[test]
fn what_the_barrier_must_do_to_the_caches() {
    let radix = lay_out(spec(120, 9, 3, 4), 2, Placement::Block);
    for (coherence, right) in [
        (Coherence::Full, true),
        (Coherence::WriteBackOnly, false),
        (Coherence::None, false),
    ] {
        for seed in 0..8 {
            let machine = Spec {
                nodes: 2,
                cores: 2,
                coherence,
                ..Spec::of(seed)
            };
            let (sorted, _) = interleave(&radix, machine);
            assert_eq!(sorted, right, "{coherence:?} {seed}");
        }
    }
}

/// The table of the module's documentation.
#[test]
fn how_often_memory_is_touched() {
    let (keys, digits, threads, passes, rankers) = (1000, 16, 4, 3, 2);
    let radix = lay_out(spec(keys, 12, 4, 4), 1, Placement::Block);
    let machine = Spec {
        cores: 4,
        ..Spec::of(0)
    };
    let (_, report) = interleave(&radix, machine);
    // Every thread has keys of every digit.
    let loads = 2 * keys + digits * threads + threads * (digits + rankers - 1);
    assert_eq!(report.loads, passes * loads);
    let stores = keys + 2 * digits * threads + rankers;
    assert_eq!(report.stores, passes * stores);
}

#[test]
fn what_cannot_be_is_refused() {
    let build = |spec: RadixSpec| {
        let mut pool = Pool::new(2, (0, 1 << 16), 64, 0).expect("a pool");
        Radix::new(spec, &mut pool, Placement::Block).map(|_| ())
    };
    assert_eq!(build(spec(0, 8, 4, 1)), Err(RadixError::Empty));
    for key_bits in [0, 65, u32::MAX] {
        let refused = build(spec(8, key_bits, 4, 1));
        assert_eq!(refused, Err(RadixError::KeyBits { key_bits }));
    }
    for radix_bits in [0, 17, u32::MAX] {
        let refused = build(spec(8, 8, radix_bits, 1));
        assert_eq!(refused, Err(RadixError::RadixBits { radix_bits }));
    }
    assert_eq!(build(spec(8, 8, 4, 0)), Err(RadixError::NoThreads));
    let many = build(spec(u64::MAX, 8, 4, 1));
    assert!(matches!(
        many,
        Err(RadixError::TooLarge { what: "keys", .. })
    ));
    let many = build(spec(8, 8, 16, u32::MAX));
    assert!(matches!(
        many,
        Err(RadixError::TooLarge { what: "counts", .. })
    ));
    let full = build(spec(1 << 20, 8, 4, 4));
    assert!(matches!(
        full,
        Err(RadixError::Array(ArrayError::Full { .. }))
    ));

    let radix = lay_out(spec(9, 8, 4, 1), 1, Placement::Block);
    let wrong = radix.initial(&[1; 8]).map(|words| words.count());
    let (given, expected) = (8, 9);
    assert_eq!(wrong, Err(RadixError::Length { given, expected }));
}
