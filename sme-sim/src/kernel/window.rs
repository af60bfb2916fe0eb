//! Nodes in windows of time.
//!
//! Whatever one node does reaches another no sooner than the smallest latency between two nodes,
//! the *lookahead*. So all nodes are independent within a window of that length: each runs its
//! own events to the window's end, and messages are handed over for a later window. Windows start
//! at the earliest pending event of the whole machine, so idle time costs nothing. The result
//! does not depend on the number of workers: windows are the same, and each node orders what it
//! receives by (time, source, sequence).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use crate::time::Time;

/// A part of the machine that only messages connect to the others.
pub trait Node: Send {
    /// What nodes send each other.
    type Message: Send;

    /// What a node needs only while it advances, empty before and after: there is one for all nodes
    /// that a worker advances.
    type Workspace: Default + Send;

    /// When it will next do something, [`Time::NEVER`] if only a message can make it.
    fn next(&self) -> Time;

    /// Does everything that happens before `end`.
    fn advance(
        &mut self,
        end: Time,
        outbox: &mut Outbox<Self::Message>,
        workspace: &mut Self::Workspace,
    );

    /// Takes a message that arrives at `at`, not before the end of the current window.
    fn deliver(&mut self, at: Time, from: u32, sequence: u64, message: Self::Message);
}

/// Messages a node sends during a window.
#[derive(Debug)]
pub struct Outbox<M> {
    messages: Vec<Envelope<M>>,
}

#[derive(Debug)]
struct Envelope<M> {
    to: u32,
    at: Time,
    from: u32,
    sequence: u64,
    message: M,
}

impl<M> Outbox<M> {
    fn new() -> Self {
        Self {
            messages: Vec::new(),
        }
    }

    /// Sends `message` from node `from`, whose `sequence`-th it is, to arrive at node `to` at `at`.
    pub fn send(&mut self, from: u32, sequence: u64, to: u32, at: Time, message: M) {
        self.messages.push(Envelope {
            to,
            at,
            from,
            sequence,
            message,
        });
    }
}

/// What a worker keeps for each of its nodes while it runs them.
pub const BYTES_PER_NODE: usize = size_of::<Time>();

/// What the watcher of a run says after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Stop here.
    Stop,
}

/// Runs `nodes` until nothing can happen any more, or `watch` stops it; returns the start of the
/// last window.
///
/// `watch` sees the start of a window and all nodes; it is called before the first window that
/// starts at or after the time it last asked for (at first [`Time::ZERO`]), and only there, so it costs
/// nothing in between. With several workers the nodes are lent back to one thread for the call.
pub fn run<N: Node>(
    nodes: &mut [N],
    lookahead: Time,
    workers: usize,
    mut watch: impl FnMut(Time, &[N]) -> (Verdict, Time),
) -> Time {
    let mut now = Time::ZERO;
    let mut watch_at = Time::ZERO;
    loop {
        let (stopped_at, finished) = if workers <= 1 || nodes.len() < 2 {
            run_alone(nodes, lookahead, watch_at)
        } else {
            run_together(nodes, lookahead, workers.min(nodes.len()), watch_at)
        };
        if stopped_at != Time::NEVER {
            now = stopped_at;
        }
        if finished {
            return now;
        }
        let (verdict, again_at) = watch(stopped_at, nodes);
        if verdict == Verdict::Stop {
            return now;
        }
        watch_at = again_at.max(stopped_at + Time::from_ps(1));
    }
}

/// One worker: until `pause` (then the start of the next window, false) or the end (the start of
/// the last window, true).
fn run_alone<N: Node>(nodes: &mut [N], lookahead: Time, pause: Time) -> (Time, bool) {
    let mut shard = Shard::new(nodes, 0);
    let mut elsewhere = Vec::new();
    let mut last = Time::NEVER;
    loop {
        let start = shard.next();
        if start == Time::NEVER {
            return (last, true);
        }
        if start >= pause {
            return (start, false);
        }
        last = start;
        shard.advance(start + lookahead, &mut elsewhere);
        debug_assert!(elsewhere.is_empty());
    }
}

