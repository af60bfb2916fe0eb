//! The two threads of a transfer: each executes its steps of the protocol on memory of its own and
//! on the rings that both share.
//!
//! Called by [`super::transfer`] on two pinned threads. Core 0 reads the clock. The application's
//! buffers belong to the thread that sends from them and receives into them. The one `unsafe` here
//! is the promise about states of chunks that [`super::ring`] asks for.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sme_memory::Stores;

use super::MeasureError;
use super::lines::{self, LINE_BYTES, Line};
use super::ring::Ring;
use super::spin::{Gone, Word, spin_until};
use crate::coherence::transfer::Transfer;
use crate::coherence::transfer::protocol::{Act, Step};

/// The state that the two threads of a transfer share.
#[derive(Debug)]
pub struct Pair {
    transfer: Transfer,
    /// Round trips before those that are timed: in each the messages have bytes of their own, and
    /// these are compared. As many buffers are used in turn where they are not used again.
    warm_up: u64,
    /// Made by the thread whose memory they shall be.
    rings: [OnceLock<Ring>; 2],
    /// The round for which core 1 is prepared, counted from 1.
    ready: Word,
    has_begun: [AtomicBool; 2],
    is_gone: [AtomicBool; 2],
    #[cfg(test)]
    fault: Option<Fault>,
}

/// Something that a broken transfer does.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Lets every chunk go without copying it.
    NoCopy(Act),
    /// The same after the warm-up.
    NoCopyLater(Act),
    /// Copies the lines of each chunk but the last.
    ShortCopy(Act),
    /// Ends in the middle.
    Ends(Act),
}

impl Pair {
    /// For a transfer whose sizes are multiples of a cache line's, after at least one round trip.
    pub fn new(transfer: Transfer, warm_up: u64) -> Self {
        Self {
            transfer,
            warm_up: warm_up.max(1),
            rings: [OnceLock::new(), OnceLock::new()],
            ready: Word::default(),
            has_begun: Default::default(),
            is_gone: Default::default(),
            #[cfg(test)]
            fault: None,
        }
    }

