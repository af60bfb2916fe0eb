//! The default job: the paper's headline experiment, Fig. 8. Flat and tree barriers on the first
//! 1 to 64 nodes of an 8×8 mesh, with 1 to 16 threads per node.
//!
//! Called by the command line when there is no command; simulates through
//! [`crate::validate::papers::sme::simulator`] and draws with [`crate::plot`]. The validation's
//! estimators read the published figures off the curves, and the validation judges them: tolerances
//! and verdicts come from there alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sme_sim::machine::Machine;

use crate::experiment::{Algorithm, Experiment, Observe, Outcome, VariablePlacement};
use crate::fit::Surface;
use crate::plot::{Axis, Chart, Curve, Marks, Scaling, Stroke, Symbol};
use crate::progress::{Silent, Watch};
use crate::report::output::Output;
use crate::report::row::{self, Row};
use crate::report::stop::{Stop, one_line};
use crate::validate::deviations::Deviations;
use crate::validate::measure::{Measurements, over};
use crate::validate::papers::Fit;
use crate::validate::papers::sme;
use crate::validate::papers::sme::points::{Point, Variant};
use crate::validate::papers::sme::simulator::Simulator;
use crate::validate::published;
use crate::validate::report;
use crate::validate::verdict::Row as Verdict;

/// The machine.
const MACHINE: &str = "sme-prototype";
/// Counted episodes of each barrier. Those of one experiment differ little; the paper has 10,000.
const EPISODES: u32 = 20;
/// The seed of every simulation.
const SEED: u64 = 1;
/// Nodes.
const NODES: std::ops::RangeInclusive<u32> = 1..=64;
/// Threads per node.
const CORES: [u32; 5] = [1, 2, 4, 8, 16];
/// The two barriers.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::Flat, Algorithm::Tree];

/// Statements of the paper about Fig. 8 in its text: nodes, latency in microseconds, whether that
/// is a bound. 8 nodes of 8 threads in less than 6 µs, 64 nodes of 1 thread in 11 µs (Sec. V-B), 64
/// nodes of 16 threads in less than 15 µs (abstract).
const STATED: [(u32, f64, bool); 3] = [(8, 6.0, true), (64, 11.0, false), (64, 15.0, true)];

/// The figure whose two bends want an explanation below the table.
const CONGESTION: &str = "sme.fig8.flat_congestion";

/// The figures that the job prints, and what they are.
const HEADLINES: [(&str, &str); 8] = [
    ("sme.fig8.tree.8x8", "tree, 8 nodes of 8 threads"),
    ("sme.fig8.tree.64x1", "tree, 64 nodes of 1 thread"),
    ("sme.fig8.tree.64x16", "tree, 64 nodes of 16 threads"),
    (
        CONGESTION,
        "flat, 16 threads per node: the slope changes at",
    ),
    (
        "sme.fig9.r2_logarithmic",
        "tree: smallest R^2 of a logarithm of the nodes",
    ),
    ("sme.fig9.r2_linear", "tree: mean R^2 of a straight line"),
    ("sme.eq2.a0", "tree: e times as many nodes (a0 of Eq. 2)"),
    (
        "sme.eq2.b1",
        "tree: one more core in each node (b1 of Eq. 2)",
    ),
];

/// The meaning of the verdicts in the table.
const VERDICTS: &str = "\
    calibrated  within the tolerance; a constant was fitted to this figure\n\
    reproduced  within the tolerance; nothing was fitted to it\n\
    deviates    outside the tolerance; DEVIATIONS.md has the reason, as far as it is known\n";

/// Simulates Fig. 8 on `workers` threads of the host, writes `fig8.csv` and `fig8.svg` into
/// `directory`, and returns what to print.
///
/// # Errors
/// [`Stop::Input`] where `directory` cannot be written to, which is known before anything is
/// simulated; [`Stop::Failed`] where a simulation does not end well.
pub fn run(directory: &Path, workers: usize, watch: &dyn Watch) -> Result<String, Stop> {
    run_episodes(EPISODES, directory, workers, watch)
}

