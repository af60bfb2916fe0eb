//! Calls that overlap, that do not fit together, and that are wrong.

use sme_mpi::error::{ErrorClass, MpiError};
use sme_mpi::op::Op;
use sme_mpi::rank::request::{Tested, test_all, test_any, wait_all, wait_any, wait_some};
use sme_mpi::rank::{InPlace, Mpi, PROC_NULL, Request, Source, Status, Tag};
use sme_mpi::wires::{Setting, run};

const SMALL: Setting = Setting { room: 48, seed: 5 };

/// Collective calls that have begun run side by side, and end in any order.
#[test]
fn calls_overlap() {
    for seed in 0..50 {
        let outcome = run(5, Setting { room: 64, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let rank = world.rank();
            let (mut sum, mut most, mut all) = ([0u64], [0i32], [0u32; 5]);
            let (own, own_signed) = ([u64::from(rank)], [rank as i32]);
            let own_short = [rank];
            let mut word = [if rank == 3 { 77u16 } else { 0 }];
            let mut requests = [
                world.iallreduce(&own, &mut sum, &Op::Sum).await?,
                world.ibroadcast(&mut word, 3).await?,
                world.iallreduce(&own_signed, &mut most, &Op::Max).await?,
                world.iallgather(&own_short, &mut all).await?,
                world.ibarrier().await?,
            ];
            if rank % 2 == 0 {
                requests.reverse();
            }
            for request in &mut requests {
                request.wait().await?;
            }
            assert_eq!((sum, word, most, all), ([10], [77], [4], [0, 1, 2, 3, 4]));
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); 5]), "seed {seed}");
    }
}

/// A rank that has finalized makes no call, nor does it finalize again.
#[test]
fn calls_after_the_end_are_errors() {
    let ended = run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        mpi.finalize().await?;
        let told = [mpi.world().barrier().await, mpi.finalize().await];
        Ok::<_, MpiError>(told.map(|ended| ended.map_err(|error| error.to_string())))
    });
    for (rank, told) in ended.unwrap().into_iter().enumerate() {
        let told = told.unwrap();
        for (ended, call) in told.iter().zip(["MPI_Barrier", "MPI_Finalize"]) {
            let text = ended.as_ref().unwrap_err();
            assert!(
                text.contains("MPI_Finalize has been called before"),
                "{text}"
            );
            assert!(
                text.contains(call) && text.contains(&format!("rank {rank}")),
                "{text}"
            );
        }
    }
}

/// Ranks that make different calls, or name different roots, are told so.
#[test]
fn calls_that_do_not_match_are_errors() {
    let outcome = run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let (world, mut word) = (mpi.world(), [1u64]);
        match world.rank() {
            0 => world.allreduce(&[1u64], &mut word, &Op::Sum).await,
            _ => world.barrier().await,
        }
    });
    let errors: Vec<MpiError> = outcome
        .unwrap()
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert_eq!(errors.len(), 2);
    let expected =
        "rank 0: MPI_Allreduce: comm: rank 1 of the job called MPI_Barrier here (MPI_ERR_COMM)";
    assert_eq!(errors[0].to_string(), expected);

    let outcome = run(3, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let (world, mut word) = (mpi.world(), [1u64]);
        // Rank 2 takes rank 1 for the root, which sends it nothing but waits for rank 0's.
        let root = [0, 0, 0][world.rank() as usize];
        let mut words = [0u64; 2];
        match world.rank() {
            2 => world.broadcast(&mut words, root).await,
            _ => world.broadcast(&mut word, root).await,
        }
    });
    let error = outcome.unwrap().into_iter().find_map(Result::err).unwrap();
    assert_eq!((error.rank, error.class), (2, ErrorClass::Count));
}

/// A rank that leaves out a call meets the others in its next one, which is another: it has an
/// error, and those that wait for it are reported.
#[test]
fn a_call_that_one_rank_leaves_out_is_found() {
    for leaves_barrier in [false, true] {
        let outcome = run(2, SMALL, |wire| async move {
            let mpi = Mpi::new(wire);
            let (world, mut word) = (mpi.world(), [1u64]);
            if world.rank() == 0 {
                world.broadcast(&mut word, 0).await?;
                world.barrier().await?;
            } else if !leaves_barrier {
                world.barrier().await?;
            }
            mpi.finalize().await
        });
        match outcome {
            Err(stuck) => assert_eq!(stuck.0[0].0, 0),
            Ok(results) => assert!(results.iter().any(Result::is_err)),
        }
    }
}

