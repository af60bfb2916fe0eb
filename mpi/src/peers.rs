//! Records of the other ranks of a job, each made at its first use: in a large job a rank exchanges
//! messages with few of the others.

use rustc_hash::FxHashMap;

/// A record of type `T` for each rank, which begins as the default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers<T>(FxHashMap<u32, T>);

impl<T: Default> Peers<T> {
    /// The record of `rank`, made if there is none.
    pub(crate) fn of(&mut self, rank: u32) -> &mut T {
        self.0.entry(rank).or_default()
    }
}

impl<T> Peers<T> {
    /// The record of `rank`, if there is one.
    pub(crate) fn get(&self, rank: u32) -> Option<&T> {
        self.0.get(&rank)
    }

    /// All records, in no particular order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    /// The ranks whose records fit, in ascending order.
    pub(crate) fn ranks_where(&self, fits: impl Fn(&T) -> bool) -> Vec<u32> {
        let fitting = self.0.iter().filter(|(_, record)| fits(record));
        let mut ranks: Vec<u32> = fitting.map(|(&rank, _)| rank).collect();
        ranks.sort_unstable();
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_made_at_their_first_use() {
        let mut peers = Peers::<u8>::default();
        assert_eq!(peers.get(7), None);
        *peers.of(7) += 1;
        *peers.of(7) += 1;
        *peers.of(4_000_000_000) += 1;
        assert_eq!(*peers.of(3), 0);
        assert_eq!(peers.get(7), Some(&2));
        assert_eq!(peers.ranks_where(|&count| count > 0), [7, 4_000_000_000]);
        assert_eq!(peers.records().count(), 3);
    }
}