fn run_episodes(
    episodes: u32,
    directory: &Path,
    workers: usize,
    watch: &dyn Watch,
) -> Result<String, Stop> {
    // No flag has named them: their paths say what they are.
    let what = "";
    fs::create_dir_all(directory).map_err(|error| Stop::unwritable(what, directory, &error))?;
    let (csv_path, svg_path) = (directory.join("fig8.csv"), directory.join("fig8.svg"));
    let mut csv = Output::file(what, &csv_path)?;
    let mut svg = Output::file(what, &svg_path)?;

    let failed = |reason: String| Stop::Failed(one_line(&reason));
    let machine = Machine::builtin(MACHINE).map_err(|error| failed(error.to_string()))?;
    let simulator = Simulator::new(Arc::new(machine), episodes, SEED)
        .map_err(|error| failed(error.to_string()))?;
    let experiments = experiments(&simulator);
    let outcomes = simulate(&experiments, workers, watch).map_err(failed)?;
    let runs: Vec<(&Experiment, &Outcome)> = experiments.iter().zip(&outcomes).collect();

    csv.push(&to_csv(&runs))?;
    svg.push(
        &chart(&runs)
            .to_svg()
            .map_err(|error| failed(error.to_string()))?,
    )?;
    let headlines = headlines(&runs, &simulator.fitted()).map_err(failed)?;
    csv.commit()?;
    svg.commit()?;
    Ok(format!(
        "Barrier latency on {MACHINE}: the first nodes of an 8x8 mesh, {episodes} barriers each (Fig. 8)\n\n\
         {headlines}\n\
         {VERDICTS}\n\
         Table: {}\nPlot:  {}\n\
         All published figures, with 100 barriers each: sme validate\n",
        csv_path.display(),
        svg_path.display()
    ))
}

/// Flat before tree, few threads per node before many, few nodes before many.
fn experiments(simulator: &Simulator) -> Vec<Experiment> {
    let mut experiments = Vec::new();
    for algorithm in ALGORITHMS {
        for cores in CORES {
            for nodes in NODES {
                let (variant, placement) = (Variant::Prototype, VariablePlacement::Local);
                experiments.push(simulator.experiment(variant, algorithm, placement, nodes, cores));
            }
        }
    }
    experiments
}

fn simulate(
    experiments: &[Experiment],
    workers: usize,
    watch: &dyn Watch,
) -> Result<Vec<Outcome>, String> {
    let threads =
        |experiment: &Experiment| u64::from(experiment.nodes) * u64::from(experiment.cores);
    watch.begin("simulated threads", experiments.iter().map(threads).sum());
    let outcomes = over(experiments, workers, threads, |experiment| {
        let outcome = experiment.run(&Observe::default(), &Silent);
        watch.advance(threads(experiment));
        outcome.map_err(|error| {
            let (nodes, cores) = (experiment.nodes, experiment.cores);
            format!(
                "{:?}, {nodes} nodes of {cores} threads: {error}",
                experiment.algorithm
            )
        })
    });
    watch.end();
    outcomes.into_iter().collect()
}

fn to_csv(runs: &[(&Experiment, &Outcome)]) -> String {
    let mut text = row::csv_header(false) + "\n";
    for (experiment, outcome) in runs {
        text.push_str(&Row::new(experiment, outcome, None).to_csv());
        text.push('\n');
    }
    text
}

/// The published figures that these runs determine, beside the simulated ones, each with its
/// verdict. `fits` names the constants and choices that were fitted to figures.
fn headlines(runs: &[(&Experiment, &Outcome)], fits: &[Fit]) -> Result<String, String> {
    let known = runs.iter().map(|(experiment, outcome)| {
        let point = Point::barrier(experiment.algorithm, experiment.nodes, experiment.cores);
        (point, Ok(outcome.mean_us()))
    });
    let measured = Measurements::known(known.collect());
    let figures = published::built_in().map_err(|error| error.to_string())?;
    let deviations = Deviations::built_in();
    let mut rows = Vec::with_capacity(HEADLINES.len());
    let mut remarks = Vec::new();
    for (id, _) in HEADLINES {
        let (Some(figure), Some(estimator)) = (
            figures.iter().find(|figure| figure.id == id),
            sme::estimator(id),
        ) else {
            return Err(format!("{id} is no figure that can be read off"));
        };
        let finding = (estimator.find)(&measured)?;
        if id == CONGESTION {
            remarks.extend(finding.notes.last().map(|note| format!("\nflat, {note}\n")));
        }
        rows.push(Verdict::new(
            figure.clone(),
            Some(Ok(finding)),
            fits,
            &deviations,
        ));
    }
    let named = HEADLINES.iter().map(|(_, what)| (*what).to_owned());
    Ok(report::comparison("", named, &rows) + &remarks.concat())
}

