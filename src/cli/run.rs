//! `sme run`: does what an experiment file says, and writes rows, pictures and a manifest, from
//! which it can be repeated.
//!
//! Called by [`super::main`]. Every point is a command line, which is read by [`Job::read`] before
//! anything is simulated, and whose rows go to a temporary directory until the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use clap::Args;
use tempfile::TempDir;

mod file;
mod inputs;
mod manifest;
mod page;
mod points;
mod read;
mod results;

use self::file::ExperimentFile;
use self::inputs::{Input, Inputs, sha256};
use self::manifest::{Build, Computer, MachineText, Manifest, PlotRecord, PointRecord, RunRecord};
use self::results::Rows;
use super::Job;
use super::plot::PlotRun;
use crate::report::Format;
use crate::report::output::{self, Output};
use crate::report::stop::{Stop, one_line, to_stderr};
use crate::report::temporary;

/// The name of the manifest among the results.
const MANIFEST: &str = "manifest.json";

/// The subdirectory for files that are not results, whose names never begin with a dot.
const OWN: &str = ".own";

/// The flags of `sme run`.
#[derive(Args, Clone, Debug)]
pub struct RunFlags {
    /// Experiment file, or the manifest of an experiment to be repeated
    #[arg(value_name = "EXPERIMENT.toml|MANIFEST.json")]
    experiment: PathBuf,
    /// Directory of the results [default: the experiment's name without .toml; for a manifest, with
    /// -again behind it]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Write a page for a browser: question, machines, rows, pictures, critical paths, limits
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    report: Option<PathBuf>,
}

/// An experiment whose points can be simulated.
#[derive(Debug)]
pub struct RunJob {
    file: ExperimentFile,
    experiment: Input,
    inputs: Inputs,
    machines: Vec<MachineText>,
    runs: Vec<PointsOfRun>,
    plots: Vec<Picture>,
    /// Names of all results but the manifest.
    names: BTreeSet<String>,
    /// The manifest of the earlier run of the experiment, if it is repeated.
    before: Option<Box<Manifest>>,
    scratch: TempDir,
    out: PathBuf,
    report: Option<PathBuf>,
}

#[derive(Debug)]
struct PointsOfRun {
    rows: String,
    format: Format,
    /// The keys of the rows of any point, in the order of the file.
    keys: Vec<String>,
    points: Vec<Ready>,
}

/// A point that can be simulated.
#[derive(Debug)]
struct Ready {
    number: usize,
    arguments: Vec<String>,
    seed: Option<String>,
    /// The name of its machine in the experiment file, if that has it.
    machine: Option<String>,
    job: Job,
    /// The file of its rows.
    rows: PathBuf,
    /// The file of its critical path, for the report.
    path: Option<PathBuf>,
    /// The result to which it writes that path by itself.
    path_result: Option<PathBuf>,
}

#[derive(Debug)]
struct Picture {
    name: String,
    arguments: Vec<String>,
    job: Box<PlotRun>,
}

