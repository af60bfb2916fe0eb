//! Common to all address spaces: the bit that lets caches keep what an address names, and the
//! errors of addresses. Units: bytes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sme_memory::{Capability, Place, Route};

use super::line_size::LineSize;
use crate::kernel::thread::Misuse;

/// The address space through which a machine's programs see its memory.
pub trait AddressSpace: Send + Sync {
    /// The address by which a thread on `node` reaches `place`.
    fn address(&self, node: u32, place: Place, route: Route) -> u64;

    /// The place that `address` names through caches; nothing where it names none, or not through
    /// them.
    fn cached_place(&self, address: u64) -> Option<Place>;

    /// The place in shared memory that `address` names for a thread on `node`, and how it is
    /// reached; nothing where it names none.
    fn shared(&self, node: u32, address: u64) -> Option<(Place, Way)>;

    /// The length of the lines in which caches keep it.
    fn line(&self) -> LineSize;

    /// Test-and-set registers of each node.
    fn registers(&self) -> u32 {
        0
    }

    /// Returns whether copying a block of words is one operation of the machine; otherwise it is as
    /// many loads or stores.
    fn moves_blocks(&self) -> bool {
        false
    }

    /// Returns whether a pass over many words is one operation of the machine; otherwise it is as
    /// many loads or stores.
    fn makes_passes(&self) -> bool {
        false
    }

    /// The address of an entry of a node's look-up table, on machines whose programs change them.
    fn table_entry(&self, node: u32, entry: u32) -> Option<u64> {
        let _ = (node, entry);
        None
    }

    /// The content of an entry that leads nowhere.
    fn unused_entry(&self) -> u64 {
        0
    }

    /// Devices that hold memory and have no threads, numbered behind the nodes that have.
    fn devices(&self) -> u32 {
        0
    }
}

/// An address space as every simulated thread keeps it: behind one pointer, for there are millions
/// of them.
pub struct Space(Box<dyn AddressSpace>);

impl Space {
    /// `space`, shared by all threads.
    pub fn new(space: impl AddressSpace + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(space)))
    }

    /// Returns the address space, which says what addresses mean.
    pub fn get(&self) -> &dyn AddressSpace {
        &*self.0
    }

    /// The address by which a thread on `node` reaches `place`.
    #[inline]
    pub fn address(&self, node: u32, place: Place, route: Route) -> u64 {
        self.0.address(node, place, route)
    }

    /// Test-and-set registers of each node.
    pub fn registers(&self) -> u32 {
        self.0.registers()
    }

    /// Returns whether copying a block of words is one operation of the machine.
    #[inline]
    pub fn moves_blocks(&self) -> bool {
        self.0.moves_blocks()
    }

    /// Returns whether a pass over many words is one operation of the machine.
    #[inline]
    pub fn makes_passes(&self) -> bool {
        self.0.makes_passes()
    }
}

/// The way in which a word was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Way {
    /// Through the caches of the thread's node, which keep a copy of the line.
    Cached,
    /// Past the caches, at its home. A store is posted.
    Uncached,
    /// The node's own coherent memory. A store is performed at once.
    Coherent,
}

/// Bit of an address that says that caches may keep what it names.
pub const CACHEABLE: u64 = 1 << 62;

/// Bit of an address that says that the line is tagged as a message buffer.
pub const TAGGED: u64 = 1 << 61;

