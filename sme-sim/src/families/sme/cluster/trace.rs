//! Causes and effects: time-stamped stages of threads, line transactions and packets.
//!
//! A [`Trace`] belongs to one node and hangs on its agenda, so that all code that puts events there
//! can also say why. Each stage ends in a [`Mark`], which names the mark in which it began: its
//! cause. Following causes backwards from a mark gives stretches of time without gaps or overlaps.
//! A wait has two causes, the thread that waits and the write of the value that ends it; the read
//! that brought the value names the write's mark too. `critical_path` does the walking.
//!
//! A stage is divided where the machine's constants say how long it takes without contention; what
//! it took beyond that is queueing. Nothing here has any influence on simulated time.

mod caches;
mod domain;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use sme_memory::{Place, Until};

use super::constants::{Constants, origin_of};
use super::core::Request;
use super::mark::{Carries, Cause, Key, Mark, Stage, What};
use crate::families::sme::address::Target;
use crate::families::sme::engine::{
    HOP_CYCLES, HOST_TO_LINK_CYCLES, HtPacket, Input, LINK_TO_HOST_CYCLES, LOOPBACK_CYCLES, Packet,
};
use crate::observe::marks::Marks;
use crate::observe::path::{BEFORE, End, MarkId, Part};
use crate::parts::contract::{Mark as SpanMark, Operation};
use crate::time::Time;

/// A packet inside an engine.
#[derive(Clone, Copy, Debug)]
struct Inside {
    mark: MarkId,
    /// Edge at which it was sampled.
    cycle: u64,
    from_link: bool,
}

/// The trace of one node.
#[derive(Debug)]
pub(super) struct Trace {
    me: u32,
    constants: Arc<Constants>,
    /// Marks of earlier times are all [`BEFORE`].
    from: Time,
    pub(super) marks: Marks<Mark>,
    /// The cause of the node's current actions.
    current: MarkId,
    /// The mark at which the transaction that started last took effect.
    effect: MarkId,
    /// The core whose uncached load is being answered.
    answered: Option<u16>,
    cores: Vec<CoreTrace>,
    transactions: FxHashMap<u32, MarkId>,
    /// Lines that are fetched through the engine, by the number of the fill: for which miss, and
    /// how far.
    fills: FxHashMap<u16, (Request, MarkId)>,
    /// Last write by line and byte.
    values: FxHashMap<(u32, u8), MarkId>,
    to_host_link: FxHashMap<Key, VecDeque<MarkId>>,
    inside: FxHashMap<Key, VecDeque<Inside>>,
    from_engine: FxHashMap<Key, VecDeque<MarkId>>,
    /// Packets by key, neighbour, and edge at which that samples them.
    pub(super) sent: FxHashMap<(Key, u32, u64), MarkId>,
    /// The time at which each end was reached, by the last thread, and why then.
    pub(super) ends: FxHashMap<End, (Time, MarkId)>,
}

/// The trace's knowledge of one core.
#[derive(Clone, Debug)]
struct CoreTrace {
    operation: Operation,
    /// The end of its last operation.
    done: MarkId,
    /// Its buffered stores.
    stores: VecDeque<MarkId>,
    /// The reason why it waits for a slot.
    slot: MarkId,
    /// Its system call, or its sleep, or its waking.
    system: MarkId,
    /// The last marks of its private caches' misses: that of its operation, and that of its oldest
    /// buffered store.
    misses: [MarkId; 2],
}

impl CoreTrace {
    /// Of a core whose thread can begin since `done`.
    fn new(done: MarkId) -> Self {
        Self {
            operation: Operation::Fence,
            done,
            stores: VecDeque::new(),
            slot: BEFORE,
            system: BEFORE,
            misses: [BEFORE; 2],
        }
    }
}

