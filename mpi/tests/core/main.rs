//! Point-to-point communication over wires with little room, under any schedule.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod channels;
mod partitioned;
mod ports;
mod standby;
mod worlds;

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_mpi::error::ErrorClass;
use sme_mpi::rank::{Mpi, Source, Status, Tag};
use sme_mpi::wires::{RUNS, Setting, Stuck, Wire, run, run_with};

const SMALL: Setting = Setting { room: 48, seed: 3 };

#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    to: u32,
    tag: i32,
    words: usize,
    synchronous: bool,
}

/// The way in which the receives of a rank name their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    Exactly,
    BySource,
    ByTag,
    Any,
}

impl Naming {
    fn wanted(self, message: &Message) -> (Source, Tag) {
        let (source, tag) = (Source::Rank(message.from), Tag::Is(message.tag));
        match self {
            Naming::Exactly => (source, tag),
            Naming::BySource => (source, Tag::Any),
            Naming::ByTag => (Source::Any, tag),
            Naming::Any => (Source::Any, Tag::Any),
        }
    }

    fn fits(self, wanted: &Message, message: &Message) -> bool {
        let source = wanted.from == message.from || matches!(self, Naming::ByTag | Naming::Any);
        let tag = wanted.tag == message.tag || matches!(self, Naming::BySource | Naming::Any);
        source && tag
    }
}

#[derive(Clone, Debug)]
struct Case {
    ranks: u32,
    messages: Vec<Message>,
    namings: Vec<Naming>,
    setting: Setting,
    /// The number of the run among those of all modes.
    run: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    (2u32..5).prop_flat_map(|ranks| {
        // Some are longer than what is sent without asking.
        let words = prop_oneof![4 => 0usize..60, 1 => 2_000usize..2_200];
        let message = (0..ranks, 0..ranks, 0i32..3, words, any::<bool>()).prop_map(
            |(from, to, tag, words, synchronous)| Message {
                from,
                to,
                tag,
                words,
                synchronous,
            },
        );
        let naming = prop_oneof![
            Just(Naming::Exactly),
            Just(Naming::BySource),
            Just(Naming::ByTag),
            Just(Naming::Any)
        ];
        let setting = (1usize..200, any::<u64>()).prop_map(|(room, seed)| Setting { room, seed });
        (
            prop::collection::vec(message, 0..16),
            prop::collection::vec(naming, ranks as usize),
            setting,
            0..RUNS.len(),
        )
            .prop_map(move |(messages, namings, setting, run)| Case {
                run,
                ranks,
                messages,
                namings,
                setting,
            })
    })
}

/// Receive number by number, by rank: which message it got.
type Got = Arc<Mutex<Vec<Vec<(usize, Status)>>>>;

