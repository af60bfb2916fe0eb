//! A block between registers, with three pins in all.
//!
//! ```text
//! in ──> shift register ──> block ──> registers ──> parity, a register after every ⊕ ──> out
//! ```
//!
//! A block has more ports than a package has pins, and a path that ends at a pin has no clock.
//! Here every input comes from a register and every output goes to one; a tree of parities, which
//! makes one bit of them, keeps the tools from leaving anything out. Its paths are shorter than
//! any block's. Called by [`super::clock`].

use std::fmt::Write;

use crate::device::Port;

/// The harness's module.
pub(super) const TOP: &str = "harness";

/// The module [`TOP`] with `block` in it.
pub(super) fn harness(block: &str, inputs: &[Port], outputs: &[Port]) -> String {
    let mut connections = String::from("        .clock(clock),\n        .reset(drive[0])");
    // Writing to a string cannot fail.
    let mut connect = |ports: &[Port], from: &str, mut first: usize| {
        for port in ports {
            let (name, last) = (&port.name, first + port.bits - 1);
            let _ = write!(connections, ",\n        .{name}({from}[{last}:{first}])");
            first += port.bits;
        }
        first
    };
    // At least two, for the shift.
    let drive = connect(inputs, "drive", 1).max(2);
    let got = connect(outputs, "got", 0).max(1);
    let (mut registers, mut assignments) = (String::new(), String::new());
    let (mut before, mut bits) = ("got".to_owned(), got);
    for level in 0.. {
        let last = bits - 1;
        let _ = writeln!(registers, "    reg [{last}:0] level{level};");
        if level == 0 {
            let _ = writeln!(assignments, "        level0 <= got;");
        } else {
            // Four of the level before, or what is left of it.
            let mut parity = |bit: usize, low: usize, high: usize| {
                let _ = writeln!(
                    assignments,
                    "        level{level}[{bit}] <= ^{before}[{high}:{low}];"
                );
            };
            let below = inner(level, got);
            (0..bits).for_each(|bit| parity(bit, bit * 4, (bit * 4 + 3).min(below - 1)));
        }
        before = format!("level{level}");
        if bits == 1 {
            break;
        }
        bits = bits.div_ceil(4);
    }
    let (drive_last, shifted) = (drive - 1, drive - 2);
    let got_last = got - 1;
    format!(
        "module {TOP}(input wire clock, input wire in, output wire out);
    reg [{drive_last}:0] drive;
    wire [{got_last}:0] got;
{registers}
    always @(posedge clock) begin
        drive <= {{drive[{shifted}:0], in}};
{assignments}    end
    assign out = {before}[0];

    {block} block(
{connections}
    );
endmodule
"
    )
}

/// Bits of the level before `level`, where level 0 has `bits`.
fn inner(level: usize, bits: usize) -> usize {
    (1..level).fold(bits, |bits, _| bits.div_ceil(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, bits: usize) -> Port {
        let name = name.to_owned();
        Port { name, bits }
    }

    #[test]
    fn every_bit_of_every_port_is_connected() {
        let text = harness(
            "b",
            &[port("a", 3), port("c", 1)],
            &[port("x", 5), port("y", 1)],
        );
        for part in [
            "reg [4:0] drive;",
            ".a(drive[3:1])",
            ".c(drive[4:4])",
            ".x(got[4:0])",
            ".y(got[5:5])",
            "level1[0] <= ^level0[3:0];",
            "level1[1] <= ^level0[5:4];",
            "level2[0] <= ^level1[1:0];",
            "assign out = level2[0];",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
