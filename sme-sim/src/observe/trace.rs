//! The trace of a node, of which critical paths are made ([`super::path`]): marks, each of which is
//! the end of a stage and names where that began. For machines whose stages are operations of
//! threads and what travels between nodes.

use rustc_hash::FxHashMap;
use sme_memory::Place;

use super::marks::Marks;
use super::path::{self, BEFORE, End, MarkId, Part, PathStep, Position, Role, Stage, Traces};
use super::words;
use crate::parts::contract::Operation;
use crate::time::Time;

/// The trace of one node.
#[derive(Debug)]
pub struct Trace {
    /// Marks of earlier times are all [`BEFORE`].
    from: Time,
    marks: Marks<Mark>,
    /// Last writes, by word.
    written: FxHashMap<u64, MarkId>,
    /// The time at which each end was reached, by the last thread, and why then.
    ends: FxHashMap<End, (Time, MarkId)>,
}

/// A mark of a node: the node, and its number there.
pub type Cause = (u32, MarkId);

/// The end of one stage.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The time at which it ended.
    pub at: Time,
    /// In which mark it began.
    pub cause: Cause,
    /// On what the time was spent.
    pub part: Part,
    /// The stage.
    pub what: What,
    /// Its role for a thread that waits.
    pub role: Role,
    /// The mark of the write, in the same node, of the value that was read.
    pub value: Option<MarkId>,
}

/// The kind of a stage.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Nothing that is known.
    Unknown,
    /// A part of an operation of this core.
    Operation(u16, Operation),
    /// A wait has seen the value that it waits for.
    Sees,
    /// Something that the system does for the thread of this core.
    System(u16, &'static str),
    /// Something on behalf of a thread, of this node and number, and of a place.
    Does(&'static str, (u32, u16), Place),
}

impl Trace {
    /// The trace that begins at `from`.
    pub fn new(from: Time) -> Self {
        let before = Mark {
            at: Time::ZERO,
            cause: (0, BEFORE),
            part: Part::Core,
            what: What::Unknown,
            role: Role::Other,
            value: None,
        };
        Self {
            from,
            marks: Marks::new(before),
            written: FxHashMap::default(),
            ends: FxHashMap::default(),
        }
    }

    /// Adds `mark`; its number.
    pub fn push(&mut self, mark: Mark) -> MarkId {
        if mark.at < self.from {
            return BEFORE;
        }
        self.marks.push(mark)
    }

    /// Returns the time of `mark`.
    pub fn time(&self, mark: MarkId) -> Time {
        self.marks[mark].at
    }

    /// The stage that began in `cause`, in this node, and ends at `at`; `cause` itself where it
    /// takes no time.
    pub fn stage(&mut self, (node, cause): Cause, at: Time, part: Part, what: What) -> MarkId {
        if self.time(cause) >= at {
            return cause;
        }
        self.push(Mark {
            at,
            cause: (node, cause),
            part,
            what,
            role: Role::Other,
            value: None,
        })
    }

    /// The word that `key` stands for was written by `mark`.
    pub fn written(&mut self, key: u64, mark: MarkId) {
        self.written.insert(key, mark);
    }

    /// By which mark the word that `key` stands for was written last.
    pub fn last_write(&self, key: u64) -> Option<MarkId> {
        self.written.get(&key).copied()
    }

    /// A thread reaches `end`, and has come that far by `mark`.
    pub fn ends(&mut self, now: Time, end: End, mark: MarkId) {
        let last = self.ends.entry(end).or_default();
        if now > last.0 {
            *last = (now, mark);
        }
    }
}

/// Nodes and their traces, in the order of their numbers, the first of which is 0.
pub struct Traced<'a> {
    traces: Vec<&'a Trace>,
    /// The place that an address names for a thread on a node.
    place: &'a dyn Fn(u32, u64) -> Place,
}

impl<'a> Traced<'a> {
    /// `traces` of nodes on which addresses name what `place` says.
    pub fn new(traces: Vec<&'a Trace>, place: &'a dyn Fn(u32, u64) -> Place) -> Self {
        Self { traces, place }
    }

    /// The critical path that ends where the last thread reaches `end` and begins at `start`; empty
    /// where nothing was traced. `name` names the variable at a place.
    pub fn critical_path(
        &self,
        end: End,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep> {
        let ends = (0..).zip(&self.traces);
        let ends = ends.filter_map(|(node, trace)| {
            let &(at, mark) = trace.ends.get(&end)?;
            Some((at, (node, mark)))
        });
        // Of equal times the first node's.
        let last = ends.reduce(|last, end| if end.0 > last.0 { end } else { last });
        last.map_or(Vec::new(), |end| {
            path::critical_path(self, end, start, name)
        })
    }

    fn mark(&self, (node, mark): Position) -> &Mark {
        &self.traces[node].marks[mark]
    }
}

impl Traces for Traced<'_> {
    fn stage(&self, position: Position) -> Stage {
        let &Mark {
            at,
            part,
            role,
            value,
            ..
        } = self.mark(position);
        Stage {
            at,
            part,
            role,
            value,
        }
    }

    fn cause(&self, position: Position) -> Option<Position> {
        let (node, mark) = self.mark(position).cause;
        Some((node as usize, mark))
    }

    fn node(&self, place: usize) -> u32 {
        place as u32
    }

    fn queued_for(&self, _: Position) -> Option<&'static str> {
        // Nothing is ever busy but cores, and those are the system's.
        None
    }

    fn words(&self, position: Position, name: &dyn Fn(Place) -> String) -> String {
        let node = position.0 as u32;
        match self.mark(position).what {
            What::Unknown => "before the trace".to_owned(),
            What::Sees => "sees the value".to_owned(),
            What::Operation(core, operation) => words::done(core, &operation, &|address| {
                name((self.place)(node, address))
            }),
            What::System(core, what) => format!("core {core} {what}"),
            What::Does(what, (node, core), place) => {
                format!("{} {what} for node {node} core {core}", name(place))
            }
        }
    }
}
