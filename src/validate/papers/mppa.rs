//! Measurements of MPI on a real Kalray MPPA-256 (Ho et al.) beside the machine: ping-pongs between
//! clusters and a subsystem, and High Performance Linpack.
//!
//! What is fitted is a line over several sizes, t = K N + h, of the call that sends, in cycles of a
//! cluster's clock.

use std::fmt;
use std::sync::Arc;

use sme_memory::{Gathers, Mailbox, Memory, Network, NodeSet, Place, Route, Until};
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::{Estimator, EstimatorOf, Figures, Finding, Fit, On, Paper};
use crate::messages::hpl::{HplRun, gflops};
use crate::messages::job::{Job, Library};
use crate::messages::line::{Fitted, Line};
use crate::messages::pingpong::{PingPong, Way};
use crate::messages::{Measurement, SendCall};
use crate::validate::measure::{self, Measurements, Simulate};

/// The family of the machines whose figures these are.
pub const FAMILY: &str = "mppa";

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The call that sends so many bytes.
    Send(Course, u64),
    /// Half a round of a ping-pong of so many bytes.
    Half(Way, u64),
    /// A control message from a node to the subsystem.
    Signal(u32),
    /// Linpack.
    Hpl(Hpl),
}

/// From where to where, by which call, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    from: u32,
    to: u32,
    call: SendCall,
    way: Way,
}

/// Which messages of Linpack go which way, beside those that wait for the receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hpl {
    /// All of them do.
    Plain,
    /// Those that fit into a control message go at once.
    Eager,
}

/// The rank of the last cluster, and the one of the subsystem.
const LAST: u32 = 15;
const IO: u32 = 16;

/// The sizes of a line, in bytes.
const SIZES: [u64; 4] = [64, 1 << 10, 8 << 10, 64 << 10];

/// The sizes of messages that are copied: those that the cache of a core has room for.
const COPIED: [u64; 4] = [128, 512, 2 << 10, 4 << 10];

/// The sizes of messages of one to four pieces, and of those that are called short.
const PIECES: [u64; 4] = [8, 104, 200, 296];
const SHORT: [u64; 6] = [8, 16, 32, 64, 128, 256];

/// The sizes at which throughputs are published, in bytes.
const LARGE: u64 = 256 << 10;
const LARGEST: u64 = 512 << 10;

/// The sides of Linpack: unknowns, columns of a block, and rows and columns of the grid. The block
/// is a choice: its size is not published.
const HPL: (u32, u32, (u32, u32)) = (1250, 4, (4, 4));

/// The rate of one core's BLAS \[10^9 operations per second\]: 0.26 operations per cycle, 38 % of a
/// core's peak (Sec. I-A).
const CORE_GFLOPS: f64 = 0.104;

impl Course {
    /// The one of figure `id`, such as `mppa.table4.cc0_cc15.isend`.
    fn of(id: &str) -> Option<Self> {
        let (ends, call) = id.strip_prefix("mppa.table4.")?.split_once('.')?;
        let (from, to) = ends.split_once('_')?;
        let rank = |end: &str| match end {
            "ios" => Some(IO),
            cluster => cluster.strip_prefix("cc")?.parse().ok(),
        };
        Some(Self {
            from: rank(from)?,
            to: rank(to)?,
            call: call.parse().ok()?,
            way: Way::Normal,
        })
    }

    /// Between clusters.
    fn between_clusters(way: Way) -> Self {
        Self {
            from: 0,
            to: LAST,
            call: SendCall::Send,
            way,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Point::Send(Course { from, to, .. }, bytes) => {
                write!(f, "a send of {bytes} bytes from rank {from} to {to}")
            }
            Point::Half(way, bytes) => write!(f, "a {way} message of {bytes} bytes"),
            Point::Signal(node) => write!(f, "a control message of node {node}"),
            Point::Hpl(_) => f.write_str("HPL"),
        }
    }
}

impl measure::Point for Point {
    fn cost(&self) -> u64 {
        match *self {
            Point::Send(_, bytes) | Point::Half(_, bytes) => bytes,
            Point::Signal(_) => 1,
            Point::Hpl(_) => 1 << 30,
        }
    }

    fn is_program(&self) -> bool {
        matches!(self, Point::Hpl(_))
    }

    fn is_large(&self) -> bool {
        false
    }
}

/// The experiments on a chip.
pub struct Clusters {
    machine: Arc<Machine>,
    /// Cycles of a cluster's core a microsecond.
    megahertz: f64,
    programs: bool,
}

impl Clusters {
    /// On `machine`, if that is an MPPA of 16 clusters and subsystems.
    pub fn new(machine: Arc<Machine>) -> Option<Self> {
        let megahertz = machine.megahertz("core.clock")?;
        let shape = machine.shape();
        let is_whole = shape.io_nodes > 0 && shape.nodes - shape.io_nodes == IO;
        (machine.family_name() == FAMILY && is_whole).then_some(Self {
            machine,
            megahertz,
            programs: true,
        })
    }

