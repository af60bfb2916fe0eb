//! The receiver's side of communication in partitions.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Partitions, wrong_state};
use crate::buffer::BufferMut;
use crate::channel::Channel;
use crate::comm::Plane;
use crate::device::Device;
use crate::device::matching::Wanted;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::rank::point::{check_rank, check_tag};
use crate::rank::{Communicator, Named, PROC_NULL, Source, Status};

/// Messages that a receive waits for at the same time.
const AT_ONCE: u32 = 32;

/// Bytes that a sender tells a receiver of its partitions.
const TOLD_BYTES: usize = 20;

/// The receiver's side (MPI_Precv_init).
pub struct PartitionedReceive<'m, 'b, C> {
    communicator: Communicator<'m, C>,
    /// The sender in the job, if there is one.
    from: Option<u32>,
    /// The source and the tag of its statuses.
    envelope: (u32, i32),
    partitions: Partitions,
    /// The receive of what the sender tells, until the first start.
    told: Option<usize>,
    arrivals: Arc<Mutex<Arrivals>>,
    round: Option<Receiving<'b>>,
}

/// A round of a receive.
struct Receiving<'b> {
    /// None without a sender.
    task: Option<usize>,
    room: BufferMut<'b>,
    /// Of data that had no place in the room.
    fault: Option<Fault>,
}

/// The messages of a round that have come.
#[derive(Debug, Default)]
struct Arrivals {
    /// The context and the partitions of the sender, when they are known.
    sender: Option<(u64, Partitions)>,
    has_arrived: Vec<bool>,
    /// Partitions of the sender that are not in the buffer yet.
    fresh: Vec<(u32, Vec<u8>)>,
}

impl<C> fmt::Debug for PartitionedReceive<'_, '_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedReceive")
            .field("partitions", &self.partitions)
            .field("arrivals", &self.arrivals)
            .field("is_active", &self.round.is_some())
            .finish_non_exhaustive()
    }
}

impl<'m, C: Channel> Communicator<'m, C> {
    /// Makes a receive in partitions from a rank, which matches a send there once
    /// (MPI_Precv_init).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] or [`ErrorClass::Tag`] of a wrong argument; there must be one sender.
    pub async fn partitioned_receive<'b>(
        &self,
        partitions: Partitions,
        from: Source,
        tag: i32,
    ) -> Result<PartitionedReceive<'m, 'b, C>, MpiError> {
        let (mpi, comm) = (self.mpi, &self.comm);
        let entered = mpi.enter("MPI_Precv_init", None, 0).await?;
        let made = comm.check().and_then(|()| {
            check_tag(tag)?;
            let Source::Rank(source) = from else {
                let text = "a receive in partitions has one sender";
                return Err(Fault::new(ErrorClass::Rank, "source", text));
            };
            let mut receive = PartitionedReceive {
                communicator: self.clone(),
                from: None,
                envelope: (source, tag),
                partitions,
                told: None,
                arrivals: Arc::default(),
                round: None,
            };
            if source != PROC_NULL {
                let world = check_rank(comm, "source", source)?;
                let wanted = Wanted {
                    context: comm.context(Plane::Partition),
                    from: Some(world),
                    tag: Some(tag),
                };
                receive.from = Some(world);
                receive.told = Some(mpi.device().receive(wanted, TOLD_BYTES));
            }
            Ok(receive)
        });
        mpi.starts().await;
        mpi.close(entered, comm, made).await
    }
}

