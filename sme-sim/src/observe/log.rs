//! The log of a node for the checker of stale reads ([`super::staleness`]) and the timeline
//! ([`super::timeline`]), where there are any: what its threads have loaded, stored and waited for,
//! and what became of lines. Kept until these take it; has no influence on what is simulated.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sme_memory::Place;

use super::staleness::{Checker, Record, What};
use super::timeline::{On, Timeline, Wait};
use crate::parts::address::AddressSpace;
use crate::parts::cache::ahead::Access;
use crate::parts::contract::Operation;
use crate::time::Time;

/// The address of imaginary flags for the starts and ends of threads: beyond all memory.
const BIRTHS: u64 = 1 << 46;
const DEATHS: u64 = BIRTHS + (1 << 16);

/// The offsets of flags that stand for a node's test-and-set registers, its pending interrupt, and
/// signals to its threads.
const REGISTERS: u64 = DEATHS + (1 << 16);
const INTERRUPTS: u64 = REGISTERS + (1 << 16);
const SIGNALS: u64 = INTERRUPTS + (1 << 16);

/// The record of what has happened at a node, in order.
#[derive(Debug)]
pub struct Log {
    /// Locked only by who takes it.
    told: Mutex<Told>,
    node: u32,
    /// By thread, how many signals to it have been sent, and taken.
    signals: HashMap<u32, (u64, u64)>,
    /// Threads of a node.
    threads: u32,
    waits: Option<Waits>,
}

/// The waits of a node's threads, where they are to be kept.
#[derive(Debug, Default)]
struct Waits {
    /// Since when each thread waits, or has begun what it last waited for.
    since: Vec<Time>,
    ended: Vec<Wait>,
}

#[derive(Debug, Default)]
struct Told {
    entries: Vec<Entry>,
    /// The accesses of all runs, one run after the other.
    accesses: Vec<Access>,
    /// The number of entries when they were last lent.
    before: usize,
}

/// One thing that has happened.
#[derive(Debug)]
enum Entry {
    One(Record),
    /// A thread has performed so many accesses in place, at one time.
    Run {
        at: Time,
        thread: u32,
        count: usize,
    },
}

impl Entry {
    fn at(&self) -> Time {
        match self {
            Entry::One(record) => record.at(),
            Entry::Run { at, .. } => *at,
        }
    }
}

impl Log {
    /// The empty log of `node`; each node has at most so many `threads`.
    pub fn new(node: u32, threads: u32) -> Self {
        Self {
            told: Mutex::default(),
            node,
            signals: HashMap::new(),
            threads,
            waits: None,
        }
    }

    /// The same, which keeps the waits of threads, too, if `waits`.
    pub fn with_waits(mut self, waits: bool) -> Self {
        self.waits = waits.then(Waits::default);
        self
    }

    /// The waits that have ended, in the order of their ends.
    pub fn waits(&self) -> &[Wait] {
        self.waits.as_ref().map_or(&[], |waits| &waits.ended)
    }

    /// `thread` asks for `operation`.
    pub fn asked(&mut self, at: Time, thread: u16, operation: &Operation) {
        if let Some(waits) = &mut self.waits
            && On::of(operation).is_some()
        {
            let number = usize::from(thread);
            if waits.since.len() <= number {
                waits.since.resize(number + 1, Time::ZERO);
            }
            waits.since[number] = at;
        }
    }

    /// The thread numbered `thread` here has done `what`.
    pub fn tell(&mut self, at: Time, thread: u16, what: What) {
        self.tell_of((self.node, thread), at, what);
    }

    /// The thread of that node and number there has done `what`, as far as this node knows.
    pub fn tell_of(&mut self, (node, thread): (u32, u16), at: Time, what: What) {
        let thread = node * self.threads + u32::from(thread);
        let record = Record::new(at, thread, what);
        self.told().entries.push(Entry::One(record));
    }

