//! The tables of facts about MPI's C interface: `mpi/facts/calls.txt`, `mpi/facts/constants.txt`.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// A chapter of the table of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    /// Beginning and end, times, versions.
    Environment,
    /// Sends, receives, requests, statuses.
    Point,
    /// Partitioned communication.
    Partitioned,
    /// Collective communication.
    Collectives,
    /// Communicators.
    Communicators,
    /// Groups.
    Groups,
    /// Topologies.
    Topologies,
    /// Datatypes and packing.
    Types,
    /// Operations of reductions.
    Operations,
    /// One-sided communication.
    Windows,
    /// Attributes and their keys.
    Attributes,
    /// Info objects.
    Info,
    /// Error handlers, classes and codes.
    Errors,
    /// Processes that come and go, ports.
    Processes,
    /// Sessions.
    Sessions,
    /// Files.
    Files,
    /// The tool interface.
    Tools,
}

/// The chapters by their names in the table.
const CHAPTERS: [(&str, Chapter); 17] = [
    ("environment", Chapter::Environment),
    ("point", Chapter::Point),
    ("partitioned", Chapter::Partitioned),
    ("collectives", Chapter::Collectives),
    ("communicators", Chapter::Communicators),
    ("groups", Chapter::Groups),
    ("topologies", Chapter::Topologies),
    ("types", Chapter::Types),
    ("operations", Chapter::Operations),
    ("windows", Chapter::Windows),
    ("attributes", Chapter::Attributes),
    ("info", Chapter::Info),
    ("errors", Chapter::Errors),
    ("processes", Chapter::Processes),
    ("sessions", Chapter::Sessions),
    ("files", Chapter::Files),
    ("tools", Chapter::Tools),
];

/// The type of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// An error code.
    Code,
    /// A double.
    Real,
    /// A handle or an address.
    Word,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its name without "MPI_", and without the "_c" of large counts.
    pub name: &'static str,
    /// Its name in the standard.
    pub full_name: String,
    /// Its chapter.
    pub chapter: Chapter,
    /// Whether its counts are large.
    pub is_large: bool,
    /// The kinds of its arguments.
    pub kinds: Vec<&'static str>,
    /// The names of its arguments.
    pub names: Vec<&'static str>,
    /// The type of its result.
    pub returned: Returned,
}

impl Signature {
    /// Bytes of a number, or of each of several in memory, that is this argument.
    pub fn width(&self, argument: usize) -> usize {
        let kind = self.kinds.get(argument).copied().unwrap_or_default();
        match kind.trim_matches(['*', '[', ']']) {
            "int" => 4,
            "count" | "disp" if !self.is_large => 4,
            _ => 8,
        }
    }
}

/// All calls, by the numbers that the entry points have.
pub static CALLS: LazyLock<Vec<Signature>> = LazyLock::new(|| {
    let mut chapter = Chapter::Environment;
    let mut calls = Vec::new();
    for line in lines(include_str!("../../facts/calls.txt")) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']');
            let known = CHAPTERS.iter().find(|&&(known, _)| known == name);
            chapter = known.map_or(chapter, |&(_, known)| known);
            continue;
        }
        let (head, rest) = line.split_once('(').unwrap_or((line, ""));
        let (arguments, returned) = rest.split_once(')').unwrap_or((rest, ""));
        let (name, has_large) = match head.split_once(" +c") {
            Some((name, _)) => (name, true),
            None => (head, false),
        };
        let arguments = arguments.split(',').map(str::trim);
        let arguments = arguments.filter_map(|one| one.split_once(':'));
        let (kinds, names) = arguments.unzip();
        let small = Signature {
            name,
            full_name: format!("MPI_{name}"),
            chapter,
            is_large: false,
            kinds,
            names,
            returned: match returned.trim() {
                "" => Returned::Code,
                "-> real" => Returned::Real,
                _ => Returned::Word,
            },
        };
        let large = has_large.then(|| Signature {
            full_name: format!("MPI_{name}_c"),
            is_large: true,
            ..small.clone()
        });
        calls.push(small);
        calls.extend(large);
    }
    calls
});

/// An interface that programs are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// MPICH's.
    Mpich,
    /// That of MPI-5.0.
    Standard,
}

/// A constant: its name, and its value in each interface that has it.
type Constant = (&'static str, [Option<i64>; 2]);

/// The constants of both interfaces.
static CONSTANTS: LazyLock<Vec<Constant>> = LazyLock::new(|| {
    let value = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let constant = |line: &'static str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        Some((name, [value(words.next()?), value(words.next()?)]))
    };
    let all = lines(include_str!("../../facts/constants.txt"));
    all.filter_map(constant).collect()
});

static BY_NAME: LazyLock<[FxHashMap<&'static str, i64>; 2]> = LazyLock::new(|| {
    [0, 1].map(|interface| {
        let all = CONSTANTS.iter();
        let there = all.filter_map(|(name, values)| Some((*name, values[interface]?)));
        there.collect()
    })
});

impl Interface {
    /// The constants of this interface.
    pub fn constants(self) -> impl Iterator<Item = (&'static str, i64)> {
        let all = CONSTANTS.iter();
        all.filter_map(move |(name, values)| Some((*name, values[self as usize]?)))
    }

    /// The value of the constant with this name; 0 if this interface has none.
    pub fn constant(self, name: &str) -> i64 {
        let found = BY_NAME[self as usize].get(name).copied();
        found.unwrap_or_default()
    }

    /// The value of a handle: an int in MPICH's interface.
    pub fn handle(self, name: &str) -> u64 {
        self.constant(name) as u64
    }

    /// Bytes of a handle.
    pub fn handle_bytes(self) -> usize {
        match self {
            Self::Mpich => 4,
            Self::Standard => 8,
        }
    }
}

/// The lines of a table that say something.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    let lines = table.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_has_a_known_kind() {
        let known = [
            "int",
            "count",
            "disp",
            "long",
            "aint",
            "offset",
            "real",
            "choice",
            "address",
            "string",
            "strings",
            "argv",
            "function",
            "tool",
            "comm",
            "group",
            "type",
            "op",
            "request",
            "message",
            "win",
            "file",
            "info",
            "errhandler",
            "session",
            "status",
        ];
        for call in CALLS.iter() {
            for kind in &call.kinds {
                let bare = kind.trim_matches(['*', '[', ']']);
                assert!(known.contains(&bare), "{}: {kind}", call.name);
            }
            assert!(call.kinds.len() <= 16, "{}", call.name);
        }
        assert!(CALLS.len() > 600);
    }

    #[test]
    fn constants_are_those_of_the_headers() {
        let both = |name| [Interface::Mpich, Interface::Standard].map(|of| of.constant(name));
        assert_eq!(both("COMM_WORLD"), [0x4400_0000, 0x101]);
        assert_eq!(both("ANY_SOURCE"), [-2, -1]);
        assert_eq!(both("ERR_UNSUPPORTED_OPERATION"), [44, 55]);
    }
}
