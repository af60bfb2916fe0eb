//! Base of the commands that run programs: on which machine a program runs and by how many
//! threads, what its data lies in, and the rows that come of it, one for each combination of nodes
//! and cores.
//!
//! Called by [`super::fft`], [`super::lu`] and [`super::radix`]; simulated by [`crate::program`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sme_fft_demo::{LEAST_GRANULE_BYTES, Placement, Pool};
use sme_memory::Place;
use sme_sim::machine::{Dimension, Limits, Machine};
use sme_sim::observe::staleness::Checker;
use sme_sim::parts::fabric::Topology;

use super::args::{self, MAX_POINTS, MAX_THREADS};
use super::flags::{Heading, OutputFlags, ProgramFlags};
use super::memory::{self, Needs};
use super::program_row::{Done, row};
use super::read::{self, MAX_NODES, Values};
use crate::program::{Error, Kernel, Outcome, Program};
use crate::progress::{self, Watch};
use crate::report::Format;
use crate::report::links::write_link_load;
use crate::report::output::{self, Output};
use crate::report::row::{Cell, Host};
use crate::report::stale_list::{self, StaleList};
use crate::report::stop::{self, Stop};
use crate::report::timeline;

/// The nodes of the paper's cluster, over which it spreads the data of its programs.
const MEMORY_NODES: u32 = 64;

/// The default of [`ProgramFlags::nodes`].
const NODES: u32 = 64;
/// The default of [`ProgramFlags::cores`].
const CORES: u32 = 4;

/// A kernel whose own flags have been read.
pub trait Task {
    /// The kernel.
    type Kernel: Kernel;
    /// The result it leaves in memory.
    type Result;

    /// The name the row gives it.
    const NAME: &'static str;

    /// The names of its phases but the first, in their order.
    fn phases() -> Vec<&'static str>;

    /// Its size and its own parameters, as the row has them.
    fn parameters(&self) -> Vec<(&'static str, Cell)>;

    /// The needs of `program`.
    fn needs(&self, program: &Program) -> Needs;

    /// The kernel of `program`, its data in memory from `pool`.
    fn kernel(
        &self,
        program: &Program,
        pool: &mut Pool,
        placement: Placement,
    ) -> Result<Self::Kernel, Stop>;

    /// The result it has left in memory.
    fn result(kernel: &Self::Kernel, read: &dyn Fn(Place) -> u64) -> Self::Result;

    /// A fault in the result, if there is one.
    fn wrong(kernel: &Self::Kernel, result: &Self::Result) -> Option<String>;
}

/// The runs of a command, whose flags fit together.
#[derive(Debug)]
pub struct Plan {
    programs: Vec<Program>,
    placement: Placement,
    check: bool,
    link_load: Option<PathBuf>,
    stale_list: Option<PathBuf>,
    timeline: Option<PathBuf>,
    output: OutputFlags,
}

impl Plan {
    /// Reads the flags.
    pub fn read(flags: &ProgramFlags, output: OutputFlags) -> Result<Self, Stop> {
        let plan = Self {
            programs: programs(flags)?,
            placement: read::name("--placement", &flags.placement)?,
            check: !flags.no_check,
            link_load: flags.link_load.clone(),
            stale_list: flags.stale_list.clone(),
            timeline: flags.timeline.clone(),
            output,
        };
        if flags.link_load.is_some() {
            plan.only_one("--link-load")?;
        }
        if flags.stale_list.is_some() {
            plan.only_one(stale_list::FLAG)?;
        }
        if let Some(path) = &flags.timeline {
            plan.only_one(timeline::FLAG)?;
            plan.apart_from_rows(timeline::FLAG, path)?;
        }
        Ok(plan)
    }

    /// The runs, in their order.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The placement of the pieces of the data on nodes.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The same without the runs that are none of `wanted`.
    pub fn only(mut self, wanted: impl Fn(&Program) -> bool) -> Self {
        self.programs.retain(wanted);
        self
    }

    /// Whether results are compared.
    pub fn is_checked(&self) -> bool {
        self.check
    }

