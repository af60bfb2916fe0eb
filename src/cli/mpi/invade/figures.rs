//! Fig. 4 of Comprés et al., drawn from the rows of `sme mpi invade`.

use sme_mpi::process::alert::Alert;

use super::super::managed::{chart as chart_of, simulated};
use super::{Invade, Outcome};
use crate::plot::{Chart, Marks, Scaling, Symbol};

/// The file of the chart.
pub(super) const FILE: &str = "fig4.svg";

/// The published point: cores, and microseconds of which the call takes less.
const PUBLISHED: (f64, f64) = (48.0, 30.0);

/// The time of the call by cores.
pub(super) fn chart(outcomes: &[(&Invade, Outcome)]) -> Chart {
    let points = outcomes.iter();
    let points = points.map(|(run, outcome)| (f64::from(run.cores), outcome.invades.as_us()));
    let curves = simulated("invade", points);
    let marks = vec![Marks {
        group: "Published".into(),
        label: "upper bound".into(),
        points: vec![PUBLISHED],
        symbol: Symbol::Diamond,
    }];
    let job = outcomes.first().map(|(run, _)| &run.job);
    let (title, cores) = match job.map(|job| job.board().alert) {
        Some(Alert::Bell) => (
            "Reserving nodes: MPI_Comm_invade",
            "Nodes, the program's own included",
        ),
        _ => (
            "Reserving cores: MPI_Comm_invade",
            "Cores, the program's own included",
        ),
    };
    let axes = [(cores, Scaling::Linear), ("Time [µs]", Scaling::Linear)];
    let titles = [title, "Fig. 4"];
    chart_of(job, titles, axes, (curves, marks))
}
