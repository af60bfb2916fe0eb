//! The places of flags, bells and sections in the memory of channels that have these.

use sme_memory::{Homes, Place};

use super::transfers::Ticket;

/// Bytes of a line of a chip with message passing buffers.
pub(super) const LINE: u64 = 32;

/// Bytes of a line of the machines that have rings of chunks, or a multiple.
const LONG_LINE: u64 = 64;

/// Bytes of a section at most whose flag says in seven bits how many words are in it.
const MOST_BYTES: u64 = 31 * LINE;

/// Flag pairs, or bells of the level below, that one bell stands for. Of 4 to 64, eight gave the
/// shortest barriers on the SME cluster.
const GROUP: u32 = 8;

/// The same in a pool, where one comes with all others in its line: of 4 to 64, this many gave the
/// shortest barriers among 128 ranks.
const GROUP_OF_POOL: u32 = 32;

/// The memory of a channel: a part for each rank, of which it alone waits. The parts lie in the
/// memory of the ranks' nodes, or one after the other in the nodes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks on each node, in the order of their numbers.
    pub per_node: u32,
    /// The offset in a memory at which the parts there begin, a multiple of `line`.
    pub begin: u64,
    /// Bytes of each part, a multiple of `line`.
    pub bytes: u64,
    /// The way in which ranks reach the memory.
    pub reach: Reach,
    /// Bytes of a section at most, a multiple of `line`.
    most: u64,
    /// Bytes to a multiple of which sections begin: at least 32.
    pub(super) line: u64,
    /// The memory that has the parts.
    homes: Homes,
    /// Bytes of each rank's registered buffer behind the parts in the same memory, a multiple of
    /// `line` and at most [`MOST_REGISTERED`].
    pub registered: u64,
}

/// Bytes of a registered buffer at most: a [`Ticket`] numbers the lines of one.
pub const MOST_REGISTERED: u64 = LINE << Ticket::BITS;

/// The way in which ranks reach each other's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Data in tagged lines, which nothing keeps coherent; a rank polls all its flags at once.
    Tagged,
    /// By remote stores and coherent loads; a rank waits for bells.
    Coherent,
    /// By stores past the caches, to a pool; a rank waits for bells, and drops its copies of lines
    /// before it reads them.
    Pool,
}

/// Sections of equal length, by sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The offset of the first in a part.
    first: u64,
    /// Bytes of each.
    pub(super) bytes: u64,
}

/// The bells of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The offset of the first in a part.
    offset: u64,
    pub(super) count: u32,
}

/// The kind of thing at a place in a rank's part, or behind the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Bell,
    /// The flag of that other rank for what it has sent.
    Full(u32),
    /// Its flag for what it has read.
    Read(u32),
    /// The section that is shared with it, and the offset there.
    Section(u32, u64),
    Registered,
}

/// Parts without room for a section of one line for each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("buffers of {bytes} bytes have no room for sections of {ranks} ranks")]
pub struct NoRoom {
    /// The ranks.
    pub ranks: u32,
    /// Bytes of each part.
    pub bytes: u64,
}

impl Layout {
    /// Returns the layout of SCCMPB: the message passing buffers, one rank on each core.
    pub fn of_buffers(ranks: u32, bytes: u64) -> Self {
        Self {
            ranks,
            per_node: 1,
            begin: 0,
            bytes,
            reach: Reach::Tagged,
            most: MOST_BYTES,
            line: LINE,
            homes: Homes::Own,
            registered: 0,
        }
    }

    /// Of these ranks, with the longest sections, from `begin` on in each node's memory.
    pub fn of_memory((ranks, per_node): (u32, u32), begin: u64, reach: Reach) -> Self {
        let layout = Self {
            ranks,
            per_node,
            begin: begin.next_multiple_of(LINE),
            bytes: 0,
            reach,
            most: MOST_BYTES,
            line: LINE,
            homes: Homes::Own,
            registered: 0,
        };
        layout.with_longest_sections()
    }

