//! A node's network interfaces, the side that receives: buffers and queues behind receive tags, and
//! mailboxes of the control network. Arriving data is written past the caches of all cores.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sme_memory::{Flag, Flags, Gathers, Mailbox, Receives};

use super::cluster::{Cluster, Cpu};
use super::send::Channel;
use super::spec::DataNetwork;
use crate::parts::address::{FaultReason, NetworkFault};
use crate::parts::line::Bytes;

/// A message between nodes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Sends {
    /// A packet of the data network.
    Packet(Packet),
    /// A message of the control network for a tag.
    Signal(u16, u64),
}

/// A packet of the data network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Packet {
    pub tag: u16,
    /// The transfer of its sender to which it belongs: one at a time of each stream.
    pub stream: u16,
    /// The place where it goes in the buffer, or in the slot.
    pub offset: u32,
    /// Bytes of data, up to 64.
    pub bytes: u8,
    /// The last of its transfer.
    pub is_last: bool,
    pub words: [u64; 8],
}

/// The sender of a transfer: its node, and the stream there.
type Sender = (u32, u16);

/// The buffer or the queue behind a receive tag that is open.
#[derive(Clone, Debug)]
enum Open {
    Buffer {
        at: u64,
        bytes: u32,
        /// Transfers until the flag is set, and how many of them have come.
        after: u32,
        came: u32,
        tells: u64,
        event: Option<u64>,
    },
    Queue {
        at: u64,
        slot_bytes: u32,
        tells: u64,
        stride: u64,
        slots: u32,
        /// The slot of the next transfer.
        next: u32,
        event: Option<u64>,
        /// Transfers of which a part has come, and their slots.
        parts: Vec<(Sender, u32)>,
    },
}

/// A mailbox, by offsets in memory.
#[derive(Clone, Copy, Debug)]
struct Listens {
    word: u64,
    gathers: Gathers,
    tells: u64,
}

/// All interfaces of a node: of tags and channels, one interface's follow the other's.
#[derive(Debug)]
pub(super) struct Interfaces {
    tags: Vec<Option<Open>>,
    mailboxes: FxHashMap<u16, Listens>,
    /// Messages that arrived before any thread listened.
    early: FxHashMap<u16, Vec<u64>>,
    pub channels: Vec<Option<Channel>>,
}

impl Interfaces {
    /// So many, all at rest.
    pub fn new(count: u32, network: &DataNetwork) -> Self {
        Self {
            tags: vec![None; (count * network.tags) as usize],
            mailboxes: FxHashMap::default(),
            early: FxHashMap::default(),
            channels: vec![None; (count * network.channels) as usize],
        }
    }

    /// Closes a receive tag.
    pub fn close(&mut self, tag: u16) -> Result<(), FaultReason> {
        let closed = self.tags.get_mut(usize::from(tag)).and_then(Option::take);
        closed.map_or_else(|| fault(NetworkFault::ClosedTag(tag)), |_| Ok(()))
    }

    /// Heap, in bytes.
    pub fn bytes(&self) -> usize {
        let channels = self.channels.capacity() * size_of::<Option<Channel>>();
        self.tags.capacity() * size_of::<Option<Open>>() + channels
    }
}

/// A call or a packet that cannot be.
pub(super) fn fault<T>(fault: NetworkFault) -> Result<T, FaultReason> {
    Err(FaultReason::Network(fault))
}

impl Cluster {
    /// Opens a receive tag.
    pub(super) fn opens(&mut self, tag: u16, receives: Receives) -> Result<(), FaultReason> {
        let open = match receives {
            Receives::Buffer { transfers: 0, .. } => return fault(NetworkFault::Empty(tag)),
            Receives::Buffer {
                at,
                bytes,
                transfers,
                tells,
                event,
            } => Open::Buffer {
                at: self.find(at.0, u64::from(bytes).next_multiple_of(8))?.0,
                bytes,
                after: transfers,
                came: 0,
                tells: self.find(tells.0, 1)?.0,
                event: self.event(event)?,
            },
            Receives::Queue {
                at,
                slot_bytes,
                tells:
                    Flags {
                        count,
                        first,
                        stride,
                    },
                event,
            } => {
                if count == 0 || slot_bytes == 0 || !slot_bytes.is_multiple_of(8) {
                    return fault(NetworkFault::Empty(tag));
                }
                let all = u64::from(slot_bytes) * u64::from(count);
                let stride = u64::from(stride);
                let tells = self.find(first.0, 1)?.0;
                let last = stride.saturating_mul(u64::from(count - 1));
                self.find(first.0.saturating_add(last), 1)?;
                Open::Queue {
                    at: self.find(at.0, all)?.0,
                    slot_bytes,
                    tells,
                    stride,
                    slots: count,
                    next: 0,
                    event: self.event(event)?,
                    parts: Vec::new(),
                }
            }
        };
        match self.interfaces.tags.get_mut(usize::from(tag)) {
            None => fault(NetworkFault::NoSuchTag(tag)),
            Some(Some(_)) => fault(NetworkFault::OpenTag(tag)),
            Some(place) => {
                *place = Some(open);
                Ok(())
            }
        }
    }

