//! Communication in partitions against a copy of the sender's data.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_mpi::error::ErrorClass;
use sme_mpi::rank::partitioned::{MOST_PARTITIONS, Partitions};
use sme_mpi::rank::{Mpi, PROC_NULL, Source, Status, Tag};
use sme_mpi::wires::{RUNS, Setting, Wire, run, run_with};

use super::SMALL;

/// A send and its receive. Several may have the same ranks and the same tag.
#[derive(Clone, Debug)]
struct Pair {
    from: u32,
    to: u32,
    tag: i32,
    /// Partitions of the sender and of the receiver.
    sent: u32,
    received: u32,
    /// Words of the data that both have in a partition.
    unit: u32,
    /// The order in which partitions are ready, in each round.
    orders: Vec<Vec<i64>>,
}

impl Pair {
    fn words(&self) -> usize {
        (self.sent * self.received * self.unit) as usize
    }

    /// The word at a place of the data of a round.
    fn word(&self, number: usize, round: usize, place: usize) -> u64 {
        (number as u64) << 48 | (round as u64) << 32 | place as u64
    }

    fn data(&self, number: usize, round: usize) -> Vec<u64> {
        let places = 0..self.words();
        places
            .map(|place| self.word(number, round, place))
            .collect()
    }

    fn partitions(&self, count: u32) -> Partitions {
        let bytes = self.words() as u64 / u64::from(count) * 8;
        Partitions::new(count.into(), bytes).unwrap()
    }
}

#[derive(Clone, Debug)]
struct Case {
    ranks: u32,
    rounds: usize,
    pairs: Vec<Pair>,
    setting: Setting,
    run: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    (1u32..4, 1usize..4).prop_flat_map(|(ranks, rounds)| {
        let unit = prop_oneof![1 => Just(0u32), 6 => 1u32..4, 1 => 90u32..100];
        let pair = (0..ranks, 0..ranks, 0..2i32, 1u32..7, 1u32..7, unit);
        let pair = pair.prop_flat_map(move |(from, to, tag, sent, received, unit)| {
            let all: Vec<i64> = (0..i64::from(sent)).collect();
            prop::collection::vec(Just(all).prop_shuffle(), rounds).prop_map(move |orders| Pair {
                from,
                to,
                tag,
                sent,
                received,
                unit,
                orders,
            })
        });
        let setting = (1usize..200, any::<u64>()).prop_map(|(room, seed)| Setting { room, seed });
        (prop::collection::vec(pair, 0..5), setting, 0..RUNS.len()).prop_map(
            move |(pairs, setting, run)| Case {
                ranks,
                rounds,
                pairs,
                setting,
                run,
            },
        )
    })
}

/// By pair: the data of each round, as the receiver got them, and their statuses.
type Got = Arc<Mutex<Vec<Vec<(Vec<u64>, Status)>>>>;

async fn program(wire: Wire, case: Arc<Case>, got: Got) {
    let mpi = Mpi::new(wire);
    let world = mpi.world();
    let me = world.rank();
    let numbered = || case.pairs.iter().enumerate();
    let mine: Vec<(usize, &Pair)> = numbered().filter(|(_, pair)| pair.to == me).collect();
    let mut rooms: Vec<Vec<Vec<u64>>> = (0..case.rounds)
        .map(|_| mine.iter().map(|(_, pair)| vec![0; pair.words()]).collect())
        .collect();
    let mut statuses = Vec::new();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (number, pair) in numbered() {
        if pair.from == me {
            let partitions = pair.partitions(pair.sent);
            let send = world.partitioned_send(partitions, pair.to, pair.tag).await;
            sends.push((number, pair, send.unwrap()));
        }
        if pair.to == me {
            let (partitions, from) = (pair.partitions(pair.received), Source::Rank(pair.from));
            let receive = world.partitioned_receive(partitions, from, pair.tag).await;
            receives.push(receive.unwrap());
        }
    }
    for (round, rooms) in rooms.iter_mut().enumerate() {
        for (receive, room) in receives.iter_mut().zip(rooms) {
            receive.start(room).await.unwrap();
        }
        for (_, _, send) in &mut sends {
            send.start().await.unwrap();
        }
        // A partition of each in turn.
        for turn in 0..6 {
            for (number, pair, send) in &mut sends {
                if let Some(&partition) = pair.orders[round].get(turn) {
                    // The other partitions are not written yet.
                    let mut data = pair.data(*number, round);
                    let words = data.len() / pair.sent as usize;
                    let own = partition as usize * words..(partition as usize + 1) * words;
                    for (place, word) in data.iter_mut().enumerate() {
                        if !own.contains(&place) {
                            *word = u64::MAX;
                        }
                    }
                    send.ready(&data, [partition]).await.unwrap();
                }
            }
        }
        for (_, _, send) in &mut sends {
            send.wait().await.unwrap();
            assert!(!send.is_active());
        }
        let mut ends = Vec::new();
        for receive in &mut receives {
            ends.push(receive.wait().await.unwrap());
            assert!(receive.has_arrived(0).await.unwrap());
        }
        statuses.push(ends);
    }
    drop(receives);
    for (round, ends) in rooms.into_iter().zip(statuses) {
        for ((room, status), (number, _)) in round.into_iter().zip(ends).zip(&mine) {
            got.lock().unwrap()[*number].push((room, status));
        }
    }
    mpi.finalize().await.unwrap();
}

