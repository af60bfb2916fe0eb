//! A switch outside the engines, of any radix: what fat trees and dragonflies are made of.
//!
//! ```text
//! link ─> receive buffers ─┐                        ┌─> transmit FIFOs ─> serializer ─> link
//!    (of each port)        ├─ one packet an output ─┤      (of each port)
//! link ─> receive buffers ─┘      and cycle         └─> transmit FIFOs ─> serializer ─> link
//! ```
//!
//! It does in each cycle what an engine's [switch](super::switch) and its
//! [link ports](super::link_port) do: buffers of the same depths with the same credits, one packet
//! for each output in turn among the inputs that want it, the same serializers; at six ports it
//! cannot be told from the switch of an engine without a host. There is no host port and nothing of
//! an engine. A cluster plugs it in like an engine, as an [`EngineModel`]; time is in cycles of the
//! engines' clock. Ports that no packet has used have no state.

use std::sync::Arc;

use super::counters::{ChannelCounters, Counters, Faults};
use super::design::Design;
use super::fifo::Fifos;
use super::link_port::{ARRIVAL_CYCLES, LinkPort};
use super::model::{EngineModel, Input, Inspect, Output, Shortcuts};
use super::packet::Packet;
use super::wires::bits;
use crate::parts::fabric::{CHANNELS, Here, MOST_PORTS, Port};

/// FIFOs of a port: receive buffers by channel, then transmit FIFOs by channel.
pub(super) const PORT_FIFOS: usize = 2 * CHANNELS;

/// A switch of an indirect network.
///
/// It implements [`EngineModel`], of which it has the link ports only.
#[derive(Debug)]
pub struct WideSwitch {
    design: Arc<Design>,
    here: Here,
    /// The ports that have ever been used.
    ports: Box<[Option<Box<WidePort>>]>,
    /// Those with a packet in a FIFO.
    active: Ports,
    /// Those whose serializer is at work.
    sending: Ports,
    /// The last cycle changed something; if not, the next would not either.
    changed: bool,
    /// The first edge that is not stepped yet.
    next_edge: u64,
    /// Packets and credits that do not count yet, as they were presented, and the edges from which
    /// on they do.
    packets: Vec<(u64, Arrival, Packet)>,
    credits: Vec<(u64, Arrival)>,
    /// The earliest edge of any of them.
    earliest: u64,
}

/// The entry of an arrival: port and channel.
type Arrival = (u16, u8);

/// One port, both directions.
#[derive(Debug)]
struct WidePort {
    /// The side word of a receive buffer is the output that its packet wants: port · 4 + channel.
    fifos: Fifos<Packet, PORT_FIFOS>,
    link: LinkPort,
    /// The input that was served last, port · 4 + channel; before the first, the last one.
    last: u16,
    /// The input that is to be served in this cycle.
    next: u16,
    counters: [ChannelCounters; CHANNELS],
}

impl WideSwitch {
    /// The switch at `position`, after reset.
    pub fn new(design: &Arc<Design>, position: u32) -> Self {
        let radix = design.topology.ports(position);
        Self {
            here: design.router.here(position),
            ports: (0..radix).map(|_| None).collect(),
            active: Ports::default(),
            sending: Ports::default(),
            changed: false,
            next_edge: 0,
            packets: Vec::new(),
            credits: Vec::new(),
            earliest: u64::MAX,
            design: Arc::clone(design),
        }
    }

    /// Every link port's part of a cycle.
    fn step_links(&mut self, cycle: u64, out: &mut Vec<Output>) {
        for number in self.active.or(self.sending).iter() {
            let Some(port) = &mut self.ports[usize::from(number)] else {
                continue;
            };
            let waiting = (port.fifos.valid() >> CHANNELS) as u8;
            if waiting == 0 && !self.sending.contains(number) {
                continue;
            }
            let spec = &self.design.link_port;
            let fifos = &mut port.fifos;
            let step = port.link.step_from(CHANNELS, cycle, waiting, spec, fifos);
            self.sending.set(number, port.link.next_change().is_some());
            if let Some((channel, counted)) = step.began {
                self.changed = true;
                port.counters[usize::from(channel)].add(&counted);
            }
            if let Some((channel, held)) = step.delivered {
                self.changed = true;
                out.push(Output::Link {
                    port: number,
                    channel,
                    packet: *fifos.held(&held),
                });
                fifos.release(held);
            }
        }
    }

