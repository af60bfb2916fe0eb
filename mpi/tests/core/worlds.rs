//! Worlds that grow and shrink in place.

use std::sync::Arc;

use proptest::prelude::*;
use sme_mpi::channel::Channel;
use sme_mpi::error::{ErrorClass, Fault, MpiError};
use sme_mpi::op::Op;
use sme_mpi::rank::{Arrival, Blocks, Mpi, Source, Starter, Tag};
use sme_mpi::wires::{RUNS, Setting, Wire, run, run_with};

use super::SMALL;
use super::ports::{Told, within};

/// Ranks that are there already, and wait to be told the port: to start them is to tell it.
struct Waiting(Told);

impl Starter for Waiting {
    async fn start(&self, counts: &[u32], _: Arrival, port: &str) -> Result<(), Fault> {
        match counts.iter().sum() {
            0 => Err(Fault::new(ErrorClass::Spawn, "maxprocs", "none")),
            _ => {
                self.0.tells(port);
                Ok(())
            }
        }
    }
}

/// The sum of the ranks of the world.
async fn sum_of_ranks(mpi: &Mpi<Wire>) -> Result<u64, MpiError> {
    let world = mpi.world();
    let mut sum = [0_u64];
    world
        .allreduce(&[u64::from(world.rank())], &mut sum, &Op::Sum)
        .await?;
    Ok(sum[0])
}

/// Messages and calls under way go on while the world grows, and receives from any rank take
/// messages of ranks that come.
#[test]
fn a_world_grows_under_messages() {
    for abilities in RUNS {
        let told = Told::default();
        let ran = run_with(5, SMALL, abilities, |wire| {
            let told = told.clone();
            async move {
                let (number, mpi) = within(wire, &[2, 3]);
                if number == 1 {
                    let port = told.hears(&mpi).await;
                    mpi.join(&port).await.unwrap();
                    let world = mpi.world();
                    assert_eq!(world.size(), 5);
                    if world.rank() == 4 {
                        world.send(&[77_u64], 0, 9).await.unwrap();
                    }
                } else {
                    let before = mpi.world();
                    // An odd number of collective calls, of which those that come know nothing.
                    before.barrier().await.unwrap();
                    let half = before.split(Some(before.rank()), 0).await.unwrap().unwrap();
                    let (mut any, mut one) = ([0_u64], [0_u64]);
                    let (mut from_any, mut to_first) = (None, None);
                    match before.rank() {
                        0 => {
                            let receive = before.ireceive(&mut any, Source::Any, Tag::Is(9));
                            from_any = Some(receive.await.unwrap());
                        }
                        _ => to_first = Some(before.isend(&[5_u64], 0, 3).await.unwrap()),
                    }
                    mpi.infect(&Waiting(told.clone()), 3).await.unwrap();
                    let wrong = before.barrier().await.unwrap_err();
                    assert_eq!(wrong.class, ErrorClass::Comm);
                    assert!(
                        wrong.to_string().contains("the world has changed"),
                        "{wrong}"
                    );
                    let world = mpi.world();
                    assert_eq!((world.size(), world.rank()), (5, before.rank()));
                    if let Some(mut receive) = from_any {
                        // Sent before it grew, received after.
                        world
                            .receive(&mut one, Source::Rank(1), Tag::Is(3))
                            .await
                            .unwrap();
                        assert_eq!(one, [5]);
                        let status = receive.wait().await.unwrap();
                        drop(receive);
                        assert_eq!((any[0], status.source), (77, 4));
                    }
                    if let Some(mut send) = to_first {
                        send.wait().await.unwrap();
                    }
                    half.barrier().await.unwrap();
                    half.free().await.unwrap();
                }
                assert_eq!(sum_of_ranks(&mpi).await, Ok(10));
                let twin = mpi.world().dup().await.unwrap();
                twin.barrier().await.unwrap();
                assert!(mpi.world().free().await.is_err());
                mpi.finalize().await.unwrap();
            }
        });
        assert_eq!(ran.unwrap().len(), 5);
    }
}

