//! A load of another node's memory, pin by pin through the RTL of both engines.
//!
//! Two engines side by side; the link between them takes no time beyond its serializer, and the
//! memory answers four cycles after it was asked. Run it with
//! `cargo run -p sme-hdl --example remote_load`.

use std::sync::Arc;

use sme_hdl::beat::DoublewordsBeat;
use sme_hdl::blocks::engine::Engine;
use sme_hdl::device::{Clocked, Device, Port};
use sme_hdl::rtl_engine::{RtlEngine, Surroundings};
use sme_hdl::value::Value;
use sme_sim::families::sme::engine::{EngineModel, HtPacket, Input, Output};
use sme_sim::machine::Machine;
use sme_sim::parts::fabric::Topology;

/// Cycles that are drawn.
const CYCLES: u64 = 36;
/// Cycles that the target's memory takes.
const MEMORY: u64 = 4;

fn main() {
    print!("{}", picture());
}

/// The pins of both engines, a row each.
pub fn picture() -> String {
    let machine = Machine::builtin("sme-prototype").expect("it is built in");
    let spec = sme_sim::families::sme::of(&machine).expect("an SME cluster");
    let topology: Topology = "mesh:2x1".parse().expect("a topology");
    let surroundings = Arc::new(Surroundings::new(spec, &topology, 2));
    let mut engines = [0, 1].map(|node| {
        let rtl = Engine::new(spec, &topology, 2).expect("the RTL holds the prototype's credits");
        RtlEngine::new(Drawn::new(Clocked::new(rtl)), &surroundings, node)
    });
    let address = spec.node.global_base + spec.node.shared_bytes;
    let load = HtPacket::Read {
        extra_words: 0,
        address,
        enables: 0xff,
        tag: 3,
        trace: 0,
    };
    engines[0].input(0, Input::Host(load));
    let mut answer = None;
    for cycle in 0..CYCLES {
        for me in 0..2 {
            let mut out = Vec::new();
            engines[me].step(cycle, &mut out);
            for output in out {
                match output {
                    Output::Link {
                        port,
                        channel,
                        packet,
                    } => {
                        let port = port ^ 1;
                        let input = Input::Link {
                            port,
                            channel,
                            packet,
                        };
                        engines[1 - me].input(cycle + 1, input);
                    }
                    Output::LinkCredit { port, channel } => {
                        let port = port ^ 1;
                        engines[1 - me].input(cycle + 1, Input::LinkCredit { port, channel });
                    }
                    Output::Host(HtPacket::Read { tag, trace, .. }) => {
                        let response = HtPacket::Response {
                            extra_words: 0,
                            data: 0xcafe,
                            single: false,
                            tag,
                            error: false,
                            trace,
                        };
                        engines[me].input(cycle + MEMORY, Input::Host(response));
                    }
                    Output::Host(packet) => answer = Some((cycle, packet)),
                    Output::HostCredit(_) => {}
                }
            }
        }
    }

    let numbers: String = (0..CYCLES / 2).map(|i| format!("{:<4}", 2 * i)).collect();
    let mut picture = format!("{:28}{}\n", "cycle", numbers.trim_end());
    let drawn = engines.each_ref().map(|engine| engine.device());
    for (node, title, pin) in [
        (0, "the host asks", "host_in_valid"),
        (0, "  a place in the HT port", "host_out_credit"),
        (0, "  requester to crossbar", "requested"),
        (0, "  the link port begins", "begun$0"),
        (0, "  its last bytes", "link_out_valid$0"),
        (1, "the request arrives", "link_in_valid$1"),
        (1, "  a place in the switch", "link_out_credit$1"),
        (1, "  the completer takes it", "taken"),
        (1, "  read of the memory", "host_out_valid"),
        (1, "the memory answers", "host_in_valid"),
        (1, "  the responder takes it", "responded"),
        (1, "  the link port begins", "begun$1"),
        (1, "  its last bytes", "link_out_valid$1"),
        (0, "the response arrives", "link_in_valid$0"),
        (0, "  requester to HT port", "answered"),
        (0, "the host is answered", "host_out_valid"),
    ] {
        let title = format!("{node} {title}");
        picture += &format!("{title:28}{}\n", drawn[node].row(pin));
    }
    if let Some((cycle, HtPacket::Response { data, tag, .. })) = answer {
        picture += &format!("\nIn cycle {cycle} the host gets {data:#x} for its tag {tag}.\n");
        let [asked, answered] = [("host_in_data", 0), ("host_out_data", cycle)]
            .map(|(pin, cycle)| bytes(drawn[0].value(pin, cycle)));
        picture += &format!("HyperTransport: load {asked}\n              answer {answered}\n");
    }
    picture
}

/// The bytes of a packet on the host's pins, in the order of the link.
fn bytes(value: Value) -> String {
    let bytes = DoublewordsBeat::from_value(value).doublewords().on_link();
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes
        .chunks(4)
        .map(|doubleword| doubleword.join(" "))
        .collect::<Vec<_>>()
        .join("  ")
}

/// A device that remembers what was on its pins.
struct Drawn<D> {
    device: D,
    /// Inputs, then outputs, cycle by cycle.
    history: Vec<Vec<Value>>,
}

impl<D: Device> Drawn<D> {
    fn new(device: D) -> Self {
        let history = Vec::new();
        Self { device, history }
    }

    fn pin(&self, name: &str) -> usize {
        let (inputs, outputs) = (self.device.inputs(), self.device.outputs());
        let mut ports = inputs.into_iter().chain(outputs);
        let pin = ports.position(|port| port.name == name);
        pin.expect("the engine has it")
    }

    /// Returns the value on a pin in a cycle.
    fn value(&self, name: &str, cycle: u64) -> Value {
        self.history[cycle as usize][self.pin(name)]
    }

    /// A pin's row: high or low, cycle by cycle.
    fn row(&self, name: &str) -> String {
        let pin = self.pin(name);
        let level = |values: &Vec<Value>| {
            if values[pin] == Value::default() {
                "▁▁"
            } else {
                "▔▔"
            }
        };
        self.history.iter().map(level).collect()
    }
}

impl<D: Device> Device for Drawn<D> {
    fn inputs(&self) -> Vec<Port> {
        self.device.inputs()
    }

    fn outputs(&self) -> Vec<Port> {
        self.device.outputs()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        self.device.cycle(inputs, outputs);
        self.history.push([inputs, outputs.as_slice()].concat());
    }
}
