//! The calls of the operating system, step by step, for any node that is a [`Host`].
//!
//! A call enters the kernel; calls on one node are ordered where they look at what they are about.

use sme_memory::ThreadId;

use super::{Costs, Next, Sharing, Signals, Sleepers, TimesOut, Turn, Woken};
use crate::kernel::thread::Program;
use crate::parts::address::FaultReason;
use crate::parts::contract::{self, Operation, Start};
use crate::time::Time;

/// The costs of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Entering and leaving the kernel.
    pub system_call: Time,
    /// From the decision to sleep until the core runs something else.
    pub sleep: Time,
    /// The waker's cost for each thread, one after another.
    pub wake: Time,
    /// From being woken until the thread runs.
    pub resume: Time,
    /// Starting a thread, the call apart.
    pub start: Time,
    /// Sharing a core.
    pub sharing: Costs,
}

impl Delays {
    /// The same by `to / of`, of a core whose cycles are so much longer; a quantum is the timer's.
    pub fn scaled(self, to: u32, of: u32) -> Self {
        let at = |span: Time| span.scaled(to, of);
        Self {
            system_call: at(self.system_call),
            sleep: at(self.sleep),
            wake: at(self.wake),
            resume: at(self.resume),
            start: at(self.start),
            sharing: Costs {
                switch: at(self.sharing.switch),
                quantum: self.sharing.quantum,
            },
        }
    }
}

/// The state of a node's system: sleepers by word `W`, and the sharing of cores from the first
/// started thread on.
#[derive(Debug)]
pub struct System<W> {
    sleepers: Sleepers<W>,
    /// Those of programs that send any: few do.
    signals: Option<Box<Signals>>,
    shared: Option<Box<Shared>>,
}

struct Shared {
    sharing: Sharing,
    /// Programs of threads that are about to be started, by the thread that starts each.
    starts: Vec<(u16, Start)>,
    /// Threads that end as soon as the access that they have begun is over.
    to_end: Vec<u16>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sharing.fmt(f)
    }
}

impl<W> Default for System<W> {
    fn default() -> Self {
        Self {
            sleepers: Sleepers::default(),
            signals: None,
            shared: None,
        }
    }
}

impl<W: PartialEq> System<W> {
    /// Returns whether threads share cores.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The core on which `thread` runs: to begin with, each has its own.
    #[inline]
    pub fn core_of(&self, thread: u16) -> u16 {
        let shared = self.shared.as_ref();
        shared.map_or(thread, |shared| shared.sharing.core_of(thread))
    }

    /// The time that cores have been some thread's by `now`; none if threads do not share cores.
    pub fn busy(&self, now: Time) -> Option<Time> {
        let shared = self.shared.as_ref()?;
        Some(shared.sharing.busy(now))
    }

    /// Since when `thread` has lacked its core in the middle of what it executes, if it does.
    pub fn put_off_since(&self, thread: u16) -> Option<Time> {
        let shared = self.shared.as_ref()?;
        shared.sharing.put_off_since(thread)
    }

    /// Sharing a core costs that from now on.
    pub fn costs(&mut self, costs: Costs) {
        if let Some(shared) = &mut self.shared {
            shared.sharing.costs = costs;
        }
    }

    /// Returns whether signals are to come at a time.
    pub fn awaits_alarm(&self) -> bool {
        let signals = self.signals.as_ref();
        signals.is_some_and(|signals| signals.awaits_alarm())
    }

    /// Returns whether `thread` [is to end](Self::is_to_end).
    #[inline]
    pub fn is_killed(&self, thread: u16) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| shared.to_end.contains(&thread))
    }

    /// Lets `thread`, of a node on which threads share cores, end with the access that it has
    /// begun.
    pub fn is_to_end(&mut self, thread: u16) {
        if let Some(shared) = &mut self.shared {
            shared.to_end.push(thread);
        }
    }

    fn signals(&mut self) -> &mut Signals {
        self.signals.get_or_insert_default()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let shared = self.shared.iter();
        let shared = shared.map(|s| size_of::<Shared>() + s.sharing.heap_bytes());
        let signals = self.signals.iter();
        let signals = signals.map(|s| size_of::<Signals>() + s.heap_bytes());
        self.sleepers.heap_bytes() + signals.sum::<usize>() + shared.sum::<usize>()
    }
}

