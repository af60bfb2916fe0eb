//! The pins of an engine: which value is what.
//!
//! [`InputPins`] puts packets and credits on the inputs of a [`Device`](crate::device::Device) with
//! the ports of [`Engine`](crate::blocks::engine::Engine), [`OutputPins`] reads its outputs, and
//! [`show`] puts there what the cycle model gives out. Of the pins of which each link has one, the
//! six stand side by side.

use sme_sim::families::sme::engine::{HtChannel, Input, Output, Packet};
use sme_sim::parts::fabric::{CHANNELS, LINK_PORTS};

use crate::beat::{DoublewordsBeat, HtBeat, PacketBeat};
use crate::value::Value;

const NODE: usize = 0;
const HOST_IN_VALID: usize = 4;
pub(crate) const HOST_IN_DATA: usize = 5;
const HOST_IN_CREDIT: usize = 6;
const LINK_IN_VALID: usize = 7;
const LINK_IN_CHANNEL: usize = LINK_IN_VALID + LINK_PORTS;
const LINK_IN_DATA: usize = LINK_IN_CHANNEL + LINK_PORTS;
const LINK_IN_CRC: usize = LINK_IN_DATA + LINK_PORTS;
pub(crate) const LINK_IN_CREDIT: usize = LINK_IN_CRC + LINK_PORTS;
/// Inputs.
pub(crate) const INPUTS: usize = LINK_IN_CREDIT + LINK_PORTS;

const HOST_OUT_VALID: usize = 0;
const HOST_OUT_DATA: usize = 1;
pub(crate) const HOST_OUT_CREDIT: usize = 2;
const LINK_OUT_VALID: usize = 3;
const LINK_OUT_CHANNEL: usize = LINK_OUT_VALID + LINK_PORTS;
const LINK_OUT_DATA: usize = LINK_OUT_CHANNEL + LINK_PORTS;
const LINK_OUT_CRC: usize = LINK_OUT_DATA + LINK_PORTS;
const LINK_OUT_CREDIT: usize = LINK_OUT_CRC + LINK_PORTS;
pub(crate) const BEGUN: usize = LINK_OUT_CREDIT + LINK_PORTS;
pub(crate) const CRC_ERROR: usize = BEGUN + LINK_PORTS;
pub(crate) const DROPPED_VALID: usize = CRC_ERROR + LINK_PORTS;
pub(crate) const FAILED_VALID: usize = DROPPED_VALID + 1;
pub(crate) const UNKNOWN_TAGS: usize = FAILED_VALID + 1;
/// Outputs that the cycle model shows, too; those behind are for the simulator only.
pub(crate) const VISIBLE: usize = UNKNOWN_TAGS + 1;
const DROPPED_DATA: usize = VISIBLE;
const FAILED_DATA: usize = DROPPED_DATA + 1;
const WAITING: usize = FAILED_DATA + 1;
const BEGUN_WRITE: usize = WAITING + LINK_PORTS;
const MOVED: usize = BEGUN_WRITE + LINK_PORTS;
const REQUESTED: usize = MOVED + 1;
const RESPONDED: usize = REQUESTED + 1;
const ANSWERED: usize = RESPONDED + 1;
const TAKEN: usize = ANSWERED + 1;
const TAKEN_SOURCE: usize = TAKEN + 1;
const TAKEN_READ: usize = TAKEN_SOURCE + 1;
const UNKNOWN_RESPONSE: usize = TAKEN_READ + 1;

/// Outputs of an engine, and of its link ports, that only the simulator wants to know: in an FPGA
/// they lead nowhere.
pub(crate) const OBSERVED: [&str; 10] = [
    "dropped_data",
    "failed_data",
    "moved",
    "requested",
    "responded",
    "answered",
    "taken",
    "taken_source",
    "taken_read",
    "unknown_response",
];
/// The same, of each link port.
pub(crate) const OBSERVED_OF_LINKS: [&str; 3] = ["begun", "waiting", "begun_write"];

