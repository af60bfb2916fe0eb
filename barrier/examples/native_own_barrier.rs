//! A barrier of one's own on real threads:
//! `cargo run --release -p sme-barrier --example native_own_barrier`.
//!
//! A chain: every thread passes the word on to the next, and the last releases all. The same source
//! would run on a simulated node.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use sme_barrier::native::{Patience, Seat};
use sme_barrier::{Barrier, Member};
use sme_memory::native::{LINE, Native, Size};
use sme_memory::{Flags, Memory, Place, Route, Until};

struct Chain {
    threads: u32,
}

impl<M: Memory> Barrier<M> for Chain {
    /// The phase before the episode.
    type Local = u8;

    async fn wait(&self, memory: &M, me: Member, phase_before: &mut u8) {
        let home = Place {
            node: me.node,
            offset: 0,
        };
        // A flag for each thread, on a line of its own; the last thread's is the phase.
        let flags = Flags {
            first: memory.flag(home, Route::Nearest),
            stride: LINE as u32,
            count: self.threads,
        };
        let my_phase = std::mem::replace(phase_before, 1 - *phase_before);
        if me.core > 0 {
            memory
                .wait(flags.at(me.core - 1), Until::IsNot(my_phase))
                .await;
        }
        memory.set(flags.at(me.core), 1 - my_phase).await;
        let phase = flags.at(self.threads - 1);
        memory.wait(phase, Until::IsNot(my_phase)).await;
    }
}

fn main() {
    let (threads, episodes) = (4, 10_000);
    let size = Size {
        nodes: 1,
        flag_bytes: u64::from(threads) * LINE,
        word_bytes: 0,
    };
    let memory = Native::new(size, Patience::for_threads(threads as usize));
    let barrier = Arc::new(Chain { threads });
    let begin = Instant::now();
    thread::scope(|scope| {
        for core in 0..threads {
            let mut seat = Seat::new(Arc::clone(&barrier), &memory, Member { node: 0, core });
            scope.spawn(move || (0..episodes).for_each(|_| seat.wait()));
        }
    });
    let each = begin.elapsed() / episodes;
    println!("{threads} threads, {episodes} episodes: {each:?} a barrier");
}
