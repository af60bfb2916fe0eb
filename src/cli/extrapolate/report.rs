//! What an extrapolation says: rows for programs, tables for people, the picture.
//!
//! Called by [`super`]. Times in microseconds.

use sme_sim::fabric::Topology;

use super::super::flags::Format;
use super::super::row::{self, Cell, rendered};
use super::super::stop::{Stop, one_line};
use super::super::table::aligned;
use crate::experiment::Experiment;
use crate::extrapolate::family::Family;
use crate::extrapolate::picture::{self, Picture};
use crate::extrapolate::{Extrapolation, PUBLISHED_POINTS, Sample, Series, Trend};
use crate::fit::{self, Coefficient, Prediction, Surface};

/// One or more fits, and the sizes that were asked for.
#[derive(Debug)]
pub struct Report {
    kind: Kind,
    sections: Vec<Section>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Formula,
    Paper,
    Against,
}

/// One fit and what it is for.
#[derive(Debug)]
struct Section {
    /// The kind of network, where there is one of several.
    family: Option<Family>,
    series: Series,
    fit: Extrapolation,
    /// Sizes to predict.
    sizes: Vec<(u32, u32)>,
    /// Sizes that were simulated to compare: what identifies the run, and its latency.
    simulated: Vec<Simulated>,
}

#[derive(Debug)]
struct Simulated {
    identity: Vec<Cell>,
    topology: Topology,
    sample: Sample,
}

impl Report {
    /// What a fit says of `sizes`, each (nodes, cores a node).
    pub fn formula(series: Series, fit: Extrapolation, sizes: &[(u32, u32)]) -> Self {
        Self::one(Kind::Formula, series, fit, sizes)
    }

    /// What the paper's coefficients say of them, and the fit beside it.
    pub fn paper(series: Series, fit: Extrapolation, sizes: &[(u32, u32)]) -> Self {
        Self::one(Kind::Paper, series, fit, sizes)
    }

    fn one(kind: Kind, series: Series, fit: Extrapolation, sizes: &[(u32, u32)]) -> Self {
        let section = Section {
            family: None,
            series,
            fit,
            sizes: sizes.to_vec(),
            simulated: Vec::new(),
        };
        Self {
            kind,
            sections: vec![section],
        }
    }

    /// Formula and simulation side by side, of no network yet.
    pub fn against() -> Self {
        Self {
            kind: Kind::Against,
            sections: Vec::new(),
        }
    }

    /// Adds a kind of network: the sweep that was fitted, and `large` to compare with, each
    /// experiment with its latency.
    pub fn add_family(
        &mut self,
        family: Family,
        series: Series,
        fit: Extrapolation,
        large: &[(&Experiment, f64)],
    ) {
        let simulated = |&(experiment, latency_us): &(&Experiment, f64)| Simulated {
            identity: row::identity(experiment),
            topology: experiment.topology.clone(),
            sample: Sample {
                nodes: experiment.nodes,
                cores: experiment.cores,
                latency_us,
            },
        };
        self.sections.push(Section {
            family: Some(family),
            series,
            fit,
            sizes: Vec::new(),
            simulated: large.iter().map(simulated).collect(),
        });
    }

    /// The report in `format`.
    pub fn rendered(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Json | Format::Csv => {
                let heading: Vec<&str> = row::identity_keys().chain(RESULTS).collect();
                let rows = self.sections.iter().flat_map(|s| s.rows(self.kind));
                rendered(&heading, &rows.collect::<Vec<_>>(), format)
            }
        }
    }

    /// Coefficients and lines as rows.
    pub fn lines(&self, format: Format) -> String {
        let heading: Vec<&str> = row::identity_keys().chain(LINES).collect();
        let rows = self.sections.iter().flat_map(Section::line_rows);
        rendered(&heading, &rows.collect::<Vec<_>>(), format)
    }

    /// Formula and simulation as a picture.
    pub fn svg(&self) -> Result<String, Stop> {
        let machine = self.sections.iter().find_map(|section| {
            let cell = section.identity("machine")?;
            Some(cell.to_text())
        });
        let pictures: Vec<Picture> = self.sections.iter().filter_map(Section::picture).collect();
        picture::svg(&pictures, &machine.unwrap_or_default())
            .map_err(|error| Stop::Failed(one_line(&error.to_string())))
    }

    fn table(&self) -> String {
        let sections = self.sections.iter().map(|section| match self.kind {
            Kind::Formula | Kind::Paper => section.prediction_table(self.kind),
            Kind::Against => section.comparison_table(),
        });
        sections.collect::<Vec<_>>().join("\n")
    }
}

