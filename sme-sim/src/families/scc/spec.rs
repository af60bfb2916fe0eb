//! The constants of the family `scc`.

use super::islands::{self, Settings};
use super::layout::{Chip, SEGMENT};
use super::power::{self, ChipPower};
use crate::machine::processes;
use crate::machine::reader::Reader;
use crate::machine::shape::Software;
use crate::machine::system::delays;
use crate::parts::cache::{Geometry, GeometryError, Level};
use crate::parts::line::Bytes;
use crate::parts::line_size::LineSize;
use crate::parts::os::Delays;
use crate::time::Time;

/// A chip, by its constants. Times that are counted in cycles are those of the clock that the
/// machine file counts them in.
#[derive(Clone, Debug, PartialEq)]
pub struct SccSpec {
    /// Tiles, cores and controllers.
    pub chip: Chip,
    /// The length of a cache line.
    pub line: LineSize,
    /// A core's two levels of caches.
    pub caches: Geometry,
    /// Tagged lines are in the first level only.
    pub tagged: Geometry,
    /// A program's own instructions around one memory operation.
    pub operation: Time,
    /// One operation on registers, on the average.
    pub arithmetic: Time,
    /// A copying loop's own instructions for each 32 bits.
    pub copy: Time,
    /// Reading the timestamp counter.
    pub timestamp: Time,
    /// CL1INVMB.
    pub invalidate: Time,
    /// Storing a line into the write-combine buffer, in pieces of 32 bits.
    pub gather: Time,
    /// A hit in the first level, and in the second.
    pub hits: (Time, Time),
    /// WBINVD, which writes back the first level only.
    pub wbinvd: Time,
    /// From one router to the next.
    pub hop: Time,
    /// One flit over a link.
    pub flit: Time,
    /// Bytes of a flit.
    pub flit_bytes: u64,
    /// An access to the own tile's buffer, and what one to another tile's takes without its hops.
    pub buffer: (Time, Time),
    /// The time for which an access occupies a buffer.
    pub buffer_busy: Time,
    /// An access to memory without its hops, and what a whole line takes longer.
    pub memory: (Time, Time),
    /// The part of it that passes at the controller.
    pub at_controller: Time,
    /// The time for which an access occupies a controller.
    pub controller_busy: Time,
    /// A message library's own work.
    pub software: Software,
    /// Reading the own tile's test-and-set register.
    pub register: Time,
    /// From when an interrupt is at its core until a program has taken it.
    pub interrupt: Time,
    /// The costs of the operating system.
    pub system: Delays,
    /// Clocks and voltages.
    pub settings: Settings,
    /// The power of its parts.
    pub power: ChipPower,
}

/// In cycles: the longest of what hardware does.
const CYCLES: u64 = 1_000_000;

