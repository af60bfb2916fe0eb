//! RCKMPI's channel SCCMPB: through message passing buffers. Each rank's buffer has a section for every
//! sender, which writes pieces of its stream there; a flag says that a section is full, and one in the
//! sender's own buffer that it has been read. So a rank polls nothing but its own buffer.
//!
//! In the buffer of rank r lie, for each other rank s, two flags eight bytes apart, written by s: *full*, the
//! words of the piece in its section, and *read*, that s has read what r wrote to it. Behind the flags are
//! the sections, in whole lines. A piece is a word with its number of bytes, and the bytes.

use std::panic::Location;

use parking_lot::Mutex;
use sme_memory::{
    AnyFlag, Blocks, Flag, Flags, Memory, Own, Place, Route, Tagged, TestAndSet, Timer, Until, Word,
};

use super::shared::Shared;
use super::{Channel, Processor, Segment, Work};

/// Bytes of a line.
const LINE: u64 = 32;

/// Lines of a section at most.
const MOST_LINES: u64 = 31;

/// Bytes between two flags.
const APART: u64 = 8;

/// Buffers without room for a section of one line for each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("buffers of {bytes} bytes have no room for sections of {ranks} ranks")]
pub struct NoRoom {
    /// The ranks.
    pub ranks: u32,
    /// Bytes of each buffer.
    pub bytes: u64,
}

/// The channel of one rank, which runs on the node of its number.
#[derive(Debug)]
pub struct Buffers<M, P> {
    memory: M,
    processor: P,
    me: u32,
    ranks: u32,
    /// Bytes of a section.
    section: u64,
    area: Option<Shared<M, P>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By receiver: the section there is known to be free.
    is_free: Vec<bool>,
    /// By sender: what has been taken out of its section and not asked for yet.
    pending: Vec<Vec<u8>>,
    /// The sender at which it looked last.
    looked: u32,
    words: Vec<u64>,
}

/// Bytes of a section, if there is room for any.
fn section(ranks: u32, bytes: u64) -> Option<u64> {
    let flags = (2 * APART * u64::from(ranks)).next_multiple_of(LINE);
    let section = bytes.checked_sub(flags)? / u64::from(ranks) / LINE * LINE;
    // A flag has seven bits for the words of a piece.
    let section = section.min(MOST_LINES * LINE);
    (section > 0).then_some(section)
}

/// Whether `ranks` ranks can have the channel with buffers of so many `bytes`.
///
/// # Errors
/// [`NoRoom`] if they cannot.
pub fn check(ranks: u32, bytes: u64) -> Result<(), NoRoom> {
    let has_room = ranks > 0 && section(ranks, bytes).is_some();
    has_room.then_some(()).ok_or(NoRoom { ranks, bytes })
}

/// The name of the variable at `place` in the buffers of `ranks` ranks, for reports; each buffer has so
/// many `bytes`.
pub fn variable(place: Place, ranks: u32, bytes: u64) -> Option<String> {
    let Place { node, offset } = place;
    let flags = 2 * APART * u64::from(ranks);
    let (name, other) = match offset.checked_sub(flags.next_multiple_of(LINE)) {
        Some(behind) => ("section", behind / section(ranks, bytes)?),
        None if offset % (2 * APART) < APART => ("full flag", offset / (2 * APART)),
        None => ("read flag", offset / (2 * APART)),
    };
    let is_one = node < ranks && other < u64::from(ranks);
    is_one.then(|| format!("rank {other}'s {name} at rank {node}"))
}

impl<M: Memory, P> Buffers<M, P> {
    /// That of rank `me` of so many; the buffer of each node has so many `bytes`.
    ///
    /// # Errors
    /// As [`check`].
    pub fn new(
        memory: M,
        processor: P,
        (me, ranks): (u32, u32),
        bytes: u64,
    ) -> Result<Self, NoRoom> {
        check(ranks, bytes)?;
        let count = ranks as usize;
        Ok(Self {
            memory,
            processor,
            me,
            ranks,
            section: section(ranks, bytes).ok_or(NoRoom { ranks, bytes })?,
            area: None,
            state: Mutex::new(State {
                is_free: vec![true; count],
                pending: vec![Vec::new(); count],
                looked: me,
                words: Vec::new(),
            }),
        })
    }

    /// The same with shared memory beside it: `area`.
    #[must_use]
    pub fn with_area(self, area: Shared<M, P>) -> Self {
        let area = Some(area);
        Self { area, ..self }
    }

    fn flag(&self, buffer: u32, offset: u64) -> Flag {
        let node = buffer;
        self.memory.flag(Place { node, offset }, Route::Global)
    }

    /// That the section of `sender` in the buffer of `buffer` is full.
    fn full(&self, buffer: u32, sender: u32) -> Flag {
        self.flag(buffer, 2 * APART * u64::from(sender))
    }

    /// That `reader` has read what the owner of the buffer wrote to it.
    fn read_by(&self, buffer: u32, reader: u32) -> Flag {
        self.flag(buffer, 2 * APART * u64::from(reader) + APART)
    }

