//! Blocked dense LU factorization without pivoting, after SPLASH-2's LU with contiguous blocks:
//! S. C. Woo, M. Ohara, E. Torrie, J. P. Singh, A. Gupta, "The SPLASH-2 Programs: Characterization
//! and Methodological Considerations", ISCA 1995 (its kernel LU).
//!
//! It stresses locality and producers and consumers that meet through memory: of an n × n matrix of
//! doubles, every block of B × B has one owner, the only thread that ever writes it, and the blocks
//! of a step's pivot row and column are read by all threads of their columns and rows. Owners are
//! dealt in two dimensions (a scatter over a grid of threads as square as their number allows).
//! A block lies contiguously, on cache lines of its own, and the blocks of one thread follow each
//! other, so that with [`Placement::Block`] a thread's blocks lie in its own node, give or take
//! those at the borders.
//!
//! A thread fetches a block, or a row of one, into private memory, computes there, and stores it:
//! a word is loaded once for each use of its block, which is what memory behind an engine asks for.
//! SPLASH-2 has no barrier after the interior, and needs none: what a thread touches next are its
//! own blocks. Here every phase ends with one, so that each is measured by itself. Other threads
//! read a block only when it has its last values, so no thread has a copy that goes stale: a
//! barrier that writes back but drops nothing is enough for this program.
//!
//! In step k there are m blocks below block (k, k) and m beside it, m = ⌈n/B⌉ - k - 1. Blocks that
//! are loaded and stored:
//!
//! | [`Phase`] | Loads | Stores |
//! |---|---|---|
//! | `start` | none: all threads are there | |
//! | `diagonal` | 1 | 1 |
//! | `perimeter` | 2 m, and one more by each thread that has any of them | 2 m |
//! | `interior` | 2 m², and m more for each column of the grid of threads that has any of them | m² |
//!
//! For one thread and N = n/B, that is about 2N/3 + 1/2 loads and N/3 + 1/2 stores of each element.
//!
//! Called by `src/program/` and by tests; calls the [`Team`]. Indices and sizes count words of
//! eight bytes, a double each, unless they say bytes.

mod grid;
mod tiles;

use std::future::Future;

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_memory::{Memory, Place, Route};
use thiserror::Error;

use grid::{Grid, congruent};
use tiles::{Tiles, subtract};

use crate::words::{Words, words};
use crate::{Array, ArrayError, Placement, Pool, Team};

/// Words of a cache line, 64 bytes: blocks begin on one.
const LINE_WORDS: u64 = 8;

/// With more rows per block there would be no cache for them, and operations beyond 32 bits.
const MOST_ROWS_OF_BLOCK: u32 = 1024;

/// Words of the largest matrix: 8 GiB.
const MOST_WORDS: u64 = 1 << 30;

/// Description of a factorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuSpec {
    /// Rows of the matrix, and columns.
    pub n: u32,
    /// Rows of a block, and columns: 1 to 1024. The last ones are smaller where it does not divide
    /// `n`. SPLASH-2 has 16.
    pub block: u32,
    /// Threads of the team.
    pub threads: u32,
    /// By which of their addresses the blocks are reached.
    pub route: Route,
    /// Decides the elements of [`Lu::matrix`].
    pub seed: u64,
}

/// The reason why a matrix cannot be factorized.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LuError {
    /// There is nothing to factorize.
    #[error("a matrix has at least one row")]
    Empty,
    /// A block is of no use.
    #[error("a block of {block} × {block}: give 1 to {MOST_ROWS_OF_BLOCK} rows")]
    Block {
        /// Rows of a block.
        block: u32,
    },
    /// No thread is there to do it.
    #[error("a factorization needs at least one thread")]
    NoThreads,
    /// More than 2^30 words.
    #[error(
        "a matrix of {n} × {n} in blocks of {block} × {block} takes more than {MOST_WORDS} words: \
         give fewer rows, or larger blocks if these are padded to a line"
    )]
    TooLarge {
        /// Rows of the matrix.
        n: u32,
        /// Rows of a block.
        block: u32,
    },
    /// The matrix is of another size.
    #[error("{elements} elements for a matrix of {expected}")]
    Length {
        /// The number of elements.
        elements: u64,
        /// The expected number of elements.
        expected: u64,
    },
    /// The nodes' memory cannot hold the matrix.
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// A phase between two barriers, for one step k of the factorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing: the threads get there at different times. Before all steps.
    Start,
    /// The owner of block (k, k) factorizes it.
    Diagonal,
    /// The owners of the blocks below and beside it divide them by it.
    Perimeter,
    /// Every other block loses the product of the two of the perimeter in its row and column.
    Interior,
}

sme_barrier::names!(Phase, "phase", {
    Start => "start",
    Diagonal => "diagonal",
    Perimeter => "perimeter",
    Interior => "interior",
});

