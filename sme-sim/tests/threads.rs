//! Threads that programs start, on a machine of every family: they run, share the cores of their
//! node, are waited for, and the outcome does not depend on the simulator's workers.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use proptest::prelude::*;
use sme_memory::{
    Atomic, Cacheable, Capability, Futex, Memory, Place, Route, Spawn, ThreadId, Until,
};
use sme_sim::machine::family::Readable;
use sme_sim::machine::{Machine, Setup, family_names};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

/// One machine of each family whose nodes have atomic operations.
const MACHINES: [&str; 3] = ["sme-prototype", "opteron-6272", "ideal"];

#[test]
fn every_family_is_tested() {
    let tested = MACHINES.map(|name| Machine::builtin(name).unwrap().family_name().to_owned());
    let has_atomics = |family: &&str| {
        let mut machines = Machine::builtins().iter();
        let of_family = machines.find_map(|builtin| {
            let machine = Machine::builtin(builtin.name).unwrap();
            (machine.family_name() == *family).then_some(machine)
        });
        of_family.unwrap().capabilities().has(Capability::Atomics)
    };
    assert!(family_names().filter(has_atomics).eq(tested));
}

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

fn ms(ms: u64) -> Time {
    Time::from_ns(1_000_000 * ms)
}

fn us(us: u64) -> Time {
    Time::from_ns(1000 * us)
}

fn place(node: u32, offset: u64) -> Place {
    Place { node, offset }
}

/// `nodes` nodes of the machine called `name`, of one thread each and room for more: as many as a
/// node has cores, or `room`.
fn built<F: Future<Output = ()> + Send + 'static>(
    (name, constants): (&str, &[(&str, &str)]),
    (nodes, room): (u32, u32),
    program: impl FnMut(ThreadMemory, u32, u32) -> F,
) -> Box<dyn Readable> {
    let machine = Machine::builtin(name).unwrap().with(constants).unwrap();
    let setup = Setup::new(machine.shape(), nodes, 1).with_room(room);
    machine.build(setup, program).unwrap()
}

/// The word at offset 64 of node 0 after `program`, and when the last node's first thread had run
/// it.
fn sum(
    name: &str,
    nodes: u32,
    workers: usize,
    program: impl Fn(ThreadMemory) -> Program + Copy + Send + 'static,
) -> (u64, Time) {
    let whole = Span::new("all of it", 0);
    let mut machine = built((name, &[]), (nodes, 64), |memory, _, _| async move {
        program(memory.clone()).await;
        memory.end(whole).await;
    });
    machine.run(workers, |_| {}).unwrap();
    let spans = machine.spans().called(whole.name);
    (machine.at_home(place(0, 64)), spans[0].last_end)
}

/// Starts `count` threads that each add 1 to a word of their node, and some of which do the same.
fn family(memory: ThreadMemory, count: u32, depth: u32) -> Program {
    Box::pin(async move {
        let word = memory.word(place(memory.node(), 64), Route::Nearest);
        let mut children = Vec::new();
        for _ in 0..count {
            let child = move |memory| {
                family(
                    memory,
                    if depth > 0 { 2 } else { 0 },
                    depth.saturating_sub(1),
                )
            };
            children.push(memory.spawn(None, child).await);
        }
        memory.fetch_add(word, 1).await;
        for child in children {
            memory.join(child).await;
        }
    })
}

#[test]
fn children_and_grandchildren_run_and_are_waited_for() {
    for name in MACHINES {
        // 1 + 3 · (1 + 2 · 1)
        let program = |memory| family(memory, 3, 1);
        let (sum_by_one, end) = sum(name, 2, 1, program);
        assert_eq!(sum_by_one, 10, "{name}");
        assert_eq!(sum(name, 2, 3, program), (10, end), "{name}");
    }
}

/// A child sees its parent's stores, and the parent sees the child's after the join.
#[test]
fn what_was_done_before_is_seen() {
    for name in MACHINES {
        let (seen, _) = sum(name, 1, 1, |memory| {
            Box::pin(async move {
                let [to, back] = [128, 192].map(|at| memory.word(place(0, at), Route::Nearest));
                memory.store(to, 5).await;
                let child = memory.spawn(None, move |memory: ThreadMemory| async move {
                    let value = memory.load(to).await;
                    memory.store(back, value + 1).await;
                });
                let child = child.await;
                memory.join(child).await;
                let value = memory.load(back).await;
                let out = memory.word(place(0, 64), Route::Nearest);
                memory.store(out, value).await;
            })
        });
        assert_eq!(seen, 6, "{name}");
    }
}

