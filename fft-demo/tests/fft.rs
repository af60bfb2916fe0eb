//! The FFT against rustfft: on real threads, and through caches that nothing keeps coherent.

mod interleaved;

use std::sync::Mutex;

use interleaved::{Coherence, Machine, Member, Report, Spec, Thread, WriteBack};
use num_complex::Complex64;
use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use sme_fft_demo::fft::{Direction, Fft, FftError, FftSpec, Phase, check, log2n};
use sme_fft_demo::native::NativeTeam;
use sme_fft_demo::{Placement, Pool, Team};
use sme_memory::native::{Native, Patience, Size, run};
use sme_memory::{Memory, Place, Route};

/// Ten thousand times below what is asked for: what double precision gives for these sizes.
const TOLERANCE: f64 = 1e-14;
const NODE_BYTES: u64 = 1 << 23;

fn input(log2n: u32, seed: u64) -> Vec<Complex64> {
    let mut random = Pcg64Mcg::new(u128::from(seed));
    let mut real = || random.next_u64() as i64 as f64 / 2f64.powi(63);
    (0..1 << log2n)
        .map(|_| Complex64::new(real(), real()))
        .collect()
}

fn fft(spec: FftSpec, nodes: usize, placement: Placement, granule: u64) -> Fft {
    let mut pool = Pool::new(nodes as u32, (192, NODE_BYTES), granule, 3).expect("a pool");
    Fft::new(spec, &mut pool, placement).expect("a transform")
}

/// The transform by real threads.
fn natively(fft: &Fft, threads: &[u32], input: &[Complex64]) -> Vec<Complex64> {
    let size = Size {
        nodes: threads.len() as u32,
        flag_bytes: 0,
        word_bytes: NODE_BYTES,
    };
    let memory = Native::new(size, Patience::for_threads(8));
    let host = memory.thread(0);
    let word = |place| host.word(place, Route::Global);
    for (place, value) in fft.initial(input).expect("as many points") {
        run(host.store(word(place), value));
    }
    let members = NativeTeam::members(&memory, threads).expect("a team");
    NativeTeam::run(members, |team| run(fft.run(team)));
    fft.result(|place| run(host.load(word(place))))
}

/// `threads` on as many nodes as there may be, up to three.
fn nodes(threads: u32) -> Vec<u32> {
    let nodes = threads.min(3);
    (0..nodes).map(|node| (threads + node) / nodes).collect()
}