/// The activity of a thread, as far as the system has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The thread executes.
    Executes,
    /// The thread waits for the hardware.
    Waits,
    /// The thread sleeps.
    Sleeps,
    /// Its program has ended.
    Ended,
}

/// Something that is to happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The operation of this thread is done, and it goes on if it has its core.
    Resume(u16),
    /// The system takes a call of this thread: [`Host::system_call`].
    Call(u16),
    /// A thread that slept has been scheduled: [`Host::woken`].
    Woken(u16),
    /// The quantum on this core may be over: [`Host::times_out`].
    TimesOut(u16),
    /// A signal that this thread has asked for is due: [`Host::rings`].
    Rings(u16),
}

/// An act of the system, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A thread enters the kernel, and is there at this time.
    Calls(u16, Time),
    /// The next events are for this thread.
    Serves(u16),
    /// A thread will be asleep at this time.
    Sleeps(u16, Time),
    /// The first thread has woken another.
    Wakes(u16, Woken),
    /// The first thread has started the second.
    Starts(u16, u16),
    /// The first thread has seen the end of the second.
    Joins(u16, u16),
    /// A thread lets others run first.
    GivesWay(u16),
    /// A thread has its core again, or for the first time.
    HasCore(u16),
    /// A thread is sent a signal that it has asked for.
    Rings(u16),
}

/// A node with an operating system. The functions with a body are the system; a node provides the
/// others, and calls it when an [`Event`] that it was handed has come.
pub trait Host {
    /// A word on which threads can sleep.
    type Word: PartialEq;

    /// The state of the system.
    fn system(&mut self) -> &mut System<Self::Word>;

    /// The costs of the system.
    fn delays(&self) -> Delays;

    /// The time.
    fn now(&self) -> Time;

    /// Returns the number of cores of the node, and the number of threads that it may have.
    fn cores_and_room(&self) -> (u16, u32);

    /// Returns the number of threads.
    fn threads(&self) -> u16;

    /// The current operation of the thread.
    fn operation(&self, thread: u16) -> Operation;

    /// The activity of the thread.
    fn activity(&self, thread: u16) -> Activity;

    /// The thread sleeps, or does not any more.
    fn set_asleep(&mut self, thread: u16, asleep: bool);

    /// The word at `address`, and what it holds; a fault of `thread` where there is none.
    fn word(&mut self, thread: u16, address: u64) -> Option<(Self::Word, u64)>;

    /// Lets `event` happen at `at`.
    fn push(&mut self, at: Time, event: Event);

    /// The operation of `thread` is done when that has executed for `after` and its own
    /// instructions; it is told `answer`.
    fn finish(&mut self, thread: u16, answer: u64, after: Time);

    /// The same for a thread that returns from the kernel: nothing is left but to resume it.
    fn returns(&mut self, thread: u16, answer: u64);

    /// The thread has asked for what cannot be.
    fn refuse(&mut self, thread: u16, reason: FaultReason);

    /// There is one thread more, on `core`, which `by` has started and runs `program`.
    fn add(&mut self, by: u16, core: u16, program: Program);

    /// The thread, which does not sleep, is to end: as soon as an access that it has begun is
    /// over. It has [ended](Self::has_ended) then.
    fn kill(&mut self, thread: u16);

    /// Returns whether the thread, whose access is over, was [killed](Self::kill) in the middle of
    /// it; it ends then.
    fn ends_if_killed(&mut self, thread: u16) -> bool;

    /// Tells who watches.
    fn watch(&mut self, deed: Deed);

    /// The thread calls the system. Its stores have left: the kernel's own locks see to that.
    fn enter_system(&mut self, thread: u16) {
        self.set_asleep(thread, false);
        let at = self.now() + self.delays().system_call;
        self.watch(Deed::Calls(thread, at));
        self.push(at, Event::Call(thread));
    }

