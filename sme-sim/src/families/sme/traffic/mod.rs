//! The fabric under synthetic traffic: latency over offered load.
//!
//! A [`Fabric`] is a cluster whose nodes have a traffic source and sink in the place of cores and
//! memory, on the same engines, switches and links. [`Fabric::traffic`] gives it a [`Pattern`] and
//! says what theory says of it: hops, zero-load latency, the bound that the busiest link sets.
//! [`Traffic::run`] simulates one load, as W. J. Dally and B. Towles describe it (Principles and
//! Practices of Interconnection Networks, Ch. 23): open-loop sources with queues without end; a
//! *warm-up*; a *measurement window*, whose packets are the measured ones; and a *drain*, in which
//! the sources go on until the last measured packet has arrived, or a given time is over.
//!
//! A *load* is a fraction of the network's *capacity*: of what each node injects when, under
//! uniform traffic and with ideal switches, the busiest link is never idle. It is the same for
//! every pattern; other patterns have their own bound, as a fraction of it. Packets are posted
//! writes of 64 bits. Latency is from a packet's generation until its target's engine gives it to
//! the host.
//!
//! Called by the command line; calls [`crate::kernel::window`].

mod latency;
mod load;
mod pattern;
mod position;
mod source;
mod tally;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use latency::Latencies;
pub use load::Loads;
pub use pattern::{Aim, Needs, Pattern, PatternError};
pub use tally::TrafficError;

use crate::families::sme::cluster::{Plugged, Watched};
use crate::families::sme::engine::link_port::LinkPortSpec;
use crate::families::sme::engine::{
    Design, EngineModel, HOP_CYCLES, HOST_TO_LINK_CYCLES, Kind, LINK_TO_HOST_CYCLES, Passage,
};
use crate::families::sme::spec::ClusterSpec;
use crate::kernel::window::{self, Verdict};
use crate::parts::fabric::Topology;
use crate::time::{Clock, Time};
use load::MAX_WALKED;
use position::Position;
use source::{Order, Source};
use tally::Tally;

/// A mean latency so many times that of an idle network tells that a load saturates it.
pub const SATURATED: u64 = 3;

/// Bytes of a traffic packet on a link.
pub const PACKET_BYTES: u64 = Kind::PostedWrite.bytes();

/// The constants of all runs.
#[derive(Debug)]
struct Constants {
    spec: ClusterSpec,
    topology: Topology,
    nodes: u32,
    clock: Clock,
    /// Engine cycles that a packet takes a link.
    packet_cycles: u64,
    /// The cycles for which packets take a link.
    link_port: LinkPortSpec,
    /// Engine cycles from a packet's last byte until the neighbour samples it.
    link_cycles: u64,
    /// Engine cycles between engine and switch, once each way.
    passage: Passage,
    global_base: u64,
    shared_bytes: u64,
    host_credits: u32,
    /// Packets that a node injects in a cycle, at capacity.
    capacity: f64,
}

/// A machine's engines and links, joined by a topology.
#[derive(Clone, Debug)]
pub struct Fabric {
    design: Arc<Design>,
    constants: Arc<Constants>,
}

/// A fabric and a pattern of traffic.
#[derive(Clone, Debug)]
pub struct Traffic {
    fabric: Fabric,
    pattern: Pattern,
    loads: Loads,
}

/// The lengths of a run's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Until the measurement begins.
    pub warmup: Time,
    /// The measurement window.
    pub measure: Time,
    /// From the end of the window, at most, until the last measured packet has arrived.
    pub drain: Time,
}

/// One load to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Fraction of the capacity, above 0 and at most 1.
    pub load: f64,
    /// The lengths of the phases.
    pub phases: Phases,
    /// Seed of the sources.
    pub seed: u64,
    /// Threads of the host; the outcome does not depend on it.
    pub workers: usize,
}

