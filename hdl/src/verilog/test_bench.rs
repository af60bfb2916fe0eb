//! A test bench that checks itself against the cycle model.
//!
//! Its vectors are what the cycle model saw and did, cycle by cycle, so that it needs nothing but
//! a Verilog simulator. It runs them twice: from power-on, and again after a reset in the middle
//! of everything. Inputs change after the rising edge; outputs are looked at just before the next.
//! Called by [`super::Files`].

use std::collections::HashSet;
use std::fmt::Write;

use crate::device::{Port, validity};
use crate::lockstep::Pair;
use crate::lockstep::random::Random;
use crate::value::Value;

/// A test bench of a module, and its vectors.
#[derive(Clone, Debug)]
pub struct TestBench {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// Outputs that the cycle model does not have: they are for the blocks around, or for
    /// observers.
    unchecked: Vec<String>,
    cycles: u64,
    /// The name of the file in which the bench looks for the vectors.
    pub vectors_file: String,
    /// A line for each cycle: the outputs that are expected and the inputs, in hexadecimal.
    pub vectors: String,
}

impl TestBench {
    /// For `module`, whose text is `verilog` and whose ports are those of `pair`, with `cycles` of
    /// its traffic.
    pub fn new(module: &str, verilog: &str, pair: &mut Pair, cycles: u64, seed: u64) -> Self {
        let (inputs, outputs) = (pair.rtl.inputs(), pair.model.outputs());
        let is_checked = |name: &str| outputs.iter().any(|port| port.name == name);
        let mut unchecked = outputs_of(verilog);
        unchecked.retain(|name| !is_checked(name));
        Self {
            vectors_file: format!("{module}_vectors.hex"),
            vectors: vectors(pair, &inputs, &outputs, cycles, seed),
            unchecked: unchecked.into_iter().map(String::from).collect(),
            inputs,
            outputs,
            cycles,
        }
    }

    /// The bench of the module, or of one around it: module `MODULE_bench`, in Verilog. The ports
    /// of `module` are connected to its wires `drive_NAME` and `got_NAME`, for each input and
    /// output; outputs that are not connected are not checked.
    pub fn bench(&self, module: &str, connections: &[(String, String)]) -> String {
        let connections: String = connections
            .iter()
            .map(|(port, wire)| format!(",\n        .{port}({wire})"))
            .collect();
        let ports = [&self.inputs[..], &self.outputs];
        bench(module, &connections, &self.vectors_file, ports, self.cycles)
    }

    /// The ports of the module itself, and their wires; what is not checked stays open.
    pub fn connections(&self) -> Vec<(String, String)> {
        let all = |ports: &[Port], prefix: &str| -> Vec<_> {
            let names = ports.iter().map(|port| &port.name);
            names
                .map(|name| (name.clone(), format!("{prefix}_{name}")))
                .collect()
        };
        let open = self.unchecked.iter();
        let mut connections = all(&self.inputs, DRIVE);
        connections.extend(all(&self.outputs, GOT));
        connections.extend(open.map(|name| (name.clone(), String::new())));
        connections
    }
}

/// The prefixes of a bench's wires: to inputs, from outputs.
pub(super) const DRIVE: &str = "drive";
pub(super) const GOT: &str = "got";

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

fn bench(
    module: &str,
    connections: &str,
    file: &str,
    [inputs, outputs]: [&[Port]; 2],
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
    let (mut wires, mut checks) = (String::new(), String::new());
    // Names within the connections, which are parts of wires, or several of them.
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let wired: HashSet<&str> = connections.split(|c| !is_of_a_name(c)).collect();
    // Writing to a string cannot fail.
    for port in inputs {
        let (name, place) = (&port.name, place(port));
        let _ = writeln!(wires, "    wire {}{DRIVE}_{name} = {place};", range(port));
    }
    let validity = validity(outputs);
    for (port, valid) in outputs.iter().zip(validity) {
        let (name, place) = (&port.name, place(port));
        if !wired.contains(format!("{GOT}_{name}").as_str()) {
            continue;
        }
        let _ = writeln!(wires, "    wire {}{GOT}_{name};", range(port));
        let _ = writeln!(wires, "    wire {}expected_{name} = {place};", range(port));
        let valid = valid.and_then(|valid| outputs.get(valid));
        let valid = valid.map_or(String::new(), |port| match port.bits {
            1 => format!("expected_{} && ", port.name),
            bits => format!("expected_{} != {bits}'h0 && ", port.name),
        });
        let _ = write!(
            checks,
            "            if ({valid}{GOT}_{name} !== expected_{name}) begin
                $display(\"FAIL cycle %0d port {name}: expected %h, got %h\", cycle, expected_{name}, {GOT}_{name});
                failures = failures + 1;
            end\n"
        );
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

    // The comparison, before the rising edge.
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
