//! The time of single operations on an idle machine, split by what it is spent on: the critical
//! path ([`sme_sim::observe::path`]) of each operation, summed up by part.
//!
//! Called by [`crate::cli::latency`].

use std::fmt;
use std::ops::Range;

use sme_memory::{Capabilities, Capability, Flag, Memory, Place, Route, Until};
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::path::Part;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::{Router, Topology};
use sme_sim::time::Time;

use super::LatencyError;

/// An operation whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A load of a line that the core's first cache has.
    LoadHit,
    /// A load of the node's own memory that no cache of the node has.
    LoadMiss,
    /// A load past the caches, of memory behind the engine.
    RemoteLoad,
    /// A load through the caches of a line behind the engine that no cache has.
    LineFill,
    /// From a thread's store of a flag until a thread that spins on it goes on.
    StoreVisible,
    /// Half the round of two threads that set each other's flags.
    BarrierHop,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 6] = [
        Operation::LoadHit,
        Operation::LoadMiss,
        Operation::RemoteLoad,
        Operation::LineFill,
        Operation::StoreVisible,
        Operation::BarrierHop,
    ];

    /// Returns whether it is measured within a node's coherent memory.
    fn is_local(self) -> bool {
        !matches!(self, Operation::RemoteLoad | Operation::LineFill)
    }

    /// Returns whether it is measured between nodes.
    fn is_remote(self) -> bool {
        !matches!(self, Operation::LoadHit | Operation::LoadMiss)
    }

    /// Returns whether two threads take part.
    fn is_of_two(self) -> bool {
        matches!(self, Operation::StoreVisible | Operation::BarrierHop)
    }

    /// The capabilities that it needs of a machine.
    pub fn needs(self) -> Capabilities {
        match self {
            Operation::LineFill => Capabilities::of(&[Capability::Caching]),
            _ => Capabilities::LEAST,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::LoadHit => "load-hit",
            Operation::LoadMiss => "load-miss",
            Operation::RemoteLoad => "remote-load",
            Operation::LineFill => "line-fill",
            Operation::StoreVisible => "store-visible",
            Operation::BarrierHop => "barrier-hop",
        })
    }
}

/// A node that operations of node 0 are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// Links on the way to it.
    pub hops: u32,
    /// The node.
    pub node: u32,
}

/// The nearest of `homes` at each distance from node 0 in `topology`; node 0 itself is at distance
/// 0.
pub fn distances(topology: &Topology, homes: Range<u32>) -> Vec<Distance> {
    let router = Router::new(topology);
    let mut found: Vec<Distance> = Vec::new();
    for node in homes {
        let hops = router.hops(topology, 0, node);
        if found.iter().all(|distance| distance.hops != hops) {
            found.push(Distance { hops, node });
        }
    }
    found.sort_by_key(|distance| distance.hops);
    found
}

/// The mean time of an operation and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The operation.
    pub operation: Operation,
    /// The home of its data; none within the coherent memory of node 0.
    pub home: Option<Distance>,
    /// The whole of it.
    pub total: Time,
    /// The time of each part, in the order of [`Part::ALL`]: together `total`.
    pub parts: [Time; Part::ALL.len()],
}

/// Times that an operation is measured, after once more that is not.
const TIMES: u32 = 8;
/// The name of the spans that are timed.
const OPERATION: &str = "operation";

/// The budgets of all operations that the machine has, on its own memory and on that of `homes`, in
/// a machine of the first `nodes` positions of `topology`.
///
/// # Errors
/// As [`super::remote_load_latency`].
pub fn budgets(
    machine: &Machine,
    (topology, nodes): (&Topology, u32),
    homes: &[Distance],
) -> Result<Vec<Budget>, LatencyError> {
    let mut budgets = Vec::new();
    for operation in Operation::ALL {
        let has = |nodes| {
            let needs = operation.needs().on_nodes(nodes);
            machine.suffices("the operation", needs).is_ok()
        };
        let own = (operation.is_local() && has(1)).then_some(None);
        let is_measured = operation.is_remote() && has(nodes.max(2));
        let others = homes.iter().copied().filter(|_| is_measured);
        for home in own.into_iter().chain(others.map(Some)) {
            let (partner, core) = partner(home, nodes);
            let is_missing = partner >= nodes || core >= machine.shape().cores;
            if operation.is_of_two() && is_missing {
                continue;
            }
            budgets.push(budget(machine, (topology, nodes), operation, home)?);
        }
    }
    Ok(budgets)
}

