//! Runs in which the simulator keeps nodes in compact form: which these are, and how they go.

use std::sync::Arc;

use sme_barrier::{Barrier, Member};
use sme_memory::Leader;
use sme_sim::families::sme;
use sme_sim::families::sme::compact::{CompactCluster, Skew};
use sme_sim::families::sme::spec::{BridgeWrites, HomeSockets};
use sme_sim::kernel::peers::Peers;
use sme_sim::machine::System;
use sme_sim::parts::contract::ThreadMemory;

use super::super::run::Counted;
use super::super::watch::Watch;
use super::super::{Algorithm, EngineKind, Error, Experiment, FlagLayout, Form, Observe, Outcome};
use super::spec;

impl Experiment {
    /// Returns whether the run is in compact form.
    ///
    /// # Errors
    /// [`Error::NotCompact`] if it must be and cannot.
    pub fn is_compact(&self, observe: &Observe<'_>) -> Result<bool, Error> {
        match (self.form, self.why_not_compact(observe)) {
            (Form::Compact, Some(why)) => Err(Error::NotCompact(why.to_owned())),
            (Form::Readable, _) | (Form::Auto, Some(_)) => Ok(false),
            (Form::Compact | Form::Auto, None) => Ok(true),
        }
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.cores)
    }

    /// Returns the reason why the run cannot be in compact form, if there is one.
    pub fn why_not_compact(&self, observe: &Observe<'_>) -> Option<&'static str> {
        let Some(spec) = sme::of(&self.machine) else {
            return Some("only machines with Shared Memory Engines have a compact form");
        };
        if spec.coherence.homes != HomeSockets::First {
            return Some(
                "only where all lines have their home on the first socket (coherence.homes)",
            );
        }
        if spec.pool.devices > 0 {
            return Some("only where nodes share no pool (pool.devices)");
        }
        if spec.host.bridge_writes != BridgeWrites::Serial {
            return Some(
                "only where the I/O bridge performs one write at a time (host.bridge_writes)",
            );
        }
        if !matches!(self.algorithm, Algorithm::Tree | Algorithm::Dissemination) {
            return Some("only the tree and the dissemination barrier have a compact form");
        }
        if self.local_fan_in.is_some() {
            return Some("only without --local-fan-in");
        }
        if self.engine != EngineKind::Cycle {
            return Some("only with --engine cycle");
        }
        if self.flag_layout() != FlagLayout::Padded {
            return Some("only with --layout padded");
        }
        if observe.looks_at_threads() || observe.waves.is_some() {
            return Some("what single threads and ports do is not recorded");
        }
        None
    }

    /// Simulates `barrier`, which has both forms, in the one that suits the run.
    pub(crate) fn simulate_in_its_form<B>(
        &self,
        peers: &mut dyn Peers,
        barrier: B,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error>
    where
        B: Leader + Barrier<ThreadMemory> + Clone + 'static,
    {
        if !self.is_compact(observe)? {
            return self.simulate_among(peers, barrier, observe, watch);
        }
        match self.simulate_compact(peers, barrier.clone(), observe, watch) {
            Err(Error::NotCompact(_)) if self.form == Form::Auto => {
                self.simulate_among(peers, barrier, observe, watch)
            }
            ended => ended,
        }
    }

    /// Simulates the barrier of `leader`; `watch` is told of every counted episode.
    ///
    /// # Errors
    /// [`Error::Failure`] if the run ends in a deadlock, [`Error::Overtaken`] if the barrier does
    /// not hold, [`Error::NotCompact`] if its flags lie otherwise than the compact form needs.
    fn simulate_compact<L: Leader>(
        &self,
        peers: &mut dyn Peers,
        leader: L,
        observe: &Observe<'_>,
        watch: &dyn Watch,
    ) -> Result<Outcome, Error> {
        let engine = self.engines()?;
        let skews = self.skews();
        let skew = (!skews.none()).then(|| -> Box<Skew> {
            Box::new(move |node, core, episode| skews.of(Member { node, core }, episode))
        });
        let machine = (spec(self)?, self.setup());
        let cluster = CompactCluster::among(&*peers, machine, leader, self.episodes, skew, engine);
        let mut cluster = cluster.map_err(|why| Error::NotCompact(why.to_string()))?;
        let gauge = cluster.gauge();
        watch.gauge(Arc::clone(&gauge));
        let mut counted = Counted::new(self.episodes, watch);
        cluster.run_among(peers, self.workers, &mut |progress| {
            gauge.is_at_least(progress.now, progress.events);
            counted.is_at(&progress);
        })?;
        self.outcome(peers, &cluster, counted, observe)
    }
}
