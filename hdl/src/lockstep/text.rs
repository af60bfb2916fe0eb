//! Traffic as text: what is on the inputs, cycle by cycle, with packets by their fields.
//!
//! Called by `sme rtl lockstep`.

use std::fmt::Write;

use rust_hdl::synth::Synth;
use sme_sim::families::sme::engine::Kind;

use super::{Cycle, Mismatch, Outcome};
use crate::beat::{DoublewordsBeat, HtBeat, fields_of};
use crate::device::{Port, validity};
use crate::value::Value;

/// Columns are as wide as what stands in them while all together are no wider than this.
const WIDEST: usize = 110;

/// The cycles in the history of a run, a line each: inputs that are not zero and mean something.
/// Those that are the same in all cycles stand above them, and cycles that are alike in one line.
/// Of more lines than `most`, the first and the last half are left.
pub fn traffic(outcome: &Outcome, inputs: &[Port], most: usize) -> String {
    let shown = Shown::new(outcome, inputs);
    let mut lines: Vec<Line> = Vec::new();
    let first = outcome.cycles - outcome.history.len() as u64;
    for (cycle, ports) in (first..).zip(&outcome.history) {
        let cells = shown.cells(ports);
        match lines.last_mut() {
            Some(line) if line.cells == cells => line.last = cycle,
            _ => lines.push(Line {
                first: cycle,
                last: cycle,
                cells,
            }),
        }
    }
    let mut text = String::new();
    if !shown.always.is_empty() {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "  in every cycle: {}", shown.always.join("  "));
    }
    let left_out = if lines.len() > most {
        most / 2..lines.len() - most / 2
    } else {
        0..0
    };
    let written = |index: &usize| !left_out.contains(index);
    let written: Vec<usize> = (0..lines.len()).filter(written).collect();
    let widths = widths(written.iter().map(|&index| &lines[index]));
    let names = written.iter().map(|&index| lines[index].name().len());
    let widest = names.max().unwrap_or(0);
    for index in written {
        let line = &lines[index];
        if index == left_out.end && !left_out.is_empty() {
            let (first, last) = (&lines[left_out.start], &lines[left_out.end - 1]);
            let count = last.last - first.first + 1;
            let _ = writeln!(
                text,
                "  cycles {} to {}: {count} are not shown",
                first.first, last.last
            );
        }
        let inputs = line.inputs(&widths);
        let _ = writeln!(text, "  cycle {:>widest$}: {inputs}", line.name());
    }
    text
}

/// Describes the difference in a sentence.
pub fn difference(mismatch: &Mismatch) -> String {
    let Mismatch {
        cycle,
        port,
        rtl,
        model,
    } = mismatch;
    let [rtl, model] = [rtl, model].map(|value| number(port, *value));
    let name = &port.name;
    format!("cycle {cycle}: {name} is {rtl} in the RTL, {model} in the model")
}

/// Cycles that are alike.
struct Line {
    first: u64,
    last: u64,
    /// Of each input that is shown; empty where there is nothing.
    cells: Vec<String>,
}

impl Line {
    /// Names the cycles of the line.
    fn name(&self) -> String {
        match self.last - self.first {
            0 => self.first.to_string(),
            _ => format!("{}-{}", self.first, self.last),
        }
    }

    /// In columns of these widths; of those that are empty in all lines nothing is seen.
    fn inputs(&self, widths: &[usize]) -> String {
        let columns = widths.iter().sum::<usize>() + 2 * widths.len() <= WIDEST;
        let mut text = String::new();
        for (cell, &width) in self.cells.iter().zip(widths) {
            if columns && width > 0 {
                let _ = write!(text, "{cell:width$}  ");
            } else if !cell.is_empty() {
                let _ = write!(text, "{cell}  ");
            }
        }
        let text = text.trim_end();
        let nothing = self.cells.iter().all(String::is_empty);
        if nothing {
            "nothing".into()
        } else {
            text.into()
        }
    }
}

fn widths<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<usize> {
    let mut widths = Vec::new();
    for line in lines {
        widths.resize(line.cells.len(), 0);
        for (width, cell) in widths.iter_mut().zip(&line.cells) {
            *width = cell.len().max(*width);
        }
    }
    widths
}

/// The inputs that are shown, and their format.
struct Shown<'p> {
    inputs: &'p [Port],
    validity: Vec<Option<usize>>,
    /// Those that never change.
    constant: Vec<bool>,
    always: Vec<String>,
}

impl<'p> Shown<'p> {
    fn new(outcome: &Outcome, inputs: &'p [Port]) -> Self {
        let mut shown = Self {
            inputs,
            validity: validity(inputs),
            constant: vec![false; inputs.len()],
            always: Vec::new(),
        };
        // In a single cycle nothing changes.
        let (Some(first), true) = (outcome.history.front(), outcome.history.len() > 1) else {
            return shown;
        };
        let of_first = shown.cells(first);
        for (index, cell) in of_first.into_iter().enumerate() {
            let same = |cycle: &Cycle| shown.cell(cycle, index) == cell;
            if !cell.is_empty() && outcome.history.iter().all(same) {
                shown.constant[index] = true;
                shown.always.push(cell);
            }
        }
        shown
    }

    fn cells(&self, cycle: &Cycle) -> Vec<String> {
        let indices = (0..self.inputs.len()).filter(|&index| !self.constant[index]);
        indices.map(|index| self.cell(cycle, index)).collect()
    }

