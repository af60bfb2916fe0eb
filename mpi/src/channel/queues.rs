//! A channel through the queues of MPPAIPC: each rank's node has one ([`RQueue`]), which takes the
//! messages of all. A message is a word with its number of bytes, and up to 112 bytes of a stream.
//!
//! [`RQueue`]: crate::mppaipc::rqueue
//!
//! As in MPPA-MPI (Ho et al., Sec. II) a server on another core of the node, its resource manager,
//! takes them: each calls it back, and it leaves the bytes in a buffer of the node's memory, where
//! the rank's calls find them. What a rank waits for it learns by one flag, which the server sets,
//! and credits that come back set it, too.

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Flag, Own, Spawn, TestAndSet, ThreadId, Timer, Until};

use super::shared::Shared;
use super::{Channel, Processor, Segment, gather, own};
use crate::mppaipc::rqueue::{RQueueRx, RQueueTx};
use crate::mppaipc::{Fabric, Hardware, Ipc, IpcError, Resources, Room};

/// Bytes of a message, and the words.
const MESSAGE_BYTES: usize = 120;
const MESSAGE_WORDS: usize = MESSAGE_BYTES / 8;

/// The receive tag of every queue. Credits of the queue of rank `r` come back under control tag
/// `r`.
const QUEUE: u16 = 0;

/// The control tag by which ranks meet when all queues are open: behind those of the ranks.
const MEET: u16 = 64;

/// The number of bytes in a message that tells the server to stop.
const STOP: u64 = u64::MAX;

/// The settings of a channel, the same for all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Ranks, each on the node of its number; at most 64.
    pub ranks: u32,
    /// Messages that each rank may have under way to each other one, at least 1.
    pub credits: u32,
    /// The chip.
    pub hardware: Hardware,
    /// Memory of each node for the library.
    pub room: Room,
    /// The core of each node that serves, its resource manager.
    pub server: u32,
}

/// The channel of one rank.
#[derive(Debug)]
pub struct Queues<M, P> {
    memory: M,
    processor: P,
    me: u32,
    ranks: u32,
    to: Vec<RQueueTx<M, P>>,
    inbox: Arc<Mutex<Inbox>>,
    event: Flag,
    server: ThreadId,
    /// The server's buffer of a message, and the place of data without an address.
    buffers: (Own, Own),
}

/// The bytes that the server has left, by sender, and the senders of which there are any.
#[derive(Debug)]
struct Inbox {
    streams: Vec<VecDeque<u8>>,
    has_some: VecDeque<u32>,
}

impl<M, P> Queues<M, P>
where
    M: Fabric + Spawn + 'static,
    P: Processor + Clone + 'static,
{
    /// That of the rank whose thread has `memory`; `core` makes a processor of a thread's memory.
    /// Starts the server, and ends when all ranks can be sent messages.
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
        let event = ipc.new_flag()?;
        let is_open = ipc.new_flag()?;
        let inbox = Arc::new(Mutex::new(Inbox {
            streams: vec![VecDeque::new(); ranks as usize],
            has_some: VecDeque::new(),
        }));
        let left = Arc::clone(&inbox);
        let refusal: Arc<Mutex<Option<IpcError>>> = Arc::default();
        let refused = Arc::clone(&refusal);
        let serves = move |memory: M| async move {
            let ipc = Ipc::new(memory.clone(), core(&memory), resources, 0);
            let opened = ipc.rqueue_rx(&path(me, &setting)).await;
            let (opened, failed) = match opened {
                Ok(queue) => (Some(queue), None),
                Err(error) => (None, Some(error)),
            };
            *refused.lock() = failed;
            memory.set(is_open, 1).await;
            if let Some(queue) = opened {
                serve(memory, queue, &left, event).await;
            }
        };
        let meeting = format!("/mppa/sync/[0..{}]:{MEET}", ranks - 1);
        let meet = ipc.sync_rx(&meeting, u64::MAX >> (64 - ranks)).await?;
        let mut to = Vec::new();
        for other in 0..ranks {
            let path = path(other, &setting);
            to.push(ipc.rqueue_tx_telling(&path, event).await?);
        }
        let buffers = (
            ipc.reserve_own("buffers", MESSAGE_BYTES as u64)?,
            ipc.reserve_own("buffers", MESSAGE_BYTES as u64)?,
        );
        let server = memory.spawn(Some(setting.server), serves).await;
        memory.wait(is_open, Until::Is(1)).await;
        if let Some(error) = refusal.lock().take() {
            return Err(error);
        }
        ipc.sync_tx(&meeting)?.write(1 << me).await;
        meet.wait().await;
        Ok(Self {
            memory,
            processor,
            me,
            ranks,
            to,
            inbox,
            event,
            server,
            buffers,
        })
    }

    /// Lets the server end, and waits for that. Nothing may come any more.
    pub async fn stop(&self) {
        // One word is not too long.
        let _ = self.to[self.me as usize].write(&[STOP]).await;
        self.memory.join(self.server).await;
    }
}

/// The path of the queue of rank `to`.
fn path(to: u32, setting: &Setting) -> String {
    let Setting { ranks, credits, .. } = setting;
    format!(
        "/mppa/rqueue/{to}:{QUEUE}/[0..{}]:{to}/{credits}.{MESSAGE_BYTES}",
        ranks - 1
    )
}

/// The course of a server: a callback for each message.
async fn serve<M: Fabric, P: Processor + Clone>(
    memory: M,
    mut queue: RQueueRx<M, P>,
    inbox: &Mutex<Inbox>,
    event: Flag,
) {
    let mut words = [0; MESSAGE_WORDS];
    loop {
        let sender = queue.take_callback(&mut words).await;
        let [count, data @ ..] = words;
        if count == STOP {
            return;
        }
        {
            let mut inbox = inbox.lock();
            let bytes = data.iter().flat_map(|word| word.to_le_bytes());
            inbox.streams[sender as usize].extend(bytes.take(count as usize));
            if !inbox.has_some.contains(&sender) {
                inbox.has_some.push_back(sender);
            }
        }
        memory.set(event, 1).await;
    }
}

impl<M, P> Channel for Queues<M, P>
where
    M: Fabric + TestAndSet + Timer,
    P: Processor + Clone,
{
    type Area = Shared<M, P>;
    type Processor = P;

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

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        let mut words = Vec::with_capacity(MESSAGE_WORDS);
        let (count, _) = gather(segments, MESSAGE_BYTES - 8, &mut words);
        match self.to[to as usize].try_write(&words).await {
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
            let stream = &mut inbox.streams[from as usize];
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
            let piece = left.min(MESSAGE_BYTES - 8);
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

    async fn now(&self) -> u64 {
        self.memory.now().await
    }
}
