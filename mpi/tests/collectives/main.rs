//! Collective calls: every algorithm, in every variant, against results that are computed in one
//! place.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod calls;
mod communicators;
mod neighbors;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use sme_mpi::buffer::{Buffer, BufferMut};
use sme_mpi::collective::choice::{Algorithm, Collective, algorithms};
use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::error::MpiError;
use sme_mpi::op::Op;
use sme_mpi::rank::{Communicator, InPlace, Layout, Mpi};
use sme_mpi::wires::{Setting, Wire, run};

/// A map x -> a x + b: its composition is associative and not commutative.
type Affine = [u32; 2];

fn compose(earlier: Affine, later: Affine) -> Affine {
    let [a, b] = earlier;
    let [c, d] = later;
    [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
}

/// Composition as an operation; `is_commutative` is a lie that the tests must find out.
fn composition(is_commutative: bool) -> Op {
    Op::user(
        is_commutative,
        Arc::new(|earlier, into, _| {
            let (earlier, _) = earlier.as_chunks::<8>();
            let (into, _) = into.as_chunks_mut::<8>();
            for (earlier, into) in earlier.iter().zip(into) {
                let later = bytemuck::pod_read_unaligned(&into[..]);
                let composed = compose(bytemuck::pod_read_unaligned(&earlier[..]), later);
                into.copy_from_slice(bytemuck::bytes_of(&composed));
            }
        }),
    )
}

/// A variant of a collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallVariant {
    Whole,
    Begun,
    Persistent,
    InPlace,
}

#[derive(Clone, Debug)]
struct Case {
    collective: Collective,
    algorithm: Algorithm,
    variant: CallVariant,
    ranks: u32,
    root: u32,
    /// Elements of each rank's block.
    lengths: Vec<i64>,
    is_even: bool,
    setting: Setting,
    is_commutative: bool,
}

fn cases(is_commutative: bool) -> impl Strategy<Value = Case> {
    let variant = prop_oneof![
        Just(CallVariant::Whole),
        Just(CallVariant::Begun),
        Just(CallVariant::Persistent),
        Just(CallVariant::InPlace)
    ];
    let lengths = prop::collection::vec(prop_oneof![8 => 0i64..6, 1 => 300i64..320], 9);
    // Those of neighbours need a topology: see `neighbors`.
    (
        prop::sample::select(&Collective::ALL[..10]),
        (any::<u64>(), 1usize..300),
        variant,
        1u32..10,
        lengths,
        any::<bool>(),
    )
        .prop_map(
            move |(collective, (seed, room), variant, ranks, lengths, is_even)| {
                let own = algorithms(collective);
                let algorithm = own[(seed >> 8) as usize % own.len()];
                // Long messages in the streams' few bytes take long.
                let room = room + lengths.iter().sum::<i64>() as usize;
                Case {
                    collective,
                    algorithm,
                    variant,
                    ranks,
                    root: (seed % u64::from(ranks)) as u32,
                    lengths: match is_even {
                        true => vec![lengths[0]; ranks as usize],
                        false => lengths[..ranks as usize].to_vec(),
                    },
                    is_even,
                    setting: Setting { room, seed },
                    is_commutative,
                }
            },
        )
}

/// Element `index` of the block of rank `from` for rank `to`.
fn element(from: u32, to: u32, index: i64) -> Affine {
    [
        2 * (from * 100 + to * 10 + index as u32) + 3,
        from + 7 * to + index as u32,
    ]
}

fn block(from: u32, to: u32, length: i64) -> Vec<Affine> {
    (0..length).map(|index| element(from, to, index)).collect()
}

/// The elements that a rank has for all.
fn blocks(case: &Case, from: u32) -> Vec<Affine> {
    let blocks = (0..).zip(&case.lengths);
    blocks
        .flat_map(|(to, &length)| block(from, to, length))
        .collect()
}

