//! Microbenchmarks on a simulated machine: a buffer whose lines some cores bring into a state, and
//! one core's pass over it, timed. Of each throughput there is one run of its own, with empty
//! caches and a fresh buffer: all cores' copies are flushed, the state is prepared, and the pass is
//! one between two fences. A simulation has no noise: one pass is enough.

use std::sync::Arc;

use sme_memory::{Atomic, Memory, Passes, Place, Route, Stores, Until, Word};
use sme_sim::machine::{CannotBuild, Coherence, Machine, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::coherence::Protocol;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::model::Flush;
use super::transition::{Access, Curve, Holder, LocalCopy, State, Variant, of_tables};

/// Why there is no throughput.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The nodes of the machine are not coherent.
    #[error("machine {0} is not coherent between its nodes; xeon-e5-2650 is, for example")]
    NotCoherent(String),
    /// There is no such core.
    #[error("machine {machine} has no {missing}")]
    Lacks {
        /// The machine's name.
        machine: String,
        /// The thing that it would need.
        missing: &'static str,
    },
    /// The buffer is no number of words, or the machine has no room for it.
    #[error("a buffer of {bytes} bytes: it must be a multiple of 8, at least 8 and at most {most}")]
    Size {
        /// Its size.
        bytes: u64,
        /// The most that there can be.
        most: u64,
    },
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The run failed.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// The largest buffer of a benchmark, in bytes.
pub const MAX_BUFFER_BYTES: u64 = 1 << 28;

/// The place of a buffer in a node's memory, behind the flags; the second buffer of a copy lies one
/// largest buffer further.
const BUFFER: u64 = 1 << 20;

/// A core, by node and number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    /// The node: a socket.
    pub node: u32,
    /// The number in it.
    pub core: u32,
}

/// A coherent machine, and the cores on it that take part in a benchmark.
#[derive(Clone, Debug)]
pub struct Bench {
    machine: Arc<Machine>,
    coherence: Coherence,
}

/// The one that times its pass: the first core of the first socket.
const MEASURES: Core = Core { node: 0, core: 0 };