    /// [`Event::Call`]: the call looks at what it is about.
    fn system_call(&mut self, thread: u16) {
        self.watch(Deed::Serves(thread));
        // Asleep it would not end.
        if self.ends_if_killed(thread) {
            return;
        }
        match self.operation(thread) {
            Operation::FutexWait(word, expected, _) => {
                let Some((word, value)) = self.word(thread, word.0) else {
                    return;
                };
                if value != expected {
                    return self.finish(thread, 0, Time::ZERO);
                }
                let asleep = self.now() + self.delays().sleep;
                self.watch(Deed::Sleeps(thread, asleep));
                self.system().sleepers.sleeps(word, thread, asleep);
                falls_asleep(self, thread);
            }
            Operation::FutexWake(word, count) => {
                if let Some((word, _)) = self.word(thread, word.0) {
                    wake(self, thread, &word, count);
                }
            }
            Operation::Spawn(on) => starts(self, thread, on),
            Operation::Join(other, _) => joins(self, thread, other),
            Operation::SendSignal(to, value) => signals(self, thread, to, value),
            Operation::TakeSignal(_) => {
                let asleep = self.now() + self.delays().sleep;
                match self.system().signals().takes(thread, asleep) {
                    Some(value) => self.finish(thread, value, Time::ZERO),
                    None => {
                        self.watch(Deed::Sleeps(thread, asleep));
                        sleeps_lightly(self, thread);
                        falls_asleep(self, thread);
                    }
                }
            }
            Operation::Kill(other) => kills(self, thread, other),
            Operation::Alarm(nanoseconds, value) => {
                let span = nanoseconds.checked_mul(1_000);
                let at = span.and_then(|span| self.now().as_ps().checked_add(span));
                // One beyond the end of time does not come.
                if let Some(at) = at.map(Time::from_ps) {
                    self.system().signals().sets_alarm(at, thread, value);
                    self.push(at, Event::Rings(thread));
                }
                self.finish(thread, 0, Time::ZERO);
            }
            Operation::GiveWay if self.system().is_shared() => {
                self.watch(Deed::GivesWay(thread));
                let now = self.now();
                let next = shared(self).sharing.gives_way(now, thread);
                given(self, next);
                arm(self, thread);
            }
            Operation::GiveWay => self.finish(thread, 0, Time::ZERO),
            _ => {}
        }
    }

    /// [`Event::Woken`]
    fn woken(&mut self, thread: u16) {
        self.watch(Deed::Serves(thread));
        let answer = match self.operation(thread) {
            Operation::TakeSignal(_) => self.system().signals().taken(thread),
            _ => None,
        };
        self.returns(thread, answer.unwrap_or(0));
    }

    /// [`Event::Rings`]
    fn rings(&mut self, thread: u16) {
        let now = self.now();
        let Some(value) = self.system().signals().alarm(now, thread) else {
            return;
        };
        self.watch(Deed::Rings(thread));
        comes(self, thread, (thread, value), Time::ZERO);
    }

    /// Keeps the program that `thread` has asked to start until the call is served.
    #[cold]
    fn takes_start(&mut self, thread: u16) {
        if let Some(start) = contract::take_start() {
            shared(self).starts.push((thread, start));
        }
    }

    /// Returns whether `thread`, which could go on, has its core; if not, it will be resumed when
    /// it has.
    #[cold]
    fn has_its_turn(&mut self, thread: u16) -> bool {
        let now = self.now();
        let turn = match shared(self).sharing.becomes_urgent(thread) {
            true => wants_at_once(self, thread),
            false => shared(self).sharing.wants(now, thread),
        };
        match turn {
            Turn::Now => self.watch(Deed::HasCore(thread)),
            Turn::Later => {}
            Turn::Given(next) => given(self, Some(next)),
        }
        arm(self, thread);
        turn == Turn::Now
    }

