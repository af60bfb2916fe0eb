//! A channel through the queues of MPPAIPC: each rank's node has one ([`RQueue`]), which takes the
//! messages of all, up to 120 bytes of a stream each. Long messages go by [portals].
//!
//! [`RQueue`]: crate::mppaipc::rqueue
//!
//! As in MPPA-MPI (Ho et al., Sec. II) a server on another core of the node, its resource manager,
//! takes the messages: each calls it back. It leaves their bytes in a buffer of the node's memory,
//! where the rank's calls find them, or hears of a place for data, and starts the transfer of a
//! send that waits. A rank waits on one flag, its event, which the server sets, and which credits
//! that return and transfers that end set, too.

pub mod portals;

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use portals::{Buffers, Portals};
use sme_memory::{Flag, Own, Spawn, TestAndSet, ThreadId, Timer, Until};

use super::shared::Shared;
use super::transfers::{Modes, Transfers};
use super::{Channel, Segment, gather, own};
use crate::device::direct::Pending;
use crate::device::packet::Frames;
use crate::mppaipc::path::interface;
use crate::mppaipc::rqueue::{RQueueRx, RQueueTx};
use crate::mppaipc::sync::SyncRx;
use crate::mppaipc::{Fabric, Hardware, Ipc, IpcError, Resources, Room};
use crate::peers::Peers;
use crate::processor::{Processor, Work};

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 120;
/// Words of a message.
const MESSAGE_WORDS: usize = MESSAGE_BYTES / 8;

/// Bytes of data that a message has which does not begin a packet: beside them it has as long a
/// header as one that does (Ho et al., Sec. III-C1).
const PIECE_BYTES: usize = 96;

/// The receive tag of every queue. Credits of the queue of rank `r` come back under control tag
/// `r`.
const QUEUE: u16 = 0;

/// The settings of a channel, the same for all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Ranks, each on the node of its number; 1 to 64.
    pub ranks: u32,
    /// Ranks outside the world: the last ones of `ranks`.
    pub outside: u32,
    /// Messages that each rank may have under way to each other one, at least 1.
    pub credits: u32,
    /// The chip.
    pub hardware: Hardware,
    /// Memory of each node for the library; the rank's own data are below it.
    pub room: Room,
    /// The core of each node that serves, its resource manager.
    pub server: u32,
    /// The ways of messages by their lengths.
    pub modes: Modes,
    /// Buffers for data under way.
    pub buffers: Buffers,
}

/// The channel of one rank.
#[derive(Debug)]
pub struct Queues<M, P> {
    memory: M,
    processor: P,
    me: u32,
    ranks: u32,
    outside: u32,
    to: Vec<RQueueTx<M, P>>,
    portals: Portals<M, P>,
    inbox: Arc<Mutex<Inbox>>,
    event: Flag,
    server: ThreadId,
    sends: Arc<OnceLock<Pending>>,
    meets: (String, SyncRx<M, P>, Ipc<M, P>),
    /// The server's buffer of a message, and the place of data without an address.
    buffers: (Own, Own),
}

/// The bytes that the server has left, by sender, and the senders of which there are any.
#[derive(Debug)]
struct Inbox {
    streams: Peers<VecDeque<u8>>,
    has_some: VecDeque<u32>,
}

impl<M, P> Queues<M, P> {
    /// Its transfers.
    pub fn portals(&self) -> &Portals<M, P> {
        &self.portals
    }
}