/// The reason why an access cannot be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultReason {
    /// Between the end of the node's RAM and the first global address.
    Unmapped,
    /// A global address whose node part names no node.
    NoSuchNode,
    /// A global address of a node whose memory only its own cores reach: the nodes share a pool.
    NotShared,
    /// A word whose address is not a multiple of eight.
    Misaligned,
    /// An atomic operation on memory outside the coherent domain.
    NotAtomic,
    /// A futex in the memory of another node, whose operating system knows nothing of this one's
    /// threads.
    SleepsElsewhere,
    /// An operation that the machine does not have.
    Lacks(#[serde(with = "by_number")] Capability),
    /// A core that the node does not have.
    NoSuchCore,
    /// A thread that the node does not have.
    NoSuchThread,
    /// More threads than the node was set up for.
    NoRoom,
    /// A test-and-set register that no node has.
    NoSuchRegister,
    /// A wait for any of no flags.
    NoFlags,
    /// A divider that no clock has, or a voltage that no regulator has.
    NoSuchSetting,
    /// Memory of a node that only the node's own cores reach.
    Foreign,
    /// A network was asked for what it cannot do, or carried what its receiver cannot take.
    Network(NetworkFault),
    /// The program does not wait as a thread can.
    Misuse(Misuse),
    /// An entry of a look-up table that leads to nothing.
    Entry {
        /// Its number.
        number: u8,
        /// Its content.
        bits: u32,
    },
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultReason::Unmapped => "neither the node's RAM nor global memory lies there",
            FaultReason::NoSuchNode => "no node holds that part of global memory",
            FaultReason::NotShared => {
                "only its own node reaches that memory: nodes share the pool's"
            }
            FaultReason::Misaligned => "a word's address must be a multiple of 8",
            FaultReason::NotAtomic => "there are no atomic operations outside coherent memory",
            FaultReason::SleepsElsewhere => "threads sleep on words of their own node's memory only",
            FaultReason::Lacks(capability) => {
                return write!(f, "the machine does not have {capability}");
            }
            FaultReason::NoSuchCore => "its node has no such core",
            FaultReason::NoSuchThread => "its node has started no such thread",
            FaultReason::NoRoom => "its node is not set up for more threads",
            FaultReason::Entry { number, bits } => {
                return write!(
                    f,
                    "entry {number:#04x} of its core's look-up table, {bits:#08x}, leads there to nothing"
                );
            }
            FaultReason::NoFlags => "a wait for any of no flags never ends",
            FaultReason::NoSuchSetting => {
                "no tile has such a divider of its clock, and no island such a voltage"
            }
            FaultReason::Foreign => "only its node's own cores reach that memory",
            FaultReason::Network(fault) => return fault.fmt(f),
            FaultReason::Misuse(misuse) => return misuse.fmt(f),
            FaultReason::NoSuchRegister => "no node has such a test-and-set register",
        })
    }
}

/// The reason for which a network on chip could not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkFault {
    /// The node has no such receive tag.
    NoSuchTag(u16),
    /// A receive tag is opened twice.
    OpenTag(u16),
    /// A message arrives for a receive tag that no thread has opened, or that is closed.
    ClosedTag(u16),
    /// A transfer goes beyond the buffer or slot of its tag.
    Beyond(u16),
    /// No slot of a queue is free.
    Full(u16),
    /// A buffer after no transfers, a queue without slots, a mailbox that waits for nothing.
    Empty(u16),
    /// The node's DMA engine has no such channel.
    NoSuchChannel(u16),
    /// The channel still sends.
    Busy(u16),
    /// There is no such node.
    NoSuchNode(u32),
    /// A transfer's offset is not a multiple of eight.
    Offset(u32),
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchTag(tag) => write!(f, "there is no receive tag {tag}"),
            Self::OpenTag(tag) => write!(f, "receive tag {tag} is open already"),
            Self::ClosedTag(tag) => write!(f, "receive tag {tag} is not open"),
            Self::Beyond(tag) => write!(f, "a transfer goes beyond the buffer of tag {tag}"),
            Self::Full(tag) => write!(f, "a message finds no free slot in the queue of tag {tag}"),
            Self::Empty(tag) => write!(f, "tag {tag} would never tell of anything"),
            Self::NoSuchChannel(channel) => write!(f, "there is no DMA channel {channel}"),
            Self::Busy(channel) => write!(f, "DMA channel {channel} is sending"),
            Self::NoSuchNode(node) => write!(f, "no network leads to node {node}"),
            Self::Offset(offset) => {
                write!(f, "offset {offset} of a transfer is not a multiple of 8")
            }
        }
    }
}

/// A capability as one process tells it another.
mod by_number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sme_memory::Capability;

    pub fn serialize<S: Serializer>(capability: &Capability, to: S) -> Result<S::Ok, S::Error> {
        (*capability as u8).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Capability, D::Error> {
        let number = u8::deserialize(from)?;
        let capability = Capability::ALL.get(usize::from(number)).copied();
        capability.ok_or_else(|| serde::de::Error::custom("no capability"))
    }
}
