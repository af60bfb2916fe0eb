//! The lowest layer: bytes from rank to rank. A channel knows neither messages nor packets.
//!
//! From each rank to each other one there is a stream of bytes, in order and without loss, with
//! room for some of them. The device above cuts the streams into packets. Every transfer costs
//! simulated time, and so does the library's own [work](Work): the channel accounts for both.

mod arena;
mod bells;
pub mod chunks;
pub mod layout;
pub mod queues;
pub mod sections;
pub mod shared;
pub mod transfers;

use std::future::Future;
use std::panic::Location;

use crate::processor::{Processor, Work};
use sme_memory::{Own, Place, Until};
use transfers::Transfers;

pub use crate::device::direct::Pending;

/// The longest message that is sent without asking where the channel does not say otherwise, in
/// bytes.
pub const EAGER_BYTES: u64 = 16 << 10;

/// Bytes that a channel moves, with their address in the rank's own simulated memory, on which the
/// time for copying them depends. Without an address they are in the core's first-level cache.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The simulated address of the first.
    pub address: Option<u64>,
}

/// The services that a machine gives to a rank of a job.
///
/// Every rank has a channel of its own. No future of a channel is polled after it was dropped, and
/// a rank asks for one thing at a time.
pub trait Channel: Send + Sync {
    /// The memory that ranks share beside the streams.
    type Area: Area;

    /// The rank's processor.
    type Processor: Processor;

    /// The transfers beside the streams.
    type Transfers: Transfers;

    /// The processor that the library's work keeps busy, and that hears of the rank's calls.
    fn processor(&self) -> &Self::Processor;

    /// Returns the shared memory for windows, if the machine has such.
    fn area(&self) -> Option<&Self::Area>;

    /// The transfers, if the channel has any.
    fn transfers(&self) -> Option<&Self::Transfers> {
        None
    }

    /// The server of the channel, if it has one, is to serve these sends.
    fn serves(&self, _sends: Pending) {}

    /// The longest message that is sent with its data and without asking, in bytes; without it all
    /// messages ask first, empty ones too.
    fn eager_bytes(&self) -> Option<u64> {
        Some(EAGER_BYTES)
    }

    /// This rank in the job, from 0.
    fn rank(&self) -> u32;

    /// Ranks of the job.
    fn ranks(&self) -> u32;

    /// Ranks, the last ones, that are outside the world: those of I/O subsystems.
    fn outside(&self) -> u32 {
        0
    }

    /// Ranks on each node, in the order of their numbers, which share its way to other nodes.
    fn per_node(&self) -> u32 {
        1
    }