    /// The thread has asked for an interrupt that has not come: it has no need of its core.
    fn waits_for_interrupt(&mut self, thread: u16) {
        sleeps_lightly(self, thread);
        gives_core_away(self, thread);
    }

    /// [`Event::TimesOut`]
    fn times_out(&mut self, core: u16) {
        let now = self.now();
        let has = shared(self).sharing.has(core);
        let waits = has.is_some_and(|has| self.activity(has) != Activity::Executes);
        match shared(self).sharing.times_out(now, core, waits) {
            TimesOut::Stays => {}
            TimesOut::Later(at) => self.push(at, Event::TimesOut(core)),
            TimesOut::Given(next) => {
                given(self, Some(next));
                arm(self, next.thread);
            }
            TimesOut::GoesBack => {
                if let Some(has) = has {
                    arm(self, has);
                }
            }
        }
    }

    /// The program of `thread` has ended.
    fn has_ended(&mut self, thread: u16) {
        if let Some(signals) = &mut self.system().signals {
            signals.forgets_alarms(thread);
        }
        if !self.system().is_shared() {
            return;
        }
        shared(self).to_end.retain(|&other| other != thread);
        let Delays { wake, resume, .. } = self.delays();
        for (number, waiter) in (1..).zip(shared(self).sharing.ends(thread)) {
            self.watch(Deed::Joins(waiter, thread));
            let called = self.now() + wake.times(number);
            let woken = Woken {
                thread: waiter,
                called,
                at: called + resume,
            };
            wakes(self, thread, woken);
        }
        gives_core_away(self, thread);
    }
}

fn shared<H: Host + ?Sized>(host: &mut H) -> &mut Shared {
    if !host.system().is_shared() {
        let (now, costs) = (host.now(), host.delays().sharing);
        let threads = host.threads();
        let mut sharing = Sharing::new(threads, host.cores_and_room().0, costs);
        for thread in 0..threads {
            match host.activity(thread) {
                Activity::Executes | Activity::Waits => continue,
                Activity::Sleeps => {
                    let operation = host.operation(thread);
                    if let Operation::TakeInterrupt(_) | Operation::TakeSignal(_) = operation {
                        sharing.is_urgent_when_woken(thread);
                    }
                }
                Activity::Ended => drop(sharing.ends(thread)),
            }
            sharing.blocks(now, thread);
        }
        let starts = Vec::new();
        let to_end = Vec::new();
        host.system().shared = Some(Box::new(Shared {
            sharing,
            starts,
            to_end,
        }));
    }
    let shared = host.system().shared.as_deref_mut();
    shared.expect("it has just been made, if it was not there")
}

/// A thread wants its core for an interrupt or a signal.
fn wants_at_once<H: Host + ?Sized>(host: &mut H, thread: u16) -> Turn {
    let now = host.now();
    let sharing = &mut shared(host).sharing;
    let has = sharing.has(sharing.core_of(thread));
    let executes = has.is_some_and(|has| host.activity(has) == Activity::Executes);
    shared(host).sharing.wants_at_once(now, thread, executes)
}

/// A thread that has got a core goes on there.
fn given<H: Host + ?Sized>(host: &mut H, next: Option<Next>) {
    if let Some(Next { thread, at }) = next {
        host.push(at, Event::Resume(thread));
    }
}

/// Sees to it that the quantum on the core of `thread` ends if others want it.
fn arm<H: Host + ?Sized>(host: &mut H, thread: u16) {
    let now = host.now();
    let sharing = &mut shared(host).sharing;
    let core = sharing.core_of(thread);
    if let Some(at) = sharing.timer(now, core) {
        host.push(at, Event::TimesOut(core));
    }
}

/// `thread` gives its core away until it wants to go on.
fn gives_core_away<H: Host + ?Sized>(host: &mut H, thread: u16) {
    if host.system().is_shared() {
        let now = host.now();
        let next = shared(host).sharing.blocks(now, thread);
        given(host, next);
        arm(host, thread);
    }
}