    fn cell(&self, cycle: &Cycle, index: usize) -> String {
        let (port, value) = (&self.inputs[index], cycle.inputs[index]);
        let valid = self.validity[index].map(|valid| cycle.inputs[valid]);
        // A packet of zeros is a packet, if something says that there is one.
        let is_said = valid.is_some_and(|valid| valid != Value::default());
        let means_anything = valid.is_none() || is_said;
        let is_packet = fields_of(port.bits).is_some();
        if !means_anything || value == Value::default() && !(is_said && is_packet) {
            String::new()
        } else if port.bits == 1 {
            port.name.clone()
        } else {
            format!("{}={}", port.name, number(port, value))
        }
    }
}

/// Describes the value on a port: a packet by its fields, those of zero left out, and anything else
/// as a number.
fn number(port: &Port, value: Value) -> String {
    if port.bits == DoublewordsBeat::BITS {
        return doublewords(DoublewordsBeat::from_value(value));
    }
    match fields_of(port.bits) {
        Some(fields) => packet(fields, value),
        None => value.to_string(),
    }
}

/// Describes what doublewords say, and the doublewords themselves if others would say the same.
fn doublewords(beat: DoublewordsBeat) -> String {
    let said = beat.fields();
    let text = packet(HtBeat::FIELDS, said.value());
    if DoublewordsBeat::from(said.packet(0)) == beat {
        return text;
    }
    let mut of = String::new();
    for &(name, width, offset) in DoublewordsBeat::FIELDS {
        let bits = beat.value().get(offset, width);
        if bits != 0 {
            let _ = write!(of, " {name}={bits:#x}");
        }
    }
    format!("{text} of{of}")
}

/// A packet by its fields, those of zero left out.
fn packet(fields: &[(&str, usize, usize)], value: Value) -> String {
    let write = Kind::PostedWrite as u64;
    let is_write = (fields.iter())
        .any(|&(name, width, offset)| name == "kind" && value.get(offset, width) == write);
    let flag = if is_write { " coherent" } else { " single" };
    let mut text = String::from("(");
    let mut rest = String::new();
    for &(name, width, offset) in fields.iter().rev() {
        match (name, value.get(offset, width)) {
            ("kind", kind) => text.push_str(match Kind::from_bits(kind) {
                Kind::ReadRequest => "read",
                Kind::PostedWrite => "write",
                Kind::ReadResponse => "response",
                Kind::ErrorResponse => "error",
            }),
            (_, 0) => {}
            ("flag", _) => rest.push_str(flag),
            ("tag" | "source" | "target", bits) => {
                let _ = write!(rest, " {name}={bits}");
            }
            (_, bits) => {
                let _ = write!(rest, " {name}={bits:#x}");
            }
        }
    }
    text + &rest + ")"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beat::PacketBeat;
    use crate::bench::{BENCHES, find};

    fn broken_fifo() -> (Outcome, Vec<Port>) {
        let mut pair = (find("fifo").unwrap().build)(1, Some("one place more"));
        (pair.run(10_000, 1), pair.rtl.inputs())
    }

    #[test]
    fn inputs_that_are_zero_are_left_out() {
        let (outcome, inputs) = broken_fifo();
        let text = traffic(&outcome, &inputs, usize::MAX);
        assert!(text.contains(": nothing"), "{text}");
        assert!(text.contains(": write  write_data=("), "{text}");
        assert!(!text.contains("=0x0"), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    }

    #[test]
    fn of_long_traffic_the_middle_is_left_out_and_said_so() {
        let (outcome, inputs) = broken_fifo();
        let all = traffic(&outcome, &inputs, usize::MAX);
        let text = traffic(&outcome, &inputs, 4);
        assert_eq!(text.lines().count(), 5);
        assert!(all.lines().count() > 5);
        assert!(text.contains(" are not shown\n"), "{text}");
        let last = |text: &str| text.lines().last().map(str::to_owned);
        let cells = |line: Option<String>| line.map(|line| line.split_whitespace().count());
        assert_eq!(cells(last(&text)), cells(last(&all)));
    }

    #[test]
    fn cycles_that_are_alike_stand_in_one_line() {
        let port = |name: &str, bits| Port {
            name: name.to_owned(),
            bits,
        };
        let inputs = [port("node", 20), port("in_valid", 1), port("in_data", 160)];
        let mut pair = (find("fifo").unwrap().build)(1, None);
        let mut outcome = pair.run(0, 1);
        let mut packet = Value::default();
        for (name, bits) in [("kind", 1), ("tag", 3), ("offset", 64), ("flag", 1)] {
            let field = PacketBeat::FIELDS.iter().find(|field| field.0 == name);
            let &(_, width, offset) = field.unwrap();
            packet.set(offset, width, bits);
        }
        for valid in [false, false, true] {
            outcome.history.push_back(Cycle {
                inputs: vec![Value::from(7), valid.into(), packet],
                ..Cycle::default()
            });
            outcome.cycles += 1;
        }
        assert_eq!(
            traffic(&outcome, &inputs, 60),
            "  in every cycle: node=0x7\n\
             \x20 cycle 0-1: nothing\n\
             \x20 cycle   2: in_valid  in_data=(write tag=3 coherent offset=0x40)\n"
        );
    }

    /// By its width it is known that a port has packets, and which.
    #[test]
    fn wide_ports_are_packets() {
        for bench in BENCHES {
            let pair = (bench.build)(1, None);
            for port in pair.rtl.inputs().into_iter().chain(pair.rtl.outputs()) {
                let is_packet = fields_of(port.bits).is_some();
                assert_eq!(port.bits > 64, is_packet, "{}: {}", bench.name, port.name);
            }
        }
    }
}