    /// The `operation` of `thread` has ended with `answer`; a store is in its buffer. Addresses
    /// mean what `space` says.
    pub fn finished(
        &mut self,
        at: Time,
        thread: u16,
        (operation, answer): (&Operation, u64),
        space: &dyn AddressSpace,
    ) {
        let signal = match *operation {
            Operation::SendSignal(to, _) => {
                let flag = self.signal(to.0, |signals| &mut signals.0);
                Some(What::Set { flag, value: 1 })
            }
            Operation::TakeSignal(_) => {
                let flag = self.signal(thread.into(), |signals| &mut signals.1);
                Some(What::Saw { flag, value: 1 })
            }
            _ => None,
        };
        let what = signal.or_else(|| finished(self.node, operation, answer, space));
        if let Some(what) = what {
            self.tell(at, thread, what);
        }
        if let Some(waits) = &mut self.waits
            && let Some(on) = On::of(operation)
        {
            waits.ended.push(Wait {
                thread: (self.node, thread),
                begin: waits
                    .since
                    .get(usize::from(thread))
                    .map_or(at, |&since| since),
                end: at,
                on,
            });
        }
    }

    /// The flag that stands for the next of a thread's signals, of which `count` tells how many
    /// have been sent or taken.
    fn signal(&mut self, thread: u32, count: impl FnOnce(&mut (u64, u64)) -> &mut u64) -> Place {
        let count = count(self.signals.entry(thread).or_default());
        *count += 1;
        Place {
            node: self.node,
            offset: SIGNALS + (*count << 16) + u64::from(thread),
        }
    }

    /// `thread` is sent a signal that it has asked for.
    pub fn rings(&mut self, at: Time, thread: u16) {
        let flag = self.signal(thread.into(), |signals| &mut signals.0);
        self.tell(at, thread, What::Set { flag, value: 1 });
    }

    /// A wait of `thread` for one or all of many flags has seen `value` in the one at `address`.
    pub fn saw(
        &mut self,
        at: Time,
        thread: u16,
        (address, value): (u64, u8),
        space: &dyn AddressSpace,
    ) {
        if let Some((flag, _)) = space.shared(self.node, address) {
            self.tell(at, thread, What::Saw { flag, value });
        }
    }

    /// `thread` has started `other`, which knows from now on what `thread` knows.
    pub fn starts(&mut self, at: Time, thread: u16, other: u16) {
        self.hands_over(at, BIRTHS, (thread, other), other);
    }

    /// `thread` knows from now on what `other` knew when it ended.
    pub fn joins(&mut self, at: Time, thread: u16, other: u16) {
        self.hands_over(at, DEATHS, (other, thread), other);
    }

    /// Logs an imaginary flag that the giver sets and the taker sees; `thread` is the one that was
    /// started or has ended.
    fn hands_over(&mut self, at: Time, from: u64, (giver, taker): (u16, u16), thread: u16) {
        let flag = Place {
            node: self.node,
            offset: from + u64::from(thread),
        };
        self.tell(at, giver, What::Set { flag, value: 1 });
        self.tell(at, taker, What::Saw { flag, value: 1 });
    }

    /// Lends the list in which a program writes down what it does in place; to be [put
    /// back](Self::put_back).
    pub fn lend(&mut self) -> Vec<Access> {
        let told = self.told();
        told.before = told.accesses.len();
        std::mem::take(&mut told.accesses)
    }

    /// `thread` has performed at `at` what has been added to the lent `accesses`.
    pub fn put_back(&mut self, at: Time, thread: u16, accesses: Vec<Access>) {
        let thread = self.node * self.threads + u32::from(thread);
        let told = self.told();
        let count = accesses.len() - told.before;
        if count > 0 {
            told.entries.push(Entry::Run { at, thread, count });
        }
        told.accesses = accesses;
    }

