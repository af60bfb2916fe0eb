//! `--explain`: the critical path of the last episode, step by step, and what its time was spent
//! on; `--explain-to`: the steps as a file.
//!
//! Called by [`crate::cli::barrier`] and, of a round in the place of an episode, by
//! [`crate::cli::mpi`]. Times are nanoseconds, exact to the picosecond; a step's
//! `at_ns` counts from the beginning of the episode.

use std::collections::BTreeMap;

use sme_sim::time::Time;

use super::Format;
use super::output::Output;
use super::row::{Cell, rendered};
use super::stop::Stop;
use super::table;
use crate::experiment::{Part, PathStep};

/// Two tables of the critical path of `whole`: the steps in order, and for each part its time and
/// share.
pub fn critical_path(whole: &str, steps: &[PathStep]) -> String {
    let mut spent: Spent = BTreeMap::new();
    let mut rows = Vec::new();
    let begin = steps.first().map_or(Time::ZERO, |first| first.from);
    for step in steps {
        let duration = step.to.since(step.from);
        let of_part = spent.entry((step.part, step.queued_for)).or_default();
        *of_part = of_part.saturating_add(duration.as_ps());
        let [at, took, node, part, _, what] = cells(step, begin);
        rows.push(vec![at, took, node, part, what]);
    }
    let [at, took, node, part, _, what] = HEADING;
    let heading = [at, took, node, part, what].map(String::from);
    let steps = table::aligned(&heading, &rows);
    format!(
        "critical path of {whole}\nwhich begins at {} ns\n\n{steps}\n{}",
        Cell::nanos(begin).to_text(),
        totals(&spent)
    )
}

/// Writes the steps, one a row, to `output`, which then appears: CSV, or JSON lines.
pub fn write(mut output: Output, steps: &[PathStep], format: Format) -> Result<(), Stop> {
    let begin = steps.first().map_or(Time::ZERO, |first| first.from);
    let rows: Vec<Vec<Cell>> = (steps.iter())
        .map(|step| cells(step, begin).to_vec())
        .collect();
    output.push(&rendered(&HEADING, &rows, format))?;
    output.commit()
}

/// The flag that asks for the steps as a file.
pub const FLAG: &str = "--explain-to";

const HEADING: [&str; 6] = ["at_ns", "duration_ns", "node", "part", "queued_for", "what"];

/// The cells of a step of a path that begins at `begin`.
fn cells(step: &PathStep, begin: Time) -> [Cell; 6] {
    [
        Cell::nanos(step.from.since(begin)),
        Cell::nanos(step.to.since(step.from)),
        Cell::Count(step.node.into()),
        Cell::text(name(step.part)),
        step.queued_for.map_or(Cell::Absent, Cell::text),
        Cell::text(&step.what),
    ]
}

/// Picoseconds by part and, of queueing, by what was busy.
type Spent = BTreeMap<(Part, Option<&'static str>), u64>;

fn totals(spent: &Spent) -> String {
    let total = spent.values().fold(0u64, |sum, &ps| sum.saturating_add(ps));
    let row = |name: &str, ps: u64| {
        let tenths = (u128::from(ps) * 1_000 + u128::from(total / 2)) / u128::from(total.max(1));
        let share = Cell::Fixed {
            units: tenths as u64,
            decimals: 1,
        };
        vec![Cell::text(name), Cell::nanos(Time::from_ps(ps)), share]
    };
    let mut rows: Vec<_> = spent
        .iter()
        .map(|(&(part, busy), &ps)| match busy {
            Some(busy) => row(&format!("{} for {busy}", name(part)), ps),
            None => row(&name(part), ps),
        })
        .collect();
    rows.push(row("total", total));
    let heading = ["part", "duration_ns", "share_percent"].map(String::from);
    table::aligned(&heading, &rows)
}

/// The part's name in tables: `hyper-transport`.
pub fn name(part: Part) -> String {
    match serde_json::to_value(part) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{part:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: u64, to: u64, part: Part, what: &str) -> PathStep {
        PathStep {
            from: Time::from_ns(from),
            to: Time::from_ns(to),
            node: 3,
            part,
            queued_for: (part == Part::Queueing).then_some("I/O bridge"),
            what: what.to_owned(),
        }
    }

    #[test]
    fn steps_and_shares_align() {
        let text = critical_path(
            "the last episode",
            &[
                step(90, 100, Part::Core, "arrives"),
                step(100, 120, Part::Link, "crosses to 4"),
                step(120, 125, Part::Queueing, "waits for the bridge"),
                step(125, 130, Part::Core, "leaves"),
            ],
        );
        let expected = "\
critical path of the last episode
which begins at 90.000 ns

 at_ns  duration_ns  node  part      what
 0.000       10.000     3  core      arrives
10.000       20.000     3  link      crosses to 4
30.000        5.000     3  queueing  waits for the bridge
35.000        5.000     3  core      leaves

part                     duration_ns  share_percent
core                          15.000           37.5
link                          20.000           50.0
queueing for I/O bridge        5.000           12.5
total                         40.000          100.0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_path_is_no_panic() {
        assert!(critical_path("nothing", &[]).ends_with("total        0.000            0.0\n"));
    }
}
