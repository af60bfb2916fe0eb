//! The operations of threads, as cores perform them.

use sme_memory::{Capability, Flags, Until};

use super::agenda::Event;
use super::core::{Waiting, Wants};
use super::node::Node;
use super::transaction::{Kind, Transaction, Update};
use crate::families::sme::address::{CACHEABLE, FaultReason, Target};
use crate::kernel::site::WaitSite;
use crate::observe::failure::Fault;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::parts::os::Host;
use crate::parts::store_buffer::Store;
use crate::time::Time;

impl Node {
    /// Starts the operation that the thread of `core` has asked for.
    pub(super) fn begin(&mut self, core: u16) {
        match self.cores[core].operation {
            Operation::Read(flag) | Operation::Wait(flag, ..) => {
                self.load(core, flag.0, Bytes::byte(flag.0));
            }
            Operation::Load(word, _) => self.load(core, word.0, Bytes::word(word.0)),
            Operation::WaitAll(..) => self.wait_for_rest(core, None),
            Operation::Set(..) | Operation::Store(..) => self.store(core),
            Operation::Fence
            | Operation::Flush(_)
            | Operation::WriteBack { .. }
            | Operation::FetchAdd(..)
            | Operation::Swap(..)
            | Operation::CompareExchange(..)
            | Operation::FutexWait(..)
            | Operation::FutexWake(..)
            | Operation::Spawn(_)
            | Operation::Join(..)
            | Operation::SendSignal(..)
            | Operation::TakeSignal(_)
            | Operation::Kill(_)
            | Operation::Alarm(..)
            | Operation::GiveWay => self.when_drained(core),
            Operation::TestAndSet(_) | Operation::Take(..) | Operation::Clear(_) => {
                self.stops(core, None, FaultReason::Lacks(Capability::TestAndSet));
            }
            Operation::WaitAny(..) | Operation::FindAny(..) => {
                self.stops(core, None, FaultReason::Lacks(Capability::AnyFlag));
            }
            Operation::InvalidateTagged => {
                self.stops(core, None, FaultReason::Lacks(Capability::Tagged));
            }
            Operation::Network => {
                self.stops(core, None, FaultReason::Lacks(Capability::Network));
            }
            Operation::Interrupt(_) | Operation::TakeInterrupt(_) => {
                self.stops(core, None, FaultReason::Lacks(Capability::Interrupts));
            }
            Operation::SetDivider(_) | Operation::SetVoltage(_) => {
                self.stops(core, None, FaultReason::Lacks(Capability::Scaling));
            }
            // Its address space says that blocks and passes are loads and stores: no program asks
            // for one.
            Operation::Put(..)
            | Operation::Get(..)
            | Operation::Copy(..)
            | Operation::Sum(..)
            | Operation::Fill(..)
            | Operation::FillPast(..)
            | Operation::CopyWords(..)
            | Operation::CopyPast(..)
            | Operation::FlushWords(..) => {
                self.is_done(core, 0, Time::ZERO);
            }
            Operation::Now => {
                let (now, own) = (self.here.now, self.here.constants.operation);
                self.is_done(core, now.as_ps() / 1_000 + 1, own);
            }
            Operation::Delay(span) => self.is_done(core, 0, span),
            // Marks take no time: the thread never stops at one.
            Operation::Mark(_) => self.is_done(core, 0, Time::ZERO),
        }
    }

    /// The operation of `core` is done when that has run for `after` from now on, and its thread is
    /// told `answer`.
    pub(super) fn is_done(&mut self, core: u16, answer: u64, after: Time) {
        let state = &mut self.cores[core];
        state.answer = answer;
        state.waiting = Waiting::Nothing;
        self.here.log_finished(core, &state.operation, answer);
        let at = (self.here.constants).executes(
            self.here.me,
            self.system.core_of(core),
            self.here.now,
            after,
        );
        self.here
            .agenda
            .tell(|t| t.finished(self.here.now, core, after, at));
        self.here.agenda.push(at, Event::Resume(core));
    }

