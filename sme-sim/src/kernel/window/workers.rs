//! The workers of one process, and how they get from window to window.
//!
//! Called by [`super::run_among`]. Each worker has a share of the process's nodes. In a
//! window it runs them, and leaves messages for others' nodes where these find them after the
//! workers have met: for a worker of this process in its pigeonhole, for another process in a
//! letter. Each says when the earliest of what it knows happens, which includes what it has sent;
//! so one meeting is enough to know where the next window starts. Where there are other
//! processes, the first worker exchanges letters with them, and the workers meet once more.
//!
//! Pigeonholes are there twice, for windows in turn: what is written for the next window cannot
//! get among what is still being read.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::peers::{PeerError, Peers, Shares, garbled};
use super::letters;
use super::rendezvous::Rendezvous;
use super::shard::{Deal, Shard, dealt};
use super::{Envelope, Exchanged, Node};
use crate::time::Time;

/// The nodes of this process among all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// How the nodes are shared among the processes.
    pub(super) shares: Shares,
    /// Which process this is.
    pub(super) me: usize,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The start of the last window, [`Time::NEVER`] if there was none.
    pub(super) last: Time,
    /// The start of the next, [`Time::NEVER`] if nothing happens any more.
    pub(super) next: Time,
}

/// Runs `nodes`, those of `place`, until `pause` or the end, with up to `workers` threads. When each
/// does something next is kept in `next`.
pub(super) fn advance<N: Node>(
    (nodes, next): (&mut [N], &mut [Time]),
    place: Place,
    lookahead: Time,
    (workers, pause): (usize, Time),
    peers: &mut dyn Peers,
    exchanged: &mut Exchanged,
) -> Result<Reached, PeerError> {
    let mine = place.shares.of(place.me);
    debug_assert_eq!(nodes.len(), mine.len(), "the nodes of this process");
    let workers = workers.clamp(1, nodes.len().max(1));
    let deal = Deal::new(nodes.len(), workers);
    let team = Team {
        place,
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

/// What the workers share.
struct Team<M> {
    place: Place,
    /// The nodes of this process.
    mine: Range<u32>,
    /// How they are dealt out to the workers.
    deal: Deal,
    lookahead: Time,
    pause: Time,
    rendezvous: Rendezvous,
    /// For windows in turn.
    tables: [Table<M>; 2],
    /// Where the next window starts, in picoseconds: after an exchange with other processes.
    start: AtomicU64,
    /// Why a message could not be written into a letter.
    unwritten: Mutex<Option<PeerError>>,
}

/// What workers leave for each other at the end of a window.
struct Table<M> {
    /// By worker: when the earliest of what it knows happens, in picoseconds.
    earliest: Vec<AtomicU64>,
    /// By receiver, then sender.
    pigeonholes: Vec<Vec<Mutex<Vec<Envelope<M>>>>>,
    /// By sender: to each process envelopes as they are written, and how many in all.
    letters: Vec<Mutex<(Vec<Vec<u8>>, u64)>>,
    /// Whether a worker has panicked in the window.
    panicked: AtomicBool,
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
            panicked: AtomicBool::new(false),
        }
    }

    fn earliest(&self) -> Time {
        let times = self.earliest.iter().map(|t| t.load(Ordering::Relaxed));
        Time::from_ps(times.min().unwrap_or(u64::MAX))
    }
}

/// Where a worker puts what is for others, during a window.
struct Outgoing<M> {
    earliest: Time,
    to_workers: Vec<Vec<Envelope<M>>>,
    to_processes: Vec<Vec<u8>>,
    envelopes: u64,
}

impl<M: super::Message> Team<M> {
    fn work<N: Node<Message = M>>(
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
        for window in 0usize.. {
            let [table, following] = [0, 1].map(|further| &self.tables[(window + further) % 2]);
            self.leave(table, me, shard.next(), &mut outgoing);
            self.rendezvous.wait();
            if table.panicked.load(Ordering::Relaxed) {
                break;
            }
            let start = match (&mut outside, processes) {
                (_, 1) => table.earliest(),
                (None, _) => {
                    self.rendezvous.wait();
                    Time::from_ps(self.start.load(Ordering::Relaxed))
                }
                (Some((peers, exchanged)), _) => {
                    let start = self.exchange(table, last, *peers, &mut letters, exchanged);
                    let told = start.as_ref().map_or(Time::NEVER, |&start| start);
                    self.start.store(told.as_ps(), Ordering::Relaxed);
                    self.rendezvous.wait();
                    start?
                }
            };
            // Whoever panics meets the others once more, lest they wait for ever.
            let advanced = catch_unwind(AssertUnwindSafe(|| {
                for pigeonhole in &table.pigeonholes[me] {
                    for envelope in pigeonhole.lock().drain(..) {
                        shard.deliver(envelope);
                    }
                }
                if start == Time::NEVER || start >= self.pause {
                    return false;
                }
                shard.advance(start + self.lookahead, |envelope| {
                    self.send(envelope, &mut outgoing);
                });
                true
            }));
            match advanced {
                Ok(true) => {
                    last = start;
                    if let Some((_, exchanged)) = &mut outside {
                        exchanged.windows += 1;
                    }
                }
                Ok(false) => return Ok(Reached { last, next: start }),
                Err(panic) => {
                    following.panicked.store(true, Ordering::Relaxed);
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

    /// Puts a message to a node of others where it will be left for them.
    fn send(&self, envelope: Envelope<M>, outgoing: &mut Outgoing<M>) {
        outgoing.earliest = outgoing.earliest.min(envelope.at);
        if self.mine.contains(&envelope.to) {
            let worker = self.deal.worker(envelope.to - self.mine.start);
            outgoing.to_workers[worker].push(envelope);
            return;
        }
        let process = self.place.shares.owner(envelope.to);
        outgoing.envelopes += 1;
        if let Err(error) = letters::write(&envelope, &mut outgoing.to_processes[process]) {
            *self.unwritten.lock() = Some(garbled(self.place.me, error));
        }
    }

    /// Leaves everything outgoing for the others; `next` is when something happens at own nodes.
    fn leave(&self, table: &Table<M>, me: usize, next: Time, outgoing: &mut Outgoing<M>) {
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
        table: &Table<M>,
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
                let worker = self.deal.worker(envelope.to - self.mine.start);
                table.pigeonholes[worker][0].lock().push(envelope);
                Ok(())
            })?;
            letter.clear();
        }
        Ok(start)
    }
}
