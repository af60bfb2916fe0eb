//! The barriers on real threads, as a library: the algorithms of this crate over the memory of
//! [`sme_memory::native`]. Used by programs that want a barrier faster than
//! [`std::sync::Barrier`], and by the command `sme native`, which measures them.
//!
//! A barrier is made for a number of threads and taken apart into as many [`Handle`]s, one for
//! each thread. A handle cannot be copied and waits by `&mut`, so that no thread can take another's
//! part and none can be in two episodes at once.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::thread;
//!
//! use sme_barrier::native::Barrier;
//!
//! # fn main() -> Result<(), sme_barrier::native::BarrierError> {
//! let arrived = AtomicU32::new(0);
//! thread::scope(|scope| {
//!     for mut handle in Barrier::new(4)?.handles() {
//!         let arrived = &arrived;
//!         scope.spawn(move || {
//!             for episode in 1..=100 {
//!                 arrived.fetch_add(1, Ordering::Relaxed);
//!                 handle.wait();
//!                 assert!(arrived.load(Ordering::Relaxed) >= 4 * episode);
//!             }
//!         });
//!     }
//!     Ok(())
//! })
//! # }
//! ```
//!
//! The way in which a thread waits depends on the processors that the process may use
//! ([`Patience::for_threads`]): where they are enough for all threads it spins for a bounded time,
//! shorter while that turns out to be in vain, and then sleeps; where not, it offers its processor
//! to the others a few times and then sleeps.

use std::marker::PhantomData;
use std::sync::Arc;

pub use sme_memory::native::Patience;
use sme_memory::native::{LINE, Native, Protocol, Size, Sound, Thread, run};
use thiserror::Error;

use crate::{Algorithm, BarrierSpec, Homes, Layout, Member, Ranks, Spacing, SpecError, Use, build};

/// The most threads of a native barrier.
pub const MOST_THREADS: usize = 1 << 16;

/// The reason why there is no such barrier.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// More threads than [`MOST_THREADS`].
    #[error("a native barrier has at most {MOST_THREADS} threads, not {threads}")]
    TooManyThreads {
        /// The number that was given.
        threads: usize,
    },
    /// The algorithm does not exist with these options.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// The options of a native barrier. The default measures best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The algorithm. Where it tells nodes and threads apart, every thread is a node.
    pub algorithm: Algorithm,
    /// The fan-in of [`Algorithm::Tree`].
    pub fan_in: u32,
    /// Whether flags share cache lines.
    pub spacing: Spacing,
    /// The patience of a waiting thread before it sleeps; by default one that suits the number of
    /// threads.
    pub patience: Option<Patience>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::FlagPhase,
            fan_in: 8,
            spacing: Spacing::Padded,
            patience: None,
        }
    }
}

impl Options {
    /// The default, but for the algorithm.
    pub fn of(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            ..Self::default()
        }
    }
}

/// A barrier for real threads, before it is handed out to them.
pub struct Barrier {
    handles: Vec<Handle>,
}

impl Barrier {
    /// A barrier for `threads` threads.
    ///
    /// # Errors
    ///
    /// If there is no thread, or more than [`MOST_THREADS`].
    pub fn new(threads: usize) -> Result<Self, BarrierError> {
        Self::with_options(threads, Options::default())
    }

    /// A barrier for `threads` threads as described.
    ///
    /// # Errors
    ///
    /// If there is no thread, more than [`MOST_THREADS`], or the algorithm does not exist with
    /// these options.
    pub fn with_options(threads: usize, options: Options) -> Result<Self, BarrierError> {
        Self::with_protocol::<Sound>(threads, options)
    }

