//! Lines fetched through the engine, a word a request.
//!
//! A fill takes the socket's slot for loads from behind the engine, as an uncached load does, and
//! holds it until all its words are there: to the processor it is one load. The word that is waited
//! for comes first.

use super::miss::Wants;
use super::{Caches, Node};
use crate::families::sme::address::FaultReason;
use crate::families::sme::cluster::agenda::Event;
use crate::families::sme::cluster::constants::FILLS;
use crate::families::sme::cluster::host::Asker;
use crate::families::sme::engine::HtPacket;
use crate::parts::cache::State;
use crate::parts::tables;
use crate::time::Time;

/// A line on its way from its home.
#[derive(Debug)]
pub(in crate::families::sme) struct Fill {
    line: u64,
    words: [u64; 8],
    /// The word of the line that is asked for first.
    first: u8,
    asked: u8,
    under_way: u8,
    arrived: u8,
    /// There is no such node.
    failed: bool,
    /// Whose slot it has.
    pub(in crate::families::sme) socket: u8,
    /// The thread that missed first, as the machine's traces name it.
    origin: u32,
    /// Who waits for it, and what for: in the order in which they asked.
    waiting: Vec<(u16, Wants)>,
}

impl Fill {
    pub(super) fn heap_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u16, Wants)>()
    }
}

impl Caches {
    /// If `line` is being fetched, `core` waits for it too; whether it is.
    pub(super) fn join_fill(&mut self, line: u64, core: u16, wants: Wants) -> bool {
        let fill = self.fills.iter_mut().find(|(_, fill)| fill.line == line);
        fill.map(|(_, fill)| fill.waiting.push((core, wants)))
            .is_some()
    }
}

impl Node {
    /// Nobody in the node has `line`: it comes through the engine.
    pub(super) fn fetch_line(&mut self, core: u16, line: u64, wants: Wants) {
        let address = match wants {
            Wants::Store => self.stores.oldest(core).map(|store| store.address),
            _ => self.awaited(core).map(|(address, ..)| address),
        };
        let size = self.constants.map.line;
        let socket = self.cores[usize::from(core)].socket;
        let origin = self.origin(core);
        let caches = self.caches();
        caches.traffic.fills += 1;
        let fill = Fill {
            line,
            words: [0; 8],
            first: address.map_or(0, |address| (address / 8) as u8 % size.words()),
            asked: 0,
            under_way: 0,
            arrived: 0,
            failed: false,
            socket,
            origin,
            waiting: vec![(core, wants)],
        };
        let number = tables::insert(&mut caches.fills, fill);
        self.queue_for_slot_of(socket, Asker::Fill(number as u16, 0));
    }

    /// The fill has a slot, and a tag: asks for words, as many at once as it may.
    pub(in crate::families::sme) fn ask_for_words(&mut self, number: u16, tag: Option<u8>) {
        let size = self.constants.map.line;
        let most = self.constants.spec.cache.fill_requests as u8;
        let mut tag = tag;
        loop {
            let fill = &mut self.caches().fills[usize::from(number)];
            if fill.asked == size.words() || fill.under_way == most {
                return;
            }
            let nth = (fill.first + fill.asked) % size.words();
            let word = size.words_of(fill.line).start + nth;
            let Some(tag) = tag.take().or_else(|| self.take_tag()) else {
                return;
            };
            let fill = &mut self.caches().fills[usize::from(number)];
            let first = if fill.asked == 0 { FILLS } else { 0 };
            fill.asked += 1;
            fill.under_way += 1;
            let packet = HtPacket::Read {
                address: size.word_address(fill.line, word),
                enables: 0xff,
                tag,
                trace: fill.origin | first,
            };
            let origin = fill.origin;
            self.reads_under(tag, Asker::Fill(number, word));
            self.count_remote_load(origin);
            self.leaves_first_socket(packet);
        }
    }

    /// A word of a fill has come, or the answer that there is none; whether it was the last.
    pub(in crate::families::sme) fn word_arrives(
        &mut self,
        number: u16,
        word: u8,
        data: Result<u64, FaultReason>,
    ) -> bool {
        let words = self.constants.map.line.words();
        let fill = &mut self.caches().fills[usize::from(number)];
        fill.failed |= data.is_err();
        fill.words[usize::from(word)] = data.unwrap_or_default();
        fill.arrived += 1;
        fill.under_way -= 1;
        if fill.arrived == words {
            return true;
        }
        self.ask_for_words(number, None);
        false
    }

    /// The socket for which a line is fetched.
    pub(in crate::families::sme) fn socket_of_fill(&mut self, number: u16) -> u8 {
        self.caches().fills[usize::from(number)].socket
    }

    /// [`Event::Filled`]: whoever asked first has the line, the others get it from there.
    pub(in crate::families::sme) fn filled(&mut self, number: u16) {
        let fill = self.caches().fills.remove(usize::from(number));
        if fill.failed {
            let address = self.constants.map.line.address(fill.line);
            for (core, _) in fill.waiting {
                self.faults(core, address, FaultReason::NoSuchNode);
            }
            return;
        }
        self.progress += 1;
        let mut waiting = fill.waiting.into_iter();
        if let Some((core, wants)) = waiting.next() {
            let state = match wants {
                Wants::Store => State::Modified,
                _ => State::Exclusive,
            };
            self.install(core, fill.line, state, fill.words, 0);
            self.has_line(core, wants, Time::ZERO);
        }
        for (core, wants) in waiting {
            self.ordered(core, wants);
        }
    }

    /// All words have come, and are `back` from the core that asked first.
    pub(in crate::families::sme) fn line_is_there(&mut self, number: u16, back: Time) {
        self.agenda.push(self.now + back, Event::Filled(number));
    }
}