/// A factorization, shared by its threads.
#[derive(Clone, Debug)]
pub struct Lu {
    spec: LuSpec,
    grid: Grid,
    /// Blocks in a row of the matrix.
    blocks: u32,
    /// The place where each block begins, row by row.
    starts: Box<[u64]>,
    array: Array,
}

impl Lu {
    /// Lays the matrix out in memory from `pool`.
    ///
    /// # Errors
    /// If a size is zero or too large, or the nodes have not enough memory.
    pub fn new(spec: LuSpec, pool: &mut Pool, placement: Placement) -> Result<Self, LuError> {
        let LuSpec {
            n, block, threads, ..
        } = spec;
        if n == 0 {
            return Err(LuError::Empty);
        }
        if !(1..=MOST_ROWS_OF_BLOCK).contains(&block) {
            return Err(LuError::Block { block });
        }
        let blocks = n.div_ceil(block);
        let block_words = u64::from(block * block).next_multiple_of(LINE_WORDS);
        let words = (u64::from(blocks) * u64::from(blocks))
            .checked_mul(block_words)
            .filter(|&words| words <= MOST_WORDS)
            .ok_or(LuError::TooLarge { n, block })?;
        let grid = Grid::new(threads).ok_or(LuError::NoThreads)?;
        let array = pool.array(words, placement)?;
        Ok(Self {
            spec,
            grid,
            blocks,
            starts: starts(grid, blocks, block_words),
            array,
        })
    }

