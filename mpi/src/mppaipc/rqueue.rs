//! RQueue: messages of a fixed size from many nodes to one, in the order of each sender, under
//! credits: a sender has no more messages under way than slots are kept for it.
//!
//! A message goes into the next slot of the receiver, with a word behind it that names its sender
//! and its length.
//! The receiver gives the credit back by a message on the control network, which counts there.

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Flag, Flags, Gathers, Mailbox, NodeSet, Receives, Transfer, Until, Word};

use super::path::{End, Path};
use super::{Fabric, Ipc, IpcError};
use crate::processor::{Processor, Work};

/// The receiving end.
#[derive(Debug)]
pub struct RQueueRx<M, P> {
    ipc: Ipc<M, P>,
    slots: Flags,
    first: Word,
    slot_bytes: u32,
    /// The place where senders get their credits back.
    credits: u16,
    next: u32,
}

/// A message that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// The sender's node.
    pub from: u32,
    /// Bytes that the sender wrote.
    pub bytes: u32,
}

/// The sending end, of one thread.
#[derive(Debug)]
pub struct RQueueTx<M, P> {
    ipc: Ipc<M, P>,
    to: NodeSet,
    tag: u16,
    slot_bytes: u32,
    /// A message of this thread's own, and the word behind it.
    staged: Word,
    credits: Arc<Credits>,
}

/// The credits of a node for a queue, which its threads share.
#[derive(Debug)]
struct Credits {
    /// The number of credits given back, and the flag that tells of each.
    given: Word,
    tells: Flag,
    /// The number of credits at first, and the number used so far.
    first: u64,
    used: Mutex<u64>,
}

/// Bytes of the word behind a message.
const WORD: u32 = 8;

/// A queue, by its path.
struct Queue {
    to: End,
    from: End,
    credits: u16,
    /// Bytes of a message, whole words, and of the word for its sender.
    slot_bytes: u32,
}

impl<M: Fabric, P: Processor + Clone> Ipc<M, P> {
    fn queue(&self, path: &str) -> Result<Queue, IpcError> {
        match self.parse(path)? {
            Path::RQueue {
                to,
                from,
                credits,
                message_bytes,
            } => Ok(Queue {
                to,
                from,
                credits,
                slot_bytes: u32::from(message_bytes).next_multiple_of(8) + WORD,
            }),
            _ => Err(self.wrong(path, "queue")),
        }
    }

    /// Opens the receiving end of the queue at `path`, with a slot for each credit of each sender.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn rqueue_rx(&self, path: &str) -> Result<RQueueRx<M, P>, IpcError> {
        let Queue {
            to,
            from,
            credits,
            slot_bytes,
        } = self.queue(path)?;
        if !self.is_here(&to) {
            return Err(self.wrong(path, "receiving end of a queue"));
        }
        self.resources.take_tag(to.tag)?;
        let slots = u32::from(credits) * from.nodes.0.count_ones();
        let all = u64::from(slots) * u64::from(slot_bytes);
        let first = self.reserve("slots of queues", all)?;
        let tells = self.resources.reserve("slots of queues", slots.into())?;
        let slots = Flags {
            first: self.flag(tells),
            stride: 1,
            count: slots,
        };
        let queue = Receives::Queue {
            at: first,
            slot_bytes,
            tells: slots,
            event: self.event,
        };
        self.memory.open(to.tag, queue).await;
        Ok(RQueueRx {
            ipc: self.clone(),
            slots,
            first,
            slot_bytes,
            credits: from.tag,
            next: 0,
        })
    }

    /// Opens the sending end of the queue at `path`.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn rqueue_tx(&self, path: &str) -> Result<RQueueTx<M, P>, IpcError> {
        let tells = self.event.map_or_else(|| self.new_flag(), Ok)?;
        let Queue {
            to,
            from,
            credits,
            slot_bytes,
        } = self.queue(path)?;
        if !self.is_here(&from) {
            return Err(self.wrong(path, "sending end of a queue"));
        }
        self.resources.take_control_tag(from.tag)?;
        let credits = Credits {
            given: self.reserve("credits", 8)?,
            tells,
            first: credits.into(),
            used: Mutex::new(0),
        };
        let mailbox = Mailbox {
            word: credits.given,
            gathers: Gathers::Sum,
            tells: credits.tells,
        };
        self.memory.listen(from.tag, mailbox).await;
        Ok(RQueueTx {
            ipc: self.clone(),
            to: to.nodes,
            tag: to.tag,
            slot_bytes,
            staged: self.reserve("messages", slot_bytes.into())?,
            credits: Arc::new(credits),
        })
    }
}

