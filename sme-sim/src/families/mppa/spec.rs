//! The constants of the family `mppa`.

use super::layout::Layout;
use super::links::Pace;
use super::store::Serving;
use crate::machine::reader::Reader;
use crate::machine::shape::Software;
use crate::machine::system::delays;
use crate::parts::cache::{Geometry, GeometryError};
use crate::parts::line_size::LineSize;
use crate::parts::os::Delays;
use crate::time::Time;

/// A chip, by its constants. Times that are counted in cycles are those of the clock that the
/// machine file counts them in.
#[derive(Clone, Debug, PartialEq)]
pub struct MppaSpec {
    /// The places where clusters and subsystems stand.
    pub layout: Layout,
    /// Cores of a cluster, with its resource manager.
    pub cores: u32,
    /// A program's own instructions around one memory operation.
    pub operation: Time,
    /// One operation on registers, on the average.
    pub arithmetic: Time,
    /// A copying loop's own time for each word, when it hits the cache.
    pub copy: Time,
    /// The length of a cache line.
    pub line: LineSize,
    /// A core's cache.
    pub cache: Geometry,
    /// A load that hits it.
    pub hit: Time,
    /// Dropping one line, and all.
    pub drops: (Time, Time),
    /// A cluster's memory, and that behind a subsystem.
    pub(super) memory: (Serving, Serving),
    /// Both networks.
    pub(super) pace: Pace,
    /// The rest of the data network.
    pub data: DataNetwork,
    /// Flits of a message of the control network.
    pub control_flits: u64,
    /// A message library's own work.
    pub software: Software,
    /// The costs of the operating system.
    pub system: Delays,
}

/// The constants of the data network's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataNetwork {
    /// Bytes of a flit.
    pub flit_bytes: u64,
    /// The most bytes of data of a packet.
    pub packet_bytes: u64,
    /// Flits of its header.
    pub header_flits: u64,
    /// Receive tags of an interface.
    pub tags: u32,
    /// Channels of an interface's DMA engine.
    pub channels: u32,
    /// Bytes that a channel reads from memory at once.
    pub in_flight_bytes: u64,
    /// The time in which an interface takes a word from a core.
    pub push: Time,
}

/// In cycles: the longest of what hardware does.
const CYCLES: u64 = 1_000_000;

