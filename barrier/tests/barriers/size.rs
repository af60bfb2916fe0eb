//! The state a thread keeps while it waits: simulated threads are kept by the million, so a
//! barrier's future may hold little beside the operation it waits in.

use std::future::{Future, Ready, ready};

use sme_barrier::{
    Barrier, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, FlagPhase, FlagPhaseSpec,
    Flat, FlatSpec, Layout, Member, Pthread, PthreadSpec, Ranks, Tree, TreeShape, TreeSpec,
};
use sme_memory::{Atomic, Flag, Flags, Futex, Memory, Place, Route, Until, Word};

/// A memory whose operations are as large as a simulator's must be: whose, what, how far.
struct Small;

struct Operation<T> {
    _memory: usize,
    _what: [u64; 2],
    done: Ready<T>,
}

impl<T> Future for Operation<T>
where
    T: Unpin,
{
    type Output = T;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<T> {
        std::pin::Pin::new(&mut self.done).poll(context)
    }
}

fn operation<T>(value: T) -> Operation<T> {
    Operation {
        _memory: 0,
        _what: [0; 2],
        done: ready(value),
    }
}

impl Memory for Small {
    fn node(&self) -> u32 {
        0
    }
    fn flag(&self, place: Place, _: Route) -> Flag {
        Flag(place.offset)
    }
    fn word(&self, place: Place, _: Route) -> Word {
        Word(place.offset)
    }
    fn read(&self, _: Flag) -> impl Future<Output = u8> + Send {
        operation(0)
    }
    fn set(&self, _: Flag, _: u8) -> impl Future<Output = ()> + Send {
        operation(())
    }
    fn wait(&self, _: Flag, _: Until) -> impl Future<Output = u8> + Send {
        operation(1)
    }
    fn wait_all(&self, _: Flags, _: Until) -> impl Future<Output = ()> + Send {
        operation(())
    }
    fn load(&self, _: Word) -> impl Future<Output = u64> + Send {
        operation(0)
    }
    fn store(&self, _: Word, _: u64) -> impl Future<Output = ()> + Send {
        operation(())
    }
    fn fence(&self) -> impl Future<Output = ()> + Send {
        operation(())
    }
}

impl Atomic for Small {
    fn fetch_add(&self, _: Word, _: u64) -> impl Future<Output = u64> + Send {
        operation(0)
    }
    fn swap(&self, _: Word, _: u64) -> impl Future<Output = u64> + Send {
        operation(0)
    }
    fn compare_exchange(&self, _: Word, _: u64, _: u64) -> impl Future<Output = u64> + Send {
        operation(0)
    }
}

impl Futex for Small {
    fn futex_wait(&self, _: Word, _: u64) -> impl Future<Output = ()> + Send {
        operation(())
    }
    fn futex_wake(&self, _: Word, _: u32) -> impl Future<Output = u32> + Send {
        operation(0)
    }
}

fn size<B: Barrier<Small>>(name: &str, barrier: &B) -> usize {
    let me = Member { node: 0, core: 0 };
    let mut local = B::Local::default();
    let size = size_of_val(&barrier.wait(&Small, me, &mut local));
    println!("{name}: {size} bytes");
    size
}

#[test]
fn a_waiting_thread_takes_little() {
    let ranks = || Ranks::rows(64).unwrap();
    let (cores, layout) = (16, Layout::padded(64));
    let flag_phase = FlagPhase::new(FlagPhaseSpec {
        threads: vec![16],
        home: 0,
        route: Route::Nearest,
        layout,
    });
    let flat = Flat::new(FlatSpec {
        ranks: ranks(),
        cores,
        layout,
    });
    let tree = Tree::new(TreeSpec {
        ranks: ranks(),
        cores,
        fan_in: 8,
        shape: TreeShape::Groups,
        layout,
    });
    let dissemination = Dissemination::new(DisseminationSpec {
        ranks: ranks(),
        cores,
        layout,
    });
    let butterfly = Butterfly::new(ButterflySpec {
        ranks: ranks(),
        cores,
        layout,
    });
    let pthread = Pthread::new(PthreadSpec {
        node: 0,
        threads: 16,
        layout,
    });
    let sizes = [
        size("flag-phase", &flag_phase.unwrap()),
        size("flat", &flat.unwrap()),
        size("tree", &tree.unwrap()),
        size("dissemination", &dissemination.unwrap()),
        size("butterfly", &butterfly.unwrap()),
        size("pthread", &pthread.unwrap()),
    ];
    assert!(sizes.iter().all(|&bytes| bytes <= 128), "{sizes:?}");
}
