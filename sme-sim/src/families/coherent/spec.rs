//! The constants of the family `coherent`.

use crate::machine::quantity::Delay;
use crate::machine::reader::{Reader, SectionReader};
use crate::machine::shape::Software;
use crate::machine::system::{SYSTEM_DELAY, delays};
use crate::parts::cache::{Geometry, GeometryError};
use crate::parts::coherence::Protocol;
use crate::parts::line_size::LineSize;
use crate::parts::os::Delays;
use crate::time::{Clock, Time};

/// A cache-coherent multiprocessor.
#[derive(Clone, Debug, PartialEq)]
pub struct CoherentSpec {
    /// Sockets, each with memory of its own.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Neighbouring cores that share a second-level cache.
    pub module: u32,
    /// Bytes of each socket's memory that programs share; a power of two.
    pub shared_bytes: u64,
    /// Words of each socket that stand for test-and-set registers.
    pub registers: u32,
    /// A program's own instructions around one memory operation.
    pub operation: Time,
    /// One operation on registers, on the average.
    pub arithmetic: Time,
    /// The part of an atomic operation behind the access to its line.
    pub atomic: Time,
    /// Times for which a line occupies a core's port to its caches.
    pub port: Port,
    /// Lines that the first level can wait for.
    pub fill_buffers: u32,
    /// Lines that the second level can wait for.
    pub queue: u32,
    /// Lines that the prefetcher runs ahead of ascending loads.
    pub ahead: u32,
    /// The first level of a core.
    pub first: Geometry,
    /// The second level of a module.
    pub second: Geometry,
    /// The third level of a socket.
    pub third: Geometry,
    /// Whether the third level is inclusive: it holds all that the others hold, and knows which
    /// cores may; otherwise it holds what they had no room for.
    pub is_inclusive: bool,
    /// A load that the second level serves.
    pub hits_second: Time,
    /// A load that the third level serves.
    pub hits_third: Time,
    /// The protocol between sockets.
    pub protocol: Protocol,
    /// Asking another module.
    pub snoop: Snoop,
    /// From one socket to another, one way.
    pub hop: Time,
    /// A line over a link between sockets.
    pub link_line: Time,
    /// The home's work on a line behind the answer of another socket that had modified it.
    pub completion: Time,
    /// A line from memory, behind the third level.
    pub memory: Time,
    /// The time for which a line occupies a socket's memory.
    pub memory_line: Time,
    /// From when a non-temporal store has left its core until memory has accepted it.
    pub accept: Time,
    /// One `clflush`.
    pub flush: Time,
    /// A message library's own work.
    pub software: Software,
    /// The costs of the operating system.
    pub system: Delays,
    /// Walking through all caches of a socket, the call apart.
    pub write_back: Time,
}

/// Times for which a line occupies a core's port to its caches; they do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Loading all of it.
    pub load: Time,
    /// Storing all of it.
    pub store: Time,
    /// Moving it from one level to the next, in or out.
    pub fill: Time,
    /// The time that a load takes besides which misses the first level.
    pub miss: Time,
}

/// Asking another module of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snoop {
    /// The time by which an access is longer that asks one whose copy is clean, or takes it away.
    pub clean: Time,
    /// The same of one whose copy is newer than memory, and comes along.
    pub dirty: Time,
    /// The time for which the module is busy with a dirty line of its first level.
    pub busy_first: Time,
    /// The same of a dirty line of its second level.
    pub busy_second: Time,
    /// The same of a clean line, or of one that has gone.
    pub busy_clean: Time,
    /// The write-back of an owned copy before a store to it asks the others.
    pub owned: Time,
}

/// In cycles: the longest of what a core does.
const CYCLES: u64 = 1_000_000;

/// In picoseconds: the longest of what hardware does.
const HARDWARE: u64 = 1_000_000_000;