/// What stands behind the identity in a row of a size.
const RESULTS: [&str; 25] = [
    "source",
    "latency_us",
    "latency_low_us",
    "latency_high_us",
    "published_us",
    "fitted_latency_us",
    "fitted_low_us",
    "fitted_high_us",
    "confidence_percent",
    "fit_nodes",
    "fit_cores",
    "fit_points",
    "a1_us",
    "a1_low_us",
    "a1_high_us",
    "a0_us",
    "a0_low_us",
    "a0_high_us",
    "b1_us",
    "b1_low_us",
    "b1_high_us",
    "b0_us",
    "b0_low_us",
    "b0_high_us",
    "r_squared",
];

/// What stands behind it in a row of `--lines`.
const LINES: [&str; 12] = [
    "line",
    "law",
    "points",
    "r_squared",
    "slope_us",
    "slope_low_us",
    "slope_high_us",
    "intercept_us",
    "intercept_low_us",
    "intercept_high_us",
    "published_us",
    "confidence_percent",
];

/// What a row of a size says besides the identity and the fit.
struct Figures {
    source: &'static str,
    latency_us: f64,
    interval: Option<Prediction>,
    published_us: Option<f64>,
    fitted: Option<Prediction>,
}

impl Section {
    fn rows(&self, kind: Kind) -> Vec<Vec<Cell>> {
        let fit = &self.fit.surface;
        let predict = |nodes: u32, cores: u32| fit.predict(nodes.into(), cores.into());
        let of_sizes = self.sizes.iter().map(|&(nodes, cores)| {
            let expected = predict(nodes, cores);
            let identity = self.identity_at(nodes, cores);
            match kind {
                Kind::Paper => {
                    let figures = Figures {
                        source: "paper",
                        latency_us: Surface::PUBLISHED.at(nodes.into(), cores.into()),
                        interval: None,
                        published_us: published(nodes, cores),
                        fitted: Some(expected),
                    };
                    self.row(identity, &figures, Some(&Surface::PUBLISHED))
                }
                Kind::Formula | Kind::Against => self.row(
                    identity,
                    &formula(expected, nodes, cores),
                    Some(&fit.surface),
                ),
            }
        });
        let compared = self.simulated.iter().flat_map(|simulated| {
            let Sample {
                nodes,
                cores,
                latency_us,
            } = simulated.sample;
            let expected = predict(nodes, cores);
            let figures = Figures {
                source: "simulation",
                latency_us,
                interval: None,
                published_us: None,
                fitted: Some(expected),
            };
            let identity = simulated.identity.clone();
            // The formula is of the fit's episodes and seeds, at the topology of this size.
            let mut of_formula = self.identity_at(nodes, cores);
            put(&mut of_formula, "topology", Cell::text(&simulated.topology));
            [
                self.row(identity, &figures, None),
                self.row(
                    of_formula,
                    &formula(expected, nodes, cores),
                    Some(&fit.surface),
                ),
            ]
        });
        of_sizes.chain(compared).collect()
    }

    fn row(&self, identity: Vec<Cell>, figures: &Figures, surface: Option<&Surface>) -> Vec<Cell> {
        let maybe = |value: Option<f64>| value.map_or(Cell::Absent, Cell::real);
        let mut cells = identity;
        cells.push(Cell::text(figures.source));
        cells.push(Cell::real(figures.latency_us));
        cells.push(maybe(figures.interval.map(Prediction::low)));
        cells.push(maybe(figures.interval.map(Prediction::high)));
        cells.push(maybe(figures.published_us));
        cells.push(maybe(figures.fitted.map(|p| p.latency)));
        cells.push(maybe(figures.fitted.map(Prediction::low)));
        cells.push(maybe(figures.fitted.map(Prediction::high)));
        cells.push(Cell::real(self.fit.surface.confidence.percent()));
        cells.push(Cell::text(summarized(&self.series.nodes())));
        cells.push(Cell::text(summarized(&self.series.cores())));
        cells.push(Cell::Count(self.fit.surface.points as u64));
        for index in 0..4 {
            let coefficient = surface.map(|surface| surface.named()[index].1);
            cells.extend(interval(coefficient));
        }
        // The paper gives none for its surface.
        let own = surface.filter(|surface| **surface != Surface::PUBLISHED);
        cells.push(maybe(own.map(|surface| surface.r_squared)));
        cells
    }

