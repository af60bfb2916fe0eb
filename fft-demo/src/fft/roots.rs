//! Roots of unity. A root is computed from its angle, not from the root before it, and from an
//! angle of at most an eighth of a turn: its error does not grow with the number of points.

use std::f64::consts::TAU;

use num_complex::Complex64;

use super::Direction;

/// e^(∓2πi `numerator` / 2^`log2`): minus for the forward transform. `log2` is at most 60.
pub(super) fn root(direction: Direction, numerator: u64, log2: u32) -> Complex64 {
    let whole = 1u64 << log2;
    let part = numerator & (whole - 1);
    // Mirrored at the eighths of the turn into the first one, where sine and cosine are exact to
    // a unit of the last place, and so are the roots 1, i, -1 and -i.
    let (folded, mirrored) = if part > whole / 2 {
        (whole - part, true)
    } else {
        (part, false)
    };
    let (cosine, sine) = half_turn(folded, whole);
    let sine = if mirrored { -sine } else { sine };
    match direction {
        Direction::Forward => Complex64::new(cosine, -sine),
        Direction::Inverse => Complex64::new(cosine, sine),
    }
}

/// Cosine and sine of `part` / `whole` of a turn, at most half of it.
fn half_turn(part: u64, whole: u64) -> (f64, f64) {
    let angle = |part: u64| TAU * (part as f64 / whole as f64);
    if 8 * part <= whole {
        (angle(part).cos(), angle(part).sin())
    } else if 8 * part <= 3 * whole {
        // Past a quarter of the turn the distance from it is negative, and so is the cosine.
        let distance = TAU * (0.25 - part as f64 / whole as f64);
        (distance.sin(), distance.cos())
    } else {
        let rest = whole / 2 - part;
        (-angle(rest).cos(), angle(rest).sin())
    }
}

/// The roots that the stages of a transform of 2^`log2` points need: those of the stage that joins
/// halves of `half` points, e^(∓2πi j / (2 `half`)), are at `half - 1 + j`. The table of a shorter
/// transform is the beginning of a longer one's.
pub(super) fn stages(direction: Direction, log2: u32) -> Box<[Complex64]> {
    (1..=log2)
        .flat_map(|stage| (0..1u64 << (stage - 1)).map(move |j| root(direction, j, stage)))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn roots_are_what_their_angle_says(numerator: u64, log2 in 0u32..40) {
            let angle = TAU * ((numerator % (1 << log2)) as f64 / (1u64 << log2) as f64);
            let expected = Complex64::cis(angle);
            prop_assert!((root(Direction::Inverse, numerator, log2) - expected).norm() < 1e-15);
            prop_assert_eq!(
                root(Direction::Forward, numerator, log2),
                root(Direction::Inverse, numerator, log2).conj()
            );
        }
    }

    #[test]
    fn quarters_of_the_turn_are_exact() {
        let quarters = (0..4).map(|quarter| root(Direction::Inverse, quarter, 2));
        let [one, i, zero] = [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]
            .map(|(real, imaginary)| Complex64::new(real, imaginary));
        assert!(quarters.eq([one, i, zero - one, zero - i]));
    }
}
