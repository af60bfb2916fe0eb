//! Critical paths: from the end of something backwards through what caused it.
//!
//! A machine's nodes are traced in marks: each is the end of a stage, and names the mark in which
//! the stage began, its cause. Following causes backwards gives stretches of time without gaps or
//! overlaps. A wait has two causes, the thread that waits and the write of the value that ends it;
//! the mark of the read that brought the value names the write's mark too. A thread that waits is
//! delayed by the thread that writes the value it waits for, so the path leads from the wait to the
//! write, at the moment in which the value could first be read; what the waiting thread had done
//! until then did not matter. The steps are contiguous: they add up to the time asked about.

use serde::Serialize;
use sme_memory::Place;

use crate::parts::contract::{Mark, Span};
use crate::time::Time;

/// The part of the machine on which a stretch of time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The program's own instructions.
    Core,
    /// Cache look-ups and probes.
    Cache,
    /// Memory.
    Memory,
    /// HyperTransport: between sockets, the host link, the I/O bridge.
    HyperTransport,
    /// The blocks of an engine, and its named delays.
    Engine,
    /// A switch outside the engines: its blocks, and its named delay.
    Switch,
    /// Serialization, transceivers, wire.
    Link,
    /// Waiting for something that is busy.
    Queueing,
    /// The operating system.
    OperatingSystem,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 9] = [
        Part::Core,
        Part::Cache,
        Part::Memory,
        Part::HyperTransport,
        Part::Engine,
        Part::Switch,
        Part::Link,
        Part::Queueing,
        Part::OperatingSystem,
    ];
}

/// One stretch of a critical path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// The time at which it began.
    pub from: Time,
    /// The time at which it ended.
    pub to: Time,
    /// The position of the node or switch.
    pub node: u32,
    /// On what.
    pub part: Part,
    /// Of [`Part::Queueing`], what was busy: `host link to the engine`, `I/O bridge`, …
    pub queued_for: Option<&'static str>,
    /// A description in a few words ("phase written by node 8 core 0 crosses link 8 -> 0").
    pub what: String,
}

/// An end of which the critical path can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The last thread's of a span.
    Span(Span),
    /// A thread leaves a call of a library.
    Call {
        /// The thread: its node, and its number there.
        thread: (u32, u16),
        /// The time.
        at: Time,
    },
}

impl End {
    /// The end that a thread reaches by saying `mark` at `at`, if it is one.
    pub(crate) fn of(mark: Mark, thread: (u32, u16), at: Time) -> Option<Self> {
        match mark {
            Mark::End(span) => Some(Self::Span(span)),
            Mark::Leaves => Some(Self::Call { thread, at }),
            Mark::Begin(_) | Mark::Counts | Mark::Ahead(_) | Mark::Enters(_) | Mark::At(_) => None,
        }
    }
}

impl From<Span> for End {
    fn from(span: Span) -> Self {
        Self::Span(span)
    }
}

/// Index of a mark in its node's trace.
pub type MarkId = u32;

/// Stands for everything before the trace began.
pub const BEFORE: MarkId = 0;

/// A mark of a node, by the node's place among the traces.
pub type Position = (usize, MarkId);

/// The role of a mark for a thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The thread itself has come to the end of an operation.
    OwnEnd,
    /// A wait has seen a value that it takes.
    Takes,
    /// Neither.
    Other,
}

/// A mark as the walk sees it.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// The time at which the stage ended.
    pub at: Time,
    /// The part of the machine on which the time was spent.
    pub part: Part,
    /// Its role for a thread that waits.
    pub role: Role,
    /// The mark of the write, in the same node, of the value that was read.
    pub value: Option<MarkId>,
}

/// The traces of a machine's nodes.
pub trait Traces {
    /// The mark at `position`.
    fn stage(&self, position: Position) -> Stage;

    /// The mark in which the stage that ends at `position` began; nothing where that is not known.
    fn cause(&self, position: Position) -> Option<Position>;

    /// The number of a node, by its place among the traces.
    fn node(&self, place: usize) -> u32;

    /// The resource that was busy during the stage of [`Part::Queueing`] that ends at `position`;
    /// none where it is another part's.
    fn queued_for(&self, position: Position) -> Option<&'static str>;

    /// Describes the stage that ends at `position` in a few words; `name` names the variable at a
    /// place.
    fn words(&self, position: Position, name: &dyn Fn(Place) -> String) -> String;
}

/// The path from `start` to `position`, which was reached at `end`, the first step first.
pub fn critical_path(
    traces: &impl Traces,
    (end, position): (Time, Position),
    start: Time,
    name: &dyn Fn(Place) -> String,
) -> Vec<PathStep> {
    let stretches = walk(traces, position, start, end);
    let steps = stretches.into_iter().rev();
    let step = |(from, to, position): (Time, Time, Position)| PathStep {
        from,
        to,
        node: traces.node(position.0),
        part: traces.stage(position).part,
        queued_for: traces.queued_for(position),
        what: traces.words(position, name),
    };
    steps.map(step).collect()
}

/// From `position`, which was reached at `end`, back to `start`; the last stretch first.
fn walk(
    traces: &impl Traces,
    mut position: Position,
    start: Time,
    end: Time,
) -> Vec<(Time, Time, Position)> {
    let mut stretches = Vec::new();
    let mut to = end;
    // A value has been taken; where it was written is not known yet, or is known.
    let mut taken = false;
    let mut written: Option<Position> = None;
    while to > start {
        debug_assert!(position.1 != BEFORE, "the trace begins too late, at {to}");
        let stage = traces.stage(position);
        match stage.role {
            // The thread itself came later than the value that it then found.
            Role::OwnEnd => (taken, written) = (false, None),
            Role::Takes => (taken, written) = (true, None),
            Role::Other => {}
        }
        if taken && let Some(write) = stage.value {
            (taken, written) = (false, Some((position.0, write)));
        }
        let cause = traces.cause(position);
        let began = cause.map_or(start, |cause| traces.stage(cause).at);
        let readable = written.map_or(Time::ZERO, |write| traces.stage(write).at);
        let from = began.max(readable).max(start).min(to);
        if from < to {
            stretches.push((from, to, position));
            to = from;
        }
        position = match (written, cause) {
            (Some(write), _) if readable >= began => {
                written = None;
                write
            }
            (_, Some(cause)) if cause != position => cause,
            _ => break,
        };
    }
    stretches
}
