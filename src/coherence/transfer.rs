//! The experiment of Sec. IV: a message copied twice, by its sender into a ring of chunks in shared
//! memory and by its receiver out of it, as Open MPI and MPICH do within a node, without the rest
//! of an MPI library. Two cores send each other messages in turn on a simulated machine.

use sme_memory::{Flag, Memory, Passes, Place, Route, Stores, Until, Word};
use sme_sim::machine::Setup;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::bench::{Bench, BenchError, Core, MAX_BUFFER_BYTES};
use super::model::Flush;
use super::transition::Placement;

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
    pub placement: Placement,
    /// Bytes of a message, a multiple of 8.
    pub message_bytes: u64,
    /// Bytes of a chunk, a multiple of 64: Open MPI has 32 KiB, MPICH 64 KiB.
    pub chunk_bytes: u64,
    /// Chunks of a ring.
    pub ring: u32,
    /// The direction of their use.
    pub direction: Direction,
    /// How they are brought to memory.
    pub flush: Flush,
    /// Where they are.
    pub home: Home,
    /// Whether each message is sent from the buffer of the one before, and received into it.
    pub reuses: (bool, bool),
    /// Messages that are timed, there and back; as many go before them.
    pub rounds: u32,
}

impl Transfer {
    /// Open MPI's: chunks of 32 KiB, eight of them, a ring for each sender in its own memory, both
    /// buffers used again.
    pub fn of_open_mpi(placement: Placement, message_bytes: u64) -> Self {
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
                let me = Core { node, core };
                let first = Core { node: 0, core: 0 };
                let side = match me {
                    _ if me == first => 0,
                    _ if me == other => 1,
                    _ => return,
                };
                let nodes = [first.node, other.node];
                Side::new(&memory, transfer, side, nodes).plays().await;
            })?;
        machine.run(1, |_| {})?;
        let spans = machine.spans().called(ROUNDS);
        let time = spans
            .first()
            .map_or(Time::ZERO, |span| span.last_end.since(span.last_begin));
        Ok(Time::from_ps(time.as_ps() / (2 * u64::from(self.rounds))))
    }

    /// The throughput, in 10^9 bytes a second.
    ///
    /// # Errors
    /// As [`Self::time`].
    pub fn gb_per_s(&self, bench: &Bench) -> Result<f64, BenchError> {
        Ok(self.message_bytes as f64 / self.time(bench)?.as_ns())
    }

    /// Whether it can be run.
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
    /// How often each chunk of each ring was filled.
    turns: [Vec<u64>; 2],
    /// Messages that it has sent, and received.
    messages: [u64; 2],
}

impl<'a> Side<'a> {
    fn new(memory: &'a ThreadMemory, transfer: Transfer, me: u32, nodes: [u32; 2]) -> Self {
        Self {
            memory,
            transfer,
            me,
            nodes,
            turns: [(); 2].map(|()| vec![0; transfer.ring as usize]),
            messages: [0; 2],
        }
    }

