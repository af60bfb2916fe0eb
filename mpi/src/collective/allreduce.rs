//! Reductions whose result every rank gets.

use super::choice::Algorithm;
use super::team::Team;
use super::{Reduction, broadcast, power_below, reduce};
use crate::datatype::Datatype;
use crate::error::Fault;

/// MPI_Allreduce of each rank's `own` elements.
pub(crate) async fn allreduce(
    team: Team,
    algorithm: Algorithm,
    reduction: Reduction,
    own: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let parts = Parts::of(&reduction, own.len(), team.size());
    match algorithm {
        Algorithm::ReduceBroadcast => {
            let length = own.len();
            let tree = Algorithm::Binomial;
            let result = reduce(team.clone(), tree, reduction, (0, own)).await?;
            broadcast(team, tree, (0, result, length)).await
        }
        Algorithm::Ring if reduction.op.is_commutative() => {
            ring(&team, &reduction, own, &parts).await
        }
        _ => recursive_doubling(&team, &reduction, own).await,
    }
}

/// Bytes of what may not be divided.
fn element_bytes(datatype: &Datatype) -> u64 {
    datatype.size() as u64
}

/// Elements divided among the ranks.
struct Parts {
    elements: u64,
    bytes: u64,
    size: u64,
}

impl Parts {
    fn of(reduction: &Reduction, length: usize, size: u32) -> Self {
        let bytes = element_bytes(&reduction.datatype).max(1);
        Self {
            elements: length as u64 / bytes,
            bytes,
            size: size.into(),
        }
    }

    /// The bytes of part `part`.
    fn range(&self, part: u32) -> std::ops::Range<usize> {
        let begin = |part: u64| (self.elements * part / self.size * self.bytes) as usize;
        begin(part.into())..begin(u64::from(part) + 1)
    }
}

/// In round k the ranks whose numbers differ in bit k exchange their results so far. Of more than a
/// power of two ranks, the first ones are taken two and two, so that a result is that of
/// neighbouring ranks.
async fn recursive_doubling(
    team: &Team,
    reduction: &Reduction,
    own: Vec<u8>,
) -> Result<Vec<u8>, Fault> {
    let (rank, length) = (team.rank(), own.len());
    let power = power_below(team.size());
    let spare = team.size() - power;
    let of = (&reduction.op, &reduction.datatype);
    let mut result = own;
    if rank < 2 * spare {
        if rank.is_multiple_of(2) {
            team.send(rank + 1, result).await;
            return team.receive(rank + 1, length).await;
        }
        let earlier = team.receive(rank - 1, length).await?;
        team.combine(of, &earlier, &mut result)?;
    }
    let place = match rank < 2 * spare {
        true => rank / 2,
        false => rank - spare,
    };
    let at = |place: u32| match place < spare {
        true => 2 * place + 1,
        false => place + spare,
    };
    let mut bit = 1;
    while bit < power {
        let partner = at(place ^ bit);
        let sent = (partner, result.clone());
        let mut theirs = team.exchange(sent, (partner, length)).await?;
        if partner < rank {
            team.combine(of, &theirs, &mut result)?;
        } else {
            team.combine(of, &result, &mut theirs)?;
            result = theirs;
        }
        bit *= 2;
    }
    if rank < 2 * spare {
        team.send(rank - 1, result.clone()).await;
    }
    Ok(result)
}

/// Each part of the elements goes round the ring twice: to be reduced, and to be known everywhere.
/// Each rank sends about twice the data, however many ranks there are.
async fn ring(
    team: &Team,
    reduction: &Reduction,
    own: Vec<u8>,
    parts: &Parts,
) -> Result<Vec<u8>, Fault> {
    let (rank, size) = (team.rank(), team.size());
    let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut data = own;
    for step in 0..2 * (size - 1) {
        let sent = parts.range((rank + 2 * size - step) % size);
        let room = parts.range((rank + 2 * size - step - 1) % size);
        let sent = (next, data[sent].to_vec());
        let came = team.exchange(sent, (before, room.len())).await?;
        if step < size - 1 {
            let of = (&reduction.op, &reduction.datatype);
            team.combine(of, &came, &mut data[room])?;
        } else {
            data[room].copy_from_slice(&came);
        }
    }
    Ok(data)
}
