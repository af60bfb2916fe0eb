//! A ring of chunks, and the contents of a chunk.

use super::Segment;
use crate::channel::{bytes_of, words_of};

/// Words of the line at the begin of a chunk: the first has the counts of bytes, the others what is
/// short.
pub(super) const LINE_WORDS: usize = 8;

/// Bytes of short contents.
const SHORT_BYTES: usize = 8 * (LINE_WORDS - 1);

/// The bits of the first word that count the short contents; the others count the data behind the
/// line.
const SHORT_BITS: u32 = 8;

/// The ring from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    chunk_bytes: u64,
    chunks: u32,
    is_at_sender: bool,
}

/// A ring that there cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ring of {chunks} chunks of {chunk_bytes} bytes: it has 1 to {most_chunks} chunks of a \
     multiple of 64 bytes, at most {most_bytes}",
    most_chunks = Ring::MOST_CHUNKS,
    most_bytes = Ring::MOST_CHUNK_BYTES
)]
pub struct NoRing {
    /// Bytes of data of a chunk.
    pub chunk_bytes: u64,
    /// Chunks.
    pub chunks: u32,
}

impl Ring {
    /// Chunks of a ring at most: fewer than a flag can count.
    pub const MOST_CHUNKS: u32 = 64;

    /// Bytes of data of a chunk at most.
    pub const MOST_CHUNK_BYTES: u64 = 1 << 28;

    /// Of so many chunks, each of so many bytes of data. It is in the sender's part of memory, as
    /// Open MPI has it, or in the receiver's, where a machine whose nodes reach each other by slow
    /// loads has it.
    ///
    /// # Errors
    /// [`NoRing`]
    pub fn new(chunk_bytes: u64, chunks: u32, is_at_sender: bool) -> Result<Self, NoRing> {
        let has_bytes = (64..=Self::MOST_CHUNK_BYTES).contains(&chunk_bytes);
        let has_chunks = (1..=Self::MOST_CHUNKS).contains(&chunks);
        match has_bytes && has_chunks && chunk_bytes.is_multiple_of(64) {
            true => Ok(Self {
                chunk_bytes,
                chunks,
                is_at_sender,
            }),
            false => Err(NoRing {
                chunk_bytes,
                chunks,
            }),
        }
    }

    /// Open MPI's: eight chunks of 32 KiB (MPICH's have 64 KiB).
    pub fn of_open_mpi(is_at_sender: bool) -> Self {
        Self {
            chunk_bytes: 32 << 10,
            chunks: 8,
            is_at_sender,
        }
    }

    /// The same with another number of chunks, of another size.
    ///
    /// # Errors
    /// [`NoRing`]
    pub fn resized(self, chunk_bytes: u64, chunks: u32) -> Result<Self, NoRing> {
        Self::new(chunk_bytes, chunks, self.is_at_sender)
    }

    /// Bytes of data of a chunk.
    pub fn chunk_bytes(self) -> u64 {
        self.chunk_bytes
    }

    /// The number of its chunks.
    pub fn chunks(self) -> u32 {
        self.chunks
    }

    /// Returns whether it is in the sender's part of memory.
    pub fn is_at_sender(self) -> bool {
        self.is_at_sender
    }

    /// The number of the chunk at an offset.
    pub(super) fn chunk_at(self, offset: u64) -> u64 {
        offset / self.offset(1)
    }

    /// Its bytes, with the line at the begin of each chunk.
    pub fn bytes(self) -> u64 {
        self.offset(self.chunks)
    }

    /// The offset of a chunk.
    pub(super) fn offset(self, number: u32) -> u64 {
        u64::from(number) * (8 * LINE_WORDS as u64 + self.chunk_bytes)
    }

