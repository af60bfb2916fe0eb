//! Tidies the Verilog of rust-hdl into what a person would have written.
//!
//! rust-hdl gives every instance a module of its own, called after its path, and copies clock and
//! reset into a variable for each instance, within the block's logic. Here equal modules become
//! one, named after its function; copies of inputs give way to the inputs themselves, so that tools
//! see a plain clock; operands get the width of what they make (see [`super::width`]); ports are
//! declared where they are listed, one per line; and needless blanks go. Called by [`super::of`].

use std::collections::{BTreeMap, BTreeSet};

use super::{is_word, width};

/// The generated `text` with its top module called `name`, the others `name_…`.
pub(super) fn tidy(text: &str, name: &str) -> String {
    let mut modules = modules(text);
    for module in modules.values_mut() {
        module.connect_inputs();
        module.drop_empty_logic();
        width::exact(&mut module.body);
    }
    let mut merged = Merged::default();
    merged.add(&modules, TOP, name);
    let order = merged.in_order(name);
    let texts: Vec<String> = order.into_iter().map(|name| merged.text(name)).collect();
    texts.join("\n")
}

/// The name that rust-hdl gives the outermost module.
const TOP: &str = "top";

/// A module as it was generated.
#[derive(Debug, Default)]
struct Module {
    ports: String,
    body: Vec<String>,
}

fn modules(text: &str) -> BTreeMap<&str, Module> {
    let mut modules = BTreeMap::new();
    let mut current: Option<(&str, Module)> = None;
    for line in text.lines() {
        if let Some((name, ports)) = line.strip_prefix("module ").and_then(|l| l.split_once('(')) {
            let ports = ports.trim_end_matches(");").to_owned();
            let body = Vec::new();
            current = Some((name, Module { ports, body }));
        } else if line.starts_with("endmodule") {
            modules.extend(current.take());
        } else if let Some((_, module)) = &mut current {
            module.body.push(clean(line));
        }
    }
    modules
}

/// Without blanks at the end or two of them within.
fn clean(line: &str) -> String {
    let code = line.trim();
    let indent = line.len() - line.trim_start().len();
    if code.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = code.split_whitespace().collect();
    let code = words.join(" ");
    let code = match code.as_str() {
        "// Module arguments" | "// Update code" | "// Update code (custom)" => {
            return String::new();
        }
        "// Constant declarations" => "// Constants",
        "// Stub signals" => "// Ports of the parts",
        "// Sub module instances" => "// Parts",
        code => code,
    };
    " ".repeat(indent) + code
}

impl Module {
    /// Replaces names that only stand for an input by the input.
    fn connect_inputs(&mut self) {
        let mut inputs = BTreeMap::new();
        let mut variables = BTreeMap::new();
        let mut assigned: BTreeMap<&str, usize> = BTreeMap::new();
        let mut copies = Vec::new();
        for line in &self.body {
            let code = line.trim();
            if let Some((width, name)) = declared(code, "input wire") {
                inputs.insert(name, width);
            } else if let Some((width, name)) = declared(code, "reg") {
                variables.insert(name, width);
            } else if let Some(name) = target(code) {
                *assigned.entry(name).or_default() += 1;
                let copied = code
                    .split_once(" = ")
                    .and_then(|(_, of)| of.strip_suffix(';'));
                let unconditional =
                    line.starts_with(LOGIC) && !line[LOGIC.len()..].starts_with(' ');
                if let (true, Some(input)) = (unconditional, copied) {
                    copies.push((name, input));
                }
            }
        }
        let copies: BTreeMap<String, String> = copies
            .into_iter()
            .filter(|(name, input)| {
                let width = variables.get(name);
                assigned.get(name) == Some(&1) && width.is_some() && width == inputs.get(input)
            })
            .map(|(name, input)| (name.to_owned(), input.to_owned()))
            .collect();
        self.body.retain(|line| {
            let code = line.trim();
            let declares = declared(code, "reg").is_some_and(|(_, name)| copies.contains_key(name));
            !declares && !target(code).is_some_and(|name| copies.contains_key(name))
        });
        for line in &mut self.body {
            if copies.keys().any(|name| line.contains(name)) {
                *line = renamed(line, |word| copies.get(word).map(String::as_str));
            }
        }
    }

    /// Logic that does nothing would never be run, which some tools warn of.
    fn drop_empty_logic(&mut self) {
        let empty =
            |pair: &[String]| pair[0].trim() == "always @(*) begin" && pair[1].trim() == "end";
        while let Some(at) = self.body.windows(2).position(empty) {
            self.body.drain(at..at + 2);
        }
    }
}

/// The indentation of what stands directly in a module's logic.
const LOGIC: &str = "        ";

