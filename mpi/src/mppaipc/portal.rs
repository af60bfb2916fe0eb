//! Portal: one-sided writes on the data network into a buffer that the receiver has opened, at
//! offsets that the senders choose, without a copy in between.
//!
//! A read ends after as many writes as it was told (its trigger). A write is made by the core
//! (`mppa_pwrite`) or by a DMA channel (`mppa_aio_write`), to one node or to several.

use sme_memory::{NodeSet, Receives, Transfer, Until, Word};

use super::path::Path;
use super::resources::Sends;
use super::{Fabric, Ipc, IpcError};
use crate::processor::{Processor, Work};

/// The receiving end: a receive tag of this node.
#[derive(Debug)]
pub struct PortalRx<M, P> {
    ipc: Ipc<M, P>,
    tag: u16,
}

/// A read under way (`mppa_aio_read`).
#[derive(Debug)]
#[must_use = "the tag stays open until the read has ended"]
pub struct Read {
    tag: u16,
    flag: u64,
}

/// The sending end.
#[derive(Debug)]
pub struct PortalTx<M, P> {
    ipc: Ipc<M, P>,
    to: NodeSet,
    tag: u16,
}

/// A write under way (`mppa_aio_write`).
#[derive(Debug)]
#[must_use = "data may be changed only when the write has ended"]
pub struct Write {
    flag: u64,
}

/// Bytes of a write, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first byte in the sender's memory.
    pub from: Word,
    /// The number of bytes.
    pub bytes: u32,
    /// The place where they go in the receiver's buffer; a multiple of eight.
    pub offset: u32,
}

/// The answer of an asynchronous write when all DMA channels send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// The transfer is refused.
    TryAgain,
    /// The caller waits for the transfer of the lowest channel, and takes what is free then.
    Wait,
}

impl<M: Fabric, P: Processor + Clone> Ipc<M, P> {
    /// Opens the receiving end of the portal at `path`.
    ///
    /// # Errors
    /// [`IpcError`]
    pub fn portal_rx(&self, path: &str) -> Result<PortalRx<M, P>, IpcError> {
        match self.parse(path)? {
            Path::Portal(end) if self.is_here(&end) => {
                self.resources.take_tag(end.tag)?;
                Ok(PortalRx {
                    ipc: self.clone(),
                    tag: end.tag,
                })
            }
            _ => Err(self.wrong(path, "receiving end of a portal")),
        }
    }

    /// Opens the receiving end of a portal under any tag that is free.
    ///
    /// # Errors
    /// [`IpcError::NoTag`]
    pub fn any_portal_rx(&self) -> Result<PortalRx<M, P>, IpcError> {
        let tag = self.resources.take_any_tag(self.interface)?;
        Ok(PortalRx {
            ipc: self.clone(),
            tag,
        })
    }

    /// Opens the sending end of the portal at `path`.
    ///
    /// # Errors
    /// [`IpcError`]
    pub fn portal_tx(&self, path: &str) -> Result<PortalTx<M, P>, IpcError> {
        match self.parse(path)? {
            Path::Portal(end) => Ok(self.portal_to(end.nodes, end.tag)),
            _ => Err(self.wrong(path, "portal")),
        }
    }

    /// The same to nodes that have opened this tag.
    pub fn portal_to(&self, to: NodeSet, tag: u16) -> PortalTx<M, P> {
        PortalTx {
            ipc: self.clone(),
            to,
            tag,
        }
    }

    /// Returns whether a write has ended: its last byte has left.
    pub async fn has_left(&self, write: &Write) -> bool {
        self.memory.read(self.flag(write.flag)).await == 1
    }

    /// Waits for the end of a write: its last byte has left.
    pub async fn wait_write(&self, write: Write) {
        self.memory.wait(self.flag(write.flag), Until::Is(1)).await;
        self.release(write.flag).await;
        self.core.work(&[(Work::Completion, 1)]).await;
    }

    /// Has seen the flag of a write set.
    async fn release(&self, flag: u64) {
        if self.resources.release(flag) {
            self.memory.set(self.flag(flag), 0).await;
            self.resources.give_flag(flag);
        }
    }
}

impl<M: Fabric, P: Processor + Clone> PortalRx<M, P> {
    /// The receive tag, counted from the node's first interface.
    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// Begins a read of `bytes` at `at` that ends after so many writes, at least 1.
    ///
    /// # Errors
    /// [`IpcError::NoMemory`]
    pub async fn aio_read(&self, at: Word, bytes: u32, writes: u32) -> Result<Read, IpcError> {
        let flag = self.ipc.resources.take_flag()?;
        self.ipc.core.work(&[(Work::Open, 1)]).await;
        let receives = Receives::Buffer {
            at,
            bytes,
            transfers: writes.max(1),
            tells: self.ipc.flag(flag),
            event: self.ipc.event,
        };
        self.ipc.memory.open(self.tag, receives).await;
        Ok(Read {
            tag: self.tag,
            flag,
        })
    }

