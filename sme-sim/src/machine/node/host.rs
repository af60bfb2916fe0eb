//! A node as the host of its operating system.

use super::processor::Event as NodeEvent;
use super::{Hardware, Node, Waiting};
use crate::kernel::thread::Program;
use crate::observe::path::Part;
use crate::observe::trace::What;
use crate::parts::address::FaultReason;
use crate::parts::contract::Operation;
use crate::parts::os::{Activity, Deed, Delays, Event, Host, System};
use crate::time::Time;

impl<H: Hardware> Host for Node<H> {
    /// A word, as the hardware names it: by its address.
    type Word = u64;

    fn system(&mut self) -> &mut System<u64> {
        &mut self.cpu.system
    }

    fn delays(&self) -> Delays {
        self.cpu.pace.delays
    }

    fn now(&self) -> Time {
        self.cpu.now
    }

    fn cores_and_room(&self) -> (u16, u32) {
        (self.cpu.setting.cores as u16, self.cpu.setting.room)
    }

    fn threads(&self) -> u16 {
        self.cpu.threads.len() as u16
    }

    fn operation(&self, thread: u16) -> Operation {
        self.cpu.thread(thread).operation
    }

    fn activity(&self, thread: u16) -> Activity {
        match self.cpu.thread(thread).waiting {
            Waiting::Nothing => Activity::Executes,
            Waiting::Sleeps => Activity::Sleeps,
            // Its core is free for others meanwhile.
            Waiting::Watches | Waiting::Spins
                if matches!(
                    self.cpu.thread(thread).operation,
                    Operation::TakeInterrupt(_)
                ) =>
            {
                Activity::Sleeps
            }
            Waiting::Finished => Activity::Ended,
            _ => Activity::Waits,
        }
    }

    fn set_asleep(&mut self, thread: u16, asleep: bool) {
        self.cpu.waits(
            thread,
            if asleep {
                Waiting::Sleeps
            } else {
                Waiting::Nothing
            },
        );
    }

    fn word(&mut self, thread: u16, address: u64) -> Option<(u64, u64)> {
        match self.hardware.word(&self.cpu, address) {
            Ok(word) => Some(word),
            Err(reason) => {
                self.cpu.refuse(thread, Some(address), reason);
                None
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.cpu.push(at, NodeEvent::System(event));
    }

    fn finish(&mut self, thread: u16, answer: u64, after: Time) {
        self.cpu.done(thread, answer, after);
    }

    fn returns(&mut self, thread: u16, answer: u64) {
        self.cpu.ends(thread, answer, (Time::ZERO, Time::ZERO));
    }

    fn refuse(&mut self, thread: u16, reason: FaultReason) {
        self.cpu.refuse(thread, None, reason);
    }

    fn add(&mut self, by: u16, _: u16, program: Program) {
        let child = self.cpu.thread(by).child();
        self.cpu.programs.start(program);
        self.cpu.threads.push(child);
    }

    fn ends_if_killed(&mut self, thread: u16) -> bool {
        let is_killed = self.cpu.is_killed(thread);
        if is_killed {
            self.ends(thread);
        }
        is_killed
    }

    fn kill(&mut self, thread: u16) {
        let state = self.cpu.thread(thread);
        match state.waiting {
            Waiting::Finished | Waiting::Fault => {}
            Waiting::Spins | Waiting::Watches => {
                self.hardware.abandons(thread);
                self.ends(thread);
            }
            Waiting::Sleeps => self.ends(thread),
            Waiting::Nothing if matches!(state.operation, Operation::Delay(_)) => self.ends(thread),
            Waiting::Nothing | Waiting::Answer | Waiting::Polls => self.cpu.kills(thread),
        }
    }

    fn watch(&mut self, deed: Deed) {
        let cpu = &mut self.cpu;
        let now = cpu.now;
        match deed {
            Deed::Starts(thread, other) => {
                if let Some(log) = &mut cpu.log {
                    log.starts(now, thread, other);
                }
            }
            Deed::Joins(thread, other) => {
                if let Some(log) = &mut cpu.log {
                    log.joins(now, thread, other);
                }
            }
            Deed::Rings(thread) => {
                if let Some(log) = &mut cpu.log {
                    log.rings(now, thread);
                }
            }
            Deed::Serves(thread) => cpu.goes_on(thread),
            Deed::GivesWay(_) => {}
            Deed::Calls(thread, at) => cpu.marks(thread, at, "calls the system"),
            Deed::Sleeps(thread, at) => cpu.marks(thread, at, "goes to sleep"),
            Deed::HasCore(thread) => cpu.marks(thread, now, "gets a core for its thread"),
            Deed::Wakes(waker, woken) => {
                // It cannot be woken before it is asleep: whichever was later is why it goes on.
                let mark = &mut cpu.threads[usize::from(woken.thread)].mark;
                if let Some(trace) = &mut cpu.trace
                    && trace.time(*mark) < woken.called
                {
                    let what = What::System(waker, "wakes sleepers");
                    let part = Part::OperatingSystem;
                    *mark = trace.stage(cpu.cause, woken.called, part, what);
                }
                cpu.marks(woken.thread, woken.at, "has its thread scheduled");
            }
        }
    }
}
