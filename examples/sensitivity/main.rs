//! The weight of each fitted or assumed constant of a machine: every one of them changed, and what
//! that does to the results; where it makes a verdict flip ([`flips`]); and what the trees decide
//! that no paper publishes. Writes docs/sensitivity.md.
//!
//! `cargo run --release --example sensitivity > docs/sensitivity.md`
//!
//! Constants named on the command line are the only ones changed; what comes out then is the first
//! table alone, without the text around it. With `flips` as the first word it is the table of
//! verdicts alone, of the constants named behind it or of all; with `trees`, that of the trees
//! alone.

mod flips;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;

use sme::barrier::{Mapping, TreeShape};
use sme::experiment::Algorithm;
use sme::experiment::{DEFAULT_MAPPING, DEFAULT_TREE_SHAPE};
use sme::progress::{Silent, on_stderr};
use sme::report::stop::exit_code;
use sme::sim::machine::{Constant, Machine, Source, ValueDomain};
use sme::validate::deviations::Deviations;
use sme::validate::measure::{Measurements, over};
use sme::validate::papers::Finding;
use sme::validate::papers::sme::Distance;
use sme::validate::papers::sme::estimator as estimator_of;
use sme::validate::papers::sme::points::Point;
use sme::validate::papers::sme::simulator::Simulator;
use sme::validate::published;
use sme::validate::verdict::{Row, Verdict};

const MACHINE: &str = "sme-prototype";
/// Counted episodes of every barrier.
const EPISODES: u32 = 50;
/// Every result is the mean over these seeds.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;
/// By how much a fitted constant is changed, in per cent.
const FITTED_CHANGES: &[i64] = &[-20, -10, 10, 20];
/// By how much an assumed constant is, of which less is known.
const ASSUMED_CHANGES: &[i64] = &[100];

/// The published figures that are looked at, and their column.
const FIGURES: [(&str, &str); 10] = [
    ("sme.load_latency.local_engine", "load, own node"),
    ("sme.load_latency.remote", "load, neighbour"),
    ("sme.fig4.asic_remote_load", "load, ASIC (Eq. 1)"),
    ("sme.fig3.local.16_threads", "Fig. 3, local"),
    ("sme.fig3.pthread.16_threads", "Fig. 3, PThread"),
    ("sme.fig5.fpga.16_threads", "Fig. 5, FPGA"),
    ("sme.fig5.asic.16_threads", "Fig. 5, ASIC"),
    ("sme.fig8.tree.8x8", "tree 8×8"),
    ("sme.fig8.tree.64x1", "tree 64×1"),
    ("sme.fig8.tree.64x16", "tree 64×16"),
];
/// The last column, which no single published figure states.
const FLAT: &str = "flat 64×16";
const COLUMNS: usize = FIGURES.len() + 1;

/// Counted episodes of the trees of the second table, with the first seed alone: their latencies
/// scatter by half a per cent.
const TREE_EPISODES: u32 = 20;
/// The figures of its columns, and what they are called there.
const TREE_FIGURES: [(&str, &str); 6] = [
    ("sme.fig8.tree.8x8", "tree 8×8 [us]"),
    ("sme.fig8.tree.64x1", "tree 64×1 [us]"),
    ("sme.fig8.tree.64x16", "tree 64×16 [us]"),
    (
        "sme.fig9.r2_logarithmic",
        "R² of the logarithm, the smallest",
    ),
    ("sme.fig9.r2_linear", "R² of the line, the mean"),
    ("sme.eq2.a0", "a0 [us]"),
];
/// The figure that the trees were chosen by, and others that hang on the choice.
const LEANING: [&str; 6] = [
    "sme.fig8.tree.64x1",
    "sme.fig8.tree.64x16",
    "sme.fig8.tree.64x16.abstract",
    "sme.fig9.r2_logarithmic",
    "sme.eq2.surface",
    "sme.eq2.a0",
];

const ABOVE: &str = "\
<!-- Written by `cargo run --release --example sensitivity > docs/sensitivity.md`. -->
# Sensitivity to the fitted and the assumed constants