impl<'b, C: Channel> PartitionedReceive<'_, 'b, C> {
    /// Returns whether it has been started and has not been waited for.
    pub fn is_active(&self) -> bool {
        self.round.is_some()
    }

    /// Starts a round, which fills `room` (MPI_Start).
    ///
    /// # Errors
    /// [`ErrorClass::Request`] if it is active.
    pub async fn start(&mut self, room: impl Into<BufferMut<'b>>) -> Result<(), MpiError> {
        let room = room.into();
        let Communicator { mpi, comm } = &self.communicator;
        let entered = mpi.enter("MPI_Start", None, 0).await?;
        let started = match self.round {
            Some(_) => Err(wrong_state("it is active already")),
            None => {
                let device = mpi.device();
                let task = self.from.map(|from| {
                    let arrivals = Arc::clone(&self.arrivals);
                    arrivals.lock().has_arrived.clear();
                    let most = self.partitions.total();
                    let arrives =
                        arrive((Arc::clone(device), from), self.told.take(), arrivals, most);
                    device.begin_task(Box::pin(arrives))
                });
                let fault = None;
                self.round = Some(Receiving { task, room, fault });
                Ok(())
            }
        };
        mpi.starts().await;
        mpi.close(entered, comm, started).await
    }

    /// Makes progress; whether a partition is in the room that was given (MPI_Parrived). All are if
    /// the request is not active.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there is no such partition.
    pub async fn has_arrived(&mut self, partition: i64) -> Result<bool, MpiError> {
        let Communicator { mpi, comm } = self.communicator.clone();
        let entered = mpi.enter("MPI_Parrived", None, 0).await?;
        mpi.progress().await;
        self.lands();
        let found = self.partitions.check(partition);
        let found = found.map(|partition| self.is_there(partition));
        mpi.close(entered, &comm, found).await
    }

    fn is_there(&self, partition: u32) -> bool {
        if self.is_over() {
            return true;
        }
        let arrivals = self.arrivals.lock();
        let Some((_, sender)) = arrivals.sender else {
            return false;
        };
        let theirs = self.partitions.within(partition, sender);
        let theirs = arrivals.has_arrived.get(theirs);
        theirs.is_some_and(|theirs| theirs.iter().all(|&has| has))
    }

    /// Moves data that have come into the room.
    fn lands(&mut self) {
        let Some(round) = &mut self.round else { return };
        let mut arrivals = self.arrivals.lock();
        let Some((_, sender)) = arrivals.sender else {
            return;
        };
        for (partition, bytes) in std::mem::take(&mut arrivals.fresh) {
            let from = u64::from(partition) * sender.bytes;
            if from < self.partitions.total()
                && let Err(fault) = round.room.unpack_part(from, &bytes)
            {
                round.fault.get_or_insert(fault);
            }
        }
    }

    /// Returns whether it is over, or not active.
    pub fn is_over(&self) -> bool {
        let task = self.round.as_ref().and_then(|round| round.task);
        task.is_none_or(|task| self.communicator.mpi.device().is_over(task))
    }

    /// The status of a round that is over, or of a request that is not active.
    pub(crate) fn status(&self) -> Status {
        let (source, tag) = self.envelope;
        match (&self.round, self.from) {
            (None, _) => Status::EMPTY,
            (_, None) => Status::NO_PROCESS,
            _ => Status {
                source,
                tag,
                bytes: self
                    .arrivals
                    .lock()
                    .sender
                    .map_or(0, |(_, sender)| sender.total()),
                is_cancelled: false,
            },
        }
    }

    /// Ends a round that is over; the request is inactive then.
    pub(crate) fn end(&mut self, call: &'static str) -> Result<Status, MpiError> {
        self.lands();
        let status = self.status();
        let Some(round) = self.round.take() else {
            return Ok(status);
        };
        let Communicator { mpi, comm } = &self.communicator;
        let outcome = round.task.and_then(|task| mpi.device().take(task));
        let fault = outcome.and_then(|outcome| outcome.fault).or(round.fault);
        fault.map_or(Ok(status), |fault| Err(mpi.error(comm, fault, call)))
    }

    /// Waits until all partitions are in the room (MPI_Wait).
    ///
    /// # Errors
    /// [`ErrorClass::Truncate`] if the sender's partitions have more data than there is room for.
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = Result<Status, MpiError>> + Send {
        let call = Named::new("MPI_Wait", Location::caller());
        async move {
            let mpi = self.communicator.mpi;
            let entered = mpi.enter(call.name, None, 0).await?;
            let over = || self.is_over().then_some(());
            mpi.until_last(call.site, over).await;
            let ended = self.end(call.name);
            mpi.leave(entered).await;
            ended
        }
    }
}

/// Receives a round of messages from a rank. What it tells of its partitions is received before the
/// first.
async fn arrive(
    (device, from): (Arc<Device>, u32),
    told: Option<usize>,
    arrivals: Arc<Mutex<Arrivals>>,
    most: u64,
) -> Result<Vec<u8>, Fault> {
    if let Some(told) = told {
        let outcome = device.ended(told).await;
        let context = outcome.bytes.split_first_chunk();
        arrivals.lock().sender = context.and_then(|(context, partitions)| {
            let partitions = Partitions::from_bytes(partitions)?;
            Some((u64::from_le_bytes(*context), partitions))
        });
    }
    let Some((context, sender)) = arrivals.lock().sender else {
        let text = "the sender has not told its partitions";
        return Err(Fault::new(ErrorClass::Intern, "request", text));
    };
    arrivals.lock().has_arrived = vec![false; sender.count as usize];
    let wanted = Wanted {
        context,
        from: Some(from),
        tag: None,
    };
    let mut waiting: Vec<usize> = Vec::new();
    let mut unposted = sender.count;
    loop {
        while unposted > 0 && waiting.len() < AT_ONCE as usize {
            waiting.push(device.receive(wanted, sender.bytes as usize));
            unposted -= 1;
        }
        if waiting.is_empty() {
            break;
        }
        let one = || {
            let mut all = waiting.iter().enumerate();
            all.find_map(|(place, &request)| Some((place, device.take(request)?)))
        };
        let (place, outcome) = device.changed(one).await;
        waiting.remove(place);
        let partition = outcome.envelope.map_or(0, |envelope| envelope.tag as u32);
        let mut arrivals = arrivals.lock();
        if let Some(has_arrived) = arrivals.has_arrived.get_mut(partition as usize) {
            *has_arrived = true;
        }
        arrivals.fresh.push((partition, outcome.bytes));
    }
    match sender.total() <= most {
        true => Ok(Vec::new()),
        false => {
            let text = format!(
                "{} bytes are more than the {most} there is room for",
                sender.total()
            );
            Err(Fault::new(ErrorClass::Truncate, "count", text))
        }
    }
}