    fn line_rows(&self) -> Vec<Vec<Cell>> {
        let confidence = Cell::real(self.fit.surface.confidence.percent());
        let mut rows = Vec::new();
        let named = self.fit.surface.surface.named().into_iter();
        for ((name, own), (_, published)) in named.zip(Surface::PUBLISHED.named()) {
            let mut cells = self.identity_of_fit();
            cells.extend([
                Cell::text(name),
                Cell::text("Eq. 2"),
                Cell::Count(self.fit.surface.points as u64),
                Cell::real(self.fit.surface.surface.r_squared),
            ]);
            cells.extend(interval(Some(own)));
            cells.extend([Cell::Absent, Cell::Absent, Cell::Absent]);
            cells.extend([Cell::real(published.value), confidence.clone()]);
            rows.push(cells);
        }
        let over_nodes = self
            .fit
            .over_nodes
            .iter()
            .map(|t| ("over nodes", "cores_per_node", t));
        let over_cores = self
            .fit
            .over_cores
            .iter()
            .map(|t| ("over cores", "nodes", t));
        for (line, fixed, trend) in over_nodes.chain(over_cores) {
            for (law, found) in [("logarithmic", trend.logarithmic), ("linear", trend.linear)] {
                let mut cells = self.identity_of_fit();
                put(&mut cells, fixed, Cell::Count(trend.fixed.into()));
                cells.extend([
                    Cell::text(line),
                    Cell::text(law),
                    Cell::Count(trend.points as u64),
                    found.map_or(Cell::Absent, |line| Cell::real(line.r_squared)),
                ]);
                cells.extend(interval(found.map(|line| line.slope)));
                cells.extend(interval(found.map(|line| line.intercept)));
                // These intervals are the usual ones.
                cells.extend([Cell::Absent, Cell::real(fit::Confidence::USUAL.percent())]);
                rows.push(cells);
            }
        }
        rows
    }

    /// What the runs of the fit share, at another size.
    fn identity_at(&self, nodes: u32, cores: u32) -> Vec<Cell> {
        let mut cells = self.identity_of_fit();
        put(&mut cells, "nodes", Cell::Count(nodes.into()));
        put(&mut cells, "cores_per_node", Cell::Count(cores.into()));
        let threads = u64::from(nodes) * u64::from(cores);
        put(&mut cells, "threads", Cell::Count(threads));
        cells
    }

    fn identity_of_fit(&self) -> Vec<Cell> {
        let mut cells = self.series.identity.clone();
        cells.resize(row::identity_keys().count(), Cell::Absent);
        put(&mut cells, "version", Cell::text(env!("CARGO_PKG_VERSION")));
        // Its sizes differ from run to run.
        if let Some(family) = self.family {
            put(&mut cells, "topology", Cell::text(family));
        }
        cells
    }

    fn identity(&self, key: &str) -> Option<&Cell> {
        let index = row::identity_keys().position(|known| known == key)?;
        self.series.identity.get(index)
    }

    fn picture(&self) -> Option<Picture> {
        let family = self.family?;
        let mut cores: Vec<u32> = self.simulated.iter().map(|s| s.sample.cores).collect();
        cores.sort_unstable();
        cores.dedup();
        let large = self.simulated.iter().map(|simulated| simulated.sample);
        let small = self.series.samples.iter().copied();
        Some(Picture {
            title: family.title().to_owned(),
            fit: self.fit.surface,
            fitted_to: self.series.nodes().last().copied().unwrap_or(0),
            samples: small.chain(large).collect(),
            cores,
        })
    }
}

// ------------------------------------------------------------------ tables

