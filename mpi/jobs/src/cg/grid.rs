//! The system: the Poisson equation on a square with five points, and 1 on the right-hand side. A
//! rank has some rows of the square.

/// A rank's rows of a vector, one behind the other, and the square's side.
pub type Rows = Vec<f64>;

/// The product of the matrix with the vector that has these rows, between the row above them and
/// the one below.
pub fn product(side: usize, rows: &[f64], above: &[f64], below: &[f64]) -> Rows {
    let count = rows.len() / side;
    let row = |number: usize| &rows[number * side..(number + 1) * side];
    let mut product = Vec::with_capacity(rows.len());
    for number in 0..count {
        let own = row(number);
        let up = if number == 0 { above } else { row(number - 1) };
        let down = if number + 1 == count {
            below
        } else {
            row(number + 1)
        };
        for (at, value) in own.iter().enumerate() {
            let left = if at == 0 { 0.0 } else { own[at - 1] };
            let right = own.get(at + 1).copied().unwrap_or(0.0);
            product.push(4.0 * value - left - right - up[at] - down[at]);
        }
    }
    product
}

/// The scalar product of two vectors, as far as these rows go.
pub fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Adds `factor` times `other` to `to`.
pub fn add(to: &mut [f64], factor: f64, other: &[f64]) {
    for (to, other) in to.iter_mut().zip(other) {
        *to += factor * other;
    }
}

/// Operations of one iteration for each point: the product, two scalar products, three sums.
pub const OPERATIONS: u64 = 6 + 4 + 6;

/// The norm of what is wrong with the solution `x`, by that of the right-hand side.
pub fn residual(side: usize, x: &[f64]) -> f64 {
    let zero = vec![0.0; side];
    let wrong: f64 = (product(side, x, &zero, &zero).iter())
        .map(|value| (1.0 - value).powi(2))
        .sum();
    (wrong / x.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Rows by rows the product is that of the whole, which is symmetric.
        #[test]
        fn parts_have_the_product_of_the_whole(
            side in 1..9_usize, cut in 0..9_usize, values in prop::collection::vec(-1.0..1.0_f64, 162),
        ) {
            let zero = vec![0.0; side];
            let (x, y) = (&values[..side * side], &values[81..81 + side * side]);
            let whole = product(side, x, &zero, &zero);
            let cut = 1 + cut % side;
            if cut < side {
                let (upper, lower) = x.split_at(cut * side);
                let above = &upper[(cut - 1) * side..];
                let below = &lower[..side];
                let parts = [product(side, upper, &zero, below), product(side, lower, above, &zero)];
                prop_assert_eq!(&whole, &parts.concat());
            }
            let turned = product(side, y, &zero, &zero);
            prop_assert!((dot(&whole, y) - dot(x, &turned)).abs() < 1e-9);
        }
    }
}
