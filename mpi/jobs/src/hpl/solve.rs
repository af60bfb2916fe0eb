//! Back substitution: x from the triangle that elimination leaves, block by block from the last.
//!
//! The ranks of the row of the grid that has a block subtract what they know already, by a
//! reduction to the rank of the diagonal; that solves the block, and tells the ranks of its column.

use sme_mpi::error::MpiError;
use sme_mpi::op::Op;

use super::factor::{Along, Part};
use super::grid::Grid;

impl Part {
    /// The part of the solution that belongs to the rank's columns.
    ///
    /// # Errors
    /// [`MpiError`]
    pub(super) async fn solve(
        &self,
        along_row: &Along<'_>,
        along_column: &Along<'_>,
    ) -> Result<Vec<f64>, MpiError> {
        let Grid { n, nb, p, q } = self.grid;
        let mut x = vec![0.0; self.column_from(n)];
        for step in (0..n.div_ceil(nb)).rev() {
            let first = step * nb;
            let width = nb.min(n - first);
            let (row, column) = (step % p, step % q);
            let mut found = vec![0.0; width];
            if self.row == row {
                let known = self.known(first, width, &x).await;
                along_row
                    .reduce(&known, &mut found, &Op::Sum, column as u32)
                    .await?;
            }
            if self.column != column {
                continue;
            }
            if self.row == row {
                self.solves_block(first, &mut found).await;
            }
            along_column.broadcast(&mut found, row as u32).await?;
            let begin = self.column_from(first);
            x[begin..begin + width].copy_from_slice(&found);
        }
        Ok(x)
    }

    /// The right-hand side of a block, if the rank has it, less what the rank knows of x.
    async fn known(&self, first: usize, width: usize, x: &[f64]) -> Vec<f64> {
        let Grid { n, nb, q, .. } = self.grid;
        let row = self.row_from(first);
        let mut known = match Grid::owner(n, nb, q) == self.column {
            true => self.a[self.column_from(n) * self.rows + row..][..width].to_vec(),
            false => vec![0.0; width],
        };
        let from = self.column_from(first + width);
        for (column, &x) in x.iter().enumerate().skip(from) {
            let a = &self.a[column * self.rows + row..][..width];
            for (known, a) in known.iter_mut().zip(a) {
                *known -= a * x;
            }
        }
        self.computes(2 * width * (x.len() - from)).await;
        known
    }

    /// Solves the triangle on the diagonal.
    async fn solves_block(&self, first: usize, found: &mut [f64]) {
        let (row, column, width) = (self.row_from(first), self.column_from(first), found.len());
        for k in (0..width).rev() {
            let a = &self.a[(column + k) * self.rows + row..][..width];
            found[k] /= a[k];
            let x = found[k];
            for (value, a) in found[..k].iter_mut().zip(a) {
                *value -= a * x;
            }
        }
        self.computes(width * width).await;
    }
}
