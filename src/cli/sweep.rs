//! `sme sweep`: many experiments, one row each, in a fixed order at any number of jobs;
//! interrupted at any moment, it continues without repeating or losing a row.
//!
//! Called by [`super::main`]; calls [`super::args`] for the points, `Experiment::run` for each,
//! and [`crate::report::partial`] for the file under way.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;

use clap::Args;
use sme_sim::kernel::peers::Alone;

mod shared;

use super::args;
use super::flags::{ExperimentFlags, Heading, OutputFlags};
use super::memory;
use super::read;
use crate::distributed::Crew;
use crate::experiment::{Experiment, Observe};
use crate::progress::Watch;
use crate::report::Format;
use crate::report::output::{Output, Target};
use crate::report::partial::{self, Partial};
use crate::report::recognize;
use crate::report::row::{self, Row};
use crate::report::stop::Stop;
use shared::{Leading, Numbered, Share};

/// The flags of `sme sweep`.
#[derive(Args, Clone, Debug)]
pub struct SweepFlags {
    #[command(flatten)]
    pub(super) experiment: ExperimentFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// Continue the sweep that was interrupted while writing FILE.partial
    #[arg(
        long,
        requires = "output",
        conflicts_with = "columns",
        help_heading = "Output"
    )]
    resume: bool,
    /// Points simulated at the same time [default: the computer's threads, or what fits its memory]
    #[arg(long, value_name = "JOBS", allow_negative_numbers = true)]
    jobs: Option<String>,
}

/// A sweep whose flags fit together.
#[derive(Debug)]
pub struct Sweep {
    points: Vec<Experiment>,
    output: OutputFlags,
    resume: bool,
    jobs: usize,
}

/// Simulates one point, or says why it failed.
pub type Simulate<'s> = dyn Fn(&Experiment) -> Result<Row, Stop> + Sync + 's;

