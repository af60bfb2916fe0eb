//! The constants of a run: those of the machine, in the units that the nodes use.

use std::sync::Arc;

use super::homes::Homes;
use super::latencies::Latencies;
use crate::families::sme::address::AddressMap;
use crate::families::sme::engine::link_port::LinkPortSpec;
use crate::families::sme::engine::{HtPacket, Passage};
use crate::families::sme::spec::{ClusterSpec, NodeSpec};
use crate::machine::shape::{Pinning, Setup};
use crate::parts::cache::ahead::{Ahead, Costs};
use crate::parts::fabric::Topology;
use crate::parts::noise::Noise;
use crate::time::{Clock, Time};

/// The constants of a run, ready for use.
#[derive(Debug)]
pub struct Constants {
    pub spec: ClusterSpec,
    pub topology: Topology,
    pub map: AddressMap,
    pub seed: u64,
    noise: Option<Noise>,
    /// Numbers that a node's cores have in what the noise is drawn from.
    threads: u32,
    /// The most threads of a node.
    pub room: u32,
    pinning: Pinning,
    pub engine_clock: Clock,
    /// The times of the parts of a transaction in a coherent domain.
    pub latencies: Arc<Latencies>,
    /// The same in a device of a pool.
    device_latencies: Arc<Latencies>,
    /// The sockets on which the memory of a node lies.
    pub homes: Homes,
    /// The time that a program spends around one operation.
    pub operation: Time,
    pub l1: Time,
    pub l2: Time,
    /// Engine cycles from the edge at which a packet's last phit leaves until the neighbour can
    /// sample it: transceivers and wire.
    pub link_cycles: u64,
    /// Delays between a position's blocks and its links.
    pub passage: Passage,
    /// The cycles for which packets take a link.
    pub link_port: LinkPortSpec,
    /// One way through the processor's link interface, serialization apart.
    pub host_way: Time,
    /// Words that one read of a line fill asks for.
    pub words_a_read: u8,
}

/// The time by which a thread runs ahead of its node while it hits its core's private caches: about
/// the time after which another node could notice its actions.
const RUN_AHEAD: Time = Time::from_ns(1_000);

/// Bit of a trace that says that its access counts.
const COUNTED: u32 = 1 << 31;
/// Bit of a trace that says that its load is the first of a line's fill.
pub const FILLS: u32 = 1 << 30;
const CORE_BITS: u32 = 10;

// One number is left over, so that no trace is `transaction::NONE`.
const _: () = assert!(NodeSpec::MOST_CORES < 1 << CORE_BITS);

impl Constants {
    pub fn new(spec: ClusterSpec, setup: Setup) -> Self {
        let engine_clock = spec.engine.clock;
        Self {
            map: AddressMap {
                nodes: spec.hosts(setup.nodes),
                first_shared: match spec.pool.devices {
                    0 => 0,
                    _ => setup.nodes,
                },
                private_bytes: spec.node.private_bytes,
                shared_bytes: spec.node.shared_bytes,
                global_base: spec.node.global_base,
                line: spec.cache.private.line(),
            },
            seed: setup.seed,
            noise: setup.noise,
            threads: match setup.room > setup.threads {
                true => setup.room.max(spec.node.cores()),
                false => setup.threads,
            },
            room: setup.most_threads(),
            pinning: setup.pinning,
            engine_clock,
            latencies: Arc::new(Latencies::new(&spec)),
            device_latencies: Arc::new(Latencies::of_device(&spec)),
            homes: Homes::new(&spec),
            operation: spec.core.clock.span(spec.core.operation_cycles),
            l1: spec.core.clock.span(spec.cache.l1_cycles),
            l2: spec.core.clock.span(spec.cache.l2_cycles),
            passage: Passage::of(&spec),
            link_port: LinkPortSpec::of(&spec),
            link_cycles: spec.link.crossing_cycles(engine_clock),
            host_way: spec.host.delay + spec.host.clock.span(spec.host.cycles),
            words_a_read: (spec.uncached.load_bytes / 8) as u8,
            topology: setup.topology,
            spec,
        }
    }

