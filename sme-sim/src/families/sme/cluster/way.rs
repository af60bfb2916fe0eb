//! A node's way to the others: its end of the HyperTransport link, and its engine.
//!
//! The parts of a node of any form besides its cores and memory. Packets enter the link's queues,
//! cross it when they have a credit, and are sampled by the engine at an edge of its clock; what
//! the engine gives goes over its links to other nodes, or back to this one's host. Called by the
//! node, whose agenda holds the [`Event`]s that are put in here.

use std::mem::offset_of;
use std::sync::Arc;

use super::agenda::{Agenda, Event};
use super::constants::Constants;
use super::pins::Pins;
use super::record::Record;
use super::watched::Watched;
use crate::families::sme::engine::waves::{Recorded, Tap};
use crate::families::sme::engine::{
    EngineModel, HtChannel, HtPacket, Input, NEAR_BYTES, Output, Packet, Shortcuts, Transit,
};
use crate::families::sme::spec::HostSpec;
use crate::kernel::window::Outbox;
use crate::parts::inline::Few;
use crate::parts::link::{CreditLink, Sent};
use crate::time::Time;

/// Host side of the HyperTransport link.
#[derive(Debug)]
struct HostLink {
    /// The direction to the engine.
    there: CreditLink<HtPacket, 3>,
    /// Until then the direction from the engine is busy.
    back_free_at: Time,
    /// Posted packets that have been sent.
    posted: u64,
}

impl HostLink {
    fn new(spec: &HostSpec) -> Self {
        Self {
            there: CreditLink::new(all_credits(spec)),
            back_free_at: Time::ZERO,
            posted: 0,
        }
    }

    /// The channel of the packet that goes next: responses first, then posted writes, then reads,
    /// so that packets that free resources do not wait behind packets that need them. A read
    /// overtakes no posted write, not even one that waits for a credit.
    fn ready(&self) -> Option<HtChannel> {
        let order = [HtChannel::Response, HtChannel::Posted, HtChannel::NonPosted];
        let is_behind = |channel| {
            channel == HtChannel::NonPosted && self.there.waits(HtChannel::Posted as usize)
        };
        let mut ready = order.into_iter();
        ready.find(|&channel| self.there.may_send(channel as usize) && !is_behind(channel))
    }
}

/// By channel.
fn all_credits(spec: &HostSpec) -> [u32; 3] {
    [
        spec.posted_credits,
        spec.nonposted_credits,
        spec.response_credits,
    ]
}

/// A credit of a link, of a channel of one of the engine's ports.
#[derive(Clone, Copy, Debug)]
pub struct LinkCredit {
    port: u16,
    channel: u8,
}

impl From<LinkCredit> for Input {
    fn from(LinkCredit { port, channel }: LinkCredit) -> Self {
        Input::LinkCredit { port, channel }
    }
}

/// The outputs of an engine on their way from there: a worker has one such buffer for all its
/// nodes.
#[derive(Debug, Default)]
pub struct Outputs {
    /// At one edge.
    now: Vec<Output>,
    /// At later ones.
    later: Vec<(u64, Output)>,
}

/// The host link and the engine of a node, or the switch of a position without one.
#[repr(C)]
pub struct Way {
    /// The engine's next edge at which anything can happen: when, and which.
    tick: (Time, u64),
    constants: Arc<Constants>,
    me: u32,
    pins: Pins,
    tap: Option<Box<Tap>>,
    engine: Watched,
    // The fields that packets between other nodes do not touch come last.
    link: HostLink,
    /// Packets on their way to the engine.
    arrivals: Few<Input, 1>,
    /// Packets on their way to the host link, or from it to the host.
    packets: Few<HtPacket, 1>,
}

impl Way {
    /// Bytes from the beginning with which packets between other nodes have to do, about.
    pub const NEAR: usize = {
        let engine = offset_of!(Self, engine);
        let most = offset_of!(Self, link);
        if engine + NEAR_BYTES < most {
            engine + NEAR_BYTES
        } else {
            most
        }
    };
}

