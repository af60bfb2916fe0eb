//! The constants of the family `sme-cluster`, each declared once: key, limits, meaning.
//!
//! Limits keep a simulation possible, they do not say what is plausible: a delay may be zero, so
//! that a mechanism can be switched off, unless nothing could then keep two events apart.
//! Amounts are in the base units of [`super::quantity::Dimension`].

use super::spec::*;
use crate::machine::Software;
use crate::machine::processes;
use crate::machine::quantity::Dimension;
use crate::machine::reader::Reader;
use crate::parts::cache::Geometry;
use crate::parts::fabric::NetworkKind;
use crate::time::Time;

/// In picoseconds: the longest delay of the hardware and of the operating system.
const HARDWARE_DELAY: u64 = 1_000_000_000;
const SYSTEM_DELAY: u64 = 1_000_000_000_000;
/// The most cycles that any one step takes.
const CYCLES: u64 = 1_000_000;
/// The most packets, stores or misses that anything buffers.
const DEPTH: u32 = 1_024;
/// The most processors of a node: their distances are tables of pairs.
const SOCKETS: u32 = 64;
/// The most ways of a set.
const WAYS: u32 = 64;
/// `pool.dram` where a file leaves it out.
const POOL_DRAM: Time = Time::from_ns(80);
/// Bytes of a page, where memory is divided.
const PAGE: u64 = 4 * KIB;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const PIB: u64 = 1 << 50;

/// Reads or lists the constants of a cluster.
pub(crate) fn cluster(read: &mut Reader<'_>) -> ClusterSpec {
    let spec = ClusterSpec {
        node: node(read),
        core: core(read),
        cache: cache(read),
        coherence: coherence(read),
        uncached: uncached(read),
        host: host(read),
        engine: engine(read),
        link: link(read),
        os: os(read),
        software: processes::optional(&mut read.section("process"), Software::default()),
        fabric: fabric(read),
        pool: pool(read),
    };
    rules(&spec, read);
    spec
}

fn node(read: &mut Reader<'_>) -> NodeSpec {
    let mut node = read.section("node");
    NodeSpec {
        sockets: node.count("sockets", 1..=SOCKETS, "processors of a node, one coherent domain"),
        cores_per_socket: node.count("cores_per_socket", 1..=NodeSpec::MOST_CORES, "cores of a processor"),
        private_bytes: node.memory("private_memory", 4 * KIB..=TIB, "RAM of a node that only the node addresses"),
        shared_bytes: node.memory_power(
            "shared_memory",
            4 * KIB..=TIB,
            "RAM of a node in the global address space; a power of two, so that bits of an address are the node",
        ),
        global_base: node.memory_power("global_base", GIB..=PIB, "first global address; below it a node's own RAM"),
    }
}

fn core(read: &mut Reader<'_>) -> CoreSpec {
    let mut core = read.section("core");
    CoreSpec {
        clock: core.clock("clock", "clock of the cores and of their caches' cycles"),
        operation_cycles: core.cycles(
            "operation",
            0..=CYCLES,
            "what a program's own instructions take around one memory operation",
        ),
        arithmetic_cycles: core.cycles(
            "arithmetic",
            0..=CYCLES,
            "one arithmetic operation on registers, on the average",
        ),
        store_buffer: core.count(
            "store_buffer",
            1..=DEPTH,
            "stores that wait for their line while the core goes on",
        ),
        outstanding_misses: core.count(
            "outstanding_misses",
            1..=DEPTH,
            "cache lines a core fetches at once",
        ),
    }
}

