//! The charts of `sme coherence curves`.

use super::Simulated;
use crate::coherence::figures::Source;
use crate::paper::{BLUES, ORANGES};
use crate::plot::{self, Axis, Chart, Curve, Panel, Scaling, Stroke};
use crate::report::stop::Stop;

/// Charts in a row of the sheet.
const COLUMNS: usize = 2;

/// Bytes of the unit of the x axis.
const KIB: f64 = 1024.0;

/// Each figure as an SVG file, by its number, and all of them on one sheet.
pub(super) fn drawn(simulated: &[Simulated<'_>]) -> Result<Vec<(Option<u32>, String)>, Stop> {
    let failed = |error: plot::PlotError| Stop::Failed(error.to_string());
    let mut files = Vec::new();
    let mut panels = Vec::new();
    for of in simulated {
        let chart = chart(of);
        files.push((Some(of.figure.number), chart.to_svg().map_err(failed)?));
        panels.push(Panel::from(chart));
    }
    files.push((None, plot::sheet(&panels, COLUMNS).map_err(failed)?));
    Ok(files)
}

/// Colours that are told apart.
const COLOURS: [(u8, u8, u8); 5] = [
    BLUES[3],
    ORANGES[3],
    (60, 140, 70),
    (130, 80, 160),
    (90, 90, 90),
];

/// The colour of what the paper says.
const PUBLISHED: (u8, u8, u8) = (170, 40, 40);

/// The colours of so many lines, in their order. Of eight, as Fig. 2 has, the first half goes
/// together, and the second.
fn colours(count: usize) -> Vec<(u8, u8, u8)> {
    let shades = |of: [(u8, u8, u8); 5]| of.into_iter().rev().take(count.div_ceil(2));
    match count > COLOURS.len() {
        true => shades(BLUES).chain(shades(ORANGES)).collect(),
        false => COLOURS.to_vec(),
    }
}

fn chart(of: &Simulated<'_>) -> Chart {
    let Simulated { figure, on, rates } = of;
    let of_paper = |source| matches!(source, Source::Published { .. });
    let own = figure.lines.iter().filter(|line| !of_paper(line.source));
    let mut colours = colours(own.count()).into_iter().cycle();
    let mut curves = Vec::new();
    for (index, line) in figure.lines.iter().enumerate() {
        let points = rates.iter().filter_map(|(bytes, rates)| {
            let rate = rates[index]?;
            Some((*bytes as f64 / KIB, rate))
        });
        let (group, stroke) = match line.source {
            Source::Simulated(_) => ("Simulated", Stroke::Dotted),
            Source::Message(_) | Source::Copy(_) => ("Predicted", Stroke::Marked),
            Source::Published { .. } => ("Published", Stroke::Dashed),
        };
        let colour = match of_paper(line.source) {
            true => Some(PUBLISHED),
            false => colours.next(),
        };
        curves.push(Curve {
            group: group.into(),
            label: line.name.into(),
            points: points.collect(),
            colour: colour.unwrap_or_default(),
            stroke,
        });
    }
    // The legend wants those of a group in a row.
    curves.sort_by_key(|curve| match curve.group.as_str() {
        "Simulated" => 0,
        "Predicted" => 1,
        _ => 2,
    });
    Chart {
        title: format!("{} (Fig. {})", figure.title, figure.number),
        subtitle: format!("on {}", on.machine),
        x: Axis {
            label: format!("Size of the {} [KiB]", figure.size_of),
            ticks: powers_of_four(rates.iter().map(|(bytes, _)| *bytes)),
            scaling: Scaling::Logarithmic,
        },
        y: Axis {
            label: "Throughput [GB/s]".into(),
            ticks: Vec::new(),
            scaling: scaling(&curves),
        },
        curves,
        marks: Vec::new(),
        caption: Vec::new(),
    }
}

/// Logarithmic if the largest throughput is so many times the smallest.
const WIDE: f64 = 6.0;

fn scaling(curves: &[Curve]) -> Scaling {
    let rates = curves.iter().flat_map(|curve| &curve.points);
    let rates = rates.map(|&(_, rate)| rate);
    let least = rates.clone().fold(f64::INFINITY, f64::min);
    match rates.fold(0.0, f64::max) > WIDE * least {
        true => Scaling::Logarithmic,
        false => Scaling::Linear,
    }
}

/// Powers of four around `sizes`, in KiB.
fn powers_of_four(sizes: impl Iterator<Item = u64> + Clone) -> Vec<f64> {
    let least = sizes.clone().min().unwrap_or(1) as f64 / KIB;
    let most = sizes.max().unwrap_or(1) as f64 / KIB;
    let exponent = |size: f64| size.log(4.0);
    let all = exponent(least).floor() as i32..=exponent(most).ceil() as i32;
    all.map(|exponent| 4_f64.powi(exponent)).collect()
}
