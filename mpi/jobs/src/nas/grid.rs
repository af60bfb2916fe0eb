//! Parts of a grid of points in a rank's own memory.

use std::ops::Range;

/// A stretch of own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its address in bytes.
    pub at: u64,
    /// Words of eight bytes.
    pub words: u32,
}

/// Points beside each face of a part that are its neighbours'.
pub(super) const GHOSTS: u32 = 2;

/// The words of each point of a part: first those of a point, then along x, y and z, as Fortran has
/// them. Each part has [`GHOSTS`] around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    /// The address of its beginning in bytes.
    at: u64,
    words_per_point: u32,
    /// Points along x, y and z, without ghosts.
    size: [u32; 3],
}

impl Array {
    pub(super) fn new(at: u64, words_per_point: u32, size: [u32; 3]) -> Self {
        Self {
            at,
            words_per_point,
            size,
        }
    }

    /// The address behind it.
    pub(super) fn end(&self) -> u64 {
        let points = self.size.map(|n| u64::from(n + 2 * GHOSTS));
        let points: u64 = points.iter().product();
        self.at + 8 * u64::from(self.words_per_point) * points
    }

    /// The stretches that have the points of a box; the first point of the part is `GHOSTS` along
    /// each axis.
    fn box_of(&self, [x, y, z]: [Range<u32>; 3]) -> Vec<Run> {
        let [nx, ny, _] = self.size.map(|n| u64::from(n + 2 * GHOSTS));
        let mut runs: Vec<Run> = Vec::new();
        let words = self.words_per_point * x.len() as u32;
        for k in z {
            for j in y.clone() {
                let point = (u64::from(k) * ny + u64::from(j)) * nx + u64::from(x.start);
                let at = self.at + 8 * u64::from(self.words_per_point) * point;
                match runs.last_mut() {
                    Some(last) if last.at + 8 * u64::from(last.words) == at => last.words += words,
                    _ => runs.push(Run { at, words }),
                }
            }
        }
        runs
    }

    /// The points of the part that are at most `depth` away from its lower or upper face across
    /// `axis`.
    pub(super) fn face(&self, axis: usize, is_upper: bool, depth: u32) -> Vec<Run> {
        self.layer(axis, |n| match is_upper {
            true => GHOSTS + n - depth..GHOSTS + n,
            false => GHOSTS..GHOSTS + depth,
        })
    }

    /// The ghosts that are at most `depth` away from it.
    pub(super) fn ghosts(&self, axis: usize, is_upper: bool, depth: u32) -> Vec<Run> {
        self.layer(axis, |n| match is_upper {
            true => GHOSTS + n..GHOSTS + n + depth,
            false => GHOSTS - depth..GHOSTS,
        })
    }

    fn layer(&self, axis: usize, across: impl Fn(u32) -> Range<u32>) -> Vec<Run> {
        let mut ranges = self.size.map(|n| GHOSTS..GHOSTS + n);
        ranges[axis] = across(self.size[axis]);
        self.box_of(ranges)
    }

    /// The array of plane `k` alone.
    pub(super) fn plane(&self, k: u32) -> Self {
        let [nx, ny, _] = self.size;
        let points = u64::from(nx + 2 * GHOSTS) * u64::from(ny + 2 * GHOSTS);
        // Such a part has ghosts below it, which are the planes before.
        Self {
            at: self.at + 8 * u64::from(self.words_per_point) * points * u64::from(k),
            size: [nx, ny, 1],
            ..*self
        }
    }
}

/// The words of all stretches.
pub(super) fn words(runs: &[Run]) -> u32 {
    runs.iter().map(|run| run.words).sum()
}

/// The number of points in part `number` of `parts` of a grid with so many: the first ones have one
/// more, if they do not divide it evenly.
pub(super) fn points_of_part(points: u32, parts: u32, number: u32) -> u32 {
    points / parts + u32::from(number < points % parts)
}

/// Of them those that are not at a face of the whole grid.
pub(super) fn inner_points_of_part(points: u32, parts: u32, number: u32) -> u32 {
    let at_faces = u32::from(number == 0) + u32::from(number + 1 == parts);
    points_of_part(points, parts, number) - at_faces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_the_stretches_of_their_points() {
        let array = Array::new(1000, 5, [4, 3, 6]);
        let at = |x: u64, y: u64, z: u64| 1000 + 40 * (x + 8 * (y + 7 * z));
        assert_eq!(array.end(), 1000 + 40 * 8 * 7 * 10);
        let upper = array.face(0, true, 2);
        assert_eq!((upper.len(), words(&upper)), (18, 2 * 3 * 6 * 5));
        let of = |at, words| Run { at, words };
        assert_eq!(upper[1], of(at(4, 3, 2), 10));
        assert_eq!(array.ghosts(0, false, 1)[0], of(at(1, 2, 2), 5));
        assert_eq!(array.ghosts(2, true, 2)[0], of(at(2, 2, 8), 20));
        assert_eq!(array.plane(3).face(1, false, 1), [of(at(2, 2, 5), 20)]);
    }

    #[test]
    fn parts_add_up_to_the_grid() {
        for (points, parts) in [(64, 5), (64, 8), (12, 4), (33, 8), (24, 1)] {
            let sum = |of: fn(u32, u32, u32) -> u32| -> u32 {
                (0..parts).map(|number| of(points, parts, number)).sum()
            };
            assert_eq!(sum(points_of_part), points);
            assert_eq!(sum(inner_points_of_part), points - 2);
        }
    }
}
