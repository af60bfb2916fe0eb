//! The experiment of Sec. IV: a message copied twice, by its sender into a ring of chunks in shared
//! memory and by its receiver out of it, as Open MPI and MPICH do within a node, without the rest
//! of an MPI library. Two cores send each other messages in turn, here on a simulated machine; on
//! this computer [`super::measure::transfer`] executes the same [`protocol`].

use sme_memory::{Flag, Memory, Passes, Place, Route, Stores, Until, Word};
use sme_sim::machine::Setup;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

pub mod protocol;

use self::protocol::{Act, Step};
use super::bench::{Bench, BenchError, Core, MAX_BUFFER_BYTES};
use super::model::Flush;
use super::transition::CoreDistance;

/// The direction in which the chunks of a ring are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Each core has a ring of its own for what it sends: a chunk goes the same way every time.
    Same,
    /// Both send through one ring: a chunk goes one way and then the other (Sec. IV-E).
    Alternating,
}

sme_barrier::names!(Direction, "direction", { Same => "same", Alternating => "alternating" });

/// The socket whose memory the chunks are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// The sender's.
    Sender,
    /// The receiver's.
    Receiver,
}

sme_barrier::names!(Home, "home", { Sender => "sender", Receiver => "receiver" });

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The other core, seen from the first.
    pub placement: CoreDistance,
    /// Bytes of a message, a multiple of 8.
    pub message_bytes: u64,
    /// Bytes of a chunk, a multiple of 64: Open MPI has 32 KiB, MPICH 64 KiB.
    pub chunk_bytes: u64,
    /// Chunks of a ring.
    pub ring: u32,
    /// The direction of their use.
    pub direction: Direction,
    /// The way in which they are brought to memory.
    pub flush: Flush,
    /// Where they are.
    pub home: Home,
    /// Whether each message is sent from the buffer of the one before, and received into it.
    pub reuses: (bool, bool),
    /// Round trips that are timed: a message there and one back. As many go before them on a
    /// simulated machine.
    pub rounds: u32,
}

impl Transfer {
    /// Open MPI's: chunks of 32 KiB, eight of them, a ring for each sender in its own memory, both
    /// buffers used again.
    pub fn of_open_mpi(placement: CoreDistance, message_bytes: u64) -> Self {
        Self {
            placement,
            message_bytes,
            chunk_bytes: 32 << 10,
            ring: 8,
            direction: Direction::Same,
            flush: Flush::None,
            home: Home::Sender,
            reuses: (true, true),
            rounds: 3,
        }
    }

    /// The time of one message, half of that of two that go there and back.
    ///
    /// # Errors
    /// [`BenchError::Size`] if a message, a chunk or a ring is none, or too large; others as there.
    pub fn time(&self, bench: &Bench) -> Result<Time, BenchError> {
        self.check()?;
        let other = bench.other(self.placement.into(), 0)?;
        let setup = Setup::new(bench.machine().shape(), other.node + 1, other.core + 1);
        let transfer = *self;
        let mut machine = bench
            .machine()
            .build(setup, move |memory, node, core| async move {
                let first = Core { node: 0, core: 0 };
                let me = match (Core { node, core }) {
                    me if me == first => 0,
                    me if me == other => 1,
                    _ => return,
                };
                let side = Side {
                    memory: &memory,
                    transfer,
                    me,
                    nodes: [first.node, other.node],
                };
                side.plays().await;
            })?;
        machine.run(1, |_| {})?;
        let spans = machine.spans().called(ROUNDS);
        let time = spans
            .first()
            .map_or(Time::ZERO, |span| span.last_end.since(span.last_begin));
        Ok(Time::from_ps(time.as_ps() / (2 * u64::from(self.rounds))))
    }

    /// The throughput, in 10^9 bytes per second.
    ///
    /// # Errors
    /// As [`Self::time`].
    pub fn gb_per_s(&self, bench: &Bench) -> Result<f64, BenchError> {
        Ok(self.message_bytes as f64 / self.time(bench)?.as_ns())
    }

