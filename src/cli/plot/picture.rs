//! Rows and chosen fields as a picture: curves with marks and bars of errors, or stacked bars.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::choose::{Chosen, MAX_CURVES};
use super::table::{Row, Table};
use super::{Logarithmic, PlotFlags};
use crate::plot::bars::{BarPart, Bars};
use crate::plot::{
    self, Axis, COLOURS, Chart, Curve, ErrorBars, Marks, Page, Panel, PlotError, Scaling, Stroke,
    Symbol,
};
use crate::report::stop::Stop;
use crate::report::units;

/// From so many points on a curve has marks at some of them only.
const MANY_POINTS: usize = 24;
/// The most bars.
const MAX_BARS: usize = 200;
/// The most panels, and in a row.
const MAX_PANELS: usize = 16;
const COLUMNS: usize = 2;

/// A picture, and how many rows have no place in it.
pub struct Picture {
    kind: Kind,
    /// Rows without a number that they would need.
    pub left_out: usize,
    /// A curve with several rows at one place, or a bar of several, in words.
    pub doubled: Option<String>,
}

enum Kind {
    Curves(Vec<Panel>),
    Bars(Bars),
}

impl Picture {
    /// The picture of a table.
    pub fn new(table: &Table, chosen: &Chosen, flags: &PlotFlags) -> Result<Self, Stop> {
        match chosen.is_bars {
            true => bars(table, chosen, flags),
            false => curves(table, chosen, flags),
        }
    }

    /// The picture as SVG.
    pub fn to_svg(&self, page: Page) -> Result<String, PlotError> {
        match &self.kind {
            Kind::Bars(bars) => bars.to_svg(page),
            Kind::Curves(panels) => {
                let columns = if page.size == plot::Size::SingleColumn {
                    1
                } else {
                    COLUMNS
                };
                plot::compared(panels, columns, page)
            }
        }
    }
}

/// The label that some fields of a row make.
fn label(row: &Row, fields: &[usize]) -> String {
    let texts = row.texts(fields);
    let texts = texts.iter().filter(|text| !text.is_empty());
    let text = texts.map(String::as_str).collect::<Vec<_>>().join(", ");
    match text.is_empty() && !fields.is_empty() {
        true => "none".to_owned(),
        false => text,
    }
}

/// The names of fields in words, without their units.
fn in_words(table: &Table, fields: &[usize]) -> String {
    let words = fields
        .iter()
        .map(|&field| units::words(&table.fields[field]).0);
    words.collect::<Vec<_>>().join(", ")
}

/// The name of the axis of several fields of one unit: the words with which all of them begin.
fn axis_label(table: &Table, fields: &[usize]) -> String {
    let named: Vec<_> = (fields.iter())
        .map(|&field| units::words(&table.fields[field]))
        .collect();
    let Some((first, unit)) = named.first() else {
        return String::new();
    };
    let shared = |(at, word): &(usize, &str)| {
        let mut all = named.iter().map(|(words, _)| words.split(' ').nth(*at));
        all.all(|other| other == Some(word))
    };
    let words = first.split(' ').enumerate();
    let words: Vec<&str> = words.take_while(shared).map(|(_, word)| word).collect();
    let words = match (words.is_empty(), unit) {
        (true, Some(unit)) if units::is_time(unit) => "time".to_owned(),
        (true, None) => in_words(table, fields),
        _ => words.join(" "),
    };
    units::label(&words, *unit)
}

