//! The ownership of the blocks of the [`Lu`](super::Lu) by threads: a scatter in two dimensions.
//! Rows and columns count blocks, or threads of the grid.

use std::ops::Range;

/// The threads as a grid, over which the blocks are scattered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) rows: u32,
    pub(super) columns: u32,
}

impl Grid {
    /// The most nearly square grid of so many threads; none of no threads.
    pub(super) fn new(threads: u32) -> Option<Self> {
        let columns = (1..=threads.isqrt())
            .rev()
            .find(|&columns| threads.is_multiple_of(columns))?;
        Some(Self {
            rows: threads / columns,
            columns,
        })
    }

    /// The thread that alone writes block (i, j).
    pub(super) fn owner(self, i: u32, j: u32) -> u32 {
        i % self.rows * self.columns + j % self.columns
    }

    /// The row and the column of thread `number` in the grid.
    pub(super) fn position(self, number: u32) -> (u32, u32) {
        (number / self.columns, number % self.columns)
    }

    /// The i among `among` for which `number` owns block (i, j).
    pub(super) fn rows_of(self, number: u32, j: u32, among: Range<u32>) -> Congruent {
        let (row, column) = self.position(number);
        if j % self.columns == column {
            congruent(among, row, self.rows)
        } else {
            congruent(0..0, 0, 1)
        }
    }

    /// The j among `among` for which `number` owns block (i, j).
    pub(super) fn columns_of(self, number: u32, i: u32, among: Range<u32>) -> Congruent {
        let (row, column) = self.position(number);
        if i % self.rows == row {
            congruent(among, column, self.columns)
        } else {
            congruent(0..0, 0, 1)
        }
    }
}

pub(super) type Congruent = std::iter::StepBy<Range<u32>>;

/// The numbers of a range that leave the given rest, below `modulus`, when divided by it.
pub(super) fn congruent(range: Range<u32>, rest: u32, modulus: u32) -> Congruent {
    let past = range.start % modulus;
    let skip = if rest >= past {
        rest - past
    } else {
        modulus - past + rest
    };
    (range.start.saturating_add(skip)..range.end).step_by(modulus as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_is_of_one_thread_of_the_grid(threads in 1u32..80, i in 0u32..40, j in 0u32..40) {
            let grid = Grid::new(threads).expect("a grid of threads");
            prop_assert_eq!(grid.rows * grid.columns, threads);
            let owner = grid.owner(i, j);
            prop_assert!(owner < threads);
            for number in 0..threads {
                prop_assert_eq!(grid.rows_of(number, j, 0..40).any(|row| row == i), number == owner);
                prop_assert_eq!(grid.columns_of(number, i, 0..40).any(|c| c == j), number == owner);
            }
        }

        #[test]
        fn congruent_is_what_a_filter_finds(start in 0u32..50, length in 0u32..50, modulus in 1u32..9, rest in 0u32..9) {
            let rest = rest % modulus;
            let range = start..start + length;
            let wanted: Vec<u32> = range.clone().filter(|x| x % modulus == rest).collect();
            prop_assert_eq!(congruent(range, rest, modulus).collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn a_grid_is_as_square_as_can_be() {
        let shape = |threads| Grid::new(threads).map(|grid| (grid.rows, grid.columns));
        assert_eq!(shape(12), Some((4, 3)));
        assert_eq!(shape(64), Some((8, 8)));
        assert_eq!(shape(7), Some((7, 1)));
        assert_eq!(shape(0), None);
    }
}
