//! Named spans of what threads do: when the first began one and the last ended it, and who was in
//! it when.
//!
//! A program marks where a span begins and ends; everything else is derived on demand. The time of
//! a barrier, a thread that left it early ([`overtaken`]), the progress of a run: all of it is read
//! off the spans of a run. Times are points in simulated time.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::calls::{CallRecord, OpenCall, ThreadCall};
use crate::parts::contract::{Mark, Span};
use crate::time::Time;

/// The name of the spans that threads spend in a barrier, numbered by episode.
pub const EPISODE: &str = "episode";

/// The times at which threads were in a span: those of one node, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanTimes {
    /// The first began it; [`Time::NEVER`] where none did.
    pub first_begin: Time,
    /// The last began it.
    pub last_begin: Time,
    /// The first ended it; [`Time::NEVER`] where none did.
    pub first_end: Time,
    /// The last ended it.
    pub last_end: Time,
}

impl SpanTimes {
    /// Of no thread.
    pub const NONE: SpanTimes = SpanTimes {
        first_begin: Time::NEVER,
        last_begin: Time::ZERO,
        first_end: Time::NEVER,
        last_end: Time::ZERO,
    };

    /// Of the threads of both.
    pub fn and(self, other: SpanTimes) -> SpanTimes {
        SpanTimes {
            first_begin: self.first_begin.min(other.first_begin),
            last_begin: self.last_begin.max(other.last_begin),
            first_end: self.first_end.min(other.first_end),
            last_end: self.last_end.max(other.last_end),
        }
    }

    /// A thread begins it at `now`.
    #[inline]
    pub fn begins(&mut self, now: Time) {
        self.first_begin = self.first_begin.min(now);
        self.last_begin = self.last_begin.max(now);
    }

    /// A thread ends it at `now`.
    #[inline]
    pub fn ends(&mut self, now: Time) {
        self.first_end = self.first_end.min(now);
        self.last_end = self.last_end.max(now);
    }
}

/// A span of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSpan {
    /// The span.
    pub span: Span,
    /// Thread number in its node.
    pub thread: u16,
    /// The time at which it began.
    pub begin: Time,
    /// The time at which it ended.
    pub end: Time,
}

/// The spans of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Their name.
    pub name: Cow<'static, str>,
    /// The times at which threads were in each, by number.
    pub times: Vec<SpanTimes>,
    /// The number of spans that have ended, over all numbers and threads.
    pub ended: u64,
}

impl Named {
    fn new(name: Cow<'static, str>) -> Self {
        Self {
            name,
            times: Vec::new(),
            ended: 0,
        }
    }

    fn at(&mut self, number: u32) -> &mut SpanTimes {
        let index = number as usize;
        if index >= self.times.len() {
            self.times.resize(index + 1, SpanTimes::NONE);
        }
        &mut self.times[index]
    }
}

/// All spans of nodes, in sum. Nearly every program has one name, and few have more than three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spans(Vec<Named>);

impl Spans {
    /// The spans called `name`, by number; empty where there are none.
    pub fn called(&self, name: &str) -> &[SpanTimes] {
        let named = self.0.iter().find(|named| named.name == name);
        named.map_or(&[], |named| &named.times)
    }

    /// Every name, in the order in which they first appeared.
    pub fn names(&self) -> impl Iterator<Item = &Named> {
        self.0.iter()
    }

    /// A thread says `mark` at `now`.
    #[inline]
    pub fn mark(&mut self, now: Time, mark: Mark) {
        match mark {
            Mark::Begin(span) => self.named(span.name).at(span.number).begins(now),
            Mark::End(span) => {
                let named = self.named(span.name);
                named.ended += 1;
                named.at(span.number).ends(now);
            }
            Mark::Counts | Mark::Ahead(_) | Mark::Enters(_) | Mark::At(_) | Mark::Leaves => {}
        }
    }

    /// Adds what was seen of `span`, which so many threads have `ended`.
    pub fn merge(&mut self, span: Span, times: SpanTimes, ended: u64) {
        let named = self.named(span.name);
        named.ended += ended;
        let own = named.at(span.number);
        *own = own.and(times);
    }

