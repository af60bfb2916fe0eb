//! A channel through rings of chunks in coherent memory, as Open MPI and MPICH have within a node:
//! each pair of ranks has a ring for each direction, which the sender fills and the receiver
//! empties while the sender fills the next chunk. Two flags of a pair count, modulo 128, the chunks
//! that were filled and those that were emptied; `bells` say which flags to look at.
//!
//! A chunk has a line for the header of a packet, and the data behind it, so that whole lines of
//! data are copied to whole lines. Short data have room in the header's line.

mod ring;

use std::collections::VecDeque;
use std::panic::Location;

use parking_lot::Mutex;
use sme_memory::{
    AnyFlag, Blocks, Cacheable, Flag, Place, Route, Tagged, TestAndSet, Timer, Until,
};

use super::bells::Bells;
use super::layout::{Layout, Level, NoRoom, Part, Row};
use super::shared::Shared;
use super::transfers::NoTransfers;
use super::{Channel, EAGER_BYTES, Segment, own};
use crate::peers::Peers;
use crate::processor::Processor;
use ring::{LINE_WORDS, Packed};
pub use ring::{NoRing, Ring};

/// Counts of a flag: it has seven bits.
const COUNTS: u8 = 128;

/// The channel of one rank.
#[derive(Debug)]
pub struct Chunks<M, P> {
    memory: M,
    processor: P,
    me: u32,
    ring: Ring,
    layout: Layout,
    rings: Row,
    levels: Vec<Level>,
    area: Option<Shared<M, P>>,
    eager_bytes: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    to: Peers<Outgoing>,
    from: Peers<Incoming>,
    /// Ranks with unread bytes, in the order of their turns.
    ready: VecDeque<u32>,
}

/// The ring to a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    /// Chunks that were filled, and how many of them are known to be empty again.
    filled: u8,
    emptied: u8,
    /// The chunk that is filled next.
    next: u32,
}

/// The ring from a rank.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Chunks that are known to be filled, and how many of them were emptied.
    filled: u8,
    emptied: u8,
    /// The chunk that is emptied next.
    next: u32,
    /// The rest of it, if its header has been read.
    open: Option<Open>,
}

/// The rest of a chunk.
#[derive(Clone, Debug)]
struct Open {
    /// Bytes that lay in its first line.
    short: VecDeque<u8>,
    /// Bytes behind that line, and how many of them were read.
    data: u64,
    read: u64,
}

impl Incoming {
    fn has_bytes(&self) -> bool {
        self.open.is_some() || self.filled != self.emptied
    }
}

impl Outgoing {
    fn under_way(&self) -> u32 {
        u32::from(self.filled.wrapping_sub(self.emptied) % COUNTS)
    }
}

/// The name of the variable at `place` of a channel with such rings, for reports.
pub fn variable(layout: &Layout, ring: Ring, place: Place) -> Option<String> {
    let (rank, part) = layout.part(place)?;
    Some(match part {
        Part::Bell => format!("rank {rank}'s bell"),
        Part::Full(other) => format!("rank {other}'s count of filled chunks at rank {rank}"),
        Part::Read(other) => format!("rank {other}'s count of emptied chunks at rank {rank}"),
        Part::Section(other, offset) => {
            let (from, to) = match ring.is_at_sender() {
                true => (rank, other),
                false => (other, rank),
            };
            let chunk = ring.chunk_at(offset);
            format!("chunk {chunk} of rank {from}'s ring to rank {to}")
        }
        Part::Registered => return None,
    })
}

impl<M: Blocks + Cacheable, P> Chunks<M, P> {
    /// Makes the channel of rank `me`, which runs on the node that `layout` says; each section of
    /// that has room for the ring.
    ///
    /// # Errors
    /// As [`Layout::check`], and if a section has less room.
    pub fn new(
        memory: M,
        processor: P,
        me: u32,
        (layout, ring): (Layout, Ring),
    ) -> Result<Self, NoRoom> {
        layout.check()?;
        let Layout { ranks, bytes, .. } = layout;
        let rings = layout.sections().filter(|row| row.bytes >= ring.bytes());
        Ok(Self {
            memory,
            processor,
            me,
            ring,
            layout,
            rings: rings.ok_or(NoRoom { ranks, bytes })?,
            levels: layout.levels(),
            area: None,
            eager_bytes: Some(EAGER_BYTES),
            state: Mutex::new(State {
                to: Peers::default(),
                from: Peers::default(),
                ready: VecDeque::new(),
            }),
        })
    }

    /// The same with shared memory beside it, if there is any: `area`.
    #[must_use]
    pub fn with_area(self, area: Option<Shared<M, P>>) -> Self {
        Self { area, ..self }
    }