fn cache(read: &mut Reader<'_>) -> CacheSpec {
    let mut cache = read.section("cache");
    let line = cache.line_size("line", "a cache line");
    let l1_cycles = cache.cycles("l1", 1..=CYCLES, "a hit in the first level");
    let l2_cycles = cache.cycles("l2", 1..=CYCLES, "a hit in the second level");
    let l3 = cache.time(
        "l3",
        1..=HARDWARE_DELAY,
        "until a miss in all three levels is known and leaves the socket",
    );
    let l1_bytes = cache.memory("l1_size", 64..=64 * MIB, "a core's first level");
    let l1_ways = cache.count("l1_ways", 1..=WAYS, "associativity of the first level");
    let l2_bytes = cache.memory(
        "l2_size",
        64..=64 * MIB,
        "a core's second level, which holds what the first holds",
    );
    let l2_ways = cache.count("l2_ways", 1..=WAYS, "associativity of the second level");
    let writeback = cache.word(
        "writeback",
        [("line", WriteBack::Line), ("mask", WriteBack::Mask)],
        "what of a line goes back to memory behind the engine: all, or the bytes written",
    );
    let fill_requests = cache.count(
        "fill_requests",
        1..=8,
        "loads that the fill of a line from behind the engine has under way",
    );
    let walk_cycles = cache.cycles(
        "walk",
        0..=CYCLES,
        "from line to line, when a core's caches are written back altogether",
    );
    let private = Geometry::new(line, (l1_bytes, l1_ways), (l2_bytes, l2_ways));
    let names = [
        "cache.l1_size",
        "cache.l1_ways",
        "cache.l2_size",
        "cache.l2_ways",
    ];
    read.rule(&names, private.is_ok(), || {
        private.map_or_else(|error| error.to_string(), |_| String::new())
    });
    CacheSpec {
        l1_cycles,
        l2_cycles,
        l3,
        private: private.unwrap_or(Geometry::one_line(line)),
        writeback,
        fill_requests,
        walk_cycles,
    }
}

fn coherence(read: &mut Reader<'_>) -> CoherenceSpec {
    let mut coherence = read.section("coherence");
    CoherenceSpec {
        hop: coherence.time(
            "hop",
            0..=HARDWARE_DELAY,
            "one way between two neighbouring sockets",
        ),
        dram: coherence.time(
            "dram",
            1..=HARDWARE_DELAY,
            "from the home controller's decision to the data's departure",
        ),
        probe: coherence.time(
            "probe",
            0..=HARDWARE_DELAY,
            "a probe's lookup in one socket's caches",
        ),
        occupancy: coherence.time(
            "occupancy",
            0..=HARDWARE_DELAY,
            "from one transaction on a line until its home controller starts the line's next",
        ),
        locked: coherence.time(
            "locked",
            0..=HARDWARE_DELAY,
            "what a locked read-modify-write adds to owning its line",
        ),
        homes: coherence.optional_word(
            "homes",
            HomeSockets::First,
            [
                ("first", HomeSockets::First),
                ("lines", HomeSockets::Lines),
                ("pages", HomeSockets::Pages),
            ],
            "whose memory controller a line belongs to: the first socket's, or all sockets' in turn, by lines or by pages of 4 KiB; first if left out",
        ),
    }
}

fn uncached(read: &mut Reader<'_>) -> UncachedSpec {
    let mut uncached = read.section("uncached");
    UncachedSpec {
        outstanding_loads_per_socket: uncached.count(
            "outstanding_loads_per_socket",
            1..=DEPTH,
            "loads from behind the engine that a socket has under way",
        ),
        load_bytes: uncached.memory_power(
            "load_payload",
            8..=64,
            "what each load of a line fill carries; no more than the line. A core's own load carries 8 B, and so does a store",
        ),
        turnaround: uncached.time(
            "turnaround",
            0..=HARDWARE_DELAY,
            "from a response until the socket issues its next load",
        ),
        arbitration: uncached.word(
            "arbitration",
            [("random", Arbitration::Random), ("fifo", Arbitration::Fifo)],
            "which of a socket's waiting cores loads next",
        ),
        store_gap: uncached.time(
            "store_gap",
            0..=HARDWARE_DELAY,
            "from one posted store of a core to its next",
        ),
        coherent_stores: uncached.optional_word(
            "coherent_stores",
            true,
            [("yes", true), ("no", false)],
            "whether another node's stores probe the caches of their target; yes if left out",
        ),
    }
}

