//! A position of the fabric: its engine, and a traffic source and sink in the place of a host.
//!
//! The source keeps the engine's host port supplied as far as there are credits, one packet per
//! edge; the sink takes every packet and returns its credit at once. So neither the HyperTransport
//! link nor memory limits what the fabric carries. Between positions everything is as between the
//! nodes of a cluster: links, transceivers and wires, the crossing between engine and switch, one
//! packet per pin and edge. Driven by [`crate::kernel::window`], built by [`super::Traffic::run`].

use std::sync::Arc;

use super::source::{Generated, Source};
use super::tally::{Ident, Tally};
use super::{Constants, Windows};
use crate::families::sme::cluster::pins::Pins;
use crate::families::sme::engine::{EngineModel, HtChannel, HtPacket, Input, Output};
use crate::kernel::queue::EventQueue;
use crate::kernel::window::{self, Inbox, NoLate, NoTask, Outbox};
use crate::time::Time;

/// A position: a node's engine with a source and a sink, or a switch alone.
pub(super) struct Position<E> {
    me: u32,
    constants: Arc<Constants>,
    windows: Windows,
    /// Inputs on their way to the engine from elsewhere.
    queue: EventQueue<Input>,
    sequence: u64,
    pins: Pins,
    engine: E,
    /// The engine's next edge at which anything can happen: when, and which.
    tick: (Time, u64),
    source: Option<Source>,
    /// Packets that the engine's host port takes before it returns a credit.
    credits: u32,
    /// The first edge at which the host port can take the next packet.
    free: u64,
    tally: Tally,
    events: u64,
}

impl<E: EngineModel> Position<E> {
    /// Position `me`, before the first cycle.
    pub(super) fn new(
        me: u32,
        constants: Arc<Constants>,
        windows: Windows,
        engine: E,
        source: Option<Source>,
    ) -> Self {
        Self {
            me,
            windows,
            queue: EventQueue::new(),
            sequence: 0,
            pins: Pins::new(),
            engine,
            tick: (Time::NEVER, 0),
            source,
            credits: constants.host_credits,
            free: 0,
            tally: Tally::default(),
            events: 0,
            constants,
        }
    }

    /// Returns the tally of packets sent from and arrived at this position.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Events so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The engine.
    #[cfg(test)]
    pub(super) fn engine(&self) -> &E {
        &self.engine
    }