impl Bench {
    /// On `machine`.
    ///
    /// # Errors
    /// [`BenchError::NotCoherent`].
    pub fn new(machine: Arc<Machine>) -> Result<Self, BenchError> {
        match machine.shape().coherence {
            Some(coherence) => Ok(Self { machine, coherence }),
            None => Err(BenchError::NotCoherent(machine.name().to_owned())),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The name of the machine, with the constants that are not those of its file.
    pub fn name(&self) -> String {
        let set = self.machine.overrides().iter();
        let set: String = set.map(|(key, value)| format!(" {key}={value}")).collect();
        self.machine.name().to_owned() + &set
    }

    /// The curves that the machine has: without owned copies where its protocol has no such state,
    /// without other sockets where there is one.
    pub fn curves(&self) -> Vec<Curve> {
        let mut curves = of_tables();
        curves.retain(|&curve| self.has(curve).is_ok());
        curves
    }

    /// Returns whether it has a curve.
    ///
    /// # Errors
    /// [`BenchError::Lacks`]
    pub(super) fn has(&self, curve: Curve) -> Result<(), BenchError> {
        self.plan(curve).map(drop)
    }

    /// Returns whether it has another core there.
    ///
    /// # Errors
    /// [`BenchError::Lacks`]
    pub(super) fn has_other(&self, holder: Holder) -> Result<(), BenchError> {
        self.other(holder, 0).map(drop)
    }

    /// A core of another module of the measuring core's socket, or of another socket: the first
    /// that has no other role, of which each `number` is one.
    pub(super) fn other(&self, holder: Holder, number: u32) -> Result<Core, BenchError> {
        let shape = self.machine.shape();
        let lacks = |missing| BenchError::Lacks {
            machine: self.machine.name().to_owned(),
            missing,
        };
        let (node, first) = match holder {
            Holder::Local | Holder::Socket => (0, self.coherence.module),
            Holder::Remote => (1, 0),
        };
        if node >= shape.nodes {
            return Err(lacks("second socket"));
        }
        let core = first + number * self.coherence.module;
        match core < shape.cores {
            true => Ok(Core { node, core }),
            false => Err(lacks("module without another role on that socket")),
        }
    }

    /// The steps that bring a buffer into the state of `curve`, and the pass that is timed.
    fn plan(&self, curve: Curve) -> Result<Vec<Step>, BenchError> {
        let (transition, me) = (curve.transition(), MEASURES);
        let has_owned = self.coherence.protocol == Protocol::Moesi;
        if transition.state() == State::Owned && !has_owned {
            return Err(BenchError::Lacks {
                machine: self.machine.name().to_owned(),
                missing: "protocol with owned copies",
            });
        }
        let of = |core, deed| Step { core, deed };
        let other = self.other(curve.holder(), 0);
        let third = self.other(curve.holder(), 1);
        let mut steps = vec![of(me, Deed::Flushes)];
        match (transition.copy(), transition.state()) {
            (LocalCopy::Hit, State::Modified) => steps.push(of(me, Deed::Stores(Stores::Cached))),
            (LocalCopy::Hit, State::Exclusive) => steps.push(of(me, Deed::Loads)),
            // As a sender's buffer is after a message; of a protocol with owned copies, as a
            // receiver's is.
            (LocalCopy::Hit, State::Shared) if has_owned => {
                steps.extend([
                    of(other?, Deed::Stores(Stores::Cached)),
                    of(me, Deed::Loads),
                ]);
            }
            (LocalCopy::Hit, State::Shared | State::Owned) => {
                steps.extend([
                    of(me, Deed::Stores(Stores::Cached)),
                    of(other?, Deed::Loads),
                ]);
            }
            (LocalCopy::Miss, State::Modified) => {
                steps.push(of(other?, Deed::Stores(Stores::Cached)));
            }
            (LocalCopy::Miss, State::Exclusive) => steps.push(of(other?, Deed::Loads)),
            (LocalCopy::Miss, State::Shared) => {
                steps.extend([of(other?, Deed::Loads), of(third?, Deed::Loads)]);
            }
            (LocalCopy::Miss, State::Owned) => {
                steps.extend([
                    of(other?, Deed::Stores(Stores::Cached)),
                    of(third?, Deed::Loads),
                ]);
            }
            (_, State::Invalid) => {}
        }
        if curve.variant() == Variant::Flushed {
            steps.push(of(self.other(curve.holder(), 0)?, Deed::Flushes));
        }
        let timed = match (transition.access(), curve.variant()) {
            (Access::Load, _) => Deed::Loads,
            (Access::Store, Variant::NonTemporal) => Deed::Stores(Stores::NonTemporal),
            (Access::Store, _) => Deed::Stores(Stores::Cached),
        };
        steps.push(of(me, Deed::Begins));
        steps.push(of(me, timed));
        if curve.variant() == Variant::FlushedAfter {
            steps.push(of(me, Deed::Flushes));
        }
        steps.push(of(me, Deed::Ends));
        Ok(steps)
    }

    /// The throughput of `curve` for a buffer of `bytes`, in 10^9 bytes per second. The buffer lies
    /// in the memory of the socket of the measuring core.
    ///
    /// # Errors
    /// As [`BenchError`] says.
    pub fn throughput(&self, curve: Curve, bytes: u64) -> Result<f64, BenchError> {
        let words = words(bytes)?;
        let time = self.run(self.plan(curve)?, words)?;
        Ok(bytes as f64 / time.as_ns())
    }

    /// The throughput of the receiver's copy: of a buffer that another core has written into one
    /// that the measuring core has, in 10^9 bytes per second.
    ///
    /// # Errors
    /// As [`BenchError`] says.
    pub fn receiver_copy(&self, holder: Holder, bytes: u64) -> Result<f64, BenchError> {
        let (words, me) = (words(bytes)?, MEASURES);
        let of = |core, deed| Step { core, deed };
        let steps = vec![
            of(me, Deed::StoresSecond),
            of(self.other(holder, 0)?, Deed::Stores(Stores::Cached)),
            of(me, Deed::Begins),
            of(me, Deed::Copies(Stores::Cached)),
            of(me, Deed::Ends),
        ];
        Ok(bytes as f64 / self.run(steps, words)?.as_ns())
    }

    /// The throughput of the sender's copy: of a buffer that the measuring core has into one that
    /// it has written before and another core has read, brought to memory by `flush`, in 10^9 bytes
    /// a second. A flush by the sender is within the time, one by the receiver before it.
    ///
    /// # Errors
    /// As [`BenchError`] says.
    pub fn sender_copy(&self, holder: Holder, bytes: u64, flush: Flush) -> Result<f64, BenchError> {
        let (words, me) = (words(bytes)?, MEASURES);
        let other = self.other(holder, 0)?;
        let of = |core, deed| Step { core, deed };
        let mut steps = vec![of(me, Deed::StoresSecond), of(other, Deed::LoadsSecond)];
        if flush == Flush::Receiver {
            steps.push(of(other, Deed::FlushesSecond));
        }
        let stores = match flush {
            Flush::NonTemporal => Stores::NonTemporal,
            _ => Stores::Cached,
        };
        steps.extend([
            of(me, Deed::Stores(Stores::Cached)),
            of(me, Deed::Begins),
            of(me, Deed::Copies(stores)),
        ]);
        if flush == Flush::Sender {
            steps.push(of(me, Deed::FlushesSecond));
        }
        steps.push(of(me, Deed::Ends));
        Ok(bytes as f64 / self.run(steps, words)?.as_ns())
    }

    /// Runs `steps` one after the other; the time from the beginning to the end of what is timed.
    fn run(&self, steps: Vec<Step>, words: u32) -> Result<Time, BenchError> {
        let shape = self.machine.shape();
        let nodes = 1 + steps.iter().map(|step| step.core.node).max().unwrap_or(0);
        let threads = 1 + steps.iter().map(|step| step.core.core).max().unwrap_or(0);
        let setup = Setup::new(shape, nodes, threads);
        let steps: Arc<[Step]> = steps.into();
        let mut machine = self.machine.build(setup, move |memory, node, core| {
            let steps = Arc::clone(&steps);
            performs(memory, Core { node, core }, steps, words)
        })?;
        machine.run(1, |_| {})?;
        let spans = machine.spans().called(TIMED);
        let span = spans.first();
        Ok(span.map_or(Time::ZERO, |span| span.last_end.since(span.last_begin)))
    }
}

/// The number of words of a buffer.
fn words(bytes: u64) -> Result<u32, BenchError> {
    let most = MAX_BUFFER_BYTES;
    match u32::try_from(bytes / 8) {
        Ok(words) if words > 0 && bytes.is_multiple_of(8) && bytes <= most => Ok(words),
        _ => Err(BenchError::Size { bytes, most }),
    }
}

/// The name of the span that is timed.
const TIMED: &str = "pass";

/// One thing that a core does to the buffer.
#[derive(Clone, Copy, Debug)]
struct Step {
    core: Core,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Loads,
    Stores(Stores),
    Flushes,
    /// Stores to the second buffer, loads from it, or flushes of it.
    StoresSecond,
    LoadsSecond,
    FlushesSecond,
    /// From the first buffer to the second.
    Copies(Stores),
    Begins,
    Ends,
}

/// A thread's part: it waits for each of its turns, and tells the next.
async fn performs(memory: ThreadMemory, me: Core, steps: Arc<[Step]>, words: u32) {
    let place = |offset| Place { node: 0, offset };
    let (first, second) = (
        memory.word(place(BUFFER), Route::Nearest),
        memory.word(place(BUFFER + MAX_BUFFER_BYTES), Route::Nearest),
    );
    // Each is told in a line of its own, so that threads that wait do not disturb each other.
    let told = |core: Core| {
        let line = u64::from(core.node * 64 + core.core);
        memory.flag(place(64 * line), Route::Nearest)
    };
    let timed = Span::new(TIMED, 0);
    let mut before = steps.first().map(|step| step.core);
    for (turn, step) in steps.iter().enumerate() {
        let now = turn as u8 % 127 + 1;
        let core = step.core;
        if before != Some(core) && before == Some(me) {
            memory.set(told(core), now).await;
        }
        if core == me {
            if before != Some(me) {
                memory.wait(told(me), Until::Is(now)).await;
            }
            does(&memory, step.deed, (first, second), words, timed).await;
        }
        before = Some(core);
    }
}

async fn does(
    memory: &ThreadMemory,
    deed: Deed,
    (first, second): (Word, Word),
    words: u32,
    timed: Span,
) {
    match deed {
        Deed::Loads => drop(memory.sum(first, words).await),
        Deed::Stores(stores) => memory.fill(first, words, 1, stores).await,
        Deed::Flushes => memory.flush_words(first, words).await,
        Deed::StoresSecond => memory.fill(second, words, 2, Stores::Cached).await,
        Deed::LoadsSecond => drop(memory.sum(second, words).await),
        Deed::FlushesSecond => memory.flush_words(second, words).await,
        Deed::Copies(stores) => memory.copy_words(first, second, words, stores).await,
        Deed::Begins => memory.begin(timed).await,
        Deed::Ends => memory.end(timed).await,
    }
}

/// The core-to-core latency: half of the time in which a line goes to another core and back, each
/// of which compares and swaps a word when it has the other's value.
///
/// # Errors
/// As [`BenchError`] says.
pub fn round_trip(bench: &Bench, holder: Holder) -> Result<Time, BenchError> {
    const ROUNDS: u64 = 64;
    let other = bench.other(holder, 0)?;
    let setup = Setup::new(bench.machine.shape(), other.node + 1, other.core + 1);
    let mut machine = bench
        .machine
        .build(setup, move |memory, node, core| async move {
            let me = Core { node, core };
            let parity = match me {
                MEASURES => 0,
                _ if me == other => 1,
                _ => return,
            };
            let word = memory.word(
                Place {
                    node: 0,
                    offset: BUFFER,
                },
                Route::Nearest,
            );
            for round in 0..ROUNDS {
                let wanted = 2 * round + parity;
                // The first trips bring the line.
                if round == 8 && parity == 0 {
                    memory.begin(Span::new(TIMED, 0)).await;
                }
                while memory.compare_exchange(word, wanted, wanted + 1).await != wanted {}
            }
            if parity == 0 {
                memory.end(Span::new(TIMED, 0)).await;
            }
        })?;
    machine.run(1, |_| {})?;
    let spans = machine.spans().called(TIMED);
    let span = spans.first();
    let time = span.map_or(Time::ZERO, |span| span.last_end.since(span.last_begin));
    Ok(Time::from_ps(time.as_ps() / (2 * (ROUNDS - 8))))
}
