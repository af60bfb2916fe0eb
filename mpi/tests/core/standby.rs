//! Processes that are started on ranks on standby.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_mpi::channel::Channel;
use sme_mpi::error::{ErrorClass, Fault};
use sme_mpi::op::Op;
use sme_mpi::rank::{Communicator, Mpi};
use sme_mpi::wires::{RUNS, Setting, Wire, run_with};

/// The ranks without a process, and how many have one.
#[derive(Debug)]
struct Ranks {
    free: BTreeSet<u32>,
    living: u32,
    /// The ranks whose processes have been started later.
    later: BTreeSet<u32>,
    /// Processes that have been started later.
    started: u32,
}

type Shared = Arc<Mutex<Ranks>>;

/// Takes free ranks from the highest number on, so that worlds are not in the order of the job.
fn takes(shared: &Shared, counts: &[u32]) -> Result<Option<Vec<u32>>, Fault> {
    let mut ranks = shared.lock().unwrap();
    let count = counts.iter().sum::<u32>();
    if (ranks.free.len() as u32) < count {
        return match (ranks.free.len() + ranks.later.len()) as u32 >= count {
            true => Ok(None),
            false => Err(Fault::new(ErrorClass::Spawn, "maxprocs", "there are fewer")),
        };
    }
    let taken: Vec<u32> = (0..count).filter_map(|_| ranks.free.pop_last()).collect();
    ranks.living += count;
    ranks.later.extend(&taken);
    ranks.started += count;
    Ok(Some(taken))
}

/// The number of ranks of `comm`, as they count it, and the latest generation among them.
async fn counted(comm: &Communicator<'_, Wire>, generation: usize) -> (u32, usize) {
    let (mut sum, mut latest) = ([0_u64], [0_u64]);
    comm.allreduce(&[1_u64], &mut sum, &Op::Sum).await.unwrap();
    let own = [generation as u64];
    comm.allreduce(&own, &mut latest, &Op::Max).await.unwrap();
    (sum[0] as u32, latest[0] as usize)
}

/// Performs the part of a process: it meets its parent, starts others round by round, each of which
/// does the same with one round fewer, and ends.
async fn lives(mpi: &Mpi<Wire>, shared: &Shared, rounds: &[Vec<u32>]) {
    let world = mpi.world();
    let mut generation = 0;
    if let Some(parent) = mpi.parent() {
        let all = parent.merge(true).await.unwrap();
        let parents = parent.handle().remote_group().unwrap().size();
        let (count, latest) = counted(&all, 0).await;
        assert_eq!(count, parents + world.size());
        generation = latest + 1;
        all.disconnect().await.unwrap();
        parent.disconnect().await.unwrap();
    }
    for (round, counts) in (0_u32..).zip(rounds.get(generation..).unwrap_or_default()) {
        assert_eq!(counted(&world, generation).await.0, world.size());
        let starter = mpi.on_standby(|counts| takes(shared, counts));
        let root = round % world.size();
        match world.spawn_multiple(&starter, counts, root).await {
            Err(error) => assert_eq!(error.class, ErrorClass::Spawn),
            Ok(children) => {
                let remote = children.handle().remote_group().unwrap().size();
                assert_eq!(remote, counts.iter().sum::<u32>());
                let all = children.merge(false).await.unwrap();
                assert_eq!(counted(&all, generation).await.0, world.size() + remote);
                all.disconnect().await.unwrap();
                children.disconnect().await.unwrap();
            }
        }
    }
    mpi.finalize().await.unwrap();
}

/// A rank's processes, one after the other, until no rank has one.
async fn goes_on(mpi: Mpi<Wire>, shared: Shared, begin: u32, rounds: Arc<Vec<Vec<u32>>>) {
    mpi.begins_among(begin);
    let rank = mpi.channel().rank();
    let mut has_process = rank < begin;
    loop {
        if !has_process {
            let Some(begun) = mpi.stands_by().await else {
                return;
            };
            mpi.has_parent(&begun.port).await.unwrap();
        }
        lives(&mpi, &shared, &rounds).await;
        let is_last = {
            let mut ranks = shared.lock().unwrap();
            ranks.free.insert(rank);
            ranks.later.remove(&rank);
            ranks.living -= 1;
            ranks.living == 0
        };
        if is_last {
            mpi.dismisses().await;
            return;
        }
        has_process = false;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every process that is started meets those that have had it started, ranks are used again,
    /// and in the end no process is left, in any order of events.
    #[test]
    fn processes_come_and_go(
        begin in 1..4_u32,
        spare in 0..4_u32,
        rounds in prop::collection::vec(prop::collection::vec(1..3_u32, 1..3), 0..3),
        room in 8..64_usize,
        seed: u64,
    ) {
        let universe = begin + spare;
        let rounds = Arc::new(rounds);
        for abilities in RUNS {
            let shared = Arc::new(Mutex::new(Ranks {
                free: (begin..universe).collect(),
                living: begin,
                later: BTreeSet::new(),
                started: 0,
            }));
            let ran = run_with(universe, Setting { room, seed }, abilities, |wire| {
                goes_on(Mpi::new(wire), shared.clone(), begin, rounds.clone())
            });
            prop_assert_eq!(ran.unwrap().len(), universe as usize);
            let ranks = shared.lock().unwrap();
            prop_assert_eq!(ranks.free.len(), universe as usize);
            prop_assert!(ranks.later.is_empty());
            if spare >= rounds.iter().flatten().sum::<u32>() && !rounds.is_empty() {
                prop_assert!(ranks.started > 0);
            }
        }
    }
}