    /// The first word of that section.
    fn data(&self, buffer: u32, sender: u32) -> Word {
        let flags = (2 * APART * u64::from(self.ranks)).next_multiple_of(LINE);
        let place = Place {
            node: buffer,
            offset: flags + self.section * u64::from(sender),
        };
        self.memory.word(place, Route::Tagged)
    }

    /// The flags *full* of the own buffer, by sender.
    fn all_full(&self) -> Flags {
        Flags {
            first: self.full(self.me, 0),
            stride: 2 * APART as u32,
            count: self.ranks,
        }
    }

    /// All flags of the own buffer: of each rank *full*, then *read*.
    fn all(&self) -> Flags {
        Flags {
            first: self.full(self.me, 0),
            stride: APART as u32,
            count: 2 * self.ranks,
        }
    }
}

/// As many bytes of `segments` as `most`, and the address of the first that has one.
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
    (count, address.map(Own))
}

impl<M, P> Channel for Buffers<M, P>
where
    M: Memory + AnyFlag + Blocks + Tagged + TestAndSet + Timer,
    P: Processor,
{
    type Area = Shared<M, P>;

    fn area(&self) -> Option<&Self::Area> {
        self.area.as_ref()
    }

    fn rank(&self) -> u32 {
        self.me
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        let is_free = self.state.lock().is_free[to as usize];
        if !is_free {
            let read = self.read_by(self.me, to);
            if self.memory.read(read).await == 0 {
                return 0;
            }
            self.memory.set(read, 0).await;
            self.state.lock().is_free[to as usize] = true;
        }
        let mut words = std::mem::take(&mut self.state.lock().words);
        let most = (self.section - 8) as usize;
        let (count, address) = gather(segments, most, &mut words);
        if count > 0 {
            self.state.lock().is_free[to as usize] = false;
            let data = self.data(to, self.me);
            self.memory.put(data, &words, address).await;
            self.memory.fence().await;
            let full = self.full(to, self.me);
            self.memory.set(full, words.len() as u8).await;
        }
        self.state.lock().words = words;
        count
    }

    async fn arrived(&self) -> Option<u32> {
        let looked = {
            let state = self.state.lock();
            let pending = (0..).zip(&state.pending);
            let mut pending = pending.filter(|(_, bytes)| !bytes.is_empty());
            match pending.next() {
                Some((from, _)) => return Some(from),
                None => state.looked,
            }
        };
        let first = (looked + 1) % self.ranks;
        let found = self
            .memory
            .find_any(self.all_full(), first, Until::IsNot(0))
            .await?;
        self.state.lock().looked = found;
        Some(found)
    }

    async fn read(
        &self,
        from: u32,
        most: usize,
        address: Option<u64>,
        into: &mut Vec<u8>,
    ) -> usize {
        let mut pending = std::mem::take(&mut self.state.lock().pending[from as usize]);
        if pending.is_empty() {
            let full = self.full(self.me, from);
            let count = self.memory.read(full).await;
            let mut words = std::mem::take(&mut self.state.lock().words);
            words.clear();
            words.resize(count.into(), 0);
            self.memory.invalidate_tagged().await;
            let data = self.data(self.me, from);
            self.memory.get(data, &mut words, address.map(Own)).await;
            self.memory.set(full, 0).await;
            self.memory.set(self.read_by(from, self.me), 1).await;
            if let Some((&bytes, rest)) = words.split_first() {
                pending.extend(rest.iter().flat_map(|word| word.to_le_bytes()));
                pending.truncate(bytes as usize);
            }
            self.state.lock().words = words;
        }
        let taken = most.min(pending.len());
        into.extend(pending.drain(..taken));
        self.state.lock().pending[from as usize] = pending;
        taken
    }

    async fn wait(&self, full: &[u32], site: &'static Location<'static>) {
        if self
            .state
            .lock()
            .pending
            .iter()
            .any(|bytes| !bytes.is_empty())
        {
            return;
        }
        self.processor.waits(site).await;
        if full.is_empty() {
            self.memory.wait_any(self.all_full(), Until::IsNot(0)).await;
            return;
        }
        loop {
            let index = self.memory.wait_any(self.all(), Until::IsNot(0)).await;
            let other = index / 2;
            if index % 2 == 0 {
                return;
            }
            self.memory.set(self.read_by(self.me, other), 0).await;
            self.state.lock().is_free[other as usize] = true;
            if full.contains(&other) {
                return;
            }
        }
    }

    async fn work(&self, work: Work, times: u32) {
        if times > 0 {
            self.processor.work(work, times).await;
        }
    }

    async fn now(&self) -> u64 {
        self.memory.now().await
    }

    async fn enters(&self, call: &'static str, peer: Option<u32>, bytes: u64) {
        self.processor.enters(call, peer, bytes).await;
    }

    async fn leaves(&self, call: &'static str) {
        self.processor.leaves(call).await;
    }
}
