//! The MPPA: transfers against an oracle, the speeds of its networks, caches that go stale, and
//! everything that its network interfaces refuse.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_memory::{
    Blocks, Cacheable, Flag, Flags, Gathers, Mailbox, Memory, Network, NodeSet, Place, Receives,
    Route, Transfer, Until, Word,
};
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

/// Nodes, the clusters first, then the subsystem in the north.
const NODES: u32 = 17;
const NORTH: u32 = 16;

/// Bytes of each buffer, where it is, and where data to be sent are.
const BYTES: u32 = 4096;
const IN: u64 = 64 << 10;
const OUT: u64 = 32 << 10;

fn machine() -> Machine {
    Machine::builtin("mppa256").unwrap()
}

fn at(memory: &ThreadMemory, offset: u64, route: Route) -> Word {
    let node = memory.node();
    memory.word(Place { node, offset }, route)
}

fn flag(memory: &ThreadMemory, number: u64) -> Flag {
    let (node, offset) = (memory.node(), 64 * number);
    memory.flag(Place { node, offset }, Route::Nearest)
}

fn value(node: u32, word: u64) -> u64 {
    (u64::from(node) + 1) << 32 | word
}

fn buffer(memory: &ThreadMemory) -> Receives {
    Receives::Buffer {
        at: at(memory, IN, Route::Nearest),
        bytes: BYTES,
        transfers: 1 << 20,
        tells: flag(memory, 0),
        event: None,
    }
}

/// A transfer: its sender, its receivers (a bit each), its length and offset in words.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u32,
    to: u64,
    words: u32,
    at: u32,
    by_channel: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let words = prop_oneof![0u32..20, 100u32..300];
    let nodes = prop_oneof![(0u32..NODES).prop_map(|node| 1 << node), (1u64..1 << NODES)];
    (0..NODES, nodes, words, 0u32..200, any::<bool>()).prop_map(
        |(from, to, words, at, by_channel)| Sent {
            from,
            to,
            words,
            at,
            by_channel,
        },
    )
}

