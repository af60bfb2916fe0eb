//! The marks that a [`trace`](super::trace) is made of: when a stage ended, where it began, what
//! it was spent on, and how a thing under way is recognized from one stage to the next.

use sme_memory::Place;

use super::constants::origin_of;
use super::core::Request;
use super::transaction::Kind;
use crate::families::sme::engine::{self, Packet};
use crate::observe::path::{MarkId, Part};
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// The end of one stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at: Time,
    /// The mark at which the stage began.
    pub(super) cause: Cause,
    pub(super) part: Part,
    pub(super) what: What,
    /// The mark of the write of the value that was read.
    pub(super) value: Option<MarkId>,
}

/// The mark in which a stage began.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// In the same node.
    Here(MarkId),
    /// Where node `from` sent this packet, to be sampled at engine edge `cycle`.
    Sent { from: u32, key: Key, cycle: u64 },
}

/// The event of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Nothing that is known.
    Unknown,
    /// The last part of an operation of this core: its own instructions, or what they cost.
    Operation(u16, Operation),
    /// A wait of this core has seen a value that it takes; takes no time.
    Takes,
    /// A store of this core waits in the store buffer.
    Buffered(u16),
    /// A load of this core waits for its socket's slot.
    Slot(u16),
    /// A transaction is on its way to its line's home.
    Asks(Access),
    /// The thread of this core computes and hits in its private caches.
    RunsAhead(u16),
    /// A miss of the private caches of memory behind the engine.
    Misses(Request, MissStage),
    /// This core spins on its copy of a line behind the engine, and loses it.
    LosesCopy(u16),
    /// The write-backs for this core's thread leave the node.
    PostedLeave(u16),
    /// The line's copy at a spinning core is probed away.
    Probed(Access),
    /// A transaction waits for its line.
    Waits(Access),
    /// A transaction is served.
    Served(Access),
    /// A packet's stage.
    Packet(Key, Stage),
    /// A system call of this core.
    Calls(u16),
    /// This core's thread goes to sleep.
    Sleeps(u16),
    /// The first core wakes the thread of the second.
    Wakes(u16, u16),
    /// The thread of this core is scheduled.
    Resumes(u16),
}

/// A transaction on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) line: u32,
    /// Byte in the line.
    pub(super) byte: u8,
    /// Core or [`BRIDGE`].
    pub(super) agent: u16,
    /// Node and core of the thread behind it, where that is not `agent`.
    pub(super) origin: (u32, u16),
    pub(super) kind: Kind,
}

/// The stage of a miss.
#[derive(Clone, Copy, Debug)]
pub(super) enum MissStage {
    LooksUp,
    Asks,
    Waits,
    Slot,
    Comes,
    Settles,
}

/// The key by which a packet is recognized on its whole way. One thread's packets with one key keep
/// their order everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Node and core of the thread behind it.
    pub(super) thread: (u32, u16),
    pub(super) carries: Carries,
    /// The word that it is about; a response does not name it.
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Carries {
    Read,
    Write,
    Response,
}

/// The stage that a packet has reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    ToHostLink,
    HostLinkBusy,
    HostLink,
    IntoEngine,
    Blocks,
    BlocksBusy,
    LinkBusy(u32),
    Serializes(u32),
    Crosses,
    Link(u32),
    OutOfEngine,
    FromHostLinkBusy,
    FromHostLink,
    BridgeBusy,
    Bridge,
}

impl What {
    /// The resource that is busy where the stage is spent queueing.
    pub(super) fn queued_for(&self) -> Option<&'static str> {
        Some(match self {
            What::Buffered(_) => "earlier stores",
            What::Slot(_) | What::Misses(_, MissStage::Slot) => "slot for loads",
            What::Waits(_) | What::Misses(_, MissStage::Waits) => "cache line",
            What::Packet(_, stage) => match stage {
                Stage::HostLinkBusy => "host link to engine",
                Stage::BlocksBusy => "engine",
                Stage::LinkBusy(_) => "network link",
                Stage::FromHostLinkBusy => "host link from engine",
                Stage::BridgeBusy => "I/O bridge",
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl Key {
    /// Of a packet of the network.
    pub(super) fn of(packet: &Packet) -> Self {
        let thread = origin_of(packet.trace);
        let carries = match packet.kind {
            engine::Kind::ReadRequest => Carries::Read,
            engine::Kind::PostedWrite => Carries::Write,
            engine::Kind::ReadResponse | engine::Kind::ErrorResponse => {
                return Self::response(thread);
            }
        };
        Self {
            thread,
            carries,
            place: Place {
                node: packet.target,
                offset: packet.offset,
            },
        }
    }

    /// Of the answer to the thread's load.
    pub(super) fn response(thread: (u32, u16)) -> Self {
        Self {
            thread,
            carries: Carries::Response,
            place: Place { node: 0, offset: 0 },
        }
    }
}

/// The lowest of `bytes`, counted from the beginning of the line.
pub(super) fn byte_of(bytes: Bytes) -> u8 {
    bytes.word * 8 + bytes.enables.trailing_zeros() as u8
}
