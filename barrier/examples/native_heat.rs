//! Heat along a rod, by four threads that meet at a barrier after every step:
//! `cargo run --release -p sme-barrier --example native_heat`.
//!
//! Two copies of the rod take turns: every thread reads one and writes the other. The cells are
//! atomics read and written without any order; the barrier alone makes the result right.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use sme_barrier::native::{Barrier, BarrierError};

const CELLS: usize = 1000;
const STEPS: usize = 200;
const THREADS: usize = 4;

/// Returns a cell's temperature one step after its neighbours and itself were as given.
fn step(left: f64, here: f64, right: f64) -> f64 {
    here + 0.25 * (left - 2.0 * here + right)
}

/// Hot at one end, cold elsewhere.
fn rod() -> Vec<f64> {
    (0..CELLS)
        .map(|cell| if cell == 0 { 100.0 } else { 0.0 })
        .collect()
}

fn one_thread() -> Vec<f64> {
    let mut now = rod();
    for _ in 0..STEPS {
        let mut next = now.clone();
        for cell in 1..CELLS - 1 {
            next[cell] = step(now[cell - 1], now[cell], now[cell + 1]);
        }
        now = next;
    }
    now
}

fn many_threads() -> Result<Vec<f64>, BarrierError> {
    let copy = || {
        rod()
            .iter()
            .map(|t| AtomicU64::new(t.to_bits()))
            .collect::<Vec<_>>()
    };
    let rods = [copy(), copy()];
    let at = |rod: usize, cell: usize| f64::from_bits(rods[rod][cell].load(Relaxed));
    let put = |rod: usize, cell: usize, t: f64| rods[rod][cell].store(t.to_bits(), Relaxed);
    let handles = Barrier::new(THREADS)?.handles();
    thread::scope(|scope| {
        for mut handle in handles {
            let (at, put) = (&at, &put);
            scope.spawn(move || {
                let share = CELLS.div_ceil(THREADS);
                let first = handle.id() * share;
                for time in 0..STEPS {
                    let (now, next) = (time % 2, (time + 1) % 2);
                    for cell in first.max(1)..(first + share).min(CELLS - 1) {
                        let there = step(at(now, cell - 1), at(now, cell), at(now, cell + 1));
                        put(next, cell, there);
                    }
                    handle.wait();
                }
            });
        }
    });
    Ok((0..CELLS).map(|cell| at(STEPS % 2, cell)).collect())
}

fn main() -> Result<(), BarrierError> {
    let together = many_threads()?;
    assert_eq!(together, one_thread());
    println!(
        "the same on one thread and on {THREADS}; after {STEPS} steps cell 10 has {:.3}",
        together[10]
    );
    Ok(())
}