fn host(read: &mut Reader<'_>) -> HostSpec {
    let mut host = read.section("host");
    HostSpec {
        clock: host.clock("clock", "HyperTransport clock, two transfers per cycle"),
        width_bits: host.width("width", 8..=512, "width of each direction"),
        cycles: host.cycles(
            "cycles",
            0..=CYCLES,
            "in the processor's link interface, one way (Eq. 1: cycles_fixed)",
        ),
        delay: host.time(
            "delay",
            0..=HARDWARE_DELAY,
            "what scales with no clock, one way (Eq. 1: time_absolute)",
        ),
        bridge: host.time(
            "bridge",
            0..=HARDWARE_DELAY,
            "what the processor's I/O bridge adds to each packet that enters memory, in order",
        ),
        bridge_writes: host.optional_word(
            "bridge_writes",
            BridgeWrites::Serial,
            [
                ("serial", BridgeWrites::Serial),
                ("pipelined", BridgeWrites::Pipelined),
            ],
            "when a posted write lets the next packet enter the bridge: once it is complete, or once its line's home has ordered it; serial if left out",
        ),
        posted_credits: host.count(
            "posted_credits",
            1..=DEPTH,
            "posted packets the receiver buffers",
        ),
        nonposted_credits: host.count(
            "nonposted_credits",
            1..=DEPTH,
            "read requests the receiver buffers",
        ),
        response_credits: host.count(
            "response_credits",
            1..=DEPTH,
            "read responses the receiver buffers",
        ),
    }
}

fn engine(read: &mut Reader<'_>) -> EngineSpec {
    let mut engine = read.section("engine");
    EngineSpec {
        clock: engine.clock("clock", "clock of the engine and its switch"),
        ht_core_cycles: engine.cycles(
            "ht_core",
            0..=CYCLES,
            "in the engine's HyperTransport core, one way",
        ),
        network_core_cycles: engine.cycles(
            "network_core",
            0..=CYCLES,
            "between the engine and its switch, one way",
        ),
        tags: engine.count("tags", 1..=32, "remote reads a node has under way"),
    }
}

fn link(read: &mut Reader<'_>) -> LinkSpec {
    let mut link = read.section("link");
    LinkSpec {
        bytes_per_second: link.bandwidth(
            "bandwidth",
            1_000_000..=1_000_000_000_000,
            "of one network link, each direction; a packet takes whole engine cycles, at least one",
        ),
        // At least one: windows of simulated time are as long as the shortest way between nodes.
        serdes: link.delay(
            "serdes",
            1..=CYCLES,
            1..=HARDWARE_DELAY,
            "in the two transceivers of a hop: engine cycles, or a time, which no clock changes",
        ),
        wire: link.time("wire", 0..=HARDWARE_DELAY, "delay of the fibre"),
        channel_credits: link.count(
            "channel_credits",
            1..=DEPTH,
            "packets each virtual channel buffers",
        ),
        forwarding: link.optional_word(
            "forwarding",
            Forwarding::StoreAndForward,
            [
                ("store-and-forward", Forwarding::StoreAndForward),
                ("cut-through", Forwarding::CutThrough),
            ],
            "how much of a packet has come when a switch sends it on: all, or its first 8 bytes; store-and-forward if left out",
        ),
    }
}

fn os(read: &mut Reader<'_>) -> OsSpec {
    let mut os = read.section("os");
    OsSpec {
        system_call: os.time(
            "system_call",
            0..=SYSTEM_DELAY,
            "entering and leaving the kernel",
        ),
        sleep: os.time(
            "sleep",
            0..=SYSTEM_DELAY,
            "from the decision to sleep until the core runs something else",
        ),
        wake: os.time(
            "wake",
            0..=SYSTEM_DELAY,
            "the waker's cost for each thread, one after another",
        ),
        resume: os.time(
            "resume",
            0..=SYSTEM_DELAY,
            "from being woken until the thread runs",
        ),
        interrupt: os.time(
            "interrupt",
            0..=SYSTEM_DELAY,
            "until a call has made all cores of its node take part",
        ),
        start: os.optional_time(
            "start",
            Time::from_ns(15_000),
            0..=SYSTEM_DELAY,
            "starting a thread, the call apart; 15 us if left out",
        ),
        switch: os.optional_time(
            "switch",
            Time::from_ns(2_000),
            0..=SYSTEM_DELAY,
            "from when a thread gives its core away until the next runs; 2 us if left out",
        ),
        // At least something: threads would only be switched otherwise.
        quantum: os.optional_time(
            "quantum",
            Time::from_ns(4_000_000),
            1..=SYSTEM_DELAY,
            "how long a thread has its core while others want it; 4 ms if left out",
        ),
    }
}

