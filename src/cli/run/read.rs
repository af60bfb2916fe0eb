//! Reads an experiment: its file, all its command lines, and whether its results have a place.
//! Nothing is simulated.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use sme_sim::machine::Machine;

use super::file::{self, ExperimentFile};
use super::inputs::{self, Input, Inputs, sha256};
use super::manifest::{MachineText, Manifest};
use super::points::{self, Point};
use super::{MANIFEST, OWN, Picture, PointsOfRun, Ready, RunFlags, RunJob, text, words};
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
        let text =
            inputs::text_of(&flags.experiment).map_err(|reason| Stop::flag(&shown, reason))?;
        let text = text.trim_start_matches('\u{feff}');
        let before = match text.trim_start().starts_with('{') {
            true => Some(Box::new(Manifest::parse(&shown, text)?)),
            false => None,
        };
        let experiment = match &before {
            Some(before) => before.experiment.clone(),
            None => Input {
                file: name_of(&flags.experiment),
                sha256: sha256(text.as_bytes()),
                text: text.to_owned(),
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
        let scratch = temporary::directory_in(existing(&out))
            .map_err(|error| Stop::unwritable("--out", &out, &error))?;
        let own = scratch.path().join(OWN);
        fs::create_dir(&own).map_err(|error| Stop::unwritable("--out", &out, &error))?;
        let inputs = match &before {
            Some(before) => Inputs::of_manifest(before.inputs.clone(), &own),
            None => Inputs::beside(output::directory(&flags.experiment)),
        };
        let report = match &flags.report {
            Some(path) => Some(Output::file("--report", path)?),
            None => None,
        };
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
            let place = format!("{place}: machines.{}", one_line(name));
            let known = Machine::builtins()
                .iter()
                .any(|builtin| builtin.name == *name);
            if known || name.ends_with(".toml") || name.contains(',') {
                let reason = "the name is that of a built-in machine or of a file";
                return Err(Stop::flag(&place, reason));
            }
            let overrides = variant.overrides();
            let overrides = overrides.map_err(|reason| Stop::flag(&place, reason))?;
            let base = match variant.base.ends_with(".toml") {
                true => self
                    .inputs
                    .path(&variant.base)?
                    .to_string_lossy()
                    .into_owned(),
                false => variant.base.clone(),
            };
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
            let format = points::format(command, &run.rows).map_err(wrong)?;
            self.name(&run.rows).map_err(wrong)?;
            let points = points::points(run, command, &self.file.machines).map_err(wrong)?;
            let mut ready = Vec::with_capacity(points.len());
            for point in points {
                let place = format!("{place}: point {number}");
                let wrong = |reason: String| Stop::flag(&place, reason);
                for name in point.files(number) {
                    self.name(&name).map_err(wrong)?;
                }
                let has_path = ready.len() < MAX_PATHS;
                let read = self.ready(&point, command, format, number, has_path);
                ready.push(read.map_err(|stop| stop.at(&place))?);
                number += 1;
            }
            self.runs.push(PointsOfRun {
                rows: run.rows.clone(),
                format,
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
        if points::takes(command, "format") {
            let format = match format {
                Format::Csv => "csv",
                Format::Json | Format::Table => "json",
            };
            line.extend(["--format", format].map(String::from));
        }
        if points::takes(command, "no_host") {
            line.push("--no-host".into());
        }
        line.extend(["-o".into(), text(&rows)]);
        // Where a critical path is to be had, the report shows it.
        // The name is what the picture calls its bar.
        let path = own.join(format!("point-{number}"));
        let is_wanted = self.report.is_some() && has_path && !point.has("--explain-to");
        let with_path = match is_wanted && points::takes(command, "explain_to") {
            true => {
                let more = ["--explain-to".to_owned(), text(&path)];
                Job::read(words(&[line.as_slice(), &more].concat())).ok()
            }
            false => None,
        };
        let path = with_path.is_some().then_some(path);
        let job = match with_path {
            Some(job) => job,
            None => Job::read(words(&line))?,
        };
        let seed = self.look_at(&point.written(), &line)?;
        Ok(Ready {
            number,
            arguments: point.written(),
            seed,
            job,
            rows,
            path,
        })
    }

    /// Takes note of the machines of a command line, `written` as in the experiment file and as it
    /// is run; returns its seed.
    fn look_at(&mut self, written: &[String], line: &[String]) -> Result<Option<String>, Stop> {
        let matches = |line: &[String]| {
            let matches = cli::command().try_get_matches_from(words(line));
            matches.map_err(|error| cli::stopped(&error))
        };
        let values = |matches: &clap::ArgMatches, id: &str| -> Vec<String> {
            let mut leaf = matches;
            while let Some((_, inner)) = leaf.subcommand() {
                leaf = inner;
            }
            let raw = leaf.try_get_raw(id).ok().flatten().into_iter().flatten();
            raw.map(|value| value.to_string_lossy().into_owned())
                .collect()
        };
        let (names, read) = (matches(written)?, matches(line)?);
        let seed = values(&read, "seed").pop();
        let [names, paths] = [names, read].map(|matches| values(&matches, "machine").join(","));
        for (name, path) in names.split(',').zip(paths.split(',')) {
            let known = self.machines.iter().any(|known| known.machine == name);
            // The command has loaded it; a name that is none is its own matter.
            let Ok(machine) = Machine::load(path) else {
                continue;
            };
            if !known {
                let builtin = Machine::builtins()
                    .iter()
                    .find(|builtin| builtin.name == path);
                let text = match builtin {
                    Some(builtin) => builtin.text.to_owned(),
                    None => inputs::text_of(Path::new(path))
                        .map_err(|reason| Stop::flag(path, reason))?,
                };
                self.machines.push(MachineText {
                    machine: name.to_owned(),
                    machine_hash: machine.hash().to_owned(),
                    text,
                });
            }
        }
        Ok(seed)
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
            for name in &plot.rows {
                if name == &plot.picture || !self.names.contains(name) {
                    let reason = format!("rows: {name:?} is no file that a run writes");
                    return Err(wrong(reason));
                }
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
            let job = Job::read(words(&line)).map_err(|stop| stop.at(&place))?;
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
            false => Err(format!("{name:?}: there is a file of this name already")),
        }
    }

    /// Refuses to replace files that the experiment reads, or that no experiment has written.
    fn keeps_other_files(&self, flags: &RunFlags) -> Result<(), Stop> {
        let results: Vec<PathBuf> = self.results().map(|name| self.out.join(name)).collect();
        let written = results.iter().map(|path| ("--out", Some(path.as_path())));
        let mut written: Vec<_> = written.collect();
        if self.out.exists() {
            let metadata = fs::metadata(&self.out)
                .map_err(|error| Stop::unwritable("--out", &self.out, &error))?;
            if !metadata.is_dir() {
                let flag = format!("--out {}", self.out.display());
                return Err(Stop::flag(&flag, "is no directory"));
            }
        }
        written.push(("--report", flags.report.as_deref()));
        output::distinct(&written)?;
        let read = self
            .inputs
            .paths()
            .into_iter()
            .chain([flags.experiment.clone()]);
        output::apart_from_inputs(&read.collect::<Vec<_>>(), &written)?;

        let manifest = inputs::text_of(&self.out.join(MANIFEST)).unwrap_or_default();
        let known = Manifest::parse(MANIFEST, &manifest).map(|manifest| manifest.files);
        let known = known.unwrap_or_default();
        for name in self.results().filter(|name| !known.contains_key(*name)) {
            let path = self.out.join(name);
            let is_manifest = name == MANIFEST && !known.is_empty();
            if path.symlink_metadata().is_ok() && !is_manifest {
                return Err(Stop::flag(
                    &path.display().to_string(),
                    "is there already, and no experiment wrote it; choose another --out",
                ));
            }
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The directory of the results of the experiment in `file`.
fn default_out(file: &str, is_repeated: bool) -> PathBuf {
    let stem = Path::new(file).file_stem().unwrap_or("experiment".as_ref());
    let stem = stem.to_string_lossy();
    match is_repeated {
        true => PathBuf::from(format!("{stem}-again")),
        false if stem == file => PathBuf::from(format!("{stem}-results")),
        false => PathBuf::from(stem.into_owned()),
    }
}

/// The nearest directory to `path` that exists: itself, or one that it is in.
fn existing(path: &Path) -> &Path {
    let mut found = path;
    while !found.is_dir() {
        found = output::directory(found);
        if found == Path::new(".") {
            break;
        }
    }
    found
}
