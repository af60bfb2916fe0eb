//! Cartesian topologies (MPI-4.1, Sec. 8.5.1 and 8.5.5 to 8.5.7): grids of ranks in row-major
//! order.

use super::check_rank;
use crate::error::{ErrorClass, Fault};

/// A grid of ranks (MPI_Cart_create). Without dimensions it has the one rank 0.
///
/// ```
/// use sme_mpi::topology::Cartesian;
///
/// let grid = Cartesian::new(12, &[4, 3], &[true, false])?;
/// assert_eq!(grid.coords(7)?, [2, 1]);
/// assert_eq!(grid.shift(7, 1, 2)?, (None, None));
/// assert_eq!(grid.shift(1, 0, 1)?, (Some(10), Some(4)));
/// # Ok::<(), sme_mpi::error::Fault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cartesian {
    dims: Box<[u32]>,
    periods: Box<[bool]>,
    size: u32,
}

/// The part of a grid that a rank is in (MPI_Cart_sub).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubGrid {
    /// Ranks of the same part, and no others, have this color (MPI_Comm_split).
    pub color: u32,
    /// The rank within the part.
    pub key: u32,
    /// The topology of the part.
    pub topology: Cartesian,
}

impl Cartesian {
    /// The grid with these dimensions on a communicator of so many processes. Those from
    /// [`Self::size`] on are outside of it (MPI_COMM_NULL).
    ///
    /// # Errors
    /// [`ErrorClass::Dims`] if a dimension is 0 or the grid has more nodes than there are
    /// processes; [`ErrorClass::Arg`] if there are not as many periods as dimensions.
    pub fn new(processes: u32, dims: &[u32], periods: &[bool]) -> Result<Self, Fault> {
        check_length("periods", periods.len(), dims.len())?;
        if dims.contains(&0) {
            return Err(Fault::new(ErrorClass::Dims, "dims", "a dimension is 0"));
        }
        let nodes = |nodes: u32, &dim: &u32| nodes.checked_mul(dim);
        match dims.iter().try_fold(1, nodes) {
            Some(size) if size <= processes => Ok(Self {
                dims: dims.into(),
                periods: periods.into(),
                size,
            }),
            _ => {
                let text = format!("the grid has more nodes than {processes} processes");
                Err(Fault::new(ErrorClass::Dims, "dims", text))
            }
        }
    }

    /// Nodes of the grid.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Nodes along each dimension (MPI_Cart_get).
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Returns whether each dimension is periodic (MPI_Cart_get).
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// The coordinates of a rank (MPI_Cart_coords).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the grid has no such rank.
    pub fn coords(&self, rank: u32) -> Result<Vec<u32>, Fault> {
        check_rank("rank", rank, self.size)?;
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (coord, dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = rest % dim;
            rest /= dim;
        }
        Ok(coords)
    }

    /// The rank at these coordinates (MPI_Cart_rank). Those of periodic dimensions wrap around.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there are not as many coordinates as dimensions, or one is outside of
    /// a dimension that is not periodic.
    pub fn rank(&self, coords: &[i32]) -> Result<u32, Fault> {
        check_length("coords", coords.len(), self.dims.len())?;
        let mut rank = 0;
        for (dimension, (&coord, dim)) in coords.iter().zip(&self.dims).enumerate() {
            let Some(coord) = self.wrap(dimension, i64::from(coord)) else {
                let text = format!("{coord} is outside of 0..{dim}, which is not periodic");
                return Err(Fault::new(ErrorClass::Arg, "coords", text));
            };
            rank = rank * dim + coord;
        }
        Ok(rank)
    }

    /// The ranks that `rank` receives from and sends to when data move by `disp` along a dimension
    /// (MPI_Cart_shift): source and destination. `None` is MPI_PROC_NULL.
    ///
    /// # Errors
    /// [`ErrorClass::Topology`] if the grid has no dimensions, [`ErrorClass::Arg`] if it has no
    /// such one, and [`ErrorClass::Rank`] if it has no such rank.
    pub fn shift(
        &self,
        rank: u32,
        direction: usize,
        disp: i32,
    ) -> Result<(Option<u32>, Option<u32>), Fault> {
        let dimensions = self.dims.len();
        if direction >= dimensions {
            let class = match dimensions {
                0 => ErrorClass::Topology,
                _ => ErrorClass::Arg,
            };
            let text = format!("there is no dimension {direction} among {dimensions}");
            return Err(Fault::new(class, "direction", text));
        }
        check_rank("rank", rank, self.size)?;
        Ok(self.along(rank, direction, i64::from(disp)))
    }

    /// The neighbors in the order of neighborhood collectives (MPI-4.1, Sec. 8.6): per dimension,
    /// the one in the negative direction and the one in the positive. `None` is MPI_PROC_NULL.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the grid has no such rank.
    pub fn neighbors(&self, rank: u32) -> Result<Vec<Option<u32>>, Fault> {
        check_rank("rank", rank, self.size)?;
        let pairs = (0..self.dims.len()).map(|direction| self.along(rank, direction, 1));
        Ok(pairs.flat_map(|(before, after)| [before, after]).collect())
    }

