//! The flag protocol and the futex of the native memory under every interleaving and every memory
//! order that the language allows. Only built with loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p sme-memory --test native_loom --release`.
#![cfg(loom)]

mod loom_model;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU64;
use loom::thread;
use sme_memory::native::{Native, Patience, Protocol, Size, Sound, run};
use sme_memory::{Flag, Flags, Futex, Memory, Register, Spawn, TestAndSet, Until, Word};

use loom_model::{NoWake, RelaxedSet, RelaxedWait, complaint, executions};

const SIZE: Size = Size {
    nodes: 1,
    flag_bytes: 2,
    word_bytes: 8,
};

fn memory<P: Protocol>() -> Native<P> {
    Native::with_protocol(SIZE, Patience::CROWDED)
}

/// Data that nothing orders but the flags: a load finds any store that has not been ordered away.
#[derive(Clone)]
struct Data(Arc<AtomicU64>);

impl Data {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    fn write(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A writer publishes data by a flag to `readers` threads, which may sleep.
fn publish<P: Protocol>(readers: usize) {
    let memory = memory::<P>();
    let data = Data::new();
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            let (me, data) = (memory.thread(0), data.clone());
            thread::spawn(move || {
                assert_eq!(run(me.wait(Flag(0), Until::IsNot(0))), 1);
                assert_eq!(data.read(), 42, "something old");
            })
        })
        .collect();
    data.write(42);
    run(memory.thread(0).set(Flag(0), 1));
    for reader in readers {
        reader.join().expect("a reader that ends");
    }
}

#[test]
fn a_flag_publishes_what_was_written_before() {
    let one = executions(None, || publish::<Sound>(1));
    let two = executions(None, || publish::<Sound>(2));
    println!("publish: {one} executions with one reader, {two} with two");
    assert!(one > 5, "{one}");
    assert!(two > 100, "{two}");
}

/// Sleepers with different conditions on one flag: each is woken by its own value, and the ones
/// that sleep on are not forgotten.
#[test]
fn sleepers_of_different_values_on_one_flag() {
    let count = executions(Some(3), || {
        let memory = memory::<Sound>();
        let waiters: Vec<_> = [1, 2]
            .map(|value| {
                let me = memory.thread(0);
                // Two is the last value; one may be gone before it is looked at.
                let until = if value == 1 {
                    Until::IsNot(0)
                } else {
                    Until::Is(2)
                };
                thread::spawn(move || assert!(run(me.wait(Flag(0), until)) >= value))
            })
            .into();
        let writer = memory.thread(0);
        run(async {
            writer.set(Flag(0), 1).await;
            writer.set(Flag(0), 2).await;
        });
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
    println!("different values: {count} executions");
    assert!(count > 100, "{count}");
}

/// Hand-over and back: each side sleeps on the other's flag, next to its own.
#[test]
fn ping_pong() {
    let count = executions(None, || {
        let memory = memory::<Sound>();
        let data = Data::new();
        let (me, theirs) = (memory.thread(0), data.clone());
        let other = thread::spawn(move || {
            run(async {
                me.wait(Flag(0), Until::Is(1)).await;
                theirs.write(theirs.read() + 1);
                me.set(Flag(1), 1).await;
            });
        });
        let me = memory.thread(0);
        run(async {
            data.write(1);
            me.set(Flag(0), 1).await;
            let flags = Flags {
                first: Flag(1),
                stride: 1,
                count: 1,
            };
            me.wait_all(flags, Until::IsNot(0)).await;
        });
        assert_eq!(data.read(), 2);
        other.join().unwrap();
    });
    println!("ping-pong: {count} executions");
    assert!(count > 20, "{count}");
}

/// A lock over a word and the futex (Drepper, "Futexes Are Tricky", the second mutex: 0 free, 1
/// taken, 2 taken and a thread may sleep).
async fn locked<M: Futex>(memory: &M, critical: impl FnOnce()) {
    let word = Word(0);
    if memory.compare_exchange(word, 0, 1).await != 0 {
        while memory.swap(word, 2).await != 0 {
            memory.futex_wait(word, 2).await;
        }
    }
    critical();
    if memory.swap(word, 0).await == 2 {
        memory.futex_wake(word, 1).await;
    }
}

#[test]
fn a_lock_over_the_futex_excludes_and_never_hangs() {
    let count = executions(None, || {
        let memory = memory::<Sound>();
        let data = Data::new();
        let (me, theirs) = (memory.thread(0), data.clone());
        let other = thread::spawn(move || run(locked(&me, || theirs.write(theirs.read() + 1))));
        run(locked(&memory.thread(0), || data.write(data.read() + 1)));
        other.join().unwrap();
        assert_eq!(data.read(), 2);
    });
    println!("lock: {count} executions");
    assert!(count > 20, "{count}");
}

/// Two threads count up data between taking and clearing a register, and may sleep for it.
fn counted_under_a_register<P: Protocol>() {
    const REGISTER: Register = Register { node: 0, number: 1 };
    async fn count<M: TestAndSet>(memory: &M, data: &Data) {
        memory.take(REGISTER).await;
        data.write(data.read() + 1);
        memory.clear(REGISTER).await;
    }
    let memory = memory::<P>();
    let data = Data::new();
    let (me, theirs) = (memory.thread(0), data.clone());
    let other = thread::spawn(move || run(count(&me, &theirs)));
    run(count(&memory.thread(0), &data));
    other.join().unwrap();
    run(memory.thread(0).take(REGISTER));
    assert_eq!(data.read(), 2, "something old");
}

#[test]
fn a_register_excludes_and_never_hangs() {
    let count = executions(None, counted_under_a_register::<Sound>);
    println!("register: {count} executions");
    assert!(count > 20, "{count}");
}

/// A started thread knows what was done before, and who joins it knows what it did.
#[test]
fn a_thread_is_started_and_joined() {
    let count = executions(None, || {
        let memory = memory::<Sound>().thread(0);
        let data = Data::new();
        let theirs = data.clone();
        data.write(1);
        run(async {
            let child = memory.spawn(None, move |_| async move {
                theirs.write(theirs.read() + 1);
            });
            let child = child.await;
            memory.join(child).await;
        });
        assert_eq!(data.read(), 2);
    });
    println!("start and join: {count} executions");
    assert!(count > 1, "{count}");
}

#[test]
fn a_register_that_publishes_nothing_is_caught() {
    let text = complaint(counted_under_a_register::<RelaxedSet>);
    assert!(text.contains("something old"), "{text}");
    let text = complaint(counted_under_a_register::<NoWake>);
    assert!(text.contains("deadlock"), "{text}");
}

#[test]
fn a_relaxed_store_in_set_is_caught() {
    let text = complaint(|| publish::<RelaxedSet>(1));
    assert!(text.contains("something old"), "{text}");
}

#[test]
fn a_relaxed_load_in_wait_is_caught() {
    let text = complaint(|| publish::<RelaxedWait>(1));
    assert!(text.contains("something old"), "{text}");
}

#[test]
fn a_missing_wake_is_caught() {
    let text = complaint(|| publish::<NoWake>(1));
    assert!(text.contains("deadlock"), "{text}");
}
