//! The operating system, as far as it lets threads sleep: futex calls with their costs.
//!
//! A call enters the kernel; calls on one node are ordered where they look at the word. A waker
//! pays for each thread that it wakes, one after another; a woken thread runs again only when it
//! has been scheduled, and no sooner than it has gone to sleep altogether.

use std::collections::VecDeque;

use super::agenda::Event;
use super::core::Waiting;
use super::node::Node;
use crate::families::sme::address::{FaultReason, Target};
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::parts::tables;
use crate::time::Time;

/// Sleeping threads of one node, oldest first: line, word, core, and when it is asleep.
#[derive(Debug, Default)]
pub(super) struct System {
    sleepers: VecDeque<(u32, Bytes, u16, Time)>,
}

impl System {
    pub(super) fn heap_bytes(&self) -> usize {
        tables::queue_bytes(&self.sleepers)
    }
}

impl Node {
    /// The thread of `core` calls the operating system. Its stores have left: the kernel's own
    /// locks see to that.
    pub(super) fn enter_system(&mut self, core: u16) {
        self.cores[usize::from(core)].waiting = Waiting::Nothing;
        let at = self.now + self.constants.spec.os.system_call;
        self.agenda.tell(|t| t.calls(at, core));
        self.agenda.push(at, Event::System(core));
    }

    /// [`Event::System`]: the call looks at its word.
    pub(super) fn system_call(&mut self, core: u16) {
        self.agenda.tell(|t| t.in_system(core));
        let (Operation::FutexWait(word, _) | Operation::FutexWake(word, _)) =
            self.cores[usize::from(core)].operation
        else {
            return;
        };
        let bytes = Bytes::word(word.0);
        let physical = match self.target(core, word.0, bytes) {
            Some(Target::Local(physical)) => physical,
            Some(Target::Global(_) | Target::Cached(_)) => {
                return self.faults(core, word.0, FaultReason::NotAtomic);
            }
            None => return,
        };
        let line = self.domain.line(physical);
        match self.cores[usize::from(core)].operation {
            Operation::FutexWait(_, expected) => {
                if self.domain.newest(line, bytes) == expected {
                    let asleep = self.now + self.constants.spec.os.sleep;
                    self.agenda.tell(|t| t.sleeps(asleep, core));
                    self.system.sleepers.push_back((line, bytes, core, asleep));
                    self.cores[usize::from(core)].waiting = Waiting::Asleep;
                } else {
                    self.finish(core, 0, self.constants.operation);
                }
            }
            Operation::FutexWake(_, count) => self.wake(core, line, bytes, count),
            _ => {}
        }
    }

    fn wake(&mut self, waker: u16, line: u32, bytes: Bytes, most: u32) {
        let os = &self.constants.spec.os;
        let (wake, resume) = (os.wake, os.resume);
        let mut woken = 0;
        let mut left = VecDeque::with_capacity(self.system.sleepers.len());
        for sleeper in self.system.sleepers.drain(..) {
            let (its_line, its_bytes, core, asleep) = sleeper;
            if woken < u64::from(most) && (its_line, its_bytes) == (line, bytes) {
                woken += 1;
                self.cores[usize::from(core)].waiting = Waiting::Nothing;
                let called = self.now + wake.times(woken);
                let at = called.max(asleep) + resume;
                self.agenda.tell(|t| t.wakes(waker, core, called, at));
                self.agenda.push(at, Event::Woken(core));
            } else {
                left.push_back(sleeper);
            }
        }
        self.system.sleepers = left;
        self.finish(waker, woken, wake.times(woken) + self.constants.operation);
    }

    /// [`Event::Woken`]
    pub(super) fn woken(&mut self, core: u16) {
        self.agenda.tell(|t| t.in_system(core));
        self.finish(core, 0, Time::ZERO);
    }
}
