//! The chart of latency over offered load.
//!
//! Called by [`crate::cli::network`] for `--plot`.

use super::{LOAD_UNITS, Load, LoadCurve, NetworkPlan};
use crate::plot::{Axis, Chart, Curve, Marks, Scaling, Stroke, Symbol};

/// The chart ends at so many times the highest zero-load latency: beyond saturation latencies have
/// no end.
const CEILING: f64 = 6.0;

/// Digits behind the point of a load.
const DECIMALS: u32 = LOAD_UNITS.ilog10();

/// A colour for each pattern, in the order in which they were given.
const COLOURS: [(u8, u8, u8); 5] = [
    (8, 81, 156),
    (203, 85, 20),
    (35, 121, 67),
    (122, 60, 150),
    (110, 110, 110),
];

/// Latency over load of every curve: the mean, the 99th percentile, and on the mean a mark where it
/// saturates.
pub fn chart(plan: &NetworkPlan, curves: &[LoadCurve]) -> Chart {
    let idle = curves.iter().map(|curve| curve.zero_load_latency.as_ns());
    let ceiling = CEILING * idle.fold(0.0, f64::max);
    let mut drawn = Vec::new();
    let mut saturation = Vec::new();
    for (curve, &colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let group = curve.pattern.name();
        let line = |label: &str, points, stroke| Curve {
            group: group.to_owned(),
            label: label.to_owned(),
            points,
            colour,
            stroke,
        };
        let points = curve.sorted();
        let mean = points
            .iter()
            .map(|p| (p.load.fraction(), p.outcome.latencies.mean.as_ns()));
        let tail = points
            .iter()
            .map(|p| (p.load.fraction(), p.outcome.latencies.p99.as_ns()));
        let bound = [(curve.bound, 0.0), (curve.bound, ceiling)];
        drawn.push(line(
            "bound of the busiest link",
            bound.to_vec(),
            Stroke::Dashed,
        ));
        drawn.push(line(
            "99th percentile",
            below(ceiling, tail),
            Stroke::Dashed,
        ));
        // Dots are measured points; the line goes on to the ceiling without one.
        let measured = mean.clone().take_while(|&(_, latency)| latency <= ceiling);
        drawn.push(line("mean", measured.collect(), Stroke::Dotted));
        drawn.push(line("", below(ceiling, mean), Stroke::Solid));
        if let Some(load) = curve.saturation() {
            let latency = curve.mean_at(load);
            saturation.extend(latency.map(|latency| (load, latency.min(ceiling))));
        }
    }
    let ticks = ticks(plan.loads.iter().copied().max().unwrap_or(Load(0)));
    let last = ticks.last().copied().unwrap_or(1.0);
    // Bounds that no load reaches are no part of the picture.
    drawn.retain(|curve| curve.points.iter().all(|&(load, _)| load <= last));
    // Where nothing saturates the legend has no symbol for it.
    let marks = (!saturation.is_empty()).then(|| Marks {
        group: "saturation".to_owned(),
        label: "saturation load".to_owned(),
        points: saturation,
        symbol: Symbol::Diamond,
    });
    let phases = &plan.phases;
    Chart {
        title: "Latency over offered load".to_owned(),
        subtitle: format!(
            "{}, {}, posted writes of 64 bits",
            plan.machine.name(),
            plan.topology
        ),
        x: axis(
            "offered load [fraction of the capacity under uniform traffic]",
            ticks,
        ),
        y: axis("latency [ns]", Vec::new()),
        curves: drawn,
        marks: marks.into_iter().collect(),
        caption: vec![format!(
            "Warm-up {} µs, measured {} µs, drained for {} µs at most; seed {}.",
            phases.warmup.as_us(),
            phases.measure.as_us(),
            phases.drain.as_us(),
            plan.seed
        )],
    }
}

fn axis(label: &str, ticks: Vec<f64>) -> Axis {
    Axis {
        label: label.to_owned(),
        ticks,
        scaling: Scaling::Linear,
    }
}

/// Ten round loads at most, the last of them the first that is not below `largest`.
fn ticks(largest: Load) -> Vec<f64> {
    let steps = (0..=DECIMALS).flat_map(|decade| [1, 2, 5].map(|digit| digit * 10u32.pow(decade)));
    let step = steps
        .into_iter()
        .find(|step| largest.0.div_ceil(*step) <= 10)
        .unwrap_or(LOAD_UNITS);
    let ticks = 0..=largest.0.div_ceil(step);
    ticks.map(|tick| Load(tick * step).fraction()).collect()
}

/// A curve as far as it is below `ceiling`, its last piece cut there.
fn below(ceiling: f64, points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (load, latency) in points {
        if latency <= ceiling {
            kept.push((load, latency));
            continue;
        }
        if let Some(&(from, last)) = kept.last() {
            let part = (ceiling - last) / (latency - last);
            kept.push((from + (load - from) * part, ceiling));
        }
        break;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_the_largest_load() {
        let last = |load| ticks(Load(load)).last().copied();
        assert_eq!(last(10_000), Some(1.0));
        assert_eq!(last(9_500), Some(1.0));
        assert_eq!(last(8_000), Some(0.8));
        assert_eq!(last(3_100), Some(0.35));
        assert_eq!(last(10), Some(0.001));
        assert_eq!(ticks(Load(3_000)), [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]);
    }

    #[test]
    fn a_curve_ends_at_the_ceiling() {
        let points = [(0.1, 10.0), (0.5, 20.0), (0.6, 220.0), (0.7, 30.0)];
        let kept = below(120.0, points.into_iter());
        assert_eq!(kept, [(0.1, 10.0), (0.5, 20.0), (0.55, 120.0)]);
        assert_eq!(below(5.0, points.into_iter()), []);
    }
}
