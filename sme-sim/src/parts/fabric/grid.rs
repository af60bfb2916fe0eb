//! Meshes and tori of two and three dimensions: a direct network, where every switch is part of an
//! engine.
//!
//! [`super::Topology`] hands its questions on to here. Positions are numbered row by row with x
//! fastest, and each has six link ports, `0..6` = x+, x-, y+, y-, z+, z-; a port at the border of a
//! mesh leads nowhere.

/// A mesh or torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grid {
    torus: bool,
    dimensions: u8,
    /// Positions along x, y, z; z is 1 in two dimensions.
    sizes: [u32; 3],
}

impl Grid {
    /// `sizes` positions wide, in at most three dimensions; the others are one wide.
    pub fn new(torus: bool, sizes: &[u32]) -> Self {
        let mut three = [1; 3];
        three
            .iter_mut()
            .zip(sizes)
            .for_each(|(own, &size)| *own = size);
        Self {
            torus,
            dimensions: sizes.len().min(3) as u8,
            sizes: three,
        }
    }

    pub fn is_torus(&self) -> bool {
        self.torus
    }

    /// Returns its sizes, as many as it has dimensions.
    pub fn dimensions(&self) -> &[u32] {
        &self.sizes[..usize::from(self.dimensions)]
    }

    /// Of x, y, z.
    pub fn sizes(&self) -> [u32; 3] {
        self.sizes
    }

    pub fn positions(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// Returns whether the ends of `dimension` are joined by a link of their own.
    pub fn wraps(&self, dimension: usize) -> bool {
        self.torus && self.sizes.get(dimension).is_some_and(|&size| size > 2)
    }

    /// Coordinates x, y, z of a position.
    pub fn coordinates(&self, position: u32) -> [u32; 3] {
        let [width, height, _] = self.sizes;
        [
            position % width,
            position / width % height,
            position / width / height,
        ]
    }

    /// The position at coordinates x, y, z; `None` outside.
    pub fn position(&self, coordinates: [u32; 3]) -> Option<u32> {
        let inside = coordinates
            .iter()
            .zip(&self.sizes)
            .all(|(at, size)| at < size);
        let [x, y, z] = coordinates;
        inside.then(|| x + self.sizes[0] * (y + self.sizes[1] * z))
    }

    /// The other end of a link port of a position that exists. Asked for each packet at each hop,
    /// so it divides no more than it must.
    #[inline]
    pub fn neighbour(&self, position: u32, port: u16) -> Option<(u32, u16)> {
        let [width, height, depth] = self.sizes;
        let (at, size, step) = match port / 2 {
            0 => (position % width, width, 1),
            1 => (position / width % height, height, width),
            2 => (position / (width * height), depth, width * height),
            _ => return None,
        };
        let there = match (port.is_multiple_of(2), self.wraps(usize::from(port / 2))) {
            (true, _) if at + 1 < size => position + step,
            (true, true) => position - at * step,
            (false, _) if at > 0 => position - step,
            (false, true) => position + (size - 1) * step,
            _ => return None,
        };
        Some((there, port ^ 1))
    }
}