impl Section {
    fn fit_text(&self) -> String {
        let fit = &self.fit.surface;
        let mut text = format!(
            "Eq. 2: t[us] = (a1*cores + a0) * ln(nodes) + (b1*cores + b0)\n\
             Fitted to {} points: {} nodes of {} cores\n\
             R^2 {:.4}, standard deviation {} us, intervals of {} %\n\n",
            fit.points,
            summarized(&self.series.nodes()),
            summarized(&self.series.cores()),
            fit.surface.r_squared,
            three(fit.deviation()).to_text(),
            fit.confidence.percent(),
        );
        let heading = ["", "own fit", "low", "high", "paper"].map(str::to_owned);
        let named = fit
            .surface
            .named()
            .into_iter()
            .zip(Surface::PUBLISHED.named());
        let rows = named.map(|((name, own), (_, published))| {
            vec![
                Cell::text(name),
                digits(own.value, 4),
                digits(own.low(), 4),
                digits(own.high(), 4),
                digits(published.value, 4),
            ]
        });
        text += &aligned(&heading, &rows.collect::<Vec<_>>());
        text
    }

    fn trend_text(&self) -> String {
        let over_nodes = trends(
            &self.fit.over_nodes,
            ["cores_per_node", "points", "R^2 logarithmic", "R^2 linear"],
        );
        let over_cores = trends(
            &self.fit.over_cores,
            ["nodes", "points", "R^2 logarithmic", "R^2 linear"],
        );
        format!("Over the nodes\n{over_nodes}\nOver the cores of a node\n{over_cores}")
    }

    fn prediction_table(&self, kind: Kind) -> String {
        let fit = &self.fit.surface;
        let rows = self.sizes.iter().map(|&(nodes, cores)| {
            let own = fit.predict(nodes.into(), cores.into());
            let threads = u64::from(nodes) * u64::from(cores);
            let size = [nodes.into(), cores.into(), threads].map(Cell::Count);
            let own = [own.latency, own.low(), own.high()].map(three);
            let mut cells = size.to_vec();
            if kind == Kind::Paper {
                let by_paper = Surface::PUBLISHED.at(nodes.into(), cores.into());
                cells.push(three(by_paper));
                let printed = published(nodes, cores);
                cells.push(printed.map_or(Cell::Absent, |us| digits(us, 0)));
            }
            cells.extend(own);
            cells
        });
        let mut heading = vec!["nodes", "cores_per_node", "threads"];
        if kind == Kind::Paper {
            heading.extend(["Eq. 2 [us]", "published [us]"]);
        }
        heading.extend(["own fit [us]", "low", "high"]);
        let heading: Vec<String> = heading.into_iter().map(str::to_owned).collect();
        format!(
            "{}\n{}\n{}",
            self.fit_text(),
            self.trend_text(),
            aligned(&heading, &rows.collect::<Vec<_>>())
        )
    }

    fn comparison_table(&self) -> String {
        let fit = &self.fit.surface;
        let heading = [
            "topology",
            "nodes",
            "cores_per_node",
            "simulated [us]",
            "Eq. 2 [us]",
            "low",
            "high",
            "simulated / Eq. 2",
        ]
        .map(str::to_owned);
        let rows = self.simulated.iter().map(|simulated| {
            let Sample {
                nodes,
                cores,
                latency_us,
            } = simulated.sample;
            let expected = fit.predict(nodes.into(), cores.into());
            vec![
                Cell::text(&simulated.topology),
                Cell::Count(nodes.into()),
                Cell::Count(cores.into()),
                three(latency_us),
                three(expected.latency),
                three(expected.low()),
                three(expected.high()),
                digits(latency_us / expected.latency, 2),
            ]
        });
        let title = self.family.map_or("", Family::title);
        format!(
            "{title}\n\n{}\n{}\n{}",
            self.fit_text(),
            aligned(&heading, &rows.collect::<Vec<_>>()),
            self.limits()
        )
    }

