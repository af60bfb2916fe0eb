//! The ranks that make a collective call together, as an algorithm sees them: numbers from 0, and
//! messages that no other call gets.

use std::sync::Arc;

use super::{Call, Calls};
use crate::datatype::Datatype;
use crate::device::matching::Wanted;
use crate::device::{Device, Head, Mode};
use crate::error::{ErrorClass, Fault};
use crate::group::Group;
use crate::op::Op;
use crate::processor::Work;

/// One call of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    device: Arc<Device>,
    /// Those whom it sends to and receives from.
    peers: Group,
    rank: u32,
    context: u64,
    tag: i32,
    call: Call,
    root: u32,
}

impl Team {
    /// The call that has `tag` in `context`, of this rank among `peers`; `root` is 0 if the call
    /// has none.
    pub(crate) fn new(
        device: &Arc<Device>,
        (peers, rank): (Group, u32),
        (context, tag): (u64, i32),
        (call, root): (Call, u32),
    ) -> Self {
        Self {
            device: Arc::clone(device),
            peers,
            rank,
            context,
            tag,
            call,
            root,
        }
    }

    /// This rank's number.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks in the team.
    pub(crate) fn size(&self) -> u32 {
        self.peers.size()
    }

    /// The device of this rank.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The rank in the job of number `rank`.
    fn world(&self, rank: u32) -> u32 {
        self.peers.world_rank(rank).unwrap_or_default()
    }

    /// Begins to send to number `to`.
    pub(crate) fn begin_send(&self, to: u32, bytes: Vec<u8>) -> usize {
        let head = Head {
            context: self.context,
            tag: self.tag,
            call: self.call as u8,
            root: self.root as u16,
            address: None,
        };
        let sent = self
            .device
            .send(self.world(to), head, bytes, Mode::Standard);
        // Only buffered sends fail.
        sent.unwrap_or_default()
    }

    /// Begins to receive at most `most` bytes from number `from`.
    pub(crate) fn begin_receive(&self, from: u32, most: usize) -> usize {
        let wanted = Wanted {
            context: self.context,
            from: Some(self.world(from)),
            tag: Some(self.tag),
        };
        self.device.receive(wanted, most)
    }

    /// Waits for the end of a send.
    pub(crate) async fn sent(&self, request: usize) {
        self.device.ended(request).await;
    }

    /// Waits for what [`Team::begin_receive`] has begun.
    ///
    /// # Errors
    /// The sender has made another call, or has sent more than was wanted.
    pub(crate) async fn received(&self, request: usize, most: usize) -> Result<Vec<u8>, Fault> {
        let outcome = self.device.ended(request).await;
        let Some(envelope) = outcome.envelope else {
            return Ok(outcome.bytes);
        };
        let rank = envelope.from;
        if envelope.call != self.call as u8 {
            let theirs = Calls::name(envelope.call);
            let text = format!("rank {rank} of the job called {theirs} here");
            return Err(Fault::new(ErrorClass::Comm, "comm", text));
        }
        if envelope.root != self.root as u16 {
            let text = format!(
                "rank {rank} of the job called it with root {}, this rank with {}",
                envelope.root, self.root
            );
            return Err(Fault::new(ErrorClass::Root, "root", text));
        }
        if envelope.length > most as u64 {
            let text = format!(
                "rank {rank} of the job sent {} bytes where {most} are expected",
                envelope.length
            );
            return Err(Fault::new(ErrorClass::Truncate, "count", text));
        }
        Ok(outcome.bytes)
    }

    /// Sends to number `to`, to the end.
    pub(crate) async fn send(&self, to: u32, bytes: Vec<u8>) {
        let request = self.begin_send(to, bytes);
        self.sent(request).await;
    }

    /// Receives from number `from` as many bytes as it sends.
    ///
    /// # Errors
    /// As [`Team::received`].
    pub(crate) async fn receive_any(&self, from: u32) -> Result<Vec<u8>, Fault> {
        let request = self.begin_receive(from, usize::MAX);
        self.received(request, usize::MAX).await
    }

    /// Receives exactly `bytes` bytes from number `from`.
    ///
    /// # Errors
    /// As [`Team::received`], or because they are fewer.
    pub(crate) async fn receive(&self, from: u32, bytes: usize) -> Result<Vec<u8>, Fault> {
        let request = self.begin_receive(from, bytes);
        self.finish(request, from, bytes).await
    }

    /// Waits for exactly `bytes` bytes from number `from`, which it has begun to receive.
    ///
    /// # Errors
    /// As [`Team::receive`].
    pub(crate) async fn finish(
        &self,
        request: usize,
        from: u32,
        bytes: usize,
    ) -> Result<Vec<u8>, Fault> {
        let received = self.received(request, bytes).await?;
        if received.len() < bytes {
            let text = format!(
                "rank {} of the job sent {} bytes where {bytes} are expected",
                self.world(from),
                received.len()
            );
            return Err(Fault::new(ErrorClass::Count, "count", text));
        }
        Ok(received)
    }

    /// Sends to number `to` while it receives exactly `bytes` bytes from number `from`.
    ///
    /// # Errors
    /// As [`Team::receive`].
    pub(crate) async fn exchange(
        &self,
        (to, sent): (u32, Vec<u8>),
        (from, bytes): (u32, usize),
    ) -> Result<Vec<u8>, Fault> {
        let receive = self.begin_receive(from, bytes);
        let send = self.begin_send(to, sent);
        let received = self.finish(receive, from, bytes).await;
        self.sent(send).await;
        received
    }

    /// Sends to number `to` while it receives from number `from` as many bytes as that sends.
    ///
    /// # Errors
    /// As [`Team::received`].
    pub(crate) async fn exchange_any(
        &self,
        (to, sent): (u32, Vec<u8>),
        from: u32,
    ) -> Result<Vec<u8>, Fault> {
        let receive = self.begin_receive(from, usize::MAX);
        let send = self.begin_send(to, sent);
        let received = self.received(receive, usize::MAX).await;
        self.sent(send).await;
        received
    }

    /// `into = earlier op into`, of packed elements.
    ///
    /// # Errors
    /// The operation is not defined for the datatype.
    pub(crate) fn combine(
        &self,
        (op, datatype): (&Op, &Datatype),
        earlier: &[u8],
        into: &mut [u8],
    ) -> Result<(), Fault> {
        self.device
            .owe(Work::Combine, into.len().div_ceil(8) as u32);
        op.combine(earlier, into, datatype)
    }
}