    /// The access of `core` cannot be performed; its thread stops here.
    pub(super) fn faults(&mut self, core: u16, address: u64, reason: FaultReason) {
        self.stops(core, Some(address), reason);
    }

    /// The same of an operation that need not be about an address.
    pub(super) fn stops(&mut self, core: u16, address: Option<u64>, reason: FaultReason) {
        self.cores[core].waiting = Waiting::Fault;
        self.here.fault.get_or_insert(Fault {
            core,
            address,
            reason,
        });
    }

    /// Returns the target of `address`; lets `core` fault where there is none.
    pub(super) fn target(&mut self, core: u16, address: u64, bytes: Bytes) -> Option<Target> {
        let target = if bytes.is_whole_word() && !address.is_multiple_of(8) {
            Err(FaultReason::Misaligned)
        } else {
            self.here.constants.map.target(address)
        };
        target
            .map_err(|reason| self.faults(core, address, reason))
            .ok()
    }

    fn load(&mut self, core: u16, address: u64, bytes: Bytes) {
        if self.stores.hold_back(core, address, bytes) {
            self.cores[core].waiting = Waiting::Drained;
            return;
        }
        if let Some(value) = self.stores.forwarded(core, address, bytes) {
            self.loaded(core, address, value, self.here.constants.l1);
            return;
        }
        match self.target(core, address, bytes) {
            Some(Target::Local(physical)) => {
                let line = self.domain.line(physical);
                if let Some(value) = self.domain.readable(core, line, bytes) {
                    self.loaded(core, address, value, self.here.constants.l1);
                } else if self.domain.is_fetching(core, line) {
                    self.cores[core].waiting = Waiting::Cache;
                } else {
                    self.fetch(core, line, bytes);
                }
            }
            Some(Target::Global(_)) => self.load_uncached(core),
            Some(Target::Cached(_)) => self.load_cached(core, address, bytes),
            None => {}
        }
    }

    fn fetch(&mut self, core: u16, line: u32, bytes: Bytes) {
        self.cores[core].waiting = Waiting::Cache;
        let origin = self.here.origin(core, &self.cores[core]);
        self.domain.request(
            self.here.now,
            core,
            line,
            (Kind::Read, bytes, 0),
            origin,
            &mut self.here.agenda,
        );
    }

    /// A load of `core` has its value: the end of it, unless it belongs to a wait that goes on.
    pub(super) fn loaded(&mut self, core: u16, address: u64, value: u64, after: Time) {
        let operation = self.cores[core].operation;
        let rest = self.here.constants.operation;
        match operation {
            _ if self.system.is_killed(core) => self.is_done(core, value, after + rest),
            Operation::Wait(_, until, _) if !until.holds(value as u8) => {
                self.wait_on(core, address)
            }
            Operation::WaitAll(mut flags, until, site) => {
                let holds = until.holds(value as u8);
                if holds {
                    flags = self.passed(core, (flags, until, site), value);
                }
                if flags.count == 0 {
                    self.is_done(core, 0, rest);
                } else if address & CACHEABLE == 0 {
                    self.queue_for_slot(core);
                } else if holds {
                    self.wait_for_rest(core, None);
                } else {
                    self.spin_on_copy(core, address);
                }
            }
            _ => self.is_done(core, value, after + rest),
        }
    }

    /// A wait has seen a value that does not end it.
    fn wait_on(&mut self, core: u16, address: u64) {
        match self.here.constants.map.target(address) {
            Ok(Target::Local(physical)) => {
                let line = self.domain.line(physical);
                self.domain.spin(core, line, Bytes::byte(address));
                self.cores[core].waiting = Waiting::Cache;
            }
            Ok(Target::Cached(_)) => self.spin_on_copy(core, address),
            _ => self.queue_for_slot(core),
        }
    }

