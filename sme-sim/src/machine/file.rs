//! Machine files: a machine's name, constants and provenance, from TOML to the typed description.
//!
//! The command line loads a [`Machine`] by name or path, overrides constants ([`Machine::with`]),
//! prints it and puts its [`Machine::hash`] into every row. Which constants there are, a [`Family`]
//! declares; this file knows none of them.

use std::any::Any;
use std::fs::{self, File};
use std::future::Future;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use sme_memory::{Capabilities, Lacks};
use thiserror::Error;

use super::catalog::{BUILTINS, Builtin, FAMILIES, Registered};
use super::document::{
    Document, DocumentPosition, Entry, Given, Lines, Problem, Problems, Section, Source,
};
use super::family::{CannotBuild, Family, Readable, started};
use super::reader::{Constant, Reader};
use super::shape::{Setup, Shape};
use super::words::{listed, nearest, quoted};
use crate::kernel::peers::{Alone, Peers};
use crate::kernel::thread::programs;
use crate::parts::contract::ThreadMemory;

/// A machine: what its file says, with the overrides it was given.
#[derive(Clone, Debug)]
pub struct Machine {
    document: Document,
    family: Arc<dyn Family>,
    shape: Shape,
    constants: Vec<Constant>,
    /// Constants that the file has left out, as it may.
    left_out: Vec<Constant>,
    overrides: Vec<(String, String)>,
    text_hash: Fnv,
    hash: String,
}

/// The family's values follow from the constants, so only these are compared.
impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
            && self.constants == other.constants
            && self.overrides == other.overrides
            && self.hash == other.hash
    }
}

/// The reason why there is no such machine. Each prints as one line that names the file and the
/// line, or the override.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// Neither a built-in machine nor a path that ends in `.toml`.
    #[error("unknown machine {}{hint} {known}, and files whose name ends in .toml", quoted(.name))]
    Unknown {
        /// As asked for.
        name: String,
        /// `; did you mean "…"? There are`, or `; there are`.
        hint: String,
        /// The built-in machines.
        known: String,
    },
    /// The file is wrong at a line, counted from 1.
    #[error("{file}:{line}: {message}")]
    Line {
        /// Its path.
        file: String,
        /// The line.
        line: usize,
        /// The mistake; begins with `section.key` where it is about a constant.
        message: String,
    },
    /// The file cannot be read, or lacks something.
    #[error("{file}: {message}")]
    File {
        /// Its path.
        file: String,
        /// The message of the operating system, or the name of what is missing.
        message: String,
    },
    /// An override is wrong.
    #[error("--set {}={}: {message}", printable(.key), printable(.text))]
    Override {
        /// `section.key`, as given.
        key: String,
        /// The value, as given.
        text: String,
        /// The mistake.
        message: String,
    },
}

/// A machine file is a few kilobytes; something much larger is not one.
const LARGEST_FILE: u64 = 1 << 20;

