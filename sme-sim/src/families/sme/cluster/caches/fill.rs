//! Lines fetched through the engine, in reads of `load_payload` bytes each.
//!
//! A fill takes the socket's slot for loads from behind the engine, as an uncached load does, and
//! holds it until all its words are there: to the processor it is one load. The read with the word
//! that is waited for comes first. The packet of an answer brings the first word of a read; the
//! extra words come as a message of their own ([`Words`]), earlier. The line is there when all
//! answers are.

use super::miss::Answer;
use super::{Around, Caches};
use crate::families::sme::cluster::constants::FILLS;
use crate::families::sme::cluster::core::{Request, Wants};
use crate::families::sme::cluster::message::Words;
use crate::families::sme::cluster::protocol;
use crate::families::sme::cluster::slots::{Asker, Slots};
use crate::families::sme::engine::HtPacket;
use crate::parts::cache::Held;
use crate::parts::coherence::{Event, State};
use crate::parts::tables;

/// A line on its way from its home.
#[derive(Debug)]
pub(super) struct Fill {
    line: u64,
    words: [u64; 8],
    /// Extra words that have come, a bit for each word of the block around the line.
    extra: u8,
    /// The word of the line, the first of a read, that is asked for first.
    first: u8,
    /// Words that have been asked for.
    asked: u8,
    /// Reads.
    under_way: u8,
    /// Words that have been answered.
    arrived: u8,
    /// There is no such node.
    failed: bool,
    /// The socket whose slot it has.
    socket: u8,
    /// The thread that missed first, as the machine's traces name it.
    origin: u32,
    /// The cores that wait for it, and what for, in the order in which they asked.
    waiting: Vec<(u16, Wants)>,
}

impl Fill {
    pub(super) fn heap_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u16, Wants)>()
    }
}

/// The result of a fill.
#[derive(Debug)]
pub enum Filled {
    /// The line, which the first of these cores has; the others get it from there.
    Line(Vec<(u16, Wants)>),
    /// The answer that there is no such node, for these cores, which asked for the line at this
    /// address.
    NoSuchNode(u64, Vec<(u16, Wants)>),
}

impl Caches {
    /// Lets `core` wait, too, if `line` is being fetched; returns whether it is.
    pub(super) fn join_fill(&mut self, line: u64, core: u16, wants: Wants) -> bool {
        let fill = self.fills.iter_mut().find(|(_, fill)| fill.line == line);
        fill.map(|(_, fill)| fill.waiting.push((core, wants)))
            .is_some()
    }

    /// Begins to fetch `line`, of which no core of the node has a copy, through the engine.
    pub(super) fn fetch_line(
        &mut self,
        around: &Around<'_>,
        request: Request,
        line: u64,
    ) -> Answer {
        let Request { core, wants, .. } = request;
        let socket = around.cores[core].socket;
        self.traffic.fills += 1;
        let each = around.here.constants.words_a_read;
        let word = request.address / 8 % u64::from(self.line.words());
        let first = word as u8 / each * each;
        let fill = Fill {
            line,
            words: [0; 8],
            extra: 0,
            first,
            asked: 0,
            under_way: 0,
            arrived: 0,
            failed: false,
            socket,
            origin: around.here.origin(core, &around.cores[core]),
            waiting: vec![(core, wants)],
        };
        let number = tables::insert(&mut self.fills, fill);
        Answer::Fetches(number as u16, socket)
    }

    /// Reads words of fill `number`, which has a slot, as many at once as it may; the first
    /// under `tag`, if there is one.
    pub fn ask_for_words(
        &mut self,
        around: &mut Around<'_>,
        slots: &mut Slots,
        number: u16,
        mut tag: Option<u8>,
    ) {
        let here = &mut *around.here;
        let most = here.constants.spec.cache.fill_requests as u8;
        let each = here.constants.words_a_read;
        let fill = &mut self.fills[usize::from(number)];
        while fill.asked < self.line.words() && fill.under_way < most {
            let nth = (fill.first + fill.asked) % self.line.words();
            let word = self.line.words_of(fill.line).start + nth;
            let asker = Asker::Fill(number, word);
            let tag = match tag.take() {
                Some(tag) => {
                    slots.reads_under(tag, asker);
                    tag
                }
                None => match slots.take_tag(asker) {
                    Some(tag) => tag,
                    None => return,
                },
            };
            let first = if fill.asked == 0 { FILLS } else { 0 };
            fill.asked += each;
            fill.under_way += 1;
            let packet = HtPacket::Read {
                address: self.line.word_address(fill.line, word),
                enables: 0xff,
                extra_words: each - 1,
                tag,
                trace: fill.origin | first,
            };
            here.count_remote_load(fill.origin);
            (around.way).sets_out(here.now, 0, packet, &mut here.agenda);
        }
    }

    /// Takes the extra words of an answer that is on its way.
    pub fn takes_extra_words(&mut self, words: &Words) {
        let fill = self
            .fills
            .iter_mut()
            .find(|(_, fill)| fill.line == words.line);
        debug_assert!(fill.is_some(), "no fill has asked for {words:?}");
        let Some((_, fill)) = fill else {
            return;
        };
        for (word, &data) in (words.first..).zip(&words.words) {
            fill.words[usize::from(word)] = data;
            fill.extra |= 1 << word;
        }
    }

    /// An answer with `word` and `extra_words` after it has come to fill `number`, and with the
    /// data of that word, or `None` if there is no such node. Returns the socket whose slot the
    /// fill has, and whether the answer was the last.
    pub fn words_arrive(
        &mut self,
        number: u16,
        (word, extra_words): (u8, u8),
        data: Option<u64>,
    ) -> (u8, bool) {
        let fill = &mut self.fills[usize::from(number)];
        let extra = ((1 << extra_words) - 1) << 1 << word;
        debug_assert!(
            data.is_none() || u32::from(fill.extra) & extra == extra,
            "words that an answer brings are not there: {fill:?}"
        );
        fill.failed |= data.is_none();
        fill.words[usize::from(word)] = data.unwrap_or_default();
        fill.arrived += 1 + extra_words;
        fill.under_way -= 1;
        (fill.socket, fill.arrived == self.line.words())
    }

    /// [`Event::Filled`](crate::families::sme::cluster::agenda::Event::Filled): fill `number` is
    /// over.
    pub fn filled(&mut self, around: &mut Around<'_>, number: u16) -> Filled {
        let fill = self.fills.remove(usize::from(number));
        if fill.failed {
            return Filled::NoSuchNode(self.line.address(fill.line), fill.waiting);
        }
        if let Some(&(core, wants)) = fill.waiting.first() {
            let event = match wants {
                Wants::Store => Event::Store,
                Wants::Load | Wants::Flush => Event::Load,
            };
            let next = protocol::row(State::Invalid, event).next;
            let copy = Held {
                line: fill.line,
                state: next.when(self.is_alone(core, fill.line)),
                words: fill.words,
                dirty: 0,
            };
            self.install(around, core, copy);
        }
        Filled::Line(fill.waiting)
    }
}
