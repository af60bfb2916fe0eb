//! Finds the changes of constants with which `sme validate` gives a figure another verdict: every
//! constant that is neither published nor taken from a data sheet is set to a few other values.
//!
//! Called by [`super::main`].

use std::collections::BTreeMap;
use std::sync::Arc;

use sme::experiment::{Algorithm, VariablePlacement};
use sme::progress::{Silent, Watch};
use sme::sim::machine::{Constant, Dimension, Machine, Source, ValueDomain};
use sme::validate::Validation;
use sme::validate::deviations::Deviations;
use sme::validate::measure::{Point as _, Simulate, over};
use sme::validate::papers::Figures;
use sme::validate::papers::sme::estimator as estimator_of;
use sme::validate::papers::sme::points::{ASIC_REPEATS, Point, Variant};
use sme::validate::papers::sme::simulator::Simulator;
use sme::validate::published::{self, Figure, Kind};

use super::MACHINE;

/// Counted episodes of most barriers.
const EPISODES: u32 = 5;
/// Counted episodes of those that scatter, as many as `sme validate` has: flag-and-phase among 16
/// threads (Fig. 3 and 5) and the largest tree.
const SCATTERED_EPISODES: u32 = 100;
/// Episodes of the same with an ASIC's loads (Fig. 5), of which [`ASIC_REPEATS`] times as many are
/// counted.
const ASIC_EPISODES: u32 = 25;
/// The only seed.
const SEED: u64 = 1;
/// The values that are tried, as ratios to the machine file's.
const RATIOS: [(u64, u64); 6] = [(1, 3), (2, 3), (9, 10), (11, 10), (3, 2), (10, 3)];

/// Sizes of memories are rounded down to so many bytes.
const MEBIBYTE: u64 = 1 << 20;

/// The verdict of each figure, by its id.
type Verdicts = BTreeMap<String, &'static str>;

/// The constants of `machine` that are moved: those named in `only`, or all.
fn moved<'m>(machine: &'m Machine, only: &[String]) -> Vec<&'m Constant> {
    let uncertain = [Source::Fitted, Source::Assumed, Source::Derived];
    let constants = machine.constants().iter();
    constants
        .filter(|constant| uncertain.contains(&constant.source))
        .filter(|constant| only.is_empty() || only.contains(&constant.name()))
        .collect()
}

/// The table of the constants named in `only`, or of all; the constants with which nothing flips
/// stand below it.
pub fn table(
    machine: &Machine,
    only: &[String],
    workers: usize,
    watch: &dyn Watch,
) -> Result<String, String> {
    let figures = judged_figures()?;
    let base = verdicts(machine.clone(), &figures)?;
    compare_with_committed(&base)?;
    let constants = moved(machine, only);
    let trials: Vec<(&Constant, String)> = constants
        .iter()
        .flat_map(|constant| {
            let values = values(machine, constant).into_iter();
            values.map(|value| (*constant, value))
        })
        .collect();
    watch.begin("machines", trials.len() as u64);
    let flips = over(
        &trials,
        workers,
        |_| 1,
        |(constant, value)| {
            let flips = flips(machine, constant, value, &figures, &base);
            watch.advance(1);
            flips.map_err(|error| format!("{} {value}: {error}", constant.name()))
        },
    );
    watch.end();
    let flips = flips.into_iter().collect::<Result<Vec<_>, _>>()?;

    let mut text = format!(
        "Machine `{MACHINE}` ({}), seed {SEED}, {EPISODES} episodes; of flag-and-phase among 16 \
         threads, and of the tree on 64 nodes of 16, {SCATTERED_EPISODES}; with an ASIC's loads {}.\n\n\
         | constant | source | value | other value | figure: verdict |\n\
         | --- | --- | --- | --- | --- |\n",
        machine.hash(),
        ASIC_EPISODES * ASIC_REPEATS
    );
    let mut standing = String::new();
    for constant in constants {
        let (name, source) = (constant.name(), constant.source.name());
        let (mut stand, mut flipping) = (Vec::new(), false);
        for ((of, value), flips) in trials.iter().zip(&flips) {
            if of.name() != name {
                continue;
            }
            if flips.is_empty() {
                stand.push(value.as_str());
                continue;
            }
            flipping = true;
            let cell = flips.join("; ");
            let was = &constant.value;
            text.push_str(&format!(
                "| `{name}` | {source} | {was} | {value} | {cell} |\n"
            ));
        }
        if !flipping {
            let tried = match stand.is_empty() {
                true => "none of these values is possible".to_owned(),
                false => stand.join(", "),
            };
            standing.push_str(&format!(
                "* `{name}` ({source}, {}): {tried}\n",
                constant.value
            ));
        }
    }
    if !standing.is_empty() {
        text.push_str("\nNo verdict flips with these, at any of the values tried:\n\n");
        text.push_str(&standing);
    }
    Ok(text)
}

