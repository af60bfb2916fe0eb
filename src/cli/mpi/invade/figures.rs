//! Fig. 4 of Comprés et al., drawn from the rows of `sme mpi invade`.

use super::super::managed::chart as chart_of;
use super::{Invade, Outcome};
use crate::paper::BLUES;
use crate::plot::{Chart, Curve, Marks, Scaling, Stroke, Symbol};

/// The file of the chart.
pub(super) const FILE: &str = "fig4.svg";

/// The published point: cores, and microseconds of which the call takes less.
const PUBLISHED: (f64, f64) = (48.0, 30.0);

/// The time of the call by cores.
pub(super) fn chart(outcomes: &[(&Invade, Outcome)]) -> Chart {
    let mut points: Vec<(f64, f64)> = (outcomes.iter())
        .map(|(run, outcome)| (f64::from(run.cores), outcome.invades.as_us()))
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let curves = vec![Curve {
        group: "Simulated".into(),
        label: "invade".into(),
        points,
        colour: BLUES[3],
        stroke: Stroke::Dotted,
    }];
    let marks = vec![Marks {
        group: "Published".into(),
        label: "upper bound".into(),
        points: vec![PUBLISHED],
        symbol: Symbol::Diamond,
    }];
    let axes = [
        ("Cores, the program's own included", Scaling::Linear),
        ("Time [µs]", Scaling::Linear),
    ];
    let titles = ["Reserving cores: MPI_Comm_invade", "Fig. 4"];
    let job = outcomes.first().map(|(run, _)| &run.job);
    chart_of(job, titles, axes, (curves, marks))
}
