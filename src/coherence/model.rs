//! Eq. 1 to 3: from the throughput of single accesses to that of a message between two cores that
//! goes through a shared buffer, chunk by chunk (Sec. III-A and III-C of the paper).
//!
//! The sender copies a chunk from its buffer to the shared one, and the receiver copies it out
//! while the sender is at the next. [`Transfer`] says which access each of the four steps is (Table
//! II), [`Copies`] how fast the two copies are, and [`Chunks`] how a message is cut up. Called by
//! `sme coherence predict`. Sizes are bytes, times nanoseconds, throughputs 10^9 bytes per second,
//! which is bytes per nanosecond.

use std::num::NonZero;

use thiserror::Error;

use super::table::{LookupError, Table};
use super::transition::{CoreDistance, Curve, Transition, TransitionError, Variant};

/// The ports of a core: whether the load and the store of a copy overlap (Sec. III-C and IV-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// The core loads and stores at the same time, as the paper assumes: a copy takes as long as
    /// the slower of the two.
    Separate,
    /// Loads and stores take turns at one port: a copy takes as long as both together. The paper
    /// measures within 10 % of it from the L3 on (Fig. 5).
    Shared,
}

impl Ports {
    /// Throughput of a copy whose loads and stores by themselves have these throughputs: min(l, s)
    /// with separate ports (Eq. 2 and 3), 1 / (1/l + 1/s) with a shared one.
    pub fn copy_gb_per_s(self, load_gb_per_s: f64, store_gb_per_s: f64) -> f64 {
        match self {
            Self::Separate => load_gb_per_s.min(store_gb_per_s),
            Self::Shared => 1.0 / (1.0 / load_gb_per_s + 1.0 / store_gb_per_s),
        }
    }
}

/// A message cut into chunks: all as large as the first, but for a last one that may be smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    message_bytes: NonZero<u64>,
    chunk_bytes: NonZero<u64>,
}

impl Chunks {
    /// A message of `message_bytes` in chunks of at most `chunk_bytes`.
    pub fn new(message_bytes: NonZero<u64>, chunk_bytes: NonZero<u64>) -> Self {
        Self {
            message_bytes,
            chunk_bytes,
        }
    }

    /// Size of the message (bytes), M in the paper.
    pub fn message_bytes(self) -> u64 {
        self.message_bytes.get()
    }

    /// Size of a chunk (bytes), C in the paper; the only chunk of a shorter message is smaller.
    pub fn chunk_bytes(self) -> u64 {
        self.chunk_bytes.get()
    }

    /// Number of chunks, n in the paper: ⌈M/C⌉. The paper writes ⌊M/C⌋ and means the number where C
    /// divides M.
    pub fn count(self) -> u64 {
        self.message_bytes.get().div_ceil(self.chunk_bytes.get())
    }

    /// The chunks (bytes), in order.
    pub fn sizes(self) -> impl Iterator<Item = u64> {
        let (message, chunk) = (self.message_bytes(), self.chunk_bytes());
        (0..self.count()).map(move |before| (message - before * chunk).min(chunk))
    }
}

/// Throughputs of the two copies of a message (10^9 bytes per second): the same for all its chunks,
/// because the paper takes them at the size of the message. All chunks are copied one after the
/// other, so that caches and memory see the whole message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copies {
    /// From the sender's buffer to the shared one: C / S(C) of Eq. 2.
    pub sender_gb_per_s: f64,
    /// From the shared buffer to the receiver's: C / R(C) of Eq. 3.
    pub receiver_gb_per_s: f64,
}

impl Copies {
    /// S(C) of Eq. 2 (ns): how long the sender copies `bytes`.
    pub fn sender_ns(self, bytes: u64) -> f64 {
        bytes as f64 / self.sender_gb_per_s
    }

    /// R(C) of Eq. 3 (ns): how long the receiver copies `bytes`.
    pub fn receiver_ns(self, bytes: u64) -> f64 {
        bytes as f64 / self.receiver_gb_per_s
    }

    /// The sequential time (ns): the receiver begins when the sender is done with the message. It
    /// is Eq. 1 for a single chunk.
    pub fn sequential_ns(self, bytes: u64) -> f64 {
        self.sender_ns(bytes) + self.receiver_ns(bytes)
    }

