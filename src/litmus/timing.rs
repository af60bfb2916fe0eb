//! The differences between the runs of a test: when each thread starts, how long it halts between
//! instructions, what stands in its store buffer and its caches before, on which socket it is, and
//! whether others store to the same homes meanwhile.
//!
//! Half of these runs are systematic: the threads' lags walk over a grid that gets finer with every
//! run, on scales from a few cycles to more than a remote access takes. The other half is drawn,
//! and there threads halt and store to lines of their own between their instructions; or they race:
//! full buffers drain at about one time, and at that time others access what they hold. Nothing of
//! it changes what memory allows. Runs that follow a way of the model have their timing from
//! `direct`.

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_fft_demo::litmus::Test;
use sme_memory::Route;
use sme_sim::machine::Pinning;
use sme_sim::time::Time;

use super::direct::Costs;
use super::{MemoryKind, roles};

/// The longest lags of a run, in nanoseconds: the store buffer drains in tens, an access within a
/// node takes a hundred, one over the engine one or two thousand.
const SPANS_NS: [u64; 5] = [20, 150, 600, 2_500, 10_000];
/// The same of a run with a crowd, behind whose stores others wait.
const CROWDED_SPANS_NS: [u64; 2] = [2_500, 7_500];
/// The most cores of a node that belong to a crowd, and the most stores of each: together what a
/// node takes about ten microseconds to perform.
const MOST_CROWD: u32 = 8;
const MOST_STORES: u32 = 10;

/// The most private stores in front of an instruction that are drawn: a few fill a store buffer.
const MOST_FILLING: u32 = 8;

/// The acts of a thread before an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lead {
    /// It halts so long first.
    pub(super) ahead: Time,
    /// Then it stores to so many lines of its own that no cache holds, by these routes: they stand
    /// in the store buffer in front of a store of the test.
    pub(super) stores: Vec<Route>,
    /// And it halts so long.
    pub(super) halt: Time,
}

/// The timing of one run.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// The time after the signal at which each thread begins.
    pub(super) lags: Vec<Time>,
    /// The acts of each thread before each of its instructions.
    pub(super) leads: Vec<Vec<Lead>>,
    /// Which locations each thread has loaded before.
    pub(super) warm: Vec<Vec<bool>>,
    /// The time after the end at which each thread begins to write back.
    pub(super) settling: Vec<Time>,
    /// The node whose copy of each location comes home after all others; where there is none, each
    /// node writes everything back at once.
    pub(super) kept: Option<Vec<usize>>,
    /// On which sockets the threads of a node are.
    pub(super) pinning: Pinning,
    /// Who else stores to the home of a location.
    pub(super) crowd: Option<Crowd>,
}

/// Cores that store to one home while the test runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    /// The location at whose home, beside it.
    pub(super) beside: usize,
    /// The number of cores of a node, if it has as many.
    pub(super) cores: u32,
    /// The number of stores of each core.
    pub(super) stores: u32,
    /// A bit for each node, counted modulo 64: whether its cores take part.
    pub(super) nodes: u64,
}

impl Crowd {
    /// Returns whether the cores of `node` take part.
    pub(super) fn is_on(&self, node: u32) -> bool {
        self.nodes >> (node % 64) & 1 == 1
    }
}

impl Timing {
    /// No thread waits, nothing is warm, and there is no crowd.
    pub(super) fn plain(test: &Test) -> Self {
        let threads = test.threads.len();
        let leads = |instructions: &Vec<_>| vec![Lead::default(); instructions.len()];
        Self {
            lags: vec![Time::ZERO; threads],
            leads: test.threads.iter().map(leads).collect(),
            warm: vec![vec![false; test.locations.len()]; threads],
            settling: vec![Time::ZERO; threads],
            kept: None,
            pinning: Pinning::Scatter,
            crowd: None,
        }
    }