    /// The same with another longest message that is sent with its data, or none.
    #[must_use]
    pub fn with_eager(self, eager_bytes: Option<u64>) -> Self {
        Self {
            eager_bytes,
            ..self
        }
    }

    fn flag(&self, place: Place) -> Flag {
        self.memory.flag(place, Route::Nearest)
    }

    fn bells(&self) -> Bells<'_, M> {
        Bells {
            memory: &self.memory,
            layout: &self.layout,
            levels: &self.levels,
            me: self.me,
        }
    }

    /// The place of a chunk of the ring from one rank to another.
    fn chunk(&self, (from, to): (u32, u32), number: u32) -> Place {
        let (of, other) = match self.ring.is_at_sender() {
            true => (from, to),
            false => (to, from),
        };
        let ring = self.layout.section(self.rings, (of, other));
        ring.plus(self.ring.offset(number))
    }

    /// Takes note of all counts whose bells ring.
    async fn hears(&self) {
        for other in self.bells().silence().await {
            let filled = self.flag(self.layout.full(self.me, other));
            let filled = self.memory.read(filled).await;
            let emptied = self.flag(self.layout.read_by(self.me, other));
            let emptied = self.memory.read(emptied).await;
            let mut state = self.state.lock();
            state.to.of(other).emptied = emptied;
            let from = state.from.of(other);
            from.filled = filled;
            if from.has_bytes() && !state.ready.contains(&other) {
                state.ready.push_back(other);
            }
        }
    }

    fn has_room(&self, to: u32) -> bool {
        self.state.lock().to.of(to).under_way() < self.ring.chunks()
    }

    /// Returns whether it knows of bytes that have not been read.
    fn has_bytes(&self) -> bool {
        !self.state.lock().ready.is_empty()
    }

    /// Fills the next chunk to a rank.
    async fn fills(&self, to: u32, packed: Packed, address: Option<u64>) {
        let number = self.state.lock().to.of(to).next;
        let at = self.chunk((self.me, to), number);
        let first = self.memory.word(at, Route::Nearest);
        let address = address.map(own);
        let short_from = address.filter(|_| packed.data.is_empty());
        self.memory.put(first, &packed.line, short_from).await;
        if !packed.data.is_empty() {
            let behind = at.plus(8 * LINE_WORDS as u64);
            let behind = self.memory.word(behind, Route::Nearest);
            self.memory.put(behind, &packed.data, address).await;
        }
        self.memory.fence().await;
        let filled = {
            let mut state = self.state.lock();
            let outgoing = state.to.of(to);
            outgoing.next = (outgoing.next + 1) % self.ring.chunks();
            outgoing.filled = (outgoing.filled + 1) % COUNTS;
            outgoing.filled
        };
        let full = self.flag(self.layout.full(to, self.me));
        self.memory.set(full, filled).await;
        self.bells().ring(to).await;
    }

    /// Reads the first line of the next chunk from a rank.
    async fn opens(&self, from: u32) -> Open {
        let number = self.state.lock().from.of(from).next;
        let at = self.chunk((from, self.me), number);
        let mut line = [0; LINE_WORDS];
        let first = self.memory.word(at, Route::Nearest);
        self.memory.get(first, &mut line, None).await;
        let (short, data) = ring::unpacked(&line);
        Open {
            short: short.into(),
            data,
            read: 0,
        }
    }

    /// Reads so many bytes behind the first line.
    async fn reads_data(
        &self,
        from: u32,
        (read, count): (u64, u64),
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) {
        let number = self.state.lock().from.of(from).next;
        let at = self.chunk((from, self.me), number);
        let (first, end) = (read / 8, (read + count).div_ceil(8));
        let mut words = vec![0; (end - first) as usize];
        let behind = at.plus(8 * (LINE_WORDS as u64 + first));
        let behind = self.memory.word(behind, Route::Nearest);
        self.memory.get(behind, &mut words, address.map(own)).await;
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        into.extend(bytes.skip((read % 8) as usize).take(count as usize));
    }

    /// The chunk from a rank is empty.
    async fn empties(&self, from: u32) {
        let emptied = {
            let mut state = self.state.lock();
            let incoming = state.from.of(from);
            incoming.next = (incoming.next + 1) % self.ring.chunks();
            incoming.emptied = (incoming.emptied + 1) % COUNTS;
            incoming.emptied
        };
        let read = self.flag(self.layout.read_by(from, self.me));
        self.memory.set(read, emptied).await;
        self.bells().ring(from).await;
    }
}

