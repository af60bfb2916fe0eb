//! The papers whose figures are simulated, a module each: which points a figure needs, how it is
//! read off them, and how they are simulated.
//!
//! Called by [`super::Validation`], to which each is a [`Paper`].

pub mod coherence;
pub mod mppa;
pub mod scc;
pub mod sme;

use std::collections::{BTreeMap, BTreeSet};

use sme_sim::machine::Machine;

use super::measure::{Measurements, Point, Simulate};
use super::published::Figure;
use crate::latency::budget::Operation;
use crate::messages::line::Line;
use crate::progress::Watch;

/// The papers' keys, with which the ids of their figures begin.
pub const SIMULATED: &[&str] = &["sme", "scc", "rcce", "scosco", "mppa", "coherence"];

/// A constant or a choice that was fitted to figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The constant's name in the machine file, or the choice in words.
    pub name: String,
    /// Whether it is a constant or a choice.
    pub kind: FitKind,
    /// The ids of the figures to which it was fitted.
    pub figures: Vec<String>,
}

/// The two kinds of what can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitKind {
    /// A constant of the machine file.
    Constant,
    /// A choice in an algorithm, in what a constant counts, or in how a figure is read off.
    Choice,
}

impl Fit {
    /// A constant of the machine file that was fitted to `figures`.
    pub fn constant(name: &str, figures: &[impl AsRef<str>]) -> Self {
        Self::new(name, FitKind::Constant, figures)
    }

    /// A choice that was made by `figures`.
    pub fn choice(name: &str, figures: &[impl AsRef<str>]) -> Self {
        Self::new(name, FitKind::Choice, figures)
    }

    fn new(name: &str, kind: FitKind, figures: &[impl AsRef<str>]) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            figures: figures.iter().map(|id| id.as_ref().to_owned()).collect(),
        }
    }
}

/// The published figures with which the time of `operation` over so many links is compared on this
/// machine; none if it is not a built-in machine as it is.
pub fn figures_of(machine: &Machine, operation: Operation, hops: Option<u32>) -> Vec<&'static str> {
    let as_it_is = Machine::builtin(machine.name());
    if as_it_is.is_ok_and(|builtin| builtin.hash() != machine.hash()) {
        return Vec::new();
    }
    let latencies = sme::latencies::LATENCIES.iter();
    let is_compared = latencies.filter(|(name, of, links, _)| {
        *name == machine.name() && *of == operation && Some(*links) == hops
    });
    is_compared.map(|(.., id)| *id).collect()
}

/// The machine on which figures are read off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct On {
    /// Its name.
    pub machine: String,
    /// The hash of its file.
    pub machine_hash: String,
    /// The constants overridden with `--set`, as `key=value`, blank between two.
    pub set: String,
}

impl On {
    /// `machine`.
    pub fn new(machine: &Machine) -> Self {
        let set = machine.overrides().iter();
        let set: Vec<String> = set.map(|(key, value)| format!("{key}={value}")).collect();
        Self {
            machine: machine.name().to_owned(),
            machine_hash: machine.hash().to_owned(),
            set: set.join(" "),
        }
    }
}

impl On {
    /// All of them as one, with blanks between their names and hashes; none if there is none.
    fn all(each: impl Iterator<Item = Self>) -> Option<Self> {
        let mut all: Vec<Self> = Vec::new();
        for on in each {
            if !all.contains(&on) {
                all.push(on);
            }
        }
        let joined = |of: fn(&Self) -> &str| {
            let mut parts: Vec<&str> = all.iter().map(of).collect();
            parts.dedup();
            parts.join(" ").trim().to_owned()
        };
        (!all.is_empty()).then(|| Self {
            machine: joined(|on| &on.machine),
            machine_hash: joined(|on| &on.machine_hash),
            set: joined(|on| &on.set),
        })
    }
}

