//! Windows whose calls are messages, as MPICH's CH3 has them: posts are messages without data,
//! accesses and the end of an epoch are packets that the target's library handles inside its own
//! calls.
//!
//! An origin that completes waits for the posts of its targets, and tells each that no access
//! follows; a target counts those. At a fence the ranks sum up how many accesses each gets. A lock
//! is granted by its target, in the order in which it is asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::access::{Access, Kind};
use super::memory::Regions;
use crate::collective::choice::Algorithm;
use crate::collective::{Call, Reduction, barrier, reduce_scatter};
use crate::comm::create::teams;
use crate::comm::{Comm, Plane};
use crate::datatype::{Basic, Datatype};
use crate::device::active::Handler;
use crate::device::matching::Wanted;
use crate::device::{Device, Head, Mode};
use crate::error::Fault;
use crate::op::Op;
use crate::processor::Work;

/// The tag of posts, as in MPICH.
const POST: i32 = 100;

/// A packet between the ranks of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Packet {
    /// An access; of one that fetches, the origin's request, and of one between fences, their
    /// number.
    Access {
        access: Access,
        reply: Option<u32>,
        fence: Option<u32>,
    },
    /// The data that a request gets.
    Reply {
        request: u32,
        bytes: Vec<u8>,
    },
    /// No access of the epoch follows.
    Complete,
    Lock {
        is_exclusive: bool,
    },
    Granted,
    /// The lock is given back.
    Unlock,
    /// An answer is wanted when all that was sent before is done.
    Flush,
    /// It is.
    Done,
}

impl Packet {
    /// Those of accesses that were queued.
    fn accesses(
        queued: Vec<(Access, Option<u32>)>,
        fence: Option<u32>,
    ) -> impl Iterator<Item = Self> {
        queued.into_iter().map(move |(access, reply)| Self::Access {
            access,
            reply,
            fence,
        })
    }
}

/// One rank's part of a window.
pub(crate) struct Messages {
    device: Arc<Device>,
    comm: Comm,
    /// Whether accesses are deferred to the end of their epoch.
    is_deferred: bool,
    state: Arc<Mutex<State>>,
}

struct State {
    comm: Comm,
    memory: Regions,
    /// Origins that have not completed.
    completions: u32,
    /// Fences so far, and by the number of a fence the accesses that have come since.
    fence: u32,
    received: HashMap<u32, u64>,
    lock: Lock,
    /// By target.
    targets: HashMap<u32, Target>,
    /// Accesses of this rank to its own memory that are under way.
    own: u32,
    /// The first error of an access to this rank's memory.
    fault: Option<Fault>,
}

/// The lock of this rank's memory.
#[derive(Default)]
struct Lock {
    holders: Vec<u32>,
    is_exclusive: bool,
    waiting: VecDeque<(u32, bool)>,
}

/// A target of this rank's accesses.
#[derive(Default)]
struct Target {
    is_granted: bool,
    /// Whether accesses leave once the lock is granted, and do not wait for the end of the epoch.
    is_hasty: bool,
    /// Accesses that have not left.
    queued: Vec<(Access, Option<u32>)>,
    /// Accesses since the last fence.
    sent: u64,
    /// Replies and answers that have not come.
    awaited: u32,
}

