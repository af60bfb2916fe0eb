//! The arguments of the constructors of datatypes (MPI-4.1, Sec. 5.1.13).

use std::mem;
use std::sync::Arc;

use super::{Combiner, Datatype, Node};

/// The arguments of the constructor that made a datatype, in the order of MPI_Type_get_contents. A
/// predefined datatype has none.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Counts, block lengths, displacements in elements, sizes; the order of an array as
    /// [`Order::code`](super::Order::code), distributions as
    /// [`Distribution::code`](super::Distribution::code), and
    /// [`DEFAULT_BLOCK`](super::DEFAULT_BLOCK); precisions and ranges, and
    /// [`UNASKED`](super::UNASKED).
    pub integers: Vec<i64>,
    /// Strides, displacements, bounds and extents in bytes.
    pub addresses: Vec<i64>,
    /// The arguments of a constructor that takes large counts which are counts there, in the place
    /// of those above.
    pub large_counts: Vec<i64>,
    /// Datatypes.
    pub types: Vec<Datatype>,
}

impl Contents {
    /// Makes those arguments large counts that the constructor's form with large counts takes as
    /// such.
    fn enlarge(&mut self, combiner: Combiner) {
        let integers = mem::take(&mut self.integers);
        // The number of integers in front and of the counts behind them that stay integers.
        let dimensions = |place: usize| integers.get(place).map_or(0, |&count| count as usize);
        let (counts, before) = match combiner {
            Combiner::Subarray => (3 * dimensions(0), 1),
            Combiner::Darray => (dimensions(2), 3),
            _ => (integers.len(), 0),
        };
        let is_count = |place: usize| (before..before + counts).contains(&place);
        for (place, integer) in integers.into_iter().enumerate() {
            match is_count(place) {
                true => self.large_counts.push(integer),
                false => self.integers.push(integer),
            }
        }
        self.large_counts.append(&mut self.addresses);
    }
}

impl Datatype {
    /// The same datatype as the constructor's form with large counts makes it
    /// (`MPI_Type_vector_c`, …): its contents are large counts.
    #[must_use]
    pub fn with_large_contents(&self) -> Self {
        let mut contents = self.0.contents.clone();
        contents.enlarge(self.0.combiner);
        Self(Arc::new(Node {
            contents,
            layout: self.0.layout.clone(),
            ..*self.0
        }))
    }
}
