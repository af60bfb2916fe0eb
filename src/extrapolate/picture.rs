//! Formula and simulation in one picture: for each topology a panel, over the nodes, with the
//! interval in which the formula expects the next measurement.
//!
//! Called by `sme extrapolate --against-simulation`; drawn by [`crate::plot`].

use super::Sample;
use crate::fit::SurfaceFit;
use crate::plot::{
    self, Axis, Band, COLOURS, Chart, Curve, Page, Panel, PlotError, Scaling, Stroke,
};

/// One panel: a topology, the formula fitted to its small sizes, and the simulation of all.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The topology, and further conditions of the run.
    pub title: String,
    /// Fitted to the first of the samples.
    pub fit: SurfaceFit,
    /// The largest number of nodes that it was fitted to.
    pub fitted_to: u32,
    /// Simulated, in any order.
    pub samples: Vec<Sample>,
    /// Each has a curve.
    pub cores: Vec<u32>,
}

/// `pictures` as one SVG file, two in a row.
///
/// # Errors
/// What `plotters` refuses.
pub fn svg(pictures: &[Picture], machine: &str) -> Result<String, PlotError> {
    let panels: Vec<Panel> = pictures.iter().map(|p| p.panel(machine)).collect();
    plot::compared(&panels, 2, Page::default())
}

impl Picture {
    fn panel(&self, machine: &str) -> Panel {
        let mut curves = Vec::new();
        let mut bands = Vec::new();
        let colours = || self.cores.iter().zip(COLOURS.into_iter().cycle());
        for (&cores, colour) in colours() {
            curves.push(Curve {
                group: "Simulated, cores per node".into(),
                label: cores.to_string(),
                points: self.simulated(cores),
                colour,
                stroke: Stroke::Dotted,
            });
        }
        for (&cores, colour) in colours() {
            let expected = |nodes: f64| (nodes, self.fit.predict(nodes, cores.into()));
            let nodes: Vec<f64> = self.nodes();
            curves.push(Curve {
                group: "Eq. 2 and its interval".into(),
                label: cores.to_string(),
                points: nodes.iter().map(|&n| (n, expected(n).1.latency)).collect(),
                colour,
                stroke: Stroke::Dashed,
            });
            bands.push(Band {
                points: nodes
                    .iter()
                    .map(|&n| expected(n))
                    .map(|(n, p)| (n, p.low(), p.high()))
                    .collect(),
                colour,
            });
        }
        let percent = self.fit.confidence.percent();
        let chart = Chart {
            title: self.title.clone(),
            subtitle: format!("Barrier latency, {machine}; cf. Fröning et al., Sec. VI"),
            x: Axis {
                label: "nodes".into(),
                ticks: self.ticks(),
                scaling: Scaling::Logarithmic,
            },
            y: Axis {
                label: "barrier latency [µs]".into(),
                ticks: Vec::new(),
                scaling: Scaling::Linear,
            },
            curves,
            marks: Vec::new(),
            caption: vec![format!(
                "Eq. 2 fitted to {} sizes of up to {} nodes (R² {:.4}); shaded: the {percent} % \
                 interval of one more measurement",
                self.fit.points, self.fitted_to, self.fit.surface.r_squared,
            )],
        };
        Panel {
            bands,
            ..Panel::from(chart)
        }
    }

    /// The mean over the runs of each size.
    fn simulated(&self, cores: u32) -> Vec<(f64, f64)> {
        let nodes = super::distinct(self.of(cores).map(|sample| sample.nodes));
        let mean = |nodes: u32| {
            let runs: Vec<f64> = self
                .of(cores)
                .filter(|sample| sample.nodes == nodes)
                .map(|sample| sample.latency_us)
                .collect();
            runs.iter().sum::<f64>() / runs.len() as f64
        };
        nodes.into_iter().map(|n| (n.into(), mean(n))).collect()
    }

    fn of(&self, cores: u32) -> impl Iterator<Item = &Sample> {
        let of_cores = move |sample: &&Sample| sample.cores == cores;
        self.samples.iter().filter(of_cores)
    }

    fn nodes(&self) -> Vec<f64> {
        let nodes = super::distinct(self.samples.iter().map(|sample| sample.nodes));
        nodes.into_iter().map(f64::from).collect()
    }

    /// Powers of 4 around everything.
    fn ticks(&self) -> Vec<f64> {
        let nodes = self.nodes();
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
            return Vec::new();
        };
        let powers = (0..16).map(|power| 4f64.powi(power));
        let powers = powers.skip_while(|tick| tick * 4.0 <= *first);
        let mut below = true;
        powers
            .take_while(|tick| std::mem::replace(&mut below, tick < last))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extrapolate::Series;
    use crate::fit::{Confidence, Surface};

    fn picture(last: u32) -> Picture {
        let mut samples = Vec::new();
        for nodes in (1..=last.ilog2()).map(|power| 1u32 << power) {
            for cores in [1, 4, 16] {
                let wave = f64::from(nodes % 7) / 10.0;
                let latency_us = Surface::PUBLISHED.at(nodes.into(), cores.into()) + wave;
                samples.push(Sample {
                    nodes,
                    cores,
                    latency_us,
                });
            }
        }
        let fitted = samples.iter().filter(|s| s.nodes <= 64).copied();
        let series = Series {
            samples: fitted.collect(),
            identity: Vec::new(),
        };
        Picture {
            title: "mesh".into(),
            fit: series.fit(Confidence::USUAL).unwrap().surface,
            fitted_to: 64,
            samples,
            cores: vec![1, 4, 16],
        }
    }

    #[test]
    fn a_panel_has_every_size_and_a_band_around_every_curve() {
        let picture = picture(4096);
        let panel = picture.panel("sme-prototype");
        assert_eq!(panel.chart.curves.len(), 6);
        assert_eq!(panel.bands.len(), 3);
        let [simulated, formula] = [0, 3].map(|index| &panel.chart.curves[index]);
        assert_eq!(simulated.points.len(), 12);
        for (at, &(nodes, low, high)) in formula.points.iter().zip(&panel.bands[0].points) {
            assert!(at.0 == nodes && low < at.1 && at.1 < high);
        }
        assert_eq!(
            panel.chart.x.ticks,
            [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]
        );
    }

    #[test]
    fn four_panels_make_one_file() {
        let svg = svg(
            &[picture(64), picture(128), picture(2048), picture(64)],
            "m",
        )
        .unwrap();
        assert_eq!(svg.matches("<svg").count(), 1);
        assert_eq!(
            svg.lines()
                .filter(|line| *line == "barrier latency [µs]")
                .count(),
            4
        );
        assert!(svg.contains("width=\"2000\" height=\"1276\""));
        assert!(svg.contains("opacity=\"0.14\""));
    }
}