    /// The timing of run `run` of those that follow no way. Where it is known what accesses cost,
    /// some of them are races.
    pub(super) fn new(
        test: &Test,
        memory: MemoryKind,
        run: u32,
        seed: u64,
        costs: Option<Costs>,
    ) -> Self {
        let threads = test.threads.len();
        let random = &mut Pcg32::new(seed, 0x117 ^ u64::from(run) << 16);
        let is_crowded = memory != MemoryKind::Local && random.next_u32().is_multiple_of(2);
        let crowd = (is_crowded && !test.locations.is_empty()).then(|| Crowd {
            beside: random.next_u32() as usize % test.locations.len(),
            cores: 2 + random.next_u32() % (MOST_CROWD - 1),
            stores: 2 + random.next_u32() % (MOST_STORES - 1),
            nodes: match random.next_u32().is_multiple_of(2) {
                true => u64::MAX,
                false => random.next_u64(),
            },
        });
        let systematic = run.is_multiple_of(2);
        let step = run / 2;
        let common = step as usize % SPANS_NS.len();
        let span = |random: &mut Pcg32| {
            let of_thread = random.next_u32() as usize % CROWDED_SPANS_NS.len();
            1_000
                * if crowd.is_some() {
                    CROWDED_SPANS_NS[of_thread]
                } else {
                    SPANS_NS[common]
                }
        };
        let point = u64::from(round_of(run));
        let lag = |thread: usize, random: &mut Pcg32| {
            let span = span(random);
            let part = if systematic {
                grid(point, thread)
            } else {
                random.next_u64()
            };
            share(span, part)
        };
        let lags = (0..threads).map(|t| lag(t, random)).collect();
        let pinning = match random.next_u32().is_multiple_of(4) {
            true => Pinning::Compact,
            false => Pinning::Scatter,
        };
        let leads = test.threads.iter().map(|instructions| match systematic {
            true => vec![Lead::default(); instructions.len()],
            false => drawn_leads(instructions.len(), random, &span),
        });
        let leads = leads.collect();
        // Nothing, everything, or anything is in the caches.
        let warmth = random.next_u32() % 4;
        let warm = (0..threads)
            .map(|_| {
                let location = |_| match warmth {
                    _ if memory == MemoryKind::Engine => false,
                    0 => false,
                    1 => true,
                    _ => random.next_u32().is_multiple_of(2),
                };
                (0..test.locations.len()).map(location).collect()
            })
            .collect();
        let race = costs.filter(|_| !systematic && random.next_u32().is_multiple_of(2));
        let (lags, leads, crowd) = match race {
            Some(costs) => (
                vec![Time::ZERO; threads],
                test.threads
                    .iter()
                    .map(|instructions| race_of(instructions.len(), costs, random))
                    .collect(),
                None,
            ),
            None => (lags, leads, crowd),
        };
        let settling = (0..threads)
            .map(|_| share(CROWDED_SPANS_NS[0] * 1_000, random.next_u64()))
            .collect();
        Self {
            lags,
            leads,
            warm,
            settling,
            kept: None,
            pinning,
            crowd,
        }
    }
}

/// The acts of a thread of `count` instructions before each of them in a drawn run: halts within
/// what `span_ps` draws, and private stores.
fn drawn_leads(
    count: usize,
    random: &mut Pcg32,
    span_ps: &impl Fn(&mut Pcg32) -> u64,
) -> Vec<Lead> {
    let mut room = roles::MOST_PRIVATE as u32;
    let lead = |_| {
        let filling = match random.next_u32().is_multiple_of(4) {
            true => random.next_u32() % (MOST_FILLING + 1),
            false => 0,
        };
        let filling = filling.min(room);
        room -= filling;
        Lead {
            ahead: Time::ZERO,
            stores: vec![Route::Nearest; filling as usize],
            halt: match random.next_u32().is_multiple_of(2) {
                true => Time::ZERO,
                false => share(span_ps(random), random.next_u64()),
            },
        }
    };
    (0..count).map(lead).collect()
}

/// The acts of a thread of `count` instructions before each of them in a race: a private store that
/// takes as long for all threads stands in front of the first. Some instruction, or none, comes
/// when that has been performed, and the buffered stores leave.
fn race_of(count: usize, costs: Costs, random: &mut Pcg32) -> Vec<Lead> {
    let mut leads = vec![Lead::default(); count];
    if let Some(first) = leads.first_mut() {
        first.stores.push(Route::Cached);
    }
    let late = random.next_u32() as usize % (count + 1);
    if let Some(lead) = leads.get_mut(late) {
        let about = share(4 * costs.miss.as_ps(), random.next_u64());
        lead.halt = (costs.far + about).since(costs.miss);
    }
    leads
}

/// The round of run `run` of those that follow no way: each has a systematic and a drawn run on
/// every scale of lags.
pub(super) fn round_of(run: u32) -> u32 {
    run / (2 * SPANS_NS.len() as u32)
}

/// `part` of 2^64 parts of `span_ps`.
fn share(span_ps: u64, part: u64) -> Time {
    Time::from_ps(((u128::from(span_ps) * u128::from(part)) >> 64) as u64)
}

/// The coordinate of `thread` of point `point` of a sequence that fills a cube evenly however long
/// it gets, in 2^64 parts: Weyl's, multiples of the square roots of primes.
fn grid(point: u64, thread: usize) -> u64 {
    const PRIMES: [u64; 8] = [2, 3, 5, 7, 11, 13, 17, 19];
    let prime = PRIMES[thread % PRIMES.len()];
    // Threads beyond the primes have another stride in the same sequence.
    let stride = 1 + (thread / PRIMES.len()) as u64 * 16;
    // The fraction of the square root, as √(p·2^126) modulo 2^63, doubled.
    let root = (u128::from(prime) << 120).isqrt() << 4;
    (root as u64).wrapping_mul(point.wrapping_mul(stride).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_fills_the_square() {
        let mut seen = [[0u32; 8]; 8];
        for point in 0..640 {
            let cell = |thread| (grid(point, thread) >> 61) as usize;
            seen[cell(0)][cell(1)] += 1;
        }
        let counts = seen.iter().flatten();
        assert!(counts.clone().all(|&n| (4..=18).contains(&n)), "{seen:?}");
    }
}
