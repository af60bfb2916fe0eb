//! Scattering blocks from a root. Blocks may differ in length, which only the root and their
//! receivers know.

use super::choice::Algorithm;
use super::gather::{bundle, unbundle};
use super::places;
use super::team::Team;
use crate::error::{ErrorClass, Fault};

/// The root's blocks, with their lengths; others have none.
pub(crate) struct Scattered {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lengths: Vec<usize>,
}

impl Scattered {
    fn blocks(&self) -> Vec<Vec<u8>> {
        let places = places(&self.lengths);
        let ends = places.windows(2);
        ends.map(|ends| self.bytes[ends[0]..ends[1]].to_vec())
            .collect()
    }
}

/// MPI_Scatter and MPI_Scatterv: each rank gets its block, of `own` bytes.
pub(crate) async fn scatter(
    team: Team,
    algorithm: Algorithm,
    (root, all, own): (u32, Scattered, usize),
) -> Result<Vec<u8>, Fault> {
    let block = match algorithm {
        Algorithm::Binomial => binomial(&team, root, all).await?,
        _ => linear(&team, root, all, own).await?,
    };
    let text = |class| {
        let text = format!(
            "the block has {} bytes where {own} are expected",
            block.len()
        );
        Err(Fault::new(class, "count", text))
    };
    match block.len().cmp(&own) {
        std::cmp::Ordering::Equal => Ok(block),
        std::cmp::Ordering::Greater => text(ErrorClass::Truncate),
        std::cmp::Ordering::Less => text(ErrorClass::Count),
    }
}

/// The root sends to each.
async fn linear(team: &Team, root: u32, all: Scattered, own: usize) -> Result<Vec<u8>, Fault> {
    if team.rank() != root {
        return team.receive(root, own).await;
    }
    let mut mine = Vec::new();
    let mut sends = Vec::new();
    for (rank, block) in (0..).zip(all.blocks()) {
        match rank == root {
            true => mine = block,
            false => sends.push(team.begin_send(rank, block)),
        }
    }
    for send in sends {
        team.sent(send).await;
    }
    Ok(mine)
}

/// Down a binomial tree: a rank gets the blocks of its subtree with their lengths.
async fn binomial(team: &Team, root: u32, all: Scattered) -> Result<Vec<u8>, Fault> {
    let size = team.size();
    let place = (team.rank() + size - root) % size;
    let at = |place: u32| (place + root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    // Block i is that of place + i.
    let mut blocks = if place == 0 {
        let mut blocks = all.blocks();
        blocks.rotate_left(root as usize);
        blocks
    } else {
        unbundle(&team.receive_any(at(place - bit)).await?)
    };
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            let subtree = blocks.split_off((bit as usize).min(blocks.len()));
            team.send(at(place + bit), bundle(&subtree)).await;
        }
    }
    Ok(blocks.into_iter().next().unwrap_or_default())
}
