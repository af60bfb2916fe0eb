//! The kernels that the commands run, with their input and what is right about their result.

use std::future::Future;

use num_complex::Complex64;
use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_fft_demo::Team;
use sme_fft_demo::fft::{self, Fft, FftError};
use sme_memory::Place;

use super::Kernel;

/// A transform and its input.
pub struct FftKernel {
    fft: Fft,
    input: Vec<Complex64>,
}

impl FftKernel {
    /// The most that a result may differ from the reference, relative to it.
    pub const TOLERANCE: f64 = 1e-10;

    /// `fft` of `input`.
    ///
    /// # Errors
    /// If the input has another length.
    pub fn new(fft: Fft, input: Vec<Complex64>) -> Result<Self, FftError> {
        drop(fft.initial(&input)?);
        Ok(Self { fft, input })
    }

    /// What it left in memory.
    pub fn result(&self, read: &dyn Fn(Place) -> u64) -> Vec<Complex64> {
        self.fft.result(read)
    }

    /// How far `result` is from the reference's, relative to it.
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

    fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        self.fft.run(team)
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
