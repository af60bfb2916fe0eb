//! What was measured on a real Intel SCC, beside the machine: accesses from tile (0, 0) to the message
//! passing buffer of each tile, and to memory behind each controller.
//!
//! An access is repeated by one core on an otherwise idle chip. Times are in microseconds, figures in
//! cycles of the core's clock.

use std::fmt;
use std::sync::Arc;

use sme_memory::{Memory, Place, Route};
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};

use super::{Estimator, Figures, Fit, On, Paper};
use crate::validate::measure::{self, Simulate};

/// The family of the machines whose figures these are.
pub const FAMILY: &str = "scc";

/// How often an access is repeated.
const REPEATS: u32 = 64;

/// Tiles of a row.
const COLUMNS: u32 = 6;

/// The span of an experiment's accesses.
const ACCESSES: Span = Span::new("accesses", 0);

/// An access as the measurements name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads 32 bits from a buffer.
    BufferRead,
    /// Writes a line to a buffer, through the write-combine buffer.
    BufferWrite,
    /// Reads 32 bits from memory, past the caches.
    MemoryRead,
    /// Writes a line to memory, past the caches: eight stores of 32 bits.
    MemoryWrite,
    /// Writes a line to memory, tagged.
    MemoryWriteTagged,
}

const ACCESS_NAMES: [(Access, &str); 5] = [
    (Access::BufferRead, "buffer_read"),
    (Access::BufferWrite, "buffer_write"),
    (Access::MemoryRead, "memory_read"),
    (Access::MemoryWrite, "memory_write"),
    (Access::MemoryWriteTagged, "memory_write_tagged"),
];

/// One experiment: an access to tile (x, y), or to memory behind the controller there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    access: Access,
    x: u32,
    y: u32,
}

impl Point {
    /// The experiment of figure `id`, such as `scc.buffer_read.3_1`.
    fn of(id: &str) -> Option<Self> {
        let (name, at) = id.strip_prefix("scc.")?.split_once('.')?;
        let (access, _) = *ACCESS_NAMES.iter().find(|(_, known)| *known == name)?;
        let (x, y) = at.split_once('_')?;
        let (x, y) = (x.parse().ok()?, y.parse().ok()?);
        Some(Self { access, x, y })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ACCESS_NAMES
            .iter()
            .find(|(access, _)| *access == self.access);
        let name = name.map_or("", |(_, name)| name);
        write!(f, "{name} at ({}, {})", self.x, self.y)
    }
}

impl measure::Point for Point {
    fn cost(&self) -> u64 {
        1
    }

    fn is_program(&self) -> bool {
        false
    }

    fn is_large(&self) -> bool {
        false
    }
}

/// The experiments on a chip.
pub struct Chip {
    machine: Arc<Machine>,
    /// Cycles of a core a microsecond.
    megahertz: f64,
}

impl Chip {
    /// On `machine`, if that is an SCC.
    pub fn new(machine: Arc<Machine>) -> Option<Self> {
        let clock = machine
            .constants()
            .iter()
            .find(|constant| constant.name() == "core.clock")?;
        let megahertz = clock.amount? as f64 / 1e6;
        (machine.family_name() == FAMILY).then_some(Self { machine, megahertz })
    }

    /// The figures on this chip, as a paper among others.
    pub fn paper(&self) -> Box<dyn Paper + '_> {
        let fitted = self.machine.fitted();
        let fitted = fitted.map(|constant| Fit::constant(&constant.name(), &constant.fitted_to));
        let megahertz = self.megahertz;
        Box::new(Figures {
            on: ("scc", On::new(&self.machine)),
            estimator: Box::new(move |id| Some(Estimator::single(Point::of(id)?, megahertz))),
            simulate: self,
            fitted: fitted.collect(),
            inputs: Vec::new(),
            programs: true,
            large: true,
        })
    }
}

impl Simulate<Point> for Chip {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        let shape = self.machine.shape();
        let node = 2 * (COLUMNS * point.y + point.x);
        let setup = Setup::new(shape, 1, 1);
        let point = *point;
        // Behind the buffers.
        let offset = match point.access {
            Access::BufferRead | Access::BufferWrite => 0,
            _ => shape.shared_bytes / 2,
        };
        let place = Place { node, offset };
        let program = move |memory: ThreadMemory, _, _| async move {
            memory.begin(ACCESSES).await;
            for _ in 0..REPEATS {
                once(&memory, point.access, place).await;
            }
            memory.end(ACCESSES).await;
        };
        let mut machine = self
            .machine
            .build(setup, program)
            .map_err(|error| error.to_string())?;
        machine
            .run(1, |_| {})
            .map_err(|failure| failure.to_string())?;
        let spans = machine.spans().called(ACCESSES.name);
        let SpanTimes {
            first_begin,
            last_end,
            ..
        } = spans.first().copied().unwrap_or(SpanTimes::NONE);
        Ok(last_end.since(first_begin).as_us() / f64::from(REPEATS))
    }
}

/// Performs one access.
async fn once(memory: &ThreadMemory, access: Access, place: Place) {
    match access {
        Access::BufferRead | Access::MemoryRead => {
            memory.read(memory.flag(place, Route::Global)).await;
        }
        Access::MemoryWrite => {
            for word in 0..4 {
                let word = memory.word(place.plus(8 * word), Route::Global);
                memory.store(word, 1).await;
            }
        }
        Access::BufferWrite | Access::MemoryWriteTagged => {
            for word in 0..4 {
                let word = memory.word(place.plus(8 * word), Route::Tagged);
                memory.store(word, 1).await;
            }
            memory.fence().await;
        }
    }
}
