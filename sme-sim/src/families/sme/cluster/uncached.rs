//! Loads and stores of memory behind the engine, past the caches.
//!
//! An uncached load waits for its socket's slot ([`Slots`]), crosses the host link, and holds the
//! slot until the answer is back and the slot has turned around. A store is posted: it leaves the
//! core and is forgotten.

use super::agenda::Event;
use super::core::Waiting;
use super::node::Node;
use super::slots::{Asker, Slots};
use crate::families::sme::address::FaultReason;
use crate::families::sme::engine::{HtChannel, HtPacket};
use crate::parts::store_buffer::Store;

impl Node {
    /// Uncached accesses of a core stay in program order.
    pub(super) fn load_uncached(&mut self, core: u16) {
        if self.stores.is_empty(core) {
            self.queue_for_slot(core);
        } else {
            self.cores[core].waiting = Waiting::Drained;
        }
    }

    /// The uncached load of `core` waits for its socket's slot.
    pub(super) fn queue_for_slot(&mut self, core: u16) {
        self.cores[core].waiting = Waiting::Uncached;
        self.here.agenda.tell(|t| t.waits_for_slot(core));
        self.queue_for_slot_of(self.cores[core].socket, Asker::Core(core));
    }

    /// `asker` waits for the slot of `socket`.
    pub(super) fn queue_for_slot_of(&mut self, socket: u8, asker: Asker) {
        let new = || Box::new(Slots::new(&self.here.constants, self.here.me));
        self.slots.get_or_insert_with(new).queue(socket, asker);
        self.grant_slots(socket);
    }

    /// [`Event::SlotFree`]
    pub(super) fn slot_freed(&mut self, socket: u8) {
        if let Some(slots) = &mut self.slots {
            slots.free(socket);
        }
        self.grant_slots(socket);
    }

    fn grant_slots(&mut self, socket: u8) {
        while let Some(slots) = &mut self.slots
            && let Some((asker, tag)) = slots.grant(socket, &self.here.constants.spec)
        {
            match asker {
                Asker::Core(core) => {
                    self.here.agenda.tell(|t| t.has_slot(self.here.now, core));
                    self.load_over_engine(core, tag);
                }
                Asker::Fill(fill, _) => {
                    (self.here.agenda).tell(|t| t.fill_has_slot(self.here.now, fill));
                    self.ask_for_words(fill, Some(tag));
                }
            }
        }
    }

    fn load_over_engine(&mut self, core: u16, tag: u8) {
        let Some((address, bytes, _)) = self.cores[core].awaited() else {
            return;
        };
        let trace = self.here.origin(core, &self.cores[core]);
        self.here.count_remote_load(trace);
        let packet = HtPacket::Read {
            address: address & !7,
            enables: bytes.enables,
            extra_words: 0,
            tag,
            trace,
        };
        self.leaves(core, packet);
    }

    /// Posts a store of `core`.
    pub(super) fn post(&mut self, core: u16, store: Store) {
        let trace = store.origin;
        self.here.count_posted(trace);
        let packet = HtPacket::Write {
            address: store.address & !7,
            data: store.bytes.place(store.value),
            enables: store.bytes.enables,
            coherent: self.here.constants.spec.uncached.coherent_stores,
            trace,
        };
        self.leaves(core, packet);
    }

    /// `packet` leaves `core` for the engine.
    fn leaves(&mut self, core: u16, packet: HtPacket) {
        let socket = self.cores[core].socket;
        let here = &mut self.here;
        (self.way).sets_out(here.now, socket, packet, &mut here.agenda);
    }

    /// [`Event::HostReceive`]
    pub(super) fn host_receives(&mut self, number: u32) {
        match self.way.received(number) {
            HtPacket::Response {
                data,
                extra_words,
                tag,
                error,
                ..
            } => {
                let here = &mut self.here;
                (self.way).return_credit(here.now, HtChannel::Response, &mut here.agenda);
                self.load_answered(tag, (data, extra_words), error);
            }
            packet => self.bridge.takes(packet, &mut self.here),
        }
    }

    fn load_answered(&mut self, tag: u8, (data, extra_words): (u64, u8), error: bool) {
        let Some(slots) = &mut self.slots else {
            debug_assert!(false, "an answer without a load");
            return;
        };
        let asker = slots.answered(tag);
        let (socket, done) = match asker {
            Asker::Core(core) => (self.cores[core].socket, true),
            Asker::Fill(fill, word) => {
                self.here.agenda.tell(|t| t.fill_answered(fill));
                self.words_arrive(fill, (word, extra_words), (!error).then_some(data))
            }
        };
        // A socket may have a slot and lack a source tag: the next one that does has this.
        let others = self.slots.as_ref().map(|slots| slots.sockets_after(socket));
        for other in others.into_iter().flatten() {
            self.grant_slots(other);
        }
        if !done {
            return;
        }
        let back = self.here.constants.to_first_socket(socket);
        let turnaround = self.here.constants.spec.uncached.turnaround;
        self.here.after(back + turnaround, Event::SlotFree(socket));
        let core = match asker {
            Asker::Core(core) => core,
            // All words have come, and are back at the core that asked first.
            Asker::Fill(fill, _) => return self.here.after(back, Event::Filled(fill)),
        };
        let Some((address, bytes, _)) = self.cores[core].awaited() else {
            return;
        };
        if error {
            self.faults(core, address, FaultReason::NoSuchNode);
            return;
        }
        let value = bytes.pick(HtPacket::placed(bytes.enables, data));
        (self.here.agenda).tell(|t| t.answered(self.here.now, core, value));
        self.cores[core].looks += 1;
        self.loaded(core, address, value, back);
    }
}
