//! Lines on their way back to memory behind the engine: displaced, flushed, or all at once.

use sme_memory::Word;

use super::miss::Wants;
use super::{Caches, Node};
use crate::families::sme::address::Target;
use crate::families::sme::cluster::agenda::Event;
use crate::families::sme::cluster::core::Waiting;
use crate::families::sme::engine::HtPacket;
use crate::families::sme::spec::WriteBack;
use crate::parts::cache::Held;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;

impl Node {
    /// A full set of `core` has displaced a line.
    pub(super) fn displaced(&mut self, core: u16, held: &Held) {
        if self.write_line_back(core, held) {
            self.caches().traffic.displaced += 1;
        }
        self.lost(core, held.line);
    }

    /// What the copy has newer than memory is posted, word by word; whether there was anything.
    fn write_line_back(&mut self, core: u16, held: &Held) -> bool {
        if held.dirty == 0 {
            return false;
        }
        self.caches().traffic.write_backs += 1;
        self.log_write_back(core, held);
        let trace = self.origin(core);
        let size = self.constants.map.line;
        for word in size.words_of(held.line) {
            let data = held.words[usize::from(word)];
            let enables = match self.constants.spec.cache.writeback {
                WriteBack::Line => 0xff,
                WriteBack::Mask => (held.dirty >> (8 * word)) as u8,
            };
            if enables == 0 {
                continue;
            }
            self.count_posted(trace);
            let address = size.word_address(held.line, word);
            self.leaves_first_socket(HtPacket::Write {
                address,
                data: Bytes::enabled(address, enables).pick(data),
                enables,
                coherent: self.constants.spec.uncached.coherent_stores,
                trace,
            });
        }
        true
    }

    /// The thread of `core` flushes the line of `word`, by whichever address it names it; nothing
    /// is to be done where caches are kept coherent, and where there are none.
    pub(in crate::families::sme) fn flush(&mut self, core: u16, word: Word) {
        match self.target(core, word.0, Bytes::word(word.0)) {
            Some(Target::Local(_)) => self.is_done(core, 0, self.constants.operation),
            Some(_) => {
                self.cores[usize::from(core)].waiting = Waiting::Cache;
                self.miss(core, Wants::Flush);
            }
            None => {}
        }
    }

    /// The line of a flush goes out of all caches of the node.
    pub(super) fn flush_line(&mut self, core: u16, line: u64) {
        let own = self.caches().held(core, line);
        let any = own.or_else(|| self.caches().holder(line, core).map(|(_, held)| held));
        if let Some(mut held) = any {
            held.dirty |= self.take_from_others(core, line);
            if own.is_some() {
                self.caches().drop_copy(core, line);
                self.lost(core, line);
            }
            self.write_line_back(core, &held);
        }
        let socket = self.cores[usize::from(core)].socket;
        let took = self.constants.latencies.probed_alone(socket);
        self.has_line(core, Wants::Flush, took);
    }

    /// The thread of `core` calls the operating system, which lets every core of the node walk
    /// through its caches.
    pub(in crate::families::sme) fn call_write_back(&mut self, core: u16) {
        self.cores[usize::from(core)].waiting = Waiting::Nothing;
        let took = self.constants.write_back_call();
        self.caches().traffic.flush_time += took;
        self.agenda.push(self.now + took, Event::WrittenBack(core));
    }

    /// [`Event::WrittenBack`]: all caches have been walked through.
    pub(in crate::families::sme) fn written_back(&mut self, caller: u16) {
        let Operation::WriteBack { invalidate } = self.cores[usize::from(caller)].operation else {
            return;
        };
        for core in 0..self.cores.len() as u16 {
            for line in self.caches().lines(core) {
                let Some(held) = self.caches().held(core, line) else {
                    continue;
                };
                self.write_line_back(core, &held);
                if invalidate {
                    self.caches().drop_copy(core, line);
                    self.lost(core, line);
                } else {
                    self.caches().clean_copy(core, line);
                }
            }
        }
        if invalidate {
            self.log_all_dropped(caller);
        }
        self.cores[usize::from(caller)].waiting = Waiting::Posted;
        let call = (caller, self.bridge.posted, self.now);
        self.caches().callers.push(call);
        self.posted_have_left();
    }

    /// The host link has sent some posted packets: callers whose own are among them go on.
    pub(in crate::families::sme) fn posted_have_left(&mut self) {
        let (sent, now) = (self.way.posted(), self.now);
        let Some(caches) = &mut self.caches else {
            return;
        };
        let mut ready = Vec::new();
        for (core, _, since) in (caches.callers).extract_if(.., |&mut (_, last, _)| last <= sent) {
            caches.traffic.flush_time += now.since(since);
            ready.push(core);
        }
        for core in ready {
            self.is_done(core, 0, self.constants.operation);
        }
    }
}

impl Caches {
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
