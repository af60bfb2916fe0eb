//! One node: cores and their threads, the coherent domain, the host link and the engine, joined.
//!
//! A node runs its own events and its engine's clock edges in order of time (an event before an
//! edge at the same time, so that what has arrived is sampled), and exchanges packets and credits
//! with its neighbours.
//!
//! It is made of parts that know nothing of each other's state, and drives them: it hands each
//! event to the part that it concerns, and acts on the part's answer. `operate` performs the
//! operations of a thread, `uncached` and `cached` those on memory behind the engine.

use std::sync::Arc;

use sme_memory::Route;

use super::agenda::Event;
use super::bridge::Bridge;
use super::caches::Caches;
use super::constants::{Constants, origin_of};
use super::core::{Cores, Waiting};
use super::domain::Domain;
use super::here::Here;
use super::message::{Message, Words};
use super::slots::Slots;
use super::transaction::{BRIDGE, Transaction};
use super::watched::Watched;
use super::way::{LinkCredit, Outputs, Way};
use crate::families::sme::engine::Input;
use crate::families::sme::engine::waves::Tap;
use crate::kernel::thread::{Misuse, Programs, Threads};
use crate::kernel::window::{self, Inbox, NoTask, Outbox};
use crate::parts::address::{AddressSpace, FaultReason};
use crate::parts::cache::ahead::Hits;
use crate::parts::contract::{self, Mark, Operation};
use crate::parts::line::Bytes;
use crate::parts::os::{Host, System};
use crate::parts::store_buffer::StoreBuffers;
use crate::time::Time;

