//! Channel: messages from one node to one that meet. The receiver tells the sender on the control
//! network how much it has room for; the sender then sends on the data network.

use sme_memory::{Flag, Gathers, Mailbox, Receives, Transfer, Word};

use super::path::{End, Path};
use super::{Fabric, Ipc, IpcError};
use crate::processor::{Processor, Work};

/// The receiving end.
#[derive(Debug)]
pub struct ChannelRx<M, P> {
    ipc: Ipc<M, P>,
    tag: u16,
    from: End,
    tells: Flag,
}

/// The sending end.
#[derive(Debug)]
pub struct ChannelTx<M, P> {
    ipc: Ipc<M, P>,
    to: End,
    /// The receiver's room, and one more so that it is never 0.
    room: Word,
    tells: Flag,
}

impl<M: Fabric, P: Processor + Clone> Ipc<M, P> {
    /// Opens the receiving end of the channel at `path`.
    ///
    /// # Errors
    /// [`IpcError`]
    pub fn channel_rx(&self, path: &str) -> Result<ChannelRx<M, P>, IpcError> {
        match self.parse(path)? {
            Path::Channel { to, from } if self.is_here(&to) => {
                self.resources.take_tag(to.tag)?;
                Ok(ChannelRx {
                    ipc: self.clone(),
                    tag: to.tag,
                    from,
                    tells: self.flag(self.resources.take_flag()?),
                })
            }
            _ => Err(self.wrong(path, "receiving end of a channel")),
        }
    }

    /// Opens the sending end.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn channel_tx(&self, path: &str) -> Result<ChannelTx<M, P>, IpcError> {
        match self.parse(path)? {
            Path::Channel { to, from } if self.is_here(&from) => {
                self.resources.take_control_tag(from.tag)?;
                let room = self.reserve("mailboxes", 8)?;
                let tells = self.flag(self.resources.take_flag()?);
                let mailbox = Mailbox {
                    word: room,
                    gathers: Gathers::Sum,
                    tells,
                };
                self.memory.listen(from.tag, mailbox).await;
                Ok(ChannelTx {
                    ipc: self.clone(),
                    to,
                    room,
                    tells,
                })
            }
            _ => Err(self.wrong(path, "sending end of a channel")),
        }
    }
}

impl<M: Fabric, P: Processor + Clone> ChannelRx<M, P> {
    /// Receives a message of at most `bytes` to `at`; ends when it is there.
    pub async fn read(&self, at: Word, bytes: u32) {
        let memory = &self.ipc.memory;
        self.ipc.core.work(&[(Work::Open, 1)]).await;
        let receives = Receives::Buffer {
            at,
            bytes,
            transfers: 1,
            tells: self.tells,
            event: None,
        };
        memory.open(self.tag, receives).await;
        let room = u64::from(bytes) + 1;
        memory.signal(self.from.nodes, self.from.tag, room).await;
        self.ipc.takes(self.tells).await;
        memory.close(self.tag).await;
        self.ipc.core.work(&[(Work::Completion, 1)]).await;
    }
}

impl<M: Fabric, P: Processor + Clone> ChannelTx<M, P> {
    /// Sends `bytes` from `from` when the receiver has told of its room; ends when they have left.
    ///
    /// # Errors
    /// [`IpcError::TooLong`] if that does not suffice: the receiver goes on waiting.
    pub async fn write(&self, from: Word, bytes: u32) -> Result<(), IpcError> {
        let memory = &self.ipc.memory;
        let room = loop {
            match memory.load(self.room).await {
                0 => self.ipc.takes(self.tells).await,
                room => break room - 1,
            }
        };
        if u64::from(bytes) > room {
            return Err(IpcError::TooLong {
                bytes: bytes.into(),
                most: room,
            });
        }
        memory.store(self.room, 0).await;
        self.ipc.core.work(&[(Work::Setup, 1)]).await;
        let transfer = Transfer {
            to: self.to.nodes,
            tag: self.to.tag,
            offset: 0,
            from,
            bytes,
        };
        memory.push(transfer).await;
        Ok(())
    }
}
