//! Trigger-only synchronization in shared memory, as SCOSCo has it (Christgau and Schnor, Sec.
//! IV-B).
//!
//! Each rank's area begins with its part of the *window database*: the offset at which free room
//! begins, to which a rank adds, under its lock, what a window needs. All ranks tell each other
//! their offsets. A window has there, in lines of their own:
//!
//! * the *match vector*: a bit for each target that has posted; seven in a byte;
//! * the *completion counter*: the origins that have not completed;
//! * the readers or the writer that have locked the window;
//! * the window's memory.
//!
//! A target that posts sets its bit in the vector of each origin under that rank's lock (Algorithm
//! 1). An access waits for its target's bit; one that was seen is kept in a copy of the vector. An
//! origin that completes waits for all its targets' bits and takes them back, and then subtracts
//! one from the counter of each under its lock (Algorithm 2). All of it is read and written past
//! the caches.
//!
//! Accesses copy data to and from the target's area. While a rank waits here, its messages make no
//! progress.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

use sme_memory::{Place, Until};

use super::Flaw;
use super::access::Access;
use crate::channel::{Area, Channel, Way};
use crate::error::{ErrorClass, Fault};
use crate::group::Group;
use crate::processor::Work;

/// The most ranks of such a window: a counter has seven bits.
pub(crate) const MOST_RANKS: u32 = 127;

/// Bytes of a line.
const LINE: u64 = 32;

/// The offset of the word that says where free room begins; 0 stands for the first line.
const FREE: u64 = 0;

/// Bits of a byte of the match vector.
const BITS: u32 = 7;

/// A window whose writer has locked it.
const WRITER: u8 = 127;

type Site = &'static Location<'static>;

/// One rank's part of a window.
pub(crate) struct Trigger {
    group: Group,
    me: u32,
    flaw: Option<Flaw>,
    /// By rank of the window: the offset of its part in the area of the rank of the job.
    offsets: Vec<u64>,
    /// By target: its bit has been seen.
    copy: Vec<AtomicBool>,
}

/// Bytes of the match vector, in whole lines.
fn vector_bytes(ranks: u32) -> u64 {
    u64::from(ranks.div_ceil(BITS)).next_multiple_of(LINE)
}

/// The name of the variable of trigger-only synchronization at `place` in the ranks' areas
/// ([`Area`]), for reports. It knows the first window, if all `ranks` of the job are in it.
pub fn variable(place: Place, ranks: u32) -> Option<String> {
    let Place { node, offset } = place;
    let vector = vector_bytes(ranks);
    let name = match offset.checked_sub(LINE) {
        None => "window database",
        Some(within) if within < u64::from(ranks.div_ceil(BITS)) => "match vector",
        Some(within) if within == vector => "completion counter",
        Some(within) if within == vector + LINE => "window lock",
        Some(within) if within >= vector + 2 * LINE => "window memory",
        Some(_) => return None,
    };
    (node < ranks).then(|| format!("rank {node}'s {name}"))
}

/// Offsets in a rank's part of a window.
#[derive(Clone, Copy)]
enum Part {
    /// The byte of the match vector that has the bit of this rank.
    Vector(u32),
    Counter,
    Lock,
    /// This byte of the memory.
    Memory(u64),
}

