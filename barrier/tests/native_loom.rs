//! The native barriers under every interleaving and every memory order that the language allows,
//! with threads that sleep as early as they can. Only built with loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p sme-barrier --test native_loom --release`.
#![cfg(loom)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::thread;
use sme_barrier::native::{Barrier, Options};
use sme_barrier::{Algorithm, Spacing};
use sme_memory::native::{Protocol, Sound};

/// Runs `program` under every execution in which threads are preempted at most so often (always
/// where none is given); returns how many there were.
fn executions(preemptions: Option<usize>, program: impl Fn() + Send + Sync + 'static) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_duration=Some(std::time::Duration::from_secs(25));
    model.max_branches = 10_000;
    model.check(move || {
        program();
        counter.fetch_add(1, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed)
}

/// Plain data: loom panics when a read is not ordered after the write.
struct Data(UnsafeCell<u32>);

// Whether sharing it is sound is what the test finds out: loom checks each access.
#[allow(unsafe_code)]
mod data {
    use super::{Data, UnsafeCell};

    // SAFETY: loom runs one thread at a time and panics where accesses would race.
    unsafe impl Sync for Data {}

    impl Data {
        pub fn new() -> Self {
            Self(UnsafeCell::new(0))
        }

        pub fn write(&self, value: u32) {
            // SAFETY: as above.
            self.0.with_mut(|data| unsafe { *data = value });
        }

        pub fn read(&self) -> u32 {
            // SAFETY: as above.
            self.0.with(|data| unsafe { *data })
        }
    }
}

/// Every thread writes before each episode what all others read after it. Two sets in turns: what
/// is read after an episode is written again before the one after the next.
fn episodes<P: Protocol>(algorithm: Algorithm, threads: usize, episodes: u32) {
    let options = Options {
        spacing: Spacing::Packed,
        ..Options::of(algorithm)
    };
    let handles = Barrier::with_protocol::<P>(threads, options)
        .unwrap()
        .handles();
    let data: Arc<[Vec<Data>; 2]> =
        Arc::new([(); 2].map(|()| (0..threads).map(|_| Data::new()).collect()));
    let mut programs = handles.into_iter().map(|mut handle| {
        let data = Arc::clone(&data);
        move || {
            for episode in 1..=episodes {
                let data = &data[episode as usize % 2];
                data[handle.id()].write(episode);
                handle.wait();
                assert!(data.iter().all(|other| other.read() == episode), "left early");
            }
        }
    });
    let mut mine = programs.next().unwrap();
    let others: Vec<_> = programs.map(thread::spawn).collect();
    mine();
    for other in others {
        other.join().unwrap();
    }
}

#[test]
fn probe() {
    for a in [Algorithm::FlagPhase, Algorithm::Tree, Algorithm::Dissemination, Algorithm::Pthread] {
        for (n, e, p) in [(2, 1, None), (2, 2, None), (3,1,None), (3, 1, Some(2)),(3, 1, Some(3)), (3,2,Some(2))] {
            let t = std::time::Instant::now();
            let c = executions(p, move || episodes::<Sound>(a, n, e));
            println!("{a} {n} threads {e} episodes {p:?}: {c} in {:?}", t.elapsed());
            if t.elapsed().as_secs() > 30 { break; }
        }
    }
}
