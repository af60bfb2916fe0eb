//! A machine as nodes with programs on them: what every family would otherwise write again. Runs
//! the nodes in windows, recognizes that they stand still, tells the checker of loads what they
//! have done, and says what came out.

use std::collections::BTreeMap;
use std::sync::Arc;

use sme_memory::Place;

use super::family::{CannotBuild, Readable, System};
use crate::kernel::peers::{self, Peers};
use crate::kernel::window::{self, Exchanged, Joint, NoTask, Verdict};
use crate::observe::among::{Among, Figures};
use crate::observe::calls::ThreadCall;
use crate::observe::energy::Energy;
use crate::observe::failure::{self, Failure, Fault, Standstill};
use crate::observe::gauge::Progress;
use crate::observe::log::{self, Log};
use crate::observe::path::{End, PathStep};
use crate::observe::spans::{SpanRecord, Spans, ThreadSpan};
use crate::observe::staleness::{Checker, StaleLoad, StaleReport, TooManyThreads};
use crate::observe::survey::{self, Survey, Waits};
use crate::observe::timeline::{Arrow, Timeline, TooManyNodes, Wait};
use crate::observe::traffic::{CacheTraffic, LinkLoad, Traffic};
use crate::observe::unwritten::{Dirty, Unwritten};
use crate::parts::address::Space;
use crate::parts::contract::Aside;
use crate::time::Time;

/// Simulated time after which the checker of loads is told what has happened meanwhile: short,
/// since that takes memory.
const OBSERVED_AT_ONCE: Time = Time::from_ns(20_000);

/// The distance of nodes in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// No node hears of another sooner than this.
    AtLeast(Time),
    /// They are cores of one chip, whose hops are too short to be windows: they take turns, and one
    /// process simulates them all.
    OnOneChip,
}

/// Checks that one process simulates a chip.
///
/// # Errors
/// [`CannotBuild`] if several would.
pub fn on_one_process(peers: &dyn Peers) -> Result<(), CannotBuild> {
    match peers.count() {
        1 => Ok(()),
        _ => {
            let reason = "a chip is simulated by one process: its cores are too close together";
            Err(CannotBuild(reason.to_owned()))
        }
    }
}

/// The window of cores on one chip. Nothing but how often a run is looked at depends on it.
const CHIP_WINDOW: Time = Time::from_ns(5_000);

/// A node with threads, as seen by the code that runs its machine.
pub trait Inhabited: window::Locality<Task = NoTask> + Waits + Sized {
    /// The spans of its threads.
    fn spans(&self) -> &SpanRecord;

    /// Adds what it has done to `figures`.
    fn did(&self, figures: &mut Figures);

    /// Adds what it is doing to `survey`.
    fn survey(&self, survey: &mut Survey);

    /// The first access that could not be performed.
    fn fault(&self) -> Option<Fault>;

    /// Returns the log for the checker of loads, where there is one.
    fn log(&self) -> Option<&Log>;

    /// From now on it keeps a log.
    fn start_log(&mut self, log: Log);

    /// Bytes of simulator state.
    fn bytes(&self) -> usize;

    /// The run is over, and has ended well: nothing may be under way.
    fn ended(&self);

    /// Returns the traffic of its caches of memory that nothing keeps coherent between nodes.
    fn cache_traffic(&self) -> CacheTraffic;

    /// Returns the time at which the last of its programs ended, where it knows.
    fn programs_ended(&self) -> Time {
        Time::ZERO
    }

    /// The energy that it has taken from the begin to `until`, where the machine has figures of
    /// power.
    fn energy(&self, _until: Time) -> Option<Energy> {
        None
    }

    /// Lets it keep the last writes of the words at these offsets of its shared memory.
    fn keep_last_writes(&mut self, offsets: &[u64]);

    /// Lets its memory hold `value` in the word at `offset` of its shared memory.
    fn preset(&mut self, offset: u64, value: u64);

    /// Returns the value of the word at `offset`.
    fn word(&self, offset: u64) -> u64;

    /// The load of every link that leaves it, in a run that ended at `end`.
    fn link_loads(&self, end: Time) -> Vec<LinkLoad>;

    /// Lets it be traced from `from` on.
    fn trace_from(&mut self, from: Time);

    /// [`Readable::critical_path`] over all nodes of the process.
    fn critical_path(
        nodes: &[Self],
        end: End,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep>;
}

/// The nodes of a machine, or this process's share of them, with a program on every thread.
pub struct Nodes<N> {
    pub(crate) nodes: Vec<N>,
    among: Among,
    apart: Apart,
    space: Arc<Space>,
    /// The most threads of a node.
    room: u32,
    checker: Option<Checker>,
    timeline: Option<Timeline>,
}

impl<N: Inhabited> Nodes<N> {
    /// The nodes that `node` makes, of those that `among` says; none ever has more than `room`
    /// threads, and their programs' addresses mean what `space` says.
    pub(crate) fn of(
        among: Among,
        (apart, room): (Apart, u32),
        space: Arc<Space>,
        node: impl FnMut(u32) -> N,
    ) -> Self {
        Self {
            nodes: among.mine.clone().map(node).collect(),
            among,
            apart,
            space,
            room,
            checker: None,
            timeline: None,
        }
    }