/// Where none can be started all ranks hear of it, and go on as before.
#[test]
fn a_world_that_cannot_grow_stays() {
    run(3, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let error = mpi.infect(&Waiting(Told::default()), 0).await.unwrap_err();
        assert_eq!(
            (error.class, error.call),
            (ErrorClass::Spawn, "MPI_Comm_infect")
        );
        assert_eq!(sum_of_ranks(&mpi).await, Ok(3));
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

/// All ranks get an error if a message is under way between ranks that part; when it is over they
/// can part.
#[test]
fn ranks_with_something_under_way_do_not_part() {
    for abilities in RUNS {
        for case in 0..5 {
            let ran = run_with(4, SMALL, abilities, |wire| async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let me = world.rank();
                let stays = me < 2;
                let mut none = [0_u64];
                let long = vec![me; 10_000];
                let mut into = vec![0; 10_000];
                // Rank 1 stays, and rank 2 leaves.
                let wrong = match (case, me) {
                    (0, 2) => Some(world.isend(&long, 1, 0).await.unwrap()),
                    (1, 1) => Some(
                        world
                            .ireceive(&mut none, Source::Rank(2), Tag::Any)
                            .await
                            .unwrap(),
                    ),
                    (2, 2) => Some(
                        world
                            .ireceive(&mut none, Source::Any, Tag::Any)
                            .await
                            .unwrap(),
                    ),
                    (3, 2) => Some(world.issend(&[1_u64], 1, 0).await.unwrap()),
                    (4, 1) => Some(world.isend(&[1_u64], 2, 0).await.unwrap()),
                    _ => None,
                };
                let error = mpi.retreat(stays).await.unwrap_err();
                assert_eq!(
                    (error.class, error.call),
                    (ErrorClass::Pending, "MPI_Comm_retreat")
                );
                let text = error.to_string();
                let expected: &[&str] = match case {
                    // The lower rank is named: the receiver of a long message knows of it, too.
                    0 | 3 => &[
                        "rank 1 has not received a message of rank 2",
                        "rank 2 has a send to rank 1",
                    ],
                    1 => &["rank 1 has a receive from rank 2"],
                    2 => &["rank 2 has a receive from any rank under way"],
                    // Some channels let such a message wait with its sender.
                    _ => &[
                        "rank 2 has not received a message of rank 1",
                        "rank 1 has a send to rank 2",
                    ],
                };
                assert!(
                    expected.iter().any(|expected| text.contains(expected)),
                    "{case} {text}"
                );
                // The world is what it was, and the call can be made again.
                assert_eq!(sum_of_ranks(&mpi).await, Ok(6));
                match (case, me) {
                    (0, 1) => drop(
                        world
                            .receive(&mut into, Source::Rank(2), Tag::Is(0))
                            .await
                            .unwrap(),
                    ),
                    (1, 2) => world.send(&[1_u64], 1, 0).await.unwrap(),
                    (2, 3) => world.send(&[1_u64], 2, 0).await.unwrap(),
                    (3, 1) => drop(
                        world
                            .receive(&mut into[..2], Source::Rank(2), Tag::Is(0))
                            .await
                            .unwrap(),
                    ),
                    (4, 2) => drop(
                        world
                            .receive(&mut into[..2], Source::Rank(1), Tag::Is(0))
                            .await
                            .unwrap(),
                    ),
                    _ => {}
                }
                if let Some(mut wrong) = wrong {
                    wrong.wait().await.unwrap();
                }
                mpi.retreat(stays).await.unwrap();
                assert_eq!(sum_of_ranks(&mpi).await, Ok(1));
                mpi.finalize().await.unwrap();
            });
            assert!(ran.is_ok(), "case {case}: {ran:?}");
        }
    }
}

/// A world without ranks is none.
#[test]
fn not_all_ranks_leave() {
    run(3, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let error = mpi.retreat(false).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Arg);
        mpi.retreat(true).await.unwrap();
        assert_eq!(sum_of_ranks(&mpi).await, Ok(3));
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

/// The communicator of these ranks of the world, if this rank is among them.
fn color(rank: u32, ranks: &[u32]) -> Option<u32> {
    ranks.contains(&rank).then_some(0)
}

proptest! {
    /// Ranks that stay and ranks that leave have a world of their own, in the order of their ranks.
    /// A communicator lives as long as it has ranks of one side only, and otherwise names a rank
    /// that has left.
    #[test]
    fn both_sides_have_a_world(
        stay in prop::collection::vec(any::<bool>(), 1..8),
        members in prop::collection::vec(any::<bool>(), 8),
        seed: u64, room in 20..200_usize,
    ) {
        let mut stay = stay;
        stay.push(true);
        let stay = Arc::new(stay);
        let ranks = stay.len() as u32;
        let group: Arc<Vec<u32>> = Arc::new((0..ranks).filter(|&rank| members[rank as usize % 8]).collect());
        let ran = run(ranks, Setting { room, seed }, |wire| {
            let (stay, group) = (Arc::clone(&stay), Arc::clone(&group));
            async move {
                let me = wire.rank();
                let mpi = Mpi::new(wire);
                let some = mpi.world().split(color(me, &group), 0).await.unwrap();
                let stays = stay[me as usize];
                mpi.retreat(stays).await.unwrap();
                let world = mpi.world();
                let side: Vec<u32> = (0..ranks).filter(|&rank| stay[rank as usize] == stays).collect();
                assert_eq!(world.size() as usize, side.len());
                assert_eq!(side[world.rank() as usize], me);
                let mut all = vec![0_u32; side.len()];
                world.allgather(&[me], &mut all).await.unwrap();
                assert_eq!(all, side);
                if let Some(some) = some {
                    let gone = group.iter().find(|&&rank| stay[rank as usize] != stays);
                    match gone {
                        None => some.barrier().await.unwrap(),
                        Some(gone) => {
                            let error = some.barrier().await.unwrap_err();
                            assert_eq!(error.class, ErrorClass::Comm);
                            let expected = format!("rank {gone} of the job has left the communicator");
                            assert!(error.to_string().contains(&expected), "{error}");
                        }
                    }
                }
                mpi.finalize().await.unwrap();
            }
        });
        prop_assert!(ran.is_ok(), "{ran:?}");
    }

    /// A world that grows and shrinks over and over keeps its ranks apart from all others, and what
    /// those that leave do with each other.
    #[test]
    fn a_world_grows_after_it_has_shrunk(
        steps in 1..4_u32, way in 0..RUNS.len(), seed: u64, room in 20..200_usize,
    ) {
        // Two ranks begin; two come and leave at each step.
        let told: Arc<Vec<Told>> = Arc::new((0..steps).map(|_| Told::default()).collect());
        let ranks = 2 + 2 * steps;
        let ran = run_with(ranks, Setting { room, seed }, RUNS[way], |wire| {
            let told = Arc::clone(&told);
            async move {
                let sizes = vec![2; steps as usize + 1];
                let (number, mpi) = within(wire, &sizes);
                if number > 0 {
                    let port = told[number - 1].hears(&mpi).await;
                    mpi.join(&port).await.unwrap();
                    assert_eq!(sum_of_ranks(&mpi).await, Ok(6));
                    mpi.retreat(false).await.unwrap();
                    assert_eq!(sum_of_ranks(&mpi).await, Ok(1));
                } else {
                    for step in told.iter() {
                        mpi.infect(&Waiting(step.clone()), 2).await.unwrap();
                        assert_eq!(sum_of_ranks(&mpi).await, Ok(6));
                        mpi.retreat(true).await.unwrap();
                    }
                    assert_eq!(sum_of_ranks(&mpi).await, Ok(1));
                }
                mpi.finalize().await.unwrap();
            }
        });
        prop_assert!(ran.is_ok(), "{ran:?}");
    }

    /// Each rank gets its block of any two distributions, and a wrong length is an error.
    #[test]
    fn blocks_are_dealt_out_again(
        units in 0..40_u64, unit in 1..4_u64, from in 1..7_u32, to in 1..7_u32, seed: u64,
        room in 20..200_usize,
    ) {
        let ranks = from.max(to);
        let ran = run(ranks, Setting { room, seed }, |wire| async move {
            let me = wire.rank();
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let [from, to] = [from, to].map(|ranks| Blocks { units, unit, ranks });
            let own: Vec<u64> = from.of(me).map(|element| 3 * element).collect();
            let expected: Vec<u64> = to.of(me).map(|element| 3 * element).collect();
            let mut came = vec![0; expected.len()];
            world.redistribute(&own, &mut came, (from, to)).await.unwrap();
            assert_eq!(came, expected);
            let more = vec![0; own.len() + 1];
            let wrong = world.redistribute(&more, &mut came, (from, to)).await.unwrap_err();
            assert_eq!(wrong.class, ErrorClass::Count);
            let others = Blocks { units: units + 1, ..to };
            assert!(world.redistribute(&own, &mut came, (from, others)).await.is_err());
            let ranks = world.size() + 1;
            assert!(world.redistribute(&own, &mut came, (Blocks { ranks, ..from }, to)).await.is_err());
            mpi.finalize().await.unwrap();
        });
        prop_assert!(ran.is_ok(), "{ran:?}");
    }
}
