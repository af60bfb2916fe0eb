//! The workers of one process, and how they get from window to window.
//!
//! Called by [`super::run_among`]. Each worker has a share of the process's nodes. In a window it
//! runs them, and leaves messages for others' nodes where these find them after the workers have
//! met: for a worker of this process in its pigeonhole, for another process in a letter. Where
//! nodes have tasks, what one worker's nodes wait for is done by all of them, before the window
//! ends. Each says when the earliest of what it knows happens, which includes what it has sent; so
//! one meeting is enough to know where the next window starts. Where there are other processes, the
//! first worker exchanges letters with them, and the workers meet once more.
//!
//! Pigeonholes are there twice, for windows in turn: what is written for the next window cannot
//! get among what is still being read.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::peers::{PeerError, Peers, Shares, garbled};
use super::letters;
use super::rendezvous::Rendezvous;
use super::shard::{Deal, Shard, Waits, dealt};
use super::tasks::Tasks;
use super::{Envelope, Exchanged, Locality, Node, Task};
use crate::time::Time;

/// The nodes of this process among all.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessShare {
    /// The division of the nodes among the processes.
    pub(super) shares: Shares,
    /// The number of this process.
    pub(super) me: usize,
}

/// The point that a run has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The start of the last window, [`Time::NEVER`] if there was none.
    pub(super) last: Time,
    /// The start of the next, [`Time::NEVER`] if nothing happens any more.
    pub(super) next: Time,
}

/// Runs `nodes`, those of `share`, until `pause` or the end, with up to `workers` threads. Keeps in
/// `next` the time at which each does something next.
pub(super) fn advance<N: Locality>(
    (nodes, next): (&mut [N], &mut [Time]),
    share: ProcessShare,
    lookahead: Time,
    (workers, pause): (usize, Time),
    peers: &mut dyn Peers,
    exchanged: &mut Exchanged,
) -> Result<Reached, PeerError> {
    let mine = share.shares.of(share.me);
    debug_assert_eq!(nodes.len(), mine.len(), "the nodes of this process");
    let workers = workers.clamp(1, nodes.len().max(1));
    let deal = Deal::new(nodes.len(), workers);
    let team = Team {
        share,
        mine: mine.clone(),
        deal,
        lookahead,
        pause,
        rendezvous: Rendezvous::new(workers),
        tables: [
            Table::new(workers, peers.count()),
            Table::new(workers, peers.count()),
        ],
        start: AtomicU64::new(0),
        unwritten: Mutex::new(None),
        tasks: Tasks::new(workers),
        stop_after: AtomicU64::new(u64::MAX),
    };
    let mut shards = dealt(deal, nodes, next, mine.start).into_iter();
    let Some(first) = shards.next() else {
        return Ok(Reached {
            last: Time::NEVER,
            next: Time::NEVER,
        });
    };
    let others: Vec<_> = shards.collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = others
            .into_iter()
            .enumerate()
            .map(|(number, shard)| {
                let team = &team;
                scope.spawn(move || team.work(number + 1, shard, None))
            })
            .collect();
        let reached = team.work(0, first, Some((peers, exchanged)));
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        reached
    })
}

/// The state that the workers share.
struct Team<N: Node> {
    share: ProcessShare,
    /// The nodes of this process.
    mine: Range<u32>,
    /// The division of the nodes among the workers.
    deal: Deal,
    lookahead: Time,
    pause: Time,
    rendezvous: Rendezvous,
    /// For windows in turn.
    tables: [Table<N::Message>; 2],
    /// The start of the next window, in picoseconds: after an exchange with other processes.
    start: AtomicU64,
    /// The reason why a message could not be written into a letter.
    unwritten: Mutex<Option<PeerError>>,
    /// The tasks that nodes wait for, by the worker that has the node.
    tasks: Tasks<Waits<N>>,
    /// The meeting after which all stop, because a worker has panicked; [`u64::MAX`] if none has.
    stop_after: AtomicU64,
}

/// The result of a meeting with the other workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// They go on.
    GoOn,
    /// One of them has panicked.
    Stop,
}

/// The result of a worker's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// Everything.
    Over,
    /// Nothing: the run pauses before it.
    NotYet,
    /// Another worker has panicked.
    Stopped,
}

