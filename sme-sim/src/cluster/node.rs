//! One node: cores and their threads, the coherent domain, the host link and the engine, joined.
//!
//! A node runs its own events and its engine's clock edges in order of time (an event before an
//! edge at the same time, so that what has arrived is sampled), and exchanges packets and credits
//! with its neighbours. How each operation of a thread is performed stands in `operate`; the way
//! of a packet from a core to the engine and back in `host`.

use std::future::Future;
use std::sync::Arc;

use slab::Slab;

use super::agenda::{Agenda, Event};
use super::caches::Caches;
use super::constants::Constants;
use super::core::{Core, Waiting};
use super::domain::{BRIDGE, Domain};
use super::host::{Bridge, HostLink, Slots};
use super::log::Log;
use super::pins::Pins;
use super::record::Record;
use super::stores::StoreBuffers;
use super::system::System;
use super::tables;
use crate::engine::waves::{Recorded, Tap};
use crate::engine::{EngineModel, HtPacket, Input, Output};
use crate::kernel::address::FaultReason;
use crate::kernel::thread::{self, Note, Operation, Threads};
use crate::kernel::window::{self, Outbox};
use crate::time::Time;

/// An access that cannot be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Thread number in its node.
    pub core: u16,
    /// The address, as the program gave it.
    pub address: u64,
    /// Why not.
    pub reason: FaultReason,
}

/// A node of the cluster, or a position that has only a switch.
pub struct Node<F, E> {
    pub(super) me: u32,
    pub(super) constants: Arc<Constants>,
    pub(super) now: Time,
    pub(super) agenda: Agenda,
    pub(super) threads: Threads<F>,
    pub(super) cores: Vec<Core>,
    pub(super) stores: StoreBuffers,
    pub(super) domain: Domain,
    pub(super) caches: Option<Box<Caches>>,
    pub(super) slots: Option<Box<Slots>>,
    pub(super) host: HostLink,
    pub(super) bridge: Bridge,
    pub(super) system: System,
    pub(super) packets: Slab<HtPacket>,
    pub(super) record: Record,
    /// What is told to the checker of stale reads, where there is one.
    pub(super) log: Option<Box<Log>>,
    pub(super) fault: Option<Fault>,
    /// Operations that changed something or ended a wait: a run in which this stands still is
    /// stuck even if loads are polling.
    pub(super) progress: u64,
    pub(super) events: u64,
    engine: Recorded<E>,
    pins: Pins,
    /// The engine's next edge.
    tick: (Time, u64),
    /// Packets on their way to the engine.
    arrivals: Slab<Input>,
}

impl<F: Future<Output = ()>, E: EngineModel> Node<F, E> {
    /// Node `me` with one thread for each program, all about to start.
    pub(super) fn new(
        me: u32,
        constants: Arc<Constants>,
        programs: Vec<F>,
        engine: E,
        visits: bool,
    ) -> Self {
        let sockets: Vec<u8> = (0..programs.len())
            .map(|thread| constants.socket_of(thread as u32))
            .collect();
        let spec = &constants.spec;
        let mut agenda = Agenda::new(me);
        for core in 0..programs.len() {
            agenda.push(Time::ZERO, Event::Resume(core as u16));
        }
        Self {
            me,
            now: Time::ZERO,
            cores: sockets.iter().map(|&socket| Core::new(socket)).collect(),
            stores: StoreBuffers::new(programs.len(), spec.core.store_buffer),
            domain: Domain::new(
                Arc::clone(&constants.latencies),
                &sockets,
                constants.seed,
                me,
            ),
            caches: None,
            slots: None,
            host: HostLink::new(&spec.host),
            bridge: Bridge::default(),
            system: System::default(),
            packets: Slab::new(),
            record: Record::new(programs.len(), visits),
            log: None,
            fault: None,
            progress: 0,
            events: 0,
            threads: Threads::new(programs),
            agenda,
            engine: Recorded::new(engine),
            pins: Pins::new(),
            tick: (Time::NEVER, 0),
            arrivals: Slab::new(),
            constants,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        self.engine.engine()
    }

    /// Lets the engine's ports be recorded from now on.
    pub(super) fn record_waves(&mut self, tap: Tap) {
        self.engine.record(tap);
    }

    /// What its observer has written down.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Whether nothing is under way outside the engine.
    pub fn is_quiet(&self) -> bool {
        self.agenda.next() == Time::NEVER
            && (0..self.cores.len()).all(|core| self.stores.is_empty(core as u16))
            && self.domain.is_quiet()
            && self.caches.iter().all(|caches| caches.is_quiet())
            && (self.slots.iter()).all(|slots| slots.is_quiet(&self.constants.spec))
            && self.host.is_quiet(&self.constants.spec.host)
            && self.bridge.is_quiet()
            && self.packets.is_empty()
            && self.arrivals.is_empty()
    }

    /// Bytes of simulator state, the engine's apart.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() - size_of::<E>()
            + self.agenda.heap_bytes()
            + self.threads.bytes()
            + self.cores.capacity() * size_of::<Core>()
            + self.stores.heap_bytes()
            + self.domain.heap_bytes()
            + self.caches.as_ref().map_or(0, |caches| caches.bytes())
            + self.slots.as_ref().map_or(0, |slots| slots.bytes())
            + self.host.heap_bytes()
            + self.bridge.heap_bytes()
            + self.system.heap_bytes()
            + self.record.heap_bytes()
            + self.packets.capacity() * size_of::<HtPacket>()
            + self.arrivals.capacity() * size_of::<Input>()
    }