    /// The part of the grid that `rank` is in, if the dimensions remain where `remain_dims` is true
    /// (MPI_Cart_sub).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there are not as many as dimensions, and [`ErrorClass::Rank`] if the
    /// grid has no such rank.
    pub fn sub(&self, rank: u32, remain_dims: &[bool]) -> Result<SubGrid, Fault> {
        check_length("remain_dims", remain_dims.len(), self.dims.len())?;
        let coords = self.coords(rank)?;
        let (mut color, mut key, mut size) = (0, 0, 1);
        let (mut dims, mut periods) = (Vec::new(), Vec::new());
        for (dimension, (coord, &remains)) in coords.into_iter().zip(remain_dims).enumerate() {
            let dim = self.dims[dimension];
            if remains {
                key = key * dim + coord;
                size *= dim;
                dims.push(dim);
                periods.push(self.periods[dimension]);
            } else {
                color = color * dim + coord;
            }
        }
        let topology = Self {
            dims: dims.into(),
            periods: periods.into(),
            size,
        };
        Ok(SubGrid {
            color,
            key,
            topology,
        })
    }

    /// The ranks `disp` before and after a rank of the grid along one of its dimensions.
    fn along(&self, rank: u32, direction: usize, disp: i64) -> (Option<u32>, Option<u32>) {
        let stride: u32 = self.dims[direction + 1..].iter().product();
        let coord = rank / stride % self.dims[direction];
        let at = |other: i64| {
            let other = self.wrap(direction, other)?;
            Some(rank - coord * stride + other * stride)
        };
        let coord = i64::from(coord);
        (at(coord - disp), at(coord + disp))
    }

    /// The coordinate within its dimension, if it has a place there.
    fn wrap(&self, dimension: usize, coord: i64) -> Option<u32> {
        let dim = i64::from(self.dims[dimension]);
        let coord = match self.periods[dimension] {
            true => coord.rem_euclid(dim),
            false => coord,
        };
        (0..dim).contains(&coord).then_some(coord as u32)
    }
}

