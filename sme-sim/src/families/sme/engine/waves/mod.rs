//! Waveforms of engines' ports, as VCD or FST, for GTKWave and other viewers.
//!
//! A [`Recorder`] hands out a [`Tap`] for each chosen engine; [`Recorded`], a decorator of
//! [`EngineModel`](super::EngineModel), writes down through it what passes that engine's ports,
//! whatever the engine is made of. Whoever runs the cluster calls [`Recorder::write_until`] now and
//! then and [`Recorder::finish`] at the end. The signals, called as the RTL's ports, are in
//! [`signals`], the file formats in `format`.
//!
//! # Time
//!
//! The unit is the femtosecond; every time is computed from a cycle's number and the clock's
//! frequency, rounded up. Cycle *c* lasts from edge *c* to edge *c* + 1. Inputs are shown in the
//! cycle at whose edge the engine samples them, outputs in the cycle in which the engine gives
//! them; in the next cycle *valid* and credits are 0 again, and the other signals keep their value.
//! Nothing is written of a cycle in which nothing passes. So there is no clock, which would be most
//! of the file, but a signal `cycle`: the number of the cycle in which the engine's signals last
//! changed.
//!
//! In a cluster a pin takes one packet an edge. Whoever drives an [`EngineModel`](super::EngineModel)
//! otherwise may present several on one port in one cycle; they share it: with *n* of them it has
//! 2 *n* equal parts, and the packets stand in the even ones. Credits likewise. So each change of
//! `cycle` at which *valid* is 1 is a packet, and so is each rise of *valid* within a cycle.
//!
//! # Memory and order
//!
//! What engines have said since the last [`Recorder::write_until`] is kept, at most 64 bytes for
//! each packet or credit; a cluster calls it every millisecond of simulated time (and another
//! microsecond for each thread). Everything before goes to the file, by time, then node, then
//! signal; an FST's library keeps 16 MiB of it. The file does not depend on how often that is called,
//! nor on who simulates which node when.

mod format;
mod recorded;
pub mod signals;

use std::fmt;
use std::io::{self, Seek, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use format::{Format, UnknownFormat};
pub use recorded::{Recorded, Tap};

use crate::time::{Clock, Time};
use format::Sink;
use recorded::{Heard, Passed};
use signals::{CYCLE, Occurrences, SIGNALS, Values};

/// What is recorded.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Positions whose engines are recorded; order and repetitions do not matter.
    pub nodes: Vec<u32>,
    /// Only cycles that begin at this time or later.
    pub from: Time,
    /// Only cycles that begin before this time; [`Time::NEVER`] for all.
    pub to: Time,
}

/// Merges what the chosen engines say into one waveform.
pub struct Recorder {
    clock: Clock,
    /// By node.
    taps: Vec<Tap>,
    writing: Mutex<Writing>,
}

impl Recorder {
    /// A recorder that writes to `file`, which is empty, in `format`. `clock` is the engines'.
    ///
    /// # Errors
    /// `file` cannot be written.
    pub fn new<W: Write + Seek + Send + 'static>(
        clock: Clock,
        selection: &Selection,
        format: Format,
        file: W,
    ) -> io::Result<Self> {
        let mut nodes = selection.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        let first = clock.first_edge_from(selection.from);
        let begin = femtoseconds(clock, first);
        let end = match selection.to {
            Time::NEVER => u64::MAX,
            to => clock.first_edge_from(to),
        };
        let sink = format.sink(&nodes, begin, file)?;
        Ok(Self {
            clock,
            writing: Mutex::new(Writing {
                sink: Some(sink),
                error: None,
                shown: vec![[0; SIGNALS]; nodes.len()],
                pending: Vec::new(),
                active: Vec::new(),
                last: (first, begin),
                end: first,
            }),
            taps: nodes
                .into_iter()
                .map(|node| Tap::new(node, first..end))
                .collect(),
        })
    }

    /// The tap of the engine at `position`, if that is recorded.
    pub fn tap(&self, position: u32) -> Option<Tap> {
        let index = self
            .taps
            .binary_search_by_key(&position, |tap| tap.node)
            .ok()?;
        self.taps.get(index).cloned()
    }

    /// Everything before `now` has happened, and is written. Errors are kept for [`Self::finish`].
    pub fn write_until(&self, now: Time) {
        self.write_before(self.clock.first_edge_from(now));
    }

    /// Writes what is left. Nothing is recorded afterwards.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(&self) -> io::Result<()> {
        self.write_before(u64::MAX);
        let mut writing = lock(&self.writing);
        writing.close(self.clock);
        let sink = writing.sink.take();
        if let Some(error) = writing.error.take() {
            return Err(error);
        }
        let end = femtoseconds(self.clock, writing.end.max(writing.last.0 + 1));
        sink.map_or(Ok(()), |sink| sink.finish(end))
    }

    fn write_before(&self, limit: u64) {
        let mut writing = lock(&self.writing);
        let writing = &mut *writing;
        for (engine, tap) in self.taps.iter().enumerate() {
            let mut heard = lock(&tap.heard);
            writing
                .pending
                .extend(heard.drain(..).map(|heard| (engine, heard)));
        }
        if limit != u64::MAX {
            writing.end = writing.end.max(limit.min(self.end_cycle()));
        }
        writing
            .pending
            .sort_by_key(|(engine, heard)| (heard.cycle, *engine));
        let mut pending = std::mem::take(&mut writing.pending);
        let due = pending.partition_point(|(_, heard)| heard.cycle < limit);
        for cycle in pending[..due].chunk_by(|a, b| a.1.cycle == b.1.cycle) {
            writing.cycle(self.clock, cycle[0].1.cycle, cycle);
        }
        pending.drain(..due);
        writing.pending = pending;
    }

    /// The first cycle that is not recorded any more.
    fn end_cycle(&self) -> u64 {
        self.taps.first().map_or(u64::MAX, |tap| tap.cycles.end)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<u32> = self.taps.iter().map(|tap| tap.node).collect();
        f.debug_struct("Recorder").field("nodes", &nodes).finish()
    }
}

