//! `sme extrapolate`: Eq. 2 fitted to a sweep, what it says of larger clusters, and whether the
//! simulation agrees.
//!
//! Called by [`super::main`]; fits and topologies are [`crate::extrapolate`]'s. A sweep comes from
//! files, or is simulated here. Times in microseconds.

use std::path::{Path, PathBuf};

use clap::Args;

use super::args;
use super::flags::{ExperimentFlags, FileFlags, Heading};
use super::memory;
use super::names;
use super::read::{self, MAX_NODES, Values};
use crate::experiment::{Experiment, Observe};
use crate::extrapolate::family::Family;
use crate::extrapolate::input::{self, Selection};
use crate::extrapolate::{PUBLISHED_POINTS, Series};
use crate::fit::Confidence;
use crate::progress::{self, Silent, Watch};
use crate::report::output::{self, Output};
use crate::report::row::{self, Summary};
use crate::report::stop::{Stop, one_line};
use crate::validate::measure::over;

mod report;

use report::Report;

/// The sizes that the paper's Eq. 2 is fitted to (Fig. 9 and 10). One node has no network.
const FIT_NODES: &str = "2..64*2";
const FIT_CORES: &str = "1..16*2";
/// The nodes of the paper's network, which its smaller clusters are the first nodes of.
const FIT_TOPOLOGY_NODES: u32 = 64;
/// The sizes that `--against-simulation` compares unless told otherwise.
const AGAINST_NODES: &str = "64..16384*2";
const AGAINST_CORES: &str = "1,4,16";
/// Where the plot is, unless told otherwise.
const RESULTS: &str = "results";
/// From so many threads on, an experiment has all of this computer's threads for itself.
const LARGE: u64 = 1 << 16;

/// The flags that only a simulation looks at, by their names in clap.
const SIMULATION_ONLY: [&str; 29] = [
    "against_simulation",
    "topologies",
    "fit_nodes",
    "fit_cores",
    "large_episodes",
    "plot",
    "machine",
    "set",
    "algorithm",
    "placement",
    "topology",
    "episodes",
    "seed",
    "pin",
    "layout",
    "fan_in",
    "tree_shape",
    "mapping",
    "local_fan_in",
    "skew",
    "engine",
    "workers",
    "form",
    "skew_distribution",
    "work",
    "noise_period",
    "noise_duration",
    "noise_distribution",
    "noise_duration_distribution",
];

/// The flags of `sme extrapolate`.
#[derive(Args, Clone, Debug)]
pub struct ExtrapolateFlags {
    /// Sweeps to fit: rows of `sme sweep`, or of anybody, as CSV or JSON lines [default: simulate
    /// --fit-nodes times --fit-cores]
    // What was measured is not simulated: the flags that say what is go without files. clap lets a
    // flag that `requires` another pass where that one is ruled out, so those stand here, too.
    #[arg(value_name = "FILE", conflicts_with_all = SIMULATION_ONLY)]
    files: Vec<PathBuf>,
    /// Take the paper's coefficients; those of the fit stand beside them
    #[arg(long, conflicts_with_all = ["topologies", "large_episodes", "plot"])]
    paper: bool,
    /// Simulate the large sizes too, and draw them with the formula
    #[arg(long, conflicts_with_all = ["paper", "files", "column", "only"])]
    against_simulation: bool,
    /// Kinds of networks that grow with the nodes [default: all]
    ///
    /// The end of this text lists them.
    #[arg(long, value_name = "NAMES", requires = "against_simulation")]
    topologies: Option<String>,
    /// Nodes of the sweep that Eq. 2 is fitted to
    #[arg(long, value_name = "LIST", default_value = FIT_NODES, allow_negative_numbers = true)]
    fit_nodes: String,
    /// Cores per node of that sweep
    #[arg(long, value_name = "LIST", default_value = FIT_CORES, allow_negative_numbers = true)]
    fit_cores: String,
    /// How sure the intervals are, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "95",
        allow_negative_numbers = true
    )]
    confidence: String,
    /// The column of FILE with the latency in microseconds [default: latency_us, else
    /// latency_mean_us]
    #[arg(long, value_name = "KEY", requires = "files")]
    column: Option<String>,
    /// Take only the rows of FILE whose column has this value; may be repeated
    #[arg(long = "where", value_name = "KEY=VALUE", requires = "files")]
    only: Vec<String>,
    /// Counted episodes of the sizes of --against-simulation, which take longest
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true,
        requires = "against_simulation"
    )]
    large_episodes: String,
    /// Draw formula and simulation (--against-simulation) as SVG [default: results/extrapolate.svg]
    #[arg(long, value_name = "FILE", requires = "against_simulation")]
    plot: Option<PathBuf>,
    /// Write the coefficients and every line's R^2; rows as CSV or JSON, by FILE's ending
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    #[command(flatten)]
    experiment: ExperimentFlags,
    #[command(flatten)]
    output: FileFlags,
}

