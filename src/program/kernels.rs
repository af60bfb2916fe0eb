//! The kernels that the commands run, with their input and what is right about their result.

use std::future::Future;
use std::sync::Arc;

use num_complex::Complex64;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_fft_demo::fft::{self, Fft, FftError, FftSpec};
use sme_fft_demo::lu::{Lu, LuError};
use sme_fft_demo::radix::{Radix, RadixError};
use sme_fft_demo::{Array, Placement, Team};
use sme_memory::Place;

use super::{Kernel, Program};

/// A transform and its input.
pub struct FftKernel {
    fft: Fft,
    input: Arc<[Complex64]>,
}

impl FftKernel {
    /// The most that a result may differ from the reference, relative to it.
    pub const TOLERANCE: f64 = 1e-10;

    /// `fft` of `input`.
    ///
    /// # Errors
    /// If the input has another length.
    pub fn new(fft: Fft, input: impl Into<Arc<[Complex64]>>) -> Result<Self, FftError> {
        let input = input.into();
        drop(fft.initial(&input)?);
        Ok(Self { fft, input })
    }

    /// The forward transform of 2^`log2n` points drawn from the seed of `program`, whose threads
    /// run it.
    ///
    /// # Errors
    /// If there are too many points, or no room for them.
    pub fn random(
        program: &Program,
        log2n: u32,
        placement: Placement,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let spec = FftSpec {
            route: program.mapped.route(),
            ..FftSpec::new(log2n, program.threads())
        };
        let fft = Fft::new(spec, &mut program.pool()?, placement)?;
        let input = random_points(fft.points(), program.seed);
        Ok(Self::new(fft, input)?)
    }

    /// Reads the result that it left in memory.
    pub fn result(&self, read: &dyn Fn(Place) -> u64) -> Vec<Complex64> {
        self.fft.result(read)
    }

    /// Returns the error of `result`, relative to the reference's.
    pub fn error(&self, result: &[Complex64]) -> f64 {
        fft::check(&self.input, result, self.fft.spec().direction)
    }
}

impl Kernel for FftKernel {
    fn phases(&self) -> Vec<&'static str> {
        Fft::PHASES.iter().map(|phase| phase.name()).collect()
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        match self.fft.initial(&self.input) {
            Ok(words) => Box::new(words),
            // Checked when it was made.
            Err(_) => Box::new(std::iter::empty()),
        }
    }

    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        self.fft.arrays().to_vec()
    }

    fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        self.fft.run(team)
    }
}

/// A factorization and its matrix.
pub struct LuKernel {
    lu: Lu,
    matrix: Vec<f64>,
}

impl LuKernel {
    /// The most that the product of the factors may differ from the matrix, relative to it.
    pub const TOLERANCE: f64 = 1e-12;

    /// `lu` of the matrix that its seed decides.
    ///
    /// # Errors
    /// None in fact: the matrix has the size of the factorization.
    pub fn new(lu: Lu) -> Result<Self, LuError> {
        let matrix = lu.matrix();
        drop(lu.initial(&matrix)?);
        Ok(Self { lu, matrix })
    }

    /// Reads the result that it left in memory: both factors.
    pub fn result(&self, read: &dyn Fn(Place) -> u64) -> Vec<f64> {
        self.lu.result(read)
    }

    /// Returns the error of the product of `factors`, computed by one thread of the host, relative
    /// to the matrix. The factors of a matrix are unique: with the right product they are the right
    /// ones.
    pub fn error(&self, factors: &[f64]) -> f64 {
        self.lu.residual(&self.matrix, factors)
    }
}

impl Kernel for LuKernel {
    fn phases(&self) -> Vec<&'static str> {
        self.lu.phases().map(|phase| phase.name()).collect()
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        match self.lu.initial(&self.matrix) {
            Ok(words) => Box::new(words),
            // Checked when it was made.
            Err(_) => Box::new(std::iter::empty()),
        }
    }

    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        self.lu.arrays().to_vec()
    }

    fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        self.lu.run(team)
    }
}

/// A sort and its keys.
pub struct RadixKernel {
    radix: Radix,
    keys: Vec<u64>,
}

impl RadixKernel {
    /// `radix` of the keys that its seed decides.
    ///
    /// # Errors
    /// None in fact: there are as many keys as the sort has.
    pub fn new(radix: Radix) -> Result<Self, RadixError> {
        let keys: Vec<u64> = radix.keys().collect();
        drop(radix.initial(&keys)?);
        Ok(Self { radix, keys })
    }

    /// Reads the result that it left in memory.
    pub fn result(&self, read: &dyn Fn(Place) -> u64) -> Vec<u64> {
        self.radix.result(read)
    }

    /// Returns the number of keys in `result` that differ from those of a sort by one thread of the
    /// host.
    pub fn misplaced(&self, result: &[u64]) -> u64 {
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        let pairs = sorted.iter().zip(result);
        let missing = sorted.len().abs_diff(result.len());
        (pairs.filter(|(expected, key)| expected != key).count() + missing) as u64
    }
}

impl Kernel for RadixKernel {
    fn phases(&self) -> Vec<&'static str> {
        self.radix.phases().map(|phase| phase.name()).collect()
    }

    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        match self.radix.initial(&self.keys) {
            Ok(words) => Box::new(words),
            // Checked when it was made.
            Err(_) => Box::new(std::iter::empty()),
        }
    }

    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        self.radix.arrays().to_vec()
    }

    fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        self.radix.run(team)
    }
}

/// A vector of `points` points in the unit square around 0, drawn from `seed`.
pub fn random_points(points: u64, seed: u64) -> Vec<Complex64> {
    let mut random = Pcg32::new(seed, 0xff7);
    let mut unit = move || random.next_u32() as f64 / f64::from(u32::MAX) - 0.5;
    (0..points)
        .map(|_| Complex64::new(unit(), unit()))
        .collect()
}
