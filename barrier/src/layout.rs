//! Where a barrier's flags, phases and words lie: byte offsets into the shared partition of a node,
//! the same in every node, or in a pool that all nodes reach.
//!
//! Which flags share a cache line decides much of a barrier's cost (a write to one takes the line
//! from all who spin on another) and is not published, so it is a parameter. The algorithms take
//! their rows from a [`RowAllocator`], one after the other; nothing else computes an offset.

use sme_memory::{Flag, FlagRow, Flags, Homes, Memory, Place, Route, Word};

use crate::SpecError;

/// Bytes that a flag has to itself at least: it is a machine word, the unit in which remote memory
/// is accessed.
const WORD_BYTES: u32 = 8;

/// The spacing of flags in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spacing {
    /// Flags one machine word apart, and the phase among them.
    Packed,
    /// Flags one machine word apart, and the phase on a line of its own.
    Split,
    /// Each flag and each phase on a cache line of its own.
    Padded,
}

crate::names!(Spacing, "spacing", { Packed => "packed", Split => "split", Padded => "padded" });

/// The layout of a barrier's data in the shared partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Packed into lines or padded to one.
    pub spacing: Spacing,
    /// Size of a cache line in bytes: a power of two, at least 8.
    pub line_bytes: u32,
    /// The place where the data begins in each shared partition, in bytes: a multiple of the line.
    pub base: u64,
    /// The memory that holds the variables that nodes share.
    pub homes: Homes,
}

impl Layout {
    /// Packed flags from the beginning of the shared partition on.
    pub const fn packed(line_bytes: u32) -> Self {
        Self {
            spacing: Spacing::Packed,
            line_bytes,
            base: 0,
            homes: Homes::Own,
        }
    }

    /// Packed flags with the phase on a line of its own, from the beginning of the shared partition
    /// on.
    pub const fn split(line_bytes: u32) -> Self {
        Self {
            spacing: Spacing::Split,
            line_bytes,
            base: 0,
            homes: Homes::Own,
        }
    }

    /// Padded flags from the beginning of the shared partition on.
    pub const fn padded(line_bytes: u32) -> Self {
        Self {
            spacing: Spacing::Padded,
            line_bytes,
            base: 0,
            homes: Homes::Own,
        }
    }

    /// The same with the variables that nodes share at `homes`.
    pub const fn at(self, homes: Homes) -> Self {
        Self { homes, ..self }
    }

    /// Begins to hand out rows.
    ///
    /// # Errors
    /// If the line is not a power of two of at least 8 bytes, the base is inside a line, or a pool
    /// has no nodes.
    pub(crate) fn allocator(self) -> Result<RowAllocator, SpecError> {
        let Self {
            line_bytes,
            base,
            homes,
            ..
        } = self;
        if let Homes::Pool { nodes: 0, .. } = homes {
            return Err(SpecError::NoHomes);
        }
        if !line_bytes.is_power_of_two() || line_bytes < 8 {
            return Err(SpecError::LineBytes { line_bytes });
        }
        if !base.is_multiple_of(u64::from(line_bytes)) {
            return Err(SpecError::Base { base, line_bytes });
        }
        Ok(RowAllocator {
            layout: self,
            next: base,
        })
    }
}

/// An allocator that hands out one row after the other.
pub(crate) struct RowAllocator {
    layout: Layout,
    next: u64,
}

impl RowAllocator {
    /// `count` flags that only the threads of their own node use.
    pub(crate) fn flags(&mut self, count: u32) -> Result<Row, SpecError> {
        self.row(count, (Homes::Own, 1))
    }

    /// `count` words of eight bytes that only the threads of their own node use.
    pub(crate) fn words(&mut self, count: u32) -> Result<Row, SpecError> {
        self.row(count, (Homes::Own, 1))
    }

    /// `count` flags of each of `nodes` nodes that other nodes reach.
    pub(crate) fn shared_flags(&mut self, count: u32, nodes: u32) -> Result<Row, SpecError> {
        self.row(count, (self.layout.homes, nodes))
    }

    /// `count` words of eight bytes of each of `nodes` nodes that other nodes reach.
    pub(crate) fn shared_words(&mut self, count: u32, nodes: u32) -> Result<Row, SpecError> {
        self.row(count, (self.layout.homes, nodes))
    }

    /// Returns whether the nodes share a pool.
    pub(crate) fn has_pool(&self) -> bool {
        self.layout.homes != Homes::Own
    }