    /// The same without the figures for which programs are run.
    pub fn without_programs(mut self) -> Self {
        self.programs = false;
        self
    }

    /// The figures on this chip, as a paper among others.
    pub fn paper(&self) -> Box<dyn Paper + '_> {
        let fitted = self.machine.fitted();
        let fitted = fitted.map(|constant| Fit::constant(&constant.name(), &constant.fitted_to));
        let core = "the rate of one core's BLAS in Linpack, 0.104 GFLOPS";
        let blocks = "blocks of 4 columns and a depth of 1 in Linpack";
        let choices = [
            Fit::choice(core, &["mppa.hpl.rmax"]),
            Fit::choice(blocks, &["mppa.hpl.eager_gain"]),
        ];
        let megahertz = self.megahertz;
        let router = self.amount("noc.router").unwrap_or(0.0);
        let estimator = move |id: &str| estimator(id, megahertz, router);
        Box::new(Figures {
            on: ("mppa", On::new(&self.machine)),
            estimator: Box::new(estimator) as Box<EstimatorOf<Point>>,
            simulate: self,
            fitted: fitted.chain(choices).collect(),
            inputs: self.inputs(),
            machine_of: None,
            programs: self.programs,
            large: true,
        })
    }

    fn amount(&self, constant: &str) -> Option<f64> {
        Some(self.machine.constant(constant)?.amount? as f64)
    }

    /// Published inputs as the machine file and the library have them.
    fn inputs(&self) -> Vec<(&'static str, f64)> {
        let bytes = sme_mpi::channel::queues::MESSAGE_BYTES as f64;
        let flit = (|| Some(self.amount("noc.flit_bytes")? / self.amount("noc.flit")?))();
        let inputs = [
            ("mppa.clock", Some(self.megahertz)),
            ("mppa.noc.router_cycles", self.amount("noc.router")),
            ("mppa.rqueue.message", Some(bytes)),
            ("mppa.dma_peak", flit),
        ];
        let inputs = inputs.into_iter();
        inputs
            .filter_map(|(id, value)| Some((id, value?)))
            .collect()
    }

    fn ping_pong(&self, course: Course, size_bytes: u64) -> PingPong {
        let Course {
            from,
            to,
            call,
            way,
        } = course;
        let job = Job {
            has_io: from.max(to) == IO,
            modes: way.modes(),
            ..Job::new(Arc::clone(&self.machine), Library::Queues, IO)
        };
        PingPong {
            job,
            first: from,
            partner: to,
            call,
            way: Some(way),
            size_bytes,
            rounds: 50,
        }
    }

    /// The time of a control message to the subsystem, from when it is sent until a thread that
    /// waits has seen it.
    fn signal(&self, from: u32) -> Result<f64, String> {
        const COMES: Span = Span::new("comes", 0);
        let shape = self.machine.shape();
        let program = move |memory: ThreadMemory, node, thread| async move {
            let place = |offset| Place { node, offset };
            let tells = memory.flag(place(64), Route::Nearest);
            if (node, thread) == (IO, 1) {
                let mailbox = Mailbox {
                    word: memory.word(place(0), Route::Nearest),
                    gathers: Gathers::Sum,
                    tells,
                };
                memory.listen(1, mailbox).await;
                memory.wait(tells, Until::Is(1)).await;
                memory.end(COMES).await;
            } else if (node, thread) == (from, 0) {
                // The other thread listens by then.
                memory.delay(Time::from_ns(100_000)).await;
                memory.begin(COMES).await;
                memory.signal(NodeSet::one(IO), 1, 1).await;
            }
        };
        let setup = Setup::new(shape, IO + 1, 2);
        let machine = self.machine.build(setup, program);
        let mut machine = machine.map_err(|error| error.to_string())?;
        let ran = machine.run(1, |_| {});
        ran.map_err(|failure| failure.to_string())?;
        let spans = machine.spans().called(COMES.name);
        let times = spans.first().copied().unwrap_or(SpanTimes::NONE);
        Ok(times.last_end.since(times.first_begin).as_us())
    }

    fn hpl(&self, hpl: Hpl) -> HplRun {
        let (n, nb, grid) = HPL;
        let eager_bytes = match hpl {
            Hpl::Plain => None,
            Hpl::Eager => Library::Queues.modes().eager_bytes,
        };
        let mut job = Job::new(Arc::clone(&self.machine), Library::Queues, IO);
        job.modes.eager_bytes = eager_bytes;
        HplRun {
            job,
            n,
            nb,
            grid,
            depth: 1,
            core_gflops: CORE_GFLOPS,
        }
    }
}

