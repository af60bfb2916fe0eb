//! Graph topologies of which each rank has its own edges (MPI-4.1, Sec. 8.5.4).
//!
//! A rank either names its own edges (MPI_Dist_graph_create_adjacent) or contributes any edges of
//! the graph (MPI_Dist_graph_create). Then the communicator brings each edge to its two ends, and
//! [`DistGraph::from_edges`] makes the graph there.

use super::check_rank;
use crate::error::{ErrorClass, Fault};

/// The edges of one rank. Several edges between the same two ranks, and edges to oneself, are
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistGraph {
    sources: Box<[u32]>,
    destinations: Box<[u32]>,
    weights: Option<Weights>,
}

/// The weights of the edges of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    of_sources: Box<[u32]>,
    of_destinations: Box<[u32]>,
}

/// The edges that a rank contributes (the arguments of MPI_Dist_graph_create).
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// Sources of edges.
    pub sources: &'a [u32],
    /// Edges of each source.
    pub degrees: &'a [u32],
    /// The destinations of the edges: those of the first source, of the second, and so on.
    pub destinations: &'a [u32],
    /// The weight of each edge; `None` is MPI_UNWEIGHTED.
    pub weights: Option<&'a [u32]>,
}

/// An edge of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The rank that sends.
    pub source: u32,
    /// The rank that receives.
    pub destination: u32,
    /// Its weight; 1 in a graph without weights.
    pub weight: u32,
}

impl DistGraph {
    /// The edges that a rank of so many `processes` names itself (MPI_Dist_graph_create_adjacent).
    /// `None` as weights is MPI_UNWEIGHTED, an empty slice MPI_WEIGHTS_EMPTY.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if an edge ends at no process; [`ErrorClass::Arg`] if there are not as
    /// many weights as edges, or weights of one direction only.
    pub fn adjacent(
        processes: u32,
        (sources, source_weights): (&[u32], Option<&[u32]>),
        (destinations, destination_weights): (&[u32], Option<&[u32]>),
    ) -> Result<Self, Fault> {
        check_ranks("sources", sources, processes)?;
        check_ranks("destinations", destinations, processes)?;
        let weights = match (source_weights, destination_weights) {
            (None, None) => None,
            (Some(from), Some(to)) => {
                check_length("sourceweights", from.len(), sources.len())?;
                check_length("destweights", to.len(), destinations.len())?;
                Some(Weights {
                    of_sources: from.into(),
                    of_destinations: to.into(),
                })
            }
            (None, Some(_)) => return Err(half_weighted("sourceweights")),
            (Some(_), None) => return Err(half_weighted("destweights")),
        };
        Ok(Self {
            sources: sources.into(),
            destinations: destinations.into(),
            weights,
        })
    }

    /// The edges of `rank` among `edges`; the others are ignored. Sources and destinations are in
    /// the order of `edges`. If all ranks have the edges in one order, such as that of their
    /// contributors, the edges between two ranks have one order at both ends.
    pub fn from_edges(rank: u32, edges: &[Edge], weighted: bool) -> Self {
        let (incoming, outgoing) = (
            || edges.iter().filter(|edge| edge.destination == rank),
            || edges.iter().filter(|edge| edge.source == rank),
        );
        let weights = || Weights {
            of_sources: incoming().map(|edge| edge.weight).collect(),
            of_destinations: outgoing().map(|edge| edge.weight).collect(),
        };
        Self {
            sources: incoming().map(|edge| edge.source).collect(),
            destinations: outgoing().map(|edge| edge.destination).collect(),
            weights: weighted.then(weights),
        }
    }

    /// The edges of `rank` in the graph that all ranks contribute, in the order of the ranks
    /// (MPI_Dist_graph_create).
    ///
    /// # Errors
    /// As [`Contribution::edges`]; [`ErrorClass::Arg`] if some ranks give weights and some do not.
    pub fn from_contributions(
        rank: u32,
        processes: u32,
        contributions: &[Contribution<'_>],
    ) -> Result<Self, Fault> {
        let mut edges = Vec::new();
        for contribution in contributions {
            edges.extend(contribution.edges(processes)?);
        }
        let is_weighted = |contribution: &Contribution<'_>| contribution.weights.is_some();
        let weighted = contributions.iter().any(is_weighted);
        if weighted && !contributions.iter().all(is_weighted) {
            return Err(half_weighted("weights"));
        }
        Ok(Self::from_edges(rank, &edges, weighted))
    }

    /// The ranks that it receives from (MPI_Dist_graph_neighbors).
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// The ranks that it sends to (MPI_Dist_graph_neighbors).
    pub fn destinations(&self) -> &[u32] {
        &self.destinations
    }

    /// The weight of the edge from each source; `None` in a graph without weights.
    pub fn source_weights(&self) -> Option<&[u32]> {
        self.weights.as_ref().map(|weights| &*weights.of_sources)
    }

    /// The weight of the edge to each destination; `None` in a graph without weights.
    pub fn destination_weights(&self) -> Option<&[u32]> {
        self.weights
            .as_ref()
            .map(|weights| &*weights.of_destinations)
    }

    /// Returns whether its edges have weights (MPI_Dist_graph_neighbors_count).
    pub fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }
}