    fn row(&mut self, count: u32, (homes, nodes): (Homes, u32)) -> Result<Row, SpecError> {
        let stride = match self.layout.spacing {
            Spacing::Packed | Spacing::Split => WORD_BYTES,
            Spacing::Padded => self.layout.line_bytes,
        };
        if self.layout.spacing == Spacing::Split {
            self.next = self
                .next
                .checked_next_multiple_of(u64::from(self.layout.line_bytes))
                .ok_or(SpecError::TooLarge)?;
        }
        let line_bytes = u64::from(self.layout.line_bytes);
        let length = u64::from(stride) * u64::from(count);
        let (span, times) = match homes {
            Homes::Own => (length, 1),
            // No two nodes share a line.
            Homes::Pool { nodes: of_pool, .. } => {
                self.next = self
                    .next
                    .checked_next_multiple_of(line_bytes)
                    .ok_or(SpecError::TooLarge)?;
                let span = length.next_multiple_of(line_bytes);
                (span, u64::from(nodes.div_ceil(of_pool)))
            }
        };
        let row = Row {
            offset: self.next,
            stride,
            count,
            homes,
            nodes,
            span,
        };
        self.next = span
            .checked_mul(times)
            .and_then(|length| length.checked_add(self.next))
            .ok_or(SpecError::TooLarge)?;
        Ok(row)
    }

    /// Ends the allocation. Returns how many bytes of each shared partition, counted from its
    /// beginning, the barrier needs: whole lines, so that what follows shares none with it.
    pub(crate) fn bytes(self) -> Result<u64, SpecError> {
        self.next
            .checked_next_multiple_of(u64::from(self.layout.line_bytes))
            .ok_or(SpecError::TooLarge)
    }
}

/// Flags or words of each node in a row: at the same offsets in every node, or one row behind the
/// other in the nodes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    offset: u64,
    stride: u32,
    count: u32,
    homes: Homes,
    /// The number of nodes that have a row in a pool.
    nodes: u32,
    /// Bytes from one node's row in a pool to the next.
    span: u64,
}

impl Row {
    /// The place of the flag or word at `index` of `node`'s.
    pub(crate) fn place(&self, node: u32, index: u32) -> Place {
        debug_assert!(index < self.count, "index {index} of {}", self.count);
        self.first(node)
            .plus(u64::from(index) * u64::from(self.stride))
    }

    /// The place of the first of `node`'s, if it has any.
    fn first(&self, node: u32) -> Place {
        let (node, before) = self.homes.locate(node);
        Place {
            node,
            offset: self.offset + u64::from(before) * self.span,
        }
    }

    /// All places of `node`'s row.
    pub(crate) fn places(self, node: u32) -> impl Iterator<Item = Place> {
        (0..self.count).map(move |index| self.place(node, index))
    }

    /// The first `count` flags of the row, by offset.
    pub(crate) fn offsets(&self, count: u32) -> FlagRow {
        FlagRow {
            first: self.offset,
            stride: self.stride,
            count,
        }
    }

    /// The node whose flag or word lies at `place`, and its index, if one does.
    pub(crate) fn find(&self, place: Place) -> Option<(u32, u32)> {
        let offset = place.offset.checked_sub(self.offset)?;
        let (node, within) = match self.homes {
            Homes::Own => (place.node, offset),
            Homes::Pool { .. } => {
                let slot = u32::try_from(offset.checked_div(self.span)?).ok()?;
                let node = self.homes.owner((place.node, slot))?;
                // Behind the last one lie other rows.
                (node < self.nodes).then_some((node, offset % self.span))?
            }
        };
        let index = u32::try_from(within / u64::from(self.stride)).ok()?;
        (index < self.count).then_some((node, index))
    }

    /// At which index of its row the flag or word at `place` lies, if one does.
    pub(crate) fn index(&self, place: Place) -> Option<u32> {
        self.find(place).map(|(_, index)| index)
    }

    /// The address by which the thread reaches the flag at `index` of `node`'s: directly in its own
    /// memory, by the global address elsewhere.
    pub(crate) fn flag<M: Memory>(&self, memory: &M, node: u32, index: u32) -> Flag {
        memory.flag(self.place(node, index), Route::Nearest)
    }

    /// The address by which the thread reaches the word at `index` of `node`'s.
    pub(crate) fn word<M: Memory>(&self, memory: &M, node: u32, index: u32) -> Word {
        memory.word(self.place(node, index), Route::Nearest)
    }