impl Simulate<Point> for Clusters {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        let error = |error: crate::messages::job::Error| error.to_string();
        match *point {
            Point::Send(course, bytes) => {
                let outcome = self.ping_pong(course, bytes).run().map_err(error)?;
                Ok(outcome.sends.0.as_us())
            }
            Point::Half(way, bytes) => {
                let run = self.ping_pong(Course::between_clusters(way), bytes);
                Ok(run.run().map_err(error)?.latency.as_us())
            }
            Point::Signal(node) => self.signal(node),
            Point::Hpl(hpl) => Ok(self.hpl(hpl).run().map_err(error)?.time.as_us()),
        }
    }
}

/// The estimator of a figure.
fn estimator(id: &str, megahertz: f64, router: f64) -> Option<Estimator<Point>> {
    if let Some(course) = Course::of(id) {
        return Some(line(course, SIZES, megahertz));
    }
    let bandwidth = |way, bytes, unit: f64| {
        let point = Point::Half(way, bytes);
        Estimator {
            points: Box::new(move || vec![point]),
            find: Box::new(move |measured: &Measurements<Point>| {
                Ok(Finding::of(
                    bytes as f64 / measured.microseconds(point)? / unit,
                ))
            }),
        }
    };
    match id {
        "mppa.lazy.memcpy" => Some(line(Course::between_clusters(Way::Lazy), COPIED, megahertz)),
        "mppa.eager.cost" => Some(piece(megahertz)),
        "mppa.eager.latency_ratio" => Some(ratio()),
        "mppa.throughput.256KB" => Some(bandwidth(Way::Normal, LARGE, 1.0)),
        "mppa.throughput.dma" => Some(bandwidth(Way::Dma, LARGEST, 1e3)),
        "mppa.noc.worst_distance" => Some(distance(megahertz, router)),
        "mppa.hpl.rmax" => Some(Estimator::new(
            || vec![Point::Hpl(Hpl::Eager)],
            |measured| {
                let time = measured.microseconds(Point::Hpl(Hpl::Eager))?;
                Ok(Finding::of(gflops(HPL.0, time)))
            },
        )),
        "mppa.hpl.eager_gain" => Some(Estimator::new(
            || [Hpl::Plain, Hpl::Eager].map(Point::Hpl).into(),
            |measured| {
                let time = |hpl| measured.microseconds(Point::Hpl(hpl));
                let gain = time(Hpl::Plain)? / time(Hpl::Eager)? - 1.0;
                Ok(Finding::of(gain))
            },
        )),
        _ => None,
    }
}

/// The line of the call that sends over these sizes.
fn line(course: Course, sizes: [u64; 4], megahertz: f64) -> Estimator<Point> {
    let points = sizes.map(|bytes| Point::Send(course, bytes));
    Estimator {
        points: Box::new(move || points.to_vec()),
        find: Box::new(move |measured| {
            let mut found = Vec::new();
            for (bytes, point) in sizes.into_iter().zip(points) {
                found.push((bytes as f64, measured.microseconds(point)? * megahertz));
            }
            let line = Line::through(&found).ok_or("no line goes through the points")?;
            Ok(Finding::of_line(line.line))
        }),
    }
}

/// The cost of one more piece of an eager message.
fn piece(megahertz: f64) -> Estimator<Point> {
    let point = |bytes| Point::Send(Course::between_clusters(Way::Eager), bytes);
    Estimator {
        points: Box::new(move || PIECES.map(point).to_vec()),
        find: Box::new(move |measured| {
            let mut found = Vec::new();
            for (number, bytes) in (1..).zip(PIECES) {
                let cycles = measured.microseconds(point(bytes))? * megahertz;
                found.push((f64::from(number), cycles));
            }
            let Fitted { line, .. } = Line::through(&found).ok_or("no line")?;
            let first = format!("the first piece alone takes {:.0} cycles", found[0].1);
            Ok(Finding::of(line.per_byte).noting(first))
        }),
    }
}

/// The latency of short eager messages over that of the better of the other two.
fn ratio() -> Estimator<Point> {
    Estimator::new(
        || {
            let ways = [Way::Eager, Way::Normal, Way::Dma];
            let of = |way| SHORT.map(|bytes| Point::Half(way, bytes));
            ways.into_iter().flat_map(of).collect()
        },
        |measured| {
            let mut logarithms = 0.0;
            for bytes in SHORT {
                let half = |way| measured.microseconds(Point::Half(way, bytes));
                let other = half(Way::Normal)?.min(half(Way::Dma)?);
                logarithms += (half(Way::Eager)? / other).ln();
            }
            Ok(Finding::of((logarithms / SHORT.len() as f64).exp()))
        },
    )
}

/// The way from the last cluster to the subsystem: what a control message takes longer than one of
/// the subsystem's own, which passes one router.
fn distance(megahertz: f64, router: f64) -> Estimator<Point> {
    let points = [LAST, IO].map(Point::Signal);
    Estimator {
        points: Box::new(move || points.to_vec()),
        find: Box::new(move |measured| {
            let [far, near] = points.map(|point| measured.microseconds(point));
            Ok(Finding::of((far? - near?) * megahertz + router))
        }),
    }
}