/// Several workers, each with a contiguous share of the nodes.
fn run_together<N: Node>(
    nodes: &mut [N],
    lookahead: Time,
    workers: usize,
    pause: Time,
) -> (Time, bool) {
    let share = nodes.len().div_ceil(workers);
    let shards: Vec<Shard<'_, N>> = nodes
        .chunks_mut(share)
        .enumerate()
        .map(|(n, chunk)| Shard::new(chunk, (n * share) as u32))
        .collect();
    let workers = shards.len();
    let earliest: Vec<Mutex<Time>> = (0..workers).map(|_| Mutex::new(Time::NEVER)).collect();
    let mail: Vec<Mutex<Vec<Envelope<N::Message>>>> =
        (0..workers).map(|_| Mutex::new(Vec::new())).collect();
    let barrier = Barrier::new(workers);
    let outcome = Mutex::new((Time::NEVER, true));
    let panicked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers);
        for (me, mut shard) in shards.into_iter().enumerate() {
            let (earliest, mail, barrier, outcome) = (&earliest, &mail, &barrier, &outcome);
            let panicked = &panicked;
            threads.push(scope.spawn(move || {
                let mut elsewhere = Vec::new();
                let mut last = Time::NEVER;
                loop {
                    *lock(&earliest[me]) = shard.next();
                    barrier.wait();
                    let start = earliest.iter().map(|t| *lock(t)).min();
                    let start = start.unwrap_or(Time::NEVER);
                    if start == Time::NEVER || start >= pause {
                        if me == 0 {
                            *lock(outcome) = if start == Time::NEVER {
                                (last, true)
                            } else {
                                (start, false)
                            };
                        }
                        return;
                    }
                    last = start;
                    // Whoever panics meets the others once more, lest they wait for ever.
                    let advanced = catch_unwind(AssertUnwindSafe(|| {
                        shard.advance(start + lookahead, &mut elsewhere);
                    }));
                    panicked.fetch_or(advanced.is_err(), Ordering::Relaxed);
                    for envelope in elsewhere.drain(..) {
                        lock(&mail[envelope.to as usize / share]).push(envelope);
                    }
                    barrier.wait();
                    if let Err(panic) = advanced {
                        resume_unwind(panic);
                    }
                    if panicked.load(Ordering::Relaxed) {
                        return;
                    }
                    for envelope in lock(&mail[me]).drain(..) {
                        shard.deliver(envelope);
                    }
                }
            }));
        }
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    });
    *lock(&outcome)
}

/// A worker that panics takes the run with it, so a poisoned lock is never met by anybody who would
/// believe its content.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The nodes of one worker, with the time of each one's next event side by side.
struct Shard<'a, N: Node> {
    nodes: &'a mut [N],
    first: u32,
    next: Vec<Time>,
    outbox: Outbox<N::Message>,
    workspace: N::Workspace,
}

impl<'a, N: Node> Shard<'a, N> {
    fn new(nodes: &'a mut [N], first: u32) -> Self {
        let next = nodes.iter().map(Node::next).collect();
        Self {
            nodes,
            first,
            next,
            outbox: Outbox::new(),
            workspace: N::Workspace::default(),
        }
    }

    fn next(&self) -> Time {
        self.next.iter().copied().min().unwrap_or(Time::NEVER)
    }

    /// Runs every node to `end`. Messages to one's own nodes are delivered at once (they arrive
    /// in a later window), the others are left in `elsewhere`.
    fn advance(&mut self, end: Time, elsewhere: &mut Vec<Envelope<N::Message>>) {
        for number in 0..self.nodes.len() {
            if self.next[number] >= end {
                continue;
            }
            self.nodes[number].advance(end, &mut self.outbox, &mut self.workspace);
            self.next[number] = self.nodes[number].next();
            while let Some(envelope) = self.outbox.messages.pop() {
                debug_assert!(envelope.at >= end, "a message within the window");
                let position = envelope.to.wrapping_sub(self.first) as usize;
                if position < self.nodes.len() {
                    self.deliver(envelope);
                } else {
                    elsewhere.push(envelope);
                }
            }
        }
    }

