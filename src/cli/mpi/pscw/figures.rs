//! Fig. 4 and 5 of Christgau and Schnor, drawn from the rows of `sme mpi pscw`.

use sme_mpi::window::Synchronization;
use sme_sim::time::Time;

use super::super::caption;
use super::{Outcome, Pscw};
use crate::paper::{BLUES, ORANGES};
use crate::plot::{Axis, Chart, Curve, Marks, Scaling, Stroke, Symbol};

/// The published points of Fig. 5: targets, and microseconds at a target.
const PUBLISHED: [(Synchronization, f64, f64); 2] = [
    (Synchronization::Deferred, 13.0, 115.2),
    (Synchronization::TriggerOnly, 13.0, 25.8),
];

/// The files of the charts.
pub(super) const FILES: [&str; 2] = ["fig4.svg", "fig5.svg"];

/// Its charts, by the names of their files: Fig. 4 if a trigger-only run is among them, and Fig. 5.
pub(super) fn charts(outcomes: &[(&Pscw, Outcome)]) -> Vec<(&'static str, Chart)> {
    let mut charts = Vec::new();
    let is_trigger = |(run, _): &&(&Pscw, Outcome)| run.sync == Synchronization::TriggerOnly;
    if outcomes.iter().any(|outcome| is_trigger(&outcome)) {
        charts.push((FILES[0], calls(outcomes)));
    }
    charts.push((FILES[1], sums(outcomes)));
    charts
}

type Value = fn(&Outcome) -> Time;

/// The curve of `value` over the targets, of the runs of one class.
fn curve(
    outcomes: &[(&Pscw, Outcome)],
    sync: Synchronization,
    value: Value,
    (group, label, colour, stroke): (&str, &str, (u8, u8, u8), Stroke),
) -> Curve {
    let own = outcomes.iter().filter(|(run, _)| run.sync == sync);
    let point =
        |(run, outcome): &(&Pscw, Outcome)| (f64::from(run.targets()), value(outcome).as_us());
    let mut points: Vec<(f64, f64)> = own.map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Curve {
        group: group.into(),
        label: label.into(),
        points,
        colour,
        stroke,
    }
}

/// Fig. 4: the four calls of trigger-only synchronization.
fn calls(outcomes: &[(&Pscw, Outcome)]) -> Chart {
    let sync = Synchronization::TriggerOnly;
    let curves: [(Value, _); 4] = [
        (
            |o| o.start.median,
            ("Origin", "START", BLUES[1], Stroke::Dotted),
        ),
        (
            |o| o.complete.median,
            ("Origin", "COMPLETE", BLUES[3], Stroke::Dotted),
        ),
        (
            |o| o.post.median,
            ("Target", "POST", ORANGES[1], Stroke::Dotted),
        ),
        (
            |o| o.wait.median,
            ("Target", "WAIT", ORANGES[3], Stroke::Dotted),
        ),
    ];
    Chart {
        title: "Trigger-only synchronization of one origin with its targets".into(),
        curves: curves
            .map(|(value, style)| curve(outcomes, sync, value, style))
            .into(),
        marks: Vec::new(),
        ..chart(outcomes, 4)
    }
}

/// Fig. 5: the sums at origin and target, of each class.
fn sums(outcomes: &[(&Pscw, Outcome)]) -> Chart {
    let mut curves = Vec::new();
    let mut points = Vec::new();
    let colours = [ORANGES[3], (120, 120, 120), BLUES[3]];
    for (sync, colour) in Synchronization::ALL.into_iter().zip(colours) {
        if !outcomes.iter().any(|(run, _)| run.sync == sync) {
            continue;
        }
        let group = sync.name();
        let target = (group, "target, t_t", colour, Stroke::Dotted);
        curves.push(curve(outcomes, sync, Outcome::target, target));
        let origin = (group, "origin, t_o", colour, Stroke::Dashed);
        curves.push(curve(outcomes, sync, Outcome::origin, origin));
        let own = PUBLISHED.iter().filter(|published| published.0 == sync);
        points.extend(own.map(|&(_, x, y)| (x, y)));
    }
    let marks = match points.is_empty() {
        true => Vec::new(),
        false => vec![Marks {
            group: "Published".into(),
            label: "target, t_t".into(),
            points,
            symbol: Symbol::Diamond,
        }],
    };
    Chart {
        title: "Synchronization by messages and in shared memory".into(),
        curves,
        marks,
        ..chart(outcomes, 5)
    }
}

/// The parts that both charts share.
fn chart(outcomes: &[(&Pscw, Outcome)], number: u32) -> Chart {
    let axis = |label: &str| Axis {
        label: label.into(),
        ticks: Vec::new(),
        scaling: Scaling::Linear,
    };
    let (mut subtitle, mut lines) = (String::new(), Vec::new());
    if let Some((run, _)) = outcomes.first() {
        let machine = &run.job.machine;
        subtitle = format!(
            "{}, simulated: medians of {} rounds (cf. Christgau and Schnor, Fig. {number})",
            machine.name(),
            run.rounds
        );
        lines.push(caption(&run.job));
    }
    Chart {
        title: String::new(),
        subtitle,
        x: axis("Targets"),
        y: axis("Time [µs]"),
        curves: Vec::new(),
        marks: Vec::new(),
        caption: lines,
    }
}
