//! The threads of a node, as its hardware sees them: the operation and the state of each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sme_memory::Place;

use super::Hardware;
use super::pace::Pace;
use crate::kernel::queue::EventQueue;
use crate::kernel::seldom::seldom;
use crate::kernel::thread::{Misuse, Programs, Threads};
use crate::kernel::window::Outbox;
use crate::observe::failure::Fault;
use crate::observe::log::Log;
use crate::observe::path::{BEFORE, End, MarkId, Part, Role};
use crate::observe::spans::SpanRecord;
use crate::observe::staleness::What as Told;
use crate::observe::trace::{Cause, Mark, Trace, What};
use crate::observe::traffic::Traffic;
use crate::parts::address::{AddressSpace, FaultReason};
use crate::parts::contract::{Mark as Said, NetworkCall, Operation, swap_block, take_network_call};
use crate::parts::noise::Noise;
use crate::parts::os::{self, Delays, System};
use crate::time::Time;

/// The settings of a run, shared by all nodes.
pub struct Setting {
    pub(super) space: Box<dyn AddressSpace>,
    pub(super) cores: u32,
    pub(super) room: u32,
    pub(super) operation: Time,
    pub(super) system: (Delays, Time),
    pub(super) noise: Option<Noise>,
    pub(super) each_span: bool,
}

/// The reason why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The thread runs: its next event is pending.
    Nothing,
    /// For what it spins on to change.
    Spins,
    /// For a change of what it reads in its own memory, or an interrupt.
    Watches,
    /// For an answer, of which there will be one.
    Answer,
    /// For an answer, and asks again until it is the right one.
    Polls,
    /// For the system to wake it.
    Sleeps,
    /// For ever: it has asked for what cannot be.
    Fault,
    /// For nothing more: its program has ended.
    Finished,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its current operation.
    pub operation: Operation,
    /// The number of flags that its wait has seen.
    pub(super) passed: u32,
    /// The reason why it does not run.
    pub waiting: Waiting,
    answer: u64,
    /// The number of answers received.
    pub(super) looks: u32,
    /// Its accesses count: the warm-up is over.
    counted: bool,
    /// The log has been told of its operation, which is not over yet.
    told: bool,
    /// Its last mark, if there is a trace.
    pub(super) mark: MarkId,
}

/// A message on behalf of a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Message<M> {
    /// The thread's number in its node.
    pub thread: u16,
    /// In which mark of the sender it began.
    cause: MarkId,
    /// The content.
    pub what: M,
}

/// An event of a node.
pub(super) enum Event<H: Hardware> {
    System(os::Event),
    Hardware(H::Event),
    Arrives(u32, Message<H::Message>),
}

/// The effect of a value on the thread that has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The end of its operation.
    Done,
    /// The next flag is to be looked at.
    Next,
    /// Nothing: it is to be looked at again when it has changed.
    Not,
}

/// The threads of a node.
pub struct Processor<H: Hardware> {
    /// The node's number.
    pub me: u32,
    /// The time.
    pub now: Time,
    pub(super) setting: Arc<Setting>,
    pub(super) pace: Pace,
    pub(super) queue: EventQueue<Event<H>>,
    sequence: u64,
    /// To be sent, and when it is there, when the event that goes on is over.
    sent: Vec<(u32, Time, Message<H::Message>)>,
    pub(super) programs: Threads,
    pub(super) threads: Vec<Thread>,
    /// Blocks of words, by thread, of those that have asked for any.
    blocks: Vec<Vec<u64>>,
    /// The calls of a network that threads have made, by thread.
    network_calls: Vec<Option<NetworkCall>>,
    pub(super) system: System<u64>,
    pub(super) spans: SpanRecord,
    /// The traffic of its threads over the network.
    pub traffic: Traffic,
    pub(super) log: Option<Box<Log>>,
    pub(super) trace: Option<Box<Trace>>,
    /// In which mark that began which happens now.
    pub(super) cause: Cause,
    pub(super) fault: Option<Fault>,
    pub(super) events: u64,
    pub(super) progress: u64,
    pub(super) posted: u64,
    pub(super) performed: u64,
    /// The end of the last program here.
    pub(super) ended: Time,
}

