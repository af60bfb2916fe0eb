//! Ranks on standby: they are in the channel, and have a process only when a group starts one
//! there. For jobs without daemons ([`crate::process`]): the rank that starts processes tells those
//! on standby by messages.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Arrival, Mpi, Starter, Worlds};
use crate::channel::Channel;
use crate::comm::Comm;
use crate::comm::create::{Made, fresh};
use crate::device::Device;
use crate::device::active::Handler;
use crate::error::{ErrorClass, Fault};
use crate::group::Group;
use crate::processor::{Processor, Work};

/// The context of packets to ranks on standby: no communicator has it.
const CONTEXT: u64 = u64::MAX - 1;

/// The time for which a rank that starts processes waits until it looks again whether there are
/// ranks for them, in picoseconds, and how often it looks: for a second in all.
const PAUSE_PS: u64 = 100_000_000;
const LOOKS: u32 = 10_000;

/// The process of a rank that was on standby has been started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The number of its part of the program, from 0 (MPI_APPNUM).
    pub part: u32,
    /// The port at which those expect it that had it started: see [`Mpi::has_parent`].
    pub port: String,
}

/// A packet to a rank on standby.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// A process begins there, in this world.
    Begins(Begun, Made),
    /// The rank is not needed any more.
    Ends,
}

impl Order {
    fn to_bytes(&self) -> Vec<u8> {
        let Self::Begins(begun, world) = self else {
            return Vec::new();
        };
        let mut bytes = begun.part.to_le_bytes().to_vec();
        bytes.extend((begun.port.len() as u32).to_le_bytes());
        bytes.extend(begun.port.as_bytes());
        bytes.extend(world.to_bytes());
        bytes
    }

    /// Read from there; none of bytes that are no order.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::Ends);
        }
        let (part, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (port, world) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let begun = Begun {
            part: u32::from_le_bytes(*part),
            port: String::from_utf8(port.to_vec()).ok()?,
        };
        Some(Self::Begins(begun, Made::from_bytes(world)))
    }
}

/// The orders that have come to a rank.
#[derive(Debug, Default)]
pub(super) struct Orders(VecDeque<Order>);

impl Orders {
    /// Those of the rank that has `device`.
    pub(super) fn of(device: &Device) -> Arc<Mutex<Self>> {
        let orders = Arc::new(Mutex::new(Self::default()));
        device.set_handler(CONTEXT, orders.clone());
        orders
    }
}

impl Handler for Orders {
    fn packet(&mut self, _: u32, bytes: &[u8], _: &Device) {
        // Ranks send nothing else there.
        self.0.extend(Order::from_bytes(bytes));
    }
}

impl<C: Channel> Mpi<C> {
    /// Lets the first `begin` ranks of the channel be the world, and all others be on standby. All
    /// ranks call it, alike, before anything else.
    pub fn begins_among(&self, begin: u32) {
        let (rank, begin) = (self.device.rank(), begin.min(self.channel.ranks()));
        let mut worlds = self.worlds.write();
        let context = worlds.world.made_context();
        let own = worlds.own.clone();
        let world = match rank < begin {
            true => Comm::new(context, Group::world(begin), rank),
            // No world until there is a process.
            false => own.clone(),
        };
        *worlds = Worlds::alone(world, own);
    }

    /// Waits on standby until a process begins here, whose world the rank's world is then; none if
    /// the rank is not needed any more.
    #[track_caller]
    pub fn stands_by(&self) -> impl Future<Output = Option<Begun>> + Send {
        let site = Location::caller();
        async move {
            loop {
                let next = || self.orders.lock().0.pop_front();
                let Order::Begins(begun, world) = self.until(site, next).await else {
                    return None;
                };
                let Some(world) = self.world_of(world) else {
                    continue;
                };
                // Nothing that the process before it has left matches messages of this one.
                let own = super::alone(self.device.rank(), fresh(&self.device));
                *self.worlds.write() = Worlds::alone(world, own);
                self.set_over(false);
                // The process before it may have left its own room behind.
                self.device.detach();
                let work = [(Work::Fork, 1), (Work::Exec, 1)];
                self.channel.work(&work).await;
                return Some(begun);
            }
        }
    }

