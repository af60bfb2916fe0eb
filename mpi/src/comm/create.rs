//! The calls that make communicators, as tasks: each tells this rank the context and the group of
//! the new one, in bytes ([`Made`]).

use std::sync::Arc;

use super::{Comm, Plane, context};
use crate::collective::choice::Algorithm;
use crate::collective::team::Team;
use crate::collective::{Call, allgather, broadcast, inter, words};
use crate::device::Device;
use crate::error::{ErrorClass, Fault};
use crate::group::Group;

/// The description of a new communicator that each of its ranks receives: its context, and ranks of
/// the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) context: u64,
    pub(crate) ranks: Vec<u32>,
}

impl Made {
    /// Encodes it as the result of a task.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let ranks = self.ranks.iter().flat_map(|rank| rank.to_le_bytes());
        self.context
            .to_le_bytes()
            .into_iter()
            .chain(ranks)
            .collect()
    }

    /// Read from there.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (context, ranks) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let (ranks, _) = ranks.as_chunks();
        Self {
            context: u64::from_le_bytes(*context),
            ranks: ranks.iter().map(|rank| u32::from_le_bytes(*rank)).collect(),
        }
    }
}

impl Made {
    /// The own and the other side of an intercommunicator, of which the context is the same.
    pub(crate) fn sides(&self) -> Option<(Self, Self)> {
        let (&count, ranks) = self.ranks.split_first()?;
        let (own, other) = ranks.split_at_checked(count as usize)?;
        let side = |ranks: &[u32]| Self {
            context: self.context,
            ranks: ranks.to_vec(),
        };
        (!own.is_empty() && !other.is_empty()).then(|| (side(own), side(other)))
    }
}

/// A context that no other call makes.
pub(crate) fn fresh(device: &Device) -> u64 {
    context(device.maker(), device.next_count())
}

/// The context of a communicator of the same group: that of rank 0. Of an intercommunicator all its
/// ranks are told the one that the side with the first rank of the job makes.
pub(crate) async fn dup(team: Team, local: Option<Team>, is_first: bool) -> Result<Vec<u8>, Fault> {
    let own = fresh(team.device()).to_le_bytes().to_vec();
    let Some(local) = local else {
        return broadcast(team, Algorithm::Binomial, (0, own, 8)).await;
    };
    let mut chosen = own;
    if local.rank() == 0 {
        let theirs = team.exchange((0, chosen.clone()), (0, 8)).await?;
        if !is_first {
            chosen = theirs;
        }
    }
    broadcast(local, Algorithm::Binomial, (0, chosen, 8)).await
}

/// MPI_Comm_split: those of one color, in the order of their keys, and of their ranks where keys
/// are equal. A rank without a color gets no ranks.
pub(crate) async fn split(
    team: Team,
    group: Group,
    (color, key): (Option<u32>, i32),
) -> Result<Vec<u8>, Fault> {
    let entries = Entry::of_all(team, color, key).await?;
    Ok(Entry::made(&entries, &group, color).to_bytes())
}

/// The begin of MPI_Comm_retreat: each rank says whether it stays. Ends with the number of those
/// that do, them, and those that do not, and with a context that these have from then on.
pub(crate) async fn part(team: Team, group: Group, stays: bool) -> Result<Vec<u8>, Fault> {
    let entries = Entry::of_all(team, Some(stays.into()), 0).await?;
    let [stay, leave] = [true, false].map(|of| Entry::made(&entries, &group, Some(of.into())));
    let ranks = [&[stay.ranks.len() as u32], &stay.ranks[..], &leave.ranks];
    let made = Made {
        context: leave.context,
        ranks: ranks.concat(),
    };
    Ok(made.to_bytes())
}

/// MPI_Comm_split of an intercommunicator: the ranks of both sides with this color. The result has
/// both groups ([`Made::sides`]).
pub(crate) async fn split_sides(
    (team, local): (Team, Team),
    (own, other): (Group, Group),
    (color, key): (Option<u32>, i32),
    is_first: bool,
) -> Result<Vec<u8>, Fault> {
    let entry = Entry::fresh(&local, color, key).to_bytes();
    let lengths = vec![Entry::BYTES; local.size() as usize];
    let (ours, theirs) = inter::allgather_any((&team, &local), entry, lengths).await?;
    let members = |group: &Group, blocks: &[Vec<u8>]| {
        let entries: Vec<Entry> = blocks
            .iter()
            .map(|block| Entry::from_bytes(block))
            .collect();
        Entry::made(&entries, group, color)
    };
    let (ours, theirs) = (members(&own, &ours), members(&other, &theirs));
    let context = if is_first {
        ours.context
    } else {
        theirs.context
    };
    let made = Made {
        context,
        ranks: [
            &[ours.ranks.len() as u32],
            &ours.ranks[..],
            &theirs.ranks[..],
        ]
        .concat(),
    };
    Ok(made.to_bytes())
}

/// The contribution of one rank to a split.
struct Entry {
    color: Option<u32>,
    key: i32,
    /// A context that it has made.
    context: u64,
}

impl Entry {
    const BYTES: usize = 24;

    fn fresh(team: &Team, color: Option<u32>, key: i32) -> Self {
        let context = fresh(team.device());
        Self {
            color,
            key,
            context,
        }
    }

