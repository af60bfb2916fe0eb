//! The speed at which the stale-read detector takes records like the FFT's: threads compute on
//! their own rows, meet in a barrier that makes memory coherent, and transpose, that is read what
//! others have written. Making the records is part of the time. All words hold zero: what is
//! checked are the versions, at any values.

use std::hint::black_box;
use std::panic::Location;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sme_memory::Place;
use sme_sim::observe::staleness::{Checker, Record, Site, Way, What};
use sme_sim::parts::line_size::LineSize;
use sme_sim::time::Time;

const CORES: u32 = 4;
/// Words of a line.
const LINE: u64 = 8;

/// A program on `nodes` nodes, whose threads own `share` words (a power of two) of two arrays.
struct Program {
    nodes: u32,
    share: u64,
    passes: u32,
    now: u64,
    checker: Checker,
    loads: u64,
    barriers: u64,
}

impl Program {
    fn new(nodes: u32, share: u64) -> Self {
        Self {
            nodes,
            share,
            passes: 3,
            now: 0,
            checker: Checker::new(nodes, CORES, LineSize::B64).expect("few threads"),
            loads: 0,
            barriers: 0,
        }
    }

    #[inline]
    fn tell(&mut self, thread: u32, what: What) {
        self.now += 100;
        self.checker
            .record(&Record::new(Time::from_ps(self.now), thread, what));
    }

    #[inline]
    fn load(&mut self, thread: u32, word: Place, site: Site) {
        self.loads += 1;
        let (value, way) = (0, Way::Cached);
        self.tell(
            thread,
            What::Load {
                word,
                value,
                site,
                way,
            },
        );
    }

    #[inline]
    fn store(&mut self, thread: u32, word: Place, site: Site) {
        let (value, way) = (0, Way::Cached);
        self.tell(
            thread,
            What::Store {
                word,
                value,
                site,
                way,
            },
        );
    }

    fn word(&self, array: u64, thread: u32, number: u64) -> Place {
        let part = array * u64::from(CORES) + u64::from(thread % CORES);
        Place {
            node: thread / CORES,
            offset: 8 * (part * self.share + number),
        }
    }

    fn threads(&self) -> u32 {
        self.nodes * CORES
    }

    /// Butterflies in place: two loads and two stores each.
    fn compute(&mut self) {
        let site = Location::caller();
        for thread in 0..self.threads() {
            for line in 0..self.share / LINE {
                let line = self.word(0, thread, line * LINE);
                self.tell(thread, What::Filled { line });
            }
            for pass in 0..self.passes {
                let span = 1 << pass;
                for number in (0..self.share).filter(|number| number & span == 0) {
                    let pair = [number, number | span].map(|n| self.word(0, thread, n));
                    for word in pair {
                        self.load(thread, word, site);
                    }
                    for word in pair {
                        self.store(thread, word, site);
                    }
                }
            }
        }
    }

    /// Each thread reads a line of every other in turn, as far as its share goes.
    fn transpose(&mut self) {
        let site = Location::caller();
        for thread in 0..self.threads() {
            for line in 0..self.share / LINE {
                let from = (thread + line as u32) % self.threads();
                let source = self.word(0, from, line * LINE);
                self.tell(thread, What::Filled { line: source });
                for number in 0..LINE {
                    self.load(thread, source.plus(8 * number), site);
                    let target = self.word(1, thread, line * LINE + number);
                    self.store(thread, target, site);
                }
            }
        }
    }

    /// The nodes write `array` back, notify node 0, and are released.
    fn barrier(&mut self, array: u64) {
        let value = (self.barriers % 2) as u8;
        let flag = |thread: u32, kind: u64| Place {
            node: 0,
            offset: (1 << 20) + 64 * (2 * u64::from(thread) + kind),
        };
        for node in 0..self.nodes {
            let master = node * CORES;
            for thread in master..master + CORES {
                self.tell(
                    thread,
                    What::Set {
                        flag: flag(thread, 0),
                        value,
                    },
                );
                self.tell(
                    master,
                    What::Saw {
                        flag: flag(thread, 0),
                        value,
                    },
                );
                for line in 0..self.share / LINE {
                    let line = self.word(array, thread, line * LINE);
                    let (bytes, old) = (u64::MAX, 0);
                    self.tell(master, What::WroteBack { line, bytes, old });
                    self.tell(
                        master,
                        What::Performed {
                            line,
                            bytes,
                            by_node: node,
                        },
                    );
                }
            }
            self.tell(master, What::DroppedAll);
            self.tell(
                master,
                What::Set {
                    flag: flag(master, 1),
                    value,
                },
            );
            self.tell(
                0,
                What::Saw {
                    flag: flag(master, 1),
                    value,
                },
            );
        }
        self.tell(
            0,
            What::Set {
                flag: flag(1, 1),
                value,
            },
        );
        for thread in 0..self.threads() {
            self.tell(
                thread,
                What::Saw {
                    flag: flag(1, 1),
                    value,
                },
            );
        }
        self.barriers += 1;
    }

    fn step(&mut self) {
        self.compute();
        self.barrier(0);
        self.transpose();
        self.barrier(1);
    }
}

/// The rate is that of the loads alone; as many stores and some fills and write-backs come with
/// them.
fn fft(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("staleness, loads of an FFT");
    for (nodes, share) in [(4, 512), (64, 1024)] {
        let mut program = Program::new(nodes, share);
        program.step();
        group.throughput(Throughput::Elements(program.loads));
        group.bench_function(
            format!("{nodes} nodes, {share} words per thread"),
            |bencher| {
                bencher.iter(|| program.step());
            },
        );
        let report = black_box(program.checker.finish());
        assert!(report.is_clean(), "{report}");
        let others = (
            report.stale_but_equal,
            report.racing_loads,
            report.racing_stores,
        );
        assert_eq!(others, (0, 0, 0), "{report}");
    }
    group.finish();
}

/// Hits in what the thread's node has written: no stores, no fills.
fn loads(criterion: &mut Criterion) {
    let mut program = Program::new(64, 1024);
    program.step();
    let site = Location::caller();
    let mut group = criterion.benchmark_group("staleness, loads only");
    let count = 1 << 16;
    group.throughput(Throughput::Elements(count));
    group.bench_function("64 nodes, 1024 words per thread", |bencher| {
        bencher.iter(|| {
            for number in 0..count {
                let thread = (number >> 8) as u32 % program.threads();
                let word = program.word(0, thread, number % 1024);
                program.tell(
                    thread,
                    What::Load {
                        word,
                        value: 0,
                        site,
                        way: Way::Cached,
                    },
                );
            }
        });
    });
    group.finish();
    let report = program.checker.finish();
    assert!(report.is_clean(), "{report}");
}

criterion_group!(benches, fft, loads);
criterion_main!(benches);
