//! An access that cannot be performed ends the run and is named.

use proptest::prelude::*;
use sme_memory::{Atomic, Flag, Flags, Futex, Memory, Until, Word};
use sme_sim::families::sme::address::FaultReason;
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::ThreadMemory;

use crate::programs::{ns, run, setup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Set,
    Wait,
    WaitAll,
    Load,
    Store,
    FetchAdd,
    Swap,
    CompareExchange,
    FutexWait,
    FutexWake,
}

const ALL: [Access; 11] = [
    Access::Read,
    Access::Set,
    Access::Wait,
    Access::WaitAll,
    Access::Load,
    Access::Store,
    Access::FetchAdd,
    Access::Swap,
    Access::CompareExchange,
    Access::FutexWait,
    Access::FutexWake,
];

impl Access {
    /// Performs it; every value in memory is zero, so that nothing waits.
    async fn perform(self, memory: &ThreadMemory, address: u64) {
        let (flag, word) = (Flag(address), Word(address));
        match self {
            Access::Read => drop(memory.read(flag).await),
            Access::Set => memory.set(flag, 0).await,
            Access::Wait => drop(memory.wait(flag, Until::Is(0)).await),
            Access::WaitAll => {
                let flags = Flags {
                    first: flag,
                    stride: 1,
                    count: 1,
                };
                memory.wait_all(flags, Until::Is(0)).await;
            }
            Access::Load => drop(memory.load(word).await),
            Access::Store => memory.store(word, 0).await,
            Access::FetchAdd => drop(memory.fetch_add(word, 0).await),
            Access::Swap => drop(memory.swap(word, 0).await),
            Access::CompareExchange => drop(memory.compare_exchange(word, 0, 0).await),
            Access::FutexWait => memory.futex_wait(word, 1).await,
            Access::FutexWake => drop(memory.futex_wake(word, 1).await),
        }
    }

    fn is_of_a_word(self) -> bool {
        !matches!(
            self,
            Access::Read | Access::Set | Access::Wait | Access::WaitAll
        )
    }

    fn is_atomic(self) -> bool {
        self.is_of_a_word() && !matches!(self, Access::Load | Access::Store)
    }
}

const NODES: u32 = 3;

/// Computes the prototype's answer to an access anew: 12 GiB of RAM per node, of which the upper 4
/// GiB are shared, from 2^40 on node by node.
fn expected(access: Access, address: u64) -> Option<FaultReason> {
    const GIB: u64 = 1 << 30;
    if access.is_of_a_word() && !address.is_multiple_of(8) {
        Some(FaultReason::Misaligned)
    } else if address >> 40 == 0 {
        (address >= 12 * GIB).then_some(FaultReason::Unmapped)
    } else if address - (1 << 40) >= u64::from(NODES) * 4 * GIB {
        Some(FaultReason::NoSuchNode)
    } else {
        access.is_atomic().then_some(FaultReason::NotAtomic)
    }
}

/// Addresses at and around every border, and anywhere.
fn addresses() -> impl Strategy<Value = u64> {
    let borders = prop::sample::select(vec![
        0,
        8 << 30,
        12 << 30,
        1 << 40,
        (1 << 40) + (4 << 30),
        (1 << 40) + (12 << 30),
        1 << 63,
    ]);
    prop_oneof![
        8 => (borders, -24i64..24).prop_map(|(border, by): (u64, i64)| border.wrapping_add_signed(by)),
        1 => any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_access_is_performed_or_named_with_its_reason(
        access in prop::sample::select(&ALL[..]),
        address in addresses(),
        (node, core) in (0..NODES, 0u32..3),
    ) {
        let outcome = run(setup("mesh:2x2", NODES, 3), |memory, n, c| {
            Box::pin(async move {
                if (n, c) == (node, core) {
                    memory.delay(ns(100)).await;
                    access.perform(&memory, address).await;
                }
            })
        });
        let core = core as u16;
        let expected = expected(access, address)
            .map(|reason| Failure::Fault { node, core, address: Some(address), reason });
        prop_assert_eq!(outcome.err(), expected);
    }
}

#[test]
fn a_fault_names_thread_address_and_reason() {
    let texts = [
        (
            Access::Read,
            12 << 30,
            "0x300000000: neither the node's RAM nor global memory lies there",
        ),
        (
            Access::Set,
            (1 << 40) + (12 << 30),
            "0x10300000000: no node holds that part of global memory",
        ),
        (
            Access::Load,
            4,
            "0x4: a word's address must be a multiple of 8",
        ),
        (
            Access::Swap,
            1 << 40,
            "0x10000000000: there are no atomic operations outside coherent memory",
        ),
    ];
    for (access, address, text) in texts {
        let outcome = run(setup("mesh:2x2", NODES, 2), |memory, node, core| {
            Box::pin(async move {
                if (node, core) == (2, 1) {
                    access.perform(&memory, address).await;
                }
            })
        });
        let expected = format!("fault: node 2 core 1 at {text}");
        assert_eq!(outcome.unwrap_err().to_string(), expected);
    }
}

/// The fault is the cause: that others then wait for ever, cached or polling, is not what is told.
#[test]
fn a_fault_goes_before_the_deadlock_that_it_causes() {
    let outcome = run(setup("mesh:2x1", 2, 2), |memory, node, core| {
        Box::pin(async move {
            let flag = memory.flag(crate::programs::place(0, 0), sme_memory::Route::Nearest);
            if (node, core) == (0, 0) {
                memory.delay(ns(3_000)).await;
                memory.load(Word(1 << 39)).await;
                memory.set(flag, 1).await;
            } else {
                memory.wait(flag, Until::Is(1)).await;
            }
        })
    });
    let expected = Failure::Fault {
        node: 0,
        core: 0,
        address: Some(1 << 39),
        reason: FaultReason::Unmapped,
    };
    assert_eq!(outcome, Err(expected));
}

/// A row of flags that runs off the end of memory faults where it does, and not before.
#[test]
fn a_row_that_leaves_memory_faults_at_its_first_flag_outside() {
    let end = 12 << 30;
    let outcome = run(setup("mesh:1x1", 1, 1), |memory, _, _| {
        Box::pin(async move {
            let flags = Flags {
                first: Flag(end - 128),
                stride: 64,
                count: 5,
            };
            memory.wait_all(flags, Until::Is(0)).await;
        })
    });
    let expected = Failure::Fault {
        node: 0,
        core: 0,
        address: Some(end),
        reason: FaultReason::Unmapped,
    };
    assert_eq!(outcome, Err(expected));
}