/// An extrapolation whose flags fit together.
#[derive(Debug)]
pub struct ExtrapolateRun {
    source: Source,
    /// Nodes and cores per node to predict; what is not given is the sweep's.
    sizes: (Option<Vec<u32>>, Option<Vec<u32>>),
    paper: bool,
    confidence: Confidence,
    workers: usize,
    plot: Option<PathBuf>,
    lines: Option<FileFlags>,
    output: FileFlags,
}

/// Where the sweep comes from.
#[derive(Debug)]
enum Source {
    Files(Vec<PathBuf>, Selection),
    Simulation(Vec<Experiment>),
    /// For each kind of network what is fitted, and what it is compared with.
    Families(Vec<(Family, Vec<Experiment>, Vec<Experiment>)>),
}

impl ExtrapolateRun {
    /// Reads the flags; every experiment is checked, no file is opened.
    pub fn read(flags: &ExtrapolateFlags) -> Result<Self, Stop> {
        let percent = flags.confidence.trim().parse().ok();
        let confidence = percent.and_then(Confidence::new).ok_or_else(|| {
            let flag = format!("--confidence {}", flags.confidence);
            Stop::flag(&flag, "a number of percent between 0 and 100")
        })?;
        let most_nodes = match flags.against_simulation {
            true => MAX_NODES,
            false => u32::MAX,
        };
        let list = |flag, text: &Option<String>, most| {
            let read = |text: &String| read::counts(flag, text, 1, most, Values::Many);
            text.as_ref().map(read).transpose()
        };
        let sizes = (
            list("--nodes", &flags.experiment.nodes, most_nodes)?,
            list("--cores", &flags.experiment.cores, u32::MAX)?,
        );
        let length = |list: &Option<Vec<u32>>| list.as_ref().map_or(1, Vec::len);
        if length(&sizes.0).saturating_mul(length(&sizes.1)) > args::MAX_POINTS {
            return Err(Stop::Input(format!(
                "--nodes and --cores: more than {} sizes: shorten the lists",
                args::MAX_POINTS
            )));
        }
        let run = Self {
            source: source(flags, confidence)?,
            sizes,
            paper: flags.paper,
            confidence,
            workers: read::host_threads("--workers", &flags.experiment.workers)?,
            plot: flags.against_simulation.then(|| {
                let default = || Path::new(RESULTS).join("extrapolate.svg");
                flags.plot.clone().unwrap_or_else(default)
            }),
            lines: flags.lines.clone().map(|path| FileFlags {
                format: None,
                output: Some(path),
                columns: None,
            }),
            output: flags.output.clone(),
        };
        // The plot may have a name that no flag gives.
        let written = [
            ("-o", run.output.output.as_deref()),
            ("--plot", run.plot.as_deref()),
            ("--lines", flags.lines.as_deref()),
        ];
        output::distinct(&written)?;
        output::apart_from_inputs(&flags.files, &written)?;
        Ok(run)
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(&Report::heading(), false)
    }

