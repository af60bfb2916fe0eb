//! A set of a node's cores.

/// At most this many cores stand in one coherent domain.
pub const MOST_CORES: u32 = 64;

/// Cores of one node, numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSet(u64);

impl CoreSet {
    /// No core.
    pub const NONE: CoreSet = CoreSet(0);

    /// Just `core`.
    #[inline]
    pub fn only(core: u16) -> Self {
        Self(1 << core)
    }

    /// Whether `core` is in it.
    #[inline]
    pub fn has(self, core: u16) -> bool {
        self.0 >> core & 1 != 0
    }

    /// Puts `core` in.
    #[inline]
    pub fn insert(&mut self, core: u16) {
        self.0 |= 1 << core;
    }

    /// Takes `core` out.
    #[inline]
    pub fn remove(&mut self, core: u16) {
        self.0 &= !(1 << core);
    }

    /// Whether no core is in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These cores without those of `other`.
    #[inline]
    pub fn without(self, other: CoreSet) -> CoreSet {
        CoreSet(self.0 & !other.0)
    }

    /// The cores of both.
    #[inline]
    pub fn and(self, other: CoreSet) -> CoreSet {
        CoreSet(self.0 & other.0)
    }

    /// The cores, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let core = rest.trailing_zeros() as u16;
            rest &= rest - 1;
            Some(core)
        })
    }
}
