//! A block from every rank to every rank.

use super::choice::Algorithm;
use super::gather::{bundle, unbundle};
use super::team::Team;
use crate::error::{ErrorClass, Fault};

/// MPI_Alltoall and its v and w forms: block i of `blocks` goes to rank i; the block of rank i has
/// `lengths[i]` bytes.
pub(crate) async fn alltoall(
    team: Team,
    algorithm: Algorithm,
    (blocks, lengths): (Vec<Vec<u8>>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Pairwise => pairwise(&team, blocks, &lengths).await,
        Algorithm::Bruck => bruck(&team, blocks, &lengths).await,
        _ => linear(&team, blocks, &lengths).await,
    }
}

/// All sends and receives at once.
async fn linear(team: &Team, blocks: Vec<Vec<u8>>, lengths: &[usize]) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    // Each begins with its neighbour, so that not all send to the same rank.
    let others = || (0..size).map(|step| (rank + step) % size);
    let mut receives = vec![0; size as usize];
    for from in others() {
        receives[from as usize] = team.begin_receive(from, lengths[from as usize]);
    }
    let mut blocks: Vec<Option<Vec<u8>>> = blocks.into_iter().map(Some).collect();
    let mut send = |to: u32| {
        let block = blocks[to as usize].take().unwrap_or_default();
        team.begin_send(to, block)
    };
    let sends: Vec<usize> = others().map(&mut send).collect();
    let mut all = Vec::with_capacity(lengths.iter().sum());
    let mut failed = None;
    for ((from, receive), &length) in (0..).zip(receives).zip(lengths) {
        match team.finish(receive, from, length).await {
            Ok(block) => all.extend(block),
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    for send in sends {
        team.sent(send).await;
    }
    failed.map_or(Ok(all), Err)
}

/// In step k each rank sends to the one k further, and receives from the one k before.
async fn pairwise(
    team: &Team,
    mut blocks: Vec<Vec<u8>>,
    lengths: &[usize],
) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    let mut all = vec![Vec::new(); size as usize];
    for step in 0..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        let block = std::mem::take(&mut blocks[to as usize]);
        let length = lengths[from as usize];
        all[from as usize] = team.exchange((to, block), (from, length)).await?;
    }
    Ok(all.concat())
}

/// Blocks hop: in round k each rank sends on, over a distance of 2^k, all blocks for which bit k of
/// the distance to their receiver is set (Bruck et al. 1997). Few messages, but each block goes
/// several ways.
async fn bruck(team: &Team, mut blocks: Vec<Vec<u8>>, lengths: &[usize]) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    // Block i has i ranks to go.
    blocks.rotate_left(rank as usize);
    let mut distance = 1;
    while distance < size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let moving: Vec<usize> = (0..size)
            .filter(|place| place & distance != 0)
            .map(|place| place as usize)
            .collect();
        let sent: Vec<Vec<u8>> = moving
            .iter()
            .map(|&place| std::mem::take(&mut blocks[place]))
            .collect();
        let came = team.exchange_any((to, bundle(&sent)), from).await?;
        for (place, block) in moving.into_iter().zip(unbundle(&came)) {
            blocks[place] = block;
        }
        distance *= 2;
    }
    // Block i has come from rank - i.
    blocks.reverse();
    blocks.rotate_right(rank as usize + 1);
    for ((from, block), &length) in (0u32..).zip(&blocks).zip(lengths) {
        if block.len() != length {
            let text = format!(
                "number {from} sent {} bytes where {length} are expected",
                block.len()
            );
            return Err(Fault::new(ErrorClass::Truncate, "recvcount", text));
        }
    }
    Ok(blocks.concat())
}
