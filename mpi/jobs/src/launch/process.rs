//! The process of a rank, as the calls that it makes see it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use parking_lot::Mutex;
use sme_mpi::abi::Rank;
use sme_mpi::abi::facts::Interface;
use sme_mpi::abi::process::Services;
use sme_mpi::abi::program::{Asked, Beside, Gone, Heard, Looks, News, Part, Program, Proxy};
use sme_mpi::buffer::Outside;
use sme_mpi::error::Fault;
use sme_mpi::file::{Directory, Handover, Mode, Storage};

use super::elsewhere::Watch;
use super::files;
use super::job::Shared;
use super::memory::Memory;
use super::slots::Turn;
use super::slots::slot::{
    CALLS, COMPUTES, FINALIZED, HANDLER_PROXY, INITIALIZED, INVOKES, KEY_PROXIES, MEASURES,
    MOST_ARGUMENTS, MPICH, NO_ARGUMENT, OPERATION_PROXY, READS_CLOCK, RETURNED, RETURNS, STANDARD,
    Slot,
};

/// The process of a rank.
#[derive(Debug)]
pub struct RankProcess {
    rank: u32,
    slot: &'static Slot,
    shared: Arc<Shared>,
    memory: Arc<Memory>,
    elsewhere: Mutex<Elsewhere>,
}

/// The state of a process that makes no call.
#[derive(Debug, Default)]
struct Elsewhere {
    watch: Watch,
    /// Whether it waits for something else.
    is_there: bool,
    /// The looks that it had made by itself.
    looks: u32,
    /// The time for which it had computed, in nanoseconds.
    computed_ns: u64,
}

/// The time for which the simulator sleeps before it looks whether a process is still there, and
/// computes.
const SLEEP: Duration = Duration::from_millis(100);

/// The same while the process waits for something other than a call, and simulated time goes on.
const PAUSE: Duration = Duration::from_micros(100);

/// The same while the process computes and that is measured: about as often as the system tells of
/// it.
const TICK: Duration = Duration::from_millis(2);

/// The ticks in the time after which the simulator looks whether the process is still there.
const TICKS: u128 = SLEEP.as_micros() / TICK.as_micros();

impl RankProcess {
    /// The process of this rank.
    pub fn new(rank: u32, memory: Arc<Memory>, shared: Arc<Shared>) -> Self {
        Self {
            rank,
            slot: memory.slot(),
            shared,
            memory,
            elsewhere: Mutex::default(),
        }
    }

    /// The interface that its program was compiled for, once it has made a call.
    pub fn interface(&self) -> Interface {
        match self.slot.interface.load(Relaxed) {
            STANDARD => Interface::Standard,
            MPICH => Interface::Mpich,
            // A process may write what it likes.
            _ => Interface::Mpich,
        }
    }

    /// Waits until the process says something: a call, or the result of a function.
    fn wait(&self) -> Result<(), Gone> {
        let desk = self.shared.desk();
        while !self.has_said(SLEEP, |longest| desk.waits_only(self.slot, longest))? {}
        Ok(())
    }

    /// Returns whether the process has said something; `waits` for it not much longer than this.
    fn has_said(
        &self,
        longest: Duration,
        waits: impl FnOnce(Duration) -> Turn,
    ) -> Result<bool, Gone> {
        let is_over = self.shared.is_over(self.rank);
        let longest = if is_over { Duration::ZERO } else { longest };
        match (waits(longest), is_over) {
            (Turn::Simulator, _) => Ok(true),
            (Turn::Process, false) => Ok(false),
            // It had ended before, and has not made a call before that.
            (Turn::Process, true) => Err(Gone),
        }
    }

    /// The time for which the process has computed, if that is measured and it is outside calls.
    fn computed_ns(&self) -> Option<u64> {
        let slot = self.slot;
        let left_at_ns = slot.left_at_ns.load(SeqCst);
        let before_ns = slot.computed_ns.load(SeqCst);
        let (process, thread) = (self.number(), slot.thread.load(SeqCst));
        // It has made no call meanwhile.
        if left_at_ns == 0 || slot.left_at_ns.load(SeqCst) != left_at_ns {
            return None;
        }
        // The first number is the thread's processor time (Documentation/scheduler/sched-stats.rst
        // of Linux), a few milliseconds late. Where there is none, the call tells.
        let path = format!("/proc/{process}/task/{thread}/schedstat");
        let statistics = fs::read_to_string(path).ok()?;
        let now_ns: u64 = statistics.split_whitespace().next()?.parse().ok()?;
        before_ns.checked_add(now_ns.checked_sub(left_at_ns)?)
    }

    /// The number of the process, once it has made a call.
    fn number(&self) -> u32 {
        self.slot.process.load(Relaxed)
    }
}

/// The call that a process makes.
pub fn asked(slot: &Slot) -> Asked {
    slot.looks_left.store(0, Relaxed);
    let number = slot.number.load(Relaxed);
    let values: [u64; MOST_ARGUMENTS] =
        std::array::from_fn(|place| slot.values[place].load(Relaxed));
    Asked {
        number: number as usize,
        values,
        beside: beside(number, values),
        computed_ns: slot.computed_ns.load(Relaxed),
        looks: slot.looks.swap(0, Relaxed),
    }
}

/// The call of this number, if it is not MPI's.
fn beside(number: u32, values: [u64; MOST_ARGUMENTS]) -> Option<Beside> {
    let [first, second, third, ..] = values;
    Some(match number {
        COMPUTES => Beside::Computes(f64::from_bits(first)),
        READS_CLOCK => Beside::ReadsClock(first),
        OPERATION_PROXY => Beside::Proxy(Proxy::Operation(first, second)),
        HANDLER_PROXY => Beside::Proxy(Proxy::Handler(first, second)),
        KEY_PROXIES => Beside::Proxy(Proxy::Key(i64::from(first as i32), [second, third])),
        _ => return None,
    })
}

