//! A channel through sections of shared memory, as RCKMPI's SCCMPB is one: each rank's part of
//! memory has a section for every sender, which writes pieces of its stream there; a flag says that
//! a section is full, and one in the sender's own part that it has been read. So a rank waits for
//! nothing but its own part. A piece is a word with its number of bytes, and the bytes.
//!
//! * On the SCC the parts are in the message passing buffers (SCCMPB) or in memory behind the chip
//!   (SCCSHM); their lines are tagged, and a rank polls all its flags.
//! * On other machines they are in the shared memory of the rank's node. A rank looks at its flags
//!   through coherent caches, and a tree of bells says which of them to look at.
//! * Where nodes share a pool, parts for what comes from other nodes are there, and others in each
//!   node's memory for its own ranks. A rank polls one bell in the pool, past the caches, which
//!   rings for all; lines of flags and data come through them, after it has dropped the copies of
//!   before.

mod places;

use std::collections::VecDeque;
use std::panic::Location;

use parking_lot::Mutex;
use sme_memory::{
    AnyFlag, Blocks, Cacheable, Flag, Flags, Own, Place, Route, Tagged, TestAndSet, Timer, Until,
};

use super::bells::{Bells, Looks, drop_copies};
use super::layout::{Layout, Level, NoRoom, Reach, Row};
use super::shared::Shared;
use super::transfers::Modes;
use super::{Channel, EAGER_BYTES, Segment, gather, own};
use crate::peers::Peers;
use crate::processor::Processor;
use places::Places;

/// The channel of one rank.
#[derive(Debug)]
pub struct Sections<M, P> {
    memory: M,
    processor: P,
    me: u32,
    parts: Parts,
    /// Those for ranks of the same node, where they are others.
    near: Option<Parts>,
    area: Option<Shared<M, P>>,
    places: Option<Places>,
    eager_bytes: Option<u64>,
    flaw: Option<Flaw>,
    state: Mutex<State>,
}

/// A part of memory for each rank.
#[derive(Debug)]
struct Parts {
    layout: Layout,
    sections: Row,
    levels: Vec<Level>,
}

impl Parts {
    fn new(layout: Layout) -> Result<Self, NoRoom> {
        layout.check()?;
        let Layout { ranks, bytes, .. } = layout;
        Ok(Self {
            layout,
            sections: layout.sections().ok_or(NoRoom { ranks, bytes })?,
            levels: layout.levels(),
        })
    }

    /// The section of `sender` in the part of `of`.
    fn section(&self, of: u32, sender: u32) -> Place {
        self.layout.section(self.sections, (of, sender))
    }
}

/// The flaws that a channel must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A rank reads a section without dropping the copies that its core has of tagged lines, or its
    /// node of a pool's.
    KeepsCopies,
}

#[derive(Debug)]
struct State {
    /// The ranks with which it has exchanged something.
    peers: Peers<Peer>,
    /// Senders of which that is something.
    has_pending: VecDeque<u32>,
    /// Senders whose sections are known to be full, in the order in which they were seen.
    full: VecDeque<u32>,
    /// The sender at which it looked last.
    looked: u32,
    words: Vec<u64>,
}

/// Another rank.
#[derive(Debug, Default)]
struct Peer {
    /// Whether the section there may be full.
    is_full: bool,
    /// The bytes that have been taken out of its section here and not been asked for yet.
    pending: Vec<u8>,
}

impl State {
    /// Returns whether the section at rank `to` is known to be free.
    fn is_free(&self, to: u32) -> bool {
        self.peers.get(to).is_none_or(|peer| !peer.is_full)
    }
}