#[test]
fn real_threads_compute_what_rustfft_computes() {
    for log2n in 0..=10 {
        for (index, threads) in [1, 2, 3, 5, 8].into_iter().enumerate() {
            for &direction in Direction::ALL {
                for &placement in Placement::ALL {
                    let spec = FftSpec {
                        direction,
                        padding_words: [8, 0, 2, 64, 14][(index + log2n as usize) % 5],
                        block: [16, 1, 3, 1000][index % 4],
                        ..FftSpec::new(log2n, threads)
                    };
                    let nodes = nodes(threads);
                    let fft = fft(spec, nodes.len(), placement, 256);
                    let input = input(log2n, u64::from(log2n));
                    let output = natively(&fft, &nodes, &input);
                    let error = check(&input, &output, direction);
                    assert!(error < TOLERANCE, "{spec:?} {placement}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_large_transform_is_as_exact() {
    for log2n in [15, 16] {
        let fft = fft(FftSpec::new(log2n, 4), 2, Placement::Random, 4096);
        let input = input(log2n, 1);
        let error = check(&input, &natively(&fft, &[2, 2], &input), Direction::Forward);
        assert!(error < TOLERANCE, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_inverse_of_the_transform_is_the_input(
        log2n in 0u32..11, threads in 1u32..9, padding in 0u32..40, block in 1u32..40,
        random: bool, granule in 6u32..13, seed: u64,
    ) {
        let placement = if random { Placement::Random } else { Placement::Block };
        let there = FftSpec { padding_words: 2 * padding, block, ..FftSpec::new(log2n, threads) };
        let back = FftSpec { direction: Direction::Inverse, ..there };
        let nodes = nodes(threads);
        let transformed = |spec, input: &[Complex64]| {
            natively(&fft(spec, nodes.len(), placement, 1 << granule), &nodes, input)
        };
        let input = input(log2n, seed);
        let output = transformed(there, &input);
        prop_assert!(check(&input, &output, Direction::Forward) < TOLERANCE);
        for (value, original) in transformed(back, &output).iter().zip(&input) {
            prop_assert!((value - original).norm() < TOLERANCE);
        }
    }
}

/// The error of the transform through caches that nothing keeps coherent, and what was seen.
fn interleaved(fft: &Fft, spec: Spec) -> (f64, Report) {
    spoilt(fft, spec, |_| {})
}

/// The same, after `spoil` has changed what is in memory at first.
fn spoilt(fft: &Fft, spec: Spec, spoil: impl Fn(&mut [(Place, u64)])) -> (f64, Report) {
    let input = input(fft.spec().log2n, 11);
    let mut initial: Vec<_> = fft.initial(&input).expect("as many points").collect();
    spoil(&mut initial);
    let machine = Machine::new(spec);
    for (place, value) in initial {
        machine.write(place, value);
    }
    let members = machine.members();
    let programs = members.map(|mut member| async move { fft.run(&mut member).await });
    machine.run(programs).expect("all threads end");
    let output = fft.result(|place| machine.read(place));
    (
        check(&input, &output, fft.spec().direction),
        machine.report(),
    )
}

/// Nodes with room for everything in their caches, which write back whole lines; the barrier after
/// the last phase makes the result reach memory.
fn machine(nodes: u32, cores: u32, seed: u64) -> Spec {
    Spec {
        nodes,
        cores,
        bytes: NODE_BYTES,
        lines: 1 << 20,
        write_back: WriteBack::Line,
        ..Spec::of(seed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// By any route, through caches of any size that write back whole lines, in any order of steps.
    #[test]
    fn barriers_that_make_memory_coherent_are_enough(
        log2n in 0u32..9, nodes in 1u32..5, cores in 1u32..4, lines in 1usize..200,
        padding in 0u32..4, block in 1u32..20, random: bool, inverse: bool, seed: u64,
        route in prop::sample::select(vec![Route::Nearest, Route::Global, Route::Cached]),
    ) {
        let placement = if random { Placement::Random } else { Placement::Block };
        let spec = FftSpec {
            direction: if inverse { Direction::Inverse } else { Direction::Forward },
            padding_words: 8 * padding,
            block,
            route,
            ..FftSpec::new(log2n, nodes * cores)
        };
        let fft = fft(spec, nodes as usize, placement, 128);
        let machine = Spec { lines, ..machine(nodes, cores, seed) };
        let (error, report) = interleaved(&fft, machine);
        prop_assert!(error < TOLERANCE, "{error}");
        prop_assert_eq!(report.races.len() + report.false_sharing.len(), 0);
    }
}

#[test]
fn barriers_that_do_not_are_caught() {
    let fft = fft(FftSpec::new(8, 4), 2, Placement::Random, 128);
    for coherence in [Coherence::None, Coherence::WriteBackOnly] {
        for seed in 0..5 {
            let on = |nodes, cores| Spec {
                coherence,
                ..machine(nodes, cores, seed)
            };
            assert!(interleaved(&fft, on(2, 2)).0 > 1e-3, "{coherence:?}");
        }
    }
}

#[test]
fn lines_that_two_bands_share_lose_updates() {
    // Rows of 8 points, 16 words: with two words between them they share lines.
    let spec = FftSpec {
        padding_words: 2,
        ..FftSpec::new(6, 3)
    };
    let fft = fft(spec, 3, Placement::Block, 128);
    let errors = (0..10).map(|seed| {
        let (error, report) = interleaved(&fft, machine(3, 1, seed));
        assert!(!report.false_sharing.is_empty());
        assert!(report.races.is_empty());
        error
    });
    assert!(errors.filter(|&error| error > 1e-3).count() > 0);
    let dirty_bytes_only = Spec {
        write_back: WriteBack::Mask,
        ..machine(3, 1, 0)
    };
    assert!(interleaved(&fft, dirty_bytes_only).0 < TOLERANCE);
}

#[test]
fn each_barrier_between_two_steps_is_needed() {
    let fft = fft(FftSpec::new(8, 3), 1, Placement::Block, 128);
    for (barrier, &phase) in Fft::PHASES.iter().enumerate() {
        let mut wrong = 0;
        // The first is there for who measures, the last for who reads the result.
        let needed = matches!(phase, Phase::Columns | Phase::Rows);
        for seed in 0..10 {
            let skipped = Some(barrier as u64);
            let (error, report) = interleaved(
                &fft,
                Spec {
                    skipped,
                    ..machine(1, 3, seed)
                },
            );
            assert_eq!(report.races.is_empty(), !needed, "{phase}");
            wrong += u32::from(error > 1e-3);
        }
        // The result of the last phase stays in the cache where no barrier writes it back.
        let expected = needed || phase == Phase::Result;
        assert_eq!(wrong > 0, expected, "{phase}: {wrong} of 10");
    }
}

#[test]
fn a_wrong_word_is_caught() {
    let fft = fft(FftSpec::new(6, 2), 1, Placement::Block, 128);
    // Of the input, and of the twiddles.
    let words = 2 * 2 * 64;
    for word in (0..words).step_by(7) {
        let change = |initial: &mut [(Place, u64)]| {
            assert_eq!(initial.len(), words);
            let value = f64::from_bits(initial[word].1);
            initial[word].1 = (value + 1e-6).to_bits();
        };
        let (error, _) = spoilt(&fft, machine(1, 2, 0), change);
        assert!(error > 1e-10, "word {word}: {error}");
    }
}

/// A thread that notes what has been counted when it comes to a barrier.
struct Counted<'n> {
    member: Member,
    machine: Machine,
    notes: &'n Mutex<Vec<Report>>,
}

impl Team for Counted<'_> {
    type Memory = Thread;

    fn memory(&self) -> &Thread {
        self.member.memory()
    }

    fn number(&self) -> u32 {
        self.member.number()
    }

    fn size(&self) -> u32 {
        self.member.size()
    }

    async fn barrier(&mut self) {
        let notes = self.notes.lock();
        notes
            .expect("only one thread takes notes")
            .push(self.machine.report());
        self.member.barrier().await;
    }

    async fn compute(&mut self, operations: u32) {
        self.member.compute(operations).await;
    }
}

#[test]
fn a_phase_loads_and_stores_what_is_documented() {
    for log2n in 2..=9u32 {
        for &direction in Direction::ALL {
            let spec = FftSpec {
                direction,
                ..FftSpec::new(log2n, 1)
            };
            let fft = fft(spec, 1, Placement::Block, 128);
            let machine = Machine::new(machine(1, 1, 0));
            let notes = Mutex::new(Vec::new());
            let programs = machine.members().map(|member| {
                let (fft, machine, notes) = (&fft, machine.clone(), &notes);
                let mut team = Counted {
                    member,
                    machine,
                    notes,
                };
                async move { fft.run(&mut team).await }
            });
            machine.run(programs).expect("it ends");

            let inverse = f64::from(u8::from(direction == Direction::Inverse));
            let (short, long) = (log2n / 2, log2n.div_ceil(2));
            let transform = |m: u32| {
                let reversal = 2.0 - 2f64.powi(1 + m.div_ceil(2) as i32 - m as i32);
                reversal + 2.0 * f64::from(m)
            };
            let columns = 2.0 + transform(short);
            let rows = 2.0 + transform(long) + 2.0 * inverse;
            let butterflies = |m: u32| 5.0 * f64::from(m);
            let expected = [
                [0.0; 3],
                [columns + 4.0, columns + 2.0, butterflies(short) + 6.0],
                [rows, rows, butterflies(long) + 2.0 * inverse],
                [2.0, 2.0, 0.0],
            ];
            let notes = notes.into_inner().expect("no other thread has them");
            assert_eq!(notes.len(), Fft::PHASES.len());
            let mut before = [0; 3];
            for ((note, expected), phase) in notes.iter().zip(expected).zip(Fft::PHASES) {
                let now = [note.loads, note.stores, note.operations];
                let points = fft.points() as f64;
                for index in 0..3 {
                    let found = (now[index] - before[index]) as f64 / points;
                    assert_eq!(found, expected[index], "{phase} of 2^{log2n}, {index}");
                }
                before = now;
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |spec| {
        let mut pool = Pool::new(2, (0, 1 << 16), 4096, 0).expect("a pool");
        match Fft::new(spec, &mut pool, Placement::Block) {
            Ok(_) => panic!("{spec:?} was taken"),
            Err(error) => error,
        }
    };
    let good = FftSpec::new(8, 4);
    let (log2n, threads, block) = (31, 0, 0);
    assert_eq!(
        refused(FftSpec { log2n, ..good }),
        FftError::TooManyPoints { log2n }
    );
    assert_eq!(refused(FftSpec { threads, ..good }), FftError::NoThreads);
    assert_eq!(refused(FftSpec { block, ..good }), FftError::Block);
    for words in [3, 514, u32::MAX] {
        let spec = FftSpec {
            padding_words: words,
            ..good
        };
        assert_eq!(refused(spec), FftError::Padding { words });
    }
    let error = refused(FftSpec { log2n: 20, ..good });
    assert!(matches!(error, FftError::Array(_)), "{error}");

    let fft = fft(good, 1, Placement::Block, 128);
    let error = fft
        .initial(&input(7, 0))
        .map(|_| ())
        .expect_err("too short");
    assert_eq!(error.to_string(), "128 points for a transform of 256");
    assert_eq!(
        log2n_error(100),
        "a vector of 100 points: the number must be a power of two"
    );
    assert_eq!(
        log2n_error(0),
        "a vector of 0 points: the number must be a power of two"
    );
}

fn log2n_error(points: u64) -> String {
    log2n(points).expect_err("not a power of two").to_string()
}
