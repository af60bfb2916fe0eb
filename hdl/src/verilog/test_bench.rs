//! A test bench that checks itself against the cycle model.
//!
//! Its vectors are what the cycle model saw and did, cycle by cycle, so that it needs nothing but
//! a Verilog simulator. It runs them twice: from power-on, and again after a reset in the middle
//! of everything. Inputs change after the rising edge; outputs are looked at just before the next.
//! Called by [`super::Files`].

use std::fmt::Write;

use crate::device::{Port, validity};
use crate::lockstep::Pair;
use crate::lockstep::random::Random;
use crate::value::Value;

/// A test bench and its vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBench {
    /// The bench, in Verilog: module `MODULE_bench`.
    pub bench: String,
    /// The name of the file in which it looks for the vectors.
    pub vectors_file: String,
    /// A line for each cycle: the outputs that are expected and the inputs, in hexadecimal.
    pub vectors: String,
}

impl TestBench {
    /// The bench of `module`, whose text is `verilog` and whose ports are those of `pair`, for `cycles`
    /// of its traffic.
    pub fn new(module: &str, verilog: &str, pair: &mut Pair, cycles: u64, seed: u64) -> Self {
        let (inputs, outputs) = (pair.rtl.inputs(), pair.model.outputs());
        // The model does not have all: some are for the blocks around, or for observers.
        let mut unchecked = outputs_of(verilog);
        unchecked.retain(|name| outputs.iter().all(|port| port.name != *name));
        let vectors_file = format!("{module}_vectors.hex");
        Self {
            bench: bench(
                module,
                &vectors_file,
                [&inputs, &outputs],
                &unchecked,
                cycles,
            ),
            vectors: vectors(pair, &inputs, &outputs, cycles, seed),
            vectors_file,
        }
    }
}

fn vectors(pair: &mut Pair, inputs: &[Port], outputs: &[Port], cycles: u64, seed: u64) -> String {
    let mut random = Random::seeded(seed);
    let (mut given, mut expected) = (Vec::new(), Vec::new());
    let mut text = String::new();
    for _ in 0..cycles {
        given.clear();
        pair.traffic.inputs(&mut random, &expected, &mut given);
        pair.model.cycle(&given, &mut expected);
        let mut line = Line::default();
        inputs
            .iter()
            .zip(&given)
            .for_each(|(port, &value)| line.push(port.bits, value));
        outputs
            .iter()
            .zip(&expected)
            .for_each(|(port, &value)| line.push(port.bits, value));
        line.write(&mut text);
    }
    text
}

/// The bits of a vector, the lowest first.
#[derive(Default)]
struct Line {
    digits: Vec<u8>,
    bits: usize,
}

impl Line {
    fn push(&mut self, bits: usize, value: Value) {
        for index in 0..bits {
            if self.bits.is_multiple_of(4) {
                self.digits.push(0);
            }
            if let Some(digit) = self.digits.last_mut() {
                *digit |= u8::from(value.bit(index)) << (self.bits % 4);
            }
            self.bits += 1;
        }
    }

    fn write(&self, text: &mut String) {
        let digits = self.digits.iter().rev();
        text.extend(digits.filter_map(|&digit| char::from_digit(digit.into(), 16)));
        text.push('\n');
    }
}

/// The outputs of the first module of `verilog`.
fn outputs_of(verilog: &str) -> Vec<&str> {
    let head = verilog.split(");").next().unwrap_or_default();
    let outputs = head.lines().map(str::trim);
    let outputs = outputs.filter(|line| line.starts_with("output "));
    outputs
        .filter_map(|line| line.trim_end_matches(',').rsplit(' ').next())
        .collect()
}