    fn told(&mut self) -> &mut Told {
        let told = self.told.get_mut();
        told.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the flag at `place` if it stands for the birth or the death of a thread, a register
/// or an interrupt.
pub(crate) fn lifetime(place: Place) -> Option<String> {
    let thread = place.offset.checked_sub(BIRTHS)?;
    let node = place.node;
    Some(if let Some(signal) = place.offset.checked_sub(SIGNALS) {
        format!("a signal to thread {}", signal % (1 << 16))
    } else if place.offset >= INTERRUPTS {
        format!("the interrupt of node {node}")
    } else if let Some(number) = place.offset.checked_sub(REGISTERS) {
        format!("register {number} of node {node}")
    } else if let Some(thread) = place.offset.checked_sub(DEATHS) {
        format!("the end of thread {thread}")
    } else {
        format!("the start of thread {thread}")
    })
}

/// The flag that stands for thing number `number` of `node`, of those from `first` on.
fn apart(node: u32, first: u64, number: u32) -> Place {
    Place {
        node,
        offset: first + u64::from(number),
    }
}

/// Translates the end of an operation on `node` with `answer` into the checker's terms.
fn finished(
    node: u32,
    operation: &Operation,
    answer: u64,
    space: &dyn AddressSpace,
) -> Option<What> {
    // Atomic operations do not carry where they stand.
    let site = Location::caller();
    let updated = |address, after| {
        let (word, _) = space.shared(node, address)?;
        Some(What::Update { word, after, site })
    };
    let load_or_store = |address, value, site, stores| {
        let (word, way) = space.shared(node, address)?;
        Some(What::access(word, value, site, way, stores))
    };
    match *operation {
        Operation::Load(word, site) => load_or_store(word.0, answer, site, false),
        Operation::Store(word, value, site) => load_or_store(word.0, value, site, true),
        Operation::Set(flag, value) => {
            let (flag, _) = space.shared(node, flag.0)?;
            Some(What::Set { flag, value })
        }
        Operation::Read(flag) | Operation::Wait(flag, ..) => {
            let (flag, _) = space.shared(node, flag.0)?;
            let value = answer as u8;
            Some(What::Saw { flag, value })
        }
        // A register is cleared by one thread and taken by another, as a flag is set and seen; so
        // is an interrupt sent and taken.
        Operation::TestAndSet(_) if answer == 0 => None,
        Operation::TestAndSet(register) | Operation::Take(register, _) => {
            let flag = apart(register.node, REGISTERS, register.number);
            Some(What::Saw { flag, value: 0 })
        }
        Operation::Clear(register) => {
            let flag = apart(register.node, REGISTERS, register.number);
            Some(What::Set { flag, value: 0 })
        }
        Operation::Interrupt(node) => {
            let flag = apart(node, INTERRUPTS, 0);
            Some(What::Set { flag, value: 1 })
        }
        Operation::TakeInterrupt(_) => {
            let flag = apart(node, INTERRUPTS, 0);
            Some(What::Saw { flag, value: 1 })
        }
        Operation::FetchAdd(word, amount) => updated(word.0, answer.wrapping_add(amount)),
        Operation::Swap(word, after) => updated(word.0, after),
        Operation::CompareExchange(word, expected, new) => {
            updated(word.0, if answer == expected { new } else { answer })
        }
        _ => None,
    }
}

/// Tells `checker` and `timeline` what has happened at all nodes, whose `logs` come in their order,
/// in the order of time, and forgets it. The actions of a node reach other nodes in later windows,
/// so that records that are still missing come after all of these.
pub fn drain<'a>(
    logs: impl Iterator<Item = &'a Log>,
    space: &dyn AddressSpace,
    (checker, timeline): (&mut Option<Checker>, &mut Option<Timeline>),
) {
    let mut all: Vec<MutexGuard<Told>> = logs
        .map(|log| log.told.lock().unwrap_or_else(PoisonError::into_inner))
        .filter(|told| !told.entries.is_empty())
        .collect();
    let mut order: Vec<(Time, usize, usize)> = Vec::new();
    for (node, told) in all.iter().enumerate() {
        let entries = told.entries.iter().enumerate();
        order.extend(entries.map(|(number, entry)| (entry.at(), node, number)));
    }
    // Each node's are in order, and of equal times the first node's come first.
    order.sort_by_key(|&(at, ..)| at);
    let mut starts = vec![0; all.len()];
    for (at, node, number) in order {
        let Told {
            entries, accesses, ..
        } = &*all[node];
        match entries[number] {
            Entry::One(ref record) => {
                if let Some(checker) = checker {
                    checker.record(record);
                }
                if let (Some(timeline), Some(of_flag)) = (&mut *timeline, record.of_flag()) {
                    timeline.record(of_flag);
                }
            }
            Entry::Run { thread, count, .. } => {
                let run = starts[node]..starts[node] + count;
                starts[node] = run.end;
                let run = accesses.get(run).unwrap_or_default();
                if let Some(checker) = checker {
                    checker.accesses(at, thread, run, space);
                }
            }
        }
    }
    for told in &mut all {
        told.entries.clear();
        told.accesses.clear();
    }
}
