//! Reads an experiment: its file, all its command lines, and whether its results have a place.
//! Nothing is simulated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use sme_sim::machine::{Builtin, Machine};

use super::file::{self, ExperimentFile};
use super::inputs::{self, Input, Inputs, sha256};
use super::manifest::{self, MachineText, Manifest};
use super::points::{self, Point};
use super::results::COLUMNS;
use super::{MANIFEST, OWN, Picture, PointsOfRun, Ready, RunFlags, RunJob, text, words};
use crate::cli::paths::takes;
use crate::cli::{self, Job};
use crate::report::Format;
use crate::report::output::{self, Output};
use crate::report::stop::{Stop, one_line};
use crate::report::temporary;

/// The most points of a run whose critical paths a report shows.
const MAX_PATHS: usize = 12;

impl RunJob {
    /// Reads the experiment file and all its command lines.
    ///
    /// # Errors
    /// [`Stop::Input`] with the file and the line of the run whose command line cannot be taken.
    pub fn read(flags: &RunFlags) -> Result<Self, Stop> {
        let shown = flags.experiment.display().to_string();
        let text = inputs::text_of(&flags.experiment, manifest::MAX_BYTES)
            .map_err(|reason| Stop::flag(&shown, reason))?;
        let without_mark = text.trim_start_matches('\u{feff}').trim_start();
        let before = match without_mark.starts_with('{') {
            true => Some(Box::new(Manifest::parse(&shown, without_mark)?)),
            false if text.len() as u64 > inputs::MAX_BYTES => {
                let reason = format!("is larger than {} MiB", inputs::MAX_BYTES >> 20);
                return Err(Stop::flag(&shown, reason));
            }
            false => None,
        };
        let experiment = match &before {
            Some(before) => before.experiment.clone(),
            None => Input {
                file: name_of(&flags.experiment),
                sha256: sha256(text.as_bytes()),
                text,
            },
        };
        let place = match &before {
            Some(_) => format!("{shown}: {}", one_line(&experiment.file)),
            None => shown,
        };
        let file = ExperimentFile::parse(&place, &experiment.text)?;
        let out = match &flags.out {
            Some(out) => out.clone(),
            None => default_out(&experiment.file, before.is_some()),
        };
        if out.to_str().is_none() {
            let flag = format!("--out {}", out.display());
            return Err(Stop::flag(&flag, "the name is not UTF-8 text"));
        }
        let scratch = temporary::directory_in(existing(&out)?)
            .map_err(|error| Stop::unwritable("--out", &out, &error))?;
        let own = scratch.path().join(OWN);
        fs::create_dir(&own).map_err(|error| Stop::unwritable("--out", &out, &error))?;
        let inputs = match &before {
            Some(before) => Inputs::of_manifest(before.inputs.clone(), &own),
            None => Inputs::beside(output::directory(&flags.experiment)),
        };
        // Whether it can be written; the directory of the results may not be there yet.
        let report = flags.report.clone();
        if let Some(path) = report.as_deref()
            && (out.is_dir() || output::directory(path) != out)
        {
            drop(Output::file("--report", path)?);
        }
        let mut run = Self {
            file,
            experiment,
            inputs,
            machines: Vec::new(),
            runs: Vec::new(),
            plots: Vec::new(),
            names: BTreeSet::new(),
            before,
            scratch,
            out,
            report,
        };
        run.read_machines(&place)?;
        run.read_runs(&place)?;
        run.read_plots(&place)?;
        run.keeps_other_files(flags)?;
        Ok(run)
    }

    /// Checks the machines of the file.
    fn read_machines(&mut self, place: &str) -> Result<(), Stop> {
        for (name, variant) in &self.file.machines {
            let line = file::line(&self.experiment.text, &variant.span());
            let place = format!("{place}: line {line}: machines.{}", one_line(name));
            let variant = variant.get_ref();
            let is_word = !name.is_empty() && !name.contains([',', ' ']);
            if builtin(name).is_some() || name.ends_with(".toml") || !is_word {
                let reason = "the name must be a word that is no built-in machine and no file";
                return Err(Stop::flag(&place, reason));
            }
            let overrides = variant.overrides();
            let overrides = overrides.map_err(|reason| Stop::flag(&place, reason))?;
            let base = points::loaded(&variant.base, &mut self.inputs);
            let base = base.map_err(|stop| stop.at(&place))?;
            Machine::load(&base)
                .and_then(|machine| machine.with(&overrides))
                .map_err(|error| Stop::flag(&place, error))?;
        }
        Ok(())
    }

