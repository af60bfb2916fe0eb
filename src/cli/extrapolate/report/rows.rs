//! Sizes and lines of a fit as rows for programs.

use super::{Kind, Section, published, put, summarized};
use crate::extrapolate::Sample;
use crate::fit::{self, Coefficient, Prediction, Surface};
use crate::report::row::Cell;

/// The keys behind the identity in a row of a size.
pub(super) const RESULTS: [&str; 25] = [
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

/// The keys behind it in a row of `--lines`.
pub(super) const LINES: [&str; 12] = [
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

/// The figures in a row of a size besides the identity and the fit.
struct Figures {
    source: &'static str,
    latency_us: f64,
    interval: Option<Prediction>,
    published_us: Option<f64>,
    fitted: Option<Prediction>,
}

impl Section {
    pub(super) fn rows(&self, kind: Kind) -> Vec<Vec<Cell>> {
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

    pub(super) fn line_rows(&self) -> Vec<Vec<Cell>> {
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