fn budget(
    machine: &Machine,
    (topology, nodes): (&Topology, u32),
    operation: Operation,
    home: Option<Distance>,
) -> Result<Budget, LatencyError> {
    let shape = machine.shape();
    let threads = shape.cores.min(2);
    let setup = Setup::new(shape, nodes, threads)
        .on(topology.clone())
        .seeded(0);
    let course = Course {
        operation,
        home: home.map(|home| home.node),
        partner: partner(home, nodes),
        back: match home {
            Some(Distance { node, .. }) if node >= nodes => node,
            _ => 0,
        },
        line_bytes: shape.line_bytes.into(),
        recovery: shape.recovery,
    };
    let mut machine = machine.build(setup, move |memory, node, thread| async move {
        course.run(memory, node, thread).await;
    })?;
    machine.trace_from(Time::ZERO);
    machine.run(1, |_| {})?;
    let divisor = match operation {
        Operation::BarrierHop => 2 * u64::from(TIMES),
        _ => u64::from(TIMES),
    };
    let mut sums = [0; Part::ALL.len()];
    let mut total = 0;
    for time in 1..=TIMES {
        let times = machine.spans().called(OPERATION)[time as usize];
        let end = Span::new(OPERATION, time).into();
        total += times.last_end.since(times.first_begin).as_ps();
        for step in machine.critical_path(end, times.first_begin, &|_| String::new()) {
            sums[step.part as usize] += step.to.since(step.from).as_ps();
        }
    }
    let rounded = |sum: u64| (sum + divisor / 2) / divisor;
    // Each part ends where the next begins, so that rounded they still add up.
    let mut end = 0;
    let parts = sums.map(|sum| {
        let begin = rounded(end);
        end += sum;
        Time::from_ps(rounded(end) - begin)
    });
    Ok(Budget {
        operation,
        home,
        total: Time::from_ps(rounded(total)),
        parts,
    })
}

/// Node and core of the second thread: at the home, beside the first if that is its node, or on the
/// next of the `nodes` if the home is a device of a pool.
fn partner(home: Option<Distance>, nodes: u32) -> (u32, u32) {
    match home.map_or(0, |home| home.node) {
        0 => (0, 1),
        device if device >= nodes => (1, 0),
        node => (node, 0),
    }
}

/// The course of a measurement, as each thread of the machine follows it.
#[derive(Clone, Copy)]
struct Course {
    operation: Operation,
    /// The node with the data, which is reached through the engine; none where it is not.
    home: Option<u32>,
    /// Node and core of the second thread, if two take part.
    partner: (u32, u32),
    /// The node with the flag on which the first thread spins: its own, or a device of a pool.
    back: u32,
    line_bytes: u64,
    recovery: Time,
}

impl Course {
    async fn run(self, memory: ThreadMemory, node: u32, thread: u32) {
        for time in 0..=TIMES {
            if (node, thread) == (0, 0) {
                match self.operation.is_of_two() {
                    true => self.sets(&memory, time).await,
                    false => self.loads(&memory, time).await,
                }
                // Nothing of it is in the way of the next.
                memory.delay(self.recovery.times(2)).await;
            } else if (node, thread) == self.partner && self.operation.is_of_two() {
                self.answers(&memory, time).await;
            }
        }
    }

    async fn loads(self, memory: &ThreadMemory, time: u32) {
        let span = Span::new(OPERATION, time);
        let place = Place {
            node: self.home.unwrap_or(0),
            // Downwards: some machines fetch ahead of loads that go up.
            offset: self.line_bytes * u64::from(2 + TIMES - time),
        };
        let route = match self.operation {
            Operation::LineFill => Route::Cached,
            Operation::RemoteLoad => Route::Global,
            _ => Route::Nearest,
        };
        let word = memory.word(place, route);
        if self.operation == Operation::LoadHit {
            memory.load(word).await;
        }
        memory.begin(span).await;
        memory.load(word).await;
        memory.end(span).await;
    }

    /// The thread whose store is measured.
    async fn sets(self, memory: &ThreadMemory, time: u32) {
        let span = Span::new(OPERATION, time);
        memory.begin(span).await;
        memory.set(self.there(memory), value(time)).await;
        memory.wait(self.back(memory), Until::Is(value(time))).await;
        if self.operation == Operation::BarrierHop {
            memory.end(span).await;
        }
    }

    /// The thread that waits for it.
    async fn answers(self, memory: &ThreadMemory, time: u32) {
        memory
            .wait(self.there(memory), Until::Is(value(time)))
            .await;
        if self.operation == Operation::StoreVisible {
            memory.end(Span::new(OPERATION, time)).await;
        }
        memory.set(self.back(memory), value(time)).await;
    }

    /// The flag on which the second thread spins.
    fn there(self, memory: &ThreadMemory) -> Flag {
        self.flag(memory, self.home.unwrap_or(0), 1)
    }

    /// The flag on which the first spins meanwhile.
    fn back(self, memory: &ThreadMemory) -> Flag {
        self.flag(memory, self.back, 2)
    }

    /// A flag of `node`, by its global address unless it is spun on.
    fn flag(self, memory: &ThreadMemory, node: u32, line: u64) -> Flag {
        let spins = (line == 1) == (memory.thread() != 0 || memory.node() != 0);
        let route = match self.home {
            Some(_) if !spins => Route::Global,
            _ => Route::Nearest,
        };
        let offset = self.line_bytes * line;
        memory.flag(Place { node, offset }, route)
    }
}

fn value(time: u32) -> u8 {
    1 + time as u8
}