impl<M: Blocks + Cacheable + Tagged, P> Sections<M, P> {
    /// Makes the channel of rank `me`, which runs on the node that `layout` says.
    ///
    /// # Errors
    /// As [`Layout::check`].
    pub fn new(memory: M, processor: P, me: u32, layout: Layout) -> Result<Self, NoRoom> {
        Ok(Self {
            memory,
            processor,
            me,
            parts: Parts::new(layout)?,
            near: layout.near().map(Parts::new).transpose()?,
            area: None,
            places: None,
            eager_bytes: Some(EAGER_BYTES),
            flaw: None,
            state: Mutex::new(State {
                peers: Peers::default(),
                has_pending: VecDeque::new(),
                full: VecDeque::new(),
                looked: me,
                words: Vec::new(),
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

    /// The same with transfers to the registered buffers, by the core alone.
    #[must_use]
    pub fn with_transfers(self, modes: Modes) -> Self {
        let places = Some(Places::new(modes, self.layout().registered));
        Self {
            places,
            eager_bytes: modes.eager_bytes,
            ..self
        }
    }

    /// The same with a flaw, for tests.
    #[must_use]
    pub fn with_flaw(self, flaw: Option<Flaw>) -> Self {
        Self { flaw, ..self }
    }

    fn layout(&self) -> &Layout {
        &self.parts.layout
    }

    fn is_tagged(&self) -> bool {
        self.layout().reach == Reach::Tagged
    }

    /// The parts in which this rank and `other` tell each other something.
    fn parts_with(&self, other: u32) -> &Parts {
        let is_near = || self.layout().node(other) == self.layout().node(self.me);
        let near = self.near.as_ref().filter(|_| is_near());
        near.unwrap_or(&self.parts)
    }

    /// Writes data to there.
    async fn puts(&self, (to, reach): (Place, Reach), words: &[u64], from: Option<Own>) {
        let route = match reach {
            Reach::Tagged => Route::Tagged,
            Reach::Coherent => Route::Nearest,
            // Through the caches each line would come first, to be written back.
            Reach::Pool => Route::Global,
        };
        self.memory
            .put(self.memory.word(to, route), words, from)
            .await;
    }

    /// Reads data from there, which others have written.
    async fn gets(&self, (from, reach): (Place, Reach), words: &mut [u64], to: Option<Own>) {
        let drops = self.flaw != Some(Flaw::KeepsCopies);
        let route = match reach {
            Reach::Tagged => Route::Tagged,
            Reach::Coherent => Route::Nearest,
            Reach::Pool => Route::Cached,
        };
        match reach {
            Reach::Tagged if drops => self.memory.invalidate_tagged().await,
            Reach::Pool if drops => {
                let bytes = 8 * words.len() as u64;
                drop_copies(&self.memory, self.layout(), (from, bytes)).await;
            }
            _ => {}
        }
        self.memory
            .get(self.memory.word(from, route), words, to)
            .await;
    }

    fn flag(&self, place: Place) -> Flag {
        let route = match self.is_tagged() {
            true => Route::Global,
            false => Route::Nearest,
        };
        self.memory.flag(place, route)
    }

    /// The flags *full* of the own part, by sender.
    fn all_full(&self) -> Flags {
        let layout = self.layout();
        Flags {
            first: self.flag(layout.full(self.me, 0)),
            stride: 2 * layout.apart() as u32,
            count: layout.ranks,
        }
    }

    /// All flags of the own part: of each rank *full*, then *read*.
    fn all(&self) -> Flags {
        Flags {
            stride: self.layout().apart() as u32,
            count: 2 * self.layout().ranks,
            ..self.all_full()
        }
    }

    fn bells<'a>(&'a self, parts: &'a Parts) -> Bells<'a, M> {
        Bells {
            memory: &self.memory,
            layout: &parts.layout,
            levels: &parts.levels,
            me: self.me,
        }
    }

    /// Sets a flag in the part of `of`, and its bells.
    async fn tells(&self, of: u32, flag: Place, value: u8) {
        self.memory.set(self.flag(flag), value).await;
        self.bells(self.parts_with(of)).ring(of).await;
        if self.near.is_some() {
            let wake = self.flag(self.layout().wake(of));
            self.memory.set(wake, 1).await;
        }
    }

    /// The bell that rings whenever another one does, if there is any.
    fn wakes(&self) -> Option<Flag> {
        match self.near {
            Some(_) => Some(self.flag(self.layout().wake(self.me))),
            None => self.bells(&self.parts).top(),
        }
    }

    /// Reads a flag that is known to be set: in a pool, from the copy in which it was seen.
    async fn sees(&self, (full, reach): (Place, Reach)) -> u8 {
        let flag = match reach {
            Reach::Pool => self.memory.flag(full, Route::Cached),
            Reach::Tagged | Reach::Coherent => self.flag(full),
        };
        self.memory.read(flag).await
    }

    /// Takes note of all flags whose bells ring.
    async fn hears(&self) {
        let Some(near) = &self.near else {
            return self.hears_in(&self.parts).await;
        };
        let wake = self.flag(self.layout().wake(self.me));
        if self.memory.read(wake).await != 0 {
            self.memory.set(wake, 0).await;
            // As of every bell.
            self.memory.fence().await;
            self.hears_in(&self.parts).await;
        }
        self.hears_in(near).await;
    }

    async fn hears_in(&self, parts: &Parts) {
        let rung = self.bells(parts).silence().await;
        let layout = &parts.layout;
        let mut looks = Looks::new(&self.memory, layout);
        for other in rung {
            if looks.at(layout.full(self.me, other)).await != 0 {
                let mut state = self.state.lock();
                if !state.full.contains(&other) {
                    state.full.push_back(other);
                }
            }
            let read = layout.read_by(self.me, other);
            if looks.at(read).await != 0 {
                self.memory.set(self.flag(read), 0).await;
                self.state.lock().peers.of(other).is_full = false;
            }
        }
    }

    /// Waits until bytes have come, or a section of `full` is free.
    async fn waits_for_bell(&self, full: &[u32]) {
        let Some(bell) = self.wakes() else {
            return;
        };
        loop {
            self.hears().await;
            let is_free = || {
                let state = self.state.lock();
                full.iter().any(|&to| state.is_free(to))
            };
            if self.knows_of_bytes() || is_free() {
                return;
            }
            self.memory.wait(bell, Until::IsNot(0)).await;
        }
    }

    /// Drops what lies in the own part: the rank before on this core has died. Those that have sent
    /// it something must have ended.
    pub async fn clears(&self) {
        let flags = self.all();
        for number in 0..flags.count {
            self.memory.set(flags.at(number), 0).await;
        }
        for &level in &self.parts.levels {
            for number in 0..level.count {
                let bell = self.layout().bell(self.me, level, number);
                self.memory.set(self.flag(bell), 0).await;
            }
        }
        self.memory.fence().await;
    }

    fn knows_of_bytes(&self) -> bool {
        let state = self.state.lock();
        !state.has_pending.is_empty() || !state.full.is_empty()
    }
}

impl<M, P> Channel for Sections<M, P>
where
    M: AnyFlag + Blocks + Cacheable + Tagged + TestAndSet + Timer,
    P: Processor,
{
    type Area = Shared<M, P>;
    type Processor = P;
    type Transfers = Self;

    fn eager_bytes(&self) -> Option<u64> {
        self.eager_bytes
    }

    fn processor(&self) -> &P {
        &self.processor
    }

    fn area(&self) -> Option<&Self::Area> {
        self.area.as_ref()
    }

    fn transfers(&self) -> Option<&Self> {
        self.places.as_ref().map(|_| self)
    }

    fn rank(&self) -> u32 {
        self.me
    }

    fn ranks(&self) -> u32 {
        self.layout().ranks
    }

    fn per_node(&self) -> u32 {
        self.layout().per_node
    }

    async fn write(&self, to: u32, segments: &[Segment<'_>]) -> usize {
        let is_free = || self.state.lock().is_free(to);
        if !is_free() {
            if self.is_tagged() {
                let read = self.flag(self.layout().read_by(self.me, to));
                if self.memory.read(read).await == 0 {
                    return 0;
                }
                self.memory.set(read, 0).await;
                self.state.lock().peers.of(to).is_full = false;
            } else {
                self.hears().await;
                if !is_free() {
                    return 0;
                }
            }
        }
        let mut words = std::mem::take(&mut self.state.lock().words);
        let parts = self.parts_with(to);
        let most = (parts.sections.bytes - 8) as usize;
        let (count, address) = gather(segments, most, &mut words);
        if count > 0 {
            self.state.lock().peers.of(to).is_full = true;
            let section = (parts.section(to, self.me), parts.layout.reach);
            self.puts(section, &words, address).await;
            self.memory.fence().await;
            let full = parts.layout.full(to, self.me);
            self.tells(to, full, words.len() as u8).await;
        }
        self.state.lock().words = words;
        count
    }

    async fn arrived(&self) -> Option<u32> {
        if let Some(&from) = self.state.lock().has_pending.front() {
            return Some(from);
        }
        if !self.is_tagged() {
            self.hears().await;
            return self.state.lock().full.front().copied();
        }
        let first = (self.state.lock().looked + 1) % self.layout().ranks;
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
        let mut pending = std::mem::take(&mut self.state.lock().peers.of(from).pending);
        if pending.is_empty() {
            let parts = self.parts_with(from);
            let (full, reach) = (parts.layout.full(self.me, from), parts.layout.reach);
            let count = self.sees((full, reach)).await;
            let mut words = std::mem::take(&mut self.state.lock().words);
            words.clear();
            words.resize(count.into(), 0);
            let section = (parts.section(self.me, from), reach);
            self.gets(section, &mut words, address.map(own)).await;
            self.memory.set(self.flag(full), 0).await;
            let read = parts.layout.read_by(from, self.me);
            self.tells(from, read, 1).await;
            if let Some((&bytes, rest)) = words.split_first() {
                pending.extend(rest.iter().flat_map(|word| word.to_le_bytes()));
                pending.truncate(bytes as usize);
            }
            let mut state = self.state.lock();
            state.words = words;
            state.full.retain(|&sender| sender != from);
        }
        let taken = most.min(pending.len());
        into.extend(pending.drain(..taken));
        let mut state = self.state.lock();
        let has_some = !pending.is_empty();
        state.peers.of(from).pending = pending;
        state.has_pending.retain(|&sender| sender != from);
        if has_some {
            state.has_pending.push_back(from);
        }
        taken
    }

    async fn wait(&self, full: &[u32], site: &'static Location<'static>) {
        if self.knows_of_bytes() {
            return;
        }
        self.processor.waits(site).await;
        if !self.is_tagged() {
            return self.waits_for_bell(full).await;
        }
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
            let read = self.layout().read_by(self.me, other);
            self.memory.set(self.flag(read), 0).await;
            self.state.lock().peers.of(other).is_full = false;
            if full.contains(&other) {
                return;
            }
        }
    }

    fn unread(&self) -> Vec<u32> {
        let state = self.state.lock();
        state.peers.ranks_where(|peer| peer.is_full)
    }

    async fn now(&self) -> u64 {
        self.memory.now().await
    }
}
