//! Litmus tests from critical cycles, as diy makes them (Alglave, Maranget, Sarkar and Sewell,
//! *Fences in Weak Memory Models*, CAV 2010).
//!
//! A [`Cycle`] is a sequence of [`Edge`]s between accesses that returns to where it began: edges of
//! communication lead to another thread, edges of program order to another location. The test of a
//! cycle asks whether its accesses can happen in a circle, which sequential consistency forbids. A
//! cycle is critical (Shasha and Snir, TOPLAS 1988) if no part of it can be left out.

use std::fmt;

use thiserror::Error;

use super::condition::{Condition, Observable, Proposition, Quantifier};
use super::test::{Instruction, Register, Source, Test};

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// A store.
    Write,
    /// A load.
    Read,
}

/// The relation of an access to the one before it. Names are those of diy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// The next access in program order, to another location.
    Pod(Access, Access),
    /// The same behind an MFENCE.
    Fenced(Access, Access),
    /// A load sees a store of its own thread.
    Rfi,
    /// A load sees a store of another thread.
    Rfe,
    /// A load sees what a store of another thread then overwrites.
    Fre,
    /// A store is overwritten by one of another thread (`Wse` in older versions of diy).
    Coe,
}

use Access::{Read, Write};

/// Every edge. Those of program order come first.
const EDGES: [(&str, Edge); 13] = [
    ("PodRR", Edge::Pod(Read, Read)),
    ("PodRW", Edge::Pod(Read, Write)),
    ("PodWR", Edge::Pod(Write, Read)),
    ("PodWW", Edge::Pod(Write, Write)),
    ("MFencedRR", Edge::Fenced(Read, Read)),
    ("MFencedRW", Edge::Fenced(Read, Write)),
    ("MFencedWR", Edge::Fenced(Write, Read)),
    ("MFencedWW", Edge::Fenced(Write, Write)),
    ("Rfi", Edge::Rfi),
    ("Rfe", Edge::Rfe),
    ("Fre", Edge::Fre),
    ("Coe", Edge::Coe),
    ("Wse", Edge::Coe),
];

impl Edge {
    /// The edge that diy calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        let found = EDGES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, edge)| edge)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = EDGES.iter().find(|&&(_, edge)| edge == self);
        found.map_or("", |(name, _)| name)
    }

    /// The access from which it leads, and the one to which it leads.
    fn ends(self) -> (Access, Access) {
        match self {
            Self::Pod(from, to) | Self::Fenced(from, to) => (from, to),
            Self::Rfi | Self::Rfe => (Write, Read),
            Self::Fre => (Read, Write),
            Self::Coe => (Write, Write),
        }
    }

    /// Returns whether it leads to another thread.
    fn is_external(self) -> bool {
        matches!(self, Self::Rfe | Self::Fre | Self::Coe)
    }

    /// Returns whether it leads to another location.
    fn changes_location(self) -> bool {
        matches!(self, Self::Pod(..) | Self::Fenced(..))
    }

    /// Returns whether `next` may follow in a critical cycle.
    fn may_precede(self, next: Self) -> bool {
        let connects = self.ends().1 == next.ends().0;
        connects
            && match (self, next) {
                // Two edges of communication are one, unless the second tells who saw the first.
                (Self::Coe | Self::Fre, Self::Rfe) => true,
                _ if self.is_external() => !next.is_external(),
                // A load that sees its own thread's store says nothing to other threads.
                (Self::Rfi, _) => next.changes_location(),
                _ => next.is_external(),
            }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason for which edges are no critical cycle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CycleError {
    /// There is no such edge.
    #[error("`{0}` is no edge: there are PodRR (RW, WR, WW), MFencedRR (…), Rfi, Rfe, Fre, Coe")]
    Edge(String),
    /// Two edges do not fit.
    #[error("{1} cannot follow {0} in a critical cycle")]
    Follows(Edge, Edge),
    /// There are too few or too many threads or locations.
    #[error(
        "a critical cycle has at least two edges to other threads (Rfe, Fre, Coe) and two to other \
         locations (Pod.., MFenced..), and at most {MOST_EXTERNAL} of each"
    )]
    Size,
}

/// The most edges to other threads, and the most to other locations: locations have the names of
/// letters.
const MOST_EXTERNAL: usize = 8;
/// The names of the locations.
const LOCATIONS: [&str; MOST_EXTERNAL] = ["x", "y", "z", "a", "b", "c", "d", "e"];
/// The names of a thread's registers; it has at most three accesses.
const REGISTERS: [&str; 3] = ["EAX", "EBX", "ECX"];

/// A critical cycle. Two that differ only in where they begin are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle {
    /// The last leads to another thread; of all such rotations this is the smallest.
    edges: Vec<Edge>,
}

