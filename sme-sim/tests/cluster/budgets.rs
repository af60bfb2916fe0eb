//! Latencies of single accesses, added up by hand from a machine's constants.
//!
//! The machine has round numbers: an engine cycle of 10 ns, two bytes per nanosecond on a host
//! link, eight bytes per cycle on a network link. All times here are in nanoseconds, and exact.

use std::future::Future;

use sme_memory::{Memory, Route, Until};
use sme_sim::machine::{Pinning, System};
use sme_sim::parts::contract::{Span, ThreadMemory};

use crate::programs::{Program, cluster, nothing, ns, place, setup_with};

/// From a socket to a neighbour.
const HOP: u64 = 7;
/// Until a miss leaves its socket.
const MISS: u64 = 20;
const DRAM: u64 = 50;
const PROBE: u64 = 60;
/// The time of a program's own instructions.
pub const OPERATION: u64 = 3;
const TURNAROUND: u64 = 41;
const STORE_GAP: u64 = 23;
/// In the processor's link interface: 5 cycles of 2 ns, and 3 ns.
const HOST_WAY: u64 = 5 * 2 + 3;
pub const BRIDGE: u64 = 65;

const CONSTANTS: [(&str, &str); 25] = [
    ("core.clock", "1 GHz"),
    ("core.operation", "3 cycles"),
    ("cache.l3", "20 ns"),
    ("cache.fill_requests", "8"),
    ("coherence.hop", "7 ns"),
    ("coherence.dram", "50 ns"),
    ("coherence.probe", "60 ns"),
    ("coherence.occupancy", "5 ns"),
    ("uncached.turnaround", "41 ns"),
    ("uncached.store_gap", "23 ns"),
    ("host.clock", "500 MHz"),
    ("host.width", "16 bit"),
    ("host.cycles", "5 cycles"),
    ("host.delay", "3 ns"),
    ("host.bridge", "65 ns"),
    ("host.posted_credits", "16"),
    ("host.nonposted_credits", "16"),
    ("host.response_credits", "16"),
    ("engine.clock", "100 MHz"),
    ("engine.ht_core", "4 cycles"),
    ("engine.network_core", "2 cycles"),
    ("engine.tags", "32"),
    ("link.bandwidth", "800 MB/s"),
    ("link.serdes", "6 cycles"),
    ("link.wire", "15 ns"),
];

/// One way between the first socket and socket `socket`: four stand on the corners of a square.
pub fn hops(socket: u64) -> u64 {
    [0, HOP, HOP, 2 * HOP][socket as usize]
}

/// From the start of a transaction at the first socket until the last probe has answered socket
/// `socket`: the socket probed may be any.
fn probed(socket: u64) -> u64 {
    let back = |from: u64| hops(from ^ socket);
    (0..4)
        .map(|from| hops(from) + PROBE + back(from))
        .max()
        .unwrap()
}

/// The same where memory is read too.
pub fn settled(socket: u64) -> u64 {
    probed(socket).max(DRAM + hops(socket))
}

/// The time at which a packet has reached the host `far` links away that leaves the first socket at
/// `at`: one of so many bytes on the host link, on network links, and on the far host link.
pub fn crosses(at: u64, far: u64, bytes: (u64, u64, u64)) -> u64 {
    // 8 bytes per cycle, and the cycle in which a packet begins is one of its own; 6 cycles of
    // transceivers, 15 ns of wire: on all links.
    crosses_by(at, far, bytes, |bytes| {
        far * (bytes.div_ceil(8) - 1) + far * (6 + 2)
    })
}

/// The same where `on_links` says how many cycles a packet of so many bytes spends on all links.
pub fn crosses_by(
    at: u64,
    far: u64,
    (near, link, there): (u64, u64, u64),
    on_links: impl Fn(u64) -> u64,
) -> u64 {
    // Two transfers of 16 bits in 2 ns; 4 cycles of the HyperTransport core.
    let sampled = (at + HOST_WAY + near / 2).div_ceil(10) + 4;
    // 5 cycles to the first link and 4 from one to the next.
    let links = 5 + (far - 1) * 4 + on_links(link);
    // 2 cycles between engine and switch at both ends, 6 from the last link to the host.
    let given = sampled + links + 2 + 2 + 6 + 4;
    10 * given + there / 2 + HOST_WAY
}