/// The figures of the paper that are judged by simulation, but for those of programs, which take a
/// minute each.
fn judged_figures() -> Result<Vec<Figure>, String> {
    let figures = published::built_in().map_err(|error| error.to_string())?;
    let judged = figures.into_iter().filter(|figure| {
        let estimator = estimator_of(&figure.id);
        let simulated = estimator.is_some_and(|estimator| !estimator.any(Point::is_program));
        let compared = figure.kind == Kind::Input && figure.paper() == "sme";
        figure.kind != Kind::Derived && (simulated || compared)
    });
    Ok(judged.collect())
}

/// The paper's experiments, with more episodes where barriers scatter.
struct Experiments {
    most: Simulator,
    scattered: Simulator,
    asic: Simulator,
}

impl Experiments {
    fn new(machine: Machine) -> Result<Self, String> {
        let machine = Arc::new(machine);
        let simulator = |episodes| {
            let simulator = Simulator::new(Arc::clone(&machine), episodes, SEED);
            simulator.map_err(|error| error.to_string())
        };
        Ok(Self {
            most: simulator(EPISODES)?,
            scattered: simulator(SCATTERED_EPISODES)?,
            asic: simulator(ASIC_EPISODES)?,
        })
    }
}

impl Simulate<Point> for Experiments {
    fn microseconds(&self, point: &Point) -> Result<f64, String> {
        let of_16 = |variant, placement| Point::flag_phase(variant, placement, 16);
        let scattered = [
            of_16(Variant::Prototype, VariablePlacement::Local),
            of_16(Variant::Prototype, VariablePlacement::Engine),
            Point::barrier(Algorithm::Tree, 64, 16),
        ];
        let simulator = if scattered.contains(point) {
            &self.scattered
        } else if *point == of_16(Variant::AsicLatencies, VariablePlacement::Engine) {
            &self.asic
        } else {
            &self.most
        };
        simulator.microseconds(point)
    }
}

fn verdicts(machine: Machine, figures: &[Figure]) -> Result<Verdicts, String> {
    let experiments = Experiments::new(machine)?;
    let validation = experiments.most.validation(1);
    let paper = Figures {
        machine_of: None,
        on: ("sme", validation.identity.on.clone()),
        estimator: Box::new(estimator_of),
        fitted: experiments.most.fitted(),
        inputs: experiments.most.inputs(),
        programs: false,
        large: true,
        simulate: &experiments,
    };
    let validation = Validation {
        papers: vec![Box::new(paper)],
        ..validation
    };
    // The results that a figure uses need not be among these: only its verdict counts here.
    let report = validation.compare(figures.to_vec(), &Deviations::default(), &Silent);
    let rows = report.rows.into_iter();
    Ok(rows
        .map(|row| (row.figure.id, row.verdict.name()))
        .collect())
}

/// Refuses a base that `sme validate`, with its more episodes, judges in another way.
fn compare_with_committed(base: &Verdicts) -> Result<(), String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/verdicts.txt");
    let committed = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    for line in committed.lines() {
        let (id, verdict) = line.split_once(' ').unwrap_or((line, ""));
        if base.get(id).is_some_and(|found| *found != verdict) {
            let found = base[id];
            return Err(format!(
                "{id} is '{found}' with so few episodes, and '{verdict}' in {path}"
            ));
        }
    }
    Ok(())
}

/// The values to which a constant is set: each other word, or the [`RATIOS`] that the machine can
/// have.
fn values(machine: &Machine, constant: &Constant) -> Vec<String> {
    let allowed = |value: &String| {
        let changed = machine.with(&[(constant.name(), value)]);
        *value != constant.value && changed.is_ok_and(|machine| Experiments::new(machine).is_ok())
    };
    match (&constant.domain, constant.amount) {
        (ValueDomain::Words(words), _) => {
            let words = words.iter().map(|word| (*word).to_owned());
            words.filter(allowed).collect()
        }
        (ValueDomain::Quantity(_), None) => Vec::new(),
        (ValueDomain::Quantity(limits), Some(amount)) => {
            let scaled = RATIOS.map(|(times, over)| (amount * times + over / 2) / over);
            // Threads fault where a memory is no multiple of a word.
            let scaled = scaled.map(|scaled| match limits.dimension {
                Dimension::Memory => scaled - scaled % MEBIBYTE,
                _ => scaled,
            });
            let mut amounts: Vec<u64> = scaled.into_iter().filter(|&o| o != amount).collect();
            amounts.dedup();
            let written = amounts
                .into_iter()
                .map(|other| limits.dimension.write(other));
            written.filter(allowed).collect()
        }
    }
}

/// The verdicts that are others with `value`, each with its figure and as it was.
fn flips(
    machine: &Machine,
    constant: &Constant,
    value: &str,
    figures: &[Figure],
    base: &Verdicts,
) -> Result<Vec<String>, String> {
    let changed = machine.with(&[(constant.name(), value)]);
    let now = verdicts(changed.map_err(|error| error.to_string())?, figures)?;
    let flipped = base.iter().filter(|(id, was)| now.get(*id) != Some(*was));
    Ok(flipped
        .map(|(id, was)| {
            let is = now.get(id).copied().unwrap_or_default();
            format!("`{id}`: {was} → {is}")
        })
        .collect())
}
