//! Reductions of the operands of the ranks up to each one.

use super::Reduction;
use super::choice::Algorithm;
use super::team::Team;
use crate::error::Fault;

/// MPI_Scan of each rank's `own` elements, or MPI_Exscan, which leaves out the rank's own and gives
/// rank 0 nothing.
pub(crate) async fn scan(
    team: Team,
    algorithm: Algorithm,
    reduction: Reduction,
    (own, is_exclusive): (Vec<u8>, bool),
) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Linear => chain(&team, &reduction, own, is_exclusive).await,
        _ => recursive_doubling(&team, &reduction, own, is_exclusive).await,
    }
}

/// From rank to rank.
async fn chain(
    team: &Team,
    reduction: &Reduction,
    own: Vec<u8>,
    is_exclusive: bool,
) -> Result<Vec<u8>, Fault> {
    let (rank, length) = (team.rank(), own.len());
    let mut inclusive = own;
    let mut exclusive = Vec::new();
    if rank > 0 {
        exclusive = team.receive(rank - 1, length).await?;
        let of = (&reduction.op, &reduction.datatype);
        team.combine(of, &exclusive, &mut inclusive)?;
    }
    if rank + 1 < team.size() {
        team.send(rank + 1, inclusive.clone()).await;
    }
    Ok(if is_exclusive { exclusive } else { inclusive })
}

/// In round k each rank sends the one 2^k further the result of the 2^k ranks up to itself (Hillis
/// and Steele 1986).
async fn recursive_doubling(
    team: &Team,
    reduction: &Reduction,
    own: Vec<u8>,
    is_exclusive: bool,
) -> Result<Vec<u8>, Fault> {
    let (rank, size, length) = (team.rank(), team.size(), own.len());
    let of = (&reduction.op, &reduction.datatype);
    let mut inclusive = own;
    let mut exclusive: Option<Vec<u8>> = None;
    let mut distance = 1;
    while distance < size {
        let has_later = rank + distance < size;
        let send = has_later.then(|| team.begin_send(rank + distance, inclusive.clone()));
        if rank >= distance {
            let earlier = team.receive(rank - distance, length).await?;
            match &mut exclusive {
                Some(exclusive) => team.combine(of, &earlier, exclusive)?,
                None => exclusive = Some(earlier.clone()),
            }
            team.combine(of, &earlier, &mut inclusive)?;
        }
        if let Some(send) = send {
            team.sent(send).await;
        }
        distance *= 2;
    }
    Ok(match is_exclusive {
        true => exclusive.unwrap_or_default(),
        false => inclusive,
    })
}