    /// The first of `flags`, all of which `core` waits for, satisfies it; the others remain.
    fn passed(
        &mut self,
        core: u16,
        (flags, until, site): (Flags, Until, WaitSite),
        value: u64,
    ) -> Flags {
        self.here.log_saw(core, flags.first.0, value as u8);
        let rest = flags.skip(1);
        self.cores[core].operation = Operation::WaitAll(rest, until, site);
        self.here.progress += 1;
        rest
    }

    /// Looks at the remaining flags of a [`Operation::WaitAll`] in order. Lines that are not
    /// there are fetched, several at once, as a core does that runs ahead of its misses; the
    /// first flag that does not satisfy the wait is spun on. `arrived` is the value that a fetch
    /// has just brought of a flag whose line may already be gone again.
    fn wait_for_rest(&mut self, core: u16, arrived: Option<(u32, Bytes, u64)>) {
        let Operation::WaitAll(mut flags, until, site) = self.cores[core].operation else {
            return;
        };
        let mut looked = 0;
        loop {
            if flags.count == 0 || self.system.is_killed(core) {
                let took = self.here.constants.l1.times(looked) + self.here.constants.operation;
                self.is_done(core, 0, took);
                return;
            }
            let address = flags.first.0;
            let bytes = Bytes::byte(address);
            let physical = match self.target(core, address, bytes) {
                Some(Target::Local(physical)) => physical,
                Some(Target::Global(_)) => return self.load_uncached(core),
                Some(Target::Cached(_)) => {
                    if self.stores.hold_back(core, address, bytes) {
                        self.cores[core].waiting = Waiting::Drained;
                        return;
                    }
                    let forwarded = self.stores.forwarded(core, address, bytes);
                    let held = || self.cached(core, address, bytes).map(|(value, _)| value);
                    match forwarded.or_else(held) {
                        Some(value) if until.holds(value as u8) => {
                            flags = self.passed(core, (flags, until, site), value);
                            looked += 1;
                            continue;
                        }
                        Some(_) => return self.spin_on_copy(core, address),
                        None => return self.load_cached(core, address, bytes),
                    }
                }
                None => return,
            };
            let line = self.domain.line(physical);
            let value = self
                .stores
                .forwarded(core, address, bytes)
                .or_else(|| self.domain.readable(core, line, bytes))
                .or(match arrived {
                    Some((from, of, value)) if from == line && of == bytes => Some(value),
                    _ => None,
                });
            match value {
                Some(value) if until.holds(value as u8) => {
                    flags = self.passed(core, (flags, until, site), value);
                    looked += 1;
                }
                Some(_) if self.domain.cached(core, line, bytes).is_some() => {
                    self.domain.spin(core, line, bytes);
                    self.cores[core].waiting = Waiting::Cache;
                    return;
                }
                _ => {
                    self.fetch_ahead(core, flags);
                    return;
                }
            }
        }
    }

    /// Fetches the lines of `flags` that are neither there nor on their way.
    fn fetch_ahead(&mut self, core: u16, flags: Flags) {
        self.cores[core].waiting = Waiting::Cache;
        let mut last_line = None;
        let mut lines = 0;
        for index in 0..flags.count {
            let address = flags.at(index).0;
            let Ok(Target::Local(physical)) = self.here.constants.map.target(address) else {
                return;
            };
            let line = self.domain.line(physical);
            if last_line == Some(line) {
                continue;
            }
            last_line = Some(line);
            lines += 1;
            if lines > self.here.constants.spec.core.outstanding_misses {
                return;
            }
            let bytes = Bytes::byte(address);
            if !self.domain.is_fetching(core, line)
                && self.domain.cached(core, line, bytes).is_none()
            {
                self.fetch(core, line, bytes);
            }
        }
    }

