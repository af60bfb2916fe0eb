//! The locks on simulated clusters: one thread at a time, none stands still, no update is lost,
//! whether the data under the lock is reached past the caches or through them; and where the lock
//! does nothing for cached data, updates are lost. The checker of loads finds nothing in the
//! former, and says of the latter what was forgotten.

use std::sync::Arc;

use proptest::prelude::*;
use sme_barrier::lock::{Coherence, Cohort, CohortSpec, Copies, Lock};
use sme_barrier::{Layout, Member};
use sme_memory::{Cacheable, Memory, Place, Route};
use sme_sim::families::sme::cluster::Cluster;
use sme_sim::machine::{Machine, Readable, Setup, System};
use sme_sim::observe::spans::{Overtaken, ThreadSpan, overtaken};
use sme_sim::observe::staleness::{Cause, StaleReport};
use sme_sim::parts::contract::Span;
use sme_sim::parts::fabric::Topology;
use sme_sim::time::Time;

/// The name of the spans in which a thread has the lock.
const HELD: &str = "lock held";

/// Threads that count up words under a lock.
#[derive(Clone, Debug)]
struct Case {
    nodes: u32,
    cores: u32,
    times: u32,
    passes: u32,
    /// Where the words lie that are counted up.
    homes: Vec<u32>,
    route: Route,
    copies: Copies,
    read_back: bool,
    /// The program writes back what it has counted up, itself.
    writes_back: bool,
    /// Stores to the same home before each count.
    burst: u32,
    /// Between two acquisitions each thread is away for up to so long, in ns.
    away: u64,
    seed: u64,
    workers: usize,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
struct Ran {
    /// In the order in which they had the lock.
    holders: Vec<(u32, ThreadSpan)>,
    /// The values of the words at their homes.
    counts: Vec<u64>,
    quiet: bool,
}

impl Case {
    fn lock(&self, copies: Copies) -> Cohort {
        let homes = if self.read_back { &self.homes[..] } else { &[] };
        let spec = CohortSpec {
            nodes: self.nodes,
            cores: self.cores,
            passes: self.passes,
            coherence: Coherence {
                homes: homes.to_vec(),
                copies,
            },
            layout: Layout::padded(64),
        };
        Cohort::new(spec).unwrap()
    }

    /// The words, each on a line of its own behind the lock's variables.
    fn words(&self) -> Vec<Place> {
        let from = self.lock(Copies::Kept).bytes();
        let place = |(index, &node)| Place {
            node,
            offset: from + 64 * index,
        };
        (0u64..).zip(&self.homes).map(place).collect()
    }

    fn run(&self) -> Result<Ran, Overtaken> {
        self.simulate(false).0
    }

    /// Returns the report of the checker of loads.
    fn stale_reads(&self) -> StaleReport {
        self.simulate(true).1.unwrap()
    }

    fn simulate(&self, checked: bool) -> (Result<Ran, Overtaken>, Option<StaleReport>) {
        let words: Arc<[Place]> = self.words().into();
        let copies = match &self.copies {
            Copies::Lines(_) => Copies::Lines(words.to_vec()),
            other => other.clone(),
        };
        let lock = Arc::new(self.lock(copies));
        let (times, route, burst) = (self.times, self.route, self.burst);
        let writes_back = self.writes_back;
        let (away, seed) = (self.away, self.seed);
        let machine = Machine::builtin("sme-prototype").unwrap();
        let setup = Setup::new(machine.shape(), self.nodes, self.cores)
            .on(Topology::for_nodes(self.nodes))
            .seeded(seed)
            .with_each_span(true);
        let spec = sme_sim::families::sme::of(&machine).unwrap();
        let mut cluster = Cluster::new(spec, setup, |memory, node, core| {
            let (lock, words) = (Arc::clone(&lock), Arc::clone(&words));
            async move {
                let me = Member { node, core };
                let mut ticket = 0;
                let mut state = seed ^ u64::from(node) << 32 ^ u64::from(core);
                for _ in 0..times {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    let span = Time::from_ns((state >> 33) % (away + 1));
                    memory.delay(span).await;
                    lock.acquire(&memory, me, &mut ticket).await;
                    // The first word also says which acquisition this is: two threads that are
                    // inside together see the same number, or a lower one than another before.
                    let number = memory.load(memory.word(words[0], route)).await;
                    memory.begin(Span::new(HELD, number as u32)).await;
                    for &place in &words[..] {
                        let word = memory.word(place, route);
                        let value = memory.load(word).await;
                        let beside = memory.word(place.plus(8), route);
                        for _ in 0..burst {
                            memory.store(beside, number).await;
                        }
                        memory.store(word, value + 1).await;
                    }
                    if writes_back {
                        memory.write_back().await;
                    }
                    memory.end(Span::new(HELD, number as u32)).await;
                    lock.release(&memory, me, &mut ticket).await;
                }
            }
        })
        .unwrap();
        if checked {
            cluster.check_loads().unwrap();
            lock.synchronizing()
                .for_each(|word| cluster.synchronizing(word));
        }
        let ended = cluster.run(self.workers, |_| {});
        let stale = cluster.stale_reads();
        let mut holders: Vec<_> = cluster
            .each_span()
            .map(|(node, held)| (node, *held))
            .collect();
        holders.sort_by_key(|(_, held)| held.begin);
        let ran = Ran {
            holders,
            counts: words.iter().map(|&word| cluster.at_home(word)).collect(),
            quiet: cluster.is_quiet(),
        };
        let kept = overtaken(cluster.spans().called(HELD));
        ended.expect("it ends");
        (kept.map(|()| ran), stale)
    }