impl RunJob {
    /// Simulates all points, draws the pictures and writes everything.
    ///
    /// # Errors
    /// [`Stop::Failed`] where a point or a picture failed, or a repetition has another result,
    /// after everything was written; [`Stop::Input`] where results cannot be written.
    pub fn run(mut self) -> Result<(), Stop> {
        let (clock, began) = (Instant::now(), SystemTime::now());
        for name in self.idle_machines() {
            let name = one_line(name);
            to_stderr(&format!("warning: machines.{name}: no run takes it\n"));
        }
        let all = self.inputs.met().chain([&self.experiment]);
        let id = manifest::experiment_id(all);
        let mut failures = Vec::new();
        let mut paths = BTreeMap::new();
        let mut runs = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            let (record, rows) = self.simulate(run, &id, &mut failures, &mut paths)?;
            self.put(&record.rows, rows.text().as_bytes())?;
            runs.push(record);
        }
        let (mut plots, mut pictures) = (Vec::new(), BTreeMap::new());
        for plot in std::mem::take(&mut self.plots) {
            let failed = match plot.job.draw() {
                Ok(drawn) => {
                    self.put(&plot.name, &drawn.bytes)?;
                    for warning in drawn.warnings() {
                        to_stderr(&one_line(&format!("{}: {warning}", plot.name)));
                        to_stderr("\n");
                    }
                    if self.report.is_some() {
                        pictures.extend(plot.job.svg().map(|svg| (plot.name.clone(), svg)));
                    }
                    None
                }
                Err(stop) => Some(one_line(&self.shown(stop).to_string())),
            };
            failures.extend(failed.iter().map(|why| format!("{}: {why}", plot.name)));
            plots.push(PlotRecord {
                picture: plot.name,
                arguments: plot.arguments,
                failed,
            });
        }
        let mut files = BTreeMap::new();
        for name in &self.names {
            // What a point that failed would have written is not there.
            if let Ok(bytes) = fs::read(self.scratch.path().join(name)) {
                files.insert(name.clone(), sha256(&bytes));
            }
        }
        let manifest = Manifest {
            manifest: manifest::FORM,
            experiment_id: id,
            program: Build::this(),
            arguments: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            began: humantime::format_rfc3339_seconds(began).to_string(),
            wall_s: clock.elapsed().as_secs_f64(),
            host: Computer::this(),
            experiment: self.experiment.clone(),
            inputs: self.inputs.met().cloned().collect(),
            machines: std::mem::take(&mut self.machines),
            runs,
            plots,
            files,
        };
        self.put(MANIFEST, manifest.text().as_bytes())?;
        let page = self.report.as_ref().map(|_| {
            let directory = self.scratch.path();
            page::page(&self.file, &manifest, directory, &pictures, &paths)
        });
        if let Some(before) = &self.before {
            failures.extend(differences(before, &manifest));
        }
        self.publish(&manifest)?;
        let mut told = Ok(());
        if let (Some(path), Some(page)) = (&self.report, page) {
            told = Output::file("--report", path).and_then(|mut report| {
                report.push(&page)?;
                report.commit()
            });
        }
        let told = told.and_then(|()| self.tell(&manifest));
        match failures.first() {
            None => told,
            Some(first) => Err(Stop::Failed(one_line(&match failures.len() {
                1 => first.clone(),
                2 => format!("{first} (and 1 more failure)"),
                count => format!("{first} (and {} more failures)", count - 1),
            }))),
        }
    }

    /// The machines of the file that no point runs on.
    fn idle_machines(&self) -> impl Iterator<Item = &String> {
        let points = self.runs.iter().flat_map(|run| &run.points);
        let taken: BTreeSet<_> = points.filter_map(|point| point.machine.as_ref()).collect();
        let names = self.file.machines.keys();
        names.filter(move |name| !taken.contains(name))
    }

    /// Simulates the points of `run`.
    fn simulate(
        &self,
        run: PointsOfRun,
        id: &str,
        failures: &mut Vec<String>,
        paths: &mut BTreeMap<usize, PathBuf>,
    ) -> Result<(RunRecord, Rows), Stop> {
        let mut rows = Rows::new(run.format);
        let mut points = Vec::with_capacity(run.points.len());
        let count = run.points.len();
        for (at, ready) in run.points.into_iter().enumerate() {
            let number = ready.number;
            if count > 1 && std::io::stderr().is_terminal() {
                to_stderr(&format!("{}: point {} of {count}\n", run.rows, at + 1));
            }
            let clock = Instant::now();
            let done = ready.job.run();
            let wall_s = clock.elapsed().as_secs_f64();
            let failed = done.err().map(|stop| self.shown(stop).to_string());
            let before = rows.count();
            let text = fs::read_to_string(&ready.rows).unwrap_or_default();
            let added = rows.add(&text, id, (number, ready.machine.as_deref()));
            let failed: Option<String> =
                failed.or_else(|| added.err().map(|reason| format!("a row {reason}")));
            let failed = failed.map(|why| one_line(&why));
            let place = format!("{}: point {number}", run.rows);
            failures.extend(failed.iter().map(|why| format!("{place}: {why}")));
            // The file is in a directory that is removed in the end.
            let _ = fs::remove_file(&ready.rows);
            if let (Some(result), Some(path)) = (&ready.path_result, &ready.path) {
                // A point that failed has written none.
                let _ = fs::copy(result, path);
            }
            let path = ready.path.filter(|path| path.exists());
            paths.extend(path.map(|path| (number, path)));
            points.push(PointRecord {
                point: number,
                arguments: ready.arguments,
                seed: ready.seed,
                rows: rows.count() - before,
                wall_s,
                failed,
            });
        }
        let record = RunRecord {
            rows: run.rows,
            points,
        };
        Ok((record, rows))
    }

    /// Writes a result to where it is before the end.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Stop> {
        let path = self.scratch.path().join(name);
        fs::write(path, bytes).map_err(|error| Stop::unwritable("--out", &self.out, &error))
    }

    /// Moves all results to their directory, the manifest last: without it they are unfinished.
    ///
    /// # Errors
    /// [`Stop::Failed`] if that cannot be done; it names the directory where the results are.
    fn publish(&mut self, manifest: &Manifest) -> Result<(), Stop> {
        let scratch = self.scratch.path().to_owned();
        let moved = || -> io::Result<()> {
            fs::create_dir_all(&self.out)?;
            match fs::remove_file(self.out.join(MANIFEST)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            for name in manifest.files.keys().map(String::as_str).chain([MANIFEST]) {
                fs::rename(scratch.join(name), self.out.join(name))?;
            }
            Ok(())
        };
        if let Err(error) = temporary::unless_ending(moved) {
            self.scratch.disable_cleanup(true);
            temporary::keep(&scratch);
            let (out, kept) = (self.out.display(), scratch.display());
            return Err(Stop::Failed(one_line(&format!(
                "--out {out}: cannot be written: {error}; results are in {kept}"
            ))));
        }
        output::sync_directory(&self.out);
        Ok(())
    }

    /// Says on stdout what was written.
    fn tell(&self, manifest: &Manifest) -> Result<(), Stop> {
        let mut text = String::new();
        let mut line = |name: &str, what: &str| {
            text.push_str(&format!("{}  {what}\n", self.out.join(name).display()));
        };
        for run in &manifest.runs {
            let rows: usize = run.points.iter().map(|point| point.rows).sum();
            let points = count(run.points.len(), "point");
            let failed = run.points.iter().filter(|point| point.failed.is_some());
            let failed = match failed.count() {
                0 => String::new(),
                failed => format!(", of which {failed} failed"),
            };
            line(
                &run.rows,
                &format!("{} of {points}{failed}", count(rows, "row")),
            );
        }
        for plot in manifest.plots.iter().filter(|plot| plot.failed.is_none()) {
            line(&plot.picture, "picture");
        }
        let rows = manifest.runs.iter().map(|run| &run.rows);
        let pictures = manifest.plots.iter().map(|plot| &plot.picture);
        let known: BTreeSet<&String> = rows.chain(pictures).collect();
        for name in manifest.files.keys().filter(|name| !known.contains(name)) {
            line(name, "written by a point");
        }
        line(MANIFEST, "sme run repeats the experiment from it");
        let mut stdout = Output::stdout();
        stdout.push(&text)?;
        stdout.commit()
    }
}

/// `count` and the noun `what`, in the plural where it is not 1.
fn count(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// A complaint for each result of a repetition that is not the one `before`.
fn differences(before: &Manifest, now: &Manifest) -> Vec<String> {
    let names: BTreeSet<&String> = before.files.keys().chain(now.files.keys()).collect();
    let differs = |name: &&&String| before.files.get(**name) != now.files.get(**name);
    let by = match before.program == now.program {
        true => String::new(),
        false => format!(": that was {}, this is {}", before.program, now.program),
    };
    let differing = names.iter().filter(differs);
    differing
        .map(|name| format!("{name} is not what it was before{by}"))
        .collect()
}

/// A command line with the program's name.
fn words(line: &[String]) -> Vec<std::ffi::OsString> {
    let line = line.iter().map(std::ffi::OsString::from);
    ["sme".into()].into_iter().chain(line).collect()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