impl Outside for RankProcess {
    fn read(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        into: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.memory.read(blocks, into)
    }

    fn write(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        self.memory.write(blocks, bytes, true)
    }

    fn write_at_once(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        self.memory.write(blocks, bytes, false)
    }
}

impl Directory for RankProcess {
    fn open(&self, name: &[u8], mode: &Mode) -> Result<Box<dyn Storage>, Fault> {
        files::open(&files::path(self.number(), name)?, mode)
    }

    fn delete(&self, name: &[u8]) -> Result<(), Fault> {
        files::delete(&files::path(self.number(), name)?)
    }
}

impl Program for RankProcess {
    fn computes(&self, rank: &Arc<Rank>) {
        self.shared.desk().comes(self.rank, &self.memory, rank);
    }

    fn next(&self) -> Result<News, Gone> {
        let desk = self.shared.desk();
        let is_over = || self.shared.is_over(self.rank);
        let waits = |longest| desk.waits((self.rank, self.slot), longest, is_over);
        let mut elsewhere = self.elsewhere.lock();
        let measures = self.slot.options.load(Relaxed) & MEASURES != 0;
        loop {
            let (times, longest) = match (elsewhere.is_there, measures) {
                (true, _) => (1, PAUSE),
                (false, true) => (TICKS, TICK),
                (false, false) => (1, SLEEP),
            };
            for _ in 0..times {
                let has_said = self.has_said(longest, waits);
                if has_said != Ok(false) {
                    desk.goes(self.rank);
                }
                if has_said? {
                    elsewhere.is_there = false;
                    return Ok(News::Calls(asked(self.slot)));
                }
                let computed_ns = if measures { self.computed_ns() } else { None };
                if let Some(ns) = computed_ns.filter(|&ns| ns > elsewhere.computed_ns) {
                    elsewhere.computed_ns = ns;
                    return Ok(News::Computes(ns));
                }
            }
            // One that makes looks by itself waits for their outcome.
            let looks = self.slot.looks.load(Relaxed);
            if std::mem::replace(&mut elsewhere.looks, looks) != looks {
                continue;
            }
            elsewhere.is_there = elsewhere.watch.looks(self.number());
            if elsewhere.is_there {
                let rank = self.rank;
                self.shared.tells(format!(
                    "rank {rank} waits for something other than MPI: simulated time goes on, and \
                     may differ in every repetition"
                ));
                return Ok(News::Waits);
            }
        }
    }

    fn lets_look(&self, looks: &Looks) {
        let slot = self.slot;
        for (place, [at, number]) in slot.looks_write.iter().enumerate() {
            let write = looks.writes.get(place);
            let (argument, value) =
                write.map_or((NO_ARGUMENT, 0), |&(at, number)| (at as u32, number));
            at.store(argument, Relaxed);
            number.store(value as u32, Relaxed);
        }
        let (place, bytes) = looks.requests.unwrap_or((NO_ARGUMENT as usize, 0));
        slot.looks_for.store(place as u32, Relaxed);
        slot.looks_for_bytes.store(bytes as u32, Relaxed);
        slot.looks_left.store(looks.most, Relaxed);
    }

    fn answer(&self, result: u64) {
        self.slot.result.store(result, Relaxed);
        self.memory.passes(RETURNS);
    }

    fn invoke(&self, function: u64, arguments: &[u64]) {
        let slot = self.slot;
        slot.function.store(function, Relaxed);
        for (word, &argument) in slot.values.iter().zip(arguments) {
            word.store(argument, Relaxed);
        }
        self.memory.passes(INVOKES);
    }

    fn hear(&self) -> Result<Heard, Gone> {
        self.wait()?;
        match self.slot.said.load(Relaxed) {
            RETURNED => Ok(Heard::Returned(self.slot.result.load(Relaxed))),
            CALLS => Ok(Heard::Calls(asked(self.slot))),
            said => {
                self.abort(1, format!("the process says {said}, which means nothing"));
                Err(Gone)
            }
        }
    }

    fn allocator(&self) -> [u64; 2] {
        let [allocate, free] = &self.slot.memory;
        [allocate.load(Relaxed), free.load(Relaxed)]
    }

    fn scratch(&self, place: usize, words: &[u64]) -> u64 {
        let slot = self.slot;
        for (word, &value) in slot.scratch.iter().skip(place).zip(words) {
            word.store(value, Relaxed);
        }
        slot.scratch_at.load(Relaxed) + 8 * place as u64
    }

    fn scratched(&self, place: usize) -> u64 {
        let word = self.slot.scratch.get(place);
        word.map_or(0, |word| word.load(Relaxed))
    }

    fn start(&self, parts: &[Part]) -> Result<Option<Vec<u32>>, Fault> {
        self.shared.starts_parts(self.number(), parts)
    }

    fn services(&self) -> &Services {
        self.shared.services()
    }

    fn handover(&self) -> &Handover {
        self.shared.handover()
    }

    fn is_initialized(&self) {
        self.slot.state.store(INITIALIZED, Relaxed);
    }

    fn is_finalized(&self) {
        self.slot.state.store(FINALIZED, Relaxed);
    }

    fn abort(&self, status: i32, why: String) {
        self.shared.aborts(self.rank, status, why);
    }

    fn tell(&self, what: String) {
        self.shared.tells(what);
    }
}
