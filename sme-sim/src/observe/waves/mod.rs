//! Waveforms of the ports of clocked blocks, as VCD or FST, for GTKWave and other viewers.
//!
//! A [`Recorder`] hands out a [`Tap`] for each chosen block, through which the block's driver
//! records what passes its ports. The machine's runner calls [`Recorder::write_until`] now and then
//! and [`Recorder::finish`] at the end. [`Passes`] says which signals a block has, and how they
//! show what passes.
//!
//! # Time
//!
//! The unit is the femtosecond; every time is computed from a cycle's number and the clock's
//! frequency, rounded up. Cycle *c* lasts from edge *c* to edge *c* + 1. Inputs are shown in the
//! cycle at whose edge the block samples them, outputs in the cycle in which the block gives
//! them; in the next cycle *valid* and credits are 0 again, and the other signals keep their value.
//! Nothing is written of a cycle in which nothing passes. So there is no clock, which would be most
//! of the file, but a signal `cycle`: the number of the cycle in which the block's signals last
//! changed.
//!
//! Several things may pass one port in one cycle; they share it: with *n* of them it has 2 *n*
//! equal parts, and they stand in the even ones. So each change of `cycle` at which *valid* is 1 is
//! a packet, and so is each rise of *valid* within a cycle.
//!
//! # Memory and order
//!
//! Records since the last [`Recorder::write_until`] are kept in memory. Earlier ones go to the
//! file, by time, then node, then signal; the library for FST keeps 16 MiB of them. The file does
//! not depend on how often `write_until` is called, nor on which worker simulates which node when.

mod format;

use std::fmt;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

pub use format::{Format, UnknownFormat};

use crate::time::{Clock, Time};
use format::{Shown, Sink};

/// A signal of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its name in the block's scope.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
}

/// Something that passes a port of a block, and how a waveform shows it.
pub trait Passes: Copy + Send + 'static {
    /// The scope around all blocks.
    const TOP: &'static str;

    /// The scope of the block at `node`.
    fn scope(node: u32) -> String;

    /// The signals of a block, in the order in which a waveform has them. The first is `cycle`, of
    /// 64 bits.
    fn signals() -> Vec<Signal>;

    /// Nothing passes: every valid and every credit among the `values` of the signals is 0.
    fn release(values: &mut [u64]);

    /// Shows this in `values`.
    fn present(&self, values: &mut [u64]);

    /// The port that it passes: what passes one port in one cycle follows one another there.
    fn port(&self) -> usize;
}

/// The signal with the number of the cycle.
const CYCLE: usize = 0;

/// Something that passed a port in a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Heard<P> {
    cycle: u64,
    passed: P,
}

/// The record of what passes one block's ports: its driver writes it, and the recorder reads it.
#[derive(Debug)]
pub struct Tap<P> {
    node: u32,
    /// The cycles that are recorded.
    cycles: Range<u64>,
    heard: Arc<Mutex<Vec<Heard<P>>>>,
}

impl<P> Clone for Tap<P> {
    fn clone(&self) -> Self {
        Self {
            node: self.node,
            cycles: self.cycles.clone(),
            heard: Arc::clone(&self.heard),
        }
    }
}

impl<P> Tap<P> {
    fn new(node: u32, cycles: Range<u64>) -> Self {
        Self {
            node,
            cycles,
            heard: Arc::default(),
        }
    }

    /// All of `passing` passes in `cycle`.
    pub fn hears(&self, cycle: u64, passing: impl IntoIterator<Item = P>) {
        if self.cycles.contains(&cycle) {
            let heard = passing.into_iter().map(|passed| Heard { cycle, passed });
            lock(&self.heard).extend(heard);
        }
    }
}

/// A choice of blocks and times to record.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Positions whose blocks are recorded; order and repetitions do not matter.
    pub nodes: Vec<u32>,
    /// Only cycles that begin at this time or later.
    pub from: Time,
    /// Only cycles that begin before this time; [`Time::NEVER`] for all.
    pub to: Time,
}

/// Merges what the chosen blocks say into one waveform.
pub struct Recorder<P> {
    clock: Clock,
    /// By node.
    taps: Vec<Tap<P>>,
    writing: Mutex<Writing<P>>,
}

