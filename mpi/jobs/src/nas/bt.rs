//! BT: in each step the right-hand side, then block tridiagonal systems along x, y and z.
//!
//! The grid is divided into q parts along each axis for q x q ranks. A rank has q of them, which
//! lie on a diagonal: in each slab across an axis it has exactly one, so that all ranks solve at
//! the same time, slab by slab, and each hands the boundary of its part to one and the same
//! neighbour.

use sme_mpi::error::MpiError;

use super::grid::{Array, inner_points_of_part, points_of_part};
use super::solver::{ARRAYS, Faces, Solver};

/// The shares of a step on one core: the right-hand side, elimination along each axis, substitution
/// along each, and the update. Assumed.
const SHARES: [f64; 4] = [0.19, 0.24, 0.026, 0.012];

/// Words of a point: the solution; the right-hand side; the block that elimination leaves.
const POINT: u32 = 5;
const BLOCK: u32 = 25;

/// Points that the right-hand side needs from a neighbour.
const DEPTH: u32 = 2;

/// The most calls of a rank in a step.
pub(super) fn most_calls(ranks: u32) -> u64 {
    // Exchanges of faces, and two of each slab along each axis; with RCCE each is two calls.
    2 * (6 + 6 * u64::from(ranks.isqrt()))
}

/// The end of the arrays of the rank that has most.
pub(super) fn data_end(points: u32, ranks: u32) -> u64 {
    let ends = (0..ranks).map(|rank| {
        let diagonal = Diagonal::new(points, ranks.isqrt(), rank);
        diagonal.cells.last().map_or(0, |cell| cell.block.end())
    });
    ends.max().unwrap_or(0)
}

/// A part of the grid.
struct Cell {
    /// Its position.
    at: [u32; 3],
    solution: Array,
    right: Array,
    block: Array,
}

/// The parts of a rank, and its neighbours.
struct Diagonal {
    /// Parts along an axis.
    parts: u32,
    points: u32,
    cells: Vec<Cell>,
    /// The rank's place in its ring along each axis.
    place: [u32; 3],
    /// The neighbours along each axis, down and up.
    neighbors: [[u32; 2]; 3],
}

impl Diagonal {
    /// Of rank `rank` among `parts` squared.
    fn new(points: u32, parts: u32, rank: u32) -> Self {
        let (i, j) = (rank % parts, rank / parts);
        let of = |i: u32, j: u32| i % parts + parts * (j % parts);
        let (up, down) = (1, parts - 1);
        let mut at = ARRAYS;
        let mut cells = Vec::new();
        for k in 0..parts {
            let position = [(i + k) % parts, (j + parts - k) % parts, k];
            let size = position.map(|number| points_of_part(points, parts, number));
            let mut array = |words| {
                let array = Array::new(at, words, size);
                at = array.end().next_multiple_of(64);
                array
            };
            cells.push(Cell {
                at: position,
                solution: array(POINT),
                right: array(POINT),
                block: array(BLOCK),
            });
        }
        Self {
            parts,
            points,
            cells,
            place: [i, j, j],
            neighbors: [
                [of(i + down, j), of(i + up, j)],
                [of(i, j + down), of(i, j + up)],
                [of(i + up, j + down), of(i + down, j + up)],
            ],
        }
    }

    /// The part in slab `slab` across `axis`.
    fn in_slab(&self, axis: usize, slab: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.at[axis] == slab)
    }

    /// The points at which systems along `axis` are solved in slab `slab` across it: not those at
    /// faces of the grid that the systems do not cross.
    fn solved(&self, axis: usize, slab: u32) -> u64 {
        let along = points_of_part(self.points, self.parts, slab);
        let others = self.in_slab(axis, slab).map_or(0, |cell| {
            let inner = |other: usize| {
                u64::from(inner_points_of_part(
                    self.points,
                    self.parts,
                    cell.at[other],
                ))
            };
            inner((axis + 1) % 3) * inner((axis + 2) % 3)
        });
        u64::from(along) * others
    }

    /// The points inside the grid of all its parts.
    fn inner(&self) -> u64 {
        let of = |cell: &Cell| -> u64 {
            let inner = |&number| inner_points_of_part(self.points, self.parts, number);
            cell.at
                .iter()
                .map(|number| u64::from(inner(number)))
                .product()
        };
        self.cells.iter().map(of).sum()
    }

    /// The neighbour along `axis`, up or down.
    fn neighbor(&self, axis: usize, up: bool) -> u32 {
        self.neighbors[axis][usize::from(up)]
    }
}

