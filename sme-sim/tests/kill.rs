//! Threads that others end, on every machine whose operating system ends threads: they end in any
//! wait, execute nothing after it, and leave registers and cores to others. Alarms come at their
//! time.

// A panic fails the test.
#![allow(clippy::unwrap_used)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;
use sme_memory::{
    AnyFlag, Atomic, Cacheable, Capability, Flag, Flags, Futex, Interrupts, Memory, Place,
    Processes, Register, Route, Spawn, TestAndSet, Timer, Until, Word,
};
use sme_sim::machine::{Machine, Readable, Setup};
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Threads of the node; each may start another.
const THREADS: u32 = 2;

const REGISTER: Register = Register { node: 0, number: 0 };

/// The machines whose operating system ends threads.
fn machines() -> Vec<(&'static str, Machine)> {
    let all = ["ideal", "scc", "mppa256", "sme-prototype"];
    let all = all.map(|name| (name, Machine::builtin(name).unwrap()));
    let ends = |(_, machine): &(_, Machine)| machine.capabilities().has(Capability::Processes);
    let ending: Vec<_> = all.into_iter().filter(ends).collect();
    assert_eq!(ending.len(), 4);
    ending
}

/// Runs a program on the first thread of node 0; returns the time of its end, in nanoseconds.
fn run<F, P>(machine: &Machine, program: P) -> u64
where
    P: Fn(ThreadMemory) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let shape = machine.shape();
    let threads = THREADS.min(shape.cores);
    let setup = Setup::new(shape, 1, threads).with_room(threads + 2);
    let threads = |memory: ThreadMemory, node, thread| -> Program {
        match (node, thread) {
            (0, 0) => Box::pin(program(memory)),
            _ => Box::pin(async {}),
        }
    };
    let mut built: Box<dyn Readable> = machine.build(setup, threads).unwrap();
    built.run(1, |_| {}).unwrap();
    built.end().as_ps() / 1_000
}

fn flag(memory: &ThreadMemory, number: u64) -> Flag {
    flag_by(memory, number, Route::Nearest)
}

fn flag_by(memory: &ThreadMemory, number: u64, route: Route) -> Flag {
    let place = Place {
        node: 0,
        offset: 64 * number,
    };
    memory.flag(place, route)
}

fn word(memory: &ThreadMemory, number: u64) -> Word {
    let place = Place {
        node: 0,
        offset: 64 * number,
    };
    memory.word(place, Route::Nearest)
}

/// Something for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Flag,
    /// In memory, past the caches.
    Uncached,
    /// A copy that nothing keeps coherent.
    Copy,
    Any,
    All,
    Register,
    Signal,
    Interrupt,
    Futex,
    Join,
    Computes,
    Nothing,
}

impl Wait {
    const ALL: [Self; 12] = [
        Self::Flag,
        Self::Uncached,
        Self::Copy,
        Self::Any,
        Self::All,
        Self::Register,
        Self::Signal,
        Self::Interrupt,
        Self::Futex,
        Self::Join,
        Self::Computes,
        Self::Nothing,
    ];

    fn needs(self) -> Capability {
        match self {
            Self::Flag | Self::All | Self::Computes | Self::Nothing => Capability::Words,
            Self::Uncached => Capability::Remote,
            Self::Copy => Capability::Caching,
            Self::Any => Capability::AnyFlag,
            Self::Register => Capability::TestAndSet,
            Self::Signal | Self::Join => Capability::Threads,
            Self::Interrupt => Capability::Interrupts,
            Self::Futex => Capability::Futexes,
        }
    }

    /// Waits until [`Self::comes`], or for a second of computing.
    async fn waits(self, memory: &ThreadMemory) {
        let first = flag(memory, 2);
        let flags = Flags {
            first,
            stride: 1,
            count: 3,
        };
        match self {
            Self::Flag => drop(memory.wait(first, Until::IsNot(0)).await),
            Self::Uncached | Self::Copy => {
                let route = match self {
                    Self::Copy => Route::Cached,
                    _ => Route::Global,
                };
                let first = flag_by(memory, 2, route);
                memory.wait(first, Until::IsNot(0)).await;
            }
            Self::Any => drop(memory.wait_any(flags, Until::IsNot(0)).await),
            Self::All => memory.wait_all(flags, Until::IsNot(0)).await,
            Self::Register => memory.take(REGISTER).await,
            Self::Signal => drop(memory.take_signal().await),
            Self::Interrupt => memory.take_interrupt().await,
            Self::Futex => memory.futex_wait(word(memory, 2), 0).await,
            Self::Join => {
                let sleeps = |memory: ThreadMemory| async move {
                    memory.take_signal().await;
                };
                let child = memory.spawn(None, sleeps).await;
                memory.join(child).await;
            }
            Self::Computes => memory.delay(Time::from_ns(1_000_000_000)).await,
            Self::Nothing => {}
        }
    }

