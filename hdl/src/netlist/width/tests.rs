use super::*;

const DECLARATIONS: &str = "\
    input wire [3:0] a;
    output reg [7:0] b;
    wire c;
    reg [159:0] d;
    wire [40:0] product = a * 21'h2;
    localparam mask = 8'h3c;
    localparam none = 3'b0;";

fn rewritten(line: &str) -> String {
    let mut body: Vec<String> = DECLARATIONS.lines().map(String::from).collect();
    body.push(format!("    {line}"));
    exact(&mut body);
    body.pop().unwrap().trim().to_owned()
}

#[test]
fn operands_get_the_width_of_the_result() {
    for (line, expected) in [
        ("b = b + 32'h1;", "b = b + 8'h1;"),
        ("a = a - (a ^ 32'h1);", "a = a - (a ^ 4'h1);"),
        ("b = a;", "b = {4'h0, a};"),
        ("a = b;", "a = b[3:0];"),
        ("a = ((b) & 4'hf);", "a = b[3:0];"),
        ("a = b & 32'hc;", "a = b[3:0] & 4'hc;"),
        ("a = b & 32'h6;", "a = {1'h0, b[2:0] & 3'h6};"),
        ("b = b & 32'h0;", "b = b & 8'h0;"),
        ("b = mask;", "b = mask;"),
        ("a = mask;", "a = 4'hc;"),
        ("a = d[(64'h88)+:(4)];", "a = d[139:136];"),
        ("d[(64'h8f)+:(1)] = c;", "d[143] = c;"),
        ("c = d[(32'h2 * 32'h4) + 32'h1];", "c = d[9];"),
        ("b = product >> 38;", "b = {5'h0, product[40:38]};"),
        ("c = |(b & 32'hf0);", "c = |(b & 8'hf0);"),
    ] {
        assert_eq!(rewritten(line), expected, "{line}");
    }
}

#[test]
fn bits_that_are_put_together_are_seen_beside_each_other() {
    for (line, expected) in [
        ("b = (b & ~(1 << (32'h7)) | ((c) << (32'h7)));", "b[7] = c;"),
        (
            "a = ((none & ~(1 << (32'h0)) | ((c) << (32'h0))) & ~(1 << (32'h2)) | ((~c) << (32'h2)));",
            // Not one bit: in its context `~c` has ones above.
            "a = {~{1'h0, c}, 1'h0, c & ~1'h0};",
        ),
        (
            "a = ((none & ~(1 << (32'h0)) | ((c) << (32'h0))) & ~(1 << (32'h2)) | ((b[1]) << (32'h2)));",
            "a = {1'h0, b[1], 1'h0, c};",
        ),
        ("a = c | (c << 32'h1);", "a = {2'h0, c, c};"),
        ("b = a | (b[3] << 32'h3);", "b = {4'h0, a | {b[3], 3'h0}};"),
    ] {
        assert_eq!(rewritten(line), expected, "{line}");
    }
}

#[test]
fn comparisons_keep_the_width_that_they_have() {
    for (line, expected) in [
        ("c = a == 32'h3;", "c = a == 4'h3;"),
        ("c = a == b;", "c = {4'h0, a} == b;"),
        // The sum does not overflow, for the number has 32 bits.
        (
            "c = (a + 32'h1) == a;",
            "c = ({1'h0, a} + 5'h1) == {1'h0, a};",
        ),
        ("if (~a == 32'h3) begin", "if (~{28'h0, a} == 32'h3) begin"),
        (
            "else if (b & (a != 32'h0)) begin",
            "else if (b[0] & (a != 4'h0)) begin",
        ),
    ] {
        assert_eq!(rewritten(line), expected, "{line}");
    }
}

#[test]
fn what_is_not_read_stays() {
    for line in [
        "b = unknown + 32'h1;",
        "b = a ? c : mask;",
        "b = {a, a};",
        "q <= a;",
        "always @(*) b = a;",
        "b = a << a;",
    ] {
        assert_eq!(rewritten(line), line);
    }
}
