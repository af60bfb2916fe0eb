//! Loads, stores and flushes of memory behind the engine, through the caches ([`Caches`]).

use sme_memory::Word;

use super::agenda::Event;
use super::caches::{Answer, Around, Caches, Filled};
use super::core::{Request, Waiting, Wants};
use super::node::Node;
use super::slots::Asker;
use crate::families::sme::address::{FaultReason, Target};
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;
use crate::time::Time;

impl Node {
    /// The caches, which exist from now on, and the parts on which they work.
    pub(super) fn caches(&mut self) -> (&mut Caches, Around<'_>) {
        let (cores, line) = (self.cores.len(), self.here.constants.map.line);
        let new = || Box::new(Caches::new(cores, line));
        let around = Around {
            here: &mut self.here,
            cores: &self.cores,
            way: &mut self.way,
        };
        (self.caches.get_or_insert_with(new), around)
    }

    /// `bytes` at `address` in the caches of `core` itself, and how long they take.
    pub(super) fn cached(&mut self, core: u16, address: u64, bytes: Bytes) -> Option<(u64, Time)> {
        let times = (self.here.constants.l1, self.here.constants.l2);
        (self.caches.as_mut()?).load(core, address, bytes, times)
    }

    /// A load of memory that is cached.
    pub(super) fn load_cached(&mut self, core: u16, address: u64, bytes: Bytes) {
        if let Some((value, took)) = self.cached(core, address, bytes) {
            self.loaded(core, address, value, took);
            return;
        }
        self.cores[core].waiting = Waiting::Cache;
        self.miss(core, Wants::Load);
    }

    /// Writes at once if `core` has the line for itself; whether it had.
    pub(super) fn write_if_held_alone(
        &mut self,
        core: u16,
        address: u64,
        bytes: Bytes,
        value: u64,
    ) -> bool {
        let caches = self.caches.as_mut();
        caches.is_some_and(|caches| caches.store(core, address, bytes, value))
    }

    /// The caches of `core` lack a line.
    pub(super) fn miss(&mut self, core: u16, wants: Wants) {
        let Some(request) = self.request(core, wants) else {
            return;
        };
        let (caches, around) = self.caches();
        caches.miss(around.here, request, around.cores[core].socket);
    }

    /// `core` waits until its copy of the line at `address` changes. While its own stores have not
    /// left, it may have seen one of them and have no copy, or a copy that they are going to
    /// change: it looks again when they have.
    pub(super) fn spin_on_copy(&mut self, core: u16, address: u64) {
        if !self.stores.is_empty(core) {
            self.cores[core].waiting = Waiting::Drained;
            return;
        }
        self.cores[core].waiting = Waiting::Cache;
        self.caches().0.spin(core, address);
    }

    /// [`Event::Ordered`]
    pub(super) fn ordered(&mut self, core: u16, wants: Wants) {
        let Some(request) = self.request(core, wants) else {
            return;
        };
        let (caches, mut around) = self.caches();
        match caches.ordered(&mut around, request) {
            Answer::Has(took) => self.has_line(core, wants, took),
            Answer::Fetches(fill, socket) => {
                self.here.agenda.tell(|t| t.fetches(fill, request));
                self.queue_for_slot_of(socket, Asker::Fill(fill, 0));
            }
            Answer::Waits => {}
        }
    }

    /// The line that `core` asks its private caches for.
    fn request(&self, core: u16, wants: Wants) -> Option<Request> {
        let (address, _) = self.wanted(core, wants)?;
        Some(Request {
            core,
            wants,
            address,
        })
    }

    /// The bytes that `core` wants a line for.
    fn wanted(&self, core: u16, wants: Wants) -> Option<(u64, Bytes)> {
        match wants {
            Wants::Load => {
                let (address, bytes, _) = self.cores[core].awaited()?;
                Some((address, bytes))
            }
            Wants::Store => {
                let store = self.stores.oldest(core)?;
                Some((store.address, store.bytes))
            }
            Wants::Flush => match self.cores[core].operation {
                Operation::Flush(word) => Some((word.0, Bytes::word(word.0))),
                _ => None,
            },
        }
    }