    /// Those of all ranks of `team`, of which this one contributes this color and key.
    async fn of_all(team: Team, color: Option<u32>, key: i32) -> Result<Vec<Self>, Fault> {
        let own = Self::fresh(&team, color, key).to_bytes();
        let lengths = vec![Self::BYTES; team.size() as usize];
        let all = allgather(team, Algorithm::Bruck, (own, lengths)).await?;
        Ok(all
            .chunks_exact(Self::BYTES)
            .map(Self::from_bytes)
            .collect())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let color = self.color.map_or(u64::MAX, u64::from);
        words::to_bytes(&[color, i64::from(self.key) as u64, self.context])
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let [color, key, context] = words::first(bytes);
        Self {
            color: u32::try_from(color).ok(),
            key: key as i32,
            context,
        }
    }

    /// The communicator of those with this color, whose context its first rank has made.
    fn made(entries: &[Self], group: &Group, color: Option<u32>) -> Made {
        let mut members: Vec<(i32, u32)> = (0..)
            .zip(entries)
            .filter(|(_, entry)| color.is_some() && entry.color == color)
            .map(|(rank, entry)| (entry.key, rank))
            .collect();
        members.sort_unstable();
        let first = members.first().map(|&(_, rank)| &entries[rank as usize]);
        Made {
            context: first.map_or(0, |entry| entry.context),
            ranks: members
                .iter()
                .filter_map(|&(_, rank)| group.world_rank(rank))
                .collect(),
        }
    }
}

/// MPI_Comm_create, and MPI_Comm_create_group with only the group as the team: its rank 0 makes the
/// context.
pub(crate) async fn create(team: Team, group: Group) -> Result<Vec<u8>, Fault> {
    let own = fresh(team.device()).to_le_bytes().to_vec();
    let chosen = broadcast(team, Algorithm::Binomial, (0, own, 8)).await?;
    let made = Made {
        context: Made::from_bytes(&chosen).context,
        ranks: group.world_ranks().collect(),
    };
    Ok(made.to_bytes())
}

/// MPI_Intercomm_create: the leaders tell each other their groups over `bridge` (of two, of whom
/// this one's number is its rank there), and their own sides what they were told.
pub(crate) async fn intercomm(
    local: Team,
    (leader, bridge): (u32, Option<(Team, u32)>),
    group: Group,
) -> Result<Vec<u8>, Fault> {
    let mut told = Vec::new();
    if let Some((bridge, other)) = bridge {
        let own = Made {
            context: fresh(local.device()),
            ranks: group.world_ranks().collect(),
        };
        let send = bridge.begin_send(other, own.to_bytes());
        let theirs = bridge.receive_any(other).await?;
        bridge.sent(send).await;
        let mut theirs = Made::from_bytes(&theirs);
        if own.ranks.first() < theirs.ranks.first() {
            theirs.context = own.context;
        }
        told = theirs.to_bytes();
    }
    let told = announce(local, leader, told).await?;
    overlap(&group, &Made::from_bytes(&told))?;
    Ok(told)
}

/// The bytes of `root`, which the others know neither nor their number.
pub(super) async fn announce(team: Team, root: u32, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let tree = Algorithm::Binomial;
    let length = (bytes.len() as u64).to_le_bytes().to_vec();
    let length = broadcast(team.clone(), tree, (root, length, 8)).await?;
    let length = Made::from_bytes(&length).context as usize;
    broadcast(team, tree, (root, bytes, length)).await
}

/// No rank may be on both sides of an intercommunicator.
pub(super) fn overlap(group: &Group, theirs: &Made) -> Result<(), Fault> {
    let is_here = |&&rank: &&u32| group.rank_of(rank).is_some();
    match theirs.ranks.iter().find(is_here) {
        None => Ok(()),
        Some(both) => {
            let text = format!("rank {both} of the job is in both groups");
            Err(Fault::new(ErrorClass::Comm, "local_comm", text))
        }
    }
}

/// MPI_Intercomm_merge: the side whose ranks say `is_high` comes last; if both say the same, the
/// side with the first rank of the job comes first.
pub(crate) async fn merge(
    team: Team,
    local: Team,
    (own, other): (Group, Group),
    is_high: bool,
) -> Result<Vec<u8>, Fault> {
    let mut said = fresh(local.device()).to_le_bytes().to_vec();
    said.push(is_high.into());
    let mut both = Vec::new();
    if local.rank() == 0 {
        let theirs = team.exchange((0, said.clone()), (0, 9)).await?;
        both = [said, theirs].concat();
    }
    let both = broadcast(local, Algorithm::Binomial, (0, both, 18)).await?;
    let (ours, theirs) = both.split_at(9);
    let is_first = own.world_rank(0) < other.world_rank(0);
    let comes_first = match (ours[8] != 0, theirs[8] != 0) {
        (false, true) => true,
        (true, false) => false,
        _ => is_first,
    };
    let chosen = if is_first { ours } else { theirs };
    let groups = if comes_first {
        [own, other]
    } else {
        [other, own]
    };
    let made = Made {
        context: Made::from_bytes(chosen).context,
        ranks: groups.iter().flat_map(Group::world_ranks).collect(),
    };
    Ok(made.to_bytes())
}

/// The team of a collective call over `comm`, with its own side if it is an intercommunicator.
pub(crate) fn teams(
    device: &Arc<Device>,
    comm: &Comm,
    call: Call,
    root: u32,
) -> (Team, Option<Team>) {
    let tag = comm.next_call();
    let place = (comm.peers().clone(), comm.rank());
    let at = (comm.context(Plane::Collective), tag);
    let team = Team::new(device, place, at, (call, root));
    let local = comm.remote().map(|remote| {
        let local = &remote.local;
        let place = (local.group().clone(), local.rank());
        let at = (local.context(Plane::Collective), local.next_call());
        Team::new(device, place, at, (call, 0))
    });
    (team, local)
}
