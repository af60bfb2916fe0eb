//! The speed of the kernel on its own: a node's event queue, simulated programs, and windows.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sme_memory::{Memory, Word};
use sme_sim::families::sme::address::AddressMap;
use sme_sim::kernel::queue::EventQueue;
use sme_sim::kernel::thread::{self, Threads};
use sme_sim::kernel::window::{self, Inbox, Locality, NoLate, NoTask, Node, Outbox, Verdict};
use sme_sim::parts::address::Space;
use sme_sim::parts::contract::{Operation, ThreadMemory};
use sme_sim::parts::line_size::LineSize;
use sme_sim::time::Time;

/// A pseudo-random number below 2^32 (Knuth's multiplicative hash).
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The oldest event leaves and one comes in, among as many as a node has: a few for each core.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue, pop and push");
    group.throughput(Throughput::Elements(1));
    for pending in [4u64, 64, 1024] {
        let mut queue = EventQueue::new();
        for number in 0..pending {
            queue.push(
                Time::from_ps(scattered(number) % 1_000_000),
                0,
                number,
                number,
            );
        }
        let mut sequence = pending;
        group.bench_function(format!("{pending} pending"), |bencher| {
            bencher.iter(|| {
                let (now, event) = queue.pop().expect("none gets lost");
                sequence += 1;
                let at = now + Time::from_ps(scattered(sequence) % 1_000_000);
                queue.push(at, 0, sequence, event);
            });
        });
    }
    group.finish();
}

/// A program is resumed with an answer and asks the next question.
fn threads(criterion: &mut Criterion) {
    let space = Space::new(AddressMap {
        line: LineSize::B64,
        first_shared: 0,
        nodes: 1,
        private_bytes: 1 << 30,
        shared_bytes: 1 << 30,
        global_base: 1 << 40,
    });
    let programs = (0..1024).map(|_| {
        let memory = ThreadMemory::new(Arc::clone(&space), 0, 0);
        async move {
            loop {
                let value = memory.load(Word(8)).await;
                memory.store(Word(16), value + 1).await;
            }
        }
    });
    let mut threads = Threads::new(thread::programs(programs));
    let mut group = criterion.benchmark_group("threads");
    group.throughput(Throughput::Elements(threads.len() as u64));
    group.bench_function("1024 resumed in turn", |bencher| {
        bencher.iter(|| {
            for number in 0..threads.len() {
                assert!(black_box(threads.resume::<Operation>(number, 1)).is_ok());
            }
        });
    });
    group.finish();
}

/// Tokens that go round a ring of nodes, one hop a window.
struct Relay {
    me: u32,
    count: u32,
    sent: u64,
    queue: EventQueue<u64>,
}

const HOP: Time = Time::from_ps(100);

impl Locality for Relay {}

impl Node for Relay {
    type Message = u64;
    type Late = NoLate;
    type Workspace = ();
    type Task = NoTask;

    fn next(&self) -> Time {
        self.queue.next()
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, u64>,
        outbox: &mut Outbox<u64>,
        (): &mut (),
    ) -> Option<NoTask> {
        inbox.hand_over(self);
        while self.queue.next() < end {
            let Some((now, hops)) = self.queue.pop() else {
                break;
            };
            if hops > 0 {
                self.sent += 1;
                let to = (self.me + 1) % self.count;
                outbox.send(self.me, self.sent, to, now + HOP, hops - 1);
            }
        }
        None
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, hops: u64) {
        self.queue.push(at, from, sequence, hops);
    }

    fn take_late(&mut self, _: Time, late: NoLate, _: Time) {
        match late {}
    }
}

fn windows(criterion: &mut Criterion) {
    const NODES: u32 = 64;
    const HOPS: u64 = 1000;
    let mut group = criterion.benchmark_group("windows, 64 nodes");
    for tokens in [1, NODES] {
        group.throughput(Throughput::Elements(u64::from(tokens) * HOPS));
        group.bench_function(format!("{tokens} messages a window"), |bencher| {
            bencher.iter(|| {
                let mut nodes: Vec<Relay> = (0..NODES)
                    .map(|me| Relay {
                        me,
                        count: NODES,
                        sent: 0,
                        queue: EventQueue::new(),
                    })
                    .collect();
                for node in &mut nodes[..tokens as usize] {
                    node.queue.push(Time::ZERO, node.me, 0, HOPS);
                }
                window::run(&mut nodes, HOP, 1, |_, _| (Verdict::Continue, Time::NEVER))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queue, threads, windows);
criterion_main!(benches);
