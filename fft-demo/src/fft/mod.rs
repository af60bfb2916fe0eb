//! The fast Fourier transform after SPLASH-2's kernel FFT (S. C. Woo et al., "The SPLASH-2
//! Programs: Characterization and Methodological Considerations", ISCA 1995; the algorithm is
//! D. H. Bailey's in six steps, "FFTs in External or Hierarchical Memory", J. Supercomputing 4,
//! 1990), which Fröning et al. ran on their cluster (Sec. VII, Fig. 12 and 13).
//!
//! n points are a matrix of about √n × √n complex doubles (for an odd power of two there are twice
//! as many columns as rows). Each thread owns a contiguous band of the rows of each matrix and is
//! the only one that writes them. Between barriers, as in SPLASH-2:
//!
//! | [`Phase`] | Steps | Reads | Writes |
//! |---|---|---|---|
//! | `start` | none: all threads are there | | |
//! | `columns` | transposes the input; transforms each row (what was a column) in place; multiplies it by the twiddles | input, twiddles | scratch |
//! | `rows` | transposes back; transforms each row in place; divides by n if inverse | scratch | input |
//! | `result` | transposes into the result's order | input | scratch |
//!
//! A phase loads and stores so many words for each point, where its rows have 2^m points, and
//! r(m) = 2 - 2^(1 + ⌈m/2⌉ - m) of it is for the bit reversal:
//!
//! | [`Phase`] | Loads | Stores |
//! |---|---|---|
//! | `columns` | 2 + r(m) + 2 m + 4 | 2 + r(m) + 2 m + 2 |
//! | `rows` | 2 + r(m) + 2 m, and 2 if inverse | the same |
//! | `result` | 2 | 2 |
//!
//! A butterfly is 10 operations, for two points; a twiddle is 6 and the division by n 2.
//!
//! Three matrices are shared: the input, the scratch in which the result comes to be, and the
//! twiddles of the large step (SPLASH-2's `umain2`), of which a thread reads its own band. The
//! roots of unity of the small transforms, √n of them, are not shared memory: SPLASH-2 gives each
//! thread a copy in private memory, which is read all the time and always hits. Here they are an
//! ordinary table beside the program; the simulator knows nothing of them, and their loads are
//! part of the butterfly's operations.
//!
//! Called by the command `sme fft`; calls the [`Team`]. Sizes count points unless they say words.

mod check;
mod matrix;
mod roots;
mod steps;

use std::future::Future;

use num_complex::Complex64;
use sme_memory::{Place, Route};
use thiserror::Error;

use crate::{Array, ArrayError, Placement, Pool, Team};
pub use check::check;
use matrix::Matrix;
use steps::{Transposition, band, multiply, scale, transform};

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// X\[k\] = Σ x\[j\] e^(-2πi jk/n).
    Forward,
    /// x\[j\] = 1/n Σ X\[k\] e^(2πi jk/n).
    Inverse,
}

sme_barrier::names!(Direction, "direction", { Forward => "forward", Inverse => "inverse" });

/// A phase of all threads between two barriers; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: the threads get there at different times.
    Start,
    /// The transforms of the columns, and the twiddles.
    Columns,
    /// The transforms of the rows.
    Rows,
    /// The result is brought into its order.
    Result,
}

sme_barrier::names!(Phase, "phase", {
    Start => "start",
    Columns => "columns",
    Rows => "rows",
    Result => "result",
});

/// Description of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FftSpec {
    /// Binary logarithm of the number of points, at most [`Self::LOG2N_MOST`].
    pub log2n: u32,
    /// The number of threads that share the work. More than √n are of no use.
    pub threads: u32,
    /// The direction of the transform.
    pub direction: Direction,
    /// By which addresses the threads reach the shared matrices.
    pub route: Route,
    /// Words left free after each row (which ends with a line of 8 words in any case), an even
    /// number of at most [`Self::PADDING_MOST`]. Rows of a power of two of points would put a
    /// column's points into one set of a cache, and a transposition would evict what it is about to
    /// use: one line between rows moves them to the next set each. A multiple of 8 keeps the bands
    /// of two threads on different lines; any other number makes them share one, and then nodes
    /// that write back whole lines lose each other's updates.
    pub padding_words: u32,
    /// The edge of the blocks in which a transposition copies points: about half as many lines as
    /// this number's square ought to fit the cache.
    pub block: u32,
}

