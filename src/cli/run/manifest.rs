//! The manifest of an experiment: everything from which it can be repeated, and what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inputs::{Input, sha256};
use super::points;
use crate::host;
use crate::report::stop::{Stop, one_line};

/// The form of manifests that this program writes and reads.
pub const FORM: u32 = 1;

/// The most bytes of a manifest: it holds the texts of an experiment's inputs, and a line for
/// each of its points.
pub const MAX_BYTES: u64 = 1 << 30;

/// A manifest, a JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of this object.
    pub manifest: u32,
    /// The experiment: the first digits of a hash of its file and of the files that it reads.
    pub experiment_id: String,
    /// The program.
    pub program: Build,
    /// The command line, `sme` first.
    pub arguments: Vec<String>,
    /// When it began, UTC.
    pub began: String,
    /// The time it took \[s\].
    pub wall_s: f64,
    /// The computer.
    pub host: Computer,
    /// The experiment file.
    pub experiment: Input,
    /// The files that it reads.
    pub inputs: Vec<Input>,
    /// The machines that it names, built in or files.
    pub machines: Vec<MachineText>,
    /// Its runs.
    pub runs: Vec<RunRecord>,
    /// Its pictures.
    pub plots: Vec<PlotRecord>,
    /// The SHA-256 of every file that it wrote, by name.
    pub files: BTreeMap<String, String>,
}

/// A build of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// The commit that it was built from; `-modified` where its sources differed from that.
    pub commit: Option<String>,
}

/// The computer that simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computer {
    /// Its processor.
    pub processor: String,
    /// Threads that the program may use.
    pub threads: usize,
    /// Its operating system and architecture.
    pub system: String,
}

/// A machine's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineText {
    /// The name or the file by which the experiment knows it.
    pub machine: String,
    /// The hash that rows have.
    pub machine_hash: String,
    /// The text.
    pub text: String,
}

/// The runs of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The file of its rows.
    pub rows: String,
    /// Its points.
    pub points: Vec<PointRecord>,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointRecord {
    /// Its number, which its rows have.
    pub point: usize,
    /// The command line, without `sme`; files are named as in the experiment file.
    pub arguments: Vec<String>,
    /// The seed, where the command draws anything.
    pub seed: Option<String>,
    /// Number of rows it has.
    pub rows: usize,
    /// The time it took \[s\].
    pub wall_s: f64,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotRecord {
    /// Its file.
    pub picture: String,
    /// The command line, without `sme` and `-o`.
    pub arguments: Vec<String>,
    /// Why it could not be drawn, if it could not.
    pub failed: Option<String>,
}

impl Build {
    /// This program.
    pub fn this() -> Self {
        let commit = env!("SME_COMMIT");
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: (!commit.is_empty()).then(|| commit.to_owned()),
        }
    }
}

impl std::fmt::Display for Build {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "sme {}", self.version)?;
        match &self.commit {
            Some(commit) => write!(to, " of commit {commit}"),
            None => write!(to, " of an unknown commit"),
        }
    }
}

impl Computer {
    /// This computer.
    pub fn this() -> Self {
        Self {
            processor: host::processor(),
            threads: crate::cli::read::all_host_threads(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

impl Manifest {
    /// Reads the text of the manifest in `file`.
    ///
    /// # Errors
    /// [`Stop::Input`] where it is no manifest, or contents do not have their hashes.
    pub fn parse(file: &str, text: &str) -> Result<Self, Stop> {
        // A later form may have other keys.
        #[derive(Deserialize)]
        struct FormOnly {
            manifest: u32,
        }
        let none = |error| Stop::flag(file, format!("is no manifest: {error}"));
        let FormOnly { manifest } = serde_json::from_str(text).map_err(none)?;
        if manifest != FORM {
            let reason = format!("is a manifest of form {manifest}, not {FORM}");
            return Err(Stop::flag(file, reason));
        }
        let read: Self = serde_json::from_str(text).map_err(none)?;
        points::file_name(&read.experiment.file)
            .map_err(|reason| Stop::flag(&format!("{file}: experiment.file"), reason))?;
        let changed = |input: &Input| sha256(input.text.as_bytes()) != input.sha256;
        let inputs = read.inputs.iter().chain([&read.experiment]);
        let changed: Vec<&Input> = inputs.filter(|input| changed(input)).collect();
        if let Some(input) = changed.first() {
            let name = one_line(&input.file);
            let reason = format!("the text of {name} does not have the SHA-256 beside it");
            return Err(Stop::flag(file, reason));
        }
        let all = read.inputs.iter().chain([&read.experiment]);
        if experiment_id(all) != read.experiment_id {
            let reason = "experiment_id is not that of the experiment and its inputs";
            return Err(Stop::flag(file, reason));
        }
        Ok(read)
    }

    /// The text of its file.
    pub fn text(&self) -> String {
        // Its keys are text and its numbers finite: nothing of it has no JSON.
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        text + "\n"
    }
}

/// The experiment that consists of its file and of what it reads: the first twelve digits of
/// a hash.
pub fn experiment_id<'i>(inputs: impl Iterator<Item = &'i Input>) -> String {
    let all: String = inputs
        .map(|input| format!("{}\n{}\n", input.file, input.sha256))
        .collect();
    sha256(all.as_bytes()).chars().take(12).collect()
}