/// The values of the inputs.
#[derive(Clone, Debug)]
pub(crate) struct InputPins(Vec<Value>);

impl InputPins {
    /// Of node `node`, whose coordinates are `here`, without traffic.
    pub fn new(node: u32, here: [u32; 3]) -> Self {
        let mut values = vec![Value::default(); INPUTS];
        for (pin, number) in [node, here[0], here[1], here[2]].into_iter().enumerate() {
            values[NODE + pin] = u64::from(number).into();
        }
        Self(values)
    }

    /// All of them, in the order of the ports.
    pub fn values(&self) -> &[Value] {
        &self.0
    }

    /// Nothing comes.
    pub fn clear(&mut self) {
        self.0[HOST_IN_VALID] = Value::default();
        self.0[HOST_IN_CREDIT] = Value::default();
        self.0[LINK_IN_VALID..][..LINK_PORTS].fill(Value::default());
        self.0[LINK_IN_CREDIT..][..LINK_PORTS].fill(Value::default());
    }

    /// The host's packet has one bit of its command inverted: none of 3, 4 and 5, so that the
    /// channel stays.
    pub fn spoil_command(&mut self, bit: usize) {
        let data = &mut self.0[HOST_IN_DATA];
        let bit = DoublewordsBeat::COMMAND + bit;
        data.set(bit, 1, u64::from(!data.bit(bit)));
    }

    /// One bit of the CRC that comes over a link is wrong.
    pub fn spoil_crc(&mut self, port: usize, bit: usize) {
        let crc = &mut self.0[LINK_IN_CRC + port];
        let wrong = u64::from(!crc.bit(bit));
        crc.set(bit, 1, wrong);
    }

    /// This comes, too.
    pub fn put(&mut self, input: &Input) {
        match *input {
            Input::Host(packet) => {
                self.0[HOST_IN_VALID] = true.into();
                self.0[HOST_IN_DATA] = DoublewordsBeat::from(packet).value();
            }
            Input::HostCredit(channel) => self.0[HOST_IN_CREDIT].set(channel as usize, 1, 1),
            Input::Link {
                port,
                channel,
                packet,
            } => {
                let port = usize::from(port);
                self.0[LINK_IN_VALID + port] = true.into();
                self.0[LINK_IN_CHANNEL + port] = u64::from(channel).into();
                self.0[LINK_IN_DATA + port] = PacketBeat::from(packet).value();
                self.0[LINK_IN_CRC + port] = u64::from(packet.crc()).into();
            }
            Input::LinkCredit { port, channel } => {
                self.0[LINK_IN_CREDIT + usize::from(port)].set(channel.into(), 1, 1);
            }
        }
    }
}

/// Puts what an engine gives out on its output pins, on which nothing of the kind stands yet.
pub(crate) fn show(output: &Output, outputs: &mut [Value]) {
    match *output {
        Output::Host(packet) => {
            outputs[HOST_OUT_VALID] = true.into();
            outputs[HOST_OUT_DATA] = DoublewordsBeat::from(packet).value();
        }
        Output::HostCredit(channel) => outputs[HOST_OUT_CREDIT].set(channel as usize, 1, 1),
        Output::Link {
            port,
            channel,
            packet,
        } => {
            let port = usize::from(port);
            outputs[LINK_OUT_VALID + port] = true.into();
            outputs[LINK_OUT_CHANNEL + port] = u64::from(channel).into();
            outputs[LINK_OUT_DATA + port] = PacketBeat::from(packet).value();
            outputs[LINK_OUT_CRC + port] = u64::from(packet.crc()).into();
        }
        Output::LinkCredit { port, channel } => {
            outputs[LINK_OUT_CREDIT + usize::from(port)].set(channel.into(), 1, 1);
        }
    }
}

/// The values of the outputs.
pub(crate) struct OutputPins<'a>(pub &'a [Value]);

