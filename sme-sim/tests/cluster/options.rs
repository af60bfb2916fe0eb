//! Options of a machine file for the way of packets over bridge and links:
//! latencies of single accesses, added up by hand as in [`budgets`](crate::budgets).

use sme_memory::{Memory, Route, Until};
use sme_sim::machine::Pinning;

use crate::budgets::{
    BRIDGE, OPERATION, alone, answered_by, crosses, crosses_by, hops, seen, settled, timed, times,
};
use crate::programs::{nothing, place};

/// A load of a core of the first socket of a word `far` links away: its begin and its end.
fn load(constants: &[(&str, &str)], far: u32) -> (u64, u64) {
    let [load] = times::<1>(
        constants,
        far + 1,
        Pinning::Scatter,
        |memory, node, core| {
            if (node, core) != (0, 0) {
                return nothing();
            }
            Box::pin(async move {
                memory.delay(alone(0)).await;
                let word = memory.word(place(far, 64), Route::Global);
                timed(&memory, 0, memory.load(word)).await;
            })
        },
    );
    load
}

/// Two stores of a core come to a bridge one close behind the other. Serial, the second waits until
/// the first is complete; pipelined, until it has taken effect.
#[test]
fn a_pipelined_bridge_lets_the_next_write_in_when_one_is_ordered() {
    for (writes, waits) in [("serial", settled(0)), ("pipelined", 0)] {
        let set = [("host.bridge_writes", writes)];
        let [set, first, second] = times::<3>(&set, 2, Pinning::Scatter, |memory, node, core| {
            let flag = |number: u64| memory.flag(place(0, 64 * (1 + number)), Route::Nearest);
            let flags = [flag(0), flag(1)];
            match (node, core) {
                (0, core @ (4 | 5)) => Box::pin(async move {
                    let flag = flags[core as usize - 4];
                    timed(&memory, core - 3, memory.wait(flag, Until::IsNot(0))).await;
                }),
                (1, 0) => Box::pin(async move {
                    memory.delay(alone(0)).await;
                    timed(&memory, 0, async {
                        for flag in flags {
                            memory.set(flag, 1).await;
                        }
                    })
                    .await;
                }),
                _ => nothing(),
            }
        });
        let taken = crosses(set.0, 1, (24, 24, 20)) + BRIDGE;
        assert_eq!(first.1, seen(taken, 0), "{writes}");
        assert_eq!(second.1, seen(taken + waits + BRIDGE, 1), "{writes}");
    }
}

/// A time in the transceivers is rounded up to a cycle of the engine together with the wire's 15
/// ns.
#[test]
fn a_time_in_the_transceivers_does_not_scale_with_the_engine() {
    for (serdes, cycles) in [
        ("6 cycles", 6 + 2),
        ("60 ns", 8),
        ("65 ns", 8),
        ("65.001 ns", 9),
        ("41 ns", 6),
        ("1 ps", 2),
    ] {
        for far in [1, 2] {
            let (begin, end) = load(&[("link.serdes", serdes)], far);
            let far = u64::from(far);
            let on_links = |bytes: u64| far * (bytes.div_ceil(8) - 1 + cycles);
            let back = answered_by(begin + hops(0), 8, |at, bytes| {
                crosses_by(at, far, bytes, on_links)
            });
            assert_eq!(end, back + OPERATION, "{serdes} over {far} links");
        }
    }
}

/// Each switch on the way waits for all of a packet, or for its first 8 bytes; its target for all
/// in either case.
#[test]
fn a_packet_that_cuts_through_is_serialized_once() {
    for (bandwidth, each) in [("800 MB/s", 8), ("400 MB/s", 4), ("100 MB/s", 1)] {
        for far in [1, 2, 3] {
            let of = |forwarding| {
                let set = [
                    ("link.bandwidth", bandwidth),
                    ("link.forwarding", forwarding),
                ];
                load(&set, far)
            };
            let far = u64::from(far);
            let back = |begin, on_links: &dyn Fn(u64) -> u64| {
                answered_by(begin + hops(0), 8, |at, bytes| {
                    crosses_by(at, far, bytes, on_links)
                })
            };
            let whole = |bytes: u64| bytes.div_ceil(each) - 1;
            let stored = |bytes| far * (whole(bytes) + 6 + 2);
            let cut = |bytes| (far - 1) * whole(8) + whole(bytes) + far * (6 + 2);
            let (begin, end) = of("store-and-forward");
            assert_eq!(end, back(begin, &stored) + OPERATION, "{bandwidth} {far}");
            let (begin, end) = of("cut-through");
            assert_eq!(end, back(begin, &cut) + OPERATION, "{bandwidth} {far}");
        }
    }
}