    /// Of these ranks, with the longest sections, from the beginning of the memories of a pool on,
    /// whose lines have `line_bytes`. Ranks of one node have [another layout](Self::near).
    pub fn of_pool((ranks, per_node): (u32, u32), homes: Homes, line_bytes: u32) -> Self {
        let line = u64::from(line_bytes).next_multiple_of(LINE);
        let layout = Self {
            ranks,
            per_node,
            begin: 0,
            bytes: 0,
            reach: Reach::Pool,
            most: MOST_BYTES / line * line,
            line,
            homes,
            registered: 0,
        };
        layout.with_longest_sections()
    }

    /// Of these ranks, with room for a ring of `ring_bytes` in each section, from `begin` on in
    /// each node's memory, which is coherent.
    pub fn of_rings((ranks, per_node): (u32, u32), begin: u64, ring_bytes: u64) -> Self {
        let layout = Self {
            ranks,
            per_node,
            begin: begin.next_multiple_of(LONG_LINE),
            bytes: 0,
            reach: Reach::Coherent,
            most: ring_bytes.next_multiple_of(LONG_LINE),
            line: LONG_LINE,
            homes: Homes::Own,
            registered: 0,
        };
        layout.with_longest_sections()
    }

    /// The layout for what ranks of one node tell each other, if it is another one: in the node's
    /// own memory instead of the pool.
    pub fn near(&self) -> Option<Self> {
        let has_near = self.reach == Reach::Pool && self.per_node > 1;
        has_near.then(|| Self::of_memory((self.ranks, self.per_node), 0, Reach::Coherent))
    }

    fn with_longest_sections(self) -> Self {
        let sections = u64::from(self.ranks) * self.most;
        let bytes = self.before_sections() + sections;
        Self { bytes, ..self }
    }

    /// The same with registered buffers of so many bytes, cut to whole lines.
    #[must_use]
    pub fn with_registered(self, bytes: u64) -> Self {
        let registered = bytes.min(MOST_REGISTERED) / self.line * self.line;
        Self { registered, ..self }
    }

    /// The offset behind the parts and the registered buffers of a memory.
    pub fn end(&self) -> u64 {
        self.parts_end() + u64::from(self.parts()) * self.registered
    }

    fn parts_end(&self) -> u64 {
        self.begin + u64::from(self.parts()) * self.bytes
    }

    /// Parts in each memory.
    pub fn parts(&self) -> u32 {
        match self.homes {
            Homes::Own => self.per_node,
            Homes::Pool { nodes, .. } => self.ranks.div_ceil(nodes.max(1)),
        }
    }

    /// The memory that has the part of a rank, and how many parts lie before it there.
    fn locate(&self, rank: u32) -> (u32, u32) {
        match self.homes {
            Homes::Own => (self.node(rank), rank % self.per_node),
            // The pool takes them by rank: those of one node are spread over its memories.
            Homes::Pool { .. } => self.homes.locate(rank),
        }
    }

    /// The rank whose part lies in that memory, behind so many others.
    fn owner(&self, (node, before): (u32, u32)) -> Option<u32> {
        let rank = match self.homes {
            Homes::Own if before >= self.per_node => None,
            Homes::Own => node.checked_mul(self.per_node)?.checked_add(before),
            Homes::Pool { .. } => self.homes.owner((node, before)),
        };
        rank.filter(|&rank| rank < self.ranks)
    }

    /// The node of a rank.
    pub fn node(&self, rank: u32) -> u32 {
        rank / self.per_node.max(1)
    }

    /// Returns whether there is room.
    ///
    /// # Errors
    /// [`NoRoom`] if there is none.
    pub fn check(&self) -> Result<(), NoRoom> {
        let Self { ranks, bytes, .. } = *self;
        let has_room = ranks > 0 && self.per_node > 0 && self.sections().is_some();
        has_room.then_some(()).ok_or(NoRoom { ranks, bytes })
    }

    /// The sections of each part, if there is room for any.
    pub(super) fn sections(&self) -> Option<Row> {
        let first = self.before_sections();
        let left = self.bytes.checked_sub(first)?;
        let bytes = left / u64::from(self.ranks) / self.line * self.line;
        let bytes = bytes.min(self.most);
        (bytes > 0).then_some(Row { first, bytes })
    }

