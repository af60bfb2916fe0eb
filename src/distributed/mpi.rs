//! Processes connected by MPI, as `mpirun` starts them.
//!
//! Called by [`crate::cli::main`]. One collective operation a window tells every process how many
//! bytes come from each other one and when the next window starts; the bytes themselves go from
//! process to process, only where there are any. All of it happens on the main thread.
//!
//! When a process dies, the launcher ends the others; the first two of these say why on stderr, as
//! the launcher may not. (Open MPI's does not always pass on what they say then, but speaks
//! itself.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::mpi::datatype::PartitionMut;
use ::mpi::environment::Threading;
use ::mpi::point_to_point::MatchedReceiveVec;
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use ::mpi::{Count, Rank};
use sme_sim::kernel::peers::{PeerError, Peers};
use sme_sim::time::Time;

use super::Crew;
use crate::report::stop::{one_line, to_stderr};

/// Marks letters of a window.
const LETTER: i32 = 1;
/// Marks single messages.
const MESSAGE: i32 = 2;

/// The variables by which launchers tell a process the number of processes: Open MPI; MPICH and its
/// descendants.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Does `work` with the other processes, if a launcher has started several; returns its exit
/// status, for process 0 and all others.
pub fn launched(work: impl FnOnce(&mut dyn Crew) -> u8) -> Option<u8> {
    let size = SIZES.iter().find_map(|name| std::env::var(name).ok());
    if size.is_none_or(|size| size == "1") {
        return None;
    }
    let Some((universe, _)) = ::mpi::initialize_with_threading(Threading::Funneled) else {
        to_stderr("sme: MPI does not start\n");
        return Some(1);
    };
    let world = universe.world();
    let mut crew = World::new(world);
    let over = crew.tell_of_the_end();
    let status = catch_unwind(AssertUnwindSafe(|| work(&mut crew)));
    over.store(true, Ordering::Relaxed);
    match status {
        Ok(status) => Some(status),
        Err(_) => {
            // What panicked has been printed.
            crew.abandon("it has panicked");
            Some(101)
        }
    }
}

/// On how many computers the processes run, as the launcher says: as many times the memory of one
/// are there, if they are alike.
pub fn computers() -> u64 {
    let number = |names: [&str; 2]| -> Option<u64> {
        let text = names.iter().find_map(|name| std::env::var(name).ok())?;
        text.parse().ok().filter(|&number| number > 0)
    };
    let local = number(["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]);
    let all = number(SIZES);
    match (all, local) {
        (Some(all), Some(local)) => (all / local).max(1),
        _ => 1,
    }
}

/// All processes that the launcher has started.
struct World {
    world: SimpleCommunicator,
    count: usize,
    me: usize,
}

impl World {
    fn new(world: SimpleCommunicator) -> Self {
        Self {
            count: usize::try_from(world.size()).unwrap_or(1),
            me: usize::try_from(world.rank()).unwrap_or(0),
            world,
        }
    }

    /// Lets this process say so when the launcher ends it, because another has died; until what it
    /// returns is true: then it has done its work, and some other has ended with a bad status.
    fn tell_of_the_end(&self) -> Arc<AtomicBool> {
        let over = Arc::new(AtomicBool::new(false));
        // One of two is alive.
        if self.me > 1 {
            return over;
        }
        let work_is_over = Arc::clone(&over);
        let (me, count) = (self.me, self.count);
        let Ok(mut signals) = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM])
        else {
            return over;
        };
        std::thread::spawn(move || {
            if signals.forever().next().is_some() && !work_is_over.load(Ordering::Relaxed) {
                to_stderr(&format!(
                    "sme: process {me} of {count} has been ended from outside, as when another \
                     process dies; there is no result\n"
                ));
                // At once: what libraries do at an exit may wait for what the main thread holds.
                signal_hook::low_level::exit(1);
            }
        });
        over
    }
}

impl Peers for World {
    fn count(&self) -> usize {
        self.count
    }

