//! A fit as tables for people.

use super::{Kind, Section, Simulated, published, summarized};
use crate::extrapolate::family::Family;
use crate::extrapolate::{Sample, Trend};
use crate::fit::{self, Surface};
use crate::report::row::Cell;
use crate::report::table::aligned;

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

    pub(super) fn prediction_table(&self, kind: Kind) -> String {
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

    pub(super) fn comparison_table(&self) -> String {
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