/// Runs all steps.
///
/// # Errors
/// [`MpiError`]
pub(super) async fn run(solver: &mut Solver) -> Result<(), MpiError> {
    let (points, _) = solver.run.kernel.size(solver.run.class);
    let diagonal = Diagonal::new(points, solver.run.job.ranks.isqrt(), solver.rank);
    let inside = u64::from(points - 2);
    let lines = inside * inside * u64::from(points);
    let [right, eliminate, substitute, add] = SHARES;
    for number in 0..solver.run.all_steps() {
        solver.begins(number).await;
        exchange_faces(solver, &diagonal).await?;
        solver.compute(right, diagonal.inner(), inside.pow(3)).await;
        for axis in 0..3 {
            for slab in 0..diagonal.parts {
                let solved = diagonal.solved(axis, slab);
                solver.compute(eliminate, solved, lines).await;
                if slab + 1 < diagonal.parts {
                    hand_on(solver, &diagonal, (axis, slab), true).await?;
                }
            }
            for slab in (0..diagonal.parts).rev() {
                let solved = diagonal.solved(axis, slab);
                solver.compute(substitute, solved, lines).await;
                if slab > 0 {
                    hand_on(solver, &diagonal, (axis, slab), false).await?;
                }
            }
        }
        solver.compute(add, diagonal.inner(), inside.pow(3)).await;
        solver.ends(number).await;
    }
    Ok(())
}

/// Sends the faces of all parts that are not at the grid's, as one message to each neighbour.
async fn exchange_faces(solver: &mut Solver, diagonal: &Diagonal) -> Result<(), MpiError> {
    let top = diagonal.parts - 1;
    if top == 0 {
        return Ok(());
    }
    for axis in 0..3 {
        for up in [true, false] {
            let (last, first) = if up { (top, 0) } else { (0, top) };
            let cells = diagonal.cells.iter();
            let out = cells.filter(|cell| cell.at[axis] != last);
            let out = out.flat_map(|cell| cell.solution.face(axis, up, DEPTH));
            let cells = diagonal.cells.iter();
            let into = cells.filter(|cell| cell.at[axis] != first);
            let into = into.flat_map(|cell| cell.solution.ghosts(axis, !up, DEPTH));
            let out = Faces {
                rank: Some(diagonal.neighbor(axis, up)),
                runs: out.collect(),
            };
            let into = Faces {
                rank: Some(diagonal.neighbor(axis, !up)),
                runs: into.collect(),
            };
            let sends_first = diagonal.place[axis].is_multiple_of(2);
            solver.shift((&out, &into), sends_first).await?;
        }
    }
    Ok(())
}

/// Hands the boundary of the part in a slab to the neighbour that has the next slab's, and takes
/// that of this rank's part there: blocks and right-hand sides on the way up, solutions on the way
/// down.
async fn hand_on(
    solver: &mut Solver,
    diagonal: &Diagonal,
    (axis, slab): (usize, u32),
    up: bool,
) -> Result<(), MpiError> {
    let next = if up { slab + 1 } else { slab - 1 };
    let (Some(here), Some(there)) = (diagonal.in_slab(axis, slab), diagonal.in_slab(axis, next))
    else {
        return Ok(());
    };
    let mut out = here.right.face(axis, up, 1);
    let mut into = there.right.ghosts(axis, !up, 1);
    if up {
        out.extend(here.block.face(axis, up, 1));
        into.extend(there.block.ghosts(axis, !up, 1));
    }
    let out = Faces {
        rank: Some(diagonal.neighbor(axis, up)),
        runs: out,
    };
    let into = Faces {
        rank: Some(diagonal.neighbor(axis, !up)),
        runs: into,
    };
    let sends_first = diagonal.place[axis].is_multiple_of(2);
    solver.shift((&out, &into), sends_first).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_one_rank_and_neighbours_have_the_parts_beside_it() {
        for parts in 1..=6 {
            let all: Vec<Diagonal> = (0..parts * parts)
                .map(|rank| Diagonal::new(64, parts, rank))
                .collect();
            let mut positions: Vec<[u32; 3]> = Vec::new();
            for of_rank in &all {
                positions.extend(of_rank.cells.iter().map(|cell| cell.at));
                for axis in 0..3 {
                    for slab in 0..parts {
                        let mut above = of_rank.in_slab(axis, slab).unwrap().at;
                        above[axis] += 1;
                        if above[axis] < parts {
                            let neighbor = &all[of_rank.neighbor(axis, true) as usize];
                            assert_eq!(neighbor.in_slab(axis, above[axis]).unwrap().at, above);
                        }
                    }
                    let up = &all[of_rank.neighbor(axis, true) as usize];
                    let next = (of_rank.place[axis] + 1) % parts;
                    let before = (of_rank.place[axis] + parts - 1) % parts;
                    assert!([next, before].contains(&up.place[axis]));
                }
            }
            positions.sort_unstable();
            positions.dedup();
            assert_eq!(positions.len() as u32, parts.pow(3));
            let solved: u64 = all
                .iter()
                .map(|one| (0..parts).map(|slab| one.solved(1, slab)).sum::<u64>())
                .sum();
            assert_eq!(solved, 64 * 62 * 62);
            assert_eq!(all.iter().map(Diagonal::inner).sum::<u64>(), 62 * 62 * 62);
        }
    }

    #[test]
    fn shares_are_a_whole_step() {
        let [right, eliminate, substitute, add] = SHARES;
        let all = right + 3.0 * (eliminate + substitute) + add;
        assert!((all - 1.0).abs() < 1e-9, "{all}");
    }
}