/// The first thread waits for a flag that a thread on the same core sets, spinning or giving way;
/// the value that it has seen, and when it has ended. Before that the core `rests`, if it does,
/// when a quantum ends.
fn set_on_the_same_core(name: &str, gives_way: bool, rests: bool) -> (u64, Time) {
    sum(name, 1, 1, move |memory| {
        Box::pin(async move {
            if rests {
                let nothing = memory.spawn(Some(0), |_| async {}).await;
                memory.join(nothing).await;
                let parent = memory.id();
                let wakes = move |memory: ThreadMemory| async move {
                    memory.delay(ms(20)).await;
                    memory.send_signal(parent, 1).await;
                };
                memory.spawn(Some(1), wakes).await;
                memory.take_signal().await;
            }
            let flag = memory.flag(place(0, 128), Route::Nearest);
            let setter = move |memory: ThreadMemory| async move {
                memory.set(flag, 1).await;
            };
            let setter = memory.spawn(Some(0), setter).await;
            while gives_way && memory.read(flag).await == 0 {
                memory.give_way().await;
            }
            let value = memory.wait(flag, Until::Is(1)).await;
            memory.join(setter).await;
            let out = memory.word(place(0, 64), Route::Nearest);
            memory.store(out, value.into()).await;
        })
    })
}

/// A thread that spins on a flag loses its core after a quantum, so that the setter on the same
/// core runs.
#[test]
fn a_spinning_thread_loses_its_core_after_a_quantum() {
    for name in MACHINES {
        for rests in [false, true] {
            let (value, end) = set_on_the_same_core(name, false, rests);
            assert_eq!(value, 1, "{name}");
            // The quanta of the two machines are 4 and 3 ms.
            let least = if rests { ms(23) } else { ms(3) };
            assert!(end >= least, "{name}: {end:?}");
        }
    }
}

/// A thread that gives way hands its core over at once.
#[test]
fn a_thread_that_gives_way_does_not_use_up_its_quantum() {
    for name in MACHINES {
        let (value, end) = set_on_the_same_core(name, true, false);
        assert_eq!(value, 1, "{name}");
        assert!(end < ms(1), "{name}: {end:?}");
    }
}

/// Computing times add up for threads of one core, and overlap for threads on cores of their own.
#[test]
fn threads_of_one_core_compute_one_after_the_other() {
    for name in MACHINES {
        let end = |cores: [u32; 4]| {
            let mut machine = built((name, &[]), (1, 64), move |memory, _, _| async move {
                let mut children = Vec::new();
                for core in cores {
                    let child = |memory: ThreadMemory| async move {
                        memory.delay(ms(20)).await;
                    };
                    children.push(memory.spawn(Some(core), child).await);
                }
                for child in children {
                    memory.join(child).await;
                }
            });
            machine.run(1, |_| {}).unwrap();
            machine.end()
        };
        let (together, apart) = (end([1, 1, 1, 1]), end([1, 2, 3, 4]));
        assert!(together >= ms(80), "{name}: {together:?}");
        assert!(together < ms(85), "{name}: {together:?}");
        assert!(apart < ms(22), "{name}: {apart:?}");
    }
}

/// Threads that sleep leave their core to others.
#[test]
fn sleepers_leave_their_core() {
    for name in MACHINES {
        let (value, end) = sum(name, 1, 1, |memory| {
            Box::pin(async move {
                let out = memory.word(place(0, 64), Route::Nearest);
                let gate = memory.word(place(0, 128), Route::Nearest);
                let mut children = Vec::new();
                for _ in 0..8 {
                    let sleeper = move |memory: ThreadMemory| async move {
                        while memory.load(gate).await == 0 {
                            memory.futex_wait(gate, 0).await;
                        }
                        memory.fetch_add(out, 1).await;
                    };
                    children.push(memory.spawn(Some(0), sleeper).await);
                }
                memory.give_way().await;
                memory.store(gate, 1).await;
                memory.fence().await;
                memory.futex_wake(gate, 8).await;
                for child in children {
                    memory.join(child).await;
                }
            })
        });
        assert_eq!(value, 8, "{name}");
        assert!(end < ms(3), "{name}: {end:?}");
    }
}

#[test]
fn what_cannot_be_started_or_joined_is_named() {
    for name in MACHINES {
        let failure = |what: fn(ThreadMemory) -> Program| {
            let mut machine = built((name, &[]), (1, 64), |memory, _, _| what(memory));
            match machine.run(1, |_| {}) {
                Err(failure @ Failure::Fault { .. }) => failure.to_string(),
                other => panic!("{name}: {other:?}"),
            }
        };
        let core = failure(|memory| {
            Box::pin(async move {
                memory.spawn(Some(5000), |_| async {}).await;
            })
        });
        assert!(core.contains("core"), "{core}");
        let thread = failure(|memory| Box::pin(async move { memory.join(ThreadId(9)).await }));
        assert!(thread.contains("thread"), "{thread}");
        let room = failure(|memory| {
            Box::pin(async move {
                loop {
                    memory.spawn(None, |_| async {}).await;
                }
            })
        });
        assert!(room.contains("room") || room.contains("threads"), "{room}");
    }
}

