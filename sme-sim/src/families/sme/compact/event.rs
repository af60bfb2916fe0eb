//! The events of a node's cores and memory, in 32 bits each: threads that go on, and transactions
//! on lines, which are 16 bits for the line of the phase and 8 for any other.

/// Number of the bridge in a transaction on the phase.
pub const BRIDGE: u16 = 0x7ff;

/// The action of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A core fetches a copy.
    Read,
    /// A core takes the line and writes this.
    Own(u8),
    /// The bridge writes this and probes.
    Write(u8),
}

/// A transaction on the phase, in 16 bits: what it does above, the value, whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnPhase(u16);

impl OnPhase {
    const VALUE: u16 = 1 << 11;
    const OWN: u16 = 1 << 12;
    const WRITE: u16 = 1 << 13;

    /// `core` fetches a copy.
    pub fn read(core: u16) -> Self {
        Self(core)
    }

    /// `core` takes the line.
    pub fn own(core: u16, value: u8) -> Self {
        Self(Self::OWN | Self::value_bit(value) | core)
    }

    /// The bridge writes.
    pub fn write(value: u8) -> Self {
        Self(Self::WRITE | Self::value_bit(value) | BRIDGE)
    }

    fn value_bit(value: u8) -> u16 {
        if value == 0 { 0 } else { Self::VALUE }
    }

    /// The value written, or read.
    pub fn value(self) -> u8 {
        u8::from(self.0 & Self::VALUE != 0)
    }

    /// Returns the core whose transaction it is.
    pub fn core(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Returns the action.
    pub fn act(self) -> Act {
        if self.0 & Self::OWN != 0 {
            Act::Own(self.value())
        } else if self.0 & Self::WRITE != 0 {
            Act::Write(self.value())
        } else {
            Act::Read
        }
    }

    /// The same, that has read `value`.
    pub fn with_value(self, value: u8) -> Self {
        Self(self.0 | Self::value_bit(value))
    }
}

/// A transaction on another line, in 8 bits, none of them 0: whose and what, and the value lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnFlag(u8);

impl OnFlag {
    const BY_FOLLOWER: u8 = 1 << 1;
    const BY_LEADER: u8 = 1 << 2;
    const READS: u8 = 1 << 3;
    const WRITES: u8 = 1 << 4;

    /// The follower takes its line.
    pub fn own(value: u8) -> Self {
        Self(Self::BY_FOLLOWER | value & 1)
    }

    /// The transaction of a code.
    #[inline]
    pub fn of(code: u8) -> Self {
        Self(code)
    }

    /// The transaction as a byte, not 0.
    #[inline]
    pub fn code(self) -> u8 {
        self.0
    }

    /// The leader takes it.
    pub fn own_of_leader(value: u8) -> Self {
        Self(Self::BY_LEADER | value & 1)
    }

    /// The leader fetches a copy.
    pub fn read() -> Self {
        Self(Self::READS)
    }

    /// The bridge writes.
    pub fn write(value: u8) -> Self {
        Self(Self::WRITES | value & 1)
    }

    /// The value written, or read.
    pub fn value(self) -> u8 {
        self.0 & 1
    }

    /// Returns the action.
    pub fn act(self) -> Act {
        if self.0 & Self::READS != 0 {
            Act::Read
        } else if self.0 & Self::WRITES != 0 {
            Act::Write(self.value())
        } else {
            Act::Own(self.value())
        }
    }

    /// The same, that has read `value`.
    pub fn with_value(self, value: u8) -> Self {
        Self(self.0 | value & 1)
    }

    /// Returns whether it is the follower's, the only one that is neither the leader's nor the
    /// bridge's.
    pub fn is_followers(self) -> bool {
        self.0 & Self::BY_FOLLOWER != 0
    }
}

/// A write of the bridge's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// To which line.
    pub line: u16,
    /// The value written.
    pub value: u8,
    /// The thread, as the machine's traces name it.
    pub origin: u32,
}

/// Something that happens to a node's cores or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread goes on.
    Resume(u16),
    /// A follower writes to its flag, whose line it has to ask for.
    Misses(u16, OnFlag),
    /// A transaction reaches the home of a line.
    Home(u16, OnFlag),
    /// The home of a line takes the next transaction.
    Release(u16),
    /// A transaction ends.
    Complete(u16, OnFlag),
    /// The same for the line of the phase.
    PhaseHome(OnPhase),
    /// Those of all cores of a class, and others as far away, that were probed away or began
    /// together, in their order.
    PhaseHomes(u16),
    /// The same for the line of the phase.
    PhaseRelease,
    /// The same for the line of the phase.
    PhaseComplete(OnPhase),
    /// All followers begin.
    Start,
    /// The leader's oldest store may leave.
    Drain,
    /// The bridge takes its next packet.
    Bridge,
    /// A packet reaches the host: the run's so-many-th.
    Receive(u32),
}

impl Event {
    /// The lowest bit of the kind in a code, above its arguments: a line and a byte, or which of
    /// the packets that come in one run, which are at most a few for each line.
    const KIND: u32 = 24;

    /// The event in 32 bits.
    #[inline]
    pub fn code(self) -> u32 {
        let (kind, what) = match self {
            Event::Resume(core) => (0, u32::from(core)),
            Event::Home(line, on) => (1, u32::from(line) << 8 | u32::from(on.0)),
            Event::Release(line) => (2, u32::from(line)),
            Event::Complete(line, on) => (3, u32::from(line) << 8 | u32::from(on.0)),
            Event::PhaseHome(on) => (4, u32::from(on.0)),
            Event::PhaseRelease => (5, 0),
            Event::PhaseComplete(on) => (6, u32::from(on.0)),
            Event::Drain => (7, 0),
            Event::Bridge => (8, 0),
            Event::Receive(number) => (9, number),
            Event::PhaseHomes(class) => (10, u32::from(class)),
            Event::Misses(line, on) => (11, u32::from(line) << 8 | u32::from(on.0)),
            Event::Start => (12, 0),
        };
        debug_assert!(what < 1 << Self::KIND, "{self:?}");
        kind << Self::KIND | what
    }

    /// The event of a code.
    #[inline]
    pub fn of(code: u32) -> Self {
        let line = (code >> 8) as u16;
        let low = code as u16;
        match code >> Self::KIND {
            0 => Event::Resume(low),
            1 => Event::Home(line, OnFlag(code as u8)),
            2 => Event::Release(low),
            3 => Event::Complete(line, OnFlag(code as u8)),
            4 => Event::PhaseHome(OnPhase(low)),
            5 => Event::PhaseRelease,
            6 => Event::PhaseComplete(OnPhase(low)),
            7 => Event::Drain,
            8 => Event::Bridge,
            10 => Event::PhaseHomes(low),
            11 => Event::Misses(line, OnFlag(code as u8)),
            12 => Event::Start,
            _ => Event::Receive(code & ((1 << Self::KIND) - 1)),
        }
    }
}