    /// Reads or simulates the sweep, fits it, and writes what follows from it.
    pub fn run(&self) -> Result<(), Stop> {
        let open = |flag, path: &Option<PathBuf>| match path {
            Some(path) => Output::file(flag, path).map(Some),
            None => Ok(None),
        };
        // Only the directory of the default is made: another that is missing may be a mistake, and
        // would be left behind where the run fails.
        if let Some(directory) = self.plot.as_deref().map(output::directory)
            && directory == Path::new(RESULTS)
        {
            std::fs::create_dir_all(directory)
                .map_err(|error| Stop::unwritable("--plot", directory, &error))?;
        }
        let mut result = Output::file_or_stdout(self.output.output.as_deref())?;
        let mut plot = open("--plot", &self.plot)?;
        let lines_file = self.lines.as_ref().and_then(|lines| lines.output.clone());
        let mut lines = open("--lines", &lines_file)?;

        let watch = progress::on_stderr();
        let report = self.report(watch.as_ref());
        watch.end();
        let report = report?;
        result.push(&report.rendered(&self.output)?)?;
        if let (Some(lines), Some(flags)) = (&mut lines, &self.lines) {
            lines.push(&report.lines(flags.format()))?;
        }
        if let Some(plot) = &mut plot {
            plot.push(&report.svg()?)?;
        }
        for output in [Some(result), lines, plot].into_iter().flatten() {
            output.commit()?;
        }
        Ok(())
    }

    fn report(&self, watch: &dyn Watch) -> Result<Report, Stop> {
        match &self.source {
            Source::Files(files, selection) => {
                let series = input::read(files, selection)
                    .map_err(|error| Stop::Input(one_line(&error.to_string())))?;
                let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
                self.predictions(series, &names.join(", "))
            }
            Source::Simulation(experiments) => {
                let latencies = simulate(experiments, self.workers, watch)?;
                let runs: Vec<_> = experiments.iter().zip(latencies).collect();
                self.predictions(Series::simulated(&runs), "--fit-nodes, --fit-cores")
            }
            Source::Families(families) => {
                let all = families
                    .iter()
                    .flat_map(|(_, fitted, large)| [fitted, large]);
                let experiments: Vec<Experiment> = all.flatten().cloned().collect();
                let mut latencies = simulate(&experiments, self.workers, watch)?.into_iter();
                let mut report = Report::against();
                for (family, fitted, large) in families {
                    let mut runs = |of: &'_ [Experiment]| -> Vec<f64> {
                        latencies.by_ref().take(of.len()).collect()
                    };
                    let (small, rest) = (runs(fitted), runs(large));
                    let fitted: Vec<_> = fitted.iter().zip(small).collect();
                    let large: Vec<_> = large.iter().zip(rest).collect();
                    let series = Series::simulated(&fitted);
                    let fit = series
                        .fit(self.confidence)
                        .map_err(|error| Stop::flag("--fit-nodes, --fit-cores", error))?;
                    report.add_family(*family, series, fit, &large);
                }
                Ok(report)
            }
        }
    }

    /// Predicts the sizes that were asked for from `series`, which comes from `place`.
    fn predictions(&self, series: Series, place: &str) -> Result<Report, Stop> {
        let fit = series.fit(self.confidence).map_err(|error| {
            let sizes = "at least two numbers of nodes and two of cores per node are needed";
            Stop::flag(place, format!("{error}; {sizes}"))
        })?;
        let sizes = match &self.sizes {
            (None, None) => {
                let published = PUBLISHED_POINTS.iter();
                published.map(|&(nodes, cores, _)| (nodes, cores)).collect()
            }
            (nodes, cores) => {
                let nodes = nodes.clone().unwrap_or_else(|| series.nodes());
                let cores = cores.clone().unwrap_or_else(|| series.cores());
                if nodes.len().saturating_mul(cores.len()) > args::MAX_POINTS {
                    return Err(Stop::Input(format!(
                        "--nodes and --cores: more than {} sizes: shorten the lists",
                        args::MAX_POINTS
                    )));
                }
                let of_nodes = |&nodes: &u32| cores.iter().map(move |&cores| (nodes, cores));
                nodes.iter().flat_map(of_nodes).collect::<Vec<_>>()
            }
        };
        Ok(match self.paper {
            true => Report::paper(series, fit, &sizes),
            false => Report::formula(series, fit, &sizes),
        })
    }
}