impl<P: Passes> Recorder<P> {
    /// A recorder that writes to `file`, which is empty, in `format`. `clock` is the blocks'.
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
        let shown = Shown {
            top: P::TOP,
            blocks: nodes.iter().map(|&node| P::scope(node)).collect(),
            signals: P::signals(),
        };
        let values = vec![0; shown.signals.len()];
        let sink = format.sink(shown, begin, file)?;
        Ok(Self {
            clock,
            writing: Mutex::new(Writing {
                sink: Some(sink),
                error: None,
                shown: vec![values; nodes.len()],
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

    /// The tap of the block at `position`, if that is recorded.
    pub fn tap(&self, position: u32) -> Option<Tap<P>> {
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
        for (block, tap) in self.taps.iter().enumerate() {
            let mut heard = lock(&tap.heard);
            writing
                .pending
                .extend(heard.drain(..).map(|heard| (block, heard)));
        }
        if limit != u64::MAX {
            writing.end = writing.end.max(limit.min(self.end_cycle()));
        }
        writing
            .pending
            .sort_by_key(|(block, heard)| (heard.cycle, *block));
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

impl<P> fmt::Debug for Recorder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<u32> = self.taps.iter().map(|tap| tap.node).collect();
        f.debug_struct("Recorder").field("nodes", &nodes).finish()
    }
}

/// The file under way.
struct Writing<P> {
    /// `None` once finished.
    sink: Option<Box<dyn Sink>>,
    /// The first.
    error: Option<io::Error>,
    /// The values of each block's signals.
    shown: Vec<Vec<u64>>,
    /// Block and what it said, where that is not written yet.
    pending: Vec<(usize, Heard<P>)>,
    /// Blocks with a valid or a credit in the last cycle that was written, in order.
    active: Vec<usize>,
    /// The last cycle, and the last time that was written, in femtoseconds.
    last: (u64, u64),
    /// The cycle up to which the run has come.
    end: u64,
}

impl<P: Passes> Writing<P> {
    /// Writes cycle `number`, in which `heard` passed, by block; before it, that the one before
    /// is over.
    fn cycle(&mut self, clock: Clock, number: u64, heard: &[(usize, Heard<P>)]) {
        if self.last.0 + 1 < number {
            self.close(clock);
        }
        let begin = femtoseconds(clock, number);
        if begin == u64::MAX {
            self.error.get_or_insert_with(|| {
                io::Error::other(
                    "a waveform ends at 18446 s, and the run is longer: record less of it",
                )
            });
            return;
        }
        let length = femtoseconds(clock, number + 1) - begin;
        // Time, block, what is shown.
        let mut steps: Vec<(u64, usize, Vec<u64>)> = Vec::new();
        let quiet = self.active.iter().map(|&block| (block, &heard[..0]));
        let busy = heard
            .chunk_by(|a, b| a.0 == b.0)
            .map(|said| (said[0].0, said));
        let mut changing: Vec<(usize, &[_])> = busy.chain(quiet).collect();
        // Stable: of a block that is both, what it says now stands first.
        changing.sort_by_key(|(block, _)| *block);
        changing.dedup_by_key(|(block, _)| *block);
        for (block, said) in changing {
            let numbered = numbered(said);
            let most = numbered.iter().map(|(nth, _)| nth + 1).max().unwrap_or(1);
            let parts = if most == 1 { 1 } else { 2 * most };
            let mut values = self.shown[block].clone();
            for part in 0..parts {
                P::release(&mut values);
                values[CYCLE] = number;
                for (_, passed) in numbered.iter().filter(|(nth, _)| 2 * nth == part) {
                    passed.present(&mut values);
                }
                let at = begin + (u128::from(length) * part as u128 / parts as u128) as u64;
                steps.push((at, block, values.clone()));
            }
        }
        steps.sort_by_key(|(at, block, _)| (*at, *block));
        for (at, block, values) in steps {
            self.show(at, block, values);
        }
        self.active = heard.iter().map(|(block, _)| *block).collect();
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

    fn show(&mut self, at: u64, block: usize, values: Vec<u64>) {
        let (Some(sink), None) = (&mut self.sink, &self.error) else {
            return;
        };
        let shown = &mut self.shown[block];
        let mut write = || -> io::Result<()> {
            for (signal, (new, old)) in values.iter().zip(shown.iter()).enumerate() {
                if new == old {
                    continue;
                }
                if at > self.last.1 {
                    sink.time(at)?;
                    self.last.1 = at;
                }
                sink.change(block, signal, *new)?;
            }
            Ok(())
        };
        self.error = write().err();
        *shown = values;
    }
}

/// The packets and credits that passed, each with the number of those that passed its port before.
fn numbered<P: Passes>(heard: &[(usize, Heard<P>)]) -> Vec<(usize, &P)> {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    let numbered = heard.iter().map(|(_, heard)| {
        let count = counts.entry(heard.passed.port()).or_default();
        *count += 1;
        (*count - 1, &heard.passed)
    });
    numbered.collect()
}

/// The time of edge `cycle` in femtoseconds, rounded up; `u64::MAX` where it is beyond (five
/// hours).
pub fn femtoseconds(clock: Clock, cycle: u64) -> u64 {
    let exact = (u128::from(cycle) * 1_000_000_000_000_000).div_ceil(u128::from(clock.hz()));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// The data behind `mutex`. A worker that panics ends the run, so that what it left there is not
/// used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pulse on the only wire of a block.
    #[derive(Clone, Copy, Debug)]
    struct Pulse;

    impl Passes for Pulse {
        const TOP: &'static str = "top";

        fn scope(node: u32) -> String {
            format!("block_{node}")
        }

        fn signals() -> Vec<Signal> {
            let signal = |name: &str, width| Signal {
                name: name.to_owned(),
                width,
            };
            vec![signal("cycle", 64), signal("valid", 1)]
        }

        fn release(values: &mut [u64]) {
            values[1] = 0;
        }

        fn present(&self, values: &mut [u64]) {
            values[1] = 1;
        }

        fn port(&self) -> usize {
            0
        }
    }

    /// The end of a recording in which a pulse passes in `cycle` of a clock of 1 MHz.
    fn finished(cycle: u64) -> io::Result<()> {
        let selection = Selection {
            nodes: vec![0],
            from: Time::ZERO,
            to: Time::NEVER,
        };
        let clock = Clock::from_hz(1_000_000).expect("a clock");
        let file = io::Cursor::new(Vec::new());
        let recorder = Recorder::<Pulse>::new(clock, &selection, Format::Vcd, file)?;
        let tap = recorder.tap(0).expect("the block is recorded");
        tap.hears(cycle, [Pulse]);
        recorder.finish()
    }

    #[test]
    fn a_waveform_that_would_end_before_the_run_is_an_error() {
        assert!(finished(18_000_000_000).is_ok());
        let error = finished(19_000_000_000).expect_err("2^64 fs are 18,446 s");
        assert!(error.to_string().contains("18446 s"), "{error}");
    }
}
