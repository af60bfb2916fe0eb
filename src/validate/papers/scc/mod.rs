//! Measurements of a real Intel SCC beside the machine: accesses from tile (0, 0) to the message
//! passing buffer of each tile, and to memory behind each controller.
//!
//! An access is repeated by one core on an otherwise idle chip. Times are in microseconds, figures
//! in cycles of the core's clock. Beside them, the bandwidth of RCCE's messages, two benchmarks
//! over them (`solvers`), the synchronization of one-sided communication (`pscw`), and programs
//! that reserve cores (`invasive`).

mod invasive;
mod pscw;
mod solvers;

use std::fmt;
use std::sync::Arc;

use sme_memory::{Memory, Place, Route};
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};

use super::{Estimator, EstimatorOf, Figures, Finding, Fit, On, Paper};
use crate::messages::job::{Job, Library};
use crate::messages::pingpong::PingPong;
use crate::messages::{Measurement, SendCall};
use crate::validate::measure::{self, Simulate};

/// The family of the machines whose figures these are.
pub const FAMILY: &str = "scc";

/// The number of times that an access is repeated.
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

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// An access to tile (x, y), or to memory behind the controller there.
    Access {
        /// Which.
        access: Access,
        /// The column.
        x: u32,
        /// The row.
        y: u32,
    },
    /// A message of RCCE's of so many bytes to a core of the next tile.
    Message(u64),
    /// A call of one-sided synchronization.
    Pscw(pscw::Call),
    /// A NAS benchmark.
    Solved(solvers::Solved),
    /// A program with a process manager.
    Managed(invasive::Experiment),
}

/// The sizes of messages among which RCCE's bandwidth has its peak, in bytes.
const MESSAGES: [u64; 7] = [
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
];

/// The first core of the next tile.
const NEIGHBOUR: u32 = 2;

impl Point {
    /// The experiment of figure `id`, such as `scc.buffer_read.3_1`.
    fn of(id: &str) -> Option<Self> {
        let (name, at) = id.strip_prefix("scc.")?.split_once('.')?;
        let (access, _) = *ACCESS_NAMES.iter().find(|(_, known)| *known == name)?;
        let (x, y) = at.split_once('_')?;
        let (x, y) = (x.parse().ok()?, y.parse().ok()?);
        Some(Self::Access { access, x, y })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Point::Access { access, x, y } => {
                let name = ACCESS_NAMES.iter().find(|(known, _)| *known == access);
                let name = name.map_or("", |(_, name)| name);
                write!(f, "{name} at ({x}, {y})")
            }
            Point::Message(bytes) => write!(f, "a message of {bytes} bytes"),
            Point::Pscw(call) => call.fmt(f),
            Point::Solved(solved) => solved.fmt(f),
            Point::Managed(experiment) => experiment.fmt(f),
        }
    }
}

impl measure::Point for Point {
    fn cost(&self) -> u64 {
        match self {
            Point::Access { .. } => 1,
            Point::Message(bytes) => *bytes,
            Point::Pscw(call) => call.cost(),
            Point::Solved(solved) => solved.cost(),
            Point::Managed(experiment) => experiment.cost(),
        }
    }

    fn is_program(&self) -> bool {
        matches!(self, Point::Solved(_))
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
    pscw: pscw::Runs,
    programs: bool,
}

impl Chip {
    /// On `machine`, if that is an SCC.
    pub fn new(machine: Arc<Machine>) -> Option<Self> {
        let megahertz = machine.megahertz("core.clock")?;
        let pscw = pscw::Runs::default();
        (machine.family_name() == FAMILY).then_some(Self {
            machine,
            megahertz,
            pscw,
            programs: true,
        })
    }

    /// The same without the figures for which programs are run.
    pub fn without_programs(mut self) -> Self {
        self.programs = false;
        self
    }

    /// The figures on this chip, as papers among others.
    pub fn papers(&self) -> [Box<dyn Paper + '_>; 3] {
        let megahertz = self.megahertz;
        let accesses = move |id: &str| Some(Estimator::single(Point::of(id)?, megahertz));
        let messages = |id: &str| match id {
            "rcce.pingpong.peak" => Some(peak()),
            _ => solvers::estimator(id),
        };
        let fitted = self.fitted(false);
        [
            self.paper("scc", Box::new(accesses), (fitted, Vec::new())),
            self.paper("rcce", Box::new(messages), (Vec::new(), solvers::inputs())),
            self.paper(
                "scosco",
                Box::new(pscw::estimator),
                (Vec::new(), self.clocks()),
            ),
        ]
    }

