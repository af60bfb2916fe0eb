//! The processes that compute, and their calls that concern their rank alone: these are answered
//! when the simulator waits for any of the processes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sme_mpi::abi::Rank;

use super::memory::Memory;
use super::process::asked;
use super::slots::slot::{CALLS, RETURNS, Slot};
use super::slots::{Bell, Turn, turn};

/// The processes.
#[derive(Debug)]
pub struct Desk {
    bell: Bell,
    computing: Mutex<Vec<Computing>>,
}

/// A process that computes.
#[derive(Debug)]
struct Computing {
    number: u32,
    memory: Arc<Memory>,
    rank: Arc<Rank>,
    /// Whether it has made a call that is not answered here.
    waits: bool,
}

/// Looks at turns before the simulator sleeps until it has one.
const LOOKS: u32 = 2_000;

impl Desk {
    /// None yet.
    pub fn new(bell: Bell) -> Self {
        Self {
            bell,
            computing: Mutex::default(),
        }
    }

    /// The process of `rank`, which has this number, computes.
    pub fn comes(&self, number: u32, memory: &Arc<Memory>, rank: &Arc<Rank>) {
        self.computing.lock().push(Computing {
            number,
            memory: Arc::clone(memory),
            rank: Arc::clone(rank),
            waits: false,
        });
    }

    /// It does not, or its calls are not answered here any more.
    pub fn goes(&self, number: u32) {
        self.computing.lock().retain(|one| one.number != number);
    }

    /// No process computes any more.
    pub fn closes(&self) {
        self.computing.lock().clear();
    }

    /// Waits until the process of this number has made a call that is not answered here, for this
    /// long at most, or until it `is_over`; returns whose turn it is then.
    pub fn waits(
        &self,
        (number, slot): (u32, &'static Slot),
        longest: Duration,
        is_over: impl Fn() -> bool,
    ) -> Turn {
        let begin = Instant::now();
        loop {
            let mut looks = 0;
            while looks < LOOKS {
                looks += 1;
                if self.answers() && begin.elapsed() < longest {
                    looks = 0;
                }
                if self.has_come(number, slot) {
                    return Turn::Simulator;
                }
                std::hint::spin_loop();
            }
            let left = longest.saturating_sub(begin.elapsed());
            if left.is_zero() || is_over() {
                return Turn::Process;
            }
            let computing = self.computing.lock();
            let awaited = computing.iter().filter(|one| !one.waits);
            let awaited = awaited.map(|one| one.memory.slot()).chain([slot]);
            let awaited: Vec<&Slot> = awaited.collect();
            drop(computing);
            self.bell.sleeps(&awaited, left);
        }
    }

    /// The same where no call of any process is answered here meanwhile.
    pub fn waits_only(&self, slot: &'static Slot, longest: Duration) -> Turn {
        for _ in 0..LOOKS {
            if turn(slot) == Turn::Simulator {
                return Turn::Simulator;
            }
            std::hint::spin_loop();
        }
        self.bell.sleeps(&[slot], longest);
        turn(slot)
    }

    /// Returns whether the process of this number has made a call that is not answered here.
    fn has_come(&self, number: u32, slot: &Slot) -> bool {
        let is_own = |one: &Computing| one.number == number && !one.waits;
        turn(slot) == Turn::Simulator && !self.computing.lock().iter().any(is_own)
    }

    /// Answers the calls that have been made and concern a rank alone; whether there was one.
    fn answers(&self) -> bool {
        let mut has_answered = false;
        for one in self.computing.lock().iter_mut() {
            if one.waits || turn(one.memory.slot()) == Turn::Process {
                continue;
            }
            let is_call = one.memory.slot().said.load(Relaxed) == CALLS;
            let call = is_call.then(|| one.rank.performs_alone(&asked(one.memory.slot())));
            match call.flatten() {
                Some(result) => {
                    one.memory.slot().result.store(result, Relaxed);
                    one.memory.passes(RETURNS);
                    has_answered = true;
                }
                None => one.waits = true,
            }
        }
        has_answered
    }
}