    /// A transaction that `core` asked for is complete.
    pub(super) fn cache_answers(&mut self, transaction: &Transaction) {
        let core = transaction.agent;
        match transaction.kind {
            Kind::Own => {
                self.cores[core].store_under_way = false;
                self.stores.pop(core);
                self.drain(core);
            }
            Kind::Update(_) => {
                let locked = self.here.constants.spec.coherence.locked;
                self.is_done(
                    core,
                    transaction.value,
                    locked + self.here.constants.operation,
                );
            }
            _ if self.cores[core].waiting != Waiting::Cache => {
                // Fetched ahead for a wait that has ended meanwhile: the line is simply there.
            }
            _ => self.fetched(core, transaction),
        }
    }

    fn fetched(&mut self, core: u16, transaction: &Transaction) {
        let line = transaction.line;
        let operation = self.cores[core].operation;
        if let Operation::WaitAll(flags, ..) = operation {
            // One for flags behind the engine asked for no line here: an earlier wait did.
            if flags.first.0 & CACHEABLE == 0 {
                let arrived = (line, transaction.bytes, transaction.value);
                self.wait_for_rest(core, Some(arrived));
            }
            return;
        }
        let Some((address, bytes, until)) = self.cores[core].awaited() else {
            return;
        };
        let Ok(Target::Local(physical)) = self.here.constants.map.target(address) else {
            return;
        };
        if self.domain.line(physical) != line {
            return; // fetched ahead for an earlier wait
        }
        let held = self.domain.cached(core, line, bytes);
        let seen = held.or((transaction.bytes == bytes).then_some(transaction.value));
        match (seen, until) {
            _ if self.system.is_killed(core) => self.is_done(core, 0, Time::ZERO),
            (None, _) => self.fetch(core, line, bytes),
            (Some(value), Some(until)) if !until.holds(value as u8) => {
                if held.is_some() {
                    self.domain.spin(core, line, bytes);
                } else {
                    self.fetch(core, line, bytes);
                }
            }
            (Some(value), _) => self.is_done(core, value, self.here.constants.operation),
        }
    }

    /// Puts the store of `core` into its buffer, or waits for a place there.
    fn store(&mut self, core: u16) {
        if self.stores.is_full(core) {
            self.cores[core].waiting = Waiting::StoreBuffer;
            return;
        }
        let (address, bytes, value) = match self.cores[core].operation {
            Operation::Set(flag, value) => (flag.0, Bytes::byte(flag.0), u64::from(value)),
            Operation::Store(word, value, _) => (word.0, Bytes::word(word.0), value),
            _ => return,
        };
        if self.target(core, address, bytes).is_none() {
            return;
        }
        self.here.progress += 1;
        let origin = self.here.origin(core, &self.cores[core]);
        self.stores.push(
            core,
            Store {
                address,
                bytes,
                value,
                origin,
            },
        );
        self.here.agenda.tell(|t| t.buffered(core));
        self.is_done(core, 0, self.here.constants.operation);
        self.drain(core);
    }

    /// Lets stores of `core` leave as far as they can now; its thread goes on if it waited for a
    /// place among them, or for the last to leave.
    pub(super) fn drain(&mut self, core: u16) {
        self.let_leave(core);
        match self.cores[core].waiting {
            Waiting::StoreBuffer if !self.stores.is_full(core) => self.store(core),
            Waiting::Drained if self.stores.is_empty(core) => self.drained(core),
            _ => {}
        }
    }

