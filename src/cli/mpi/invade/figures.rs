//! Fig. 4 of Comprés et al., drawn from the rows of `sme mpi invade`.

use super::super::caption;
use super::{Invade, Outcome};
use crate::paper::BLUES;
use crate::plot::{Axis, Chart, Curve, Marks, Scaling, Stroke, Symbol};

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
    let axis = |label: &str| Axis {
        label: label.into(),
        ticks: Vec::new(),
        scaling: Scaling::Linear,
    };
    let (mut subtitle, mut lines) = (String::new(), Vec::new());
    if let Some((run, _)) = outcomes.first() {
        let name = run.job.machine.name();
        subtitle = format!("{name}, simulated (cf. Comprés et al., Fig. 4)");
        lines.push(caption(&run.job));
    }
    Chart {
        title: "Reserving cores: MPI_Comm_invade".into(),
        subtitle,
        x: axis("Cores, the program's own included"),
        y: axis("Time [µs]"),
        curves: vec![Curve {
            group: "Simulated".into(),
            label: "invade".into(),
            points,
            colour: BLUES[3],
            stroke: Stroke::Dotted,
        }],
        marks: vec![Marks {
            group: "Published".into(),
            label: "upper bound".into(),
            points: vec![PUBLISHED],
            symbol: Symbol::Diamond,
        }],
        caption: lines,
    }
}
