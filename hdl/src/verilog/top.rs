//! The engine with a port for each field of a packet of the network, and for the doublewords of one
//! of the host, under the names that waveforms have.
//!
//! Between blocks a packet is one vector. To connect an engine to something else, or to find a
//! signal of `sme barrier --waves`, one needs its parts: the module made here has them, and nothing
//! inside but the engine.

use std::fmt::Write;

use sme_sim::parts::fabric::{CHANNELS, LINK_PORTS};

use super::test_bench::{DRIVE, GOT};
use crate::beat::{DoublewordsBeat, PacketBeat};
use crate::engine_pins::{OBSERVED, OBSERVED_OF_LINKS};

/// A port: its name, whether it is an output, its width.
type Pin = (String, bool, usize);

/// Fields of a packet: name, width, lowest bit.
type Fields = [(&'static str, usize, usize)];

/// The module `top`, around the engine's module `engine`.
pub fn top(top: &str, engine: &str) -> String {
    let mut text = format!("module {top}(\n    input wire clock,\n    input wire reset");
    for (name, is_output, width) in pins() {
        let direction = if is_output { "output" } else { "input" };
        let range = match width {
            1 => String::new(),
            _ => format!("[{}:0] ", width - 1),
        };
        let _ = write!(text, ",\n    {direction} wire {range}{name}");
    }
    text.push_str("\n);");
    let mut wires = vec![
        ("clock".into(), "clock".into()),
        ("reset".into(), "reset".into()),
    ];
    let mut wire = |pin: &str, signal: &str| wires.push((pin.to_owned(), signal.to_owned()));
    for pin in ["node", "x", "y", "z", "unknown_tags"] {
        wire(pin, pin);
    }
    wire("dropped_valid", "dropped_write");
    wire("failed_valid", "failed_read");
    for direction in ["in", "out"] {
        for pin in ["valid", "credit"] {
            let pin = format!("host_{direction}_{pin}");
            wire(&pin, &pin);
        }
        let host = format!("host_{direction}");
        wire(
            &format!("{host}_data"),
            &vector(&host, DoublewordsBeat::FIELDS),
        );
        for port in 0..LINK_PORTS {
            let link = format!("link{port}_{direction}");
            let pin = |name: &str| format!("link_{direction}_{name}${port}");
            wire(&pin("valid"), &format!("link_{direction}_valid[{port}]"));
            wire(&pin("data"), &vector(&link, PacketBeat::FIELDS));
            for name in ["channel", "crc", "credit"] {
                wire(&pin(name), &format!("{link}_{name}"));
            }
        }
    }
    for port in 0..LINK_PORTS {
        wire(&format!("crc_error${port}"), &format!("crc_error[{port}]"));
    }
    for port in 0..LINK_PORTS {
        for observed in OBSERVED_OF_LINKS {
            wire(&format!("{observed}${port}"), "");
        }
    }
    for observed in OBSERVED {
        wire(observed, "");
    }
    let wires: Vec<String> = wires
        .iter()
        .map(|(pin, signal)| format!("        .{pin}({signal})"))
        .collect();
    let _ = write!(
        text,
        "\n    {engine} engine(\n{}\n    );\nendmodule // {top}\n",
        wires.join(",\n")
    );
    text
}

/// The ports of the top level but clock and reset, and what of the wires of the engine's test bench
/// goes there: the bench takes apart what the top level puts together.
pub(super) fn connections() -> Vec<(String, String)> {
    let pins = pins().into_iter();
    pins.map(|(pin, is_output, _)| {
        let wire = wire(&pin, if is_output { GOT } else { DRIVE });
        (pin, wire)
    })
    .collect()
}

/// The wire of a test bench that belongs to the port `pin` of the top level, or the part of one.
fn wire(pin: &str, prefix: &str) -> String {
    if let Some((link, name)) = pin.split_once('_').filter(|(link, _)| *link != "link") {
        let field = |fields: &Fields| {
            let (_, field) = name.split_once('_')?;
            let (_, width, lowest) = fields.iter().find(|(name, ..)| *name == field)?;
            Some(format!("[{}:{lowest}]", lowest + width - 1))
        };
        let direction = name.split('_').next().unwrap_or_default();
        if let Some(port) = link.strip_prefix("link") {
            return match field(PacketBeat::FIELDS) {
                Some(bits) => format!("{prefix}_link_{direction}_data${port}{bits}"),
                None => format!("{prefix}_link_{name}${port}"),
            };
        }
        if let Some(bits) = field(DoublewordsBeat::FIELDS).filter(|_| link == "host") {
            return format!("{prefix}_host_{direction}_data{bits}");
        }
    }
    match pin {
        // Of each link a bit, the first lowest.
        "link_in_valid" | "link_out_valid" | "crc_error" => {
            let bits = (0..LINK_PORTS).rev();
            let bits: Vec<String> = bits.map(|port| format!("{prefix}_{pin}${port}")).collect();
            format!("{{{}}}", bits.join(", "))
        }
        "dropped_write" => format!("{prefix}_dropped_valid"),
        "failed_read" => format!("{prefix}_failed_valid"),
        _ => format!("{prefix}_{pin}"),
    }
}

/// All ports but clock and reset.
fn pins() -> Vec<Pin> {
    let mut pins = Vec::new();
    let mut pin = |name: String, is_output, width| pins.push((name, is_output, width));
    for name in ["node", "x", "y", "z"] {
        pin(name.to_owned(), false, 20);
    }
    for (direction, is_output) in [("in", false), ("out", true)] {
        pin(format!("host_{direction}_valid"), is_output, 1);
        for (field, width, _) in DoublewordsBeat::FIELDS {
            pin(format!("host_{direction}_{field}"), is_output, *width);
        }
        pin(format!("host_{direction}_credit"), is_output, 3);
        pin(format!("link_{direction}_valid"), is_output, LINK_PORTS);
        for port in 0..LINK_PORTS {
            let link = format!("link{port}_{direction}");
            pin(format!("{link}_channel"), is_output, 2);
            for (field, width, _) in PacketBeat::FIELDS {
                pin(format!("{link}_{field}"), is_output, *width);
            }
            pin(format!("{link}_crc"), is_output, 16);
            pin(format!("{link}_credit"), is_output, CHANNELS);
        }
    }
    pin("crc_error".to_owned(), true, LINK_PORTS);
    for name in ["dropped_write", "failed_read"] {
        pin(name.to_owned(), true, 1);
    }
    pin("unknown_tags".to_owned(), true, 2);
    pins
}

/// The vector of a packet whose fields are ports of this prefix, the highest first.
fn vector(prefix: &str, fields: &Fields) -> String {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(_, _, lowest)| std::cmp::Reverse(*lowest));
    let fields: Vec<String> = fields
        .iter()
        .map(|(field, ..)| format!("{prefix}_{field}"))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beat::HtBeat;
    use crate::blocks::engine::Engine;
    use crate::device::Pins;
    use sme_sim::families::sme::engine::waves::signals;
    use sme_sim::machine::Machine;

    #[test]
    fn the_ports_have_the_names_and_widths_that_waveforms_have() {
        let pins = pins();
        for signal in signals::all() {
            // A waveform's own, which the hardware has not: the cycle, and what doublewords say.
            let of_host = ["host_in_", "host_out_"].map(|prefix| signal.name.strip_prefix(prefix));
            let said = ["kind", "address", "enables", "tag", "coherent"];
            let mut of_host = of_host.into_iter().flatten();
            let own = signal.name == "cycle" || of_host.any(|field| said.contains(&field));
            assert!(!own || pins.iter().all(|(name, ..)| *name != signal.name));
            if !own {
                let found = pins.iter().find(|(name, ..)| *name == signal.name);
                let (_, is_output, width) = found.unwrap_or_else(|| panic!("no {}", signal.name));
                assert_eq!(*width as u32, signal.width, "{}", signal.name);
                assert_eq!(*is_output, signal.name.contains("_out_"), "{}", signal.name);
            }
        }
    }

    #[test]
    fn every_port_of_the_engine_is_connected_or_left_open() {
        let machine = Machine::builtin("sme-prototype").unwrap();
        let topology = "mesh:2x2".parse().unwrap();
        let engine =
            Engine::new(sme_sim::families::sme::of(&machine).unwrap(), &topology, 4).unwrap();
        let text = top("top", "engine");
        let connected: Vec<&str> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix('.')?.split('(').next())
            .collect();
        let ports = engine
            .input_ports()
            .into_iter()
            .chain(engine.output_ports());
        let mut ports: Vec<String> = ports.map(|port| port.name).collect();
        ports.extend(["clock".to_owned(), "reset".to_owned()]);
        ports.sort();
        let mut sorted = connected.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ports);
    }

    #[test]
    fn a_vector_has_every_bit_once() {
        for (fields, bits) in [
            (PacketBeat::FIELDS, 160),
            (HtBeat::FIELDS, 144),
            (DoublewordsBeat::FIELDS, 192),
        ] {
            let mut next = 0;
            let mut fields = fields.to_vec();
            fields.sort_by_key(|&(_, _, lowest)| lowest);
            for (name, width, lowest) in fields {
                assert_eq!(lowest, next, "{name}");
                next += width;
            }
            assert_eq!(next, bits);
        }
        let text = vector("link0_in", PacketBeat::FIELDS);
        assert!(
            text.starts_with("{link0_in_enables, link0_in_tag"),
            "{text}"
        );
        assert!(text.ends_with("link0_in_offset, link0_in_data}"), "{text}");
    }
}
