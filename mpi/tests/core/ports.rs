//! Worlds that were started apart, and connect to each other.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_mpi::error::ErrorClass;
use sme_mpi::rank::{Mpi, Source, Tag};
use sme_mpi::wires::{RUNS, Setting, Wire, run, run_with};

use super::SMALL;

/// A name that one rank tells others, outside the library.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Option<String>>>);

impl Told {
    pub fn tells(&self, name: &str) {
        *self.0.lock().unwrap() = Some(name.to_owned());
    }

    /// Waits for it: asking for the time lets others go on.
    pub async fn hears(&self, mpi: &Mpi<Wire>) -> String {
        loop {
            let told = self.0.lock().unwrap().clone();
            if let Some(name) = told {
                return name;
            }
            mpi.wtime().await;
        }
    }
}

/// The world of `wire` among these, one behind the other.
pub fn within(wire: Wire, sizes: &[u32]) -> (usize, Mpi<Wire>) {
    use sme_mpi::channel::Channel;
    let mut begin = 0;
    for (number, &size) in sizes.iter().enumerate() {
        if wire.rank() < begin + size {
            let ranks: Vec<u32> = (begin..begin + size).collect();
            return (number, Mpi::within(wire, &ranks, 0).unwrap());
        }
        begin += size;
    }
    panic!("more ranks than the worlds have");
}

#[test]
fn two_worlds_become_one_and_part_again() {
    let runs = run(5, SMALL, |wire| {
        async move {
            let (number, mpi) = within(wire, &[3, 2]);
            let world = mpi.world();
            assert_eq!(world.size(), [3, 2][number]);
            let both = match number {
                0 => {
                    let port = match world.rank() {
                        2 => mpi.open_port().await.unwrap(),
                        _ => String::new(),
                    };
                    let both = world.accept(&port, 2).await.unwrap();
                    if world.rank() == 2 {
                        mpi.close_port(&port).await.unwrap();
                    }
                    both
                }
                _ => {
                    // Its name matters at the root alone.
                    let port = match world.rank() {
                        0 => "rank 2, port 1".to_owned(),
                        _ => String::new(),
                    };
                    loop {
                        match world.connect(&port, 0).await {
                            Ok(both) => break both,
                            // It is not open yet.
                            Err(error) => assert_eq!(error.class, ErrorClass::Port),
                        }
                    }
                }
            };
            assert_eq!(both.size(), world.size());
            assert_eq!(
                both.handle().remote_group().unwrap().size(),
                5 - world.size()
            );
            // Each sends to its partner, as far as there is one.
            if world.rank() < 2 {
                let sent = [u64::from(10 * number as u32 + world.rank())];
                let mut came = [0_u64];
                let mut receive = both
                    .ireceive(&mut came, Source::Rank(world.rank()), Tag::Is(1))
                    .await
                    .unwrap();
                both.send(&sent, world.rank(), 1).await.unwrap();
                receive.wait().await.unwrap();
                drop(receive);
                assert_eq!(came[0], u64::from(10 * (1 - number as u32) + world.rank()));
            }
            let all = both.merge(number == 1).await.unwrap();
            assert_eq!(all.rank(), 3 * number as u32 + world.rank());
            let mut ranks = [0_u64; 5];
            all.allgather(&[u64::from(all.rank())], &mut ranks)
                .await
                .unwrap();
            assert_eq!(ranks, [0, 1, 2, 3, 4]);
            all.disconnect().await.unwrap();
            both.disconnect().await.unwrap();
            // The world is what it was.
            let mut sum = [0_u64];
            let op = sme_mpi::op::Op::Sum;
            world.allreduce(&[1_u64], &mut sum, &op).await.unwrap();
            assert_eq!(sum[0], u64::from(world.size()));
            mpi.finalize().await.unwrap();
        }
    });
    assert_eq!(runs.unwrap().len(), 5);
}