    fn deliver(&mut self, envelope: Envelope<N::Message>) {
        let position = (envelope.to - self.first) as usize;
        self.nodes[position].deliver(
            envelope.at,
            envelope.from,
            envelope.sequence,
            envelope.message,
        );
        self.next[position] = self.next[position].min(envelope.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::queue::EventQueue;
    use proptest::prelude::*;

    const LOOKAHEAD: Time = Time::from_ps(10);

    /// Passes tokens on at pseudo-random times and writes down everything it sees.
    struct Relay {
        me: u32,
        count: u32,
        sent: u64,
        queue: EventQueue<u64>,
        seen: Vec<(Time, u64)>,
    }

    impl Node for Relay {
        type Message = u64;
        type Workspace = ();

        fn next(&self) -> Time {
            self.queue.next()
        }

        fn advance(&mut self, end: Time, outbox: &mut Outbox<u64>, (): &mut ()) {
            while self.queue.next() < end {
                let Some((now, token)) = self.queue.pop() else {
                    return;
                };
                self.seen.push((now, token));
                if token & 0xff == 0 {
                    continue;
                }
                let hash = (token ^ u64::from(self.me)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let to = (hash >> 32) as u32 % self.count;
                let at = now + LOOKAHEAD + Time::from_ps(hash >> 60);
                self.sent += 1;
                if to == self.me {
                    self.queue.push(at, self.me, self.sent, token - 1);
                } else {
                    outbox.send(self.me, self.sent, to, at, token - 1);
                }
            }
        }

        fn deliver(&mut self, at: Time, from: u32, sequence: u64, token: u64) {
            self.queue.push(at, from, sequence, token);
        }
    }

    fn relays(count: u32, tokens: &[u64], workers: usize) -> (Time, Vec<Vec<(Time, u64)>>) {
        relays_within(LOOKAHEAD, count, tokens, workers)
    }

    fn relays_within(
        lookahead: Time,
        count: u32,
        tokens: &[u64],
        workers: usize,
    ) -> (Time, Vec<Vec<(Time, u64)>>) {
        let mut nodes: Vec<Relay> = (0..count)
            .map(|me| Relay {
                me,
                count,
                sent: 0,
                queue: EventQueue::new(),
                seen: Vec::new(),
            })
            .collect();
        for (n, &token) in tokens.iter().enumerate() {
            let node = &mut nodes[n % count as usize];
            node.sent += 1;
            let (me, sent) = (node.me, node.sent);
            node.queue.push(Time::from_ps(token % 7), me, sent, token);
        }
        let last = run(&mut nodes, lookahead, workers, |now, _| {
            (Verdict::Continue, now + Time::from_ps(100))
        });
        (last, nodes.into_iter().map(|n| n.seen).collect())
    }

    proptest! {
        #[test]
        fn any_number_of_workers_sees_the_same(
            count in 1u32..9,
            tokens in proptest::collection::vec(0u64..1 << 20, 1..20),
            workers in 2usize..6,
        ) {
            prop_assert_eq!(relays(count, &tokens, 1), relays(count, &tokens, workers));
        }
    }

    /// In debug builds; and it ends, whichever worker finds it.
    #[cfg(debug_assertions)]
    #[test]
    fn a_message_within_the_window_is_found() {
        let tokens: Vec<u64> = (0..40).map(|n| n * 7_919).collect();
        for workers in [1, 2, 4] {
            let run = || relays_within(LOOKAHEAD.times(5), 8, &tokens, workers);
            let panic = std::panic::catch_unwind(run).unwrap_err();
            let text = panic.downcast_ref::<&str>().copied();
            assert_eq!(text, Some("a message within the window"));
        }
    }
}