    /// The first `count` flags of `node`'s row.
    pub(crate) fn flags<M: Memory>(
        &self,
        memory: &M,
        node: u32,
        count: u32,
        route: Route,
    ) -> Flags {
        debug_assert!(count <= self.count, "{count} flags of {}", self.count);
        Flags {
            first: memory.flag(self.first(node), route),
            stride: self.stride,
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Requests to one allocator: rows of flags (`false`) and words (`true`).
    fn requests() -> impl Strategy<Value = Vec<(bool, u32)>> {
        prop::collection::vec((any::<bool>(), 0..70u32), 1..8)
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        let spacing = prop::sample::select(Spacing::ALL);
        (spacing, 3..9u32, 0..5u64).prop_map(|(spacing, log, lines)| Layout {
            spacing,
            line_bytes: 1 << log,
            base: lines << log,
            homes: Homes::Own,
        })
    }

    /// The bytes of every flag and word, in the order in which they were asked for.
    fn spans(layout: Layout, requests: &[(bool, u32)]) -> (Vec<(u64, u64)>, u64) {
        let mut allocator = layout.allocator().unwrap();
        let mut spans = Vec::new();
        for &(words, count) in requests {
            let row = if words {
                allocator.words(count).unwrap()
            } else {
                allocator.flags(count).unwrap()
            };
            let bytes = if words { 8 } else { 1 };
            spans.extend((0..count).map(|index| {
                let start = row.place(0, index).offset;
                (start, start + bytes)
            }));
        }
        (spans, allocator.bytes().unwrap())
    }

    proptest! {
        #[test]
        fn nothing_overlaps(layout in layouts(), requests in requests()) {
            let (spans, end) = spans(layout, &requests);
            let line = u64::from(layout.line_bytes);
            let mut last = layout.base;
            for &(start, stop) in &spans {
                prop_assert!(start >= last, "{start} lies before {last}");
                prop_assert!(stop <= end);
                if stop - start == 8 {
                    prop_assert_eq!(start % 8, 0);
                }
                last = match layout.spacing {
                    Spacing::Packed | Spacing::Split => stop,
                    Spacing::Padded => (start / line + 1) * line,
                };
            }
            prop_assert!(last <= end && end % line == 0);
        }
    }

    proptest! {
        #[test]
        fn rows_of_a_pool_are_apart_and_found_again(
            layout in layouts(),
            requests in prop::collection::vec((any::<bool>(), 0..9u32), 1..6),
            nodes in 1..9u32,
            of_pool in 1..5u32,
        ) {
            let layout = layout.at(Homes::Pool { first: nodes, nodes: of_pool });
            let mut allocator = layout.allocator().unwrap();
            let rows: Vec<Row> = requests
                .iter()
                .map(|&(words, count)| match words {
                    true => allocator.shared_words(count, nodes).unwrap(),
                    false => allocator.shared_flags(count, nodes).unwrap(),
                })
                .collect();
            let end = allocator.bytes().unwrap();
            let mut lines = std::collections::HashMap::new();
            for (number, row) in rows.iter().enumerate() {
                for node in 0..nodes {
                    for (index, place) in (0..).zip(row.places(node)) {
                        prop_assert!((nodes..nodes + of_pool).contains(&place.node));
                        prop_assert!(place.offset >= layout.base && place.offset + 8 <= end);
                        for (other, row) in rows.iter().enumerate() {
                            let own = (other == number).then_some((node, index));
                            prop_assert_eq!(row.find(place), own);
                        }
                        let line = (place.node, place.offset / u64::from(layout.line_bytes));
                        let owner = lines.entry(line).or_insert((number, node));
                        prop_assert_eq!(*owner, (number, node), "two nodes on a line");
                    }
                }
            }
        }
    }

    #[test]
    fn a_layout_decides_what_shares_a_line_with_the_phase() {
        let lines = |layout| {
            let (spans, bytes) = spans(layout, &[(false, 1), (false, 16)]);
            let lines: Vec<u64> = spans.iter().map(|&(start, _)| start / 64).collect();
            assert!(lines.last().is_some_and(|last| (last + 1) * 64 == bytes));
            lines
        };
        let packed = lines(Layout::packed(64));
        assert_eq!(packed[..9], [0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(packed[16], 2);
        let split = lines(Layout::split(64));
        assert_eq!(split[..3], [0, 1, 1]);
        assert_eq!(split[16], 2);
        assert_eq!(lines(Layout::padded(64)), Vec::from_iter(0..17));
    }

    #[test]
    fn a_useless_layout_is_refused() {
        let refused = |layout: Layout| layout.allocator().err().unwrap();
        assert_eq!(
            refused(Layout::packed(48)),
            SpecError::LineBytes { line_bytes: 48 }
        );
        assert_eq!(
            refused(Layout::packed(4)),
            SpecError::LineBytes { line_bytes: 4 }
        );
        let inside = Layout {
            base: 32,
            ..Layout::padded(64)
        };
        let base = SpecError::Base {
            base: 32,
            line_bytes: 64,
        };
        assert_eq!(refused(inside), base);
        let last = Layout {
            base: u64::MAX - 63,
            ..Layout::padded(64)
        };
        let row = last.allocator().unwrap().flags(2);
        assert_eq!(row.unwrap_err(), SpecError::TooLarge);
    }
}