Some constants of the prototype are published nowhere. They are *fitted*: chosen so that the
simulation meets the figures named in the second column, and no others. This table says how much
hangs on each choice. Every fitted constant is set 20 % and 10 % lower and higher than the machine
file has it, one at a time (whole cycles stay whole; a constant that is a word is set to each other
word it may be), and the row shows by how many per cent the result changes. A dot is a change of
less than half a per cent, or one that is lost in the noise.

Other constants are *assumed*: plausible values, chosen by no figure. They are doubled.

";

const BELOW: &str = "
The columns are the figures of the same name in `reference/published.toml`: the latency of an
uncached load to the own node's memory behind the engine and to a neighbour's, and the latter as
Eq. 1 extrapolates it to an ASIC; the flag-and-phase barrier among 16 threads of one node in its
coherent memory, and behind its own engine (Fig. 5), with the prototype's loads and with an ASIC's;
the PThread barrier; the tree barrier on the first nodes of an 8×8 mesh; and the flat barrier there.

The barrier with an ASIC's loads is given a published result as an input: its loopback loads take the
534 ns of `sme.fig4.asic_remote_load` for any values of the constants. So those of engine and host link
hardly show in that column.

How to read it: a dot in a column that a constant is not fitted to is what one hopes for. A large
number there is a result that leans on a fit to something else, or on an assumption.

The second row is the noise: the 95 % confidence interval of the mean of eight seeds. It is widest
where uncached loads compete for a socket's slot (Fig. 5, FPGA; with an ASIC's loads 20 times as many
barriers are run). A change is lost in it where it is smaller than the intervals of both means together.

`os.sleep` is not among these constants: anything from nothing to 32 µs changes the PThread barrier of
16 threads by 0.001 %, so that the figure cannot have chosen it. It is assumed.

`uncached.turnaround` shows in the barrier through an ASIC (Fig. 5), and little. 100 ns instead of 50
make that longer by a tenth, beyond its figure's tolerance, and the prototype's by 3 %. It is the former
that chose it, and no more than roughly.

One row can be had from the command line as well, without this table's program:

```sh
sme sweep --set host.bridge=40ns,45ns,50ns,55ns,60ns \\
    --algorithm flat,tree --topology mesh:8x8 --nodes 8,64 --cores 1,8,16 --seed 1..8 --episodes 50
```

`cargo run --release --example sensitivity -- host.bridge` prints the row of one constant only.
";

const FLIPS: &str = "
## Where a verdict flips

The changes with which `sme validate` gives some figure another verdict. Every constant that is fitted,
assumed, or derived from others is set to 1/3, 2/3, 9/10, 11/10, 3/2 and 10/3 of its value, one at a time,
as far as the machine can have that; a constant that is a word is set to each other word. A row is one such
value, with all verdicts that are others than with the machine file's. Figures of programs (`sme.fft`) are
left out, as they take minutes.

`sme.fig8.tree.64x16` is half a per cent beyond its tolerance, and other seeds move it by as much: that
it flips says little. A verdict that flips from `deviates` is no reason to choose that value, as other
figures may then miss.

";

const FLIPS_BELOW: &str = "
`cargo run --release --example sensitivity -- flips host.bridge` prints that of one constant only.
";

const CHOICES: &str = "
## Sensitivity to the choices

Which shape the tree has, and which node each of its masters stands on, is published no more than
those constants. Both were chosen by one figure, `sme.fig8.tree.64x1`. This is every pair of
`--tree-shape` and `--mapping`; the defaults are in bold. The distance is that of `sme.eq2.surface`:
the surface fitted to the simulation, from Eq. 2 as published.

";

const CHOICES_BELOW: &str = "
The first of these figures made the choice. The verdicts of the others lean on it: with another pair some
would deviate, and some that deviate would not. Nor is the default the pair that comes closest to the
11 µs, or to Eq. 2: `groups` with `rows` or `sub-mesh` does, in which the root is sent more notifications
than the 8 of Sec. V-B.
";

fn main() -> ExitCode {
    exit_code(document())
}