impl Cycle {
    /// The cycle of `edges`, the last of which leads to the first.
    ///
    /// # Errors
    /// [`CycleError`] if they are no critical cycle.
    pub fn new(edges: &[Edge]) -> Result<Self, CycleError> {
        let count = |is: fn(Edge) -> bool| edges.iter().filter(|&&edge| is(edge)).count();
        let sizes = 2..=MOST_EXTERNAL;
        let counts = [count(Edge::is_external), count(Edge::changes_location)];
        if !counts.iter().all(|count| sizes.contains(count)) {
            return Err(CycleError::Size);
        }
        for (&edge, &next) in edges.iter().zip(edges.iter().cycle().skip(1)) {
            if !edge.may_precede(next) {
                return Err(CycleError::Follows(edge, next));
            }
        }
        let rotations = (0..edges.len()).map(|by| {
            let mut rotated = edges.to_vec();
            rotated.rotate_left(by);
            rotated
        });
        let ends_a_thread = |edges: &Vec<Edge>| edges.last().is_some_and(|edge| edge.is_external());
        let edges = rotations.filter(ends_a_thread).min();
        edges.map(|edges| Self { edges }).ok_or(CycleError::Size)
    }

    /// The cycle of the edges that `text` names, between blanks, commas or `+`.
    ///
    /// # Errors
    /// As [`Self::new`], and for a name of no edge.
    pub fn parse(text: &str) -> Result<Self, CycleError> {
        let names = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '+'));
        let edge = |name: &str| {
            let unknown = || CycleError::Edge(name.escape_debug().to_string());
            Edge::named(name).ok_or_else(unknown)
        };
        let names = names.filter(|name| !name.is_empty());
        let edges: Vec<Edge> = names.map(edge).collect::<Result<_, _>>()?;
        Self::new(&edges)
    }

    /// Every critical cycle of `threads` threads, in order.
    pub fn all(threads: usize) -> Vec<Self> {
        let inner: Vec<Vec<Edge>> = {
            let orders = EDGES.map(|(_, edge)| edge);
            let orders = orders.into_iter().filter(|edge| edge.changes_location());
            let alone = orders.clone().map(|order| vec![order]);
            let seen = orders.filter(|order| order.ends().0 == Read);
            let seen = seen.map(|order| vec![Edge::Rfi, order]);
            [Vec::new()].into_iter().chain(alone).chain(seen).collect()
        };
        let mut begun: Vec<Vec<Edge>> = vec![Vec::new()];
        for _ in 0..threads {
            let longer = |edges: &Vec<Edge>| {
                let mut all = Vec::new();
                for inner in &inner {
                    for outer in [Edge::Rfe, Edge::Fre, Edge::Coe] {
                        let more = inner.iter().copied().chain([outer]);
                        let edges: Vec<Edge> = edges.iter().copied().chain(more).collect();
                        if edges.windows(2).all(|pair| pair[0].may_precede(pair[1])) {
                            all.push(edges);
                        }
                    }
                }
                all
            };
            begun = begun.iter().flat_map(longer).collect();
        }
        let mut cycles: Vec<Self> = begun
            .iter()
            .filter_map(|edges| Self::new(edges).ok())
            .collect();
        cycles.sort_unstable();
        cycles.dedup();
        cycles
    }

    /// The test that asks whether the accesses of the cycle can happen in a circle. It bears the
    /// names of the edges, joined by `+`.
    pub fn test(&self) -> Test {
        let accesses = self.accesses();
        let threads = self.edges.iter().filter(|edge| edge.is_external()).count();
        let locations = accesses.iter().map(|access| access.location + 1).max();
        let mut test = Test {
            name: self.to_string().replace(' ', "+"),
            doc: None,
            info: vec![("Cycle".to_owned(), self.to_string())],
            locations: (0..locations.unwrap_or(0))
                .map(|number| (LOCATIONS[number].to_owned(), 0))
                .collect(),
            registers: vec![Vec::new(); threads],
            threads: vec![Vec::new(); threads],
            shown: Vec::new(),
            condition: Condition {
                quantifier: Quantifier::Exists,
                proposition: Proposition::all([]),
            },
        };
        let mut is = Vec::new();
        let mut reads = vec![0; threads];
        let mut thread = 0;
        for (access, &edge) in accesses.iter().zip(&self.edges) {
            let location = access.location;
            let program = &mut test.threads[thread];
            if access.kind == Write {
                let value = Source::Immediate(access.value);
                program.push(Instruction::Store {
                    to: location,
                    value,
                });
            } else if let Some(to) = Register::named(REGISTERS[reads[thread]]) {
                program.push(Instruction::Load { to, from: location });
                let what = Observable::Register(thread, to);
                is.push(Proposition::Is(what, access.value));
                reads[thread] += 1;
            }
            if matches!(edge, Edge::Fenced(..)) {
                program.push(Instruction::Fence);
            }
            thread += usize::from(edge.is_external());
        }
        for location in 0..test.locations.len() {
            let here = accesses.iter().filter(|access| access.location == location);
            let stores = here.filter(|access| access.kind == Write);
            // The order of several stores shows in which is the last.
            if stores.clone().count() > 1 {
                let last = stores.map(|access| access.value).max();
                let what = Observable::Location(location);
                is.extend(last.map(|value| Proposition::Is(what, value)));
            }
        }
        test.condition.proposition = Proposition::all(is);
        test
    }

    /// The accesses from which the edges lead, in their order.
    fn accesses(&self) -> Vec<At> {
        let count = self.edges.len();
        let orders = self.edges.iter().filter(|edge| edge.changes_location());
        let locations = orders.count();
        let mut passed = 0;
        let mut accesses: Vec<At> = Vec::with_capacity(count);
        for &edge in &self.edges {
            accesses.push(At {
                kind: edge.ends().0,
                location: passed % locations,
                value: 0,
            });
            passed += usize::from(edge.changes_location());
        }
        // The edges from one change of location to the next tell in which order its stores are
        // performed, and which of them each load sees.
        let before = |at: usize| self.edges[(at + count - 1) % count];
        for first in (0..count).filter(|&at| before(at).changes_location()) {
            let mut value = 0;
            for at in (first..first + count).map(|at| at % count) {
                value += i32::from(accesses[at].kind == Write);
                accesses[at].value = value;
                if self.edges[at].changes_location() {
                    break;
                }
            }
        }
        accesses
    }
}

