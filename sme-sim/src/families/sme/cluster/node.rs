//! One node: cores and their threads, the coherent domain, the host link and the engine, joined.
//!
//! A node runs its own events and its engine's clock edges in order of time (an event before an
//! edge at the same time, so that what has arrived is sampled), and exchanges packets and credits
//! with its neighbours. How each operation of a thread is performed stands in `operate`; what lies
//! between cores and engine in `host`, and the way from there to the other nodes in `way`.

use std::sync::Arc;

use super::agenda::{Agenda, Event};
use super::caches::Caches;
use super::constants::Constants;
use super::core::{Core, Waiting};
use super::domain::{BRIDGE, Domain};
use super::host::{Bridge, Slots};
use super::record::Record;
use super::watched::Watched;
use super::way::{LinkCredit, Outputs, Way};
use crate::families::sme::engine::Input;
use crate::families::sme::engine::waves::Tap;
use crate::kernel::thread::{Programs, Threads};
use crate::kernel::window::{self, Inbox, NoTask, Outbox};
use crate::observe::failure::Fault;
use crate::observe::log::Log;
use crate::parts::contract::{self, Mark, Operation};
use crate::parts::line::Bytes;
use crate::parts::os::{Host, System};
use crate::parts::store_buffer::StoreBuffers;
use crate::time::Time;

/// A node of the cluster, or a position that has only a switch.
pub struct Node {
    pub(super) me: u32,
    pub(super) constants: Arc<Constants>,
    pub(super) now: Time,
    pub(super) agenda: Agenda,
    pub(super) threads: Threads,
    pub(super) cores: Vec<Core>,
    pub(super) stores: StoreBuffers,
    pub(super) domain: Domain,
    pub(super) caches: Option<Box<Caches>>,
    pub(super) slots: Option<Box<Slots>>,
    pub(super) way: Way,
    pub(super) bridge: Bridge,
    pub(super) system: System<(u32, Bytes)>,
    pub(super) record: Record,
    /// What is told to the checker of stale reads, where there is one.
    pub(super) log: Option<Box<Log>>,
    pub(super) fault: Option<Fault>,
    /// Operations that changed something or ended a wait: a run in which this stands still is
    /// stuck even if loads are polling.
    pub(super) progress: u64,
    pub(super) events: u64,
}