fn document() -> Result<(), Box<dyn Error>> {
    let machine = Machine::builtin(MACHINE)?;
    let only: Vec<String> = std::env::args().skip(1).collect();
    if only == ["trees"] {
        print!("{}", choices(machine)?);
        return Ok(());
    }
    let workers = available_parallelism().map_or(1, usize::from);
    let watch = on_stderr();
    if let Some(("flips", names)) = only
        .split_first()
        .map(|(word, names)| (word.as_str(), names))
    {
        known(&machine, names)?;
        print!(
            "{}",
            flips::table(&machine, names, workers, watch.as_ref())?
        );
        return Ok(());
    }
    known(&machine, &only)?;
    let mut changes = vec![(String::new(), Vec::new(), String::new())];
    for (source, by) in [
        (Source::Fitted, FITTED_CHANGES),
        (Source::Assumed, ASSUMED_CHANGES),
    ] {
        let constants = machine.constants().iter();
        for constant in constants
            .filter(|constant| constant.source == source)
            .filter(|constant| only.is_empty() || only.contains(&constant.name()))
        {
            let values = values(&machine, constant, by).into_iter();
            changes.extend(values.map(|value| {
                let name = constant.name();
                (name, constant.fitted_to.clone(), value)
            }));
        }
    }

    watch.begin("machines", changes.len() as u64);
    let rows = over(
        &changes,
        workers,
        |_| 1,
        |(name, _, value)| {
            let row = if name.is_empty() {
                results(machine.clone())
            } else {
                let changed = machine.with(&[(name, value)]);
                changed.map_err(|e| e.to_string()).and_then(results)
            };
            watch.advance(1);
            row.map_err(|error| format!("{name} {value}: {error}"))
        },
    );
    watch.end();

    let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
    let table = table(&machine, &changes, &rows)?;
    if only.is_empty() {
        let flips = flips::table(&machine, &[], workers, watch.as_ref())?;
        let choices = choices(machine)?;
        print!("{ABOVE}{table}{BELOW}{FLIPS}{flips}{FLIPS_BELOW}{CHOICES}{choices}");
    } else {
        print!("{table}");
    }
    Ok(())
}

/// Refuses a name that is no constant of `machine`.
fn known(machine: &Machine, names: &[String]) -> Result<(), String> {
    match names.iter().find(|name| machine.constant(name).is_none()) {
        Some(name) => Err(format!("{MACHINE} has no constant {name}")),
        None => Ok(()),
    }
}

/// The values to which a constant is changed: each other word, or amounts that are other `by` per
/// cent and that the machine can have.
fn values(machine: &Machine, constant: &Constant, by: &[i64]) -> Vec<String> {
    match (&constant.domain, constant.amount) {
        (ValueDomain::Quantity(limits), Some(amount)) => {
            let share = |percent: i64| (amount as f64 * (100 + percent) as f64 / 100.0).round();
            let mut amounts: Vec<u64> = by.iter().map(|&percent| share(percent) as u64).collect();
            amounts.dedup();
            amounts.retain(|&other| other != amount);
            let written = amounts
                .into_iter()
                .map(|other| limits.dimension.write(other));
            let allowed = |value: &String| machine.with(&[(constant.name(), value)]).is_ok();
            written.filter(allowed).collect()
        }
        (ValueDomain::Words(words), _) => {
            let others = words.iter().filter(|word| **word != constant.value);
            others.map(|word| (*word).to_owned()).collect()
        }
        (ValueDomain::Quantity(_), None) => Vec::new(),
    }
}

/// The results of a machine, in the order of the columns: the mean over the seeds, and half the
/// width of its 95 % confidence interval (Student's t, 7 degrees of freedom).
fn results(machine: Machine) -> Result<[(f64, f64); COLUMNS], String> {
    let machine = Arc::new(machine);
    let runs = SEEDS.map(|seed| one_seed(Arc::clone(&machine), seed));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let count = runs.len() as f64;
    Ok(std::array::from_fn(|column| {
        let mean = runs.iter().map(|run| run[column]).sum::<f64>() / count;
        let squares = runs.iter().map(|run| (run[column] - mean).powi(2));
        let variance = squares.sum::<f64>() / (count - 1.0);
        (mean, 2.365 * (variance / count).sqrt())
    }))
}