fn fabric(read: &mut Reader<'_>) -> FabricSpec {
    let mut fabric = read.section("fabric");
    FabricSpec {
        topology: fabric.optional_word(
            "topology",
            NetworkKind::Mesh2d,
            [
                ("mesh2d", NetworkKind::Mesh2d),
                ("mesh3d", NetworkKind::Mesh3d),
                ("torus2d", NetworkKind::Torus2d),
                ("torus3d", NetworkKind::Torus3d),
                ("switch", NetworkKind::Switch),
            ],
            "where the nodes stand unless a topology is given: just large enough; mesh2d if left out",
        ),
        switch: fabric.optional_time(
            "switch",
            Time::ZERO,
            0..=HARDWARE_DELAY,
            "added to each packet by a switch outside the engines; 0 if left out",
        ),
    }
}

fn pool(read: &mut Reader<'_>) -> PoolSpec {
    let mut pool = read.section("pool");
    PoolSpec {
        devices: pool.optional_count(
            "devices",
            0,
            0..=DEPTH,
            "devices that hold all memory that nodes share, behind the last node; none if left out",
        ),
        dram: pool.optional_time(
            "dram",
            POOL_DRAM,
            0..=HARDWARE_DELAY,
            "from a device's memory controller's decision to the data's departure; 80 ns if left out",
        ),
    }
}

fn rules(spec: &ClusterSpec, read: &mut Reader<'_>) {
    let (private, shared) = (spec.node.private_bytes, spec.node.shared_bytes);
    let installed = private + shared;
    let cores = spec.node.cores();
    read.rule(
        &["node.cores_per_socket", "node.sockets"],
        cores <= NodeSpec::MOST_CORES,
        || {
            format!(
                "{} sockets of {} cores are {cores} cores per node; at most {} are simulated",
                spec.node.sockets,
                spec.node.cores_per_socket,
                NodeSpec::MOST_CORES
            )
        },
    );
    read.rule(
        &[
            "node.global_base",
            "node.private_memory",
            "node.shared_memory",
        ],
        installed <= spec.node.global_base,
        || {
            format!(
                "{} lies inside a node's own RAM: {} private and {} shared",
                Dimension::Memory.write(spec.node.global_base),
                Dimension::Memory.write(private),
                Dimension::Memory.write(shared),
            )
        },
    );
    read.rule(
        &["node.private_memory"],
        private.is_multiple_of(PAGE),
        || {
            format!(
                "{} is not a multiple of {}: shared memory begins behind it",
                Dimension::Memory.write(private),
                Dimension::Memory.write(PAGE),
            )
        },
    );
    read.rule(
        &["pool.dram"],
        spec.pool.devices > 0 || spec.pool.dram == POOL_DRAM,
        || "there is no device that has it: pool.devices is 0".to_owned(),
    );
    let (load, line) = (spec.uncached.load_bytes, spec.cache.private.line().bytes());
    read.rule(
        &["uncached.load_payload", "cache.line"],
        load <= line,
        || {
            format!(
                "{} is more than a line: it must be 8 B to {}",
                Dimension::Memory.write(load),
                Dimension::Memory.write(line),
            )
        },
    );
    let longest = spec.longest_packet_bytes();
    let passed = longest.saturating_mul(spec.engine.clock.hz());
    read.rule(
        &["link.bandwidth", "engine.clock", "uncached.load_payload"],
        spec.link.bytes_per_second <= passed,
        || {
            format!(
                "the engine passes one packet per cycle, {longest} bytes at most: at {} no more than {} on a link",
                Dimension::Frequency.write(spec.engine.clock.hz()),
                Dimension::Bandwidth.write(passed),
            )
        },
    );
}

#[cfg(test)]
mod tests {
    use crate::machine::{ValueDomain, declared};

    /// Nodes that the global address space has room for, independent of the limits.
    const NODES: u64 = 1 << 20;

    #[test]
    fn the_largest_allowed_address_space_fits_64_bits() {
        let declared = declared("sme-cluster").unwrap();
        let most = |key: &str| {
            let constant = declared
                .iter()
                .find(|constant| constant.key == key)
                .unwrap();
            match &constant.domain {
                ValueDomain::Quantity(limits) => limits.most,
                ValueDomain::Words(_) => unreachable!("{key} is an amount"),
            }
        };
        let all = most("shared_memory").checked_mul(NODES);
        assert!(
            all.and_then(|all| all.checked_add(most("global_base")))
                .is_some()
        );
    }
}