impl Way {
    /// Of node `me`, with nothing under way.
    pub fn new(me: u32, constants: Arc<Constants>, engine: Watched) -> Self {
        Self {
            me,
            link: HostLink::new(&constants.spec.host),
            tap: None,
            engine,
            pins: Pins::new(),
            tick: (Time::NEVER, 0),
            arrivals: Few::default(),
            packets: Few::default(),
            constants,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Watched {
        &self.engine
    }

    /// Lets the engine's ports be recorded from now on.
    pub fn record_waves(&mut self, tap: Tap) {
        self.tap = Some(Box::new(tap));
    }

    /// The engine, seen at its ports.
    #[inline]
    fn ports(&mut self) -> Recorded<'_, Watched> {
        Recorded::new(&mut self.engine, self.tap.as_deref())
    }

    /// Returns whether nothing is under way outside the engine.
    pub fn is_quiet(&self) -> bool {
        (self.link.there).is_quiet(all_credits(&self.constants.spec.host))
            && self.packets.is_empty()
            && self.arrivals.is_empty()
    }

    /// Returns the number of posted packets that have crossed the host link.
    pub fn posted(&self) -> u64 {
        self.link.posted
    }

    /// The link's credit that `input` may be, which may come late where [none are
    /// awaited](Self::awaits_link_credits).
    #[inline]
    pub fn can_wait(input: &Input) -> Option<LinkCredit> {
        match *input {
            Input::LinkCredit { port, channel } => Some(LinkCredit { port, channel }),
            _ => None,
        }
    }

    /// Returns whether a credit of a link may change what happens next.
    #[inline]
    pub fn awaits_link_credits(&self) -> bool {
        self.tap.is_some() || self.engine.awaits_link_credits()
    }

    /// Bytes on the heap, the engine's apart.
    pub fn heap_bytes(&self) -> usize {
        self.link.there.heap_bytes() + self.packets.heap_bytes() + self.arrivals.heap_bytes()
    }

    /// `packet` sets out from `socket` for the queue of the host link, which is at the first.
    pub fn sets_out(&mut self, now: Time, socket: u8, packet: HtPacket, agenda: &mut Agenda) {
        // An inexact packet would look different to an engine in RTL than to the cycle model's.
        debug_assert!(packet.is_exact(), "{packet:?}");
        let at = now + self.constants.to_first_socket(socket) + self.constants.host_way;
        agenda.tell(|t| t.leaves_for_host_link(at, &packet));
        let number = self.packets.insert(packet);
        agenda.push(at, Event::HostSend(number));
    }

    /// [`Event::HostSend`]; whether a posted packet leaves.
    pub fn send(&mut self, now: Time, number: u32, agenda: &mut Agenda) -> bool {
        let packet = self.packets.remove(number);
        self.enters_link(now, packet, agenda)
    }

    /// `packet` enters the host link's queue; whether a posted packet leaves.
    pub fn enters_link(&mut self, now: Time, packet: HtPacket, agenda: &mut Agenda) -> bool {
        self.link.there.enqueue(packet.channel() as usize, packet);
        self.transmit(now, agenda)
    }

    /// [`Event::HostReady`]; whether a posted packet leaves.
    pub fn ready(&mut self, now: Time, agenda: &mut Agenda) -> bool {
        self.link.there.is_free();
        self.transmit(now, agenda)
    }

    /// [`Event::HostCredit`]; whether a posted packet leaves.
    pub fn credit(&mut self, now: Time, channel: u8, agenda: &mut Agenda) -> bool {
        self.link.there.credit(channel.into());
        self.transmit(now, agenda)
    }

    /// Sends what has a credit; whether a posted packet leaves.
    fn transmit(&mut self, now: Time, agenda: &mut Agenda) -> bool {
        let mut posted = false;
        while let Some(channel) = self.link.ready() {
            let takes = |packet: &HtPacket| self.constants.on_host_link(packet);
            let packet = match self.link.there.send(now, channel as usize, takes) {
                Sent::Enters(packet) => packet,
                Sent::BusyUntil(free_at) => {
                    agenda.push(free_at, Event::HostReady);
                    break;
                }
                Sent::Busy => break,
            };
            if channel == HtChannel::Posted {
                self.link.posted += 1;
                posted = true;
            }
            let free_at = self.link.there.free_at();
            let cycle = self.constants.engine_samples(free_at);
            agenda.tell(|t| t.over_host_link(now, free_at, cycle, &packet));
            self.present(cycle, Input::Host(packet), agenda);
        }
        posted
    }

    /// [`Event::HostReceive`]: the packet that has reached the host.
    pub fn received(&mut self, number: u32) -> HtPacket {
        self.packets.remove(number)
    }

    /// `packet` reaches the host at `at`.
    pub fn reaches_host(&mut self, at: Time, packet: HtPacket, agenda: &mut Agenda) {
        let number = self.packets.insert(packet);
        agenda.push(at, Event::HostReceive(number));
    }

    /// Tells the engine that the host has taken a packet of `channel`.
    pub fn return_credit(&mut self, now: Time, channel: HtChannel, agenda: &mut Agenda) {
        let cycle = self.constants.engine_samples(now + self.constants.host_way);
        self.present(cycle, Input::HostCredit(channel), agenda);
    }

    /// Lets `input` be sampled by the engine at `cycle`.
    pub fn present(&mut self, cycle: u64, input: Input, agenda: &mut Agenda) {
        let at = self.constants.engine_clock.edge(cycle);
        let event = self.arrival(input);
        agenda.push(at, event);
    }

    /// Keeps `input`, which another node has sent, until it reaches the engine at `at`.
    pub fn comes(
        &mut self,
        at: Time,
        (from, sequence): (u32, u64),
        input: Input,
        agenda: &mut Agenda,
    ) {
        let event = self.arrival(input);
        agenda.push_from(at, from, sequence, event);
    }

    /// A link's credit reaches the engine at `at`, and nothing before `start` is still to happen;
    /// that counts as an event here: its pin is always free, and the engine keeps what it is to
    /// sample later, so that it is not put in.
    #[inline]
    pub fn takes_credit(
        &mut self,
        at: Time,
        LinkCredit { port, channel }: LinkCredit,
        start: Time,
        record: &mut Record,
    ) {
        record.is_at(at);
        if at < start && self.ports().late_credit(port, channel) {
            return;
        }
        let cycle = self.constants.engine_clock.first_edge_from(at);
        self.ports()
            .input(cycle, Input::LinkCredit { port, channel });
        if self.awaits_link_credits() {
            self.set_tick();
        }
    }

    /// Prefetches what `input` has to do with besides the [nearest](Self::NEAR).
    #[inline]
    pub fn prefetch(&self, input: &Input) {
        self.engine.prefetch(input);
    }

    /// The event of `input` reaching the engine.
    fn arrival(&mut self, input: Input) -> Event {
        match input {
            Input::HostCredit(channel) => Event::EngineHostCredit(channel),
            _ => Event::EnginePacket(self.arrivals.insert(input)),
        }
    }

    /// Handles [`Event::EnginePacket`]: hands the packet to the engine.
    pub fn arrived(
        &mut self,
        arrival: u32,
        when: (Time, Time),
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
    ) -> u64 {
        let input = self.arrivals.remove(arrival);
        self.takes(input, when, agenda, record, outbox)
    }

    /// A packet has reached the engine `now`, which samples it or passes it on at once. The next
    /// thing in this node's order happens at `next_at`. Returns the number of outputs that the
    /// engine has given for it.
    pub fn takes(
        &mut self,
        input: Input,
        (now, next_at): (Time, Time),
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
    ) -> u64 {
        let (due, cycle) = self.edge_of(now, &input);
        // Anything that has arrived unsampled is sampled at this edge too.
        if let Input::Link {
            port,
            channel,
            packet,
        } = input
            && cycle == due
            && next_at > now
            && agenda.trace().is_none()
            && let Some(transit) = self.ports().transit(cycle, port, channel, &packet)
        {
            self.passes((port, channel), packet, transit, agenda, record, outbox);
            return 2;
        }
        self.presents((due, cycle), input, agenda);
        0
    }

    /// Performs the effects of a packet that arrived by a port and channel and passes on at once.
    fn passes(
        &mut self,
        (port, channel): (u16, u8),
        packet: Packet,
        transit: Transit,
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
    ) {
        let credit = Output::LinkCredit { port, channel };
        self.give(transit.freed, credit, agenda, record, outbox);
        let (port, channel) = (transit.port, transit.channel);
        let leaves = Output::Link {
            port,
            channel,
            packet,
        };
        self.give(transit.delivered, leaves, agenda, record, outbox);
        record.is_at(self.constants.engine_clock.edge(transit.delivered));
    }

    /// The engine samples `input` at the edge that is `now`, or the first at which its pin is free.
    pub fn samples(&mut self, now: Time, input: Input, agenda: &mut Agenda) {
        let edges = self.edge_of(now, &input);
        self.presents(edges, input, agenda);
    }

    /// The edge at which `input` is due, which is `now`, and that at which it is sampled.
    fn edge_of(&mut self, now: Time, input: &Input) -> (u64, u64) {
        let due = self.constants.engine_clock.first_edge_from(now);
        (due, self.pins.take(due, input))
    }

    fn presents(&mut self, (due, cycle): (u64, u64), input: Input, agenda: &mut Agenda) {
        agenda.tell(|t| t.sampled(due, cycle, &input));
        self.ports().input(cycle, input);
        self.set_tick();
    }

    /// Returns the time of the engine's next edge at which anything can happen.
    #[inline]
    pub fn next(&self) -> Time {
        self.tick.0
    }

    /// Steps the engine at that edge, and those after it up to `limit`, as long as nothing else
    /// happens and the host is given nothing; returns the number of outputs given at them, and the
    /// time of the last of them. Packets for the host are told to `reaches` with the time at which
    /// they are there.
    pub fn ticks(
        &mut self,
        limit: Time,
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
        outputs: &mut Outputs,
        mut reaches: impl FnMut(&mut Self, Time, HtPacket, &mut Agenda),
    ) -> (u64, Time) {
        let mut count = 0;
        loop {
            let (now, cycle) = self.tick;
            self.ports().step(cycle, &mut outputs.now);
            count += outputs.now.len() as u64;
            let mut reached = false;
            for output in outputs.now.drain(..) {
                if let Output::Host(packet) = output {
                    let at = self.brings(cycle, &packet, agenda);
                    reaches(self, at, packet, agenda);
                    reached = true;
                } else {
                    self.give(cycle, output, agenda, record, outbox);
                }
            }
            self.set_tick();
            if reached || self.tick.0 >= limit || agenda.next() <= self.tick.0 {
                return (count, now);
            }
        }
    }

    /// Sends the outputs that the engine will give regardless of further input on their way now, so
    /// that it need not be stepped for them; returns their number. Where causes are traced, each is
    /// told when it happens.
    pub fn foresees(
        &mut self,
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
        outputs: &mut Outputs,
    ) -> u64 {
        if self.tick.0 == Time::NEVER || agenda.trace().is_some() {
            return 0;
        }
        self.ports().foresee(&mut outputs.later);
        let count = outputs.later.len() as u64;
        for (cycle, output) in outputs.later.drain(..) {
            record.is_at(self.constants.engine_clock.edge(cycle));
            self.give(cycle, output, agenda, record, outbox);
        }
        if count > 0 {
            self.set_tick();
        }
        count
    }

    /// Passes on an output of the engine at edge `cycle`, other than packets for the host.
    fn give(
        &mut self,
        cycle: u64,
        output: Output,
        agenda: &mut Agenda,
        record: &mut Record,
        outbox: &mut Outbox<impl From<Input>>,
    ) {
        let neighbour = |port| {
            let there = self.constants.topology.neighbour(self.me, port);
            debug_assert!(
                there.is_some(),
                "no link is there, but something leaves by it"
            );
            there
        };
        match output {
            Output::Host(_) => debug_assert!(false, "a packet for the host goes to the host"),
            Output::HostCredit(channel) => {
                let at = self.constants.host_credit_at(cycle);
                agenda.push(at, Event::HostCredit(channel as u8));
            }
            Output::Link {
                port,
                channel,
                packet,
            } => {
                let Some((to, their_port)) = neighbour(port) else {
                    return;
                };
                if self.constants.counts(packet.trace) {
                    record.sent(port, channel, packet.bytes());
                }
                let Constants {
                    link_port: link,
                    passage,
                    topology,
                    ..
                } = &*self.constants;
                let left = link.left(cycle, packet.bytes(), packet.target == to);
                let crossed = left + passage.cycles(topology, self.me, to, &packet);
                agenda.tell(|t| {
                    let begun = link.began(cycle, packet.bytes());
                    let sampled = crossed + self.constants.link_cycles;
                    t.over_link((begun, left, crossed, sampled), to, &packet);
                });
                let port = their_port;
                let input = Input::Link {
                    port,
                    channel,
                    packet,
                };
                self.send_over_link(crossed, to, input, agenda, outbox);
            }
            Output::LinkCredit { port, channel } => {
                let Some((to, port)) = neighbour(port) else {
                    return;
                };
                let input = Input::LinkCredit { port, channel };
                self.send_over_link(cycle, to, input, agenda, outbox);
            }
        }
    }

    /// Finds the engine's next edge at which anything can happen.
    fn set_tick(&mut self) {
        self.tick = match self.engine.next_cycle() {
            Some(next) => (self.constants.engine_clock.edge(next), next),
            None => (Time::NEVER, 0),
        };
    }

    /// A packet that the engine gave at edge `cycle` crosses the link to the host; when it is
    /// there.
    fn brings(&mut self, cycle: u64, packet: &HtPacket, agenda: &mut Agenda) -> Time {
        let from = self
            .constants
            .engine_gave(cycle)
            .max(self.link.back_free_at);
        self.link.back_free_at = from + self.constants.on_host_link(packet);
        let at = self.link.back_free_at + self.constants.host_way;
        agenda.tell(|t| t.leaves_engine(cycle, from, at, packet));
        at
    }

    /// Transceivers and wire of a link: what leaves at edge `cycle` is sampled there later.
    fn send_over_link(
        &self,
        cycle: u64,
        to: u32,
        input: Input,
        agenda: &mut Agenda,
        outbox: &mut Outbox<impl From<Input>>,
    ) {
        let cycle = cycle + self.constants.link_cycles;
        let at = self.constants.engine_clock.edge(cycle);
        outbox.send(self.me, agenda.next_sequence(), to, at, input.into());
    }
}
