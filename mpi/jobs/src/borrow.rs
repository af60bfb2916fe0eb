//! Borrowing memory, measured: a program on core 0 borrows segments of other cores' memory, apart
//! from the cores, maps them where the machine has tables for that, uses them, and returns them
//! (Comprés et al., Sec. 7: the separation of cores and memory as resources).

use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Cacheable, Memory as _, Own, Place, Route, Segments, Spawn, Tables, Word};
use sme_mpi::process::command::{Command, Program};
use sme_mpi::process::daemon::Daemon;
use sme_mpi::process::lending::{KEPT, Lease, MemoryWish};
use sme_mpi::process::sigmod::Sigmod;
use sme_mpi::processor::{Processor, Work};
use sme_sim::machine::Shape;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::job::{Error, Job, Observe, Observed};
use super::processor::Core;
use super::segments::{LINES, lendable, segments};
use super::{Measurement, programs};

/// The program, by its core.
const PROGRAM: Program = 0;

/// Rounds before the one that is measured: daemons have begun then.
const WARM_UP: u32 = 1;

/// The call that borrows.
pub const BORROWS: &str = "borrows";

const MAPS: &str = "maps";
const LOADS_BORROWED: &str = "loads borrowed memory";
const LOADS_OWN: &str = "loads own memory";
const RETURNS: &str = "returns";

/// One program that borrows memory.
#[derive(Clone, Debug)]
pub struct Borrow {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// Segments that it is to have, at least 1.
    pub segments: u32,
    /// The first core whose memory is asked for; those behind it follow, and round again.
    pub from: u32,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The memory that was lent.
    pub leases: Vec<Lease>,
    /// The time of the call that borrows.
    pub borrows: Time,
    /// The time until all of it is mapped.
    pub maps: Time,
    /// The mean time of a load of a line of the last lender's memory that no cache has.
    pub loads_borrowed: Time,
    /// The same of the own core's memory.
    pub loads_own: Time,
    /// The time in which it is written back and returned.
    pub returns: Time,
}

impl Borrow {
    /// The most segments that a program can borrow of all others, and map.
    pub fn most(job: &Job) -> u32 {
        let (count, Segments { unused, .. }) = (lendable(job), segments(job.machine.shape()));
        let all = (job.board().cores.saturating_sub(1)).saturating_mul(count.saturating_sub(KEPT));
        all.min(unused)
    }

    fn wish(&self) -> MemoryWish {
        let cores = self.job.board().cores;
        let candidates = (0..cores).map(|core| (core + self.from) % cores);
        MemoryWish {
            least: self.segments,
            most: self.segments,
            candidates: candidates.filter(|&core| core != 0).collect(),
        }
    }

    /// The program; the memory that it was lent at last.
    async fn course(&self, memory: ThreadMemory, core: Core) -> Result<Vec<Lease>, Error> {
        let board = self.job.board();
        let sigmod = Sigmod::new(memory.clone(), core.clone(), board);
        let wish = self.wish();
        let mut lent = Vec::new();
        for round in 0..=WARM_UP {
            let span = |name| Span::new(name, round);
            memory.begin(span(BORROWS)).await;
            core.enters("MPI_Comm_invade", None, 0).await;
            core.work(&[(Work::Call, 1)]).await;
            lent = sigmod.invade_memory(PROGRAM, &wish).await;
            core.leaves("MPI_Comm_invade").await;
            memory.end(span(BORROWS)).await;
            memory.begin(span(MAPS)).await;
            let map = Map::of(self.job.machine.shape(), &memory, &lent).await;
            memory.end(span(MAPS)).await;
            let intact = self.uses(&memory, (&map, &lent), round).await;
            memory.begin(span(RETURNS)).await;
            map.drops(&memory).await;
            sigmod.return_memory(PROGRAM, &lent).await;
            memory.end(span(RETURNS)).await;
            if !intact {
                let call = "MPI_Comm_invade";
                return Err(Error::Garbled { call, rank: 0 });
            }
        }
        Ok(lent)
    }

    /// Writes to the borrowed memory and loads it again, past the caches and from memory, and then
    /// the own memory; whether what was loaded is what was written.
    async fn uses(&self, memory: &ThreadMemory, (map, lent): (&Map, &[Lease]), round: u32) -> bool {
        let Some(last) = lent.len().checked_sub(1) else {
            return true;
        };
        let value = |line: u32| u64::from(line) << 8 | u64::from(round + 1);
        for line in 0..LINES {
            memory
                .store(map.word(memory, last, line), value(line))
                .await;
        }
        memory.write_back_invalidate().await;
        let mut intact = true;
        let span = Span::new(LOADS_BORROWED, round);
        memory.begin(span).await;
        for line in 0..LINES {
            intact &= memory.load(map.word(memory, last, line)).await == value(line);
        }
        memory.end(span).await;
        let span = Span::new(LOADS_OWN, round);
        memory.begin(span).await;
        for line in 0..LINES {
            // Others in each round: caches of a node's own memory keep what they have.
            let line = round * LINES + line;
            memory.load(map.own_word(memory, line)).await;
        }
        memory.end(span).await;
        intact
    }
}

