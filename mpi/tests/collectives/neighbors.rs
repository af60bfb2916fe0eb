//! Communicators with topologies, and exchanges between neighbours.

use proptest::prelude::*;
use sme_mpi::collective::choice::{Algorithm, Collective};
use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::error::{ErrorClass, MpiError};
use sme_mpi::rank::{InPlace, Layout, Mpi};
use sme_mpi::topology::{Contribution, Topology, dims_create};
use sme_mpi::wires::{Setting, run};

/// Edges that each rank contributes, of any graph: the ends are those of the whole graph.
fn edges() -> impl Strategy<Value = (u32, Vec<Vec<(u32, u32)>>)> {
    (1u32..7).prop_flat_map(|ranks| {
        let own = prop::collection::vec((0..ranks, 0..ranks), 0..5);
        (Just(ranks), prop::collection::vec(own, ranks as usize))
    })
}

/// The block that goes along an edge: its number among all.
fn along(all: &[(u32, u32)], is_own: impl Fn(&(u32, u32)) -> bool) -> Vec<u64> {
    let numbered = (0..).zip(all);
    numbered
        .filter(|(_, edge)| is_own(edge))
        .map(|(number, _)| number)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Several edges between two ranks keep their order, and blocks of edges to oneself arrive.
    #[test]
    fn blocks_go_along_the_edges(
        (ranks, contributed) in edges(),
        seed: u64,
        room in 1usize..200,
        pairwise: bool,
    ) {
        let all: Vec<(u32, u32)> = contributed.concat();
        let outcome = run(ranks, Setting { room, seed }, |wire| {
            let (all, contributed) = (&all, &contributed);
            async move {
                let mpi = Mpi::new(wire);
                let world = mpi.world();
                let rank = world.rank();
                let own = &contributed[rank as usize];
                let (sources, destinations): (Vec<u32>, Vec<u32>) = own.iter().copied().unzip();
                let graph = world
                    .dist_graph_create(Contribution {
                        sources: &sources,
                        degrees: &vec![1; sources.len()],
                        destinations: &destinations,
                        weights: None,
                    })
                    .await?;
                if pairwise {
                    mpi.choose(Collective::NeighborAlltoall, Algorithm::Pairwise)?;
                    mpi.choose(Collective::NeighborAllgather, Algorithm::Pairwise)?;
                }
                let sent = along(all, |edge| edge.0 == rank);
                let must_come = along(all, |edge| edge.1 == rank);
                let mut came = vec![0u64; must_come.len()];
                graph.neighbor_alltoall(&sent, &mut came).await?;
                assert_eq!(came, must_come);
                came.fill(0);
                graph.ineighbor_alltoall(&sent, &mut came).await?.wait().await?;
                assert_eq!(came, must_come);

                // Blocks of different lengths: one element more than the number of the edge, modulo
                // 3.
                let length = |number: u64| number as i64 % 3;
                let out: Vec<i64> = sent.iter().map(|&number| length(number)).collect();
                let come: Vec<i64> = must_come.iter().map(|&number| length(number)).collect();
                let blocks = |numbers: &[u64]| -> Vec<u64> {
                    let blocks = numbers.iter().map(|&number| vec![number; length(number) as usize]);
                    blocks.collect::<Vec<_>>().concat()
                };
                let mut data = vec![99u64; come.iter().sum::<i64>() as usize];
                let (out, come) = (Layout::packed(&out), Layout::packed(&come));
                graph.neighbor_alltoall_with(&blocks(&sent), &mut data, &out, &come).await?;
                assert_eq!(data, blocks(&must_come));

                let from = all.iter().filter(|edge| edge.1 == rank).map(|edge| u64::from(edge.0));
                let from: Vec<u64> = from.collect();
                let mut gathered = vec![0u64; from.len()];
                graph.neighbor_allgather(&[u64::from(rank)], &mut gathered).await?;
                assert_eq!(gathered, from);
                graph.free().await?;
                mpi.finalize().await
            }
        });
        prop_assert_eq!(outcome, Ok(vec![Ok(()); ranks as usize]));
    }
}

/// A block sent to the left arrives from the right: in periodic grids of every width, 1 and 2
/// included. At borders the places of absent neighbours stay as they are.
#[test]
fn what_goes_in_one_direction_comes_from_the_other() {
    for (dims, periods) in [
        ([1, 1], [true, true]),
        ([2, 1], [true, true]),
        ([2, 2], [true, false]),
        ([3, 2], [true, true]),
        ([4, 2], [false, true]),
    ] {
        let ranks = dims[0] * dims[1] + 1;
        let outcome = run(ranks, Setting { room: 50, seed: 4 }, |wire| async move {
            let mpi = Mpi::new(wire);
            let world = mpi.world();
            let Some(grid) = world.cart_create(&dims, &periods).await? else {
                assert_eq!(world.rank(), ranks - 1, "the one beyond the grid");
                return mpi.finalize().await;
            };
            let Some(Topology::Cartesian(topology)) = grid.topology().cloned() else {
                panic!("a grid");
            };
            let rank = grid.rank();
            // The block for direction d holds the sender and d.
            let sent: Vec<u64> = (0..4).map(|d| u64::from(rank) * 10 + d).collect();
            let mut came = [77u64; 4];
            grid.neighbor_alltoall(&sent, &mut came).await?;
            let neighbors = topology.neighbors(rank).unwrap();
            for (place, neighbor) in neighbors.iter().enumerate() {
                let opposite = place as u64 ^ 1;
                let wanted = neighbor.map_or(77, |from| u64::from(from) * 10 + opposite);
                assert_eq!(came[place], wanted, "{dims:?}, rank {rank}, place {place}");
            }
            // A row of the grid is a communicator of its own.
            let row = grid.cart_sub(&[false, true]).await?;
            assert_eq!(row.size(), dims[1]);
            assert_eq!(row.rank(), topology.coords(rank).unwrap()[1]);
            let twin = grid.dup().await?;
            assert_eq!(
                twin.topology(),
                grid.topology(),
                "a duplicate has the topology"
            );
            mpi.finalize().await
        });
        assert_eq!(outcome, Ok(vec![Ok(()); ranks as usize]));
    }
}

