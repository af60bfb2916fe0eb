//! Matrices of complex numbers in global memory, and the addresses of their points. A point is two
//! words, the real part and then the imaginary part, never in two granules. Called by the steps of
//! the [`Fft`](super::Fft); rows and columns count points, strides count words.

use std::ops::Range;

use sme_memory::{Memory, Place, Route, Word};

use crate::{Array, ArrayError, Placement, Pool};

/// Words of a point.
pub(super) const POINT_WORDS: u64 = 2;
const WORD_BYTES: u64 = 8;
const POINT_BYTES: u64 = POINT_WORDS * WORD_BYTES;
/// Words of a cache line.
const LINE_WORDS: u64 = 8;

/// A matrix, row by row, with padding behind each row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// From the beginning of one row to that of the next.
    stride: u64,
    pub(super) array: Array,
}

impl Matrix {
    /// A matrix of `rows` × `columns` points, each row filled up to whole lines and followed by
    /// `padding` words, an even number.
    pub(super) fn new(
        (rows, columns): (u64, u64),
        padding: u64,
        pool: &mut Pool,
        placement: Placement,
    ) -> Result<Self, ArrayError> {
        let stride = (columns * POINT_WORDS).next_multiple_of(LINE_WORDS) + padding;
        Ok(Self {
            rows,
            columns,
            stride,
            array: pool.array(rows * stride, placement)?,
        })
    }

    /// Returns the place of each point's real part, row by row; the imaginary part follows it.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        (0..self.rows).flat_map(move |row| {
            (0..self.columns)
                .map(move |column| self.array.place(row * self.stride + column * POINT_WORDS))
        })
    }

    /// The addresses of the points of a whole row.
    pub(super) fn row<M: Memory>(&self, memory: &M, route: Route, row: u64) -> Row {
        let mut addresses = Row::default();
        self.locate(memory, route, row, 0..self.columns, &mut addresses);
        addresses
    }

    /// Makes `addresses` those of the points of `row` in `columns`, which must not be empty. The
    /// lookup that each access would need is done once per granule.
    pub(super) fn locate<M: Memory>(
        &self,
        memory: &M,
        route: Route,
        row: u64,
        columns: Range<u64>,
        addresses: &mut Row,
    ) {
        let granule = self.array.granule_words();
        let begin = row * self.stride;
        let first = (begin + columns.start * POINT_WORDS) / granule;
        let last = (begin + columns.end * POINT_WORDS - 1) / granule;
        addresses.shift = (granule * WORD_BYTES).trailing_zeros();
        // Negative where the granules begin after the row.
        addresses.begin = begin.wrapping_sub(first * granule).wrapping_mul(WORD_BYTES);
        addresses.granules.clear();
        addresses.granules.extend(
            (first..=last)
                .map(|granule_index| self.array.word(memory, granule_index * granule, route).0),
        );
    }
}

/// The places of the points of (a part of) a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// The address of each granule that the part touches.
    granules: Vec<u64>,
    /// From the first granule's beginning to the row's, in bytes; wraps.
    begin: u64,
    shift: u32,
}

impl Row {
    /// The address of the real part of the point in `column`.
    #[inline]
    pub(super) fn point(&self, column: u64) -> Word {
        let byte = self.begin.wrapping_add(column * POINT_BYTES);
        let granule = self.granules[(byte >> self.shift) as usize];
        Word(granule + (byte & ((1 << self.shift) - 1)))
    }
}

/// The address of the imaginary part of the point whose real part is at `point`.
#[inline]
pub(super) const fn imaginary(point: Word) -> Word {
    Word(point.0 + WORD_BYTES)
}

/// Loads the point at an address. A macro, as [`store!`] is, and not a function: two loads stand
/// where it is called, so that a checker of the program names that place, and so that no future
/// of its own lies around them, which is polled again for every access and costs more than a hit.
macro_rules! load {
    ($memory:expr, $point:expr) => {{
        let point = $point;
        let real = $memory.load(point).await;
        let imaginary = $memory.load($crate::fft::matrix::imaginary(point)).await;
        num_complex::Complex64::new(f64::from_bits(real), f64::from_bits(imaginary))
    }};
}

/// Stores a value at the address of a point, by two stores.
macro_rules! store {
    ($memory:expr, $point:expr, $value:expr) => {{
        let (point, value): (_, num_complex::Complex64) = ($point, $value);
        $memory.store(point, value.re.to_bits()).await;
        let imaginary = $crate::fft::matrix::imaginary(point);
        $memory.store(imaginary, value.im.to_bits()).await;
    }};
}

pub(super) use {load, store};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sme_memory::native::{Native, Patience, Size};

    use super::*;

    proptest! {
        /// Against the table of the array, asked for every word.
        #[test]
        fn every_point_is_found_in_whichever_part_of_its_row(
            rows in 1u64..9, columns in 1u64..70, padding in 0u64..12, granule in 6u32..10,
            random: bool, cut in (0.0f64..1.0, 0.0f64..1.0),
        ) {
            let placement = if random { Placement::Random } else { Placement::Block };
            let mut pool = Pool::new(3, (64, 1 << 16), 1 << granule, 5)?;
            let matrix = Matrix::new((rows, columns), 2 * padding, &mut pool, placement)?;
            let size = Size { nodes: 3, flag_bytes: 0, word_bytes: 1 << 16 };
            let memory = Native::new(size, Patience::NONE).thread(1);
            let start = (cut.0 * columns as f64) as u64;
            let end = start + 1 + (cut.1 * (columns - start - 1) as f64) as u64;
            let mut part = Row::default();
            let mut places = matrix.places();
            for row in 0..rows {
                let whole = matrix.row(&memory, Route::Global, row);
                matrix.locate(&memory, Route::Global, row, start..end, &mut part);
                for column in 0..columns {
                    let index = row * matrix.stride + column * POINT_WORDS;
                    let expected = matrix.array.word(&memory, index, Route::Global);
                    let imaginary = matrix.array.word(&memory, index + 1, Route::Global);
                    prop_assert_eq!(whole.point(column), expected);
                    prop_assert_eq!(imaginary.0, expected.0 + 8);
                    prop_assert_eq!(places.next(), Some(matrix.array.place(index)));
                    if (start..end).contains(&column) {
                        prop_assert_eq!(part.point(column), expected);
                    }
                }
            }
            prop_assert_eq!(places.next(), None);
        }
    }
}