/// Width and name that `kind [width] name;` declares.
fn declared<'l>(code: &'l str, kind: &str) -> Option<(&'l str, &'l str)> {
    let rest = code
        .strip_prefix(kind)?
        .strip_prefix(' ')?
        .strip_suffix(';')?;
    Some(rest.rsplit_once(' ').unwrap_or(("", rest)))
}

/// The variable that a statement assigns, wholly or in part.
fn target(code: &str) -> Option<&str> {
    let code = code.strip_prefix("always @(*) ").unwrap_or(code);
    let end = code.find(|c| !is_word(c)).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let assigns = [" = ", " <= ", "["]
        .iter()
        .any(|sign| rest.starts_with(sign));
    (assigns && !name.is_empty()).then_some(name)
}

/// `line` with each word replaced for which there is something else. A port's name at an instance
/// (`.clock(…)`) is the other module's word.
fn renamed<'a>(line: &str, other: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(begin) = rest.find(is_word) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        text.push_str(before);
        let of_instance = before.ends_with('.');
        text.push_str(if of_instance {
            word
        } else {
            other(word).unwrap_or(word)
        });
        rest = after;
    }
    text + rest
}

/// The modules, each once.
#[derive(Default)]
struct Merged {
    /// By what they are.
    names: BTreeMap<(String, Vec<String>), String>,
    /// By name.
    modules: BTreeMap<String, (String, Vec<String>)>,
    /// The names of the modules that each needs, in the order in which it does.
    needs: BTreeMap<String, Vec<String>>,
}

impl Merged {
    /// Adds the module that was generated as `kind`, and those below it; says what it is called
    /// now. `top` is what the outermost is called.
    fn add(&mut self, modules: &BTreeMap<&str, Module>, kind: &str, top: &str) -> String {
        let Some(module) = modules.get(kind) else {
            return kind.to_owned();
        };
        let mut needs = Vec::new();
        let mut body = Vec::with_capacity(module.body.len());
        for line in &module.body {
            let instance = line
                .strip_suffix('(')
                .and_then(|l| l.trim().split_once(' '));
            match instance.filter(|(kind, _)| modules.contains_key(kind)) {
                Some((kind, instance)) => {
                    let kind = self.add(modules, kind, top);
                    body.push(format!("    {kind} {instance}("));
                    needs.push(kind);
                }
                None => body.push(line.clone()),
            }
        }
        let key = (module.ports.clone(), body);
        if kind != TOP
            && let Some(name) = self.names.get(&key)
        {
            return name.clone();
        }
        let base = match kind.strip_prefix(TOP) {
            Some("") | None => top.to_owned(),
            Some(path) => format!(
                "{top}_{}",
                module.primitive().unwrap_or_else(|| plain(path))
            ),
        };
        let mut name = base.clone();
        let mut count = 1;
        while self.modules.contains_key(&name) || (kind != TOP && name == top) {
            count += 1;
            name = format!("{base}_{count}");
        }
        self.names.insert(key.clone(), name.clone());
        self.modules.insert(name.clone(), key);
        self.needs.insert(name.clone(), needs);
        name
    }

    /// The modules' names, each before those that it needs.
    fn in_order(&self, top: &str) -> Vec<&str> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        let mut level: Vec<&String> = self.modules.keys().filter(|name| *name == top).collect();
        while !level.is_empty() {
            let mut below = Vec::new();
            for name in level {
                if seen.insert(name) {
                    order.push(name.as_str());
                    below.extend(self.needs.get(name).into_iter().flatten());
                }
            }
            level = below;
        }
        order
    }

    fn text(&self, name: &str) -> String {
        let Some((ports, body)) = self.modules.get(name) else {
            return String::new();
        };
        let (ports, body) = with_ports(ports, body);
        let mut text = format!("module {name}({ports});\n");
        let mut blank = true;
        for (index, line) in body.iter().enumerate() {
            // One blank line between two parts, none at the beginning, and no title of nothing.
            let below = body.get(index + 1).map_or("", |below| below);
            let is_title = line.trim().starts_with("// ") && below.is_empty();
            if !(line.is_empty() && blank || is_title) {
                text.push_str(line);
                text.push('\n');
                blank = line.is_empty();
            }
        }
        text + "endmodule\n"
    }
}