impl<H: Hardware> Processor<H> {
    pub(super) fn new(me: u32, setting: Arc<Setting>, programs: Box<dyn Programs>) -> Self {
        let count = programs.len() as u16;
        let mut cpu = Self {
            me,
            now: Time::ZERO,
            queue: EventQueue::new(),
            sequence: 0,
            sent: Vec::new(),
            programs: Threads::new(programs),
            threads: vec![Thread::new(false, BEFORE); usize::from(count)],
            blocks: Vec::new(),
            network_calls: Vec::new(),
            system: System::default(),
            spans: SpanRecord::new(setting.each_span),
            traffic: Traffic::default(),
            log: None,
            trace: None,
            cause: (me, BEFORE),
            fault: None,
            events: 0,
            progress: 0,
            posted: 0,
            performed: 0,
            ended: Time::ZERO,
            pace: Pace::new(&setting, (1, 1)),
            setting,
        };
        for thread in 0..count {
            let at = cpu.executes(thread, Time::ZERO);
            cpu.push(at, Event::System(os::Event::Resume(thread)));
        }
        cpu
    }

    // For the hardware.

    /// The thread numbered `thread`.
    pub fn thread(&self, thread: u16) -> &Thread {
        &self.threads[usize::from(thread)]
    }

    /// Returns whether `thread` ends when its operation is over, however that ends.
    pub fn is_killed(&self, thread: u16) -> bool {
        self.system.is_killed(thread)
    }

    /// `thread` waits for something.
    pub fn waits(&mut self, thread: u16, waiting: Waiting) {
        self.threads[usize::from(thread)].waiting = waiting;
    }

    /// Something has got further, though no thread has been told.
    pub fn progress(&mut self) {
        self.progress += 1;
    }

    /// The operation of `thread` is done `after` from now, its own instructions apart; it is told
    /// `answer`.
    pub fn done(&mut self, thread: u16, answer: u64, after: Time) {
        self.ends(thread, answer, (after, self.pace.operation));
    }

    /// The operation of `thread` is done in a picosecond, its own instructions included: no program
    /// that does nothing else stops the time.
    pub fn answers(&mut self, thread: u16, answer: u64) {
        self.ends(thread, answer, (Time::from_ps(1), Time::ZERO));
    }

    /// [`Self::done`] for a program that asks for the time: it is that of now.
    pub fn tells_time(&mut self, thread: u16, after: Time) {
        self.done(thread, self.now.as_ps() / 1_000 + 1, after);
    }

    /// The operation of `thread`, a store or the like, is on its way and may be seen elsewhere
    /// before it is [done](Self::done).
    pub fn issues(&mut self, thread: u16) {
        self.logs(thread, 0);
        self.threads[usize::from(thread)].told = true;
    }

    /// Tells the log, if there is one, that the operation of `thread` has ended with `answer`.
    fn logs(&mut self, thread: u16, answer: u64) {
        let state = &mut self.threads[usize::from(thread)];
        let was_told = std::mem::take(&mut state.told);
        if let Some(log) = &mut self.log
            && !was_told
        {
            let space = &*self.setting.space;
            seldom(|| log.finished(self.now, thread, (&state.operation, answer), space));
        }
    }

    /// Returns whether the log wants to know anything.
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// The cause of the current event.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Attributes the current event to `cause`.
    pub fn caused_by(&mut self, cause: Cause) {
        self.cause = cause;
    }

    /// Attributes the current event to `thread`: its cause is the last mark of that thread.
    pub fn goes_on(&mut self, thread: u16) {
        self.cause = (self.me, self.thread(thread).mark);
    }

    /// The operation of `thread` cannot be performed.
    #[cold]
    pub fn refuse(&mut self, thread: u16, address: Option<u64>, reason: FaultReason) {
        self.waits(thread, Waiting::Fault);
        self.fault.get_or_insert(Fault {
            core: thread,
            address,
            reason,
        });
    }

    /// Something has come for `thread` that the node cannot take.
    pub fn fails(&mut self, thread: u16, reason: FaultReason) {
        self.fault.get_or_insert(Fault {
            core: thread,
            address: None,
            reason,
        });
    }

    /// The core of `thread`.
    pub fn core_of(&self, thread: u16) -> u16 {
        self.system.core_of(thread)
    }

    /// Takes the call of a network that `thread` has made.
    pub fn take_network_call(&mut self, thread: u16) -> Option<NetworkCall> {
        self.network_calls.get_mut(usize::from(thread))?.take()
    }

    /// Lets `event` happen to the hardware at `at`.
    pub fn later(&mut self, at: Time, event: H::Event) {
        self.push(at, Event::Hardware(event));
    }

    /// Sends node `to` something on behalf of `thread`, to be there at `at`.
    pub fn send(&mut self, to: u32, at: Time, thread: u16, what: H::Message) {
        let (_, cause) = self.cause;
        let message = Message {
            thread,
            cause,
            what,
        };
        self.sent.push((to, at, message));
    }

