//! The sender's side of communication in partitions.

use std::fmt;
use std::panic::Location;

use super::{Partitions, wrong_state};
use crate::buffer::Buffer;
use crate::channel::Channel;
use crate::collective::Call;
use crate::comm::Plane;
use crate::comm::create::fresh;
use crate::device::{CallForm, Head, Mode};
use crate::error::{ErrorClass, Fault, MpiError};
use crate::rank::point::{check_rank, check_tag};
use crate::rank::{Communicator, Named, PROC_NULL};

/// The sender's side (MPI_Psend_init).
pub struct PartitionedSend<'m, C> {
    communicator: Communicator<'m, C>,
    /// The receiver in the job, if there is one, and its number in the communicator.
    to: Option<u32>,
    peer: u32,
    context: u64,
    partitions: Partitions,
    /// Of a request that is active.
    round: Option<Sending>,
}

/// A round of a send.
#[derive(Debug)]
struct Sending {
    is_ready: Vec<bool>,
    left: u32,
    messages: Vec<usize>,
}

impl Sending {
    /// Marks a partition ready; its number and its data.
    fn takes(
        &mut self,
        partitions: Partitions,
        partition: i64,
        buffer: &Buffer<'_>,
    ) -> Result<(u32, Vec<u8>), Fault> {
        let partition = partitions.check(partition)?;
        let is_ready = &mut self.is_ready[partition as usize];
        if *is_ready {
            let text = format!("{partition} is ready already");
            return Err(Fault::new(ErrorClass::Arg, "partition", text));
        }
        let from = u64::from(partition) * partitions.bytes;
        let bytes = buffer.packed_part(from, partitions.bytes)?;
        if bytes.len() as u64 != partitions.bytes {
            let text = format!("it has not all data of partition {partition}");
            return Err(Fault::new(ErrorClass::Buffer, "buf", text));
        }
        *is_ready = true;
        Ok((partition, bytes))
    }
}

impl<C> fmt::Debug for PartitionedSend<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedSend")
            .field("partitions", &self.partitions)
            .field("round", &self.round)
            .finish_non_exhaustive()
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// Makes a send in partitions to rank `to`, which matches a receive there once
    /// (MPI_Psend_init).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] of a wrong argument.
    pub async fn partitioned_send(
        &self,
        partitions: Partitions,
        to: u32,
        tag: i32,
    ) -> Result<PartitionedSend<'m, C>, MpiError> {
        let (mpi, comm) = (self.mpi, &self.comm);
        let entered = mpi.enter("MPI_Psend_init", Some(to), 0).await?;
        let made = comm.check().and_then(|()| {
            check_tag(tag)?;
            let device = mpi.device();
            let mut send = PartitionedSend {
                communicator: self.clone(),
                to: None,
                peer: to,
                context: 0,
                partitions,
                round: None,
            };
            if to != PROC_NULL {
                let world = check_rank(comm, "dest", to)?;
                (send.to, send.context) = (Some(world), fresh(device));
                let told = [send.context.to_le_bytes().to_vec(), partitions.to_bytes()];
                let head = head(comm.context(Plane::Partition), tag);
                // It goes on by itself. Only buffered sends fail.
                let request = device.send(world, head, told.concat(), Mode::Standard);
                request.into_iter().for_each(|request| device.free(request));
            }
            Ok(send)
        });
        mpi.starts().await;
        mpi.close(entered, comm, made).await
    }
}

/// The head of a message of a send in partitions.
fn head(context: u64, tag: i32) -> Head {
    Head {
        context,
        tag,
        call: Call::Send as u8,
        root: 0,
        address: None,
    }
}

impl<C: Channel> PartitionedSend<'_, C> {
    /// Returns whether it has been started and has not been waited for.
    pub fn is_active(&self) -> bool {
        self.round.is_some()
    }

    /// Starts a round (MPI_Start).
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is active.
    pub async fn start(&mut self) -> Result<(), MpiError> {
        let Communicator { mpi, comm } = &self.communicator;
        let entered = mpi.enter("MPI_Start", None, 0).await?;
        let started = match self.round {
            Some(_) => Err(wrong_state("it is active already")),
            None => {
                self.round = Some(Sending {
                    is_ready: vec![false; self.partitions.count as usize],
                    left: self.partitions.count,
                    messages: Vec::new(),
                });
                Ok(())
            }
        };
        mpi.close(entered, comm, started).await
    }

    /// Sends partitions of `buffer`, which has all of them (MPI_Pready, MPI_Pready_range,
    /// MPI_Pready_list).
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is not active; [`ErrorClass::Arg`] of a partition that is not
    /// there, or ready already; [`ErrorClass::Buffer`] if data are not in the buffer. Then none is
    /// sent.
    pub async fn ready(
        &mut self,
        buffer: impl Into<Buffer<'_>>,
        partitions: impl IntoIterator<Item = i64>,
    ) -> Result<(), MpiError> {
        let buffer = buffer.into();
        let Communicator { mpi, comm } = self.communicator.clone();
        let entered = mpi.enter("MPI_Pready", Some(self.peer), 0).await?;
        let sent = self.sends(&buffer, partitions);
        mpi.starts().await;
        mpi.close(entered, &comm, sent).await
    }

    fn sends(
        &mut self,
        buffer: &Buffer<'_>,
        partitions: impl IntoIterator<Item = i64>,
    ) -> Result<(), Fault> {
        let parts = self.partitions;
        let Some(round) = &mut self.round else {
            return Err(wrong_state("it is not active"));
        };
        // No more than there are before one is there twice.
        let mut ready = Vec::new();
        for partition in partitions {
            match round.takes(parts, partition, buffer) {
                Ok(taken) => ready.push(taken),
                Err(fault) => {
                    for (partition, _) in ready {
                        round.is_ready[partition as usize] = false;
                    }
                    return Err(fault);
                }
            }
        }
        round.left -= ready.len() as u32;
        let device = self.communicator.mpi.device();
        for (partition, bytes) in ready {
            let Some(to) = self.to else { continue };
            let head = head(self.context, partition as i32);
            let form = (Mode::Standard, CallForm::Immediate);
            // Only buffered sends fail.
            let request = device.send_as(to, head, bytes, form);
            round.messages.extend(request);
        }
        Ok(())
    }

    /// Returns whether it is over, or not active.
    pub fn is_over(&self) -> bool {
        self.round.as_ref().is_none_or(|round| {
            let device = self.communicator.mpi.device();
            let mut messages = round.messages.iter();
            round.left == 0 && messages.all(|&request| device.is_over(request))
        })
    }

    /// Ends a round that is over; the request is inactive then.
    pub(crate) fn end(&mut self) {
        let device = self.communicator.mpi.device();
        let round = self.round.take();
        for request in round.into_iter().flat_map(|round| round.messages) {
            device.free(request);
        }
    }

    /// Waits until all partitions are ready and have left (MPI_Wait).
    ///
    /// # Errors
    /// If another call of the rank is under way.
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = Result<(), MpiError>> + Send {
        let call = Named::new("MPI_Wait", Location::caller());
        async move {
            let mpi = self.communicator.mpi;
            let entered = mpi.enter(call.name, None, 0).await?;
            let over = || self.is_over().then_some(());
            mpi.until_last(call.site, over).await;
            self.end();
            mpi.leave(entered).await;
            Ok(())
        }
    }
}