impl Trace {
    /// The trace of node `me` with `cores` cores; it begins at `from`.
    pub(super) fn new(constants: &Arc<Constants>, me: u32, cores: usize, from: Time) -> Self {
        let core = CoreTrace::new(BEFORE);
        let before = Mark {
            at: Time::ZERO,
            cause: Cause::Here(BEFORE),
            part: Part::Core,
            what: What::Unknown,
            value: None,
        };
        Self {
            me,
            constants: Arc::clone(constants),
            from,
            marks: Marks::new(before),
            current: BEFORE,
            effect: BEFORE,
            answered: None,
            cores: vec![core; cores],
            transactions: FxHashMap::default(),
            fills: FxHashMap::default(),
            values: FxHashMap::default(),
            to_host_link: FxHashMap::default(),
            inside: FxHashMap::default(),
            from_engine: FxHashMap::default(),
            sent: FxHashMap::default(),
            ends: FxHashMap::default(),
        }
    }

    fn push(&mut self, mark: Mark) -> MarkId {
        if mark.at < self.from {
            return BEFORE;
        }
        self.marks.push(mark)
    }

    /// The stage that began in `cause` and ends at `at`; `cause` itself where it takes no time.
    fn stage(&mut self, cause: MarkId, at: Time, part: Part, what: What) -> MarkId {
        if self.marks[cause].at >= at {
            return cause;
        }
        let cause = Cause::Here(cause);
        let value = None;
        self.push(Mark {
            at,
            cause,
            part,
            what,
            value,
        })
    }

    fn core(&mut self, core: u16) -> &mut CoreTrace {
        &mut self.cores[usize::from(core)]
    }

    // Threads.

    /// The thread of `core` runs.
    pub(super) fn resumed(&mut self, core: u16) {
        self.answered = None;
        self.current = self.core(core).done;
    }

    /// The thread of `core` has its core again, or for the first time.
    pub(super) fn has_core(&mut self, now: Time, core: u16) {
        let done = self.core(core).done;
        let scheduled = What::Resumes(core);
        self.core(core).done = self.stage(done, now, Part::OperatingSystem, scheduled);
    }

    /// The system starts one thread more.
    pub(super) fn starts(&mut self) {
        let started = CoreTrace::new(self.current);
        self.cores.push(started);
    }

    /// The thread of `core` has run ahead by `spent`, of which it spent `in_caches` on hits in its
    /// private caches; the node has caught up with it at `at`.
    pub(super) fn ran_ahead(
        &mut self,
        now: Time,
        core: u16,
        (spent, in_caches): (Time, Time),
        at: Time,
    ) {
        let mark = self.current;
        let computed = now + spent.since(in_caches.min(spent));
        let mark = self.stage(mark, computed, Part::Core, What::RunsAhead(core));
        let mark = self.stage(mark, now + spent, Part::Cache, What::RunsAhead(core));
        let taken_away = What::Resumes(core);
        self.core(core).done = self.stage(mark, at, Part::OperatingSystem, taken_away);
    }

    /// The thread of `core` tells the observers something.
    pub(super) fn marked(&mut self, now: Time, core: u16, mark: SpanMark) {
        let Some(end) = End::of(mark, (self.me, core), now) else {
            return;
        };
        let last = self.ends.entry(end).or_default();
        if now > last.0 {
            *last = (now, self.current);
        }
    }

    /// The thread of `core` asks for `operation`.
    pub(super) fn begun(&mut self, core: u16, operation: Operation) {
        self.core(core).operation = operation;
    }

