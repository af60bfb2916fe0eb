//! The places of commands and results: in the buffer of each core a row of flags for commands, one
//! for each core that may send one, and a row for results, one for each that may answer. A command
//! or a result fits into seven bits.

use sme_memory::{Flag, Flags, Memory, Place, Route, Word};

use super::alert::Alert;
use super::command::{Command, MOST_CORES, MOST_IN_COMMAND};

/// Bytes from one flag to the next.
const STRIDE: u64 = 8;

/// Bytes of a line in memory that nodes share, or a multiple.
const LINE: u64 = 64;

/// Flags beside that of a command, and what a core wants of its clock and voltage: in the row of
/// commands beside that of the core to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// The program for which a command is, and one.
    Program = 1,
    /// The divider, or the voltage in tenths of a volt, of a command.
    Setting = 2,
    /// A daemon changes the clocks and voltages of its island.
    Lock = 3,
    /// The program for which the core wants its clock or voltage changed, and one.
    Wants = 4,
    /// The divider that it wants.
    Divider = 5,
    /// The voltage that it wants, in tenths of a volt.
    Tenths = 6,
    /// Of the first core of a tile the divider; 0 is the first one.
    IsDivider = 7,
}

/// Flags beside that of a result: the memory that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lent {
    /// The first segment.
    First = 2,
    /// The number of segments.
    Count = 3,
}

/// The board of a chip, whose resources are cores, or of a cluster, whose resources are nodes: each
/// is a core to the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// The offset in each core's buffer, or each node's memory, at which it begins, a multiple of
    /// 32.
    pub begin: u64,
    /// Cores of the chip, or nodes of the cluster, at most [`MOST_CORES`].
    pub cores: u32,
    /// The way in which daemons hear of commands.
    pub alert: Alert,
}

/// The rows of each core's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// To the core, by sender.
    Commands,
    /// To the core, by the one that answers.
    Results,
}

impl Board {
    /// Bytes of the board in each core's buffer.
    pub const fn bytes(cores: u32) -> u64 {
        (2 * STRIDE * cores as u64).next_multiple_of(32)
    }

    /// Returns the board at the end of buffers of so many bytes; none if they have no room for it,
    /// or the chip has more than [`MOST_CORES`].
    pub fn at_end(cores: u32, buffer_bytes: u64) -> Option<Self> {
        let begin = buffer_bytes.checked_sub(Self::bytes(cores))?;
        (cores <= MOST_CORES).then_some(Self {
            begin,
            cores,
            alert: Alert::Interrupt,
        })
    }

    /// Returns the board of so many nodes, in the memory of each from `after` on; none if there are
    /// more than [`MOST_CORES`].
    pub fn in_memory(nodes: u32, after: u64) -> Option<Self> {
        (nodes <= MOST_CORES).then_some(Self {
            begin: after.next_multiple_of(LINE),
            cores: nodes,
            alert: Alert::Bell,
        })
    }

    /// The offset behind the board.
    pub fn end(&self) -> u64 {
        match self.alert {
            Alert::Interrupt => self.begin + Self::bytes(self.cores),
            Alert::Bell => self.turn_offset() + LINE,
        }
    }

    /// The offset of a node's bell, on a line of its own.
    fn bell_offset(&self) -> u64 {
        (self.begin + Self::bytes(self.cores)).next_multiple_of(LINE)
    }

    /// The offset of the word under which a node's programs take turns, on a line of its own.
    fn turn_offset(&self) -> u64 {
        self.bell_offset() + LINE
    }

    /// One's own memory is read through the caches where these are coherent.
    fn route(&self) -> Route {
        match self.alert {
            Alert::Interrupt => Route::Global,
            Alert::Bell => Route::Nearest,
        }
    }

    /// The bell of `node`.
    pub(super) fn bell<M: Memory>(&self, memory: &M, node: u32) -> Flag {
        let offset = self.bell_offset();
        memory.flag(Place { node, offset }, self.route())
    }

    /// The word under which programs of `node` take turns.
    pub(super) fn turn_word<M: Memory>(&self, memory: &M, node: u32) -> Word {
        let offset = self.turn_offset();
        memory.word(Place { node, offset }, self.route())
    }

    /// Returns whether a command says beside it for which program it is, as there are too many to
    /// say so in it.
    pub(super) fn says_beside(&self, command: Command) -> bool {
        self.cores > MOST_IN_COMMAND && command.program().is_some()
    }

