//! The findings and the list that the oracle expects of a checker.

use std::collections::BTreeMap;

use crate::observe::staleness::{Cause, StaleLoad, StaleReport};

/// The findings of the oracle.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    pub stale: BTreeMap<Cause, u64>,
    pub equal: u64,
    pub racing_loads: u64,
    pub racing_stores: u64,
    /// Every load that was stale or stale but equal, in the order in which they were performed.
    pub list: Vec<StaleLoad>,
}

impl Expected {
    /// The same, as the checker has it.
    pub fn of((report, list): (StaleReport, Vec<StaleLoad>)) -> Self {
        let mut stale = BTreeMap::new();
        for finding in &report.findings {
            *stale.entry(finding.cause).or_default() += finding.count;
        }
        assert_eq!(stale.values().sum::<u64>(), report.stale_reads);
        assert_eq!((report.further, report.ignored), (0, 0));
        Self {
            stale,
            equal: report.stale_but_equal,
            racing_loads: report.racing_loads,
            racing_stores: report.racing_stores,
            list,
        }
    }

    /// There is one more stale load.
    pub fn add(&mut self, load: StaleLoad) {
        if load.is_equal() {
            self.equal += 1;
        } else {
            *self.stale.entry(load.cause).or_default() += 1;
        }
        self.list.push(load);
    }
}