    fn me(&self) -> usize {
        self.me
    }

    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        let mut told = Vec::with_capacity(2 * self.count);
        for letter in letters.iter() {
            told.extend([
                u64::from(length(letter.len())?.unsigned_abs()),
                earliest.as_ps(),
            ]);
        }
        let mut heard = vec![0u64; told.len()];
        self.world.all_to_all_into(&told[..], &mut heard[..]);
        let mut least = earliest;
        let mut incoming = Vec::with_capacity(self.count);
        for pair in heard.chunks_exact(2) {
            incoming.push(vec![0u8; pair[0] as usize]);
            least = least.min(Time::from_ps(pair[1]));
        }
        ::mpi::request::scope(|scope| {
            let mut requests = Vec::new();
            for (from, letter) in (0..).zip(&mut incoming) {
                if !letter.is_empty() {
                    let process = self.world.process_at_rank(from);
                    let letter = &mut letter[..];
                    requests.push(process.immediate_receive_into_with_tag(scope, letter, LETTER));
                }
            }
            for (to, letter) in (0..).zip(letters.iter()) {
                if !letter.is_empty() {
                    let process = self.world.process_at_rank(to);
                    requests.push(process.immediate_send_with_tag(scope, &letter[..], LETTER));
                }
            }
            for request in requests {
                request.wait_without_status();
            }
        });
        for (letter, came) in letters.iter_mut().zip(incoming) {
            *letter = came;
        }
        Ok(least)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        let parts = self.lengths(&mine)?;
        let mut all = vec![0u8; parts.bytes];
        let (counts, begins) = (&parts.counts[..], &parts.begins[..]);
        let mut partition = PartitionMut::new(&mut all[..], counts, begins);
        self.world
            .all_gather_varcount_into(&mine[..], &mut partition);
        Ok(parts.of(&all))
    }

    fn gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        let parts = self.lengths(&mine)?;
        let root = self.world.process_at_rank(0);
        if self.me > 0 {
            root.gather_varcount_into(&mine[..]);
            return Ok(Vec::new());
        }
        let mut all = vec![0u8; parts.bytes];
        let (counts, begins) = (&parts.counts[..], &parts.begins[..]);
        let mut partition = PartitionMut::new(&mut all[..], counts, begins);
        root.gather_varcount_into_root(&mine[..], &mut partition);
        Ok(parts.of(&all))
    }
}

impl Crew for World {
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), PeerError> {
        length(message.len())?;
        let process = self.world.process_at_rank(to as Rank);
        process.send_with_tag(&message[..], MESSAGE);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, PeerError> {
        let any = self.world.any_process();
        let found = any.immediate_matched_probe_with_tag(MESSAGE);
        Ok(found.map(|found| {
            let (message, status) = found.matched_receive_vec::<u8>();
            (status.source_rank().unsigned_abs() as usize, message)
        }))
    }

    fn abandon(&mut self, reason: &str) {
        let (me, count) = (self.me, self.count);
        let reason = one_line(reason);
        to_stderr(&format!(
            "sme: process {me} of {count}: {reason}; all processes are ended, there is no result\n"
        ));
        self.world.abort(1);
    }

    fn peers(&mut self) -> &mut dyn Peers {
        self
    }
}

impl World {
    /// Returns the lengths of all processes' contributions, of which this one brings `mine`.
    fn lengths(&self, mine: &[u8]) -> Result<Parts, PeerError> {
        let mut lengths = vec![0u64; self.count];
        let own = mine.len() as u64;
        self.world.all_gather_into(&own, &mut lengths[..]);
        let mut parts = Parts::default();
        for bytes in lengths {
            parts.begins.push(length(parts.bytes)?);
            parts.counts.push(length(bytes as usize)?);
            parts.bytes += bytes as usize;
        }
        length(parts.bytes)?;
        Ok(parts)
    }
}

/// Where in a buffer what each process brings stands. The same at all of them.
#[derive(Default)]
struct Parts {
    counts: Vec<Count>,
    begins: Vec<Count>,
    bytes: usize,
}

impl Parts {
    fn of(&self, all: &[u8]) -> Vec<Vec<u8>> {
        let parts = self.counts.iter().zip(&self.begins);
        parts
            .map(|(&count, &begin)| {
                let begin = begin.unsigned_abs() as usize;
                let part = all.get(begin..begin + count.unsigned_abs() as usize);
                part.unwrap_or_default().to_vec()
            })
            .collect()
    }
}

/// As MPI counts.
fn length(bytes: usize) -> Result<Count, PeerError> {
    Count::try_from(bytes).map_err(|_| PeerError::TooLong { bytes })
}