    fn read_runs(&mut self, place: &str) -> Result<(), Stop> {
        let root = cli::command();
        let mut number = 0;
        for run in self.file.runs.clone() {
            let line = file::line(&self.experiment.text, &run.span());
            let run = run.get_ref();
            let place = format!("{place}: line {line}");
            let wrong = |reason: String| Stop::flag(&place, reason);
            let command = points::command(&root, &run.command).map_err(wrong)?;
            let format = points::format(&run.rows).map_err(wrong)?;
            self.name(&run.rows).map_err(wrong)?;
            let points = points::points(run, command, &self.file.machines).map_err(wrong)?;
            let mut ready = Vec::with_capacity(points.len());
            let mut keys = Vec::new();
            for point in points {
                let place = format!("{place}: point {number}");
                let wrong = |reason: String| Stop::flag(&place, reason);
                for name in point.files(number) {
                    self.name(&name).map_err(wrong)?;
                }
                let has_path = ready.len() < MAX_PATHS;
                let read = self.ready(&point, command, format, number, has_path);
                let read = read.map_err(|stop| self.shown(stop).at(&place))?;
                let heading = read.job.heading().map(|heading| heading.written());
                for key in heading.transpose()?.unwrap_or_default() {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
                ready.push(read);
                number += 1;
            }
            keys.extend(COLUMNS.map(str::to_owned));
            self.runs.push(PointsOfRun {
                rows: run.rows.clone(),
                format,
                keys,
                points: ready,
            });
        }
        Ok(())
    }

    /// Reads the command line of `point`.
    fn ready(
        &mut self,
        point: &Point,
        command: &Command,
        format: Format,
        number: usize,
        has_path: bool,
    ) -> Result<Ready, Stop> {
        let scratch = self.scratch.path().to_owned();
        let own = scratch.join(OWN);
        let rows = own.join(format!("rows-{number}"));
        let mut line = point.resolved(&mut self.inputs, &scratch, number)?;
        let format = match format {
            Format::Csv => "csv",
            Format::Json | Format::Table => "json",
        };
        line.extend(["--format", format].map(String::from));
        if takes(command, "no_host") {
            line.push("--no-host".into());
        }
        line.extend(["-o".into(), text(&rows)]);
        // The report shows the critical path of every point that has one. The picture calls a bar
        // by the name of its file.
        let path = own.join(format!("point-{number}"));
        let is_wanted = self.report.is_some() && has_path;
        let path_result = match is_wanted {
            true => point.result_of("--explain-to", &scratch, number),
            false => None,
        };
        let is_added = is_wanted && path_result.is_none();
        let with_path = match is_added && takes(command, "explain_to") {
            true => {
                let more = ["--explain-to".to_owned(), text(&path)];
                Job::read(words(&[line.as_slice(), &more].concat())).ok()
            }
            false => None,
        };
        let has_path = with_path.is_some() || path_result.is_some();
        let path = has_path.then_some(path);
        let job = match with_path {
            Some(job) => job,
            None => Job::read(words(&line))?,
        };
        for (name, path) in point.machines(command, &mut self.inputs)? {
            self.record_machine(&name, &path)?;
        }
        let seed = point.seed(command);
        Ok(Ready {
            number,
            arguments: point.written(),
            seed,
            machine: point.machine.clone(),
            job,
            rows,
            path,
            path_result,
        })
    }

    /// Records the machine that the experiment file calls `name`, which is loaded from `path`.
    fn record_machine(&mut self, name: &str, path: &str) -> Result<(), Stop> {
        if self.machines.iter().any(|known| known.machine == name) {
            return Ok(());
        }
        let machine = Machine::load(path).map_err(|error| Stop::flag("--machine", error))?;
        let text = match builtin(path) {
            Some(builtin) => builtin.text.to_owned(),
            None => inputs::text_of(Path::new(path), inputs::MAX_BYTES)
                .map_err(|reason| Stop::flag(path, reason))?,
        };
        self.machines.push(MachineText {
            machine: name.to_owned(),
            machine_hash: machine.hash().to_owned(),
            text,
        });
        Ok(())
    }

    /// `stop` with the names of results as the experiment file has them.
    pub(super) fn shown(&self, stop: Stop) -> Stop {
        let unpublished = format!("{}/", self.scratch.path().display());
        stop.map(|text| text.replace(&unpublished, ""))
    }

    fn read_plots(&mut self, place: &str) -> Result<(), Stop> {
        let root = cli::command();
        for plot in self.file.plots.clone() {
            let line = file::line(&self.experiment.text, &plot.span());
            let plot = plot.get_ref();
            let place = format!("{place}: line {line}");
            let wrong = |reason: String| Stop::flag(&place, reason);
            self.name(&plot.picture).map_err(wrong)?;
            if plot.rows.is_empty() {
                return Err(wrong("rows: the list is empty".into()));
            }
            let mut keys: Vec<String> = Vec::new();
            for name in &plot.rows {
                let Some(run) = self.runs.iter().find(|run| run.rows == *name) else {
                    let reason = format!("rows: {name:?} is no run's file of rows");
                    return Err(wrong(reason));
                };
                let more = run.keys.iter().filter(|key| !keys.contains(key));
                let more: Vec<String> = more.cloned().collect();
                keys.extend(more);
            }
            let settings = plot.settings().map_err(wrong)?;
            // It is a command of this program.
            let command = root.find_subcommand("plot").unwrap_or(&root);
            let flags = points::plot_arguments(command, &settings).map_err(wrong)?;
            let arguments = |directory: &Path| {
                let rows = plot.rows.iter().map(|name| text(&directory.join(name)));
                let all = ["plot".to_owned()].into_iter().chain(rows);
                all.chain(flags.iter().cloned()).collect::<Vec<_>>()
            };
            let scratch = self.scratch.path();
            let to = ["-o".to_owned(), text(&scratch.join(&plot.picture))];
            let line = [arguments(scratch), to.to_vec()].concat();
            let job = Job::read(words(&line)).map_err(|stop| self.shown(stop).at(&place))?;
            let Job::Plot(job) = job else {
                return Err(wrong("is no picture".into()));
            };
            job.check(keys).map_err(|stop| stop.at(&place))?;
            self.plots.push(Picture {
                name: plot.picture.clone(),
                arguments: arguments(Path::new("")),
                job,
            });
        }
        Ok(())
    }

    /// Takes `name` for a result.
    fn name(&mut self, name: &str) -> Result<(), String> {
        points::file_name(name)?;
        match name != MANIFEST && self.names.insert(name.to_owned()) {
            true => Ok(()),
            false => Err(format!("{name:?}: another result has this name")),
        }
    }

    /// Refuses to replace files that the experiment reads, or that no experiment has written.
    fn keeps_other_files(&self, flags: &RunFlags) -> Result<(), Stop> {
        let names = self.names.iter().map(String::as_str).chain([MANIFEST]);
        let results: Vec<PathBuf> = names.map(|name| self.out.join(name)).collect();
        let written = results.iter().map(|path| ("--out", Some(path.as_path())));
        let mut written: Vec<_> = written.collect();
        written.push(("--report", flags.report.as_deref()));
        output::distinct(&written)?;
        let read = self
            .inputs
            .paths()
            .into_iter()
            .chain([flags.experiment.clone()]);
        output::apart_from_inputs(&read.collect::<Vec<_>>(), &written)?;

        let path = self.out.join(MANIFEST);
        let known = match path.is_file() {
            true => {
                let shown = path.display().to_string();
                let text = inputs::text_of(&path, manifest::MAX_BYTES)
                    .map_err(|reason| Stop::flag(&shown, reason))?;
                Manifest::parse(&shown, &text)?.files
            }
            false => BTreeMap::new(),
        };
        for name in self.names.iter() {
            let path = self.out.join(name);
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            let reason = match known.get(name) {
                None => "exists, and manifest.json there does not list it; choose another --out",
                Some(_) if !metadata.is_file() => "exists, and is not a regular file",
                Some(hash) => match fs::read(&path) {
                    Ok(bytes) if sha256(&bytes) == *hash => continue,
                    _ => "is not what the experiment wrote; choose another --out",
                },
            };
            return Err(Stop::flag(&path.display().to_string(), reason));
        }
        if path.symlink_metadata().is_ok() && !path.is_file() {
            let reason = "exists, and is not a regular file";
            return Err(Stop::flag(&path.display().to_string(), reason));
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The built-in machine of this name.
fn builtin(name: &str) -> Option<&'static Builtin> {
    Machine::builtins()
        .iter()
        .find(|builtin| builtin.name == name)
}

/// The directory of the results of the experiment in `file`.
fn default_out(file: &str, is_repeated: bool) -> PathBuf {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    let stem = match stem.to_string_lossy() {
        stem if ["", ".", ".."].contains(&stem.as_ref()) => "experiment".into(),
        stem => stem,
    };
    match is_repeated {
        true => PathBuf::from(format!("{stem}-again")),
        false if stem == file => PathBuf::from(format!("{stem}-results")),
        false => PathBuf::from(stem.into_owned()),
    }
}

/// The nearest directory to `path` that exists: itself, or one that it is in.
///
/// # Errors
/// Something that is no directory stands in the way.
fn existing(path: &Path) -> Result<&Path, Stop> {
    let mut found = path;
    loop {
        if found.is_dir() {
            return Ok(found);
        }
        if found.symlink_metadata().is_ok() {
            let flag = format!("--out {}", path.display());
            return Err(Stop::flag(
                &flag,
                format!("{} is no directory", found.display()),
            ));
        }
        let outer = output::directory(found);
        if outer == found {
            return Ok(found);
        }
        found = outer;
    }
}