async fn program(wire: Wire, case: Arc<Case>, got: Got) {
    let mpi = Mpi::new(wire);
    let world = mpi.world();
    let me = world.rank();
    let mine: Vec<Message> = case
        .messages
        .iter()
        .filter(|m| m.to == me)
        .copied()
        .collect();
    let most = 1 + mine.iter().map(|message| message.words).max().unwrap_or(0);
    let mut buffers = vec![vec![0u64; most]; mine.len()];
    let mut receives = Vec::new();
    for (message, buffer) in mine.iter().zip(&mut buffers) {
        let (source, tag) = case.namings[me as usize].wanted(message);
        receives.push(world.ireceive(buffer, source, tag).await.unwrap());
    }
    for (number, message) in case.messages.iter().enumerate() {
        if message.from != me {
            continue;
        }
        // The first word says which message it is, where there is one.
        let values = vec![number as u64; message.words];
        match message.synchronous {
            true => world.ssend(&values, message.to, message.tag).await.unwrap(),
            false => world.send(&values, message.to, message.tag).await.unwrap(),
        }
    }
    let mut statuses = Vec::new();
    for mut receive in receives {
        statuses.push(receive.wait().await.unwrap());
    }
    for (status, buffer) in statuses.iter().zip(&buffers) {
        let words = (status.bytes / 8) as usize;
        let number = if words > 0 {
            buffer[0] as usize
        } else {
            usize::MAX
        };
        assert!(buffer[..words].iter().all(|&word| word == number as u64));
        got.lock().unwrap()[me as usize].push((number, *status));
    }
    mpi.finalize().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Every message is received once, whole, by a receive that it fits, and none overtakes another
    /// of its sender's (situation 14: source, tag and length are right, both wildcards together
    /// included).
    #[test]
    fn messages_arrive_once_and_in_order(case in cases()) {
        let got: Got = Arc::new(Mutex::new(vec![Vec::new(); case.ranks as usize]));
        let shared = Arc::new(case.clone());
        let ended = run_with(case.ranks, case.setting, RUNS[case.run], |wire| {
            program(wire, Arc::clone(&shared), Arc::clone(&got))
        });
        prop_assert!(ended.is_ok(), "{:?}", ended);
        let got = std::mem::take(&mut *got.lock().unwrap());
        for (rank, (got, naming)) in (0..).zip(got.iter().zip(&case.namings)) {
            let mine: Vec<(usize, &Message)> =
                case.messages.iter().enumerate().filter(|(_, m)| m.to == rank).collect();
            prop_assert_eq!(got.len(), mine.len());
            for ((number, status), (_, wanted)) in got.iter().zip(&mine) {
                let has = |m: &Message| {
                    (m.from, m.tag, 8 * m.words as u64) == (status.source, status.tag, status.bytes)
                };
                prop_assert!(mine.iter().any(|(n, m)| has(m) && (status.bytes == 0 || n == number)));
                let as_wanted = Message { from: status.source, tag: status.tag, ..**wanted };
                prop_assert!(naming.fits(wanted, &as_wanted));
            }
            let mut numbers: Vec<usize> = got.iter().map(|(n, _)| *n).filter(|&n| n != usize::MAX).collect();
            numbers.sort_unstable();
            let sent = mine.iter().filter(|(_, m)| m.words > 0).map(|(n, _)| *n);
            prop_assert!(numbers.iter().copied().eq(sent));
            // Of two messages of one sender an earlier receive that fits both has the earlier.
            for (i, ((first, _), (_, wanted))) in got.iter().zip(&mine).enumerate() {
                for (second, _) in &got[i + 1..] {
                    if *first == usize::MAX || *second == usize::MAX || second > first {
                        continue;
                    }
                    let (late, early) = (&case.messages[*first], &case.messages[*second]);
                    prop_assert!(late.from != early.from || !naming.fits(wanted, early));
                }
            }
        }
    }

    /// The same run gives the same outcome.
    #[test]
    fn a_run_is_repeated_exactly_by_its_seed(case in cases()) {
        let outcome = || {
            let got: Got = Arc::new(Mutex::new(vec![Vec::new(); case.ranks as usize]));
            let shared = Arc::new(case.clone());
            run_with(case.ranks, case.setting, RUNS[case.run], |wire| {
                program(wire, Arc::clone(&shared), Arc::clone(&got))
            })
            .unwrap();
            std::mem::take(&mut *got.lock().unwrap())
        };
        prop_assert_eq!(outcome(), outcome());
    }
}

/// Two ranks that send to each other before they receive.
fn cycle(words: usize, synchronous: bool) -> Result<Vec<()>, Stuck> {
    run_with(2, SMALL, None, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let other = 1 - world.rank();
        let values = vec![7u64; words];
        match synchronous {
            true => world.ssend(&values, other, 0).await.unwrap(),
            false => world.send(&values, other, 0).await.unwrap(),
        }
        let mut came = vec![0u64; words];
        world
            .receive(&mut came, Source::Rank(other), Tag::Is(0))
            .await
            .unwrap();
        assert_eq!(came, values);
        mpi.finalize().await.unwrap();
    })
}

/// A cycle of blocking sends ends with a report of who waits where; short standard sends are no
/// cycle.
#[test]
fn a_cycle_of_blocking_sends_is_reported() {
    assert!(cycle(1_000, false).is_ok());
    for (words, synchronous) in [(4_000, false), (1, true)] {
        let Stuck(waiting) = cycle(words, synchronous).unwrap_err();
        let ranks: Vec<u32> = waiting.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks, [0, 1]);
        assert!(
            waiting.iter().all(|(_, site)| site.file() == file!()),
            "{waiting:?}"
        );
    }
}

#[test]
fn a_receive_without_a_message_is_reported() {
    let ended = run(3, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        if world.rank() == 2 {
            let mut value = [0u8];
            world
                .receive(&mut value, Source::Any, Tag::Any)
                .await
                .unwrap();
        }
    });
    assert_eq!(ended.unwrap_err().0[0].0, 2);
}

