//! A network on chip between nodes of native memory: the sending thread writes the receiver's
//! memory itself, under one lock, before its call returns.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::{Protocol, SLEEPER, Thread};
use crate::{Flag, Mailbox, Network, NodeSet, Receives, Transfer, Word};

/// Tags that are open, by their nodes and numbers.
#[derive(Default)]
pub(super) struct Tags(Mutex<Open>);

#[derive(Default)]
struct Open {
    receives: HashMap<(u32, u16), (Receives, u64)>,
    mailboxes: HashMap<(u32, u16), Mailbox>,
    /// Messages that arrived before any thread listened.
    early: HashMap<(u32, u16), Vec<u64>>,
}

impl<P: Protocol> Thread<P> {
    fn tell(&self, flag: Flag) {
        let before = self.shared.arena.flag(flag).swap(1, P::SET);
        if before & SLEEPER != 0 && P::WAKE {
            self.shared.parking.wake(flag.0, u32::MAX);
        }
    }

    /// Copies so many bytes; what is behind them in the last word stays.
    fn moves(&self, from: Word, to: Word, bytes: u32) {
        let arena = &self.shared.arena;
        for at in (0..u64::from(bytes)).step_by(8) {
            let word = arena.word(Word(from.0 + at)).load(Ordering::Acquire);
            let cell = arena.word(Word(to.0 + at));
            let left = u64::from(bytes) - at;
            let kept = if left < 8 { u64::MAX << (8 * left) } else { 0 };
            let old = cell.load(Ordering::Relaxed);
            cell.store(old & kept | word & !kept, Ordering::Release);
        }
    }

    /// Panics where the transfer fits nowhere: a mistake of the program.
    fn sends(&self, transfer: Transfer) {
        let Transfer {
            to,
            tag,
            offset,
            from,
            bytes,
        } = transfer;
        for node in to.iter() {
            let mut open = self.shared.tags.0.lock();
            let receives = open.receives.get_mut(&(node, tag));
            let Some((receives, transfers)) = receives else {
                panic!("node {node} has not opened tag {tag}");
            };
            *transfers += 1;
            match *receives {
                Receives::Buffer {
                    at,
                    bytes: room,
                    transfers: after,
                    tells,
                    event,
                } => {
                    let end = u64::from(offset) + u64::from(bytes);
                    assert!(end <= room.into(), "{end} bytes in a buffer of {room}");
                    self.moves(from, Word(at.0 + u64::from(offset)), bytes);
                    if transfers.is_multiple_of(after.into()) {
                        self.tell(tells);
                        event.into_iter().for_each(|event| self.tell(event));
                    }
                }
                Receives::Queue {
                    at,
                    slot_bytes,
                    tells,
                    event,
                } => {
                    let end = u64::from(offset) + u64::from(bytes);
                    assert!(
                        end <= slot_bytes.into(),
                        "{end} bytes in a slot of {slot_bytes}"
                    );
                    let slot = ((*transfers - 1) % u64::from(tells.count)) as u32;
                    let flag = tells.at(slot);
                    let held = self.shared.arena.flag(flag).load(P::WAIT) & !SLEEPER;
                    assert_eq!(held, 0, "tag {tag} of node {node} has no free slot");
                    let slot = u64::from(slot) * u64::from(slot_bytes) + u64::from(offset);
                    self.moves(from, Word(at.0 + slot), bytes);
                    self.tell(flag);
                    event.into_iter().for_each(|event| self.tell(event));
                }
            }
        }
    }
}

impl<P: Protocol> Thread<P> {
    /// Puts a message into a mailbox, under the lock of the tags.
    fn gathers(&self, mailbox: Mailbox, bits: u64) {
        let cell = self.shared.arena.word(mailbox.word);
        let before = cell.load(Ordering::Acquire);
        let (left, tells) = mailbox.gathers.add(before, bits);
        cell.store(left, Ordering::Release);
        if tells {
            self.tell(mailbox.tells);
        }
    }
}

impl<P: Protocol> Network for Thread<P> {
    async fn open(&self, tag: u16, receives: Receives) {
        let tells = match receives {
            Receives::Buffer { transfers, .. } => transfers > 0,
            Receives::Queue { tells, .. } => tells.count > 0,
        };
        assert!(tells, "tag {tag} would never tell of anything");
        let mut open = self.shared.tags.0.lock();
        let before = open.receives.insert((self.node, tag), (receives, 0));
        assert!(before.is_none(), "tag {tag} is open already");
    }

    async fn close(&self, tag: u16) {
        let mut open = self.shared.tags.0.lock();
        let before = open.receives.remove(&(self.node, tag));
        assert!(before.is_some(), "tag {tag} is not open");
    }

    async fn push(&self, transfer: Transfer) {
        self.sends(transfer);
    }

    async fn start(&self, _: u16, transfer: Transfer, (tells, event): (Flag, Option<Flag>)) {
        self.sends(transfer);
        self.tell(tells);
        event.into_iter().for_each(|event| self.tell(event));
    }

    async fn listen(&self, tag: u16, mailbox: Mailbox) {
        let key = (self.node, tag);
        let mut open = self.shared.tags.0.lock();
        open.mailboxes.insert(key, mailbox);
        for bits in open.early.remove(&key).unwrap_or_default() {
            self.gathers(mailbox, bits);
        }
    }

    async fn signal(&self, nodes: NodeSet, tag: u16, bits: u64) {
        for node in nodes.iter() {
            let mut open = self.shared.tags.0.lock();
            match open.mailboxes.get(&(node, tag)) {
                Some(&mailbox) => self.gathers(mailbox, bits),
                None => open.early.entry((node, tag)).or_default().push(bits),
            }
        }
    }
}
