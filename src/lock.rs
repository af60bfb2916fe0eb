//! A lock ([`sme_barrier::lock`]) on a simulated machine: how long it takes to go from one thread
//! to the next, within a node and between nodes.
//!
//! Every thread acquires the lock a number of times, one right after the other, and counts up a
//! word of node 0 while it has it. A hand-over lasts from the end of one such section to the
//! beginning of the next, of any thread: what the lock does to make the word's memory
//! coherent is part of it. Called by [`crate::cli::lock`].

use std::sync::Arc;

use sme_barrier::lock::{
    Coherence, Cohort, CohortSpec, Copies, Lock, LockError, LockKind, TestAndSetLock,
    TestAndSetSpec,
};
use sme_barrier::{Layout, Member};
use sme_memory::{Lacks, Memory, Place, Register, Route};
use sme_sim::kernel::peers::{Alone, Peers};
use sme_sim::machine::{CannotBuild, Machine, Setup, explained};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::gauge::Progress;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

use crate::experiment::{Full, TooManyCores};

/// The name of the spans in which a thread has the lock, numbered by its acquisitions.
const HELD: &str = "lock held";

/// The access to the word under the lock, and the lock's actions for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Past the caches.
    Uncached,
    /// Through the caches, its line written back and dropped.
    Line,
    /// Through the caches, all of which are written back and dropped.
    All,
}

sme_barrier::names!(Data, "data", {
    Uncached => "uncached",
    Line => "line",
    All => "all",
});

/// The plan of a simulation of a lock.
#[derive(Clone, Debug)]
pub struct LockPlan {
    /// The machine, with every `--set` applied.
    pub machine: Arc<Machine>,
    /// `--topology`
    pub topology: Topology,
    /// `--nodes`
    pub nodes: u32,
    /// `--cores`: threads per node.
    pub cores: u32,
    /// `--lock`
    pub lock: LockKind,
    /// `--acquisitions` of each thread.
    pub acquisitions: u32,
    /// `--passes` within a node before the lock is given to another; [`LockKind::Cohort`] only.
    pub passes: u32,
    /// `--data`
    pub data: Data,
    /// `--seed`
    pub seed: u64,
    /// `--workers`: threads of the host; the outcome does not depend on it.
    pub workers: usize,
}

/// The times of some hand-overs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOvers {
    /// The number of hand-overs.
    pub count: u64,
    /// All together.
    pub total: Time,
    /// The shortest.
    pub min: Time,
    /// The longest.
    pub max: Time,
}

impl HandOvers {
    fn add(&mut self, span: Time) {
        self.min = if self.count == 0 {
            span
        } else {
            self.min.min(span)
        };
        self.max = self.max.max(span);
        self.total += span;
        self.count += 1;
    }

    /// The mean; nothing where there were none.
    pub fn mean(&self) -> Option<Time> {
        let ps = self.total.as_ps().checked_div(self.count)?;
        Some(Time::from_ps(ps))
    }
}