/// The messages that workers leave for each other at the end of a window.
struct Table<M> {
    /// By worker: when the earliest of what it knows happens, in picoseconds.
    earliest: Vec<AtomicU64>,
    /// By receiver, then sender.
    pigeonholes: Vec<Vec<Mutex<Vec<Envelope<M>>>>>,
    /// By sender: to each process envelopes as they are written, and how many in all.
    letters: Vec<Mutex<(Vec<Vec<u8>>, u64)>>,
}

impl<M> Table<M> {
    fn new(workers: usize, processes: usize) -> Self {
        let row = |_| (0..workers).map(|_| Mutex::new(Vec::new())).collect();
        Self {
            earliest: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            pigeonholes: (0..workers).map(row).collect(),
            letters: (0..workers)
                .map(|_| Mutex::new((vec![Vec::new(); processes], 0)))
                .collect(),
        }
    }

    fn earliest(&self) -> Time {
        let times = self.earliest.iter().map(|t| t.load(Ordering::Relaxed));
        Time::from_ps(times.min().unwrap_or(u64::MAX))
    }
}

/// The messages of a worker for the others, during a window.
struct Outgoing<M> {
    earliest: Time,
    to_workers: Vec<Vec<Envelope<M>>>,
    to_processes: Vec<Vec<u8>>,
    envelopes: u64,
}

/// Counters that advance alike in all workers.
#[derive(Default)]
struct InStep {
    /// The meetings so far.
    meetings: u64,
    /// The tasks that the workers have offered each other.
    tasks: u64,
}

impl<N: Locality> Team<N> {
    fn work(
        &self,
        me: usize,
        mut shard: Shard<'_, N>,
        mut outside: Option<(&mut dyn Peers, &mut Exchanged)>,
    ) -> Result<Reached, PeerError> {
        let processes = self.tables[0].letters[me].lock().0.len();
        let mut outgoing = Outgoing {
            earliest: Time::NEVER,
            to_workers: (0..self.tables[0].earliest.len())
                .map(|_| Vec::new())
                .collect(),
            to_processes: vec![Vec::new(); processes],
            envelopes: 0,
        };
        let mut letters = vec![Vec::new(); processes];
        let mut last = Time::NEVER;
        let mut in_step = InStep::default();
        for window in 0usize.. {
            let table = &self.tables[window % 2];
            self.leave(table, me, shard.next(), &mut outgoing);
            if self.meet(&mut in_step) == Others::Stop {
                break;
            }
            let start = match (&mut outside, processes) {
                (_, 1) => table.earliest(),
                (None, _) => {
                    self.meet(&mut in_step);
                    Time::from_ps(self.start.load(Ordering::Relaxed))
                }
                (Some((peers, exchanged)), _) => {
                    let start = self.exchange(table, last, *peers, &mut letters, exchanged);
                    let told = start.as_ref().map_or(Time::NEVER, |&start| start);
                    self.start.store(told.as_ps(), Ordering::Relaxed);
                    self.meet(&mut in_step);
                    start?
                }
            };
            // A worker that panics meets the others once more, lest they wait for ever.
            let advanced = catch_unwind(AssertUnwindSafe(|| {
                for pigeonhole in &table.pigeonholes[me] {
                    for envelope in pigeonhole.lock().drain(..) {
                        shard.deliver(envelope);
                    }
                }
                if start == Time::NEVER || start >= self.pause {
                    return Window::NotYet;
                }
                let end = start + self.lookahead;
                shard.advance(start..end, |envelope| self.send(envelope, &mut outgoing));
                if N::Task::ANY && self.deal.has_helpers() {
                    self.do_tasks(end, me, &mut shard, &mut outgoing, &mut in_step)
                } else {
                    Window::Over
                }
            }));
            match advanced {
                Ok(Window::Over) => {
                    last = start;
                    if let Some((_, exchanged)) = &mut outside {
                        exchanged.windows += 1;
                    }
                }
                Ok(Window::NotYet) => {
                    shard.put_down();
                    return Ok(Reached { last, next: start });
                }
                Ok(Window::Stopped) => break,
                Err(panic) => {
                    let next = in_step.meetings + 1;
                    self.stop_after.fetch_min(next, Ordering::Relaxed);
                    self.rendezvous.wait();
                    resume_unwind(panic);
                }
            }
        }
        Ok(Reached {
            last,
            next: Time::NEVER,
        })
    }

