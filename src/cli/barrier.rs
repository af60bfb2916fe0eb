//! `sme barrier`: one experiment, one row, and on request where its time went.
//!
//! Called by [`super::main`]; calls [`super::args`] for the experiment and `Experiment::run`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use sme_sim::kernel::peers::Alone;
use sme_sim::observe::failure::Failure;

use super::args;
use super::flags::{ExperimentFlags, Heading, OutputFlags};
use super::memory;
use super::waves::{Waveform, WavesFlags, WavesRun};
use crate::distributed::{Crew, agreed, gone};
use crate::experiment::{Error, Experiment, Form, Observe, Outcome, ThreadEpisode};
use crate::progress::{self, Silent, Watch};
use crate::report::Format;
use crate::report::explain;
use crate::report::links::write_link_load;
use crate::report::output::Output;
use crate::report::row::{self, Cell, Host, Row};
use crate::report::stop::{self, Stop};
use crate::report::timeline;

/// The flags of `sme barrier`.
#[derive(Args, Clone, Debug)]
pub struct BarrierFlags {
    #[command(flatten)]
    experiment: ExperimentFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// Show the critical path of the last episode, below the row of a table; with json and csv
    /// on stderr
    #[arg(long, help_heading = "Output")]
    explain: bool,
    /// Write the critical path of the last episode: at_ns,duration_ns,node,part,queued_for,what as
    /// CSV, or as JSON lines if FILE ends in .json or .jsonl
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    explain_to: Option<PathBuf>,
    /// Write every arrival and departure: CSV with episode,node,core,arrive_ns,leave_ns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    per_thread: Option<PathBuf>,
    /// Write the load of every link: CSV with
    /// from,to,channel,bytes,packets,busy_fraction,stall_fraction
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    link_load: Option<PathBuf>,
    /// Write a trace of all threads for ui.perfetto.dev: what each did and when, its barriers and
    /// waits, and an arrow from the write of a flag to each who saw it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    timeline: Option<PathBuf>,
    #[command(flatten)]
    waves: WavesFlags,
}

/// The most rows of `--per-thread`.
const MAX_RECORDS: u64 = 1 << 27;

/// The files of a run, which appear at its end.
struct Opened {
    result: Output,
    explain: Option<Output>,
    per_thread: Option<Output>,
    link_load: Option<Output>,
    timeline: Option<Output>,
    waves: Option<Waveform>,
}

/// One experiment whose flags fit together.
#[derive(Debug)]
pub struct BarrierRun {
    experiment: Experiment,
    output: OutputFlags,
    explain: bool,
    explain_to: Option<PathBuf>,
    per_thread: Option<PathBuf>,
    link_load: Option<PathBuf>,
    timeline: Option<PathBuf>,
    waves: Option<WavesRun>,
}

impl BarrierRun {
    /// Reads the flags.
    pub fn read(flags: &BarrierFlags) -> Result<Self, Stop> {
        Self::read_within(flags, memory::available())
    }

    /// The same on a computer with so many bytes of memory `available`, if that is known.
    fn read_within(flags: &BarrierFlags, available: Option<u64>) -> Result<Self, Stop> {
        let experiment = args::experiment(&flags.experiment)?;
        if flags.per_thread.is_some() {
            let threads = u64::from(experiment.nodes) * u64::from(experiment.cores);
            let records = threads.saturating_mul(experiment.episodes.into());
            if records > MAX_RECORDS {
                return Err(Stop::flag(
                    "--per-thread",
                    format!("{records} rows; at most {MAX_RECORDS}: fewer --episodes or --nodes"),
                ));
            }
        }
        let waves = flags.waves.read(&experiment)?;
        let run = Self {
            experiment,
            output: flags.output.clone(),
            explain: flags.explain,
            explain_to: flags.explain_to.clone(),
            per_thread: flags.per_thread.clone(),
            link_load: flags.link_load.clone(),
            timeline: flags.timeline.clone(),
            waves,
        };
        let (experiment, observe) = (&run.experiment, run.observe());
        let is_looked_into = observe.looks_at_threads() || run.waves.is_some();
        if experiment.form == Form::Compact && is_looked_into {
            let why = "--per-thread, --explain, --explain-to, --timeline and --waves need \
                       --form readable";
            return Err(Stop::flag("--form compact", why.to_owned()));
        }
        let needed = memory::needed(experiment, &observe);
        memory::fits(experiment, needed, available)?;
        Ok(run)
    }