/// All ranks of a group hear that a port is not there, and go on.
#[test]
fn a_port_that_is_not_open_is_an_error_of_all() {
    for abilities in RUNS {
        let told = Told::default();
        let over = Arc::new(Mutex::new(0));
        let ran = run_with(4, SMALL, abilities, |wire| {
            let (told, over) = (told.clone(), over.clone());
            async move {
                let (number, mpi) = within(wire, &[2, 2]);
                let world = mpi.world();
                if number == 0 {
                    if world.rank() == 0 {
                        let port = mpi.open_port().await.unwrap();
                        mpi.close_port(&port).await.unwrap();
                        let twice = mpi.close_port(&port).await.unwrap_err();
                        assert_eq!(twice.class, ErrorClass::Port);
                        told.tells(&port);
                    }
                    let port = told.hears(&mpi).await;
                    let closed = world.accept(&port, 0).await.unwrap_err();
                    assert!(
                        closed.to_string().contains("is not open at this rank"),
                        "{closed}"
                    );
                    let others = world.accept("rank 2, port 1", 1).await.unwrap_err();
                    assert_eq!(others.class, ErrorClass::Port);
                } else {
                    let port = told.hears(&mpi).await;
                    for wrong in [
                        port.as_str(),
                        "rank 1, port 7",
                        "rank 9, port 1",
                        "nonsense",
                    ] {
                        let refused = world.connect(wrong, 1).await.unwrap_err();
                        assert_eq!(refused.class, ErrorClass::Port, "{wrong}");
                        assert_eq!(refused.call, "MPI_Comm_connect");
                    }
                    let root = world.connect(&port, 5).await.unwrap_err();
                    assert_eq!(root.class, ErrorClass::Rank);
                }
                *over.lock().unwrap() += number;
                // Those who are asked answer while they make progress.
                while number == 0 && *over.lock().unwrap() < 2 {
                    mpi.own().iprobe(Source::Any, Tag::Any).await.unwrap();
                }
                mpi.finalize().await.unwrap();
            }
        });
        assert_eq!(ran.unwrap().len(), 4);
    }
}

#[test]
fn a_world_has_this_rank_and_each_once() {
    run(3, SMALL, |wire| async move {
        use sme_mpi::channel::Channel;
        let wrong: &[u32] = match wire.rank() {
            0 => &[1, 2],
            1 => &[1, 1],
            _ => &[2, 3],
        };
        let expected = match wire.rank() {
            1 => ErrorClass::Rank,
            _ => ErrorClass::Group,
        };
        assert_eq!(
            Mpi::within(wire, wrong, 0).map(drop).unwrap_err().class,
            expected
        );
    })
    .unwrap();
}

proptest! {
    /// However many connect, and whenever: each is accepted once, and is told its own answer; those
    /// that come when the port is closed are refused, and none is left waiting.
    #[test]
    fn each_that_connects_is_accepted_once(
        clients in prop::collection::vec(1..4_u32, 1..5), accepted in 0..5_usize, seed: u64, room in 20..200_usize,
    ) {
        let accepted = accepted.min(clients.len());
        let sizes: Vec<u32> = [2].into_iter().chain(clients.iter().copied()).collect();
        let total = sizes.iter().sum();
        let told = Told::default();
        let served: Arc<Mutex<Vec<u64>>> = Arc::default();
        let refused = Arc::new(Mutex::new(0));
        let setting = Setting { room, seed };
        let ran = run(total, setting, |wire| {
            let (told, served, refused) = (told.clone(), served.clone(), refused.clone());
            let sizes = sizes.clone();
            async move {
                let (number, mpi) = within(wire, &sizes);
                let world = mpi.world();
                let is_root = world.rank() == 0;
                if number == 0 {
                    let port = match is_root {
                        true => mpi.open_port().await.unwrap(),
                        false => String::new(),
                    };
                    if is_root {
                        told.tells(&port);
                    }
                    for _ in 0..accepted {
                        let client = world.accept(&port, 0).await.unwrap();
                        if is_root {
                            let mut who = [0_u64];
                            client.receive(&mut who, Source::Rank(0), Tag::Is(0)).await.unwrap();
                            served.lock().unwrap().push(who[0]);
                            client.send(&[2 * who[0]], 0, 0).await.unwrap();
                        }
                        client.disconnect().await.unwrap();
                    }
                    if is_root {
                        mpi.close_port(&port).await.unwrap();
                        // Others are refused while this rank makes progress.
                        while served.lock().unwrap().len() + *refused.lock().unwrap() < sizes.len() - 1 {
                            mpi.own().iprobe(Source::Any, Tag::Any).await.unwrap();
                        }
                    }
                } else {
                    let port = match is_root {
                        true => told.hears(&mpi).await,
                        false => String::new(),
                    };
                    match world.connect(&port, 0).await {
                        Ok(server) => {
                            if is_root {
                                let mut answer = [0_u64];
                                server.send(&[number as u64], 0, 0).await.unwrap();
                                server.receive(&mut answer, Source::Rank(0), Tag::Is(0)).await.unwrap();
                                assert_eq!(answer[0], 2 * number as u64);
                            }
                            server.disconnect().await.unwrap();
                        }
                        Err(error) => {
                            assert_eq!(error.class, ErrorClass::Port);
                            if is_root {
                                *refused.lock().unwrap() += 1;
                            }
                        }
                    }
                }
                mpi.finalize().await.unwrap();
                if number == 0 && is_root {
                    // For the next run.
                    *told.0.lock().unwrap() = None;
                    let mut served = std::mem::take(&mut *served.lock().unwrap());
                    served.sort_unstable();
                    served.dedup();
                    assert_eq!(served.len(), accepted);
                    *refused.lock().unwrap() = 0;
                }
            }
        });
        prop_assert!(ran.is_ok(), "{ran:?}");
    }
}