    /// `core` has the line, as it wants it, and goes on `took` from now.
    fn has_line(&mut self, core: u16, wants: Wants, took: Time) {
        self.caches().0.has_ended();
        let Some((address, bytes)) = self.wanted(core, wants) else {
            return;
        };
        match wants {
            Wants::Load => {
                let (caches, _) = self.caches();
                let value = bytes.pick(caches.copy(core, address).unwrap_or_default());
                self.loaded(core, address, value, took);
            }
            Wants::Store => {
                if let Some(store) = self.stores.oldest(core) {
                    let written = self.write_if_held_alone(core, address, store.bytes, store.value);
                    debug_assert!(written, "the line was taken for this store");
                }
                let at = self.here.now + took;
                let miss = Request {
                    core,
                    wants,
                    address,
                };
                self.here.agenda.tell(|t| t.store_settles(at, miss));
                self.here.agenda.push(at, Event::Stored(core));
            }
            Wants::Flush => self.is_done(core, 0, took + self.here.constants.operation),
        }
    }

    /// [`Event::Stored`]: the oldest store of `core` is done.
    pub(super) fn stored(&mut self, core: u16) {
        self.here.agenda.tell(|t| t.stored(core));
        self.cores[core].store_under_way = false;
        self.stores.pop(core);
        self.drain(core);
    }

    /// Fill `number` has a slot, and `tag` if it was just given one, or may ask for more words.
    pub(super) fn ask_for_words(&mut self, number: u16, tag: Option<u8>) {
        let (Some(caches), Some(slots)) = (&mut self.caches, &mut self.slots) else {
            return;
        };
        let mut around = Around {
            here: &mut self.here,
            cores: &self.cores,
            way: &mut self.way,
        };
        caches.ask_for_words(&mut around, slots, number, tag);
    }

    /// An answer with `words`, the first of them and the number of the others, has come to fill
    /// `number`, with the data of the first, or `None` if there is no such node. Returns the socket
    /// whose slot the fill has, and whether the answer was the last.
    pub(super) fn words_arrive(
        &mut self,
        number: u16,
        words: (u8, u8),
        data: Option<u64>,
    ) -> (u8, bool) {
        let (socket, is_last) = self.caches().0.words_arrive(number, words, data);
        if !is_last {
            self.ask_for_words(number, None);
        }
        (socket, is_last)
    }

    /// [`Event::Filled`]
    pub(super) fn filled(&mut self, number: u16) {
        self.here.agenda.tell(|t| t.filled(self.here.now, number));
        let (caches, mut around) = self.caches();
        match caches.filled(&mut around, number) {
            Filled::NoSuchNode(address, waiting) => {
                for (core, _) in waiting {
                    self.faults(core, address, FaultReason::NoSuchNode);
                }
            }
            Filled::Line(waiting) => {
                self.here.progress += 1;
                let mut waiting = waiting.into_iter();
                if let Some((core, wants)) = waiting.next() {
                    self.has_line(core, wants, Time::ZERO);
                }
                for (core, wants) in waiting {
                    self.ordered(core, wants);
                }
            }
        }
    }

    /// The thread of `core` flushes the line of `word`, by whichever address it names it; nothing
    /// is to be done where caches are kept coherent, and where there are none.
    pub(super) fn flush(&mut self, core: u16, word: Word) {
        match self.target(core, word.0, Bytes::word(word.0)) {
            Some(Target::Local(_)) => self.is_done(core, 0, self.here.constants.operation),
            Some(_) => {
                self.cores[core].waiting = Waiting::Cache;
                self.miss(core, Wants::Flush);
            }
            None => {}
        }
    }

    /// The thread of `core` calls the operating system, which lets every core of the node walk
    /// through its caches.
    pub(super) fn call_write_back(&mut self, core: u16) {
        self.cores[core].waiting = Waiting::Nothing;
        let took = self.here.constants.write_back_call();
        self.caches().0.takes_call(took);
        let at = self.here.now + took;
        self.here.agenda.tell(|t| t.calls(at, core));
        self.here.agenda.push(at, Event::WrittenBack(core));
    }

    /// [`Event::WrittenBack`]: all caches have been walked through.
    pub(super) fn written_back(&mut self, caller: u16) {
        let Operation::WriteBack { invalidate } = self.cores[caller].operation else {
            return;
        };
        self.here.agenda.tell(|t| t.in_system(caller));
        let (caches, mut around) = self.caches();
        caches.write_all_back(&mut around, caller, invalidate);
        self.cores[caller].waiting = Waiting::Posted;
        self.posted_have_left();
    }

    /// The host link has sent some posted packets: callers whose own are among them go on.
    pub(super) fn posted_have_left(&mut self) {
        let Some(caches) = &mut self.caches else {
            return;
        };
        for core in caches.posted_have_left(&self.here, self.way.posted()) {
            (self.here.agenda).tell(|t| t.posted_have_left(self.here.now, core));
            self.is_done(core, 0, self.here.constants.operation);
        }
    }
}