    /// The latencies of the memory at `position`, and the sockets on which it lies.
    pub fn memory_at(&self, position: u32) -> (Arc<Latencies>, Homes) {
        match self.map.has_pool() && position >= self.map.first_shared {
            true => (
                Arc::clone(&self.device_latencies),
                self.homes.on_one_socket(),
            ),
            false => (Arc::clone(&self.latencies), self.homes),
        }
    }

    /// The empty private caches of a core.
    pub fn ahead(&self) -> Ahead {
        let costs = Costs {
            first: self.l1 + self.operation,
            second: self.l2 + self.operation,
        };
        Ahead::new(self.spec.cache.private, costs, RUN_AHEAD)
    }

    /// Returns the time of a call that writes all caches of a node back, without the writes
    /// themselves.
    pub fn write_back_call(&self) -> Time {
        let (os, cache) = (&self.spec.os, &self.spec.cache);
        let lines = u64::from(cache.private.lines());
        let walk = self.spec.core.clock.span(lines * cache.walk_cycles);
        os.system_call + os.interrupt + walk
    }

    /// Returns whether no noise disturbs the cores.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.noise.is_none()
    }

    /// Returns the time at which `core` of `node` has executed for `span` from `now` on: `span`
    /// later, or later than that by its noise.
    #[inline]
    pub fn executes(&self, node: u32, core: u16, now: Time, span: Time) -> Time {
        match &self.noise {
            None => now + span,
            Some(noise) => {
                let thread = u64::from(node) * u64::from(self.threads) + u64::from(core);
                noise.end_of(thread, now, span)
            }
        }
    }

    pub fn socket_of(&self, thread: u32) -> u8 {
        let node = &self.spec.node;
        let socket = match self.pinning {
            Pinning::Scatter => thread % node.sockets,
            Pinning::Compact => thread / node.cores_per_socket,
        };
        socket as u8
    }

    /// One way between a socket and the first, where the link to the engine is.
    #[inline]
    pub fn to_first_socket(&self, socket: u8) -> Time {
        self.latencies.between(socket, 0)
    }

    /// No node hears of another sooner than this.
    pub fn lookahead(&self) -> Time {
        // Edges are rounded up to a picosecond, so a span of cycles may be one shorter.
        self.engine_clock
            .span(self.link_cycles)
            .since(Time::from_ps(1))
            .max(Time::from_ps(1))
    }

    /// Returns the time for which a packet occupies the host link, one direction: two transfers per
    /// clock cycle.
    pub fn on_host_link(&self, packet: &HtPacket) -> Time {
        let host = &self.spec.host;
        let bits_per_second = u128::from(host.clock.hz()) * 2 * u128::from(host.width_bits);
        let ps = u128::from(packet.wire_bytes()) * 8 * 1_000_000_000_000;
        Time::from_ps(ps.div_ceil(bits_per_second) as u64)
    }

    /// The edge at which the engine samples what has reached its HyperTransport core at `at`.
    pub fn engine_samples(&self, at: Time) -> u64 {
        self.engine_clock.first_edge_from(at) + self.spec.engine.ht_core_cycles
    }

    /// Returns the time at which a packet that the engine's blocks gave at edge `cycle` has passed
    /// its HyperTransport core.
    pub fn engine_gave(&self, cycle: u64) -> Time {
        self.engine_clock
            .edge(cycle + self.spec.engine.ht_core_cycles)
    }

    /// Returns the time at which a credit that the engine returned at edge `cycle` reaches the
    /// host.
    pub fn host_credit_at(&self, cycle: u64) -> Time {
        self.engine_gave(cycle) + self.host_way
    }

    /// Returns the number by which traces name the accesses of a thread.
    pub fn trace(&self, node: u32, core: u16, counted: bool) -> u32 {
        node << CORE_BITS | u32::from(core) | if counted { COUNTED } else { 0 }
    }

    /// Returns whether the access behind `trace` counts.
    pub fn counts(&self, trace: u32) -> bool {
        trace & COUNTED != 0
    }
}

/// Node and thread number of a trace.
pub fn origin_of(trace: u32) -> (u32, u16) {
    let trace = trace & !(COUNTED | FILLS);
    (trace >> CORE_BITS, (trace & ((1 << CORE_BITS) - 1)) as u16)
}