/// The time at which the answer to a read of `bytes` bytes has come to the first socket, which the
/// read leaves at `at`.
fn answered(at: u64, far: u64, bytes: u64) -> u64 {
    answered_by(at, bytes, |at, bytes| crosses(at, far, bytes))
}

/// The same where `crosses` says when a packet has come that leaves at a time and has so many bytes
/// on the links.
pub fn answered_by(at: u64, bytes: u64, crosses: impl Fn(u64, (u64, u64, u64)) -> u64) -> u64 {
    // An address of more than 40 bits takes 4 bytes more, on this host link only.
    let asked = crosses(at, (12, 16, 8));
    crosses(asked + settled(0), (4 + bytes, 8 + bytes, 4 + bytes))
}

/// Runs `program` on every thread of every node; the begin and the end of each [`timed`] access.
pub fn times<const N: usize>(
    constants: &[(&str, &str)],
    nodes: u32,
    pinning: Pinning,
    program: impl Fn(ThreadMemory, u32, u32) -> Program,
) -> [(u64, u64); N] {
    let all: Vec<_> = (CONSTANTS.into_iter())
        .filter(|(key, _)| constants.iter().all(|(other, _)| other != key))
        .chain(constants.iter().copied())
        .collect();
    let setting =
        setup_with(&all, &format!("mesh:{nodes}x1"), nodes, 16).with(|setup| setup.pinned(pinning));
    let mut cluster = cluster(setting, program).unwrap();
    assert_eq!(cluster.run(1, |_| {}), Ok(()));
    let spans = cluster.spans().called("access");
    let in_ns = |time: sme_sim::time::Time| {
        assert!(time.as_ps().is_multiple_of(1000), "{time}");
        time.as_ps() / 1000
    };
    std::array::from_fn(|number| {
        (
            in_ns(spans[number].first_begin),
            in_ns(spans[number].last_end),
        )
    })
}

/// Times an access, as number `number`.
pub async fn timed<T>(memory: &ThreadMemory, number: u32, access: impl Future<Output = T>) {
    memory.begin(Span::new("access", number)).await;
    access.await;
    memory.end(Span::new("access", number)).await;
}

/// A time at which nothing else is going on, as far into an engine cycle as no other.
pub fn alone(number: u32) -> sme_sim::time::Time {
    ns(20_000 * (1 + u64::from(number)) + 3 * u64::from(number))
}

/// Of every socket, a load of a word of node 2's memory, or of node 1's, past the caches.
#[test]
fn a_remote_load_takes_what_its_parts_take() {
    for far in [1, 2] {
        let loads = times::<4>(&[], 3, Pinning::Scatter, |memory, node, core| {
            if node > 0 || core > 3 {
                return nothing();
            }
            Box::pin(async move {
                memory.delay(alone(core)).await;
                let word = memory.word(place(far, 64), Route::Global);
                timed(&memory, core, memory.load(word)).await;
            })
        });
        for (socket, (begin, end)) in (0..).zip(loads) {
            let back = answered(begin + hops(socket), far.into(), 8);
            assert_eq!(
                end,
                back + hops(socket) + OPERATION,
                "socket {socket} over {far} links"
            );
        }
    }
}

/// Thread after thread, four of them on each socket.
#[test]
fn compact_pinning_fills_the_first_socket_first() {
    let sockets = |pinning| {
        let loads = times::<16>(&[], 2, pinning, |memory, node, core| {
            if node > 0 {
                return nothing();
            }
            Box::pin(async move {
                memory.delay(alone(core)).await;
                let word = memory.word(place(1, 64), Route::Global);
                timed(&memory, core, memory.load(word)).await;
            })
        });
        loads.map(|(begin, end)| {
            // The middle two sockets are as far away.
            [0, 1, 3]
                .into_iter()
                .filter(|&socket| {
                    end == answered(begin + hops(socket), 1, 8) + hops(socket) + OPERATION
                })
                .collect::<Vec<_>>()
        })
    };
    let expected = |socket: fn(u64) -> u64| {
        std::array::from_fn(|thread| vec![[0, 1, 1, 3][socket(thread as u64) as usize]])
    };
    assert_eq!(sockets(Pinning::Compact), expected(|thread| thread / 4));
    assert_eq!(sockets(Pinning::Scatter), expected(|thread| thread % 4));
}

