//! The oracle: the same transform by rustfft, on one thread and ordinary memory.

use num_complex::Complex64;
use rustfft::algorithm::Radix4;
use rustfft::{Fft, FftDirection};

use super::Direction;

/// Returns the error of `output` as the transform of `input`: the largest absolute value of a
/// difference, divided by the largest absolute value of the true transform (or by 1 where that is
/// zero). Infinite if the two differ in length, if that is no power of two, or if anything in them
/// is too large or not a number.
pub fn check(input: &[Complex64], output: &[Complex64], direction: Direction) -> f64 {
    if input.len() != output.len() || !(input.is_empty() || input.len().is_power_of_two()) {
        return f64::INFINITY;
    }
    let expected = transform(input, direction);
    let mut error = 0.0f64;
    let mut largest = 0.0f64;
    for (value, expected) in output.iter().zip(&expected) {
        let difference = (value - expected).norm();
        if difference.is_nan() {
            return f64::INFINITY;
        }
        error = error.max(difference);
        largest = largest.max(expected.norm());
    }
    match (error.is_finite(), largest > 0.0) {
        (false, _) => f64::INFINITY,
        (true, true) => error / largest,
        (true, false) => error,
    }
}

/// The transform of `input`, a power of two long, scaled by 1 / length if inverse. By one algorithm
/// and not by rustfft's planner, which brings in fifty more for other lengths and for SIMD.
fn transform(input: &[Complex64], direction: Direction) -> Vec<Complex64> {
    let mut data = input.to_vec();
    if data.is_empty() {
        return data;
    }
    let (sense, factor) = match direction {
        Direction::Forward => (FftDirection::Forward, 1.0),
        Direction::Inverse => (FftDirection::Inverse, 1.0 / data.len() as f64),
    };
    Radix4::new(data.len(), sense).process(&mut data);
    for value in &mut data {
        *value *= factor;
    }
    data
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fft::roots::root;

    /// The definition, n² multiplications.
    fn by_definition(input: &[Complex64], log2: u32, direction: Direction) -> Vec<Complex64> {
        let term = |j: u64, k: u64| input[j as usize] * root(direction, j * k, log2);
        let sum = |k| (0..1 << log2).map(|j| term(j, k)).sum::<Complex64>();
        let factor = match direction {
            Direction::Forward => 1.0,
            Direction::Inverse => (input.len() as f64).recip(),
        };
        (0..1 << log2).map(|k| sum(k) * factor).collect()
    }

    proptest! {
        #[test]
        fn what_the_definition_gives_passes_and_a_changed_point_does_not(
            log2 in 0u32..7, inverse: bool, seed in proptest::collection::vec(-1.0f64..1.0, 128),
            at: usize,
        ) {
            let direction = if inverse { Direction::Inverse } else { Direction::Forward };
            let input: Vec<_> = (0..1 << log2)
                .map(|j| Complex64::new(seed[2 * j % 128], seed[(2 * j + 1) % 128]))
                .collect();
            let mut output = by_definition(&input, log2, direction);
            prop_assert!(check(&input, &output, direction) < 1e-13);
            let at = at % output.len();
            let right = output[at];
            output[at] += Complex64::new(1.0, 0.0);
            prop_assert!(check(&input, &output, direction) > 1e-3);
            output[at] = Complex64::new(f64::NAN, right.im);
            prop_assert_eq!(check(&input, &output, direction), f64::INFINITY);
            output.pop();
            prop_assert_eq!(check(&input, &output, direction), f64::INFINITY);
        }
    }

    #[test]
    fn nothing_and_zeros_are_transformed_too() {
        assert_eq!(check(&[], &[], Direction::Forward), 0.0);
        let zeros = [Complex64::new(0.0, 0.0); 4];
        assert_eq!(check(&zeros, &zeros, Direction::Inverse), 0.0);
        let ones = [Complex64::new(1.0, 0.0); 4];
        assert_eq!(check(&zeros, &ones, Direction::Inverse), 1.0);
    }
}