impl Node {
    /// Node `me` with one thread for each program, all about to start.
    pub(super) fn new(
        me: u32,
        constants: Arc<Constants>,
        programs: Box<dyn Programs>,
        engine: Watched,
        each_span: bool,
    ) -> Self {
        let sockets: Vec<u8> = (0..programs.len())
            .map(|thread| constants.socket_of(thread as u32))
            .collect();
        let spec = &constants.spec;
        let mut agenda = Agenda::new(me);
        for core in 0..programs.len() {
            let at = constants.executes(me, core as u16, Time::ZERO, Time::ZERO);
            agenda.push(at, Event::Resume(core as u16));
        }
        Self {
            me,
            now: Time::ZERO,
            cores: sockets.iter().map(|&socket| Core::new(socket)).collect(),
            stores: StoreBuffers::new(programs.len(), spec.core.store_buffer),
            domain: Domain::new(
                (Arc::clone(&constants.latencies), constants.homes),
                &sockets,
                constants.seed,
                me,
            ),
            caches: None,
            slots: None,
            way: Way::new(me, Arc::clone(&constants), engine),
            bridge: Bridge::default(),
            system: System::default(),
            record: Record::new(each_span),
            log: None,
            fault: None,
            progress: 0,
            events: 0,
            threads: Threads::new(programs),
            agenda,
            constants,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Watched {
        self.way.engine()
    }

    /// Lets the engine's ports be recorded from now on.
    pub(super) fn record_waves(&mut self, tap: Tap) {
        self.way.record_waves(tap);
    }

    /// Whether nothing is under way outside the engine.
    pub fn is_quiet(&self) -> bool {
        self.agenda.next() == Time::NEVER
            && (0..self.cores.len()).all(|core| self.stores.is_empty(core as u16))
            && self.domain.is_quiet()
            && self.caches.iter().all(|caches| caches.is_quiet())
            && (self.slots.iter()).all(|slots| slots.is_quiet(&self.constants.spec))
            && self.way.is_quiet()
            && self.bridge.is_quiet()
    }

    /// Bytes of simulator state, the engine's apart.
    pub fn bytes_besides_engine(&self) -> usize {
        size_of::<Self>() - size_of::<Watched>()
            + self.agenda.heap_bytes()
            + self.threads.bytes()
            + self.cores.capacity() * size_of::<Core>()
            + self.stores.heap_bytes()
            + self.domain.heap_bytes()
            + self.caches.as_ref().map_or(0, |caches| caches.bytes())
            + self.slots.as_ref().map_or(0, |slots| slots.bytes())
            + self.way.heap_bytes()
            + self.bridge.heap_bytes()
            + self.system.heap_bytes()
            + self.record.heap_bytes()
    }

    /// What happens now; the next thing that comes from elsewhere happens at `next_at`.
    fn perform(&mut self, event: Event, next_at: Time, outbox: &mut Outbox<Input>) {
        match event {
            Event::Resume(core) => self.resume(core),
            Event::Drain(core) => self.drain(core),
            Event::Home(transaction) => {
                self.domain.arrive(self.now, transaction, &mut self.agenda);
            }
            Event::Release(line) => self.domain.release(self.now, line, &mut self.agenda),
            Event::Complete(number) => {
                let transaction = self.domain.complete(number);
                self.agenda
                    .tell(|t| t.completed(self.now, number, &transaction));
                if transaction.agent == BRIDGE {
                    self.memory_answers(number, &transaction);
                } else {
                    self.cache_answers(&transaction);
                }
            }
            Event::SlotFree(socket) => self.slot_freed(socket),
            Event::HostSend(packet) => {
                let posted = self.way.send(self.now, packet, &mut self.agenda);
                self.has_sent(posted);
            }
            Event::HostReady => {
                let posted = self.way.ready(self.now, &mut self.agenda);
                self.has_sent(posted);
            }
            Event::HostCredit(channel) => {
                let posted = self.way.credit(self.now, channel, &mut self.agenda);
                self.has_sent(posted);
            }
            Event::EnginePacket(arrival) => {
                let when = (self.now, next_at.min(self.agenda.next()));
                let (agenda, record) = (&mut self.agenda, &mut self.record);
                self.events += (self.way).arrived(arrival, when, agenda, record, outbox);
            }
            Event::EngineHostCredit(channel) => {
                let input = Input::HostCredit(channel);
                self.way.samples(self.now, input, &mut self.agenda);
            }
            Event::HostReceive(packet) => self.host_receives(packet),
            Event::Bridge => self.bridge_next(),
            Event::Woken(core) => self.woken(core),
            Event::System(core) => self.system_call(core),
            Event::Begin(core) => self.begins(core),
            Event::Ordered(core, wants) => self.ordered(core, wants),
            Event::Filled(fill) => self.filled(fill),
            Event::Stored(core) => self.stored(core),
            Event::WrittenBack(core) => self.written_back(core),
            Event::TimesOut(core) => self.times_out(core),
        }
    }

    /// Lets the thread of `core` run until it asks for something that takes time.
    fn resume(&mut self, core: u16) {
        self.cores[usize::from(core)].waiting = Waiting::Nothing;
        if self.system.is_shared() && !self.has_its_turn(core) {
            return;
        }
        self.progress += 1;
        self.agenda.tell(|t| t.resumed(core));
        self.run(core);
    }

    /// The same, within an operation of the thread.
    fn run(&mut self, core: u16) {
        let number = usize::from(core);
        loop {
            let (operation, ahead) = self.poll(core);
            let Some(operation) = operation else {
                self.cores[number].waiting = Waiting::Finished;
                return self.has_ended(core);
            };
            if let Operation::Spawn(_) = operation {
                self.takes_start(core);
            }
            if ahead > Time::ZERO {
                self.cores[number].operation = operation;
                let at = self.constants.executes(self.me, core, self.now, ahead);
                self.agenda.push(at, Event::Begin(core));
                return;
            }
            match operation {
                Operation::Mark(mark) => self.takes_mark(core, mark),
                _ => return self.asked(core, operation),
            }
        }
    }

    /// What the thread of `core` asks for next, and how far it has run ahead until then.
    #[inline]
    fn poll(&mut self, core: u16) -> (Option<Operation>, Time) {
        let number = usize::from(core);
        let answer = self.cores[number].answer;
        let ahead = self.caches.as_mut().and_then(|caches| caches.take(core));
        let Some(mut ahead) = ahead else {
            return (self.threads.resume(number, answer), Time::ZERO);
        };
        ahead.may_run = self.stores.is_empty(core);
        ahead.log = self.log.as_mut().map(|log| log.lend());
        contract::lend(ahead);
        let operation = self.threads.resume(number, answer);
        let Some(mut ahead) = contract::take_back() else {
            return (operation, Time::ZERO);
        };
        let spent = ahead.spent();
        if let Some(log) = &mut self.log
            && let Some(accesses) = ahead.log.take()
        {
            log.put_back(self.now, core, accesses);
        }
        self.caches().put_back(core, ahead);
        (operation, spent)
    }

    /// [`Event::Begin`]: the node has caught up with `core`.
    fn begins(&mut self, core: u16) {
        match self.cores[usize::from(core)].operation {
            Operation::Mark(mark) => {
                self.takes_mark(core, mark);
                self.run(core);
            }
            operation => self.asked(core, operation),
        }
    }

    /// Writes down what the thread of `core` says.
    #[inline]
    fn takes_mark(&mut self, core: u16, mark: Mark) {
        self.cores[usize::from(core)].counted |= mark == Mark::Counts;
        self.record.spans.mark(self.now, core, mark);
        self.agenda.tell(|t| t.marked(self.now, mark));
    }

    /// Starts what the thread of `core` has asked for.
    #[inline]
    fn asked(&mut self, core: u16, operation: Operation) {
        let state = &mut self.cores[usize::from(core)];
        state.operation = operation;
        state.looks = 0;
        self.agenda.tell(|t| t.begun(core, operation));
        if let Some(log) = &mut self.log {
            log.asked(self.now, core, &operation);
        }
        self.begin(core);
    }

    /// The host link has been at work; whether a posted packet has left over it.
    fn has_sent(&mut self, posted: bool) {
        if posted {
            self.posted_have_left();
        }
    }
}

impl window::Locality for Node {}

impl window::Node for Node {
    /// What the engine of `to` samples at the edge at which it arrives.
    type Message = Input;
    type Late = LinkCredit;
    type Workspace = Outputs;
    type Task = NoTask;

    fn next(&self) -> Time {
        self.agenda.next().min(self.way.next())
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Input>,
        outbox: &mut Outbox<Input>,
        outputs: &mut Outputs,
    ) -> Option<NoTask> {
        loop {
            let (event, message) = (self.agenda.next_key(), inbox.next_key());
            let event_at = event.min(message).at();
            if event_at <= self.way.next() {
                if event_at >= end {
                    break;
                }
                self.now = event_at;
                self.events += 1;
                if message < event {
                    let Some(input) = inbox.pop() else {
                        break;
                    };
                    let when = (event_at, event.min(inbox.next_key()).at());
                    let (agenda, record) = (&mut self.agenda, &mut self.record);
                    self.events += self.way.takes(input, when, agenda, record, outbox);
                } else {
                    let Some((_, event)) = self.agenda.pop() else {
                        break;
                    };
                    self.perform(event, message.at(), outbox);
                }
            } else {
                if self.way.next() >= end {
                    break;
                }
                let (given, last) = self.way.ticks(
                    end.min(message.at()),
                    &mut self.agenda,
                    &mut self.record,
                    outbox,
                    outputs,
                    Way::reaches_host,
                );
                self.now = last;
                self.events += given;
            }
        }
        self.record.is_at(self.now);
        let (agenda, record) = (&mut self.agenda, &mut self.record);
        self.events += self.way.foresees(agenda, record, outbox, outputs);
        None
    }

    fn can_wait(message: &Input) -> Option<LinkCredit> {
        Way::can_wait(message)
    }

    fn waits(&self) -> bool {
        self.way.awaits_link_credits()
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, input: Input) {
        self.way
            .comes(at, (from, sequence), input, &mut self.agenda);
    }

    #[inline]
    fn take_late(&mut self, at: Time, credit: LinkCredit, start: Time) {
        self.events += 1;
        self.way.takes_credit(at, credit, start, &mut self.record);
    }
}