impl Handler for State {
    fn packet(&mut self, from: u32, bytes: &[u8], device: &Device) {
        let comm = self.comm.clone();
        // The peer's library wrote it.
        let (Ok(packet), Some(rank)) = (postcard::from_bytes(bytes), comm.group().rank_of(from))
        else {
            return;
        };
        let send = |to: u32, packet: &Packet| send(device, &comm, to, packet);
        match packet {
            Packet::Access {
                access,
                reply,
                fence,
            } => {
                if let Kind::Accumulate { .. } = access.kind {
                    device.owe(Work::Combine, access.length().div_ceil(8) as u32);
                }
                let fetched = self.memory.perform(&access).unwrap_or_else(|fault| {
                    self.fault.get_or_insert(fault);
                    None
                });
                if let Some(fence) = fence {
                    *self.received.entry(fence).or_default() += 1;
                }
                self.own -= u32::from(rank == comm.rank());
                if let Some(request) = reply {
                    let bytes = fetched.unwrap_or_default();
                    send(rank, &Packet::Reply { request, bytes });
                }
            }
            Packet::Reply { request, bytes } => {
                device.ends_reply(request as usize, bytes);
                self.target(rank).counts_answer();
            }
            Packet::Complete => self.completions = self.completions.saturating_sub(1),
            Packet::Lock { is_exclusive } => {
                self.lock.waiting.push_back((rank, is_exclusive));
                self.lock
                    .grants()
                    .iter()
                    .for_each(|&to| send(to, &Packet::Granted));
            }
            Packet::Granted => {
                let target = self.target(rank);
                target.is_granted = true;
                if target.is_hasty {
                    let queued = std::mem::take(&mut target.queued);
                    let packets = Packet::accesses(queued, None);
                    packets.for_each(|packet| send(rank, &packet));
                }
            }
            Packet::Unlock => {
                self.lock.holders.retain(|&holder| holder != rank);
                send(rank, &Packet::Done);
                self.lock
                    .grants()
                    .iter()
                    .for_each(|&to| send(to, &Packet::Granted));
            }
            Packet::Flush => send(rank, &Packet::Done),
            Packet::Done => self.target(rank).counts_answer(),
        }
    }
}

impl Target {
    fn counts_answer(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }
}

impl State {
    fn target(&mut self, rank: u32) -> &mut Target {
        self.targets.entry(rank).or_default()
    }
}

impl Lock {
    /// Those who get the lock now.
    fn grants(&mut self) -> Vec<u32> {
        let mut granted = Vec::new();
        while let Some(&(rank, is_exclusive)) = self.waiting.front() {
            let is_free = self.holders.is_empty() || !(is_exclusive || self.is_exclusive);
            if !is_free {
                break;
            }
            self.waiting.pop_front();
            self.is_exclusive = is_exclusive;
            self.holders.push(rank);
            granted.push(rank);
        }
        granted
    }
}

fn send(device: &Device, comm: &Comm, to: u32, packet: &Packet) {
    // A packet has no map and no unknown length, which is all that cannot be written.
    let bytes = postcard::to_allocvec(packet).unwrap_or_default();
    if let Some(world) = comm.group().world_rank(to) {
        device.send_active(world, comm.context(Plane::Window), bytes);
    }
}

impl Messages {
    /// Of a window over `comm`, which nothing else uses.
    pub(crate) fn new(
        device: &Arc<Device>,
        comm: &Comm,
        memory: Regions,
        is_deferred: bool,
    ) -> Self {
        let state = Arc::new(Mutex::new(State {
            comm: comm.clone(),
            memory,
            completions: 0,
            fence: 0,
            received: HashMap::new(),
            lock: Lock::default(),
            targets: HashMap::new(),
            own: 0,
            fault: None,
        }));
        device.set_handler(comm.context(Plane::Window), state.clone());
        Self {
            device: Arc::clone(device),
            comm: comm.clone(),
            is_deferred,
            state,
        }
    }

    /// Ends it; its memory.
    pub(crate) fn free(&self) -> Vec<u8> {
        self.device.remove_handler(self.comm.context(Plane::Window));
        self.state.lock().memory.take()
    }

    /// Does something with the own memory.
    pub(crate) fn with_memory<T>(&self, act: impl FnOnce(&mut Regions) -> T) -> T {
        act(&mut self.state.lock().memory)
    }

    /// Returns whether `target` is this rank itself.
    fn is_own(&self, target: u32) -> bool {
        target == self.comm.rank()
    }

    fn send(&self, to: u32, packet: &Packet) {
        send(&self.device, &self.comm, to, packet);
    }

