//! Sets of a node's cores, a bit each.

/// Returns whether `core` is in `set`.
#[inline]
pub fn has(set: &[u64], core: u16) -> bool {
    set[usize::from(core / 64)] >> (core % 64) & 1 != 0
}

/// Puts `core` in.
#[inline]
pub fn insert(set: &mut [u64], core: u16) {
    set[usize::from(core / 64)] |= 1 << (core % 64);
}

/// Takes `core` out.
#[inline]
pub fn remove(set: &mut [u64], core: u16) {
    set[usize::from(core / 64)] &= !(1 << (core % 64));
}

/// Returns whether `core` is the only one.
pub fn is_only(set: &[u64], core: u16) -> bool {
    let of = |word: usize| u64::from(usize::from(core / 64) == word) << (core % 64);
    set.iter().enumerate().all(|(word, &bits)| bits == of(word))
}
