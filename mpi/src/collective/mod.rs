//! Collective calls (MPI-4.1, Ch. 6). Each algorithm is a file and knows bytes and numbers of ranks
//! only; [`choice`] says which one a call takes. An algorithm is an `async` function over
//! `team::Team` that serves the blocking, the non-blocking and the persistent form of its call.
//!
//! Data are packed: a call of several blocks has them one behind the other, in the order of the
//! ranks.

pub mod choice;
pub(crate) mod team;
pub(crate) mod words;

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod gather;
pub(crate) mod inter;
mod neighbor;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;

pub(crate) use allgather::allgather;
pub(crate) use allreduce::allreduce;
pub(crate) use alltoall::alltoall;
pub(crate) use barrier::barrier;
pub(crate) use broadcast::broadcast;
pub(crate) use gather::gather;
pub(crate) use neighbor::{Exchange, neighbor};
pub(crate) use reduce::reduce;
pub(crate) use reduce_scatter::reduce_scatter;
pub(crate) use scan::scan;
pub(crate) use scatter::{Scattered, scatter};

use crate::datatype::Datatype;
use crate::op::Op;

macro_rules! calls {
    ($($variant:ident = $name:literal,)*) => {
        /// The call that messages belong to, so that ranks that make different calls find out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Call {
            $($variant,)*
        }

        impl Call {
            const NAMES: &'static [&'static str] = &[$($name,)*];

            /// Its name.
            pub(crate) fn name(self) -> &'static str {
                Calls::name(self as u8)
            }
        }
    };
}

calls! {
    Send = "a send",
    Barrier = "MPI_Barrier",
    Bcast = "MPI_Bcast",
    Gather = "MPI_Gather",
    Scatter = "MPI_Scatter",
    Allgather = "MPI_Allgather",
    Alltoall = "MPI_Alltoall",
    Reduce = "MPI_Reduce",
    Allreduce = "MPI_Allreduce",
    ReduceScatter = "MPI_Reduce_scatter",
    Scan = "MPI_Scan",
    Exscan = "MPI_Exscan",
    NeighborAllgather = "MPI_Neighbor_allgather",
    NeighborAlltoall = "MPI_Neighbor_alltoall",
    Dup = "MPI_Comm_dup",
    Split = "MPI_Comm_split",
    Create = "MPI_Comm_create",
    IntercommCreate = "MPI_Intercomm_create",
    IntercommMerge = "MPI_Intercomm_merge",
    DistGraph = "MPI_Dist_graph_create",
    Accept = "MPI_Comm_accept",
    Connect = "MPI_Comm_connect",
    Spawn = "MPI_Comm_spawn",
    SpawnMultiple = "MPI_Comm_spawn_multiple",
    Infect = "MPI_Comm_infect",
    Join = "MPI_Init",
    Retreat = "MPI_Comm_retreat",
    Disconnect = "MPI_Comm_disconnect",
    WinCreate = "MPI_Win_create",
    WinFence = "MPI_Win_fence",
    WinFree = "MPI_Win_free",
    File = "a call on a file",
    Finalize = "MPI_Finalize",
}

/// The names of calls by their numbers in packets.
pub(crate) struct Calls;

impl Calls {
    /// The name of call number `call`.
    pub(crate) fn name(call: u8) -> &'static str {
        Call::NAMES.get(usize::from(call)).copied().unwrap_or("?")
    }
}

/// A reduction: the operation and the type of the packed elements.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) op: Op,
    pub(crate) datatype: Datatype,
}

/// The largest power of two that is at most `size`, which is not 0.
fn power_below(size: u32) -> u32 {
    1 << (31 - size.max(1).leading_zeros())
}

/// The place of each block in bytes that have them one behind the other, and the end of the last.
fn places(lengths: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let mut places = vec![0];
    places.extend(lengths.iter().map(|length| {
        end += length;
        end
    }));
    places
}
