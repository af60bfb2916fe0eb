//! The native barriers against what one would write by hand: does the `async` source cost anything
//! on real threads? Time of one barrier.
//!
//! * `hand-written`: the paper's listing over two atomics, spinning for ever.
//! * `hand-written, exchange`: the same with the exchange that a writer needs to see sleepers.
//! * `compiled in`: [`Seat`], the algorithm known when the program is compiled.
//! * `handle`: [`Handle`](sme_barrier::native::Handle), chosen when it runs.
//!
//! The hand-written loops spin without bound, so they only run where every thread has a processor.

use std::hint::spin_loop;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sme_barrier::native::{Barrier, Options, Patience, Seat};
use sme_barrier::{Algorithm, FlagPhase, FlagPhaseSpec, Layout, Member};
use sme_memory::Route;
use sme_memory::native::{LINE, Native, Size};

#[repr(align(128))]
struct Line(AtomicU8);

/// The listing of Fröning et al., Sec. IV-A, for the thread `id`.
fn hand_written<const EXCHANGE: bool>(phase: &Line, flags: &[Line], id: usize) {
    let write = |line: &Line, value| {
        if EXCHANGE {
            line.0.swap(value, Ordering::Release);
        } else {
            line.0.store(value, Ordering::Release);
        }
    };
    let wait = |line: &Line, old| {
        while line.0.load(Ordering::Acquire) == old {
            spin_loop();
        }
    };
    let my_phase = phase.0.load(Ordering::Relaxed);
    write(&flags[id], my_phase ^ 1);
    if id == 0 {
        for flag in &flags[1..] {
            wait(flag, my_phase);
        }
        write(phase, my_phase ^ 1);
    } else {
        wait(phase, my_phase);
    }
}

fn by_hand<const EXCHANGE: bool>(threads: usize) -> Vec<impl FnMut() + Send> {
    let line = || Line(AtomicU8::new(0));
    let phase = Arc::new(line());
    let flags: Arc<[Line]> = (0..threads).map(|_| line()).collect();
    (0..threads)
        .map(|id| {
            let (phase, flags) = (Arc::clone(&phase), Arc::clone(&flags));
            move || hand_written::<EXCHANGE>(&phase, &flags, id)
        })
        .collect()
}

fn compiled_in(threads: u32) -> Vec<impl FnMut() + Send> {
    let barrier = FlagPhase::new(FlagPhaseSpec {
        threads: vec![threads],
        home: 0,
        route: Route::Nearest,
        layout: Layout::padded(LINE as u32),
    })
    .expect("a barrier for these threads");
    let size = Size {
        nodes: 1,
        flag_bytes: barrier.bytes(),
        word_bytes: 0,
    };
    let memory = Native::new(size, Patience::for_threads(threads as usize));
    let barrier = Arc::new(barrier);
    (0..threads)
        .map(|core| {
            let me = Member { node: 0, core };
            let mut seat = Seat::new(Arc::clone(&barrier), &memory, me);
            move || seat.wait()
        })
        .collect()
}

fn handles(threads: usize, algorithm: Algorithm) -> Vec<impl FnMut() + Send> {
    let barrier = Barrier::with_options(threads, Options::of(algorithm))
        .expect("a barrier for these threads");
    let handles = barrier.handles().into_iter();
    handles
        .map(|mut handle| {
            move || {
                handle.wait();
            }
        })
        .collect()
}

fn standard(threads: usize) -> Vec<impl FnMut() + Send> {
    let barrier = Arc::new(std::sync::Barrier::new(threads));
    (0..threads)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            move || {
                barrier.wait();
            }
        })
        .collect()
}

/// The time that the first of the threads takes for `episodes` episodes, after some to warm up.
fn time<W: FnMut() + Send>(waits: Vec<W>, episodes: u64) -> Duration {
    thread::scope(|scope| {
        let running: Vec<_> = waits
            .into_iter()
            .map(|mut wait| {
                scope.spawn(move || {
                    (0..8).for_each(|_| wait());
                    let begin = Instant::now();
                    (0..episodes).for_each(|_| wait());
                    begin.elapsed()
                })
            })
            .collect();
        let mut times = running
            .into_iter()
            .map(|thread| thread.join().expect("a thread that ends"));
        let first = times.next().unwrap_or_default();
        times.for_each(drop);
        first
    })
}

fn barriers(criterion: &mut Criterion) {
    let processors = available_parallelism().map_or(1, NonZero::get);
    let mut group = criterion.benchmark_group("native");
    for threads in [2, 16] {
        let mut bench = |name: &str, run: &dyn Fn(u64) -> Duration| {
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter_custom(run);
            });
        };
        if threads <= processors {
            bench("hand-written", &|n| time(by_hand::<false>(threads), n));
            bench("hand-written, exchange", &|n| {
                time(by_hand::<true>(threads), n)
            });
        }
        bench("compiled in", &|n| time(compiled_in(threads as u32), n));
        for algorithm in [
            Algorithm::FlagPhase,
            Algorithm::Tree,
            Algorithm::Dissemination,
            Algorithm::Pthread,
        ] {
            bench(&format!("handle, {algorithm}"), &|n| {
                time(handles(threads, algorithm), n)
            });
        }
        bench("std", &|n| time(standard(threads), n));
    }
    group.finish();
}

criterion_group! {
    name = native;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = barriers
}
criterion_main!(native);
