//! `--waves`: the ports of chosen engines as a waveform.
//!
//! Called by [`super::barrier`]; calls [`sme_sim::families::sme::engine::waves`]. While the run
//! goes on the waveform grows in a scratch file; it gets to its place when it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::path::{Path, PathBuf};

use clap::Args;
use sme_sim::families::sme::engine::waves::Recorder;
use sme_sim::observe::waves::{Format, Selection, UnknownFormat};
use sme_sim::time::Time;

use super::args;
use super::read::{self, Values};
use crate::experiment::Experiment;
use crate::report::output::Output;
use crate::report::stop::Stop;

/// The flags of a waveform.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct WavesFlags {
    /// Record the ports of engines as a waveform; the ending says the format, .vcd or .fst
    #[arg(long, value_name = "FILE")]
    waves: Option<PathBuf>,
    /// Nodes whose engines are recorded, e.g. 0,2 or 0..7; positions beyond the last node have only
    /// a switch [default: 0]
    #[arg(long, value_name = "LIST", requires = "waves")]
    #[arg(allow_negative_numbers = true)]
    waves_nodes: Option<String>,
    /// Record from this simulated time on, e.g. 250us [default: the beginning, warm-up included]
    #[arg(long, value_name = "TIME", requires = "waves")]
    #[arg(allow_hyphen_values = true)]
    waves_from: Option<String>,
    /// Record up to this simulated time, e.g. 260us [default: the end]
    #[arg(long, value_name = "TIME", requires = "waves")]
    #[arg(allow_hyphen_values = true)]
    waves_to: Option<String>,
}

/// The most engines in one waveform.
const MAX_ENGINES: usize = 1_024;

impl WavesFlags {
    /// The recording to be made of `experiment`, if there is one.
    pub fn read(&self, experiment: &Experiment) -> Result<Option<WavesRun>, Stop> {
        let Some(file) = &self.waves else {
            return Ok(None);
        };
        let ending = file.extension().and_then(|ending| ending.to_str());
        let format = ending.map_or(Err(UnknownFormat), str::parse);
        let format =
            format.map_err(|error| Stop::flag(&format!("--waves {}", file.display()), error))?;
        let flag = "--waves-nodes";
        let text = self.waves_nodes.as_deref().unwrap_or("0");
        let last = experiment.topology.hosts().saturating_sub(1);
        let mut nodes = read::counts(flag, text, 0, last, Values::Many)?;
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() > MAX_ENGINES {
            return Err(Stop::flag(
                flag,
                format!("{} engines; at most {MAX_ENGINES}", nodes.len()),
            ));
        }
        let time = |flag, text: &Option<String>| match text {
            Some(text) => read::time(flag, text).map(Some),
            None => Ok(None),
        };
        let from = time("--waves-from", &self.waves_from)?.unwrap_or(Time::ZERO);
        let to = time("--waves-to", &self.waves_to)?.unwrap_or(Time::NEVER);
        if to <= from {
            return Err(Stop::flag(
                &format!("--waves-to {to}"),
                format!("is not later than {from}, where the recording begins"),
            ));
        }
        Ok(Some(WavesRun {
            file: file.clone(),
            format,
            selection: Selection { nodes, from, to },
        }))
    }
}

/// The signals to be recorded, and the file they go to.
#[derive(Clone, Debug)]
pub struct WavesRun {
    /// `--waves`
    pub file: PathBuf,
    format: Format,
    selection: Selection,
}

impl WavesRun {
    /// A recorder of `experiment`; an error where its file could not be written.
    pub fn open(&self, experiment: &Experiment) -> Result<Waveform, Stop> {
        let output = Output::file(FLAG, &self.file)?;
        let scratch = output.scratch()?;
        let clock = args::engines_of(&experiment.machine, FLAG)?.engine.clock;
        let recorder = scratch.try_clone().and_then(|file| {
            Recorder::new(clock, &self.selection, self.format, BufWriter::new(file))
        });
        let recorder = recorder.map_err(|error| unwritable(&self.file, &error))?;
        Ok(Waveform {
            recorder,
            scratch,
            output,
            file: self.file.clone(),
        })
    }
}

/// A waveform under way.
#[derive(Debug)]
pub struct Waveform {
    recorder: Recorder,
    /// The file the recorder writes to.
    scratch: File,
    output: Output,
    file: PathBuf,
}

impl Waveform {
    /// Where engines are recorded.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Everything is recorded: the file appears.
    pub fn commit(mut self) -> Result<(), Stop> {
        let finished = self.recorder.finish();
        finished
            .and_then(|()| self.scratch.rewind())
            .map_err(|error| unwritable(&self.file, &error))?;
        self.output.push_all(&mut self.scratch)?;
        self.output.commit()
    }
}

const FLAG: &str = "--waves";

fn unwritable(file: &Path, error: &io::Error) -> Stop {
    Stop::unwritable(FLAG, file, error)
}
