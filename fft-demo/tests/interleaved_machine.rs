//! The small machine that the kernels are tested on does what it says: its copies go stale, its
//! steps interleave, and it notices when nothing can happen any more.

mod interleaved;

use interleaved::{Machine, Spec, Stuck, Thread, WriteBack};
use sme_memory::{Atomic, Cacheable, Flags, Memory, Place, Route, Until};

const ZERO: Place = Place { node: 0, offset: 0 };

/// Both threads store to a line of node 0 through their caches, one after the other writes back.
async fn store_and_write_back(memory: Thread, number: u32) {
    let own = ZERO.plus(8 * u64::from(number));
    memory.load(memory.word(ZERO, Route::Cached)).await;
    let turn = |number: u32| memory.flag(ZERO.plus(number.into()), Route::Nearest);
    memory.set(turn(number), 1).await;
    let flags = Flags {
        first: turn(0),
        stride: 1,
        count: 2,
    };
    memory.wait_all(flags, Until::IsNot(0)).await;
    memory.store(memory.word(own, Route::Cached), 7).await;
    if number == 1 {
        memory.wait(turn(0), Until::Is(2)).await;
    }
    memory.flush(memory.word(own, Route::Cached)).await;
    memory.set(turn(number), 2).await;
}

#[test]
fn whole_lines_lose_what_another_node_stored() {
    for (write_back, first) in [(WriteBack::Mask, 7), (WriteBack::Line, 0)] {
        for seed in 0..20 {
            let machine = Machine::new(Spec {
                nodes: 2,
                write_back,
                ..Spec::of(seed)
            });
            let programs =
                (0..2).map(|number| store_and_write_back(machine.thread(number), number));
            assert_eq!(machine.run(programs), Ok(()));
            assert_eq!(machine.read(ZERO), first, "{write_back:?}");
            assert_eq!(machine.read(ZERO.plus(8)), 7);
            assert_eq!(machine.report().false_sharing, [ZERO]);
        }
    }
}

#[test]
fn a_copy_is_stale_until_it_is_dropped() {
    let machine = Machine::new(Spec {
        nodes: 2,
        ..Spec::of(0)
    });
    let (near, far) = (machine.thread(0), machine.thread(1));
    let program = async {
        let copy = far.word(ZERO, Route::Cached);
        assert_eq!(far.load(copy).await, 0);
        near.store(near.word(ZERO, Route::Nearest), 5).await;
        assert_eq!(far.load(copy).await, 0);
        far.write_back().await;
        assert_eq!(far.load(copy).await, 0);
        assert_eq!(far.load(far.word(ZERO, Route::Global)).await, 5);
        far.write_back_invalidate().await;
        assert_eq!(far.load(copy).await, 5);
        far.store(copy, 6).await;
        assert_eq!(near.load(near.word(ZERO, Route::Global)).await, 5);
        far.write_back().await;
        assert_eq!(near.load(near.word(ZERO, Route::Global)).await, 6);
    };
    assert_eq!(machine.run([program]), Ok(()));
}

/// Adds one to a word, so many times.
async fn count(memory: Thread, atomically: bool, times: u64) {
    let word = memory.word(ZERO, Route::Nearest);
    for _ in 0..times {
        if atomically {
            memory.fetch_add(word, 1).await;
        } else {
            let value = memory.load(word).await;
            memory.store(word, value + 1).await;
        }
    }
}

#[test]
fn steps_interleave_as_the_seed_says() {
    let total = |seed, atomically| {
        let machine = Machine::new(Spec {
            cores: 3,
            ..Spec::of(seed)
        });
        let programs = (0..3).map(|number| count(machine.thread(number), atomically, 20));
        assert_eq!(machine.run(programs), Ok(()));
        (machine.read(ZERO), machine.report().races.len())
    };
    let mut totals = std::collections::BTreeSet::new();
    for seed in 0..50 {
        assert_eq!(total(seed, true).0, 60);
        assert_eq!(total(seed, false), total(seed, false));
        assert_eq!(total(seed, false).1, 1);
        totals.insert(total(seed, false).0);
    }
    assert!(totals.len() > 10, "{totals:?}");
    assert!(totals.iter().all(|&total| total <= 60));
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let machine = Machine::new(Spec {
        cores: 3,
        ..Spec::of(1)
    });
    let programs = (0..3).map(|number| {
        let memory = machine.thread(number);
        async move {
            let flag = memory.flag(ZERO.plus(number.into()), Route::Nearest);
            if number == 1 {
                memory.set(flag, 3).await;
            }
            memory.wait(flag, Until::Is(3)).await;
        }
    });
    let Err(Stuck::Deadlock(waiting)) = machine.run(programs) else {
        panic!("no deadlock");
    };
    let threads: Vec<usize> = waiting.iter().map(|(thread, _)| *thread).collect();
    assert_eq!(threads, [0, 2]);
    assert!(
        waiting.iter().all(|(_, what)| what.contains("Is(3)")),
        "{waiting:?}"
    );
}

#[test]
fn a_program_that_does_not_end_is_given_up() {
    let machine = Machine::new(Spec {
        most_steps: 1000,
        ..Spec::of(0)
    });
    let memory = machine.thread(0);
    let program = async {
        let word = memory.word(ZERO, Route::Nearest);
        while memory.load(word).await == 0 {}
    };
    assert_eq!(machine.run([program]), Err(Stuck::Endless));
}