    /// The operation of `core` is done `after` from now; its thread goes on at `resumes`, later
    /// where the core is taken away from it meanwhile.
    pub(super) fn finished(&mut self, now: Time, core: u16, after: Time, resumes: Time) {
        let operation = self.core(core).operation;
        let what = What::Operation(core, operation);
        let costs = match operation {
            _ if self.answered == Some(core) => Part::HyperTransport,
            Operation::FutexWait(..)
            | Operation::FutexWake(..)
            | Operation::WriteBack { .. }
            | Operation::Spawn(_)
            | Operation::Join(..)
            | Operation::SendSignal(..)
            | Operation::TakeSignal(_)
            | Operation::GiveWay => Part::OperatingSystem,
            Operation::Delay(_) => Part::Core,
            _ => Part::Cache,
        };
        let own = self.constants.operation.min(after);
        let cost = self.stage(self.current, now + after.since(own), costs, what);
        // A mark of its own even if it takes no time: it is where the operation ends.
        let done = self.push(Mark {
            at: now + after,
            cause: Cause::Here(cost),
            part: Part::Core,
            what,
            value: None,
        });
        // The exact time matters to no other thread: it counts as the end.
        let taken_away = What::Resumes(core);
        let done = self.stage(done, resumes, Part::OperatingSystem, taken_away);
        self.core(core).done = done;
    }

    /// Returns whether a wait of `core` takes `value`.
    fn takes(&self, core: u16, value: u64) -> bool {
        let until: Until = match self.cores[usize::from(core)].operation {
            Operation::Wait(_, until, _) | Operation::WaitAll(_, until, _) => until,
            _ => return false,
        };
        until.holds(value as u8)
    }

    fn take(&mut self, now: Time) {
        self.current = self.push(Mark {
            at: now,
            cause: Cause::Here(self.current),
            part: Part::Core,
            what: What::Takes,
            value: None,
        });
    }

    // Store buffers and slots.

    /// The newest store of `core` is in its buffer.
    pub(super) fn buffered(&mut self, core: u16) {
        let why = self.current;
        self.core(core).stores.push_back(why);
    }

    /// The oldest store of `core` leaves its buffer.
    pub(super) fn leaves_buffer(&mut self, now: Time, core: u16) {
        if let Some(why) = self.core(core).stores.pop_front() {
            self.current = self.stage(why, now, Part::Queueing, What::Buffered(core));
        }
    }

    /// A load of `core` waits for a slot.
    pub(super) fn waits_for_slot(&mut self, core: u16) {
        let why = self.current;
        self.core(core).slot = why;
    }

    /// Notes that `core` has a slot from `now` on.
    pub(super) fn has_slot(&mut self, now: Time, core: u16) {
        let why = self.core(core).slot;
        self.current = self.stage(why, now, Part::Queueing, What::Slot(core));
    }

    // The way of a packet.

    /// A packet is on its way from a core or the memory to the host link, which it reaches at `at`.
    pub(super) fn leaves_for_host_link(&mut self, at: Time, packet: &HtPacket) {
        let key = self.host_key(packet);
        let what = What::Packet(key, Stage::ToHostLink);
        let mark = self.stage(self.current, at, Part::HyperTransport, what);
        enter(&mut self.to_host_link, key, mark);
    }

    /// A packet begins to cross the host link now; its last bytes are over at `over`, and the
    /// engine's blocks sample it at edge `cycle`.
    pub(super) fn over_host_link(&mut self, now: Time, over: Time, cycle: u64, packet: &HtPacket) {
        let key = self.host_key(packet);
        let mark = leave(&mut self.to_host_link, key).unwrap_or(BEFORE);
        let stage = |stage| What::Packet(key, stage);
        let mark = self.stage(mark, now, Part::Queueing, stage(Stage::HostLinkBusy));
        let mark = self.stage(mark, over, Part::HyperTransport, stage(Stage::HostLink));
        let sampled = self.constants.engine_clock.edge(cycle);
        let mark = self.stage(mark, sampled, Part::Engine, stage(Stage::IntoEngine));
        let inside = Inside {
            mark,
            cycle,
            from_link: false,
        };
        enter(&mut self.inside, key, inside);
    }

