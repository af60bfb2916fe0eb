//! `sme coherence`: messages through shared memory from the view of cache coherence.
//!
//! Called by [`super::main`]; tables, measurements and the model are [`crate::coherence`]'s. Each
//! command reads its flags into a run whose flags fit together.

mod bench;
mod compare;
mod curves;
mod host;
mod host_transfer;
mod measure;
mod predict;
mod simulated;
mod transfer;
mod tune;

use clap::Subcommand;

use crate::cli::flags::Heading;
use crate::report::stop::Stop;

/// `sme coherence …`
#[derive(Clone, Debug, Subcommand)]
pub enum CoherenceCommand {
    /// Time loads and stores by cache state on a simulated machine: the throughput table
    #[command(after_long_help = super::help::BENCH)]
    Bench(bench::BenchFlags),
    /// Measure loads and stores by cache state on this computer: the throughput table
    #[command(after_long_help = super::help::MEASURE)]
    Measure(measure::MeasureFlags),
    /// Predict the throughput of messages from a throughput table, by size, and the access that
    /// bounds it
    #[command(after_long_help = super::help::PREDICT)]
    Predict(Box<predict::PredictFlags>),
    /// Copy messages through a ring of chunks on a simulated machine, or on this computer
    #[command(after_long_help = super::help::TRANSFER)]
    Transfer(Box<transfer::TransferFlags>),
    /// Set predictions beside the transfer and an MPI ping-pong, by the size of the message
    #[command(after_long_help = super::help::COMPARE_TRANSFER)]
    Compare(Box<compare::CompareFlags>),
    /// Simulate the paper's figures, line by line, and draw them
    #[command(after_long_help = super::help::CURVES)]
    Curves(Box<curves::CurvesFlags>),
    /// Find the chunks, the ring, the direction and the flush with which a message is fastest
    #[command(after_long_help = super::help::TUNE_TRANSFER)]
    Tune(Box<tune::TuneFlags>),
}

/// A command whose flags fit together.
#[derive(Debug)]
pub struct CoherenceRun(Runs);

#[derive(Debug)]
enum Runs {
    Bench(bench::BenchRun),
    Measure(measure::MeasureRun),
    Predict(predict::PredictRun),
    Transfer(transfer::TransferRun),
    Compare(compare::CompareRun),
    Curves(curves::CurvesRun),
    Tune(tune::TuneRun),
}

impl CoherenceRun {
    /// Reads the flags.
    pub fn read(command: &CoherenceCommand) -> Result<Self, Stop> {
        let runs = match command {
            CoherenceCommand::Bench(flags) => Runs::Bench(flags.read()?),
            CoherenceCommand::Measure(flags) => Runs::Measure(flags.read()?),
            CoherenceCommand::Predict(flags) => Runs::Predict(flags.read()?),
            CoherenceCommand::Transfer(flags) => Runs::Transfer(flags.read()?),
            CoherenceCommand::Compare(flags) => Runs::Compare(flags.read()?),
            CoherenceCommand::Curves(flags) => Runs::Curves(flags.read()?),
            CoherenceCommand::Tune(flags) => Runs::Tune(flags.read()?),
        };
        Ok(Self(runs))
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        match &self.0 {
            Runs::Bench(run) => run.heading(),
            Runs::Measure(run) => run.heading(),
            Runs::Predict(run) => run.heading(),
            Runs::Transfer(run) => run.heading(),
            Runs::Compare(run) => run.heading(),
            Runs::Curves(run) => run.heading(),
            Runs::Tune(run) => run.heading(),
        }
    }

    /// Does it, and writes its rows.
    pub fn run(&self) -> Result<(), Stop> {
        match &self.0 {
            Runs::Bench(run) => run.run(),
            Runs::Measure(run) => run.run(),
            Runs::Predict(run) => run.run(),
            Runs::Transfer(run) => run.run(),
            Runs::Compare(run) => run.run(),
            Runs::Curves(run) => run.run(),
            Runs::Tune(run) => run.run(),
        }
    }
}