    fn perform(&mut self, event: Event) {
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
            Event::HostSend(packet) => self.send_over_host_link(packet),
            Event::HostReady => self.host_link_ready(),
            Event::HostCredit(channel) => self.host_credit(channel),
            Event::EnginePacket(arrival) => {
                let input = self.arrivals.remove(arrival as usize);
                self.engine_samples(input);
            }
            Event::EngineHostCredit(channel) => self.engine_samples(Input::HostCredit(channel)),
            Event::EngineLinkCredit(port, channel) => {
                self.engine_samples(Input::LinkCredit { port, channel });
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
        }
    }

    /// Lets the thread of `core` run until it asks for something that takes time.
    fn resume(&mut self, core: u16) {
        self.cores[usize::from(core)].waiting = Waiting::Nothing;
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
                return;
            };
            if ahead > Time::ZERO {
                self.cores[number].operation = operation;
                self.agenda.push(self.now + ahead, Event::Begin(core));
                return;
            }
            match operation {
                Operation::Note(note) => self.takes_note(core, note),
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
        thread::lend(ahead);
        let operation = self.threads.resume(number, answer);
        let Some(mut ahead) = thread::take_back() else {
            return (operation, Time::ZERO);
        };
        let spent = ahead.spent();
        if let Some(accesses) = &mut ahead.log {
            self.log_in_place(core, accesses);
        }
        self.caches().put_back(core, ahead);
        (operation, spent)
    }

    /// [`Event::Begin`]: the node has caught up with `core`.
    fn begins(&mut self, core: u16) {
        match self.cores[usize::from(core)].operation {
            Operation::Note(note) => {
                self.takes_note(core, note);
                self.run(core);
            }
            operation => self.asked(core, operation),
        }
    }

    /// Writes down what the thread of `core` says.
    #[inline]
    fn takes_note(&mut self, core: u16, note: Note) {
        self.cores[usize::from(core)].counted = note.counts();
        self.record.note(self.now, core, note);
        self.agenda.tell(|t| t.noted(self.now, note));
    }

    /// Starts what the thread of `core` has asked for.
    #[inline]
    fn asked(&mut self, core: u16, operation: Operation) {
        let state = &mut self.cores[usize::from(core)];
        state.operation = operation;
        state.looks = 0;
        self.agenda.tell(|t| t.begun(core, operation));
        self.begin(core);
    }

    /// Lets `input` be sampled by the engine at `cycle`.
    pub(super) fn present(&mut self, cycle: u64, input: Input) {
        let at = self.constants.engine_clock.edge(cycle);
        let event = self.arrival(input);
        self.agenda.push(at, event);
    }

    /// The event of `input` reaching the engine.
    fn arrival(&mut self, input: Input) -> Event {
        match input {
            Input::HostCredit(channel) => Event::EngineHostCredit(channel),
            Input::LinkCredit { port, channel } => Event::EngineLinkCredit(port, channel),
            Input::Host(_) | Input::Link { .. } => {
                Event::EnginePacket(tables::insert(&mut self.arrivals, input))
            }
        }
    }