fn outcomes(case: &Case) -> Vec<Vec<(Vec<u64>, Status)>> {
    let got: Got = Arc::new(Mutex::new(vec![Vec::new(); case.pairs.len()]));
    let shared = Arc::new(case.clone());
    run_with(case.ranks, case.setting, RUNS[case.run], |wire| {
        program(wire, Arc::clone(&shared), Arc::clone(&got))
    })
    .unwrap();
    let got = got.lock().unwrap();
    got.clone()
}

/// The data that each round must have, and the status.
fn expected(case: &Case) -> Vec<Vec<(Vec<u64>, Status)>> {
    let of = |(number, pair): (usize, &Pair)| {
        let status = Status {
            source: pair.from,
            tag: pair.tag,
            bytes: 8 * pair.words() as u64,
            is_cancelled: false,
        };
        let rounds = 0..case.rounds;
        rounds
            .map(|round| (pair.data(number, round), status))
            .collect()
    };
    case.pairs.iter().enumerate().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn partitions_arrive_where_they_must(case in cases()) {
        prop_assert_eq!(outcomes(&case), expected(&case));
    }

    /// The receiver sees all partitions but those with data of one that is held back.
    #[test]
    fn a_partition_arrives_when_all_its_data_have(
        sent in 1u32..9, received in 1u32..9, held in 0u32..9, seed: u64,
    ) {
        let held = held % sent;
        let setting = Setting { room: 48, seed };
        let cut = |count: u32, other: u32| Partitions::new(count.into(), 8 * u64::from(other));
        let outcome = run(2, setting, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let mut words = vec![7u64; (sent * received) as usize];
            if world.rank() == 0 {
                let partitions = cut(sent, received).unwrap();
                let mut send = world.partitioned_send(partitions, 1, 5).await.unwrap();
                send.start().await.unwrap();
                let others = (0..sent).filter(|&other| other != held).map(i64::from);
                send.ready(&words, others).await.unwrap();
                let mut go = [0u8];
                world.receive(&mut go, Source::Rank(1), Tag::Is(1)).await.unwrap();
                send.ready(&words, [i64::from(held)]).await.unwrap();
                send.wait().await.unwrap();
            } else {
                words.fill(0);
                let partitions = cut(received, sent).unwrap();
                let from = Source::Rank(0);
                let mut receive = world.partitioned_receive(partitions, from, 5).await.unwrap();
                receive.start(&mut words).await.unwrap();
                // A word of data has the number of its place.
                let is_held = |partition: u32| {
                    (partition * sent..(partition + 1) * sent).any(|word| word / received == held)
                };
                for partition in (0..received).filter(|&partition| !is_held(partition)) {
                    while !receive.has_arrived(partition.into()).await.unwrap() {}
                }
                for partition in (0..received).filter(|&partition| is_held(partition)) {
                    assert!(!receive.has_arrived(partition.into()).await.unwrap());
                }
                world.send(&[1u8], 0, 1).await.unwrap();
                receive.wait().await.unwrap();
                drop(receive);
                assert!(words.iter().all(|&word| word == 7));
            }
            mpi.finalize().await
        });
        prop_assert_eq!(outcome, Ok(vec![Ok(()); 2]));
    }
}