/// A paper beside a machine.
pub trait Paper {
    /// The key of the paper, and its machine.
    fn on(&self) -> (&'static str, On);

    /// Constants and choices that were fitted to its figures.
    fn fitted(&self) -> Vec<Fit>;

    /// Reads those of `figures` off that are this paper's, on `workers` threads of the host.
    fn read_off(&self, figures: &[Figure], workers: usize, watch: &dyn Watch) -> ReadOff;
}

/// A paper's figures on a machine.
#[derive(Debug, Default)]
pub struct ReadOff {
    /// The finding for each figure, by its id; or why there is none.
    pub found: BTreeMap<String, Result<Finding, String>>,
    /// The machine of each figure, by its id, where it is not that of the paper.
    pub machines: BTreeMap<String, On>,
    /// The ids of figures that could be read off, and were not asked for.
    pub left_out: BTreeSet<String>,
    /// The number of points that were simulated.
    pub points: usize,
}

/// The estimator of a figure, by its id.
pub type EstimatorOf<P> = dyn Fn(&str) -> Option<Estimator<P>>;

/// The machine of a point.
pub type MachineOf<'a, P> = dyn Fn(&P) -> On + 'a;

/// A paper whose figures are read off points `P`.
pub struct Figures<'a, P> {
    /// The key of the paper, and the machine.
    pub on: (&'static str, On),
    /// The estimator of a figure, by its id.
    pub estimator: Box<EstimatorOf<P>>,
    /// The simulation of the points.
    pub simulate: &'a dyn Simulate<P>,
    /// The machine of a point, where the paper has several.
    pub machine_of: Option<Box<MachineOf<'a, P>>>,
    /// Constants of the machine and choices that were fitted.
    pub fitted: Vec<Fit>,
    /// Published inputs as the machine file has them: a figure's id, the value in its unit.
    pub inputs: Vec<(&'static str, f64)>,
    /// Whether programs are run for the figures that need it.
    pub programs: bool,
    /// Whether sizes that the paper extrapolates to are simulated for the figures that need it.
    pub large: bool,
}

impl<P: Point + 'static> Paper for Figures<'_, P> {
    fn on(&self) -> (&'static str, On) {
        self.on.clone()
    }

    fn fitted(&self) -> Vec<Fit> {
        self.fitted.clone()
    }

    fn read_off(&self, figures: &[Figure], workers: usize, watch: &dyn Watch) -> ReadOff {
        let estimators = figures
            .iter()
            .filter_map(|figure| Some((figure.id.as_str(), (self.estimator)(&figure.id)?)));
        let is_wanted = |(_, estimator): &(&str, Estimator<P>)| {
            (self.programs || !estimator.any(P::is_program))
                && (self.large || !estimator.any(P::is_large))
        };
        let (estimators, left_out): (Vec<_>, Vec<_>) = estimators.partition(is_wanted);
        let needed = estimators
            .iter()
            .flat_map(|(_, estimator)| (estimator.points)());
        let measured = Measurements::take(needed, self.simulate, workers, watch);
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|&(id, value)| (id.to_owned(), Ok(Finding::of(value))));
        let mut found: BTreeMap<_, _> = inputs.collect();
        let mut machines = BTreeMap::new();
        for (id, estimator) in estimators {
            found.insert(id.to_owned(), (estimator.find)(&measured));
            let machine_of = self.machine_of.iter();
            let on =
                machine_of.flat_map(|of| (estimator.points)().into_iter().map(move |p| of(&p)));
            if let Some(on) = On::all(on) {
                machines.insert(id.to_owned(), on);
            }
        }
        ReadOff {
            found,
            machines,
            left_out: left_out.iter().map(|(id, _)| (*id).to_owned()).collect(),
            points: measured.len(),
        }
    }
}

/// The way in which one figure is read off.
pub struct Estimator<P> {
    /// The points it looks at.
    pub points: Box<dyn Fn() -> Vec<P>>,
    /// The figure in its unit, from these points; or why there is none.
    pub find: Box<Finder<P>>,
}

/// Reads a figure off.
pub type Finder<P> = dyn Fn(&Measurements<P>) -> Result<Finding, String>;

/// Names points.
pub type Points<P> = fn() -> Vec<P>;
/// Reads a figure off that has an estimator of its own.
pub type Find<P> = fn(&Measurements<P>) -> Result<Finding, String>;

/// A figure as read off the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The simulated figure; none where only a calculation is repeated.
    pub simulated: Option<f64>,
    /// The simulated line, of a figure that is one.
    pub line: Option<Line>,
    /// 95 % confidence interval of a fitted coefficient.
    pub interval: Option<(f64, f64)>,
    /// Further conditions.
    pub conditions: Vec<Condition>,
    /// Notes for the reader of the report.
    pub notes: Vec<String>,
}

/// A condition beside the figure itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether it holds.
    pub met: bool,
    /// The condition in words, with the figures at hand.
    pub what: String,
}

impl<P: Point + 'static> Estimator<P> {
    /// With these functions.
    pub fn new(points: Points<P>, find: Find<P>) -> Self {
        Self {
            points: Box::new(points),
            find: Box::new(find),
        }
    }

    /// The latency of one point, in so many of the figure's units a microsecond.
    pub fn single(point: P, units: f64) -> Self {
        Self {
            points: Box::new(move || vec![point]),
            find: Box::new(move |measured| Ok(Finding::of(measured.microseconds(point)? * units))),
        }
    }

    /// Returns whether any of its points is such.
    pub fn any(&self, is_such: impl Fn(&P) -> bool) -> bool {
        (self.points)().iter().any(is_such)
    }
}

impl Finding {
    /// A figure alone.
    pub fn of(simulated: f64) -> Self {
        Self {
            simulated: Some(simulated),
            ..Self::default()
        }
    }

    /// A line alone.
    pub fn of_line(line: Line) -> Self {
        Self {
            line: Some(line),
            ..Self::default()
        }
    }

    fn provided(mut self, met: bool, what: impl Into<String>) -> Self {
        let what = what.into();
        self.conditions.push(Condition { met, what });
        self
    }

    fn noting(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::On;

    #[test]
    fn several_machines_are_named_once_each() {
        let on = |machine: &str| On {
            machine: machine.into(),
            machine_hash: machine.to_uppercase(),
            set: String::new(),
        };
        let all = |names: &[&str]| On::all(names.iter().map(|name| on(name)));
        assert_eq!(all(&[]), None);
        assert_eq!(all(&["a", "a"]), Some(on("a")));
        assert_eq!(all(&["a", "b", "a"]), Some(on("a b")));
    }
}
