//! Fig. 8 of Comprés et al., drawn from the levels of `sme mpi simpson`: the tree, and the
//! processes over time.

use super::super::managed::chart;
use super::{Outcome, Simpson};
use crate::messages::simpson::Interval;
use crate::paper::BLUES;
use crate::plot::{Chart, Curve, Marks, Scaling, Stroke, Symbol};

/// The files of the charts.
pub(super) const TREE: &str = "fig8-tree.svg";
pub(super) const PROCESSES: &str = "fig8-processes.svg";

/// The published time of the invasive version [s].
const PUBLISHED: f64 = 2.251;

/// The processes of the world over time.
pub(super) fn processes(outcomes: &[(&Simpson, Outcome)]) -> Chart {
    let mut curves = Vec::new();
    for ((run, outcome), colour) in outcomes.iter().zip([BLUES[1], BLUES[3]]) {
        let mut points = Vec::new();
        for level in &outcome.levels {
            let processes = f64::from(level.processes);
            points.extend([level.begin, level.end].map(|at| (at.as_us() * 1e-6, processes)));
        }
        curves.push(Curve {
            group: "Simulated".into(),
            label: run.variant.to_string(),
            points,
            colour,
            stroke: Stroke::Marked,
        });
    }
    let marks = vec![Marks {
        group: "Published".into(),
        label: "invasive: the end".into(),
        points: vec![(PUBLISHED, 0.0)],
        symbol: Symbol::Diamond,
    }];
    let axes = [
        ("Time [s]", Scaling::Linear),
        ("Processes", Scaling::Linear),
    ];
    let job = outcomes.first().map(|(run, _)| &run.job);
    chart(
        job,
        ["Adaptive integration: processes", "Fig. 8"],
        axes,
        (curves, marks),
    )
}

/// The tree: its leaves from left to right, each interval above the middle of its own.
pub(super) fn tree(outcomes: &[(&Simpson, Outcome)]) -> Chart {
    let levels = outcomes
        .first()
        .map(|(_, outcome)| outcome.levels.as_slice());
    let levels = levels.unwrap_or_default();
    let intervals = || {
        let numbered = (0..).zip(levels);
        numbered.flat_map(|(number, level)| {
            let all = level.intervals.iter().zip(&level.leaves);
            all.map(move |(interval, is_leaf)| (number, interval, *is_leaf))
        })
    };
    let leaves = intervals().filter(|&(.., is_leaf)| is_leaf);
    let mut begins: Vec<f64> = leaves.map(|(_, leaf, _)| leaf.from).collect();
    begins.sort_by(f64::total_cmp);
    let place = |level: u32, interval: &Interval| {
        let before = |end| begins.partition_point(|&begin| begin < end);
        let middle = (before(interval.from) + before(interval.to) - 1) as f64 / 2.0;
        (middle + 1.0, f64::from(level))
    };
    let mut curves = Vec::new();
    let mut ends = Vec::new();
    for (level, interval, is_leaf) in intervals() {
        let own = place(level, interval);
        if is_leaf {
            ends.push(own);
            continue;
        }
        let label = match level {
            0 => "an interval and its halves",
            _ => "",
        };
        let [left, right] = interval.halves().map(|half| place(level + 1, &half));
        curves.push(Curve {
            group: "Simulated".into(),
            label: label.into(),
            points: vec![left, own, right],
            colour: BLUES[3],
            stroke: Stroke::Solid,
        });
    }
    let marks = vec![Marks {
        group: "Simulated".into(),
        label: "leaf".into(),
        points: ends,
        symbol: Symbol::Diamond,
    }];
    let axes = [
        ("Leaves, from -100 to 15", Scaling::Linear),
        ("Level", Scaling::Linear),
    ];
    let job = outcomes.first().map(|(run, _)| &run.job);
    chart(
        job,
        ["Adaptive integration: the tree", "Fig. 8"],
        axes,
        (curves, marks),
    )
}
