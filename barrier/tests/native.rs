//! The native barriers on real threads: no thread leaves an episode before the last has arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sme_barrier::native::{Barrier, BarrierError, MOST_THREADS, Options, Patience, Seat};
use sme_barrier::{Algorithm, Member, Spacing, SpecError};
use sme_memory::native::{Native, Size};
use sme_memory::{Flags, Memory, Place, Route, Until};

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
    Patience::NONE,
];

/// Fewer under Miri, which is a thousand times slower.
const fn scaled(episodes: u32) -> u32 {
    if cfg!(miri) { 2 } else { episodes }
}

/// Numbers of threads that meet: fewer under Miri, which runs them one after the other.
const THREADS: &[usize] = if cfg!(miri) {
    &[1, 2, 3, 5]
} else {
    &[1, 2, 3, 8, 17]
};

/// Runs `episodes` episodes; every thread checks in each that all have arrived and that none is
/// more than one ahead. The last thread is sometimes `late`. Returns how often a leader was named.
fn stress(handles: Vec<impl FnMut() -> bool + Send>, episodes: u32, late: impl Fn() + Sync) -> u32 {
    let arrived: Vec<AtomicU32> = handles.iter().map(|_| AtomicU32::new(0)).collect();
    let leaders = AtomicU32::new(0);
    let last = arrived.len() - 1;
    thread::scope(|scope| {
        for (id, mut wait) in handles.into_iter().enumerate() {
            let (arrived, leaders, late) = (&arrived, &leaders, &late);
            scope.spawn(move || {
                for episode in 1..=episodes {
                    if id == last && episode % 128 == 1 {
                        late();
                    }
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

/// Later than the others by far.
fn by_far() {
    thread::sleep(Duration::from_millis(1));
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
        for &threads in THREADS {
            for spacing in [Spacing::Packed, Spacing::Padded] {
                let options = Options {
                    spacing,
                    ..Options::of(algorithm)
                };
                let barrier = Barrier::with_options(threads, options).unwrap();
                assert_eq!(barrier.threads(), threads);
                let episodes = match algorithm {
                    Algorithm::FlagPhase => scaled(2_000),
                    _ => scaled(300),
                };
                assert_eq!(stress(waits(barrier), episodes, by_far), episodes);
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
                assert_eq!(stress(waits(barrier), episodes, by_far), episodes);
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

/// A flag-and-phase barrier whose master forgets the last of its flags.
struct Forgetful {
    threads: u32,
}

impl<M: Memory> sme_barrier::Barrier<M> for Forgetful {
    type Local = u8;

    async fn wait(&self, memory: &M, me: Member, phase_before: &mut u8) {
        let place = Place { node: 0, offset: 0 };
        let phase = memory.flag(place, Route::Nearest);
        let flags = Flags {
            first: memory.flag(place.plus(1), Route::Nearest),
            stride: 1,
            count: self.threads,
        };
        let my_phase = *phase_before;
        *phase_before = 1 - my_phase;
        memory.set(flags.at(me.core), 1 - my_phase).await;
        if me.core == 0 {
            let known = Flags {
                count: self.threads - 1,
                ..flags
            };
            memory.wait_all(known, Until::IsNot(my_phase)).await;
            memory.set(phase, 1 - my_phase).await;
        } else {
            memory.wait(phase, Until::IsNot(my_phase)).await;
        }
    }
}

/// The check itself: a barrier that does not wait for all threads must be found out.
#[test]
#[should_panic = "a scoped thread panicked"]
fn a_master_that_forgets_a_thread_is_caught() {
    let threads = 3;
    let size = Size {
        nodes: 1,
        flag_bytes: 1 + u64::from(threads),
        word_bytes: 0,
    };
    let memory = Native::new(size, Patience::CROWDED);
    let barrier = Arc::new(Forgetful { threads });
    // Every thread that has not ended yet has a copy.
    let here = Arc::new(());
    let waits = (0..threads).map(|core| {
        let me = Member { node: 0, core };
        let mut seat = Seat::new(Arc::clone(&barrier), &memory, me);
        let here = Arc::clone(&here);
        move || {
            seat.wait();
            // Moved into the closure, and dropped with it.
            let _ = &here;
            core == 0
        }
    });
    // So late that the others, who must not leave without it, have left and looked: on any machine,
    // under any load. A barrier that holds them makes this give up and the test fail.
    let late = || {
        let began = Instant::now();
        while Arc::strong_count(&here) > 2 && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(1));
        }
    };
    // One episode: in a second, the threads could wait for each other for ever.
    stress(waits.collect(), 1, late);
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
