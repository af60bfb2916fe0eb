//! Barriers out of messages without data.

use super::choice::Algorithm;
use super::team::Team;
use crate::error::Fault;

/// MPI_Barrier.
pub(crate) async fn barrier(team: Team, algorithm: Algorithm) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Binomial => tree(&team).await?,
        _ => dissemination(&team).await?,
    }
    Ok(Vec::new())
}

/// In round k each rank tells the one 2^k further, and hears from the one 2^k before (Hensgen,
/// Finkel and Manber 1988).
async fn dissemination(team: &Team) -> Result<(), Fault> {
    let (rank, size) = (team.rank(), team.size());
    let mut distance = 1;
    while distance < size {
        let to = (rank + distance) % size;
        let from = (rank + size - distance) % size;
        team.exchange((to, Vec::new()), (from, 0)).await?;
        distance *= 2;
    }
    Ok(())
}

/// Up a binomial tree to rank 0, and down again.
async fn tree(team: &Team) -> Result<(), Fault> {
    let (rank, size) = (team.rank(), team.size());
    let mut bit = 1;
    let mut children = Vec::new();
    while bit < size && rank & bit == 0 {
        if rank + bit < size {
            children.push(rank + bit);
            team.receive(rank + bit, 0).await?;
        }
        bit *= 2;
    }
    if rank != 0 {
        team.send(rank - bit, Vec::new()).await;
        team.receive(rank - bit, 0).await?;
    }
    for child in children.into_iter().rev() {
        team.send(child, Vec::new()).await;
    }
    Ok(())
}