    /// The observations that its flags ask for, but for waveforms, whose recorder is opened later.
    fn observe(&self) -> Observe<'static> {
        Observe {
            per_thread: self.per_thread.is_some(),
            link_load: self.link_load.is_some(),
            critical_path: self.explain || self.explain_to.is_some(),
            timeline: self.timeline.is_some(),
            waves: None,
        }
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output
            .file
            .heading(&row::keys(!self.output.no_host), false)
    }

    /// Simulates it, and writes what was asked for.
    pub fn run(&self) -> Result<(), Stop> {
        self.run_among(&mut Alone)
    }

    /// The same together with the processes of `crew`, among whom the nodes are divided.
    pub fn run_among(&self, crew: &mut dyn Crew) -> Result<(), Stop> {
        if crew.count() > 1 {
            for (flag, given) in [
                ("--explain", self.explain),
                (explain::FLAG, self.explain_to.is_some()),
                (timeline::FLAG, self.timeline.is_some()),
                ("--waves", self.waves.is_some()),
            ] {
                if given {
                    return Err(Stop::flag(flag, "not with several processes"));
                }
            }
        }
        if crew.me() > 0 {
            let opened = agreed(crew, Ok(()));
            let observe = self.observe();
            return opened.and_then(|()| {
                measured_among(crew, &self.experiment, &observe, &Silent).map(drop)
            });
        }
        let opened = agreed(crew, self.open())?;
        self.write(crew, opened)
    }

    /// Opens every output of the run.
    fn open(&self) -> Result<Opened, Stop> {
        let open = |flag, path: &Option<PathBuf>| match path {
            Some(path) => Output::file(flag, path).map(Some),
            None => Ok(None),
        };
        Ok(Opened {
            result: Output::file_or_stdout(self.output.file.output.as_deref())?,
            explain: open(explain::FLAG, &self.explain_to)?,
            per_thread: open("--per-thread", &self.per_thread)?,
            link_load: open("--link-load", &self.link_load)?,
            timeline: open(timeline::FLAG, &self.timeline)?,
            waves: match &self.waves {
                Some(waves) => Some(waves.open(&self.experiment)?),
                None => None,
            },
        })
    }

    fn write(&self, crew: &mut dyn Crew, opened: Opened) -> Result<(), Stop> {
        let Opened {
            mut result,
            explain,
            per_thread,
            link_load,
            timeline,
            waves,
        } = opened;
        let observe = Observe {
            waves: waves.as_ref().map(Waveform::recorder),
            ..self.observe()
        };
        let watch = progress::on_stderr();
        watch.begin("episodes", self.experiment.episodes.into());
        let measured = measured_among(crew, &self.experiment, &observe, watch.as_ref());
        watch.end();
        let recorded = match (&measured, waves) {
            // Of a run that failed too: its end is what one would like to see.
            (Ok(_) | Err(Stop::Failed(_)), Some(waves)) => waves.commit(),
            _ => Ok(()),
        };
        let (outcome, host) = measured?;
        recorded?;

        let host = (!self.output.no_host).then_some(host);
        let row = Row::new(&self.experiment, &outcome, host);
        if let (Some(output), Some(file)) = (explain, &self.explain_to) {
            let format = Format::of_file(file).unwrap_or(Format::Csv);
            explain::write(output, &outcome.critical_path, format)?;
        }
        if let Some(output) = per_thread {
            write_per_thread(output, &outcome.per_thread)?;
        }
        if let Some(output) = link_load {
            write_link_load(output, &outcome.link_load)?;
        }
        if let Some(output) = timeline {
            timeline::write(output, &outcome.timeline)?;
        }
        result.push(&self.rendered(&row)?)?;
        if self.explain {
            let path = explain::critical_path("the last episode", &outcome.critical_path);
            match self.output.file.format() {
                Format::Table => result.push(&format!("\n{path}"))?,
                _ => stop::to_stderr(&path),
            }
        }
        result.commit()
    }

    fn rendered(&self, row: &Row) -> Result<String, Stop> {
        let with_host = !self.output.no_host;
        let file = &self.output.file;
        Ok(match file.format() {
            Format::Json if file.columns.is_none() => row.to_json() + "\n",
            _ => file.rendered(&row::keys(with_host), &[row.cells().to_vec()])?,
        })
    }
}