impl Machine {
    /// The machine files that are part of the program.
    pub fn builtins() -> &'static [Builtin] {
        BUILTINS
    }

    /// The built-in machine called `name`.
    ///
    /// # Errors
    /// There is none; the message names the nearest.
    pub fn builtin(name: &str) -> Result<Self, MachineError> {
        let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
            let names: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
            return Err(MachineError::Unknown {
                name: name.to_owned(),
                hint: match nearest(name, names.iter().copied()) {
                    Some(nearest) => format!("; did you mean {}? There are", quoted(nearest)),
                    None => "; there are".to_owned(),
                },
                known: listed(&names, "and"),
            });
        };
        Machine::parse(&format!("machines/{}.toml", builtin.name), builtin.text)
    }

    /// The machine of the file at the path `name_or_path`, if that ends in `.toml`; otherwise the
    /// built-in machine of that name.
    ///
    /// # Errors
    /// There is no such machine, its file cannot be read, or what it says is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, MachineError> {
        if !name_or_path.ends_with(".toml") {
            return Machine::builtin(name_or_path);
        }
        let text =
            read_text(Path::new(name_or_path)).map_err(|problem| located(name_or_path, problem))?;
        Machine::parse(name_or_path, &text)
    }

    /// The machine that `text` describes; `file` is the name that errors give it.
    ///
    /// # Errors
    /// The text is not TOML, a constant is missing, unknown or not allowed, or several of them
    /// together make no machine.
    pub fn parse(file: &str, text: &str) -> Result<Self, MachineError> {
        let located = |problem: Problem| located(file, problem);
        let document = Document::parse(text).map_err(located)?;
        // Checkouts differ in their line ends, and editors in a mark at the beginning; the machine
        // does not.
        let plain = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let text_hash = Fnv::new().add(plain.as_bytes());
        Machine::read(document, Vec::new(), text_hash).map_err(located)
    }

    /// This machine with each `section.key` set to its value, in a file's notation with or
    /// without the blank before the unit: `("engine.clock", "200MHz")`. A constant that was
    /// overridden before is overridden again.
    ///
    /// # Errors
    /// A constant is unknown or given twice, or the machine that results is not allowed.
    pub fn with<K: AsRef<str>, V: AsRef<str>>(
        &self,
        overrides: &[(K, V)],
    ) -> Result<Self, MachineError> {
        let mut document = self.document.clone();
        for (at, (key, text)) in overrides.iter().enumerate() {
            let (key, text) = (key.as_ref().trim(), text.as_ref());
            let wrong = |message: String| MachineError::Override {
                key: key.to_owned(),
                text: text.to_owned(),
                message,
            };
            if let Some(left_out) = self.left_out.iter().find(|c| c.name() == key) {
                document.make_room(left_out);
            }
            let Some(entry) = document
                .entries
                .iter_mut()
                .find(|entry| entry.name() == key)
            else {
                let known = [&*self.constants, &self.left_out].concat();
                return Err(wrong(unknown_constant(key, &known)));
            };
            if overrides
                .iter()
                .take(at)
                .any(|(earlier, _)| earlier.as_ref().trim() == key)
            {
                return Err(wrong(format!("{key} is set twice")));
            }
            entry.value = Given::Override(text.to_owned());
            entry.place = DocumentPosition::Override {
                key: key.to_owned(),
                text: text.to_owned(),
            };
            entry.source = Source::Set;
            entry.reason = "set for this run".to_owned();
            // A user who sets a fitted constant chooses it, too: its figures stay calibrated.
        }
        let changed = |constant: &Constant| {
            let name = constant.name();
            let now = overrides.iter().any(|(key, _)| key.as_ref().trim() == name);
            now || self.overrides.iter().any(|(key, _)| *key == name)
        };
        let names = (self.constants.iter())
            .chain(&self.left_out)
            .filter(|constant| changed(constant))
            .map(Constant::name)
            .collect();
        Machine::read(document, names, self.text_hash)
            .map_err(|problem| located(self.name(), problem))
    }

    /// Lets the document's family read it; the constants called `overridden` are recorded.
    fn read(document: Document, overridden: Vec<String>, text_hash: Fnv) -> Result<Self, Problem> {
        let mut reader = Reader::new(&document);
        let Some(family) = registered(&document.family) else {
            return Err(unknown_family(&document));
        };
        let family = (family.read)(&mut reader);
        let (constants, left_out) = reader.finish()?;
        let value = |name: String| {
            let constant = constants.iter().find(|constant| constant.name() == name)?;
            Some((name, constant.value.clone()))
        };
        let overrides: Vec<(String, String)> = overridden.into_iter().filter_map(value).collect();
        let hash = overrides.iter().fold(text_hash, |hash, (name, value)| {
            hash.add(b"\n--set ")
                .add(name.as_bytes())
                .add(b"=")
                .add(value.as_bytes())
        });
        Ok(Machine {
            document,
            shape: family.shape(),
            family,
            constants,
            left_out,
            overrides,
            text_hash,
            hash: hash.to_hex(),
        })
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.document.name
    }

    /// Returns the description of the machine, one line; may be empty.
    pub fn description(&self) -> &str {
        &self.document.description
    }

    /// Returns the family of the machine, with its typed description.
    pub fn family(&self) -> &dyn Family {
        &*self.family
    }

    /// The machine as one of the family `T`; nothing where it is of another.
    pub fn as_family<T: Family>(&self) -> Option<&T> {
        let family: &dyn Any = &*self.family;
        family.downcast_ref()
    }

    /// Its numbers.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its capabilities.
    pub fn capabilities(&self) -> Capabilities {
        self.family.capabilities()
    }

    /// Checks that the machine has the capabilities `needs` of the algorithm called `what`.
    ///
    /// # Errors
    /// [`Lacks`] names both.
    pub fn suffices(&self, what: &str, needs: Capabilities) -> Result<(), Lacks> {
        self.capabilities().suffice(self.name(), what, needs)
    }

    /// The machine as `setup` wants it, with the program that `program` gives each thread from its
    /// view of memory, its node and its number there.
    ///
    /// # Errors
    /// [`CannotBuild`] if the constants make no such machine.
    pub fn build<F: Future<Output = ()> + Send + 'static>(
        &self,
        setup: Setup,
        program: impl FnMut(ThreadMemory, u32, u32) -> F,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        self.build_among(&Alone, setup, program)
    }

    /// The same, shared with `peers`.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn build_among<F: Future<Output = ()> + Send + 'static>(
        &self,
        peers: &dyn Peers,
        setup: Setup,
        mut program: impl FnMut(ThreadMemory, u32, u32) -> F,
    ) -> Result<Box<dyn Readable>, CannotBuild> {
        let mut threads = |memories: Vec<ThreadMemory>| programs(started(memories, &mut program));
        self.family.build(peers, setup, &mut threads)
    }

    /// The family as files write it.
    pub fn family_name(&self) -> &str {
        &self.document.family
    }

    /// Identifies the file's text and the overrides: 16 hexadecimal digits (FNV-1a, 64 bits),
    /// the same on every host. Line ends and a byte order mark do not count.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Every constant, in the family's order; without those that the file may leave out, and does.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// The constants that the file leaves out, each with the value that it therefore has.
    pub fn left_out(&self) -> &[Constant] {
        &self.left_out
    }

    /// The constant called `section.key`.
    pub fn constant(&self, name: &str) -> Option<&Constant> {
        self.constants
            .iter()
            .find(|constant| constant.name() == name)
    }

    /// The clock that the constant called `section.key` names, in MHz; none where it names none.
    pub fn megahertz(&self, name: &str) -> Option<f64> {
        Some(self.constant(name)?.amount? as f64 / 1e6)
    }

    /// The constants that are fitted, or set in the place of a fitted value, each with the
    /// published figures it is fitted to.
    pub fn fitted(&self) -> impl Iterator<Item = &Constant> {
        self.constants
            .iter()
            .filter(|constant| !constant.fitted_to.is_empty())
    }

    /// The overrides in force, as (`section.key`, value), in the family's order.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// For people: name, hash and description, then a line for every constant with its value,
    /// source and reason.
    pub fn show(&self) -> String {
        let mut text = format!(
            "{} ({}), hash {}\n",
            self.name(),
            self.family_name(),
            self.hash
        );
        if !self.description().is_empty() {
            text.push_str(self.description());
            text.push('\n');
        }
        let rows: Vec<[String; 4]> = self.constants.iter().map(row).collect();
        let heads = ["constant", "value", "source"];
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([heads[column].len()]).max().unwrap_or(0)
        };
        let (name, value, source) = (width(0), width(1), width(2));
        let mut line = |cells: [&str; 4]| {
            let [a, b, c, d] = cells;
            let line = format!("{a:name$}  {b:value$}  {c:source$}  {d}");
            text.push('\n');
            text.push_str(line.trim_end());
        };
        line([heads[0], heads[1], heads[2], "where"]);
        for row in &rows {
            line([&row[0], &row[1], &row[2], &row[3]]);
        }
        text.push('\n');
        text
    }
}

