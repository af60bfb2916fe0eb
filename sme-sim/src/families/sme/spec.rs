//! The specification of a cluster with Shared Memory Engines in a machine file: typed, in this
//! crate's units.

use super::engine::Kind;
use super::engine::packet::RESPONSE_HEADER_BYTES;
use crate::machine::Software;
use crate::machine::quantity::Delay;
use crate::parts::cache::Geometry;
use crate::parts::core_set;
use crate::parts::fabric::NetworkKind;
use crate::time::{Clock, Time};

/// A cluster of nodes, each with sockets of cores, one coherent domain, a host link, an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// `[node]`
    pub node: NodeSpec,
    /// `[core]`
    pub core: CoreSpec,
    /// `[cache]`
    pub cache: CacheSpec,
    /// `[coherence]`
    pub coherence: CoherenceSpec,
    /// `[uncached]`
    pub uncached: UncachedSpec,
    /// `[host]`
    pub host: HostSpec,
    /// `[engine]`
    pub engine: EngineSpec,
    /// `[link]`
    pub link: LinkSpec,
    /// `[os]`
    pub os: OsSpec,
    /// `[process]`: the costs of a process manager; a file may leave them out.
    pub software: Software,
    /// `[fabric]`
    pub fabric: FabricSpec,
    /// `[pool]`
    pub pool: PoolSpec,
}

impl ClusterSpec {
    /// Positions with memory, and an engine with a host behind it: those of `nodes` nodes, and
    /// behind them the pool's devices.
    pub fn hosts(&self, nodes: u32) -> u32 {
        nodes.saturating_add(self.pool.devices)
    }

    /// Bytes of the longest packet on a network link: a posted write, or the response to a read of
    /// a line fill if that is longer.
    pub fn longest_packet_bytes(&self) -> u64 {
        Kind::PostedWrite
            .bytes()
            .max(RESPONSE_HEADER_BYTES + self.uncached.load_bytes)
    }
}

/// `[node]`: one coherent domain.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// `sockets`
    pub sockets: u32,
    /// `cores_per_socket`
    pub cores_per_socket: u32,
    /// `private_memory`: bytes of RAM that only the node itself can address.
    pub private_bytes: u64,
    /// `shared_memory`: bytes of RAM in the global address space, a power of two.
    pub shared_bytes: u64,
    /// `global_base`: the first global address, 2^40.
    pub global_base: u64,
}

impl NodeSpec {
    /// A node has at most this many cores: all but one of the numbers that packets have for the
    /// core they come from.
    pub const MOST_CORES: u32 = core_set::MOST_CORES;

    /// Cores of a node.
    pub fn cores(&self) -> u32 {
        self.sockets.saturating_mul(self.cores_per_socket)
    }
}

/// `[core]`
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSpec {
    /// `clock`
    pub clock: Clock,
    /// `operation`: cycles a program's own instructions take around one memory operation.
    pub operation_cycles: u64,
    /// `arithmetic`: cycles of one arithmetic operation on registers, on the average.
    pub arithmetic_cycles: u64,
    /// `store_buffer`: stores that may wait for their line while the core goes on.
    pub store_buffer: u32,
    /// `outstanding_misses`: cache lines a core fetches at once.
    pub outstanding_misses: u32,
}

/// `[cache]`: a core's private levels, the first inside the second, and how they treat memory that
/// is cached and not kept coherent between nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    /// `l1`: cycles of a hit in the first level.
    pub l1_cycles: u64,
    /// `l2`: cycles of a hit in the second level.
    pub l2_cycles: u64,
    /// `l3`: until a miss in all three levels is known and the request leaves the socket's core.
    pub l3: Time,
    /// `line`, `l1_size`, `l1_ways`, `l2_size`, `l2_ways`: a core's own levels.
    pub private: Geometry,
    /// `writeback`: what of a line is written back to memory behind the engine.
    pub writeback: WriteBack,
    /// `fill_requests`: loads that the fill of one line has under way at once.
    pub fill_requests: u32,
    /// `walk`: core cycles until the next line, when a core's caches are written back altogether.
    pub walk_cycles: u64,
}

/// The part of a line that is written back, where a cache has a newer copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// All its bytes: two nodes that write different bytes of one line lose updates.
    Line,
    /// The bytes that were written in this node.
    Mask,
}

/// `[coherence]`: MOESI with broadcast probes, ordered at the line's home memory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct CoherenceSpec {
    /// `hop`: one way between two neighbouring sockets.
    pub hop: Time,
    /// `dram`: from the home controller's decision to the data's departure.
    pub dram: Time,
    /// `probe`: a probe's lookup in one socket's caches.
    pub probe: Time,
    /// `occupancy`: from the start of one transaction on a line until its home controller starts
    /// the next on the same line.
    pub occupancy: Time,
    /// `locked`: what a locked read-modify-write adds to owning its line.
    pub locked: Time,
    /// `homes`: which socket's memory controller a line belongs to.
    pub homes: HomeSockets,
}

/// The sockets whose memory controllers share the memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeSockets {
    /// The first alone.
    First,
    /// All in turn, line by line.
    Lines,
    /// All in turn, in pages of 4 KiB.
    Pages,
}