/// The result at each rank; none where the call gives it nothing.
fn expected(case: &Case) -> Vec<Option<Vec<Affine>>> {
    let ranks = 0..case.ranks;
    let root = case.root;
    let of_root = |rank: u32, result: Vec<Affine>| (rank == root).then_some(result);
    let reduced = |from: std::ops::Range<u32>| -> Vec<Affine> {
        let mut operands = from.map(|rank| blocks(case, rank));
        let first = operands.next().unwrap_or_default();
        operands.fold(first, |sum, operand| {
            sum.into_iter()
                .zip(operand)
                .map(|(a, b)| compose(a, b))
                .collect()
        })
    };
    let gathered = || -> Vec<Affine> {
        let lengths = (0..).zip(&case.lengths);
        lengths
            .flat_map(|(rank, &length)| block(rank, 0, length))
            .collect()
    };
    ranks
        .map(|rank| match case.collective {
            Collective::Barrier => None,
            Collective::NeighborAllgather | Collective::NeighborAlltoall => None,
            Collective::Broadcast => Some(blocks(case, root)),
            Collective::Gather => of_root(rank, gathered()),
            Collective::Scatter => Some(block(root, rank, case.lengths[rank as usize])),
            Collective::Allgather => Some(gathered()),
            Collective::Alltoall => {
                // Rank i sends each as many as its own length says, so that all know what comes.
                let lengths = (0..).zip(&case.lengths);
                Some(
                    lengths
                        .flat_map(|(from, &length)| block(from, rank, length))
                        .collect(),
                )
            }
            Collective::Reduce => of_root(rank, reduced(0..case.ranks)),
            Collective::Allreduce => Some(reduced(0..case.ranks)),
            Collective::ReduceScatter => {
                let begin: i64 = case.lengths[..rank as usize].iter().sum();
                let end = begin + case.lengths[rank as usize];
                Some(reduced(0..case.ranks)[begin as usize..end as usize].to_vec())
            }
            Collective::Scan => Some(reduced(0..rank + 1)),
        })
        .collect()
}

/// Makes the call of the case; returns the result.
async fn program(wire: Wire, case: Arc<Case>) -> Result<Option<Vec<Affine>>, MpiError> {
    let mpi = Mpi::new(wire);
    mpi.choose(case.collective, case.algorithm)?;
    let world = mpi.world();
    let result = call(&world, &case).await?;
    mpi.finalize().await?;
    Ok(result)
}