/// `thread` is going to wait for an interrupt or a signal: then it is urgent.
fn sleeps_lightly<H: Host + ?Sized>(host: &mut H, thread: u16) {
    // To begin with each has a core of its own.
    if host.system().is_shared() {
        shared(host).sharing.is_urgent_when_woken(thread);
    }
}

fn falls_asleep<H: Host + ?Sized>(host: &mut H, thread: u16) {
    host.set_asleep(thread, true);
    gives_core_away(host, thread);
}

fn wake<H: Host + ?Sized>(host: &mut H, waker: u16, word: &H::Word, most: u32) {
    let Delays { wake, resume, .. } = host.delays();
    let now = host.now();
    let all = host.system().sleepers.wake(now, word, most, (wake, resume));
    let count = all.len() as u64;
    for woken in all {
        wakes(host, waker, woken);
    }
    host.finish(waker, count, wake.times(count));
}

fn wakes<H: Host + ?Sized>(host: &mut H, waker: u16, woken: Woken) {
    host.set_asleep(woken.thread, false);
    host.watch(Deed::Wakes(waker, woken));
    host.push(woken.at, Event::Woken(woken.thread));
}

fn starts<H: Host + ?Sized>(host: &mut H, by: u16, on: Option<u32>) {
    let threads = u32::from(host.threads());
    let (_, room) = host.cores_and_room();
    let shared = shared(host);
    let is_own = |&(of, _): &(u16, Start)| of == by;
    let Some(place) = shared.starts.iter().position(is_own) else {
        return;
    };
    let (_, start) = shared.starts.swap_remove(place);
    let core = match on {
        None => shared.sharing.least_used(),
        Some(core) if core < shared.sharing.cores().into() => core as u16,
        Some(_) => return host.refuse(by, FaultReason::NoSuchCore),
    };
    if threads >= room {
        return host.refuse(by, FaultReason::NoRoom);
    }
    let thread = shared.sharing.start(core);
    host.add(by, core, start(thread.into()));
    host.watch(Deed::Starts(by, thread));
    let took = host.delays().start;
    host.push(host.now() + took, Event::Resume(thread));
    host.finish(by, thread.into(), took);
}

fn signals<H: Host + ?Sized>(host: &mut H, by: u16, to: ThreadId, value: u64) {
    if to.0 >= u32::from(host.threads()) {
        return host.refuse(by, FaultReason::NoSuchThread);
    }
    let wake = host.delays().wake;
    comes(host, by, (to.0 as u16, value), wake);
    host.finish(by, 0, wake);
}

/// A signal comes for thread `to` with a value: it takes `by`, if that has sent it, so long to wake
/// the thread.
fn comes<H: Host + ?Sized>(host: &mut H, by: u16, (to, value): (u16, u64), wake: Time) {
    if let Some(asleep) = host.system().signals().comes(to, value) {
        let called = host.now() + wake;
        let woken = Woken {
            thread: to,
            called,
            at: called.max(asleep) + host.delays().resume,
        };
        wakes(host, by, woken);
    }
}

fn kills<H: Host + ?Sized>(host: &mut H, thread: u16, other: ThreadId) {
    if !shared(host).sharing.knows(other.0) {
        return host.refuse(thread, FaultReason::NoSuchThread);
    }
    let other = other.0 as u16;
    if host.activity(other) == Activity::Sleeps {
        let system = host.system();
        system.sleepers.forgets(other);
        system.signals().forgets(other);
        shared(host).sharing.forgets(other);
    }
    host.kill(other);
    host.finish(thread, 0, Time::ZERO);
}

fn joins<H: Host + ?Sized>(host: &mut H, thread: u16, other: ThreadId) {
    let sharing = &mut shared(host).sharing;
    if !sharing.knows(other.0) {
        return host.refuse(thread, FaultReason::NoSuchThread);
    }
    let other = other.0 as u16;
    if sharing.joins(thread, other) {
        falls_asleep(host, thread);
    } else {
        host.watch(Deed::Joins(thread, other));
        host.finish(thread, 0, Time::ZERO);
    }
}