impl Sweep {
    /// Reads the flags; every point is checked.
    pub fn read(flags: &SweepFlags) -> Result<Self, Stop> {
        let jobs = match &flags.jobs {
            Some(text) => Some(read::host_threads("--jobs", text)?),
            None => None,
        };
        if flags.resume && flags.output.file.format() == Format::Table {
            return Err(Stop::flag(
                "--resume",
                "a table is written at the end; use --format csv or json",
            ));
        }
        let points = args::points(&flags.experiment)?;
        Ok(Self {
            jobs: fitting_jobs(jobs, &points, memory::available())?,
            points,
            output: flags.output.clone(),
            resume: flags.resume,
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output
            .file
            .heading(&row::keys(!self.output.no_host), false)
    }

    /// Runs it, and writes the rows.
    pub fn run(&self) -> Result<(), Stop> {
        self.run_among(&mut Alone)
    }

    /// The same together with the processes of `crew`, among whom the points are divided.
    pub fn run_among(&self, crew: &mut dyn Crew) -> Result<(), Stop> {
        let with_host = !self.output.no_host;
        let simulate = |point: &Experiment| super::barrier::simulate(point, with_host);
        if crew.me() > 0 {
            return self.follow(crew, &simulate);
        }
        self.lead(crew, &simulate, self.output.file.watch().as_ref())
    }

    /// Runs the first process's part: it writes the rows, its own and those of the others.
    fn lead(
        &self,
        crew: &mut dyn Crew,
        simulate: &Simulate<'_>,
        watch: &dyn Watch,
    ) -> Result<(), Stop> {
        let mut leading = Leading::new(crew);
        let done = self.write(&mut leading, simulate, watch);
        leading.dismiss()?;
        done
    }

    fn write(
        &self,
        crew: &mut Leading<'_>,
        simulate: &Simulate<'_>,
        watch: &dyn Watch,
    ) -> Result<(), Stop> {
        let format = self.output.file.format();
        let target = match &self.output.file.output {
            Some(path) if path != Path::new("-") => {
                Some(Target::of(path).map_err(|error| Stop::unwritable("-o", path, &error))?)
            }
            _ => None,
        };
        match target {
            Some(Target::File(target)) if format != Format::Table => {
                self.to_partial(crew, &target, simulate, watch)
            }
            _ if self.resume => Err(Stop::flag("--resume", "-o must name a file")),
            _ => self.to_output(crew, simulate, watch),
        }
    }

    /// Rows to stdout or a device as they come; a table at the end.
    fn to_output(
        &self,
        crew: &mut Leading<'_>,
        simulate: &Simulate<'_>,
        watch: &dyn Watch,
    ) -> Result<(), Stop> {
        let format = self.output.file.format();
        let with_host = !self.output.no_host;
        let mut output = Output::file_or_stdout(self.output.file.output.as_deref())?;
        let keys = row::keys(with_host);
        if let Some(header) = self.header()? {
            output.push(&format!("{header}\n"))?;
        }
        let mut rows = Vec::new();
        self.simulate_from(
            crew,
            0,
            simulate,
            watch,
            &mut |row| match self.line(&row)? {
                Some(line) => output.push_now(&format!("{line}\n")),
                None => {
                    rows.push(row.cells().to_vec());
                    Ok(())
                }
            },
        )?;
        if format == Format::Table {
            output.push(&self.output.file.rendered(&keys, &rows)?)?;
        }
        output.commit()
    }

    /// Rows to `FILE.partial`, which is renamed at the end.
    fn to_partial(
        &self,
        crew: &mut Leading<'_>,
        target: &Path,
        simulate: &Simulate<'_>,
        watch: &dyn Watch,
    ) -> Result<(), Stop> {
        let header = self.header()?;
        let header = header.as_deref();
        let resumed = match self.resume {
            true => Partial::resume(target, header)?,
            false => None,
        };
        let (mut partial, done) = match resumed {
            Some((partial, rows)) => {
                self.check(&rows).map_err(|reason| {
                    Stop::flag("--resume", format!("{} {reason}", partial.shown()))
                })?;
                (partial, rows.len())
            }
            None if self.resume && self.is_complete(target, header) => return Ok(()),
            None => (Partial::create(target, header)?, 0),
        };
        self.simulate_from(crew, done, simulate, watch, &mut |row| {
            partial.append(&self.line(&row)?.unwrap_or_default())
        })?;
        partial.finish()
    }

    /// The line above the rows, which only CSV has.
    fn header(&self) -> Result<Option<String>, Stop> {
        let keys = row::keys(!self.output.no_host);
        if self.output.file.format() != Format::Csv {
            return Ok(None);
        }
        let header = match self.output.file.columns() {
            Some(columns) => columns.rendered(&keys, &[], Format::Csv, None)?,
            None => row::csv_header(!self.output.no_host),
        };
        Ok(Some(header.trim_end().to_owned()))
    }

    /// The row as a line of the format; `None` for a table, which needs all rows.
    fn line(&self, row: &Row) -> Result<Option<String>, Stop> {
        let format = self.output.file.format();
        let columns = self.output.file.columns();
        Ok(match (format, columns) {
            (Format::Table, _) => None,
            (Format::Json, None) => Some(row.to_json()),
            (Format::Csv, None) => Some(row.to_csv()),
            (_, Some(columns)) => {
                let keys = row::keys(!self.output.no_host);
                let text = columns.rendered(&keys, &[row.cells().to_vec()], format, None)?;
                text.lines().next_back().map(str::to_owned)
            }
        })
    }

    fn is_complete(&self, target: &Path, header: Option<&str>) -> bool {
        partial::complete_rows(target, header)
            .is_some_and(|rows| rows.len() == self.points.len() && self.check(&rows).is_ok())
    }

    /// Whether `rows` are the first rows of this sweep.
    fn check(&self, rows: &[String]) -> Result<(), String> {
        if rows.len() > self.points.len() {
            let (rows, points) = (rows.len(), self.points.len());
            return Err(format!("has {rows} rows, this sweep only {points} points"));
        }
        let (format, with_host) = (self.output.file.format(), !self.output.no_host);
        for (index, (row, point)) in rows.iter().zip(&self.points).enumerate() {
            recognize::row_of(row, format, with_host, point)
                .map_err(|reason| format!("is of another sweep: row {} {reason}", index + 1))?;
        }
        Ok(())
    }

    /// Simulates the points from number `first` on, up to `jobs` at a time in every process, and
    /// hands their rows to `emit` in order. Where points fail, the rows before the first of them
    /// are emitted.
    fn simulate_from(
        &self,
        crew: &mut Leading<'_>,
        first: usize,
        simulate: &Simulate<'_>,
        watch: &dyn Watch,
        emit: &mut dyn FnMut(Row) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let points = self.points.as_slice();
        watch.begin("points", points.len().saturating_sub(first) as u64);
        crew.begin(first)?;
        let share = Share::new(crew.crew, first);
        let emitted = self.simulate_share(&share, simulate, |own| {
            let emitted = emit_in_order(first, points, crew.results(own), watch, emit);
            share.stop(points.len());
            emitted
        });
        crew.end()?;
        watch.end();
        emitted
    }

    /// Simulates this process's `share`, up to `jobs` at a time, while `take` takes the rows.
    fn simulate_share<T>(
        &self,
        share: &Share,
        simulate: &Simulate<'_>,
        take: impl FnOnce(mpsc::Receiver<Numbered>) -> T,
    ) -> T {
        let points = self.points.as_slice();
        let (results, arriving) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(points.len()) {
                let results = results.clone();
                scope.spawn(move || {
                    while let Some((index, point)) = share.next(points)
                        && results.send((index, simulate(point))).is_ok()
                    {}
                });
            }
            drop(results);
            take(arriving)
        })
    }

