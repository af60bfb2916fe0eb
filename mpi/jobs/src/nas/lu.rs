//! LU: in each step a sweep of planes upwards, which solves the lower triangle, one downwards for
//! the upper one, and the right-hand side.
//!
//! Each rank has all points along z of its part of x and y. In a sweep it solves a plane when its
//! neighbours before it have sent theirs, and sends its own to those behind it: a wave that runs
//! through the ranks, plane by plane.

use sme_mpi::error::MpiError;

use super::grid::{Array, Run, inner_points_of_part, points_of_part};
use super::solver::{ARRAYS, Faces, Solver};

/// The shares of a step on one core: the Jacobians of each sweep, the solution of each, the
/// right-hand side, and the update. Assumed.
const SHARES: [f64; 4] = [0.185, 0.185, 0.22, 0.04];

/// Words of a point.
const POINT: u32 = 5;

/// Points that the right-hand side needs from a neighbour.
const DEPTH: u32 = 2;

/// Parts along x: as many as along y, or twice as many.
pub(super) fn columns(ranks: u32) -> u32 {
    1 << ranks.ilog2().div_ceil(2)
}

/// The most calls of a rank in a step, on a grid with so many points along an axis.
pub(super) fn most_calls(points: u32) -> u64 {
    8 * u64::from(points) + 8
}

/// The end of the arrays of the rank that has most.
pub(super) fn data_end(points: u32, ranks: u32) -> u64 {
    let ends = (0..ranks).map(|rank| Part::new(points, ranks, rank).solution.end());
    ends.max().unwrap_or(0)
}

/// The part of a rank.
struct Part {
    /// Its position, of so many along x and y.
    at: [u32; 2],
    parts: [u32; 2],
    points: u32,
    right: Array,
    solution: Array,
}

impl Part {
    fn new(points: u32, ranks: u32, rank: u32) -> Self {
        let columns = columns(ranks);
        let parts = [columns, ranks / columns];
        let at = [rank % columns, rank / columns];
        let of = |axis: usize| points_of_part(points, parts[axis], at[axis]);
        let size = [of(0), of(1), points];
        let right = Array::new(ARRAYS, POINT, size);
        let solution = Array::new(right.end().next_multiple_of(64), POINT, size);
        Self {
            at,
            parts,
            points,
            right,
            solution,
        }
    }

    /// Points of a plane that are not at a face of the grid.
    fn inner_of_plane(&self) -> u64 {
        let inner = |axis: usize| {
            u64::from(inner_points_of_part(
                self.points,
                self.parts[axis],
                self.at[axis],
            ))
        };
        inner(0) * inner(1)
    }

    /// The rank beside it along `axis`, up or down, if there is one, with these points.
    fn faces(&self, axis: usize, up: bool, runs: Vec<Run>) -> Faces {
        let stride = if axis == 0 { 1 } else { self.parts[0] };
        let rank = self.at[0] + self.parts[0] * self.at[1];
        let beside = match up {
            true => (self.at[axis] + 1 < self.parts[axis]).then(|| rank + stride),
            false => (self.at[axis] > 0).then(|| rank - stride),
        };
        Faces { rank: beside, runs }
    }
}

/// Runs all steps.
///
/// # Errors
/// [`MpiError`]
pub(super) async fn run(solver: &mut Solver) -> Result<(), MpiError> {
    let (points, _) = solver.run.kernel.size(solver.run.class);
    let part = Part::new(points, solver.run.job.ranks, solver.rank);
    let inside = u64::from(points - 2);
    let (plane, all) = (part.inner_of_plane(), inside.pow(3));
    let [.., right, update] = SHARES;
    for number in 0..solver.run.all_steps() {
        solver.begins(number).await;
        for up in [true, false] {
            sweep(solver, &part, up).await?;
        }
        solver.compute(update, plane * inside, all).await;
        for axis in 0..2 {
            for up in [true, false] {
                let out = part.faces(axis, up, part.solution.face(axis, up, DEPTH));
                let into = part.faces(axis, !up, part.solution.ghosts(axis, !up, DEPTH));
                let sends_first = part.at[axis].is_multiple_of(2);
                solver.shift((&out, &into), sends_first).await?;
            }
            solver.compute(right / 2.0, plane * inside, all).await;
        }
        solver.ends(number).await;
    }
    Ok(())
}

/// Solves plane after plane, upwards or downwards along all axes.
async fn sweep(solver: &mut Solver, part: &Part, up: bool) -> Result<(), MpiError> {
    let [jacobians, solve, ..] = SHARES;
    let inside = u64::from(part.points - 2);
    let (plane, all) = (part.inner_of_plane(), inside.pow(3));
    for number in 1..part.points - 1 {
        let k = if up { number } else { part.points - 1 - number };
        let right = part.right.plane(k);
        solver.compute(jacobians, plane, all).await;
        for axis in 0..2 {
            let before = part.faces(axis, !up, right.ghosts(axis, !up, 1));
            solver.receive(&before).await?;
        }
        solver.compute(solve, plane, all).await;
        for axis in 0..2 {
            let behind = part.faces(axis, up, right.face(axis, up, 1));
            solver.send(&behind).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_plane() {
        for ranks in [1, 2, 4, 8, 16, 32] {
            let parts: Vec<Part> = (0..ranks).map(|rank| Part::new(64, ranks, rank)).collect();
            assert_eq!(
                parts.iter().map(Part::inner_of_plane).sum::<u64>(),
                62 * 62,
                "{ranks}"
            );
            for (rank, part) in parts.iter().enumerate() {
                for axis in 0..2 {
                    if let Some(above) = part.faces(axis, true, Vec::new()).rank {
                        let back = parts[above as usize].faces(axis, false, Vec::new()).rank;
                        assert_eq!(back, Some(rank as u32));
                    }
                }
            }
        }
        assert_eq!(
            (columns(8), columns(16), columns(32), columns(1)),
            (4, 4, 8, 1)
        );
    }

    #[test]
    fn shares_are_a_whole_step() {
        let [jacobians, solve, right, update] = SHARES;
        let all = 2.0 * (jacobians + solve) + right + update;
        assert!((all - 1.0).abs() < 1e-9, "{all}");
    }
}