/// The measurement window in cycles.
#[derive(Clone, Copy, Debug)]
struct Windows {
    begin: u64,
    end: u64,
    /// The first cycle in which no packet is generated any more.
    until: u64,
}

impl Windows {
    fn new(phases: &Phases, clock: Clock) -> Self {
        let begin = clock.first_edge_from(phases.warmup);
        // A window of one cycle at least.
        let end = begin + clock.first_edge_from(phases.measure).max(1);
        let until = end + clock.first_edge_from(phases.drain);
        Self { begin, end, until }
    }

    /// Returns whether `cycle` is in the measurement window.
    fn measures(&self, cycle: u64) -> bool {
        (self.begin..self.end).contains(&cycle)
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Generated in the measurement window, as a fraction of the capacity; the mean of all nodes
    /// that send.
    pub offered: f64,
    /// The same of packets that arrived in the measurement window.
    pub accepted: f64,
    /// Measured packets.
    pub packets: u64,
    /// Measured packets that had not arrived when the drain was over.
    pub undelivered: u64,
    /// Latencies of the measured packets that arrived.
    pub latencies: Latencies,
    /// [`SATURATED`] times the zero-load latency.
    pub limit: Time,
    /// Whether the load saturates the network: a measured packet has not arrived, or the mean
    /// latency is above the limit, or less than 95 % of what was
    /// offered was accepted.
    pub saturated: bool,
    /// Events of the simulation.
    pub events: u64,
    /// Simulated time at the end.
    pub end: Time,
}

impl Outcome {
    /// Returns whether latencies or the accepted load tell of saturation.
    fn is_slow(&self) -> bool {
        self.latencies.mean > self.limit || self.accepted < 0.95 * self.offered
    }
}

impl Fabric {
    /// The engines of `spec` in `topology`, whose first `nodes` positions have a source and a sink.
    ///
    /// # Errors [`TrafficError::Design`] if there are no such engines, [`TrafficError::Alone`] if
    /// there are fewer than two nodes, [`TrafficError::TooLarge`] if there are too many for a
    /// network of this kind, [`TrafficError::HostPort`] if the links can carry more than half a
    /// packet per cycle from each node: then the fabric is not what limits.
    pub fn new(spec: &ClusterSpec, topology: &Topology, nodes: u32) -> Result<Self, TrafficError> {
        let design = Design::new(spec, topology, nodes)?;
        if nodes < 2 {
            return Err(TrafficError::Alone {
                topology: topology.to_string(),
                nodes,
            });
        }
        if nodes > MAX_WALKED && !pattern::by_dimension(topology, nodes) {
            return Err(TrafficError::TooLarge {
                nodes,
                most: MAX_WALKED,
            });
        }
        let clock = spec.engine.clock;
        let link_port = LinkPortSpec::of(spec);
        let packet_cycles = link_port.cycles(PACKET_BYTES);
        let uniform = Loads::new(topology, nodes, Pattern::Uniform);
        let capacity = 1.0 / (uniform.busiest * packet_cycles as f64);
        if capacity > 0.5 {
            let per_kilocycle = (capacity * 1000.0).round() as u64;
            return Err(TrafficError::HostPort { per_kilocycle });
        }
        if capacity < 1.0 / 4_294_967_296.0 {
            let cycles = (1.0 / capacity) as u64;
            return Err(TrafficError::TooSlow { cycles });
        }
        let constants = Constants {
            spec: spec.clone(),
            topology: topology.clone(),
            nodes,
            clock,
            packet_cycles,
            link_port,
            link_cycles: spec.link.crossing_cycles(clock),
            passage: Passage::of(spec),
            global_base: spec.node.global_base,
            shared_bytes: spec.node.shared_bytes,
            host_credits: spec.host.posted_credits,
            capacity,
        };
        Ok(Self {
            design: Arc::new(design),
            constants: Arc::new(constants),
        })
    }

