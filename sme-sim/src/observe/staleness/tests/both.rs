//! Two checkers that are told the same, one record by record, and one in runs where it can be:
//! they must find the same.

use std::sync::{Arc, Mutex};

use sme_memory::{Place, Route};

use crate::observe::staleness::{Checker, Record, StaleLoad, StaleReport, Way, What};
use crate::parts::address::{AddressSpace, CACHEABLE};
use crate::parts::cache::ahead::Access;
use crate::parts::line_size::LineSize;
use crate::time::Time;

/// Addresses of memory that each node has a part of, one after another.
#[derive(Clone, Copy, Debug)]
pub struct Partitions {
    pub nodes: u32,
    pub shared_bytes: u64,
    /// The place where the first begins.
    pub global_base: u64,
    pub line: LineSize,
}

impl AddressSpace for Partitions {
    fn line(&self) -> LineSize {
        self.line
    }

    fn address(&self, _: u32, place: Place, route: Route) -> u64 {
        let cacheable = if route == Route::Cached { CACHEABLE } else { 0 };
        let first = self.global_base + u64::from(place.node) * self.shared_bytes;
        cacheable | (first + place.offset)
    }

    fn cached_place(&self, address: u64) -> Option<Place> {
        let beyond = (address.checked_sub(CACHEABLE)?).checked_sub(self.global_base)?;
        let place = Place {
            node: (beyond / self.shared_bytes) as u32,
            offset: beyond % self.shared_bytes,
        };
        (place.node < self.nodes).then_some(place)
    }

    fn shared(&self, _: u32, address: u64) -> Option<(Place, Way)> {
        Some((self.cached_place(address)?, Way::Cached))
    }
}

/// Both, and what the second has not been told yet.
pub struct Both {
    by_records: Checker,
    in_runs: Checker,
    /// The list of either checker.
    lists: [List; 2],
    /// The latest accesses of a thread through caches, as long as nothing else has been told.
    run: (Time, u32, Vec<Access>),
    map: Partitions,
}

type List = Arc<Mutex<Vec<StaleLoad>>>;

/// Every stale load that `checker` will find.
pub fn listed(checker: &mut Checker) -> List {
    let list = List::default();
    let loads = Arc::clone(&list);
    checker.list(move |&load| loads.lock().expect("no test has failed").push(load));
    list
}

impl Both {
    /// Both made by `checker`; `map` says what addresses mean.
    pub fn new(checker: impl Fn() -> Checker, map: Partitions) -> Self {
        let (mut by_records, mut in_runs) = (checker(), checker());
        Self {
            lists: [listed(&mut by_records), listed(&mut in_runs)],
            by_records,
            in_runs,
            run: (Time::ZERO, 0, Vec::new()),
            map,
        }
    }

    /// Tells both, and says as of when: a run is told as of its beginning.
    pub fn tell(&mut self, mut at: Time, thread: u32, what: What) -> Time {
        let (word, value, site, stores) = match what {
            What::Load {
                word,
                value,
                site,
                way: Way::Cached,
            } => (word, value, site, false),
            What::Store {
                word,
                value,
                site,
                way: Way::Cached,
            } => (word, value, site, true),
            _ => {
                self.end_run();
                let record = Record::new(at, thread, what);
                self.by_records.record(&record);
                self.in_runs.record(&record);
                return at;
            }
        };
        if self.run.1 != thread || self.run.2.is_empty() {
            self.end_run();
            self.run = (at, thread, Vec::new());
        }
        at = self.run.0;
        self.by_records.record(&Record::new(at, thread, what));
        let address = self.map.address(word.node, word, Route::Cached);
        self.run.2.push(Access::new(address, value, site, stores));
        at
    }

    /// Ends both checkers and returns what they have found and listed.
    pub fn finish(mut self) -> (StaleReport, Vec<StaleLoad>) {
        self.end_run();
        let (found, in_runs) = (self.by_records.finish(), self.in_runs.finish());
        assert_eq!(found, in_runs);
        let [list, of_runs] = self
            .lists
            .map(|list| std::mem::take(&mut *list.lock().expect("no test has failed")));
        assert_eq!(list, of_runs);
        (found, list)
    }

    fn end_run(&mut self) {
        let (at, thread, run) = &mut self.run;
        self.in_runs.accesses(*at, *thread, run, &self.map);
        run.clear();
    }
}