/// A node of the cluster, or a position that has only a switch.
pub struct Node {
    pub(super) here: Here,
    pub(super) threads: Threads,
    pub(super) cores: Cores,
    pub(super) stores: StoreBuffers,
    /// The node's memory, and the copies of it in the cores' caches.
    pub(super) domain: Domain,
    /// The cores' caches of other memory.
    pub(super) caches: Option<Box<Caches>>,
    pub(super) slots: Option<Box<Slots>>,
    pub(super) bridge: Bridge,
    pub(super) way: Way,
    pub(super) system: System<(u32, Bytes)>,
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
        let mut here = Here::new(me, Arc::clone(&constants), each_span);
        for core in 0..programs.len() {
            let at = constants.executes(me, core as u16, Time::ZERO, Time::ZERO);
            here.agenda.push(at, Event::Resume(core as u16));
        }
        let memory = constants.memory_at(me);
        Self {
            here,
            cores: Cores::new(&sockets),
            stores: StoreBuffers::new(programs.len(), constants.spec.core.store_buffer),
            domain: Domain::new(memory, &sockets, constants.seed, me),
            caches: None,
            slots: None,
            bridge: Bridge::default(),
            way: Way::new(me, constants, engine),
            system: System::default(),
            threads: Threads::new(programs),
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

    /// Returns whether nothing is under way outside the engine.
    pub fn is_quiet(&self) -> bool {
        self.here.agenda.next() == Time::NEVER
            && (0..self.cores.len()).all(|core| self.stores.is_empty(core as u16))
            && self.domain.is_quiet()
            && self.caches.iter().all(|caches| caches.is_quiet())
            && (self.slots.iter()).all(|slots| slots.is_quiet(&self.here.constants.spec))
            && self.way.is_quiet()
            && self.bridge.is_quiet()
    }

    /// Bytes of simulator state, the engine's apart.
    pub fn bytes_besides_engine(&self) -> usize {
        size_of::<Self>() - size_of::<Watched>()
            + self.here.agenda.heap_bytes()
            + self.threads.bytes()
            + self.cores.heap_bytes()
            + self.stores.heap_bytes()
            + self.domain.heap_bytes()
            + self.caches.as_ref().map_or(0, |caches| caches.bytes())
            + self.slots.as_ref().map_or(0, |slots| slots.bytes())
            + self.way.heap_bytes()
            + self.bridge.heap_bytes()
            + self.system.heap_bytes()
            + self.here.record.heap_bytes()
    }

    /// Performs `event` now; the next input from elsewhere is due at `next_at`.
    fn perform(&mut self, event: Event, next_at: Time, outbox: &mut Outbox<Message>) {
        match event {
            Event::Resume(core) => self.resume(core),
            Event::Drain(core) => self.drain(core),
            Event::Home(transaction) => {
                let agenda = &mut self.here.agenda;
                let started = self.domain.arrive(self.here.now, transaction, agenda);
                self.has_started(started);
            }
            Event::Release(line) => {
                let agenda = &mut self.here.agenda;
                let started = self.domain.release(self.here.now, line, agenda);
                self.has_started(started);
            }
            Event::Complete(number) => {
                let transaction = self.domain.complete(number);
                self.here
                    .agenda
                    .tell(|t| t.completed(self.here.now, number, &transaction));
                if transaction.agent == BRIDGE {
                    let memory = (self.domain.address_of(transaction.line), &transaction);
                    (self.bridge).answered(number, memory, &mut self.here, &mut self.way);
                    if let Some(words) = self.domain.take_extra_words(number) {
                        self.sends_extra_words(&transaction, words, outbox);
                    }
                } else {
                    self.cache_answers(&transaction);
                }
            }
            Event::SlotFree(socket) => self.slot_freed(socket),
            Event::HostSend(packet) => {
                let posted = self.way.send(self.here.now, packet, &mut self.here.agenda);
                self.has_sent(posted);
            }
            Event::HostReady => {
                let posted = self.way.ready(self.here.now, &mut self.here.agenda);
                self.has_sent(posted);
            }
            Event::HostCredit(channel) => {
                let posted = self
                    .way
                    .credit(self.here.now, channel, &mut self.here.agenda);
                self.has_sent(posted);
            }
            Event::EnginePacket(arrival) => {
                let when = (self.here.now, next_at.min(self.here.agenda.next()));
                let (agenda, record) = (&mut self.here.agenda, &mut self.here.record);
                self.here.events += (self.way).arrived(arrival, when, agenda, record, outbox);
            }
            Event::EngineHostCredit(channel) => {
                let input = Input::HostCredit(channel);
                self.way
                    .samples(self.here.now, input, &mut self.here.agenda);
            }
            Event::HostReceive(packet) => self.host_receives(packet),
            Event::Bridge => {
                (self.bridge).next(&mut self.here, &mut self.domain, &mut self.way);
            }
            Event::Woken(core) => self.woken(core),
            Event::System(core) => self.system_call(core),
            Event::Begin(core) => self.begins(core),
            Event::Ordered(core, wants) => self.ordered(core, wants),
            Event::Filled(fill) => self.filled(fill),
            Event::Stored(core) => self.stored(core),
            Event::WrittenBack(core) => self.written_back(core),
            Event::TimesOut(core) => self.times_out(core),
            Event::Rings(core) => self.rings(core),
        }
    }

    /// A transaction has started in the coherent domain.
    fn has_started(&mut self, number: Option<u32>) {
        if let Some(number) = number
            && self.domain.is_posted(number)
        {
            self.bridge.ordered(&mut self.here, &mut self.way);
        }
    }

    /// Sends the extra words of a long read, whose answer has set out, to the node whose fill
    /// reads.
    fn sends_extra_words(
        &mut self,
        read: &Transaction,
        words: Box<[u64]>,
        outbox: &mut Outbox<Message>,
    ) {
        let (constants, me) = (&self.here.constants, self.here.me);
        let first = self.domain.address_of(read.line);
        let Some((line, _)) = constants.map.shared(me, first) else {
            return;
        };
        let address = constants.map.address(me, line, Route::Global);
        let words = Words {
            line: constants.map.line.number(address),
            first: read.bytes.word + 1,
            words,
        };
        let (reader, _) = origin_of(read.origin);
        if reader == me {
            return self.takes_extra_words(&words);
        }
        let at = self.here.now + constants.lookahead();
        let sequence = self.here.agenda.next_sequence();
        outbox.send(me, sequence, reader, at, Message::Words(words));
    }

    /// Takes extra words of a line that is being filled. That is no event: nothing happens in the
    /// machine before the answer is there.
    fn takes_extra_words(&mut self, words: &Words) {
        self.caches().0.takes_extra_words(words);
    }

    /// Lets the thread of `core` run until it asks for something that takes time.
    fn resume(&mut self, core: u16) {
        // Only on a node where threads share cores one has been killed.
        let is_shared = self.system.is_shared();
        if is_shared && self.ends_if_killed(core) {
            return;
        }
        self.cores[core].waiting = Waiting::Nothing;
        if is_shared && !self.has_its_turn(core) {
            return;
        }
        self.here.progress += 1;
        self.here.agenda.tell(|t| t.resumed(core));
        self.run(core);
    }

    /// The same, within an operation of the thread.
    fn run(&mut self, core: u16) {
        loop {
            let (operation, ahead, hits) = self.poll(core);
            let operation = match operation {
                Ok(Some(operation)) => operation,
                Ok(None) => return self.ends(core),
                Err(misuse) => return self.stops(core, None, FaultReason::Misuse(misuse)),
            };
            if let Operation::Spawn(_) = operation {
                self.takes_start(core);
            }
            if ahead > Time::ZERO {
                self.cores[core].operation = operation;
                let at = self
                    .here
                    .constants
                    .executes(self.here.me, core, self.here.now, ahead);
                self.here.agenda.tell(|t| {
                    let constants = &self.here.constants;
                    let Hits { first, second } = hits;
                    let in_caches = constants.l1.times(first) + constants.l2.times(second);
                    t.ran_ahead(self.here.now, core, (ahead, in_caches), at);
                });
                self.here.agenda.push(at, Event::Begin(core));
                return;
            }
            match operation {
                Operation::Mark(mark) => self.takes_mark(core, mark),
                _ => return self.asked(core, operation),
            }
        }
    }

    /// The next request of the thread of `core`, how far it has run ahead until then, and with how
    /// many hits in its caches.
    #[inline]
    fn poll(&mut self, core: u16) -> (Result<Option<Operation>, Misuse>, Time, Hits) {
        let number = usize::from(core);
        let answer = self.cores[core].answer;
        let ahead = self.caches.as_mut().and_then(|caches| caches.take(core));
        let Some(mut ahead) = ahead else {
            let operation = self.threads.resume(number, answer);
            return (operation, Time::ZERO, Hits::default());
        };
        let before = ahead.hits;
        ahead.may_run = self.stores.is_empty(core);
        ahead.log = self.here.log.as_mut().map(|log| log.lend());
        contract::lend(ahead);
        let operation = self.threads.resume(number, answer);
        let Some(mut ahead) = contract::take_back() else {
            return (operation, Time::ZERO, Hits::default());
        };
        let spent = ahead.spent();
        let hits = ahead.hits.since(before);
        if let Some(log) = &mut self.here.log
            && let Some(accesses) = ahead.log.take()
        {
            log.put_back(self.here.now, core, accesses);
        }
        self.caches().0.put_back(core, ahead);
        (operation, spent, hits)
    }

    /// [`Event::Begin`]: the node has caught up with `core`.
    fn begins(&mut self, core: u16) {
        if self.system.is_shared() && self.ends_if_killed(core) {
            return;
        }
        self.here.agenda.tell(|t| t.resumed(core));
        match self.cores[core].operation {
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
        let state = &mut self.cores[core];
        state.counted |= mark == Mark::Counts;
        if let Mark::Ahead(_) = mark {
            state.answer = self.here.now.as_ps();
        }
        self.here.record.spans.mark(self.here.now, core, mark);
        self.here
            .agenda
            .tell(|t| t.marked(self.here.now, core, mark));
    }

    /// Starts what the thread of `core` has asked for.
    #[inline]
    fn asked(&mut self, core: u16, operation: Operation) {
        let state = &mut self.cores[core];
        state.operation = operation;
        state.looks = 0;
        self.here.agenda.tell(|t| t.begun(core, operation));
        if let Some(log) = &mut self.here.log {
            log.asked(self.here.now, core, &operation);
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
    type Message = Message;
    type Late = LinkCredit;
    type Workspace = Outputs;
    type Task = NoTask;

    fn next(&self) -> Time {
        self.here.agenda.next().min(self.way.next())
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Message>,
        outbox: &mut Outbox<Message>,
        outputs: &mut Outputs,
    ) -> Option<NoTask> {
        loop {
            let (event, message) = (self.here.agenda.next_key(), inbox.next_key());
            let event_at = event.min(message).at();
            if event_at <= self.way.next() {
                if event_at >= end {
                    break;
                }
                if message < event {
                    let input = match inbox.pop() {
                        Some(Message::Engine(input)) => input,
                        Some(Message::Words(words)) => {
                            self.takes_extra_words(&words);
                            continue;
                        }
                        None => break,
                    };
                    self.here.now = event_at;
                    self.here.events += 1;
                    let when = (event_at, event.min(inbox.next_key()).at());
                    let (agenda, record) = (&mut self.here.agenda, &mut self.here.record);
                    self.here.events += self.way.takes(input, when, agenda, record, outbox);
                } else {
                    let Some((_, event)) = self.here.agenda.pop() else {
                        break;
                    };
                    if self.system.is_shared() && self.is_superfluous(event) {
                        continue;
                    }
                    self.here.now = event_at;
                    self.here.events += 1;
                    self.perform(event, message.at(), outbox);
                }
            } else {
                if self.way.next() >= end {
                    break;
                }
                let (given, last) = self.way.ticks(
                    end.min(message.at()),
                    &mut self.here.agenda,
                    &mut self.here.record,
                    outbox,
                    outputs,
                    Way::reaches_host,
                );
                self.here.now = last;
                self.here.events += given;
            }
        }
        self.here.record.is_at(self.here.now);
        let (agenda, record) = (&mut self.here.agenda, &mut self.here.record);
        self.here.events += self.way.foresees(agenda, record, outbox, outputs);
        None
    }

    fn can_wait(message: &Message) -> Option<LinkCredit> {
        match message {
            Message::Engine(input) => Way::can_wait(input),
            Message::Words(_) => None,
        }
    }

    fn waits(&self) -> bool {
        self.way.awaits_link_credits()
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, message: Message) {
        match message {
            Message::Engine(input) => {
                (self.way).comes(at, (from, sequence), input, &mut self.here.agenda);
            }
            // Nothing depends on when.
            Message::Words(words) => self.takes_extra_words(&words),
        }
    }

    #[inline]
    fn take_late(&mut self, at: Time, credit: LinkCredit, start: Time) {
        self.here.events += 1;
        self.way
            .takes_credit(at, credit, start, &mut self.here.record);
    }
}
