//! Waits and reads of threads: the flags that each looks at, and the effect of a value that it has
//! seen.

use sme_memory::{Flag, Until};

use super::Hardware;
use super::processor::{Processor, Seen};
use crate::kernel::seldom::seldom;
use crate::observe::path::{Part, Role};
use crate::observe::trace::{Mark, What};
use crate::parts::contract::{NONE_FOUND, Operation};
use crate::parts::line::Bytes;
use crate::time::Time;

impl<H: Hardware> Processor<H> {
    /// The bytes at which `thread` looks, and what would end its wait, if it looks at any.
    pub fn looks_at(&self, thread: u16) -> Option<(u64, Bytes, Option<Until>)> {
        let byte = |flag: Flag, until| Some((flag.0, Bytes::byte(flag.0), until));
        let state = self.thread(thread);
        match state.operation {
            Operation::Read(flag) => byte(flag, None),
            Operation::Wait(flag, until, _) => byte(flag, Some(until)),
            Operation::WaitAll(flags, until, _) if state.passed < flags.count => {
                byte(flags.at(state.passed), Some(until))
            }
            Operation::WaitAny(flags, until, _) => byte(flags.at(state.passed), Some(until)),
            Operation::FindAny(flags, first, until) => {
                byte(flags.at((first + state.passed) % flags.count), Some(until))
            }
            Operation::Load(word, _) | Operation::FutexWait(word, ..) => {
                Some((word.0, Bytes::word(word.0), None))
            }
            _ => None,
        }
    }

    /// `thread` has seen `value` of [what it looks at](Self::looks_at). If that ends its operation,
    /// it ends `after` from now.
    pub fn sees(&mut self, thread: u16, value: u64, after: Time) -> Seen {
        let state = self.thread(thread);
        let (flag, until) = match state.operation {
            _ if self.is_killed(thread) => {
                self.done(thread, value, after);
                return Seen::Done;
            }
            Operation::Wait(flag, until, _) => (flag, until),
            Operation::WaitAll(flags, until, _) => (flags.at(state.passed), until),
            Operation::WaitAny(flags, until, _) => (flags.at(state.passed), until),
            Operation::FindAny(flags, first, until) => {
                (flags.at((first + state.passed) % flags.count), until)
            }
            _ => {
                self.done(thread, value, after);
                return Seen::Done;
            }
        };
        if !until.holds(value as u8) {
            return self.has_seen_in_vain(thread, after);
        }
        let cause = self.cause;
        self.takes();
        let seen = self.has_seen(thread, (flag, value), after);
        // The cause may be another thread, which goes on.
        self.cause = cause;
        seen
    }

    /// A wait for any of many flags goes on to the next, and is at its first again after a round; a
    /// look at all of them ends `after` from now.
    fn has_seen_in_vain(&mut self, thread: u16, after: Time) -> Seen {
        let state = &mut self.threads[usize::from(thread)];
        let (flags, is_wait) = match state.operation {
            Operation::WaitAny(flags, ..) => (flags, true),
            Operation::FindAny(flags, ..) => (flags, false),
            _ => return Seen::Not,
        };
        state.passed = (state.passed + 1) % flags.count;
        match state.passed {
            0 if is_wait => Seen::Not,
            0 => {
                self.done(thread, NONE_FOUND, after);
                Seen::Done
            }
            _ => Seen::Next,
        }
    }

    /// A wait of `thread` takes what it has seen of `flag`.
    fn has_seen(&mut self, thread: u16, (flag, value): (Flag, u64), after: Time) -> Seen {
        let operation = self.thread(thread).operation;
        if let Operation::WaitAll(..) | Operation::WaitAny(..) | Operation::FindAny(..) = operation
            && let Some(log) = &mut self.log
        {
            let seen = (flag.0, value as u8);
            seldom(|| log.saw(self.now, thread, seen, &*self.setting.space));
        }
        let state = &mut self.threads[usize::from(thread)];
        let flags = match operation {
            Operation::WaitAll(flags, ..) => flags,
            Operation::WaitAny(..) => {
                let index = state.passed;
                self.done(thread, index.into(), after);
                return Seen::Done;
            }
            Operation::FindAny(flags, first, _) => {
                let index = (first + state.passed) % flags.count;
                self.done(thread, index.into(), after);
                return Seen::Done;
            }
            _ => {
                self.done(thread, value, after);
                return Seen::Done;
            }
        };
        self.progress += 1;
        state.passed += 1;
        if state.passed < flags.count {
            return Seen::Next;
        }
        self.done(thread, 0, after);
        Seen::Done
    }

    /// A wait of `thread` for any of many flags, or a look at them, is at the one that it reads
    /// after so many others of a round.
    pub fn is_at(&mut self, thread: u16, turn: u32) {
        let state = &mut self.threads[usize::from(thread)];
        if let Operation::WaitAny(..) | Operation::FindAny(..) = state.operation {
            state.passed = turn;
        }
    }

    /// `thread` has an answer to what it polls.
    pub fn has_looked(&mut self, thread: u16) {
        self.threads[usize::from(thread)].looks += 1;
    }

    /// A wait takes what it has seen: its path leads to where that was written.
    fn takes(&mut self) {
        if let Some(trace) = &mut self.trace {
            let mark = seldom(|| {
                trace.push(Mark {
                    at: self.now,
                    cause: self.cause,
                    part: Part::Core,
                    what: What::Sees,
                    role: Role::Takes,
                    value: None,
                })
            });
            self.cause = (self.me, mark);
        }
    }
}