    /// Runs the part of any other process: it simulates its share, and sends the rows to the first.
    fn follow(&self, crew: &mut dyn Crew, simulate: &Simulate<'_>) -> Result<(), Stop> {
        let Some(first) = shared::awaited_beginning(crew)? else {
            return Ok(());
        };
        let share = Share::new(crew, first);
        self.simulate_share(&share, simulate, |own| {
            shared::send_results(crew, own, || share.stop(self.points.len()))
        })
    }
}

fn emit_in_order(
    first: usize,
    points: &[Experiment],
    arriving: impl Iterator<Item = Result<Numbered, Stop>>,
    watch: &dyn Watch,
    emit: &mut dyn FnMut(Row) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut waiting = BTreeMap::new();
    let mut due = first;
    for numbered in arriving {
        let (index, result) = numbered?;
        watch.advance(1);
        waiting.insert(index, result);
        while let Some(result) = waiting.remove(&due) {
            match (result, points.get(due)) {
                (Ok(row), _) => emit(row)?,
                (Err(stop), Some(point)) => return Err(stop.at(&describe(point))),
                (Err(stop), None) => return Err(stop),
            }
            due += 1;
        }
    }
    Ok(())
}

/// Number of `points` simulated at the same time: as many as asked for, if these fit the
/// memory that is `available`; as many as the computer has threads and room for by default.
fn fitting_jobs(
    asked: Option<usize>,
    points: &[Experiment],
    available: Option<u64>,
) -> Result<usize, Stop> {
    let mut needed = Vec::with_capacity(points.len());
    for point in points {
        let bytes = memory::needed(point, &Observe::default());
        memory::fits(point, bytes, available)?;
        needed.push(bytes);
    }
    let fitting = |jobs| memory::jobs_that_fit(jobs, &needed, available);
    match asked {
        None => Ok(fitting(read::all_host_threads())),
        Some(jobs) if fitting(jobs) < jobs => Err(Stop::flag(
            &format!("--jobs {jobs}"),
            format!(
                "so many of these points do not fit into memory at once; {} do",
                fitting(jobs)
            ),
        )),
        Some(jobs) => Ok(jobs),
    }
}