    /// Meets the others; whether all are to stop now.
    fn meet(&self, in_step: &mut InStep) -> Others {
        self.rendezvous.wait();
        in_step.meetings += 1;
        match self.stop_after.load(Ordering::Relaxed) <= in_step.meetings {
            true => Others::Stop,
            false => Others::GoOn,
        }
    }

    /// Does together with the others what nodes wait for, and runs own nodes on to `end`, until
    /// none waits any more.
    fn do_tasks(
        &self,
        end: Time,
        me: usize,
        shard: &mut Shard<'_, N>,
        outgoing: &mut Outgoing<N::Message>,
        in_step: &mut InStep,
    ) -> Window {
        loop {
            self.tasks.offer(me, shard.tasks());
            if self.meet(in_step) == Others::Stop {
                return Window::Stopped;
            }
            let known = std::mem::replace(&mut in_step.tasks, self.tasks.count());
            if in_step.tasks == known {
                return Window::Over;
            }
            while let Some((owner, (place, mut task))) =
                self.tasks.take(me, Shard::<N>::ask_for_tasks)
            {
                shard.perform(&mut task);
                self.tasks.is_done(owner, (place, task));
            }
            if self.meet(in_step) == Others::Stop {
                return Window::Stopped;
            }
            let mut done = self.tasks.take_back(me);
            while let Some(waits) = done.pop() {
                shard.ask_for_waiting(&done);
                shard.goes_on(end, waits, |envelope| self.send(envelope, outgoing));
            }
        }
    }

    /// Puts a message to a node of others where it will be left for them.
    fn send(&self, envelope: Envelope<N::Message>, outgoing: &mut Outgoing<N::Message>) {
        outgoing.earliest = outgoing.earliest.min(envelope.at);
        if self.mine.contains(&envelope.to) {
            let worker = self.deal.seat(envelope.to - self.mine.start).worker;
            outgoing.to_workers[worker].push(envelope);
            return;
        }
        let process = self.share.shares.owner(envelope.to);
        outgoing.envelopes += 1;
        if let Err(error) = letters::write(&envelope, &mut outgoing.to_processes[process]) {
            *self.unwritten.lock() = Some(garbled(self.share.me, error));
        }
    }

    /// Leaves everything outgoing for the others; `next` is when something happens at own nodes.
    fn leave(
        &self,
        table: &Table<N::Message>,
        me: usize,
        next: Time,
        outgoing: &mut Outgoing<N::Message>,
    ) {
        let earliest = next.min(std::mem::replace(&mut outgoing.earliest, Time::NEVER));
        table.earliest[me].store(earliest.as_ps(), Ordering::Relaxed);
        for (to, envelopes) in outgoing.to_workers.iter_mut().enumerate() {
            if !envelopes.is_empty() {
                std::mem::swap(envelopes, &mut table.pigeonholes[to][me].lock());
            }
        }
        if outgoing.envelopes > 0 {
            let mut left = table.letters[me].lock();
            std::mem::swap(&mut left.0, &mut outgoing.to_processes);
            left.1 = std::mem::take(&mut outgoing.envelopes);
        }
    }

    /// Exchanges letters with the other processes at the end of the window that began at `window`,
    /// and puts what came where the workers find it. Returns where the next window starts.
    fn exchange(
        &self,
        table: &Table<N::Message>,
        window: Time,
        peers: &mut dyn Peers,
        letters: &mut [Vec<u8>],
        exchanged: &mut Exchanged,
    ) -> Result<Time, PeerError> {
        if let Some(error) = self.unwritten.lock().take() {
            return Err(error);
        }
        for left in &table.letters {
            let mut left = left.lock();
            exchanged.messages += std::mem::take(&mut left.1);
            for (letter, envelopes) in letters.iter_mut().zip(&mut left.0) {
                letters::append(letter, window, envelopes);
                envelopes.clear();
            }
        }
        exchanged.bytes += letters
            .iter()
            .map(|letter| letter.len() as u64)
            .sum::<u64>();
        let start = peers.exchange(letters, table.earliest())?;
        for (process, letter) in letters.iter_mut().enumerate() {
            letters::read(process, letter, (window, start), |envelope| {
                if !self.mine.contains(&envelope.to) {
                    return Err(garbled(process, "a message to a node of others"));
                }
                let worker = self.deal.seat(envelope.to - self.mine.start).worker;
                table.pigeonholes[worker][0].lock().push(envelope);
                Ok(())
            })?;
            letter.clear();
        }
        Ok(start)
    }
}
