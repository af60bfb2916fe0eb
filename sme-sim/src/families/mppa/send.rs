//! The sending side of a network interface: transfers that a core pushes word by word, transfers
//! that a channel of the DMA engine reads from memory, and messages of the control network.

use std::collections::VecDeque;

use sme_memory::{Flag, NodeSet, Transfer};

use super::cluster::{Cluster, Cpu, Later};
use super::interface::{Packet, Sends, fault};
use super::layout::Interface;
use crate::machine::node::Waiting;
use crate::parts::address::{FaultReason, NetworkFault};
use crate::time::Time;

/// Marks the streams of DMA channels; those of threads have the thread's number.
const CHANNEL: u16 = 1 << 15;

/// A transfer under way.
#[derive(Clone, Copy, Debug)]
struct Course {
    transfer: Transfer,
    /// Where its bytes lie in memory, and whether they are read through the cache.
    from: (u64, bool),
    /// The interface through which it leaves.
    interface: u32,
    stream: u16,
    /// Bytes that have left.
    sent: u32,
}

impl Course {
    /// The bytes of the next packet.
    fn next_bytes(&self, most: u64) -> u32 {
        u64::from(self.transfer.bytes - self.sent).min(most) as u32
    }

    fn is_over(&self) -> bool {
        self.sent >= self.transfer.bytes
    }
}

/// A transfer that a thread pushes.
#[derive(Clone, Debug)]
pub(super) struct Push {
    course: Course,
    /// The words of the packet that is being put together.
    words: [u64; 8],
    /// The time at which the packet before has left.
    gone: Time,
}

/// A DMA channel that sends.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    course: Course,
    thread: u16,
    /// The flag and the event that are set at its end.
    tells: (u64, Option<u64>),
    /// Bytes that have been asked for, and when the parts of each packet will be there.
    asked: u32,
    ready: VecDeque<Time>,
}

impl Cluster {
    fn course(
        &self,
        transfer: Transfer,
        (interface, stream): (u32, u16),
    ) -> Result<Course, FaultReason> {
        let layout = &self.spec.layout;
        let number = u32::from(transfer.tag) / self.spec.data.tags;
        for node in transfer.to.iter() {
            if node >= layout.nodes() {
                return fault(NetworkFault::NoSuchNode(node));
            }
            if number >= layout.interfaces(node) {
                return fault(NetworkFault::NoSuchTag(transfer.tag));
            }
        }
        if !transfer.offset.is_multiple_of(8) {
            return fault(NetworkFault::Offset(transfer.offset));
        }
        let all = u64::from(transfer.bytes).next_multiple_of(8);
        Ok(Course {
            from: match all {
                0 => (0, false),
                _ => self.find(transfer.from.0, all)?,
            },
            transfer,
            interface,
            stream,
            sent: 0,
        })
    }

    /// Lets the next packet of a transfer, with so many `bytes`, set out; when it has left.
    fn sets_out(&mut self, cpu: &mut Cpu, thread: u16, course: &Course, packet: Packet) -> Time {
        let flits = self.spec.data.flits(packet.bytes.into());
        let (me, to, tag) = (self.me, course.transfer.to, u32::from(packet.tag));
        let from = Interface {
            node: me,
            number: course.interface,
        };
        let number = tag / self.spec.data.tags;
        let interfaces = to.iter().map(|node| Interface { node, number });
        let mut links = self.networks.data.lock();
        let journeys = links.travels(cpu.now, from, interfaces, flits);
        let mut gone = cpu.now;
        for (node, journey) in to.iter().zip(&journeys) {
            cpu.posts(thread, packet.bytes.into());
            cpu.send(node, journey.there, thread, Sends::Packet(packet));
            gone = gone.max(journey.gone);
        }
        gone
    }

    fn packet(&self, course: &Course, words: [u64; 8]) -> Packet {
        let bytes = course.next_bytes(self.spec.data.packet_bytes);
        Packet {
            tag: course.transfer.tag,
            stream: course.stream,
            // An offset that does not exist is beyond the buffer.
            offset: course.transfer.offset.saturating_add(course.sent),
            bytes: bytes as u8,
            is_last: course.sent + bytes >= course.transfer.bytes,
            words,
        }
    }

    /// `thread` begins to push a transfer.
    pub(super) fn begins_push(&mut self, cpu: &mut Cpu, thread: u16, transfer: Transfer) {
        let interface = u32::from(thread) % self.spec.layout.interfaces(self.me);
        let course = match self.course(transfer, (interface, thread)) {
            Err(reason) => return cpu.refuse(thread, None, reason),
            Ok(course) => course,
        };
        if self.pushes.len() <= usize::from(thread) {
            self.pushes.resize(usize::from(thread) + 1, None);
        }
        let push = Push {
            course,
            words: [0; 8],
            gone: cpu.now,
        };
        cpu.waits(thread, Waiting::Answer);
        self.puts_together(cpu, thread, push);
    }

