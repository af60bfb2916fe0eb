//! Graph topologies of which each rank has all (MPI_Graph_create, MPI-4.1, Sec. 8.5.3).

use super::check_rank;
use crate::error::{ErrorClass, Fault};

/// A graph of ranks. Edges to oneself, several edges between the same two ranks, and edges in one
/// direction only are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Per node, the end of its neighbors in `edges`.
    index: Box<[u32]>,
    edges: Box<[u32]>,
}

impl Graph {
    /// The graph whose node `i` has the neighbors in `edges` from `index[i - 1]` (from 0, if `i` is
    /// 0) up to, and without, `index[i]`, on a communicator of so many processes. Those from
    /// [`Self::size`] on are outside of it (MPI_COMM_NULL).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there are more nodes than processes, if `index` decreases or does not
    /// end with the number of edges, or if an edge ends outside of the graph.
    pub fn new(processes: u32, index: &[u32], edges: &[u32]) -> Result<Self, Fault> {
        let fault = |argument, text: String| Err(Fault::new(ErrorClass::Arg, argument, text));
        let nodes = index.len();
        if nodes > processes as usize {
            let text = format!("{nodes} nodes are more than {processes} processes");
            return fault("nnodes", text);
        }
        if let Some(at) = index.windows(2).position(|pair| pair[0] > pair[1]) {
            return fault("index", format!("it decreases after entry {at}"));
        }
        let last = index.last().copied().unwrap_or(0);
        if last as usize != edges.len() {
            let text = format!("it ends with {last}, but there are {} edges", edges.len());
            return fault("index", text);
        }
        if let Some(edge) = edges.iter().find(|&&edge| edge as usize >= nodes) {
            return fault("edges", format!("there is no node {edge} among {nodes}"));
        }
        Ok(Self {
            index: index.into(),
            edges: edges.into(),
        })
    }

    /// Nodes of the graph.
    pub fn size(&self) -> u32 {
        // At most as many as processes.
        self.index.len() as u32
    }

    /// Per node, the end of its neighbors among the edges (MPI_Graph_get).
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// The neighbors of all nodes (MPI_Graph_get).
    pub fn edges(&self) -> &[u32] {
        &self.edges
    }

    /// The neighbors of a rank, in the order of its edges (MPI_Graph_neighbors).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the graph has no such rank.
    pub fn neighbors(&self, rank: u32) -> Result<&[u32], Fault> {
        check_rank("rank", rank, self.size())?;
        let rank = rank as usize;
        let start = match rank {
            0 => 0,
            _ => self.index[rank - 1] as usize,
        };
        Ok(&self.edges[start..self.index[rank] as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{holds, is_caught};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    type Neighbors = fn(&Graph, u32) -> Result<&[u32], Fault>;

    /// The neighbors of each node.
    fn lists() -> impl Strategy<Value = Vec<Vec<u32>>> {
        (1u32..6).prop_flat_map(|nodes| {
            let list = proptest::collection::vec(0..nodes, 0..5);
            proptest::collection::vec(list, nodes as usize)
        })
    }

    fn graph(lists: &[Vec<u32>]) -> Graph {
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        let index: Vec<_> = ends.collect();
        Graph::new(8, &index, &lists.concat()).unwrap()
    }

    fn check(neighbors: Neighbors, lists: &[Vec<u32>]) -> Result<(), TestCaseError> {
        let graph = graph(lists);
        for (rank, list) in (0..).zip(lists) {
            prop_assert_eq!(neighbors(&graph, rank), Ok(&list[..]));
        }
        prop_assert!(neighbors(&graph, graph.size()).is_err());
        Ok(())
    }

    #[test]
    fn nodes_have_their_neighbors() {
        holds(lists(), |lists| check(Graph::neighbors, &lists));
    }

    #[test]
    fn an_index_of_starts_is_caught() {
        let from_starts: Neighbors = |graph, rank| {
            let start = *graph.index.get(rank as usize).unwrap_or(&0) as usize;
            let next = graph.index.get(rank as usize + 1);
            let end = next.map_or(graph.edges.len(), |&end| end as usize);
            Ok(&graph.edges[start..end])
        };
        is_caught(lists(), |lists| check(from_starts, &lists));
    }

    #[test]
    fn wrong_arguments_are_faults() {
        let argument = |index: &[u32], edges: &[u32]| {
            let fault = Graph::new(3, index, edges).unwrap_err();
            assert_eq!(fault.class, ErrorClass::Arg);
            fault.argument
        };
        assert_eq!(argument(&[0; 4], &[]), "nnodes");
        assert_eq!(argument(&[2, 1], &[0]), "index");
        assert_eq!(argument(&[1, 2], &[0]), "index");
        assert_eq!(argument(&[1, 1], &[0, 1]), "index");
        assert_eq!(argument(&[1, 1], &[2]), "edges");
        assert_eq!(argument(&[], &[0]), "index");
        assert_eq!(Graph::new(3, &[], &[]).unwrap().size(), 0);
    }
}