/// The file under way.
struct Writing {
    /// `None` once finished.
    sink: Option<Box<dyn Sink>>,
    /// The first.
    error: Option<io::Error>,
    /// What each engine's signals show.
    shown: Vec<Values>,
    /// Engine and what it said, where that is not written yet.
    pending: Vec<(usize, Heard)>,
    /// Engines with a valid or a credit in the last cycle that was written, in order.
    active: Vec<usize>,
    /// That cycle, and the last time that was written, in femtoseconds.
    last: (u64, u64),
    /// The cycle up to which the run has come.
    end: u64,
}

impl Writing {
    /// Writes cycle `number`, in which `heard` passed, by engine; before it, that the one before
    /// is over.
    fn cycle(&mut self, clock: Clock, number: u64, heard: &[(usize, Heard)]) {
        if self.last.0 + 1 < number {
            self.close(clock);
        }
        let begin = femtoseconds(clock, number);
        let length = femtoseconds(clock, number + 1) - begin;
        // Time, engine, what is shown.
        let mut steps: Vec<(u64, usize, Values)> = Vec::new();
        let quiet = self.active.iter().map(|&engine| (engine, &heard[..0]));
        let busy = heard
            .chunk_by(|a, b| a.0 == b.0)
            .map(|said| (said[0].0, said));
        let mut changing: Vec<(usize, &[(usize, Heard)])> = busy.chain(quiet).collect();
        // Stable: of an engine that is both, what it says now stands first.
        changing.sort_by_key(|(engine, _)| *engine);
        changing.dedup_by_key(|(engine, _)| *engine);
        for (engine, said) in changing {
            let numbered = numbered(said);
            let most = numbered.iter().map(|(nth, _)| nth + 1).max().unwrap_or(1);
            let parts = if most == 1 { 1 } else { 2 * most };
            let mut values = self.shown[engine];
            for part in 0..parts {
                signals::release(&mut values);
                values[CYCLE] = number;
                for (_, passed) in numbered.iter().filter(|(nth, _)| 2 * nth == part) {
                    signals::present(&mut values, passed);
                }
                let at = begin + (u128::from(length) * part as u128 / parts as u128) as u64;
                steps.push((at, engine, values));
            }
        }
        steps.sort_by_key(|(at, engine, _)| (*at, *engine));
        for (at, engine, values) in &steps {
            self.show(*at, *engine, values);
        }
        self.active = heard.iter().map(|(engine, _)| *engine).collect();
        self.active.dedup();
        self.last.0 = number;
    }

    /// Writes the cycle behind the last one, in which nothing passes.
    fn close(&mut self, clock: Clock) {
        if !self.active.is_empty() {
            let next = self.last.0 + 1;
            self.last.0 = next;
            self.cycle(clock, next, &[]);
        }
    }

    fn show(&mut self, at: u64, engine: usize, values: &Values) {
        let (Some(sink), None) = (&mut self.sink, &self.error) else {
            return;
        };
        let shown = &mut self.shown[engine];
        let mut write = || -> io::Result<()> {
            for (signal, (new, old)) in values.iter().zip(shown.iter()).enumerate() {
                if new == old {
                    continue;
                }
                if at > self.last.1 {
                    sink.time(at)?;
                    self.last.1 = at;
                }
                sink.change(engine, signal, *new)?;
            }
            Ok(())
        };
        self.error = write().err();
        *shown = *values;
    }
}

/// What passed, each with how often its port, or its channel's credit, occurred before.
fn numbered(heard: &[(usize, Heard)]) -> Vec<(usize, &Passed)> {
    let mut occurrences = Occurrences::default();
    heard
        .iter()
        .map(|(_, heard)| (occurrences.count(&heard.passed), &heard.passed))
        .collect()
}

/// When edge `cycle` happens, in femtoseconds, rounded up; the last time there is where it is
/// beyond (five hours).
pub fn femtoseconds(clock: Clock, cycle: u64) -> u64 {
    let exact = (u128::from(cycle) * 1_000_000_000_000_000).div_ceil(u128::from(clock.hz()));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// A worker that panics takes the run with it: nobody believes what it left behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shared between an engine's decorator and the recorder.
type Shared<T> = Arc<Mutex<T>>;