    /// Returns whether it can be run.
    ///
    /// # Errors
    /// [`BenchError::Size`] if a message, a chunk or a ring is none, or too large.
    pub fn check(&self) -> Result<(), BenchError> {
        let most = MAX_BUFFER_BYTES;
        let wrong = |bytes| Err(BenchError::Size { bytes, most });
        let ring = self.chunk_bytes.checked_mul(self.ring.into());
        let is_message = self.message_bytes > 0 && self.message_bytes.is_multiple_of(8);
        let is_chunk = self.chunk_bytes > 0 && self.chunk_bytes.is_multiple_of(64);
        match ring {
            _ if !is_message || self.message_bytes > most => wrong(self.message_bytes),
            _ if !is_chunk || self.chunk_bytes > most => wrong(self.chunk_bytes),
            Some(ring) if ring > 0 && ring <= most && self.rounds > 0 => Ok(()),
            _ => wrong(ring.unwrap_or(u64::MAX)),
        }
    }
}

/// The name of the span in which all messages are that count.
const ROUNDS: &str = "rounds";

/// Where a node's part of shared memory has what: two rings, their flags, buffers of the
/// application.
const RINGS: u64 = 1 << 20;
const BUFFERS: u64 = RINGS + 2 * MAX_BUFFER_BYTES;

/// One of the two cores.
struct Side<'a> {
    memory: &'a ThreadMemory,
    transfer: Transfer,
    me: u32,
    nodes: [u32; 2],
}

impl Side<'_> {
    async fn plays(&self) {
        let span = Span::new(ROUNDS, 0);
        // The application has made the data, and its buffers are there.
        for number in 0..self.buffers() {
            for act in Act::ALL {
                let at = self.buffer(act, number);
                self.memory.fill(at, self.words(), 3, Stores::Cached).await;
                if !self.transfer.reuses(act) {
                    self.memory.flush_words(at, self.words()).await;
                }
            }
        }
        let rounds = u64::from(self.transfer.rounds);
        for round in 0..2 * rounds {
            if round == rounds && self.me == 0 {
                self.memory.begin(span).await;
            }
            for sender in 0..2 {
                let act = Act::of(self.me, sender);
                for step in self.transfer.steps(round, sender, act) {
                    self.copies(act, step).await;
                }
            }
        }
        if self.me == 0 {
            self.memory.end(span).await;
        }
    }

    fn words(&self) -> u32 {
        (self.transfer.message_bytes / 8) as u32
    }

    /// The number of the application's buffers for sends, and of those for receives: one, or one
    /// for each message.
    fn buffers(&self) -> u64 {
        match self.transfer.reuses {
            (true, true) => 1,
            _ => 2 * u64::from(self.transfer.rounds),
        }
    }

    /// The application's buffer of that number, in the core's own memory, where those for sends
    /// and those for receives take turns.
    fn buffer(&self, act: Act, number: u64) -> Word {
        let bytes = self.transfer.message_bytes.next_multiple_of(4096) + 4096;
        let of_side = u64::from(self.me) * (1 << 33);
        let turn = 2 * number + u64::from(act == Act::Receive);
        let offset = BUFFERS + of_side + turn * bytes;
        self.memory.word(
            Place {
                node: self.nodes[self.me as usize],
                offset,
            },
            Route::Nearest,
        )
    }

    /// A chunk of a ring.
    fn chunk(&self, ring: usize, slot: u64) -> Word {
        let offset = RINGS + ring as u64 * MAX_BUFFER_BYTES + slot * self.transfer.chunk_bytes;
        let node = self.nodes[self.transfer.home_of(ring)];
        self.memory.word(Place { node, offset }, Route::Nearest)
    }

    /// The flag that says in which state a chunk is, modulo 128.
    fn flag(&self, ring: usize, slot: u64) -> Flag {
        let offset = 64 * (u64::from(self.transfer.ring) * ring as u64 + slot);
        self.memory.flag(
            Place {
                node: self.nodes[0],
                offset,
            },
            Route::Nearest,
        )
    }

    async fn copies(&self, act: Act, step: Step) {
        let flag = self.flag(step.ring, step.slot);
        let chunk = self.chunk(step.ring, step.slot);
        let buffer = Word(self.buffer(act, step.buffer).0 + step.offset_bytes);
        let (from, to) = match act {
            Act::Send => (buffer, chunk),
            Act::Receive => (chunk, buffer),
        };
        let words = (step.bytes / 8) as u32;
        self.memory.wait(flag, Until::Is(state(step.state))).await;
        self.memory.copy_words(from, to, words, step.stores).await;
        if step.is_flushed {
            self.memory.flush_words(chunk, words).await;
        }
        self.memory.set(flag, state(step.state + 1)).await;
    }
}

/// A count in a flag, which has seven bits.
fn state(count: u64) -> u8 {
    (count % 128) as u8
}