    /// Refuses `flag` unless there is one run.
    pub fn only_one(&self, flag: &str) -> Result<(), Stop> {
        match self.programs.len() {
            1 => Ok(()),
            runs => Err(Stop::flag(
                flag,
                format!("of one run; --nodes and --cores are {runs}"),
            )),
        }
    }

    /// Refuses `path` of `flag`, whose result is no text, where the rows go too.
    pub fn apart_from_rows(&self, flag: &str, path: &Path) -> Result<(), Stop> {
        let rows = self.output.file.output.as_deref();
        let rows_on_stdout =
            rows.is_none_or(|rows| rows == Path::new("-") || output::is_stdout(rows));
        if !rows_on_stdout || !output::is_stdout(path) {
            return Ok(());
        }
        let flag = format!("{flag} {}", path.display());
        Err(Stop::flag(
            &flag,
            "the rows go there, too: -o FILE sends them elsewhere",
        ))
    }

    /// Refuses what does not fit into this computer's memory, of which `available` bytes are left
    /// if that is known, or into that of the simulated nodes.
    pub fn fits<T: Task>(&self, task: &T, available: Option<u64>) -> Result<(), Stop> {
        for program in &self.programs {
            let needed = memory::needed_by(program, &task.needs(program));
            let what = T::parameters(task).into_iter().next();
            let what = what.map(|(key, cell)| format!("--{key} {}", cell.to_text()));
            let flags = format!("{} {}", what.unwrap_or_default(), of(program));
            memory::enough(&flags, needed, available)?;
            self.kernel(task, program).map(drop)?;
        }
        Ok(())
    }

    /// The keys of the rows.
    pub fn heading<T: Task>(&self, task: &T) -> Heading {
        let with_host = !self.output.no_host;
        self.output.file.heading(&self.keys(task), with_host)
    }

    /// Simulates everything and writes what was asked for; `keep` gets every result. What came
    /// before a failure is printed: a file appears whole or not at all.
    pub fn run<T: Task>(
        &self,
        task: &T,
        keep: impl FnMut(T::Result) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut rows = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let links = match &self.link_load {
            Some(path) => Some(Output::file("--link-load", path)?),
            None => None,
        };
        let timeline = match &self.timeline {
            Some(path) => Some(Output::file(timeline::FLAG, path)?),
            None => None,
        };
        let list = match &self.stale_list {
            Some(path) => Some(StaleList::open(path)?),
            None => None,
        };
        let watch = progress::on_stderr();
        let (all, ended) = self.until_failure(task, watch.as_ref(), list.as_ref(), keep);
        watch.end();
        if ended.is_err() {
            if !all.is_empty() {
                let mut rows = Output::stdout();
                self.report(task, &all, &mut rows)?;
                rows.commit()?;
            }
            return ended;
        }
        if let (Some(output), [only]) = (links, all.as_slice()) {
            write_link_load(output, &only.outcome.links)?;
        }
        if let (Some(output), [only]) = (timeline, all.as_slice()) {
            timeline::write(output, &only.outcome.timeline)?;
        }
        if let Some(list) = list {
            list.commit()?;
        }
        self.report(task, &all, &mut rows)?;
        rows.commit()?;
        verdict(&all)
    }

    /// Simulates one program after the other, as long as they end well.
    fn until_failure<T: Task>(
        &self,
        task: &T,
        watch: &dyn Watch,
        list: Option<&StaleList>,
        mut keep: impl FnMut(T::Result) -> Result<(), Stop>,
    ) -> (Vec<Done<'_>>, Result<(), Stop>) {
        let mut all = Vec::with_capacity(self.programs.len());
        for program in &self.programs {
            let simulated = self.simulate(task, program, watch, list);
            let kept = simulated.and_then(|(done, result)| {
                keep(result)?;
                Ok(done)
            });
            match kept {
                Ok(done) => all.push(done),
                Err(stop) => return (all, Err(stop)),
            }
        }
        (all, Ok(()))
    }

