//! Lines on their way back to memory behind the engine: displaced, flushed, or all at once.

use super::{Around, Caches};
use crate::families::sme::cluster::here::Here;
use crate::families::sme::cluster::protocol;
use crate::families::sme::engine::HtPacket;
use crate::families::sme::spec::WriteBack;
use crate::parts::cache::Held;
use crate::parts::coherence::Event;
use crate::parts::line::Bytes;
use crate::time::Time;

impl Caches {
    /// A full set of `core` has displaced a line.
    pub(super) fn displaced(&mut self, around: &mut Around<'_>, core: u16, held: &Held) {
        let row = protocol::row(held.state, Event::Evict);
        if row.writes_back && self.write_line_back(around, core, held) {
            self.traffic.displaced += 1;
        }
        self.lost(around.here, core, held.line);
    }

    /// Posts the words of the copy that are newer than memory, one by one; returns whether there
    /// were any.
    fn write_line_back(&mut self, around: &mut Around<'_>, core: u16, held: &Held) -> bool {
        if held.dirty == 0 {
            return false;
        }
        self.traffic.write_backs += 1;
        let here = &mut *around.here;
        here.log_write_back(core, held);
        let trace = here.origin(core, &around.cores[core]);
        for word in self.line.words_of(held.line) {
            let enables = match here.constants.spec.cache.writeback {
                WriteBack::Line => 0xff,
                WriteBack::Mask => (held.dirty >> (8 * word)) as u8,
            };
            if enables == 0 {
                continue;
            }
            here.count_posted(trace);
            let address = self.line.word_address(held.line, word);
            let packet = HtPacket::Write {
                address,
                data: Bytes::enabled(address, enables).pick(held.words[usize::from(word)]),
                enables,
                coherent: here.constants.spec.uncached.coherent_stores,
                trace,
            };
            (around.way).sets_out(here.now, 0, packet, &mut here.agenda);
        }
        true
    }

    /// The line of a flush goes out of all caches of the node; how long that takes.
    pub(super) fn flush_line(&mut self, around: &mut Around<'_>, core: u16, line: u64) -> Time {
        let own = self.held(core, line);
        let told = self.tell(around.here, core, line, Event::Flush);
        if let Some(mut held) = own.or(told.copy) {
            held.dirty |= told.dirty;
            if own.is_some() {
                self.drop_copy(core, line);
                self.lost(around.here, core, line);
            }
            self.write_line_back(around, core, &held);
        }
        let socket = around.cores[core].socket;
        around.here.constants.latencies.probed_alone(socket)
    }

    /// Counts the time of a call that lets every core of the node walk through its caches.
    pub fn takes_call(&mut self, took: Time) {
        self.traffic.flush_time += took;
    }

    /// Writes the lines of all caches back for `caller`, which goes on when the writes have left
    /// the node.
    pub fn write_all_back(&mut self, around: &mut Around<'_>, caller: u16, invalidate: bool) {
        for core in 0..self.cores.len() as u16 {
            for line in self.lines(core) {
                let Some(held) = self.held(core, line) else {
                    continue;
                };
                self.write_line_back(around, core, &held);
                if invalidate {
                    self.drop_copy(core, line);
                    self.lost(around.here, core, line);
                } else {
                    self.clean_copy(core, line);
                }
            }
        }
        if invalidate {
            around.here.log_all_dropped(caller);
        }
        let call = (caller, around.here.posted, around.here.now);
        self.callers.push(call);
    }

    /// The callers whose writes have left, now that the host link has `sent` so many posted
    /// packets: they go on.
    pub fn posted_have_left(&mut self, here: &Here, sent: u64) -> Vec<u16> {
        let gone = |caller: &mut (u16, u64, Time)| caller.1 <= sent;
        let gone = self.callers.extract_if(.., gone);
        let gone = gone.map(|(core, _, since)| {
            self.traffic.flush_time += here.now.since(since);
            core
        });
        gone.collect()
    }

    fn lines(&self, core: u16) -> Vec<u64> {
        let ahead = &self.cores[usize::from(core)];
        ahead.iter().flat_map(|a| a.cache.lines()).collect()
    }

    fn drop_copy(&mut self, core: u16, line: u64) {
        if let Some(ahead) = &mut self.cores[usize::from(core)] {
            ahead.cache.remove(line);
        }
    }

    fn clean_copy(&mut self, core: u16, line: u64) {
        if let Some(ahead) = &mut self.cores[usize::from(core)] {
            ahead.cache.clean(line);
        }
    }
}