impl<M, P> Queues<M, P>
where
    M: Fabric + Spawn + 'static,
    P: Processor + Clone + 'static,
{
    /// Starts the channel of the rank whose thread has `memory`; `core` makes a processor of a
    /// thread's memory. Starts the server. Before the first message ranks [meet](Self::meet).
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn start(
        memory: M,
        core: impl Fn(&M) -> P + Send + 'static,
        setting: Setting,
    ) -> Result<Self, IpcError> {
        let Setting { ranks, .. } = setting;
        let me = memory.node();
        let resources = Arc::new(Resources::new(setting.hardware, 1, setting.room));
        let processor = core(&memory);
        let ipc = Ipc::new(memory.clone(), processor.clone(), Arc::clone(&resources), 0);
        let (event, is_open, serves) = (ipc.new_flag()?, ipc.new_flag()?, ipc.new_flag()?);
        let ipc = ipc.with_event(event);
        let inbox = Arc::new(Mutex::new(Inbox {
            streams: Peers::default(),
            has_some: VecDeque::new(),
        }));
        // Behind the tags of the ranks.
        let meeting = format!("/mppa/sync/{}:{ranks}", nodes(&setting));
        let meet = ipc.sync_rx(&meeting, u64::MAX >> (64 - ranks)).await?;
        let mut to = Vec::new();
        for other in 0..ranks {
            to.push(ipc.rqueue_tx(&path(other, &setting)).await?);
        }
        let buffers = (
            ipc.reserve_own("buffers", MESSAGE_BYTES as u64)?,
            ipc.reserve_own("buffers", MESSAGE_BYTES as u64)?,
        );
        let data = (setting.modes, setting.buffers);
        let portals = Portals::new(ipc.clone(), data, setting.room.begin, serves)?;
        let refusal: Arc<Mutex<Option<IpcError>>> = Arc::default();
        let refused = Arc::clone(&refusal);
        let sends: Arc<OnceLock<Pending>> = Arc::default();
        let (waiting, left) = (Arc::clone(&sends), Arc::clone(&inbox));
        let shared = portals.shared();
        let course = move |memory: M| async move {
            let core = core(&memory);
            let ipc = Ipc::new(memory.clone(), core.clone(), resources, 0).with_event(event);
            // Its own queue is the one thing that wakes the server itself.
            let queue = ipc.clone().with_event(serves);
            let opened = queue.rqueue_rx(&path(me, &setting)).await;
            let (opened, failed) = match opened {
                Ok(queue) => (Some(queue), None),
                Err(error) => (None, Some(error)),
            };
            *refused.lock() = failed;
            memory.set(is_open, 1).await;
            if let Some(queue) = opened {
                let server = Server {
                    memory,
                    core,
                    portals: Portals::of(ipc, shared),
                    sends: waiting,
                    inbox: left,
                    event,
                    serves,
                };
                server.serve(queue, ranks).await;
            }
        };
        let server = memory.spawn(Some(setting.server), course).await;
        memory.wait(is_open, Until::Is(1)).await;
        if let Some(error) = refusal.lock().take() {
            return Err(error);
        }
        Ok(Self {
            memory,
            processor,
            me,
            ranks,
            outside: setting.outside,
            to,
            portals,
            inbox,
            event,
            server,
            sends,
            meets: (meeting, meet, ipc),
            buffers,
        })
    }

    /// Ends when all ranks can be sent messages. The channel must be a rank's by then.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn meet(&self) -> Result<(), IpcError> {
        let (path, meet, ipc) = &self.meets;
        ipc.sync_tx(path)?.write(1 << self.me).await;
        meet.wait().await;
        Ok(())
    }

    /// Lets the server end, and waits for that. Nothing may come any more.
    pub async fn stop(&self) {
        // An empty message is not too long.
        let _ = self.to[self.me as usize].write(&[]).await;
        self.memory.join(self.server).await;
    }
}

/// The nodes of all ranks, as paths name them.
fn nodes(setting: &Setting) -> String {
    let numbers = (0..setting.ranks).map(|rank| interface(rank, &setting.hardware).to_string());
    format!("[{}]", numbers.collect::<Vec<_>>().join(","))
}

/// The path of the queue of rank `to`.
fn path(to: u32, setting: &Setting) -> String {
    let (at, from, credits) = (
        interface(to, &setting.hardware),
        nodes(setting),
        setting.credits,
    );
    format!("/mppa/rqueue/{at}:{QUEUE}/{from}:{to}/{credits}.{MESSAGE_BYTES}")
}

/// The server of a rank, on another core.
struct Server<M, P> {
    memory: M,
    core: P,
    portals: Portals<M, P>,
    sends: Arc<OnceLock<Pending>>,
    inbox: Arc<Mutex<Inbox>>,
    /// The rank's event, and the server's.
    event: Flag,
    serves: Flag,
}

impl<M: Fabric, P: Processor + Clone> Server<M, P> {
    /// Its course: a callback for each message, and the transfers that it is to start.
    async fn serve(self, mut queue: RQueueRx<M, P>, ranks: u32) {
        let mut words = [0; MESSAGE_WORDS];
        let mut frames = Frames::new(ranks as usize);
        loop {
            if self.starts_one().await {
                continue;
            }
            if !queue.is_ready().await {
                self.memory.wait(self.serves, Until::Is(1)).await;
                self.memory.set(self.serves, 0).await;
                continue;
            }
            let came = queue.take_callback(&mut words).await;
            if came.bytes == 0 {
                return;
            }
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            let bytes: Vec<u8> = bytes.take(came.bytes as usize).collect();
            let header = frames.comes(came.from, &bytes);
            let sends = self.sends.get().zip(header);
            if !sends.is_some_and(|(sends, header)| sends.hears(came.from, header)) {
                self.inbox.lock().leaves(came.from, bytes);
            }
            self.memory.set(self.event, 1).await;
        }
    }