fn one_seed(machine: Arc<Machine>, seed: u64) -> Result<[f64; COLUMNS], String> {
    let simulator = Simulator::new(machine, EPISODES, seed).map_err(|error| error.to_string())?;
    let estimator = |id| estimator_of(id).ok_or(format!("nothing simulates {id}"));
    let flat = Point::barrier(Algorithm::Flat, 64, 16);
    let mut points = vec![flat];
    for (id, _) in FIGURES {
        points.extend((estimator(id)?.points)());
    }
    let measured = Measurements::take(points, &simulator, 1, &Silent);
    let mut results = [measured.microseconds(flat)?; COLUMNS];
    for (result, (id, _)) in results.iter_mut().zip(FIGURES) {
        let found = (estimator(id)?.find)(&measured)?.simulated;
        *result = found.ok_or(format!("{id} comes out as no number"))?;
    }
    Ok(results)
}

fn table(
    machine: &Machine,
    changes: &[(String, Vec<String>, String)],
    rows: &[[(f64, f64); COLUMNS]],
) -> Result<String, Box<dyn Error>> {
    let figures = published::built_in()?;
    let unit = |id: &str| {
        let figure = figures.iter().find(|figure| figure.id == id);
        figure.map_or("", |figure| figure.unit.as_str())
    };
    let mut heads = vec![
        "constant".to_owned(),
        "fitted to".to_owned(),
        "value".to_owned(),
    ];
    heads.extend(FIGURES.map(|(id, column)| format!("{column} [{}]", unit(id))));
    heads.push(format!("{FLAT} [us]"));
    let mut text = format!(
        "Machine `{MACHINE}` ({}), {EPISODES} episodes, mean over seeds {} to {}.\n\n",
        machine.hash(),
        SEEDS.start(),
        SEEDS.end()
    );
    let mut line = |cells: &[String]| text.push_str(&format!("| {} |\n", cells.join(" | ")));
    line(&heads);
    let rule = heads
        .iter()
        .enumerate()
        .map(|(column, _)| if column < 3 { "---" } else { "---:" });
    line(&rule.map(str::to_owned).collect::<Vec<_>>());
    let mut without = Vec::new();
    let Some((base, changed)) = rows.split_first() else {
        return Ok(text);
    };
    let mut cells = vec!["*as it is*".to_owned(), String::new(), String::new()];
    cells.extend(base.map(|(result, _)| format!("{result:.*}", digits(result))));
    line(&cells);
    let mut cells = vec!["*95 % interval*".to_owned(), String::new(), String::new()];
    cells.extend(base.map(|(result, half)| format!("± {:.1} %", half / result * 100.0)));
    line(&cells);
    for ((name, figures, value), row) in changes[1..].iter().zip(changed) {
        let as_it_is = machine
            .constant(name)
            .map_or("", |constant| &constant.value);
        let mut cells = vec![
            format!("`{name}`"),
            match figures.is_empty() {
                true => "assumed".to_owned(),
                false => figures.join(", "),
            },
            format!("{as_it_is} → {value}"),
        ];
        let changes = row.iter().zip(base);
        let changes: Vec<String> = changes.map(|(now, before)| change(*now, *before)).collect();
        let unfitted = figures.is_empty();
        if unfitted && changes.iter().all(|change| change == NO_CHANGE) {
            without.push(format!("`{name}` {value}"));
            continue;
        }
        cells.extend(changes);
        line(&cells);
    }
    if !without.is_empty() {
        text.push_str(&format!(
            "\nAssumed, and without an effect beyond half a per cent on any of these with the value that is shown: {}.\n",
            without.join(", ")
        ));
    }
    Ok(text)
}

/// Four significant digits.
fn digits(value: f64) -> usize {
    (3 - value.abs().max(1.0).log10().floor() as i64).max(0) as usize
}

/// A change that is none.
const NO_CHANGE: &str = "·";