/// `[uncached]`: loads from memory behind the engine (MMIO).
#[derive(Clone, Debug, PartialEq)]
pub struct UncachedSpec {
    /// `outstanding_loads_per_socket`: 1.
    pub outstanding_loads_per_socket: u32,
    /// `load_payload`: bytes that each read of a line fill asks for, a power of two from 8 to the
    /// line. A core's own load past the caches asks for 8 at most in any case.
    pub load_bytes: u64,
    /// `turnaround`: from a response until the socket's slot can issue the next load.
    pub turnaround: Time,
    /// `arbitration`: who gets a free slot.
    pub arbitration: Arbitration,
    /// `store_gap`: from one posted store of a core to its next.
    pub store_gap: Time,
    /// `coherent_stores`: whether stores from other nodes carry the *coherent* bit and probe the
    /// caches of their target (Sec. V-A). Without it, cached copies go stale.
    pub coherent_stores: bool,
}

/// The rule by which one of several waiting cores of a socket gets the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Any of those waiting, with equal chance (seeded).
    Random,
    /// The core that has waited longest.
    Fifo,
}

/// `[host]`: the HyperTransport connection between the node's first socket and its engine.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// `clock`: HT400 is 400 MHz, two transfers per cycle.
    pub clock: Clock,
    /// `width`: bits per direction, 16.
    pub width_bits: u32,
    /// `cycles`: HyperTransport clock cycles a packet spends in the processor's link interface,
    /// one way (Eq. 1's `cycles_fixed`, per direction).
    pub cycles: u64,
    /// `delay`: what does not scale with any clock, one way (Eq. 1's `time_absolute`).
    pub delay: Time,
    /// `bridge`: what the processor's I/O bridge adds to each posted write that enters memory; it
    /// takes packets in order.
    pub bridge: Time,
    /// `bridge_writes`: when a posted write lets the packet behind it enter the bridge; a file may
    /// leave it out.
    pub bridge_writes: BridgeWrites,
    /// `posted_credits`: posted packets the receiver takes before it must return a credit.
    pub posted_credits: u32,
    /// `nonposted_credits`: credits for read requests.
    pub nonposted_credits: u32,
    /// `response_credits`: credits for read responses.
    pub response_credits: u32,
}

/// The moment at which a posted write lets the packet behind it enter the I/O bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeWrites {
    /// Its completion: all probes have been answered.
    Serial,
    /// Its effect: its line's home has ordered it.
    Pipelined,
}

/// `[engine]`
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSpec {
    /// `clock`
    pub clock: Clock,
    /// `ht_core`: engine cycles in the HyperTransport core, one way; a named physical delay
    /// outside the blocks.
    pub ht_core_cycles: u64,
    /// `network_core`: engine cycles a packet spends once, each way, between the engine and its
    /// switch (clock domain crossing); a named physical delay outside the blocks.
    pub network_core_cycles: u64,
    /// `tags`: remote reads a node can have under way, at most 32.
    pub tags: u32,
}

/// `[link]`: one of the six network links.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// `bandwidth`: bytes per second, a direction.
    pub bytes_per_second: u64,
    /// `serdes`: in the two transceivers of a hop, engine cycles or a time that no clock changes; a
    /// named physical delay.
    pub serdes: Delay,
    /// `wire`: the fibre's delay, constant.
    pub wire: Time,
    /// `channel_credits`: packets each of the four virtual channels buffers at the receiver.
    pub channel_credits: u32,
    /// `forwarding`: how much of a packet a switch waits for; a file may leave it out.
    pub forwarding: Forwarding,
}

/// The part of a packet that has come to a switch when the switch sends it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// All.
    StoreAndForward,
    /// The first 8 bytes, its header. The rest of the packet follows at the link's rate, which is
    /// the same on all links, and has room in the buffer if the header has to wait.
    CutThrough,
}

impl LinkSpec {
    /// Engine cycles from the edge at which something leaves until the neighbour can sample it:
    /// transceivers and wire.
    pub fn crossing_cycles(&self, engine: Clock) -> u64 {
        match self.serdes {
            Delay::Cycles(cycles) => cycles + engine.first_edge_from(self.wire),
            Delay::Time(time) => engine.first_edge_from(time + self.wire),
        }
    }
}

/// `[os]`: the costs of the operating system for threads that sleep, start others, and share cores.
#[derive(Clone, Debug, PartialEq)]
pub struct OsSpec {
    /// `system_call`: entering and leaving the kernel.
    pub system_call: Time,
    /// `sleep`: from the decision to sleep until the core runs something else.
    pub sleep: Time,
    /// `wake`: the waker's cost for each thread it wakes, one after another.
    pub wake: Time,
    /// `resume`: from being woken until the thread runs again.
    pub resume: Time,
    /// `interrupt`: until a call has made all cores of its node take part in it.
    pub interrupt: Time,
    /// `start`: the cost of starting a thread, besides the call; a file may leave it out.
    pub start: Time,
    /// `switch`: from when a thread gives its core away until the next runs; a file may leave it
    /// out.
    pub switch: Time,
    /// `quantum`: how long a thread has its core while others want it; a file may leave it out.
    pub quantum: Time,
}

/// `[fabric]`: the network that joins the nodes by default; a file may leave it out.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricSpec {
    /// `topology`: a mesh or a torus, and of how many dimensions, or a switch.
    pub topology: NetworkKind,
    /// `switch`: what a switch outside the engines adds to each packet that passes it, besides
    /// buffers, arbitration and serialization; a named delay outside the blocks.
    pub switch: Time,
}

/// `[pool]`: devices that hold memory and have no cores; a file may leave it out. Where there are
/// any, the global address space is theirs, and a node's own memory is reached by its own cores
/// only.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSpec {
    /// `devices`: they stand at the positions behind the last node.
    pub devices: u32,
    /// `dram`: from the device's memory controller's decision to the data's departure.
    pub dram: Time,
}
