//! Gathering blocks at a root. Blocks may differ in length, which only their senders and the root
//! know.

use super::choice::Algorithm;
use super::places;
use super::team::Team;
use crate::error::{ErrorClass, Fault};

/// MPI_Gather and MPI_Gatherv of each rank's `own` block; the root, which knows the `lengths` of
/// all, gets the blocks, others nothing.
pub(crate) async fn gather(
    team: Team,
    algorithm: Algorithm,
    (root, own, lengths): (u32, Vec<u8>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Binomial => binomial(&team, root, own, &lengths).await,
        _ => linear(&team, root, own, &lengths).await,
    }
}

/// Each sends to the root.
async fn linear(team: &Team, root: u32, own: Vec<u8>, lengths: &[usize]) -> Result<Vec<u8>, Fault> {
    if team.rank() != root {
        team.send(root, own).await;
        return Ok(Vec::new());
    }
    let receives: Vec<usize> = (0..)
        .zip(lengths)
        .map(|(rank, &length)| match rank == root {
            true => 0,
            false => team.begin_receive(rank, length),
        })
        .collect();
    let mut all = Vec::with_capacity(lengths.iter().sum());
    let mut failed = None;
    for ((rank, &length), receive) in (0..).zip(lengths).zip(receives) {
        let block = match rank == root {
            true => of_length(own.clone(), length),
            false => team.finish(receive, rank, length).await,
        };
        match block {
            Ok(block) => all.extend(block),
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    failed.map_or(Ok(all), Err)
}

/// Up a binomial tree: a rank sends the blocks of its subtree with their lengths.
async fn binomial(
    team: &Team,
    root: u32,
    own: Vec<u8>,
    lengths: &[usize],
) -> Result<Vec<u8>, Fault> {
    let size = team.size();
    let place = (team.rank() + size - root) % size;
    let at = |place: u32| (place + root) % size;
    let mut blocks = vec![own];
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        if place + bit < size {
            let bundle = team.receive_any(at(place + bit)).await?;
            blocks.extend(unbundle(&bundle));
        }
        bit *= 2;
    }
    if place != 0 {
        team.send(at(place - bit), bundle(&blocks)).await;
        return Ok(Vec::new());
    }
    // Block i is that of rank (root + i) % size.
    let places = places(lengths);
    let mut all = vec![0; places[lengths.len()]];
    for (place, block) in (0..).zip(blocks) {
        let rank = at(place) as usize;
        let block = of_length(block, lengths[rank])?;
        all[places[rank]..places[rank + 1]].copy_from_slice(&block);
    }
    Ok(all)
}

fn of_length(block: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
    let text = |class| {
        let text = format!(
            "a block has {} bytes where {length} are expected",
            block.len()
        );
        Err(Fault::new(class, "count", text))
    };
    match block.len().cmp(&length) {
        std::cmp::Ordering::Equal => Ok(block),
        std::cmp::Ordering::Greater => text(ErrorClass::Truncate),
        std::cmp::Ordering::Less => text(ErrorClass::Count),
    }
}

/// Blocks as one message: each with its length before it.
pub(super) fn bundle(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut bundle = Vec::with_capacity(blocks.iter().map(|block| 8 + block.len()).sum());
    for block in blocks {
        bundle.extend((block.len() as u64).to_le_bytes());
        bundle.extend(block);
    }
    bundle
}

/// The blocks of such a message.
pub(super) fn unbundle(mut bundle: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    while let Some((length, rest)) = bundle.split_first_chunk::<8>() {
        let length = (u64::from_le_bytes(*length) as usize).min(rest.len());
        let (block, rest) = rest.split_at(length);
        blocks.push(block.to_vec());
        bundle = rest;
    }
    blocks
}
