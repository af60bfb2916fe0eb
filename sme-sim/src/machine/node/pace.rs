//! The clock of a node where it changes during a run: what is counted in its cycles takes longer or
//! shorter from then on, and what its threads compute goes on so.

use super::Hardware;
use super::processor::{Event, Processor, Setting, Waiting};
use crate::parts::contract::Operation;
use crate::parts::os::{self, Delays};
use crate::time::Time;

/// A node's own costs at its clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Its cycles are longer than those of the machine's constants by the first to the second.
    pub(super) ratio: (u32, u32),
    pub(super) operation: Time,
    pub(super) delays: Delays,
    pub(super) walk: Time,
}

impl Pace {
    pub(super) fn new(setting: &Setting, (to, of): (u32, u32)) -> Self {
        let (delays, walk) = setting.system;
        Self {
            ratio: (to, of),
            operation: setting.operation.scaled(to, of),
            delays: delays.scaled(to, of),
            walk: walk.scaled(to, of),
        }
    }
}

impl<H: Hardware> Processor<H> {
    /// From now on the node's cycles are longer than those of the machine's constants by `to / of`.
    /// Threads that compute go on at that pace; other operations that have begun end as they would
    /// have.
    pub fn retunes(&mut self, (to, of): (u32, u32)) {
        let before = std::mem::replace(&mut self.pace, Pace::new(&self.setting, (to, of)));
        self.system.costs(self.pace.delays.sharing);
        // Both by the same constants.
        let (was, now, of_before) = (before.ratio.0, self.now, before.ratio.1);
        let (threads, system) = (&self.threads, &self.system);
        self.queue.moves(|at, event| match *event {
            Event::System(os::Event::Resume(thread)) => {
                let state = &threads[usize::from(thread)];
                let Operation::Delay(_) = state.operation else {
                    return None;
                };
                // Without its core it has not executed since.
                let since = system.put_off_since(thread).unwrap_or(now);
                let left = at.since(since).scaled(to * of_before, was * of);
                (state.waiting == Waiting::Nothing).then_some(now.max(since + left))
            }
            _ => None,
        });
    }

    /// The time that its cores have executed, or waited for the hardware, by `now`: the rest of the
    /// time they are halted.
    pub fn busy(&self, now: Time) -> Time {
        let all_ended = self.threads.iter().all(|t| t.waiting == Waiting::Finished);
        let alone = || if all_ended { self.ended.min(now) } else { now };
        self.system.busy(now).unwrap_or_else(alone)
    }
}
