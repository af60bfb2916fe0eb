//! The operations of networks on chip ([`sme_memory::Network`]) as questions. The arguments go
//! beside their question, in a place of the host's thread.

use std::cell::Cell;
use std::future::Future;

use sme_memory::{Flag, Mailbox, Network, NodeSet, Receives, Transfer};

use super::{Operation, ThreadMemory};
use crate::kernel::thread::ask;

/// The call of [`Network`] that an [`Operation::Network`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCall {
    /// [`Network::open`]
    Open(u16, Receives),
    /// [`Network::close`]
    Close(u16),
    /// [`Network::push`]
    Push(Transfer),
    /// [`Network::start`]
    Start(u16, Transfer, (Flag, Option<Flag>)),
    /// [`Network::listen`]
    Listen(u16, Mailbox),
    /// [`Network::signal`]
    Signal(NodeSet, u16, u64),
}

thread_local! {
    /// The call that belongs to the [`Operation::Network`] in the mailbox.
    static CALL: Cell<Option<NetworkCall>> = const { Cell::new(None) };
}

/// Takes the call that belongs to the [`Operation::Network`] just asked for. Must be called before
/// another program is polled.
pub fn take_network_call() -> Option<NetworkCall> {
    CALL.take()
}

/// Swaps the call in the place of this thread of the host with `call`.
pub(super) fn swap_call(call: &mut Option<NetworkCall>) {
    *call = CALL.replace(call.take());
}

fn call(call: NetworkCall) -> impl Future<Output = ()> + Send {
    ask(move || {
        CALL.set(Some(call));
        Operation::Network
    })
}

impl Network for ThreadMemory {
    fn open(&self, tag: u16, receives: Receives) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Open(tag, receives))
    }

    fn close(&self, tag: u16) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Close(tag))
    }

    fn push(&self, transfer: Transfer) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Push(transfer))
    }

    fn start(
        &self,
        channel: u16,
        transfer: Transfer,
        tells: (Flag, Option<Flag>),
    ) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Start(channel, transfer, tells))
    }

    fn listen(&self, tag: u16, mailbox: Mailbox) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Listen(tag, mailbox))
    }

    fn signal(&self, nodes: NodeSet, tag: u16, bits: u64) -> impl Future<Output = ()> + Send {
        call(NetworkCall::Signal(nodes, tag, bits))
    }
}
