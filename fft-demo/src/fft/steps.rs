//! The steps between the barriers of the [`Fft`](super::Fft): the transposition, and what is done
//! to one row. All of it loads and stores shared memory, in place, as SPLASH-2's FFT does: that
//! its loads of a row come back is why caching pays.

use std::ops::Range;

use num_complex::Complex64;
use sme_memory::{Memory, Route};

use super::matrix::{Matrix, Row, load, store};
use crate::Team;

/// Operations of a complex multiplication.
const MULTIPLICATION: u32 = 6;
/// Operations of a butterfly: a multiplication and two additions of complex numbers.
const BUTTERFLY: u32 = MULTIPLICATION + 4;
/// Operations of a multiplication by a real number.
const SCALING: u32 = 2;

/// Returns the rows, of `rows`, that belong to the thread `number` of `threads`: a contiguous band,
/// of as many as any other's, give or take one.
pub(super) fn band(rows: u64, number: u32, threads: u32) -> Range<u64> {
    let border = |number: u32| rows * u64::from(number) / u64::from(threads);
    border(number)..border(number + 1)
}

/// A thread's part in the transposition of one matrix into another.
pub(super) struct Transposition<'f> {
    pub(super) source: &'f Matrix,
    pub(super) target: &'f Matrix,
    pub(super) route: Route,
    /// The edge of the blocks in which points are copied.
    pub(super) block: u64,
    pub(super) threads: u32,
}

impl Transposition<'_> {
    /// Writes the rows of the target that belong to the thread `number`. It begins with what the
    /// next thread's band of the source holds of them and ends with its own: so that threads do
    /// not all read the same rows at the same time. Within a band it goes block by block, so that
    /// the lines of a block, of source and target, are still cached when they are used again.
    pub(super) async fn run<M: Memory>(&self, memory: &M, number: u32) {
        let own = band(self.target.rows, number, self.threads);
        let own_rows: Vec<Row> = own
            .clone()
            .map(|row| self.target.row(memory, self.route, row))
            .collect();
        let mut source_row = Row::default();
        for step in 1..=self.threads {
            let other = (number + step) % self.threads;
            for rows in blocks(band(self.source.rows, other, self.threads), self.block) {
                for columns in blocks(own.clone(), self.block) {
                    for row in rows.clone() {
                        let within = columns.clone();
                        self.source
                            .locate(memory, self.route, row, within, &mut source_row);
                        for column in columns.clone() {
                            let value = load!(memory, source_row.point(column));
                            let target_row = &own_rows[(column - own.start) as usize];
                            store!(memory, target_row.point(row), value);
                        }
                    }
                }
            }
        }
    }
}

/// `range` in pieces of `size`, the last of which may be shorter.
fn blocks(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range
        .step_by(usize::try_from(size).unwrap_or(usize::MAX))
        .map(move |start| start..end.min(start + size))
}

/// Transforms the 2^`log2` points of `row` in place: they are brought into bit-reversed order, and
/// `log2` stages of butterflies join halves of 1, 2, 4, … points. `roots` as from
/// [`stages`](super::roots::stages).
pub(super) async fn transform<T: Team>(team: &mut T, row: &Row, log2: u32, roots: &[Complex64]) {
    let points = 1u64 << log2;
    reverse(team.memory(), row, log2).await;
    for stage in 0..log2 {
        let half = 1u64 << stage;
        let roots = &roots[half as usize - 1..];
        for start in (0..points).step_by(2 * half as usize) {
            for (j, root) in (start..start + half).zip(roots) {
                let (upper, lower) = (row.point(j), row.point(j + half));
                let turned = root * load!(team.memory(), lower);
                let other = load!(team.memory(), upper);
                team.compute(BUTTERFLY).await;
                store!(team.memory(), lower, other - turned);
                store!(team.memory(), upper, other + turned);
            }
        }
    }
}

/// Swaps the points of `row` whose numbers are each other's reverse, as numbers of `log2` bits.
async fn reverse<M: Memory>(memory: &M, row: &Row, log2: u32) {
    for j in 1..1u64 << log2 {
        let reversed = j.reverse_bits() >> (u64::BITS - log2);
        if reversed > j {
            let (one, other) = (row.point(j), row.point(reversed));
            let value = load!(memory, one);
            let other_value = load!(memory, other);
            store!(memory, one, other_value);
            store!(memory, other, value);
        }
    }
}

/// Multiplies the points of `row` by those of `factors`.
pub(super) async fn multiply<T: Team>(team: &mut T, row: &Row, factors: &Row, points: u64) {
    for j in 0..points {
        let factor = load!(team.memory(), factors.point(j));
        let value = load!(team.memory(), row.point(j));
        team.compute(MULTIPLICATION).await;
        store!(team.memory(), row.point(j), value * factor);
    }
}

/// Multiplies the points of `row` by a real number.
pub(super) async fn scale<T: Team>(team: &mut T, row: &Row, factor: f64, points: u64) {
    for j in 0..points {
        let value = load!(team.memory(), row.point(j));
        team.compute(SCALING).await;
        store!(team.memory(), row.point(j), value * factor);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bands_follow_each_other_and_differ_by_one(rows in 0u64..5000, threads in 1u32..300) {
            let mut next = 0;
            for number in 0..threads {
                let band = band(rows, number, threads);
                prop_assert_eq!(band.start, next);
                let count = band.end - band.start;
                let share = rows / u64::from(threads);
                prop_assert!(count == share || count == share + 1);
                next = band.end;
            }
            prop_assert_eq!(next, rows);
        }

        #[test]
        fn blocks_cover_the_range(start in 0u64..50, count in 0u64..50, size in 1u64..60) {
            let covered: Vec<u64> = blocks(start..start + count, size).flatten().collect();
            prop_assert!(covered.into_iter().eq(start..start + count));
            prop_assert!(blocks(start..start + count, size).all(|b| b.end - b.start <= size));
        }
    }
}
