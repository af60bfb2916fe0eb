//! The matrix on the grid of ranks: blocks of `nb` rows and columns, dealt out in turn
//! (block-cyclic distribution).

/// A distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub n: usize,
    pub nb: usize,
    /// Rows and columns of the grid.
    pub p: usize,
    pub q: usize,
}

impl Grid {
    /// The place along one dimension of `places` that has an index, in blocks of `nb`.
    pub fn owner(index: usize, nb: usize, places: usize) -> usize {
        index / nb % places
    }

    /// Returns the number of indices below `end` that a place has; so its first local index from
    /// `end` on.
    pub fn count(end: usize, nb: usize, place: usize, places: usize) -> usize {
        let (blocks, rest) = (end / nb, end % nb);
        let whole = blocks / places * nb;
        let of_round = blocks % places;
        whole
            + match place.cmp(&of_round) {
                std::cmp::Ordering::Less => nb,
                std::cmp::Ordering::Equal => rest,
                std::cmp::Ordering::Greater => 0,
            }
    }

    /// The local index of an index at its owner.
    pub fn local(index: usize, nb: usize, places: usize) -> usize {
        index / (nb * places) * nb + index % nb
    }

    /// The index that is this local one of a place.
    pub fn global(local: usize, nb: usize, place: usize, places: usize) -> usize {
        (local / nb * places + place) * nb + local % nb
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_index_has_one_owner(end in 0usize..200, nb in 1usize..20, places in 1usize..7) {
            let counts = (0..places).map(|place| Grid::count(end, nb, place, places));
            prop_assert_eq!(counts.sum::<usize>(), end);
            for index in 0..end {
                let owner = Grid::owner(index, nb, places);
                let local = Grid::local(index, nb, places);
                prop_assert_eq!(Grid::global(local, nb, owner, places), index);
                prop_assert_eq!(Grid::count(index, nb, owner, places), local);
            }
        }
    }
}
