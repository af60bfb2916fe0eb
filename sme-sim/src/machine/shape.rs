//! The shape that a machine of any family has: the number and the size of its parts. Commands,
//! programs and estimates ask for the shape, and never for the name of the machine.

use std::ops::Range;

use sme_memory::{Domains, Homes, Segments};

use crate::parts::coherence::Protocol;
use crate::parts::core_set::MOST_CORES;
use crate::parts::fabric::{NetworkKind, Topology};
use crate::parts::noise::Noise;
use crate::time::Time;

/// The numbers of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The most nodes of a machine.
    pub nodes: u32,
    /// Sockets of a node.
    pub sockets: u32,
    /// Cores of a node, in all its sockets.
    pub cores: u32,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// Bytes of each node's memory that programs share.
    pub shared_bytes: u64,
    /// Bytes at the beginning of these that are a message passing buffer on a chip, none where a
    /// machine has no such thing.
    pub buffer_bytes: u64,
    /// The mean time of one arithmetic operation on registers.
    pub arithmetic: Time,
    /// The costs of a message library's own work; no time where a machine file does not say.
    pub software: Software,
    /// The memory that a node has to itself, on machines whose programs change look-up tables.
    pub segments: Option<Segments>,
    /// From the answer to an uncached load until nothing of it is in the way of the next.
    pub recovery: Time,
    /// The network that joins nodes by default.
    pub network: NetworkKind,
    /// Nodes, the last ones, that are I/O subsystems.
    pub io_nodes: u32,
    /// The network interfaces of a node, where nodes are joined by networks on chip.
    pub interfaces: Interfaces,
    /// Devices without cores that hold all memory that nodes share, numbered behind the nodes; none
    /// where that is the nodes' own.
    pub pool_devices: u32,
    /// The hops from each node to the memory controller that serves it; none where nodes have
    /// memory of their own.
    pub memory_hops: Vec<u32>,
    /// The clocks and voltages that programs change; none where a machine's are fixed.
    pub domains: Option<Domains>,
    /// The coherence of all its memory; none where nodes are not coherent.
    pub coherence: Option<Coherence>,
    /// The memory of this computer that a simulated machine takes.
    pub footprint: Footprint,
}

/// The costs of a message library's own work, apart from its accesses to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Software {
    /// Entering and leaving a call.
    pub call: Time,
    /// Reading the clock, the processor's own work; 0 where [`Self::call`] is.
    pub clock: Time,
    /// Making a request of a send or a receive, or a packet of its own, and queueing it.
    pub request: Time,
    /// Handling a packet that has arrived.
    pub packet: Time,
    /// Comparing one entry of a queue with a message.
    pub compare: Time,
    /// Combining one word of two operands of a reduction.
    pub combine: Time,
    /// Translating a group to the ranks of a window.
    pub group: Time,
    /// One turn of a loop over the targets or the origins of an epoch.
    pub target: Time,
    /// Putting a control message together and handing it to a network.
    pub post: Time,
    /// Entering the handler of a control message that has come, and leaving it.
    pub callback: Time,
    /// Allocating a receive tag and configuring it.
    pub open: Time,
    /// Finding the place of a message, or the message of a receive, in the library's lists.
    pub find: Time,
    /// Taking a buffer for data that are sent later, and noting them.
    pub keep: Time,
    /// Setting a transfer up.
    pub setup: Time,
    /// Seeing that a transfer is over.
    pub completion: Time,
    /// A daemon's fork of a process.
    pub fork: Time,
    /// The execution of another program by a process, until that begins.
    pub exec: Time,
    /// The library's beginning in a process, without messages and without requests of a manager.
    pub init: Time,
    /// Serving a request at the manager of a program.
    pub serve: Time,
    /// The same over TCP/IP.
    pub serve_socket: Time,
    /// Logging in on another core by SSH.
    pub login: Time,
    /// The same costs on an I/O subsystem, as a percentage of the above; 0 where there is none.
    pub subsystem_percent: u32,
}

impl Software {
    /// The costs on an I/O subsystem.
    pub fn of_subsystem(self) -> Self {
        let slower = |one: Time| {
            let percent = u64::from(self.subsystem_percent);
            Time::from_ps(one.as_ps().saturating_mul(percent) / 100)
        };
        Self {
            call: slower(self.call),
            clock: slower(self.clock),
            request: slower(self.request),
            packet: slower(self.packet),
            compare: slower(self.compare),
            combine: slower(self.combine),
            group: slower(self.group),
            target: slower(self.target),
            post: slower(self.post),
            callback: slower(self.callback),
            open: slower(self.open),
            find: slower(self.find),
            keep: slower(self.keep),
            setup: slower(self.setup),
            completion: slower(self.completion),
            fork: slower(self.fork),
            exec: slower(self.exec),
            init: slower(self.init),
            serve: slower(self.serve),
            serve_socket: slower(self.serve_socket),
            login: slower(self.login),
            subsystem_percent: self.subsystem_percent,
        }
    }
}