    /// Returns whether nothing is under way outside the engine.
    #[cfg(test)]
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.source.as_ref().is_none_or(Source::is_empty)
            && self.credits == self.constants.host_credits
    }

    /// Returns the time at which the source's next packet is generated.
    fn generation(&self) -> Time {
        let cycle = self.source.as_ref().and_then(Source::next);
        cycle.map_or(Time::NEVER, |cycle| self.constants.clock.edge(cycle))
    }

    /// Generates a packet, and lets the host port have it if it can.
    fn generate(&mut self) {
        let Some(generated) = self.source.as_mut().and_then(Source::generate) else {
            return;
        };
        let counts = self.windows.measures(generated.cycle);
        let ident = Ident::new(self.me, generated.cycle);
        self.tally.sends(ident, counts);
        self.supply(generated.cycle);
    }

    /// Presents what waits to the engine's host port, from edge `cycle` on.
    fn supply(&mut self, cycle: u64) {
        let Some(source) = &mut self.source else {
            return;
        };
        while self.credits > 0
            && let Some(packet) = source.take()
        {
            self.credits -= 1;
            let edge = self.free.max(cycle);
            self.free = edge + 1;
            let packet = self.constants.packet(self.me, packet);
            self.engine.input(edge, Input::Host(packet));
        }
        self.set_tick();
    }

    /// Lets the engine sample `input` at the edge of `now`, or the first at which its pin is free.
    fn samples(&mut self, now: Time, input: Input) {
        let due = self.constants.clock.first_edge_from(now);
        let cycle = self.pins.take(due, &input);
        self.engine.input(cycle, input);
        self.set_tick();
    }

    /// Finds the engine's next edge at which anything can happen.
    fn set_tick(&mut self) {
        self.tick = match self.engine.next_cycle() {
            Some(next) => (self.constants.clock.edge(next), next),
            None => (Time::NEVER, 0),
        };
    }

    /// One edge of the engine's clock.
    fn tick(&mut self, outbox: &mut Outbox<Input>, outputs: &mut Vec<Output>) {
        let cycle = self.tick.1;
        self.engine.step(cycle, outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Host(packet) => self.arrives(cycle, packet),
                Output::HostCredit(HtChannel::Posted) => {
                    self.credits += 1;
                    self.supply(cycle + 1);
                }
                Output::HostCredit(_) => {}
                Output::Link {
                    port,
                    channel,
                    packet,
                } => {
                    let to = self.constants.topology.neighbour(self.me, port);
                    let Constants {
                        link_port: link,
                        passage,
                        topology,
                        ..
                    } = &*self.constants;
                    let passes = |(to, _)| passage.cycles(topology, self.me, to, &packet);
                    let crossing = to.map_or(0, passes);
                    let is_last = to.is_some_and(|(to, _)| to == packet.target);
                    let left = link.left(cycle, packet.bytes(), is_last);
                    let input = |port| Input::Link {
                        port,
                        channel,
                        packet,
                    };
                    self.send(left + crossing, port, input, outbox);
                }
                Output::LinkCredit { port, channel } => {
                    let input = |port| Input::LinkCredit { port, channel };
                    self.send(cycle, port, input, outbox);
                }
            }
        }
        self.set_tick();
    }

    /// A packet has reached its host, who returns the credit at once.
    fn arrives(&mut self, cycle: u64, packet: HtPacket) {
        if let HtPacket::Write { data, trace, .. } = packet {
            let ident = Ident(data);
            let counts = self.windows.measures(ident.cycle());
            let in_window = self.windows.measures(cycle);
            self.tally
                .receives(ident, cycle, trace == self.me, counts, in_window);
        }
        self.engine
            .input(cycle + 1, Input::HostCredit(packet.channel()));
    }

    /// Transceivers and wire of the link at `port`; `input` is told the port at the other end.
    fn send(
        &mut self,
        cycle: u64,
        port: u16,
        input: impl Fn(u16) -> Input,
        outbox: &mut Outbox<Input>,
    ) {
        let Some((to, their_port)) = self.constants.topology.neighbour(self.me, port) else {
            debug_assert!(false, "the switch routed over a link that is not there");
            return;
        };
        let at = self
            .constants
            .clock
            .edge(cycle + self.constants.link_cycles);
        self.sequence += 1;
        outbox.send(self.me, self.sequence, to, at, input(their_port));
    }
}

impl Constants {
    /// A posted write of 64 bits to the packet's target.
    fn packet(&self, source: u32, packet: Generated) -> HtPacket {
        HtPacket::Write {
            address: self.global_base + u64::from(packet.target) * self.shared_bytes,
            data: Ident::new(source, packet.cycle).0,
            enables: 0xff,
            coherent: false,
            trace: packet.target,
        }
    }
}

impl<E: EngineModel> window::Locality for Position<E> {}

impl<E: EngineModel> window::Node for Position<E> {
    /// The input that the engine of the neighbour samples at the edge at which it arrives.
    type Message = Input;
    type Late = NoLate;
    type Workspace = Vec<Output>;
    type Task = NoTask;

    fn next(&self) -> Time {
        self.queue.next().min(self.tick.0).min(self.generation())
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Input>,
        outbox: &mut Outbox<Input>,
        outputs: &mut Vec<Output>,
    ) -> Option<NoTask> {
        inbox.hand_over(self);
        loop {
            // An input that arrives at the time of an edge is sampled at it.
            let (arrival, generation) = (self.queue.next(), self.generation());
            let first = arrival.min(generation).min(self.tick.0);
            if first >= end {
                return None;
            }
            self.events += 1;
            if arrival == first {
                if let Some((now, input)) = self.queue.pop() {
                    self.samples(now, input);
                }
            } else if generation == first {
                self.generate();
            } else {
                self.tick(outbox, outputs);
            }
        }
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, input: Input) {
        self.queue.push(at, from, sequence, input);
    }

    fn take_late(&mut self, _: Time, late: NoLate, _: Time) {
        match late {}
    }
}
