//! The activity of every thread over time, for people who look at a run: its waits, and which write
//! of a flag let it go on. Spans are in [`super::spans`]. Fed by [`super::log`]; has no influence
//! on what is simulated.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use sme_memory::Place;

use super::calls::ThreadCall;
use super::spans::ThreadSpan;
use super::staleness::FlagRecord;
use crate::parts::contract::Operation;
use crate::time::Time;

/// A thread: its node, and its number there.
pub type Thread = (u32, u16);

/// A stretch in which a thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread that waited.
    pub thread: Thread,
    /// The begin of the wait.
    pub begin: Time,
    /// The time at which it went on.
    pub end: Time,
    /// The thing it waited for.
    pub on: On,
}

/// The things that a thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A flag.
    Flag,
    /// Several flags.
    Flags,
    /// To be woken by the system.
    Futex,
    /// A test-and-set register.
    Register,
    /// The end of a thread.
    Thread,
    /// A signal.
    Signal,
    /// An interrupt.
    Interrupt,
}

impl On {
    /// The thing that `operation` waits for, if it waits.
    pub fn of(operation: &Operation) -> Option<Self> {
        Some(match operation {
            Operation::Wait(..) => Self::Flag,
            Operation::WaitAll(..) | Operation::WaitAny(..) => Self::Flags,
            Operation::FutexWait(..) => Self::Futex,
            Operation::Take(..) => Self::Register,
            Operation::Join(..) => Self::Thread,
            Operation::TakeSignal(_) => Self::Signal,
            Operation::TakeInterrupt(_) => Self::Interrupt,
            _ => return None,
        })
    }

    /// The name of the wait.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "waits for a flag",
            Self::Flags => "waits for flags",
            Self::Futex => "sleeps on a futex",
            Self::Register => "waits for a register",
            Self::Thread => "waits for a thread",
            Self::Signal => "waits for a signal",
            Self::Interrupt => "waits for an interrupt",
        }
    }
}

/// From the write of a flag to a wait, or a read, that has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The flag.
    pub flag: Place,
    /// The value written.
    pub value: u8,
    /// The thread that wrote it, and when it had: the write may still be in its store buffer.
    pub from: (Thread, Time),
    /// The thread that saw it, and when.
    pub to: (Thread, Time),
}

/// A run, as its threads went through it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Every span, and its thread's node.
    pub spans: Vec<(u32, ThreadSpan)>,
    /// Every call of a library, and its thread's node.
    pub calls: Vec<(u32, ThreadCall)>,
    /// Every wait that has ended.
    pub waits: Vec<Wait>,
    /// From writes of flags to threads that saw them.
    pub arrows: Vec<Arrow>,
    /// The names of these flags.
    pub names: HashMap<Place, String>,
    /// The roles of threads, of those that have one.
    pub roles: HashMap<Thread, String>,
}

/// The last writes of a flag.
#[derive(Debug, Default)]
struct Writes(Vec<(u8, Thread, Time)>);

/// The number of writes of a flag that are remembered. A barrier's flag goes through few values
/// again and again, and no thread is behind by more than one.
const REMEMBERED: usize = 4;

/// The most nodes that are told apart.
const MOST_NODES: u32 = 1 << 16;

/// The error that a machine has too many nodes for its threads to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{nodes} nodes: a timeline tells at most {MOST_NODES} apart")]
pub struct TooManyNodes {
    nodes: u32,
}

/// The recorder of writes and reads of flags.
#[derive(Debug)]
pub struct Timeline {
    /// The most threads of a node.
    threads: u32,
    writes: FxHashMap<Place, Writes>,
    arrows: Vec<Arrow>,
}

impl Timeline {
    /// Of so many `nodes`, each of which has at most so many `threads`.
    pub(crate) fn new(nodes: u32, threads: u32) -> Result<Self, TooManyNodes> {
        if nodes > MOST_NODES {
            return Err(TooManyNodes { nodes });
        }
        Ok(Self {
            threads,
            writes: FxHashMap::default(),
            arrows: Vec::new(),
        })
    }

    /// A flag has been written or seen. In the order of time, writes of equal times first.
    pub(crate) fn record(&mut self, record: FlagRecord) {
        let FlagRecord {
            at,
            thread,
            flag,
            value,
            is_write,
        } = record;
        let thread = (thread / self.threads, (thread % self.threads) as u16);
        let Writes(writes) = self.writes.entry(flag).or_default();
        if is_write {
            if writes.len() == REMEMBERED {
                writes.remove(0);
            }
            return writes.push((value, thread, at));
        }
        // The newest write of that value: an older one has been overwritten since.
        let seen = writes.iter().rev().find(|(written, ..)| *written == value);
        if let Some(&(_, writer, written)) = seen
            && writer != thread
        {
            self.arrows.push(Arrow {
                flag,
                value,
                from: (writer, written),
                to: (thread, at),
            });
        }
    }

    /// From writes to threads that saw them, in the order in which they were seen.
    pub fn arrows(&self) -> &[Arrow] {
        &self.arrows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64, thread: u32, value: u8, is_write: bool) -> FlagRecord {
        FlagRecord {
            at: Time::from_ns(at),
            thread,
            flag: Place {
                node: 1,
                offset: 64,
            },
            value,
            is_write,
        }
    }

    #[test]
    fn an_arrow_leads_from_the_newest_write_of_what_was_seen() {
        let mut timeline = Timeline::new(2, 4).unwrap();
        for (at, thread, value, is_write) in [
            (1, 0, 1, true),
            (5, 0, 2, true),
            (6, 4, 1, false),
            (7, 4, 2, false),
            (8, 0, 2, false),
            (9, 5, 3, false),
        ] {
            timeline.record(record(at, thread, value, is_write));
        }
        let seen: Vec<_> = timeline.arrows().iter().map(|a| (a.from, a.to)).collect();
        let ns = Time::from_ns;
        // Neither what it has written itself, nor what no thread has.
        assert_eq!(
            seen,
            [
                (((0, 0), ns(1)), ((1, 0), ns(6))),
                (((0, 0), ns(5)), ((1, 0), ns(7))),
            ]
        );
    }
}