/// An access of a cycle.
struct At {
    kind: Access,
    location: usize,
    /// The value that it stores or is to see.
    value: i32,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.edges.iter().map(|edge| edge.name()).collect();
        f.write_str(&names.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn of(text: &str) -> Test {
        Cycle::parse(text).expect(text).test()
    }

    /// The names under which the literature knows them.
    #[test]
    fn known_tests_come_out() {
        for (edges, file) in [
            (
                "PodWR Fre PodWR Fre",
                include_str!("../../../litmus/SB.litmus"),
            ),
            (
                "PodWW Rfe PodRR Fre",
                include_str!("../../../litmus/MP.litmus"),
            ),
            (
                "PodRW Rfe PodRW Rfe",
                include_str!("../../../litmus/LB.litmus"),
            ),
            (
                "PodWW Coe PodWW Wse",
                include_str!("../../../litmus/2+2W.litmus"),
            ),
            (
                "Coe PodWR Fre PodWW",
                include_str!("../../../litmus/R.litmus"),
            ),
        ] {
            let (made, known) = (of(edges), parse(file).expect(file));
            assert_eq!(made.threads, known.threads, "{edges}\n{made}\n{known}");
            assert_eq!(made.condition_text(), known.condition_text(), "{edges}");
        }
        let iriw = of("Rfe PodRR Fre Rfe PodRR Fre");
        let sizes: Vec<usize> = iriw.threads.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 2, 1], "{iriw}");
        let own = of("Rfi,PodRR,Fre,Rfi,PodRR,Fre");
        assert_eq!(
            own.condition_text(),
            "exists (0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0)"
        );
    }

    /// Each is a test of the format, and no two are the same.
    #[test]
    fn every_cycle_is_a_test_of_its_own() {
        let (two, three) = (Cycle::all(2), Cycle::all(3));
        let mut seen = std::collections::HashSet::new();
        for cycle in two.iter().chain(&three) {
            let test = cycle.test();
            assert_eq!(parse(&test.to_string()).as_ref(), Ok(&test), "{cycle}");
            assert_eq!(Cycle::parse(&cycle.to_string()).as_ref(), Ok(cycle));
            assert!(test.threads.iter().all(|thread| thread.len() <= 4));
            let same = format!("{:?} {}", test.threads, test.condition_text());
            assert!(seen.insert(same), "{cycle}");
        }
        // The six of two threads that have names of their own are among them.
        let plain = |cycle: &&Cycle| {
            let pod = |edge: &Edge| edge.is_external() || matches!(edge, Edge::Pod(..));
            cycle.edges.iter().all(pod)
        };
        assert_eq!(two.iter().filter(plain).count(), 6, "SB MP LB S R 2+2W");
    }

    #[test]
    fn what_is_no_critical_cycle_is_refused() {
        let refused = |text: &str| Cycle::parse(text).expect_err(text).to_string();
        assert!(refused("PodWR Fre PodXY Fre").starts_with("`PodXY` is no edge"));
        assert_eq!(
            refused("PodWR Rfe PodWR Fre"),
            "Rfe cannot follow PodWR in a critical cycle"
        );
        for text in ["", "Rfe Fre", "PodWR Fre", "Coe Coe", "Rfi PodRW"] {
            assert!(refused(text).contains("at least two edges"), "{text}");
        }
        assert_eq!(
            refused("PodWW Coe Coe PodWW Coe"),
            "Coe cannot follow Coe in a critical cycle"
        );
    }
}
