//! The choice of a collective call's algorithm: the one that the user names, or one chosen by the
//! bytes and the ranks of the call.

/// An algorithm of collective calls. Which calls have it, [`algorithms`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One message for each rank, from or to the root; or from rank to rank.
    Linear,
    /// A binomial tree.
    Binomial,
    /// Distances that double, round the ring.
    Dissemination,
    /// From neighbour to neighbour, round the ring.
    Ring,
    /// Partners at distances that double.
    RecursiveDoubling,
    /// Blocks in bundles, over distances that double.
    Bruck,
    /// Another partner in each step.
    Pairwise,
    /// The data scattered by a tree, then gathered by a ring.
    ScatterAllgather,
    /// A reduction to rank 0, then a broadcast.
    ReduceBroadcast,
    /// A reduction to rank 0, then a scatter.
    ReduceScatter,
}

/// A family of collective calls that share their algorithms: a call, its v and w forms, blocking or
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// MPI_Barrier
    Barrier,
    /// MPI_Bcast
    Broadcast,
    /// MPI_Gather, MPI_Gatherv
    Gather,
    /// MPI_Scatter, MPI_Scatterv
    Scatter,
    /// MPI_Allgather, MPI_Allgatherv
    Allgather,
    /// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw
    Alltoall,
    /// MPI_Reduce
    Reduce,
    /// MPI_Allreduce
    Allreduce,
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block
    ReduceScatter,
    /// MPI_Scan, MPI_Exscan
    Scan,
    /// MPI_Neighbor_allgather, MPI_Neighbor_allgatherv
    NeighborAllgather,
    /// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallw
    NeighborAlltoall,
}

crate::names::names!(Algorithm {
    Linear => "linear",
    Binomial => "binomial",
    Dissemination => "dissemination",
    Ring => "ring",
    RecursiveDoubling => "recursive-doubling",
    Bruck => "bruck",
    Pairwise => "pairwise",
    ScatterAllgather => "scatter-allgather",
    ReduceBroadcast => "reduce-broadcast",
    ReduceScatter => "reduce-scatter",
});

crate::names::names!(Collective {
    Barrier => "barrier",
    Broadcast => "bcast",
    Gather => "gather",
    Scatter => "scatter",
    Allgather => "allgather",
    Alltoall => "alltoall",
    Reduce => "reduce",
    Allreduce => "allreduce",
    ReduceScatter => "reduce_scatter",
    Scan => "scan",
    NeighborAllgather => "neighbor_allgather",
    NeighborAlltoall => "neighbor_alltoall",
});

/// The algorithms of a collective call.
pub const fn algorithms(collective: Collective) -> &'static [Algorithm] {
    use Algorithm as A;
    match collective {
        Collective::Barrier => &[A::Dissemination, A::Binomial],
        Collective::Broadcast => &[A::Binomial, A::ScatterAllgather, A::Linear],
        Collective::Gather | Collective::Scatter => &[A::Binomial, A::Linear],
        Collective::Allgather => &[A::Ring, A::Bruck, A::RecursiveDoubling],
        Collective::Alltoall => &[A::Linear, A::Pairwise, A::Bruck],
        Collective::Reduce => &[A::Binomial, A::Linear],
        Collective::Allreduce => &[A::RecursiveDoubling, A::ReduceBroadcast, A::Ring],
        Collective::ReduceScatter => &[A::Pairwise, A::ReduceScatter],
        Collective::Scan => &[A::RecursiveDoubling, A::Linear],
        Collective::NeighborAllgather | Collective::NeighborAlltoall => &[A::Linear, A::Pairwise],
    }
}

/// Returns whether a call of `ranks` ranks can take an algorithm that it has.
pub fn suits(collective: Collective, algorithm: Algorithm, ranks: u32) -> bool {
    match (collective, algorithm) {
        (Collective::Allgather, Algorithm::RecursiveDoubling) => ranks.is_power_of_two(),
        _ => true,
    }
}

/// The algorithms that the user has named; where there is none for a call, or it does not suit the
/// number of ranks, bytes and ranks decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    named: Vec<(Collective, Algorithm)>,
}

/// The ranks of a call, as far as a choice depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct On {
    /// The number of ranks.
    pub ranks: u32,
    /// Whether the ranks are on several nodes, and some share one: then all that send at once to
    /// other nodes are in each other's way, and few messages are better than short ways.
    pub is_clustered: bool,
}