impl Trigger {
    /// Allocates a window of so many `bytes` for this rank; its offset, to be told to the others.
    ///
    /// # Errors
    /// [`ErrorClass::NoMem`] if the area has no room, [`ErrorClass::Comm`] if the ranks are too
    /// many.
    pub(crate) async fn allocate<C: Channel>(
        channel: &C,
        group: &Group,
        bytes: u64,
    ) -> Result<u64, Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        if group.size() > MOST_RANKS {
            let text = format!(
                "trigger-only windows are of at most {MOST_RANKS} ranks, not {}",
                group.size()
            );
            return Err(Fault::new(ErrorClass::Comm, "comm", text));
        }
        let me = channel.rank();
        let at = |offset| Place { node: me, offset };
        let vector = vector_bytes(group.size());
        let whole = vector + 2 * LINE;
        area.take(me).await;
        let free = area.get(at(FREE), 8).await;
        let free = free
            .first_chunk()
            .map_or(0, |free| u64::from_le_bytes(*free));
        let begin = free.max(LINE);
        let end = bytes
            .checked_next_multiple_of(LINE)
            .and_then(|bytes| begin.checked_add(whole + bytes));
        let end = end.filter(|&end| end <= area.bytes());
        if let Some(end) = end {
            area.put(at(FREE), &end.to_le_bytes()).await;
        }
        area.clear(me).await;
        let Some(_) = end else {
            let left = area.bytes().saturating_sub(begin + whole);
            let text = format!("{bytes} bytes; {left} of the rank's shared memory are left");
            return Err(Fault::new(ErrorClass::NoMem, "size", text));
        };
        for byte in 0..u64::from(group.size().div_ceil(BITS)) {
            area.set(at(begin + byte), 0, Way::Uncached).await;
        }
        area.set(at(begin + vector), 0, Way::Uncached).await;
        area.set(at(begin + vector + LINE), 0, Way::Uncached).await;
        Ok(begin)
    }

    /// Gives the room of so many `bytes` at `offset` back, if it is the last that was allocated.
    pub(crate) async fn release<C: Channel>(&self, channel: &C, bytes: u64) {
        let Some(area) = channel.area() else { return };
        let me = channel.rank();
        let free = Place {
            node: me,
            offset: FREE,
        };
        let begin = self.offsets[self.me as usize];
        let end = self
            .place(self.me, Part::Memory(bytes.next_multiple_of(LINE)))
            .offset;
        area.take(me).await;
        if area.get(free, 8).await == end.to_le_bytes() {
            area.put(free, &begin.to_le_bytes()).await;
        }
        area.clear(me).await;
    }

    /// The window of `group`, in which this rank is `me` and whose parts begin at `offsets`.
    pub(crate) fn new(group: Group, me: u32, offsets: Vec<u64>, flaw: Option<Flaw>) -> Self {
        let copy = offsets.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            group,
            me,
            flaw,
            offsets,
            copy,
        }
    }

    fn place(&self, rank: u32, part: Part) -> Place {
        let vector = vector_bytes(self.group.size());
        let offset = match part {
            Part::Vector(of) => u64::from(of / BITS),
            Part::Counter => vector,
            Part::Lock => vector + LINE,
            Part::Memory(byte) => vector + 2 * LINE + byte,
        };
        Place {
            node: self.world(rank),
            offset: self.offsets[rank as usize] + offset,
        }
    }

    /// The rank of the job; the window's ranks are in its group.
    fn world(&self, rank: u32) -> u32 {
        self.group.world_rank(rank).unwrap_or(rank)
    }

    /// The way to the own match vector.
    fn way(&self) -> Way {
        match self.flaw {
            Some(Flaw::CachesVector) => Way::Cached,
            _ => Way::Uncached,
        }
    }

    /// MPI_Win_post (Algorithm 1).
    pub(crate) async fn post<C: Channel>(&self, channel: &C, origins: &[u32]) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let count = origins.len() as u8;
        let counter = self.place(self.me, Part::Counter);
        area.set(counter, count, Way::Uncached).await;
        for &origin in origins {
            channel.work(&[(Work::Target, 1)]).await;
            let lock = self.world(origin);
            let byte = self.place(origin, Part::Vector(self.me));
            area.take(lock).await;
            let before = area.read(byte, Way::Uncached).await;
            area.set(byte, before | bit(self.me), Way::Uncached).await;
            area.clear(lock).await;
        }
        Ok(())
    }

    /// Waits until `target` has posted.
    pub(crate) async fn posted<C: Channel>(
        &self,
        channel: &C,
        target: u32,
        site: Site,
    ) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let seen = &self.copy[target as usize];
        if seen.load(Ordering::Relaxed) {
            return Ok(());
        }
        let byte = self.place(self.me, Part::Vector(target));
        let mut found = area.read(byte, self.way()).await;
        while found & bit(target) == 0 {
            found = area.wait(byte, Until::IsNot(found), self.way(), site).await;
        }
        seen.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// MPI_Win_complete (Algorithm 2).
    pub(crate) async fn complete<C: Channel>(
        &self,
        channel: &C,
        targets: &[u32],
        site: Site,
    ) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let own = self.world(self.me);
        let is_locked = self.flaw != Some(Flaw::ResetsUnlocked);
        for &target in targets {
            channel.work(&[(Work::Target, 1)]).await;
            self.posted(channel, target, site).await?;
            let byte = self.place(self.me, Part::Vector(target));
            if is_locked {
                area.take(own).await;
            }
            let before = area.read(byte, self.way()).await;
            area.set(byte, before & !bit(target), self.way()).await;
            if is_locked {
                area.clear(own).await;
            }
            self.copy[target as usize].store(false, Ordering::Relaxed);
        }
        for &target in targets {
            channel.work(&[(Work::Target, 1)]).await;
            let lock = self.world(target);
            let counter = self.place(target, Part::Counter);
            area.take(lock).await;
            let before = area.read(counter, Way::Uncached).await;
            area.set(counter, before.saturating_sub(1), Way::Uncached)
                .await;
            area.clear(lock).await;
        }
        Ok(())
    }

    /// MPI_Win_wait (Algorithm 2).
    pub(crate) async fn wait<C: Channel>(&self, channel: &C, site: Site) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let counter = self.place(self.me, Part::Counter);
        area.wait(counter, Until::Is(0), Way::Uncached, site).await;
        Ok(())
    }

    /// MPI_Win_test.
    pub(crate) async fn is_completed<C: Channel>(&self, channel: &C) -> Result<bool, Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let counter = self.place(self.me, Part::Counter);
        Ok(area.read(counter, Way::Uncached).await == 0)
    }

    /// MPI_Win_lock.
    pub(crate) async fn lock<C: Channel>(
        &self,
        channel: &C,
        (target, is_exclusive): (u32, bool),
        site: Site,
    ) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let (lock, held) = (self.world(target), self.place(target, Part::Lock));
        loop {
            area.take(lock).await;
            let before = area.read(held, Way::Uncached).await;
            let after = match before {
                0 if is_exclusive => Some(WRITER),
                readers if !is_exclusive && readers < WRITER - 1 => Some(readers + 1),
                _ => None,
            };
            if let Some(after) = after {
                area.set(held, after, Way::Uncached).await;
            }
            area.clear(lock).await;
            if after.is_some() {
                return Ok(());
            }
            area.wait(held, Until::IsNot(before), Way::Uncached, site)
                .await;
        }
    }

    /// MPI_Win_unlock.
    pub(crate) async fn unlock<C: Channel>(
        &self,
        channel: &C,
        (target, is_exclusive): (u32, bool),
    ) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let (lock, held) = (self.world(target), self.place(target, Part::Lock));
        area.take(lock).await;
        let before = area.read(held, Way::Uncached).await;
        let after = if is_exclusive {
            0
        } else {
            before.saturating_sub(1)
        };
        area.set(held, after, Way::Uncached).await;
        area.clear(lock).await;
        Ok(())
    }

    /// Performs `access` at `target`; returns the bytes that the origin gets. Atomic accesses, and
    /// writes of anything but whole words, hold the target's lock.
    pub(crate) async fn access<C: Channel>(
        &self,
        channel: &C,
        target: u32,
        access: &Access,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let is_whole =
            |&(begin, bytes): &(u64, u64)| begin.is_multiple_of(8) && bytes.is_multiple_of(8);
        let writes = access.kind != super::access::Kind::Get;
        let is_locked = access.kind.is_atomic() || writes && !access.blocks.iter().all(is_whole);
        let lock = self.world(target);
        if is_locked {
            area.take(lock).await;
        }
        let mut there = Vec::new();
        if access.kind != super::access::Kind::Put {
            for &(begin, bytes) in &access.blocks {
                let at = self.place(target, Part::Memory(begin));
                there.extend(area.get(at, bytes).await);
            }
        }
        let performed = access.performed(there);
        if let Ok(written) = performed.as_ref().map(|performed| &performed.written) {
            let mut rest = written.as_deref().unwrap_or_default();
            for &(begin, bytes) in &access.blocks {
                let (now, later) = rest.split_at(rest.len().min(bytes as usize));
                let at = self.place(target, Part::Memory(begin));
                area.put(at, now).await;
                rest = later;
            }
        }
        if is_locked {
            area.clear(lock).await;
        }
        performed.map(|performed| performed.fetched)
    }

    /// The own memory: so many bytes from `begin` on.
    pub(crate) async fn load<C: Channel>(
        &self,
        channel: &C,
        (begin, count): (u64, u64),
    ) -> Result<Vec<u8>, Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        Ok(area
            .get(self.place(self.me, Part::Memory(begin)), count)
            .await)
    }

    /// The same, written.
    pub(crate) async fn store<C: Channel>(
        &self,
        channel: &C,
        begin: u64,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let area = channel.area().ok_or_else(no_area)?;
        let is_whole = begin.is_multiple_of(8) && bytes.len().is_multiple_of(8);
        let own = self.world(self.me);
        if !is_whole {
            area.take(own).await;
        }
        area.put(self.place(self.me, Part::Memory(begin)), bytes)
            .await;
        if !is_whole {
            area.clear(own).await;
        }
        Ok(())
    }
}

fn bit(target: u32) -> u8 {
    1 << (target % BITS)
}

fn no_area() -> Fault {
    let text = "the machine has no shared memory with locks for trigger-only windows";
    Fault::new(ErrorClass::Win, "info", text)
}