    /// Up to where the formula holds, and what the latency follows over all sizes.
    fn limits(&self) -> String {
        let heading = [
            "cores_per_node",
            "within the interval up to",
            "R^2 logarithmic, all sizes",
            "R^2 linear, all sizes",
            "us a factor e in nodes",
            "us a hop of diameter",
            "R^2 of both",
        ]
        .map(str::to_owned);
        let mut cores: Vec<u32> = self.simulated.iter().map(|s| s.sample.cores).collect();
        cores.sort_unstable();
        cores.dedup();
        let rows = cores.into_iter().map(|cores| {
            let mut large: Vec<&Simulated> = self
                .simulated
                .iter()
                .filter(|simulated| simulated.sample.cores == cores)
                .collect();
            large.sort_by_key(|simulated| simulated.sample.nodes);
            let held = large.iter().take_while(|simulated| {
                let Sample {
                    nodes, latency_us, ..
                } = simulated.sample;
                let expected = self.fit.surface.predict(nodes.into(), cores.into());
                (expected.low()..=expected.high()).contains(&latency_us)
            });
            let held = held.last().map(|simulated| simulated.sample.nodes);
            let small = self.series.samples.iter().filter(|s| s.cores == cores);
            let all = small.chain(large.iter().map(|s| &s.sample));
            let points: Vec<(f64, f64)> = all.map(|s| (f64::from(s.nodes), s.latency_us)).collect();
            let enough = points.len() > 3;
            let r_squared = |of: Result<fit::Line, fit::FitError>| match of {
                Ok(line) if enough => digits(line.r_squared, 4),
                _ => Cell::Absent,
            };
            let mut cells = vec![
                Cell::Count(cores.into()),
                held.map_or_else(|| Cell::text("none"), |nodes| Cell::Count(nodes.into())),
                r_squared(fit::logarithm(&points)),
                r_squared(fit::line(&points)),
            ];
            cells.extend(self.shares(&points));
            cells
        });
        aligned(&heading, &rows.collect::<Vec<_>>())
    }

    /// The latency as a sum of a logarithm of the nodes and the network's diameter.
    fn shares(&self, points: &[(f64, f64)]) -> [Cell; 3] {
        let split = |family: Family| {
            let points: Vec<_> = points
                .iter()
                .map(|&(nodes, us)| {
                    let diameter = family.diameter(nodes as u32).map(f64::from);
                    Some((nodes.ln(), diameter?, us))
                })
                .collect::<Option<_>>()?;
            fit::plane(&points).ok()
        };
        match self.family.filter(|_| points.len() > 4).and_then(split) {
            None => [Cell::Absent, Cell::Absent, Cell::Absent],
            Some(plane) => [
                three(plane.over_first.value),
                three(plane.over_second.value),
                digits(plane.r_squared, 4),
            ],
        }
    }
}

fn trends(trends: &[Trend], heading: [&str; 4]) -> String {
    let rows = trends.iter().map(|trend| {
        let r_squared = |line: Option<fit::Line>| match line {
            Some(line) => digits(line.r_squared, 4),
            None => Cell::Absent,
        };
        vec![
            Cell::Count(trend.fixed.into()),
            Cell::Count(trend.points as u64),
            r_squared(trend.logarithmic),
            r_squared(trend.linear),
        ]
    });
    aligned(&heading.map(str::to_owned), &rows.collect::<Vec<_>>())
}

/// What the paper prints for this size.
fn published(nodes: u32, cores: u32) -> Option<f64> {
    let mut points = PUBLISHED_POINTS.iter();
    points
        .find(|point| (point.0, point.1) == (nodes, cores))
        .map(|point| point.2)
}

fn formula(expected: Prediction, nodes: u32, cores: u32) -> Figures {
    Figures {
        source: "formula",
        latency_us: expected.latency,
        interval: Some(expected),
        published_us: published(nodes, cores),
        fitted: None,
    }
}

/// Value, lower and upper end; those of a published coefficient are not known.
fn interval(coefficient: Option<Coefficient>) -> [Cell; 3] {
    match coefficient {
        None => [Cell::Absent, Cell::Absent, Cell::Absent],
        Some(exact) if exact.margin == 0.0 => [Cell::real(exact.value), Cell::Absent, Cell::Absent],
        Some(found) => [found.value, found.low(), found.high()].map(Cell::real),
    }
}

/// Puts `cell` under `key` of an identity.
fn put(identity: &mut [Cell], key: &str, cell: Cell) {
    let index = row::identity_keys().position(|known| known == key);
    if let Some(place) = index.and_then(|index| identity.get_mut(index)) {
        *place = cell;
    }
}

/// A list in few words: all of it where it is short, else its ends and how many there are.
fn summarized(numbers: &[u32]) -> String {
    const SHORT: usize = 12;
    match numbers {
        [first, .., last] if numbers.len() > SHORT => {
            format!("{first}..{last} ({} of them)", numbers.len())
        }
        _ => {
            let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            texts.join(",")
        }
    }
}

fn three(value: f64) -> Cell {
    digits(value, 3)
}

/// With so many digits behind the point; absent where it is no number.
fn digits(value: f64, decimals: usize) -> Cell {
    match value.is_finite() {
        true => Cell::Number(format!("{value:.decimals$}")),
        false => Cell::Absent,
    }
}
