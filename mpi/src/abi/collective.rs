//! Collective calls, each in three forms: whole, begun, persistent.

use super::arguments::{Arguments, Given};
use super::rank::{Ended, Failure, SUCCESS};
use super::request::Pending;
use super::server::Server;
use crate::buffer::{Buffer, BufferMut};
use crate::channel::Channel;
use crate::comm::Comm;
use crate::datatype::{Basic, Datatype};
use crate::error::ErrorClass;
use crate::rank::{Layout, ROOT, Sent};

/// The buffers of a call.
struct Buffers {
    sent: Sent<'static>,
    room: Option<Given>,
}

/// Makes a call in the form that it has: the communicator's call of this name, the one that
/// begins, or the one that makes a persistent request, with the buffers in this order.
macro_rules! forms {
    ($server:ident, $a:ident, $comm:expr, $buffers:expr, $whole:ident $begun:ident $init:ident, ($($buffer:ident),*) ($($argument:expr),*)) => {{
        let (buffers, comm): (Buffers, Comm) = ($buffers, $comm);
        let on = $server.mpi.on(comm);
        let name = $a.call.name;
        if name.ends_with("_init") {
            // An info object says nothing.
            $a.skip();
            let persistent = on.$init($($argument),*);
            let at = $a.address();
            return $server.stands($a, at, persistent, (buffers.sent, buffers.room));
        }
        if name.starts_with('I') {
            let request = on.$begun($(buffers.$buffer(),)* $($argument),*).await?;
            let at = $a.address();
            return $server.begun($a, at, Pending::Call(request));
        }
        on.$whole($(buffers.$buffer(),)* $($argument),*).await?;
        SUCCESS
    }};
}

