//! Topologies: grids and graphs.

use super::arguments::Arguments;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::ErrorClass;
use crate::rank::Communicator;
use crate::topology::{Cartesian, Contribution, DistGraph, Graph, Topology, dims_create};

impl<C: Channel> Server<'_, C> {
    pub(super) async fn topologies(&mut self, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name;
        if !matches!(
            name,
            "Cart_create"
                | "Cart_sub"
                | "Graph_create"
                | "Dist_graph_create"
                | "Dist_graph_create_adjacent"
        ) {
            return a.rank.topologies(a);
        }
        let (_, object) = a.comm_object()?;
        let on = self.mpi.on(object.comm);
        let made = match name {
            "Cart_create" => {
                let count = a.length()?;
                let (dims, periods) = (unsigned(a, count)?, flags(a, count)?);
                a.skip();
                on.cart_create(&dims, &periods).await?
            }
            "Cart_sub" => {
                let remain = flags(a, grid(on.handle())?.dims().len())?;
                Some(on.cart_sub(&remain).await?)
            }
            "Graph_create" => {
                let nodes = a.length()?;
                let index = unsigned(a, nodes)?;
                let edges = index.last().copied().unwrap_or_default();
                let edges = unsigned(a, edges as usize)?;
                a.skip();
                on.graph_create(&index, &edges).await?
            }
            "Dist_graph_create" => Some(spread(a, &on).await?),
            _ => Some(adjacent(a, &on).await?),
        };
        let at = a.address();
        self.made(a, at, made, object.object.handler)?;
        SUCCESS
    }
}

/// MPI_Dist_graph_create.
async fn spread<'m, C: Channel>(
    a: &mut Arguments<'_>,
    on: &Communicator<'m, C>,
) -> Result<Communicator<'m, C>, Failure> {
    let count = a.length()?;
    let (sources, degrees) = (unsigned(a, count)?, unsigned(a, count)?);
    let all = degrees.iter().map(|&degree| degree as usize).sum();
    let destinations = unsigned(a, all)?;
    let weights = weights(a, all)?;
    a.skip();
    a.skip();
    let contribution = Contribution {
        sources: &sources,
        degrees: &degrees,
        destinations: &destinations,
        weights: weights.as_deref(),
    };
    Ok(on.dist_graph_create(contribution).await?)
}

/// MPI_Dist_graph_create_adjacent.
async fn adjacent<'m, C: Channel>(
    a: &mut Arguments<'_>,
    on: &Communicator<'m, C>,
) -> Result<Communicator<'m, C>, Failure> {
    let mut side = || {
        let degree = a.length()?;
        let ranks = unsigned(a, degree)?;
        Ok::<_, Failure>((ranks, weights(a, degree)?))
    };
    let (sources, destinations) = (side()?, side()?);
    a.skip();
    a.skip();
    let made = on.dist_graph_create_adjacent(
        (&sources.0, sources.1.as_deref()),
        (&destinations.0, destinations.1.as_deref()),
    );
    Ok(made.await?)
}

/// Numbers that must not be negative.
fn unsigned(a: &mut Arguments<'_>, count: usize) -> Result<Vec<u32>, Failure> {
    let number = |number: i64| {
        u32::try_from(number)
            .map_err(|_| Failure::new(ErrorClass::Arg, format!("{number} is negative")))
    };
    a.numbers(count)?.into_iter().map(number).collect()
}

fn flags(a: &mut Arguments<'_>, count: usize) -> Result<Vec<bool>, Failure> {
    let numbers = a.numbers(count)?.into_iter();
    Ok(numbers.map(|number| number != 0).collect())
}

/// The weights of edges, if they have any.
fn weights(a: &mut Arguments<'_>, count: usize) -> Result<Option<Vec<u32>>, Failure> {
    let of = a.interface();
    let address = a.address();
    match address {
        _ if address == of.handle("UNWEIGHTED") => Ok(None),
        _ if address == of.handle("WEIGHTS_EMPTY") || count == 0 => Ok(Some(Vec::new())),
        _ => {
            let numbers = a.rank.numbers(address, count, 4)?;
            Ok(Some(
                numbers.into_iter().map(|number| number as u32).collect(),
            ))
        }
    }
}

fn grid(comm: &Comm) -> Result<&Cartesian, Failure> {
    match comm.topology() {
        Some(Topology::Cartesian(grid)) => Ok(grid),
        _ => Err(Failure::new(ErrorClass::Topology, "comm: it has no grid")),
    }
}

fn graph(comm: &Comm) -> Result<&Graph, Failure> {
    match comm.topology() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(Failure::new(ErrorClass::Topology, "comm: it has no graph")),
    }
}

fn distributed(comm: &Comm) -> Result<&DistGraph, Failure> {
    match comm.topology() {
        Some(Topology::Distributed(graph)) => Ok(graph),
        _ => Err(Failure::new(
            ErrorClass::Topology,
            "comm: it has no distributed graph",
        )),
    }
}

/// As many as the program has room for.
fn some<T: Copy + Into<i64>>(all: &[T], room: usize) -> Vec<i64> {
    all.iter().take(room).map(|&one| one.into()).collect()
}