    /// Adds those of `other`.
    pub fn add(&mut self, other: &Spans) {
        for other in &other.0 {
            let place = self.0.iter().position(|named| named.name == other.name);
            let place = place.unwrap_or_else(|| {
                self.0.push(Named::new(other.name.clone()));
                self.0.len() - 1
            });
            let own = &mut self.0[place];
            own.ended += other.ended;
            for (number, &times) in (0..).zip(&other.times) {
                let sum = own.at(number);
                *sum = sum.and(times);
            }
        }
    }

    /// Adds to `reached` how far the threads are whose spans these are.
    pub fn reached(&self, reached: &mut Reached) {
        for named in &self.0 {
            reached.add(named.name.clone(), named.times.len() as u32, named.ended);
        }
    }

    #[inline]
    fn named(&mut self, name: &'static str) -> &mut Named {
        // A program's names are constants: the same name mostly stands at the same place.
        let is_it = |named: &Named| match named.name {
            Cow::Borrowed(own) => std::ptr::eq(own, name) || own == name,
            Cow::Owned(ref own) => own == name,
        };
        let place = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.push(Named::new(Cow::Borrowed(name)));
            self.0.len() - 1
        });
        &mut self.0[place]
    }
}

/// The progress of the threads of some nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached(Vec<(Cow<'static, str>, u32, u64)>);

impl Reached {
    /// So many spans called `name` have begun on every node whose threads have begun any: 0 where
    /// none has.
    pub fn begun(&self, name: &str) -> u32 {
        self.of(name).map_or(0, |&(_, begun, _)| begun)
    }

    /// So many spans called `name` have ended, over all threads.
    pub fn ended(&self, name: &str) -> u64 {
        self.of(name).map_or(0, |&(.., ended)| ended)
    }

    /// Combines the progress of the threads of both.
    pub fn and(mut self, other: &Reached) -> Reached {
        for (name, begun, ended) in &other.0 {
            self.add(name.clone(), *begun, *ended);
        }
        self
    }

    fn of(&self, name: &str) -> Option<&(Cow<'static, str>, u32, u64)> {
        self.0.iter().find(|(own, ..)| own == name)
    }

    fn add(&mut self, name: Cow<'static, str>, begun: u32, ended: u64) {
        match self.0.iter_mut().find(|(own, ..)| *own == name) {
            Some((_, least, sum)) => {
                *least = (*least).min(begun);
                *sum += ended;
            }
            None => self.0.push((name, begun, ended)),
        }
    }
}

/// One node's record of its threads' spans.
#[derive(Clone, Debug, Default)]
pub struct SpanRecord {
    /// In sum.
    pub sums: Spans,
    each: Option<Box<Each>>,
    /// There from the first call on.
    calls: Option<Box<CallRecord>>,
}

/// Every span of every thread, where that was asked for.
#[derive(Clone, Debug, Default)]
struct Each {
    /// In the order in which they ended.
    ended: Vec<ThreadSpan>,
    /// The spans of each thread that have begun and not ended, the outermost first.
    open: Vec<Vec<(Span, Time)>>,
}

impl SpanRecord {
    /// Of a node; `each` asks for every span of every thread.
    pub fn new(each: bool) -> Self {
        Self {
            sums: Spans::default(),
            each: each.then(Box::default),
            calls: None,
        }
    }

    /// Thread number `thread` says `mark` at `now`.
    #[inline]
    pub fn mark(&mut self, now: Time, thread: u16, mark: Mark) {
        if let Mark::Ahead(_) | Mark::Enters(_) | Mark::At(_) | Mark::Leaves = mark {
            let calls = self.calls.get_or_insert_default();
            return calls.mark(now, thread, mark, self.each.is_some());
        }
        self.sums.mark(now, mark);
        if let Some(each) = &mut self.each {
            each.mark(now, thread, mark);
        }
    }

    /// Every span that has ended, in the order of the ends, where that was asked for.
    pub fn each(&self) -> impl Iterator<Item = &ThreadSpan> {
        self.each.iter().flat_map(|each| &each.ended)
    }

    /// The innermost call of a library that thread number `thread` is in.
    pub fn call(&self, thread: u16) -> Option<&OpenCall> {
        self.calls.as_ref()?.open(thread)
    }

    /// Every call that is over, in the order of the ends, where every span was asked for.
    pub fn calls(&self) -> &[ThreadCall] {
        self.calls.as_ref().map_or(&[], |calls| calls.ended())
    }
}