    /// Returns the injection of each node at capacity [bytes per second].
    pub fn capacity(&self) -> f64 {
        self.constants.capacity * self.constants.clock.hz() as f64 * PACKET_BYTES as f64
    }

    /// The same as a fraction of what one link carries.
    pub fn capacity_in_links(&self) -> f64 {
        self.constants.capacity * self.constants.packet_cycles as f64
    }

    /// The fabric under `pattern`.
    ///
    /// # Errors
    /// [`TrafficError::Pattern`] if there is no such traffic in this topology.
    pub fn traffic(&self, pattern: Pattern) -> Result<Traffic, TrafficError> {
        let Constants {
            topology, nodes, ..
        } = &*self.constants;
        pattern.check(topology, *nodes)?;
        Ok(Traffic {
            fabric: self.clone(),
            pattern,
            loads: Loads::new(topology, *nodes, pattern),
        })
    }
}

impl Traffic {
    /// Returns the pattern's loads by theory.
    pub fn loads(&self) -> Loads {
        self.loads
    }

    /// The load at which the pattern's busiest link is never idle, as a fraction of the capacity:
    /// no fabric with these links and routes accepts more from every node.
    pub fn bound(&self) -> f64 {
        let constants = &self.fabric.constants;
        1.0 / (self.loads.busiest * constants.packet_cycles as f64 * constants.capacity)
    }

    /// The mean latency of packets that meet no other.
    pub fn zero_load_latency(&self) -> Time {
        let Constants {
            clock,
            packet_cycles,
            link_port,
            link_cycles,
            passage,
            ref topology,
            ..
        } = *self.fabric.constants;
        // Of a packet over h links, of which the last leads to its target.
        let link = |last| {
            let left = link_port.left(packet_cycles, PACKET_BYTES, last);
            left - link_port.began(packet_cycles, PACKET_BYTES) + link_cycles
        };
        let once = HOST_TO_LINK_CYCLES + LINK_TO_HOST_CYCLES + 2 * passage.crossing;
        // Between two links of an indirect network there is a switch.
        let between = HOP_CYCLES + passage.switch * u64::from(topology.is_indirect());
        let cycles =
            (once + link(true)) as f64 + (self.loads.hops - 1.0) * (link(false) + between) as f64;
        Time::from_ps((cycles * 1e12 / clock.hz() as f64).round() as u64)
    }

    /// Simulates one load; `watch` is told now and then which share of the longest possible run is
    /// over.
    ///
    /// # Errors
    /// [`TrafficError::Strayed`], [`TrafficError::Changed`] and [`TrafficError::Stuck`] if packets
    /// do not arrive as they should.
    pub fn run(&self, run: &Run, mut watch: impl FnMut(f64)) -> Result<Outcome, TrafficError> {
        self.run_plugged(run, &mut watch)
    }

    /// [`Self::run`] with the engines of the machine, compiled here, where all of it is optimized.
    fn run_plugged(&self, run: &Run, watch: &mut dyn FnMut(f64)) -> Result<Outcome, TrafficError> {
        let Constants { spec, nodes, .. } = &*self.fabric.constants;
        let mut positions = self.positions(run, |position| {
            let plugged = Plugged::cycle(&self.fabric.design, position, *nodes);
            Watched::new(plugged, spec, position, *nodes)
        });
        self.run_on(&mut positions, run, watch)
    }

    /// Every position, before the first cycle, with the engine that `engine(position)` gives.
    fn positions<E: EngineModel>(
        &self,
        run: &Run,
        mut engine: impl FnMut(u32) -> E,
    ) -> Vec<Position<E>> {
        let constants = &self.fabric.constants;
        let (topology, nodes) = (&constants.topology, constants.nodes);
        let windows = Windows::new(&run.phases, constants.clock);
        let source = |node| {
            Source::new(Order {
                node,
                nodes,
                aim: self.pattern.aim(topology, nodes, node),
                rate: run.load * constants.capacity,
                seed: run.seed,
                until: windows.until,
            })
        };
        (0..topology.positions())
            .map(|position| {
                let source = (position < nodes).then(|| source(position));
                let constants = Arc::clone(constants);
                Position::new(position, constants, windows, engine(position), source)
            })
            .collect()
    }