/// The subtitle: the run, as far as all rows agree on it.
fn run(table: &Table) -> String {
    let told = ["machine", "machine_hash", "set", "topology", "version"].map(|name| {
        let field = table.fields.iter().position(|field| field == name)?;
        let texts: BTreeSet<String> = table
            .rows
            .iter()
            .map(|row| row.cell(field).to_text())
            .collect();
        let text = texts
            .first()
            .filter(|text| texts.len() == 1 && !text.is_empty())?;
        Some(match name {
            "machine_hash" => format!("({text})"),
            "version" => format!("by sme {text}"),
            _ => text.clone(),
        })
    });
    told.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn title(table: &Table, chosen: &Chosen, flags: &PlotFlags) -> String {
    let x = in_words(table, &chosen.x);
    let over = match (chosen.x.is_empty(), chosen.is_bars) {
        (true, _) => String::new(),
        (false, true) => format!(" by {x}"),
        (false, false) => format!(" over {x}"),
    };
    let y = axis_label(table, &chosen.y);
    let y = y.split(" [").next().unwrap_or_default();
    flags.title.clone().unwrap_or_else(|| format!("{y}{over}"))
}

/// A curve of one panel: which series and which y it shows.
type Key = (usize, usize);
/// Points of curves or marks, by panel and by what they are of.
type Points<K, P> = HashMap<(usize, K), Vec<P>>;

fn curves(table: &Table, chosen: &Chosen, flags: &PlotFlags) -> Result<Picture, Stop> {
    let log = |on| match flags.log {
        Some(log) if log == on || log == Logarithmic::Xy => Scaling::Logarithmic,
        _ => Scaling::Linear,
    };
    let (x_scaling, y_scaling) = (log(Logarithmic::X), log(Logarithmic::Y));
    let is_log = |scaling| scaling == Scaling::Logarithmic;
    let Some(&x_field) = chosen.x.first() else {
        return Err(Stop::flag("--x", "name a field"));
    };
    let mut series: Vec<String> = Vec::new();
    let mut series_of: HashMap<Vec<String>, usize> = HashMap::new();
    let mut panels: Vec<Option<String>> = Vec::new();
    let mut points: Points<Key, (f64, f64)> = HashMap::new();
    let mut errors: Points<Key, (f64, f64, f64)> = HashMap::new();
    let mut published: Points<usize, (f64, f64)> = HashMap::new();
    let mut seen: HashSet<(usize, usize, u64, u64)> = HashSet::new();
    let mut left_out = 0;
    for row in &table.rows {
        let Some(x) = table.number(row, x_field, is_log(x_scaling))? else {
            left_out += 1;
            continue;
        };
        let name = chosen.panels.map(|field| label(row, &[field]));
        let panel = panels.iter().position(|known| *known == name);
        let panel = panel.unwrap_or_else(|| {
            panels.push(name);
            panels.len() - 1
        });
        if panels.len() > MAX_PANELS {
            let why = format!("more than {MAX_PANELS} panels");
            return Err(Stop::flag("--panels", why));
        }
        let of = *series_of
            .entry(row.texts(&chosen.series))
            .or_insert_with(|| {
                series.push(label(row, &chosen.series));
                series.len() - 1
            });
        let mut is_in = false;
        for (index, &field) in chosen.y.iter().enumerate() {
            let Some(y) = table.number(row, field, is_log(y_scaling))? else {
                continue;
            };
            is_in = true;
            let key = (panel, (of, index));
            points.entry(key).or_default().push((x, y));
            let Some((low, high)) = chosen.errors else {
                continue;
            };
            // The lower end may be 0 on a logarithmic axis, where it is cut off.
            let ends = (
                table.number(row, low, false)?,
                table.number(row, high, is_log(y_scaling))?,
            );
            if let (Some(low_end), Some(high_end)) = ends {
                if low_end > high_end {
                    let [low, high] = [low, high].map(|field| &table.fields[field]);
                    return Err(table.wrong(row, format!("{low} is more than {high}")));
                }
                errors.entry(key).or_default().push((x, low_end, high_end));
            }
        }
        for (index, &field) in chosen.published.iter().enumerate() {
            if let Some(y) = table.number(row, field, is_log(y_scaling))? {
                is_in = true;
                if seen.insert((panel, index, x.to_bits(), y.to_bits())) {
                    published.entry((panel, index)).or_default().push((x, y));
                }
            }
        }
        left_out += usize::from(!is_in);
    }
    if points.is_empty() && published.is_empty() {
        let names = in_words(table, &[&chosen.x[..], &chosen.y].concat());
        return Err(Stop::flag(
            "--x and --y",
            format!("no row has numbers for {names}"),
        ));
    }
    let count = series.len() * chosen.y.len();
    if count > MAX_CURVES {
        let why = format!(
            "{count} curves are too many to tell apart; at most {MAX_CURVES}: --where takes fewer rows"
        );
        return Err(Stop::flag("--series", why));
    }
    let axis = |label, scaling| Axis {
        label,
        ticks: Vec::new(),
        scaling,
    };
    let group = in_words(table, &chosen.series);
    let drawn = panels.iter().enumerate().map(|(panel, name)| {
        let mut chart = Chart {
            title: title(table, chosen, flags),
            subtitle: run(table),
            x: axis(axis_label(table, &chosen.x), x_scaling),
            y: axis(axis_label(table, &chosen.y), y_scaling),
            curves: Vec::new(),
            marks: Vec::new(),
            caption: Vec::new(),
        };
        if let (Some(name), Some(field)) = (name, chosen.panels) {
            let of = in_words(table, &[field]);
            chart.title = format!("{}: {of} {name}", chart.title);
            if flags.is_paper() {
                // A panel has no title there, and must be known by something.
                chart.x.label = format!("{} ({of} {name})", chart.x.label);
            }
        }
        let mut bars = Vec::new();
        for (index, &field) in chosen.y.iter().enumerate() {
            for (of, series) in series.iter().enumerate() {
                let key = (panel, (of, index));
                let mut points = points.get(&key).cloned().unwrap_or_default();
                points.sort_by(|one, other| one.0.total_cmp(&other.0));
                let words = in_words(table, &[field]);
                let (group, label) = match (chosen.y.len(), chosen.series.is_empty()) {
                    (1, true) if chosen.published.is_empty() => (String::new(), String::new()),
                    (_, true) => (String::new(), words),
                    (1, false) => (group.clone(), series.clone()),
                    (_, false) => (format!("{words}: {group}"), series.clone()),
                };
                let colour = COLOURS[(of * chosen.y.len() + index) % COLOURS.len()];
                bars.extend(errors.get(&key).map(|points| ErrorBars {
                    points: points.clone(),
                    colour,
                }));
                let is_one = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
                chart.curves.push(Curve {
                    group,
                    label,
                    stroke: match is_one {
                        false => Stroke::Points,
                        true if points.len() > MANY_POINTS => Stroke::Marked,
                        true => Stroke::Dotted,
                    },
                    points,
                    colour,
                });
            }
        }
        chart.marks = (chosen.published.iter().enumerate())
            .filter_map(|(index, &field)| {
                Some(Marks {
                    group: "Published".into(),
                    label: in_words(table, &[field]),
                    points: published.get(&(panel, index))?.clone(),
                    symbol: Symbol::Diamond,
                })
            })
            .collect();
        Panel {
            errors: bars,
            ..Panel::from(chart)
        }
    });
    let kind = Kind::Curves(drawn.collect());
    let mut keys: Vec<_> = points.keys().copied().collect();
    keys.sort_unstable();
    let doubled = keys.into_iter().find(|key| {
        let mut seen = HashSet::new();
        !points[key].iter().all(|(x, _)| seen.insert(x.to_bits()))
    });
    let doubled = doubled.and_then(|(_, (of, _))| {
        let texts = series_of.iter().find(|(_, place)| **place == of);
        let field = &table.fields[chosen.untold(table, texts?.0)?];
        let x = &table.fields[x_field];
        let of = match series[of].as_str() {
            "" => String::new(),
            curve => format!(" of curve {curve}"),
        };
        Some(format!(
            "several rows{of} have the same {x}: --series lacks a field, such as {field}, or --where \
             takes fewer rows"
        ))
    });
    Ok(Picture {
        kind,
        left_out,
        doubled,
    })
}

fn bars(table: &Table, chosen: &Chosen, flags: &PlotFlags) -> Result<Picture, Stop> {
    if flags.log.is_some() {
        return Err(Stop::flag("--log", "lengths of stacked bars begin at 0"));
    }
    let mut names: Vec<String> = Vec::new();
    let mut parts: Vec<BarPart> = Vec::new();
    // Bars and parts are told apart by their fields: two labels may read the same.
    let mut names_of: Vec<Vec<String>> = Vec::new();
    let mut parts_of: Vec<(usize, Vec<String>)> = Vec::new();
    let mut left_out = 0;
    let mut doubled = None;
    // Each series has bars of its own, unless the series are parts of a bar.
    let named = match chosen.is_stacked {
        true => chosen.x.clone(),
        false => [&chosen.x[..], &chosen.series].concat(),
    };
    for row in &table.rows {
        let name_of = row.texts(&named);
        let place = names_of.iter().position(|known| *known == name_of);
        let mut is_in = false;
        for &field in &chosen.y {
            let Some(length) = table.number(row, field, false)? else {
                continue;
            };
            if length < 0.0 {
                let why = format!("{} is {length}, less than nothing", table.fields[field]);
                return Err(table.wrong(row, why));
            }
            is_in = true;
            let bar = place.unwrap_or_else(|| match names_of.last() == Some(&name_of) {
                true => names.len() - 1,
                false => {
                    names.push(label(row, &named));
                    names_of.push(name_of.clone());
                    names.len() - 1
                }
            });
            let words = in_words(table, &[field]);
            let label = match (chosen.y.len(), chosen.series.is_empty()) {
                (1, true) if chosen.x.is_empty() => words,
                (1, true) => String::new(),
                (_, true) => words,
                (1, false) => label(row, &chosen.series),
                (_, false) => format!("{words}, {}", label(row, &chosen.series)),
            };
            let part_of = (field, row.texts(&chosen.series));
            let part = parts_of.iter().position(|known| *known == part_of);
            let part = part.unwrap_or_else(|| {
                let lengths = Vec::new();
                parts_of.push(part_of);
                parts.push(BarPart { label, lengths });
                parts.len() - 1
            });
            let lengths = &mut parts[part].lengths;
            lengths.resize(lengths.len().max(bar + 1), 0.0);
            if lengths[bar] > 0.0 && !chosen.is_stacked {
                doubled.get_or_insert_with(|| {
                    let name = &names[bar];
                    format!("several rows are added up in bar {name}: --x lacks a field")
                });
            }
            lengths[bar] += length;
            if names.len() > MAX_BARS || parts.len() > MAX_CURVES {
                let why = format!("more than {MAX_BARS} bars, or {MAX_CURVES} parts of a bar");
                return Err(Stop::flag("--bars", why));
            }
        }
        left_out += usize::from(!is_in);
    }
    if names.is_empty() {
        let names = in_words(table, &chosen.y);
        return Err(Stop::flag("--y", format!("no row has numbers for {names}")));
    }
    let is_ratio = (chosen.y.iter()).all(|&field| table.fields[field].contains("_over_"));
    // A part that no bar has needs no place in the legend.
    parts.retain(|part| part.lengths.iter().any(|&length| length > 0.0));
    Ok(Picture {
        kind: Kind::Bars(Bars {
            title: title(table, chosen, flags),
            subtitle: run(table),
            axis: Axis {
                label: axis_label(table, &chosen.y),
                ticks: Vec::new(),
                scaling: Scaling::Linear,
            },
            names,
            parts,
            reference: is_ratio.then_some(1.0),
            caption: Vec::new(),
        }),
        left_out,
        doubled,
    })
}