    /// The rows of `all`, and which of their loads were stale.
    fn report<T: Task>(&self, task: &T, all: &[Done<'_>], rows: &mut Output) -> Result<(), Stop> {
        rows.push(&self.rendered(task, all)?)?;
        for done in all {
            let mut text = String::new();
            if let Some(report) = &done.outcome.stale {
                text += &format!("\n{}: {report}", of(done.program));
                if report.further_groups > 0 && self.stale_list.is_none() {
                    text += &format!("{} FILE writes every stale read\n", stale_list::FLAG);
                }
            }
            if done.outcome.unwritten.words > 0 {
                text += &format!("\n{}: {}", of(done.program), done.outcome.unwritten);
            }
            match self.output.file.format() {
                Format::Table => rows.push(&text)?,
                _ => stop::to_stderr(text.trim_start()),
            }
        }
        Ok(())
    }

    fn kernel<T: Task>(&self, task: &T, program: &Program) -> Result<T::Kernel, Stop> {
        let pool = program.pool().map_err(|error| stopped(program, error));
        task.kernel(program, &mut pool?, self.placement)
    }

    /// Simulates one of the runs; its stale loads get into `list`.
    ///
    /// # Errors
    /// If the simulation does not end well. A wrong result is none: see [`verdict`].
    pub fn simulate<'p, T: Task>(
        &self,
        task: &T,
        program: &'p Program,
        watch: &dyn Watch,
        list: Option<&StaleList>,
    ) -> Result<(Done<'p>, T::Result), Stop> {
        let kernel = Arc::new(self.kernel(task, program)?);
        watch.begin(
            &format!("barriers, {}", of(program)),
            kernel.phases().len() as u64,
        );
        let mut told = 0;
        let barriers = |count: u32| {
            watch.advance(count.saturating_sub(told).into());
            told = count;
        };
        let began = Instant::now();
        let simulated =
            program.run_watched(&kernel, barriers, list.map(StaleList::writer), T::result);
        let (outcome, result) = simulated.map_err(|error| stopped(program, error))?;
        let host = Host::measured(began.elapsed(), outcome.events);
        let wrong = self.check.then(|| T::wrong(&kernel, &result));
        let done = Done {
            program,
            outcome,
            wrong,
            host,
        };
        Ok((done, result))
    }

    /// The keys of a row, which do not depend on what comes out.
    fn keys<T: Task>(&self, task: &T) -> Vec<String> {
        let Some(program) = self.programs.first() else {
            return Vec::new();
        };
        let done = Done {
            program,
            outcome: Outcome::default(),
            wrong: None,
            host: Host::measured(Duration::ZERO, 0),
        };
        let row = row(task, self.placement, &done, &done);
        row.into_iter().map(|(key, _)| key).collect()
    }