/// Polls `first` and `second` together until both have ended, as `join!` does.
async fn together(
    first: impl Future<Output = u64> + Send,
    second: impl Future<Output = u64> + Send,
) -> (u64, u64) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut values = (None, None);
    poll_fn(move |context: &mut Context<'_>| {
        if let (None, Poll::Ready(value)) = (values.0, first.as_mut().poll(context)) {
            values.0 = Some(value);
        }
        if let (None, Poll::Ready(value)) = (values.1, second.as_mut().poll(context)) {
            values.1 = Some(value);
        }
        match values {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            _ => Poll::Pending,
        }
    })
    .await
}

/// How the run of `program` by the last thread of two fails, on a machine of every family.
fn misuses(program: fn(ThreadMemory) -> Program) -> Vec<String> {
    let failure = |family: &str| {
        let mut machines = Machine::builtins().iter();
        let of_family = machines.find_map(|builtin| {
            let machine = Machine::builtin(builtin.name).unwrap();
            (machine.family_name() == family).then_some(machine)
        });
        let machine = of_family.unwrap();
        let shape = machine.shape();
        let (nodes, threads) = if shape.cores == 1 { (2, 1) } else { (1, 2) };
        let setup = Setup::new(shape, nodes, threads);
        let mut machine = machine
            .build(setup, |memory, node, thread| async move {
                if node + thread == 1 {
                    program(memory).await;
                }
            })
            .unwrap();
        let told = match machine.run(1, |_| {}) {
            Err(failure @ Failure::Fault { .. }) => failure.to_string(),
            other => panic!("{family}: {other:?}"),
        };
        told.replace(&format!("node {} core {}", nodes - 1, threads - 1), "HERE")
    };
    family_names().map(failure).collect()
}