/// Runs the transfers, each sender's one after the other; what every buffer holds in the end, and
/// when that is.
fn run(all: &[Sent], workers: usize) -> (Vec<Vec<u64>>, Time) {
    let all: Arc<[Sent]> = all.into();
    let machine = machine();
    let setup = Setup::new(machine.shape(), NODES, 1);
    let program = |memory: ThreadMemory, node, _| {
        let all = Arc::clone(&all);
        async move {
            memory.open(1, buffer(&memory)).await;
            let words: Vec<u64> = (0..300).map(|word| value(node, word)).collect();
            memory.lay(at(&memory, OUT, Route::Nearest), &words).await;
            // All have opened theirs by then.
            memory.delay(Time::from_ns(10_000)).await;
            for (number, sent) in all.iter().enumerate().filter(|(_, sent)| sent.from == node) {
                let transfer = Transfer {
                    to: NodeSet(sent.to),
                    tag: 1,
                    offset: 8 * sent.at,
                    from: at(&memory, OUT, Route::Nearest),
                    bytes: 8 * sent.words,
                };
                match sent.by_channel {
                    false => memory.push(transfer).await,
                    true => {
                        let left = flag(&memory, 1);
                        let channel = (number % 8) as u16;
                        memory.start(channel, transfer, (left, None)).await;
                        memory.wait(left, Until::Is(1)).await;
                        memory.set(left, 0).await;
                    }
                }
            }
        }
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(workers, |_| {}).unwrap();
    let held = (0..NODES).map(|node| {
        let place = |word| Place {
            node,
            offset: IN + 8 * word,
        };
        (0..u64::from(BYTES) / 8)
            .map(|word| machine.at_home(place(word)))
            .collect()
    });
    (held.collect(), machine.end())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A buffer holds of each word what one of the transfers to it has carried there, and of those
    /// of one sender the last: they arrive in order.
    #[test]
    fn buffers_hold_what_was_sent(all in prop::collection::vec(sent(), 1..24)) {
        let (held, end) = run(&all, 1);
        for (node, held) in held.iter().enumerate() {
            for (word, &came) in held.iter().enumerate() {
                // The last of each sender that has written the word.
                let mut may_be: Vec<Option<u64>> = vec![None; NODES as usize];
                for sent in all.iter().filter(|sent| sent.to & 1 << node != 0) {
                    let index = (word as u64).checked_sub(sent.at.into());
                    if let Some(index) = index.filter(|&index| index < u64::from(sent.words)) {
                        may_be[sent.from as usize] = Some(value(sent.from, index));
                    }
                }
                let mut may_be = may_be.into_iter().flatten().peekable();
                let right = match may_be.peek() {
                    None => came == 0,
                    Some(_) => may_be.any(|value| value == came),
                };
                prop_assert!(right, "word {word} of node {node} holds {came:#x}");
            }
        }
        prop_assert_eq!(run(&all, 2), (held, end));
    }
}

/// Cycles of 400 MHz that node `from` takes to send so many bytes to node `to`.
fn cycles(from: u32, to: u32, bytes: u32, by_channel: bool) -> f64 {
    let machine = machine();
    let setup = Setup::new(machine.shape(), NODES, 1);
    let program = move |memory: ThreadMemory, node, _| async move {
        memory
            .open(
                1,
                Receives::Buffer {
                    at: at(&memory, IN, Route::Nearest),
                    bytes: 1 << 20,
                    transfers: 1,
                    tells: flag(&memory, 0),
                    event: None,
                },
            )
            .await;
        memory.delay(Time::from_ns(10_000)).await;
        let span = Span::new("transfer", 0);
        let transfer = Transfer {
            to: NodeSet::one(to),
            tag: 1,
            offset: 0,
            // A subsystem does not cache its memory, which others write.
            from: match node < NORTH {
                true => at(&memory, OUT, Route::Cached),
                false => at(&memory, OUT, Route::Nearest),
            },
            bytes,
        };
        if node == from {
            memory.begin(span).await;
            match by_channel {
                false => memory.push(transfer).await,
                true => memory.start(0, transfer, (flag(&memory, 1), None)).await,
            }
        }
        if node == to {
            memory.wait(flag(&memory, 0), Until::Is(1)).await;
            memory.begin(span).await;
            memory.end(span).await;
        }
        if node == from {
            memory.end(span).await;
        }
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    let span = machine.spans().called("transfer")[0];
    span.last_end.since(span.first_begin).as_us() * 400.0
}

/// Ho et al., Sec. III-C: 4 bytes per cycle by the DMA engine, 1 by a core. Table IV: what a
/// subsystem reads from its memory for that.
#[test]
fn a_channel_sends_four_bytes_a_cycle_and_a_core_one() {
    let slope = |from, to, by_channel| {
        let time = |bytes| cycles(from, to, bytes, by_channel);
        (time(512 << 10) - time(64 << 10)) / f64::from(448 << 10)
    };
    let close = |slope: f64, published: f64| (slope / published - 1.0).abs() < 0.05;
    for (from, to) in [(0, 15), (15, 0), (15, NORTH)] {
        assert!(
            close(slope(from, to, false), 0.98),
            "{}",
            slope(from, to, false)
        );
        assert!(
            close(slope(from, to, true), 0.266),
            "{}",
            slope(from, to, true)
        );
    }
    let of_north = (slope(NORTH, 15, false), slope(NORTH, 15, true));
    assert!(close(of_north.0, 13.52), "{of_north:?}");
    assert!(close(of_north.1, 0.84), "{of_north:?}");
}

/// A core that has loaded a line keeps it when a transfer writes it, until it drops the line.
#[test]
fn a_copy_goes_stale_when_a_transfer_comes() {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let machine = machine();
    let setup = Setup::new(machine.shape(), 2, 1);
    let list = Arc::clone(&seen);
    let program = move |memory: ThreadMemory, node, _| {
        let list = Arc::clone(&list);
        async move {
            if node == 0 {
                memory.delay(Time::from_ns(10_000)).await;
                memory.store(at(&memory, OUT, Route::Nearest), 7).await;
                memory
                    .push(Transfer {
                        to: NodeSet::one(1),
                        tag: 1,
                        offset: 0,
                        from: at(&memory, OUT, Route::Nearest),
                        bytes: 8,
                    })
                    .await;
                return;
            }
            let (cached, home) = (
                at(&memory, IN, Route::Cached),
                at(&memory, IN, Route::Nearest),
            );
            let mut viewed = [0];
            let first = memory.load(cached).await;
            list.lock().push(first);
            let Receives::Buffer { at, tells, .. } = buffer(&memory) else {
                return;
            };
            let buffer = Receives::Buffer {
                at,
                bytes: BYTES,
                transfers: 1,
                tells,
                event: None,
            };
            memory.open(1, buffer).await;
            memory.wait(tells, Until::Is(1)).await;
            memory.view(cached, &mut viewed).await;
            let loads = [
                memory.load(cached).await,
                viewed[0],
                memory.load(home).await,
            ];
            list.lock().extend(loads);
            memory.flush(cached).await;
            let fresh = memory.load(cached).await;
            list.lock().push(fresh);
        }
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    assert_eq!(*seen.lock(), [0, 0, 0, 7, 7]);
}

/// The failure of two nodes of which the first does `what`.
fn failure<F>(what: impl Fn(ThreadMemory) -> F + Clone + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let machine = machine();
    let setup = Setup::new(machine.shape(), 2, 1);
    let program = move |memory: ThreadMemory, node, _| {
        let what = what.clone();
        async move {
            if node == 0 {
                what(memory).await;
            }
        }
    };
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap_err().to_string()
}

fn transfer(memory: &ThreadMemory, to: u32, tag: u16, bytes: u32) -> Transfer {
    Transfer {
        to: NodeSet::one(to),
        tag,
        offset: 0,
        from: at(memory, OUT, Route::Nearest),
        bytes,
    }
}

#[test]
fn interfaces_refuse_what_cannot_be() {
    let says = |failure: String, expected: &str| {
        assert!(failure.contains(expected), "{failure}");
    };
    says(
        failure(|memory| async move {
            memory.push(transfer(&memory, 1, 9, 8)).await;
        }),
        "receive tag 9 is not open",
    );
    says(
        failure(|memory| async move {
            memory.push(transfer(&memory, 1, 256, 8)).await;
        }),
        "there is no receive tag 256",
    );
    says(
        failure(|memory| async move {
            memory.push(transfer(&memory, 20, 0, 8)).await;
        }),
        "no network leads to node 20",
    );
    says(
        failure(|memory| async move {
            memory.open(1, buffer(&memory)).await;
            memory.open(1, buffer(&memory)).await;
        }),
        "receive tag 1 is open already",
    );
    says(
        failure(|memory| async move { memory.close(3).await }),
        "receive tag 3 is not open",
    );
    says(
        failure(|memory| async move {
            memory.open(1, buffer(&memory)).await;
            memory.push(transfer(&memory, 0, 1, BYTES + 8)).await;
        }),
        "goes beyond the buffer of tag 1",
    );
    says(
        failure(|memory| async move {
            let tells = Flags {
                first: flag(&memory, 0),
                stride: 1,
                count: 2,
            };
            let at = at(&memory, IN, Route::Nearest);
            let queue = Receives::Queue {
                at,
                slot_bytes: 120,
                tells,
                event: None,
            };
            memory.open(1, queue).await;
            for _ in 0..3 {
                memory.push(transfer(&memory, 0, 1, 120)).await;
            }
        }),
        "finds no free slot in the queue of tag 1",
    );
    says(
        failure(|memory| async move {
            memory.open(1, buffer(&memory)).await;
            for _ in 0..2 {
                let left = flag(&memory, 1);
                memory
                    .start(5, transfer(&memory, 0, 1, 4096), (left, None))
                    .await;
            }
        }),
        "DMA channel 5 is sending",
    );
    says(
        failure(|memory| async move {
            memory
                .start(8, transfer(&memory, 0, 1, 8), (flag(&memory, 1), None))
                .await;
        }),
        "there is no DMA channel 8",
    );
    says(
        failure(|memory| async move {
            let mailbox = Mailbox {
                word: at(&memory, IN, Route::Nearest),
                gathers: Gathers::AllOf(0),
                tells: flag(&memory, 0),
            };
            memory.listen(4, mailbox).await;
        }),
        "tag 4 would never tell of anything",
    );
    says(
        failure(|memory| async move {
            let place = Place { node: 1, offset: 0 };
            memory.load(memory.word(place, Route::Global)).await;
        }),
        "only its node's own cores reach that memory",
    );
    says(
        failure(|memory| async move {
            memory.load(at(&memory, 2 << 20, Route::Nearest)).await;
        }),
        "neither the node's RAM nor global memory",
    );
}

/// A wait for a transfer that is never sent ends with the report of a deadlock, which names the
/// flag.
#[test]
fn a_wait_for_nothing_is_a_deadlock() {
    let report = failure(|memory| async move {
        memory.open(1, buffer(&memory)).await;
        memory.wait(flag(&memory, 0), Until::Is(1)).await;
    });
    assert!(report.contains("polls its own memory"), "{report}");
}