    /// Gathers messages of the control network.
    pub(super) fn listens(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        (tag, mailbox): (u16, Mailbox),
    ) -> Result<(), FaultReason> {
        if mailbox.gathers == Gathers::AllOf(0) {
            return fault(NetworkFault::Empty(tag));
        }
        let listens = Listens {
            word: self.find(mailbox.word.0, 8)?.0,
            gathers: mailbox.gathers,
            tells: self.find(mailbox.tells.0, 1)?.0,
        };
        self.interfaces.mailboxes.insert(tag, listens);
        for bits in self.interfaces.early.remove(&tag).unwrap_or_default() {
            self.gathers(cpu, (tag, bits), (self.me, thread));
        }
        Ok(())
    }

    /// Something has come from a thread of another node, or of this one.
    pub(super) fn arrived(&mut self, cpu: &mut Cpu, by: (u32, u16), what: Sends) {
        match what {
            Sends::Signal(tag, bits) => {
                cpu.performed();
                self.gathers(cpu, (tag, bits), by);
            }
            Sends::Packet(packet) => {
                cpu.performed();
                if let Err(reason) = self.takes_packet(cpu, packet, by) {
                    cpu.fails(0, reason);
                }
            }
        }
    }

    fn gathers(&mut self, cpu: &mut Cpu, (tag, bits): (u16, u64), by: (u32, u16)) {
        let Some(&listens) = self.interfaces.mailboxes.get(&tag) else {
            return self.interfaces.early.entry(tag).or_default().push(bits);
        };
        let word = listens.word;
        let (left, tells) = listens.gathers.add(self.store.words.get(word).0, bits);
        self.write(cpu, word, (Bytes::word(word), left), by);
        if tells {
            self.tells(cpu, (listens.tells, None), by);
        }
    }

    /// The offset of an event, where there is one.
    pub(super) fn event(&self, event: Option<Flag>) -> Result<Option<u64>, FaultReason> {
        let found = event.map(|event| self.find(event.0, 1));
        Ok(found.transpose()?.map(|(offset, _)| offset))
    }

    /// Sets a flag, and an event where there is one.
    pub(super) fn tells(
        &mut self,
        cpu: &mut Cpu,
        (flag, event): (u64, Option<u64>),
        by: (u32, u16),
    ) {
        for flag in std::iter::once(flag).chain(event) {
            self.write(cpu, flag, (Bytes::byte(flag), 1), by);
        }
    }

    /// Writes a packet's data, and tells of its transfer if that is whole.
    fn takes_packet(
        &mut self,
        cpu: &mut Cpu,
        packet: Packet,
        by: (u32, u16),
    ) -> Result<(), FaultReason> {
        let tag = packet.tag;
        let words = &self.store.words;
        let is_free = |flag: u64| Bytes::byte(flag).pick(words.get(flag).0) == 0;
        let Some(Some(open)) = self.interfaces.tags.get_mut(usize::from(tag)) else {
            return fault(NetworkFault::ClosedTag(tag));
        };
        let end = u64::from(packet.offset) + u64::from(packet.bytes);
        let (at, tells) = match open {
            Open::Buffer { bytes, .. } if end > u64::from(*bytes) => {
                return fault(NetworkFault::Beyond(tag));
            }
            Open::Buffer {
                at,
                after,
                came,
                tells,
                event,
                ..
            } => {
                *came += u32::from(packet.is_last);
                let tells = (packet.is_last && *came == *after).then_some(*tells);
                if tells.is_some() {
                    *came = 0;
                }
                (*at, tells.map(|flag| (flag, *event)))
            }
            Open::Queue { slot_bytes, .. } if end > u64::from(*slot_bytes) => {
                return fault(NetworkFault::Beyond(tag));
            }
            Open::Queue {
                at,
                slot_bytes,
                tells,
                stride,
                slots,
                next,
                event,
                parts,
            } => {
                let flag = |slot: u32| *tells + *stride * u64::from(slot);
                let sender = (by.0, packet.stream);
                let begun = parts.iter().position(|&(other, _)| other == sender);
                let slot = match begun {
                    Some(begun) => parts[begun].1,
                    None => {
                        let slot = *next;
                        if !is_free(flag(slot)) || parts.iter().any(|&(_, taken)| taken == slot) {
                            return fault(NetworkFault::Full(tag));
                        }
                        *next = (slot + 1) % *slots;
                        parts.push((sender, slot));
                        slot
                    }
                };
                if packet.is_last {
                    parts.retain(|&(other, _)| other != sender);
                }
                let at = *at + u64::from(slot) * u64::from(*slot_bytes);
                (at, packet.is_last.then(|| (flag(slot), *event)))
            }
        };
        let first = at + u64::from(packet.offset);
        let (count, mut left) = (u64::from(packet.bytes).div_ceil(8), packet.bytes);
        // The banks are busy meanwhile; the packet waits in the interface.
        self.store.serves(cpu.now, cpu.now, first, count);
        for (word, offset) in (first..).step_by(8).take(count as usize).enumerate() {
            let enables = if left >= 8 { 0xff } else { (1 << left) - 1 };
            let bytes = Bytes::enabled(offset, enables);
            self.write(cpu, offset, (bytes, packet.words[word]), by);
            left = left.saturating_sub(8);
        }
        if let Some(tells) = tells {
            self.tells(cpu, tells, by);
        }
        Ok(())
    }
}
