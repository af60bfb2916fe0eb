//! `sme lu`: the blocked LU factorization over global memory.
//!
//! Called by [`super::main`]; what it shares with other programs is in [`super::program`].

use clap::Args;
use sme_fft_demo::lu::{Lu, LuSpec, Phase};
use sme_fft_demo::{Placement, Pool};
use sme_memory::Place;

use super::flags::{Heading, OutputFlags, ProgramFlags};
use super::memory::{self, Needs};
use super::program::{Plan, Task};
use super::read::{self, Values};
use crate::program::{LuKernel, Program};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The largest matrix that fits the most words of memory a factorization has.
const MOST_ROWS: u32 = 1 << 15;
/// The largest block.
const MOST_ROWS_OF_BLOCK: u32 = 1024;

/// The flags of `sme lu`.
#[derive(Args, Clone, Debug)]
pub struct LuFlags {
    /// Rows of the matrix, and columns
    #[arg(
        long,
        value_name = "N",
        default_value = "256",
        allow_negative_numbers = true
    )]
    n: String,
    /// Rows of a block, and columns; each block has one owner
    #[arg(
        long,
        value_name = "N",
        default_value = "16",
        allow_negative_numbers = true
    )]
    block: String,
    #[command(flatten)]
    program: ProgramFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs whose flags fit together.
#[derive(Debug)]
pub struct LuRun {
    plan: Plan,
    task: LuTask,
}

impl LuRun {
    /// Reads the flags.
    pub fn read(flags: &LuFlags) -> Result<Self, Stop> {
        let plan = Plan::read(&flags.program, flags.output.clone())?;
        let one = |flag, text: &str, most| {
            read::one(flag, read::counts(flag, text, 1, most, Values::One)?)
        };
        let task = LuTask {
            n: one("--n", &flags.n, MOST_ROWS)?,
            block: one("--block", &flags.block, MOST_ROWS_OF_BLOCK)?,
        };
        plan.fits(&task, memory::available())?;
        Ok(Self { plan, task })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.plan.heading(&self.task)
    }

    /// Simulates, and writes what was asked for.
    pub fn run(&self) -> Result<(), Stop> {
        self.plan.run(&self.task, |_| Ok(()))
    }
}

/// The factorization itself.
#[derive(Debug)]
struct LuTask {
    n: u32,
    block: u32,
}

impl Task for LuTask {
    type Kernel = LuKernel;
    type Result = Vec<f64>;

    const NAME: &'static str = "lu";

    fn phases() -> Vec<&'static str> {
        let phases = Phase::ALL.iter().skip(1);
        phases.map(|phase| phase.name()).collect()
    }

    fn parameters(&self) -> Vec<(&'static str, Cell)> {
        vec![
            ("n", Cell::Count(self.n.into())),
            ("block", Cell::Count(self.block.into())),
        ]
    }

    fn needs(&self, program: &Program) -> Needs {
        let blocks = u64::from(self.n.div_ceil(self.block));
        let block_words = u64::from(self.block * self.block).next_multiple_of(8);
        let elements = u64::from(self.n).pow(2);
        Needs {
            words: blocks * blocks * block_words,
            // A block is read by its row and its column of the grid of threads.
            nodes_of_line: 2 * u64::from(program.threads()).isqrt(),
            barriers: Phase::ALL.len() as u64 * blocks,
            // The matrix and its factors.
            bytes: 2 * 8 * elements,
        }
    }

    fn kernel(
        &self,
        program: &Program,
        pool: &mut Pool,
        placement: Placement,
    ) -> Result<LuKernel, Stop> {
        let spec = LuSpec {
            n: self.n,
            block: self.block,
            threads: program.threads(),
            route: program.mapped.route(),
            seed: program.seed,
        };
        let kernel = Lu::new(spec, pool, placement).and_then(LuKernel::new);
        let flags = format!("--n {} --block {}", self.n, self.block);
        kernel.map_err(|error| Stop::flag(&flags, error))
    }

    fn result(kernel: &LuKernel, read: &dyn Fn(Place) -> u64) -> Vec<f64> {
        kernel.result(read)
    }

    fn wrong(kernel: &LuKernel, result: &Vec<f64>) -> Option<String> {
        let error = kernel.error(result);
        // What is not a number is not right, either.
        let right = error <= LuKernel::TOLERANCE;
        (!right).then(|| {
            format!(
                "the product of the factors is off by {error:.1e} of the matrix; {:.0e} is allowed",
                LuKernel::TOLERANCE
            )
        })
    }
}