    /// The allocation of outputs to inputs, and the moves from these to those.
    fn step_switch(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let mut wanted = Ports::default();
        for number in self.active.iter() {
            for channel in 0..CHANNELS {
                let Some(input) = &self.ports[usize::from(number)] else {
                    continue;
                };
                if !input.fifos.is_valid(channel) {
                    continue;
                }
                let (leaves, leaves_on) = port_and_channel(input.fifos.side(channel));
                let output = self.port(leaves);
                if !output.fifos.is_ready(CHANNELS + usize::from(leaves_on)) {
                    continue;
                }
                // Round robin: they come in order, and the first after the last winner wins, if
                // there is none after it the first of all.
                let input = number_of(number, channel as u8);
                let wins =
                    !wanted.contains(leaves) || (output.next <= output.last && input > output.last);
                if wins {
                    output.next = input;
                    wanted.set(leaves, true);
                }
            }
        }
        let freed = out.len();
        for leaves in wanted.iter() {
            let input = self.port(leaves).next;
            let (number, channel) = port_and_channel(input);
            let from = &mut self.port(number).fifos;
            let leaves_on = port_and_channel(from.side(channel.into())).1;
            let packet = from.pop(channel.into());
            let output = self.port(leaves);
            let to = CHANNELS + usize::from(leaves_on);
            // Only the first packet of a FIFO begins to wait for the link.
            if output.fifos.next_valid() >> to & 1 == 0 {
                output.link.starts_waiting(leaves_on, cycle);
            }
            output.fifos.push(to, packet, 0);
            output.last = input;
            self.active.set(leaves, true);
            self.changed = true;
            out.push(Output::LinkCredit {
                port: number,
                channel,
            });
        }
        // By port, then channel.
        out[freed..].sort_unstable();
    }

    /// Ports without packets take no part in the next cycle: they register now that they are empty.
    fn settle(&mut self) {
        for number in self.active.iter() {
            let port = self.port(number);
            if port.fifos.next_valid() == 0 {
                port.fifos.latch();
                self.active.set(number, false);
            }
        }
    }

    /// Takes in what is due at edges up to `cycle`.
    fn sample(&mut self, cycle: u64) {
        self.earliest = u64::MAX;
        let mut packets = std::mem::take(&mut self.packets);
        packets.retain(|&(edge, arrival, packet)| {
            let later = edge > cycle;
            if later {
                self.earliest = self.earliest.min(edge);
            } else {
                self.receive(arrival, packet);
            }
            later
        });
        self.packets = packets;
        let mut credits = std::mem::take(&mut self.credits);
        credits.retain(|&(edge, (number, channel))| {
            let later = edge > cycle;
            if later {
                self.earliest = self.earliest.min(edge);
            } else {
                let spec = self.design.link_port;
                self.port(number).link.credit(channel, &spec);
                self.changed = true;
            }
            later
        });
        self.credits = credits;
    }

    /// Decides where a packet goes, and writes it into its receive buffer.
    fn receive(&mut self, (number, channel): Arrival, packet: Packet) {
        let router = &self.design.router;
        let (leaves, leaves_on) = router.step(self.here, number, channel, packet.target);
        let Port::Link(leaves) = leaves else {
            panic!("a packet for node {} came to a switch there", packet.target);
        };
        let side = number_of(leaves, leaves_on);
        let fifos = &mut self.port(number).fifos;
        fifos.push(channel.into(), packet, side);
        self.active.set(number, true);
        self.changed = true;
    }

    /// The port of that number; it is there from now on.
    #[inline]
    fn port(&mut self, number: u16) -> &mut WidePort {
        let radix = self.ports.len();
        let design = &self.design;
        self.ports[usize::from(number)].get_or_insert_with(|| {
            Box::new(WidePort {
                fifos: Fifos::sharing(&design.port_depths),
                link: LinkPort::new(&design.link_port),
                last: (radix * CHANNELS - 1) as u16,
                next: 0,
                counters: Default::default(),
            })
        })
    }

    fn used(&self) -> impl Iterator<Item = &WidePort> {
        self.ports.iter().flatten().map(|port| &**port)
    }
}

