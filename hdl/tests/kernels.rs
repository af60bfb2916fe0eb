//! The traps of rust-hdl that can be seen in the source of a kernel: what simulates as it was
//! meant, while its Verilog means something else. Each is looked for in every kernel of this
//! package.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// A trap, and the way round it.
type Trap = (&'static str, fn(&str) -> bool);

const TRAPS: &[Trap] = &[
    (
        "`+ - !` in a comparison has 32 bits in Verilog: put it into a Local of its width first",
        |line| conditions(line).any(|part| compares(part) && computes(part)),
    ),
    (
        "`bit_cast` of `+ - !` has other bits in Verilog: put it into a Local first",
        |line| casts(line).any(computes),
    ),
    ("a kernel has no `let`", |line| {
        words(line).any(|word| word == "let")
    }),
    (
        "bits of a field of `.val()` are no Verilog: copy the field to a Local first",
        |line| {
            let after = line.split(".val()").skip(1);
            after
                .map(access)
                .any(|path| path.starts_with('.') && path[1..].contains(".get_bit"))
        },
    ),
    (
        "`d` is read before its assignment in Verilog: read `q`, or use a Local",
        |line| line.contains(".d.val()"),
    ),
    ("an index must be a constant or a loop's variable", |line| {
        line.contains("[self.")
    }),
    (
        "a kernel calls nothing but what rust-hdl translates",
        |line| calls(line).any(|name| !is_translated(name)),
    ),
    (
        "a const generic, or a constant of Rust, is no value in Verilog: use a `Constant<>`",
        |line| words(&without_generics(line)).any(is_constant),
    ),
];

/// The calls that rust-hdl turns into an expression of Verilog; beside these only slices of packets
/// by name.
const TRANSLATED: &[&str] = &[
    "all",
    "any",
    "bit_cast",
    "get_bit",
    "get_bits",
    "index",
    "into",
    "pos_edge",
    "replace_bit",
    "val",
];

fn is_translated(name: &str) -> bool {
    let slice = |prefix| name.starts_with(prefix);
    TRANSLATED.contains(&name) || slice("get_value_") || slice("set_value_")
}

/// Returns the called names: those before a parenthesis.
fn calls(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('(').filter_map(|(at, _)| {
        // `bit_cast::<4, 2>(` is a call of `bit_cast`.
        let before = &line[..at];
        let before = match before.strip_suffix('>') {
            Some(generic) => &generic[..generic.rfind("::<")?],
            None => before,
        };
        let name = before.rsplit(|c| !is_word(c)).next()?;
        (!name.is_empty() && !line.starts_with("fn ")).then_some(name)
    })
}

/// A line without what stands in `::<…>` and in types.
fn without_generics(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("::<") {
        text += before;
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text + rest
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c| !is_word(c))
}

/// Returns whether it is spelt as constants are.
fn is_constant(word: &str) -> bool {
    let spelt = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(spelt)
}

/// The input of a block inside is assigned here and read here, which is no input any more in
/// Verilog.
const READ_BACK: &str = "an input of a block inside is read where it is assigned: use a Local";

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The parts of a line between `&`, `|` and assignments.
fn conditions(line: &str) -> impl Iterator<Item = &str> {
    line.split([';', '&', '|'])
        .flat_map(|part| part.split(" = "))
}

fn compares(part: &str) -> bool {
    [" == ", " != ", " < ", " > ", " <= ", " >= "]
        .iter()
        .any(|sign| part.contains(sign))
}

/// Returns whether there is `+`, `-` or the `!` of a value, which is not that of a whole
/// comparison.
fn computes(part: &str) -> bool {
    let bytes = part.as_bytes();
    let not = part.match_indices('!').any(|(at, _)| {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        next != b'=' && next != b'('
    });
    not || part.contains(" + ") || part.contains(" - ")
}

/// Returns the text in the parentheses of each `bit_cast`.
fn casts(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("bit_cast").filter_map(|(at, _)| {
        let rest = &line[at..];
        let inside = &rest[rest.find('(')? + 1..];
        let mut depth = 1;
        let end = inside.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        Some(&inside[..end.unwrap_or(inside.len())])
    })
}

/// The fields and methods that follow, as far as they belong to the same value.
fn access(rest: &str) -> &str {
    let end = rest.find([' ', ';', ',']).unwrap_or(rest.len());
    &rest[..end]
}

/// Line number (from 1) and trap of each that `source` has in a kernel. A statement counts as one
/// line, wherever it is broken.
fn traps(source: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let statements = statements(source);
    let driven: Vec<String> = statements.iter().filter_map(|(_, s)| driven(s)).collect();
    for (number, statement) in statements {
        let here = TRAPS.iter().filter(|(_, is_in)| is_in(&statement));
        found.extend(here.map(|(what, _)| (number, *what)));
        if driven
            .iter()
            .any(|port| statement.contains(&format!("{port}.val()")))
        {
            found.push((number, READ_BACK));
        }
    }
    found
}

/// The port of a block inside that a statement drives: `self.block.port`.
fn driven(statement: &str) -> Option<String> {
    let (port, _) = statement.split_once(".next = ")?;
    let port = port.trim();
    (port.starts_with("self.") && port.matches('.').count() == 2).then(|| port.to_owned())
}

/// The statements of the kernels in `source`, with their first lines' numbers.
fn statements(source: &str) -> Vec<(usize, String)> {
    let mut statements = Vec::new();
    let mut depth = None;
    let mut current: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(source.lines()) {
        let code = line.split("//").next().unwrap_or("").trim();
        if code == "#[hdl_gen]" {
            depth = Some(0);
            continue;
        }
        let Some(level) = &mut depth else {
            continue;
        };
        let opens = code.matches('{').count() as i32;
        *level += opens - code.matches('}').count() as i32;
        let (_, statement) = current.get_or_insert((number, String::new()));
        // A method that was broken onto a line of its own joins what it belongs to.
        if !statement.is_empty() && !code.starts_with('.') {
            statement.push(' ');
        }
        statement.push_str(code);
        if code.ends_with([';', '{', '}']) {
            statements.extend(current.take());
        }
        if *level == 0 && code.ends_with('}') {
            depth = None;
        }
    }
    statements
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_kernel_steps_into_a_trap() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut kernels, mut found) = (0, Vec::new());
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        kernels += source.matches("#[hdl_gen]").count();
        let place = file.strip_prefix(&root).unwrap().display();
        let here = traps(&source).into_iter();
        found.extend(here.map(|(line, what)| format!("{place}:{line}: {what}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(kernels >= 20, "only {kernels} kernels were found");
}

/// A kernel with one statement, which begins in line 4.
fn kernel(statement: &str) -> String {
    format!("impl Logic for A {{\n#[hdl_gen]\nfn update(&mut self) {{\n{statement}\n}}\n}}\n")
}

#[test]
fn each_trap_is_seen() {
    for (trap, statement) in [
        (0, "if (self.x.val() + 1) == self.y.val() {\n}"),
        (
            0,
            "self.z.next = self.a.val() & ((self.x.val() - self.y.val()) < 4);",
        ),
        (0, "self.z.next = !self.x.val() == self.y.val();"),
        (0, "self.z.next = self.y.val()\n    == self.x.val() + 1;"),
        (1, "self.z.next = bit_cast::<4, 2>(!self.x.val());"),
        (
            1,
            "self.z.next = bit_cast::<4, 2>(self.x.val() + self.y.val());",
        ),
        (2, "let x = self.x.val();"),
        (3, "self.z.next = self.x.val().field.get_bits::<2>(0);"),
        (
            3,
            "self.z.next = self.x\n    .val()\n    .get_value_tag()\n    .get_bits::<2>(0);",
        ),
        (4, "self.z.next = self.x.d.val();"),
        (5, "self.z[self.x.val().index()].next = true;"),
        (6, "self.z.next = twice(self.x.val());"),
        (6, "self.z.next = self.x.val().count_ones();"),
        (6, "self.z.next = Bits::<4>::from(self.x.val());"),
        (7, "self.z.next = self.x.val() == WIDTH;"),
        (7, "self.z.next = self.x.val() & (N.into());"),
    ] {
        assert_eq!(
            traps(&kernel(statement)),
            [(4, TRAPS[trap].0)],
            "{statement}"
        );
    }
}

#[test]
fn an_input_that_is_read_back_is_seen() {
    let two = "self.inner.input.next = self.x.val();\nself.z.next = self.inner.input.val();";
    assert_eq!(traps(&kernel(two)), [(5, READ_BACK)]);
}

#[test]
fn what_is_no_trap_is_left_alone() {
    for statement in [
        "self.z.next = self.x.val() + 1;",
        "self.z.next = !self.x.val() & (self.y.val() == self.x.val());",
        "self.z.next = !(self.x.val() == self.y.val());",
        "if (self.x.val() != 3) | !self.y.val() {\n}",
        "self.z.next = bit_cast::<4, 2>(self.x.val()) + 1;",
        "self.z.next = self.x.val().get_bits::<2>(0);",
        "self.z.next = self.x.val().get_value_tag();",
        "for i in 0..4 {\nself.z[i].next = self.x[i].val();\n}",
        "self.z.next = bit_cast::<N, 32>(self.x.val());",
        "self.z.next.set_value_tag(3.into());",
        "// let x = self.x.val();",
        "self.inner.input.next = self.inner.output.val();",
        "self.own.next = false;\nself.z.next = self.own.val();",
    ] {
        assert_eq!(traps(&kernel(statement)), [], "{statement}");
    }
    let outside = "fn new() { let x = 1; }\n".to_owned() + &kernel("") + "fn f() { let x = 1; }\n";
    assert_eq!(traps(&outside), []);
}
