//! A node as the host of its operating system ([`crate::parts::os`]): futex calls, and threads that
//! start others and share cores with them.
//!
//! Each thread is to the hardware a core of its own, on the socket of the core that it has: it
//! finds store buffer and caches as it left them.

use super::agenda;
use super::core::{Core, Waiting};
use super::node::Node;
use super::trace::Trace;
use crate::families::sme::address::{FaultReason, Target};
use crate::kernel::thread::Program;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::parts::os::{Activity, Costs, Deed, Delays, Event, Host, System, Woken};
use crate::time::Time;

impl Node {
    /// The program of `thread` has ended, or ends here. The stores that it has buffered leave.
    #[cold]
    pub(super) fn ends(&mut self, thread: u16) {
        self.cores[thread].waiting = Waiting::Finished;
        self.threads.forget(thread.into());
        self.has_ended(thread);
    }

    /// Returns whether `event` is about a thread that was killed before it.
    pub(super) fn is_superfluous(&self, event: agenda::Event) -> bool {
        match event {
            agenda::Event::Resume(thread)
            | agenda::Event::Begin(thread)
            | agenda::Event::Rings(thread) => self.cores[thread].waiting == Waiting::Finished,
            _ => false,
        }
    }

    /// Lets `thread`, if it spins on a copy of a line, do so no longer; whether it has. Otherwise
    /// the line is on its way, and the thread has it before it ends.
    fn stops_spinning(&mut self, thread: u16) -> bool {
        let Some((address, ..)) = self.cores[thread].awaited() else {
            return false;
        };
        match self.here.constants.map.target(address) {
            Ok(Target::Local(physical)) => {
                let line = self.domain.line(physical);
                self.domain.stops_spinning(thread, line)
            }
            Ok(Target::Cached(_)) => self.caches().0.stops_spinning(thread, address),
            _ => false,
        }
    }
}

impl Host for Node {
    /// Line and word.
    type Word = (u32, Bytes);

    fn system(&mut self) -> &mut System<(u32, Bytes)> {
        &mut self.system
    }

    fn delays(&self) -> Delays {
        let os = &self.here.constants.spec.os;
        Delays {
            system_call: os.system_call,
            sleep: os.sleep,
            wake: os.wake,
            resume: os.resume,
            start: os.start,
            sharing: Costs {
                switch: os.switch,
                quantum: os.quantum,
            },
        }
    }

    fn now(&self) -> Time {
        self.here.now
    }

    fn cores_and_room(&self) -> (u16, u32) {
        let cores = self.here.constants.spec.node.cores();
        (cores as u16, self.here.constants.room)
    }

    fn threads(&self) -> u16 {
        self.cores.len() as u16
    }

    fn operation(&self, thread: u16) -> Operation {
        self.cores[thread].operation
    }

    fn activity(&self, thread: u16) -> Activity {
        match self.cores[thread].waiting {
            Waiting::Nothing => Activity::Executes,
            Waiting::Asleep => Activity::Sleeps,
            Waiting::Finished => Activity::Ended,
            _ => Activity::Waits,
        }
    }

    fn set_asleep(&mut self, thread: u16, asleep: bool) {
        self.cores[thread].waiting = match asleep {
            true => Waiting::Asleep,
            false => Waiting::Nothing,
        };
    }

    fn word(&mut self, thread: u16, address: u64) -> Option<((u32, Bytes), u64)> {
        let bytes = Bytes::word(address);
        match self.target(thread, address, bytes)? {
            Target::Local(physical) => {
                let line = self.domain.line(physical);
                Some(((line, bytes), self.domain.newest(line, bytes)))
            }
            Target::Global(_) | Target::Cached(_) => {
                self.faults(thread, address, FaultReason::NotAtomic);
                None
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.here.agenda.push(
            at,
            match event {
                Event::Resume(thread) => agenda::Event::Resume(thread),
                Event::Call(thread) => agenda::Event::System(thread),
                Event::Woken(thread) => agenda::Event::Woken(thread),
                Event::TimesOut(core) => agenda::Event::TimesOut(core),
                Event::Rings(thread) => agenda::Event::Rings(thread),
            },
        );
    }

    fn finish(&mut self, thread: u16, answer: u64, after: Time) {
        self.is_done(thread, answer, after + self.here.constants.operation);
    }

    fn returns(&mut self, thread: u16, answer: u64) {
        self.is_done(thread, answer, Time::ZERO);
    }

    #[inline]
    fn ends_if_killed(&mut self, thread: u16) -> bool {
        let is_killed = self.system.is_killed(thread);
        if is_killed {
            self.ends(thread);
        }
        is_killed
    }

    fn kill(&mut self, thread: u16) {
        let Core {
            waiting, operation, ..
        } = self.cores[thread];
        match (waiting, operation) {
            (Waiting::Finished | Waiting::Fault, _) => {}
            (Waiting::Asleep, _) | (Waiting::Nothing, Operation::Delay(_)) => self.ends(thread),
            (Waiting::Cache, _) if self.stops_spinning(thread) => self.ends(thread),
            _ => self.system.is_to_end(thread),
        }
    }

    fn refuse(&mut self, thread: u16, reason: FaultReason) {
        self.stops(thread, None, reason);
    }

    fn add(&mut self, by: u16, core: u16, program: Program) {
        let socket = self.here.constants.socket_of(core.into());
        let counted = self.cores[by].counted;
        self.threads.start(program);
        self.cores.push(Core {
            counted,
            ..Core::new(socket)
        });
        self.stores.grow();
        self.domain.grow(socket);
        if let Some(caches) = &mut self.caches {
            caches.grow();
        }
    }

    fn watch(&mut self, deed: Deed) {
        let now = self.here.now;
        match deed {
            Deed::Rings(thread) => {
                self.here.agenda.tell(|t| t.in_system(thread));
                if let Some(log) = &mut self.here.log {
                    log.rings(now, thread);
                }
            }
            Deed::Calls(thread, at) => self.here.agenda.tell(|t| t.calls(at, thread)),
            Deed::Serves(thread) => self.here.agenda.tell(|t| t.in_system(thread)),
            Deed::Sleeps(thread, at) => self.here.agenda.tell(|t| t.sleeps(at, thread)),
            Deed::Wakes(waker, Woken { thread, called, at }) => {
                self.here
                    .agenda
                    .tell(|t| t.wakes(waker, thread, called, at));
            }
            Deed::Starts(thread, other) => {
                self.here.agenda.tell(Trace::starts);
                if let Some(log) = &mut self.here.log {
                    log.starts(now, thread, other);
                }
            }
            Deed::Joins(thread, other) => {
                if let Some(log) = &mut self.here.log {
                    log.joins(now, thread, other);
                }
            }
            Deed::GivesWay(thread) => {
                (self.here.agenda).tell(|t| t.finished(now, thread, Time::ZERO, now));
            }
            Deed::HasCore(thread) => self.here.agenda.tell(|t| t.has_core(now, thread)),
        }
    }
}