    fn place(&self, of: u32, row: Row, other: u32) -> Place {
        let flag = row as u64 * u64::from(self.cores) + u64::from(other);
        Place {
            node: of,
            offset: self.begin + STRIDE * flag,
        }
    }

    /// The flag of `other` in the part of core `of`.
    pub(super) fn flag<M: Memory>(&self, memory: &M, of: u32, row: Row, other: u32) -> Flag {
        memory.flag(self.place(of, row, other), self.route())
    }

    /// A flag beside that of `other`'s command to core `of`.
    pub(super) fn beside<M: Memory>(&self, memory: &M, of: u32, other: u32, what: Beside) -> Flag {
        let Place { node, offset } = self.place(of, Row::Commands, other);
        let offset = offset + what as u64;
        memory.flag(Place { node, offset }, self.route())
    }

    /// A flag beside the result of core `other` in the part of core `of`.
    pub(super) fn lent<M: Memory>(&self, memory: &M, (of, other): (u32, u32), what: Lent) -> Flag {
        let Place { node, offset } = self.place(of, Row::Results, other);
        let offset = offset + what as u64;
        memory.flag(Place { node, offset }, self.route())
    }

    /// The flag with the voltage of an island, in tenths of a volt, at its first core; 0 is the
    /// first one.
    pub(super) fn voltage<M: Memory>(&self, memory: &M, first: u32) -> Flag {
        let Place { node, offset } = self.place(first, Row::Results, first);
        let offset = offset + 1;
        memory.flag(Place { node, offset }, self.route())
    }

    /// The flags of a row.
    pub(super) fn flags<M: Memory>(&self, memory: &M, of: u32, row: Row) -> Flags {
        Flags {
            first: self.flag(memory, of, row, 0),
            stride: STRIDE as u32,
            count: self.cores,
        }
    }

    /// The name of the variable at `place`, for reports.
    pub fn variable(&self, place: Place) -> Option<String> {
        if self.alert == Alert::Bell && place.offset >= self.bell_offset() {
            return match place.offset & !7 {
                offset if offset == self.bell_offset() => {
                    Some(format!("the bell of node {}'s daemon", place.node))
                }
                offset if offset == self.turn_offset() => {
                    Some(format!("the turn of node {}'s programs", place.node))
                }
                _ => None,
            };
        }
        let unit = self.alert.unit();
        let offset = place.offset.checked_sub(self.begin)?;
        let (flag, beside) = (offset / STRIDE, offset % STRIDE);
        let cores = u64::from(self.cores);
        let (of, other) = (place.node, flag.checked_rem(cores)?);
        match flag / cores {
            0 if beside == Beside::Lock as u64 => Some(format!("the lock of {unit} {of}'s island")),
            0 if beside == Beside::Program as u64 => Some(format!(
                "the program of {unit} {other}'s command to {unit} {of}"
            )),
            1 if beside == Lent::First as u64 || beside == Lent::Count as u64 => Some(format!(
                "the memory of {unit} {other} that {unit} {of} borrows"
            )),
            0 | 1 if beside > 0 => Some(format!("{unit} {of}'s wishes for clocks and voltages")),
            0 => Some(format!("{unit} {other}'s command to {unit} {of}")),
            1 => Some(format!("{unit} {other}'s result for {unit} {of}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_apart_and_have_names() {
        assert_eq!(Board::at_end(48, 700), None);
        assert_eq!(Board::at_end(MOST_CORES + 1, 8192), None);
        let board = Board::at_end(48, 8192).unwrap();
        assert_eq!(board.begin, 8192 - 768);
        let mut offsets = Vec::new();
        for row in [Row::Commands, Row::Results] {
            offsets.extend((0..48).map(|other| board.place(5, row, other).offset));
        }
        assert!(
            offsets
                .iter()
                .all(|&at| at >= board.begin && at + 8 <= 8192)
        );
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), 2 * 48);
        let name = board.variable(board.place(5, Row::Results, 7));
        assert_eq!(name.as_deref(), Some("core 7's result for core 5"));
        let name = board.variable(board.place(5, Row::Commands, 47));
        assert_eq!(name.as_deref(), Some("core 47's command to core 5"));
        let before = Place {
            node: 5,
            offset: board.begin - 1,
        };
        assert_eq!(board.variable(before), None);
    }
}