impl On {
    /// Of these ranks of a job with so many on each node.
    pub fn new(ranks: impl Iterator<Item = u32>, per_node: u32) -> Self {
        if per_node <= 1 {
            return Self {
                ranks: ranks.count() as u32,
                is_clustered: false,
            };
        }
        let nodes: Vec<u32> = ranks.map(|rank| rank / per_node).collect();
        let shares = nodes.windows(2).any(|pair| pair[0] == pair[1]);
        Self {
            ranks: nodes.len() as u32,
            is_clustered: shares && nodes.iter().any(|node| *node != nodes[0]),
        }
    }
}

/// A collective call does not have an algorithm of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{collective} has no algorithm {algorithm}")]
pub struct NotOfThisCall {
    /// The call.
    pub collective: Collective,
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl Choice {
    /// Names the algorithm of a call.
    ///
    /// # Errors
    /// [`NotOfThisCall`] if the call does not have it.
    pub fn name(
        &mut self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<(), NotOfThisCall> {
        if !algorithms(collective).contains(&algorithm) {
            return Err(NotOfThisCall {
                collective,
                algorithm,
            });
        }
        self.forget(collective);
        self.named.push((collective, algorithm));
        Ok(())
    }

    /// Lets bytes and ranks decide again.
    pub fn forget(&mut self, collective: Collective) {
        self.named.retain(|&(named, _)| named != collective);
    }

    /// The algorithm of a call. `bytes` are those that each rank sends, or gets, and must be the
    /// same at each; a call whose ranks do not all know its bytes gives 0.
    pub fn of(&self, collective: Collective, bytes: usize, on: On) -> Algorithm {
        let On {
            ranks,
            is_clustered,
        } = on;
        let mut named = self.named.iter();
        if let Some(&(_, algorithm)) = named.find(|&&(named, _)| named == collective)
            && suits(collective, algorithm, ranks)
        {
            return algorithm;
        }
        use Algorithm as A;
        let is_long = bytes > LONG_BYTES;
        match collective {
            Collective::Barrier if is_clustered => A::Binomial,
            Collective::Allreduce if is_clustered && !is_long => A::ReduceBroadcast,
            Collective::Allgather if is_clustered && bytes > HOPPING_BYTES => A::Ring,
            Collective::Barrier => A::Dissemination,
            Collective::Broadcast if is_long && ranks > 2 => A::ScatterAllgather,
            Collective::Broadcast | Collective::Gather | Collective::Scatter => A::Binomial,
            Collective::Allgather if is_long => A::Ring,
            Collective::Allgather if ranks.is_power_of_two() => A::RecursiveDoubling,
            Collective::Allgather => A::Bruck,
            Collective::Alltoall if bytes <= HOPPING_BYTES && ranks > 8 => A::Bruck,
            Collective::Alltoall if is_long => A::Pairwise,
            Collective::Alltoall => A::Linear,
            Collective::Reduce => A::Binomial,
            Collective::Allreduce if is_long && ranks > 2 => A::Ring,
            Collective::Allreduce => A::RecursiveDoubling,
            Collective::ReduceScatter => A::Pairwise,
            Collective::Scan => A::RecursiveDoubling,
            Collective::NeighborAllgather | Collective::NeighborAlltoall => A::Linear,
        }
    }
}

/// From more bytes on the time of a call is that of its data: the algorithms are those that send
/// the least.
const LONG_BYTES: usize = 8 << 10;

/// Up to so many bytes per block may go several ways.
const HOPPING_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_two_algorithms_and_chooses_among_its_own() {
        for &collective in Collective::ALL {
            let own = algorithms(collective);
            assert!(own.len() >= 2, "{collective}");
            for bytes in [0, 8, 1 << 10, 1 << 20] {
                for (ranks, per_node) in [(1, 1), (2, 1), (7, 4), (16, 16), (48, 1), (64, 16)] {
                    let on = On::new(0..ranks, per_node);
                    let chosen = Choice::default().of(collective, bytes, on);
                    assert!(own.contains(&chosen), "{collective}: {chosen}");
                    assert!(suits(collective, chosen, ranks), "{collective}: {chosen}");
                }
            }
            for &algorithm in Algorithm::ALL {
                let mut choice = Choice::default();
                let is_own = own.contains(&algorithm);
                assert_eq!(choice.name(collective, algorithm).is_ok(), is_own);
                let alone = On::new(0..1, 1);
                assert!(!is_own || choice.of(collective, 0, alone) == algorithm);
            }
        }
    }

    #[test]
    fn ranks_are_clustered_where_several_of_a_node_reach_others() {
        let is = |ranks: &[u32], per_node| On::new(ranks.iter().copied(), per_node).is_clustered;
        assert!(is(&[0, 1, 2, 3], 2));
        assert!(!is(&[0, 1, 2, 3], 1), "each on its own");
        assert!(!is(&[0, 1, 2, 3], 4), "all on one");
        assert!(!is(&[0, 2, 4], 2), "one of each node");
    }
}