    /// Bytes between two flags. A rank that reads flags through its caches has many in a line.
    pub(super) fn apart(&self) -> u64 {
        match self.reach {
            Reach::Tagged => 8,
            Reach::Coherent | Reach::Pool => 1,
        }
    }

    /// Flag pairs, or bells of the level below, that one bell stands for.
    pub(super) fn group(&self) -> u32 {
        match self.reach {
            Reach::Pool => GROUP_OF_POOL,
            Reach::Tagged | Reach::Coherent => GROUP,
        }
    }

    /// Bells of each level from the lowest on; the highest has one.
    pub(super) fn levels(&self) -> Vec<Level> {
        if self.reach == Reach::Tagged {
            return Vec::new();
        }
        let level = |offset, below: u32| Level {
            offset,
            count: below.div_ceil(self.group()),
        };
        let mut levels = vec![level(self.flags_bytes(), self.ranks)];
        while let Some(last) = levels.last().filter(|last| last.count > 1) {
            levels.push(level(last.offset + u64::from(last.count), last.count));
        }
        levels
    }

    fn flags_bytes(&self) -> u64 {
        2 * self.apart() * u64::from(self.ranks)
    }

    /// The end of flags and bells of levels.
    fn levels_end(&self) -> u64 {
        let bells = self.levels();
        let bells = bells.last().map(|top| top.offset + u64::from(top.count));
        bells.unwrap_or(self.flags_bytes())
    }

    /// Bytes of flags and bells, in whole lines.
    fn before_sections(&self) -> u64 {
        let wake = u64::from(self.reach == Reach::Pool);
        (self.levels_end() + wake).next_multiple_of(self.line)
    }

    fn place(&self, rank: u32, offset: u64) -> Place {
        let (node, before) = self.locate(rank);
        Place {
            node,
            offset: self.begin + u64::from(before) * self.bytes + offset,
        }
    }

    /// The flag that the section of `sender` in the part of `of` is full.
    pub(super) fn full(&self, of: u32, sender: u32) -> Place {
        self.place(of, 2 * self.apart() * u64::from(sender))
    }

    /// The flag that `reader` has read what `of` wrote to it.
    pub(super) fn read_by(&self, of: u32, reader: u32) -> Place {
        self.full(of, reader).plus(self.apart())
    }

    /// A bell of `of`.
    pub(super) fn bell(&self, of: u32, level: Level, number: u32) -> Place {
        self.place(of, level.offset + u64::from(number))
    }

    /// The bell of `of` in a pool that also rings for what ranks of its node tell it.
    pub(super) fn wake(&self, of: u32) -> Place {
        self.place(of, self.levels_end())
    }

    /// The section of `sender` in the part of `of`, one of `sections`.
    pub(super) fn section(&self, sections: Row, (of, sender): (u32, u32)) -> Place {
        self.place(of, sections.first + sections.bytes * u64::from(sender))
    }

    /// The line of this number in the registered buffer of a rank.
    pub(super) fn registered(&self, rank: u32, line: Ticket) -> Place {
        let (node, before) = self.locate(rank);
        let buffer = self.parts_end() + u64::from(before) * self.registered;
        Place {
            node,
            offset: buffer + LINE * u64::from(line),
        }
    }

    /// The rank in whose part `place` is, and the thing there.
    pub(super) fn part(&self, place: Place) -> Option<(u32, Part)> {
        let Place { node, offset } = place;
        if let Some(behind) = offset.checked_sub(self.parts_end())
            && let Some(number) = behind.checked_div(self.registered)
        {
            let rank = self.owner((node, u32::try_from(number).ok()?))?;
            return Some((rank, Part::Registered));
        }
        let within = offset.checked_sub(self.begin)?;
        let number = u32::try_from(within / self.bytes).ok()?;
        let (rank, within) = (self.owner((node, number))?, within % self.bytes);
        let sections = self.sections()?;
        if within >= self.flags_bytes() && within < sections.first {
            return Some((rank, Part::Bell));
        }
        let is_rank = |other: u64| {
            u32::try_from(other)
                .ok()
                .filter(|&other| other < self.ranks)
        };
        let part = match within.checked_sub(sections.first) {
            Some(behind) => {
                let other = is_rank(behind / sections.bytes)?;
                Part::Section(other, behind % sections.bytes)
            }
            None => {
                let pair = 2 * self.apart();
                let other = is_rank(within / pair)?;
                match within % pair < self.apart() {
                    true => Part::Full(other),
                    false => Part::Read(other),
                }
            }
        };
        Some((rank, part))
    }

