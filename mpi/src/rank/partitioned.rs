//! Partitioned communication (MPI-4.1, Ch. 4): a message whose partitions the sender marks ready one
//! by one, and whose receiver may have cut it into another number of partitions.
//!
//! A send makes a context of its own and tells the receiver of it, and of its partitions, once: in a
//! message that the receive matches by communicator, sender, tag and the order of both calls. From
//! then on every partition of the sender is a message in that context, with its number as the tag.
//! The receive takes them as they come, a few at a time; as the sender ends a round before it starts
//! the next one, messages of two rounds do not mix.

use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::point::{check_rank, check_tag};
use super::{Communicator, Named, PROC_NULL, Source, Status};
use crate::buffer::{Buffer, BufferMut};
use crate::channel::Channel;
use crate::collective::Call;
use crate::comm::Plane;
use crate::comm::create::fresh;
use crate::device::matching::Wanted;
use crate::device::{CallForm, Device, Head, Mode};
use crate::error::{ErrorClass, Fault, MpiError};

/// The most partitions of a message.
pub const MOST_PARTITIONS: u32 = 1 << 16;

/// Messages that a receive waits for at the same time.
const AT_ONCE: u32 = 32;

/// The partitions of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    count: u32,
    bytes: u64,
}

impl Partitions {
    /// `count` partitions of `bytes` bytes each.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there are less than none or more than [`MOST_PARTITIONS`], and
    /// [`ErrorClass::Count`] if all bytes do not fit into 63 bits.
    pub fn new(count: i64, bytes: u64) -> Result<Self, Fault> {
        let known = u32::try_from(count).ok();
        let known = known.filter(|&count| count <= MOST_PARTITIONS);
        let count = known.ok_or_else(|| {
            let text = format!("{count} is not from 0 to {MOST_PARTITIONS}");
            Fault::new(ErrorClass::Arg, "partitions", text)
        })?;
        let all = u64::from(count).checked_mul(bytes);
        if all.is_none_or(|all| all > i64::MAX as u64) {
            let text = format!("{count} partitions of {bytes} bytes are too large");
            return Err(Fault::new(ErrorClass::Count, "count", text));
        }
        Ok(Self { count, bytes })
    }

    /// Bytes of all partitions.
    fn total(self) -> u64 {
        u64::from(self.count) * self.bytes
    }

    fn check(self, partition: i64) -> Result<u32, Fault> {
        let known = u32::try_from(partition).ok();
        known.filter(|&known| known < self.count).ok_or_else(|| {
            let text = format!("{partition} is not among {} partitions", self.count);
            Fault::new(ErrorClass::Arg, "partition", text)
        })
    }

    /// The partitions of `other`, which cut the same data, that have data of this one's.
    fn within(self, partition: u32, other: Self) -> Range<usize> {
        let (own, other) = (u64::from(self.count.max(1)), u64::from(other.count));
        let begin = u64::from(partition) * other / own;
        let end = ((u64::from(partition) + 1) * other).div_ceil(own);
        begin as usize..end as usize
    }

    fn to_bytes(self) -> Vec<u8> {
        let count = self.count.to_le_bytes();
        [&count[..], &self.bytes.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, bytes) = bytes.split_first_chunk()?;
        let (bytes, _) = bytes.split_first_chunk()?;
        Some(Self {
            count: u32::from_le_bytes(*count),
            bytes: u64::from_le_bytes(*bytes),
        })
    }
}

/// A call that an inactive request does not allow, or one that an active request does not.
fn wrong_state(text: &'static str) -> Fault {
    Fault::new(ErrorClass::Request, "request", text)
}

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

impl<C> fmt::Debug for PartitionedSend<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedSend")
            .field("partitions", &self.partitions)
            .field("round", &self.round)
            .finish_non_exhaustive()
    }
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

/// Bytes that a sender tells a receiver of its partitions.
const TOLD_BYTES: usize = 20;

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
        let mut is_ready = round.is_ready.clone();
        let mut ready = Vec::new();
        for partition in partitions {
            let partition = parts.check(partition)?;
            if std::mem::replace(&mut is_ready[partition as usize], true) {
                let text = format!("{partition} is ready already");
                return Err(Fault::new(ErrorClass::Arg, "partition", text));
            }
            let from = u64::from(partition) * parts.bytes;
            let bytes = buffer.packed_part(from, parts.bytes)?;
            if bytes.len() as u64 != parts.bytes {
                let text = format!("it has not all data of partition {partition}");
                return Err(Fault::new(ErrorClass::Buffer, "buf", text));
            }
            ready.push((partition, bytes));
        }
        round.is_ready = is_ready;
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