impl OutputPins<'_> {
    /// The packet that goes to the host.
    pub fn host(&self) -> Option<HtBeat> {
        self.0[HOST_OUT_VALID]
            .bit(0)
            .then(|| DoublewordsBeat::from_value(self.0[HOST_OUT_DATA]).fields())
    }

    /// Places freed for the host, bit by bit.
    pub fn host_credit(&self) -> u64 {
        self.0[HOST_OUT_CREDIT].low()
    }

    /// The packet whose last bytes leave over a link, and its virtual channel.
    pub fn link(&self, port: usize) -> Option<(u8, PacketBeat)> {
        self.0[LINK_OUT_VALID + port].bit(0).then(|| {
            let channel = self.0[LINK_OUT_CHANNEL + port].low() as u8;
            (
                channel,
                PacketBeat::from_value(self.0[LINK_OUT_DATA + port]),
            )
        })
    }

    /// Places freed for a link's other end, bit by bit.
    pub fn link_credit(&self, port: usize) -> u64 {
        self.0[LINK_OUT_CREDIT + port].low()
    }

    /// The virtual channel that begins a packet, and whether that is a posted write.
    pub fn begun(&self, port: usize) -> Option<(usize, bool)> {
        let channels = self.0[BEGUN + port].low();
        let channel = channels.trailing_zeros() as usize;
        (channels != 0).then(|| (channel, self.0[BEGUN_WRITE + port].bit(0)))
    }

    /// The virtual channels that have a packet waiting for the link, and not beginning.
    pub fn stalled(&self, port: usize) -> u64 {
        self.0[WAITING + port].low() & !self.0[BEGUN + port].low()
    }

    /// The address of a write that is dropped.
    pub fn dropped(&self) -> Option<u64> {
        self.0[DROPPED_VALID]
            .bit(0)
            .then(|| self.0[DROPPED_DATA].low())
    }

    /// The address of a read that fails.
    pub fn failed(&self) -> Option<u64> {
        self.0[FAILED_VALID]
            .bit(0)
            .then(|| self.0[FAILED_DATA].low())
    }

    /// Returns the moves between the host's side of the engine and the network's.
    pub fn moves(&self) -> Moves {
        let bit = |pin: usize| self.0[pin].bit(0);
        let lost = self.0[UNKNOWN_TAGS].low() as u32;
        let lost_in_network = u32::from(bit(UNKNOWN_RESPONSE));
        Moves {
            any: bit(MOVED),
            to_network: u32::from(bit(REQUESTED)) + u32::from(bit(RESPONDED)),
            to_host: u32::from(bit(ANSWERED)) + u32::from(bit(TAKEN)),
            lost_in_network,
            lost_from_host: lost.saturating_sub(lost_in_network),
        }
    }

    /// From which node the completer takes a request, and whether that is a read.
    pub fn completer_takes(&self) -> Option<(u32, bool)> {
        let source = self.0[TAKEN_SOURCE].low() as u32;
        self.0[TAKEN]
            .bit(0)
            .then(|| (source, self.0[TAKEN_READ].bit(0)))
    }
}

/// Packets that move in a cycle.
pub(crate) struct Moves {
    /// Some packet moves, or a tag can be taken from the next cycle on.
    pub any: bool,
    /// From the host's side to the network's.
    pub to_network: u32,
    /// From the network's side to the host's.
    pub to_host: u32,
    /// Responses of the network with tags that no read held.
    pub lost_in_network: u32,
    /// Answers of the host's memory with such tags.
    pub lost_from_host: u32,
}

/// The links over which a packet comes with a wrong CRC.
pub(crate) fn wrong_crcs(values: &[Value]) -> [bool; LINK_PORTS] {
    std::array::from_fn(|port| {
        let crc = values[LINK_IN_CRC + port].low();
        values[LINK_IN_VALID + port].bit(0) && crc != u64::from(link_packet(values, port).crc())
    })
}

fn link_packet(values: &[Value], port: usize) -> Packet {
    PacketBeat::from_value(values[LINK_IN_DATA + port]).packet(0)
}