    /// Does the same as [`Barrier::with_options`], for a checker that breaks the memory's
    /// [`Protocol`].
    ///
    /// # Errors
    ///
    /// As [`Barrier::with_options`].
    pub fn with_protocol<P: Protocol>(
        threads: usize,
        options: Options,
    ) -> Result<Self, BarrierError> {
        let count = match u32::try_from(threads) {
            Ok(count) if threads <= MOST_THREADS => count,
            _ => return Err(BarrierError::TooManyThreads { threads }),
        };
        let layout = Layout {
            spacing: options.spacing,
            line_bytes: LINE as u32,
            base: 0,
            homes: Homes::Own,
        };
        let patience = options
            .patience
            .unwrap_or_else(|| Patience::for_threads(threads));
        // Where the algorithm tells nodes and threads apart, every thread is a node.
        let (nodes, cores) = match options.algorithm {
            Algorithm::FlagPhase | Algorithm::Pthread => (1, count),
            _ => (count, 1),
        };
        let spec = BarrierSpec {
            fan_in: options.fan_in,
            ..BarrierSpec::new(
                options.algorithm,
                Ranks::new((0..nodes).collect())?,
                cores,
                layout,
            )
        };
        let seats = Seats::<P> {
            nodes,
            cores,
            flags: options.algorithm != Algorithm::Pthread,
            words: matches!(options.algorithm, Algorithm::Pthread | Algorithm::Counter),
            patience,
            protocol: PhantomData,
        };
        let handles = build(&spec, seats)?;
        Ok(Self { handles })
    }

    /// Returns the number of threads that it is for.
    pub fn threads(&self) -> usize {
        self.handles.len()
    }

    /// Takes the barrier apart: a handle for each thread. A handle that is dropped, or whose
    /// thread ends, is missed by the others: they wait for it for ever.
    pub fn handles(self) -> Vec<Handle> {
        self.handles
    }
}

/// One thread's part of a [`Barrier`].
pub struct Handle {
    seat: Box<dyn Wait>,
    id: usize,
}

impl Handle {
    /// Waits until all threads of the barrier are in this call for the same time.
    ///
    /// All that a thread did before its call happens before all that any thread does after.
    pub fn wait(&mut self) -> BarrierWaitResult {
        self.seat.wait();
        BarrierWaitResult {
            is_leader: self.id == 0,
        }
    }

    /// Its number among the barrier's threads, from 0.
    pub fn id(&self) -> usize {
        self.id
    }
}

/// The result of [`Handle::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Returns whether this thread is the one of its episode that does what one thread has to do;
    /// always the handle with number 0.
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }
}

/// One thread's part in any barrier of the contract, also in one that this crate does not know.
///
/// [`Handle`] chooses the algorithm when it runs; this is for when it is known before, so that the
/// algorithm is compiled into the caller.
pub struct Seat<B: crate::Barrier<Thread<P>>, P: Protocol = Sound> {
    barrier: Arc<B>,
    memory: Thread<P>,
    me: Member,
    local: B::Local,
}

impl<B: crate::Barrier<Thread<P>>, P: Protocol> Seat<B, P> {
    /// The part of `me` in `barrier`, whose data lies in `memory`. Each member must have one seat.
    pub fn new(barrier: Arc<B>, memory: &Native<P>, me: Member) -> Self {
        Self {
            barrier,
            memory: memory.thread(me.node),
            me,
            local: B::Local::default(),
        }
    }

    /// Waits until all members of the barrier are in this call for the same time.
    #[inline]
    pub fn wait(&mut self) {
        run(self.barrier.wait(&self.memory, self.me, &mut self.local));
    }
}

/// A [`Seat`] of whichever barrier.
trait Wait: Send {
    fn wait(&mut self);
}

impl<B: crate::Barrier<Thread<P>>, P: Protocol> Wait for Seat<B, P> {
    fn wait(&mut self) {
        Seat::wait(self);
    }
}

/// Seats every thread of `nodes` nodes of `cores` threads in a barrier.
struct Seats<P> {
    nodes: u32,
    cores: u32,
    /// The barrier has flags.
    flags: bool,
    /// Whether the memory has words.
    words: bool,
    patience: Patience,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Use<Thread<P>> for Seats<P> {
    type Output = Vec<Handle>;

    fn barrier<B: crate::Barrier<Thread<P>> + 'static>(
        self,
        barrier: B,
        bytes: u64,
    ) -> Vec<Handle> {
        let size = Size {
            nodes: self.nodes,
            flag_bytes: if self.flags { bytes } else { 0 },
            word_bytes: if self.words { bytes } else { 0 },
        };
        let barrier = Arc::new(barrier);
        let memory = Native::<P>::with_protocol(size, self.patience);
        let cores = self.cores;
        let members =
            (0..self.nodes).flat_map(|node| (0..cores).map(move |core| Member { node, core }));
        members
            .enumerate()
            .map(|(id, me)| Handle {
                seat: Box::new(Seat::new(Arc::clone(&barrier), &memory, me)),
                id,
            })
            .collect()
    }
}
