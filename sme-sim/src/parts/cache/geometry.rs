//! The sizes of the two levels. Sizes in bytes of a machine file become sets and ways here, or an
//! error that says why it cannot; a [`Geometry`] that exists is one that a [`Cache`](super::Cache)
//! can have.

use thiserror::Error;

use super::LineSize;

/// More lines than any core's cache has; their numbers fit 32 bits.
const MOST_LINES: u64 = 1 << 28;

/// Sets and ways of the two levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    line: LineSize,
    l1_sets: u32,
    l1_ways: u32,
    l2_sets: u32,
    l2_ways: u32,
}

/// The reason why there is no such cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// A level without ways or without sets holds nothing.
    #[error("the {0} level of the cache is empty")]
    Empty(&'static str),
    /// The size is not a number of full sets.
    #[error(
        "the {level} level of the cache cannot have {bytes} bytes in {ways} ways: \
         that is not a whole number of sets of {ways} lines of {line_bytes} bytes"
    )]
    PartSet {
        /// The level.
        level: &'static str,
        /// Its size, in bytes.
        bytes: u64,
        /// Its ways.
        ways: u32,
        /// Bytes of a line.
        line_bytes: u64,
    },
    /// The sets are chosen by the low bits of the line number.
    #[error("the {level} level of the cache would have {sets} sets: not a power of two")]
    Sets {
        /// The level.
        level: &'static str,
        /// The number of sets that it would have.
        sets: u64,
    },
    /// The lines could not be numbered.
    #[error("the {level} level of the cache would have {lines} lines: more than {MOST_LINES}")]
    Huge {
        /// The level.
        level: &'static str,
        /// The number of lines that it would have.
        lines: u64,
    },
    /// The second level contains the first and cannot be smaller.
    #[error("the first level of the cache has {first} lines, the second, around it, {second}")]
    Outside {
        /// Lines of the first level.
        first: u64,
        /// Lines of the second level.
        second: u64,
    },
}

impl Geometry {
    /// The smallest there is: one line, of length `line`.
    pub fn one_line(line: LineSize) -> Self {
        Geometry {
            line,
            l1_sets: 1,
            l1_ways: 1,
            l2_sets: 1,
            l2_ways: 1,
        }
    }

    /// Two levels of lines of length `line`, each of so many bytes in so many ways. A core with one
    /// level gives it twice.
    ///
    /// # Errors
    /// If a level has no whole number of sets, or a number that is not a power of two, or if the
    /// first is larger than the second.
    pub fn new(
        line: LineSize,
        (l1_bytes, l1_ways): (u64, u32),
        (l2_bytes, l2_ways): (u64, u32),
    ) -> Result<Self, GeometryError> {
        let l1_sets = sets(line, "first", l1_bytes, l1_ways)?;
        let l2_sets = sets(line, "second", l2_bytes, l2_ways)?;
        let first = u64::from(l1_sets) * u64::from(l1_ways);
        let second = u64::from(l2_sets) * u64::from(l2_ways);
        if first > second {
            return Err(GeometryError::Outside { first, second });
        }
        Ok(Geometry {
            line,
            l1_sets,
            l1_ways,
            l2_sets,
            l2_ways,
        })
    }

    /// One level, of so many bytes in so many ways, which errors call `level`: `third`, say. It is
    /// given for both.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn single(
        line: LineSize,
        (bytes, ways): (u64, u32),
        level: &'static str,
    ) -> Result<Self, GeometryError> {
        let sets = sets(line, level, bytes, ways)?;
        Ok(Geometry {
            line,
            l1_sets: sets,
            l1_ways: ways,
            l2_sets: sets,
            l2_ways: ways,
        })
    }

    /// The length of a line.
    #[inline]
    pub const fn line(&self) -> LineSize {
        self.line
    }

    /// Sets of the first level, a power of two.
    pub const fn l1_sets(&self) -> u32 {
        self.l1_sets
    }

    /// Lines in a set of the first level.
    pub const fn l1_ways(&self) -> u32 {
        self.l1_ways
    }

    /// Sets of the second level, a power of two.
    pub const fn l2_sets(&self) -> u32 {
        self.l2_sets
    }

    /// Lines in a set of the second level.
    pub const fn l2_ways(&self) -> u32 {
        self.l2_ways
    }

    /// Lines that the cache can hold: those of the second level.
    pub const fn lines(&self) -> u32 {
        self.l2_sets * self.l2_ways
    }
}

fn sets(line: LineSize, level: &'static str, bytes: u64, ways: u32) -> Result<u32, GeometryError> {
    if ways == 0 || bytes == 0 {
        return Err(GeometryError::Empty(level));
    }
    let line_bytes = line.bytes();
    let set_bytes = u64::from(ways) * line_bytes;
    if !bytes.is_multiple_of(set_bytes) {
        return Err(GeometryError::PartSet {
            level,
            bytes,
            ways,
            line_bytes,
        });
    }
    let lines = bytes / line_bytes;
    if lines > MOST_LINES {
        return Err(GeometryError::Huge { level, lines });
    }
    let sets = bytes / set_bytes;
    match u32::try_from(sets) {
        Ok(count) if count.is_power_of_two() => Ok(count),
        _ => Err(GeometryError::Sets { level, sets }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_sets() {
        let line = LineSize::B64;
        let geometry = Geometry::new(line, (64 << 10, 2), (512 << 10, 16)).expect("a K10 core");
        assert_eq!((geometry.l1_sets(), geometry.l1_ways()), (512, 2));
        assert_eq!((geometry.l2_sets(), geometry.l2_ways()), (512, 16));
        assert_eq!(geometry.lines(), 8192);
        let line = LineSize::new(32).expect("lines of 32 bytes");
        let geometry = Geometry::new(line, (16 << 10, 4), (256 << 10, 4)).expect("a P54C core");
        assert_eq!((geometry.l1_sets(), geometry.l2_sets()), (128, 2048));
        assert_eq!(geometry.lines(), 8192);
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        use GeometryError::*;
        let (first, second) = ("first", "second");
        let (level, ways) = (first, 2);
        let cases = [
            ((0, 2, 512, 2), Empty(first)),
            ((512, 2, 512, 0), Empty(second)),
            (
                (100, 2, 512, 2),
                PartSet {
                    level,
                    bytes: 100,
                    ways,
                    line_bytes: 64,
                },
            ),
            ((384, 2, 512, 2), Sets { level, sets: 3 }),
            (
                (1024, 2, 512, 2),
                Outside {
                    first: 16,
                    second: 8,
                },
            ),
            (
                (u64::MAX / 128 * 128, 2, 512, 2),
                Huge {
                    level,
                    lines: u64::MAX / 128 * 2,
                },
            ),
        ];
        for ((l1, l1_ways, l2, l2_ways), error) in cases {
            let geometry = Geometry::new(LineSize::B64, (l1, l1_ways), (l2, l2_ways));
            assert_eq!(geometry, Err(error));
        }
        let third = Geometry::single(LineSize::B64, (384, 2), "third");
        let (level, sets) = ("third", 3);
        assert_eq!(third, Err(Sets { level, sets }));
    }
}