/// Fig. 8, with what the text states of it and Eq. 2's curves for 1 and 16 threads per node.
fn chart(runs: &[(&Experiment, &Outcome)]) -> Chart {
    let mut curves = Vec::new();
    for (algorithm, group, colours) in [
        (Algorithm::Flat, "Flat, threads per node", ORANGES),
        (Algorithm::Tree, "Tree, threads per node", BLUES),
    ] {
        for (&cores, &colour) in CORES.iter().zip(&colours).rev() {
            let curve = runs.iter().filter(|(experiment, _)| {
                experiment.algorithm == algorithm && experiment.cores == cores
            });
            curves.push(Curve {
                group: group.into(),
                label: cores.to_string(),
                points: curve
                    .map(|(experiment, outcome)| (experiment.nodes.into(), outcome.mean_us()))
                    .collect(),
                colour,
                stroke: Stroke::Marked,
            });
        }
    }
    for (cores, label) in [(1, "Eq. 2: 1 and 16 threads"), (16, "")] {
        let latency = |nodes: u32| Surface::PUBLISHED.at(nodes.into(), cores.into());
        curves.push(Curve {
            group: PUBLISHED.into(),
            label: label.into(),
            points: NODES.map(|nodes| (nodes.into(), latency(nodes))).collect(),
            colour: GREY,
            stroke: Stroke::Dashed,
        });
    }
    let stated = |label: &str, symbol, bound| Marks {
        group: PUBLISHED.into(),
        label: label.into(),
        points: STATED
            .iter()
            .filter(|stated| stated.2 == bound)
            .map(|&(nodes, latency, _)| (nodes.into(), latency))
            .collect(),
        symbol,
    };
    Chart {
        title: "Barrier latency over nodes".into(),
        subtitle: format!(
            "{MACHINE}, simulated: the first nodes of an 8×8 mesh (cf. Fröning et al., Fig. 8)"
        ),
        x: Axis {
            label: "nodes".into(),
            ticks: [1, 8, 16, 24, 32, 40, 48, 56, 64].map(f64::from).to_vec(),
            scaling: Scaling::Linear,
        },
        y: Axis {
            label: "barrier latency [µs]".into(),
            ticks: Vec::new(),
            scaling: Scaling::Linear,
        },
        curves,
        marks: vec![
            stated("stated in the text", Symbol::Diamond, false),
            stated("stated as “less than”", Symbol::Bound, true),
        ],
        caption: Vec::new(),
    }
}