impl Buffers {
    /// Both buffers of a call.
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`] if they have the same beginning.
    fn new(sent: &Given, received: Given) -> Result<Self, Failure> {
        check_apart(sent, &received)?;
        Ok(Self {
            sent: sent.sent(),
            room: Some(received),
        })
    }

    /// The contribution.
    fn sent(&self) -> Sent<'static> {
        self.sent.clone()
    }

    /// The buffer for the result.
    fn received(&self) -> BufferMut<'static> {
        match &self.room {
            Some(given) => given.room(),
            None => BufferMut::empty(),
        }
    }
}

/// A buffer with a layout: the counts, places and datatypes of its blocks.
struct Blocks {
    given: Given,
    layout: Layout,
}

impl Blocks {
    /// Blocks of one datatype: an address, counts, displacements in elements, a datatype.
    fn of_one(a: &mut Arguments<'_>, ranks: usize) -> Result<Self, Failure> {
        let address = a.address();
        if address == a.interface().handle("IN_PLACE") {
            return Ok(Self::nothing(a, address, 3));
        }
        let (counts, displacements) = (a.numbers(ranks)?, a.numbers(ranks)?);
        let datatype = a.committed()?;
        check(&counts)?;
        let blocks = counts.into_iter().zip(displacements).collect();
        Ok(Self {
            given: Given::new(a.rank, address, 0, &datatype),
            layout: Layout::Counts(blocks),
        })
    }

    /// Blocks of their own datatypes: an address, counts, displacements in bytes, datatypes.
    fn of_several(a: &mut Arguments<'_>, ranks: usize) -> Result<Self, Failure> {
        let address = a.address();
        if address == a.interface().handle("IN_PLACE") {
            return Ok(Self::nothing(a, address, 3));
        }
        let (counts, displacements) = (a.numbers(ranks)?, a.numbers(ranks)?);
        let datatypes = a.all_committed(ranks)?;
        check(&counts)?;
        let blocks = counts.into_iter().zip(displacements).zip(datatypes);
        let blocks =
            blocks.map(|((count, displacement), datatype)| (count, displacement, datatype));
        let byte = Datatype::from(Basic::Byte);
        Ok(Self {
            given: Given::new(a.rank, address, 0, &byte),
            layout: Layout::Typed(blocks.collect()),
        })
    }

    /// A buffer whose arguments, so many, say nothing.
    fn nothing(a: &mut Arguments<'_>, address: u64, arguments: usize) -> Self {
        for _ in 0..arguments {
            a.skip();
        }
        let byte = Datatype::from(Basic::Byte);
        Self {
            given: Given::new(a.rank, address, 0, &byte),
            layout: Layout::Even,
        }
    }
}

/// Checks that the data of a call do not begin where its result does (MPI-4.1, Sec. 2.3): whether
/// the result is right then depends on the algorithm.
pub(super) fn check_apart(sent: &Given, received: &Given) -> Result<(), Failure> {
    let begin = sent.first_byte();
    match begin.is_some() && begin == received.first_byte() {
        true => {
            let text = "the result goes to where the data are: MPI_IN_PLACE is meant";
            Err(Failure::new(ErrorClass::Buffer, text))
        }
        false => Ok(()),
    }
}

/// The same of a call in which a rank exchanges one buffer for blocks, one of which is its own, and
/// of which the first is given.
fn check_block_apart(one: &Given, blocks: &Given, comm: &Comm) -> Result<(), Failure> {
    check_apart(one, blocks)?;
    if comm.remote_group().is_some() {
        return Ok(());
    }
    let mut own = blocks.clone();
    let elements = own.count.wrapping_mul(comm.rank().into());
    let bytes = elements.wrapping_mul(own.datatype.extent());
    own.address = own.address.wrapping_add(bytes as u64);
    check_apart(one, &own)
}

fn check(counts: &[i64]) -> Result<(), Failure> {
    match counts.iter().find(|&&count| count < 0) {
        Some(count) => Err(Failure::new(
            ErrorClass::Count,
            format!("{count} is negative"),
        )),
        None => Ok(()),
    }
}

/// The communicator and the root of a call whose root is one argument and whose communicator the
/// next one, at this place.
fn rooted(a: &mut Arguments<'_>, place: usize) -> Result<(Comm, u32, bool), Failure> {
    let comm = a.names_comm(place + 1)?;
    let root = a.root_at(place)?;
    let is_root = match comm.remote_group() {
        None => root == comm.rank(),
        Some(_) => root == ROOT,
    };
    if comm.remote_group().is_none() && root >= comm.size() {
        let text = format!("there is no rank {root} among {}", comm.size());
        return Err(Failure::new(ErrorClass::Root, text));
    }
    Ok((comm, root, is_root))
}

/// A buffer of `count` elements for each of `ranks` ranks.
fn times(given: Given, ranks: u32) -> Result<Given, Failure> {
    let count = given.count.checked_mul(ranks.into());
    let count = count.ok_or_else(|| Failure::new(ErrorClass::Count, "too many elements"))?;
    Ok(given.with_count(count))
}

impl<C: Channel> Server<'_, C> {
    pub(super) async fn collective(&mut self, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name.trim_end_matches("_init");
        let name = match name.strip_prefix('I') {
            Some(rest) => rest.to_lowercase(),
            None => name.to_lowercase(),
        };
        match name.as_str() {
            "barrier" => {
                let buffers = Buffers {
                    sent: Sent::InPlace,
                    room: None,
                };
                forms!(self, a, a.comm()?, buffers, barrier ibarrier barrier_init, () ())
            }
            "bcast" => {
                let given = a.buffer()?;
                let root = a.root()?;
                let buffers = Buffers {
                    sent: Sent::InPlace,
                    room: Some(given),
                };
                forms!(self, a, a.comm()?, buffers, broadcast ibroadcast broadcast_init, (received) (root))
            }
            "gather" | "gatherv" => self.gather(a, name.ends_with('v')).await,
            "scatter" | "scatterv" => self.scatter(a, name.ends_with('v')).await,
            "allgather" => {
                let sent = a.buffer()?;
                let received = a.buffer()?;
                let comm = a.comm()?;
                let ranks = comm
                    .remote_group()
                    .map_or(comm.size(), |group| group.size());
                check_block_apart(&sent, &received, &comm)?;
                let buffers = Buffers::new(&sent, times(received, ranks)?)?;
                forms!(self, a, comm, buffers, allgather iallgather allgather_init, (sent, received) ())
            }
            "allgatherv" => {
                let sent = a.buffer()?;
                let comm = a.names_comm(7)?;
                let blocks = Blocks::of_one(a, peers(&comm))?;
                let layout = blocks.layout;
                a.skip();
                let buffers = Buffers::new(&sent, blocks.given)?;
                forms!(self, a, comm, buffers, allgather_with iallgather_with allgather_with_init, (sent, received) (&layout))
            }
            "alltoall" => {
                let sent = a.buffer()?;
                let received = a.buffer()?;
                let comm = a.comm()?;
                let ranks = peers(&comm) as u32;
                let sent = match sent.is_in_place() {
                    true => sent,
                    false => times(sent, ranks)?,
                };
                let buffers = Buffers::new(&sent, times(received, ranks)?)?;
                forms!(self, a, comm, buffers, alltoall ialltoall alltoall_init, (sent, received) ())
            }
            "alltoallv" | "alltoallw" => {
                let comm = a.names_comm(8)?;
                let ranks = peers(&comm);
                let read = match name.ends_with('w') {
                    true => Blocks::of_several,
                    false => Blocks::of_one,
                };
                let (out, come) = (read(a, ranks)?, read(a, ranks)?);
                a.skip();
                let buffers = Buffers::new(&out.given, come.given)?;
                let (out, come) = (out.layout, come.layout);
                forms!(self, a, comm, buffers, alltoall_with ialltoall_with alltoall_with_init, (sent, received) (&out, &come))
            }
            "reduce" => self.reduce(a).await,
            "allreduce" => {
                let (sent, received) = self.operands(a)?;
                let op = a.op()?;
                let buffers = Buffers::new(&sent, received)?;
                forms!(self, a, a.comm()?, buffers, allreduce iallreduce allreduce_init, (sent, received) (&op))
            }
            "scan" => {
                let (sent, received) = self.operands(a)?;
                let op = a.op()?;
                let buffers = Buffers::new(&sent, received)?;
                forms!(self, a, a.comm()?, buffers, scan iscan scan_init, (sent, received) (&op))
            }
            "exscan" => {
                let (sent, received) = self.operands(a)?;
                let op = a.op()?;
                let comm = a.comm()?;
                let buffers = match comm.rank() {
                    // Its result says nothing (MPI-4.1, Sec. 6.11.2).
                    0 => Buffers {
                        sent: sent.sent(),
                        room: Some(received),
                    },
                    _ => Buffers::new(&sent, received)?,
                };
                forms!(self, a, comm, buffers, exscan iexscan exscan_init, (sent, received) (&op))
            }
            "reduce_scatter_block" => {
                let comm = a.names_comm(5)?;
                let (sent, received) = (a.address(), a.address());
                let count = a.count()?;
                let datatype = a.committed()?;
                let op = a.op()?;
                a.skip();
                let given = |address, count| Given::new(a.rank, address, count, &datatype);
                let all = times(given(sent, count), comm.size())?;
                let received = match all.is_in_place() {
                    true => times(given(received, count), comm.size())?,
                    false => given(received, count),
                };
                let buffers = Buffers::new(&all, received)?;
                forms!(self, a, comm, buffers, reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init, (sent, received) (&op))
            }
            "reduce_scatter" => {
                let comm = a.names_comm(5)?;
                let (sent, received) = (a.address(), a.address());
                let counts = a.numbers(comm.size() as usize)?;
                check(&counts)?;
                let datatype = a.committed()?;
                let op = a.op()?;
                a.skip();
                let all: i64 = counts.iter().sum();
                let own = counts
                    .get(comm.rank() as usize)
                    .copied()
                    .unwrap_or_default();
                let given = |address, count| Given::new(a.rank, address, count, &datatype);
                let sent = given(sent, all);
                let received = match sent.is_in_place() {
                    true => given(received, all),
                    false => given(received, own),
                };
                let buffers = Buffers::new(&sent, received)?;
                forms!(self, a, comm, buffers, reduce_scatter ireduce_scatter reduce_scatter_init, (sent, received) (&op, &counts))
            }
            "neighbor_allgather" => {
                let sent = a.buffer()?;
                let received = a.buffer()?;
                let comm = a.comm()?;
                let (sources, _) = neighbors(&comm)?;
                let buffers = Buffers::new(&sent, times(received, sources as u32)?)?;
                forms!(self, a, comm, buffers, neighbor_allgather ineighbor_allgather neighbor_allgather_init, (sent, received) ())
            }
            "neighbor_allgatherv" => {
                let sent = a.buffer()?;
                let comm = a.names_comm(7)?;
                let (sources, _) = neighbors(&comm)?;
                let blocks = Blocks::of_one(a, sources)?;
                a.skip();
                let (layout, buffers) = (blocks.layout, Buffers::new(&sent, blocks.given)?);
                forms!(self, a, comm, buffers, neighbor_allgather_with ineighbor_allgather_with neighbor_allgather_with_init, (sent, received) (&layout))
            }
            "neighbor_alltoall" => {
                let sent = a.buffer()?;
                let received = a.buffer()?;
                let comm = a.comm()?;
                let (sources, destinations) = neighbors(&comm)?;
                let sent = times(sent, destinations as u32)?;
                let buffers = Buffers::new(&sent, times(received, sources as u32)?)?;
                forms!(self, a, comm, buffers, neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init, (sent, received) ())
            }
            "neighbor_alltoallv" | "neighbor_alltoallw" => {
                let comm = a.names_comm(8)?;
                let (sources, destinations) = neighbors(&comm)?;
                let read = match name.ends_with('w') {
                    true => Blocks::of_several,
                    false => Blocks::of_one,
                };
                let (out, come) = (read(a, destinations)?, read(a, sources)?);
                a.skip();
                let buffers = Buffers::new(&out.given, come.given)?;
                let (out, come) = (out.layout, come.layout);
                forms!(self, a, comm, buffers, neighbor_alltoall_with ineighbor_alltoall_with neighbor_alltoall_with_init, (sent, received) (&out, &come))
            }
            _ => self.rank.unsupported(a),
        }
    }

    /// The buffers of a reduction: two addresses with one count and datatype.
    fn operands(&self, a: &mut Arguments<'_>) -> Result<(Given, Given), Failure> {
        let (sent, received) = (a.address(), a.address());
        let count = a.count()?;
        let datatype = a.committed()?;
        let given = |address| Given::new(a.rank, address, count, &datatype);
        Ok((given(sent), given(received)))
    }

    async fn reduce(&mut self, a: &mut Arguments<'_>) -> Ended {
        let (comm, root, is_root) = rooted(a, 5)?;
        let (sent, received) = self.operands(a)?;
        let op = a.op()?;
        a.skip();
        a.skip();
        let room = is_root.then_some(received);
        if let Some(room) = room.as_ref().filter(|_| root != ROOT) {
            check_apart(&sent, room)?;
        }
        let sent = match (root, &sent) {
            // The root of an intercommunicator contributes nothing.
            (ROOT, _) => Sent::Buffer(Buffer::empty()),
            (_, sent) => sent.sent(),
        };
        let buffers = Buffers { sent, room };
        forms!(self, a, comm, buffers, reduce ireduce reduce_init, (sent, received) (&op, root))
    }

    async fn gather(&mut self, a: &mut Arguments<'_>, has_layout: bool) -> Ended {
        let (comm, root, is_root) = rooted(a, if has_layout { 7 } else { 6 })?;
        let sent = match root {
            ROOT => a.no_buffer(),
            _ => a.buffer()?,
        };
        if !has_layout {
            let room = match is_root {
                true => {
                    let block = a.buffer()?;
                    check_block_apart(&sent, &block, &comm)?;
                    Some(times(block, peers(&comm) as u32)?)
                }
                false => {
                    a.no_buffer();
                    None
                }
            };
            a.skip();
            a.skip();
            let sent = sent.sent();
            let buffers = Buffers { sent, room };
            return forms!(self, a, comm, buffers, gather igather gather_init, (sent, received) (root));
        }
        let (room, layout) = match is_root {
            true => {
                let blocks = Blocks::of_one(a, peers(&comm))?;
                (Some(blocks.given), blocks.layout)
            }
            false => {
                a.skip();
                a.no_buffer();
                (None, Layout::Even)
            }
        };
        a.skip();
        a.skip();
        let sent = sent.sent();
        let buffers = Buffers { sent, room };
        forms!(self, a, comm, buffers, gather_with igather_with gather_with_init, (sent, received) (root, &layout))
    }

    async fn scatter(&mut self, a: &mut Arguments<'_>, has_layout: bool) -> Ended {
        let (comm, root, is_root) = rooted(a, if has_layout { 7 } else { 6 })?;
        let ranks = peers(&comm);
        let mut block = None;
        let (sent, layout) = match (is_root, has_layout) {
            (true, true) => {
                let blocks = Blocks::of_one(a, ranks)?;
                (blocks.given.sent(), blocks.layout)
            }
            (true, false) => {
                let given = a.buffer()?;
                block = Some(given.clone());
                (times(given, ranks as u32)?.sent(), Layout::Even)
            }
            (false, _) => {
                a.no_buffer();
                if has_layout {
                    a.skip();
                }
                (Sent::Buffer(Buffer::empty()), Layout::Even)
            }
        };
        let received = match root {
            ROOT => a.no_buffer(),
            _ => a.buffer()?,
        };
        if let Some(block) = &block {
            check_block_apart(&received, block, &comm)?;
        }
        a.skip();
        a.skip();
        let is_in_place = received.is_in_place();
        let room = Some(received).filter(|_| !is_in_place);
        let buffers = Buffers { sent, room };
        match (is_in_place, has_layout) {
            (true, _) => {
                forms!(self, a, comm, buffers, scatter_in_place iscatter_in_place scatter_in_place_init, (sent) (root, &layout))
            }
            (false, true) => {
                forms!(self, a, comm, buffers, scatter_with iscatter_with scatter_with_init, (sent, received) (root, &layout))
            }
            (false, false) => {
                forms!(self, a, comm, buffers, scatter iscatter scatter_init, (sent, received) (root))
            }
        }
    }
}

/// The ranks that a call exchanges data with: of an intercommunicator those of the other side.
fn peers(comm: &Comm) -> usize {
    let group = comm.remote_group().unwrap_or(comm.group());
    group.size() as usize
}

/// The numbers of neighbours that data come from, and that data go to.
fn neighbors(comm: &Comm) -> Result<(usize, usize), Failure> {
    let topology = comm.topology();
    let topology =
        topology.ok_or_else(|| Failure::new(ErrorClass::Topology, "there is no topology"))?;
    let around = topology.neighborhood(comm.rank())?;
    Ok((around.sources.len(), around.destinations.len()))
}