    /// Begins an access; the request of one that fetches. `is_fenced` says that the epoch is one of
    /// fences.
    ///
    /// One to this rank's own memory leaves at once, and the call waits until
    /// [`Messages::has_own`] says that it is over: MPICH carries it out in the call, and programs
    /// rely on its coming before what they do next.
    pub(crate) fn access(&self, target: u32, access: Access, is_fenced: bool) -> Option<usize> {
        let request = access.kind.fetches().then(|| self.device.begin_reply());
        let reply = request.map(|request| request as u32);
        let mut state = self.state.lock();
        state.own += u32::from(self.is_own(target));
        let fence = is_fenced.then_some(state.fence);
        let own = state.target(target);
        own.awaited += u32::from(reply.is_some());
        own.sent += u64::from(is_fenced);
        let is_queued = self.is_deferred && !self.is_own(target);
        if is_queued && !(own.is_hasty && own.is_granted) {
            own.queued.push((access, reply));
        } else {
            drop(state);
            let packet = Packet::Access {
                access,
                reply,
                fence,
            };
            self.send(target, &packet);
        }
        request
    }

    /// Returns whether an access to the own memory is under way.
    pub(crate) fn has_own(&self) -> bool {
        self.state.lock().own > 0
    }

    /// Sends the accesses to `target` that have not left.
    fn send_queued(&self, target: u32, is_fenced: bool) {
        let (queued, fence) = {
            let mut state = self.state.lock();
            let fence = is_fenced.then_some(state.fence);
            (std::mem::take(&mut state.target(target).queued), fence)
        };
        let packets = Packet::accesses(queued, fence);
        packets.for_each(|packet| self.send(target, &packet));
    }

    /// Lets the accesses to `target`, for whose lock this rank has asked, leave as soon as that is
    /// granted, until it is given back.
    pub(crate) fn hasten(&self, target: u32) {
        let is_granted = {
            let mut state = self.state.lock();
            let own = state.target(target);
            own.is_hasty = true;
            own.is_granted
        };
        if is_granted {
            self.send_queued(target, false);
        }
    }

    /// Waits until nothing is awaited from `targets`.
    async fn answered(&self, targets: &[u32]) -> Result<(), Fault> {
        let done = || {
            let mut state = self.state.lock();
            let mut awaited = targets.iter().map(|&target| state.target(target).awaited);
            awaited.all(|awaited| awaited == 0).then_some(())
        };
        self.device.changed(done).await;
        self.fault()
    }

    /// The error of an access to this rank's memory, if there was one.
    fn fault(&self) -> Result<(), Fault> {
        self.state.lock().fault.take().map_or(Ok(()), Err)
    }

    /// Waits for the posts of `targets`.
    async fn posted(&self, targets: &[u32]) {
        let wanted = |target: &u32| Wanted {
            context: self.comm.context(Plane::Window),
            from: self.comm.group().world_rank(*target),
            tag: Some(POST),
        };
        let receives = targets.iter().map(wanted);
        let receives: Vec<usize> = receives
            .map(|wanted| self.device.receive(wanted, 0))
            .collect();
        for receive in receives {
            self.device.ended(receive).await;
        }
    }

    /// MPI_Win_start.
    pub(crate) async fn start(self: Arc<Self>, targets: Vec<u32>) -> Result<Vec<u8>, Fault> {
        if !self.is_deferred {
            self.posted(&targets).await;
        }
        Ok(Vec::new())
    }

    /// MPI_Win_complete.
    pub(crate) async fn complete(self: Arc<Self>, targets: Vec<u32>) -> Result<Vec<u8>, Fault> {
        if self.is_deferred {
            self.posted(&targets).await;
        }
        for &target in &targets {
            self.send_queued(target, false);
            self.send(target, &Packet::Complete);
        }
        self.answered(&targets).await?;
        Ok(Vec::new())
    }

    /// MPI_Win_post.
    pub(crate) async fn post(self: Arc<Self>, origins: Vec<u32>) -> Result<Vec<u8>, Fault> {
        self.state.lock().completions += origins.len() as u32;
        let head = Head {
            context: self.comm.context(Plane::Window),
            tag: POST,
            call: Call::Send as u8,
            root: 0,
            address: None,
        };
        let group = self.comm.group();
        let origins = origins
            .iter()
            .filter_map(|&origin| group.world_rank(origin));
        // A standard send has no need of the attached buffer.
        let sends = origins.map(|to| self.device.send(to, head, Vec::new(), Mode::Standard).ok());
        let sends: Vec<Option<usize>> = sends.collect();
        for send in sends.into_iter().flatten() {
            self.device.ended(send).await;
        }
        Ok(Vec::new())
    }

