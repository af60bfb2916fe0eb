//! The compact form of a line against the table of MOESI: from every state that it can come into,
//! every transaction leaves the copies in the states of the table's rows, and with their bytes.

use std::collections::{HashSet, VecDeque};

use super::super::plan::Ways;
use super::super::rest::NO_CORE;
use super::super::set::{has, insert};
use super::*;
use crate::families::sme::cluster::protocol;
use crate::parts::coherence::line::{Source, access, flush};
use crate::parts::coherence::{Event as Happens, Next, Protocol, Row, State, Table};
use crate::parts::line_size::LineSize;

const THREADS: u16 = 3;
/// The line of the phase, and that of the flag of thread 1.
const PHASE: u16 = 0;
const FLAG: u16 = 1;

fn form() -> NodeForm {
    NodeForm {
        seed: 1,
        threads: THREADS.into(),
        line: LineSize::new(64).unwrap(),
        lines: 4,
        phase: PHASE,
        first_flag: FLAG,
        classes: vec![0; usize::from(THREADS) + 1],
        ways: vec![Ways {
            home: 10,
            again: 30,
            settled: 20,
        }],
        foretells: false,
        asks_as: vec![0],
        hit: 1,
        operation: 1,
        l1: 1,
        occupancy: 5,
        to_link: 1,
        bridge: 1,
        store_gap: 1,
        store_buffer: 1,
        misses: 1,
    }
}

/// Something that happens to a line: by a thread, or by the bridge.
#[derive(Clone, Copy, Debug)]
enum Does {
    Loads(u16),
    Stores(u16, u8),
    Writes(u8),
}

/// A line of flags as a state for each thread, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line {
    states: [State; THREADS as usize],
    memory: u8,
    /// The same in all copies; 0 without one.
    copies: u8,
}

impl Line {
    fn new(states: [State; THREADS as usize], memory: u8, copies: u8) -> Self {
        let has_copies = states.iter().any(|state| *state != State::Invalid);
        Self {
            states,
            memory,
            copies: if has_copies { copies } else { 0 },
        }
    }

    /// The line after that by `table`, and a bit for each thread that has lost a copy.
    fn after(mut self, table: &Table, does: Does) -> (Self, u64) {
        let effect = match does {
            Does::Loads(core) => access(table, &mut self.states, core, Happens::Load),
            Does::Stores(core, _) => access(table, &mut self.states, core, Happens::Store),
            Does::Writes(_) => flush(table, &mut self.states),
        };
        let effect = effect.unwrap();
        if effect.written_back.is_some() {
            self.memory = self.copies;
        }
        if effect.source == Some(Source::Memory) {
            self.copies = self.memory;
        }
        match does {
            Does::Loads(_) => {}
            Does::Stores(_, value) => self.copies = value,
            Does::Writes(value) => self.memory = value,
        }
        (
            Self::new(self.states, self.memory, self.copies),
            effect.dropped,
        )
    }

    /// The transactions that may start. A thread asks for a copy that it lacks; if it has one when
    /// its read starts, a store of its own was faster.
    fn all(&self, threads: &[u16], loads: &[u16]) -> Vec<Does> {
        let may_load = |core: &u16| {
            let state = self.states[usize::from(*core)];
            state == State::Invalid || state.is_dirty()
        };
        let loads = loads.iter().copied().filter(may_load).map(Does::Loads);
        let stores = threads
            .iter()
            .flat_map(|&c| [0, 1].map(|v| Does::Stores(c, v)));
        let writes = [0, 1].map(Does::Writes);
        loads.chain(stores).chain(writes).collect()
    }
}

/// One of the two kinds of lines of compact form, each with everything that it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kept {
    /// The flag of thread 1.
    Flag(u8),
    /// The phase: in memory, in the copies, whether memory is older, who answers, who has a copy.
    Phase(u8, u8, bool, u16, u64),
}

