//! Reductions of which every rank gets its block.

use super::choice::Algorithm;
use super::scatter::Scattered;
use super::team::Team;
use super::{Reduction, places, reduce, scatter};
use crate::error::Fault;

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: rank i gets block i, of `lengths[i]` bytes, of
/// the reduction of each rank's `own` elements.
pub(crate) async fn reduce_scatter(
    team: Team,
    algorithm: Algorithm,
    reduction: Reduction,
    (own, lengths): (Vec<u8>, Vec<usize>),
) -> Result<Vec<u8>, Fault> {
    if algorithm == Algorithm::Pairwise {
        return pairwise(&team, &reduction, &own, &lengths).await;
    }
    let tree = Algorithm::Binomial;
    let block = lengths[team.rank() as usize];
    let bytes = reduce(team.clone(), tree, reduction, (0, own)).await?;
    let all = Scattered { bytes, lengths };
    scatter(team, tree, (0, all, block)).await
}

/// In step k each rank sends the one k further its block. Operands are combined in the order of the
/// ranks.
async fn pairwise(
    team: &Team,
    reduction: &Reduction,
    own: &[u8],
    lengths: &[usize],
) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    let places = places(lengths);
    let block = |rank: u32| own[places[rank as usize]..places[rank as usize + 1]].to_vec();
    let of = (&reduction.op, &reduction.datatype);
    let length = lengths[rank as usize];
    // The results of the ranks before this one (with its own), and of those behind it.
    let mut result = block(rank);
    let mut later: Option<Vec<u8>> = None;
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        let mut came = team.exchange((to, block(to)), (from, length)).await?;
        if from < rank {
            team.combine(of, &came, &mut result)?;
        } else if let Some(later) = &mut later {
            team.combine(of, &came, later)?;
        } else {
            later = Some(std::mem::take(&mut came));
        }
    }
    match later {
        None => Ok(result),
        Some(mut later) => {
            team.combine(of, &result, &mut later)?;
            Ok(later)
        }
    }
}