/// The second of two loads waits until the slot has turned around, which begins when the first is
/// back at its socket. Ten turnarounds, so that no nanosecond is lost in an engine cycle.
#[test]
fn a_slot_turns_around_between_two_loads() {
    for turnaround in TURNAROUND..TURNAROUND + 10 {
        let text = format!("{turnaround} ns");
        let constants = [("uncached.turnaround", &*text)];
        let loads = times::<8>(&constants, 2, Pinning::Scatter, |memory, node, core| {
            if node > 0 || core > 3 {
                return nothing();
            }
            Box::pin(async move {
                memory.delay(alone(core)).await;
                let word = memory.word(place(1, 64), Route::Global);
                timed(&memory, 2 * core, memory.load(word)).await;
                timed(&memory, 2 * core + 1, memory.load(word)).await;
            })
        });
        for (socket, two) in (0..).zip(loads.chunks(2)) {
            let first = answered(two[0].0 + hops(socket), 1, 8) + hops(socket);
            let second = answered(first + turnaround + hops(socket), 1, 8) + hops(socket);
            let ends = [first + OPERATION, second + OPERATION];
            assert_eq!(
                [two[0].1, two[1].1],
                ends,
                "socket {socket}, {turnaround} ns"
            );
            assert_eq!(two[1].0, two[0].1);
        }
    }
}

/// The time at which the last answer of a fill has come whose reads leave the first socket from
/// `at` on, at most `at_once` under way.
fn filled(at: u64, payload: u64, at_once: u64) -> u64 {
    let reads = 64 / payload;
    if at_once == 1 {
        return (0..reads).fold(at, |at, _| answered(at, 1, payload));
    }
    assert!(at_once >= reads);
    // They follow each other as fast as one link takes the reads and the other the answers.
    let each = 16u64.div_ceil(8).max((8 + payload).div_ceil(8));
    answered(at, 1, payload) + 10 * each * (reads - 1)
}

/// Of every socket, a load that misses all caches of the node.
#[test]
fn a_line_fill_takes_what_its_reads_take() {
    for (payload, text) in [(8, "8 B"), (16, "16 B"), (32, "32 B"), (64, "64 B")] {
        for (at_once, requests) in [(8, "8"), (1, "1")] {
            let constants = [
                ("uncached.load_payload", text),
                ("cache.fill_requests", requests),
            ];
            let fills = times::<4>(&constants, 2, Pinning::Scatter, |memory, node, core| {
                if node > 0 || core > 3 {
                    return nothing();
                }
                Box::pin(async move {
                    memory.delay(alone(core)).await;
                    let word = memory.word(place(1, 64 * u64::from(core) + 24), Route::Cached);
                    timed(&memory, core, memory.load(word)).await;
                })
            });
            for (socket, (begin, end)) in (0..).zip(fills) {
                let back = filled(begin + MISS + hops(socket), payload, at_once);
                assert_eq!(
                    end,
                    back + hops(socket) + OPERATION,
                    "{payload} B, {at_once} at once, socket {socket}"
                );
            }
        }
    }
}

/// A line fill has its socket's slot until all its words have come: a load of another core of the
/// socket waits for that, one of another socket does not.
#[test]
fn a_line_fill_holds_the_slot_of_its_socket() {
    for (payload, text) in [(8, "8 B"), (64, "64 B")] {
        let constants = [
            ("uncached.load_payload", text),
            ("cache.fill_requests", "1"),
        ];
        let accesses = times::<3>(&constants, 2, Pinning::Scatter, |memory, node, core| {
            let number = match (node, core) {
                (0, 3) => 0,
                (0, 7) => 1,
                (0, 1) => 2,
                _ => return nothing(),
            };
            Box::pin(async move {
                memory.delay(ns(20_000 + 150 * u64::from(number))).await;
                if number == 0 {
                    let word = memory.word(place(1, 64), Route::Cached);
                    timed(&memory, number, memory.load(word)).await;
                } else {
                    let word = memory.word(place(1, 128), Route::Global);
                    timed(&memory, number, memory.load(word)).await;
                }
            })
        });
        let [fill, same, other] = accesses;
        let back = filled(fill.0 + MISS + hops(3), payload, 1) + hops(3);
        assert_eq!(fill.1, back + OPERATION, "{payload} B");
        let load = answered(back + TURNAROUND + hops(3), 1, 8) + hops(3);
        assert_eq!(same.1, load + OPERATION, "{payload} B, the same socket");
        assert!(same.0 < back);
        let load = answered(other.0 + hops(1), 1, 8) + hops(1);
        assert_eq!(other.1, load + OPERATION, "{payload} B, another socket");
    }
}

