//! Data in blocks over ranks, and the way from one distribution to another: a world that has grown
//! or is to shrink needs it.

use std::ops::Range;
use std::panic::Location;

use super::{Communicator, Layout, Named};
use crate::buffer::{Buffer, BufferMut, Scalar};
use crate::channel::Channel;
use crate::error::{ErrorClass, Fault, MpiError};

/// The distribution of elements to the first ranks of a communicator: blocks of whole units, such
/// as the rows of a matrix, one behind the other, of which the first ones may have one unit more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Units.
    pub units: u64,
    /// Elements of each.
    pub unit: u64,
    /// The ranks that have some, at least 1.
    pub ranks: u32,
}

impl Blocks {
    /// The elements of rank `rank`; none of a rank behind those that have some.
    pub fn of(self, rank: u32) -> Range<u64> {
        let ranks = u64::from(self.ranks.max(1));
        let (each, longer) = (self.units / ranks, self.units % ranks);
        let begin = |rank: u64| {
            let before = rank.min(ranks);
            (each * before + before.min(longer)) * self.unit
        };
        let rank = u64::from(rank);
        begin(rank)..begin(rank + 1)
    }

    /// The parts of `own` that are in the blocks of so many ranks: how many elements, and how far
    /// from its begin.
    fn parts(self, own: &Range<u64>, ranks: u32) -> Layout {
        let part = |rank| {
            let block = self.of(rank);
            let (begin, end) = (block.start.max(own.start), block.end.min(own.end));
            match begin < end {
                true => ((end - begin) as i64, (begin - own.start) as i64),
                false => (0, 0),
            }
        };
        Layout::Counts((0..ranks).map(part).collect())
    }
}

impl<C: Channel> Communicator<'_, C> {
    /// Gives this rank its block `into` by the distribution `to`, of data of which it has its block
    /// `own` by the distribution `from`. All ranks call it (as an MPI_Alltoallv).
    ///
    /// # Errors
    /// [`ErrorClass::Count`] if the distributions have different units, or more ranks than there
    /// are, or `own` or `into` has another length than the block.
    #[track_caller]
    pub fn redistribute<'a, T: Scalar>(
        &'a self,
        own: &'a [T],
        into: &'a mut [T],
        (from, to): (Blocks, Blocks),
    ) -> impl Future<Output = Result<(), MpiError>> + Send + 'a {
        let site = Location::caller();
        async move {
            let (me, ranks) = (self.rank(), self.size());
            let (before, after) = (from.of(me), to.of(me));
            let lengths = [(own.len(), &before), (into.len(), &after)];
            let fits =
                |(length, block): &(usize, &Range<u64>)| *length as u64 == block.end - block.start;
            let is_same = (from.units, from.unit) == (to.units, to.unit);
            let wrong = match (is_same, lengths.iter().all(fits)) {
                _ if from.ranks.max(to.ranks) > ranks => Some("there are fewer ranks"),
                (false, _) => Some("the distributions have different units"),
                (_, false) => Some("a block has another length"),
                _ => None,
            };
            if let Some(text) = wrong {
                let call = Named::new("MPI_Alltoallv", site);
                let fault = Fault::new(ErrorClass::Count, "count", text);
                return self.whole(call, Err(fault)).await.map(drop);
            }
            let (out, come) = (to.parts(&before, ranks), from.parts(&after, ranks));
            self.alltoall_with(Buffer::from(own), BufferMut::from(into), &out, &come)
                .await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Blocks follow each other, and differ by one unit at most.
        #[test]
        fn blocks_are_the_whole(units in 0..1000_u64, unit in 0..5_u64, ranks in 1..40_u32) {
            let blocks = Blocks { units, unit, ranks };
            let mut end = 0;
            for rank in 0..ranks + 3 {
                let block = blocks.of(rank);
                prop_assert_eq!(block.start, end);
                end = block.end;
                let length = block.end - block.start;
                let all = u64::from(ranks);
                let expected = [units / all * unit, units.div_ceil(all) * unit];
                match rank < ranks {
                    true => prop_assert!(expected.contains(&length)),
                    false => prop_assert_eq!(length, 0),
                }
            }
            prop_assert_eq!(end, units * unit);
        }
    }
}