#[test]
fn several_operations_at_a_time_are_a_fault_of_the_thread() {
    let all = misuses(|memory| {
        Box::pin(async move {
            let word = |offset| memory.word(place(0, offset), Route::Global);
            together(memory.load(word(64)), memory.load(word(128))).await;
        })
    });
    let expected = "fault: HERE: a thread has one operation under way: await it before the next";
    assert!(all.iter().all(|told| told == expected), "{all:?}");

    let dropped = misuses(|memory| {
        Box::pin(async move {
            let word = memory.word(place(0, 64), Route::Global);
            let mut load = pin!(memory.load(word));
            poll_fn(|context| {
                let _ = load.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        })
    });
    assert!(dropped.iter().all(|told| told == expected), "{dropped:?}");
}

#[test]
fn awaiting_what_is_no_operation_is_a_fault_of_the_thread() {
    let all = misuses(|memory| {
        Box::pin(async move {
            memory.fence().await;
            std::future::pending::<()>().await;
        })
    });
    let expected = "fault: HERE: the program awaits what is no operation of its memory, and would \
                    wait for ever";
    assert!(all.iter().all(|told| told == expected), "{all:?}");
}

/// A join of a thread that never ends is reported as a deadlock.
#[test]
fn a_join_that_never_ends_is_a_deadlock() {
    for name in MACHINES {
        let mut machine = built((name, &[]), (2, 4), |memory, node, _| async move {
            if node == 1 {
                let flag = memory.flag(place(0, 128), Route::Nearest);
                let waits = move |memory: ThreadMemory| async move {
                    memory.wait(flag, Until::Is(1)).await;
                };
                let child = memory.spawn(None, waits).await;
                memory.join(child).await;
            }
        });
        let failure = machine.run(1, |_| {}).unwrap_err();
        assert!(
            matches!(failure, Failure::Deadlock { .. }),
            "{name}: {failure}"
        );
        let report = failure.to_string();
        assert!(report.contains("end of a thread"), "{name}: {report}");
    }
}

// ------------------------------------------------------------------------- the ideal machine alone

/// Its times are its two latencies and what a program's own instructions take.
#[test]
fn the_ideal_machine_takes_what_its_constants_say() {
    let took = |program: fn(ThreadMemory) -> Program| {
        let mut machine = built(("ideal", &[]), (2, 1), move |memory, node, _| async move {
            if node == 0 {
                program(memory).await;
            }
        });
        machine.run(1, |_| {}).unwrap();
        let span = machine.spans().called("it")[0];
        (span.last_end - span.first_begin).as_ps() / 1000
    };
    /// One operation, as a span.
    macro_rules! of {
        ($operation:ident($node:expr, $route:ident $(, $value:expr)?) after $warm_up:literal) => {
            took(|memory| {
                Box::pin(async move {
                    let word = memory.word(place($node, 64), Route::$route);
                    for _ in std::iter::repeat_n((), $warm_up) {
                        memory.$operation(word $(, $value)?).await;
                    }
                    memory.begin(Span::new("it", 0)).await;
                    memory.$operation(word $(, $value)?).await;
                    memory.end(Span::new("it", 0)).await;
                })
            })
        };
    }
    assert_eq!(of!(load(0, Nearest) after 0), 52);
    assert_eq!(of!(store(0, Nearest, 1) after 0), 52);
    assert_eq!(of!(fetch_add(0, Nearest, 1) after 0), 52);
    assert_eq!(of!(load(1, Global) after 0), 1002, "there and back");
    assert_eq!(of!(store(1, Global, 1) after 0), 2, "it is posted");
    assert_eq!(
        of!(load(1, Cached) after 0),
        1052,
        "a line's way, and a look at the copy"
    );
    assert_eq!(of!(load(1, Cached) after 1), 52, "a copy");
    assert_eq!(of!(store(1, Cached, 1) after 1), 52, "a copy");
    assert_eq!(of!(flush(1, Cached) after 0), 52);
}

/// A copy is as old as when it came, until it is dropped; what is stored into one gets home when it
/// is written back.
#[test]
fn copies_go_stale_for_any_length_of_line() {
    for line in ["32 B", "64 B"] {
        let mut machine = built(
            ("ideal", &[("node.line", line)]),
            (2, 1),
            |memory, node, _| async move {
                let [flag, done] = [512, 576].map(|at| memory.flag(place(1, at), Route::Global));
                let cached = [64, 96].map(|at| memory.word(place(1, at), Route::Cached));
                if node == 0 {
                    let before = memory.load(cached[0]).await;
                    memory.set(flag, 1).await;
                    memory.wait(done, Until::Is(1)).await;
                    let stale = memory.load(cached[0]).await;
                    memory.flush(cached[0]).await;
                    let fresh = memory.load(cached[0]).await;
                    // With lines of 32 bytes the second word is on another one, which has not been
                    // here.
                    let values = [before, stale, fresh, memory.load(cached[1]).await];
                    for (at, value) in (128..).step_by(8).zip(values) {
                        memory
                            .store(memory.word(place(0, at), Route::Nearest), value)
                            .await;
                    }
                    memory.store(cached[1], 9).await;
                    memory.flush(cached[1]).await;
                } else {
                    memory.wait(flag, Until::Is(1)).await;
                    for at in [64, 96] {
                        memory
                            .store(memory.word(place(1, at), Route::Nearest), 7)
                            .await;
                    }
                    memory.set(done, 1).await;
                }
            },
        );
        machine.check_loads().unwrap();
        machine.run(1, |_| {}).unwrap();
        let seen = [128, 136, 144, 152].map(|at| machine.at_home(place(0, at)));
        assert_eq!(seen, [0, 0, 7, 7], "{line}");
        assert_eq!(machine.at_home(place(1, 96)), 9, "{line}");
        assert_eq!(machine.stale_reads().unwrap().stale_reads, 1, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any mix of threads that compute and give way: all of them end, in the same time for any
    /// number of workers, and not sooner than their cores allow.
    #[test]
    fn any_mix_of_threads_comes_to_its_end(
        machine in 0..MACHINES.len(),
        work in prop::collection::vec((0..4u32, 1..9000u64, any::<bool>()), 1..20),
    ) {
        let name = MACHINES[machine];
        let run = |workers| {
            let ended = Arc::new(AtomicU64::new(0));
            let (work, counter) = (work.clone(), Arc::clone(&ended));
            let mut machine = built((name, &[]), (3, 32), move |memory, _, _| {
                let (work, counter) = (work.clone(), Arc::clone(&counter));
                async move {
                    let mut children = Vec::new();
                    for (core, span, gives_way) in work {
                        let counter = Arc::clone(&counter);
                        let child = move |memory: ThreadMemory| async move {
                            memory.delay(us(span)).await;
                            if gives_way {
                                memory.give_way().await;
                            }
                            memory.delay(us(span)).await;
                            counter.fetch_add(1, Ordering::Relaxed);
                        };
                        children.push(memory.spawn(Some(core), child).await);
                    }
                    for child in children {
                        memory.join(child).await;
                    }
                }
            });
            machine.run(workers, |_| {}).unwrap();
            (ended.load(Ordering::Relaxed), machine.end())
        };
        let (ended, end) = run(1);
        prop_assert_eq!(ended, 3 * work.len() as u64);
        let of_core = |core| work.iter().filter(|w| w.0 == core).map(|w| 2 * w.1).sum::<u64>();
        let busiest = (0..4).map(of_core).max().unwrap_or(0);
        prop_assert!(end >= us(busiest));
        prop_assert_eq!(run(2), (ended, end));
    }
}