    /// The parallel time (ns): both copy at the same time all along. It is the limit of Eq. 1 for
    /// many chunks.
    pub fn parallel_ns(self, bytes: u64) -> f64 {
        self.sender_ns(bytes).max(self.receiver_ns(bytes))
    }

    /// Eq. 1 (ns) for chunks of any sizes, in the order in which they are sent, zero for none:
    ///
    /// T = S(C₁) + Σᵢ₌₂ⁿ max(S(Cᵢ), R(Cᵢ₋₁)) + R(Cₙ)
    ///
    /// It is the time of two cores with a ring of two chunks: the sender begins a chunk when it is
    /// done with the one before, and the receiver with the one before that. A longer ring is no
    /// slower, and faster where chunks differ.
    pub fn schedule_ns(self, chunks: impl IntoIterator<Item = u64>) -> f64 {
        let mut chunks = chunks.into_iter();
        let Some(mut before) = chunks.next() else {
            return 0.0;
        };
        let mut time = self.sender_ns(before);
        for chunk in chunks {
            time += self.sender_ns(chunk).max(self.receiver_ns(before));
            before = chunk;
        }
        time + self.receiver_ns(before)
    }

    /// The pipelined time (ns): Eq. 1 for a message cut into `chunks`, in closed form, so that its
    /// cost does not grow with their number.
    pub fn pipelined_ns(self, chunks: Chunks) -> f64 {
        let (message, chunk) = (chunks.message_bytes(), chunks.chunk_bytes());
        if message <= chunk {
            return self.sequential_ns(message);
        }
        let (full, rest) = (message / chunk, message % chunk);
        let step = self.sender_ns(chunk).max(self.receiver_ns(chunk));
        let before_last = self.sender_ns(chunk) + (full - 1) as f64 * step;
        match rest {
            0 => before_last + self.receiver_ns(chunk),
            _ => {
                let last = self.sender_ns(rest).max(self.receiver_ns(chunk));
                before_last + last + self.receiver_ns(rest)
            }
        }
    }
}

/// Whether the application used its buffer shortly before the transfer (Sec. IV-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Its lines are modified in the caches of its core: LHM at the sender, SHM at the receiver.
    Reused,
    /// It is in memory and in no cache: LMI at the sender, SMI at the receiver. Table II writes
    /// Load and Store Miss Modified, and Sec. III-A says that these misses go to main memory.
    NotReused,
}

/// State of the shared buffer in the sender's cache when the sender writes it (step 2): where the
/// store to a shared line bounds, and where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedBuffer {
    /// The receiver read it last, and both have it shared: SHS, as in Table II. With MOESI also
    /// where the buffers are used in alternating direction (Sec. IV-E).
    Shared,
    /// The sender owns it, the receiver shares it: SHO, with MOESI in one direction (Sec. IV-E).
    Owned,
    /// The store costs no more than one to a modified line: SHM. That is so where the store buffer
    /// hides the invalidation of the receiver's copy, which then bounds nothing.
    Modified,
}

sme_barrier::names!(SharedBuffer, "shared buffer", {
    Shared => "shared",
    Owned => "owned",
    Modified => "modified",
});

/// The way in which a copy of the shared buffer is brought to memory before the other core asks for
/// it (Sec. IV-C and IV-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Not at all.
    None,
    /// The sender flushes what it has written, within its copy: step 2 is *flushed-after*, step 3
    /// *flushed*.
    Sender,
    /// The receiver flushes what it has read: step 2 is *flushed*. The time of the flush itself is
    /// in no row of a table and not in the prediction, which is an upper bound of the throughput.
    Receiver,
    /// The sender writes with non-temporal stores: step 2 is *non-temporal*, step 3 *flushed*.
    NonTemporal,
}

sme_barrier::names!(Flush, "flush", {
    None => "none",
    Sender => "sender",
    Receiver => "receiver",
    NonTemporal => "non-temporal",
});

impl Flush {
    /// The variants of the sender's store (step 2) and of the receiver's load (step 3).
    pub fn variants(self) -> (Variant, Variant) {
        match self {
            Self::None => (Variant::Plain, Variant::Plain),
            Self::Sender => (Variant::FlushedAfter, Variant::Flushed),
            Self::Receiver => (Variant::Flushed, Variant::Plain),
            Self::NonTemporal => (Variant::NonTemporal, Variant::Flushed),
        }
    }
}