    /// Starts a transfer, if there is one to start.
    async fn starts_one(&self) -> bool {
        let Some((sends, mut ready)) = self
            .sends
            .get()
            .and_then(|sends| Some((sends, sends.next()?)))
        else {
            return false;
        };
        self.core.work(&[(Work::Find, 1)]).await;
        let data = std::mem::take(&mut ready.data);
        let to = data.to;
        match ready.is_for_engine() {
            true => sends.started(&ready, self.portals.start(data).await),
            false => sends.pushed(to, &ready, self.portals.push(data).await),
        }
        self.memory.set(self.event, 1).await;
        true
    }
}

impl Inbox {
    fn leaves(&mut self, from: u32, bytes: Vec<u8>) {
        self.streams.of(from).extend(bytes);
        if !self.has_some.contains(&from) {
            self.has_some.push_back(from);
        }
    }
}

impl<M, P> Channel for Queues<M, P>
where
    M: Fabric + TestAndSet + Timer,
    P: Processor + Clone,
{
    type Area = Shared<M, P>;
    type Processor = P;
    type Transfers = Portals<M, P>;

    fn transfers(&self) -> Option<&Portals<M, P>> {
        Some(self.portals())
    }

    fn serves(&self, sends: Pending) {
        // A channel is one rank's only.
        let _ = self.sends.set(sends);
    }

    fn processor(&self) -> &P {
        &self.processor
    }

    /// Nodes share no memory.
    fn area(&self) -> Option<&Self::Area> {
        None
    }

    fn rank(&self) -> u32 {
        self.me
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn eager_bytes(&self) -> Option<u64> {
        self.portals.abilities().modes.eager_bytes
    }

    fn outside(&self) -> u32 {
        self.outside
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        let mut words = Vec::with_capacity(MESSAGE_WORDS);
        let begins = segments
            .first()
            .is_some_and(|header| !header.bytes.is_empty());
        let most = if begins { MESSAGE_BYTES } else { PIECE_BYTES };
        let (count, _) = gather(segments, most, &mut words);
        let sent = self.to[to as usize].try_write(&words[1..], count as u64);
        match sent.await {
            Ok(()) => count,
            Err(_) => 0,
        }
    }

    /// A look at nothing takes the time of a read: a program that polls does not stop the time.
    async fn arrived(&self) -> Option<u32> {
        let found = self.inbox.lock().has_some.front().copied();
        if found.is_none() {
            self.memory.read(self.event).await;
        }
        found
    }

    async fn read(
        &self,
        from: u32,
        most: usize,
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> usize {
        let taken = {
            let mut inbox = self.inbox.lock();
            inbox.has_some.retain(|&sender| sender != from);
            let stream = inbox.streams.of(from);
            let taken = most.min(stream.len());
            into.extend(stream.drain(..taken));
            if !stream.is_empty() {
                inbox.has_some.push_back(from);
            }
            taken
        };
        // From the server's buffer, message by message.
        let (buffer, elsewhere) = self.buffers;
        let mut left = taken;
        while left > 0 {
            let piece = left.min(MESSAGE_BYTES);
            let done = (taken - left) as u64;
            let to = address.map_or(elsewhere, |address| own(address + done));
            let words = piece.div_ceil(8) as u32;
            self.memory.copy(buffer, to, words).await;
            left -= piece;
        }
        taken
    }

    /// Waits for the flag, which every event sets; the device then looks at everything.
    async fn wait(&self, _: &[u32], site: &'static Location<'static>) {
        if !self.inbox.lock().has_some.is_empty() {
            return;
        }
        self.processor.waits(site).await;
        self.memory.wait(self.event, Until::Is(1)).await;
        self.memory.set(self.event, 0).await;
    }

    fn unread(&self) -> Vec<u32> {
        Vec::new()
    }

    async fn now(&self) -> u64 {
        self.memory.now().await
    }
}