    /// Fulfils the wait, after the thread that waited has ended.
    async fn comes(self, memory: &ThreadMemory) {
        for number in 0..3 {
            let Flag(first) = flag(memory, 2);
            memory.set(Flag(first + number), 1).await;
        }
        match self {
            Self::Register => memory.clear(REGISTER).await,
            Self::Interrupt => memory.interrupt(0).await,
            Self::Futex => drop(memory.futex_wake(word(memory, 2), u32::MAX).await),
            _ => {}
        }
        memory.fence().await;
        memory.delay(Time::from_ns(10_000)).await;
    }
}

/// A thread that waits for it is killed after a while, on the core of the one that kills or on
/// another. Had it gone on it would have counted.
fn is_killed_while_it_waits(machine: &Machine, wait: Wait, core: u32) {
    let count = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&count);
    let end = run(machine, move |memory: ThreadMemory| {
        let counts = Arc::clone(&counts);
        async move {
            if wait == Wait::Register {
                memory.take(REGISTER).await;
            }
            let victim = move |memory: ThreadMemory| async move {
                counts.fetch_add(1, Relaxed);
                wait.waits(&memory).await;
                if wait == Wait::Nothing {
                    return;
                }
                counts.fetch_add(100, Relaxed);
            };
            let victim = memory.spawn(Some(core), victim).await;
            memory.alarm(20_000_000, 7).await;
            assert_eq!(memory.take_signal().await, 7);
            memory.kill(victim).await;
            memory.join(victim).await;
            wait.comes(&memory).await;
            // Once more: it has ended long since.
            memory.kill(victim).await;
            if wait == Wait::Join {
                // The child of the killed thread still waits.
                memory
                    .send_signal(sme_memory::ThreadId(victim.0 + 1), 1)
                    .await;
            }
            if wait == Wait::Register {
                assert!(memory.test_and_set(REGISTER).await, "the register is free");
            }
        }
    });
    assert_eq!(count.load(Relaxed), 1, "{wait:?} on core {core}");
    // A quantum passes before the one that kills has the core again.
    assert!(
        (20_000_000..31_000_000).contains(&end),
        "{wait:?}: {end} ns"
    );
}

#[test]
fn a_thread_ends_whatever_it_waits_for() {
    for (name, machine) in machines() {
        let others = THREADS.min(machine.shape().cores);
        for wait in Wait::ALL {
            if machine.capabilities().has(wait.needs()) {
                for core in 0..others {
                    println!("{name}, {wait:?}, core {core}");
                    is_killed_while_it_waits(&machine, wait, core);
                }
            }
        }
    }
}