/// The comparison finds a round that another one's data have come to.
#[test]
fn data_of_another_round_are_found_out() {
    let pair = Pair {
        from: 0,
        to: 1,
        tag: 0,
        sent: 3,
        received: 2,
        unit: 1,
        orders: vec![vec![2, 0, 1], vec![0, 2, 1]],
    };
    let case = Case {
        ranks: 2,
        rounds: 2,
        pairs: vec![pair],
        setting: SMALL,
        run: 0,
    };
    let mut mixed = outcomes(&case);
    assert_eq!(mixed, expected(&case));
    mixed[0].swap(0, 1);
    assert_ne!(mixed, expected(&case));
}

#[test]
fn wrong_use_is_an_error() {
    let outcome = run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let own = mpi.own();
        let class = |made: Result<(), sme_mpi::error::MpiError>| made.unwrap_err().class;
        let three = Partitions::new(3, 8).unwrap();
        let (data, mut room) = ([1u64, 2, 3], [0u64; 3]);
        let mut send = own.partitioned_send(three, 0, 0).await.unwrap();
        let mut receive = own
            .partitioned_receive(three, Source::Rank(0), 0)
            .await
            .unwrap();
        assert_eq!(class(send.ready(&data, [0]).await), ErrorClass::Request);
        send.start().await.unwrap();
        assert_eq!(class(send.start().await), ErrorClass::Request);
        for wrong in [vec![3], vec![-1], vec![1, 1]] {
            assert_eq!(class(send.ready(&data, wrong).await), ErrorClass::Arg);
        }
        send.ready(&data, [1]).await.unwrap();
        assert_eq!(class(send.ready(&data, [1]).await), ErrorClass::Arg);
        assert_eq!(class(send.ready(&data[..2], [2]).await), ErrorClass::Buffer);
        receive.start(&mut room).await.unwrap();
        let beyond = receive.has_arrived(3).await.unwrap_err();
        assert_eq!(beyond.class, ErrorClass::Arg);
        send.ready(&data, [2, 0]).await.unwrap();
        send.wait().await.unwrap();
        receive.wait().await.unwrap();
        drop(receive);
        assert_eq!(room, data);

        // Less room than data; no process.
        let two = Partitions::new(1, 16).unwrap();
        let mut small = [0u64; 2];
        let mut send = own.partitioned_send(three, 0, 0).await.unwrap();
        let mut receive = own
            .partitioned_receive(two, Source::Rank(0), 0)
            .await
            .unwrap();
        receive.start(&mut small).await.unwrap();
        send.start().await.unwrap();
        send.ready(&data, 0..3).await.unwrap();
        send.wait().await.unwrap();
        assert_eq!(
            receive.wait().await.unwrap_err().class,
            ErrorClass::Truncate
        );
        drop(receive);
        assert_eq!(small, [1, 2]);
        let mut none = own.partitioned_send(three, PROC_NULL, 0).await.unwrap();
        none.start().await.unwrap();
        assert!(!none.is_over());
        none.ready(&data, 0..3).await.unwrap();
        none.wait().await.unwrap();
        let from = Source::Rank(PROC_NULL);
        let mut nothing = own.partitioned_receive(three, from, 0).await.unwrap();
        nothing.start(&mut small).await.unwrap();
        assert_eq!(nothing.wait().await, Ok(Status::NO_PROCESS));

        let any = own.partitioned_receive(three, Source::Any, 0).await;
        assert_eq!(any.unwrap_err().class, ErrorClass::Rank);
        let tag = own.partitioned_send(three, 0, -1).await;
        assert_eq!(tag.unwrap_err().class, ErrorClass::Tag);
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(())]));
    let class = |count, bytes| Partitions::new(count, bytes).unwrap_err().class;
    assert_eq!(class(-1, 0), ErrorClass::Arg);
    assert_eq!(class(i64::from(MOST_PARTITIONS) + 1, 0), ErrorClass::Arg);
    assert_eq!(class(2, u64::MAX / 2), ErrorClass::Count);
}
