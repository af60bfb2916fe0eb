//! Sets of a node's cores.
//!
//! Nearly all nodes have at most 64 cores: those stand in one word, and a set has more only once it
//! has held a core beyond. Every line of memory has three sets, [`Roles`], which have one place on
//! the heap between them, if any.

/// At most this many cores stand in one coherent domain.
pub const MOST_CORES: u32 = 1_023;

const WORD: u16 = u64::BITS as u16;
/// Words of a set of all cores but the first 64.
const HIGH_WORDS: usize = MOST_CORES.div_ceil(u64::BITS) as usize - 1;

/// Cores from 64 on, a bit each.
type High = [u64; HIGH_WORDS];

/// Cores of one node, numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct CoreSet {
    /// Cores below 64, a bit each.
    low: u64,
    /// The others; zeros where there is nothing.
    high: Option<Box<High>>,
}

impl CoreSet {
    /// No core.
    pub const NONE: CoreSet = CoreSet { low: 0, high: None };

    /// Returns whether `core` is in it.
    #[inline]
    pub fn has(&self, core: u16) -> bool {
        if core < WORD {
            return self.low >> core & 1 != 0;
        }
        let (word, bit) = place(core);
        self.high.as_ref().is_some_and(|high| high[word] & bit != 0)
    }

    /// Puts `core` in.
    #[inline]
    pub fn insert(&mut self, core: u16) {
        if core < WORD {
            self.low |= 1 << core;
            return;
        }
        let (word, bit) = place(core);
        self.high.get_or_insert_default()[word] |= bit;
    }

    /// Takes `core` out.
    #[inline]
    pub fn remove(&mut self, core: u16) {
        if core < WORD {
            self.low &= !(1 << core);
            return;
        }
        let (word, bit) = place(core);
        if let Some(high) = &mut self.high {
            high[word] &= !bit;
        }
    }

    /// Returns whether no core is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high().iter().all(|&word| word == 0)
    }

    /// Returns whether every core in it is below 64.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.high().iter().all(|&word| word == 0)
    }

    /// Puts the cores of `other` in.
    #[inline]
    pub fn join(&mut self, other: &CoreSet) {
        self.low |= other.low;
        if let Some(other) = &other.high {
            let high = self.high.get_or_insert_default();
            (high.iter_mut().zip(other.iter())).for_each(|(word, other)| *word |= other);
        }
    }

    /// Writes the cores into `room`, lowest first, as far as it goes; how many.
    #[inline]
    pub fn list(&self, room: &mut [u16]) -> usize {
        let mut count = 0;
        let mut first = 0;
        for &word in std::iter::once(&self.low).chain(self.high()) {
            let mut rest = word;
            while rest != 0
                && let Some(place) = room.get_mut(count)
            {
                *place = first + rest.trailing_zeros() as u16;
                rest &= rest - 1;
                count += 1;
            }
            first += WORD;
        }
        count
    }

    /// The cores, lowest first.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        let mut cores = vec![0; MOST_CORES as usize];
        let count = self.list(&mut cores);
        cores.truncate(count);
        cores.into_iter()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.high.as_ref().map_or(0, |high| size_of_val(&**high))
    }

    #[inline]
    fn high(&self) -> &[u64] {
        self.high.as_ref().map_or(&[], |high| high.as_slice())
    }
}

/// The role of a core for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The core has a copy that is kept coherent.
    Holds,
    /// The core spins on its copy.
    Spins,
    /// The core has a read under way.
    Fetches,
}

const ROLES: usize = 3;

/// The roles of cores for a line.
#[derive(Debug, Default)]
pub struct Roles {
    /// Of each role the cores below 64, a bit each.
    low: [u64; ROLES],
    /// The others; zeros where there is nothing.
    high: Option<Box<[High; ROLES]>>,
}

impl Roles {
    /// Returns whether `core` has this role.
    #[inline]
    pub fn has(&self, role: Role, core: u16) -> bool {
        if core < WORD {
            return self.low[role as usize] >> core & 1 != 0;
        }
        let (word, bit) = place(core);
        self.high(role).is_some_and(|high| high[word] & bit != 0)
    }

    /// Gives `core` this role.
    #[inline]
    pub fn insert(&mut self, role: Role, core: u16) {
        if core < WORD {
            self.low[role as usize] |= 1 << core;
            return;
        }
        let (word, bit) = place(core);
        self.high.get_or_insert_default()[role as usize][word] |= bit;
    }

    /// `core` has this role no longer.
    #[inline]
    pub fn remove(&mut self, role: Role, core: u16) {
        if core < WORD {
            self.low[role as usize] &= !(1 << core);
            return;
        }
        let (word, bit) = place(core);
        if let Some(high) = &mut self.high {
            high[role as usize][word] &= !bit;
        }
    }

    /// Returns whether no core has this role.
    #[inline]
    pub fn is_empty(&self, role: Role) -> bool {
        self.low[role as usize] == 0 && self.high(role).is_none_or(|high| *high == [0; HIGH_WORDS])
    }

    /// Returns whether `core` has this role, and no other core has it.
    #[inline]
    pub fn is_only(&self, role: Role, core: u16) -> bool {
        let low = self.low[role as usize];
        if core < WORD {
            return low == 1 << core && self.high(role).is_none_or(|high| *high == [0; HIGH_WORDS]);
        }
        let (word, bit) = place(core);
        let mut only = [0; HIGH_WORDS];
        only[word] = bit;
        low == 0 && self.high(role) == Some(&only)
    }

    /// Those who have this role.
    #[inline]
    pub fn with(&self, role: Role) -> CoreSet {
        let high = self.high(role).filter(|high| **high != [0; HIGH_WORDS]);
        CoreSet {
            low: self.low[role as usize],
            high: high.map(|high| Box::new(*high)),
        }
    }