    async fn plays(&mut self) {
        let span = Span::new(ROUNDS, 0);
        // The application has made the data, and its buffers are there.
        for buffer in 0..self.buffers() {
            let (at, is_receive) = (self.buffer(buffer), buffer % 2 == 1);
            self.memory.fill(at, self.words(), 3, Stores::Cached).await;
            if !self.reuses(is_receive) {
                self.memory.flush_words(at, self.words()).await;
            }
        }
        for round in 0..2 * self.transfer.rounds {
            if round == self.transfer.rounds && self.me == 0 {
                self.memory.begin(span).await;
            }
            for sender in 0..2 {
                match sender == self.me {
                    true => self.sends().await,
                    false => self.receives().await,
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

    /// Whether messages are sent from, or received into, the buffer of the one before.
    fn reuses(&self, is_receive: bool) -> bool {
        let (sends, receives) = self.transfer.reuses;
        if is_receive { receives } else { sends }
    }

    /// The number of the application's buffers, those for sends and those for receives in turn: one
    /// of each, or one for each message.
    fn buffers(&self) -> u64 {
        match self.transfer.reuses {
            (true, true) => 2,
            _ => 4 * u64::from(self.transfer.rounds),
        }
    }

    /// The application's buffer of that number, in the core's own memory.
    fn buffer(&self, number: u64) -> Word {
        let bytes = self.transfer.message_bytes.next_multiple_of(4096) + 4096;
        let of_side = u64::from(self.me) * (1 << 33);
        let offset = BUFFERS + of_side + number * bytes;
        self.memory.word(
            Place {
                node: self.nodes[self.me as usize],
                offset,
            },
            Route::Nearest,
        )
    }

    /// The buffer of this message: one for sends, one for receives, or others in turn.
    fn buffer_of_message(&self, is_receive: bool) -> Word {
        let turn = match self.reuses(is_receive) {
            true => 0,
            false => self.messages[usize::from(is_receive)],
        };
        self.buffer(2 * turn + u64::from(is_receive))
    }

    /// The ring of `sender`, the node whose memory it is in, and where it begins there.
    fn ring(&self, sender: u32) -> (usize, Place) {
        let ring = match self.transfer.direction {
            Direction::Same => sender,
            Direction::Alternating => 0,
        };
        let home = match self.transfer.home {
            Home::Sender => ring,
            Home::Receiver => 1 - ring,
        };
        let offset = RINGS + u64::from(ring) * MAX_BUFFER_BYTES;
        let node = self.nodes[home as usize];
        (ring as usize, Place { node, offset })
    }

    /// The flag that says in which state a chunk is: how often it was filled and emptied, modulo
    /// 128.
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

    /// The chunks of a message, as their offsets in it and their words.
    fn chunks(&self) -> impl Iterator<Item = (u64, u32)> + use<> {
        let Transfer {
            message_bytes,
            chunk_bytes,
            ..
        } = self.transfer;
        let offsets = (0..message_bytes).step_by(chunk_bytes as usize);
        offsets.map(move |offset| {
            (
                offset,
                ((message_bytes - offset).min(chunk_bytes) / 8) as u32,
            )
        })
    }

    async fn sends(&mut self) {
        let from = self.buffer_of_message(false);
        let (ring, place) = self.ring(self.me);
        let stores = match self.transfer.flush {
            Flush::NonTemporal => Stores::NonTemporal,
            _ => Stores::Cached,
        };
        for (offset, words) in self.chunks() {
            let (flag, to, turn) = self.chunk(ring, place, offset);
            self.memory.wait(flag, Until::Is(state(2 * turn))).await;
            self.memory
                .copy_words(Word(from.0 + offset), to, words, stores)
                .await;
            if self.transfer.flush == Flush::Sender {
                self.memory.flush_words(to, words).await;
            }
            self.memory.set(flag, state(2 * turn + 1)).await;
        }
        self.messages[0] += 1;
    }

    async fn receives(&mut self) {
        let to = self.buffer_of_message(true);
        let (ring, place) = self.ring(1 - self.me);
        for (offset, words) in self.chunks() {
            let (flag, from, turn) = self.chunk(ring, place, offset);
            self.memory.wait(flag, Until::Is(state(2 * turn + 1))).await;
            let to = Word(to.0 + offset);
            self.memory
                .copy_words(from, to, words, Stores::Cached)
                .await;
            if self.transfer.flush == Flush::Receiver {
                self.memory.flush_words(from, words).await;
            }
            self.memory.set(flag, state(2 * turn + 2)).await;
        }
        self.messages[1] += 1;
    }

    /// The chunk of a ring for the part of a message at `offset`: its flag, its place, how often it
    /// was used before. Every message begins at the first chunk.
    fn chunk(&mut self, ring: usize, place: Place, offset: u64) -> (Flag, Word, u64) {
        let bytes = self.transfer.chunk_bytes;
        let slot = offset / bytes % u64::from(self.transfer.ring);
        let turns = &mut self.turns[ring][slot as usize];
        let turn = *turns;
        *turns += 1;
        let offset = place.offset + slot * bytes;
        let word = self.memory.word(Place { offset, ..place }, Route::Nearest);
        (self.flag(ring, slot), word, turn)
    }
}

/// A count in a flag, which has seven bits.
fn state(count: u64) -> u8 {
    (count % 128) as u8
}