impl FftSpec {
    /// The largest transforms have 2^30 points, 16 GiB a matrix.
    pub const LOG2N_MOST: u32 = 30;
    /// A page of 4 KiB.
    pub const PADDING_MOST: u32 = 512;

    /// A forward transform through the caches, rows one line apart, transposed in blocks of 16 ×
    /// 16.
    pub const fn new(log2n: u32, threads: u32) -> Self {
        Self {
            log2n,
            threads,
            direction: Direction::Forward,
            route: Route::Cached,
            padding_words: 8,
            block: 16,
        }
    }
}

/// The reason why there is no such transform.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FftError {
    /// The number of points is not a power of two.
    #[error("a vector of {points} points: the number must be a power of two")]
    NotAPowerOfTwo {
        /// The number of points.
        points: u64,
    },
    /// Too many points.
    #[error("2^{log2n} points: a transform has at most 2^{}", FftSpec::LOG2N_MOST)]
    TooManyPoints {
        /// The logarithm that was asked for.
        log2n: u32,
    },
    /// There are no threads.
    #[error("a transform without threads")]
    NoThreads,
    /// The padding is odd, or too much.
    #[error(
        "{words} words between rows: an even number, at most {}",
        FftSpec::PADDING_MOST
    )]
    Padding {
        /// The words asked for.
        words: u32,
    },
    /// Blocks have no points.
    #[error("transpositions in blocks without points")]
    Block,
    /// The input is of another length.
    #[error("{points} points for a transform of {expected}")]
    Length {
        /// The number of points of the input.
        points: u64,
        /// The number of points of the transform.
        expected: u64,
    },
    /// The memory does not suffice.
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// The binary logarithm of a number of points.
///
/// # Errors
/// [`FftError::NotAPowerOfTwo`].
pub fn log2n(points: u64) -> Result<u32, FftError> {
    if points.is_power_of_two() {
        Ok(points.trailing_zeros())
    } else {
        Err(FftError::NotAPowerOfTwo { points })
    }
}

/// One transform: the matrices and what the threads have to know of them.
#[derive(Clone, Debug)]
pub struct Fft {
    spec: FftSpec,
    /// 2^⌊log2n/2⌋ rows; in the order of the vector.
    input: Matrix,
    /// Transposed: as many columns. At the end the result, in the order of the vector.
    scratch: Matrix,
    /// w^jk at row j and column k, where w is the n-th root of unity; as the scratch.
    twiddles: Matrix,
    /// Of the small transforms.
    roots: Box<[Complex64]>,
}

impl Fft {
    /// The phases, in order; one barrier ends each.
    pub const PHASES: &[Phase] = Phase::ALL;

    /// Lays the matrices out in memory from `pool`.
    ///
    /// # Errors
    /// If the description makes no sense, or the memory does not suffice.
    pub fn new(spec: FftSpec, pool: &mut Pool, placement: Placement) -> Result<Self, FftError> {
        if spec.log2n > FftSpec::LOG2N_MOST {
            return Err(FftError::TooManyPoints { log2n: spec.log2n });
        }
        if spec.threads == 0 {
            return Err(FftError::NoThreads);
        }
        let words = spec.padding_words;
        if !words.is_multiple_of(2) || words > FftSpec::PADDING_MOST {
            return Err(FftError::Padding { words });
        }
        if spec.block == 0 {
            return Err(FftError::Block);
        }
        let rows = 1u64 << (spec.log2n / 2);
        let columns = 1u64 << spec.log2n.div_ceil(2);
        let mut matrix = |shape| Matrix::new(shape, u64::from(words), pool, placement);
        Ok(Self {
            spec,
            input: matrix((rows, columns))?,
            scratch: matrix((columns, rows))?,
            twiddles: matrix((columns, rows))?,
            roots: roots::stages(spec.direction, spec.log2n.div_ceil(2)),
        })
    }