    /// Runs it and checks what must hold.
    fn check(&self) -> Result<Ran, TestCaseError> {
        let ran = self.run();
        prop_assert!(ran.is_ok(), "{self:?}: {}", ran.unwrap_err());
        let ran = ran.unwrap();
        let all = u64::from(self.nodes * self.cores * self.times);
        prop_assert_eq!(&ran.counts, &vec![all; self.homes.len()]);
        prop_assert_eq!(ran.holders.len() as u64, all);
        for (number, pair) in ran.holders.windows(2).enumerate() {
            let ((_, before), (_, after)) = (pair[0], pair[1]);
            prop_assert_eq!(before.span.number as usize, number);
            prop_assert!(before.end <= after.begin, "{:?} {:?}", before, after);
        }
        prop_assert!(ran.quiet);
        Ok(ran)
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let data = prop::sample::select(vec![
        (Route::Global, Copies::Kept),
        (Route::Nearest, Copies::Kept),
        (Route::Cached, Copies::All),
        (Route::Cached, Copies::Lines(Vec::new())),
    ]);
    let away = prop::sample::select(&[0, 300, 20_000][..]);
    let homes = prop::collection::vec(0..8u32, 1..4);
    (
        (1..=4u32, 1..=4u32, 1..4u32),
        0..5u32,
        homes,
        data,
        away,
        any::<u64>(),
    )
        .prop_map(
            |((nodes, cores, times), passes, homes, (route, copies), away, seed)| Case {
                nodes,
                cores,
                times,
                passes,
                homes: homes.iter().map(|home| home % nodes).collect(),
                route,
                copies,
                read_back: true,
                writes_back: false,
                burst: 0,
                away,
                seed,
                workers: 1,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_update_is_lost(case in cases()) {
        case.check()?;
    }

    #[test]
    fn no_load_is_stale_and_none_races(case in cases()) {
        let report = case.stale_reads();
        prop_assert!(report.loads > 0 && report.is_clean(), "{case:?}: {report}");
        prop_assert_eq!((report.racing_loads, report.racing_stores), (0, 0), "{:?}: {}", case, report);
    }

    #[test]
    fn workers_change_nothing(case in cases()) {
        let one = format!("{:?}", case.run());
        let three = format!("{:?}", Case { workers: 3, ..case }.run());
        prop_assert!(one == three);
    }
}

fn sixteen(copies: Copies) -> Case {
    Case {
        nodes: 4,
        cores: 4,
        times: 4,
        passes: 2,
        homes: vec![3, 0],
        route: Route::Cached,
        copies,
        read_back: true,
        writes_back: false,
        burst: 0,
        away: 0,
        seed: 1,
        workers: 1,
    }
}

/// As often in a row as it may, and no oftener, the lock stays in a node while others wait.
#[test]
fn the_lock_is_passed_on_within_a_node_and_then_given_away() {
    let ran = sixteen(Copies::All).check().unwrap();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &(node, _) in &ran.holders {
        match runs.last_mut() {
            Some((last, length)) if *last == node => *length += 1,
            _ => runs.push((node, 1)),
        }
    }
    // All are there from the beginning; towards the end some nodes have finished.
    let early = &runs[1..runs.len() / 2];
    assert!(early.iter().all(|&(_, length)| length == 3), "{runs:?}");
}

fn causes(report: &StaleReport) -> Vec<Cause> {
    let mut causes: Vec<Cause> = report.findings.iter().map(|found| found.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    causes
}

/// The same lock, which leaves cached data alone: each node counts up its own copy, and so two
/// threads have the same number.
#[test]
fn without_its_coherence_point_updates_are_lost() {
    let forgotten = sixteen(Copies::Kept);
    let kept = forgotten.run();
    assert!(kept.is_err(), "{kept:?}");
    let report = forgotten.stale_reads();
    assert_eq!(causes(&report), [Cause::NotWrittenBack], "{report}");
}

/// Here the program writes its caches back before it releases the lock, and no program drops the
/// copies that other nodes have from before.
#[test]
fn without_invalidation_the_next_holder_counts_up_an_old_copy() {
    let forgotten = Case {
        writes_back: true,
        passes: 0,
        ..sixteen(Copies::Kept)
    };
    let kept = forgotten.run();
    assert!(kept.is_err(), "{kept:?}");
    let report = forgotten.stale_reads();
    assert_eq!(causes(&report), [Cause::NotInvalidated], "{report}");
}

/// The same lock, which does not wait until what was written has been performed at its home: the
/// count comes last in a row of stores, and the next holder looks before it is there. With the
/// read-back it waits for them.
#[test]
fn without_read_backs_updates_are_lost() {
    let burst = |read_back| Case {
        nodes: 3,
        cores: 1,
        homes: vec![2],
        route: Route::Global,
        read_back,
        burst: 64,
        ..sixteen(Copies::Kept)
    };
    burst(true).check().unwrap();
    let lost = burst(false).run();
    assert!(lost.is_err(), "{lost:?}");
    let report = burst(true).stale_reads();
    assert!(report.is_clean(), "{report}");
    let report = burst(false).stale_reads();
    assert_eq!(causes(&report), [Cause::InFlight], "{report}");
}