    /// A load of `thread` goes to another node.
    pub fn loads_remotely(&mut self, thread: u16, bytes: u64) {
        if self.thread(thread).counted {
            self.traffic.remote_loads += 1;
            self.traffic.link_bytes += bytes;
        }
    }

    /// A store of `thread`, or a write-back, is posted.
    pub fn posts(&mut self, thread: u16, bytes: u64) {
        self.posted += 1;
        if self.thread(thread).counted {
            self.traffic.remote_stores += 1;
            self.traffic.link_bytes += bytes;
        }
    }

    /// Something that was posted has been performed.
    pub fn performed(&mut self) {
        self.performed += 1;
        self.progress += 1;
    }

    /// Tells the checker of loads, if there is one, what the thread of that node and number has
    /// done.
    pub fn tell(&mut self, of: (u32, u16), what: impl FnOnce() -> Told) {
        if let Some(log) = &mut self.log {
            seldom(|| log.tell_of(of, self.now, what()));
        }
    }

    /// Traces the current event: it is `what` of the variable at `place`, on behalf of `thread`.
    /// With `reads`, the value that it reads was written by the event that called [`Self::wrote`]
    /// with that key.
    pub fn traces(
        &mut self,
        what: &'static str,
        thread: (u32, u16),
        place: Place,
        reads: Option<u64>,
    ) {
        if let Some(trace) = &mut self.trace {
            let mark = seldom(|| {
                let value = reads.and_then(|key| trace.last_write(key));
                let what = What::Does(what, thread, place);
                trace.push(Mark {
                    at: self.now,
                    cause: self.cause,
                    part: Part::Link,
                    what,
                    role: Role::Other,
                    value,
                })
            });
            self.cause = (self.me, mark);
        }
    }

    /// Returns whether events are traced.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// The word that `key` stands for has been written by what happens now.
    pub fn wrote(&mut self, key: u64) {
        if let Some(trace) = &mut self.trace {
            seldom(|| trace.written(key, self.cause.1));
        }
    }

    /// The words of the block that `thread` stores, or has loaded.
    pub fn block(&mut self, thread: u16) -> &mut Vec<u64> {
        self.block_of(usize::from(thread))
    }

    fn block_of(&mut self, number: usize) -> &mut Vec<u64> {
        if self.blocks.len() <= number {
            self.blocks.resize(number + 1, Vec::new());
        }
        &mut self.blocks[number]
    }

    // For the node.

    /// `thread` ends when its operation is over.
    pub(super) fn kills(&mut self, thread: u16) {
        self.system.is_to_end(thread);
    }

    /// The program of `thread` has ended, or ends here.
    pub(super) fn finishes(&mut self, thread: u16) {
        self.waits(thread, Waiting::Finished);
        self.ended = self.now;
        self.programs.forget(thread.into());
    }

    pub(super) fn poll(&mut self, thread: u16) -> Result<Option<Operation>, Misuse> {
        let number = usize::from(thread);
        let state = &mut self.threads[number];
        if let Operation::Get(..) = state.operation {
            swap_block(self.block_of(number));
        }
        let state = &mut self.threads[number];
        let Some(operation) = self.programs.resume(number, state.answer)? else {
            return Ok(None);
        };
        if let Operation::Put(..) = operation {
            swap_block(self.block_of(number));
        }
        if operation == Operation::Network {
            if self.network_calls.len() <= number {
                self.network_calls.resize(number + 1, None);
            }
            self.network_calls[number] = take_network_call();
        }
        let state = &mut self.threads[number];
        if !matches!(operation, Operation::Mark(_)) {
            state.operation = operation;
            (state.passed, state.looks) = (0, 0);
            if let Some(log) = &mut self.log {
                seldom(|| log.asked(self.now, thread, &operation));
            }
        }
        Ok(Some(operation))
    }

    pub(super) fn says(&mut self, thread: u16, mark: Said) {
        let state = &mut self.threads[usize::from(thread)];
        state.counted |= mark == Said::Counts;
        if let Said::Ahead(_) = mark {
            state.answer = self.now.as_ps();
        }
        self.spans.mark(self.now, thread, mark);
        if let Some(trace) = &mut self.trace
            && let Some(end) = End::of(mark, (self.me, thread), self.now)
        {
            trace.ends(self.now, end, self.cause.1);
        }
    }

