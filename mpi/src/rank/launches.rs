//! The launches of collective calls: arguments are checked, contributions packed, algorithms
//! chosen.

use std::sync::Arc;

use super::given::{Given, Layout, Sent};
use super::request::{Landing, Launch};
use super::{Communicator, PROC_NULL, ROOT, point};
use crate::buffer::{Buffer, BufferMut, Piece};
use crate::channel::Channel;
use crate::collective::choice::{Algorithm, Choice, Collective, On};
use crate::collective::inter::{self, Part};
use crate::collective::team::Team;
use crate::collective::{self, Call, Reduction, Scattered};
use crate::comm::{Comm, Plane};
use crate::datatype::Datatype;
use crate::device::Device;
use crate::error::{ErrorClass, Fault};
use crate::op::Op;

fn lengths(pieces: &[Piece]) -> Vec<usize> {
    pieces.iter().map(Piece::bytes).collect()
}

/// One collective call of one rank, before its arguments have been looked at.
#[derive(Clone)]
pub(super) struct Setting {
    device: Arc<Device>,
    pub(super) comm: Comm,
    choice: Choice,
    on: On,
    tags: (i32, i32),
}

impl Setting {
    /// The next call over a communicator.
    pub(super) fn next<C: Channel>(communicator: &Communicator<'_, C>) -> Self {
        let comm = communicator.comm.clone();
        let local = comm.remote().map_or(0, |remote| remote.local.next_call());
        let tags = (comm.next_call(), local);
        let mpi = communicator.mpi;
        let on = comm.on(mpi.channel.per_node());
        Self {
            device: Arc::clone(&mpi.device),
            comm,
            choice: mpi.choice.read().clone(),
            on,
            tags,
        }
    }

    /// The team of the call, and that of the own side of an intercommunicator.
    pub(super) fn teams(&self, call: Call, root: u32) -> (Team, Option<Team>) {
        let comm = &self.comm;
        let of = |comm: &Comm, tag, root| {
            let place = (comm.peers().clone(), comm.rank());
            let at = (comm.context(Plane::Collective), tag);
            Team::new(&self.device, place, at, (call, root))
        };
        let local = comm.remote();
        let local = local.map(|remote| of(&remote.local, self.tags.1, 0));
        (of(comm, self.tags.0, root), local)
    }

    pub(super) fn choose(&self, collective: Collective, bytes: usize) -> Algorithm {
        self.choice.of(collective, bytes, self.on)
    }

    /// The part of this rank in a call with this root over an intercommunicator.
    fn part(&self, root: u32) -> Result<Part, Fault> {
        match root {
            ROOT => Ok(Part::Root),
            PROC_NULL => Ok(Part::Idle),
            root => {
                point::check_rank(&self.comm, "root", root).map_err(|fault| Fault {
                    class: ErrorClass::Root,
                    ..fault
                })?;
                Ok(Part::Of(root))
            }
        }
    }

    /// Returns whether this rank is the root.
    fn is_root(&self, root: u32) -> Result<bool, Fault> {
        let size = self.comm.size();
        if root >= size {
            let text = format!("there is no rank {root} among {size}");
            return Err(Fault::new(ErrorClass::Root, "root", text));
        }
        Ok(root == self.comm.rank())
    }
}

pub(super) fn barrier<'b>(setting: &Setting, _: Given<'b>) -> Result<Launch<'b>, Fault> {
    let algorithm = setting.choose(Collective::Barrier, 0);
    Ok(match setting.teams(Call::Barrier, 0) {
        (team, None) => Launch::task(collective::barrier(team, algorithm), Landing::Nowhere),
        (team, Some(local)) => Launch::task(inter::barrier(team, local), Landing::Nowhere),
    })
}

pub(super) fn broadcast<'b>(
    setting: &Setting,
    given: Given<'b>,
    root: u32,
) -> Result<Launch<'b>, Fault> {
    let buffer = given.received;
    let length = usize::try_from(buffer.bytes()).unwrap_or(usize::MAX);
    if setting.comm.remote().is_some() {
        let part = setting.part(root)?;
        let bytes = match part {
            Part::Root => buffer.shared().packed()?,
            _ => Vec::new(),
        };
        let landing = match part {
            Part::Of(_) => Landing::Whole(buffer),
            _ => Landing::Nowhere,
        };
        // Both sides name the root differently.
        let (team, local) = setting.teams(Call::Bcast, 0);
        let teams = (team, local.ok_or_else(not_here)?);
        return Ok(Launch::task(
            inter::bcast(teams, part, (bytes, length)),
            landing,
        ));
    }
    let bytes = match setting.is_root(root)? {
        true => buffer.shared().packed()?,
        false => Vec::new(),
    };
    let landing = match setting.is_root(root)? {
        true => Landing::Nowhere,
        false => Landing::Whole(buffer),
    };
    let algorithm = setting.choose(Collective::Broadcast, length);
    let (team, _) = setting.teams(Call::Bcast, root);
    let task = collective::broadcast(team, algorithm, (root, bytes, length));
    Ok(Launch::task(task, landing))
}