/// The names of all families.
pub fn family_names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// The constants of the family called `name` with their meanings and limits, and with values only
/// where a file may leave them out; `None` if there is no such family.
pub fn declared(name: &str) -> Option<Vec<Constant>> {
    let family = registered(name)?;
    let nothing = Document::empty(name);
    let mut reader = Reader::new(&nothing);
    (family.read)(&mut reader);
    Some(reader.declared())
}

fn registered(name: &str) -> Option<&'static Registered> {
    FAMILIES.iter().find(|family| family.name == name)
}

fn row(constant: &Constant) -> [String; 4] {
    let reason = match constant.fitted_to.as_slice() {
        [] => constant.reason.clone(),
        figures => format!("{} [{}]", constant.reason, figures.join(", ")),
    };
    [
        constant.name(),
        constant.value.clone(),
        constant.source.name().to_owned(),
        reason,
    ]
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let whole = |message: String| Problem {
        place: DocumentPosition::File,
        message,
    };
    // A pipe would be waited for without end, and already by opening it.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            return Err(whole("is no file but a pipe or a device".to_owned()));
        }
        _ => {}
    }
    let file = File::open(path).map_err(|error| whole(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| whole(error.to_string()))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(whole(
            "larger than a machine file can be (1 MiB)".to_owned(),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = Lines::of(error.as_bytes()).of_byte(error.utf8_error().valid_up_to());
        Problem {
            place: DocumentPosition::Line(line),
            message: "not UTF-8 text".to_owned(),
        }
    })
}