    fn rendered<T: Task>(&self, task: &T, all: &[Done<'_>]) -> Result<String, Stop> {
        // The first of the fewest threads.
        let base = all.iter().min_by_key(|done| done.program.threads());
        let rows = all.iter().zip(base.into_iter().cycle());
        let mut keys = Vec::new();
        let mut cells = Vec::with_capacity(all.len());
        for (done, base) in rows {
            let (of_row, mut row): (_, Vec<Cell>) =
                row(task, self.placement, done, base).into_iter().unzip();
            keys = of_row;
            if !self.output.no_host {
                row.extend(done.host.cells());
            }
            cells.push(row);
        }
        self.output.file.rendered(&keys, &cells)
    }
}

/// The combinations of nodes and cores, the cores varying fastest.
fn programs(flags: &ProgramFlags) -> Result<Vec<Program>, Stop> {
    let machine = Arc::new(args::machine(&flags.machine)?);
    let shape = machine.shape();
    let usual = |given: &Option<String>, usual: u32| given.clone().unwrap_or(usual.to_string());
    let nodes = usual(&flags.nodes, NODES.min(shape.nodes));
    let nodes = read::counts(
        "--nodes",
        &nodes,
        1,
        MAX_NODES.min(shape.nodes),
        Values::Many,
    )?;
    let cores = cores(&usual(&flags.cores, CORES.min(shape.cores)), &machine)?;
    let most_nodes = nodes.iter().copied().max().unwrap_or(1);
    let (memory_nodes, topology) = places(flags, &machine, most_nodes)?;
    if nodes.len().saturating_mul(cores.len()) > MAX_POINTS {
        return Err(Stop::flag(
            "--nodes, --cores",
            format!("more than {MAX_POINTS} combinations"),
        ));
    }
    let most_cores = cores.iter().copied().max().unwrap_or(1);
    if u64::from(memory_nodes) * u64::from(most_cores) > MAX_THREADS {
        return Err(Stop::flag(
            &format!("--nodes {most_nodes} --cores {most_cores}"),
            format!("more than {MAX_THREADS} threads"),
        ));
    }
    if flags.stale {
        // The checker has a place for every thread of the memory nodes, too.
        let told_apart = Checker::tells_apart(machine.shape().positions(memory_nodes), most_cores);
        told_apart.map_err(|error| Stop::flag("--stale", error))?;
    }
    let page_bytes = match &flags.page {
        None => Ok(LEAST_GRANULE_BYTES.max(machine.shape().line_bytes.into())),
        Some(page) => {
            let most = machine.shape().shared_bytes;
            let limits = Limits::new(Dimension::Memory, LEAST_GRANULE_BYTES, most);
            limits.powers_of_two().parse(page)
        }
    };
    let plain = Program {
        topology,
        memory_nodes,
        nodes: most_nodes,
        cores: most_cores,
        mapped: read::name("--memory", &flags.memory)?,
        point: match &flags.coherence_point {
            Some(point) => read::name("--coherence-point", point)?,
            None => Program::usual_point(&machine),
        },
        page_bytes: page_bytes.map_err(|error| Stop::flag("--page", error))?,
        checked: flags.stale,
        timeline: flags.timeline.is_some(),
        seed: read::seed(&flags.seed.seed)?,
        workers: match &flags.workers {
            None => 1,
            Some(workers) => read::host_threads("--workers", workers)?,
        },
        machine,
    };
    let with_nodes = |nodes: u32| {
        let plain = &plain;
        cores.iter().map(move |&cores| Program {
            nodes,
            cores,
            ..plain.clone()
        })
    };
    Ok(nodes.iter().copied().flat_map(with_nodes).collect())
}

fn cores(text: &str, machine: &Machine) -> Result<Vec<u32>, Stop> {
    let cores = read::counts("--cores", text, 1, u32::MAX, Values::Many)?;
    for &cores in &cores {
        args::enough_cores(machine, cores)?;
    }
    Ok(cores)
}

/// The nodes that hold the data, of which `nodes` run the program, and the network between them.
fn places(flags: &ProgramFlags, machine: &Machine, nodes: u32) -> Result<(u32, Topology), Stop> {
    let topology = match &flags.topology {
        None => None,
        Some(text) => Some(read::one(
            "--topology",
            read::topologies(text, Values::One)?,
        )?),
    };
    let shape = machine.shape();
    let positions = topology.as_ref();
    let positions = positions
        .map(|all| args::nodes_on(machine, all))
        .transpose()?;
    let positions = positions.unwrap_or(MAX_NODES);
    if nodes > positions {
        return Err(Stop::flag(
            &format!("--nodes {nodes}"),
            format!("--topology has {positions} positions"),
        ));
    }
    let memory_nodes = match &flags.memory_nodes {
        None if shape.pool_devices > 0 => nodes,
        Some(_) if shape.pool_devices > 0 => {
            let holds = format!("the pool of {} holds the data", machine.name());
            return Err(Stop::flag("--memory-nodes", holds));
        }
        None => MEMORY_NODES.min(shape.nodes).max(nodes).min(positions),
        Some(text) => {
            let flag = "--memory-nodes";
            let most = MAX_NODES;
            let count = read::one(flag, read::counts(flag, text, 1, most, Values::One)?)?;
            let complaint = match count {
                _ if count < nodes => format!("the {nodes} nodes of --nodes are among them"),
                _ if count > positions => format!("--topology has {positions} positions"),
                _ => String::new(),
            };
            if !complaint.is_empty() {
                return Err(Stop::flag(&format!("{flag} {count}"), complaint));
            }
            count
        }
    };
    let usual = shape.topology(memory_nodes);
    let topology = topology.unwrap_or(usual);
    args::holds(machine, &topology, memory_nodes)?;
    Ok((memory_nodes, topology))
}

/// By which flags a run is told from the others.
pub fn of(program: &Program) -> String {
    format!("--nodes {} --cores {}", program.nodes, program.cores)
}

fn stopped(program: &Program, error: Error) -> Stop {
    match error {
        Error::Failure(failure) => Stop::Failed(failure.to_string()).at(&of(program)),
        other => Stop::flag(&of(program), other),
    }
}

/// Fails if a result was wrong.
pub fn verdict(all: &[Done<'_>]) -> Result<(), Stop> {
    let mut wrong = all
        .iter()
        .filter_map(|done| Some((done.program, done.wrong.as_ref()?.as_ref()?)));
    let Some((program, what)) = wrong.next() else {
        return Ok(());
    };
    let more = match wrong.count() {
        0 => String::new(),
        more => format!(" (and {more} more of {} runs are wrong)", all.len()),
    };
    let line = format!("{}: the result is wrong: {what}{more}", of(program));
    Err(Stop::Failed(stop::one_line(&line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use clap::Parser;
    use sme_fft_demo::Team;
    use sme_memory::Atomic;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ProgramFlags,
        #[command(flatten)]
        output: OutputFlags,
    }

    /// Meets at barriers, at one of which two are waited for in vain.
    struct Meeting;

    impl Kernel for Meeting {
        fn phases(&self) -> Vec<&'static str> {
            vec!["start", "meeting"]
        }

        fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
            Box::new(std::iter::empty())
        }

        async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
            team.barrier().await;
            if team.size() != 2 || team.number() == 0 {
                team.barrier().await;
            }
        }
    }

    impl Task for Meeting {
        type Kernel = Self;
        type Result = ();

        const NAME: &'static str = "meeting";

        fn phases() -> Vec<&'static str> {
            vec!["meeting"]
        }

        fn parameters(&self) -> Vec<(&'static str, Cell)> {
            Vec::new()
        }

        fn needs(&self, _: &Program) -> Needs {
            Needs {
                words: 0,
                nodes_of_line: 1,
                barriers: 0,
                bytes: 0,
            }
        }

        fn kernel(&self, _: &Program, _: &mut Pool, _: Placement) -> Result<Self, Stop> {
            Ok(Self)
        }

        fn result(_: &Self, _: &dyn Fn(Place) -> u64) {}

        fn wrong(_: &Self, _: &()) -> Option<String> {
            None
        }
    }

    #[test]
    fn what_was_computed_before_a_failure_is_kept() {
        let line = "sme --nodes 1,2,4 --cores 1 --memory-nodes 4 --no-host";
        let line = Line::parse_from(line.split(' '));
        let plan = Plan::read(&line.flags, line.output).unwrap();
        let (all, ended) = plan.until_failure(&Meeting, &Silent, None, |()| Ok(()));
        let nodes: Vec<_> = all.iter().map(|done| done.program.nodes).collect();
        assert_eq!(nodes, [1]);
        let Err(Stop::Failed(line)) = ended else {
            panic!("{ended:?}")
        };
        assert!(line.starts_with("--nodes 2 --cores 1: "), "{line}");
        assert!(plan.rendered(&Meeting, &all).unwrap().contains("nodes"));

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.csv");
        let line = format!(
            "sme --nodes 2 --cores 1 --memory-nodes 4 -o {}",
            path.display()
        );
        let line = Line::parse_from(line.split(' '));
        let plan = Plan::read(&line.flags, line.output).unwrap();
        let failed = plan.run(&Meeting, |()| Ok(())).unwrap_err();
        assert_eq!(failed.status(), 1);
        assert!(!path.exists());
    }
}
