//! A process under a manager: its library begins and ends, it asks its manager, and it has others
//! started.

use super::alert::Means;
use super::command::Command;
use super::invade::Wish;
use super::lending::{Lease, MemoryWish};
use super::notice::Notice;
use super::sigmod::Sigmod;
use super::start::{Begun, Files};
use crate::channel::Channel;
use crate::error::{ErrorClass, Fault, MpiError};
use crate::processor::{Processor, Work};
use crate::rank::{Arrival, Mpi, NameService, Starter};
use parking_lot::Mutex;

/// The requests that the library of a process makes of its manager when it begins, as MPICH2's
/// does over PMI-1 before its barrier: `init`, `get_maxes`, `get_my_kvsname`, `get_universe_size`,
/// `get_appnum`, `put`.
const REQUESTS: u32 = 6;

/// A process.
#[derive(Debug)]
pub struct Member<M, P> {
    /// The way to the daemons.
    pub sigmod: Sigmod<M, P>,
    begun: Begun,
    files: Files,
    /// Cores that are reserved and have no process yet.
    reserved: Mutex<Vec<u32>>,
    /// The memory that it has borrowed.
    leases: Mutex<Vec<Lease>>,
}

impl<M, P> Member<M, P>
where
    M: Means,
    P: Processor,
{
    /// The process that has been forked so, on the thread that `sigmod` has.
    pub fn new(sigmod: Sigmod<M, P>, begun: Begun, files: Files) -> Self {
        Self {
            sigmod,
            begun,
            files,
            reserved: Mutex::default(),
            leases: Mutex::default(),
        }
    }

    /// The things that it was told.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// Reserves at most so many more cores for processes to start (MPI_Comm_invade), those with the
    /// lowest numbers that are free; how many there are now.
    pub async fn invade(&self, most: u32) -> u32 {
        self.reserve(&self.sigmod.any(0, most)).await
    }

    /// The same for cores as `wish` has them: its candidates are preferred in their order.
    pub async fn reserve(&self, wish: &Wish) -> u32 {
        let cores = self.sigmod.invade(self.begun.program, wish).await;
        let mut reserved = self.reserved.lock();
        reserved.extend(cores);
        reserved.len() as u32
    }

    /// Borrows memory of other cores, as `wish` has it, apart from the cores themselves; the leases
    /// of this call. They end with the process at the latest.
    pub async fn invade_memory(&self, wish: &MemoryWish) -> Vec<Lease> {
        self.files.borrows(self.begun.program);
        let leases = self.sigmod.invade_memory(self.begun.program, wish).await;
        self.leases.lock().extend(&leases);
        leases
    }

    /// Returns memory that was borrowed, of which nothing is in the own caches any more.
    pub async fn return_memory(&self, leases: &[Lease]) {
        let mut own = leases.to_vec();
        own.retain(|lease| self.leases.lock().contains(lease));
        self.leases.lock().retain(|lease| !own.contains(lease));
        self.sigmod.return_memory(self.begun.program, &own).await;
    }

    /// Gives back the cores that are reserved and have no process, and the memory that was
    /// borrowed, after the caches have written it back.
    pub async fn release(&self) {
        let leases = std::mem::take(&mut *self.leases.lock());
        if !leases.is_empty() {
            self.sigmod.memory.write_back_invalidate().await;
        }
        self.sigmod.return_memory(self.begun.program, &leases).await;
        self.release_cores().await;
    }

    /// Gives back the cores alone.
    async fn release_cores(&self) {
        let cores = std::mem::take(&mut *self.reserved.lock());
        self.sigmod.release(self.begun.program, &cores).await;
    }

    /// Makes a request of the manager by way of the daemon, and waits for the answer.
    async fn asks(&self, command: Command) {
        let memory = &self.sigmod.memory;
        let request = Notice::Command(memory.node(), command);
        memory
            .send_signal(self.begun.daemon, request.to_value())
            .await;
        self.sigmod.result(self.begun.program.into()).await;
    }

    /// The library begins (MPI_Init): `channel` connects the process with all others. Ends when all
    /// are there that were started together, and are connected to those that had them started or
    /// have joined them.
    ///
    /// # Errors
    /// Those of [`Mpi::within`], [`Mpi::join`] and
    /// [`Communicator::connect`](crate::rank::Communicator::connect).
    pub async fn initialize<C: Channel>(&self, channel: C) -> Result<Mpi<C>, MpiError> {
        self.sigmod.processor.work(&[(Work::Init, 1)]).await;
        let Begun { launch, .. } = &self.begun;
        let mpi = Mpi::within(channel, &launch.world, launch.birth)?;
        for _ in 0..REQUESTS {
            self.asks(Command::Ask).await;
        }
        self.asks(Command::Meet).await;
        match &launch.port {
            None => {}
            Some((Arrival::Joins, port)) => mpi.join(port).await?,
            Some((Arrival::Connects, port)) => mpi.has_parent(port).await?,
        }
        Ok(mpi)
    }
}

impl<M, P> Starter for Member<M, P>
where
    M: Means,
    P: Processor,
{
    /// Reserves the cores that are missing, and asks the manager to let all their daemons start a
    /// process.
    async fn start(&self, counts: &[u32], arrival: Arrival, port: &str) -> Result<(), Fault> {
        let count = counts
            .iter()
            .fold(0, |all: u32, &one| all.saturating_add(one));
        let missing = count.saturating_sub(self.reserved.lock().len() as u32);
        if missing > 0 && self.invade(missing).await < count {
            self.release_cores().await;
            let unit = self.sigmod.board.alert.unit();
            let text = format!("{count} {unit}s are not to be had");
            return Err(Fault::new(ErrorClass::Spawn, "maxprocs", text));
        }
        let me = self.sigmod.memory.node();
        let cores: Vec<u32> = self.reserved.lock().drain(..count as usize).collect();
        self.files.put(me, (&cores, counts), Some((arrival, port)));
        self.asks(Command::StartAll).await;
        Ok(())
    }
}

impl<M, P> NameService for Member<M, P>
where
    M: Means,
    P: Processor,
{
    async fn publish(&self, service: &str, port: &str) -> Result<(), Fault> {
        self.asks(Command::Ask).await;
        match self.files.publish(service, port) {
            true => Ok(()),
            false => Err(not_published(format!("'{service}' is published already"))),
        }
    }

    async fn look_up(&self, service: &str) -> Result<String, Fault> {
        self.asks(Command::Ask).await;
        let unknown = || {
            let text = format!("'{service}' is not published");
            Fault::new(ErrorClass::Name, "service_name", text)
        };
        self.files.port(service).ok_or_else(unknown)
    }

    async fn unpublish(&self, service: &str, port: &str) -> Result<(), Fault> {
        self.asks(Command::Ask).await;
        match self.files.unpublish(service, port) {
            true => Ok(()),
            false => Err(not_published(format!(
                "'{service}' is not published with that port"
            ))),
        }
    }
}

fn not_published(text: String) -> Fault {
    Fault::new(ErrorClass::Service, "service_name", text)
}