impl<M: Fabric, P: Processor + Clone> RQueueRx<M, P> {
    /// Returns whether a message is there.
    pub async fn is_ready(&self) -> bool {
        self.ipc.memory.read(self.slots.at(self.next)).await == 1
    }

    /// Waits for the next message and takes it: as many words of it as there is room for.
    pub async fn read(&mut self, words: &mut [u64]) -> Came {
        let memory = &self.ipc.memory;
        let flag = self.slots.at(self.next);
        memory.wait(flag, Until::Is(1)).await;
        let slot = self.first.0 + u64::from(self.next) * u64::from(self.slot_bytes);
        let behind = self.slot_bytes - WORD;
        let room = words.len().min(behind as usize / 8);
        memory.view(Word(slot), &mut words[..room]).await;
        let mut of = [0];
        memory.view(Word(slot + u64::from(behind)), &mut of).await;
        memory.set(flag, 0).await;
        self.next = (self.next + 1) % self.slots.count;
        let came = Came {
            from: of[0] as u32,
            bytes: (of[0] >> 32) as u32,
        };
        let from = NodeSet::one(came.from);
        memory.signal(from, self.credits, 1).await;
        came
    }

    /// Takes the next message as the callback of a resource manager does: with the time of entering
    /// and leaving it.
    pub async fn take_callback(&mut self, words: &mut [u64]) -> Came {
        let came = self.read(words).await;
        self.ipc.core.work(&[(Work::Callback, 1)]).await;
        came
    }
}

impl<M: Fabric, P: Processor + Clone> RQueueTx<M, P> {
    /// The same end for another thread of the node, which shares the credits.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub fn share(&self, ipc: &Ipc<M, P>) -> Result<Self, IpcError> {
        Ok(Self {
            ipc: ipc.clone(),
            to: self.to,
            tag: self.tag,
            slot_bytes: self.slot_bytes,
            staged: ipc.reserve("messages", self.slot_bytes.into())?,
            credits: Arc::clone(&self.credits),
        })
    }

    /// Sends a message of these words; waits for a credit if there is none.
    ///
    /// # Errors
    /// [`IpcError::TooLong`]
    pub async fn write(&self, words: &[u64]) -> Result<(), IpcError> {
        let bytes = self.check(words, size_of_val(words) as u64)?;
        while !self.takes_credit().await {
            let memory = &self.ipc.memory;
            memory.wait(self.credits.tells, Until::Is(1)).await;
            memory.set(self.credits.tells, 0).await;
        }
        self.sends(words, bytes).await;
        Ok(())
    }

    /// Sends the first `bytes` bytes of these words without waiting.
    ///
    /// # Errors
    /// [`IpcError::TooLong`], or [`IpcError::TryAgain`] if there is no credit.
    pub async fn try_write(&self, words: &[u64], bytes: u64) -> Result<(), IpcError> {
        let bytes = self.check(words, bytes)?;
        if !self.takes_credit().await {
            return Err(IpcError::TryAgain("credit"));
        }
        self.sends(words, bytes).await;
        Ok(())
    }

    fn check(&self, words: &[u64], bytes: u64) -> Result<u32, IpcError> {
        let most = u64::from(self.slot_bytes - WORD).min(size_of_val(words) as u64);
        match u32::try_from(bytes) {
            Ok(short) if bytes <= most => Ok(short),
            _ => Err(IpcError::TooLong { bytes, most }),
        }
    }

    /// Takes a credit, if there is one. If there are more the flag tells of them, for other threads
    /// that wait.
    async fn takes_credit(&self) -> bool {
        let given = self.ipc.memory.load(self.credits.given).await;
        let left = {
            let mut used = self.credits.used.lock();
            let all = self.credits.first + given;
            if *used >= all {
                return false;
            }
            *used += 1;
            all - *used
        };
        if left > 0 && given > 0 && Arc::strong_count(&self.credits) > 1 {
            self.ipc.memory.set(self.credits.tells, 1).await;
        }
        true
    }

    async fn sends(&self, words: &[u64], bytes: u32) {
        let memory = &self.ipc.memory;
        self.ipc.core.work(&[(Work::Post, 1)]).await;
        memory.lay(self.staged, words).await;
        let sender = Word(self.staged.0 + u64::from(self.slot_bytes - WORD));
        let of = u64::from(bytes) << 32 | u64::from(self.ipc.node());
        memory.lay(sender, &[of]).await;
        let transfer = Transfer {
            to: self.to,
            tag: self.tag,
            offset: 0,
            from: self.staged,
            bytes: self.slot_bytes,
        };
        memory.push(transfer).await;
    }
}
