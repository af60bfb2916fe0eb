//! High Performance Linpack (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary) as a rank program:
//! the solution of a dense system A x = b by LU factorization with partial pivoting, over MPI. The
//! numbers are real, and the residual is checked as HPL does.
//!
//! The matrix is dealt out in blocks of `nb` x `nb` to a grid of `p` x `q` ranks, in the order of
//! rows. Step by step of `nb` columns:
//!
//! * the ranks of the grid's column that has them factorize the panel, with one exchange for each
//!   column, in which the pivot row and the row that it takes the place of go to all of them;
//! * the panel goes to all ranks of each row of the grid;
//! * in each column of the grid rows are swapped, and all get those that are behind the pivots;
//! * all ranks update the rest.
//!
//! Then x is found by back substitution. With a depth of 1 there is look-ahead, as HPL calls it:
//! the ranks that have the next panel update, factorize and send that before they update the rest.
//!
//! Computing takes a given time for each operation, as long in small pieces as in large ones.

mod factor;
mod grid;
mod solve;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_mpi::error::MpiError;
use sme_sim::observe::spans::SpanTimes;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed, SimulatedMpi};
use grid::Grid;

/// A system to solve on a machine.
#[derive(Clone, Debug)]
pub struct HplRun {
    /// The machine, the library and the ranks: `p` times `q`.
    pub job: Job,
    /// Unknowns, at least 1.
    pub n: u32,
    /// Columns of a block, at least 1.
    pub nb: u32,
    /// Rows of the grid of ranks, and its columns.
    pub grid: (u32, u32),
    /// Panels that are factorized ahead: 0 or 1.
    pub depth: u32,
    /// The rate of one core \[10^9 floating-point operations per second\].
    pub core_gflops: f64,
    /// Lets the last rank of each row of the grid lose what it gets of every panel.
    #[cfg(test)]
    pub loses_panels: bool,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The time from the first rank's begin until the last one has its part of the solution.
    pub time: Time,
    /// The scaled residual: |A x - b| / (eps (|A| |x| + |b|) n), in infinity norms.
    pub residual: f64,
}

/// The largest scaled residual of a right solution, as HPL has it.
pub const MOST_RESIDUAL: f64 = 16.0;

/// The factorization and the solution, number 1; number 0 is what comes before.
pub const ALL: &str = "hpl";

impl HplRun {
    /// The rate of all ranks together \[10^9 operations per second\].
    pub fn gflops(&self, outcome: &Outcome) -> f64 {
        gflops(self.n, outcome.time.as_us())
    }

    fn deal(&self) -> Grid {
        Grid {
            n: self.n as usize,
            nb: self.nb as usize,
            p: self.grid.0 as usize,
            q: self.grid.1 as usize,
        }
    }
}

/// The rate at which a system of `n` unknowns is solved in so many microseconds \[10^9 operations a
/// second\], with as many operations as HPL counts.
pub fn gflops(n: u32, time_us: f64) -> f64 {
    let n = f64::from(n);
    (2.0 / 3.0 * n + 3.0 / 2.0) * n * n / (time_us * 1e3)
}

