//! Fig. 3 of Comprés et al., drawn from the rows of `sme mpi bt`.

use sme_mpi::process::manager::Kind;

use super::super::managed::chart as chart_of;
use super::{Launched, LaunchedOutcome};
use crate::paper::BLUES;
use crate::plot::{Chart, Curve, Scaling, Stroke};

/// The file of the chart.
pub(super) const FILE: &str = "fig3.svg";

/// The time until all have begun, and the whole, by processes, of each manager.
pub(super) fn chart(outcomes: &[(&Launched, LaunchedOutcome)]) -> Chart {
    let mut curves = Vec::new();
    for (manager, colour) in [(Kind::Mpd, BLUES[1]), (Kind::Invasive, BLUES[3])] {
        let own = outcomes.iter().filter(|(run, _)| run.manager == manager);
        let curve = |label: &str, stroke, time: fn(&Launched, &LaunchedOutcome) -> f64| {
            let points = own.clone();
            let points = points.map(|(run, outcome)| {
                let processes = f64::from(run.run.job.ranks);
                (processes, time(run, outcome))
            });
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Curve {
                group: manager.to_string(),
                label: label.into(),
                points,
                colour,
                stroke,
            }
        };
        let total = curve("in all", Stroke::Dotted, Launched::seconds);
        let starts = curve("until it has begun", Stroke::Dashed, |_, outcome| {
            outcome.starts.as_us() / 1e6
        });
        curves.extend(
            [total, starts]
                .into_iter()
                .filter(|curve| !curve.points.is_empty()),
        );
    }
    let first = outcomes.first().map(|(run, _)| run);
    let class = first.map_or(String::new(), |run| run.run.class.to_string());
    let title = format!("NAS BT, class {class}");
    let axes = ["Processes", "Time [s]"].map(|label| (label, Scaling::Logarithmic));
    let job = first.map(|run| &run.job);
    chart_of(job, [&title, "Fig. 3"], axes, (curves, Vec::new()))
}