fn unknown_family(document: &Document) -> Problem {
    // Without a family something has already been found wrong: it is missing, or no text.
    let known: Vec<&str> = family_names().collect();
    let advice = match nearest(&document.family, known.iter().copied()) {
        Some(nearest) => format!("did you mean {}?", quoted(nearest)),
        None => format!("there are {}", listed(&known, "and")),
    };
    let message = format!("unknown family {}; {advice}", quoted(&document.family));
    let first = document.problems.clone().first();
    match document.family.is_empty() {
        true => first.unwrap_or(Problem {
            place: DocumentPosition::File,
            message,
        }),
        false => Problem {
            place: document.family_place.clone(),
            message,
        },
    }
}

fn unknown_constant(key: &str, constants: &[Constant]) -> String {
    let (section, own) = key.split_once('.').unwrap_or((key, ""));
    let keys: Vec<&str> = constants
        .iter()
        .filter(|constant| constant.section == section)
        .map(|constant| constant.key)
        .collect();
    let names: Vec<String> = constants.iter().map(Constant::name).collect();
    let hint = if let Some(nearest) = nearest(own, keys.iter().copied()) {
        format!(
            "; did you mean {}?",
            quoted(&format!("{section}.{nearest}"))
        )
    } else if !keys.is_empty() {
        format!("; [{section}] has {}", listed(&keys, "and"))
    } else if let Some(nearest) = nearest(key, names.iter().map(String::as_str)) {
        format!("; did you mean {}?", quoted(nearest))
    } else {
        let sections = names.iter().filter_map(|name| name.split_once('.'));
        let mut sections: Vec<&str> = sections.map(|(section, _)| section).collect();
        sections.sort_unstable();
        sections.dedup();
        match key.contains('.') {
            true => format!(
                "; the machine has the sections {}",
                listed(&sections, "and")
            ),
            false => "; it is written section.key, such as core.clock".to_owned(),
        }
    };
    format!("unknown constant {}{hint}", quoted(key))
}

fn located(file: &str, problem: Problem) -> MachineError {
    let message = problem.message;
    let file = printable(file);
    match problem.place {
        DocumentPosition::Line(line) => MachineError::Line {
            file,
            line,
            message,
        },
        DocumentPosition::File => MachineError::File { file, message },
        DocumentPosition::Override { key, text } => MachineError::Override { key, text, message },
    }
}

/// `text` without anything that breaks a line.
fn printable(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(escaped).collect()
}

/// The hash of Fowler, Noll and Vo, variant 1a, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(self, bytes: &[u8]) -> Self {
        Fnv(bytes.iter().fold(self.0, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn to_hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Document {
    /// A file of the family called `family` that says nothing else.
    fn empty(family: &str) -> Self {
        Document {
            name: String::new(),
            description: String::new(),
            family: family.to_owned(),
            family_place: DocumentPosition::File,
            sections: Vec::<Section>::new(),
            entries: Vec::new(),
            problems: Problems::default(),
        }
    }

    /// An entry for a constant that the file has left out, to be filled in.
    fn make_room(&mut self, constant: &Constant) {
        if self
            .entries
            .iter()
            .all(|entry| entry.name() != constant.name())
        {
            self.entries.push(Entry {
                section: constant.section.to_owned(),
                key: constant.key.to_owned(),
                ..Entry::nothing(DocumentPosition::File)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vectors of the hash.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(Fnv::new().to_hex(), "cbf29ce484222325");
        assert_eq!(Fnv::new().add(b"a").to_hex(), "af63dc4c8601ec8c");
        assert_eq!(
            Fnv::new().add(b"foo").add(b"bar").to_hex(),
            "85944171f73967e8"
        );
    }
}
