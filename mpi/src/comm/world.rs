//! Worlds that grow and shrink (Comprés et al., Sec. 3.3), as tasks.
//!
//! A world that grows keeps its context and the numbers of its ranks: messages and calls under way
//! go on. The ranks that come take over its context and the count of its collective calls. A world
//! that shrinks keeps its context, too; the ranks that leave have one of their own from then on.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Plane;
use super::create::{Made, announce};
use super::ports::{self, Port, Ports};
use crate::collective::choice::Algorithm;
use crate::collective::team::Team;
use crate::collective::{Call, allgather};
use crate::device::parting::Unfinished;
use crate::error::{ErrorClass, Fault};
use crate::group::Group;

/// The context of a world, and its collective calls so far.
pub(crate) type World = (u64, u32);

fn to_bytes((context, calls): World) -> Vec<u8> {
    [&context.to_le_bytes()[..], &calls.to_le_bytes()].concat()
}

fn from_bytes(bytes: &[u8]) -> (World, &[u8]) {
    let (context, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let (calls, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
    let world = (u64::from_le_bytes(*context), u32::from_le_bytes(*calls));
    (world, rest)
}

/// MPI_Comm_infect: rank 0 has opened `port` and has had processes started that join through it;
/// they are told of the world. Ends with their ranks.
pub(crate) async fn grow(
    local: Team,
    port: Option<Result<Port, Fault>>,
    (group, ports): (Group, Arc<Mutex<Ports>>),
    world: World,
) -> Result<Vec<u8>, Fault> {
    let is_first = local.rank() == 0;
    let told = ports::accept(local.clone(), (0, port), (group, ports)).await?;
    if is_first {
        let theirs = Made::from_bytes(&told);
        let bridge = bridge(&local, &theirs, 0)?;
        bridge.send(1, to_bytes(world)).await;
    }
    Ok(told)
}

/// The other side of it: a world of processes that were started. Ends with the world that they join
/// and its ranks.
pub(crate) async fn join(
    local: Team,
    port: Option<Result<Port, Fault>>,
    (group, ports): (Group, Arc<Mutex<Ports>>),
) -> Result<Vec<u8>, Fault> {
    let is_first = local.rank() == 0;
    let again = local.clone();
    let told = ports::connect(local, (0, port), (group, ports)).await?;
    let mut world = Vec::new();
    if is_first {
        let theirs = Made::from_bytes(&told);
        world = bridge(&again, &theirs, 1)?.receive_any(0).await?;
    }
    let world = announce(again, 0, world).await?;
    Ok([world, told].concat())
}

/// The result of [`join`].
pub(crate) fn joined(bytes: &[u8]) -> (World, Vec<u32>) {
    let (world, rest) = from_bytes(bytes);
    (world, Made::from_bytes(rest).ranks)
}

/// The first ranks of both sides, for what they alone say to each other; this one is number `me`.
fn bridge(local: &Team, theirs: &Made, me: u32) -> Result<Team, Fault> {
    let own = local.device().rank();
    let mut pair = vec![own, theirs.ranks.first().copied().unwrap_or_default()];
    if me == 1 {
        pair.reverse();
    }
    let group = Group::from_world_ranks(pair)?;
    let context = theirs.context | Plane::Create as u64;
    Ok(Team::new(
        local.device(),
        (group, me),
        (context, 0),
        (Call::Infect, 0),
    ))
}

/// The end of MPI_Comm_retreat: all ranks hear of what is under way at any of them.
pub(crate) async fn agree(team: Team, found: Option<Unfinished>) -> Result<Vec<u8>, Fault> {
    let own = Unfinished::to_bytes(found);
    let lengths = vec![own.len(); team.size() as usize];
    let told = allgather(team, Algorithm::Bruck, (own, lengths)).await?;
    match Unfinished::first(&told) {
        None => Ok(Vec::new()),
        Some((rank, found)) => Err(Fault::new(ErrorClass::Pending, "comm", found.text(rank))),
    }
}