    /// Its arrays, by name.
    pub fn arrays(&self) -> [(&'static str, &Array); 1] {
        [("matrix", &self.array)]
    }

    /// Its description.
    pub fn spec(&self) -> &LuSpec {
        &self.spec
    }

    /// The phases in their order; after each there is one barrier.
    pub fn phases(&self) -> impl Iterator<Item = Phase> + use<> {
        steps(self.blocks).map(|(_, phase)| phase)
    }

    /// The elements, row by row: drawn from -1..1, those on the diagonal larger by n, so that the
    /// matrix is diagonally dominant and needs no pivoting.
    pub fn matrix(&self) -> Vec<f64> {
        let n = self.spec.n as usize;
        let mut random = Pcg32::new(self.spec.seed, 0x10);
        let mut matrix = vec![0.0; n * n];
        for (index, element) in matrix.iter_mut().enumerate() {
            let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let diagonal = if index % (n + 1) == 0 { n as f64 } else { 0.0 };
            *element = 2.0 * unit - 1.0 + diagonal;
        }
        matrix
    }

    /// The words that must be in memory before the threads start, as bits of doubles: the elements
    /// of `matrix`, row by row.
    ///
    /// # Errors
    /// [`LuError::Length`] if it is of another size.
    pub fn initial(&self, matrix: &[f64]) -> Result<impl Iterator<Item = (Place, u64)>, LuError> {
        let (elements, expected) = (matrix.len() as u64, u64::from(self.spec.n).pow(2));
        if elements != expected {
            return Err(LuError::Length { elements, expected });
        }
        let elements = matrix.iter().map(|element| element.to_bits());
        Ok(self.places().zip(elements))
    }

    /// One thread's part. The factors are in memory when all threads have ended.
    ///
    /// # Panics
    /// If the team has not as many threads as the description says.
    pub fn run<T: Team>(&self, team: &mut T) -> impl Future<Output = ()> + Send {
        assert_eq!(team.size(), self.spec.threads, "a team of another size");
        async move {
            let mut tiles = Tiles::new(self.spec.block as usize);
            for (k, phase) in steps(self.blocks) {
                match phase {
                    Phase::Start => {}
                    Phase::Diagonal => self.diagonal(team, k, &mut tiles).await,
                    Phase::Perimeter => self.perimeter(team, k, &mut tiles).await,
                    Phase::Interior => self.interior(team, k, &mut tiles).await,
                }
                team.barrier().await;
            }
        }
    }

    /// The factors, row by row: U on the diagonal and above it, L below, whose diagonal is 1.
    /// `read` returns what memory holds when all is done.
    pub fn result(&self, read: impl Fn(Place) -> u64) -> Vec<f64> {
        self.places()
            .map(|place| f64::from_bits(read(place)))
            .collect()
    }

    /// Returns the distance of the product of `factors` from `matrix`: ‖A − LU‖ / ‖A‖ (Frobenius),
    /// a few 10^-16 if all is well. Infinite for a matrix of another size. Takes n³ / 3
    /// multiplications.
    pub fn residual(&self, matrix: &[f64], factors: &[f64]) -> f64 {
        let n = self.spec.n as usize;
        if matrix.len() != n * n || factors.len() != n * n {
            return f64::INFINITY;
        }
        let (mut difference, mut norm) = (0.0, 0.0);
        for (i, (lower, row)) in factors.chunks(n).zip(matrix.chunks(n)).enumerate() {
            let mut product = vec![0.0; n];
            for (k, upper) in factors.chunks(n).enumerate().take(i + 1) {
                let factor = if k == i { 1.0 } else { lower[k] };
                for j in k..n {
                    product[j] += factor * upper[j];
                }
            }
            for (product, element) in product.iter().zip(row) {
                difference += (element - product) * (element - product);
                norm += element * element;
            }
        }
        f64::sqrt(difference / norm)
    }

    /// Block (k, k) becomes its factors.
    async fn diagonal<T: Team>(&self, team: &mut T, k: u32, tiles: &mut Tiles) {
        if self.grid.owner(k, k) != team.number() {
            return;
        }
        let rows = self.rows(k);
        let tile = &mut tiles.left;
        let memory = team.memory();
        for row in 0..rows {
            let elements = tile.row_mut(row, rows);
            for (element, word) in elements.iter_mut().zip(self.row(memory, (k, k), row)) {
                *element = f64::from_bits(memory.load(word).await);
            }
        }
        let mut operations = 0;
        for pivot in 0..rows {
            let (above, below) = tile.split_at_row(pivot + 1);
            let upper = &above[pivot * tiles.stride..][..rows];
            for row in below.chunks_mut(tiles.stride).take(rows - pivot - 1) {
                row[pivot] /= upper[pivot];
                let factor = row[pivot];
                subtract(&mut row[pivot + 1..rows], factor, &upper[pivot + 1..]);
            }
            operations += (rows - pivot - 1) * (1 + 2 * (rows - pivot - 1));
        }
        team.compute(operations as u32).await;
        let memory = team.memory();
        for row in 0..rows {
            let elements = tile.row(row, rows);
            for (element, word) in elements.iter().zip(self.row(memory, (k, k), row)) {
                memory.store(word, element.to_bits()).await;
            }
        }
    }

    /// The blocks of column k are divided by U of block (k, k), those of row k by its L.
    async fn perimeter<T: Team>(&self, team: &mut T, k: u32, tiles: &mut Tiles) {
        let size = self.rows(k);
        let column = self.grid.rows_of(team.number(), k, k + 1..self.blocks);
        let row = self.grid.columns_of(team.number(), k, k + 1..self.blocks);
        if column.clone().chain(row.clone()).next().is_none() {
            return;
        }
        let Tiles { left, right, .. } = tiles;
        let memory = team.memory();
        for r in 0..size {
            let elements = left.row_mut(r, size);
            for (element, word) in elements.iter_mut().zip(self.row(memory, (k, k), r)) {
                *element = f64::from_bits(memory.load(word).await);
            }
        }
        for i in column {
            for r in 0..self.rows(i) {
                let memory = team.memory();
                let x = right.row_mut(0, size);
                for (element, word) in x.iter_mut().zip(self.row(memory, (i, k), r)) {
                    *element = f64::from_bits(memory.load(word).await);
                }
                for p in 0..size {
                    let upper = left.row(p, size);
                    x[p] /= upper[p];
                    let factor = x[p];
                    subtract(&mut x[p + 1..], factor, &upper[p + 1..]);
                }
                team.compute((size * size) as u32).await;
                let memory = team.memory();
                for (element, word) in x.iter().zip(self.row(memory, (i, k), r)) {
                    memory.store(word, element.to_bits()).await;
                }
            }
        }
        for j in row {
            let width = self.rows(j);
            for r in 0..size {
                let memory = team.memory();
                let (above, below) = right.split_at_row(r);
                let x = &mut below[..width];
                for (element, word) in x.iter_mut().zip(self.row(memory, (k, j), r)) {
                    *element = f64::from_bits(memory.load(word).await);
                }
                let lower = left.row(r, r);
                for (&factor, upper) in lower.iter().zip(above.chunks(tiles.stride)) {
                    subtract(x, factor, upper);
                }
                team.compute((2 * r * width) as u32).await;
                let memory = team.memory();
                for (element, word) in x.iter().zip(self.row(memory, (k, j), r)) {
                    memory.store(word, element.to_bits()).await;
                }
            }
        }
    }

    /// Block (i, j) loses the product of (i, k) and (k, j), for every i and j beyond k.
    async fn interior<T: Team>(&self, team: &mut T, k: u32, tiles: &mut Tiles) {
        let size = self.rows(k);
        let (my_row, my_column) = self.grid.position(team.number());
        let rest = k + 1..self.blocks;
        let columns = congruent(rest.clone(), my_column, self.grid.columns);
        if columns.len() == 0 {
            return;
        }
        for i in congruent(rest, my_row, self.grid.rows) {
            let memory = team.memory();
            for r in 0..self.rows(i) {
                let elements = tiles.left.row_mut(r, size);
                for (element, word) in elements.iter_mut().zip(self.row(memory, (i, k), r)) {
                    *element = f64::from_bits(memory.load(word).await);
                }
            }
            for j in columns.clone() {
                let memory = team.memory();
                let width = self.rows(j);
                for r in 0..size {
                    let elements = tiles.right.row_mut(r, width);
                    for (element, word) in elements.iter_mut().zip(self.row(memory, (k, j), r)) {
                        *element = f64::from_bits(memory.load(word).await);
                    }
                }
                self.multiply(team, (i, j), size, tiles).await;
            }
        }
    }

    /// Block (i, j) loses the product of the tiles, over `size` columns and rows.
    async fn multiply<T: Team>(
        &self,
        team: &mut T,
        (i, j): (u32, u32),
        size: usize,
        tiles: &mut Tiles,
    ) {
        let width = self.rows(j);
        for r in 0..self.rows(i) {
            let memory = team.memory();
            let x = &mut tiles.own[..width];
            for (element, word) in x.iter_mut().zip(self.row(memory, (i, j), r)) {
                *element = f64::from_bits(memory.load(word).await);
            }
            for (p, &factor) in tiles.left.row(r, size).iter().enumerate() {
                subtract(x, factor, tiles.right.row(p, width));
            }
            team.compute((2 * size * width) as u32).await;
            let memory = team.memory();
            for (element, word) in x.iter().zip(self.row(memory, (i, j), r)) {
                memory.store(word, element.to_bits()).await;
            }
        }
    }

    /// The addresses of row `row` of block `at`, as wide as the block.
    fn row<'a, M: Memory>(&'a self, memory: &'a M, at: (u32, u32), row: usize) -> Words<'a, M> {
        let first = self.row_start(at, row);
        let range = first..first + self.rows(at.1) as u64;
        words(&self.array, memory, range, self.spec.route)
    }

    /// The index of the first word of row `row` of block (i, j).
    fn row_start(&self, (i, j): (u32, u32), row: usize) -> u64 {
        let block = i as usize * self.blocks as usize + j as usize;
        self.starts[block] + row as u64 * u64::from(self.spec.block)
    }

    /// Rows of the blocks in row `index` of blocks, and columns of those in that column.
    fn rows(&self, index: u32) -> usize {
        let before = index * self.spec.block;
        self.spec.block.min(self.spec.n - before) as usize
    }

    /// Returns the places of the elements, row by row.
    fn places(&self) -> impl Iterator<Item = Place> {
        let LuSpec { n, block, .. } = self.spec;
        (0..n).flat_map(move |row| {
            (0..n).map(move |column| {
                let start = self.row_start((row / block, column / block), (row % block) as usize);
                self.array.place(start + u64::from(column % block))
            })
        })
    }
}

/// The steps k and their phases in order. The last block has neither perimeter nor interior.
fn steps(blocks: u32) -> impl Iterator<Item = (u32, Phase)> {
    let step = [Phase::Diagonal, Phase::Perimeter, Phase::Interior];
    let steps = (0..blocks).flat_map(move |k| {
        let phases = if k + 1 == blocks { 1 } else { step.len() };
        step.into_iter().take(phases).map(move |phase| (k, phase))
    });
    std::iter::once((0, Phase::Start)).chain(steps)
}

/// Returns the beginning of each block: the blocks of thread 0 first, then those of thread 1, ….
fn starts(grid: Grid, blocks: u32, block_words: u64) -> Box<[u64]> {
    let mut starts = vec![0; blocks as usize * blocks as usize].into_boxed_slice();
    let mut next = 0;
    for row in 0..grid.rows.min(blocks) {
        for column in 0..grid.columns.min(blocks) {
            for i in congruent(0..blocks, row, grid.rows) {
                for j in congruent(0..blocks, column, grid.columns) {
                    starts[i as usize * blocks as usize + j as usize] = next;
                    next += block_words;
                }
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contiguous blocks: no line is of two blocks, and a node's threads find theirs in its memory.
    #[test]
    fn blocks_lie_with_their_owners() -> Result<(), LuError> {
        let spec = LuSpec {
            n: 64,
            block: 8,
            threads: 4,
            route: Route::Cached,
            seed: 0,
        };
        let mut pool = Pool::new(2, (0, 1 << 20), 64, 0)?;
        let lu = Lu::new(spec, &mut pool, Placement::Block)?;
        for i in 0..8 {
            for j in 0..8 {
                let node = lu.grid.owner(i, j) / 2;
                for row in 0..8 {
                    let place = lu.array.place(lu.row_start((i, j), row));
                    assert_eq!(place.node, node, "({i}, {j})");
                    assert_eq!(place.offset % 64, 0);
                }
            }
        }
        Ok(())
    }
}
