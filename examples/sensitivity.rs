//! How much each fitted constant of a machine decides: every one of them changed by 10 % and 20 %,
//! and what that does to the results. Writes docs/sensitivity.md.
//!
//! `cargo run --release --example sensitivity > docs/sensitivity.md`
//!
//! Constants named on the command line are the only ones changed; what comes out then is the
//! table alone, without the text around it.

use std::error::Error;
use std::sync::Arc;
use std::thread::available_parallelism;

use sme::experiment::Algorithm;
use sme::progress::{Silent, on_stderr};
use sme::validate::points::{Measurements, Point, over};
use sme::validate::simulator::Simulator;
use sme::validate::{estimators, published};
use sme_sim::machine::{Constant, Domain, Machine};

const MACHINE: &str = "sme-prototype";
/// Counted episodes of every barrier.
const EPISODES: u32 = 50;
/// Every result is the mean over these seeds.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;
/// By how much a constant is changed, in per cent.
const CHANGES: [i64; 4] = [-20, -10, 10, 20];

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

const ABOVE: &str = "\
<!-- Written by `cargo run --release --example sensitivity > docs/sensitivity.md`. -->
# Sensitivity to the fitted constants

Some constants of the prototype are published nowhere. They are *fitted*: chosen so that the
simulation meets the figures named in the second column, and no others. This table says how much
hangs on each choice. Every fitted constant is set 20 % and 10 % lower and higher than the machine
file has it, one at a time (whole cycles stay whole; a constant that is a word is set to each other
word it may be), and the row shows by how many per cent the result changes. A dot is a change of
less than half a per cent, or one that is lost in the noise.

";

const BELOW: &str = "
The columns are the figures of the same name in `reference/published.toml`: the latency of an
uncached load to the own node's memory behind the engine and to a neighbour's, and the latter as
Eq. 1 extrapolates it to an ASIC; the flag-and-phase barrier among 16 threads of one node in its
coherent memory, and behind its own engine (Fig. 5), with the prototype's loads and with an ASIC's;
the PThread barrier; the tree barrier on the first nodes of an 8×8 mesh; and the flat barrier there.

How to read it: a dot in a column that a constant is not fitted to is what one hopes for. A large
number there is a result that leans on a fit to something else.

The second row is the noise: the 95 % confidence interval of the mean of eight seeds. It is widest
where uncached loads compete for a socket's slot (Fig. 5). A change is lost in it where it is
smaller than the intervals of both means together.

`os.sleep` is not among these constants: anything from nothing to 32 µs changes the PThread barrier of
16 threads by 0.001 %, so that the figure cannot have chosen it. It is assumed.

`uncached.turnaround` shows only over a wider range than this table's: 100 ns instead of 50 make the
barrier through an ASIC (Fig. 5) longer by a tenth, beyond that figure's tolerance, and the
prototype's by 3 %. It is the former that chose it, and no more than roughly.

One row can be had from the command line as well, without this table's program:

```sh
sme sweep --set host.bridge=40ns,45ns,50ns,55ns,60ns \\
    --algorithm flat,tree --topology mesh:8x8 --nodes 8,64 --cores 1,8,16 --seed 1..8 --episodes 50
```

`cargo run --release --example sensitivity -- host.bridge` prints the row of one constant only.
";

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::builtin(MACHINE)?;
    let only: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = only.iter().find(|name| machine.constant(name).is_none()) {
        return Err(format!("{MACHINE} has no constant {name}").into());
    }
    let fitted = machine
        .fitted()
        .filter(|constant| only.is_empty() || only.contains(&constant.name()));
    let mut changes = vec![(String::new(), Vec::new(), String::new())];
    for constant in fitted {
        changes.extend(values(constant).into_iter().map(|value| {
            let name = constant.name();
            (name, constant.fitted_to.clone(), value)
        }));
    }

    let watch = on_stderr();
    watch.begin("machines", changes.len() as u64);
    let workers = available_parallelism().map_or(1, usize::from);
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
        print!("{ABOVE}{table}{BELOW}");
    } else {
        print!("{table}");
    }
    Ok(())
}

/// What a constant is changed to: each other word, or other amounts that its limits allow.
fn values(constant: &Constant) -> Vec<String> {
    match (&constant.domain, constant.amount) {
        (Domain::Quantity(limits), Some(amount)) => {
            let share = |percent: i64| (amount as f64 * (100 + percent) as f64 / 100.0).round();
            let mut amounts: Vec<u64> = CHANGES.map(|percent| share(percent) as u64).to_vec();
            amounts.dedup();
            amounts.retain(|&other| other != amount);
            let write = |amount| limits.dimension.write(amount);
            amounts.into_iter().map(write).collect()
        }
        (Domain::Words(words), _) => {
            let others = words.iter().filter(|word| **word != constant.value);
            others.map(|word| (*word).to_owned()).collect()
        }
        (Domain::Quantity(_), None) => Vec::new(),
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
    let estimator = |id| estimators::of(id).ok_or(format!("nothing simulates {id}"));
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
            figures.join(", "),
            format!("{as_it_is} → {value}"),
        ];
        cells.extend(
            row.iter()
                .zip(base)
                .map(|(now, before)| change(*now, *before)),
        );
        line(&cells);
    }
    Ok(text)
}

/// Four significant digits.
fn digits(value: f64) -> usize {
    (3 - value.abs().max(1.0).log10().floor() as i64).max(0) as usize
}

/// The change of a result in per cent; a dot where it is small, or lost in the noise.
fn change((now, half_now): (f64, f64), (before, half_before): (f64, f64)) -> String {
    let percent = (now / before - 1.0) * 100.0;
    let noise = half_now.hypot(half_before) / before * 100.0;
    if percent.abs() < noise.max(0.5) {
        "·".to_owned()
    } else if percent.abs() < 10.0 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}