/// Reads or lists the constants of a machine.
pub(crate) fn coherent(read: &mut Reader<'_>) -> CoherentSpec {
    let mut section = read.section("machine");
    let sockets = section.count("sockets", 1..=16, "sockets, each with memory of its own");
    let cores = section.count("cores", 1..=16, "cores of a socket");
    let module = section.count(
        "module",
        1..=4,
        "neighbouring cores that share a second-level cache",
    );
    let shared_bytes = section.memory_power(
        "shared_memory",
        4 << 10..=1 << 40,
        "memory of each socket that programs share",
    );
    let registers = section.count(
        "registers",
        0..=1024,
        "words of each socket that stand for test-and-set registers",
    );
    read.rule(
        &["machine.cores", "machine.module"],
        cores.is_multiple_of(module),
        || format!("{cores} cores are not modules of {module}"),
    );
    let mut section = read.section("core");
    let core = section.clock("clock", "clock of cores and caches");
    let operation = cycles(
        &mut section,
        core,
        "operation",
        "what a program's own instructions take around one memory operation",
    );
    let arithmetic = cycles(
        &mut section,
        core,
        "arithmetic",
        "one arithmetic operation on registers, on the average",
    );
    let atomic = cycles(
        &mut section,
        core,
        "atomic",
        "an atomic operation, the access to its line apart",
    );
    let port = Port {
        load: tenth(
            &mut section,
            core,
            "ten_loads",
            "the port of a core: ten lines loaded",
        ),
        store: tenth(
            &mut section,
            core,
            "ten_stores",
            "the port of a core: ten lines stored",
        ),
        fill: tenth(
            &mut section,
            core,
            "ten_fills",
            "the port of a core: ten lines moved from one level to the next, in or out",
        ),
        miss: tenth(
            &mut section,
            core,
            "ten_misses",
            "what ten loads that miss the first level take besides",
        ),
    };
    let fill_buffers = section.count(
        "fill_buffers",
        1..=256,
        "lines that the first level can wait for",
    );
    let queue = section.count("queue", 1..=256, "lines that the second level can wait for");
    let ahead = section.count(
        "ahead",
        0..=64,
        "lines that the prefetcher runs ahead of ascending loads, within 4 KiB",
    );
    let mut section = read.section("cache");
    let first = size(
        &mut section,
        ("l1_size", "first level, data, of each core"),
        ("l1_ways", "its ways"),
    );
    let second = size(
        &mut section,
        ("l2_size", "second level of each module"),
        ("l2_ways", "its ways"),
    );
    let third = size(
        &mut section,
        ("l3_size", "third level of each socket"),
        ("l3_ways", "its ways"),
    );
    let is_inclusive = section.word(
        "l3",
        [("inclusive", true), ("exclusive", false)],
        "whether the third level holds all that the others hold, or what they had no room for",
    );
    let hits_second = cycles(
        &mut section,
        core,
        "l2_hit",
        "a load that the second level serves",
    );
    let hits_third = cycles(
        &mut section,
        core,
        "l3_hit",
        "a load that the third level serves",
    );
    let inner = first;
    let first = geometry(
        read,
        &["cache.l1_size", "cache.l1_ways"],
        Geometry::single(LineSize::B64, first, "first"),
    );
    let second = geometry(
        read,
        &["cache.l2_size", "cache.l2_ways", "cache.l1_size"],
        Geometry::new(LineSize::B64, inner, second),
    );
    let third = geometry(
        read,
        &["cache.l3_size", "cache.l3_ways"],
        Geometry::single(LineSize::B64, third, "third"),
    );
    let mut section = read.section("coherence");
    let protocol = section.word(
        "protocol",
        [
            ("MESI", Protocol::Mesi),
            ("MESIF", Protocol::Mesif),
            ("MOESI", Protocol::Moesi),
        ],
        "the protocol between sockets; within one it is the same without F",
    );
    let snoop = Snoop {
        clean: delay(
            &mut section,
            core,
            "snoop_clean",
            "what an access takes longer that asks one other module of the socket, or takes a clean copy away",
        ),
        dirty: delay(
            &mut section,
            core,
            "snoop_dirty",
            "the same of a copy that is newer than memory",
        ),
        busy_first: tenth(
            &mut section,
            core,
            "ten_snoops_l1",
            "how long a module is busy with ten dirty lines of its first level",
        ),
        busy_second: tenth(
            &mut section,
            core,
            "ten_snoops_l2",
            "the same of its second level",
        ),
        busy_clean: tenth(
            &mut section,
            core,
            "ten_snoops_clean",
            "the same of clean lines",
        ),
        owned: section.time(
            "owned",
            0..=HARDWARE,
            "writing an owned copy back before a store to it asks the others",
        ),
    };
    let mut section = read.section("link");
    let hop = section.time("hop", 0..=HARDWARE, "from one socket to another, one way");
    let link_line = section.time("line", 0..=HARDWARE, "how long a line occupies a link");
    let completion = section.time(
        "completion",
        0..=HARDWARE,
        "what the home of a line does behind the answer of another socket that had modified it",
    );
    let mut section = read.section("memory");
    let memory = section.time(
        "latency",
        1..=HARDWARE,
        "a line from memory, behind the third level",
    );
    let memory_line = section.time(
        "line",
        0..=HARDWARE,
        "how long a line occupies a socket's memory",
    );
    let accept = section.time(
        "accept",
        0..=HARDWARE,
        "until memory has accepted a non-temporal store",
    );
    let flush = section.time("flush", 0..=HARDWARE, "one clflush");
    let software = Software {
        clock: operation,
        ..software(&mut read.section("library"), core)
    };
    let mut os = read.section("os");
    let system = delays(&mut os);
    let write_back = os.time(
        "write_back",
        0..=SYSTEM_DELAY,
        "walking through all caches of a socket, the call apart",
    );
    CoherentSpec {
        sockets,
        cores,
        module,
        shared_bytes,
        registers,
        operation,
        arithmetic,
        atomic,
        port,
        fill_buffers,
        queue,
        ahead,
        first,
        second,
        third,
        is_inclusive,
        hits_second,
        hits_third,
        protocol,
        snoop,
        hop,
        link_line,
        completion,
        memory,
        memory_line,
        accept,
        flush,
        software,
        system,
        write_back,
    }
}