/// The outcome of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockReport {
    /// From a thread to another of its node, or to itself.
    pub within: HandOvers,
    /// From a node to another.
    pub across: HandOvers,
    /// Acquisitions of all threads.
    pub acquisitions: u64,
    /// Loads through an engine.
    pub remote_loads: u64,
    /// Stores through an engine.
    pub remote_stores: u64,
    /// Simulated events.
    pub events: u64,
    /// Simulated time at the end.
    pub end: Time,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node does not have so many cores.
    #[error(transparent)]
    Cores(#[from] TooManyCores),
    /// The lock cannot be built from these parameters.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The machine cannot do what the lock needs.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The machine cannot be built.
    #[error(transparent)]
    Build(#[from] CannotBuild),
    /// The lock's data does not fit.
    #[error(transparent)]
    Memory(#[from] Full),
    /// The simulation did not end well.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// Two threads had the lock at once.
    #[error("the lock does not hold: two threads had it at {at}")]
    Overlap {
        /// The time at which the second came.
        at: Time,
    },
    /// Not all that was counted under the lock was found at the end.
    #[error("the lock does not hold: {found} at the end and not {expected}")]
    Lost {
        /// The value of the word.
        found: u64,
        /// The number of times that it was counted up.
        expected: u64,
    },
}

impl LockPlan {
    /// Simulates it.
    ///
    /// # Errors
    /// [`Error::Cores`], [`Error::Lock`] and [`Error::Build`] if there is no such lock or machine,
    /// [`Error::Failure`] if the run ends in a fault or a deadlock, [`Error::Overlap`] and
    /// [`Error::Lost`] if the lock or its coherence point is wrong.
    pub fn run(&self) -> Result<LockReport, Error> {
        self.run_watched(|_| {})
    }

    /// The same; `watch` is told now and then how often the lock has been acquired.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_watched(&self, watch: impl FnMut(u64)) -> Result<LockReport, Error> {
        TooManyCores::check(&self.machine, self.cores)?;
        let what = format!("the {} lock", self.lock);
        let needs = self.lock.needs();
        let home = self.machine.shape().homes(self.nodes).start;
        let coherence = |copies| Coherence {
            homes: vec![home],
            copies,
        };
        // Where the variables lie does not depend on the copies.
        let unknown = coherence(Copies::Kept);
        let offset = match self.lock {
            LockKind::Cohort => self.cohort(unknown)?.bytes(),
            LockKind::TestAndSet => self.test_and_set(unknown)?.bytes(),
        };
        // On a line of its own behind the lock's variables.
        let word = Place { node: home, offset };
        let line_bytes = self.machine.shape().line_bytes;
        Full::check(&self.machine, word.offset + u64::from(line_bytes))?;
        let (route, copies) = match self.data {
            Data::Uncached => (Route::Global, Copies::Kept),
            Data::Line => (Route::Cached, Copies::Lines(vec![word])),
            Data::All => (Route::Cached, Copies::All),
        };
        let coherence = coherence(copies);
        let needs = needs.and(coherence.needs()).on_nodes(self.nodes);
        self.machine.suffices(&what, needs)?;
        match self.lock {
            LockKind::Cohort => self.measure(self.cohort(coherence)?, (word, route), watch),
            LockKind::TestAndSet => {
                self.measure(self.test_and_set(coherence)?, (word, route), watch)
            }
        }
    }

    fn cohort(&self, coherence: Coherence) -> Result<Cohort, LockError> {
        Cohort::new(CohortSpec {
            nodes: self.nodes,
            cores: self.cores,
            passes: self.passes,
            coherence,
            layout: self.layout(),
        })
    }

    fn test_and_set(&self, coherence: Coherence) -> Result<TestAndSetLock, LockError> {
        TestAndSetLock::new(TestAndSetSpec {
            nodes: self.nodes,
            register: Register { node: 0, number: 0 },
            coherence,
            layout: self.layout(),
        })
    }

    fn layout(&self) -> Layout {
        let shape = self.machine.shape();
        Layout::padded(shape.line_bytes).at(shape.sharing(self.nodes))
    }

    /// Runs `lock` over the word at `word`.
    fn measure<L: Lock<ThreadMemory> + 'static>(
        &self,
        lock: L,
        (word, route): (Place, Route),
        mut watch: impl FnMut(u64),
    ) -> Result<LockReport, Error> {
        let lock = Arc::new(lock);
        let times = self.acquisitions;
        let setup = Setup::new(self.machine.shape(), self.nodes, self.cores)
            .on(self.topology.clone())
            .seeded(self.seed)
            .with_each_span(true);
        let program = |memory: ThreadMemory, node, core| {
            let lock = Arc::clone(&lock);
            async move {
                let me = Member { node, core };
                let mut local = L::Local::default();
                memory.counts().await;
                for number in 0..times {
                    lock.acquire(&memory, me, &mut local).await;
                    memory.begin(Span::new(HELD, number)).await;
                    let word = memory.word(word, route);
                    let count = memory.load(word).await;
                    memory.store(word, count + 1).await;
                    memory.end(Span::new(HELD, number)).await;
                    lock.release(&memory, me, &mut local).await;
                }
            }
        };
        let mut machine = self.machine.build(setup.clone(), program)?;
        let told = |progress: Progress| watch(progress.reached.ended(HELD));
        if let Err(failure) = machine.run(self.workers, told) {
            drop(machine);
            let again = |_: &mut dyn Peers| self.machine.build(setup, program);
            let name = |place| lock.variable(place);
            return Err(explained(failure, again, (&mut Alone, self.workers), &name).into());
        }

        let mut held: Vec<(Time, Time, Member)> = machine
            .each_span()
            .map(|(node, each)| {
                let core = each.thread.into();
                (each.begin, each.end, Member { node, core })
            })
            .collect();
        held.sort_unstable();
        let (mut within, mut across) = (HandOvers::default(), HandOvers::default());
        for pair in held.windows(2) {
            let [(_, left, from), (came, _, to)] = [pair[0], pair[1]];
            if came < left {
                return Err(Error::Overlap { at: came });
            }
            let same = from.node == to.node;
            let kind = if same { &mut within } else { &mut across };
            kind.add(came.since(left));
        }
        let (found, expected) = (machine.at_home(word), held.len() as u64);
        if found != expected {
            return Err(Error::Lost { found, expected });
        }
        let traffic = machine.traffic();
        Ok(LockReport {
            within,
            across,
            acquisitions: expected,
            remote_loads: traffic.remote_loads,
            remote_stores: traffic.remote_stores,
            events: machine.events(),
            end: machine.end(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: u32, cores: u32, data: Data) -> LockPlan {
        let machine = Machine::builtin("sme-prototype");
        LockPlan {
            machine: Arc::new(machine.expect("a built-in machine")),
            topology: Topology::for_nodes(nodes),
            nodes,
            cores,
            lock: LockKind::Cohort,
            acquisitions: 4,
            passes: 4,
            data,
            seed: 1,
            workers: 1,
        }
    }

    /// A hand-over between nodes takes at least the way of a grant and the look before it; one
    /// within a node none of that.
    #[test]
    fn a_lock_goes_faster_within_a_node() {
        for &data in Data::ALL {
            let report = plan(4, 4, data).run().expect("a report");
            assert_eq!(report.acquisitions, 64);
            let (within, across) = (report.within, report.across);
            assert_eq!(within.count + across.count, 63);
            assert!(across.min > Time::from_ns(2_000), "{data}: {across:?}");
            assert!(within.min < Time::from_ns(1_000), "{data}: {within:?}");
        }
    }

    #[test]
    fn who_watches_sees_every_acquisition() {
        let (mut last, mut looks) = (0, 0);
        let report = plan(2, 2, Data::Uncached).run_watched(|acquired| {
            assert!(acquired >= last);
            (last, looks) = (acquired, looks + 1);
        });
        assert_eq!(report.expect("a report").acquisitions, last);
        assert!(looks > 0);
    }

    /// A lock that its first holder never gives away.
    struct Kept(Cohort);

    impl Lock<ThreadMemory> for Kept {
        type Local = <Cohort as Lock<ThreadMemory>>::Local;

        async fn acquire(&self, memory: &ThreadMemory, me: Member, local: &mut Self::Local) {
            self.0.acquire(memory, me, local).await;
        }

        async fn release(&self, _: &ThreadMemory, _: Member, _: &mut Self::Local) {}

        fn variable(&self, place: Place) -> Option<String> {
            Lock::<ThreadMemory>::variable(&self.0, place)
        }
    }

    #[test]
    fn a_lock_that_is_not_given_away_is_named() {
        let plan = plan(2, 2, Data::Uncached);
        let coherence = Coherence {
            homes: vec![0],
            copies: Copies::Kept,
        };
        let lock = Kept(plan.cohort(coherence).expect("a lock"));
        let word = Place {
            node: 0,
            offset: lock.0.bytes(),
        };
        let ended = plan.measure(lock, (word, Route::Global), |_| {});
        let Err(Error::Failure(failure)) = ended else {
            panic!("no deadlock: {ended:?}");
        };
        let report = failure.to_string();
        let mut lines = report.lines().skip(1);
        let bell = "  node 0 core 0 spins in its cache at the bell of node 0 rung by node 1, byte 640 of node 0 \
                    (0x200000280), until it is not 0, in barrier/src/lock/tournament.rs:";
        assert!(
            lines.next().is_some_and(|line| line.starts_with(bell)),
            "{report}"
        );
        let ticket = "  node 0 core 1 spins in its cache at node 0's flag for ticket 1, byte 128 of node 0 \
                      (0x200000080), until it is 1, in barrier/src/lock/ticket.rs:";
        assert!(
            lines.next().is_some_and(|line| line.starts_with(ticket)),
            "{report}"
        );
        assert!(
            report
                .lines()
                .skip(1)
                .all(|line| line.ends_with("; never written")),
            "{report}"
        );
    }

    #[test]
    fn a_node_has_a_core_for_each_thread() {
        let refused = plan(2, 17, Data::Line).run().expect_err("17 of 16 cores");
        let expected = "--cores 17: a node of sme-prototype has 16 cores";
        assert_eq!(refused.to_string(), expected);
    }

    #[test]
    fn one_node_needs_no_engine_for_its_lock() {
        let report = plan(1, 4, Data::Line).run().expect("a report");
        assert_eq!(report.across.count, 0);
        assert_eq!(report.across.mean(), None);
    }
}