/// A thread counts up under the register until it is killed by one that has the register.
fn counts_until_killed(machine: &Machine, core: u32, after_ns: u64) {
    run(machine, move |memory: ThreadMemory| async move {
        let (one, other) = (word(&memory, 1), word(&memory, 2));
        let victim = move |memory: ThreadMemory| async move {
            loop {
                memory.take(REGISTER).await;
                let count = memory.load(one).await;
                memory.store(one, count + 1).await;
                memory.store(other, count + 1).await;
                memory.fence().await;
                memory.clear(REGISTER).await;
                memory.delay(Time::from_ns(500)).await;
            }
        };
        let victim = memory.spawn(Some(core), victim).await;
        memory.alarm(after_ns, 1).await;
        memory.take_signal().await;
        // The times at which it looks must not be in step with the other.
        let mut pause = 50_000;
        while !memory.test_and_set(REGISTER).await {
            pause += 7_001;
            memory.alarm(pause, 1).await;
            memory.take_signal().await;
        }
        memory.kill(victim).await;
        memory.join(victim).await;
        memory.clear(REGISTER).await;
        memory.take(REGISTER).await;
        let (left, right) = (memory.load(one).await, memory.load(other).await);
        assert!(left == right && left > 0, "{left} and {right}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 64 }))]

    /// A register that was awaited by a thread that is killed is free, and what it guards is whole.
    #[test]
    fn no_register_stays_with_a_thread_that_was_killed(
        core in 0..2_u32,
        after_ns in 300_000..400_000_u64,
        which in 0..3_usize,
    ) {
        let mut machines = machines();
        machines.retain(|(_, machine)| machine.capabilities().has(Capability::TestAndSet));
        let (_, machine) = &machines[which];
        counts_until_killed(machine, core.min(machine.shape().cores - 1), after_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 64 } else { 512 }))]

    /// A thread that is about to sleep ends, however far its call has come.
    #[test]
    fn a_thread_that_falls_asleep_is_killed(
        wait in prop::sample::select(vec![Wait::Signal, Wait::Futex, Wait::Interrupt]),
        after_ns in 0..6_000_u64,
        stores in 0..4_u64,
        which in 0..4_usize,
    ) {
        let (_, machine) = &machines()[which];
        prop_assume!(machine.capabilities().has(wait.needs()));
        let core = 1.min(machine.shape().cores - 1);
        run(machine, move |memory: ThreadMemory| async move {
            let began = flag(&memory, 9);
            let victim = move |memory: ThreadMemory| async move {
                memory.set(began, 1).await;
                memory.fence().await;
                for number in 0..stores {
                    memory.store(word(&memory, 10 + number), 1).await;
                }
                wait.waits(&memory).await;
            };
            let victim = memory.spawn(Some(core), victim).await;
            while memory.read(began).await == 0 {
                memory.give_way().await;
            }
            memory.delay(Time::from_ns(after_ns)).await;
            memory.kill(victim).await;
            memory.join(victim).await;
        });
    }
}

/// Accesses of a thread to lines that others use, on nodes that can do the last ones.
async fn accesses(memory: &ThreadMemory, which: u64, round: u64, has: (bool, bool)) {
    let (caching, atomics) = has;
    let routes = [Route::Nearest, Route::Global, Route::Cached];
    let routes = &routes[..if caching { 3 } else { 2 }];
    let route = routes[(which / 4) as usize % routes.len()];
    let place = Place {
        node: 0,
        offset: 64 * (which % 4),
    };
    let word = memory.word(place, route);
    match which / 16 % 5 {
        4 => memory.delay(Time::from_ns(round % 7 * 100)).await,
        0 => memory.store(word, round).await,
        1 => drop(memory.load(word).await),
        2 if caching => memory.flush(word).await,
        3 if atomics => drop(
            memory
                .fetch_add(memory.word(place, Route::Nearest), 1)
                .await,
        ),
        _ => memory.fence().await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 32 } else { 256 }))]

    /// A thread is killed in the midst of any access: the lines that it used go on to be used, and
    /// it does nothing more.
    #[test]
    fn lines_outlive_a_thread_that_was_killed(
        core in 0..2_u32,
        after_ns in 100_000..140_000_u64,
        order in prop::collection::vec(0..80_u64, 1..12),
        which in 0..4_usize,
    ) {
        let (_, machine) = &machines()[which];
        let core = core.min(machine.shape().cores - 1);
        let capabilities = machine.capabilities();
        let has = (
            capabilities.has(Capability::Caching),
            capabilities.has(Capability::Atomics),
        );
        let rounds = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&rounds);
        let end = run(machine, move |memory: ThreadMemory| {
            let (order, counts) = (order.clone(), Arc::clone(&counts));
            async move {
                let goes = order.clone();
                let victim = move |memory: ThreadMemory| async move {
                    for round in 0.. {
                        for &which in &goes {
                            accesses(&memory, which, round, has).await;
                        }
                        counts.store(round, Relaxed);
                    }
                };
                let victim = memory.spawn(Some(core), victim).await;
                memory.alarm(after_ns, 1).await;
                memory.take_signal().await;
                memory.kill(victim).await;
                memory.join(victim).await;
                for which in 0..64 {
                    accesses(&memory, which, 7, has).await;
                }
                memory.fence().await;
                for &which in &order {
                    accesses(&memory, which, 8, has).await;
                }
            }
        });
        // It shares the core, or not: it is killed within a quantum, and lasts no longer.
        prop_assert!(end < 12_000_000, "{end} ns, {} rounds", rounds.load(Relaxed));
    }
}

#[test]
fn alarms_come_at_their_times_in_their_order() {
    for (_, machine) in machines() {
        run(&machine, |memory: ThreadMemory| async move {
            let begin = memory.now().await;
            memory.alarm(3_000_000, 3).await;
            memory.alarm(1_000_000, 1).await;
            // It does not come.
            memory.alarm(u64::MAX, 9).await;
            for (value, at) in [(1, 1_000_000), (3, 3_000_000)] {
                assert_eq!(memory.take_signal().await, value);
                let took = memory.now().await - begin;
                assert!((at..at + 100_000).contains(&took), "{took} ns for {at}");
            }
        });
    }
}
