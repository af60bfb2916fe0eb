//! Communicators with topologies (MPI-4.1, Ch. 8). Ranks are never reordered.

use std::panic::Location;

use super::{Communicator, Named};
use crate::channel::Channel;
use crate::collective::choice::Algorithm;
use crate::collective::{self, Call};
use crate::comm::Comm;
use crate::comm::create::{self, Made, teams};
use crate::device::Task;
use crate::device::driver::Site;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::topology::{Cartesian, Contribution, DistGraph, Edge, Graph, Topology};

impl<'m, C: Channel> Communicator<'m, C> {
    /// Its topology, if it has one (MPI_Topo_test).
    pub fn topology(&self) -> Option<&Topology> {
        self.comm.topology()
    }

    /// The communicator of a grid with these dimensions; none for ranks beyond it
    /// (MPI_Cart_create).
    ///
    /// # Errors
    /// [`ErrorClass::Dims`] of a grid with more nodes than ranks, [`ErrorClass::Arg`] if there are
    /// not as many periods as dimensions.
    #[track_caller]
    pub fn cart_create(
        &self,
        dims: &[u32],
        periods: &[bool],
    ) -> impl Future<Output = Result<Option<Self>, MpiError>> + Send {
        let site = Location::caller();
        let grid = Cartesian::new(self.size(), dims, periods);
        async move {
            let call = "MPI_Cart_create";
            let topology = grid.map(|grid| (grid.size(), Topology::Cartesian(grid)));
            self.create_first((call, site), topology).await
        }
    }

    /// The communicator of a graph of which each rank has all; none for ranks beyond it
    /// (MPI_Graph_create).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if it is no such graph.
    #[track_caller]
    pub fn graph_create(
        &self,
        index: &[u32],
        edges: &[u32],
    ) -> impl Future<Output = Result<Option<Self>, MpiError>> + Send {
        let site = Location::caller();
        let graph = Graph::new(self.size(), index, edges);
        async move {
            let call = "MPI_Graph_create";
            let topology = graph.map(|graph| (graph.size(), Topology::Graph(graph)));
            self.create_first((call, site), topology).await
        }
    }