    /// The stores of `core`, the oldest first, leave until one has to wait.
    fn let_leave(&mut self, core: u16) {
        while !self.cores[core].store_under_way {
            let Some(store) = self.stores.oldest(core) else {
                return;
            };
            match self.here.constants.map.target(store.address) {
                Ok(Target::Local(physical)) => {
                    let line = self.domain.line(physical);
                    let Store {
                        bytes,
                        value,
                        origin,
                        ..
                    } = store;
                    let by = (self.here.now, origin);
                    self.here
                        .agenda
                        .tell(|t| t.leaves_buffer(self.here.now, core));
                    if self.domain.write_if_owned(core, line, (bytes, value), by) {
                        self.here.agenda.tell(|t| t.written(line, bytes));
                        self.stores.pop(core);
                        continue;
                    }
                    self.cores[core].store_under_way = true;
                    self.domain.request(
                        self.here.now,
                        core,
                        line,
                        (Kind::Own, bytes, value),
                        origin,
                        &mut self.here.agenda,
                    );
                    return;
                }
                Ok(Target::Cached(_)) => {
                    let Store {
                        address,
                        bytes,
                        value,
                        ..
                    } = store;
                    self.here
                        .agenda
                        .tell(|t| t.leaves_buffer(self.here.now, core));
                    if self.write_if_held_alone(core, address, bytes, value) {
                        self.stores.pop(core);
                        continue;
                    }
                    self.cores[core].store_under_way = true;
                    return self.miss(core, Wants::Store);
                }
                Ok(Target::Global(_)) => {
                    let ready_at = self.stores.gap_until(core);
                    if ready_at > self.here.now {
                        if self.stores.awaits_gap(core) {
                            self.here.agenda.push(ready_at, Event::Drain(core));
                        }
                        return;
                    }
                    self.here
                        .agenda
                        .tell(|t| t.leaves_buffer(self.here.now, core));
                    self.stores.pop(core);
                    self.post(core, store);
                    let gap_until = self.here.now + self.here.constants.spec.uncached.store_gap;
                    self.stores.begin_gap(core, gap_until);
                }
                // Refused before it was buffered.
                Err(_) => self.stores.pop(core),
            }
        }
    }

    /// Performs what must not pass an earlier store.
    fn when_drained(&mut self, core: u16) {
        self.cores[core].waiting = Waiting::Drained;
        if self.stores.is_empty(core) {
            self.drained(core);
        }
    }

    fn drained(&mut self, core: u16) {
        let (word, update, operand) = match self.cores[core].operation {
            Operation::Fence => return self.is_done(core, 0, self.here.constants.operation),
            Operation::Flush(word) => return self.flush(core, word),
            Operation::WriteBack { .. } => return self.call_write_back(core),
            Operation::FutexWait(..)
            | Operation::FutexWake(..)
            | Operation::Spawn(_)
            | Operation::Join(..)
            | Operation::SendSignal(..)
            | Operation::TakeSignal(_)
            | Operation::Kill(_)
            | Operation::Alarm(..)
            | Operation::GiveWay => return self.enter_system(core),
            Operation::FetchAdd(word, amount) => (word, Update::Add, amount),
            Operation::Swap(word, value) => (word, Update::Swap, value),
            Operation::CompareExchange(word, expected, new) => {
                self.domain.expect(core, expected);
                (word, Update::CompareExchange, new)
            }
            Operation::WaitAll(..) => return self.wait_for_rest(core, None),
            _ => match self.cores[core].awaited() {
                Some((address, bytes, _)) => return self.load(core, address, bytes),
                None => return,
            },
        };
        let bytes = Bytes::word(word.0);
        match self.target(core, word.0, bytes) {
            Some(Target::Local(physical)) => {
                self.here.progress += 1;
                let origin = self.here.origin(core, &self.cores[core]);
                let by = (self.here.now, origin);
                let line = self.domain.line(physical);
                let owned = self
                    .domain
                    .update_if_owned(core, line, bytes, (update, operand), by);
                if let Some(before) = owned {
                    self.here.agenda.tell(|t| t.written(line, bytes));
                    let locked = self.here.constants.spec.coherence.locked;
                    self.is_done(core, before, locked + self.here.constants.operation);
                } else {
                    self.cores[core].waiting = Waiting::Update;
                    self.domain.request(
                        self.here.now,
                        core,
                        line,
                        (Kind::Update(update), bytes, operand),
                        origin,
                        &mut self.here.agenda,
                    );
                }
            }
            Some(Target::Global(_) | Target::Cached(_)) => {
                self.faults(core, word.0, FaultReason::NotAtomic)
            }
            None => {}
        }
    }
}
