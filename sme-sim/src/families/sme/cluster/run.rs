//! A cluster that runs: [`System`] and [`Readable`] of [`Cluster`].

use sme_memory::Place;

use super::log::{self, Log};
use super::node::Node;
use super::survey::{self, Survey};
use super::trace::Trace;
use super::{Cluster, critical_path, figures, link_loads};
use crate::families::sme::engine::{EngineModel, Inspect};
use crate::kernel::peers::{self, Peers};
use crate::kernel::window::{self, Exchanged, Verdict};
use crate::machine::family::{Readable, System};
use crate::observe::failure::{self, Failure, Standstill};
use crate::observe::gauge::Progress;
use crate::observe::path::PathStep;
use crate::observe::spans::{Spans, ThreadSpan};
use crate::observe::staleness::{Checker, StaleLoad, StaleReport, TooManyThreads};
use crate::observe::traffic::{CacheTraffic, LinkLoad, Traffic};
use crate::parts::contract::{self, Span};
use crate::time::Time;

/// Simulated time after which the checker of loads is told what has happened meanwhile: short, since
/// that takes memory.
const CHECKED_AT_ONCE: Time = Time::from_ns(20_000);

impl System for Cluster {
    /// Of several processes none can check its loads, nor trace the run.
    fn run_among(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure> {
        // What a run that panicked on this thread of the host has left there.
        drop(contract::take_back());
        let lookahead = self.constants.lookahead();
        // Long enough that most polling loads are answered meanwhile; looking costs host time.
        let own: u64 = self.nodes.iter().map(|n| n.cores.len() as u64).sum();
        let threads: u64 = peers::all(peers, own)?.into_iter().sum();
        let patience = Time::from_ns(1_000_000 + 1_000 * threads);
        let pause = match self.checker {
            Some(_) => patience.min(CHECKED_AT_ONCE),
            None => patience,
        };
        let mut before: Option<Standstill> = None;
        let mut look_at = Time::ZERO;
        let checker = &mut self.checker;
        let mut look = |now, nodes: &[Node], peers: &mut dyn Peers| {
            if let Some(checker) = checker {
                log::drain(nodes, checker);
                if now < look_at {
                    watch(progress(now, Survey::of(nodes)));
                    return Ok((Verdict::Continue, now + pause));
                }
            }
            look_at = now + patience;
            let mut survey = Survey::of(nodes).of_all(peers)?;
            let (faulty, state) = (survey.faulty, survey.standstill());
            watch(progress(now, survey));
            let same = state.as_ref().zip(before.as_ref());
            let stuck = same.is_some_and(|(state, before)| state.lasts_since(before));
            if stuck || faulty || failure::is_too_long(now) {
                return Ok((Verdict::Stop, now));
            }
            // The first of equal states is kept: looks are counted from there.
            if !same.is_some_and(|(state, before)| state.is_as(before)) {
                before = state;
            }
            Ok((Verdict::Continue, now + pause))
        };
        let (nodes, all) = (&mut self.nodes, self.among.positions);
        let ran = window::run_among(peers, all, nodes, lookahead, workers, &mut look);
        let (last, exchanged) = ran?;
        self.among.exchanged = exchanged;
        if let Some(checker) = &mut self.checker {
            log::drain(&self.nodes, checker);
        }
        let own = figures(self.nodes.iter().map(|n| (n.record(), n.events)));
        self.among.tell(peers, own)?;
        let survey = Survey::of(&self.nodes).of_all(peers)?;
        watch(progress(self.end(), survey));
        failure::within_time(last)?;
        if let Some(fault) = survey::first_fault(&self.nodes, peers)? {
            return Err(fault);
        }
        if let Some(deadlock) = survey::deadlock(&self.nodes, self.end(), peers)? {
            return Err(deadlock);
        }
        self.nodes.iter().for_each(|node| node.engine().ended());
        Ok(())
    }

    fn spans(&self) -> &Spans {
        &self.among.all.spans
    }

    fn traffic(&self) -> Traffic {
        self.among.all.traffic
    }

    fn link_loads(&self) -> Vec<LinkLoad> {
        let nodes = self.nodes.iter().map(|node| {
            let links = node.engine().engine().counters().links;
            (node.me, links, node.record())
        });
        link_loads(&self.constants, self.end(), nodes)
    }

    /// What happened at nodes, and whatever an engine gave out.
    fn events(&self) -> u64 {
        self.among.all.events
    }

    fn end(&self) -> Time {
        self.among.all.end
    }

    fn exchanged(&self) -> Exchanged {
        self.among.exchanged
    }

    /// Nothing here is given back before the end of a run. Counted is whatever there is for each node and
    /// each thread: programs, cores, caches and memory, events, engines; the heap by its capacity, without
    /// what the allocator adds to each piece. Not counted are what all share (the machine's constants, the
    /// barrier), the messages between nodes during one window, checkers of debug builds, traces, and the
    /// results: the times of each span.
    fn bytes_per_thread(&self) -> u64 {
        let threads: usize = self.nodes.iter().map(|n| n.cores.len()).sum();
        let bytes: usize = self
            .nodes
            .iter()
            .map(|n| n.bytes() + n.engine().engine().state_bytes() + window::BYTES_PER_NODE)
            .sum();
        (bytes / threads.max(1)) as u64
    }
}

impl Readable for Cluster {
    fn each_span(&self) -> Box<dyn Iterator<Item = (u32, &ThreadSpan)> + '_> {
        let nodes = self.nodes.iter();
        Box::new(nodes.flat_map(|n| n.record().spans.each().map(|span| (n.me, span))))
    }