#[test]
fn wrong_arguments_name_rank_call_and_argument() {
    run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let mut two = [0.0f64; 2];
        let error = world.broadcast(&mut two, 1).await.unwrap_err();
        let expected = "rank 0: MPI_Bcast: root: there is no rank 1 among 1 (MPI_ERR_ROOT)";
        assert_eq!(error.to_string(), expected);
        let error = world.allreduce(&[1.0f64; 2], &mut two, &Op::Band).await;
        assert_eq!(error.unwrap_err().class, ErrorClass::Op);
        let error = world.allreduce(&[1.0f64], &mut two, &Op::Sum).await;
        assert_eq!(error.unwrap_err().class, ErrorClass::Count);
        let error = world.allreduce(&[1.0f64; 2], &mut two, &Op::NoOp).await;
        assert_eq!(error.unwrap_err().class, ErrorClass::Op);
        world.allreduce(InPlace, &mut two, &Op::Sum).await.unwrap();
    })
    .unwrap();
}

/// Situations 15 and 16: waits for what is not active end at once.
#[test]
fn waits_for_what_is_not_active_end_at_once() {
    run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let send = world.send_init(0, 3);
        let all = world.allreduce_init(&Op::Sum);
        let mut requests = [Request::null(&mpi), send.request(), all.request()];
        assert_eq!(requests[1].wait().await, Ok(Status::EMPTY));
        assert_eq!(requests[2].wait().await, Ok(Status::EMPTY));
        assert_eq!(wait_any(&mut requests).await, Ok(None));
        assert_eq!(test_any(&mut requests).await, Ok(Tested::NoneActive));
        assert_eq!(wait_some(&mut requests).await, Ok(None));
        assert_eq!(wait_all(&mut requests).await, Ok(vec![Status::EMPTY; 3]));
        // Started twice, it is active once.
        let mut came = [0u8];
        let mut started = send.start(&[9u8]).await.unwrap();
        let error = send.start(&[9u8]).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Request);
        world
            .receive(&mut came, Source::Rank(0), Tag::Is(3))
            .await
            .unwrap();
        started.wait().await.unwrap();
        assert!(!started.is_active());
        let mut again = send.start(&[8u8]).await.unwrap();
        world
            .receive(&mut came, Source::Any, Tag::Any)
            .await
            .unwrap();
        again.wait().await.unwrap();
        assert_eq!(came, [8]);
    })
    .unwrap();
}

/// Situation 5 of requests: a test of one makes progress on all others.
#[test]
fn a_test_makes_progress_on_all() {
    let outcome = run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let other = 1 - world.rank();
        let long = vec![3u64; 5_000];
        let mut came = vec![0u64; 5_000];
        let mut never = [0u8];
        {
            let mut requests = [
                world.isend(&long, other, 1).await?,
                world
                    .ireceive(&mut came, Source::Rank(other), Tag::Is(1))
                    .await?,
            ];
            let mut waiting = world.ireceive(&mut never, Source::Any, Tag::Is(9)).await?;
            while test_all(&mut requests).await.unwrap().is_none() {
                assert_eq!(waiting.test().await?, None);
            }
            waiting.cancel()?;
            assert!(waiting.wait().await?.is_cancelled);
        }
        assert_eq!(came, long);
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 2]));
}

