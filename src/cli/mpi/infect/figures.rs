//! Fig. 6 and 7 of Comprés et al., drawn from the rows of `sme mpi infect` and `sme mpi retreat`.

use super::super::managed::{chart as chart_of, simulated};
use super::{Infect, Outcome};
use crate::plot::{Chart, Marks, Scaling, Symbol};

/// The files of the charts.
pub(super) const INFECT: &str = "fig6.svg";
pub(super) const RETREAT: &str = "fig7.svg";

/// By how much longer the most processes take than one, as published [ms].
const SPREAD: f64 = 11.0;

/// The least factor by which a retreat is faster, as published.
const FACTOR: f64 = 10.0;

/// The time in which the world grows, by the processes that come.
pub(super) fn infect(outcomes: &[(&Infect, Outcome)]) -> Chart {
    let points = by_processes(outcomes, |outcome| outcome.infects.as_us() * 1e-3);
    let published = match (points.first(), points.last()) {
        (Some(&(least, time)), Some(&(most, _))) if least < most => vec![(most, time + SPREAD)],
        _ => Vec::new(),
    };
    let marks = Marks {
        group: "Published".into(),
        label: "11 ms above the fewest".into(),
        points: published,
        symbol: Symbol::Diamond,
    };
    let title = [
        "A world grows: MPI_Comm_infect",
        "Fig. 6",
        "Processes that come",
    ];
    chart(
        outcomes,
        title,
        ("Time [ms]", Scaling::Linear),
        (points, marks),
    )
}

/// The time in which the world shrinks, at the ranks that stay, by the processes that leave.
pub(super) fn retreat(outcomes: &[(&Infect, Outcome)]) -> Chart {
    let points = by_processes(outcomes, |outcome| outcome.retreats.as_us());
    let bound = by_processes(outcomes, |outcome| outcome.infects.as_us() / FACTOR);
    let marks = Marks {
        group: "Published".into(),
        label: "bound: infect / 10".into(),
        points: bound,
        symbol: Symbol::Diamond,
    };
    let title = [
        "A world shrinks: MPI_Comm_retreat",
        "Fig. 7",
        "Processes that leave",
    ];
    chart(
        outcomes,
        title,
        ("Time [µs]", Scaling::Logarithmic),
        (points, marks),
    )
}

fn by_processes(
    outcomes: &[(&Infect, Outcome)],
    time: impl Fn(&Outcome) -> f64,
) -> Vec<(f64, f64)> {
    let points = outcomes.iter();
    let points = points.map(|(run, outcome)| (f64::from(run.processes), time(outcome)));
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

fn chart(
    outcomes: &[(&Infect, Outcome)],
    [title, figure, x]: [&str; 3],
    y: (&str, Scaling),
    (points, marks): (Vec<(f64, f64)>, Marks),
) -> Chart {
    let curves = simulated("the call", points.into_iter());
    let job = outcomes.first().map(|(run, _)| &run.job);
    let axes = [(x, Scaling::Linear), y];
    chart_of(job, [title, figure], axes, (curves, vec![marks]))
}