/// A halo of a matrix: columns as vectors, rows as they are, placed by a typed layout.
#[test]
fn a_halo_has_datatypes_of_its_own() {
    let outcome = run(6, Setting { room: 50, seed: 8 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let mut dims = [0, 0];
        dims_create(6, &mut dims).unwrap();
        let grid = world.cart_create(&dims, &[true, true]).await?.unwrap();
        // 2 x 2 own elements within a border of one.
        let rank = grid.rank();
        let mut matrix = [-1i32; 16];
        for at in [5, 6, 9, 10] {
            matrix[at] = rank as i32 * 100 + at as i32;
        }
        let int = Datatype::from(Basic::Int32);
        let column = Datatype::vector(2, 1, 4, &int).unwrap();
        let row = Datatype::contiguous(2, &int).unwrap();
        let at = |index: i64, datatype: &Datatype| (1, 4 * index, datatype.clone());
        let out = Layout::Typed(vec![
            at(5, &row),
            at(9, &row),
            at(5, &column),
            at(6, &column),
        ]);
        let come = Layout::Typed(vec![
            at(1, &row),
            at(13, &row),
            at(4, &column),
            at(7, &column),
        ]);
        let own = matrix;
        grid.neighbor_alltoall_with(&own, &mut matrix, &out, &come)
            .await?;
        let Some(Topology::Cartesian(topology)) = grid.topology() else {
            panic!("a grid");
        };
        let neighbors = topology.neighbors(rank).unwrap();
        let of = |place: usize| neighbors[place].unwrap() as i32 * 100;
        assert_eq!(matrix[1..3], [of(0) + 9, of(0) + 10]);
        assert_eq!(matrix[13..15], [of(1) + 5, of(1) + 6]);
        assert_eq!([matrix[4], matrix[8]], [of(2) + 6, of(2) + 10]);
        assert_eq!([matrix[7], matrix[11]], [of(3) + 5, of(3) + 9]);
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 6]));
}

/// Situation 20: in place is illegal here; further wrong calls of topologies are errors too.
#[test]
fn wrong_calls_of_topologies_are_errors() {
    let is = |result: Result<(), MpiError>, class, call, argument| {
        let error = result.unwrap_err();
        assert_eq!(
            (error.class, error.call, error.argument),
            (class, call, argument)
        );
    };
    let outcome = run(2, Setting { room: 50, seed: 1 }, |wire| async move {
        let mpi = Mpi::new(wire);
        let world = mpi.world();
        let mut one = [0u64];
        let none = world.neighbor_allgather(&[1u64], &mut one).await;
        is(none, ErrorClass::Topology, "MPI_Neighbor_allgather", "comm");
        let large = world.cart_create(&[3], &[true]).await.map(drop);
        is(large, ErrorClass::Dims, "MPI_Cart_create", "dims");
        let index = world.graph_create(&[1, 3], &[1, 0]).await.map(drop);
        is(index, ErrorClass::Arg, "MPI_Graph_create", "index");
        let stranger = world
            .dist_graph_create_adjacent((&[5], None), (&[], None))
            .await;
        is(
            stranger.map(drop),
            ErrorClass::Rank,
            "MPI_Dist_graph_create_adjacent",
            "sources",
        );
        let ring = world.graph_create(&[1, 2], &[1, 0]).await?.unwrap();
        let place = ring.neighbor_allgather(InPlace, &mut one).await;
        is(
            place,
            ErrorClass::Buffer,
            "MPI_Neighbor_allgather",
            "sendbuf",
        );
        ring.neighbor_allgather(&[u64::from(world.rank())], &mut one)
            .await?;
        assert_eq!(one, [1 - u64::from(world.rank())]);
        let sub = ring.cart_sub(&[true]).await.map(drop);
        is(sub, ErrorClass::Topology, "MPI_Cart_sub", "comm");
        // One rank gives weights and the other does not, and one names an edge that cannot be.
        let weights: Option<&[u32]> = if world.rank() == 0 { Some(&[]) } else { None };
        let nothing = Contribution {
            sources: &[],
            degrees: &[],
            destinations: &[],
            weights,
        };
        let mixed = world.dist_graph_create(nothing).await.map(drop);
        is(mixed, ErrorClass::Arg, "MPI_Dist_graph_create", "weights");
        mpi.finalize().await
    });
    assert_eq!(outcome, Ok(vec![Ok(()); 2]));
}