    /// The communicator of such a world; none if this rank is not in it.
    fn world_of(&self, world: Made) -> Option<Comm> {
        let group = Group::from_world_ranks(world.ranks).ok()?;
        let me = group.rank_of(self.device.rank())?;
        Some(Comm::new(world.context, group, me))
    }

    /// Tells all others that they are not needed any more, when all are on standby.
    #[track_caller]
    pub fn dismisses(&self) -> impl Future<Output = ()> + Send {
        let site = Location::caller();
        async move {
            let all = Group::world(self.channel.ranks());
            for other in all.world_ranks().filter(|&rank| rank != self.device.rank()) {
                let order = Order::Ends.to_bytes();
                self.device.send_active(other, CONTEXT, order);
            }
            let have_left = || self.device.is_drained(&all).then_some(());
            self.until(site, have_left).await;
        }
    }

    /// The way to start processes on ranks on standby. `chooses` is given the number of processes
    /// of each part of a program, and returns the ranks for them; `None` if there are not enough,
    /// but may be when other processes have ended. It is asked again then, for a simulated second.
    pub fn on_standby<F>(&self, chooses: F) -> OnStandby<'_, C, F>
    where
        F: Fn(&[u32]) -> Result<Option<Vec<u32>>, Fault> + Send + Sync,
    {
        OnStandby { mpi: self, chooses }
    }
}

/// Starts processes on ranks on standby.
pub struct OnStandby<'m, C, F> {
    mpi: &'m Mpi<C>,
    chooses: F,
}

impl<C, F> OnStandby<'_, C, F>
where
    C: Channel,
    F: Fn(&[u32]) -> Result<Option<Vec<u32>>, Fault> + Send + Sync,
{
    /// The ranks for so many processes, when there are.
    async fn chosen(&self, counts: &[u32]) -> Result<Vec<u32>, Fault> {
        for _ in 0..LOOKS {
            if let Some(ranks) = (self.chooses)(counts)? {
                return Ok(ranks);
            }
            self.mpi.channel.processor().computes(PAUSE_PS).await;
            self.mpi.progress().await;
        }
        let text = "the ranks for them do not become free";
        Err(Fault::new(ErrorClass::Spawn, "maxprocs", text))
    }
}

impl<C, F> Starter for OnStandby<'_, C, F>
where
    C: Channel,
    F: Fn(&[u32]) -> Result<Option<Vec<u32>>, Fault> + Send + Sync,
{
    async fn start(&self, counts: &[u32], arrival: Arrival, port: &str) -> Result<(), Fault> {
        if arrival != Arrival::Connects {
            let text = "processes on standby have a world of their own";
            return Err(Fault::new(ErrorClass::Spawn, "comm", text));
        }
        let device = self.mpi.device();
        let world = Made {
            ranks: self.chosen(counts).await?,
            context: fresh(device),
        };
        let parts = (0..).zip(counts);
        let parts = parts.flat_map(|(part, &count)| std::iter::repeat_n(part, count as usize));
        for (&rank, part) in world.ranks.iter().zip(parts) {
            let begun = Begun {
                part,
                port: port.to_owned(),
            };
            let order = Order::Begins(begun, world.clone());
            device.send_active(rank, CONTEXT, order.to_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let begun = Begun {
            part: 3,
            port: "rank 5, port 1".to_owned(),
        };
        let world = Made {
            context: 77,
            ranks: vec![4, 2],
        };
        for order in [Order::Begins(begun, world), Order::Ends] {
            let bytes = order.to_bytes();
            assert_eq!(Order::from_bytes(&bytes), Some(order));
        }
        assert_eq!(Order::from_bytes(&[1, 2]), None);
    }
}