impl Kept {
    fn work(self, form: &NodeForm) -> Work {
        let mut work = Work::new(form);
        match self {
            Self::Flag(bits) => work.bits[usize::from(FLAG)] = bits,
            Self::Phase(memory, copies, dirty, owner, holders) => {
                work.phase = Phase {
                    memory,
                    copies,
                    dirty,
                    owner,
                };
                work.holders[0] = holders;
            }
        }
        work
    }

    fn of(self, work: &Work) -> Self {
        match self {
            Self::Flag(_) => Self::Flag(work.bits[usize::from(FLAG)] & !line::SPINS),
            Self::Phase(..) => {
                let Phase {
                    memory,
                    copies,
                    dirty,
                    owner,
                } = work.phase;
                Self::Phase(memory, copies, dirty, owner, work.holders[0])
            }
        }
    }

    fn line(self) -> Line {
        let (memory, copies, is_dirty, owner, holders) = match self {
            Self::Flag(bits) => {
                let is = |bit| bits & bit != 0;
                let owner = match bits & line::OWNED {
                    line::OF_LEADER => 0,
                    line::OF_FOLLOWER => 1,
                    _ => NO_CORE,
                };
                let holders = u64::from(is(line::LEADER)) | u64::from(is(line::FOLLOWER)) << 1;
                let value = |bit| u8::from(is(bit));
                let (memory, copies) = (value(line::MEMORY), value(line::COPIES));
                (memory, copies, is(line::DIRTY), owner, holders)
            }
            Self::Phase(memory, copies, dirty, owner, holders) => {
                (memory, copies, dirty, owner, holders)
            }
        };
        let state = |core: u16| {
            let is_alone = holders == 1 << core;
            match (holders >> core & 1 != 0, owner == core) {
                (false, _) => State::Invalid,
                (true, true) if is_dirty && is_alone => State::Modified,
                (true, true) if is_dirty => State::Owned,
                (true, true) if is_alone => State::Exclusive,
                _ => State::Shared,
            }
        };
        Line::new([0, 1, 2].map(state), memory, copies)
    }

    fn all(self) -> Vec<Does> {
        match self {
            // Its follower never looks at it.
            Self::Flag(_) => self.line().all(&[0, 1], &[0]),
            Self::Phase(..) => self.line().all(&[0, 1, 2], &[0, 1, 2]),
        }
    }

    /// Lets the transaction start at its home while all spin on their copies: the line after it,
    /// and a bit for each thread that asks again.
    fn starts(self, form: &NodeForm, does: Does) -> (Self, u64) {
        let mut work = self.work(form);
        match self {
            Self::Flag(_) => {
                work.spin_on_flag(FLAG);
                let on = match does {
                    Does::Loads(_) => OnFlag::read(),
                    Does::Stores(0, value) => OnFlag::own_of_leader(value),
                    Does::Stores(_, value) => OnFlag::own(value),
                    Does::Writes(value) => OnFlag::write(value),
                };
                work.arrive(form, FLAG, on);
                let asks_again = work.bits[usize::from(FLAG)] & line::SPINS == 0;
                assert_eq!(asks_again, work.fetches_flag(FLAG));
                (self.of(&work), u64::from(asks_again))
            }
            Self::Phase(..) => {
                (0..THREADS).for_each(|core| insert(&mut work.spinners, core));
                let on = match does {
                    Does::Loads(core) => OnPhase::read(core),
                    Does::Stores(core, value) => OnPhase::own(core, value),
                    Does::Writes(value) => OnPhase::write(value),
                };
                work.phase_arrives(form, on, false);
                let lost = (0..THREADS).filter(|&core| work.fetches_phase(core));
                assert!(lost.clone().all(|core| !has(&work.spinners, core)));
                (self.of(&work), lost.map(|core| 1 << core).sum())
            }
        }
    }

