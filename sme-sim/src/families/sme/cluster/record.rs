//! The record of a node's observer: spans, traffic.

use std::mem::offset_of;

use crate::families::sme::engine::ShortCount;
use crate::observe::spans::SpanRecord;
use crate::observe::traffic::Traffic;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};
use crate::parts::inline::ByChannel;
use crate::time::Time;

/// The record of one node. The counters of passing packets stand together.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Record {
    /// The spans of its threads.
    pub spans: SpanRecord,
    /// The bytes and packets of channels that `links` does not hold.
    more: Option<Box<ByChannel<(u64, u64), 1>>>,
    /// Traffic.
    pub traffic: Traffic,
    /// The time at which the last event happened.
    pub last: Time,
    /// Bytes and packets sent over links in the counted episodes, by port and channel.
    links: [[ShortCount; CHANNELS]; LINK_PORTS],
}

impl Record {
    /// The offset of the part that passing packets touch; it ends with the record.
    pub const NEAR_FROM: usize = offset_of!(Self, traffic);

    /// With nothing in it; `each` asks for every span of every thread.
    pub fn new(each: bool) -> Self {
        Self {
            spans: SpanRecord::new(each),
            traffic: Traffic::default(),
            last: Time::ZERO,
            more: None,
            links: Default::default(),
        }
    }

    /// Something has happened at `now`.
    #[inline]
    pub fn is_at(&mut self, now: Time) {
        self.last = self.last.max(now);
    }

    /// Counts a packet of `bytes` bytes that leaves over a link.
    #[inline]
    pub fn sent(&mut self, port: u16, channel: u8, bytes: u64) {
        self.traffic.link_bytes += bytes;
        let (packets, bytes) = match self.links.get_mut(usize::from(port)) {
            Some(link) => match link[usize::from(channel)].count(bytes) {
                None => return,
                Some(full) => full,
            },
            None => (1, bytes),
        };
        let more = (self.more).get_or_insert_default();
        let (sum, count) = more.at(port, channel);
        *sum += bytes;
        *count += packets;
    }

    /// Bytes and packets that left over a link port and virtual channel in the counted episodes.
    pub fn over_link(&self, port: u16, channel: u8) -> (u64, u64) {
        let near = self.links.get(usize::from(port));
        let (packets, bytes) = near.map_or((0, 0), |link| link[usize::from(channel)].sums());
        let more = self.more.as_ref();
        let more = more.and_then(|more| more.get(port, channel).copied());
        let (more_bytes, more_packets) = more.unwrap_or_default();
        (bytes + more_bytes, packets + more_packets)
    }

    /// Bytes on the heap, without what grows with the number of spans: the results.
    pub fn heap_bytes(&self) -> usize {
        let more = |more: &ByChannel<_, 1>| size_of_val(more) + more.heap_bytes();
        self.more.as_deref().map_or(0, more)
    }
}