impl CoherentSpec {
    /// The protocol among the modules of a socket.
    pub fn within(&self) -> Protocol {
        match self.protocol {
            Protocol::Moesi => Protocol::Moesi,
            Protocol::Mesi | Protocol::Mesif => Protocol::Mesi,
        }
    }
}

fn cycles(
    section: &mut SectionReader<'_, '_>,
    clock: Clock,
    key: &'static str,
    meaning: &'static str,
) -> Time {
    clock.span(section.cycles(key, 0..=CYCLES, meaning))
}

/// The tenth part of so many cycles.
fn tenth(
    section: &mut SectionReader<'_, '_>,
    clock: Clock,
    key: &'static str,
    meaning: &'static str,
) -> Time {
    Time::from_ps(cycles(section, clock, key, meaning).as_ps() / 10)
}

fn delay(
    section: &mut SectionReader<'_, '_>,
    clock: Clock,
    key: &'static str,
    meaning: &'static str,
) -> Time {
    match section.delay(key, 0..=CYCLES, 0..=HARDWARE, meaning) {
        Delay::Cycles(cycles) => clock.span(cycles),
        Delay::Time(time) => time,
    }
}

/// Bytes and ways of a level.
type Size = (u64, u32);

fn size(
    section: &mut SectionReader<'_, '_>,
    (bytes, of): (&'static str, &'static str),
    (ways, theirs): (&'static str, &'static str),
) -> Size {
    (
        section.memory(bytes, 1 << 10..=1 << 28, of),
        section.count(ways, 1..=64, theirs),
    )
}

/// A level as the outer one of two, or as both.
fn geometry(
    read: &mut Reader<'_>,
    names: &[&str],
    geometry: Result<Geometry, GeometryError>,
) -> Geometry {
    read.rule(names, geometry.is_ok(), || {
        let error = geometry.as_ref().err();
        error.map(GeometryError::to_string).unwrap_or_default()
    });
    geometry.unwrap_or(Geometry::one_line(LineSize::B64))
}

fn software(section: &mut SectionReader<'_, '_>, core: Clock) -> Software {
    let mut cost = |key, meaning| cycles(section, core, key, meaning);
    Software {
        call: cost("call", "entering and leaving an MPI call"),
        request: cost(
            "request",
            "making a request of a send or a receive, or a packet of its own, and queueing it",
        ),
        packet: cost("packet", "handling a packet that has arrived"),
        compare: cost("compare", "comparing one entry of a queue with a message"),
        combine: cost(
            "combine",
            "combining one word of two operands of a reduction",
        ),
        group: cost("group", "translating a group to the ranks of a window"),
        ..Software::default()
    }
}
