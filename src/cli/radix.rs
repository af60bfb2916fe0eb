//! `sme radix`: the radix sort over global memory.
//!
//! Called by [`super::main`]; what it shares with other programs is in [`super::program`].

use clap::Args;
use sme_fft_demo::radix::{Borders, Phase, Radix, RadixSpec};
use sme_fft_demo::{Placement, Pool};
use sme_memory::Place;

use super::flags::{Heading, OutputFlags, ProgramFlags};
use super::memory::{self, Needs};
use super::program::{Plan, Task};
use super::read::{self, Values};
use crate::program::{Program, RadixKernel};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The most keys: 8 GiB of them.
const MOST_KEYS: u64 = 1 << 30;
/// The longest digit, beyond which counts do not fit a cache.
const MOST_DIGIT_BITS: u32 = 16;

/// The flags of `sme radix`.
#[derive(Args, Clone, Debug)]
pub struct RadixFlags {
    /// How many keys
    #[arg(
        long,
        value_name = "N",
        default_value = "65536",
        allow_negative_numbers = true
    )]
    keys: String,
    /// Bits of a key
    #[arg(
        long,
        value_name = "BITS",
        default_value = "32",
        allow_negative_numbers = true
    )]
    key_bits: String,
    /// Bits of a digit; one pass sorts by one digit
    #[arg(
        long,
        value_name = "BITS",
        default_value = "8",
        allow_negative_numbers = true
    )]
    digit_bits: String,
    /// How keys on lines of two nodes are stored: past the caches (uncached), or through them
    /// (shared), wrong where caches write back whole lines
    #[arg(long, value_name = "NAME", default_value = "uncached")]
    borders: String,
    #[command(flatten)]
    program: ProgramFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs whose flags fit together.
#[derive(Debug)]
pub struct RadixRun {
    plan: Plan,
    task: RadixTask,
}

impl RadixRun {
    /// Reads the flags.
    pub fn read(flags: &RadixFlags) -> Result<Self, Stop> {
        let plan = Plan::read(&flags.program, flags.output.clone())?;
        let bits = |flag, text: &str, most| {
            read::one(flag, read::counts(flag, text, 1, most, Values::One)?)
        };
        let keys = read::numbers("--keys", &flags.keys, 1, MOST_KEYS, Values::One)?;
        let task = RadixTask {
            keys: read::one("--keys", keys)?,
            key_bits: bits("--key-bits", &flags.key_bits, 64)?,
            digit_bits: bits("--digit-bits", &flags.digit_bits, MOST_DIGIT_BITS)?,
            borders: read::name("--borders", &flags.borders)?,
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

/// The sort itself.
#[derive(Debug)]
struct RadixTask {
    keys: u64,
    key_bits: u32,
    digit_bits: u32,
    borders: Borders,
}

impl Task for RadixTask {
    type Kernel = RadixKernel;
    type Result = Vec<u64>;

    const NAME: &'static str = "radix";

    fn phases() -> Vec<&'static str> {
        let phases = Phase::ALL.iter().skip(1);
        phases.map(|phase| phase.name()).collect()
    }

    fn parameters(&self) -> Vec<(&'static str, Cell)> {
        vec![
            ("keys", Cell::Count(self.keys)),
            ("key_bits", Cell::Count(self.key_bits.into())),
            ("digit_bits", Cell::Count(self.digit_bits.into())),
            ("borders", Cell::text(self.borders)),
        ]
    }

    fn needs(&self, program: &Program) -> Needs {
        let threads = program.threads();
        let digits = (1u64 << self.digit_bits).next_multiple_of(8);
        let counts = u64::from(threads) * digits;
        Needs {
            words: 2 * self.keys + counts + 8 * u64::from(threads),
            nodes_of_line: 3,
            barriers: (Phase::ALL.len() as u64)
                * u64::from(self.key_bits.div_ceil(self.digit_bits)),
            // Keys, result and reference, and each thread's two tables.
            bytes: 3 * 8 * self.keys + 2 * 8 * counts,
        }
    }

    fn kernel(
        &self,
        program: &Program,
        pool: &mut Pool,
        placement: Placement,
    ) -> Result<RadixKernel, Stop> {
        let spec = RadixSpec {
            keys: self.keys,
            key_bits: self.key_bits,
            radix_bits: self.digit_bits,
            threads: program.threads(),
            route: program.mapped.route(),
            borders: self.borders,
            seed: program.seed,
        };
        let kernel = Radix::new(spec, pool, placement).and_then(RadixKernel::new);
        let flags = format!("--keys {} --digit-bits {}", self.keys, self.digit_bits);
        kernel.map_err(|error| Stop::flag(&flags, error))
    }

    fn result(kernel: &RadixKernel, read: &dyn Fn(Place) -> u64) -> Vec<u64> {
        kernel.result(read)
    }

    fn wrong(kernel: &RadixKernel, result: &Vec<u64>) -> Option<String> {
        let misplaced = kernel.misplaced(result);
        let keys = result.len();
        (misplaced > 0).then(|| format!("{misplaced} of {keys} keys are not where they belong"))
    }
}