    /// The engine samples `input` at the edge that is now, or the first at which its pin is free.
    fn engine_samples(&mut self, input: Input) {
        let due = self.constants.engine_clock.first_edge_from(self.now);
        let cycle = self.pins.take(due, &input);
        self.agenda.tell(|t| t.sampled(cycle, &input));
        self.engine.input(cycle, input);
        self.set_tick();
    }

    /// One edge of the engine's clock.
    fn tick(&mut self, outbox: &mut Outbox<Input>, outputs: &mut Vec<Output>) {
        let cycle = self.tick.1;
        self.engine.step(cycle, outputs);
        for output in outputs.drain(..) {
            self.engine_gives(cycle, output, outbox);
        }
        self.set_tick();
    }

    /// Finds the engine's next edge at which anything can happen.
    fn set_tick(&mut self) {
        self.tick = match self.engine.next_cycle() {
            Some(next) => (self.constants.engine_clock.edge(next), next),
            None => (Time::NEVER, 0),
        };
    }

    fn engine_gives(&mut self, cycle: u64, output: Output, outbox: &mut Outbox<Input>) {
        match output {
            Output::Host(packet) => self.host_link_brings(cycle, packet),
            Output::HostCredit(channel) => {
                let at = self.constants.host_credit_at(cycle);
                self.agenda.push(at, Event::HostCredit(channel as u8));
            }
            Output::Link {
                port,
                channel,
                packet,
            } => {
                if self.constants.counts(packet.trace) {
                    self.record.sent(port, channel, packet.bytes());
                }
                let input = |port| Input::Link {
                    port,
                    channel,
                    packet,
                };
                // Between engine and switch a packet crosses clock domains: behind its source's
                // engine and before its target's.
                let crossing = self.constants.spec.engine.network_core_cycles;
                let to = self.constants.topology.neighbour(self.me, port);
                let first = u64::from(packet.source == self.me);
                let last = u64::from(to.is_some_and(|(to, _)| to == packet.target));
                let crossing = (first + last) * crossing;
                let sampled = cycle + crossing + self.constants.link_cycles;
                let edges = (cycle, cycle + crossing, sampled);
                self.agenda
                    .tell(|t| t.over_link(edges, to.map(|(to, _)| to), &packet));
                let cycle = cycle + crossing;
                self.send_to_neighbour(cycle, port, input, outbox);
            }
            Output::LinkCredit { port, channel } => {
                let input = |port| Input::LinkCredit { port, channel };
                self.send_to_neighbour(cycle, port, input, outbox);
            }
        }
    }

    /// Transceivers and wire of the link at `port`; `input` is told the port at the other end.
    fn send_to_neighbour(
        &mut self,
        cycle: u64,
        port: u8,
        input: impl Fn(u8) -> Input,
        outbox: &mut Outbox<Input>,
    ) {
        let Some((to, their_port)) = self.constants.topology.neighbour(self.me, port) else {
            debug_assert!(false, "the switch routed over a link that is not there");
            return;
        };
        let cycle = cycle + self.constants.link_cycles;
        let at = self.constants.engine_clock.edge(cycle);
        let sequence = self.agenda.next_sequence();
        outbox.send(self.me, sequence, to, at, input(their_port));
    }
}

impl<F, E> window::Node for Node<F, E>
where
    F: Future<Output = ()> + Send,
    E: EngineModel,
{
    /// What the engine of `to` samples at the edge at which it arrives.
    type Message = Input;
    type Workspace = Vec<Output>;

    fn next(&self) -> Time {
        self.agenda.next().min(self.tick.0)
    }

    fn advance(&mut self, end: Time, outbox: &mut Outbox<Input>, outputs: &mut Vec<Output>) {
        loop {
            let event_at = self.agenda.next();
            if event_at <= self.tick.0 {
                if event_at >= end {
                    return;
                }
                let Some((now, event)) = self.agenda.pop() else {
                    return;
                };
                self.now = now;
                self.events += 1;
                self.perform(event);
            } else {
                if self.tick.0 >= end {
                    return;
                }
                self.now = self.tick.0;
                self.events += 1;
                self.tick(outbox, outputs);
            }
        }
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, input: Input) {
        let event = self.arrival(input);
        self.agenda.push_from(at, from, sequence, event);
    }
}