/// Reads or lists the constants of a machine.
pub(crate) fn scc(read: &mut Reader<'_>) -> SccSpec {
    let hardware = 0..=CYCLES;
    let mut section = read.section("chip");
    let columns = section.count("columns", 2..=6, "columns of tiles, an even number");
    let rows = section.count("rows", 2..=4, "rows of tiles, an even number");
    let buffer_bytes = section.memory_power(
        "buffer",
        4 << 10..=64 << 10,
        "message passing buffer of each core: half its tile's",
    );
    read.rule(&["chip.columns", "chip.rows"], columns.is_multiple_of(2) && rows.is_multiple_of(2), || {
        "columns and rows must be even numbers: each quarter of the chip has a memory controller".to_owned()
    });
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
    let copy = cycles(
        "copy",
        "a copying loop's own instructions for each 32 bits, beside its loads and stores",
    );
    let timestamp = cycles(
        "timestamp",
        "reading the timestamp counter (RDTSC), its operation apart",
    );
    let invalidate = cycles(
        "invalidate",
        "dropping all tagged lines (CL1INVMB), its operation apart",
    );
    let gather = cycles(
        "gather",
        "eight stores of 32 bits into the write-combine buffer, a line",
    );
    let register = cycles(
        "register",
        "reading the test-and-set register of the own tile, its operation apart",
    );
    let interrupt = cycles(
        "interrupt",
        "from when an interrupt is at its core until a program has taken it",
    );
    let mut section = read.section("cache");
    let line = section.line_size("line", "a cache line");
    let l1 = (
        section.memory(
            "l1_size",
            1 << 10..=1 << 20,
            "first level, data, of each core",
        ),
        section.count("l1_ways", 1..=32, "its ways"),
    );
    let l2 = (
        section.memory("l2_size", 1 << 10..=1 << 24, "second level of each core"),
        section.count("l2_ways", 1..=32, "its ways"),
    );
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let hits = (
        cycles("l1", "a hit in the first level"),
        cycles("l2", "a hit in the second level"),
    );
    let wbinvd = cycles(
        "wbinvd",
        "writing back and dropping the first level (WBINVD)",
    );
    let (caches, tagged) = (Geometry::new(line, l1, l2), Geometry::new(line, l1, l1));
    let message =
        |geometry: &Result<Geometry, GeometryError>| geometry.err().map(|error| error.to_string());
    let (wrong, wrong_tagged) = (message(&caches), message(&tagged));
    read.rule(
        &["cache.l1_size", "cache.l1_ways"],
        wrong_tagged.is_none(),
        || wrong_tagged.unwrap_or_default(),
    );
    read.rule(
        &["cache.l2_size", "cache.l1_size", "cache.l2_ways"],
        wrong.is_none(),
        || wrong.unwrap_or_default(),
    );
    let mut section = read.section("mesh");
    let mesh = section.clock("clock", "clock of routers and links");
    let hop = mesh.span(section.cycles("hop", 1..=1000, "from one router to the next"));
    let flit = mesh.span(section.cycles("flit", 1..=1000, "one flit over a link"));
    let flit_bytes = section.memory_power("flit_bytes", 1..=64, "bytes of a flit");
    let mut section = read.section("buffer");
    let mut cycles = |key, meaning| core.span(section.cycles(key, 1..=CYCLES, meaning));
    let buffer = (
        cycles(
            "own",
            "an access to the own tile's buffer, its operation apart",
        ),
        cycles(
            "remote",
            "an access to another tile's buffer or registers without its hops, its operation apart",
        ),
    );
    let buffer_busy = mesh.span(section.cycles(
        "busy",
        hardware.clone(),
        "how long an access occupies a buffer",
    ));
    let mut section = read.section("memory");
    let clock = section.clock(
        "clock",
        "clock of the memory controllers: half the rate of transfers",
    );
    let own = core.span(section.cycles(
        "core",
        1..=CYCLES,
        "an access to memory, the part in the core, its operation apart",
    ));
    let mut cycles = |key, meaning| clock.span(section.cycles(key, hardware.clone(), meaning));
    let at_controller = cycles("access", "the same, the part at the controller");
    let of_line = cycles("line", "what a whole line takes longer than a word");
    let controller_busy = cycles("busy", "how long an access occupies a controller");
    let mut section = read.section("library");
    let mut cycles = |key, meaning| core.span(section.cycles(key, hardware.clone(), meaning));
    let software = Software {
        call: cycles("call", "entering and leaving an MPI call"),
        clock: timestamp + operation,
        request: cycles(
            "request",
            "making a request of a send or a receive, or a packet of its own, and queueing it",
        ),
        packet: cycles("packet", "handling a packet that has arrived"),
        compare: cycles("compare", "comparing one entry of a queue with a message"),
        combine: cycles(
            "combine",
            "combining one word of two operands of a reduction",
        ),
        group: cycles("group", "translating a group to the ranks of a window"),
        target: cycles(
            "target",
            "one turn of a loop over the targets or the origins of an epoch",
        ),
        ..Software::default()
    };
    let software = processes::required(&mut read.section("process"), software);
    let system = delays(&mut read.section("os"));
    let settings = islands::read(read, core);
    let power = power::read(read, (columns * rows, mesh.hz()));
    SccSpec {
        chip: Chip::new(columns, rows, buffer_bytes),
        line,
        caches: caches.unwrap_or(Geometry::one_line(line)),
        tagged: tagged.unwrap_or(Geometry::one_line(line)),
        operation,
        arithmetic,
        copy,
        timestamp,
        invalidate,
        gather,
        hits,
        wbinvd,
        hop,
        flit,
        flit_bytes,
        buffer,
        buffer_busy,
        memory: (own + at_controller, of_line),
        at_controller,
        controller_busy,
        software,
        register,
        interrupt,
        system,
        settings,
        power,
    }
}

impl SccSpec {
    /// Bytes of each core's shared memory: a segment of the address space.
    pub const SHARED_BYTES: u64 = SEGMENT;

    /// The constants of a core whose tile has that divider, where they are apart from the programs'
    /// own: all that is counted in its cycles.
    pub(super) fn at_divider(&self, divider: u32) -> Self {
        let at = |span: Time| span.scaled(divider, self.settings.divider);
        let in_core = self.memory.0 - self.at_controller;
        Self {
            operation: at(self.operation),
            arithmetic: at(self.arithmetic),
            copy: at(self.copy),
            timestamp: at(self.timestamp),
            invalidate: at(self.invalidate),
            gather: at(self.gather),
            hits: (at(self.hits.0), at(self.hits.1)),
            wbinvd: at(self.wbinvd),
            buffer: (at(self.buffer.0), at(self.buffer.1)),
            memory: (at(in_core) + self.at_controller, self.memory.1),
            register: at(self.register),
            interrupt: at(self.interrupt),
            system: self.system.scaled(divider, self.settings.divider),
            ..self.clone()
        }
    }

    /// The time of `count` accesses of 32 bits one after the other, of which each takes `access`; a
    /// program's own instructions around the last are not in it.
    pub(super) fn repeated(&self, access: Time, count: u64) -> Time {
        access.times(count) + self.operation.times(count - 1)
    }

    /// The time of storing `bytes` into the write-combine buffer, with the program's own
    /// instructions.
    pub(super) fn gathering(&self, bytes: Bytes) -> Time {
        let share = if bytes.is_whole_word() { 4 } else { 8 };
        Time::from_ps(self.gather.as_ps() / share)
    }

    /// The time of a load by so many accesses that hits the caches: the ones behind the first hit
    /// the first level.
    pub(super) fn load_hit(&self, level: Level, accesses: u32) -> Time {
        let further = self.operation + self.hit(Level::First);
        self.hit(level) + further.times(u64::from(accesses) - 1)
    }

    /// The same of a store, for which the first level makes no room.
    pub(super) fn store_hit(&self, level: Level, accesses: u32) -> Time {
        self.repeated(self.hit(level), accesses.into())
    }

    fn hit(&self, level: Level) -> Time {
        let (first, second) = self.hits;
        match level {
            Level::First => first,
            Level::Second => second,
        }
    }

    /// Flits of a packet with so many bytes of data: one more for its header.
    pub fn flits(&self, bytes: u64) -> u64 {
        1 + bytes.div_ceil(self.flit_bytes)
    }
}

/// The accesses that `bytes` take: a word is two of 32 bits.
pub(super) fn accesses(bytes: Bytes) -> u32 {
    if bytes.is_whole_word() { 2 } else { 1 }
}