    /// Returns whether a read has ended.
    pub async fn has_come(&self, read: &Read) -> bool {
        self.ipc.memory.read(self.ipc.flag(read.flag)).await == 1
    }

    /// Ends a read for which nothing comes: it is as if it had not begun.
    pub async fn withdraw(&self, read: Read) {
        self.ipc.memory.close(read.tag).await;
        self.ipc.resources.give_flag(read.flag);
    }

    /// Waits for the end of a read. The data was written past the caches of all cores.
    pub async fn wait(&self, read: Read) {
        let memory = &self.ipc.memory;
        let flag = self.ipc.flag(read.flag);
        memory.wait(flag, Until::Is(1)).await;
        // More writes may have set it once more by then.
        memory.close(read.tag).await;
        memory.set(flag, 0).await;
        self.ipc.resources.give_flag(read.flag);
        self.ipc.core.work(&[(Work::Completion, 1)]).await;
    }

    /// Gives the tag back. No read may be under way.
    pub fn close(self) {
        self.ipc.resources.give_tag(self.tag);
    }
}

impl<M: Fabric, P: Processor + Clone> PortalTx<M, P> {
    fn transfer(&self, piece: Piece) -> Transfer {
        Transfer {
            to: self.to,
            tag: self.tag,
            offset: piece.offset,
            from: piece.from,
            bytes: piece.bytes,
        }
    }

    /// Writes, by this thread's core (`mppa_pwrite`); ends when the last byte has left.
    pub async fn pwrite(&self, piece: Piece) {
        self.ipc.core.work(&[(Work::Setup, 1)]).await;
        self.ipc.memory.push(self.transfer(piece)).await;
    }

    /// Writes so many pieces of one length that lie apart here and go apart there, each so many
    /// bytes behind the one before (`mppa_pwrites`). Each counts as a write.
    pub async fn pwrites(&self, first: Piece, count: u32, (here, there): (u32, u32)) {
        self.ipc.core.work(&[(Work::Setup, 1)]).await;
        for number in 0..count {
            let piece = Piece {
                from: Word(first.from.0 + u64::from(number) * u64::from(here)),
                offset: first.offset + number * there,
                ..first
            };
            self.ipc.memory.push(self.transfer(piece)).await;
        }
    }

    /// Lets a DMA channel write (`mppa_aio_write`); ends at once.
    ///
    /// # Errors
    /// [`IpcError::TryAgain`] if all channels send and the call is not to wait.
    pub async fn aio_write(&self, piece: Piece, busy: WhenBusy) -> Result<Write, IpcError> {
        let ipc = &self.ipc;
        let flag = ipc.resources.take_flag()?;
        let channel = loop {
            let channels = ipc.resources.channels(ipc.interface);
            match self.free_channel(&channels, flag).await {
                Some(channel) => break channel,
                None if busy == WhenBusy::TryAgain => {
                    ipc.resources.give_flag(flag);
                    return Err(IpcError::TryAgain("DMA channel"));
                }
                None => self.one_has_left(&channels).await,
            }
        };
        ipc.core.work(&[(Work::Setup, 1)]).await;
        let tells = (ipc.flag(flag), ipc.event);
        ipc.memory.start(channel, self.transfer(piece), tells).await;
        Ok(Write { flag })
    }

    /// Takes a channel that has sent nothing, or whose last transfer has left.
    async fn free_channel(&self, channels: &[(u16, Option<Sends>)], flag: u64) -> Option<u16> {
        let ipc = &self.ipc;
        for &(channel, before) in channels {
            let has_left = match before {
                None => true,
                Some(sends) => ipc.memory.read(ipc.flag(sends.flag)).await == 1,
            };
            if has_left && ipc.resources.use_channel(channel, before, flag) {
                if let Some(sends) = before {
                    ipc.release(sends.flag).await;
                }
                return Some(channel);
            }
        }
        None
    }

    /// Waits until the lowest of the channels has sent what it sends.
    async fn one_has_left(&self, channels: &[(u16, Option<Sends>)]) {
        let ipc = &self.ipc;
        let sends = channels.iter().find_map(|&(channel, sends)| {
            // Another thread may have given it something else to do meanwhile.
            let sends = sends?;
            ipc.resources.hold(channel, sends).then_some(sends)
        });
        if let Some(Sends { flag, .. }) = sends {
            ipc.memory.wait(ipc.flag(flag), Until::Is(1)).await;
            ipc.release(flag).await;
        }
    }
}
