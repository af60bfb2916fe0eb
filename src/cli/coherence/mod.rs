//! `sme coherence`: messages through shared memory from the view of cache coherence.
//!
//! Called by [`super::main`]; tables, measurements and the model are [`crate::coherence`]'s. Each
//! command reads its flags into a run whose flags fit together.

mod measure;
mod predict;

use clap::Subcommand;

use crate::report::stop::Stop;

/// `sme coherence …`
#[derive(Clone, Debug, Subcommand)]
pub enum CoherenceCommand {
    /// Measure loads and stores by cache state on this computer: the throughput table
    #[command(after_help = super::help::MEASURE)]
    Measure(measure::MeasureFlags),
    /// Predict the throughput of messages from a throughput table, by size, and the access that
    /// bounds it
    #[command(after_help = super::help::PREDICT)]
    Predict(Box<predict::PredictFlags>),
}

/// A command whose flags fit together.
#[derive(Debug)]
pub struct CoherenceRun(Runs);

#[derive(Debug)]
enum Runs {
    Measure(measure::MeasureRun),
    Predict(predict::PredictRun),
}

impl CoherenceRun {
    /// Reads the flags.
    pub fn read(command: &CoherenceCommand) -> Result<Self, Stop> {
        let runs = match command {
            CoherenceCommand::Measure(flags) => Runs::Measure(flags.read()?),
            CoherenceCommand::Predict(flags) => Runs::Predict(flags.read()?),
        };
        Ok(Self(runs))
    }

    /// Does it, and writes its rows.
    pub fn run(&self) -> Result<(), Stop> {
        match &self.0 {
            Runs::Measure(run) => run.run(),
            Runs::Predict(run) => run.run(),
        }
    }
}