const PUBLISHED: &str = "Published";
/// From light, for few threads, to dark (ColorBrewer's sequences).
pub(crate) const BLUES: [(u8, u8, u8); 5] = [
    (158, 202, 225),
    (107, 174, 214),
    (66, 146, 198),
    (33, 113, 181),
    (8, 48, 107),
];
pub(crate) const ORANGES: [(u8, u8, u8); 5] = [
    (253, 190, 133),
    (253, 141, 60),
    (241, 105, 19),
    (217, 72, 1),
    (127, 39, 4),
];
pub(crate) const GREY: (u8, u8, u8) = (80, 80, 80);

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use super::*;

    /// Outcomes without a simulation: what is printed and drawn must be these.
    fn outcome(latency_ps: u64) -> Outcome {
        crate::cli::testing::outcome(&[latency_ps])
    }

    fn analytic() -> (Vec<Experiment>, Vec<Outcome>) {
        let machine = Arc::new(Machine::builtin(MACHINE).unwrap());
        let experiments = experiments(&Simulator::new(machine, 1, 1).unwrap());
        let outcomes = experiments.iter().map(|experiment| {
            let (nodes, cores) = (f64::from(experiment.nodes), f64::from(experiment.cores));
            let us = match experiment.algorithm {
                Algorithm::Tree => Surface::PUBLISHED.at(nodes, cores),
                _ if nodes <= 40.0 => 1.0 + 0.2 * nodes,
                _ => 0.5 * nodes - 10.0,
            };
            outcome((us * 1e6) as u64)
        });
        let outcomes = outcomes.collect();
        (experiments, outcomes)
    }

    #[test]
    fn what_is_printed_and_drawn_is_what_was_simulated() {
        let (experiments, outcomes) = analytic();
        let runs: Vec<_> = experiments.iter().zip(&outcomes).collect();
        let printed = headlines(&runs, &[]).unwrap();
        let line = |what: &str| printed.lines().find(|line| line.starts_with(what)).unwrap();
        let has = |what: &str, cells: &str| {
            let words: Vec<&str> = line(what).split_whitespace().collect();
            assert!(words.join(" ").contains(cells), "{printed}");
        };
        has("tree, 64 nodes of 16 threads", "15 13.08 us");
        has("tree, 8 nodes of 8 threads", "< 6 6.3");
        has("flat, 16 threads", "40 40 nodes +0.0 % ±15 % reproduced");
        let csv = to_csv(&runs);
        assert_eq!(csv.lines().count(), 1 + 2 * 5 * 64);
        let chart = chart(&runs);
        assert_eq!(chart.curves.len(), 12);
        assert!(chart.curves.iter().all(|curve| curve.points.len() == 64));
        assert!(chart.to_svg().unwrap().contains("stated in the text"));
    }

    #[test]
    fn each_line_has_the_verdict_of_the_validation() {
        let (experiments, outcomes) = analytic();
        let verdict = |latency_us: f64, fits: &[Fit]| {
            let changed = experiments
                .iter()
                .zip(&outcomes)
                .map(|(experiment, known)| {
                    let at = (experiment.algorithm, experiment.nodes, experiment.cores);
                    match at == (Algorithm::Tree, 8, 8) {
                        true => outcome((latency_us * 1e6) as u64),
                        false => known.clone(),
                    }
                });
            let changed: Vec<Outcome> = changed.collect();
            let runs: Vec<_> = experiments.iter().zip(&changed).collect();
            let printed = headlines(&runs, fits).unwrap();
            let of_8x8 = |line: &&str| line.starts_with("tree, 8 nodes of 8 threads");
            let line = printed.lines().find(of_8x8).unwrap();
            line.split("  ").last().unwrap().trim().to_owned()
        };
        let fit = [Fit::choice("mapping", &["sme.fig8.tree.8x8"])];
        assert_eq!(verdict(5.9, &[]), "reproduced");
        assert_eq!(verdict(5.9, &fit), "calibrated");
        assert_eq!(verdict(6.1, &fit), "deviates, explained in part");
        assert_eq!(verdict(4.1, &fit), "deviates, explained in part");
    }

    /// The README shows 20 barriers each, the pinned verdicts are those of 100.
    #[test]
    fn the_readme_shows_the_verdicts_that_are_pinned() {
        let (readme, pinned) = (
            include_str!("../README.md"),
            include_str!("../reference/verdicts.txt"),
        );
        for (id, what) in HEADLINES {
            let line = readme.lines().find(|line| line.starts_with(what)).unwrap();
            let mut verdicts = pinned.lines().filter_map(|line| line.split_once(' '));
            let (_, verdict) = verdicts.find(|(of, _)| *of == id).unwrap();
            assert!(line.contains(&format!("  {verdict}")), "{verdict}: {line}");
        }
    }

    #[test]
    fn the_files_are_the_same_for_any_number_of_workers() {
        let written = |workers| {
            let directory = tempfile::tempdir().unwrap();
            let text = run_episodes(1, directory.path(), workers, &Silent).unwrap();
            assert!(text.contains("fig8.svg"), "{text}");
            ["fig8.csv", "fig8.svg"].map(|name| fs::read(directory.path().join(name)).unwrap())
        };
        let one = written(1);
        assert!(one.iter().all(|file| file.len() > 10_000));
        assert!(written(3) == one);
    }

    #[test]
    fn a_directory_that_cannot_be_is_bad_input() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stop = run(&file.path().join("results"), 1, &Silent).unwrap_err();
        assert_eq!(stop.status(), 2, "{stop}");
    }

    #[test]
    fn what_is_stated_agrees_with_the_published_figures() {
        let figures = published::built_in().unwrap();
        let value = |id: &str| figures.iter().find(|f| f.id == id).and_then(|f| f.number());
        assert_eq!(value("sme.fig8.tree.8x8"), Some(STATED[0].1));
        assert_eq!(value("sme.fig8.tree.64x1"), Some(STATED[1].1));
        assert_eq!(value("sme.fig8.tree.64x16"), Some(STATED[2].1));
    }
}