    fn run_on<E: EngineModel>(
        &self,
        positions: &mut [Position<E>],
        run: &Run,
        watch: &mut dyn FnMut(f64),
    ) -> Result<Outcome, TrafficError> {
        const LOOKS: u64 = 64;
        let constants = &self.fabric.constants;
        let clock = constants.clock;
        let windows = Windows::new(&run.phases, clock);
        let (measured, longest) = (clock.edge(windows.end), clock.edge(windows.until));
        let pause = Time::from_ps((longest.as_ps() / LOOKS).max(1));
        // Edges are rounded up to a picosecond, so a span of cycles may be one shorter.
        let lookahead = clock.span(constants.link_cycles).since(Time::from_ps(1));
        let lookahead = lookahead.max(Time::from_ps(1));
        // Of all packets, those that had arrived when the drain began.
        let mut before_drain = None;
        let end = window::run(positions, lookahead, run.workers, |now, positions| {
            watch(now.as_ps() as f64 / longest.as_ps().max(1) as f64);
            if now < measured {
                return (Verdict::Continue, measured.min(now + pause));
            }
            let sum = |of: fn(&Tally) -> u64| -> u64 {
                positions.iter().map(|position| of(position.tally())).sum()
            };
            before_drain.get_or_insert_with(|| sum(|tally| tally.all_received));
            let done = sum(|tally| tally.received.count) >= sum(|tally| tally.sent.count);
            match done || now >= longest {
                true => (Verdict::Stop, now),
                false => (Verdict::Continue, longest.min(now + pause)),
            }
        });
        let events = positions.iter().map(Position::events).sum();
        let mut all = Self::tally(positions);
        all.check()?;
        let outcome = self.outcome(&mut all, &windows, events, end);
        if outcome.undelivered == 0 {
            return Ok(outcome);
        }
        let waiting = all.all_sent - all.all_received;
        // In so long a time something arrives from any network that is not deadlocked.
        let long = measured + outcome.limit.times(4) <= longest;
        if long && before_drain == Some(all.all_received) {
            return Err(TrafficError::Stuck {
                span_ns: run.phases.drain.as_ps() / 1_000,
                waiting,
            });
        }
        if !outcome.is_slow() {
            // Nothing else tells of saturation: packets are late, or they are lost. Sources have
            // stopped; what is still under way arrives.
            window::run(positions, lookahead, run.workers, |_, _| {
                (Verdict::Continue, Time::NEVER)
            });
            Self::tally(positions).check_all()?;
        }
        Ok(outcome)
    }

    fn tally<E: EngineModel>(positions: &[Position<E>]) -> Tally {
        let mut all = Tally::default();
        for position in positions {
            all.merge(position.tally());
        }
        all
    }

    fn outcome(&self, all: &mut Tally, windows: &Windows, events: u64, end: Time) -> Outcome {
        let constants = &self.fabric.constants;
        let cycles = (windows.end - windows.begin) as f64;
        let at_capacity = constants.capacity * cycles * f64::from(self.loads.senders);
        let undelivered = all.sent.count - all.received.count;
        let latencies = Latencies::new(&mut all.latencies, constants.clock);
        let limit = self.zero_load_latency().times(SATURATED);
        let mut outcome = Outcome {
            offered: all.sent.count as f64 / at_capacity,
            accepted: all.accepted as f64 / at_capacity,
            packets: all.sent.count,
            undelivered,
            latencies,
            limit,
            saturated: false,
            events,
            end,
        };
        outcome.saturated = undelivered > 0 || outcome.is_slow();
        outcome
    }
}
