//! The last cycles of a run as waveforms, for GTKWave and its like.
//!
//! Two scopes, `rtl` and `model`, hold the ports of both sides; `clock` and `differs` stand above
//! them. A cycle takes 10 ns of the waveform's time and begins with the rising edge after which its
//! inputs are put on. Called by `sme rtl lockstep`.

use std::io::{self, Write};

use vcd::{IdCode, TimescaleUnit, Value as Level, Writer};

use super::Outcome;
use crate::device::Port;
use crate::value::Value;

/// Time of a cycle in the waveform.
pub const CYCLE_NS: u64 = 10;

/// Writes the history of `outcome`; the RTL has the outputs `rtl`, the model the outputs `model`.
pub fn write(
    outcome: &Outcome,
    inputs: &[Port],
    rtl: &[Port],
    model: &[Port],
    to: impl Write,
) -> io::Result<()> {
    let mut writer = Writer::new(to);
    writer.timescale(1, TimescaleUnit::NS)?;
    writer.add_module("lockstep")?;
    let clock = writer.add_wire(1, "clock")?;
    let differs = writer.add_wire(1, "differs")?;
    let mut rtl = Side::new(&mut writer, "rtl", inputs, rtl)?;
    let mut model = Side::new(&mut writer, "model", inputs, model)?;
    writer.upscope()?;
    writer.enddefinitions()?;
    let first = outcome.cycles - outcome.history.len() as u64;
    for (cycle, ports) in (first..).zip(&outcome.history) {
        writer.timestamp(cycle * CYCLE_NS)?;
        writer.change_scalar(clock, Level::V1)?;
        let found = outcome.mismatch.as_ref().is_some_and(|m| m.cycle == cycle);
        writer.change_scalar(differs, Level::from(found))?;
        rtl.change(&mut writer, [&ports.inputs, &ports.rtl])?;
        model.change(&mut writer, [&ports.inputs, &ports.model])?;
        writer.timestamp(cycle * CYCLE_NS + CYCLE_NS / 2)?;
        writer.change_scalar(clock, Level::V0)?;
    }
    writer.timestamp(outcome.cycles * CYCLE_NS)?;
    writer.change_scalar(clock, Level::V1)?;
    writer.flush()
}

/// The ports of a side, and what was last on them.
struct Side {
    inputs: Vec<Wire>,
    outputs: Vec<Wire>,
}

struct Wire {
    id: IdCode,
    bits: usize,
    last: Option<Value>,
}

impl Side {
    fn new<W: Write>(
        writer: &mut Writer<W>,
        scope: &str,
        inputs: &[Port],
        outputs: &[Port],
    ) -> io::Result<Self> {
        writer.add_module(scope)?;
        let mut wires = |ports: &[Port]| -> io::Result<Vec<Wire>> {
            let wire = |port: &Port| {
                Ok(Wire {
                    id: writer.add_wire(port.bits as u32, &port.name)?,
                    bits: port.bits,
                    last: None,
                })
            };
            ports.iter().map(wire).collect()
        };
        let (inputs, outputs) = (wires(inputs)?, wires(outputs)?);
        writer.upscope()?;
        Ok(Self { inputs, outputs })
    }

    fn change<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        [inputs, outputs]: [&Vec<Value>; 2],
    ) -> io::Result<()> {
        let inputs = self.inputs.iter_mut().zip(inputs);
        for (wire, &value) in inputs.chain(self.outputs.iter_mut().zip(outputs)) {
            if wire.last.replace(value) == Some(value) {
                continue;
            }
            match wire.bits {
                1 => writer.change_scalar(wire.id, Level::from(value.bit(0)))?,
                bits => {
                    let levels = (0..bits).rev().map(|index| Level::from(value.bit(index)));
                    writer.change_vector(wire.id, levels)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::find;

    #[test]
    fn a_waveform_shows_both_sides_and_where_they_differ() {
        let mut pair = (find("fifo").unwrap().build)(1, Some("one place more"));
        let outcome = pair.run(10_000, 1);
        let mismatch = outcome.mismatch.clone().unwrap();
        let (inputs, outputs) = (pair.rtl.inputs(), pair.rtl.outputs());
        let mut text = Vec::new();
        write(&outcome, &inputs, &outputs, &outputs, &mut text).unwrap();
        let mut parser = vcd::Parser::new(text.as_slice());
        let header = parser.parse_header().unwrap();
        let id = |path: &[&str]| header.find_var(path).unwrap().code;
        let port = mismatch.port.name.as_str();
        let rtl = id(&["lockstep", "rtl", port]);
        let model = id(&["lockstep", "model", port]);
        let differs = id(&["lockstep", "differs"]);
        assert!(
            header
                .find_var(&["lockstep", "rtl", "write_data"])
                .is_some()
        );
        let (mut now, mut levels, mut at) = (0, [None; 2], None);
        for command in parser {
            match command.unwrap() {
                vcd::Command::Timestamp(time) => now = time,
                vcd::Command::ChangeScalar(of, level) if of == rtl => levels[0] = Some(level),
                vcd::Command::ChangeScalar(of, level) if of == model => levels[1] = Some(level),
                vcd::Command::ChangeScalar(of, Level::V1) if of == differs => at = Some(now),
                _ => {}
            }
        }
        assert_eq!(at, Some(mismatch.cycle * CYCLE_NS));
        assert_eq!(levels[0], Some(Level::from(mismatch.rtl.bit(0))));
        assert_eq!(levels[1], Some(Level::from(mismatch.model.bit(0))));
    }
}