/// The change of a result in per cent; a dot where it is small, or lost in the noise.
fn change((now, half_now): (f64, f64), (before, half_before): (f64, f64)) -> String {
    let percent = (now / before - 1.0) * 100.0;
    let noise = half_now.hypot(half_before) / before * 100.0;
    if percent.abs() < noise.max(0.5) {
        NO_CHANGE.to_owned()
    } else if percent.abs() < 10.0 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// What comes out with one kind of tree.
struct Trees {
    shape: TreeShape,
    mapping: Mapping,
    /// In the order of [`TREE_FIGURES`].
    results: Vec<f64>,
    distance: Distance,
    /// Which of [`LEANING`] are met.
    met: Vec<&'static str>,
}

impl Trees {
    fn measured(machine: Arc<Machine>, pair: (TreeShape, Mapping)) -> Result<Self, String> {
        let simulator = Simulator::new(machine, TREE_EPISODES, *SEEDS.start());
        let simulator = simulator.map_err(|error| error.to_string())?;
        let simulator = simulator.with_trees(pair.0, pair.1);
        let estimator = |id: &str| estimator_of(id).ok_or(format!("nothing simulates {id}"));
        let ids = TREE_FIGURES.map(|(id, _)| id).into_iter().chain(LEANING);
        let mut points = Vec::new();
        for id in ids {
            points.extend((estimator(id)?.points)());
        }
        let measured = Measurements::take(points, &simulator, 1, &Silent);
        let find = |id: &str| -> Result<Finding, String> { (estimator(id)?.find)(&measured) };
        let results = TREE_FIGURES.map(|(id, _)| {
            let found = find(id)?.simulated;
            found.ok_or(format!("{id} comes out as no number"))
        });
        let figures = published::built_in().map_err(|error| error.to_string())?;
        let meets = |id: &&str| {
            let figure = figures.iter().find(|figure| figure.id == *id);
            figure.is_some_and(|figure| {
                let found = Some(find(id));
                let row = Row::new(figure.clone(), found, &[], &Deviations::default());
                row.verdict == Verdict::Reproduced
            })
        };
        Ok(Self {
            shape: pair.0,
            mapping: pair.1,
            results: results.into_iter().collect::<Result<_, _>>()?,
            distance: Distance::measured(&measured)?,
            met: LEANING.into_iter().filter(meets).collect(),
        })
    }

    fn is_default(&self) -> bool {
        (self.shape, self.mapping) == (DEFAULT_TREE_SHAPE, DEFAULT_MAPPING)
    }

    fn line(&self) -> String {
        let bold = if self.is_default() { "**" } else { "" };
        let name = format!(
            "{bold}`{}`{bold} | {bold}`{}`{bold}",
            self.shape, self.mapping
        );
        let results = self.results.iter();
        let results = results.map(|&result| format!("{result:.*}", digits(result)));
        let Distance { largest, mean, .. } = self.distance;
        let percent = [largest, mean].map(|share| format!("{:.1} %", share * 100.0));
        let cells: Vec<String> = results.chain(percent).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    }
}

/// The second table, and which trees meet what.
fn choices(machine: Machine) -> Result<String, String> {
    let pairs: Vec<_> = TreeShape::ALL
        .iter()
        .flat_map(|&shape| Mapping::ALL.iter().map(move |&mapping| (shape, mapping)))
        .collect();
    let hash = machine.hash().to_owned();
    let machine = Arc::new(machine);
    let workers = available_parallelism().map_or(1, usize::from);
    let measured = over(
        &pairs,
        workers,
        |_| 1,
        |&pair| Trees::measured(Arc::clone(&machine), pair),
    );
    let trees = measured.into_iter().collect::<Result<Vec<_>, _>>()?;

    let mut text = format!(
        "Machine `{MACHINE}` ({hash}), {TREE_EPISODES} episodes, seed {}.\n\n",
        SEEDS.start()
    );
    let heads = TREE_FIGURES.map(|(_, head)| head).join(" | ");
    text.push_str(&format!(
        "| shape | mapping | {heads} | distance, the largest | distance, the mean |\n"
    ));
    let rules = " ---: |".repeat(TREE_FIGURES.len() + 2);
    text.push_str(&format!("| --- | --- |{rules}\n"));
    for tree in &trees {
        text.push_str(&tree.line());
    }
    text.push_str("\nOf these pairs\n\n");
    let meeting = LEANING.map(|id| {
        let meet = trees.iter().filter(|tree| tree.met.contains(&id));
        let names: Vec<_> = meet
            .map(|tree| format!("`{}` with `{}`", tree.shape, tree.mapping))
            .collect();
        let which = match names.len() {
            0 => "none".to_owned(),
            _ => names.join(", "),
        };
        format!(
            "* {} of {} meet `{id}`: {which}\n",
            names.len(),
            trees.len()
        )
    });
    text.push_str(&meeting.concat());
    text.push_str(CHOICES_BELOW);
    Ok(text)
}