impl Contribution<'_> {
    /// The edges, among so many processes.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if an edge starts or ends at no process; [`ErrorClass::Arg`] if there
    /// are not as many degrees as sources, destinations as the degrees say, or weights as
    /// destinations.
    pub fn edges(&self, processes: u32) -> Result<Vec<Edge>, Fault> {
        check_ranks("sources", self.sources, processes)?;
        check_ranks("destinations", self.destinations, processes)?;
        check_length("degrees", self.degrees.len(), self.sources.len())?;
        let edges: u64 = self.degrees.iter().map(|&degree| u64::from(degree)).sum();
        if edges != self.destinations.len() as u64 {
            let text = format!(
                "{edges} edges have {} destinations",
                self.destinations.len()
            );
            return Err(Fault::new(ErrorClass::Arg, "degrees", text));
        }
        if let Some(weights) = self.weights {
            check_length("weights", weights.len(), self.destinations.len())?;
        }
        let sources = self.sources.iter().zip(self.degrees);
        let sources = sources.flat_map(|(&source, &degree)| (0..degree).map(move |_| source));
        let ends = sources.zip(self.destinations).enumerate();
        let edge = |(i, (source, &destination))| Edge {
            source,
            destination,
            weight: self.weights.map_or(1, |weights| weights[i]),
        };
        Ok(ends.map(edge).collect())
    }
}

fn check_ranks(argument: &'static str, ranks: &[u32], processes: u32) -> Result<(), Fault> {
    let mut ranks = ranks.iter();
    ranks.try_for_each(|&rank| check_rank(argument, rank, processes))
}

fn check_length(argument: &'static str, length: usize, expected: usize) -> Result<(), Fault> {
    if length == expected {
        return Ok(());
    }
    let text = format!("it has {length} entries instead of {expected}");
    Err(Fault::new(ErrorClass::Arg, argument, text))
}

