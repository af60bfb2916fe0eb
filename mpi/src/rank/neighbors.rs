//! The launches of calls between neighbours: as those of `launches`.

use super::given::{Given, Layout, Sent};
use super::launches::{Setting, packed_pieces};
use super::request::{Landing, Launch};
use crate::buffer::{Buffer, BufferMut, Piece};
use crate::collective::choice::Collective;
use crate::collective::{self, Call, Exchange};
use crate::comm::Comm;
use crate::error::{ErrorClass, Fault};
use crate::topology::{Neighborhood, Topology};

/// The neighbours of this rank: those it receives from, those it sends to, and the order in which
/// blocks of one sender come.
struct Neighbors {
    sources: Vec<Option<u32>>,
    destinations: Vec<Option<u32>>,
    order: Vec<usize>,
}

impl Neighbors {
    /// Those of the communicator's topology.
    ///
    /// In a grid the block that goes in one direction comes from the opposite one, also where both
    /// neighbours of a dimension are the same rank.
    fn of(comm: &Comm) -> Result<Self, Fault> {
        let topology = comm.topology().ok_or_else(|| {
            let text = "the communicator has no topology";
            Fault::new(ErrorClass::Topology, "comm", text)
        })?;
        let Neighborhood {
            sources,
            destinations,
        } = topology.neighborhood(comm.rank())?;
        let is_grid = matches!(topology, Topology::Cartesian(_));
        let order = 0..sources.len();
        let order = order.map(|place| if is_grid { place ^ 1 } else { place });
        Ok(Self {
            order: order.collect(),
            sources,
            destinations,
        })
    }

    /// The call: what it sends, as blocks of the destinations, and the pieces of the sources.
    fn launch<'b>(
        self,
        setting: &Setting,
        (call, collective): (Call, Collective),
        blocks: Vec<Vec<u8>>,
        (received, pieces): (BufferMut<'b>, Vec<Piece>),
    ) -> Launch<'b> {
        let mut places = vec![None; self.sources.len()];
        let mut own = Vec::new();
        let mut landing = Vec::new();
        for (place, (source, piece)) in self.sources.into_iter().zip(pieces).enumerate() {
            if let Some(source) = source {
                places[place] = Some(own.len());
                own.push((source, piece.bytes()));
                landing.push(piece);
            }
        }
        let sent = self.destinations.into_iter().zip(blocks);
        let exchange = Exchange {
            sent: sent.filter_map(|(to, block)| Some((to?, block))).collect(),
            received: own,
            order: self
                .order
                .into_iter()
                .filter_map(|place| places[place])
                .collect(),
        };
        let algorithm = setting.choose(collective, 0);
        let (team, _) = setting.teams(call, 0);
        let task = collective::neighbor(team, algorithm, exchange);
        Launch::task(task, Landing::Pieces(received, landing))
    }
}

/// The buffer that a neighbourhood call sends from.
fn not_in_place<'a>(given: &'a Given<'_>) -> Result<&'a Buffer<'a>, Fault> {
    match &given.sent {
        Sent::Buffer(buffer) => Ok(buffer),
        Sent::InPlace => {
            let text = "MPI_IN_PLACE is not for neighbourhood calls";
            Err(Fault::new(ErrorClass::Buffer, "sendbuf", text))
        }
    }
}

pub(super) fn neighbor_allgather<'b>(
    setting: &Setting,
    given: Given<'b>,
    layout: Layout,
) -> Result<Launch<'b>, Fault> {
    let neighbors = Neighbors::of(&setting.comm)?;
    let block = not_in_place(&given)?.packed()?;
    let blocks = vec![block; neighbors.destinations.len()];
    let whole = given.received.shared().whole();
    let pieces = layout.pieces(&whole, neighbors.sources.len() as u32, "recvcounts")?;
    let call = (Call::NeighborAllgather, Collective::NeighborAllgather);
    Ok(neighbors.launch(setting, call, blocks, (given.received, pieces)))
}

pub(super) fn neighbor_alltoall<'b>(
    setting: &Setting,
    given: Given<'b>,
    sent: Layout,
    received: Layout,
) -> Result<Launch<'b>, Fault> {
    let neighbors = Neighbors::of(&setting.comm)?;
    let buffer = not_in_place(&given)?;
    let count = neighbors.destinations.len() as u32;
    let out = sent.pieces(&buffer.whole(), count, "sendcounts")?;
    let blocks = packed_pieces(buffer, &out)?;
    let whole = given.received.shared().whole();
    let pieces = received.pieces(&whole, neighbors.sources.len() as u32, "recvcounts")?;
    let call = (Call::NeighborAlltoall, Collective::NeighborAlltoall);
    Ok(neighbors.launch(setting, call, blocks, (given.received, pieces)))
}
