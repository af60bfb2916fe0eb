//! Virtual topologies of communicators (MPI-4.1, Ch. 8): who neighbors whom.
//!
//! A topology knows ranks, and neither processes nor channels. Communicators carry one, and
//! neighborhood collectives exchange data between the neighbors it names. Ranks are never
//! reordered.

mod cartesian;
mod dims;
mod distributed;
mod graph;

pub use cartesian::{Cartesian, SubGrid};
pub use dims::dims_create;
pub use distributed::{Contribution, DistGraph, Edge};
pub use graph::Graph;

use crate::error::{ErrorClass, Fault};

/// The topology of a communicator (MPI_Topo_test).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid (MPI_CART).
    Cartesian(Cartesian),
    /// A graph of which each rank has all (MPI_GRAPH).
    Graph(Graph),
    /// A graph of which each rank has its own edges (MPI_DIST_GRAPH).
    Distributed(DistGraph),
}

/// The ranks that a rank exchanges data with in neighborhood collectives, in the order of its
/// buffers (MPI-4.1, Sec. 8.6). `None` is MPI_PROC_NULL: its place in the buffer stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighborhood {
    /// The ranks that it receives from.
    pub sources: Vec<Option<u32>>,
    /// The ranks that it sends to.
    pub destinations: Vec<Option<u32>>,
}

impl Topology {
    /// The neighborhood of a rank; of a distributed graph, that of the rank that has it.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the topology has no such rank.
    pub fn neighborhood(&self, rank: u32) -> Result<Neighborhood, Fault> {
        let some = |ranks: &[u32]| ranks.iter().copied().map(Some).collect();
        let both_ways = |neighbors: Vec<_>| Neighborhood {
            sources: neighbors.clone(),
            destinations: neighbors,
        };
        Ok(match self {
            Self::Cartesian(grid) => both_ways(grid.neighbors(rank)?),
            Self::Graph(graph) => both_ways(some(graph.neighbors(rank)?)),
            Self::Distributed(graph) => Neighborhood {
                sources: some(graph.sources()),
                destinations: some(graph.destinations()),
            },
        })
    }
}

/// Checks that a rank is below `size`.
fn check_rank(argument: &'static str, rank: u32, size: u32) -> Result<(), Fault> {
    if rank < size {
        return Ok(());
    }
    let text = format!("there is no rank {rank} among {size}");
    Err(Fault::new(ErrorClass::Rank, argument, text))
}
