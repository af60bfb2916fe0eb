//! Fig. 3 of Comprés et al., drawn from the rows of `sme mpi bt`.

use sme_mpi::process::manager::Kind;

use super::super::caption;
use super::{Launched, LaunchedOutcome};
use crate::paper::BLUES;
use crate::plot::{Axis, Chart, Curve, Scaling, Stroke};

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
    let axis = |label: &str| Axis {
        label: label.into(),
        ticks: Vec::new(),
        scaling: Scaling::Logarithmic,
    };
    let (mut title, mut subtitle, mut lines) = (String::new(), String::new(), Vec::new());
    if let Some((run, _)) = outcomes.first() {
        title = format!("NAS BT, class {}", run.run.class);
        let name = run.job.machine.name();
        subtitle = format!("{name}, simulated (cf. Comprés et al., Fig. 3)");
        lines.push(caption(&run.job));
    }
    Chart {
        title,
        subtitle,
        x: axis("Processes"),
        y: axis("Time [s]"),
        curves,
        marks: Vec::new(),
        caption: lines,
    }
}