/// The `ports` of a module with what its `body` declares them as, and the body without that.
fn with_ports<'b>(ports: &str, body: &'b [String]) -> (String, Vec<&'b str>) {
    let kinds = ["input wire", "output reg", "output wire"];
    let port = |line: &str| {
        let mut found = kinds.iter().filter_map(|kind| declared(line.trim(), kind));
        found.next().map(|(_, name)| name.to_owned())
    };
    let mut declarations = BTreeMap::new();
    let mut rest = Vec::with_capacity(body.len());
    for line in body {
        match port(line) {
            Some(name) => {
                declarations.insert(name, line.trim().trim_end_matches(';'));
            }
            None => rest.push(line.as_str()),
        }
    }
    let declared: Option<Vec<&str>> = ports
        .split(',')
        .map(|name| declarations.get(name).copied())
        .collect();
    match declared {
        Some(ports) => (format!("\n    {}\n", ports.join(",\n    ")), rest),
        // Something else than rust-hdl writes: it stays as it was.
        None => (
            ports.replace(',', ", "),
            body.iter().map(String::as_str).collect(),
        ),
    }
}

impl Module {
    /// Returns the name of a module that stands for a primitive: its kind and its sizes.
    fn primitive(&self) -> Option<String> {
        let width = |port: &str| {
            self.body.iter().find_map(|line| {
                let (width, name) = ["input wire", "output reg"]
                    .iter()
                    .find_map(|kind| declared(line.trim(), kind))?;
                (name == port).then(|| vector_bits(width))
            })
        };
        match self.ports.as_str() {
            "clock,reset,d,q" => {
                let reset = |line: &String| {
                    let value = line
                        .trim()
                        .strip_prefix("if (reset) q <= ")?
                        .strip_suffix(';')?;
                    Some(value.split_once("'h")?.1.to_owned())
                };
                let initial = self.body.iter().find_map(reset)?;
                let initial = initial.trim_start_matches('0');
                let bits = width("d")?;
                Some(match initial {
                    "" => format!("register_{bits}"),
                    value => format!("register_{bits}_initial_{value}"),
                })
            }
            "clock,read_address,read_data,write_enable,write_address,write_data" => {
                let places = 1u64.checked_shl(width("read_address")?)?;
                Some(format!("lut_ram_{places}x{}", width("read_data")?))
            }
            _ => None,
        }
    }
}

/// The bits of `[N:0]`, or of nothing at all.
fn vector_bits(width: &str) -> u32 {
    let last = width.trim_start_matches('[').split(':').next();
    last.and_then(|last| last.parse::<u32>().ok())
        .map_or(1, |last| last + 1)
}

/// The path `$a$b` as a word.
fn plain(path: &str) -> String {
    path.trim_start_matches('$').replace(['$', '[', ']'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATED: &str = "
module top(clock,a,b,out);
    input wire  clock;
    input wire  [3:0] a;
    input wire  b;
    output reg  [3:0] out;
    reg  x$clock;
    reg  [3:0] x$in;
    reg  y$clock;
    reg  [3:0] y$in;
    wire  [3:0] x$out;
    wire  [3:0] y$out;
    top$x x(
        .clock(x$clock),
        .in(x$in),
        .out(x$out)
    );
    top$y y(
        .clock(y$clock),
        .in(y$in),
        .out(y$out)
    );
    always @(*) begin
        x$clock = clock;
        y$clock = clock;
        x$in = a;
        y$in = a;
        if (b) begin
            y$in = x$out;
        end
        out = y$out;
    end
endmodule // top

module top$x(clock,in,out);
    input wire  clock;
    input wire  [3:0] in;
    output reg  [3:0] out;
    always @(posedge clock) out <= in;
endmodule // top$x

module top$y(clock,in,out);
    input wire  clock;
    input wire  [3:0] in;
    output reg  [3:0] out;
    always @(posedge clock) out <= in;
endmodule // top$y
";

    #[test]
    fn copies_of_inputs_go_and_what_is_assigned_twice_stays() {
        let text = tidy(GENERATED, "block");
        assert!(
            text.contains("        .clock(clock),\n        .in(a),\n"),
            "{text}"
        );
        assert!(
            text.contains("        .clock(clock),\n        .in(y$in),\n"),
            "{text}"
        );
        assert!(text.contains("    reg [3:0] y$in;\n"), "{text}");
        assert!(!text.contains("x$in") && !text.contains("$clock"), "{text}");
    }

    #[test]
    fn equal_modules_are_one_and_the_outermost_is_first() {
        let text = tidy(GENERATED, "block");
        let modules: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("module"))
            .collect();
        assert_eq!(modules, ["module block(", "module block_x("]);
        assert!(
            text.contains("module block_x(\n    input wire clock,\n    input wire [3:0] in,\n"),
            "{text}"
        );
        assert!(
            text.contains("    block_x x(\n") && text.contains("    block_x y(\n"),
            "{text}"
        );
    }

    #[test]
    fn a_partial_assignment_is_one() {
        assert_eq!(target("a$b[3:2] = c;"), Some("a$b"));
        assert_eq!(target("always @(*) a$b = c$b;"), Some("a$b"));
        assert_eq!(target("if (a == b) begin"), None);
        assert_eq!(target("end"), None);
    }
}
