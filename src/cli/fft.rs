//! `sme fft`: the fast Fourier transform over global memory.
//!
//! Called by [`super::main`], and the task by [`crate::cli::fft_paper`]; what it shares with other
//! programs is in [`super::program`]. Sizes count points.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use num_complex::Complex64;
use sme_fft_demo::fft::{self, Direction, Fft, FftSpec, Phase};
use sme_fft_demo::{Placement, Pool, npy};
use sme_memory::Place;

use super::flags::{Heading, OutputFlags, ProgramFlags};
use super::memory::{self, Needs};
use super::program::{Plan, Task};
use super::read::{self, Values};
use crate::program::{FftKernel, Program, random_points};
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::{Stop, to_stderr};

/// Default binary logarithm of the number of points.
const LOG2N: u32 = 16;

/// The flags of `sme fft`.
#[derive(Args, Clone, Debug)]
pub struct FftFlags {
    /// Binary logarithm of the number of points [default: that of --input, else 16; with --paper
    /// 14]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) log2n: Option<String>,
    /// Simulate Fig. 12 and 13 of the paper; print their tables, and write them and their plots
    /// under results/; with --log2n 16 the 256 threads of the paper all have work
    #[arg(long, conflicts_with_all = [
        "input", "inverse", "result", "format", "output", "columns", "no_host", "topology", "memory_nodes",
        "memory", "placement", "coherence_point", "no_check", "stale", "stale_list",
        "link_load",
    ])]
    paper: bool,
    /// The points, complex128 in a NumPy file; without it, random ones
    #[arg(long, value_name = "FILE.npy")]
    input: Option<PathBuf>,
    /// Transform back: conjugate roots, divided by the number of points
    #[arg(long)]
    inverse: bool,
    #[command(flatten)]
    pub(super) program: ProgramFlags,
    /// Write the result to a NumPy file, which appears whole or not at all
    #[arg(long, value_name = "FILE.npy", help_heading = "Output")]
    result: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

impl FftFlags {
    /// Whether the paper's figures are asked for rather than a run.
    pub fn is_paper(&self) -> bool {
        self.paper
    }

    /// Reads --log2n, where it is given.
    pub fn log2n(&self) -> Result<Option<u32>, Stop> {
        let Some(text) = &self.log2n else {
            return Ok(None);
        };
        let log2n = read::counts("--log2n", text, 0, FftSpec::LOG2N_MOST, Values::One)?;
        read::one("--log2n", log2n).map(Some)
    }
}

/// Runs whose flags fit together.
#[derive(Debug)]
pub struct FftRun {
    plan: Plan,
    task: FftTask,
    result: Option<PathBuf>,
}

impl FftRun {
    /// Reads the flags, and the input.
    pub fn read(flags: &FftFlags) -> Result<Self, Stop> {
        Self::read_within(flags, memory::available())
    }

    /// The same on a computer with so many bytes of memory `available`, if that is known.
    fn read_within(flags: &FftFlags, available: Option<u64>) -> Result<Self, Stop> {
        let plan = Plan::read(&flags.program, flags.output.clone())?;
        if let Some(result) = &flags.result {
            plan.only_one("--result")?;
            plan.apart_from_rows("--result", result)?;
        }
        let log2n = flags.log2n()?;
        let input = match &flags.input {
            None => None,
            Some(path) => {
                plan.only_one("--input")?;
                Some(points(path, plan.is_checked(), available)?)
            }
        };
        let log2n = match (&input, log2n) {
            (None, log2n) => log2n.unwrap_or(LOG2N),
            (Some((_, found)), Some(log2n)) if *found != log2n => {
                return Err(Stop::flag(
                    &format!("--log2n {log2n}"),
                    format!("the vector of --input has 2^{found} points"),
                ));
            }
            (Some((_, found)), _) => *found,
        };
        let task = FftTask {
            log2n,
            direction: match flags.inverse {
                true => Direction::Inverse,
                false => Direction::Forward,
            },
            input: input.map(|(points, _)| points),
        };
        plan.fits(&task, available)?;
        Ok(Self {
            plan,
            task,
            result: flags.result.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.plan.heading(&self.task)
    }

    /// Simulates, and writes what was asked for.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = match &self.result {
            Some(path) => Some(Output::file("--result", path)?),
            None => None,
        };
        if let Some(idle) = self.idle_threads() {
            to_stderr(&format!("warning: {idle}\n"));
        }
        self.plan.run(&self.task, |result| match output.take() {
            Some(output) => write(output, &result),
            None => Ok(()),
        })
    }

    /// A line that says that some threads have no row; `None` where all have one.
    fn idle_threads(&self) -> Option<String> {
        let rows = self.task.rows();
        let programs = self.plan.programs();
        let more = programs.iter().filter(|program| program.threads() > rows);
        let more = more.count();
        (more > 0).then(|| {
            format!(
                "{}: the matrix's rows are {rows}, and threads beyond that only wait \
                 ({more} of {} runs have some)",
                self.task.flag(),
                programs.len(),
            )
        })
    }
}

/// The transform itself.
#[derive(Debug)]
pub struct FftTask {
    log2n: u32,
    direction: Direction,
    input: Option<Arc<[Complex64]>>,
}

