//! Communication in partitions: requests of their own kind.

use super::arguments::{Arguments, Given};
use super::objects::no_such;
use super::rank::{Ended, Failure, SUCCESS};
use super::request::Pending;
use super::server::Server;
use crate::channel::Channel;
use crate::error::ErrorClass;
use crate::rank::Status;
use crate::rank::partitioned::{PartitionedReceive, PartitionedSend, Partitions};

/// A send or a receive in partitions, with its buffer.
pub(super) enum Partitioned<'m, C> {
    Send(PartitionedSend<'m, C>, Given),
    Receive(PartitionedReceive<'m, 'static, C>, Given),
}

impl<C: Channel> Partitioned<'_, C> {
    pub(super) fn is_active(&self) -> bool {
        match self {
            Self::Send(send, _) => send.is_active(),
            Self::Receive(receive, _) => receive.is_active(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Send(send, _) => send.is_over(),
            Self::Receive(receive, _) => receive.is_over(),
        }
    }

    /// The status of one that is over, which stays as it is.
    pub(super) fn look(&self) -> Option<Status> {
        let status = match self {
            Self::Send(..) => Status::EMPTY,
            Self::Receive(receive, _) => receive.status(),
        };
        self.is_over().then_some(status)
    }

    /// Ends a round that is over.
    pub(super) fn end(&mut self, call: &'static str) -> Result<Status, Failure> {
        match self {
            Self::Send(send, _) => {
                send.end();
                Ok(Status::EMPTY)
            }
            Self::Receive(receive, _) => Ok(receive.end(call)?),
        }
    }

    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        match self {
            Self::Send(send, _) => Ok(send.start().await?),
            Self::Receive(receive, given) => Ok(receive.start(given.room()).await?),
        }
    }

    /// Checks that it can be freed: nothing takes its place while it is active.
    pub(super) fn free(&self) -> Result<(), Failure> {
        match self.is_active() {
            true => {
                let text = "request: communication in partitions is active";
                Err(Failure::new(ErrorClass::Request, text))
            }
            false => Ok(()),
        }
    }
}

impl<'m, C: Channel> Server<'m, C> {
    pub(super) async fn partitioned(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Psend_init" => {
                let (given, partitions) = parts(a)?;
                let (to, tag, comm) = (a.peer()?, a.tag()?, a.comm()?);
                a.info()?;
                let on = self.mpi.on(comm);
                let send = on.partitioned_send(partitions, to, tag).await?;
                let send = Partitioned::Send(send, given);
                let at = a.address();
                self.begun(a, at, Pending::Partitioned(Box::new(send)))
            }
            "Precv_init" => {
                let (given, partitions) = parts(a)?;
                let (from, tag, comm) = (a.source()?, a.tag()?, a.comm()?);
                a.info()?;
                let on = self.mpi.on(comm);
                let receive = on.partitioned_receive(partitions, from, tag).await?;
                let receive = Partitioned::Receive(receive, given);
                let at = a.address();
                self.begun(a, at, Pending::Partitioned(Box::new(receive)))
            }
            "Pready" => {
                let (partition, handle) = (a.number(), a.handle());
                self.ready(handle, [partition]).await
            }
            "Pready_range" => {
                let (low, high, handle) = (a.number(), a.number(), a.handle());
                if low > high {
                    let text = format!("partition_low: {low} is more than {high}");
                    return Err(Failure::new(ErrorClass::Arg, text));
                }
                self.ready(handle, low..=high).await
            }
            "Pready_list" => {
                let count = a.length()?;
                let (partitions, handle) = (a.numbers(count)?, a.handle());
                self.ready(handle, partitions).await
            }
            "Parrived" => {
                let (handle, partition, flag) = (a.handle(), a.number(), a.out());
                let Some(Partitioned::Receive(receive, _)) = self.parts_of(handle) else {
                    return Err(no_such(
                        ErrorClass::Request,
                        "receive in partitions",
                        handle,
                    ));
                };
                let has_arrived = receive.has_arrived(partition).await?;
                a.put(flag, has_arrived.into())?;
                SUCCESS
            }
            _ => self.rank.unsupported(a),
        }
    }

    fn parts_of(&mut self, handle: u64) -> Option<&mut Partitioned<'m, C>> {
        match self.requests.get_mut(&handle) {
            Some(Pending::Partitioned(parts)) => Some(parts),
            _ => None,
        }
    }

    async fn ready(&mut self, handle: u64, partitions: impl IntoIterator<Item = i64>) -> Ended {
        let Some(Partitioned::Send(send, given)) = self.parts_of(handle) else {
            return Err(no_such(ErrorClass::Request, "send in partitions", handle));
        };
        send.ready(given.buffer(), partitions).await?;
        SUCCESS
    }
}

/// A buffer of partitions: its address, their number, the count of each, a datatype.
fn parts(a: &mut Arguments<'_>) -> Result<(Given, Partitions), Failure> {
    let (address, partitions, count) = (a.address(), a.count()?, a.count()?);
    let datatype = a.committed()?;
    let bytes = (count as u64).checked_mul(datatype.size() as u64);
    let all = count.checked_mul(partitions);
    let (Some(bytes), Some(all)) = (bytes, all) else {
        let text = format!("count: {partitions} partitions of {count} elements are too large");
        return Err(Failure::new(ErrorClass::Count, text));
    };
    let partitions = Partitions::new(partitions, bytes)?;
    Ok((Given::new(a.rank, address, all, &datatype), partitions))
}
