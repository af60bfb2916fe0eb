//! Collective calls between the two sides of an intercommunicator (MPI-4.1, Sec. 6.2.2 and 6.2.3).
//! A team here sends to and receives from the other side; `local` is the team of the own side.

use super::choice::Algorithm;
use super::gather::{bundle, unbundle};
use super::scatter::Scattered;
use super::team::Team;
use super::{Reduction, broadcast, reduce, scatter};
use crate::error::{ErrorClass, Fault};

/// The part of this rank in a call with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The rank is the root.
    Root,
    /// The rank is on the root's side, and does nothing.
    Idle,
    /// The root is this rank of the other side.
    Of(u32),
}

const TREE: Algorithm = Algorithm::Binomial;

/// The first ranks of both sides tell each other something, which each tells its own side.
async fn leaders(team: &Team, local: &Team, own: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let mut theirs = Vec::new();
    if local.rank() == 0 {
        theirs = team.exchange_any((0, own), 0).await?;
    }
    let length = (theirs.len() as u64).to_le_bytes().to_vec();
    let length = broadcast(local.clone(), TREE, (0, length, 8)).await?;
    let length = length.try_into().map_or(0, u64::from_le_bytes) as usize;
    broadcast(local.clone(), TREE, (0, theirs, length)).await
}

/// MPI_Barrier: no rank of one side leaves before all of the other have entered.
pub(crate) async fn barrier(team: Team, local: Team) -> Result<Vec<u8>, Fault> {
    super::barrier(local.clone(), TREE).await?;
    leaders(&team, &local, Vec::new()).await
}

/// MPI_Bcast to all of the other side.
pub(crate) async fn bcast(
    (team, local): (Team, Team),
    part: Part,
    (bytes, length): (Vec<u8>, usize),
) -> Result<Vec<u8>, Fault> {
    match part {
        Part::Root => {
            team.send(0, bytes.clone()).await;
            Ok(bytes)
        }
        Part::Idle => Ok(bytes),
        Part::Of(root) => {
            let mut bytes = Vec::new();
            if local.rank() == 0 {
                bytes = team.receive(root, length).await?;
            }
            broadcast(local, TREE, (0, bytes, length)).await
        }
    }
}

/// MPI_Gather and MPI_Gatherv from the other side.
pub(crate) async fn gather(
    team: Team,
    part: Part,
    (own, lengths): (Vec<u8>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    match part {
        Part::Idle => Ok(Vec::new()),
        Part::Of(root) => {
            team.send(root, own).await;
            Ok(Vec::new())
        }
        Part::Root => {
            let mut all = Vec::new();
            for (rank, length) in (0..).zip(lengths) {
                all.extend(team.receive(rank, length).await?);
            }
            Ok(all)
        }
    }
}

/// MPI_Scatter and MPI_Scatterv to the other side.
pub(crate) async fn scatter_to(
    team: Team,
    part: Part,
    (blocks, own): (Vec<Vec<u8>>, usize),
) -> Result<Vec<u8>, Fault> {
    match part {
        Part::Idle => Ok(Vec::new()),
        Part::Of(root) => team.receive(root, own).await,
        Part::Root => {
            for (rank, block) in (0..).zip(blocks) {
                team.send(rank, block).await;
            }
            Ok(Vec::new())
        }
    }
}

/// MPI_Allgather, MPI_Alltoall and their forms: block i goes to rank i of the other side, whose
/// block has `lengths[i]` bytes.
pub(crate) async fn alltoall(
    team: Team,
    (blocks, lengths): (Vec<Vec<u8>>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    let receives: Vec<usize> = (0..)
        .zip(&lengths)
        .map(|(rank, &length)| team.begin_receive(rank, length))
        .collect();
    let sends: Vec<usize> = (0..)
        .zip(blocks)
        .map(|(rank, block)| team.begin_send(rank, block))
        .collect();
    let mut all = Vec::with_capacity(lengths.iter().sum());
    for ((rank, receive), length) in (0..).zip(receives).zip(lengths) {
        all.extend(team.finish(receive, rank, length).await?);
    }
    for send in sends {
        team.sent(send).await;
    }
    Ok(all)
}

/// MPI_Reduce of the other side's operands.
pub(crate) async fn reduce_to(
    (team, local): (Team, Team),
    part: Part,
    reduction: Reduction,
    (own, length): (Vec<u8>, usize),
) -> Result<Vec<u8>, Fault> {
    match part {
        Part::Idle => Ok(Vec::new()),
        Part::Root => team.receive(0, length).await,
        Part::Of(root) => {
            let is_first = local.rank() == 0;
            let result = reduce(local, TREE, reduction, (0, own)).await?;
            if is_first {
                team.send(root, result).await;
            }
            Ok(Vec::new())
        }
    }
}

/// MPI_Allreduce: each side gets the result of the other.
pub(crate) async fn allreduce(
    (team, local): (Team, Team),
    reduction: Reduction,
    own: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let length = own.len();
    let result = reduce(local.clone(), TREE, reduction, (0, own)).await?;
    let theirs = leaders(&team, &local, result).await?;
    of_length(theirs, length)
}

/// MPI_Reduce_scatter: each side gets the result of the other, in blocks.
pub(crate) async fn reduce_scatter(
    (team, local): (Team, Team),
    reduction: Reduction,
    (own, lengths): (Vec<u8>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    let length = own.len();
    let block = lengths[local.rank() as usize];
    let result = reduce(local.clone(), TREE, reduction, (0, own)).await?;
    let mut theirs = Vec::new();
    if local.rank() == 0 {
        theirs = of_length(team.exchange_any((0, result), 0).await?, length)?;
    }
    let all = Scattered {
        bytes: theirs,
        lengths,
    };
    scatter(local, TREE, (0, all, block)).await
}

fn of_length(bytes: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
    match bytes.len() == length {
        true => Ok(bytes),
        false => {
            let text = format!(
                "the other side has {} bytes where {length} are expected",
                bytes.len()
            );
            Err(Fault::new(ErrorClass::Count, "count", text))
        }
    }
}

/// Blocks of unknown lengths from all ranks of the other side, for calls that make communicators.
pub(crate) async fn allgather_any(
    (team, local): (&Team, &Team),
    own: Vec<u8>,
    own_lengths: Vec<usize>,
) -> Result<(Vec<Vec<u8>>, Vec<Vec<u8>>), Fault> {
    let lengths = own_lengths.clone();
    let ours = super::allgather(local.clone(), Algorithm::Bruck, (own, own_lengths)).await?;
    let places = super::places(&lengths);
    let ours: Vec<Vec<u8>> = places
        .windows(2)
        .map(|ends| ours[ends[0]..ends[1]].to_vec())
        .collect();
    let theirs = leaders(team, local, bundle(&ours)).await?;
    Ok((ours, unbundle(&theirs)))
}