    /// The name of the variable at `place` of a channel through sections, for reports.
    pub fn variable(&self, place: Place) -> Option<String> {
        let near = || self.near()?.part(place);
        let (rank, part) = self.part(place).or_else(near)?;
        Some(match part {
            Part::Bell => format!("rank {rank}'s bell"),
            Part::Full(other) => format!("rank {other}'s full flag at rank {rank}"),
            Part::Read(other) => format!("rank {other}'s read flag at rank {rank}"),
            Part::Section(other, _) => format!("rank {other}'s section at rank {rank}"),
            Part::Registered => format!("rank {rank}'s registered buffer"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_things_are_at_one_place() {
        let pool = |(ranks, per_node), nodes, line_bytes| {
            let first = u32::div_ceil(ranks, per_node);
            Layout::of_pool((ranks, per_node), Homes::Pool { first, nodes }, line_bytes)
        };
        let kinds: [&dyn Fn((u32, u32)) -> Layout; 5] = [
            &|placed| Layout::of_memory(placed, 64, Reach::Tagged),
            &|placed| Layout::of_memory(placed, 64, Reach::Coherent),
            &|placed| Layout::of_rings(placed, 65, 1000),
            &|placed| pool(placed, 1, 8),
            &|placed| pool(placed, 4, 64),
        ];
        for kind in kinds {
            for placed in [(1, 1), (5, 1), (16, 4), (40, 8), (300, 3)] {
                let (ranks, _) = placed;
                let layout = kind(placed).with_registered(200);
                assert_eq!(layout.check(), Ok(()));
                let sections = layout.sections().expect("room");
                assert_eq!(sections.bytes, layout.most);
                let mut used: Vec<(Place, u64)> = Vec::new();
                for of in [0, ranks / 2, ranks - 1] {
                    for other in 0..ranks {
                        used.push((layout.full(of, other), 1));
                        used.push((layout.read_by(of, other), 1));
                        used.push((layout.section(sections, (of, other)), sections.bytes));
                    }
                    for level in layout.levels() {
                        let bells = 0..level.count;
                        used.extend(bells.map(|bell| (layout.bell(of, level, bell), 1)));
                    }
                    if layout.reach == Reach::Pool {
                        used.push((layout.wake(of), 1));
                    }
                    used.extend((0..3).map(|line| (layout.registered(of, line), LINE)));
                }
                used.sort_unstable();
                used.dedup();
                for pair in used.windows(2) {
                    let (Place { node, offset }, bytes) = pair[0];
                    assert!(node < pair[1].0.node || offset + bytes <= pair[1].0.offset);
                    assert!(offset + bytes <= layout.end() && offset >= layout.begin);
                }
                let name = layout.variable(layout.full(0, ranks - 1));
                assert_eq!(
                    name,
                    Some(format!("rank {}'s full flag at rank 0", ranks - 1))
                );
                if let Some(near) = layout.near() {
                    let name = layout.variable(near.full(ranks - 1, 0));
                    let expected = format!("rank 0's full flag at rank {}", ranks - 1);
                    assert_eq!(name, Some(expected));
                }
                let name = layout.variable(layout.registered(ranks - 1, 2));
                assert_eq!(
                    name,
                    Some(format!("rank {}'s registered buffer", ranks - 1))
                );
                let name = layout.variable(layout.section(sections, (ranks - 1, 0)));
                assert_eq!(
                    name,
                    Some(format!("rank 0's section at rank {}", ranks - 1))
                );
            }
        }
    }
}
