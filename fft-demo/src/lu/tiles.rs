//! The private memory of a thread of the [`Lu`](super::Lu). Rows and widths count elements.

/// A thread's private copies of blocks, and of a row of one.
pub(super) struct Tiles {
    pub(super) stride: usize,
    pub(super) left: Tile,
    pub(super) right: Tile,
    /// A row.
    pub(super) own: Vec<f64>,
}

impl Tiles {
    pub(super) fn new(stride: usize) -> Self {
        let tile = || Tile {
            stride,
            elements: vec![0.0; stride * stride],
        };
        Self {
            stride,
            left: tile(),
            right: tile(),
            own: vec![0.0; stride],
        }
    }
}

/// A private copy of a block, row by row.
pub(super) struct Tile {
    stride: usize,
    elements: Vec<f64>,
}

impl Tile {
    pub(super) fn row(&self, row: usize, width: usize) -> &[f64] {
        &self.elements[row * self.stride..][..width]
    }

    pub(super) fn row_mut(&mut self, row: usize, width: usize) -> &mut [f64] {
        &mut self.elements[row * self.stride..][..width]
    }

    pub(super) fn split_at_row(&mut self, row: usize) -> (&mut [f64], &mut [f64]) {
        self.elements.split_at_mut(row * self.stride)
    }
}

/// `from` -= `factor` × `row`, in every column that both have.
pub(super) fn subtract(from: &mut [f64], factor: f64, row: &[f64]) {
    for (element, other) in from.iter_mut().zip(row) {
        *element -= factor * other;
    }
}
