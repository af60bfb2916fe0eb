//! The report of an extrapolation: rows for programs, tables for people, the picture.
//!
//! Called by [`super`]. Times in microseconds.

mod rows;
mod tables;

use sme_sim::parts::fabric::Topology;

use crate::cli::flags::FileFlags;
use crate::experiment::Experiment;
use crate::extrapolate::family::Family;
use crate::extrapolate::picture::{self, Picture};
use crate::extrapolate::{Extrapolation, PUBLISHED_POINTS, Sample, Series};
use crate::report::Format;
use crate::report::row::{self, Cell, rendered};
use crate::report::stop::{Stop, one_line};
use rows::{LINES, RESULTS};

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
    /// The predictions of a fit for `sizes`, each (nodes, cores per node).
    pub fn formula(series: Series, fit: Extrapolation, sizes: &[(u32, u32)]) -> Self {
        Self::one(Kind::Formula, series, fit, sizes)
    }

    /// The predictions of the paper's coefficients for them, and the fit beside them.
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

    /// The report as `file` asks for it.
    ///
    /// # Errors
    /// If it asks for a column that there is not.
    pub fn rendered(&self, file: &FileFlags) -> Result<String, Stop> {
        if file.format() == Format::Table && file.columns.is_none() {
            return Ok(self.table());
        }
        let rows = self.sections.iter().flat_map(|s| s.rows(self.kind));
        file.rendered(&Self::heading(), &rows.collect::<Vec<_>>())
    }

    /// The keys of its rows.
    pub fn heading() -> Vec<&'static str> {
        row::identity_keys().chain(RESULTS).collect()
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

impl Section {
    /// The identity that the runs of the fit share, at another size.
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

/// The latency that the paper prints for this size.
fn published(nodes: u32, cores: u32) -> Option<f64> {
    let mut points = PUBLISHED_POINTS.iter();
    points
        .find(|point| (point.0, point.1) == (nodes, cores))
        .map(|point| point.2)
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
