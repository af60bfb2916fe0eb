//! Throughput, latency and message rate of a ping-pong over the sizes of its messages, as Ho et al.
//! draw them (Fig. 5 and 6): a curve for each call and mode, and marks where another one becomes
//! the best.

use super::super::caption;
use super::{Outcome, PingPong, fits, name, way};
use crate::paper::{BLUES, ORANGES};
use crate::plot::{Axis, Chart, Curve, Marks, Stroke, Symbol};

/// The files of the charts.
pub(super) const FILES: [&str; 3] = ["throughput.svg", "latency.svg", "rate.svg"];

/// Colours of the curves, in their order.
const COLOURS: [(u8, u8, u8); 8] = [
    BLUES[3],
    ORANGES[3],
    (60, 140, 70),
    (130, 80, 160),
    BLUES[1],
    ORANGES[1],
    (150, 190, 150),
    (120, 120, 120),
];

/// A value of a point that a chart shows, and the words for it.
struct Shown {
    title: &'static str,
    label: &'static str,
    value: fn(&PingPong, &Outcome) -> f64,
    more_is_better: bool,
    /// Whether Table IV says what it is.
    is_published: bool,
}

const SHOWN: [Shown; 3] = [
    Shown {
        title: "Throughput of a ping-pong",
        label: "Throughput [MB/s]",
        value: |run, outcome| run.bandwidth_mb_per_s(outcome),
        more_is_better: true,
        is_published: true,
    },
    Shown {
        title: "Latency of a ping-pong",
        label: "Half of a round [µs]",
        value: |_, outcome| outcome.latency.as_us(),
        more_is_better: false,
        is_published: false,
    },
    Shown {
        title: "Messages that the sender gets rid of",
        label: "Messages a second",
        value: |_, outcome| 1e6 / outcome.sends.0.as_us(),
        more_is_better: true,
        is_published: false,
    },
];

/// The charts, by the names of their files.
pub(super) fn charts(outcomes: &[(&PingPong, Outcome)]) -> Vec<(&'static str, Chart)> {
    let shown = SHOWN.iter().map(|shown| chart(outcomes, shown));
    FILES.into_iter().zip(shown).collect()
}

fn chart(outcomes: &[(&PingPong, Outcome)], shown: &Shown) -> Chart {
    let firsts = fits::firsts(outcomes);
    let mut curves: Vec<Curve> = (firsts.iter().zip(COLOURS.iter().cycle()))
        .map(|(first, &colour)| {
            let own = outcomes
                .iter()
                .filter(|(run, _)| fits::is_one_sweep(first, run));
            let point = |(run, outcome): &(&PingPong, Outcome)| {
                (run.size_bytes as f64, (shown.value)(run, outcome))
            };
            let mut points: Vec<(f64, f64)> = own.map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Curve {
                group: first.call.name().into(),
                label: way(first.way).into(),
                points,
                colour,
                stroke: Stroke::Dotted,
            }
        })
        .collect();
    let crossovers = crossovers(&curves, shown.more_is_better);
    if shown.is_published {
        curves.extend(published(outcomes));
    }
    let marks = match crossovers.is_empty() {
        true => Vec::new(),
        false => vec![Marks {
            group: "Simulated".into(),
            label: "another is the best".into(),
            points: crossovers,
            symbol: Symbol::Diamond,
        }],
    };
    let (mut subtitle, mut lines) = (String::new(), Vec::new());
    if let Some((run, _)) = outcomes.first() {
        let machine = &run.job.machine;
        let ends = [run.first, run.partner].map(|rank| name(&run.job, rank));
        subtitle = format!(
            "{}, simulated: {} and {}, means of {} rounds",
            machine.name(),
            ends[0],
            ends[1],
            run.rounds
        );
        lines.push(caption(&run.job));
    }
    Chart {
        title: shown.title.into(),
        subtitle,
        x: Axis::decades("Message [B]", &curves, |point| point.0),
        y: Axis::decades(shown.label, &curves, |point| point.1),
        curves,
        marks,
        caption: lines,
    }
}

/// The throughput by the lines of Table IV that were measured as a sweep was.
fn published(outcomes: &[(&PingPong, Outcome)]) -> Vec<Curve> {
    let lines = fits::published(outcomes).into_iter();
    let curves = lines.map(|(sweep, line, megahertz)| {
        let points = sweep.points.iter();
        Curve {
            group: "Table IV".into(),
            label: sweep.of.call.name().into(),
            points: points
                .map(|&(bytes, _)| (bytes, line.throughput(bytes) * megahertz))
                .collect(),
            colour: (120, 120, 120),
            stroke: Stroke::Dashed,
        }
    });
    curves.collect()
}

/// Where the best of the curves at one size is another one than at the next: where both cross, as
/// straight lines of logarithms.
fn crossovers(curves: &[Curve], more_is_better: bool) -> Vec<(f64, f64)> {
    let at = |curve: &Curve, place: usize| curve.points.get(place).copied();
    let best = |place: usize| {
        let all = curves.iter().filter(|curve| at(curve, place).is_some());
        all.min_by(|one, other| {
            let [one, other] =
                [one, other].map(|curve| at(curve, place).map_or(0.0, |point| point.1));
            match more_is_better {
                true => other.total_cmp(&one),
                false => one.total_cmp(&other),
            }
        })
    };
    let sizes = curves.first().map_or(0, |curve| curve.points.len());
    let mut crossovers = Vec::new();
    for place in 1..sizes {
        let (Some(before), Some(after)) = (best(place - 1), best(place)) else {
            continue;
        };
        if (&before.group, &before.label) == (&after.group, &after.label) {
            continue;
        }
        let logarithms = |curve: &Curve, place| {
            let (x, y) = at(curve, place)?;
            Some((f64::ln(x), f64::ln(y)))
        };
        let [one, other] = [before, after]
            .map(|curve| Some((logarithms(curve, place - 1)?, logarithms(curve, place)?)));
        let (Some(((x0, a0), (x1, a1))), Some(((_, b0), (_, b1)))) = (one, other) else {
            continue;
        };
        // They differ at both sizes, with different signs.
        let share = (a0 - b0) / ((a0 - b0) - (a1 - b1));
        if share.is_finite() {
            let (x, y) = (x0 + share * (x1 - x0), a0 + share * (a1 - a0));
            crossovers.push((x.exp(), y.exp()));
        }
    }
    crossovers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, values: [f64; 3]) -> Curve {
        Curve {
            group: "send".into(),
            label: label.into(),
            points: [1.0, 10.0, 100.0].into_iter().zip(values).collect(),
            colour: COLOURS[0],
            stroke: Stroke::Dotted,
        }
    }

    #[test]
    fn curves_cross_between_the_sizes_where_the_best_changes() {
        let curves = [
            curve("flat", [10.0, 10.0, 10.0]),
            curve("steep", [1.0, 10.0_f64.sqrt() * 10.0, 1e4]),
        ];
        let found = crossovers(&curves, false);
        assert_eq!(found.len(), 1);
        let (x, y) = found[0];
        assert!((x - 10_f64.powf(2.0 / 3.0)).abs() < 1e-9 && (y - 10.0).abs() < 1e-9);
        // If more is better it is the other one that is overtaken there.
        assert_eq!(crossovers(&curves, true).len(), 1);
        assert_eq!(crossovers(&curves[..1], true), []);
    }
}
