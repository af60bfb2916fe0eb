//! Collective calls (MPI-4.1, Ch. 6), each in three forms: whole, begun (I), and persistent (init).
//!
//! All take the data that the rank contributes and the buffer for the result;
//! [`InPlace`](super::InPlace) stands for the former where the standard allows it, and a rank whose
//! buffer is not significant gives an empty one. The v and w forms are those whose blocks have a
//! [`Layout`].

use std::panic::Location;

use super::given::{Given, Layout, Sent};
use super::launches::{
    Counts, Setting, allgather, allreduce, alltoall, barrier, broadcast, exscan, gather, reduce,
    reduce_scatter, scan, scatter, scatter_in_place,
};
use super::neighbors::{neighbor_allgather, neighbor_alltoall};
use super::persistent::Persistent;
use super::request::Request;
use super::{Communicator, Named};
use crate::buffer::BufferMut;
use crate::channel::Channel;
use crate::error::MpiError;
use crate::op::Op;

/// The three forms of a call whose launch takes `Given` and these arguments.
macro_rules! forms {
    ($($(#[$doc:meta])* $launch:ident: $whole:ident $whole_name:literal, $begun:ident $begun_name:literal, $init:ident $init_name:literal,
        [$($buffer:ident: $kind:ident),*] ($($argument:ident: $type:ty = $value:expr),*) $($fixed:expr),*;)*) => {
        impl<'m, C: Channel> Communicator<'m, C> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// A wrong argument, or another call of another rank: the class and the argument
                /// say which.
                #[track_caller]
                #[allow(clippy::too_many_arguments)]
                pub fn $whole<'a>(
                    &'a self,
                    $($buffer: impl Into<$kind<'a>>,)*
                    $($argument: $type,)*
                ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
                    let call = Named::new($whole_name, Location::caller());
                    let given = Given::nothing()$(.$buffer($buffer.into()))*;
                    let ($($argument,)*) = ($($value,)*);
                    async move {
                        let call = Named { bytes: given.bytes(), ..call };
                        let launch = $launch(&Setting::next(self), given $(, $argument)* $(, $fixed)*);
                        self.whole(call, launch).await.map(drop)
                    }
                }

                /// The same, begun: its end is waited for. See the call that does not return before
                /// it.
                ///
                /// # Errors
                /// As of that call.
                #[track_caller]
                #[allow(clippy::too_many_arguments)]
                pub fn $begun<'a, 'b>(
                    &'a self,
                    $($buffer: impl Into<$kind<'b>>,)*
                    $($argument: $type,)*
                ) -> impl Future<Output = Result<Request<'m, 'b, C>, MpiError>> + Send
                where
                    'b: 'a,
                {
                    let call = Named::new($begun_name, Location::caller());
                    let given = Given::nothing()$(.$buffer($buffer.into()))*;
                    let ($($argument,)*) = ($($value,)*);
                    async move {
                        let call = Named { bytes: given.bytes(), ..call };
                        let launch = $launch(&Setting::next(self), given $(, $argument)* $(, $fixed)*);
                        self.begun(call, launch).await
                    }
                }

                /// The same, persistent: it is started with its buffers as often as the program
                /// likes.
                pub fn $init(&self, $($argument: $type,)*) -> Persistent<'m, C> {
                    let ($($argument,)*) = ($($value,)*);
                    let setting = Setting::next(self);
                    Persistent::new(self, $init_name, move |given| {
                        $launch(&setting, given $(, $argument.clone())* $(, $fixed)*)
                    })
                }
            )*
        }
    };
}