/// The element of the matrix in this row and column, column `n` being the right-hand side: evenly
/// spread from -0.5 to 0.5.
fn element(row: usize, column: usize) -> f64 {
    let mut z = (row as u64) << 32 ^ column as u64;
    // SplitMix64 (Steele, Lea, Flood 2014).
    for _ in 0..2 {
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    (z >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// The scaled residual of a solution.
fn residual(x: &[f64]) -> f64 {
    let n = x.len();
    let (mut wrong, mut of_a, mut of_b) = (0_f64, 0_f64, 0_f64);
    for row in 0..n {
        let mut sum = -element(row, n);
        let mut absolute = 0.0;
        for (column, &x) in x.iter().enumerate() {
            let a = element(row, column);
            sum += a * x;
            absolute += a.abs();
        }
        wrong = match wrong.is_nan() || sum.is_nan() {
            true => f64::NAN,
            false => wrong.max(sum.abs()),
        };
        (of_a, of_b) = (of_a.max(absolute), of_b.max(element(row, n).abs()));
    }
    let of_x = x.iter().fold(0_f64, |most, x| most.max(x.abs()));
    wrong / (f64::EPSILON / 2.0 * (of_a * of_x + of_b) * n as f64)
}

impl Measurement for HplRun {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    /// Of the rank with the largest part of the matrix, a panel and its copy.
    fn data_end(&self) -> u64 {
        let grid = self.deal();
        let rows = Grid::count(grid.n, grid.nb, 0, grid.p);
        let columns = Grid::count(grid.n + 1, grid.nb, 0, grid.q);
        8 * (rows * columns + 2 * (rows + grid.nb + 1) * grid.nb) as u64
    }

    fn calls(&self) -> u64 {
        // A reduction for each column, and some for each block.
        let blocks = u64::from(self.n.div_ceil(self.nb));
        let of_rank = u64::from(self.n) + (8 + u64::from(self.grid.0)) * blocks + 8;
        of_rank.saturating_mul(self.job.ranks.into())
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let solution = Arc::new(Mutex::new(vec![f64::NAN; self.n as usize]));
        let (run, found) = (self.clone(), Arc::clone(&solution));
        let observed = self.job.run_mpi(observe, move |mpi, memory| {
            let (run, found) = (run.clone(), Arc::clone(&found));
            async move { run.course(&mpi, &memory, &found).await }
        })?;
        let run = observed.spans.called(ALL).get(1).copied();
        let times = run.unwrap_or(SpanTimes::NONE);
        let outcome = Outcome {
            time: times.last_end.since(times.first_begin),
            residual: residual(&solution.lock()),
        };
        // A residual that is no number is not below the limit either.
        match outcome.residual < MOST_RESIDUAL {
            true => Ok((outcome, observed)),
            false => Err(Error::Residual(outcome.residual)),
        }
    }
}

impl HplRun {
    /// The course of one rank, which tells its part of the solution.
    async fn course(
        &self,
        mpi: &SimulatedMpi,
        memory: &ThreadMemory,
        found: &Mutex<Vec<f64>>,
    ) -> Result<(), MpiError> {
        memory.begin(Span::new(ALL, 0)).await;
        let world = mpi.world();
        let grid = self.deal();
        let rank = world.rank() as usize;
        let (row, column) = (rank / grid.q, rank % grid.q);
        // Every rank gives a color.
        let along_row = world.split(Some(row as u32), column as i32).await?;
        let along_column = world.split(Some(column as u32), row as i32).await?;
        let (Some(along_row), Some(along_column)) = (along_row, along_column) else {
            return Ok(());
        };
        let mut part = factor::Part::new(self, grid, (row, column), memory);
        world.barrier().await?;
        memory.end(Span::new(ALL, 0)).await;
        memory.begin(Span::new(ALL, 1)).await;
        let mut next = Some(part.begins(&along_row, &along_column).await?);
        let mut step = 0;
        while let Some(panel) = next {
            let of_step = (step, panel);
            next = part.eliminate(of_step, &along_row, &along_column).await?;
            step += 1;
        }
        let x = part.solve(&along_row, &along_column).await?;
        memory.end(Span::new(ALL, 1)).await;
        if row == 0 {
            let mut found = found.lock();
            for (local, x) in x.into_iter().enumerate() {
                let global = Grid::global(local, grid.nb, column, grid.q);
                if global < grid.n {
                    found[global] = x;
                }
            }
        }
        mpi.finalize().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Library;
    use proptest::prelude::*;
    use sme_sim::machine::Machine;

    fn run(machine: &str, n: u32, nb: u32, grid: (u32, u32)) -> HplRun {
        let machine = Arc::new(Machine::builtin(machine).unwrap());
        let library = Library::of_mpi(&machine);
        HplRun {
            job: Job::new(machine, library, grid.0 * grid.1),
            n,
            nb,
            grid,
            depth: 0,
            core_gflops: 0.1,
            loses_panels: false,
        }
    }

    /// The scaled residual of Gaussian elimination by one processor, with the same pivots.
    fn serial(n: usize) -> f64 {
        let mut a: Vec<Vec<f64>> = (0..n)
            .map(|row| (0..=n).map(|column| element(row, column)).collect())
            .collect();
        for k in 0..n {
            let larger = |&i: &usize, &j: &usize| a[i][k].abs().total_cmp(&a[j][k].abs());
            let pivot = (k..n).max_by(larger).unwrap();
            a.swap(k, pivot);
            for row in k + 1..n {
                let factor = a[row][k] / a[k][k];
                let (above, below) = a.split_at_mut(row);
                for (value, u) in below[0].iter_mut().zip(&above[k]).skip(k) {
                    *value -= factor * u;
                }
            }
        }
        let mut x = vec![0.0; n];
        for k in (0..n).rev() {
            let sum: f64 = (k + 1..n).map(|column| a[k][column] * x[column]).sum();
            x[k] = (a[k][n] - sum) / a[k][k];
        }
        residual(&x)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The system is solved as well as by one processor, with any blocks and any grid.
        #[test]
        fn every_grid_solves_the_system(
            n in 1u32..50, nb in 1u32..12, p in 1u32..5, q in 1u32..5, depth in 0u32..2,
            machine in prop::sample::select(vec!["scc-800", "sme-prototype"]),
        ) {
            let run = HplRun { depth, ..run(machine, n, nb, (p, q)) };
            let outcome = run.run();
            let outcome = outcome.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let serial = serial(n as usize);
            prop_assert!(serial < 4.0, "{serial}");
            prop_assert!(outcome.residual < 4.0, "{outcome:?}");
        }
    }

    /// A broadcast that loses data gives a wrong solution, and the residual shows it.
    #[test]
    fn a_broken_broadcast_is_found_out() {
        for depth in 0..2 {
            let broken = HplRun {
                loses_panels: true,
                depth,
                ..run("scc-800", 40, 4, (2, 2))
            };
            let Err(Error::Residual(residual)) = broken.run() else {
                panic!("it was not, with depth {depth}");
            };
            assert!(residual.is_nan() || residual > 1e3, "{residual}");
        }
    }

    #[test]
    fn elements_are_spread_evenly() {
        let all = (0..100).flat_map(|row| (0..100).map(move |column| element(row, column)));
        let all: Vec<f64> = all.collect();
        let mean = all.iter().sum::<f64>() / 1e4;
        let square = all.iter().map(|a| a * a).sum::<f64>() / 1e4;
        assert!(
            mean.abs() < 0.01 && (square - 1.0 / 12.0).abs() < 0.005,
            "{mean} {square}"
        );
        assert!(all.iter().all(|a| (-0.5..0.5).contains(a)));
    }
}