/// A machine all of whose nodes, its sockets, share one coherent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coherence {
    /// The protocol between the sockets.
    pub protocol: Protocol,
    /// Neighbouring cores that share their caches, but for the first level.
    pub module: u32,
}

/// The network interfaces of a node: one of a cluster, several of an I/O subsystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Receive tags of each.
    pub tags: u16,
    /// Channels of each one's DMA engine.
    pub channels: u16,
}

/// An approximate upper bound on what the simulator keeps of a machine: bytes of this computer's
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Of each position of the topology.
    pub position: u64,
    /// Of each thread besides.
    pub thread: u64,
    /// Of each thread in nodes of more than 64 threads: sets of them take more.
    pub thread_of_large_node: u64,
    /// Of each link port of a switch that stands outside the nodes.
    pub switch_port: u64,
}

impl Footprint {
    /// Bytes for the positions and switches of `topology`, and for `threads` in all, `cores` a
    /// node.
    pub fn of(&self, topology: &Topology, threads: u64, cores: u32) -> u64 {
        let thread = match cores > 64 {
            true => self.thread_of_large_node,
            false => self.thread,
        };
        let positions = u64::from(topology.positions()) * self.position;
        let switches = topology.switch_ports() * self.switch_port;
        threads
            .saturating_mul(thread)
            .saturating_add(positions + switches)
    }
}

impl Shape {
    /// The usual network of `nodes` nodes and the pool's devices.
    pub fn topology(&self, nodes: u32) -> Topology {
        self.network.holding(self.positions(nodes))
    }

    /// Positions that `nodes` nodes and the pool's devices need.
    pub fn positions(&self, nodes: u32) -> u32 {
        nodes.saturating_add(self.pool_devices)
    }

    /// Those whose memory `nodes` nodes share.
    pub fn homes(&self, nodes: u32) -> Range<u32> {
        match self.pool_devices {
            0 => 0..nodes,
            devices => nodes..nodes.saturating_add(devices),
        }
    }

    /// The memory that holds the variables by which `nodes` nodes tell each other something.
    pub fn sharing(&self, nodes: u32) -> Homes {
        match self.pool_devices {
            0 => Homes::Own,
            devices => Homes::Pool {
                first: nodes,
                nodes: devices,
            },
        }
    }
}

/// The sockets on which a node's threads stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// Over the sockets first.
    Scatter,
    /// Filling one socket after the other.
    Compact,
}

/// The settings of a run, besides the machine and its programs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Positions and links; the first `nodes` positions have a node, the next ones the pool's
    /// devices.
    pub topology: Topology,
    /// Nodes.
    pub nodes: u32,
    /// Threads with which each node begins.
    pub threads: u32,
    /// The most threads that a node ever has, those included that its threads start.
    pub room: u32,
    /// The sockets on which the threads stand.
    pub pinning: Pinning,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Whether to write down every span of every thread.
    pub each_span: bool,
    /// The disturbance of the cores by the operating system; none if `None`.
    pub noise: Option<Noise>,
}

impl Setup {
    /// `nodes` nodes of `threads` threads each, where the machine places them by default; threads
    /// go over the sockets first, the seed is 1, nothing disturbs the cores, and single spans are
    /// not written down.
    pub fn new(shape: &Shape, nodes: u32, threads: u32) -> Self {
        Self {
            topology: shape.topology(nodes),
            nodes,
            threads,
            room: threads,
            pinning: Pinning::Scatter,
            seed: 1,
            each_span: false,
            noise: None,
        }
    }

    /// The same on `topology`, which has at least as many positions as there are nodes.
    pub fn on(self, topology: Topology) -> Self {
        Self { topology, ..self }
    }

    /// The same with its threads where `pinning` says.
    pub fn pinned(self, pinning: Pinning) -> Self {
        Self { pinning, ..self }
    }

    /// The same with room for so many threads in each node, of which others than the first are
    /// started by their programs.
    pub fn with_room(self, room: u32) -> Self {
        let room = room.max(self.threads);
        Self { room, ..self }
    }

    /// The most threads of a node that can be told apart.
    pub fn most_threads(&self) -> u32 {
        self.room.min(MOST_CORES)
    }

    /// The same with this seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same with every span of every thread written down, if `each_span`.
    pub fn with_each_span(self, each_span: bool) -> Self {
        Self { each_span, ..self }
    }

    /// The same with its cores disturbed by `noise`.
    pub fn with_noise(self, noise: Option<Noise>) -> Self {
        Self { noise, ..self }
    }
}