    /// The communicator of the first ranks, with this topology.
    async fn create_first(
        &self,
        (call, site): (&'static str, Site),
        topology: Result<(u32, Topology), Fault>,
    ) -> Result<Option<Self>, MpiError> {
        let mut kept = None;
        let task = || {
            let (size, topology) = topology?;
            kept = Some(topology);
            let first: Vec<u32> = (0..size).collect();
            let group = self.comm.group().incl(&first)?;
            let (team, _) = teams(self.mpi.device(), &self.comm, Call::Create, 0);
            let task: Task = Box::pin(create::create(team, group));
            Ok(task)
        };
        let made = self.make(call, site, task).await?;
        Ok(self
            .member_of(made)
            .map(|member| member.with_topology(kept)))
    }

    /// The communicator of the same ranks that has this context and topology.
    fn over(&self, context: u64, topology: Option<Topology>) -> Self {
        let comm = &self.comm;
        let group = comm.group().clone();
        let over = Comm::with(context, group, comm.rank(), None, topology);
        *over.handler().lock() = comm.handler().lock().clone();
        self.mpi.made(over)
    }

    /// The same communicator with a topology.
    fn with_topology(self, topology: Option<Topology>) -> Self {
        self.over(self.comm.made_context(), topology)
    }

    /// The communicator of a graph of which each rank names its own edges, with weights or without
    /// (MPI_Dist_graph_create_adjacent).
    ///
    /// # Errors
    /// As [`DistGraph::adjacent`].
    #[track_caller]
    pub fn dist_graph_create_adjacent(
        &self,
        sources: (&[u32], Option<&[u32]>),
        destinations: (&[u32], Option<&[u32]>),
    ) -> impl Future<Output = Result<Self, MpiError>> + Send {
        let site = Location::caller();
        let graph = DistGraph::adjacent(self.size(), sources, destinations);
        async move {
            let mut kept = None;
            let task = || {
                kept = Some(Topology::Distributed(graph?));
                let (team, _) = teams(self.mpi.device(), &self.comm, Call::Dup, 0);
                let task: Task = Box::pin(create::dup(team, None, true));
                Ok(task)
            };
            let call = "MPI_Dist_graph_create_adjacent";
            let made = self.make(call, site, task).await?;
            Ok(self.over(made.context, kept))
        }
    }

    /// The communicator of a graph to which each rank contributes any edges
    /// (MPI_Dist_graph_create).
    ///
    /// # Errors
    /// As [`Contribution::edges`]; [`ErrorClass::Arg`] if some ranks give weights and some do not.
    #[track_caller]
    pub fn dist_graph_create(
        &self,
        contribution: Contribution<'_>,
    ) -> impl Future<Output = Result<Self, MpiError>> + Send {
        let site = Location::caller();
        let is_weighted = contribution.weights.is_some();
        let edges = contribution.edges(self.size());
        async move {
            let mpi = self.mpi;
            let call = Named::new("MPI_Dist_graph_create", site);
            let entered = mpi.enter(call.name, None, 0).await?;
            let made = match self.comm.check() {
                Ok(()) => self.gathers_edges(site, edges, is_weighted).await,
                Err(fault) => Err(fault),
            };
            mpi.close(entered, &self.comm, made).await
        }
    }

    async fn gathers_edges(
        &self,
        site: Site,
        edges: Result<Vec<Edge>, Fault>,
        is_weighted: bool,
    ) -> Result<Self, Fault> {
        let mpi = self.mpi;
        // A rank whose edges are wrong takes part without any, so that others do not wait for it.
        let own = edges.as_ref().map(Vec::as_slice).unwrap_or_default();
        let words = own
            .iter()
            .flat_map(|edge| [edge.source, edge.destination, edge.weight]);
        let own: Vec<u8> = [u32::from(is_weighted)]
            .into_iter()
            .chain(words)
            .flat_map(u32::to_le_bytes)
            .collect();
        let ranks = self.size() as usize;
        let team = || teams(mpi.device(), &self.comm, Call::DistGraph, 0).0;
        let length = (own.len() as u64).to_le_bytes().to_vec();
        let lengths = collective::allgather(team(), Algorithm::Bruck, (length, vec![8; ranks]));
        let lengths = mpi.run(site, Box::pin(lengths)).await?;
        let (lengths, _) = lengths.as_chunks();
        let lengths: Vec<usize> = lengths
            .iter()
            .map(|length| u64::from_le_bytes(*length) as usize)
            .collect();
        let all = collective::allgather(team(), Algorithm::Ring, (own, lengths.clone()));
        let all = mpi.run(site, Box::pin(all)).await?;
        let made = mpi
            .run(site, Box::pin(create::dup(team(), None, true)))
            .await?;
        edges?;
        let (mut rest, mut edges, mut weighted) = (all.as_slice(), Vec::new(), Vec::new());
        for length in lengths {
            let (own, later) = rest.split_at(length.min(rest.len()));
            rest = later;
            let (words, _) = own.as_chunks();
            let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
            if let Some((&is_weighted, words)) = words.split_first() {
                weighted.push(is_weighted != 0);
                edges.extend(words.chunks_exact(3).map(|edge| Edge {
                    source: edge[0],
                    destination: edge[1],
                    weight: edge[2],
                }));
            }
        }
        if weighted.iter().any(|&other| other != is_weighted) {
            let text = "some ranks give weights, and some do not";
            return Err(Fault::new(ErrorClass::Arg, "weights", text));
        }
        let graph = DistGraph::from_edges(self.rank(), &edges, is_weighted);
        let topology = Some(Topology::Distributed(graph));
        Ok(self.over(Made::from_bytes(&made).context, topology))
    }

    /// The part of the grid that this rank is in if the dimensions remain where `remain_dims` is
    /// true (MPI_Cart_sub).
    ///
    /// # Errors
    /// [`ErrorClass::Topology`] without a grid, [`ErrorClass::Arg`] if there are not as many as
    /// dimensions.
    #[track_caller]
    pub fn cart_sub(
        &self,
        remain_dims: &[bool],
    ) -> impl Future<Output = Result<Self, MpiError>> + Send {
        let site = Location::caller();
        let part = match self.comm.topology() {
            Some(Topology::Cartesian(grid)) => grid.sub(self.rank(), remain_dims),
            _ => Err(Fault::new(
                ErrorClass::Topology,
                "comm",
                "the communicator has no grid",
            )),
        };
        async move {
            let mut kept = None;
            let task = || {
                let part = part?;
                kept = Some(Topology::Cartesian(part.topology));
                let (team, _) = teams(self.mpi.device(), &self.comm, Call::Split, 0);
                let group = self.comm.group().clone();
                let with = (Some(part.color), part.key as i32);
                let task: Task = Box::pin(create::split(team, group, with));
                Ok(task)
            };
            let made = self.make("MPI_Cart_sub", site, task).await?;
            // Each rank is in its own part.
            let part = self.member_of(made).unwrap_or_else(|| self.clone());
            Ok(part.with_topology(kept))
        }
    }
}