impl FftTask {
    /// Forward, of 2^`log2n` random points.
    pub fn random(log2n: u32) -> Self {
        Self {
            log2n,
            direction: Direction::Forward,
            input: None,
        }
    }

    /// Rows of the matrix, or columns if these are fewer: more threads than these have no work in
    /// some phase.
    pub fn rows(&self) -> u32 {
        1 << (self.log2n / 2)
    }

    /// Binary logarithm of the number of points.
    pub fn log2n(&self) -> u32 {
        self.log2n
    }

    fn flag(&self) -> String {
        format!("--log2n {}", self.log2n)
    }
}

impl Task for FftTask {
    type Kernel = FftKernel;
    type Result = Vec<Complex64>;

    const NAME: &'static str = "fft";

    fn phases() -> Vec<&'static str> {
        let phases = Phase::ALL.iter().skip(1);
        phases.map(|phase| phase.name()).collect()
    }

    fn parameters(&self) -> Vec<(&'static str, Cell)> {
        vec![
            ("log2n", Cell::Count(self.log2n.into())),
            ("direction", Cell::text(self.direction)),
        ]
    }

    fn needs(&self, _: &Program) -> Needs {
        let points = 1u64 << self.log2n;
        // Three matrices; rows end with a line and are a line apart.
        let rows = u64::from(self.rows());
        let columns = 1u64 << self.log2n.div_ceil(2);
        Needs {
            words: 6 * points + 16 * (rows + 2 * columns),
            // The four points of a line are of as many columns.
            nodes_of_line: 5,
            barriers: Fft::PHASES.len() as u64,
            // Input, result and reference.
            bytes: 3 * 16 * points,
        }
    }

    fn kernel(
        &self,
        program: &Program,
        pool: &mut Pool,
        placement: Placement,
    ) -> Result<FftKernel, Stop> {
        let spec = FftSpec {
            direction: self.direction,
            route: program.mapped.route(),
            ..FftSpec::new(self.log2n, program.threads())
        };
        let input = match &self.input {
            Some(points) => Arc::clone(points),
            None => random_points(1 << self.log2n, program.seed).into(),
        };
        let kernel = Fft::new(spec, pool, placement).and_then(|fft| FftKernel::new(fft, input));
        kernel.map_err(|error| Stop::flag(&self.flag(), error))
    }

    fn result(kernel: &FftKernel, read: &dyn Fn(Place) -> u64) -> Vec<Complex64> {
        kernel.result(read)
    }

    fn wrong(kernel: &FftKernel, result: &Vec<Complex64>) -> Option<String> {
        let error = kernel.error(result);
        // What is not a number is not right, either.
        let right = error <= FftKernel::TOLERANCE;
        (!right).then(|| {
            format!(
                "the largest error is {error:.1e} of the largest value; {:.0e} is allowed",
                FftKernel::TOLERANCE
            )
        })
    }
}

/// The vector in the file of `--input`, and the logarithm of its length.
fn points(
    path: &Path,
    checked: bool,
    available: Option<u64>,
) -> Result<(Arc<[Complex64]>, u32), Stop> {
    let flag = format!("--input {}", path.display());
    let bytes = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        // A pipe has no length, and to open it may take for ever.
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Stop::flag(
                &flag,
                "is no file but a pipe or a device; its length must be known beforehand",
            ));
        }
        // The reader says what is wrong.
        _ => 0,
    };
    memory::enough(&flag, bytes, available)?;
    let points = npy::read(path).map_err(|error| Stop::flag(&flag, error))?;
    let log2n = fft::log2n(points.len() as u64).map_err(|error| Stop::flag(&flag, error))?;
    // No sum of them overflows.
    let sum: f64 = points.iter().map(|point| point.norm()).sum();
    let stays_finite = sum <= f64::MAX / 16.0;
    if checked && !stays_finite {
        return Err(Stop::flag(
            &flag,
            "its transform is not finite, and cannot be checked (--no-check)",
        ));
    }
    Ok((points.into(), log2n))
}

fn write(mut output: Output, result: &[Complex64]) -> Result<(), Stop> {
    let mut bytes = Vec::new();
    // Memory takes everything.
    let _ = npy::write_to(&mut bytes, result);
    output.push_all(&mut bytes.as_slice())?;
    output.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: FftFlags,
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let read = |line: &str, available| {
            let line = Line::parse_from(line.split(' '));
            FftRun::read_within(&line.flags, available).map(drop)
        };
        let cached = "sme --log2n 16 --nodes 4 --cores 1,2 --memory-nodes 4";
        let Err(Stop::Input(line)) = read(cached, Some(60 << 20)) else {
            panic!("five times 12 MiB and more in 60");
        };
        assert!(
            line.starts_with("--log2n 16 --nodes 4 --cores 1: takes "),
            "{line}"
        );
        assert_eq!(read(cached, Some(80 << 20)), Ok(()));
        assert_eq!(read(cached, None), Ok(()));
        // Without copies there is less, with the checker more.
        let uncached = format!("{cached} --memory uncached");
        assert_eq!(read(&uncached, Some(60 << 20)), Ok(()));
        assert!(read(&format!("{cached} --stale"), Some(74 << 20)).is_err());
        assert_eq!(read(cached, Some(74 << 20)), Ok(()));
    }
}