forms! {
    /// Waits until all ranks have made the call (MPI_Barrier).
    barrier: barrier "MPI_Barrier", ibarrier "MPI_Ibarrier", barrier_init "MPI_Barrier_init",
        [] ();
    /// Copies the root's elements to all (MPI_Bcast).
    broadcast: broadcast "MPI_Bcast", ibroadcast "MPI_Ibcast", broadcast_init "MPI_Bcast_init",
        [received: BufferMut] (root: u32 = root);
    /// Gathers equal blocks at the root (MPI_Gather).
    gather: gather "MPI_Gather", igather "MPI_Igather", gather_init "MPI_Gather_init",
        [sent: Sent, received: BufferMut] (root: u32 = root) Layout::Even;
    /// Gathers blocks at the root, where they have a layout (MPI_Gatherv).
    gather: gather_with "MPI_Gatherv", igather_with "MPI_Igatherv", gather_with_init "MPI_Gatherv_init",
        [sent: Sent, received: BufferMut] (root: u32 = root, layout: &Layout = layout.clone());
    /// Scatters equal blocks from the root (MPI_Scatter).
    scatter: scatter "MPI_Scatter", iscatter "MPI_Iscatter", scatter_init "MPI_Scatter_init",
        [sent: Sent, received: BufferMut] (root: u32 = root) Layout::Even;
    /// Scatters blocks from the root, where they have a layout (MPI_Scatterv).
    scatter: scatter_with "MPI_Scatterv", iscatter_with "MPI_Iscatterv",
        scatter_with_init "MPI_Scatterv_init",
        [sent: Sent, received: BufferMut] (root: u32 = root, layout: &Layout = layout.clone());
    /// Scatters blocks from this rank, the root, which keeps its own where it is (MPI_Scatterv with
    /// MPI_IN_PLACE for the buffer that is received into).
    scatter_in_place: scatter_in_place "MPI_Scatterv", iscatter_in_place "MPI_Iscatterv",
        scatter_in_place_init "MPI_Scatterv_init",
        [sent: Sent] (root: u32 = root, layout: &Layout = layout.clone());
    /// Gathers equal blocks at all ranks (MPI_Allgather).
    allgather: allgather "MPI_Allgather", iallgather "MPI_Iallgather", allgather_init "MPI_Allgather_init",
        [sent: Sent, received: BufferMut] () Layout::Even;
    /// Gathers blocks with a layout at all ranks (MPI_Allgatherv).
    allgather: allgather_with "MPI_Allgatherv", iallgather_with "MPI_Iallgatherv",
        allgather_with_init "MPI_Allgatherv_init",
        [sent: Sent, received: BufferMut] (layout: &Layout = layout.clone());
    /// Sends each rank a block, all of equal length (MPI_Alltoall).
    alltoall: alltoall "MPI_Alltoall", ialltoall "MPI_Ialltoall", alltoall_init "MPI_Alltoall_init",
        [sent: Sent, received: BufferMut] () Layout::Even, Layout::Even;
    /// Sends each rank a block; the blocks that are sent and those that come have layouts
    /// (MPI_Alltoallv, and MPI_Alltoallw with typed layouts).
    alltoall: alltoall_with "MPI_Alltoallw", ialltoall_with "MPI_Ialltoallw",
        alltoall_with_init "MPI_Alltoallw_init",
        [sent: Sent, received: BufferMut]
        (out: &Layout = out.clone(), come: &Layout = come.clone());
    /// Reduces the elements of all ranks to the root (MPI_Reduce).
    reduce: reduce "MPI_Reduce", ireduce "MPI_Ireduce", reduce_init "MPI_Reduce_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone(), root: u32 = root);
    /// Reduces the elements of all ranks to all (MPI_Allreduce).
    allreduce: allreduce "MPI_Allreduce", iallreduce "MPI_Iallreduce", allreduce_init "MPI_Allreduce_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone());
    /// Reduces the elements of all ranks, of which each gets an equal block
    /// (MPI_Reduce_scatter_block).
    reduce_scatter: reduce_scatter_block "MPI_Reduce_scatter_block",
        ireduce_scatter_block "MPI_Ireduce_scatter_block",
        reduce_scatter_block_init "MPI_Reduce_scatter_block_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone()) Counts::Even;
    /// Reduces the elements of all ranks, of which rank i gets `counts[i]` (MPI_Reduce_scatter).
    reduce_scatter: reduce_scatter "MPI_Reduce_scatter", ireduce_scatter "MPI_Ireduce_scatter",
        reduce_scatter_init "MPI_Reduce_scatter_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone(), counts: &[i64] = Counts::Of(counts.to_vec()));
    /// Reduces the elements of the ranks up to this one (MPI_Scan).
    scan: scan "MPI_Scan", iscan "MPI_Iscan", scan_init "MPI_Scan_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone());
    /// Reduces the elements of the ranks before this one (MPI_Exscan); rank 0 gets nothing.
    exscan: exscan "MPI_Exscan", iexscan "MPI_Iexscan", exscan_init "MPI_Exscan_init",
        [sent: Sent, received: BufferMut] (op: &Op = op.clone());
    /// Gathers equal blocks from the neighbours of the topology (MPI_Neighbor_allgather). The place
    /// of a neighbour that is not there stays as it is.
    neighbor_allgather: neighbor_allgather "MPI_Neighbor_allgather",
        ineighbor_allgather "MPI_Ineighbor_allgather",
        neighbor_allgather_init "MPI_Neighbor_allgather_init",
        [sent: Sent, received: BufferMut] () Layout::Even;
    /// Gathers blocks with a layout from the neighbours (MPI_Neighbor_allgatherv).
    neighbor_allgather: neighbor_allgather_with "MPI_Neighbor_allgatherv",
        ineighbor_allgather_with "MPI_Ineighbor_allgatherv",
        neighbor_allgather_with_init "MPI_Neighbor_allgatherv_init",
        [sent: Sent, received: BufferMut] (layout: &Layout = layout.clone());
    /// Sends each neighbour a block and receives one from each (MPI_Neighbor_alltoall).
    neighbor_alltoall: neighbor_alltoall "MPI_Neighbor_alltoall",
        ineighbor_alltoall "MPI_Ineighbor_alltoall",
        neighbor_alltoall_init "MPI_Neighbor_alltoall_init",
        [sent: Sent, received: BufferMut] () Layout::Even, Layout::Even;
    /// The same of blocks with layouts (MPI_Neighbor_alltoallv, and MPI_Neighbor_alltoallw with
    /// typed layouts).
    neighbor_alltoall: neighbor_alltoall_with "MPI_Neighbor_alltoallw",
        ineighbor_alltoall_with "MPI_Ineighbor_alltoallw",
        neighbor_alltoall_with_init "MPI_Neighbor_alltoallw_init",
        [sent: Sent, received: BufferMut]
        (out: &Layout = out.clone(), come: &Layout = come.clone());
}