pub(super) fn gather<'b>(
    setting: &Setting,
    given: Given<'b>,
    root: u32,
    layout: Layout,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let whole = given.received.shared().whole();
    let blocks = |ranks| layout.pieces(&whole, ranks, "recvcounts");
    if comm.remote().is_some() {
        let part = setting.part(root)?;
        let (own, pieces) = match part {
            Part::Root => (Vec::new(), blocks(comm.peers().size())?),
            Part::Idle => Default::default(),
            Part::Of(_) => (given.own(comm, None)?, Vec::new()),
        };
        let (team, _) = setting.teams(Call::Gather, 0);
        let task = inter::gather(team, part, (own, lengths(&pieces)));
        return Ok(Launch::task(task, Landing::Pieces(given.received, pieces)));
    }
    let pieces = match setting.is_root(root)? {
        true => blocks(comm.size())?,
        false => Vec::new(),
    };
    let own = given.own(comm, pieces.get(root as usize))?;
    // Its bytes are not the same at all ranks.
    let algorithm = setting.choose(Collective::Gather, 0);
    let (team, _) = setting.teams(Call::Gather, root);
    let task = collective::gather(team, algorithm, (root, own, lengths(&pieces)));
    Ok(Launch::task(task, Landing::Pieces(given.received, pieces)))
}

pub(super) fn scatter<'b>(
    setting: &Setting,
    given: Given<'b>,
    root: u32,
    layout: Layout,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let blocks = |ranks| match &given.sent {
        Sent::InPlace => Err(Fault::new(
            ErrorClass::Buffer,
            "sendbuf",
            "MPI_IN_PLACE stands for the buffer that is received into",
        )),
        Sent::Buffer(buffer) => {
            let pieces = layout.pieces(&buffer.whole(), ranks, "sendcounts")?;
            packed_pieces(buffer, &pieces)
        }
    };
    let own = usize::try_from(given.received.bytes()).unwrap_or(usize::MAX);
    if comm.remote().is_some() {
        let part = setting.part(root)?;
        let blocks = match part {
            Part::Root => blocks(comm.peers().size())?,
            _ => Vec::new(),
        };
        let landing = match part {
            Part::Of(_) => Landing::Whole(given.received),
            _ => Landing::Nowhere,
        };
        let (team, _) = setting.teams(Call::Scatter, 0);
        return Ok(Launch::task(
            inter::scatter_to(team, part, (blocks, own)),
            landing,
        ));
    }
    let blocks = match setting.is_root(root)? {
        true => blocks(comm.size())?,
        false => Vec::new(),
    };
    let all = Scattered {
        lengths: blocks.iter().map(Vec::len).collect(),
        bytes: blocks.concat(),
    };
    let algorithm = setting.choose(Collective::Scatter, 0);
    let (team, _) = setting.teams(Call::Scatter, root);
    let task = collective::scatter(team, algorithm, (root, all, own));
    Ok(Launch::task(task, Landing::Whole(given.received)))
}

/// MPI_Scatter whose root keeps its block where it is (MPI_IN_PLACE for the buffer that is received
/// into).
pub(super) fn scatter_in_place<'b>(
    setting: &Setting,
    given: Given<'b>,
    root: u32,
    layout: Layout,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let Sent::Buffer(buffer) = &given.sent else {
        return Err(not_here());
    };
    if comm.remote().is_some() || !setting.is_root(root)? {
        return Err(Fault::new(
            ErrorClass::Buffer,
            "recvbuf",
            "MPI_IN_PLACE is for the root alone",
        ));
    }
    let pieces = layout.pieces(&buffer.whole(), comm.size(), "sendcounts")?;
    let blocks = packed_pieces(buffer, &pieces)?;
    let own = blocks[root as usize].len();
    let all = Scattered {
        lengths: lengths(&pieces),
        bytes: blocks.concat(),
    };
    let algorithm = setting.choose(Collective::Scatter, 0);
    let (team, _) = setting.teams(Call::Scatter, root);
    let task = collective::scatter(team, algorithm, (root, all, own));
    Ok(Launch::task(task, Landing::Nowhere))
}

pub(super) fn packed_pieces(buffer: &Buffer<'_>, pieces: &[Piece]) -> Result<Vec<Vec<u8>>, Fault> {
    let pieces = pieces.iter();
    pieces.map(|piece| buffer.packed_piece(piece)).collect()
}