    /// Its description.
    pub fn spec(&self) -> &FftSpec {
        &self.spec
    }

    /// Returns the number of points that it transforms.
    pub fn points(&self) -> u64 {
        1 << self.spec.log2n
    }

    /// Its arrays, by name.
    pub fn arrays(&self) -> [(&'static str, &Array); 3] {
        [
            ("input", &self.input.array),
            ("scratch", &self.scratch.array),
            ("twiddles", &self.twiddles.array),
        ]
    }

    /// The words that must be in memory before the threads start, as bits of doubles: the input
    /// and the twiddles.
    ///
    /// # Errors
    /// [`FftError::Length`] if the input has not as many points as the transform.
    pub fn initial(
        &self,
        input: &[Complex64],
    ) -> Result<impl Iterator<Item = (Place, u64)>, FftError> {
        let points = input.len() as u64;
        if points != self.points() {
            return Err(FftError::Length {
                points,
                expected: self.points(),
            });
        }
        let (direction, log2n) = (self.spec.direction, self.spec.log2n);
        let (rows, columns) = (self.twiddles.rows, self.twiddles.columns);
        let twiddles = (0..rows).flat_map(move |row| {
            (0..columns).map(move |column| roots::root(direction, row * column, log2n))
        });
        let input = self.input.places().zip(input.iter().copied());
        let points = input.chain(self.twiddles.places().zip(twiddles));
        Ok(points.flat_map(|(place, value)| {
            [
                (place, value.re.to_bits()),
                (place.plus(8), value.im.to_bits()),
            ]
        }))
    }

    /// One thread's part. The result is in memory when all threads have ended.
    ///
    /// # Panics
    /// If the team has not as many threads as the description says.
    pub fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        assert_eq!(team.size(), self.spec.threads, "a team of another size");
        async move {
            for &phase in Self::PHASES {
                match phase {
                    Phase::Start => {}
                    Phase::Columns => self.columns(team).await,
                    Phase::Rows => self.rows(team).await,
                    Phase::Result => {
                        let step = self.transposition(&self.input, &self.scratch);
                        step.run(team.memory(), team.number()).await;
                    }
                }
                team.barrier().await;
            }
        }
    }

    /// The result, where `read` gives the word that memory holds at a place in the end.
    pub fn result(&self, read: impl Fn(Place) -> u64) -> Vec<Complex64> {
        let word = |place| f64::from_bits(read(place));
        let places = self.scratch.places();
        places
            .map(|place| Complex64::new(word(place), word(place.plus(8))))
            .collect()
    }

    /// [`Phase::Columns`]: the columns are rows of the scratch.
    async fn columns<T: Team>(&self, team: &mut T) {
        let (number, route) = (team.number(), self.spec.route);
        let step = self.transposition(&self.input, &self.scratch);
        step.run(team.memory(), number).await;
        let points = self.scratch.columns;
        for index in band(self.scratch.rows, number, self.spec.threads) {
            let row = self.scratch.row(team.memory(), route, index);
            let factors = self.twiddles.row(team.memory(), route, index);
            transform(team, &row, points.ilog2(), &self.roots).await;
            multiply(team, &row, &factors, points).await;
        }
    }

    /// [`Phase::Rows`].
    async fn rows<T: Team>(&self, team: &mut T) {
        let number = team.number();
        let step = self.transposition(&self.scratch, &self.input);
        step.run(team.memory(), number).await;
        let points = self.input.columns;
        for index in band(self.input.rows, number, self.spec.threads) {
            let row = self.input.row(team.memory(), self.spec.route, index);
            transform(team, &row, points.ilog2(), &self.roots).await;
            if self.spec.direction == Direction::Inverse {
                scale(team, &row, (self.points() as f64).recip(), points).await;
            }
        }
    }

    fn transposition<'f>(&self, source: &'f Matrix, target: &'f Matrix) -> Transposition<'f> {
        Transposition {
            source,
            target,
            route: self.spec.route,
            block: u64::from(self.spec.block),
            threads: self.spec.threads,
        }
    }
}
