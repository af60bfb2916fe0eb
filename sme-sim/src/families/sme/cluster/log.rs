//! What a node tells the checker of stale reads ([`crate::observe::staleness`]), where there is one: what its
//! threads have loaded, stored and waited for, and what became of lines. Kept until the checker
//! takes it; has no influence on what is simulated.

use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sme_memory::Place;

use super::constants::{FILLS, origin_of};
use super::domain::Transaction;
use super::node::Node;
use crate::families::sme::address::{AddressMap, Target};
use crate::families::sme::spec::WriteBack;
use crate::observe::staleness::{Checker, Record, Way, What};
use crate::parts::cache::Held;
use crate::parts::cache::ahead::Access;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

/// What has happened at a node, in order.
#[derive(Debug)]
pub(super) struct Log {
    /// Locked only by who takes it.
    told: Mutex<Told>,
    /// Threads of a node.
    threads: u32,
}

#[derive(Debug, Default)]
struct Told {
    entries: Vec<Entry>,
    /// The accesses of all runs, one run after the other.
    accesses: Vec<Access>,
    /// How many they were when they were last lent.
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
    pub(super) fn new(threads: u32) -> Self {
        Self {
            told: Mutex::default(),
            threads,
        }
    }

    fn tell(&mut self, at: Time, node: u32, core: u16, what: What) {
        let thread = self.thread(node, core);
        let record = Record::new(at, thread, what);
        self.told().entries.push(Entry::One(record));
    }

    /// Where a program writes down what it does in place; to be [put back](Self::put_back).
    pub(super) fn lend(&mut self) -> Vec<Access> {
        let told = self.told();
        told.before = told.accesses.len();
        std::mem::take(&mut told.accesses)
    }

    /// `core` has performed at `at` what has been added to the lent `accesses`.
    pub(super) fn put_back(&mut self, at: Time, node: u32, core: u16, accesses: Vec<Access>) {
        let thread = self.thread(node, core);
        let told = self.told();
        let count = accesses.len() - told.before;
        if count > 0 {
            told.entries.push(Entry::Run { at, thread, count });
        }
        told.accesses = accesses;
    }

    fn thread(&self, node: u32, core: u16) -> u32 {
        node * self.threads + u32::from(core)
    }

    fn told(&mut self) -> &mut Told {
        let told = self.told.get_mut();
        told.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells `checker` what has happened at all nodes, in the order of time, and forgets it. Whatever
/// one node does reaches another in a later window, so that what is still missing comes after all
/// of this.
pub(super) fn drain(nodes: &[Node], checker: &mut Checker) {
    let Some(first) = nodes.first() else {
        return;
    };
    let map = &first.constants.map;
    let logs = nodes.iter().filter_map(|node| node.log.as_ref());
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
            Entry::One(ref record) => checker.record(record),
            Entry::Run { thread, count, .. } => {
                let run = starts[node]..starts[node] + count;
                starts[node] = run.end;
                let run = accesses.get(run).unwrap_or_default();
                checker.accesses(at, thread, run, map);
            }
        }
    }
    for told in &mut all {
        told.entries.clear();
        told.accesses.clear();
    }
}

impl Node {
    fn tell_checker(&mut self, core: u16, what: impl FnOnce(&AddressMap, u32) -> Option<What>) {
        if let Some(log) = &mut self.log
            && let Some(what) = what(&self.constants.map, self.me)
        {
            log.tell(self.now, self.me, core, what);
        }
    }

    /// The operation of `core` has ended with `answer`; a store is in its buffer.
    pub(super) fn log_finished(&mut self, core: u16, answer: u64) {
        let operation = self.cores[usize::from(core)].operation;
        // Atomic operations do not carry where they stand.
        let unknown = Location::caller();
        self.tell_checker(core, |map, node| {
            let accessed = |address| accessed(map, node, address);
            let updated = |address, after| {
                let (word, _) = accessed(address)?;
                let site = unknown;
                Some(What::Update { word, after, site })
            };
            let load_or_store = |address, value, site, stores| {
                let (word, way) = accessed(address)?;
                Some(What::access(word, value, site, way, stores))
            };
            let saw = |address| {
                let (flag, _) = accessed(address)?;
                let value = answer as u8;
                Some(What::Saw { flag, value })
            };
            match operation {
                Operation::Load(word, site) => load_or_store(word.0, answer, site, false),
                Operation::Store(word, value, site) => load_or_store(word.0, value, site, true),
                Operation::Set(flag, value) => {
                    let (flag, _) = accessed(flag.0)?;
                    Some(What::Set { flag, value })
                }
                Operation::Read(flag) | Operation::Wait(flag, _) => saw(flag.0),
                Operation::FetchAdd(word, amount) => updated(word.0, answer.wrapping_add(amount)),
                Operation::Swap(word, after) => updated(word.0, after),
                Operation::CompareExchange(word, expected, new) => {
                    updated(word.0, if answer == expected { new } else { answer })
                }
                _ => None,
            }
        });
    }

    /// A wait for many flags has seen `value` in the one at `address`.
    pub(super) fn log_saw(&mut self, core: u16, address: u64, value: u8) {
        self.tell_checker(core, |map, node| {
            accessed(map, node, address).map(|(flag, _)| What::Saw { flag, value })
        });
    }

    /// This node's memory has been read for the load of `trace`: if that fetches a line, the copy is
    /// as old as this.
    pub(super) fn log_read(&mut self, transaction: &Transaction, trace: u32) {
        if trace & FILLS == 0 {
            return;
        }
        let (node, core) = origin_of(trace);
        let physical = self.domain.address_of(transaction.line);
        if let Some(log) = &mut self.log
            && let Some((line, _)) = accessed(&self.constants.map, self.me, physical)
        {
            log.tell(self.now, node, core, What::Filled { line });
        }
    }

    /// `core` has posted the write-back of a line.
    pub(super) fn log_write_back(&mut self, core: u16, held: &Held) {
        let (bytes, old) = match self.constants.spec.cache.writeback {
            WriteBack::Line => (u64::MAX, !held.dirty),
            WriteBack::Mask => (held.dirty, 0),
        };
        self.tell_checker(core, |map, node| {
            accessed(map, node, held.line * 64).map(|(line, _)| What::WroteBack {
                line,
                bytes,
                old,
            })
        });
    }

    /// All copies in the node are gone.
    pub(super) fn log_all_dropped(&mut self, core: u16) {
        self.tell_checker(core, |_, _| Some(What::DroppedAll));
    }

    /// A posted write has been performed in this node's memory.
    pub(super) fn log_performed(&mut self, transaction: &Transaction) {
        let physical = self.domain.address_of(transaction.line);
        let Bytes { word, enables, .. } = transaction.bytes;
        let (by_node, _) = origin_of(transaction.origin);
        self.tell_checker(0, |map, node| {
            accessed(map, node, physical).map(|(line, _)| What::Performed {
                line,
                bytes: u64::from(enables) << (8 * word),
                by_node,
            })
        });
    }
}

/// What `address` names of the memory that nodes share, and how; nothing for a node's private memory.
fn accessed(map: &AddressMap, node: u32, address: u64) -> Option<(Place, Way)> {
    match map.target(address).ok()? {
        Target::Global(place) => Some((place, Way::Uncached)),
        Target::Cached(place) => Some((place, Way::Cached)),
        Target::Local(physical) => {
            let offset = physical.checked_sub(map.private_bytes)?;
            Some((Place { node, offset }, Way::Coherent))
        }
    }
}