pub(super) fn allgather<'b>(
    setting: &Setting,
    given: Given<'b>,
    layout: Layout,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let whole = given.received.shared().whole();
    let pieces = layout.pieces(&whole, comm.peers().size(), "recvcounts")?;
    let lengths = lengths(&pieces);
    let (team, local) = setting.teams(Call::Allgather, 0);
    if local.is_some() {
        let own = given.own(comm, None)?;
        let blocks = vec![own; lengths.len()];
        let task = inter::alltoall(team, (blocks, lengths));
        return Ok(Launch::task(task, Landing::Pieces(given.received, pieces)));
    }
    let own = given.own(comm, pieces.get(comm.rank() as usize))?;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let algorithm = setting.choose(Collective::Allgather, longest);
    let task = collective::allgather(team, algorithm, (own, lengths));
    Ok(Launch::task(task, Landing::Pieces(given.received, pieces)))
}

pub(super) fn alltoall<'b>(
    setting: &Setting,
    given: Given<'b>,
    sent: Layout,
    received: Layout,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let ranks = comm.peers().size();
    let whole = given.received.shared().whole();
    let is_even = matches!(received, Layout::Even);
    let pieces = received.pieces(&whole, ranks, "recvcounts")?;
    let blocks = match &given.sent {
        Sent::Buffer(buffer) => {
            let pieces = sent.pieces(&buffer.whole(), ranks, "sendcounts")?;
            packed_pieces(buffer, &pieces)?
        }
        Sent::InPlace if comm.remote().is_some() => {
            return given.own(comm, None).and(Err(not_here()));
        }
        Sent::InPlace => packed_pieces(&given.received.shared(), &pieces)?,
    };
    let lengths = lengths(&pieces);
    let (team, local) = setting.teams(Call::Alltoall, 0);
    let landing = Landing::Pieces(given.received, pieces);
    if local.is_some() {
        return Ok(Launch::task(
            inter::alltoall(team, (blocks, lengths)),
            landing,
        ));
    }
    // In the v and w forms no rank knows the lengths of all.
    let bytes = match is_even {
        true => lengths.first().copied().unwrap_or(0),
        false => usize::MAX,
    };
    let algorithm = setting.choose(Collective::Alltoall, bytes);
    let task = collective::alltoall(team, algorithm, (blocks, lengths));
    Ok(Launch::task(task, landing))
}

/// The operands of this rank, and the reduction.
fn operands(
    setting: &Setting,
    given: &Given<'_>,
    op: &Op,
    in_place: bool,
) -> Result<(Vec<u8>, Reduction), Fault> {
    let whole = given.received.shared().whole();
    let own = given.own(&setting.comm, in_place.then_some(&whole))?;
    let datatype = match &given.sent {
        Sent::Buffer(buffer) => buffer.datatype(),
        Sent::InPlace => given.received.datatype(),
    };
    check(op, datatype)?;
    let reduction = Reduction {
        op: op.clone(),
        datatype: datatype.clone(),
    };
    Ok((own, reduction))
}

/// Returns whether a reduction has such an operation.
fn check(op: &Op, datatype: &Datatype) -> Result<(), Fault> {
    let wrong = |text| Err(Fault::new(ErrorClass::Op, "op", text));
    if op.is_one_sided() {
        return wrong(format!("{} is for one-sided calls", op.name()));
    }
    match datatype.basic() {
        _ if !op.is_predefined() => Ok(()),
        Some(basic) if op.accepts(basic) => Ok(()),
        Some(basic) => wrong(format!("{} is not defined for {}", op.name(), basic.name())),
        None if datatype.size() == 0 => Ok(()),
        None => wrong(format!("{} of a datatype of several types", op.name())),
    }
}

fn same_count(own: &[u8], received: &BufferMut<'_>) -> Result<(), Fault> {
    if own.len() as u64 == received.bytes() {
        return Ok(());
    }
    let text = format!(
        "the operands have {} bytes, the buffer for the result {}",
        own.len(),
        received.bytes()
    );
    Err(Fault::new(ErrorClass::Count, "count", text))
}

pub(super) fn reduce<'b>(
    setting: &Setting,
    given: Given<'b>,
    op: Op,
    root: u32,
) -> Result<Launch<'b>, Fault> {
    if setting.comm.remote().is_some() {
        let part = setting.part(root)?;
        let length = usize::try_from(given.received.bytes()).unwrap_or(usize::MAX);
        let (own, reduction) = match part {
            Part::Of(_) => operands(setting, &given, &op, false)?,
            _ => {
                let datatype = given.received.datatype().clone();
                (Vec::new(), Reduction { op, datatype })
            }
        };
        let (team, local) = setting.teams(Call::Reduce, 0);
        let teams = (team, local.ok_or_else(not_here)?);
        let task = inter::reduce_to(teams, part, reduction, (own, length));
        let landing = match part {
            Part::Root => Landing::Whole(given.received),
            _ => Landing::Nowhere,
        };
        return Ok(Launch::task(task, landing));
    }
    let is_root = setting.is_root(root)?;
    let (own, reduction) = operands(setting, &given, &op, is_root)?;
    if is_root {
        same_count(&own, &given.received)?;
    }
    let algorithm = setting.choose(Collective::Reduce, own.len());
    let (team, _) = setting.teams(Call::Reduce, root);
    let task = collective::reduce(team, algorithm, reduction, (root, own));
    let landing = match is_root {
        true => Landing::Whole(given.received),
        false => Landing::Nowhere,
    };
    Ok(Launch::task(task, landing))
}