    /// The engine samples `input`, which was due at edge `due`, at edge `cycle`.
    pub(super) fn sampled(&mut self, due: u64, cycle: u64, input: &Input) {
        let Input::Link { port, packet, .. } = input else {
            return;
        };
        let Some((from, _)) = self.constants.topology.neighbour(self.me, *port) else {
            return;
        };
        let key = Key::of(packet);
        let mark = self.push(Mark {
            at: self.constants.engine_clock.edge(due),
            cause: Cause::Sent {
                from,
                key,
                cycle: due,
            },
            part: Part::Link,
            what: What::Packet(key, Stage::Link(self.me)),
            value: None,
        });
        let sampled = self.constants.engine_clock.edge(cycle);
        let waits = What::Packet(key, Stage::BlocksBusy);
        let mark = self.stage(mark, sampled, Part::Queueing, waits);
        let inside = Inside {
            mark,
            cycle,
            from_link: true,
        };
        enter(&mut self.inside, key, inside);
    }

    /// The engine has given a packet to a link: it began at edge `begins`, what node `to` waits for
    /// left at edge `cycle`, it has crossed between clock domains at edge `crossed`, and node `to`
    /// samples it at edge `sampled`.
    pub(super) fn over_link(
        &mut self,
        (begins, cycle, crossed, sampled): (u64, u64, u64, u64),
        to: u32,
        packet: &Packet,
    ) {
        let key = Key::of(packet);
        let clock = self.constants.engine_clock;
        let uncontended = [HOST_TO_LINK_CYCLES, HOP_CYCLES];
        let mark = self.through_blocks(key, begins, uncontended, Stage::LinkBusy(to));
        let stage = |stage| What::Packet(key, stage);
        let mark = self.stage(
            mark,
            clock.edge(cycle),
            Part::Link,
            stage(Stage::Serializes(to)),
        );
        let mark = match self.constants.topology.is_switch(self.me) {
            true => {
                let delayed = clock.edge(cycle + self.constants.passage.switch);
                self.stage(mark, delayed, Part::Switch, stage(Stage::Blocks))
            }
            false => mark,
        };
        let mark = self.stage(
            mark,
            clock.edge(crossed),
            Part::Engine,
            stage(Stage::Crosses),
        );
        let mark = self.stage(
            mark,
            clock.edge(sampled),
            Part::Link,
            stage(Stage::Link(to)),
        );
        if mark != BEFORE {
            self.sent.insert((key, to, sampled), mark);
        }
    }

    /// The engine has given a packet to the host at edge `cycle`; it begins to cross the host link
    /// at `begins` and reaches the host at `at`.
    pub(super) fn leaves_engine(&mut self, cycle: u64, begins: Time, at: Time, packet: &HtPacket) {
        let key = self.host_key(packet);
        let uncontended = [LOOPBACK_CYCLES, LINK_TO_HOST_CYCLES];
        let mark = self.through_blocks(key, cycle, uncontended, Stage::BlocksBusy);
        let gave = self.constants.engine_gave(cycle);
        let stage = |stage| What::Packet(key, stage);
        let mark = self.stage(mark, gave, Part::Engine, stage(Stage::OutOfEngine));
        let mark = self.stage(mark, begins, Part::Queueing, stage(Stage::FromHostLinkBusy));
        let mark = self.stage(mark, at, Part::HyperTransport, stage(Stage::FromHostLink));
        enter(&mut self.from_engine, key, mark);
    }

    /// The part that the blocks of this position are.
    fn of_blocks(&self) -> Part {
        match self.constants.topology.is_switch(self.me) {
            true => Part::Switch,
            false => Part::Engine,
        }
    }