/// Situation 17 of several requests: each has its error, and the call says that some have.
#[test]
fn truncation_is_in_the_statuses() {
    run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        if world.rank() == 0 {
            for tag in 0..4 {
                world.send(&[1u64, 2], 1, tag).await.unwrap();
            }
            return mpi.finalize().await.unwrap();
        }
        let (mut short, mut whole) = ([0u64], [0u64; 2]);
        {
            let mut requests = [
                world
                    .ireceive(&mut short, Source::Any, Tag::Is(0))
                    .await
                    .unwrap(),
                world
                    .ireceive(&mut whole, Source::Any, Tag::Is(1))
                    .await
                    .unwrap(),
            ];
            let failed = wait_all(&mut requests).await.unwrap_err();
            assert_eq!(failed.error.class, ErrorClass::InStatus);
            let class = failed.statuses[0].as_ref().unwrap_err().class;
            assert_eq!(class, ErrorClass::Truncate);
            assert_eq!(failed.statuses[1].as_ref().unwrap().bytes, 16);
        }
        assert_eq!((short, whole), ([1], [1, 2]));
        let message = world.matched_probe(Source::Any, Tag::Is(2)).await.unwrap();
        let error = world
            .receive_message(message, &mut short)
            .await
            .unwrap_err();
        assert_eq!(
            (error.class, error.call),
            (ErrorClass::Truncate, "MPI_Mrecv")
        );
        let receive = world.receive_init(Source::Rank(0), Tag::Is(3));
        let mut started = [receive.start_receive(&mut short).await.unwrap()];
        let error = wait_any(&mut started).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Truncate);
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

/// Situation 18: a buffered send needs no receive to end, its data are copied, and it is delivered
/// by `MPI_Finalize`. Situation 19: a freed send is delivered, too.
#[test]
fn sends_without_an_owner_are_delivered() {
    run(2, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        if world.rank() == 0 {
            let mut long = vec![5u64; 4_000];
            let error = world.bsend(&long, 1, 0).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::Buffer);
            mpi.attach_buffer(40_000).unwrap();
            assert!(mpi.attach_buffer(8).is_err());
            world.bsend(&long, 1, 0).await.unwrap();
            assert!(world.bsend(&long, 1, 0).await.is_err());
            long.fill(6);
            world.isend(&long, 1, 1).await.unwrap().free().unwrap();
            return mpi.finalize().await.unwrap();
        }
        let mut came = vec![0u64; 4_000];
        for (tag, value) in [(1, 6), (0, 5)] {
            let mut receive = world
                .ireceive(&mut came, Source::Rank(0), Tag::Is(tag))
                .await
                .unwrap();
            receive.wait().await.unwrap();
            drop(receive);
            assert!(came.iter().all(|&word| word == value));
        }
        mpi.finalize().await.unwrap();
    })
    .unwrap();
}

/// Situation 13: a synchronous send without a receive is cancelled, and the wait then ends.
#[test]
fn a_send_is_cancelled_or_received() {
    for seed in 0..30 {
        run(2, Setting { room: 200, seed }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            if world.rank() == 0 {
                let mut send = world.issend(&[1u64], 1, 0).await.unwrap();
                for _ in 0..seed % 5 {
                    assert_eq!(send.test().await.unwrap(), None);
                }
                send.cancel().unwrap();
                let is_cancelled = send.wait().await.unwrap().is_cancelled;
                world.send(&[u8::from(is_cancelled)], 1, 1).await.unwrap();
                return mpi.finalize().await.unwrap();
            }
            let mut is_cancelled = [0u8];
            world
                .receive(&mut is_cancelled, Source::Rank(0), Tag::Is(1))
                .await
                .unwrap();
            assert_eq!(is_cancelled, [1]);
            assert_eq!(world.iprobe(Source::Any, Tag::Any).await.unwrap(), None);
            mpi.finalize().await.unwrap();
        })
        .unwrap();
    }
}

#[test]
fn no_process_is_a_peer() {
    run(1, SMALL, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        world.send(&[1u8], PROC_NULL, 0).await.unwrap();
        let mut untouched = [7u8];
        let no_rank = Source::Rank(PROC_NULL);
        let status = world
            .receive(&mut untouched, no_rank, Tag::Any)
            .await
            .unwrap();
        assert_eq!((status, untouched), (Status::NO_PROCESS, [7]));
        let probed = world.probe(no_rank, Tag::Any).await.unwrap();
        assert_eq!(probed, Status::NO_PROCESS);
        let exchanged =
            world.send_receive_replace(&mut untouched, (0, 4), (Source::Any, Tag::Is(4)));
        assert_eq!(exchanged.await.unwrap().bytes, 1);
    })
    .unwrap();
}