impl<M: Blocks + Cacheable, P: Processor> Chunks<M, P> {
    /// Waits until bytes have come, or the flags whose bells ring make `is_done` true.
    async fn waits_for(&self, site: &'static Location<'static>, is_done: impl Fn() -> bool) {
        self.processor.waits(site).await;
        // A channel of at least one rank has bells.
        let Some(top) = self.bells().top() else {
            return;
        };
        loop {
            self.hears().await;
            if self.has_bytes() || is_done() {
                return;
            }
            self.memory.wait(top, Until::IsNot(0)).await;
        }
    }
}

impl<M, P> Channel for Chunks<M, P>
where
    M: AnyFlag + Blocks + Cacheable + Tagged + TestAndSet + Timer,
    P: Processor,
{
    type Area = Shared<M, P>;
    type Processor = P;
    type Transfers = NoTransfers;

    fn eager_bytes(&self) -> Option<u64> {
        self.eager_bytes
    }

    fn processor(&self) -> &P {
        &self.processor
    }

    fn area(&self) -> Option<&Self::Area> {
        self.area.as_ref()
    }

    fn rank(&self) -> u32 {
        self.me
    }

    fn ranks(&self) -> u32 {
        self.layout.ranks
    }

    fn per_node(&self) -> u32 {
        self.layout.per_node
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        if !self.has_room(to) {
            self.hears().await;
            if !self.has_room(to) {
                return 0;
            }
        }
        let packed = self.ring.packed(segments);
        let count = packed.bytes;
        if count > 0 {
            let address = segments.iter().find_map(|segment| segment.address);
            self.fills(to, packed, address).await;
        }
        count
    }

    async fn arrived(&self) -> Option<u32> {
        if !self.has_bytes() {
            self.hears().await;
        }
        self.state.lock().ready.front().copied()
    }

    async fn read(
        &self,
        from: u32,
        most: usize,
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> usize {
        let open = self.state.lock().from.of(from).open.take();
        let mut open = match open {
            Some(open) => open,
            None => self.opens(from).await,
        };
        let short = most.min(open.short.len());
        into.extend(open.short.drain(..short));
        let data = match open.short.is_empty() {
            true => (most - short).min((open.data - open.read) as usize),
            false => 0,
        };
        if data > 0 {
            let part = (open.read, data as u64);
            let address = address.map(|address| address.saturating_add(short as u64));
            self.reads_data(from, part, address, into).await;
            open.read += data as u64;
        }
        let is_empty = open.short.is_empty() && open.read == open.data;
        if is_empty {
            self.empties(from).await;
        }
        let mut state = self.state.lock();
        let incoming = state.from.of(from);
        incoming.open = (!is_empty).then_some(open);
        let has_bytes = incoming.has_bytes();
        state.ready.retain(|&sender| sender != from);
        if has_bytes {
            state.ready.push_back(from);
        }
        short + data
    }

    async fn wait(&self, full: &[u32], site: &'static Location<'static>) {
        if !self.has_bytes() {
            let has_room = || full.iter().any(|&to| self.has_room(to));
            self.waits_for(site, has_room).await;
        }
    }

    async fn wait_until_read(&self, site: &'static Location<'static>) {
        // The rank fills no chunk meanwhile.
        let under_way = || -> u32 {
            let state = self.state.lock();
            state.to.records().map(Outgoing::under_way).sum()
        };
        let before = under_way();
        self.waits_for(site, || under_way() < before).await;
    }

    fn unread(&self) -> Vec<u32> {
        let state = self.state.lock();
        state.to.ranks_where(|outgoing| outgoing.under_way() > 0)
    }

    async fn now(&self) -> u64 {
        self.memory.now().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_names_of_what_is_there() {
        for is_at_sender in [false, true] {
            let ring = Ring::new(128, 3, is_at_sender).expect("a ring");
            let layout = Layout::of_rings((3, 2), 64, ring.bytes());
            let name = |place| variable(&layout, ring, place);
            let ends = match is_at_sender {
                true => (0, 1),
                false => (1, 0),
            };
            let rings = layout.sections().expect("room for rings");
            let chunk = layout.section(rings, ends).plus(ring.offset(2) + 72);
            assert_eq!(
                name(chunk).as_deref(),
                Some("chunk 2 of rank 0's ring to rank 1")
            );
            let filled = layout.full(1, 0);
            assert_eq!(
                name(filled).as_deref(),
                Some("rank 0's count of filled chunks at rank 1")
            );
            let emptied = layout.read_by(2, 1);
            assert_eq!(
                name(emptied).as_deref(),
                Some("rank 1's count of emptied chunks at rank 2")
            );
            let bell = layout.bell(2, layout.levels()[0], 0);
            assert_eq!(name(bell).as_deref(), Some("rank 2's bell"));
        }
    }
}