impl Rank {
    /// The calls about topologies that need no other rank.
    pub(super) fn topologies(&self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Dims_create" => {
                let nodes = a.number();
                let count = a.length()?;
                let out = a.out();
                let dims = self.numbers(out.address, count, 4)?.into_iter();
                let wrong = |_| Failure::new(ErrorClass::Dims, "dims: one is negative");
                let dims: Result<Vec<u32>, _> = dims.map(u32::try_from).collect();
                let mut dims = dims.map_err(wrong)?;
                let nodes = u32::try_from(nodes)
                    .map_err(|_| Failure::new(ErrorClass::Arg, "nnodes: it is negative"))?;
                dims_create(nodes, &mut dims)?;
                a.put_all(out, &some(&dims, count))?;
            }
            "Topo_test" => {
                let (comm, out) = (a.comm()?, a.out());
                let name = match comm.topology() {
                    None => "UNDEFINED",
                    Some(Topology::Cartesian(_)) => "CART",
                    Some(Topology::Graph(_)) => "GRAPH",
                    Some(Topology::Distributed(_)) => "DIST_GRAPH",
                };
                a.put(out, a.interface().constant(name))?;
            }
            "Cartdim_get" => {
                let (comm, out) = (a.comm()?, a.out());
                a.put(out, grid(&comm)?.dims().len() as i64)?;
            }
            "Cart_get" => {
                let (comm, room) = (a.comm()?, a.length()?);
                let grid = grid(&comm)?;
                let coords = grid.coords(comm.rank())?;
                let (dims, periods, own) = (a.out(), a.out(), a.out());
                a.put_all(dims, &some(grid.dims(), room))?;
                a.put_all(periods, &some(grid.periods(), room))?;
                a.put_all(own, &some(&coords, room))?;
            }
            "Cart_coords" => {
                let (comm, rank, room) = (a.comm()?, a.peer()?, a.length()?);
                let coords = grid(&comm)?.coords(rank)?;
                let out = a.out();
                a.put_all(out, &some(&coords, room))?;
            }
            "Cart_rank" => {
                let comm = a.comm()?;
                let grid = grid(&comm)?;
                let coords = a.numbers(grid.dims().len())?.into_iter();
                let coords: Vec<i32> = coords.map(|coord| coord as i32).collect();
                let out = a.out();
                a.put(out, grid.rank(&coords)?.into())?;
            }
            "Cart_shift" => {
                let (comm, direction, steps) = (a.comm()?, a.number(), a.number() as i32);
                let grid = grid(&comm)?;
                let direction = usize::try_from(direction).unwrap_or(usize::MAX);
                let (source, destination) = grid.shift(comm.rank(), direction, steps)?;
                let no_process = a.interface().constant("PROC_NULL");
                let (first, second) = (a.out(), a.out());
                a.put(first, source.map_or(no_process, i64::from))?;
                a.put(second, destination.map_or(no_process, i64::from))?;
            }
            "Cart_map" => {
                let (comm, count) = (a.comm()?, a.length()?);
                let (dims, periods) = (unsigned(a, count)?, flags(a, count)?);
                let grid = Cartesian::new(comm.size(), &dims, &periods)?;
                let own = Some(comm.rank()).filter(|&rank| rank < grid.size());
                let out = a.out();
                a.put_or_undefined(out, own.map(i64::from))?;
            }
            "Graph_map" => {
                let (comm, nodes) = (a.comm()?, a.number());
                a.skip();
                a.skip();
                let own = Some(i64::from(comm.rank())).filter(|&rank| rank < nodes);
                let out = a.out();
                a.put_or_undefined(out, own)?;
            }
            "Graphdims_get" => {
                let (comm, nodes, edges) = (a.comm()?, a.out(), a.out());
                let graph = graph(&comm)?;
                a.put(nodes, graph.index().len() as i64)?;
                a.put(edges, graph.edges().len() as i64)?;
            }
            "Graph_get" => {
                let (comm, nodes, edges) = (a.comm()?, a.length()?, a.length()?);
                let graph = graph(&comm)?;
                let (first, second) = (a.out(), a.out());
                a.put_all(first, &some(graph.index(), nodes))?;
                a.put_all(second, &some(graph.edges(), edges))?;
            }
            "Graph_neighbors_count" => {
                let (comm, rank, out) = (a.comm()?, a.peer()?, a.out());
                a.put(out, graph(&comm)?.neighbors(rank)?.len() as i64)?;
            }
            "Graph_neighbors" => {
                let (comm, rank, room) = (a.comm()?, a.peer()?, a.length()?);
                let out = a.out();
                a.put_all(out, &some(graph(&comm)?.neighbors(rank)?, room))?;
            }
            "Dist_graph_neighbors_count" => {
                let comm = a.comm()?;
                let graph = distributed(&comm)?;
                let (sources, destinations, weighted) = (a.out(), a.out(), a.out());
                a.put(sources, graph.sources().len() as i64)?;
                a.put(destinations, graph.destinations().len() as i64)?;
                a.put(weighted, graph.is_weighted().into())?;
            }
            "Dist_graph_neighbors" => {
                let comm = a.comm()?;
                let graph = distributed(&comm)?;
                let sides = [
                    (graph.sources(), graph.source_weights()),
                    (graph.destinations(), graph.destination_weights()),
                ];
                for (ranks, weights) in sides {
                    let (room, out, weighed) = (a.length()?, a.out(), a.out());
                    a.put_all(out, &some(ranks, room))?;
                    let unweighted = a.interface().handle("UNWEIGHTED");
                    let empty = a.interface().handle("WEIGHTS_EMPTY");
                    if let Some(weights) = weights
                        && weighed.address != unweighted
                        && weighed.address != empty
                    {
                        a.put_all(weighed, &some(weights, room))?;
                    }
                }
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }
}
