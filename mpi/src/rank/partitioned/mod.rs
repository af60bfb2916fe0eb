//! Partitioned communication (MPI-4.1, Ch. 4): a message whose partitions the sender marks ready
//! one by one, and whose receiver may have cut it into another number of partitions.
//!
//! A send makes a context of its own and tells the receiver of it, and of its partitions, once: in
//! a message that the receive matches by communicator, sender, tag and the order of both calls.
//! From then on every partition of the sender is a message in that context, with its number as the
//! tag. The receive takes them as they come, a few at a time; as the sender ends a round before it
//! starts the next one, messages of two rounds do not mix.
//!
//! * `send`: the sender's side.
//! * `receive`: the receiver's side.

mod receive;
mod send;

use std::ops::Range;

use crate::error::{ErrorClass, Fault};
pub use receive::PartitionedReceive;
pub use send::PartitionedSend;

/// The most partitions of a message.
pub const MOST_PARTITIONS: u32 = 1 << 16;

/// The partitions of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    count: u32,
    bytes: u64,
}

impl Partitions {
    /// `count` partitions of `bytes` bytes each.
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if there are less than none or more than [`MOST_PARTITIONS`], and
    /// [`ErrorClass::Count`] if all bytes do not fit into 63 bits.
    pub fn new(count: i64, bytes: u64) -> Result<Self, Fault> {
        let known = u32::try_from(count).ok();
        let known = known.filter(|&count| count <= MOST_PARTITIONS);
        let count = known.ok_or_else(|| {
            let text = format!("{count} is not from 0 to {MOST_PARTITIONS}");
            Fault::new(ErrorClass::Arg, "partitions", text)
        })?;
        let all = u64::from(count).checked_mul(bytes);
        if all.is_none_or(|all| all > i64::MAX as u64) {
            let text = format!("{count} partitions of {bytes} bytes are too large");
            return Err(Fault::new(ErrorClass::Count, "count", text));
        }
        Ok(Self { count, bytes })
    }

    /// Bytes of all partitions.
    fn total(self) -> u64 {
        u64::from(self.count) * self.bytes
    }

    fn check(self, partition: i64) -> Result<u32, Fault> {
        let known = u32::try_from(partition).ok();
        known.filter(|&known| known < self.count).ok_or_else(|| {
            let text = format!("{partition} is not among {} partitions", self.count);
            Fault::new(ErrorClass::Arg, "partition", text)
        })
    }

    /// The partitions of `other`, which cut the same data, that have data of this one's.
    fn within(self, partition: u32, other: Self) -> Range<usize> {
        let (own, other) = (u64::from(self.count.max(1)), u64::from(other.count));
        let begin = u64::from(partition) * other / own;
        let end = ((u64::from(partition) + 1) * other).div_ceil(own);
        begin as usize..end as usize
    }

    fn to_bytes(self) -> Vec<u8> {
        let count = self.count.to_le_bytes();
        [&count[..], &self.bytes.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, bytes) = bytes.split_first_chunk()?;
        let (bytes, _) = bytes.split_first_chunk()?;
        Some(Self {
            count: u32::from_le_bytes(*count),
            bytes: u64::from_le_bytes(*bytes),
        })
    }
}

/// A call that an inactive request does not allow, or one that an active request does not.
fn wrong_state(text: &'static str) -> Fault {
    Fault::new(ErrorClass::Request, "request", text)
}