/// Situation 17, of a receive and of a wait: the message is longer than the buffer, which has its
/// beginning.
#[test]
fn truncation_names_rank_call_and_argument() {
    run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        for words in [4usize, 4_000] {
            let values: Vec<u64> = (0..words as u64).collect();
            if world.rank() == 0 {
                world.send(&values, 1, 5).await.unwrap();
                world.send(&values, 1, 6).await.unwrap();
                continue;
            }
            let (mut first, mut second) = ([0u64; 2], [0u64; 3]);
            let error = world
                .receive(&mut first, Source::Any, Tag::Is(5))
                .await
                .unwrap_err();
            assert_eq!(error.class, ErrorClass::Truncate);
            let text = error.to_string();
            assert!(
                text.starts_with("rank 1: MPI_Recv: count: the message of"),
                "{text}"
            );
            let mut receive = world
                .ireceive(&mut second, Source::Any, Tag::Any)
                .await
                .unwrap();
            assert_eq!(
                receive.wait().await.unwrap_err().class,
                ErrorClass::Truncate
            );
            assert_eq!((first, second), ([0, 1], [0, 1, 2]));
        }
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

#[test]
fn wrong_arguments_are_errors() {
    run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let error = world.send(&[1u8], 1, 0).await.unwrap_err();
        let expected = "rank 0: MPI_Send: dest: there is no rank 1 among 1 (MPI_ERR_RANK)";
        assert_eq!(error.to_string(), expected);
        let error = world.send(&[1u8], 0, -1).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Tag);
        let error = world
            .receive(&mut [0u8], Source::Rank(3), Tag::Any)
            .await
            .unwrap_err();
        assert_eq!((error.class, error.argument), (ErrorClass::Rank, "source"));
    })
    .unwrap();
}

/// Situation 12: a receive from any source is cancelled, unless a message has matched it.
#[test]
fn a_receive_is_cancelled_or_has_its_message() {
    run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        if world.rank() == 0 {
            let mut first = world.isend(&[1u64], 1, 0).await.unwrap();
            world.send(&[2u64], 1, 1).await.unwrap();
            first.wait().await.unwrap();
            return mpi.finalize().await.unwrap();
        }
        // Both are there.
        world.probe(Source::Any, Tag::Is(1)).await.unwrap();
        let (mut none, mut one, mut two) = ([0u64], [0u64], [0u64]);
        let mut receive = world
            .ireceive(&mut none, Source::Any, Tag::Is(7))
            .await
            .unwrap();
        receive.cancel().unwrap();
        assert!(receive.wait().await.unwrap().is_cancelled);
        let mut receive = world
            .ireceive(&mut one, Source::Any, Tag::Any)
            .await
            .unwrap();
        receive.cancel().unwrap();
        assert!(!receive.wait().await.unwrap().is_cancelled);
        world
            .receive(&mut two, Source::Any, Tag::Any)
            .await
            .unwrap();
        assert_eq!((none, one, two), ([0], [1], [2]));
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

/// A send that is cancelled has its message received, or is told that it has not: a short one whose
/// data are still here, too, and one whose request has the number of a message before it.
#[test]
fn a_cancelled_send_is_received_or_not_and_says_which() {
    for seed in 0..40 {
        let setting = Setting { room: 9, seed };
        let outcome = run(2, setting, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            for round in 0..4 {
                if world.rank() == 0 {
                    let mut before = world.isend(&[1u64], 1, 7).await.unwrap();
                    if round < 2 {
                        before.wait().await.unwrap();
                    }
                    let words = [round; 30];
                    let mut send = match round % 2 {
                        0 => world.isend(&words, 1, 0).await.unwrap(),
                        _ => world.issend(&words, 1, 0).await.unwrap(),
                    };
                    send.cancel().unwrap();
                    let is_cancelled = send.wait().await.unwrap().is_cancelled;
                    world.send(&[u64::from(is_cancelled)], 1, 1).await.unwrap();
                    before.wait().await.unwrap();
                } else {
                    let mut is_cancelled = [9u64];
                    let source = Source::Rank(0);
                    let mut first = [0u64];
                    if round < 2 {
                        // It may need its receive.
                        world.receive(&mut first, source, Tag::Is(7)).await.unwrap();
                    }
                    world
                        .receive(&mut is_cancelled, source, Tag::Is(1))
                        .await
                        .unwrap();
                    if round >= 2 {
                        world.receive(&mut first, source, Tag::Is(7)).await.unwrap();
                    }
                    assert_eq!(first, [1]);
                    let mut words = [9u64; 30];
                    if is_cancelled == [0] {
                        world.receive(&mut words, source, Tag::Is(0)).await.unwrap();
                        assert_eq!(words, [round; 30]);
                    }
                    assert_eq!(world.iprobe(source, Tag::Any).await.unwrap(), None);
                }
                world.barrier().await.unwrap();
            }
            mpi.finalize().await.unwrap();
        });
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}

/// A send to oneself.
#[test]
fn a_rank_sends_to_itself() {
    run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let values = vec![3i32; 9_000];
        let mut came = vec![0i32; 9_000];
        let mut receive = world
            .ireceive(&mut came, Source::Rank(0), Tag::Is(0))
            .await
            .unwrap();
        world
            .isend(&values, 0, 0)
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        receive.wait().await.unwrap();
        assert_eq!(came, values);
    })
    .unwrap();
}
