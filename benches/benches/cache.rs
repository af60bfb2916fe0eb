//! The speed of a core's caches, those of a K10 core: the butterflies of an FFT, of which every
//! access hits the first level, and a transpose, of which every access hits the second. Figures of
//! throughput are per access.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sme_sim::parts::cache::{Cache, Geometry, Level};
use sme_sim::parts::coherence::State;
use sme_sim::parts::line_size::LineSize;

/// Holds so many lines from number 0 on.
fn filled(lines: u64) -> Cache {
    let (l1, l2) = ((64 << 10, 2), (512 << 10, 16));
    let geometry = Geometry::new(LineSize::B64, l1, l2).expect("a K10 core");
    let mut cache = Cache::new(geometry);
    for line in 0..lines {
        cache.insert(line, State::Exclusive, [line; 8], 0);
    }
    cache
}

fn load(cache: &mut Cache, word: u64, level: Level) -> u64 {
    let (value, found) = cache.load(word / 8, word as u32 % 8).expect("it is held");
    assert_eq!(found, level);
    value
}

fn store(cache: &mut Cache, word: u64, value: u64, level: Level) {
    let found = cache.store(word / 8, word as u32 % 8, 255, value);
    assert_eq!(found, Some(level));
}

/// All butterflies of one pass: two loads and two stores each, `stride` words apart.
fn butterflies(cache: &mut Cache, words: u64, stride: u64) {
    for start in (0..words).step_by(2 * stride as usize) {
        for upper in start..start + stride {
            let lower = upper + stride;
            let (a, b) = (
                load(cache, upper, Level::First),
                load(cache, lower, Level::First),
            );
            store(cache, upper, a.wrapping_add(b), Level::First);
            store(cache, lower, a.wrapping_sub(b), Level::First);
        }
    }
}

/// Walks through the columns of a matrix with one row in `row` lines.
fn columns(lines: u64, row: u64) -> impl Iterator<Item = u64> {
    (0..row).flat_map(move |column| (column..lines).step_by(row as usize))
}

fn first_level(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first level hits");
    // The whole first level: half the words share a set with the other half.
    let words = 8 * 1024;
    group.throughput(Throughput::Elements(2 * words));
    let mut cache = filled(words / 8);
    for stride in [1, 64, 4096] {
        group.bench_function(format!("butterflies {stride} words apart"), |bencher| {
            bencher.iter(|| butterflies(black_box(&mut cache), words, stride));
        });
    }
    group.throughput(Throughput::Elements(words));
    group.bench_function("loads in a row", |bencher| {
        bencher.iter(|| {
            let cache = black_box(&mut cache);
            (0..words).fold(0, |sum: u64, word| {
                sum.wrapping_add(load(cache, word, Level::First))
            })
        });
    });
    group.finish();
}

fn second_level(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("second level hits");
    let lines = 8192;
    group.throughput(Throughput::Elements(lines));
    let mut cache = filled(lines);
    group.bench_function("loads down columns", |bencher| {
        bencher.iter(|| {
            let cache = black_box(&mut cache);
            columns(lines, 64).fold(0, |sum: u64, line| {
                sum.wrapping_add(load(cache, 8 * line, Level::Second))
            })
        });
    });
    group.bench_function("stores down columns", |bencher| {
        bencher.iter(|| {
            let cache = black_box(&mut cache);
            for line in columns(lines, 64) {
                store(cache, 8 * line, line, Level::Second);
            }
        });
    });
    group.finish();
}

fn misses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lines that come");
    let lines = 8192;
    group.throughput(Throughput::Elements(lines));
    group.bench_function("into an empty cache", |bencher| {
        bencher.iter_batched(
            || filled(0),
            |mut cache| {
                for line in 0..lines {
                    cache.insert(line, State::Exclusive, [line; 8], 0);
                }
                cache
            },
            BatchSize::LargeInput,
        );
    });
    let mut cache = filled(lines);
    let mut next = lines;
    group.bench_function("miss, insert, evict", |bencher| {
        bencher.iter(|| {
            for line in next..next + lines {
                assert_eq!(cache.load(line, 0), None);
                let evicted = cache.insert(line, State::Exclusive, [line; 8], 0);
                black_box(evicted.expect("it is full"));
            }
            next += lines;
        });
    });
    group.finish();
}

criterion_group!(benches, first_level, second_level, misses);
criterion_main!(benches);