/// A failed point, as flags that reproduce its size.
fn describe(point: &Experiment) -> String {
    format!(
        "--algorithm {} --topology {} --nodes {} --cores {} --seed {}",
        point.algorithm, point.topology, point.nodes, point.cores, point.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing;
    use crate::progress::Silent;
    use parking_lot::Mutex;
    use proptest::prelude::*;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const FLAGS: &str = "--nodes 1,4 --cores 1..2 --algorithm flat,tree --fan-in 2,8 \
                         --set engine.clock=100MHz,156MHz --no-host";

    #[test]
    fn as_many_jobs_as_fit() {
        let flags = [
            "--nodes",
            "64,4096",
            "--cores",
            "1",
            "--algorithm",
            "flat,tree",
        ];
        let points = testing::points(&flags);
        let jobs = |asked, mebibytes: Option<u64>| {
            fitting_jobs(asked, &points, mebibytes.map(|mebibytes| mebibytes << 20))
        };
        // Two points of 34 MiB and two of less than one.
        assert_eq!(jobs(Some(4), Some(70)), Ok(4));
        assert_eq!(jobs(Some(4), None), Ok(4));
        assert_eq!(jobs(None, Some(40)), Ok(1));
        let crowded = jobs(Some(2), Some(40)).unwrap_err();
        assert!(crowded.to_string().starts_with("--jobs 2: "), "{crowded}");
        let large = jobs(None, Some(30)).unwrap_err();
        assert!(large.to_string().starts_with("--nodes 4096 "), "{large}");
    }

    /// A few points: where each byte of the file costs two syncs or more.
    const FEW: &str = "--nodes 1,4 --algorithm flat --cores 2 --no-host";

    fn sweep(flags: &str, more: &[&str]) -> Sweep {
        let flags = flags.split_whitespace().chain(more.iter().copied());
        Sweep::read(&testing::sweep_flags(&flags.collect::<Vec<_>>())).unwrap()
    }

    /// A row that depends on the point alone, and takes differently long.
    fn simulate(point: &Experiment) -> Result<Row, Stop> {
        let ps = u64::from(point.nodes * 1_000 + point.cores * 10 + point.fan_in);
        std::thread::sleep(std::time::Duration::from_micros(ps % 10 * 20));
        Ok(Row::new(point, &testing::outcome(&[ps, 2 * ps]), None))
    }

    #[test]
    fn the_order_is_that_of_the_columns_and_no_point_comes_twice() {
        let points = sweep(FLAGS, &[]).points;
        let keys: Vec<_> = points
            .iter()
            .map(|e| {
                let fan_in =
                    (e.algorithm == crate::experiment::Algorithm::Tree).then_some(e.fan_in);
                (
                    row::set(&e.machine),
                    e.algorithm as u32,
                    e.nodes,
                    e.cores,
                    fan_in,
                )
            })
            .collect();
        let mut sorted = keys.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(keys, sorted);
        // Two machines; flat once, tree with two fan-ins; two by two sizes.
        assert_eq!(keys.len(), 2 * 3 * 4);
    }

    /// Runs into `target` and returns its bytes and how many points were simulated.
    fn run_into(target: &Path, flags: &str, more: &[&str]) -> (Vec<u8>, usize) {
        let path = target.to_str().unwrap();
        let sweep = sweep(flags, &[&["-o", path], more].concat());
        let simulated = AtomicUsize::new(0);
        let counting = |point: &Experiment| {
            simulated.fetch_add(1, Ordering::Relaxed);
            simulate(point)
        };
        sweep.lead(&mut Alone, &counting, &Silent).unwrap();
        (fs::read(target).unwrap(), simulated.into_inner())
    }

    #[test]
    fn a_sweep_cut_off_at_any_byte_ends_the_same() {
        let directory = tempfile::tempdir().unwrap();
        for format in ["csv", "json"] {
            let target = directory.path().join(format!("out.{format}"));
            let partial = directory.path().join(format!("out.{format}.partial"));
            let (whole, points) = run_into(&target, FEW, &[]);
            for length in 0..=whole.len() {
                fs::remove_file(&target).unwrap();
                fs::write(&partial, &whole[..length]).unwrap();
                let jobs = (length % 3 + 1).to_string();
                let more = ["--resume", "--jobs", &jobs];
                let (bytes, simulated) = run_into(&target, FEW, &more);
                assert!(bytes == whole, "{format} cut off at byte {length}");
                let headers = usize::from(format == "csv");
                let lines = whole[..length].iter().filter(|&&b| b == b'\n').count();
                assert_eq!(simulated, points - lines.saturating_sub(headers));
                assert!(!partial.exists());
            }
            assert_eq!(run_into(&target, FEW, &["--resume"]), (whole, 0));
        }
    }

    #[test]
    fn a_file_of_another_sweep_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out.csv");
        let partial = directory.path().join("out.csv.partial");
        let (whole, _) = run_into(&target, FEW, &[]);
        fs::remove_file(&target).unwrap();
        fs::write(&partial, &whole).unwrap();
        let path = target.to_str().unwrap();
        for more in [["--skew", "2ns"], ["--episodes", "7"], ["--pin", "compact"]] {
            let other = sweep(FEW, &[&["-o", path, "--resume"][..], &more].concat());
            let Err(Stop::Input(line)) = other.lead(&mut Alone, &simulate, &Silent) else {
                panic!("{more:?} is another sweep");
            };
            assert!(line.contains("of another sweep: row 1 has"), "{line}");
            assert_eq!(fs::read(&partial).unwrap(), whole);
        }
        let fresh = sweep(FEW, &["-o", path]).lead(&mut Alone, &simulate, &Silent);
        assert!(matches!(fresh, Err(Stop::Input(_))));
        assert_eq!(fs::read(&partial).unwrap(), whole);
    }

    #[test]
    fn a_failure_keeps_the_rows_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out.csv");
        let path = target.to_str().unwrap();
        let failing = sweep(FLAGS, &["-o", path, "--jobs", "4"]);
        let third = Mutex::new(row::identity(&failing.points[3]));
        let stopped = failing.lead(
            &mut Alone,
            &|point| match row::identity(point) == *third.lock() {
                true => Err(Stop::Failed("deadlock".into())),
                false => simulate(point),
            },
            &Silent,
        );
        assert!(matches!(stopped, Err(Stop::Failed(reason)) if reason.ends_with(": deadlock")));
        assert!(!target.exists());
        let partial = fs::read_to_string(directory.path().join("out.csv.partial")).unwrap();
        assert_eq!(partial.lines().count(), 1 + 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Killed again and again, at any bytes, with any number of jobs.
        #[test]
        fn many_interruptions_change_nothing(
            cuts in prop::collection::vec(0.0f64..1.0, 1..5),
            jobs in 1usize..9,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("out.json");
            let partial = directory.path().join("out.json.partial");
            let (whole, _) = run_into(&target, FLAGS, &["--jobs", "1"]);
            let jobs = jobs.to_string();
            let path = target.to_str().unwrap().to_owned();
            fs::remove_file(&target).unwrap();
            let flags = ["-o", &path, "--resume", "--jobs", &jobs];
            for cut in cuts {
                // The file breaks off where the sweep stops, and then loses some more.
                let interrupted = sweep(FLAGS, &flags);
                let left = AtomicUsize::new((cut * 10.0) as usize);
                let stop = |_| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                let dying = |point: &Experiment| match stop(()) {
                    Ok(_) => simulate(point),
                    Err(_) => Err(Stop::Failed("killed".into())),
                };
                if interrupted.lead(&mut Alone, &dying, &Silent).is_ok() {
                    break;
                }
                let bytes = fs::read(&partial).unwrap();
                let kept = bytes.len() - (cut * 300.0) as usize % (bytes.len() + 1);
                fs::write(&partial, &bytes[..kept]).unwrap();
                prop_assert!(whole.starts_with(&bytes));
            }
            prop_assert_eq!(run_into(&target, FLAGS, &["--resume", "--jobs", &jobs]).0, whole);
        }
    }
}
