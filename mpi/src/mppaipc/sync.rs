//! Sync: a barrier by messages of 64 bits on the control network, from some nodes (1 : M of an I/O
//! subsystem and clusters, M : M of clusters).

use sme_memory::{Flag, Gathers, Mailbox, NodeSet};

use super::path::Path;
use super::{Fabric, Ipc, IpcError};
use crate::processor::Processor;

/// The receiving end.
#[derive(Debug)]
pub struct SyncRx<M, P> {
    ipc: Ipc<M, P>,
    tells: Flag,
}

/// The sending end.
#[derive(Debug)]
pub struct SyncTx<M, P> {
    ipc: Ipc<M, P>,
    to: NodeSet,
    tag: u16,
}

impl<M: Fabric, P: Processor + Clone> Ipc<M, P> {
    /// Opens the receiving end of the sync at `path`, which matches when all bits of `mask`, which
    /// is not 0, have come.
    ///
    /// # Errors
    /// [`IpcError`]
    pub async fn sync_rx(&self, path: &str, mask: u64) -> Result<SyncRx<M, P>, IpcError> {
        let Path::Sync(end) = self.parse(path)? else {
            return Err(self.wrong(path, "sync"));
        };
        if !self.is_here(&end) || mask == 0 {
            return Err(self.wrong(path, "receiving end of a sync"));
        }
        self.resources.take_control_tag(end.tag)?;
        let tells = self.flag(self.resources.take_flag()?);
        let mailbox = Mailbox {
            word: self.reserve("mailboxes", 8)?,
            gathers: Gathers::AllOf(mask),
            tells,
        };
        self.memory.listen(end.tag, mailbox).await;
        Ok(SyncRx {
            ipc: self.clone(),
            tells,
        })
    }

    /// Opens the sending end.
    ///
    /// # Errors
    /// [`IpcError`]
    pub fn sync_tx(&self, path: &str) -> Result<SyncTx<M, P>, IpcError> {
        match self.parse(path)? {
            Path::Sync(end) => Ok(SyncTx {
                ipc: self.clone(),
                to: end.nodes,
                tag: end.tag,
            }),
            _ => Err(self.wrong(path, "sync")),
        }
    }
}

impl<M: Fabric, P: Processor + Clone> SyncRx<M, P> {
    /// Waits until all bits of the mask have come, and clears them.
    pub async fn wait(&self) {
        self.ipc.takes(self.tells).await;
    }
}

impl<M: Fabric, P: Processor + Clone> SyncTx<M, P> {
    /// Sends bits to all receivers.
    pub async fn write(&self, bits: u64) {
        self.ipc.memory.signal(self.to, self.tag, bits).await;
    }
}