fn half_weighted(argument: &'static str) -> Fault {
    Fault::new(
        ErrorClass::Arg,
        argument,
        "some edges have weights and some have none",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{holds, is_caught};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    const PROCESSES: u32 = 5;

    type Create = fn(u32, u32, &[Contribution<'_>]) -> Result<DistGraph, Fault>;

    /// The contribution of one rank: sources, each with destinations and weights.
    type Part = Vec<(u32, Vec<(u32, u32)>)>;

    fn parts() -> impl Strategy<Value = (Vec<Part>, bool)> {
        let ends = proptest::collection::vec((0..PROCESSES, 0u32..9), 0..4);
        let part = proptest::collection::vec((0..PROCESSES, ends), 0..4);
        let parts = proptest::collection::vec(part, PROCESSES as usize);
        (parts, any::<bool>())
    }

    /// Counts each pair of ranks with a weight in a matrix of edges, and holds what the ranks have
    /// against it.
    fn check(create: Create, (parts, weighted): (Vec<Part>, bool)) -> Result<(), TestCaseError> {
        let arrays: Vec<_> = parts
            .iter()
            .map(|part| {
                let ends: Vec<_> = part.iter().flat_map(|(_, ends)| ends.clone()).collect();
                (
                    part.iter().map(|&(source, _)| source).collect::<Vec<_>>(),
                    part.iter()
                        .map(|(_, ends)| ends.len() as u32)
                        .collect::<Vec<_>>(),
                    ends.iter().map(|&(end, _)| end).collect::<Vec<_>>(),
                    ends.iter().map(|&(_, weight)| weight).collect::<Vec<_>>(),
                )
            })
            .collect();
        let contributions: Vec<_> = arrays
            .iter()
            .map(|(sources, degrees, destinations, weights)| Contribution {
                sources,
                degrees,
                destinations,
                weights: weighted.then_some(&weights[..]),
            })
            .collect();
        let mut between = vec![vec![Vec::new(); PROCESSES as usize]; PROCESSES as usize];
        for (source, ends) in parts.iter().flatten() {
            for &(destination, weight) in ends {
                let weight = if weighted { weight } else { 0 };
                between[*source as usize][destination as usize].push(weight);
            }
        }
        for rank in 0..PROCESSES {
            let graph = create(rank, PROCESSES, &contributions).unwrap();
            prop_assert_eq!(graph.is_weighted(), weighted);
            let with_weights = |ends: &[u32], weights: Option<&[u32]>| {
                let weights = weights.map_or(vec![0; ends.len()], <[u32]>::to_vec);
                let mut of = vec![Vec::new(); PROCESSES as usize];
                for (&end, weight) in ends.iter().zip(weights) {
                    of[end as usize].push(weight);
                }
                of
            };
            let incoming = with_weights(graph.sources(), graph.source_weights());
            let outgoing = with_weights(graph.destinations(), graph.destination_weights());
            for other in 0..PROCESSES as usize {
                prop_assert_eq!(&incoming[other], &between[other][rank as usize]);
                prop_assert_eq!(&outgoing[other], &between[rank as usize][other]);
            }
        }
        Ok(())
    }

    #[test]
    fn each_rank_has_its_edges() {
        holds(parts(), |case| check(DistGraph::from_contributions, case));
    }

    #[test]
    fn broken_graphs_are_caught() {
        let own_only: Create = |rank, processes, contributions| {
            let own = &contributions[rank as usize..=rank as usize];
            DistGraph::from_contributions(rank, processes, own)
        };
        let turned: Create = |rank, processes, contributions| {
            let graph = DistGraph::from_contributions(rank, processes, contributions)?;
            DistGraph::adjacent(
                processes,
                (graph.destinations(), graph.destination_weights()),
                (graph.sources(), graph.source_weights()),
            )
        };
        for broken in [own_only, turned] {
            is_caught(parts(), |case| check(broken, case));
        }
    }

    #[test]
    fn adjacent_edges_are_kept() {
        let graph = DistGraph::adjacent(4, (&[3, 0, 3], Some(&[1, 0, 2])), (&[], Some(&[])));
        let graph = graph.unwrap();
        assert_eq!(
            (graph.sources(), graph.destinations()),
            (&[3, 0, 3][..], &[][..])
        );
        assert_eq!(graph.source_weights(), Some(&[1, 0, 2][..]));
        assert_eq!(graph.destination_weights(), Some(&[][..]));
    }

    #[test]
    fn wrong_arguments_are_faults() {
        let none: &[u32] = &[];
        let adjacent = |from, to| {
            let fault = DistGraph::adjacent(2, from, to).unwrap_err();
            (fault.class, fault.argument)
        };
        let (rank, arg) = (ErrorClass::Rank, ErrorClass::Arg);
        assert_eq!(adjacent((&[2], None), (none, None)), (rank, "sources"));
        assert_eq!(adjacent((none, None), (&[2], None)), (rank, "destinations"));
        assert_eq!(
            adjacent((&[1], Some(none)), (none, Some(none))),
            (arg, "sourceweights")
        );
        assert_eq!(
            adjacent((&[1], Some(&[1])), (none, None)),
            (arg, "destweights")
        );

        let sound = Contribution {
            sources: &[0, 1],
            degrees: &[1, 0],
            destinations: &[1],
            weights: None,
        };
        let fault = |contribution: Contribution<'_>| {
            let fault = contribution.edges(2).unwrap_err();
            (fault.class, fault.argument)
        };
        let [sources, degrees] = [&[0, 2], &[u32::MAX, u32::MAX]];
        assert_eq!(fault(Contribution { sources, ..sound }), (rank, "sources"));
        assert_eq!(fault(Contribution { degrees, ..sound }), (arg, "degrees"));
        let weights = Some(none);
        assert_eq!(fault(Contribution { weights, ..sound }), (arg, "weights"));
        let weighted = Contribution {
            weights: Some(&[4]),
            ..sound
        };
        let mixed = DistGraph::from_contributions(0, 2, &[sound, weighted]);
        assert_eq!(mixed.unwrap_err().argument, "weights");
    }
}