async fn call(
    world: &Communicator<'_, Wire>,
    case: &Case,
) -> Result<Option<Vec<Affine>>, MpiError> {
    let (rank, root) = (world.rank(), case.root);
    let own_length = case.lengths[rank as usize];
    let all: i64 = case.lengths.iter().sum();
    let pair = &Datatype::contiguous(2, &Datatype::from(Basic::Uint32)).unwrap();
    let op = &composition(case.is_commutative);
    let layout = &match case.is_even {
        true => Layout::Even,
        false => Layout::packed(&case.lengths),
    };
    let own_layout = &Layout::packed(&vec![own_length; case.ranks as usize]);
    let is_root = rank == root;
    let (sent, room): (Vec<Affine>, i64) = match case.collective {
        Collective::Barrier => (Vec::new(), 0),
        Collective::NeighborAllgather | Collective::NeighborAlltoall => (Vec::new(), 0),
        Collective::Broadcast => (blocks(case, root), all),
        Collective::Gather => (block(rank, 0, own_length), if is_root { all } else { 0 }),
        Collective::Scatter => (
            if is_root {
                blocks(case, root)
            } else {
                Vec::new()
            },
            own_length,
        ),
        Collective::Allgather => (block(rank, 0, own_length), all),
        Collective::Alltoall => (
            (0..case.ranks)
                .flat_map(|to| block(rank, to, own_length))
                .collect(),
            all,
        ),
        Collective::Reduce => (blocks(case, rank), if is_root { all } else { 0 }),
        Collective::Allreduce | Collective::Scan => (blocks(case, rank), all),
        Collective::ReduceScatter => (blocks(case, rank), own_length),
    };
    let mut result = vec![[0u32; 2]; room as usize];
    // In place, the contribution lies in the buffer for the result.
    let in_place = case.variant == CallVariant::InPlace
        && match case.collective {
            Collective::Gather | Collective::Reduce => is_root,
            Collective::Allgather | Collective::Allreduce | Collective::Scan => true,
            Collective::Alltoall => case.is_even,
            _ => false,
        };
    if in_place {
        let begin: i64 = match case.collective {
            Collective::Gather | Collective::Allgather => {
                case.lengths[..rank as usize].iter().sum()
            }
            _ => 0,
        };
        result[begin as usize..begin as usize + sent.len()].copy_from_slice(&sent);
    }
    if case.collective == Collective::Broadcast && is_root {
        result.copy_from_slice(&sent);
    }
    let buffer = Buffer::new(bytemuck::cast_slice(&sent), 0, sent.len() as i64, pair);
    let given = BufferMut::new(bytemuck::cast_slice_mut(&mut result), 0, room, pair);
    macro_rules! make {
        ($whole:ident, $begun:ident, $init:ident, ($($argument:expr),*)) => {
            match case.variant {
                CallVariant::InPlace if in_place => world.$whole(InPlace, given $(, $argument)*).await?,
                CallVariant::Whole | CallVariant::InPlace => world.$whole(buffer, given $(, $argument)*).await?,
                CallVariant::Begun => {
                    world.$begun(buffer, given $(, $argument)*).await?.wait().await?;
                }
                CallVariant::Persistent => {
                    let persistent = world.$init($($argument),*);
                    persistent.start_both(buffer, given).await?.wait().await?;
                }
            }
        };
    }
    match case.collective {
        Collective::Barrier => match case.variant {
            CallVariant::Whole | CallVariant::InPlace => world.barrier().await?,
            CallVariant::Begun => drop(world.ibarrier().await?.wait().await?),
            CallVariant::Persistent => {
                let barrier = world.barrier_init();
                barrier.start(&[0u8; 0]).await?.wait().await?;
                barrier.start(&[0u8; 0]).await?.wait().await?;
            }
        },
        Collective::NeighborAllgather | Collective::NeighborAlltoall => {}
        Collective::Broadcast => match case.variant {
            CallVariant::Whole | CallVariant::InPlace => world.broadcast(given, root).await?,
            CallVariant::Begun => drop(world.ibroadcast(given, root).await?.wait().await?),
            CallVariant::Persistent => {
                let broadcast = world.broadcast_init(root);
                broadcast.start_receive(given).await?.wait().await?;
            }
        },
        Collective::Gather => make!(gather_with, igather_with, gather_with_init, (root, layout)),
        Collective::Scatter => {
            make!(
                scatter_with,
                iscatter_with,
                scatter_with_init,
                (root, layout)
            );
        }
        Collective::Allgather => make!(
            allgather_with,
            iallgather_with,
            allgather_with_init,
            (layout)
        ),
        Collective::Alltoall => make!(
            alltoall_with,
            ialltoall_with,
            alltoall_with_init,
            (own_layout, layout)
        ),
        Collective::Reduce => make!(reduce, ireduce, reduce_init, (op, root)),
        Collective::Allreduce => make!(allreduce, iallreduce, allreduce_init, (op)),
        Collective::ReduceScatter if case.is_even => {
            make!(
                reduce_scatter_block,
                ireduce_scatter_block,
                reduce_scatter_block_init,
                (op)
            );
        }
        Collective::ReduceScatter => {
            make!(
                reduce_scatter,
                ireduce_scatter,
                reduce_scatter_init,
                (op, &case.lengths)
            );
        }
        Collective::Scan => make!(scan, iscan, scan_init, (op)),
    }
    let gives = match case.collective {
        Collective::Barrier => false,
        Collective::Gather | Collective::Reduce => is_root,
        _ => true,
    };
    Ok(gives.then_some(result))
}

fn compare(case: &Case) -> Result<(), TestCaseError> {
    let shared = Arc::new(case.clone());
    let outcome = run(case.ranks, case.setting, |wire| {
        program(wire, Arc::clone(&shared))
    });
    let got: Result<Vec<_>, MpiError> = match outcome {
        Ok(results) => results.into_iter().collect(),
        Err(stuck) => return Err(TestCaseError::fail(format!("{stuck:?}"))),
    };
    prop_assert_eq!(got, Ok(expected(case)));
    Ok(())
}

proptest! {
    #![proptest_config(Config::with_cases(1500))]

    /// Situations 20 (in place, with a root that is not 0, with one rank), 21 (blocks of different
    /// lengths and of none) and 22 (operations that do not commute, in the non-blocking forms too).
    #[test]
    fn every_algorithm_gives_the_result_in_every_form(case in cases(false)) {
        compare(&case)?;
    }
}

/// An operation that is said to be commutative and is not: the algorithms may exchange its
/// operands, and the comparison sees it.
#[test]
fn a_wrong_order_of_operands_is_found() {
    let config = Config {
        cases: 1500,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let found = TestRunner::new(config).run(&cases(true), |case| compare(&case));
    assert!(matches!(found, Err(TestError::Fail(..))), "{found:?}");
}