/// `unchecked` outputs stay open.
fn bench(
    module: &str,
    file: &str,
    [inputs, outputs]: [&[Port]; 2],
    unchecked: &[&str],
    cycles: u64,
) -> String {
    let mut bits = 0;
    let mut place = |port: &Port| {
        let first = bits;
        bits += port.bits;
        match port.bits {
            1 => format!("vector[{first}]"),
            _ => format!("vector[{}:{first}]", bits - 1),
        }
    };
    let (mut wires, mut connections, mut checks) = (String::new(), String::new(), String::new());
    // Writing to a string cannot fail.
    for port in inputs {
        let (name, place) = (&port.name, place(port));
        let _ = writeln!(wires, "    wire {}drive_{name} = {place};", range(port));
        let _ = write!(connections, ",\n        .{name}(drive_{name})");
    }
    let validity = validity(outputs);
    for (port, valid) in outputs.iter().zip(validity) {
        let (name, place) = (&port.name, place(port));
        let _ = writeln!(wires, "    wire {}got_{name};", range(port));
        let _ = writeln!(wires, "    wire {}expected_{name} = {place};", range(port));
        let _ = write!(connections, ",\n        .{name}(got_{name})");
        let valid = valid.and_then(|valid| outputs.get(valid));
        let valid = valid.map_or(String::new(), |port| match port.bits {
            1 => format!("expected_{} && ", port.name),
            bits => format!("expected_{} != {bits}'h0 && ", port.name),
        });
        let _ = write!(
            checks,
            "            if ({valid}got_{name} !== expected_{name}) begin
                $display(\"FAIL cycle %0d port {name}: expected %h, got %h\", cycle, expected_{name}, got_{name});
                failures = failures + 1;
            end\n"
        );
    }
    for name in unchecked {
        let _ = write!(connections, ",\n        .{name}()");
    }
    let (width, last) = (bits.max(1) - 1, cycles.max(1) - 1);
    format!(
        "module {module}_bench;
    parameter VECTORS = \"{file}\";

    reg [{width}:0] vectors [0:{last}];
    reg [{width}:0] vector;
    reg clock;
    reg reset;
    integer run;
    integer cycle;
    integer failures;

{wires}
    {module} block(
        .clock(clock),
        .reset(reset){connections}
    );

    task edge_of_clock;
        begin
            #1 clock = 1;
            #5 clock = 0;
        end
    endtask

    // What differs, before the rising edge.
    task check;
        begin
{checks}        end
    endtask

    initial begin
        $readmemh(VECTORS, vectors);
        clock = 0;
        reset = 0;
        vector = 0;
        failures = 0;
        for (run = 0; run < 2; run = run + 1) begin
            if (run == 1) begin
                // In the middle of everything.
                reset = 1;
                vector = 0;
                #4 edge_of_clock;
                reset = 0;
            end
            for (cycle = 0; cycle < {cycles}; cycle = cycle + 1) begin
                vector = vectors[cycle];
                #4 check;
                if (failures != 0) begin
                    if (run == 0) $display(\"FAIL {module}: cycle %0d after power-on\", cycle);
                    else $display(\"FAIL {module}: cycle %0d after a reset\", cycle);
                    $fatal(1, \"FAIL\");
                end
                edge_of_clock;
            end
        end
        $display(\"PASS {module}: {cycles} cycles after power-on and after a reset\");
        $finish;
    end
endmodule
"
    )
}

fn range(port: &Port) -> String {
    match port.bits {
        1 => String::new(),
        bits => format!("[{}:0] ", bits - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_the_bits_of_all_ports_the_first_lowest() {
        let mut line = Line::default();
        line.push(1, Value::from(1));
        line.push(6, Value::from(0x2a));
        let mut wide = Value::default();
        wide.set(64, 8, 0xc3);
        line.push(72, wide);
        let mut text = String::new();
        line.write(&mut text);
        // 0xc3 at 64 + 7, 0x2a at 1, 1 at 0.
        let expected = (0xc3u128 << 71) | (0x2a << 1) | 1;
        assert_eq!(text, format!("{expected:020x}\n"));
    }
}