/// A transfer between two cores: everything that decides which curves of a table it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Where the cores are.
    pub placement: CoreDistance,
    /// The buffer that the message is sent from.
    pub sender: Buffer,
    /// The buffer that it is received into.
    pub receiver: Buffer,
    /// The buffer between them, at the sender.
    pub shared: SharedBuffer,
    /// Who writes copies of it back.
    pub flush: Flush,
    /// The ports of the cores.
    pub ports: Ports,
}

impl Transfer {
    /// The transfer of Eq. 2 and 3: both buffers reused, the shared one shared, no flush, separate
    /// ports.
    pub fn of_paper(placement: CoreDistance) -> Self {
        Self {
            placement,
            sender: Buffer::Reused,
            receiver: Buffer::Reused,
            shared: SharedBuffer::Shared,
            flush: Flush::None,
            ports: Ports::Separate,
        }
    }

    /// The curves of the steps of Table II: the sender's load and store, the receiver's load and
    /// store.
    ///
    /// # Errors
    /// The receiver is to flush a copy that it does not have ([`SharedBuffer::Modified`]).
    pub fn steps(&self) -> Result<[Curve; 4], TransitionError> {
        let source = match self.sender {
            Buffer::Reused => Transition::LHM,
            Buffer::NotReused => Transition::LMI,
        };
        let written = match self.shared {
            SharedBuffer::Shared => Transition::SHS,
            SharedBuffer::Owned => Transition::SHO,
            SharedBuffer::Modified => Transition::SHM,
        };
        let target = match self.receiver {
            Buffer::Reused => Transition::SHM,
            Buffer::NotReused => Transition::SMI,
        };
        let (store, load) = self.flush.variants();
        let plain = |transition| Curve::plain(transition, self.placement);
        Ok([
            plain(source),
            plain(written).with(store)?,
            plain(Transition::LMM).with(load)?,
            plain(target),
        ])
    }

    /// Predicts the transfer of a message cut into `chunks` from the throughputs of `table` at the
    /// size of the message.
    ///
    /// # Errors
    /// The table does not have a step, or not at this size.
    pub fn predict(&self, table: &Table, chunks: Chunks) -> Result<Prediction, PredictError> {
        let steps = self.steps()?;
        let bytes = chunks.message_bytes();
        let mut rates = [0.0; 4];
        for (rate, step) in rates.iter_mut().zip(steps) {
            *rate = table.throughput(step, bytes)?;
        }
        let copies = Copies {
            sender_gb_per_s: self.ports.copy_gb_per_s(rates[0], rates[1]),
            receiver_gb_per_s: self.ports.copy_gb_per_s(rates[2], rates[3]),
        };
        let slower_copy = match copies.sender_gb_per_s <= copies.receiver_gb_per_s {
            true => 0,
            false => 2,
        };
        let slower_step = match rates[slower_copy] <= rates[slower_copy + 1] {
            true => slower_copy,
            false => slower_copy + 1,
        };
        let gb_per_s = |ns: f64| bytes as f64 / ns;
        Ok(Prediction {
            chunks,
            copies,
            sequential_gb_per_s: gb_per_s(copies.sequential_ns(bytes)),
            parallel_gb_per_s: gb_per_s(copies.parallel_ns(bytes)),
            pipelined_gb_per_s: gb_per_s(copies.pipelined_ns(chunks)),
            bound_by: steps[slower_step],
        })
    }
}

/// The throughput of a message (10^9 bytes per second) by the three ways in which copies can
/// overlap (Fig. 4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The message.
    pub chunks: Chunks,
    /// Its two copies.
    pub copies: Copies,
    /// Both copies one after the other: the bottom line of Fig. 4.
    pub sequential_gb_per_s: f64,
    /// Both copies at the same time: the top line.
    pub parallel_gb_per_s: f64,
    /// By Eq. 1, between the two.
    pub pipelined_gb_per_s: f64,
    /// The slower access of the slower copy; of equals the sender's, and the load.
    pub bound_by: Curve,
}

/// Why a transfer is not predicted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PredictError {
    /// The table does not say how fast a step is.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The options contradict each other.
    #[error(transparent)]
    Transition(#[from] TransitionError),
}

#[cfg(test)]
mod tests;
