//! Marks of what the private caches of memory behind the engine miss.

use super::Trace;
use crate::families::sme::cluster::core::{Request, Wants};
use crate::families::sme::cluster::mark::{Key, MissStage, What};
use crate::observe::path::{BEFORE, MarkId, Part};
use crate::time::Time;

impl Trace {
    /// A miss is known at `leaves`, and reaches the node's first socket at `at`.
    pub fn misses(&mut self, leaves: Time, at: Time, miss: Request) {
        let mark = self.miss_stage(self.current, leaves, Part::Cache, miss, MissStage::LooksUp);
        let mark = self.miss_stage(mark, at, Part::HyperTransport, miss, MissStage::Asks);
        *self.of_miss(miss) = mark;
    }

    /// A miss takes its place in the order of what happens to its line, or waits for that.
    pub fn ordered(&mut self, now: Time, miss: Request) {
        let mark = *self.of_miss(miss);
        self.current = self.miss_stage(mark, now, Part::Queueing, miss, MissStage::Waits);
        *self.of_miss(miss) = self.current;
    }

    /// The line of `miss` is fetched by fill `number`, which waits for a slot.
    pub fn fetches(&mut self, number: u16, miss: Request) {
        self.fills.insert(number, (miss, self.current));
    }

    /// Fill `number` has a slot.
    pub fn fill_has_slot(&mut self, now: Time, number: u16) {
        if let Some(&(miss, mark)) = self.fills.get(&number) {
            self.current = self.miss_stage(mark, now, Part::Queueing, miss, MissStage::Slot);
        }
    }

    /// An answer to fill `number` is back.
    pub fn fill_answered(&mut self, number: u16) {
        let Some(&(miss, _)) = self.fills.get(&number) else {
            return;
        };
        let key = Key::response((self.me, miss.core));
        self.current = super::leave(&mut self.from_engine, key).unwrap_or(BEFORE);
        self.fills.insert(number, (miss, self.current));
    }

    /// The line of fill `number` is at the socket of the core that missed it first.
    pub fn filled(&mut self, now: Time, number: u16) {
        if let Some((miss, mark)) = self.fills.remove(&number) {
            self.answered = None;
            self.current = self.miss_stage(mark, now, Part::HyperTransport, miss, MissStage::Comes);
        }
    }

    /// The oldest buffered store of a core has the line alone, and is performed at `at`.
    pub fn store_settles(&mut self, at: Time, miss: Request) {
        *self.of_miss(miss) =
            self.miss_stage(self.current, at, Part::Cache, miss, MissStage::Settles);
    }

    /// Notes that the oldest store of `core` has been performed.
    pub fn stored(&mut self, core: u16) {
        self.current = self.core(core).misses[usize::from(true)];
    }

    /// A core that spins on its copy of a line loses it, and looks again at `at`.
    pub fn copy_lost(&mut self, at: Time, core: u16) {
        let mark = self.stage(self.current, at, Part::Cache, What::LosesCopy(core));
        self.core(core).done = mark;
    }

    /// The write-backs for `core` have left the node.
    pub fn posted_have_left(&mut self, now: Time, core: u16) {
        let called = self.core(core).system;
        self.current = self.stage(called, now, Part::HyperTransport, What::PostedLeave(core));
    }

    fn of_miss(&mut self, miss: Request) -> &mut MarkId {
        let is_store = miss.wants == Wants::Store;
        &mut self.core(miss.core).misses[usize::from(is_store)]
    }

    fn miss_stage(
        &mut self,
        cause: MarkId,
        at: Time,
        part: Part,
        miss: Request,
        stage: MissStage,
    ) -> MarkId {
        self.stage(cause, at, part, What::Misses(miss, stage))
    }
}
