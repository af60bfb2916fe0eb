//! Broadcasts.

use super::choice::Algorithm;
use super::team::Team;
use crate::error::Fault;

/// MPI_Bcast of `length` bytes, which `root` has.
pub(crate) async fn broadcast(
    team: Team,
    algorithm: Algorithm,
    (root, bytes, length): (u32, Vec<u8>, usize),
) -> Result<Vec<u8>, Fault> {
    match algorithm {
        Algorithm::Linear => linear(&team, root, bytes, length).await,
        Algorithm::ScatterAllgather => scatter_allgather(&team, root, bytes, length).await,
        _ => binomial(&team, root, bytes, length).await,
    }
}

/// The root sends to each.
async fn linear(team: &Team, root: u32, bytes: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
    if team.rank() != root {
        return team.receive(root, length).await;
    }
    let others = (0..team.size()).filter(|&rank| rank != root);
    let sends: Vec<usize> = others
        .map(|rank| team.begin_send(rank, bytes.clone()))
        .collect();
    for send in sends {
        team.sent(send).await;
    }
    Ok(bytes)
}

/// Down a binomial tree from the root.
async fn binomial(team: &Team, root: u32, bytes: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
    let size = team.size();
    let place = (team.rank() + size - root) % size;
    let at = |place: u32| (place + root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    let bytes = match place {
        0 => bytes,
        _ => team.receive(at(place - bit), length).await?,
    };
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            team.send(at(place + bit), bytes.clone()).await;
        }
    }
    Ok(bytes)
}

/// Down a binomial tree, of which each subtree gets its part of the data; then the parts go round a
/// ring (van de Geijn). Each rank sends about twice the data instead of as often as it has
/// children.
async fn scatter_allgather(
    team: &Team,
    root: u32,
    bytes: Vec<u8>,
    length: usize,
) -> Result<Vec<u8>, Fault> {
    let size = team.size();
    let place = (team.rank() + size - root) % size;
    let at = |place: u32| (place + root) % size;
    // Part p of the data begins here.
    let begin = |p: u32| (length as u64 * u64::from(p.min(size)) / u64::from(size)) as usize;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    let own = begin(place)..begin(place.saturating_add(bit));
    let mut data = match place {
        0 => bytes,
        _ => {
            let mut data = vec![0; length];
            let part = team.receive(at(place - bit), own.len()).await?;
            data[own].copy_from_slice(&part);
            data
        }
    };
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            let part = begin(place + bit)..begin(place + 2 * bit);
            team.send(at(place + bit), data[part].to_vec()).await;
        }
    }
    for step in 0..size - 1 {
        let sent = (place + size - step) % size;
        let came = (place + size - step - 1) % size;
        let part = data[begin(sent)..begin(sent + 1)].to_vec();
        let room = begin(came)..begin(came + 1);
        let next = (at((place + 1) % size), part);
        let part = team
            .exchange(next, (at((place + size - 1) % size), room.len()))
            .await?;
        data[room].copy_from_slice(&part);
    }
    Ok(data)
}