fn check_length(argument: &'static str, length: usize, dimensions: usize) -> Result<(), Fault> {
    if length == dimensions {
        return Ok(());
    }
    let text = format!("it has {length} entries for {dimensions} dimensions");
    Err(Fault::new(ErrorClass::Arg, argument, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{holds, is_caught};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    type Shifted = Result<(Option<u32>, Option<u32>), Fault>;
    type Shift = fn(&Cartesian, u32, usize, i32) -> Shifted;

    fn grids() -> impl Strategy<Value = Cartesian> {
        proptest::collection::vec((1u32..5, any::<bool>()), 0..4).prop_map(|dimensions| {
            let (dims, periods): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            Cartesian::new(64, &dims, &periods).unwrap()
        })
    }

    /// The coordinates of all ranks, by counting through: the last dimension is the fastest.
    fn counted(dims: &[u32]) -> Vec<Vec<u32>> {
        dims.iter().fold(vec![vec![]], |all, &dim| {
            let longer =
                |coords: Vec<u32>| (0..dim).map(move |coord| [&coords[..], &[coord]].concat());
            all.into_iter().flat_map(longer).collect()
        })
    }

    /// Takes `disp` steps of one, each to the next coordinate or off the edge for good.
    fn walk(grid: &Cartesian, rank: u32, direction: usize, disp: i32) -> Option<u32> {
        let all = counted(grid.dims());
        let (mut coords, dim) = (all[rank as usize].clone(), grid.dims()[direction]);
        for _ in 0..disp.abs() {
            let coord = coords[direction];
            coords[direction] = match (disp > 0, grid.periods()[direction]) {
                (true, _) if coord + 1 < dim => coord + 1,
                (false, _) if coord > 0 => coord - 1,
                (_, false) => return None,
                (true, true) => 0,
                (false, true) => dim - 1,
            };
        }
        let rank = all.iter().position(|other| *other == coords);
        rank.map(|rank| rank as u32)
    }

    fn check_shift(shift: Shift, (grid, disp): (Cartesian, i32)) -> Result<(), TestCaseError> {
        for rank in 0..grid.size() {
            for direction in 0..grid.dims().len() {
                let walked = [-disp, disp].map(|disp| walk(&grid, rank, direction, disp));
                prop_assert_eq!(shift(&grid, rank, direction, disp), Ok(walked.into()));
            }
        }
        Ok(())
    }

    #[test]
    fn shifts_walk_step_by_step() {
        holds((grids(), -9i32..10), |case| {
            check_shift(Cartesian::shift, case)
        });
    }

    #[test]
    fn broken_shifts_are_caught() {
        let swapped: Shift = |grid, rank, direction, disp| grid.shift(rank, direction, -disp);
        let always_periodic: Shift = |grid, rank, direction, disp| {
            let periodic = vec![true; grid.dims().len()];
            Cartesian::new(64, grid.dims(), &periodic)?.shift(rank, direction, disp)
        };
        for broken in [swapped, always_periodic] {
            is_caught((grids(), -9i32..10), |case| check_shift(broken, case));
        }
    }

    proptest! {
        #[test]
        fn ranks_count_through_the_coordinates(grid in grids()) {
            let all = counted(grid.dims());
            prop_assert_eq!(all.len(), grid.size() as usize);
            for (rank, coords) in (0..).zip(all) {
                prop_assert_eq!(grid.coords(rank).unwrap(), &coords[..]);
                let signed: Vec<_> = coords.iter().map(|&coord| coord as i32).collect();
                prop_assert_eq!(grid.rank(&signed), Ok(rank));
                for dimension in 0..signed.len() {
                    for turns in [-2, -1, 1, 2] {
                        let mut outside = signed.clone();
                        outside[dimension] += turns * grid.dims()[dimension] as i32;
                        let expected = grid.periods()[dimension].then_some(rank);
                        prop_assert_eq!(grid.rank(&outside).ok(), expected);
                    }
                }
            }
            let beyond = grid.coords(grid.size()).unwrap_err();
            prop_assert_eq!(beyond.class, ErrorClass::Rank);
        }

        #[test]
        fn parts_are_as_splitting_makes_them(grid in grids(), keep in any::<[bool; 3]>()) {
            let remain = &keep[..grid.dims().len()];
            let all = counted(grid.dims());
            let pick = |coords: &[u32], wanted: bool| -> Vec<u32> {
                let picked = coords.iter().zip(remain).filter(|&(_, &remains)| remains == wanted);
                picked.map(|(&coord, _)| coord).collect()
            };
            for (one, coords) in (0..).zip(&all) {
                let part = grid.sub(one, remain).unwrap();
                // Those of its color are those that share the coordinates that are dropped, and in
                // the order of their keys they have the ranks of the part.
                let mut same = Vec::new();
                for (other, others) in (0..).zip(&all) {
                    let dropped = pick(others, false) == pick(coords, false);
                    let others_part = grid.sub(other, remain).unwrap();
                    prop_assert_eq!(others_part.color == part.color, dropped);
                    if dropped {
                        same.push((others_part.key, pick(others, true)));
                    }
                }
                same.sort();
                for (rank, (key, kept)) in (0..).zip(&same) {
                    prop_assert_eq!(rank, *key);
                    prop_assert_eq!(&part.topology.coords(rank).unwrap(), kept);
                }
                prop_assert_eq!(same.len(), part.topology.size() as usize);
            }
        }

        #[test]
        fn neighbors_are_shifts_by_one(grid in grids()) {
            for rank in 0..grid.size() {
                let mut expected = Vec::new();
                for direction in 0..grid.dims().len() {
                    expected.extend([-1, 1].map(|disp| walk(&grid, rank, direction, disp)));
                }
                prop_assert_eq!(grid.neighbors(rank), Ok(expected));
            }
        }
    }

    #[test]
    fn a_grid_without_dimensions_is_one_rank() {
        let point = Cartesian::new(4, &[], &[]).unwrap();
        assert_eq!(
            (point.size(), point.rank(&[]), point.coords(0)),
            (1, Ok(0), Ok(vec![]))
        );
        assert_eq!(
            point.shift(0, 0, 1).unwrap_err().class,
            ErrorClass::Topology
        );
        assert_eq!(point.neighbors(0), Ok(vec![]));
        assert_eq!(point.sub(0, &[]).unwrap().topology, point);
    }

    #[test]
    fn wrong_arguments_are_faults() {
        let new = |dims: &[u32], periods: &[bool]| Cartesian::new(6, dims, periods);
        let class = |dims: &[u32], periods: &[bool]| new(dims, periods).unwrap_err().class;
        assert_eq!(class(&[2, 0], &[true; 2]), ErrorClass::Dims);
        assert_eq!(class(&[7], &[true]), ErrorClass::Dims);
        assert_eq!(class(&[u32::MAX, 2], &[true; 2]), ErrorClass::Dims);
        assert_eq!(class(&[2], &[true; 2]), ErrorClass::Arg);
        let grid = new(&[2, 3], &[false, true]).unwrap();
        assert_eq!(grid.shift(0, 2, 1).unwrap_err().class, ErrorClass::Arg);
        assert_eq!(grid.shift(6, 0, 1).unwrap_err().class, ErrorClass::Rank);
        assert_eq!(grid.shift(0, 0, i32::MIN), Ok((None, None)));
        assert!(grid.shift(0, 1, i32::MIN).is_ok());
        assert_eq!(grid.rank(&[2, 0]).unwrap_err().class, ErrorClass::Arg);
        assert_eq!(grid.rank(&[0]).unwrap_err().argument, "coords");
        assert_eq!(grid.rank(&[1, i32::MIN]), Ok(4));
        assert_eq!(grid.sub(0, &[true]).unwrap_err().argument, "remain_dims");
    }
}