    /// The core loads the words of the next packet and stores them into the interface, which takes
    /// one after the other.
    fn puts_together(&mut self, cpu: &mut Cpu, thread: u16, mut push: Push) {
        let course = &push.course;
        let bytes = course.next_bytes(self.spec.data.packet_bytes);
        let (first, is_cached) = course.from;
        let first = first + u64::from(course.sent);
        let (mut loaded, mut taken) = (cpu.now, cpu.now);
        for word in 0..bytes.div_ceil(8) as usize {
            let at = (first + 8 * word as u64, is_cached);
            (push.words[word], loaded) = self.loads(cpu, thread, at, loaded);
            taken = loaded.max(taken + self.spec.data.push);
        }
        let sets_out = taken.max(push.gone);
        self.pushes[usize::from(thread)] = Some(push);
        cpu.later(sets_out, Later::Pushes(thread));
    }

    /// The next packet of a thread's transfer is complete.
    pub(super) fn pushes_packet(&mut self, cpu: &mut Cpu, thread: u16) {
        let Some(mut push) = self.pushes[usize::from(thread)].take() else {
            return;
        };
        cpu.goes_on(thread);
        let packet = self.packet(&push.course, push.words);
        push.gone = self.sets_out(cpu, thread, &push.course, packet);
        push.course.sent += u32::from(packet.bytes);
        if push.course.is_over() {
            return cpu.done(thread, 0, push.gone.since(cpu.now));
        }
        self.puts_together(cpu, thread, push);
    }

    /// `thread` lets a DMA channel begin.
    pub(super) fn begins_channel(
        &mut self,
        cpu: &mut Cpu,
        (thread, number): (u16, u16),
        transfer: Transfer,
        (tells, event): (Flag, Option<Flag>),
    ) -> Result<(), FaultReason> {
        let interface = u32::from(number) / self.spec.data.channels;
        match self.interfaces.channels.get(usize::from(number)) {
            None => return fault(NetworkFault::NoSuchChannel(number)),
            Some(Some(_)) => return fault(NetworkFault::Busy(number)),
            Some(None) => {}
        }
        let course = self.course(transfer, (interface, CHANNEL | number))?;
        let mut channel = Channel {
            course,
            thread,
            tells: (self.find(tells.0, 1)?.0, self.event(event)?),
            asked: 0,
            ready: VecDeque::new(),
        };
        let packets = self.spec.data.in_flight_bytes / self.spec.data.packet_bytes;
        for _ in 0..packets.max(1) {
            self.asks(cpu.now, &mut channel);
        }
        let first = channel.ready.front().copied().unwrap_or(cpu.now);
        self.interfaces.channels[usize::from(number)] = Some(channel);
        cpu.later(first, Later::Reads(number));
        Ok(())
    }

    /// A channel asks memory for the data of one more packet.
    fn asks(&mut self, at: Time, channel: &mut Channel) {
        let course = &channel.course;
        let left = u64::from(course.transfer.bytes - channel.asked);
        let bytes = left.min(self.spec.data.packet_bytes);
        if bytes > 0 {
            let offset = course.from.0 + u64::from(channel.asked);
            let there = self.store.serves(at, at, offset, bytes.div_ceil(8));
            channel.ready.push_back(there);
            channel.asked += bytes as u32;
        }
    }

    /// The data of the next packet of a channel are there.
    pub(super) fn sends_packet(&mut self, cpu: &mut Cpu, number: u16) {
        let Some(mut channel) = self.interfaces.channels[usize::from(number)].take() else {
            return;
        };
        let thread = channel.thread;
        let first = channel.course.from.0 + u64::from(channel.course.sent);
        let words = std::array::from_fn(|word| self.store.words.get(first + 8 * word as u64).0);
        let packet = self.packet(&channel.course, words);
        let gone = self.sets_out(cpu, thread, &channel.course, packet);
        channel.course.sent += u32::from(packet.bytes);
        channel.ready.pop_front();
        self.asks(cpu.now, &mut channel);
        let next = match channel.course.is_over() {
            true => (gone, Later::Sent(number)),
            false => {
                let ready = channel.ready.front().copied().unwrap_or(cpu.now);
                (gone.max(ready), Later::Reads(number))
            }
        };
        self.interfaces.channels[usize::from(number)] = Some(channel);
        cpu.later(next.0, next.1);
    }

    /// The last packet of a channel has left.
    pub(super) fn has_sent(&mut self, cpu: &mut Cpu, number: u16) {
        if let Some(channel) = self.interfaces.channels[usize::from(number)].take() {
            cpu.progress();
            let (flag, event) = channel.tells;
            self.tells(cpu, (flag, event), (self.me, channel.thread));
        }
    }

    /// `thread` sends bits over the control network.
    pub(super) fn signals(
        &mut self,
        cpu: &mut Cpu,
        thread: u16,
        nodes: NodeSet,
        (tag, bits): (u16, u64),
    ) {
        if let Some(node) = nodes.iter().find(|&node| node >= self.space.nodes) {
            let reason = FaultReason::Network(NetworkFault::NoSuchNode(node));
            return cpu.refuse(thread, None, reason);
        }
        let interface = |node| Interface { node, number: 0 };
        let to = nodes.iter().map(interface);
        let mut links = self.networks.control.lock();
        let journeys = links.travels(cpu.now, interface(self.me), to, self.spec.control_flits);
        let mut gone = cpu.now;
        for (node, journey) in nodes.iter().zip(&journeys) {
            cpu.posts(thread, 8);
            cpu.send(node, journey.there, thread, Sends::Signal(tag, bits));
            gone = gone.max(journey.gone);
        }
        drop(links);
        cpu.done(thread, 0, gone.since(cpu.now));
    }
}