/// The source of the fit and of the comparison, as the flags name it.
fn source(flags: &ExtrapolateFlags, confidence: Confidence) -> Result<Source, Stop> {
    if !flags.files.is_empty() {
        let pair = |text: &String| match text.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(Stop::flag(&format!("--where {text}"), "write KEY=VALUE")),
        };
        let selection = Selection {
            latency: flags.column.clone(),
            only: flags.only.iter().map(pair).collect::<Result<_, _>>()?,
        };
        return Ok(Source::Files(flags.files.clone(), selection));
    }
    let machine = args::machine(&flags.experiment.machine)?;
    let counts = |flag, text: &str, most| read::counts(flag, text, 1, most, Values::Many);
    let nodes = counts("--fit-nodes", &flags.fit_nodes, MAX_NODES)?;
    let most_cores = args::cores_per_node(&machine);
    if most_cores < 2 {
        let why = "its nodes have one core, and Eq. 2 is fitted over several numbers of cores";
        return Err(Stop::flag(&format!("--machine {}", machine.name()), why));
    }
    counts("--fit-cores", &flags.fit_cores, most_cores)?;
    let most = machine.shape().nodes;
    if let Some(nodes) = nodes.iter().find(|&&nodes| nodes > most) {
        let why = format!("machine {} has {most}", machine.name());
        return Err(Stop::flag(&format!("--fit-nodes {nodes}"), why));
    }
    if flags.against_simulation {
        let mut families = Vec::new();
        for family in families_of(flags.topologies.as_deref())? {
            let fitted = grown(flags, family, &flags.fit_nodes, &flags.fit_cores, None)?;
            determined(&fitted, confidence)?;
            let given = |of: &Option<String>, default: &str| {
                of.clone().unwrap_or_else(|| default.to_owned())
            };
            let nodes = given(&flags.experiment.nodes, AGAINST_NODES);
            let cores = given(&flags.experiment.cores, AGAINST_CORES);
            let episodes = Some(flags.large_episodes.as_str());
            let large = grown(flags, family, &nodes, &cores, episodes)?;
            families.push((family, fitted, large));
        }
        return Ok(Source::Families(families));
    }
    let of_paper = nodes.iter().all(|&nodes| nodes <= FIT_TOPOLOGY_NODES);
    let topology = match &flags.experiment.topology {
        None if of_paper => {
            let shape = machine.shape();
            Some(shape.topology(FIT_TOPOLOGY_NODES).to_string())
        }
        given => given.clone(),
    };
    let flags = ExperimentFlags {
        nodes: Some(flags.fit_nodes.clone()),
        cores: Some(flags.fit_cores.clone()),
        topology,
        ..flags.experiment.clone()
    };
    let experiments = one_series(args::points(&flags)?)?;
    determined(&experiments, confidence)?;
    Ok(Source::Simulation(experiments))
}

/// Refuses sizes that determine no fit, at any latencies.
fn determined(experiments: &[Experiment], confidence: Confidence) -> Result<(), Stop> {
    let runs: Vec<_> = experiments.iter().map(|e| (e, 0.0)).collect();
    match Series::simulated(&runs).fit(confidence) {
        Ok(_) => Ok(()),
        Err(error) => Err(Stop::flag("--fit-nodes, --fit-cores", error)),
    }
}

fn families_of(text: Option<&str>) -> Result<Vec<Family>, Stop> {
    let Some(text) = text else {
        return Ok(Family::ALL.to_vec());
    };
    let words = read::words("--topologies", text, Values::Many)?;
    let mut families = Vec::new();
    for word in words {
        let family = names::parse(word).map_err(|reason| Stop::flag("--topologies", reason))?;
        if !families.contains(&family) {
            families.push(family);
        }
    }
    Ok(families)
}

/// The experiments of `nodes` times `cores`, each number of nodes on its own topology.
fn grown(
    flags: &ExtrapolateFlags,
    family: Family,
    nodes: &str,
    cores: &str,
    episodes: Option<&str>,
) -> Result<Vec<Experiment>, Stop> {
    if flags.experiment.topology.is_some() {
        return Err(Stop::flag(
            "--topology",
            "--against-simulation grows its own: --topologies names their kinds",
        ));
    }
    let episodes = episodes.unwrap_or(&flags.experiment.episodes);
    let mut experiments = Vec::new();
    for nodes in read::counts("--nodes", nodes, 1, MAX_NODES, Values::Many)? {
        let topology = family
            .topology(nodes)
            .map_err(|error| Stop::flag(&format!("--nodes {nodes}"), error))?;
        let flags = ExperimentFlags {
            nodes: Some(nodes.to_string()),
            cores: Some(cores.to_owned()),
            topology: Some(topology.to_string()),
            episodes: episodes.to_owned(),
            ..flags.experiment.clone()
        };
        experiments.extend(args::points(&flags)?);
    }
    one_series(experiments)
}

