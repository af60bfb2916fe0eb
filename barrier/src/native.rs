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
//! How a thread waits depends on the processors that the process may use
//! ([`Patience::for_threads`]): where they are enough for all threads it spins for a bounded time,
//! shorter while that turns out to be in vain, and then sleeps; where not, it offers its processor
//! to the others a few times and then sleeps.

use std::sync::Arc;

use sme_memory::Route;
pub use sme_memory::native::Patience;
use sme_memory::native::{LINE, Native, Protocol, Size, Sound, Thread, run};
use thiserror::Error;

use crate::{
    Algorithm, Butterfly, ButterflySpec, Dissemination, DisseminationSpec, FlagPhase,
    FlagPhaseSpec, Flat, FlatSpec, Layout, Member, Pthread, PthreadSpec, Ranks, Spacing, SpecError,
    Tree, TreeShape, TreeSpec,
};

/// The most threads of a native barrier.
pub const MOST_THREADS: usize = 1 << 16;

/// Why there is no such barrier.
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

/// What a native barrier is made of. The default measures best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The algorithm. Where it tells nodes and threads apart, every thread is a node.
    pub algorithm: Algorithm,
    /// The fan-in of [`Algorithm::Tree`].
    pub fan_in: u32,
    /// Whether flags share cache lines.
    pub spacing: Spacing,
    /// What a waiting thread does before it sleeps; by default what suits the number of threads.
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

    /// As [`Barrier::with_options`], for a checker that breaks the memory's [`Protocol`].
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
        };
        let patience = options
            .patience
            .unwrap_or_else(|| Patience::for_threads(threads));
        let ranks = || Ranks::new((0..count).collect());
        let handles = match options.algorithm {
            Algorithm::FlagPhase => {
                let barrier = FlagPhase::new(FlagPhaseSpec {
                    threads: vec![count],
                    home: 0,
                    route: Route::Nearest,
                    layout,
                })?;
                let bytes = barrier.bytes();
                seats::<_, P>(barrier, one_node(count), flags(1, bytes), patience)
            }
            Algorithm::Flat => {
                let barrier = Flat::new(FlatSpec {
                    ranks: ranks()?,
                    cores: 1,
                    layout,
                })?;
                let bytes = barrier.bytes();
                seats::<_, P>(barrier, own_nodes(count), flags(count, bytes), patience)
            }
            Algorithm::Tree => {
                let barrier = Tree::new(TreeSpec {
                    ranks: ranks()?,
                    cores: 1,
                    fan_in: options.fan_in,
                    shape: TreeShape::Heap,
                    layout,
                })?;
                let bytes = barrier.bytes();
                seats::<_, P>(barrier, own_nodes(count), flags(count, bytes), patience)
            }
            Algorithm::Dissemination => {
                let barrier = Dissemination::new(DisseminationSpec {
                    ranks: ranks()?,
                    cores: 1,
                    layout,
                })?;
                let bytes = barrier.bytes();
                seats::<_, P>(barrier, own_nodes(count), flags(count, bytes), patience)
            }
            Algorithm::Butterfly => {
                let barrier = Butterfly::new(ButterflySpec {
                    ranks: ranks()?,
                    cores: 1,
                    layout,
                })?;
                let bytes = barrier.bytes();
                seats::<_, P>(barrier, own_nodes(count), flags(count, bytes), patience)
            }
            Algorithm::Pthread => {
                let barrier = Pthread::new(PthreadSpec {
                    node: 0,
                    threads: count,
                    layout,
                })?;
                let size = Size {
                    nodes: 1,
                    flag_bytes: 0,
                    word_bytes: barrier.bytes(),
                };
                seats::<_, P>(barrier, one_node(count), size, patience)
            }
        };
        Ok(Self { handles })
    }

    /// How many threads it is for.
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
    /// What a thread did before its call is before what any thread does after.
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

/// What [`Handle::wait`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Whether this thread is the one of its episode that does what one thread has to do; always
    /// the handle with number 0.
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

fn seats<B, P>(
    barrier: B,
    members: impl Iterator<Item = Member>,
    size: Size,
    patience: Patience,
) -> Vec<Handle>
where
    B: crate::Barrier<Thread<P>> + 'static,
    P: Protocol,
{
    let barrier = Arc::new(barrier);
    let memory = Native::<P>::with_protocol(size, patience);
    members
        .enumerate()
        .map(|(id, me)| Handle {
            seat: Box::new(Seat::new(Arc::clone(&barrier), &memory, me)),
            id,
        })
        .collect()
}

/// All threads in one node.
fn one_node(threads: u32) -> impl Iterator<Item = Member> {
    (0..threads).map(|core| Member { node: 0, core })
}

/// Every thread a node of its own.
fn own_nodes(threads: u32) -> impl Iterator<Item = Member> {
    (0..threads).map(|node| Member { node, core: 0 })
}

/// Memory for flags only.
fn flags(nodes: u32, flag_bytes: u64) -> Size {
    Size {
        nodes,
        flag_bytes,
        word_bytes: 0,
    }
}