    /// Returns whether its cores have the clock of the chip on which invasive MPI ran, 800 MHz.
    pub fn is_invasive(&self) -> bool {
        self.megahertz == 800.0
    }

    /// The figures of invasive MPI on this chip, as a paper among others.
    pub fn invasive(&self) -> Box<dyn Paper + '_> {
        let inputs = vec![("impi.clocks", self.megahertz)];
        let estimator = Box::new(invasive::estimator);
        let mut fitted = self.fitted(true);
        fitted.extend(invasive::choices());
        self.paper("impi", estimator, (fitted, inputs))
    }

    /// Constants of the machine that were fitted to figures of invasive MPI, or to others.
    fn fitted(&self, of_invasive: bool) -> Vec<Fit> {
        let is_invasive = |id: &String| id.starts_with("impi.");
        let constants = self.machine.fitted();
        let constants =
            constants.filter(|one| one.fitted_to.iter().any(is_invasive) == of_invasive);
        constants
            .map(|constant| Fit::constant(&constant.name(), &constant.fitted_to))
            .collect()
    }

    /// The clocks that SCOSCo names, as the machine file has them [MHz].
    fn clocks(&self) -> Vec<(&'static str, f64)> {
        let clocks = [
            ("scosco.core_clock", "core.clock"),
            ("scosco.mesh_clock", "mesh.clock"),
        ];
        let clocks = clocks.into_iter();
        clocks
            .filter_map(|(id, constant)| Some((id, self.machine.megahertz(constant)?)))
            .collect()
    }

    fn paper(
        &self,
        key: &'static str,
        estimator: Box<EstimatorOf<Point>>,
        (fitted, inputs): (Vec<Fit>, Vec<(&'static str, f64)>),
    ) -> Box<dyn Paper + '_> {
        Box::new(Figures {
            on: (key, On::new(&self.machine)),
            estimator,
            simulate: self,
            fitted,
            inputs,
            machine_of: None,
            programs: self.programs,
            large: true,
        })
    }

    /// The mean time of an access.
    fn access(&self, (access, x, y): (Access, u32, u32)) -> Result<f64, String> {
        let shape = self.machine.shape();
        let node = 2 * (COLUMNS * y + x);
        // Behind the buffers.
        let offset = match access {
            Access::BufferRead | Access::BufferWrite => 0,
            _ => shape.shared_bytes / 2,
        };
        let place = Place { node, offset };
        let program = move |memory: ThreadMemory, _, _| async move {
            memory.begin(ACCESSES).await;
            for _ in 0..REPEATS {
                once(&memory, access, place).await;
            }
            memory.end(ACCESSES).await;
        };
        let machine = self.machine.build(Setup::new(shape, 1, 1), program);
        let mut machine = machine.map_err(|error| error.to_string())?;
        let ran = machine.run(1, |_| {});
        ran.map_err(|failure| failure.to_string())?;
        let spans = machine.spans().called(ACCESSES.name);
        let SpanTimes {
            first_begin,
            last_end,
            ..
        } = spans.first().copied().unwrap_or(SpanTimes::NONE);
        Ok(last_end.since(first_begin).as_us() / f64::from(REPEATS))
    }

    /// Half a round of a ping-pong, all cores being part of the job.
    fn message(&self, size_bytes: u64) -> Result<f64, String> {
        let run = PingPong {
            job: Job::new(
                Arc::clone(&self.machine),
                Library::Rcce,
                self.machine.shape().nodes,
            ),
            first: 0,
            partner: NEIGHBOUR,
            call: SendCall::Send,
            way: None,
            size_bytes,
            rounds: 4,
        };
        let outcome = run.run().map_err(|error| error.to_string())?;
        Ok(outcome.latency.as_us())
    }
}

/// The largest bandwidth over all sizes, in MB/s.
fn peak() -> Estimator<Point> {
    Estimator::new(
        || MESSAGES.map(Point::Message).to_vec(),
        |measured| {
            let bandwidth = |bytes: u64| {
                let latency = measured.microseconds(Point::Message(bytes))?;
                Ok(bytes as f64 / latency)
            };
            let all: Result<Vec<f64>, String> = MESSAGES.into_iter().map(bandwidth).collect();
            Ok(Finding::of(all?.into_iter().fold(0.0, f64::max)))
        },
    )
}

impl Simulate<Point> for Chip {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        match *point {
            Point::Access { access, x, y } => self.access((access, x, y)),
            Point::Message(bytes) => self.message(bytes),
            Point::Pscw(call) => self.pscw.time(&self.machine, call),
            Point::Solved(solved) => solved.time(&self.machine),
            Point::Managed(experiment) => experiment.time(&self.machine),
        }
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