    /// Returns whether all origins have completed.
    pub(crate) fn is_completed(&self) -> bool {
        self.state.lock().completions == 0
    }

    /// MPI_Win_wait.
    pub(crate) async fn wait(self: Arc<Self>) -> Result<Vec<u8>, Fault> {
        self.device
            .changed(|| self.is_completed().then_some(()))
            .await;
        self.fault().map(|()| Vec::new())
    }

    /// MPI_Win_fence.
    pub(crate) async fn fence(self: Arc<Self>) -> Result<Vec<u8>, Fault> {
        let all: Vec<u32> = (0..self.comm.size()).collect();
        let mut sent = vec![0u64; all.len()];
        let number = {
            let mut state = self.state.lock();
            for (sent, &target) in sent.iter_mut().zip(&all) {
                let own = state.target(target);
                *sent = std::mem::take(&mut own.sent);
            }
            state.fence
        };
        let (team, _) = teams(&self.device, &self.comm, Call::WinFence, 0);
        let reduction = Reduction {
            op: Op::Sum,
            datatype: Datatype::from(Basic::Uint64),
        };
        let own: Vec<u8> = sent.iter().flat_map(|sent| sent.to_le_bytes()).collect();
        let data = (own, vec![8; all.len()]);
        let expected = reduce_scatter(team, Algorithm::Pairwise, reduction, data).await?;
        let expected = expected
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if self.is_deferred {
            all.iter()
                .for_each(|&target| self.send_queued(target, true));
        }
        let all_received = || {
            let received = self.state.lock().received.get(&number).copied();
            (received.unwrap_or(0) >= expected).then_some(())
        };
        self.device.changed(all_received).await;
        self.answered(&all).await?;
        {
            let mut state = self.state.lock();
            state.received.remove(&number);
            state.fence += 1;
        }
        if !self.is_deferred {
            // Or an access of the next epoch might come before one of this.
            let (team, _) = teams(&self.device, &self.comm, Call::WinFence, 0);
            barrier(team, Algorithm::Dissemination).await?;
        }
        Ok(Vec::new())
    }

    /// MPI_Win_lock, MPI_Win_lock_all. The lock of the own memory is awaited in any case: with it
    /// the rank may load and store (MPI-4.1, Sec. 12.5.3).
    pub(crate) async fn lock(
        self: Arc<Self>,
        targets: Vec<u32>,
        is_exclusive: bool,
    ) -> Result<Vec<u8>, Fault> {
        for &target in &targets {
            self.send(target, &Packet::Lock { is_exclusive });
        }
        let is_awaited = |target: &u32| !self.is_deferred || self.is_own(*target);
        let awaited: Vec<u32> = targets.into_iter().filter(is_awaited).collect();
        self.granted(&awaited).await;
        Ok(Vec::new())
    }

    async fn granted(&self, targets: &[u32]) {
        let all = || {
            let mut state = self.state.lock();
            let mut granted = targets
                .iter()
                .map(|&target| state.target(target).is_granted);
            granted.all(|granted| granted).then_some(())
        };
        self.device.changed(all).await;
    }

    /// MPI_Win_flush, or MPI_Win_unlock if `unlocks`, of these targets.
    pub(crate) async fn flush(
        self: Arc<Self>,
        targets: Vec<u32>,
        unlocks: bool,
    ) -> Result<Vec<u8>, Fault> {
        self.granted(&targets).await;
        for &target in &targets {
            self.send_queued(target, false);
            let packet = if unlocks {
                Packet::Unlock
            } else {
                Packet::Flush
            };
            {
                let mut state = self.state.lock();
                let own = state.target(target);
                own.awaited += 1;
                own.is_granted &= !unlocks;
                own.is_hasty &= !unlocks;
            }
            self.send(target, &packet);
        }
        self.answered(&targets).await?;
        Ok(Vec::new())
    }
}
