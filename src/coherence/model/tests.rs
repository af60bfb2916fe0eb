//! Eq. 1 to 3 against an explicit schedule of the two cores, and against each other.

use proptest::prelude::*;

use super::*;
use crate::coherence::table::Row;

fn chunks(message: u64, chunk: u64) -> Chunks {
    Chunks::new(NonZero::new(message).unwrap(), NonZero::new(chunk).unwrap())
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// One of the two cores of the oracle.
#[derive(Default)]
struct Core {
    /// Chunks done.
    done: usize,
    /// The time at which the chunk under way is done.
    busy_until: Option<f64>,
}

/// The oracle: two cores that pass chunks through a ring of `ring` slots, event by event. A core
/// that is idle begins its next chunk if the ring lets it; then the earlier end of a copy is the
/// next event.
fn ring_schedule_ns(copies: Copies, chunks: &[u64], ring: usize) -> f64 {
    let (mut sender, mut receiver) = (Core::default(), Core::default());
    let mut now = 0.0;
    while receiver.done < chunks.len() {
        let has_slot = sender.done < receiver.done + ring;
        if sender.busy_until.is_none() && sender.done < chunks.len() && has_slot {
            sender.busy_until = Some(now + copies.sender_ns(chunks[sender.done]));
        }
        if receiver.busy_until.is_none() && receiver.done < sender.done {
            receiver.busy_until = Some(now + copies.receiver_ns(chunks[receiver.done]));
        }
        let ends = [sender.busy_until, receiver.busy_until];
        now = ends.into_iter().flatten().fold(f64::INFINITY, f64::min);
        assert!(now.is_finite(), "the cores wait for each other");
        for core in [&mut sender, &mut receiver] {
            if core.busy_until == Some(now) {
                core.busy_until = None;
                core.done += 1;
            }
        }
    }
    now
}

fn rates() -> impl Strategy<Value = Copies> {
    let rate = || (-6.0..6.0f64).prop_map(f64::exp);
    (rate(), rate()).prop_map(|(sender_gb_per_s, receiver_gb_per_s)| Copies {
        sender_gb_per_s,
        receiver_gb_per_s,
    })
}

proptest! {
    #[test]
    fn eq_1_is_the_schedule_of_a_ring_of_two_chunks(
        copies in rates(),
        chunks in prop::collection::vec(1..100_000u64, 1..40),
    ) {
        let oracle = ring_schedule_ns(copies, &chunks, 2);
        let eq_1 = copies.schedule_ns(chunks.iter().copied());
        prop_assert!(is_near(eq_1, oracle), "{eq_1} is not {oracle}");
        let longer = ring_schedule_ns(copies, &chunks, 8);
        prop_assert!(longer <= eq_1 * (1.0 + 1e-9));
    }

    #[test]
    fn with_equal_chunks_a_longer_ring_gains_nothing(
        copies in rates(),
        (chunk, count) in (1..100_000u64, 1..40usize),
    ) {
        let chunks = vec![chunk; count];
        let eq_1 = copies.schedule_ns(chunks.iter().copied());
        prop_assert!(is_near(eq_1, ring_schedule_ns(copies, &chunks, 40)));
    }

    #[test]
    fn a_ring_of_one_chunk_is_sequential(
        copies in rates(),
        chunks in prop::collection::vec(1..100_000u64, 1..40),
    ) {
        let oracle = ring_schedule_ns(copies, &chunks, 1);
        prop_assert!(is_near(copies.sequential_ns(chunks.iter().sum()), oracle));
    }

    #[test]
    fn the_closed_form_is_eq_1(
        copies in rates(),
        (message, chunk) in (1..100_000u64, 1..100_000u64),
    ) {
        let cut = chunks(message, chunk);
        let sizes: Vec<u64> = cut.sizes().collect();
        prop_assert_eq!(sizes.len() as u64, cut.count());
        prop_assert_eq!(sizes.iter().sum::<u64>(), message);
        prop_assert!(sizes.iter().all(|&size| (1..=chunk).contains(&size)));
        prop_assert!(sizes.iter().rev().skip(1).all(|&size| size == chunk));
        prop_assert!(is_near(copies.pipelined_ns(cut), copies.schedule_ns(sizes)));
    }

    #[test]
    fn the_pipelined_time_is_between_the_parallel_and_the_sequential(
        copies in rates(),
        sizes in prop::collection::vec(1..100_000u64, 1..40),
    ) {
        let message = sizes.iter().sum();
        let (most, least) = (copies.sequential_ns(message), copies.parallel_ns(message));
        let slack = 1.0 + 1e-9;
        let in_any_order = copies.schedule_ns(sizes.iter().copied());
        prop_assert!(least <= in_any_order * slack && in_any_order <= most * slack);
        let cut = copies.pipelined_ns(chunks(message, sizes[0]));
        prop_assert!(least <= cut * slack && cut <= most * slack);
    }

    #[test]
    fn one_chunk_is_sequential_and_many_are_parallel(
        copies in rates(),
        chunk in 1..1_000_000u64,
    ) {
        let one = copies.pipelined_ns(chunks(chunk, chunk));
        prop_assert!(is_near(one, copies.sequential_ns(chunk)));
        let count = 1 << 20;
        let many = copies.pipelined_ns(chunks(chunk * count, chunk));
        let limit = copies.parallel_ns(chunk * count);
        // The first copy and the last, of which at most one is as long as a step, are what is left.
        prop_assert!((many / limit - 1.0).abs() <= 1.1 / count as f64);
    }

    #[test]
    fn a_copy_is_as_fast_as_its_slower_access_or_takes_as_long_as_both(
        (load, store) in (1e-3..1e3, 1e-3..1e3),
    ) {
        let separate = Ports::Separate.copy_gb_per_s(load, store);
        prop_assert!(separate <= load && separate <= store);
        prop_assert!(separate == load || separate == store);
        let shared = Ports::Shared.copy_gb_per_s(load, store);
        let bytes = 4096.0;
        prop_assert!(is_near(bytes / shared, bytes / load + bytes / store));
        prop_assert!(shared < separate && separate <= 2.0 * shared * (1.0 + 1e-9));
    }
}

#[test]
fn the_largest_messages_take_no_time_to_predict() {
    let copies = Copies {
        sender_gb_per_s: 2.0,
        receiver_gb_per_s: 4.0,
    };
    let (cut, message) = (chunks(u64::MAX, 1), u64::MAX as f64);
    assert_eq!(cut.count(), u64::MAX);
    assert!(is_near(copies.pipelined_ns(cut), message / 2.0));
}

/// The steps of Table II with plain throughputs that tell them apart.
fn table() -> Table {
    let rates = [
        ("LHM", 20.0),
        ("SHS", 10.0),
        ("LMM", 6.0),
        ("SHM", 15.0),
        ("LMI", 3.0),
        ("SMI", 2.0),
        ("SHO", 5.0),
    ];
    let rows = rates.map(|(name, rate)| {
        let curve = Curve::plain(name.parse().unwrap(), CoreDistance::Socket);
        [1024, 1 << 20].map(|bytes| Row::new("m", curve, bytes, rate))
    });
    Table::new(rows.into_iter().flatten()).unwrap()
}

fn bound(transfer: Transfer) -> (f64, f64, String) {
    let prediction = transfer.predict(&table(), chunks(65536, 32768)).unwrap();
    let copies = prediction.copies;
    (
        copies.sender_gb_per_s,
        copies.receiver_gb_per_s,
        prediction.bound_by.to_string(),
    )
}

#[test]
fn each_option_takes_its_transition() {
    let paper = Transfer::of_paper(CoreDistance::Socket);
    let names = paper.steps().unwrap().map(|step| step.to_string());
    assert_eq!(names, ["LHM", "SHS socket", "LMM socket", "SHM"]);
    assert_eq!(bound(paper), (10.0, 6.0, "LMM socket".into()));

    let sender = Transfer {
        sender: Buffer::NotReused,
        ..paper
    };
    assert_eq!(bound(sender), (3.0, 6.0, "LMI".into()));
    let receiver = Transfer {
        receiver: Buffer::NotReused,
        ..paper
    };
    assert_eq!(bound(receiver), (10.0, 2.0, "SMI".into()));
    let owned = Transfer {
        shared: SharedBuffer::Owned,
        ..paper
    };
    assert_eq!(bound(owned), (5.0, 6.0, "SHO socket".into()));
    let hidden = Transfer {
        shared: SharedBuffer::Modified,
        ..paper
    };
    assert_eq!(bound(hidden).0, 15.0);
    let shared_port = Transfer {
        ports: Ports::Shared,
        ..paper
    };
    let (sender, receiver, by) = bound(shared_port);
    assert!(is_near(sender, 20.0 / 3.0) && is_near(receiver, 30.0 / 7.0));
    assert_eq!(by, "LMM socket");
}

#[test]
fn flushes_take_their_variants() {
    let steps = |flush| {
        let transfer = Transfer {
            flush,
            ..Transfer::of_paper(CoreDistance::Remote)
        };
        let steps = transfer.steps().unwrap();
        [steps[1].to_string(), steps[2].to_string()]
    };
    assert_eq!(steps(Flush::None), ["SHS remote", "LMM remote"]);
    assert_eq!(
        steps(Flush::Sender),
        ["SHS remote flushed-after", "LMM remote flushed"]
    );
    assert_eq!(steps(Flush::Receiver), ["SHS remote flushed", "LMM remote"]);
    assert_eq!(
        steps(Flush::NonTemporal),
        ["SHS remote non-temporal", "LMM remote flushed"]
    );
    let contradiction = Transfer {
        flush: Flush::Receiver,
        shared: SharedBuffer::Modified,
        ..Transfer::of_paper(CoreDistance::Remote)
    };
    assert!(contradiction.steps().is_err());
}

#[test]
fn a_message_is_predicted_by_hand() {
    let paper = Transfer::of_paper(CoreDistance::Socket);
    let prediction = paper.predict(&table(), chunks(2500, 1000)).unwrap();
    // Sender 10 B/ns, receiver 6 B/ns; chunks of 1000, 1000 and 500 B.
    let time = 100.0 + 1000.0 / 6.0 + 1000.0 / 6.0 + 500.0 / 6.0;
    assert!(is_near(prediction.pipelined_gb_per_s, 2500.0 / time));
    assert!(is_near(prediction.parallel_gb_per_s, 6.0));
    assert!(is_near(prediction.sequential_gb_per_s, 3.75));
    assert_eq!(prediction.chunks.count(), 3);
}

#[test]
fn what_the_table_lacks_is_named() {
    let remote = Transfer::of_paper(CoreDistance::Remote);
    let error = remote.predict(&table(), chunks(65536, 1)).unwrap_err();
    assert_eq!(error.to_string(), "the table has no row of SHS remote");
    let paper = Transfer::of_paper(CoreDistance::Socket);
    let error = paper.predict(&table(), chunks(1, 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the table has LHM from 1024 to 1048576 bytes, not at 1"
    );
}