impl Each {
    fn mark(&mut self, now: Time, thread: u16, mark: Mark) {
        let number = usize::from(thread);
        if number >= self.open.len() {
            self.open.resize(number + 1, Vec::new());
        }
        let open = &mut self.open[number];
        match mark {
            Mark::Begin(span) => open.push((span, now)),
            Mark::End(span) => {
                // An end without a beginning was there from the start.
                let place = open.iter().rposition(|&(of, _)| of == span);
                let begin = place.map_or(Time::ZERO, |place| open.remove(place).1);
                self.ended.push(ThreadSpan {
                    span,
                    thread,
                    begin,
                    end: now,
                });
            }
            Mark::Counts | Mark::Ahead(_) | Mark::Enters(_) | Mark::At(_) | Mark::Leaves => {}
        }
    }
}

/// A thread ended a span before the last had begun it: a barrier that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken {
    /// The span's number: the episode, the warm-up is 0.
    pub episode: u32,
    /// The time at which the first thread left.
    pub first_departure: Time,
    /// The time at which the last arrived.
    pub last_arrival: Time,
}

impl fmt::Display for Overtaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            episode,
            first_departure,
            last_arrival,
        } = self;
        write!(
            f,
            "the barrier does not hold: in episode {episode} a thread left at {first_departure}, \
             before the last arrived at {last_arrival}"
        )
    }
}

impl std::error::Error for Overtaken {}

/// Checks that in each of `spans`, the episodes of a barrier, no thread left before all had
/// arrived.
///
/// # Errors
/// The first in which a thread did.
pub fn overtaken(spans: &[SpanTimes]) -> Result<(), Overtaken> {
    let early = |times: &SpanTimes| times.first_end < times.last_begin;
    match (0..).zip(spans).find(|(_, times)| early(times)) {
        None => Ok(()),
        Some((episode, times)) => Err(Overtaken {
            episode,
            first_departure: times.first_end,
            last_arrival: times.last_begin,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 2] = [EPISODE, "phase"];

    /// Marks of threads on two nodes, one after another: node, thread, and whether a span begins.
    fn marks() -> impl Strategy<Value = Vec<(bool, u16, bool, usize, u32)>> {
        let mark = (any::<bool>(), 0..3u16, any::<bool>(), 0..2usize, 0..3u32);
        prop::collection::vec(mark, 0..60)
    }

    proptest! {
        /// The sums of nodes, added, are what every single span says.
        #[test]
        fn sums_are_those_of_each_span(marks in marks()) {
            let mut nodes = [SpanRecord::new(true), SpanRecord::new(false)];
            let mut all = SpanRecord::new(true);
            for (at, (node, thread, begins, name, number)) in (1..).zip(marks) {
                let span = Span::new(NAMES[name], number);
                let mark = if begins { Mark::Begin(span) } else { Mark::End(span) };
                nodes[usize::from(node)].mark(Time::from_ns(at), thread, mark);
                all.mark(Time::from_ns(at), thread + 3 * u16::from(node), mark);
            }
            let mut sum = Spans::default();
            nodes.iter().for_each(|node| sum.add(&node.sums));
            for name in NAMES {
                prop_assert_eq!(sum.called(name), all.sums.called(name));
                let ended: Vec<_> = all.each().filter(|each| each.span.name == name).collect();
                let named = sum.names().find(|named| named.name == name);
                prop_assert_eq!(named.map_or(0, |named| named.ended), ended.len() as u64);
                for (number, times) in (0..).zip(sum.called(name)) {
                    let own = ended.iter().filter(|each| each.span.number == number);
                    let ends = own.map(|each| each.end);
                    prop_assert_eq!(times.last_end, ends.clone().max().unwrap_or(Time::ZERO));
                    prop_assert_eq!(times.first_end, ends.min().unwrap_or(Time::NEVER));
                }
            }
        }
    }

    #[test]
    fn who_leaves_early_is_found() {
        let times = |begin, end| SpanTimes {
            first_begin: Time::ZERO,
            last_begin: Time::from_ns(begin),
            first_end: Time::from_ns(end),
            last_end: Time::from_ns(100),
        };
        assert_eq!(overtaken(&[times(5, 5), times(9, 10)]), Ok(()));
        let early = overtaken(&[times(5, 6), times(9, 8)]).unwrap_err();
        assert_eq!(early.episode, 1);
        assert!(
            early
                .to_string()
                .contains("in episode 1 a thread left at 8.000 ns")
        );
    }
}