impl EngineModel for WideSwitch {
    fn next_cycle(&self) -> Option<u64> {
        let packets_wait = !self.active.is_empty();
        if self.changed && packets_wait {
            return Some(self.next_edge);
        }
        let sending = self.sending.iter();
        let ends = sending.filter_map(|port| {
            let port = self.ports[usize::from(port)].as_ref()?;
            port.link.next_change()
        });
        let ends = ends.min().unwrap_or(u64::MAX);
        let mut next = ends;
        for &(cycle, ..) in &self.packets {
            next = next.min(cycle.max(self.next_edge));
        }
        // A credit for which no packet waits is sampled at the next edge that is stepped anyhow.
        if packets_wait {
            for &(cycle, _) in &self.credits {
                next = next.min(cycle.max(self.next_edge));
            }
        }
        (next != u64::MAX).then_some(next)
    }

    fn input(&mut self, cycle: u64, input: Input) {
        debug_assert!(
            cycle >= self.next_edge,
            "edge {cycle} is over; the next is {}",
            self.next_edge
        );
        let cycle = cycle + ARRIVAL_CYCLES;
        self.earliest = self.earliest.min(cycle);
        match input {
            Input::Link {
                port,
                channel,
                packet,
            } => self.packets.push((cycle, (port, channel), packet)),
            Input::LinkCredit { port, channel } => self.credits.push((cycle, (port, channel))),
            Input::Host(_) | Input::HostCredit(_) => {
                panic!("a switch without a host has no host port")
            }
        }
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        debug_assert!(
            cycle >= self.next_edge,
            "edge {cycle} is over; the next is {}",
            self.next_edge
        );
        self.changed = false;
        for number in self.active.iter() {
            self.port(number).fifos.latch();
        }
        self.step_links(cycle, out);
        self.step_switch(cycle, out);
        self.settle();
        if self.earliest <= cycle {
            self.sample(cycle);
        }
        self.next_edge = cycle + 1;
    }
}

impl Shortcuts for WideSwitch {}

impl Inspect for WideSwitch {
    fn counters(&self) -> Counters {
        let of = |port: &Option<Box<WidePort>>| port.as_ref().map(|port| port.counters);
        Counters {
            links: self
                .ports
                .iter()
                .map(|port| of(port).unwrap_or_default())
                .collect(),
            faults: Faults::default(),
        }
    }

    fn is_quiet(&self) -> bool {
        let spec = &self.design.link_port;
        let missing: u32 = self.used().map(|port| port.link.missing(spec)).sum();
        self.packets.is_empty()
            && self.active.is_empty()
            && self.sending.is_empty()
            && missing as usize == self.credits.len()
    }

    fn state_bytes(&self) -> usize {
        let used = self.used();
        let of_ports: usize = used
            .map(|port| size_of::<WidePort>() + port.fifos.heap_bytes())
            .sum();
        size_of::<Self>()
            + size_of_val(&*self.ports)
            + of_ports
            + self.packets.capacity() * size_of::<(u64, Arrival, Packet)>()
            + self.credits.capacity() * size_of::<(u64, Arrival)>()
    }
}

fn number_of(port: u16, channel: u8) -> u16 {
    port * CHANNELS as u16 + u16::from(channel)
}

fn port_and_channel(number: u16) -> (u16, u8) {
    let channels = CHANNELS as u16;
    (number / channels, (number % channels) as u8)
}

// Every port and channel has a number.
const _: () = assert!(MOST_PORTS * CHANNELS <= 1 << u16::BITS);

/// Words of a set of ports.
const WORDS: usize = MOST_PORTS.div_ceil(64);

/// A set of ports, bit by bit.
#[derive(Clone, Copy, Debug, Default)]
struct Ports {
    words: [u64; WORDS],
    /// The words that are not zero, bit by bit.
    used: u16,
}

const _: () = assert!(WORDS <= u16::BITS as usize);

impl Ports {
    fn set(&mut self, port: u16, is_in: bool) {
        let index = usize::from(port) / 64;
        let word = &mut self.words[index];
        let bit = 1 << (port % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
        let used = 1 << index;
        self.used = match *word {
            0 => self.used & !used,
            _ => self.used | used,
        };
    }

    fn contains(&self, port: u16) -> bool {
        self.words[usize::from(port) / 64] >> (port % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Those in either.
    fn or(self, other: Self) -> Self {
        let mut either = self;
        either.used |= other.used;
        for word in bits(other.used) {
            either.words[word as usize] |= other.words[word as usize];
        }
        either
    }

    /// Lowest first, as they are now.
    fn iter(self) -> impl Iterator<Item = u16> {
        bits(self.used).flat_map(move |word| {
            let ports = bits(self.words[word as usize]);
            ports.map(move |port| (word * 64 + port) as u16)
        })
    }
}

#[cfg(test)]
mod tests;