/// Of every socket, a miss in the node's own memory: the slower of memory and the slowest probe.
#[test]
fn a_local_miss_waits_for_memory_and_probes() {
    for (dram, text) in [(DRAM, "50 ns"), (200, "200 ns")] {
        let misses = times::<4>(
            &[("coherence.dram", text)],
            1,
            Pinning::Scatter,
            |memory, _, core| {
                if core > 3 {
                    return nothing();
                }
                Box::pin(async move {
                    memory.delay(alone(core)).await;
                    let word = memory.word(place(0, 64 * u64::from(core)), Route::Nearest);
                    timed(&memory, core, memory.load(word)).await;
                })
            },
        );
        for (socket, (begin, end)) in (0..).zip(misses) {
            let took = probed(socket).max(dram + hops(socket));
            let expected = begin + MISS + hops(socket) + took + OPERATION;
            assert_eq!(end, expected, "socket {socket}, {dram} ns");
        }
    }
}

/// Of every other socket, a load of a line of another node that a core of the first socket has.
#[test]
fn a_copy_from_another_core_waits_for_probes() {
    let loads = times::<4>(&[], 2, Pinning::Scatter, |memory, node, core| {
        if node > 0 || core > 3 {
            return nothing();
        }
        Box::pin(async move {
            let word = memory.word(place(1, 64), Route::Cached);
            memory.delay(alone(core)).await;
            timed(&memory, core, memory.load(word)).await;
        })
    });
    for (socket, (begin, end)) in (0..).zip(loads).skip(1) {
        let expected = begin + MISS + hops(socket) + probed(socket) + OPERATION;
        assert_eq!(end, expected, "socket {socket}");
    }
}

/// The time at which a core of socket `socket` that spins on a flag in its node has read it again,
/// whose line was taken at `taken`: the probe finds it, it asks for the line, and gets that when
/// the writer has it.
pub fn seen(taken: u64, socket: u64) -> u64 {
    let asks = taken + hops(socket) + PROBE;
    let waits = (asks + MISS + hops(socket)).max(taken + settled(0));
    waits + settled(socket) + OPERATION
}

/// A flag is set in the own node, or from the node next to it, while a core of each socket in turn
/// spins on it.
#[test]
fn a_spinning_core_sees_a_store_when_it_was_probed() {
    for setter in [0, 1] {
        for waiter in 0..4 {
            let [set, wait] = times::<2>(&[], 2, Pinning::Scatter, |memory, node, core| {
                let flag = memory.flag(place(0, 64), Route::Nearest);
                match (node, core) {
                    (0, core) if core == 4 + waiter => Box::pin(async move {
                        timed(&memory, 1, memory.wait(flag, Until::IsNot(0))).await;
                    }),
                    (node, 0) if node == setter => Box::pin(async move {
                        memory.delay(alone(waiter)).await;
                        timed(&memory, 0, memory.set(flag, 1)).await;
                    }),
                    _ => nothing(),
                }
            });
            assert_eq!(set.1, set.0 + OPERATION);
            let taken = match setter {
                0 => set.0 + MISS,
                // A write of bytes has a mask: 8 + 4 + 4 + 8 bytes, and 4 less without an
                // extension.
                _ => crosses(set.0, 1, (24, 24, 20)) + BRIDGE,
            };
            assert_eq!(
                wait.1,
                seen(taken, waiter.into()),
                "set by node {setter}, socket {waiter}"
            );
        }
    }
}

/// Posted stores leave a core one gap after the other, and a fence waits for the last of them.
#[test]
fn posted_stores_leave_one_gap_after_the_other() {
    for stores in [1u64, 2, 5] {
        let [(begin, end)] = times::<1>(&[], 2, Pinning::Scatter, |memory, node, core| {
            if (node, core) != (0, 0) {
                return nothing();
            }
            Box::pin(async move {
                memory.delay(alone(0)).await;
                timed(&memory, 0, async {
                    for nth in 0..stores {
                        let word = memory.word(place(1, 8 * nth), Route::Global);
                        memory.store(word, 1).await;
                    }
                    memory.fence().await;
                })
                .await;
            })
        });
        let last = ((stores - 1) * STORE_GAP).max(stores * OPERATION);
        assert_eq!(end, begin + last + OPERATION, "{stores} stores");
    }
}
