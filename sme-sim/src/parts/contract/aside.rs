//! Runs within runs: a program may simulate another machine while it is polled. All that passes
//! between a program and its machine beside their calls lies in places of the host's thread, and is
//! set aside meanwhile.

use super::messages::swap_block;
use super::network::{NetworkCall, swap_call};
use super::{AHEAD, Ahead, Mailbox, Operation, Question, START, Start};

/// The exchange of this thread of the host with the program that it polls, if it polls one; back in
/// its place when this is dropped. A run that begins finds nothing there.
#[derive(Default)]
pub struct Aside {
    mailbox: Mailbox<Operation>,
    ahead: Option<Box<Ahead>>,
    start: Option<Start>,
    call: Option<NetworkCall>,
    block: Vec<u64>,
}

impl Aside {
    /// Sets the exchange aside.
    #[must_use]
    pub fn set() -> Self {
        let mut aside = Self::default();
        aside.swap();
        aside
    }

    fn swap(&mut self) {
        Operation::mailbox().with(|mailbox| mailbox.swap(&self.mailbox));
        AHEAD.with_borrow_mut(|ahead| std::mem::swap(ahead, &mut self.ahead));
        START.with_borrow_mut(|start| std::mem::swap(start, &mut self.start));
        swap_call(&mut self.call);
        swap_block(&mut self.block);
    }
}

impl Drop for Aside {
    /// Puts the exchange back, and drops what the run has left in its place: a run that panics
    /// leaves something there.
    fn drop(&mut self) {
        self.swap();
    }
}