    /// Packs as much of `segments` as one chunk holds. The first is the header of a packet, or its
    /// rest; it goes into the line at the begin.
    pub(super) fn packed(self, segments: &[Segment<'_>]) -> Packed {
        let Some((header, data)) = segments.split_first() else {
            return Packed::default();
        };
        let header = &header.bytes[..header.bytes.len().min(SHORT_BYTES)];
        let is_whole = header.len() == segments[0].bytes.len();
        let mut left = match is_whole {
            true => self.chunk_bytes as usize,
            false => 0,
        };
        let mut taken = Vec::new();
        for segment in data {
            let part = &segment.bytes[..segment.bytes.len().min(left)];
            taken.extend_from_slice(part);
            left -= part.len();
        }
        let data = taken;
        let bytes = header.len() + data.len();
        let is_short = bytes <= SHORT_BYTES;
        let (short, data) = match is_short {
            true => ([header, &data].concat(), Vec::new()),
            false => (header.to_vec(), data),
        };
        let counts = short.len() as u64 | (data.len() as u64) << SHORT_BITS;
        let mut line = vec![counts];
        line.extend(words_of(&short));
        let data = words_of(&data);
        Packed { bytes, line, data }
    }
}

/// The contents of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    /// Bytes of the stream that it has.
    pub(super) bytes: usize,
    /// The words of its first line that say something.
    pub(super) line: Vec<u64>,
    /// The words behind the line.
    pub(super) data: Vec<u64>,
}

/// The short contents of a chunk with this first line, and how many bytes lie behind it.
pub(super) fn unpacked(line: &[u64; LINE_WORDS]) -> (Vec<u8>, u64) {
    let [counts, short @ ..] = line;
    let count = counts & ((1 << SHORT_BITS) - 1);
    (bytes_of(short, count), counts >> SHORT_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Chunk by chunk a stream is what it was, and no chunk is longer than it may be.
        #[test]
        fn a_stream_is_unpacked_as_it_was_packed(
            header in prop::collection::vec(any::<u8>(), 0..150),
            data in prop::collection::vec(any::<u8>(), 0..400),
            lines in 1u64..4,
        ) {
            let ring = Ring::new(64 * lines, 8, true).unwrap();
            let whole = [header.clone(), data.clone()].concat();
            let mut stream = Vec::new();
            while stream.len() < whole.len() {
                let sent = stream.len();
                let left = header.get(sent..).unwrap_or_default();
                let rest = &data[sent.saturating_sub(header.len())..];
                let segments = [left, rest].map(|bytes| Segment { bytes, address: None });
                let packed = ring.packed(&segments);
                prop_assert!(packed.bytes > 0);
                prop_assert!(packed.data.len() as u64 * 8 <= ring.chunk_bytes);
                let mut line = [u64::MAX; LINE_WORDS];
                line[..packed.line.len()].copy_from_slice(&packed.line);
                let (short, count) = unpacked(&line);
                stream.extend(short);
                stream.extend(bytes_of(&packed.data, count));
                prop_assert_eq!(stream.len(), sent + packed.bytes);
            }
            prop_assert_eq!(stream, whole);
        }
    }

    #[test]
    fn short_messages_take_one_line() {
        let segments = [&[1; 32][..], &[2; 24]].map(|bytes| Segment {
            bytes,
            address: None,
        });
        let packed = Ring::of_open_mpi(true).packed(&segments);
        assert_eq!(
            (packed.bytes, packed.line.len(), packed.data.len()),
            (56, 8, 0)
        );
        let segments = [&[1; 32][..], &[2; 25]].map(|bytes| Segment {
            bytes,
            address: None,
        });
        let packed = Ring::of_open_mpi(true).packed(&segments);
        assert_eq!(
            (packed.bytes, packed.line.len(), packed.data.len()),
            (57, 5, 4)
        );
    }

    #[test]
    fn rings_that_lose_or_hold_nothing_are_refused() {
        for (chunk_bytes, chunks) in [(0, 8), (96, 8), (1 << 29, 8), (64, 0), (64, 65)] {
            let refused = NoRing {
                chunk_bytes,
                chunks,
            };
            assert_eq!(Ring::new(chunk_bytes, chunks, true), Err(refused));
        }
    }
}