    /// The line after a store of a thread to its own flag, or of the leader, if it need not ask.
    fn stores_at_once(self, form: &NodeForm, core: u16, value: u8) -> Option<Self> {
        let mut work = self.work(form);
        let at_once = match (self, core) {
            (Self::Flag(_), 0) => work.set_by_leader(form, FLAG, value, 0),
            (Self::Flag(_), _) => {
                let asks = work.will_miss_own_flag(form, core);
                work.set_own_flag(form, core, value);
                !asks
            }
            (Self::Phase(..), _) => work.set_by_leader(form, PHASE, value, 0),
        };
        at_once.then(|| self.of(&work))
    }
}

/// Compares every transaction from every state with the table; how many states there are.
fn compare(begin: Kept, table: &Table) -> Result<usize, String> {
    let form = form();
    let mut seen = HashSet::from([begin]);
    let mut queue = VecDeque::from([begin]);
    while let Some(kept) = queue.pop_front() {
        for does in kept.all() {
            let same = |what, (found, lost): (Kept, u64), lost_matters: bool| {
                let (expected, dropped) = kept.line().after(table, does);
                // The follower of a flag spins on the phase only.
                let dropped = if matches!(kept, Kept::Flag(_)) {
                    dropped & 1
                } else {
                    dropped
                };
                match found.line() == expected && (lost == dropped || !lost_matters) {
                    true => Ok(()),
                    false => Err(format!(
                        "{what} {does:?}: {kept:?} becomes {found:?}, {:?}, and by the table {expected:?}",
                        found.line()
                    )),
                }
            };
            let (next, lost) = kept.starts(&form, does);
            same("transaction", (next, lost), true)?;
            if seen.insert(next) {
                queue.push_back(next);
            }
            if let Does::Stores(core, value) = does
                && (core == 0 || matches!(kept, Kept::Flag(_)))
            {
                let state = kept.line().states[usize::from(core)];
                let row = table.row(state, Happens::Store);
                let asks = row.ok_or(format!("no row for {state:?}"))?.asks;
                let at_once = kept.stores_at_once(&form, core, value);
                if at_once.is_some() == asks {
                    return Err(format!("{does:?} in {kept:?} asks or not"));
                }
                if let Some(next) = at_once {
                    same("store", (next, 0), false)?;
                }
            }
        }
    }
    Ok(seen.len())
}

const NEW: [Kept; 2] = [Kept::Flag(0), Kept::Phase(0, 0, false, NO_CORE, 0)];

#[test]
fn compact_lines_act_by_the_table_of_moesi() {
    let states = NEW.map(|line| compare(line, protocol::table()).unwrap());
    assert!(states[0] > 10 && states[1] > 30, "{states:?}");
}

#[test]
fn no_other_protocol_is_theirs() {
    for protocol in Protocol::ALL {
        let is_theirs = protocol == Protocol::Moesi;
        for line in NEW {
            assert_eq!(
                compare(line, protocol.table()).is_ok(),
                is_theirs,
                "{protocol} {line:?}"
            );
        }
    }
}

/// A compact line whose transitions differed in any row would be found: so is a table that does.
#[test]
fn every_row_matters() {
    let table = protocol::table();
    let mut changed = 0;
    for state in table.states() {
        for event in Happens::ALL {
            let Some(row) = table.row(state, event) else {
                continue;
            };
            // No line of compact form makes room for another, nor is a clean copy read anew.
            let is_unused = event == Happens::Evict
                || event == Happens::Load && matches!(state, State::Exclusive | State::Shared);
            for next in State::ALL
                .map(Next::To)
                .into_iter()
                .filter(|next| *next != row.next)
            {
                let mutant = table.with((state, event), Row { next, ..row });
                let is_found = NEW.iter().any(|line| compare(*line, &mutant).is_err());
                assert_eq!(is_found, !is_unused, "{state:?} {event:?} {next:?}");
                changed += u32::from(is_found);
            }
        }
    }
    assert!(changed > 100, "{changed}");
}