/// The row of `experiment`, with nothing else observed: what a sweep does for each of its points.
pub fn simulate(experiment: &Experiment, with_host: bool) -> Result<Row, Stop> {
    let (outcome, host) = measured(experiment, &Observe::default(), &Silent)?;
    Ok(Row::new(experiment, &outcome, with_host.then_some(host)))
}

/// The outcome of `experiment`, and its cost to the host.
pub(super) fn measured(
    experiment: &Experiment,
    observe: &Observe<'_>,
    watch: &dyn Watch,
) -> Result<(Outcome, Host), Stop> {
    measured_among(&mut Alone, experiment, observe, watch)
}

fn measured_among(
    crew: &mut dyn Crew,
    experiment: &Experiment,
    observe: &Observe<'_>,
    watch: &dyn Watch,
) -> Result<(Outcome, Host), Stop> {
    let began = Instant::now();
    let outcome = match experiment.run_among(crew.peers(), observe, watch) {
        Ok(outcome) => outcome,
        Err(Error::Spec(error)) => return Err(Stop::Input(stop::one_line(&error.to_string()))),
        Err(
            error @ (Error::Cores(_)
            | Error::Lacks(_)
            | Error::Build(_)
            | Error::Design(_)
            | Error::NoEngines(_)
            | Error::Memory(_)
            | Error::Rtl(_)
            | Error::Verilated(_)
            | Error::Timeline(_)
            | Error::NotCompact(_)),
        ) => {
            return Err(Stop::Input(stop::one_line(&error.to_string())));
        }
        Err(Error::Failure(Failure::Peers(error))) => return Err(gone(crew, &error)),
        Err(error @ (Error::Failure(_) | Error::Overtaken(_))) => {
            return Err(Stop::Failed(error.to_string()));
        }
    };
    // For the critical path everything is simulated once more, event by event the same.
    let runs = 1 + u64::from(observe.critical_path);
    let host = Host {
        bytes_per_thread: Some(outcome.bytes_per_thread),
        ..Host::measured(began.elapsed(), runs * outcome.events)
    };
    Ok((outcome, host))
}

fn write_per_thread(mut output: Output, threads: &[ThreadEpisode]) -> Result<(), Stop> {
    output.push("episode,node,core,arrive_ns,leave_ns\n")?;
    for thread in threads {
        let cells = [
            Cell::Count(thread.episode.into()),
            Cell::Count(thread.node.into()),
            Cell::Count(thread.core.into()),
            Cell::nanos(thread.arrive),
            Cell::nanos(thread.leave),
        ];
        output.push(&(row::csv_record(cells.iter().map(Cell::to_text)) + "\n"))?;
    }
    output.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: BarrierFlags,
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let read = |line: &str, available| {
            let line = Line::parse_from(line.split(' '));
            BarrierRun::read_within(&line.flags, available).map(drop)
        };
        let large = "sme --nodes 65536 --cores 4 --episodes 9 --form readable";
        let Err(Stop::Input(line)) = read(large, Some(600 << 20)) else {
            panic!("640 MiB and more in 600");
        };
        assert!(line.starts_with("--nodes 65536 --cores 4 "), "{line}");
        assert_eq!(read(large, Some(700 << 20)), Ok(()));
        assert_eq!(read(large, None), Ok(()));
        for more in ["--explain", "--per-thread all.csv"] {
            let line = read(&format!("{large} {more}"), Some(700 << 20));
            assert!(line.is_err(), "{more}");
        }
    }

    #[test]
    fn the_rate_of_events_counts_what_was_simulated() {
        let experiment = testing::experiment(&["--nodes", "4", "--episodes", "2"]);
        for (critical_path, runs) in [(false, 1), (true, 2)] {
            let observe = Observe {
                critical_path,
                ..Observe::default()
            };
            let (outcome, host) = measured(&experiment, &observe, &Silent).unwrap();
            assert_eq!(host.events, runs * outcome.events);
        }
    }
}