/// Reads or lists the constants of a machine.
pub(crate) fn mppa(read: &mut Reader<'_>) -> MppaSpec {
    let hardware = 0..=CYCLES;
    let mut section = read.section("chip");
    let columns = section.count("columns", 2..=4, "columns of clusters");
    let rows = section.count("rows", 2..=4, "rows of clusters");
    let cores = section.count(
        "cores",
        2..=17,
        "cores of a cluster, of which the last is its resource manager",
    );
    let mut section = read.section("core");
    let core = section.clock("clock", "clock of all cores");
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let operation = cycles(
        "operation",
        "what a program's own instructions take around one memory operation",
    );
    let arithmetic = cycles(
        "arithmetic",
        "one arithmetic operation on registers, on the average",
    );
    let copy = section.time(
        "copy",
        0..=1_000_000_000,
        "what a copying loop takes for each 8 bytes, when it hits the cache",
    );
    let mut section = read.section("cache");
    let line = section.line_size("line", "a cache line");
    let size = section.memory("size", 1 << 10..=1 << 20, "data cache of each core");
    let ways = section.count("ways", 1..=32, "its ways");
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let hit = cycles("hit", "a load that hits it");
    let drops = (
        cycles("drop_line", "dropping one line, its operation apart"),
        cycles("drop_all", "dropping all lines"),
    );
    let cache = Geometry::new(line, (size, ways), (size, ways));
    let wrong = cache.as_ref().err().map(GeometryError::to_string);
    read.rule(&["cache.size", "cache.ways"], wrong.is_none(), || {
        wrong.unwrap_or_default()
    });
    let mut section = read.section("memory");
    let bytes = section.memory("size", 64 << 10..=1 << 30, "memory of a cluster");
    let banks = section.count("banks", 1..=64, "its banks");
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let own = Serving {
        bytes,
        banks,
        access: cycles(
            "access",
            "a word, from when it is asked for until it is there",
        ),
        busy: cycles("busy", "how long a word occupies its bank"),
    };
    let mut section = read.section("ddr");
    let clock = section.clock("clock", "clock of a subsystem's memory controller");
    let bytes = section.memory("size", 1 << 20..=1 << 39, "memory behind a subsystem");
    let mut cycles = |key, meaning| clock.span(section.cycles(key, hardware.clone(), meaning));
    let far = Serving {
        bytes,
        banks: 1,
        access: cycles(
            "access",
            "a word of it, from when it is asked for until it is there",
        ),
        busy: section.time("busy", 0..=1_000_000_000, "how long a word occupies it"),
    };
    let mut section = read.section("noc");
    let clock = section.clock("clock", "clock of routers and links");
    let mut cycles = |key, meaning| clock.span(section.cycles(key, 1..=1000, meaning));
    let (router, link) = (
        cycles(
            "router",
            "a router, from when a flit is there until it leaves",
        ),
        cycles("link", "from one router to the next"),
    );
    let flit = cycles("flit", "one flit over a link");
    let buffer_flits = u64::from(section.count(
        "buffer",
        1..=4096,
        "flits for which the buffer behind a link has room",
    ));
    let data = DataNetwork {
        flit_bytes: section.memory_power("flit_bytes", 1..=64, "bytes of a flit"),
        packet_bytes: section.memory_power("packet_bytes", 8..=64, "the most data of a packet"),
        header_flits: section
            .count("header", 1..=16, "flits of its header")
            .into(),
        tags: section.count("tags", 4..=4096, "receive tags of an interface"),
        channels: section.count("channels", 1..=64, "channels of its DMA engine"),
        in_flight_bytes: section.memory_power(
            "in_flight",
            8..=1 << 20,
            "what a channel reads from memory at once",
        ),
        push: section.time(
            "push",
            1..=1_000_000_000,
            "in which an interface takes 8 bytes from a core",
        ),
    };
    let control_flits = section
        .count("control", 1..=16, "flits of a control message")
        .into();
    let most = data.flits(data.packet_bytes).max(control_flits);
    read.rule(
        &[
            "noc.buffer",
            "noc.packet_bytes",
            "noc.flit_bytes",
            "noc.header",
            "noc.control",
        ],
        most <= buffer_flits,
        || format!("a packet has {most} flits, for which the buffer behind a link must have room"),
    );
    let pace = Pace {
        router,
        link,
        flit,
        buffer_flits,
    };
    let mut section = read.section("library");
    let subsystem_percent = section.count(
        "subsystem_percent",
        1..=100_000,
        "what the same work takes an I/O subsystem, in hundredths",
    );
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let software = Software {
        post: cycles(
            "post",
            "putting a control message together and handing it to a network",
        ),
        callback: cycles(
            "callback",
            "entering the handler of a control message that has come, and leaving it",
        ),
        open: cycles("open", "allocating a receive tag and configuring it"),
        find: cycles(
            "find",
            "finding the place of a message, or the message of a receive, in the library's lists",
        ),
        keep: cycles(
            "keep",
            "taking a buffer for data that are sent later, and noting them",
        ),
        setup: cycles("setup", "setting a transfer up"),
        completion: cycles("completion", "seeing that a transfer is over"),
        subsystem_percent,
        ..Software::default()
    };
    let system = delays(&mut read.section("os"));
    MppaSpec {
        layout: Layout::new(columns, rows),
        cores,
        operation,
        arithmetic,
        copy,
        line,
        cache: cache.unwrap_or(Geometry::one_line(line)),
        hit,
        drops,
        memory: (own, far),
        pace,
        data,
        control_flits,
        software,
        system,
    }
}

impl DataNetwork {
    /// Flits of a packet with so many bytes of data.
    pub fn flits(&self, bytes: u64) -> u64 {
        self.header_flits + bytes.div_ceil(self.flit_bytes)
    }
}
