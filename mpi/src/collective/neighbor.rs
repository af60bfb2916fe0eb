//! Exchanges with the neighbours of a topology (MPI-4.1, Sec. 8.6).

use super::choice::Algorithm;
use super::team::Team;
use crate::error::Fault;

/// The blocks that a rank sends and receives, in the order of its neighbours.
pub(crate) struct Exchange {
    /// The receivers with their blocks.
    pub(crate) sent: Vec<(u32, Vec<u8>)>,
    /// The senders, and bytes of their blocks.
    pub(crate) received: Vec<(u32, usize)>,
    /// The order in which blocks of one sender come: places in `received`.
    pub(crate) order: Vec<usize>,
}

/// MPI_Neighbor_alltoall, and with equal blocks MPI_Neighbor_allgather: the blocks that come, one
/// behind the other.
pub(crate) async fn neighbor(
    team: Team,
    algorithm: Algorithm,
    exchange: Exchange,
) -> Result<Vec<u8>, Fault> {
    let Exchange {
        sent,
        received,
        order,
    } = exchange;
    let mut receives = vec![0; received.len()];
    for place in order {
        let (from, bytes) = received[place];
        receives[place] = team.begin_receive(from, bytes);
    }
    let mut sends = Vec::with_capacity(sent.len());
    for (to, block) in sent {
        let send = team.begin_send(to, block);
        match algorithm {
            // One after the other: what they need of the channel is small.
            Algorithm::Pairwise => team.sent(send).await,
            _ => sends.push(send),
        }
    }
    let mut all = Vec::new();
    let mut failed = None;
    for (receive, (from, bytes)) in receives.into_iter().zip(received) {
        match team.finish(receive, from, bytes).await {
            Ok(block) => all.extend(block),
            Err(fault) => drop(failed.get_or_insert(fault)),
        }
    }
    for send in sends {
        team.sent(send).await;
    }
    failed.map_or(Ok(all), Err)
}
