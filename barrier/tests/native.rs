//! The native barriers on real threads: no thread leaves an episode before the last has arrived.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use sme_barrier::native::{Barrier, BarrierError, MOST_THREADS, Options, Patience};
use sme_barrier::{Algorithm, Spacing, SpecError};

/// Every way to wait: spin long, spin briefly and sleep, yield and sleep, sleep at once.
const PATIENCE: [Patience; 4] = [
    Patience {
        spin: Duration::from_millis(100),
        yields: 0,
    },
    Patience {
        spin: Duration::from_nanos(1),
        yields: 0,
    },
    Patience::CROWDED,
    Patience {
        spin: Duration::ZERO,
        yields: 0,
    },
];

/// Fewer under Miri, which is a thousand times slower.
const fn scaled(episodes: u32) -> u32 {
    if cfg!(miri) { 2 } else { episodes }
}

/// Runs `episodes` episodes; every thread checks in each that all have arrived and that none is
/// more than one ahead. Returns how often a leader was named.
fn stress(handles: Vec<impl FnMut() -> bool + Send>, episodes: u32) -> u32 {
    let arrived: Vec<AtomicU32> = handles.iter().map(|_| AtomicU32::new(0)).collect();
    let leaders = AtomicU32::new(0);
    thread::scope(|scope| {
        for (id, mut wait) in handles.into_iter().enumerate() {
            let (arrived, leaders) = (&arrived, &leaders);
            scope.spawn(move || {
                for episode in 1..=episodes {
                    arrived[id].store(episode, Ordering::Relaxed);
                    if wait() {
                        leaders.fetch_add(1, Ordering::Relaxed);
                    }
                    for (other, arrived) in arrived.iter().enumerate() {
                        let there = arrived.load(Ordering::Relaxed);
                        assert!(
                            (episode..=episode + 1).contains(&there),
                            "{id} has left episode {episode} and {other} is in {there}",
                        );
                    }
                }
            });
        }
    });
    leaders.into_inner()
}

fn waits(barrier: Barrier) -> Vec<impl FnMut() -> bool + Send> {
    let handles = barrier.handles().into_iter();
    handles
        .map(|mut handle| move || handle.wait().is_leader())
        .collect()
}

#[test]
fn nobody_leaves_early() {
    for &algorithm in Algorithm::ALL {
        for threads in [1, 2, 3, 8, 17] {
            for spacing in [Spacing::Packed, Spacing::Padded] {
                let options = Options {
                    spacing,
                    ..Options::of(algorithm)
                };
                let barrier = match Barrier::with_options(threads, options) {
                    Ok(barrier) => barrier,
                    Err(BarrierError::Spec(_)) if algorithm == Algorithm::Butterfly => continue,
                    Err(error) => panic!("{algorithm} with {threads} threads: {error}"),
                };
                assert_eq!(barrier.threads(), threads);
                let episodes = scaled(2_000);
                assert_eq!(stress(waits(barrier), episodes), episodes);
            }
        }
    }
}

#[test]
fn however_they_wait() {
    for patience in PATIENCE {
        for algorithm in [
            Algorithm::FlagPhase,
            Algorithm::Tree,
            Algorithm::Dissemination,
        ] {
            // As many as spin without hindering each other on the smallest of machines.
            for threads in [2, 3] {
                let options = Options {
                    patience: Some(patience),
                    fan_in: 2,
                    ..Options::of(algorithm)
                };
                let barrier = Barrier::with_options(threads, options).unwrap();
                // A spinning thread may have to wait for its time slice to end.
                let episodes = scaled(if patience == PATIENCE[0] { 50 } else { 3_000 });
                assert_eq!(stress(waits(barrier), episodes), episodes);
            }
        }
    }
}

/// One thread is late by far: the others sleep, and are woken.
#[test]
fn a_late_thread_finds_the_others_asleep() {
    for &algorithm in Algorithm::ALL {
        let barrier = Barrier::with_options(4, Options::of(algorithm)).unwrap();
        let late = AtomicU32::new(0);
        thread::scope(|scope| {
            for mut handle in barrier.handles() {
                let late = &late;
                scope.spawn(move || {
                    for turn in 0..4 {
                        if handle.id() == turn {
                            thread::sleep(Duration::from_millis(5));
                            late.fetch_add(1, Ordering::Relaxed);
                        }
                        handle.wait();
                        assert!(late.load(Ordering::Relaxed) as usize > turn);
                    }
                });
            }
        });
    }
}

/// The check itself: a barrier that lets one thread through must be found out.
#[test]
#[should_panic = "a scoped thread panicked"]
fn a_barrier_with_a_hole_is_caught() {
    let mut handles = Barrier::new(2).unwrap().handles();
    let mut last = handles.pop().unwrap();
    let mut first = handles.pop().unwrap();
    // The first never waits for the second.
    let hole: Vec<Box<dyn FnMut() -> bool + Send>> = vec![
        Box::new(|| false),
        Box::new(move || {
            thread::sleep(Duration::from_millis(1));
            false
        }),
    ];
    thread::scope(|scope| {
        scope.spawn(move || last.wait());
        first.wait();
    });
    stress(hole, 50);
}

#[test]
fn what_cannot_be_is_refused() {
    let none = Barrier::new(0).err();
    assert_eq!(none, Some(BarrierError::Spec(SpecError::NoThreads)));
    let threads = MOST_THREADS + 1;
    let many = Barrier::new(threads).err();
    assert_eq!(many, Some(BarrierError::TooManyThreads { threads }));
    assert!(Barrier::new(usize::MAX).is_err());
    let options = Options {
        fan_in: 1,
        ..Options::of(Algorithm::Tree)
    };
    let fan_in = Barrier::with_options(4, options).err();
    assert_eq!(
        fan_in,
        Some(BarrierError::Spec(SpecError::FanIn { fan_in: 1 }))
    );
    for &algorithm in Algorithm::ALL {
        assert!(Barrier::with_options(0, Options::of(algorithm)).is_err());
    }
}