    /// Executes all rounds as `core`, which is 0 or 1; another thread must be the other one. The
    /// times of the round trips that count (ns): of core 0, with reading the clock.
    ///
    /// # Errors
    /// There is no memory, the other thread is gone, or a message was received with other bytes
    /// than it was sent with.
    ///
    /// # Panics
    /// A thread was this core before.
    pub fn play(&self, core: u32) -> Result<Vec<u64>, MeasureError> {
        let has_begun = self.has_begun[core as usize].swap(true, Ordering::Relaxed);
        assert!(!has_begun, "core {core} plays twice");
        // Whichever way this ends, the other does not wait for it.
        let _gone = Gone(&self.is_gone[core as usize]);
        for ring in 0..2 {
            if self.transfer.home_of(ring) == core as usize {
                let chunk = self.transfer.chunk_bytes as usize / LINE_BYTES;
                let made = Ring::new(self.transfer.ring as usize, chunk)?;
                self.rings[ring].get_or_init(|| made);
            }
        }
        let mut side = Side::new(self, core)?;
        let mut times = Vec::with_capacity(self.transfer.rounds as usize);
        for round in 0..self.end() {
            side.prepare(round);
            match core {
                0 => self.ready.wait(round + 1, side.is_other_gone())?,
                _ => self.ready.set(round + 1),
            }
            let begin = Instant::now();
            for sender in 0..2 {
                side.pass(round, sender)?;
            }
            let elapsed = begin.elapsed();
            if round >= self.warm_up {
                times.push(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
            }
            if self.is_compared(round) {
                side.check(round)?;
            }
        }
        Ok(times)
    }

    /// The number of rounds.
    fn end(&self) -> u64 {
        self.warm_up + u64::from(self.transfer.rounds)
    }

    /// Returns whether the messages of `round` are new ones, and compared: those of the warm-up,
    /// and of the last round.
    fn is_compared(&self, round: u64) -> bool {
        round < self.warm_up || round + 1 == self.end()
    }

    #[cfg(test)]
    fn lines_to_copy(&self, (round, act): (u64, Act), count: usize) -> usize {
        match self.fault {
            Some(Fault::NoCopyLater(broken)) if broken == act && round >= self.warm_up => 0,
            Some(Fault::NoCopy(broken)) if broken == act => 0,
            Some(Fault::ShortCopy(broken)) if broken == act => count - 1,
            Some(Fault::Ends(broken)) if broken == act => {
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            _ => count,
        }
    }

    #[cfg(not(test))]
    fn lines_to_copy(&self, _: (u64, Act), count: usize) -> usize {
        count
    }
}

/// The buffers of one part, one or several.
type Buffers = Vec<Vec<Line>>;

/// One of the two cores.
#[derive(Debug)]
struct Side<'p> {
    pair: &'p Pair,
    core: u32,
    rings: [&'p Ring; 2],
    sends: Buffers,
    receives: Buffers,
}

impl<'p> Side<'p> {
    /// Waits for the rings.
    fn new(pair: &'p Pair, core: u32) -> Result<Self, MeasureError> {
        let is_gone = &pair.is_gone[1 - core as usize];
        let ring = |ring: usize| {
            let made = &pair.rings[ring];
            spin_until(|| made.get().is_some(), is_gone)?;
            made.get().ok_or(MeasureError::Panicked)
        };
        let buffers = |act| -> Result<Buffers, MeasureError> {
            let count = match pair.transfer.reuses(act) {
                true => 1,
                false => pair.warm_up,
            };
            let bytes = pair.transfer.message_bytes as usize;
            (0..count).map(|_| buffer(bytes)).collect()
        };
        Ok(Self {
            pair,
            core,
            sends: buffers(Act::Send)?,
            receives: buffers(Act::Receive)?,
            rings: [ring(0)?, ring(1)?],
        })
    }

    fn is_other_gone(&self) -> &'p AtomicBool {
        &self.pair.is_gone[1 - self.core as usize]
    }

    /// The buffer of a message of `round`.
    fn of_round(&mut self, act: Act, round: u64) -> &mut Vec<Line> {
        let number = self.pair.transfer.buffer(act, round);
        let buffers = self.buffers(act);
        let count = buffers.len();
        &mut buffers[number as usize % count]
    }

    fn buffers(&mut self, act: Act) -> &mut Buffers {
        match act {
            Act::Send => &mut self.sends,
            Act::Receive => &mut self.receives,
        }
    }

    /// Writes the message of a round that is compared; brings buffers that are not used again to
    /// memory.
    fn prepare(&mut self, round: u64) {
        let (pair, core) = (self.pair, self.core);
        if pair.is_compared(round) {
            let message = self.of_round(Act::Send, round);
            for (at, line) in message.iter_mut().enumerate() {
                *line = line_of(round, core, at);
            }
        }
        for act in Act::ALL {
            if !pair.transfer.reuses(act) {
                lines::flush(self.of_round(act, round));
            }
        }
    }

    /// This core's part of the message that `sender` sends in `round`.
    fn pass(&mut self, round: u64, sender: u32) -> Result<(), MeasureError> {
        let act = Act::of(self.core, sender);
        let is_other_gone = self.is_other_gone();
        let (pair, rings) = (self.pair, self.rings);
        let buffers = self.buffers(act);
        let count = buffers.len();
        for step in pair.transfer.steps(round, sender, act) {
            let begin = step.offset_bytes as usize / LINE_BYTES;
            let lines = step.bytes as usize / LINE_BYTES;
            let buffer = &mut buffers[step.buffer as usize % count][begin..][..lines];
            let work = |chunk: &mut [Line]| {
                let copied = pair.lines_to_copy((round, act), lines);
                copy(act, step, &mut buffer[..copied], &mut chunk[..copied]);
                if step.is_flushed {
                    lines::flush(chunk);
                }
            };
            // SAFETY: states are those of the protocol. Core 0 and core 1 pass each message in one
            // part each, `play` runs once for each core, and the steps of all messages and
            // both parts have no state of a chunk in common: senders have the even ones, receivers
            // the odd ones, and both count up with the messages and within them.
            unsafe {
                let ring = rings[step.ring];
                ring.pass(step.slot as usize, step.state, lines, is_other_gone, work)?;
            }
        }
        Ok(())
    }

    /// Compares the message that was received in `round`.
    fn check(&mut self, round: u64) -> Result<(), MeasureError> {
        let (pair, sender) = (self.pair, 1 - self.core);
        let received = self.of_round(Act::Receive, round);
        let is_right = |(at, line): (usize, &Line)| *line == line_of(round, sender, at);
        match received.iter().enumerate().all(is_right) {
            true => Ok(()),
            false => Err(MeasureError::Bytes(pair.transfer.message_bytes)),
        }
    }
}

/// The line at this position of the message that `sender` sends in a round that is compared.
fn line_of(round: u64, sender: u32, at: usize) -> Line {
    let message = 2 * round + u64::from(sender);
    Line::numbered((message << 32) | at as u64)
}

/// Copies a chunk of a message.
fn copy(act: Act, step: Step, buffer: &mut [Line], chunk: &mut [Line]) {
    match (act, step.stores) {
        (Act::Send, Stores::Cached) => lines::copy(buffer, chunk),
        (Act::Send, Stores::NonTemporal) => lines::copy_past_caches(buffer, chunk),
        (Act::Receive, _) => lines::copy(chunk, buffer),
    }
}

/// A buffer whose pages the calling thread touches.
fn buffer(bytes: usize) -> Result<Vec<Line>, MeasureError> {
    let count = bytes / LINE_BYTES;
    let mut lines = Vec::new();
    lines
        .try_reserve_exact(count)
        .map_err(|_| MeasureError::Memory(bytes))?;
    // A page of zeros may not be there before it is written to.
    lines.resize(count, Line::numbered(u64::MAX));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::coherence::model::Flush;
    use crate::coherence::transfer::protocol::testing::transfers;
    use crate::coherence::transfer::{Direction, Home};
    use crate::coherence::transition::CoreDistance;

    /// Returns the results of core 0 and core 1, on threads that are pinned nowhere.
    fn played(pair: &Pair) -> [Result<Vec<u64>, MeasureError>; 2] {
        thread::scope(|scope| {
            let sides = [0, 1].map(|core| scope.spawn(move || pair.play(core)));
            sides.map(|side| side.join().unwrap_or(Err(MeasureError::Panicked)))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

        /// Every message of the warm-up and the last one are compared within.
        #[test]
        fn messages_come_over_under_every_setting(transfer in transfers(), warm_up in 1..7u64) {
            let [first, second] = played(&Pair::new(transfer, warm_up));
            prop_assert_eq!(first.unwrap().len(), transfer.rounds as usize);
            prop_assert_eq!(second.unwrap().len(), transfer.rounds as usize);
        }
    }

    /// Every setting of direction, flush, home and reuse, of a message that goes through each chunk
    /// more than once and fills the last one in part.
    fn every_setting() -> Vec<Transfer> {
        let mut all = Vec::new();
        for &direction in Direction::ALL {
            for &flush in Flush::ALL {
                for &home in Home::ALL {
                    for reuse in 0..4 {
                        all.push(Transfer {
                            chunk_bytes: 256,
                            ring: 2,
                            direction,
                            flush,
                            home,
                            reuses: (reuse & 1 == 0, reuse & 2 == 0),
                            rounds: 2,
                            ..Transfer::of_open_mpi(CoreDistance::Socket, 5 * 256 + 128)
                        });
                    }
                }
            }
        }
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes; the property has a few of them")]
    fn every_setting_works_and_every_fault_is_caught() {
        for transfer in every_setting() {
            for side in played(&Pair::new(transfer, 3)) {
                assert_eq!(side.unwrap().len(), 2);
            }
            for act in Act::ALL {
                for fault in [
                    Fault::NoCopy(act),
                    Fault::NoCopyLater(act),
                    Fault::ShortCopy(act),
                ] {
                    let mut pair = Pair::new(transfer, 3);
                    pair.fault = Some(fault);
                    let caught = played(&pair);
                    let is_bytes =
                        |side: &Result<_, _>| matches!(side, Err(MeasureError::Bytes(_)));
                    assert!(caught.iter().any(is_bytes), "{transfer:?} {fault:?}");
                }
            }
        }
    }

    #[test]
    fn a_thread_that_ends_ends_the_other() {
        for act in Act::ALL {
            let mut pair = Pair::new(every_setting()[0], 1);
            pair.fault = Some(Fault::Ends(act));
            for side in played(&pair) {
                assert!(matches!(side, Err(MeasureError::Panicked)));
            }
        }
        // The second thread never comes.
        let pair = Pair::new(every_setting()[0], 1);
        drop(Gone(&pair.is_gone[1]));
        assert!(matches!(pair.play(0), Err(MeasureError::Panicked)));
        // There is no memory for buffers: the other waits for none.
        let huge = Transfer {
            message_bytes: 1 << 63,
            ..every_setting()[0]
        };
        let sides = played(&Pair::new(huge, 1));
        assert!(
            sides
                .iter()
                .any(|side| matches!(side, Err(MeasureError::Memory(_))))
        );
        assert!(sides.iter().all(Result::is_err));
    }
}