    /// The node at `place`'s home, if it is this process's.
    fn home(&self, place: Place) -> Option<usize> {
        let position = place.node.wrapping_sub(self.among.mine.start) as usize;
        (position < self.nodes.len()).then_some(position)
    }

    /// Lets nodes keep what the checker and the timeline want to know.
    fn start_logs(&mut self) {
        for node in &mut self.nodes {
            let log = Log::new(node.number(), self.room);
            node.start_log(log.with_waits(self.timeline.is_some()));
        }
    }

    fn tell_observers(&mut self) {
        drain(
            &self.nodes,
            &self.space,
            (&mut self.checker, &mut self.timeline),
        );
    }

    /// Runs until nothing happens any more; when the last window began.
    fn advance(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<Time, Failure> {
        // Long enough that most polling loads are answered meanwhile; looking costs host time.
        let own: u64 = self.nodes.iter().map(|n| u64::from(n.threads())).sum();
        let threads: u64 = peers::all(peers, own)?.into_iter().sum();
        let patience = Time::from_ns(1_000_000 + 1_000 * threads);
        let is_observed = self.checker.is_some() || self.timeline.is_some();
        let pause = match is_observed {
            true => patience.min(OBSERVED_AT_ONCE),
            false => patience,
        };
        let mut before: Option<Standstill> = None;
        let mut look_at = Time::ZERO;
        let (checker, timeline, space) = (&mut self.checker, &mut self.timeline, &self.space);
        let mut look = |now, nodes: &[N], peers: &mut dyn Peers| {
            if is_observed {
                drain(nodes, space, (checker, timeline));
                if now < look_at {
                    watch(progress(now, survey_of(nodes)));
                    return Ok((Verdict::Continue, now + pause));
                }
            }
            look_at = now + patience;
            let mut survey = survey_of(nodes).of_all(peers)?;
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
        let ran = match self.apart {
            Apart::AtLeast(lookahead) => {
                window::run_among(peers, all, nodes, lookahead, workers, &mut look)
            }
            Apart::OnOneChip => {
                let mut chip = [Joint::new(std::mem::take(nodes))];
                let look = |now, chip: &[Joint<N>], peers: &mut dyn Peers| {
                    look(now, chip.first().map_or(&[], Joint::nodes), peers)
                };
                let ran = window::run_among(peers, 1, &mut chip, CHIP_WINDOW, 1, look);
                let [chip] = chip;
                *nodes = chip.into_nodes();
                ran
            }
        };
        let (last, exchanged) = ran?;
        self.among.exchanged = exchanged;
        Ok(last)
    }
}

impl<N: Inhabited> System for Nodes<N> {
    /// Of several processes none can check its loads, nor trace the run.
    fn run_among(
        &mut self,
        peers: &mut dyn Peers,
        workers: usize,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure> {
        // A program of another run may have begun this one.
        let _aside = Aside::set();
        let last = self.advance(peers, workers, watch)?;
        self.tell_observers();
        let mut own = Figures::default();
        self.nodes.iter().for_each(|node| node.did(&mut own));
        self.among.tell(peers, own)?;
        let survey = survey_of(&self.nodes).of_all(peers)?;
        watch(progress(self.end(), survey));
        failure::within_time(last)?;
        let own = (self.nodes.iter()).find_map(|node| Some((node.number(), node.fault()?)));
        if let Some(fault) = failure::first_fault(own, peers)? {
            return Err(fault);
        }
        if let Some(deadlock) = survey::deadlock(&self.nodes, self.end(), peers)? {
            return Err(deadlock);
        }
        self.nodes.iter().for_each(N::ended);
        Ok(())
    }

    fn spans(&self) -> &Spans {
        &self.among.all.spans
    }

    fn traffic(&self) -> Traffic {
        self.among.all.traffic
    }

    fn link_loads(&self) -> Vec<LinkLoad> {
        let end = self.end();
        let loads = self.nodes.iter().flat_map(|node| node.link_loads(end));
        let mut loads: Vec<LinkLoad> = loads.collect();
        loads.sort_by_key(|load| (load.from, load.to, load.channel));
        loads
    }

    /// Returns the number of events: those at nodes, and the outputs of engines.
    fn events(&self) -> u64 {
        self.among.all.events
    }

    fn end(&self) -> Time {
        self.among.all.end
    }

    fn exchanged(&self) -> Exchanged {
        self.among.exchanged
    }

    /// Nothing here is given back before the end of a run. Counted is all that exists per node and
    /// per thread: programs, cores, caches and memory, events, engines; the heap by its capacity,
    /// without what the allocator adds to each piece. Not counted are what all share (the machine's
    /// constants, the barrier), the messages between nodes during one window, checkers of debug
    /// builds, traces, and the results: the times of each span.
    fn bytes_per_thread(&self) -> u64 {
        let threads: u64 = self.nodes.iter().map(|n| u64::from(n.threads())).sum();
        let bytes = (self.nodes.iter()).map(|n| (n.bytes() + window::BYTES_PER_NODE) as u64);
        bytes.sum::<u64>() / threads.max(1)
    }
}

impl<N: Inhabited> Readable for Nodes<N> {
    fn each_span(&self) -> Box<dyn Iterator<Item = (u32, &ThreadSpan)> + '_> {
        let nodes = self.nodes.iter();
        Box::new(nodes.flat_map(|node| node.spans().each().map(|span| (node.number(), span))))
    }

    fn each_call(&self) -> Box<dyn Iterator<Item = (u32, &ThreadCall)> + '_> {
        let nodes = self.nodes.iter();
        Box::new(nodes.flat_map(|node| {
            let calls = node.spans().calls().iter();
            calls.map(|call| (node.number(), call))
        }))
    }

    fn cache_traffic(&self) -> CacheTraffic {
        let mut all = CacheTraffic::default();
        for node in &self.nodes {
            all += node.cache_traffic();
        }
        all
    }

    fn energy(&self) -> Option<Energy> {
        let ends = self.nodes.iter().map(N::programs_ended);
        let until = ends.max().unwrap_or_default();
        let mut nodes = self.nodes.iter();
        let first = nodes.next()?.energy(until)?;
        let others = nodes.filter_map(|node| node.energy(until));
        Some(others.fold(first, Energy::and))
    }

    /// No copy of the word may have been made yet.
    fn preset(&mut self, place: Place, value: u64) {
        if let Some(checker) = &mut self.checker {
            checker.initial(place, value);
        }
        if let Some(home) = self.home(place) {
            self.nodes[home].preset(place.offset, value);
        }
    }

    fn keep_last_writes(&mut self, places: &[Place]) {
        for node in &mut self.nodes {
            let here = places.iter().filter(|place| place.node == node.number());
            let offsets: Vec<u64> = here.map(|place| place.offset).collect();
            node.keep_last_writes(&offsets);
        }
    }

    fn at_home(&self, place: Place) -> u64 {
        let home = self.home(place);
        home.map_or(0, |home| self.nodes[home].word(place.offset))
    }

    fn unwritten(&self, most: usize) -> (u64, Vec<Unwritten>) {
        let (mut count, mut first) = (0, BTreeMap::new());
        for node in &self.nodes {
            for dirty in node.dirty() {
                let Dirty { place, core, .. } = dirty;
                if let Some(word) = dirty.unwritten(node.number(), self.at_home(place)) {
                    count += 1;
                    first.insert((place.node, place.offset, node.number(), core), word);
                    if first.len() > most {
                        first.pop_last();
                    }
                }
            }
        }
        (count, first.into_values().collect())
    }

    fn check_loads(&mut self) -> Result<(), TooManyThreads> {
        let (space, threads) = (self.space.get(), self.room);
        let memories = match self.apart {
            // Cores without threads have memory, too.
            Apart::OnOneChip => self.nodes.len() as u32,
            Apart::AtLeast(_) => {
                let hosts = self.nodes.iter().filter(|node| node.threads() > 0);
                hosts.count() as u32 + space.devices()
            }
        };
        self.checker = Some(Checker::new(memories, threads, space.line())?);
        self.start_logs();
        Ok(())
    }

    fn record_timeline(&mut self) -> Result<(), TooManyNodes> {
        self.timeline = Some(Timeline::new(self.nodes.len() as u32, self.room)?);
        self.start_logs();
        Ok(())
    }

    fn waits(&self) -> Box<dyn Iterator<Item = &Wait> + '_> {
        Box::new(self.nodes.iter().filter_map(N::log).flat_map(Log::waits))
    }

    fn arrows(&self) -> &[Arrow] {
        self.timeline.as_ref().map_or(&[], Timeline::arrows)
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
            node.trace_from(from);
        }
    }

    fn critical_path(
        &self,
        end: End,
        start: Time,
        name: &dyn Fn(Place) -> String,
    ) -> Vec<PathStep> {
        N::critical_path(&self.nodes, end, start, name)
    }
}

/// Surveys what `nodes` are doing.
fn survey_of<N: Inhabited>(nodes: &[N]) -> Survey {
    let mut survey = Survey::default();
    nodes.iter().for_each(|node| node.survey(&mut survey));
    survey
}

fn drain<N: Inhabited>(
    nodes: &[N],
    space: &Space,
    observers: (&mut Option<Checker>, &mut Option<Timeline>),
) {
    log::drain(nodes.iter().filter_map(N::log), space.get(), observers);
}

fn progress(now: Time, survey: Survey) -> Progress {
    Progress {
        now,
        events: survey.events,
        reached: survey.reached,
    }
}
