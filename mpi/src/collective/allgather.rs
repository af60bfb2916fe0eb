//! Gathering blocks at every rank. All ranks know the lengths of all blocks.

use super::choice::Algorithm;
use super::gather::{bundle, unbundle};
use super::places;
use super::team::Team;
use crate::error::{ErrorClass, Fault};

/// MPI_Allgather and MPI_Allgatherv of each rank's `own` block.
pub(crate) async fn allgather(
    team: Team,
    algorithm: Algorithm,
    (own, lengths): (Vec<u8>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    let expected = lengths[team.rank() as usize];
    if own.len() != expected {
        let text = format!(
            "this rank's block has {} bytes where {expected} are expected",
            own.len()
        );
        return Err(Fault::new(ErrorClass::Count, "sendcount", text));
    }
    match algorithm {
        Algorithm::Bruck => bruck(&team, own, &lengths).await,
        Algorithm::RecursiveDoubling => recursive_doubling(&team, own, &lengths).await,
        _ => ring(&team, own, &lengths).await,
    }
}

/// Each block goes round the ring.
async fn ring(team: &Team, own: Vec<u8>, lengths: &[usize]) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    let places = places(lengths);
    let mut all = vec![0; places[size as usize]];
    let block = |rank: u32| places[rank as usize]..places[rank as usize + 1];
    all[block(rank)].copy_from_slice(&own);
    for step in 0..size - 1 {
        let sent = (rank + size - step) % size;
        let came = (rank + size - step - 1) % size;
        let part = all[block(sent)].to_vec();
        let from = ((rank + size - 1) % size, lengths[came as usize]);
        let part = team.exchange(((rank + 1) % size, part), from).await?;
        all[block(came)].copy_from_slice(&part);
    }
    Ok(all)
}

/// In round k each rank sends all blocks that it has to the one 2^k before it, and gets as many
/// from the one 2^k further (Bruck et al. 1997).
async fn bruck(team: &Team, own: Vec<u8>, lengths: &[usize]) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    // Block i is that of rank + i.
    let mut blocks = vec![own];
    let mut distance = 1;
    while distance < size {
        let count = distance.min(size - distance) as usize;
        let (to, from) = ((rank + size - distance) % size, (rank + distance) % size);
        let sent = bundle(&blocks[..count]);
        let came = team.exchange_any((to, sent), from).await?;
        blocks.extend(unbundle(&came));
        distance *= 2;
    }
    blocks.rotate_right(rank as usize);
    let has_length = |(block, &length): (&Vec<u8>, &usize)| block.len() == length;
    if blocks.len() != lengths.len() || !blocks.iter().zip(lengths).all(has_length) {
        let text = "another rank's block has another length than is expected here";
        return Err(Fault::new(ErrorClass::Count, "recvcount", text));
    }
    Ok(blocks.concat())
}

/// In round k the ranks whose numbers differ in bit k exchange all that they have. Of a power of
/// two ranks.
async fn recursive_doubling(
    team: &Team,
    own: Vec<u8>,
    lengths: &[usize],
) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    let places = places(lengths);
    let mut all = vec![0; places[size as usize]];
    all[places[rank as usize]..places[rank as usize + 1]].copy_from_slice(&own);
    let mut bit = 1;
    while bit < size {
        let partner = rank ^ bit;
        let range = |rank: u32| {
            let first = (rank & !(bit - 1)) as usize;
            places[first]..places[first + bit as usize]
        };
        let sent = all[range(rank)].to_vec();
        let room = range(partner);
        let came = team
            .exchange((partner, sent), (partner, room.len()))
            .await?;
        all[room].copy_from_slice(&came);
        bit *= 2;
    }
    Ok(all)
}
