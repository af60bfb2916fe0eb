//! Reductions to a root. Every algorithm combines operands in the order of their ranks, unless the
//! operation is commutative.

use super::choice::Algorithm;
use super::team::Team;
use super::{Reduction, gather};
use crate::error::Fault;

/// MPI_Reduce of each rank's `own` elements; the root gets the result, others nothing.
pub(crate) async fn reduce(
    team: Team,
    algorithm: Algorithm,
    reduction: Reduction,
    (root, own): (u32, Vec<u8>),
) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Linear => linear(team, &reduction, root, own).await,
        _ => binomial(&team, &reduction, root, own).await,
    }
}

/// The root gets all operands, and combines them from the last to the first.
async fn linear(
    team: Team,
    reduction: &Reduction,
    root: u32,
    own: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let (rank, size, length) = (team.rank(), team.size() as usize, own.len());
    let lengths = vec![length; size];
    let all = gather(team.clone(), Algorithm::Linear, (root, own, lengths)).await?;
    if rank != root {
        return Ok(Vec::new());
    }
    if length == 0 {
        return Ok(all);
    }
    let mut operands = all.chunks_exact(length).rev();
    let mut result = operands.next().unwrap_or_default().to_vec();
    for earlier in operands {
        team.combine((&reduction.op, &reduction.datatype), earlier, &mut result)?;
    }
    Ok(result)
}

/// Up a binomial tree: to the root itself if the operation is commutative, else to rank 0, which
/// sends the result to the root.
async fn binomial(
    team: &Team,
    reduction: &Reduction,
    root: u32,
    own: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let (size, length) = (team.size(), own.len());
    let top = match reduction.op.is_commutative() {
        true => root,
        false => 0,
    };
    let place = (team.rank() + size - top) % size;
    let at = |place: u32| (place + top) % size;
    let mut result = own;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        if place + bit < size {
            // The operands of the later ranks.
            let mut later = team.receive(at(place + bit), length).await?;
            team.combine((&reduction.op, &reduction.datatype), &result, &mut later)?;
            result = later;
        }
        bit *= 2;
    }
    if place != 0 {
        team.send(at(place - bit), std::mem::take(&mut result))
            .await;
    }
    if top != root {
        if team.rank() == top {
            team.send(root, std::mem::take(&mut result)).await;
        } else if team.rank() == root {
            return team.receive(top, length).await;
        }
    }
    Ok(result)
}