    /// A packet leaves the engine's blocks at edge `cycle`; `uncontended` cycles from the host or
    /// from a link are its own, what it takes beyond them it is `busy`.
    fn through_blocks(
        &mut self,
        key: Key,
        cycle: u64,
        uncontended: [u64; 2],
        busy: Stage,
    ) -> MarkId {
        let Some(inside) = leave(&mut self.inside, key) else {
            return BEFORE;
        };
        let clock = self.constants.engine_clock;
        let through = (inside.cycle + uncontended[usize::from(inside.from_link)]).min(cycle);
        let blocks = What::Packet(key, Stage::Blocks);
        let part = self.of_blocks();
        let mark = self.stage(inside.mark, clock.edge(through), part, blocks);
        self.stage(
            mark,
            clock.edge(cycle),
            Part::Queueing,
            What::Packet(key, busy),
        )
    }

    /// The bridge has taken the oldest packet in, which took `took`.
    pub(super) fn over_bridge(&mut self, now: Time, took: Time, packet: &HtPacket) {
        let key = self.host_key(packet);
        let mark = leave(&mut self.from_engine, key).unwrap_or(BEFORE);
        let stage = |stage| What::Packet(key, stage);
        let begun = now.since(took);
        let mark = self.stage(mark, begun, Part::Queueing, stage(Stage::BridgeBusy));
        self.current = self.stage(mark, now, Part::HyperTransport, stage(Stage::Bridge));
    }

    /// The answer to the load of `core` is back, with `value`.
    pub(super) fn answered(&mut self, now: Time, core: u16, value: u64) {
        let key = Key::response((self.me, core));
        self.current = leave(&mut self.from_engine, key).unwrap_or(BEFORE);
        self.answered = Some(core);
        if self.takes(core, value) {
            self.take(now);
        }
    }

    fn host_key(&self, packet: &HtPacket) -> Key {
        let thread = origin_of(packet.trace());
        let (carries, address) = match *packet {
            HtPacket::Read { address, .. } => (Carries::Read, address),
            HtPacket::Write { address, .. } => (Carries::Write, address),
            HtPacket::Response { .. } => return Key::response(thread),
        };
        let place = match self.constants.map.target(address) {
            Ok(Target::Global(place) | Target::Cached(place)) => place,
            _ => Place {
                node: self.me,
                offset: address.saturating_sub(self.constants.map.private_bytes),
            },
        };
        Key {
            thread,
            carries,
            place,
        }
    }

    // The operating system.

    /// The thread of `core` enters the system and is there at `at`.
    pub(super) fn calls(&mut self, at: Time, core: u16) {
        let mark = self.stage(self.current, at, Part::OperatingSystem, What::Calls(core));
        self.core(core).system = mark;
    }

    /// Notes that the system works for the thread of `core` from here on.
    pub(super) fn in_system(&mut self, core: u16) {
        self.answered = None;
        self.current = self.core(core).system;
    }

    /// The thread of `core` will be asleep at `asleep`.
    pub(super) fn sleeps(&mut self, asleep: Time, core: u16) {
        let what = What::Sleeps(core);
        let mark = self.stage(self.current, asleep, Part::OperatingSystem, what);
        self.core(core).system = mark;
    }

    /// `waker` has woken the thread of `core` at `called`; that resumes at `at`.
    pub(super) fn wakes(&mut self, waker: u16, core: u16, called: Time, at: Time) {
        let wakes = What::Wakes(waker, core);
        let called = self.stage(self.current, called, Part::OperatingSystem, wakes);
        // It cannot be woken before it is asleep: whichever was later is why it resumes now.
        let asleep = self.core(core).system;
        let later = |a: MarkId, b: MarkId| {
            if self.marks[a].at >= self.marks[b].at {
                a
            } else {
                b
            }
        };
        let why = later(called, asleep);
        let resumes = What::Resumes(core);
        let mark = self.stage(why, at, Part::OperatingSystem, resumes);
        self.core(core).system = mark;
    }
}

fn enter<T>(places: &mut FxHashMap<Key, VecDeque<T>>, key: Key, item: T) {
    places.entry(key).or_default().push_back(item);
}

fn leave<T>(places: &mut FxHashMap<Key, VecDeque<T>>, key: Key) -> Option<T> {
    places.get_mut(&key)?.pop_front()
}