/// The way to memory that was borrowed.
pub struct Map {
    segments: Segments,
    line_bytes: u64,
    /// Where each lease begins.
    at: Vec<At>,
    /// Entries of the own table that lead there.
    entries: u32,
}

/// The begin of a lease.
#[derive(Clone, Copy)]
enum At {
    /// An address behind the own memory.
    Mapped(Own),
    /// A place that has its address on all nodes.
    Placed(Place),
}

impl Map {
    /// Maps `leases` behind the own memory, one after the other, where the machine has tables.
    pub async fn of(shape: &Shape, memory: &ThreadMemory, leases: &[Lease]) -> Self {
        let mut map = Self {
            segments: segments(shape),
            line_bytes: shape.line_bytes.into(),
            at: Vec::new(),
            entries: 0,
        };
        for lease in leases {
            let at = match shape.segments {
                Some(Segments { bytes, count, .. }) => {
                    let first = count + map.entries;
                    for (entry, segment) in (first..).zip(lease.segments()) {
                        memory.map(entry, lease.core, segment).await;
                    }
                    map.entries += lease.count;
                    At::Mapped(Own(u64::from(first) * bytes))
                }
                None => At::Placed(Place {
                    node: lease.core,
                    offset: u64::from(lease.first) * map.segments.bytes,
                }),
            };
            map.at.push(at);
        }
        map
    }

    /// A word of a line of the lease with that number.
    pub fn word(&self, memory: &ThreadMemory, lease: usize, line: u32) -> Word {
        let offset = u64::from(line) * self.line_bytes;
        match self.at[lease] {
            At::Mapped(Own(first)) => memory.own_word(Own(first + offset)),
            At::Placed(first) => {
                let place = Place {
                    offset: first.offset + offset,
                    ..first
                };
                memory.word(place, Route::Cached)
            }
        }
    }

    /// A word of a line of the own memory, of its last segment.
    fn own_word(&self, memory: &ThreadMemory, line: u32) -> Word {
        let segment = u64::from(self.segments.count - 1) * self.segments.bytes;
        let offset = segment + u64::from(line) * self.line_bytes;
        match self.at.first() {
            Some(At::Mapped(_)) => memory.own_word(Own(offset)),
            _ => {
                let node = memory.node();
                memory.word(Place { node, offset }, Route::Nearest)
            }
        }
    }

    /// Writes back what the caches have, and unmaps it: it can be returned then.
    pub async fn drops(self, memory: &ThreadMemory) {
        memory.write_back_invalidate().await;
        self.unmaps(memory).await;
    }

    /// Unmaps it, and leaves in the caches what they have.
    pub async fn unmaps(self, memory: &ThreadMemory) {
        for entry in (self.segments.count..).take(self.entries as usize) {
            memory.unmap(entry).await;
        }
    }
}

impl Measurement for Borrow {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        u64::from(WARM_UP + 1)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let lent: Arc<Mutex<Vec<Lease>>> = Arc::default();
        let failed: Arc<Mutex<Option<Error>>> = Arc::default();
        let observed = self.job.run(observe, |memory, rank| {
            let (borrow, lent, failed) = (self.clone(), Arc::clone(&lent), Arc::clone(&failed));
            async move {
                let (board, core) = (borrow.job.board(), borrow.job.core(&memory));
                let holder = (rank == 0).then_some(PROGRAM);
                let daemon = Daemon::start(memory.clone(), core, board, holder).await;
                let daemon = daemon.with_segments(lendable(&borrow.job));
                if rank == 0 {
                    let program = move |memory: ThreadMemory| async move {
                        let core = borrow.job.core(&memory);
                        match borrow.course(memory.clone(), core.clone()).await {
                            Ok(leases) => *lent.lock() = leases,
                            Err(error) => *failed.lock() = Some(error),
                        }
                        let all: Vec<u32> = (0..board.cores).collect();
                        Sigmod::new(memory, core, board)
                            .all(&all, Command::Stop)
                            .await;
                    };
                    memory.spawn(None, program).await;
                }
                Ok(daemon.run().await)
            }
        })?;
        if let Some(error) = failed.lock().take() {
            return Err(error);
        }
        let took = |name| {
            let span = programs::last(&observed, name);
            span.last_end.since(span.first_begin)
        };
        let of_line = |all: Time| Time::from_ps(all.as_ps() / u64::from(LINES));
        let outcome = Outcome {
            leases: std::mem::take(&mut lent.lock()),
            borrows: took(BORROWS),
            maps: took(MAPS),
            loads_borrowed: of_line(took(LOADS_BORROWED)),
            loads_own: of_line(took(LOADS_OWN)),
            returns: took(RETURNS),
        };
        Ok((outcome, observed))
    }
}