    pub(super) fn computes(&mut self, thread: u16, span: Time) {
        let (to, of) = self.pace.ratio;
        self.ends(thread, 0, (Time::ZERO, span.scaled(to, of)));
    }

    /// The system is called to let the caches be written back, which takes it some time.
    pub(super) fn calls_write_back(&mut self, thread: u16) {
        let Pace { delays, walk, .. } = self.pace;
        let at = self.now + delays.system_call + walk;
        self.marks(thread, at, "calls the system");
        self.push(at, Event::System(os::Event::Call(thread)));
    }

    /// The operation of `thread` ends when that has executed for `after` and then for `own`.
    pub(super) fn ends(&mut self, thread: u16, answer: u64, (after, own): (Time, Time)) {
        let state = &mut self.threads[usize::from(thread)];
        state.answer = answer;
        state.waiting = Waiting::Nothing;
        self.logs(thread, answer);
        let end = self.executes(thread, after + own);
        if let Some(trace) = &mut self.trace {
            let state = &mut self.threads[usize::from(thread)];
            state.mark = seldom(|| {
                let what = What::Operation(thread, state.operation);
                let access = trace.stage(self.cause, self.now + after, Part::Cache, what);
                trace.push(Mark {
                    at: end,
                    cause: (self.me, access),
                    part: Part::Core,
                    what,
                    role: Role::OwnEnd,
                    value: None,
                })
            });
        }
        self.push(end, Event::System(os::Event::Resume(thread)));
    }

    /// The system has done `what` for `thread` by `at`.
    pub(super) fn marks(&mut self, thread: u16, at: Time, what: &'static str) {
        if let Some(trace) = &mut self.trace {
            let mark = &mut self.threads[usize::from(thread)].mark;
            let what = What::System(thread, what);
            *mark = trace.stage((self.me, *mark), at, Part::OperatingSystem, what);
        }
    }

    /// Returns the time at which `thread` has executed for `span` from now on.
    fn executes(&self, thread: u16, span: Time) -> Time {
        let setting = &self.setting;
        let Some(noise) = &setting.noise else {
            return self.now + span;
        };
        let core = u64::from(self.system.core_of(thread));
        let cores = u64::from(setting.cores.max(setting.room));
        noise.end_of(u64::from(self.me) * cores + core, self.now, span)
    }

    pub(super) fn push(&mut self, at: Time, event: Event<H>) {
        self.sequence += 1;
        self.queue.push(at, self.me, self.sequence, event);
    }

    pub(super) fn next(&self) -> Time {
        self.queue.next()
    }

    pub(super) fn pop(&mut self) -> Option<Event<H>> {
        loop {
            let (now, event) = self.queue.pop()?;
            if !self.is_superfluous(&event) {
                self.now = now;
                self.events += 1;
                return Some(event);
            }
        }
    }

    /// Returns whether `event` is about a thread that was killed before it.
    fn is_superfluous(&self, event: &Event<H>) -> bool {
        match *event {
            Event::System(os::Event::Resume(thread) | os::Event::Rings(thread)) => {
                self.thread(thread).waiting == Waiting::Finished
            }
            _ => false,
        }
    }

    pub(super) fn has_come(&mut self, from: u32, message: &Message<H::Message>) {
        self.cause = (from, message.cause);
    }

    pub(super) fn send_all(&mut self, outbox: &mut Outbox<Message<H::Message>>) {
        for (to, at, message) in self.sent.drain(..) {
            self.sequence += 1;
            match to == self.me {
                true => {
                    let event = Event::Arrives(to, message);
                    self.queue.push(at, to, self.sequence, event);
                }
                false => outbox.send(self.me, self.sequence, to, at, message),
            }
        }
    }

    pub(super) fn deliver(
        &mut self,
        at: Time,
        from: u32,
        sequence: u64,
        message: Message<H::Message>,
    ) {
        let event = Event::Arrives(from, message);
        self.queue.push(at, from, sequence, event);
    }

    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes()
            + self.programs.bytes()
            + self.threads.capacity() * size_of::<Thread>()
            + self.system.heap_bytes()
    }
}

impl Thread {
    pub(super) fn new(counted: bool, mark: MarkId) -> Self {
        Self {
            operation: Operation::Fence,
            passed: 0,
            waiting: Waiting::Nothing,
            answer: 0,
            looks: 0,
            counted,
            told: false,
            mark,
        }
    }

    /// A thread that this one starts.
    pub(super) fn child(&self) -> Self {
        Self::new(self.counted, self.mark)
    }
}