pub(super) fn allreduce<'b>(
    setting: &Setting,
    given: Given<'b>,
    op: Op,
) -> Result<Launch<'b>, Fault> {
    let (own, reduction) = operands(setting, &given, &op, true)?;
    same_count(&own, &given.received)?;
    let algorithm = setting.choose(Collective::Allreduce, own.len());
    let landing = Landing::Whole(given.received);
    Ok(match setting.teams(Call::Allreduce, 0) {
        (team, None) => {
            let task = collective::allreduce(team, algorithm, reduction, own);
            Launch::task(task, landing)
        }
        (team, Some(local)) => {
            Launch::task(inter::allreduce((team, local), reduction, own), landing)
        }
    })
}

/// The elements of each rank's block.
#[derive(Clone, Debug)]
pub(super) enum Counts {
    /// The same for each.
    Even,
    /// So many.
    Of(Vec<i64>),
}

pub(super) fn reduce_scatter<'b>(
    setting: &Setting,
    given: Given<'b>,
    op: Op,
    counts: Counts,
) -> Result<Launch<'b>, Fault> {
    let comm = &setting.comm;
    let (own, reduction) = operands(setting, &given, &op, true)?;
    let element = reduction.datatype.size();
    let ranks = i64::from(comm.size());
    let elements = own.len() as i64 / element.max(1);
    let counts = match counts {
        Counts::Even => vec![elements / ranks; ranks as usize],
        Counts::Of(counts) => counts,
    };
    if let Some(count) = counts.iter().find(|count| **count < 0) {
        let text = format!("{count} is negative");
        return Err(Fault::new(ErrorClass::Count, "recvcounts", text));
    }
    let lengths: Vec<usize> = counts
        .iter()
        .map(|count| count.saturating_mul(element) as usize)
        .collect();
    let all = lengths
        .iter()
        .fold(0usize, |sum, length| sum.saturating_add(*length));
    if lengths.len() as i64 != ranks || all != own.len() {
        let text = format!(
            "blocks of {all} bytes for {} of {ranks} ranks are not the {} bytes of the operands",
            lengths.len(),
            own.len()
        );
        return Err(Fault::new(ErrorClass::Count, "recvcounts", text));
    }
    let block = Piece {
        count: counts[comm.rank() as usize],
        ..given.received.shared().whole()
    };
    let landing = Landing::Pieces(given.received, vec![block]);
    let algorithm = setting.choose(Collective::ReduceScatter, own.len());
    Ok(match setting.teams(Call::ReduceScatter, 0) {
        (team, None) => {
            let given = (own, lengths);
            let task = collective::reduce_scatter(team, algorithm, reduction, given);
            Launch::task(task, landing)
        }
        (team, Some(local)) => {
            let teams = (team, local);
            let task = inter::reduce_scatter(teams, reduction, (own, lengths));
            Launch::task(task, landing)
        }
    })
}

fn scan_of<'b>(
    setting: &Setting,
    given: Given<'b>,
    op: Op,
    is_exclusive: bool,
) -> Result<Launch<'b>, Fault> {
    if setting.comm.remote().is_some() {
        let text = "it is not for intercommunicators";
        return Err(Fault::new(ErrorClass::Comm, "comm", text));
    }
    let (own, reduction) = operands(setting, &given, &op, true)?;
    same_count(&own, &given.received)?;
    let algorithm = setting.choose(Collective::Scan, own.len());
    let call = match is_exclusive {
        true => Call::Exscan,
        false => Call::Scan,
    };
    let (team, _) = setting.teams(call, 0);
    let task = collective::scan(team, algorithm, reduction, (own, is_exclusive));
    // Rank 0 of an exclusive scan gets nothing.
    Ok(Launch::task(task, Landing::Whole(given.received)))
}

pub(super) fn scan<'b>(setting: &Setting, given: Given<'b>, op: Op) -> Result<Launch<'b>, Fault> {
    scan_of(setting, given, op, false)
}

pub(super) fn exscan<'b>(setting: &Setting, given: Given<'b>, op: Op) -> Result<Launch<'b>, Fault> {
    scan_of(setting, given, op, true)
}

fn not_here() -> Fault {
    let text = "the call is not defined for this communicator";
    Fault::new(ErrorClass::Comm, "comm", text)
}