    /// Takes this role from all cores, and returns those that had it.
    #[inline]
    pub fn take(&mut self, role: Role) -> CoreSet {
        let had = self.with(role);
        self.low[role as usize] = 0;
        if let Some(high) = &mut self.high {
            high[role as usize] = [0; HIGH_WORDS];
        }
        had
    }

    /// Those of `cores` who have this role.
    #[inline]
    pub fn among(&self, role: Role, mut cores: CoreSet) -> CoreSet {
        cores.low &= self.low[role as usize];
        match (&mut cores.high, self.high(role)) {
            (Some(cores), Some(high)) => {
                (cores.iter_mut().zip(high)).for_each(|(word, high)| *word &= high);
            }
            (cores, _) => *cores = None,
        }
        cores
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.high.as_ref().map_or(0, |high| size_of_val(&**high))
    }

    #[inline]
    fn high(&self, role: Role) -> Option<&High> {
        self.high.as_ref().map(|high| &high[role as usize])
    }
}

/// The word of a [`High`] and the bit in it that stand for `core`.
#[inline]
fn place(core: u16) -> (usize, u64) {
    (usize::from(core / WORD) - 1, 1 << (core % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ALL: [Role; ROLES] = [Role::Holds, Role::Spins, Role::Fetches];

    /// A change of the cores of a role, or of those of one and others.
    #[derive(Clone, Debug)]
    enum Act {
        Insert(u16),
        Remove(u16),
        Take,
        Join(Vec<u16>),
    }

    /// Cores of small nodes, on both sides of each word's edge, and all others.
    fn core() -> impl Strategy<Value = u16> {
        let last = MOST_CORES as u16 - 1;
        let edge = (1..=last / WORD).prop_flat_map(|word| word * WORD - 1..=word * WORD);
        prop_oneof![0..WORD, edge, 0..=last, Just(last)]
    }

    fn cores() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(core(), 0..40)
    }

    fn acts() -> impl Strategy<Value = Vec<(Role, Act)>> {
        let act = prop_oneof![
            6 => core().prop_map(Act::Insert),
            4 => core().prop_map(Act::Remove),
            1 => Just(Act::Take),
            1 => cores().prop_map(Act::Join),
        ];
        let role = (0..ROLES).prop_map(|role| ALL[role]);
        prop::collection::vec((role, act), 0..60)
    }

    fn set_of(cores: &[u16]) -> CoreSet {
        let mut set = CoreSet::NONE;
        cores.iter().for_each(|&core| set.insert(core));
        set
    }

    fn same(set: &CoreSet, plain: &BTreeSet<u16>) -> Result<(), TestCaseError> {
        prop_assert!(set.iter().eq(plain.iter().copied()), "{set:?} {plain:?}");
        prop_assert_eq!(set.is_empty(), plain.is_empty());
        prop_assert_eq!(set.is_low(), plain.iter().all(|&core| core < WORD));
        Ok(())
    }

    proptest! {
        #[test]
        fn roles_are_three_sets(acts in acts(), some in cores(), asked in core()) {
            let mut roles = Roles::default();
            let mut plain: [BTreeSet<u16>; ROLES] = Default::default();
            for (role, act) in acts {
                let cores = &mut plain[role as usize];
                match act {
                    Act::Insert(core) => {
                        roles.insert(role, core);
                        cores.insert(core);
                    }
                    Act::Remove(core) => {
                        roles.remove(role, core);
                        cores.remove(&core);
                    }
                    Act::Take => same(&roles.take(role), &std::mem::take(cores))?,
                    Act::Join(more) => {
                        more.iter().for_each(|&core| roles.insert(role, core));
                        cores.extend(more);
                    }
                }
                for role in ALL {
                    let cores = &plain[role as usize];
                    same(&roles.with(role), cores)?;
                    prop_assert_eq!(roles.is_empty(role), cores.is_empty());
                    let among = roles.among(role, set_of(&some));
                    let plain_among: BTreeSet<u16> = some.iter().copied().collect();
                    same(&among, &(&plain_among & cores))?;
                    for &core in [&asked].into_iter().chain(cores.first()).chain(cores.last()) {
                        prop_assert_eq!(roles.has(role, core), cores.contains(&core));
                        prop_assert_eq!(roles.is_only(role, core), *cores == [core].into());
                    }
                }
            }
        }

        #[test]
        fn a_set_of_cores_is_one(acts in acts(), asked in core()) {
            let (mut set, mut plain) = (CoreSet::NONE, BTreeSet::new());
            for (_, act) in acts {
                match act {
                    Act::Insert(core) => {
                        set.insert(core);
                        plain.insert(core);
                    }
                    Act::Remove(core) => {
                        set.remove(core);
                        plain.remove(&core);
                    }
                    Act::Take => (set, plain) = (CoreSet::NONE, BTreeSet::new()),
                    Act::Join(cores) => {
                        set.join(&set_of(&cores));
                        plain.extend(cores);
                    }
                }
                same(&set, &plain)?;
                for &core in [&asked].into_iter().chain(plain.first()).chain(plain.last()) {
                    prop_assert_eq!(set.has(core), plain.contains(&core));
                }
            }
        }
    }

    #[test]
    fn small_nodes_need_no_heap() {
        let mut roles = Roles::default();
        for role in ALL {
            (0..WORD).for_each(|core| roles.insert(role, core));
            roles.remove(role, WORD);
            assert!(!roles.is_only(role, WORD) && !roles.has(role, WORD));
            assert_eq!(roles.with(role).iter().count(), 64);
            assert_eq!(roles.take(role).heap_bytes(), 0);
        }
        assert_eq!(roles.heap_bytes(), 0);
    }
}
