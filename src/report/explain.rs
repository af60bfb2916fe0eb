//! `--explain`: the critical path of the last episode, step by step, and what its time was spent
//! on.
//!
//! Called by [`crate::cli::barrier`]. Times are nanoseconds, exact to the picosecond; a step's
//! `at_ns` counts from the beginning of the episode.

use std::collections::BTreeMap;

use sme_sim::time::Time;

use super::row::Cell;
use super::table;
use crate::experiment::{Part, PathStep};

/// Two tables: the steps in order, and for each part its time and share.
pub fn critical_path(steps: &[PathStep]) -> String {
    let mut spent: BTreeMap<Part, u64> = BTreeMap::new();
    let mut rows = Vec::new();
    let begin = steps.first().map_or(Time::ZERO, |first| first.from);
    for step in steps {
        let duration = step.to.since(step.from);
        let of_part = spent.entry(step.part).or_default();
        *of_part = of_part.saturating_add(duration.as_ps());
        rows.push(vec![
            Cell::nanos(step.from.since(begin)),
            Cell::nanos(duration),
            Cell::Count(step.node.into()),
            Cell::text(name(step.part)),
            Cell::text(&step.what),
        ]);
    }
    let heading = ["at_ns", "duration_ns", "node", "part", "what"].map(String::from);
    let steps = table::aligned(&heading, &rows);
    format!(
        "critical path of the last episode\nwhich begins at {} ns\n\n{steps}\n{}",
        Cell::nanos(begin).to_text(),
        totals(&spent)
    )
}

fn totals(spent: &BTreeMap<Part, u64>) -> String {
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
        .map(|(&part, &ps)| row(&name(part), ps))
        .collect();
    rows.push(row("total", total));
    let heading = ["part", "duration_ns", "share_percent"].map(String::from);
    table::aligned(&heading, &rows)
}

/// The part's name in tables: `hyper-transport`.
fn name(part: Part) -> String {
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
            what: what.to_owned(),
        }
    }

    #[test]
    fn steps_and_shares_align() {
        let text = critical_path(&[
            step(90, 100, Part::Core, "arrives"),
            step(100, 120, Part::Link, "crosses to 4"),
            step(120, 130, Part::Core, "leaves"),
        ]);
        let expected = "\
critical path of the last episode
which begins at 90.000 ns

 at_ns  duration_ns  node  part  what
 0.000       10.000     3  core  arrives
10.000       20.000     3  link  crosses to 4
30.000       10.000     3  core  leaves

part   duration_ns  share_percent
core        20.000           50.0
link        20.000           50.0
total       40.000          100.0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_path_is_no_panic() {
        assert!(critical_path(&[]).ends_with("total        0.000            0.0\n"));
    }
}