    fn cache_traffic(&self) -> CacheTraffic {
        let mut all = CacheTraffic::default();
        for caches in self.nodes.iter().filter_map(|node| node.caches.as_ref()) {
            all += caches.traffic();
        }
        all
    }

    /// No copy of the word may have been made yet.
    fn preset(&mut self, place: Place, value: u64) {
        let physical = self.constants.map.physical(place.offset);
        if let Some(checker) = &mut self.checker {
            checker.initial(place, value);
        }
        let position = place.node.wrapping_sub(self.among.mine.start);
        if let Some(node) = self.nodes.get_mut(position as usize) {
            node.domain.preset(physical, value);
        }
    }

    fn at_home(&self, place: Place) -> u64 {
        let physical = self.constants.map.physical(place.offset);
        let position = place.node.wrapping_sub(self.among.mine.start);
        let node = self.nodes.get(position as usize);
        node.map_or(0, |node| node.domain.word(physical))
    }

    fn check_loads(&mut self) -> Result<(), TooManyThreads> {
        let hosts = self.nodes.iter().filter(|node| !node.cores.is_empty());
        let threads = self.nodes.first().map_or(0, |node| node.cores.len()) as u32;
        self.checker = Some(Checker::new(hosts.count() as u32, threads)?);
        for node in &mut self.nodes {
            node.log = Some(Box::new(Log::new(threads)));
        }
        Ok(())
    }

    fn synchronizing(&mut self, place: Place) {
        if let Some(checker) = &mut self.checker {
            checker.synchronizing(place);
        }
    }

    fn list_stale(&mut self, each: Box<dyn FnMut(&StaleLoad) + Send>) {
        if let Some(checker) = &mut self.checker {
            checker.list(each);
        }
    }

    fn stale_reads(&mut self) -> Option<StaleReport> {
        self.checker.take().map(Checker::finish)
    }

    fn trace_from(&mut self, from: Time) {
        for node in &mut self.nodes {
            let trace = Trace::new(&self.constants, node.me, node.cores.len(), from);
            node.agenda.set_trace(trace);
        }
    }

    fn critical_path(
        &self,
        span: Span,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep> {
        critical_path::critical_path(&self.nodes, span, start, name)
    }
}

fn progress(now: Time, survey: Survey) -> Progress {
    Progress {
        now,
        events: survey.events,
        reached: survey.reached,
    }
}