/// Returns the inputs on the pins, without packets whose CRC is wrong.
pub(crate) fn inputs_of(values: &[Value]) -> Vec<Input> {
    let mut inputs = Vec::new();
    let wrong = wrong_crcs(values);
    if values[HOST_IN_VALID].bit(0) {
        let doublewords = DoublewordsBeat::from_value(values[HOST_IN_DATA]).doublewords();
        inputs.push(Input::Host(doublewords.decode()));
    }
    let credits = HtChannel::ALL.into_iter();
    let credits = credits.filter(|&channel| values[HOST_IN_CREDIT].bit(channel as usize));
    inputs.extend(credits.map(Input::HostCredit));
    for port in 0..LINK_PORTS {
        if values[LINK_IN_VALID + port].bit(0) && !wrong[port] {
            inputs.push(Input::Link {
                port: port as u16,
                channel: values[LINK_IN_CHANNEL + port].low() as u8,
                packet: link_packet(values, port),
            });
        }
        let credits = (0..CHANNELS).filter(|&c| values[LINK_IN_CREDIT + port].bit(c));
        inputs.extend(credits.map(|channel| Input::LinkCredit {
            port: port as u16,
            channel: channel as u8,
        }));
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::engine::Engine;
    use crate::device::Pins;
    use sme_sim::machine::Machine;

    const OUTPUTS: usize = UNKNOWN_RESPONSE + 1;

    #[test]
    fn the_pins_are_where_the_rtl_has_them() {
        let machine = Machine::builtin("sme-prototype").expect("it is built in");
        let topology = "mesh:2x2".parse().expect("a topology");
        let engine = Engine::new(sme_sim::families::sme::of(&machine).unwrap(), &topology, 4)
            .expect("few credits");
        let (inputs, outputs) = (engine.input_ports(), engine.output_ports());
        assert_eq!((inputs.len(), outputs.len()), (INPUTS, OUTPUTS));
        for (pin, name) in [
            (NODE, "node"),
            (HOST_IN_VALID, "host_in_valid"),
            (HOST_IN_DATA, "host_in_data"),
            (HOST_IN_CREDIT, "host_in_credit"),
            (LINK_IN_VALID, "link_in_valid$0"),
            (LINK_IN_CHANNEL, "link_in_channel$0"),
            (LINK_IN_DATA, "link_in_data$0"),
            (LINK_IN_CRC, "link_in_crc$0"),
            (LINK_IN_CREDIT, "link_in_credit$0"),
        ] {
            assert_eq!(inputs[pin].name, name);
        }
        for (pin, name) in [
            (HOST_OUT_VALID, "host_out_valid"),
            (HOST_OUT_DATA, "host_out_data"),
            (HOST_OUT_CREDIT, "host_out_credit"),
            (LINK_OUT_VALID, "link_out_valid$0"),
            (LINK_OUT_CHANNEL, "link_out_channel$0"),
            (LINK_OUT_DATA, "link_out_data$0"),
            (LINK_OUT_CRC, "link_out_crc$0"),
            (LINK_OUT_CREDIT, "link_out_credit$0"),
            (BEGUN, "begun$0"),
            (CRC_ERROR, "crc_error$0"),
            (DROPPED_VALID, "dropped_valid"),
            (FAILED_VALID, "failed_valid"),
            (UNKNOWN_TAGS, "unknown_tags"),
            (DROPPED_DATA, "dropped_data"),
            (FAILED_DATA, "failed_data"),
            (WAITING, "waiting$0"),
            (BEGUN_WRITE, "begun_write$0"),
            (MOVED, "moved"),
            (REQUESTED, "requested"),
            (RESPONDED, "responded"),
            (ANSWERED, "answered"),
            (TAKEN, "taken"),
            (TAKEN_SOURCE, "taken_source"),
            (TAKEN_READ, "taken_read"),
            (UNKNOWN_RESPONSE, "unknown_response"),
        ] {
            assert_eq!(outputs[pin].name, name);
        }
    }
}
