//! Words of 64 bits as the bytes of messages.

/// The bytes of words.
pub(crate) fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words that bytes are; what is left behind the last whole one says nothing.
pub(crate) fn from_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u64::from_le_bytes)
}

/// The first words that bytes are, and 0 for those that are missing.
pub(crate) fn first<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut all = from_bytes(bytes);
    std::array::from_fn(|_| all.next().unwrap_or_default())
}