    /// Appends to the stream to `to` as much of `segments`, which follow each other, as there is
    /// room for now; returns how many bytes those were, 0 if there is no room.
    fn write(&self, to: u32, segments: &[Segment<'_>]) -> impl Future<Output = usize> + Send;

    /// A rank from which bytes have arrived, if there is one. Ranks take turns: one that always has
    /// bytes does not keep others from being found.
    fn arrived(&self) -> impl Future<Output = Option<u32>> + Send;

    /// Takes at most `most` of the bytes that have arrived `from` a rank, and appends them to
    /// `into`; copying them to `address` is part of the cost. Returns how many those were.
    fn read(
        &self,
        from: u32,
        most: usize,
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> impl Future<Output = usize> + Send;

    /// Waits until bytes have arrived from any rank, or there is room in one of the streams to
    /// `full`. A report of a deadlock is told `site`, the place in the rank's program.
    fn wait(
        &self,
        full: &[u32],
        site: &'static Location<'static>,
    ) -> impl Future<Output = ()> + Send;

    /// The ranks that have not read yet what lies in shared memory for them.
    fn unread(&self) -> Vec<u32>;

    /// Waits until bytes have arrived from any rank, or one of [`Self::unread`] has read something.
    /// Where a stream has room for one piece, that is room in it.
    fn wait_until_read(&self, site: &'static Location<'static>) -> impl Future<Output = ()> + Send {
        async move {
            let unread = self.unread();
            self.wait(&unread, site).await;
        }
    }

    /// Charges the cost of all this work, each so many times.
    fn work(&self, work: &[(Work, u32)]) -> impl Future<Output = ()> + Send {
        self.processor().work(work)
    }

    /// The time, in nanoseconds. It advances from one call to the next, and does not begin at 0.
    fn now(&self) -> impl Future<Output = u64> + Send;

    /// The rank enters the MPI call of this name, with a peer and a number of bytes where the call
    /// has them: for timelines. Takes no simulated time.
    fn enters(
        &self,
        call: &'static str,
        peer: Option<u32>,
        bytes: u64,
    ) -> impl Future<Output = ()> + Send {
        self.processor().enters(call, peer, bytes)
    }

    /// The rank leaves the MPI call that it entered last.
    fn leaves(&self, call: &'static str) -> impl Future<Output = ()> + Send {
        self.processor().leaves(call)
    }
}

/// The caches on the way to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// None.
    Uncached,
    /// Those of this rank, which nothing keeps coherent.
    Cached,
}

/// Memory that all ranks share, with a lock for each. In it each rank has an area, near to it: the
/// node of a [`Place`] is the rank whose area it is in. Bytes that ranks wait for have seven bits.
///
/// A rank that sees a byte sees what its writer did before it set the byte; a rank that takes a
/// lock sees what the last holder did before it gave the lock back.
pub trait Area: Send + Sync {
    /// Bytes of each rank's area.
    fn bytes(&self) -> u64;

    /// Reads a byte.
    fn read(&self, at: Place, way: Way) -> impl Future<Output = u8> + Send;

    /// Writes a byte, below 128.
    fn set(&self, at: Place, value: u8, way: Way) -> impl Future<Output = ()> + Send;

    /// Reads a byte over and over until it holds `until`; returns it. A report of a deadlock is
    /// told `site`.
    fn wait(
        &self,
        at: Place,
        until: Until,
        way: Way,
        site: &'static Location<'static>,
    ) -> impl Future<Output = u8> + Send;

    /// Copies `bytes` there, past the caches. Others may not write to the same eight bytes
    /// meanwhile, unless all of these are written, or both hold the lock of the area's rank.
    fn put(&self, at: Place, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    /// Copies so many bytes from there, past the caches.
    fn get(&self, at: Place, count: u64) -> impl Future<Output = Vec<u8>> + Send;

    /// Takes the lock of `rank`.
    fn take(&self, rank: u32) -> impl Future<Output = ()> + Send;

    /// Gives it back.
    fn clear(&self, rank: u32) -> impl Future<Output = ()> + Send;
}

/// The words at an address: copies move whole ones.
pub(super) fn own(address: u64) -> Own {
    Own(address & !7)
}

/// Bytes as words, the last of which is filled up.
fn words_of(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

/// The first so many bytes of words.
fn bytes_of(words: &[u64], count: u64) -> Vec<u8> {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.take(count as usize).collect()
}

/// Gathers at most `most` bytes of `segments`, and the address of the first that has one.
fn gather(segments: &[Segment<'_>], most: usize, words: &mut Vec<u64>) -> (usize, Option<Own>) {
    let bytes = segments
        .iter()
        .flat_map(|segment| segment.bytes.iter().copied());
    let mut bytes = bytes.take(most).peekable();
    words.clear();
    words.push(0);
    let mut count = 0;
    while bytes.peek().is_some() {
        let mut word = [0; 8];
        for (place, byte) in word.iter_mut().zip(bytes.by_ref()) {
            *place = byte;
            count += 1;
        }
        words.push(u64::from_le_bytes(word));
    }
    words[0] = count as u64;
    let address = segments.iter().find_map(|segment| segment.address);
    (count, address.map(own))
}