/// Refuses experiments that differ in more than sizes and seeds.
fn one_series(experiments: Vec<Experiment>) -> Result<Vec<Experiment>, Stop> {
    const FREE: [&str; 5] = ["topology", "nodes", "cores_per_node", "threads", "seed"];
    let mut points = experiments.iter().map(row::identity);
    if let Some(first) = points.next() {
        for other in points {
            let keys = row::identity_keys().zip(first.iter().zip(&other));
            for (key, (one, another)) in keys.filter(|(key, _)| !FREE.contains(key)) {
                if one != another {
                    let (one, another) = (one.to_text(), another.to_text());
                    return Err(Stop::Input(one_line(&format!(
                        "one fit takes one barrier on one machine: {key} is {one} and {another}"
                    ))));
                }
            }
        }
    }
    Ok(experiments)
}

/// The mean latency of each experiment in microseconds, in their order. Small ones are simulated
/// side by side, large ones one after the other, each on all `workers`.
fn simulate(
    experiments: &[Experiment],
    workers: usize,
    watch: &dyn Watch,
) -> Result<Vec<f64>, Stop> {
    let available = memory::available();
    let mut needed = Vec::with_capacity(experiments.len());
    for experiment in experiments {
        let bytes = memory::needed(experiment, &Observe::default());
        memory::fits(experiment, bytes, available)?;
        needed.push(bytes);
    }
    let threads = |experiment: &Experiment| {
        u64::from(experiment.topology.positions()) * u64::from(experiment.cores)
    };
    let cost = |experiment: &Experiment| threads(experiment) * u64::from(experiment.episodes + 1);
    let measured = |experiment: &Experiment| {
        let (outcome, _) = super::barrier::measured(experiment, &Observe::default(), &Silent)
            .map_err(|stop| stop.at(&describe(experiment)))?;
        watch.advance(cost(experiment));
        Ok(Summary::new(&outcome.latencies).mean.as_ps() as f64 / 1e6)
    };
    watch.begin("simulated barriers", experiments.iter().map(cost).sum());
    let indexed: Vec<(usize, &Experiment)> = experiments.iter().enumerate().collect();
    let (large, small): (Vec<_>, Vec<_>) = indexed
        .into_iter()
        .partition(|(_, experiment)| threads(experiment) >= LARGE);
    let of_small: Vec<u64> = small
        .iter()
        .filter_map(|(i, _)| needed.get(*i).copied())
        .collect();
    let jobs = memory::jobs_that_fit(workers, &of_small, available);
    let results = over(&small, jobs, |(_, e)| cost(e), |(_, e)| measured(e));
    let mut latencies: Vec<(usize, f64)> = Vec::with_capacity(experiments.len());
    for ((index, _), result) in small.into_iter().zip(results) {
        latencies.push((index, result?));
    }
    for (index, experiment) in large {
        let alone = Experiment {
            workers,
            ..experiment.clone()
        };
        latencies.push((index, measured(&alone)?));
    }
    latencies.sort_unstable_by_key(|(index, _)| *index);
    Ok(latencies.into_iter().map(|(_, latency)| latency).collect())
}

fn describe(experiment: &Experiment) -> String {
    let Experiment {
        topology,
        nodes,
        cores,
        ..
    } = experiment;
    format!("--topology {topology} --nodes {nodes} --cores {cores}")
}

#[cfg(test)]
mod tests {
    use super::super::command;

    /// A new flag of experiments must not be ignored beside a file.
    #[test]
    fn what_only_a_simulation_uses_is_refused_beside_a_file() {
        let mut all = command();
        all.build();
        let extrapolate = all.find_subcommand("extrapolate").unwrap();
        let used = [
            "nodes",
            "cores",
            "files",
            "paper",
            "confidence",
            "column",
            "only",
        ];
        let also = ["lines", "format", "output", "columns", "help"];
        let files = (extrapolate.get_arguments()).find(|argument| argument.get_id() == "files");
        let refused = extrapolate.get_arg_conflicts_with(files.unwrap());
        for argument in extrapolate.get_arguments() {
            let is_used = used
                .iter()
                .chain(&also)
                .any(|used| argument.get_id() == used);
            assert_eq!(
                is_used,
                !refused.contains(&argument),
                "{}",
                argument.get_id()
            );
        }
    }
}
