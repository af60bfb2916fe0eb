//! Transactions as messages, delivered in every order: three caches with room for one line each,
//! two lines, and a home for each line that takes one transaction at a time.
//!
//! A cache asks the home; the home probes the others, each of which acts by its row of the table
//! and answers; once all have, the home sends the bytes, and is free when the cache says that it
//! has them. A copy that is to be written back waits for the home beside the cache, and is probed
//! there. In every state that can be reached there is one writer at most, no copy is stale, the
//! newest bytes are somewhere, and what is outstanding can go on. A protocol with a fault is found
//! out.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::line::asks_as;
use super::{Event, Protocol, Row, State, Table};

const CACHES: usize = 3;
const LINES: usize = 2;

/// A fault of a home or of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A home takes a transaction while one of another cache is under way.
    TakesTwo,
    /// A home that takes a write-back writes the bytes, though the line has been taken from the
    /// cache.
    WritesBackWhatIsGone,
    /// A home waits for a write-back that will not come, for the line has been taken from the
    /// cache.
    WaitsForWhatIsGone,
    /// A cache answers no probe while it waits for a line itself.
    AnswersLater,
    /// A home does not note that others have kept their copies.
    ForgetsWhoKeeps,
    /// A copy that is to be written back is not probed.
    ForgetsWhatLeaves,
    /// A home is free when it has sent the bytes.
    FreeEarly,
}

/// A copy, and whether it is as the last store has left the line.
#[derive(Clone, Copy, Debug)]
struct Copy {
    state: State,
    is_new: bool,
}

const NO_COPY: Copy = Copy {
    state: State::Invalid,
    is_new: false,
};

/// A cache, with its messages from and to the homes.
#[derive(Clone, Copy, Debug)]
struct Cache {
    /// Of at most one line.
    held: [Copy; LINES],
    /// The line it has asked for, and for what.
    asks: Option<(usize, Event)>,
    /// The copy that waits for its line's home to take it.
    leaves: Option<(usize, Copy)>,
    /// Its transactions that homes have taken.
    taken: [Option<Taken>; LINES],
    messages: [Messages; LINES],
}

/// A transaction that a home has taken.
#[derive(Clone, Copy, Debug)]
struct Taken {
    event: Event,
    /// Answers that have not come.
    awaited: usize,
    /// Bytes that a cache has sent: whether they are new.
    bytes: Option<bool>,
    /// Others have kept a copy.
    others: bool,
}

/// Messages on their way between a cache and the home of a line, at most one of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    /// To the home: a load, a store or a write-back.
    asks: Option<Event>,
    /// To the cache: it may go on.
    reply: Option<Reply>,
    /// To the cache, for the transaction of each of the others.
    probes: [Option<Event>; CACHES],
    /// To the home, for them.
    answers: [Option<Answer>; CACHES],
    /// To the home: the transaction is over, with what is written back.
    done: Option<Option<bool>>,
}

/// Bytes are told by whether they are new.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// The bytes, and whether no other cache has a copy.
    Grant(bool, bool),
    /// The copy that leaves may be written back.
    Go,
}

/// Of a cache that was probed.
#[derive(Clone, Copy, Debug)]
struct Answer {
    supplied: Option<bool>,
    written_back: Option<bool>,
    is_kept: bool,
}

/// One that is delivered.
#[derive(Clone, Copy, Debug)]
enum Message {
    Asks,
    Reply,
    Probe(usize),
    Answer(usize),
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Machine {
    caches: [Cache; CACHES],
    memory_is_new: [bool; LINES],
}

/// Numbers, one above the other, each of so many.
struct Digits(u64);

impl Digits {
    fn put(&mut self, radix: u64, digit: u64) {
        assert!(digit < radix && self.0 < u64::MAX / radix);
        self.0 = self.0 * radix + digit;
    }

    fn bytes(&mut self, bytes: Option<bool>) {
        self.put(3, bytes.map_or(2, u64::from));
    }

    fn copy(&mut self, copy: Copy) {
        self.put(6, copy.state as u64);
        self.put(2, copy.is_new.into());
    }
}

impl Cache {
    /// Everything but for whom it was probed, as a number, where `line` says which line is the
    /// first. As a home takes one transaction at a time, that is told by the others.
    fn number(&self, first: usize) -> u64 {
        let mut digits = Digits(0);
        let which = |line: usize| (line ^ first) as u64;
        let held = usize::from(self.held[first].state == State::Invalid) ^ first;
        digits.put(2, which(held));
        digits.copy(self.held[held]);
        let (line, event) = self.asks.unzip();
        digits.put(3, line.map_or(2, which));
        digits.put(2, u64::from(event == Some(Event::Store)));
        let (line, copy) = self.leaves.unzip();
        digits.put(3, line.map_or(2, which));
        digits.copy(copy.unwrap_or(NO_COPY));
        for line in [first, 1 - first] {
            let taken = self.taken[line];
            digits.put(4, taken.map_or(3, |taken| taken.awaited as u64));
            digits.put(3, taken.map_or(0, |taken| taken.event as u64));
            digits.bytes(taken.and_then(|taken| taken.bytes));
            digits.put(2, taken.is_some_and(|taken| taken.others).into());
            let messages = &self.messages[line];
            digits.put(4, messages.asks.map_or(3, |event| event as u64));
            let reply = match messages.reply {
                None => 0,
                Some(Reply::Go) => 1,
                Some(Reply::Grant(is_new, is_alone)) => {
                    2 + 2 * u64::from(is_new) + u64::from(is_alone)
                }
            };
            digits.put(6, reply);
            let probe = messages.probes.iter().flatten().next();
            let probe = probe.map(|&event| u64::from(event == Event::OtherStores));
            digits.put(3, probe.unwrap_or(2));
            let answer = messages.answers.iter().flatten().next();
            digits.put(3, answer.map_or(2, |answer| answer.is_kept.into()));
            digits.bytes(answer.and_then(|answer| answer.supplied));
            digits.bytes(answer.and_then(|answer| answer.written_back));
            digits.put(4, messages.done.map_or(3, |back| back.map_or(2, u64::from)));
        }
        digits.0
    }
}

impl Machine {
    fn new() -> Self {
        let cache = Cache {
            held: [NO_COPY; LINES],
            asks: None,
            leaves: None,
            taken: [None; LINES],
            messages: [Messages::default(); LINES],
        };
        Self {
            caches: [cache; CACHES],
            memory_is_new: [true; LINES],
        }
    }

    /// The same for all machines that differ only in how caches and lines are numbered.
    fn key(&self) -> [u64; CACHES + 1] {
        let key = |first: usize| {
            let mut caches = self.caches.map(|cache| cache.number(first));
            caches.sort_unstable();
            let memory = [first, 1 - first].map(|line| u64::from(self.memory_is_new[line]));
            let [one, two, three] = caches;
            [one, two, three, memory[0] << 1 | memory[1]]
        };
        key(0).min(key(1))
    }

    fn messages(&self) -> impl Iterator<Item = (usize, usize, Message)> {
        (0..CACHES * LINES).flat_map(|place| {
            let (cache, line) = (place / LINES, place % LINES);
            let of = &self.caches[cache].messages[line];
            let one = move |is_there: bool, message| is_there.then_some((cache, line, message));
            let probes =
                (0..CACHES).map(move |by| one(of.probes[by].is_some(), Message::Probe(by)));
            let answers =
                (0..CACHES).map(move |by| one(of.answers[by].is_some(), Message::Answer(by)));
            let others = [
                one(of.asks.is_some(), Message::Asks),
                one(of.reply.is_some(), Message::Reply),
                one(of.done.is_some(), Message::Done),
            ];
            others.into_iter().chain(probes).chain(answers).flatten()
        })
    }

    fn is_quiet(&self) -> bool {
        let is_quiet = |cache: &Cache| {
            let is_taken = cache.taken.iter().any(Option::is_some);
            cache.asks.is_none() && cache.leaves.is_none() && !is_taken
        };
        self.messages().next().is_none() && self.caches.iter().all(is_quiet)
    }

    /// All copies of `line`, those that wait to be written back as well.
    fn copies(&self, line: usize) -> impl Iterator<Item = Copy> {
        self.caches.iter().flat_map(move |cache| {
            let leaves = cache.leaves.filter(|(of, _)| *of == line);
            let both = [Some(cache.held[line]), leaves.map(|(_, copy)| copy)];
            let both = both.into_iter().flatten();
            both.filter(|copy| copy.state != State::Invalid)
        })
    }

    /// Calls `each` with everything that may hold the newest bytes of `line`.
    fn bytes(&mut self, line: usize, mut each: impl FnMut(&mut bool)) {
        each(&mut self.memory_is_new[line]);
        for cache in &mut self.caches {
            each(&mut cache.held[line].is_new);
            if let Some((_, copy)) = cache.leaves.as_mut().filter(|(of, _)| *of == line) {
                each(&mut copy.is_new);
            }
            if let Some(taken) = &mut cache.taken[line] {
                taken.bytes.iter_mut().for_each(&mut each);
            }
            let messages = &mut cache.messages[line];
            for answer in messages.answers.iter_mut().flatten() {
                answer.supplied.iter_mut().for_each(&mut each);
                answer.written_back.iter_mut().for_each(&mut each);
            }
            if let Some(Reply::Grant(is_new, _)) = &mut messages.reply {
                each(is_new);
            }
            messages.done.iter_mut().flatten().for_each(&mut each);
        }
    }

    /// A store at `cache`: no other bytes are the newest any more.
    fn stores(&mut self, cache: usize, line: usize) {
        self.bytes(line, |is_new| *is_new = false);
        self.caches[cache].held[line].is_new = true;
    }

    fn check(&mut self) -> Result<(), String> {
        for line in 0..LINES {
            let (mut all, mut alone) = (0, 0);
            for copy in self.copies(line) {
                all += 1;
                alone += u32::from(copy.state.is_writable());
                if !copy.is_new {
                    return Err("a copy is stale".into());
                }
            }
            if alone > 1 || alone == 1 && all > 1 {
                return Err("a writer is not alone".into());
            }
            let mut is_somewhere = false;
            self.bytes(line, |is_new| is_somewhere |= *is_new);
            if !is_somewhere {
                return Err("the newest bytes are lost".into());
            }
        }
        Ok(())
    }
}

/// Puts a message where none may be.
fn send<T>(place: &mut Option<T>, message: T) -> Result<(), String> {
    match place.replace(message) {
        None => Ok(()),
        Some(_) => Err("a message before the last of its kind has been delivered".into()),
    }
}

struct Model<'a> {
    table: &'a Table,
    fault: Fault,
}

impl Model<'_> {
    fn row(&self, state: State, event: Event) -> Result<Row, String> {
        let row = self.table.row(state, event);
        row.ok_or_else(|| format!("no row for {event:?} in {state:?}"))
    }

    /// The core of `cache` loads or stores; nothing if it cannot now.
    fn begins(
        &self,
        mut next: Machine,
        (cache, line): (usize, usize),
        event: Event,
    ) -> Result<Option<Machine>, String> {
        let of = &mut next.caches[cache];
        if of.asks.is_some() || of.leaves.is_some_and(|(leaving, _)| leaving == line) {
            return Ok(None);
        }
        let row = self.row(of.held[line].state, event)?;
        if !row.asks {
            of.held[line].state = row.next.when(true);
            if event == Event::Store {
                next.stores(cache, line);
            }
            return Ok(Some(next));
        }
        // The other line makes room.
        let other = 1 - line;
        let copy = std::mem::replace(&mut of.held[other], NO_COPY);
        if copy.state != State::Invalid && self.row(copy.state, Event::Evict)?.writes_back {
            if of.leaves.is_some() {
                return Ok(None);
            }
            of.leaves = Some((other, copy));
            send(&mut of.messages[other].asks, Event::Evict)?;
        }
        of.asks = Some((line, event));
        send(&mut of.messages[line].asks, event)?;
        Ok(Some(next))
    }

    /// A message is delivered; nothing if it has to wait.
    fn delivers(
        &self,
        mut next: Machine,
        (cache, line, message): (usize, usize, Message),
    ) -> Result<Option<Machine>, String> {
        let messages = &mut next.caches[cache].messages[line];
        match message {
            Message::Asks => {
                let Some(event) = messages.asks.take() else {
                    return Ok(None);
                };
                let is_under_way = |of: &Cache| of.taken[line].is_some();
                let waits = match self.fault {
                    Fault::TakesTwo => is_under_way(&next.caches[cache]),
                    _ => next.caches.iter().any(is_under_way),
                };
                if waits {
                    return Ok(None);
                }
                self.takes(&mut next, (cache, line), event)?;
            }
            Message::Probe(by) => {
                let Some(event) = messages.probes[by].take() else {
                    return Ok(None);
                };
                let of = &mut next.caches[cache];
                if self.fault == Fault::AnswersLater && of.asks.is_some() {
                    return Ok(None);
                }
                let answer = self.is_probed(of, line, event)?;
                send(&mut of.messages[line].answers[by], answer)?;
            }
            Message::Answer(by) => {
                let Some(answer) = messages.answers[by].take() else {
                    return Ok(None);
                };
                self.has_answered(&mut next, (by, line), answer)?;
            }
            Message::Reply => match messages.reply.take() {
                None => return Ok(None),
                Some(Reply::Grant(is_new, is_alone)) => {
                    self.gets(&mut next, (cache, line), is_new, is_alone)?;
                }
                Some(Reply::Go) => self.writes_back(&mut next.caches[cache], line)?,
            },
            Message::Done => {
                if let Some(back) = messages.done.take().flatten() {
                    next.memory_is_new[line] = back;
                }
                next.caches[cache].taken[line] = None;
            }
        }
        Ok(Some(next))
    }

    /// The home takes a transaction.
    fn takes(
        &self,
        next: &mut Machine,
        (by, line): (usize, usize),
        event: Event,
    ) -> Result<(), String> {
        let of = &mut next.caches[by];
        of.taken[line] = Some(Taken {
            event,
            awaited: CACHES - 1,
            bytes: None,
            others: false,
        });
        if event == Event::Evict {
            return send(&mut of.messages[line].reply, Reply::Go);
        }
        for (other, of) in next.caches.iter_mut().enumerate() {
            if other != by {
                send(&mut of.messages[line].probes[by], asks_as(event))?;
            }
        }
        Ok(())
    }

    /// A cache is told of the event of another.
    fn is_probed(&self, of: &mut Cache, line: usize, event: Event) -> Result<Answer, String> {
        let copy = match &mut of.leaves {
            Some((leaving, copy)) if *leaving == line && self.fault != Fault::ForgetsWhatLeaves => {
                copy
            }
            _ => &mut of.held[line],
        };
        let row = self.row(copy.state, event)?;
        let answer = Answer {
            supplied: row.supplies.then_some(copy.is_new),
            written_back: row.writes_back.then_some(copy.is_new),
            is_kept: row.next.when(false) != State::Invalid,
        };
        copy.state = row.next.when(false);
        copy.is_new &= answer.is_kept;
        Ok(answer)
    }

    /// The home gets the answer of one of those whom it has told of a transaction of `by`.
    fn has_answered(
        &self,
        next: &mut Machine,
        (by, line): (usize, usize),
        answer: Answer,
    ) -> Result<(), String> {
        if let Some(back) = answer.written_back {
            next.memory_is_new[line] = back;
        }
        let of = &mut next.caches[by];
        let Some(taken) = &mut of.taken[line] else {
            return Err("an answer that no transaction awaits".into());
        };
        taken.awaited -= 1;
        taken.bytes = taken.bytes.or(answer.supplied);
        taken.others |= answer.is_kept && self.fault != Fault::ForgetsWhoKeeps;
        if taken.awaited == 0 {
            let bytes = taken.bytes.unwrap_or(next.memory_is_new[line]);
            let grant = Reply::Grant(bytes, !taken.others);
            if self.fault == Fault::FreeEarly {
                of.taken[line] = None;
            }
            send(&mut of.messages[line].reply, grant)?;
        }
        Ok(())
    }

    /// A cache gets what it has asked for.
    fn gets(
        &self,
        next: &mut Machine,
        (cache, line): (usize, usize),
        is_new: bool,
        is_alone: bool,
    ) -> Result<(), String> {
        let of = &mut next.caches[cache];
        let Some((_, event)) = of.asks.take() else {
            return Err("bytes that no cache has asked for".into());
        };
        let copy = &mut of.held[line];
        let row = self.row(copy.state, event)?;
        if copy.state == State::Invalid {
            copy.is_new = is_new;
        }
        if !copy.is_new {
            return Err(format!("{event:?} gets stale bytes"));
        }
        copy.state = row.next.when(is_alone);
        if self.fault != Fault::FreeEarly {
            send(&mut of.messages[line].done, None)?;
        }
        if event == Event::Store {
            next.stores(cache, line);
        }
        Ok(())
    }

    /// The home lets a cache write back, if the line has not been taken from it meanwhile.
    fn writes_back(&self, of: &mut Cache, line: usize) -> Result<(), String> {
        let Some((_, copy)) = of.leaves.take() else {
            return Err("no copy is to be written back".into());
        };
        let evicted = self.table.row(copy.state, Event::Evict);
        let is_there = evicted.is_some_and(|row| row.writes_back);
        let back = match self.fault {
            Fault::WaitsForWhatIsGone if !is_there => return Ok(()),
            Fault::WritesBackWhatIsGone => Some(copy.is_new),
            _ => is_there.then_some(copy.is_new),
        };
        send(&mut of.messages[line].done, back)
    }

    /// All states that can be reached, but for how caches and lines are numbered; the first
    /// violation.
    fn explore(&self) -> Result<usize, String> {
        let begin = Machine::new();
        let mut seen = FxHashSet::from_iter([begin.key()]);
        let mut queue = VecDeque::from([begin]);
        let mut successors = Vec::new();
        while let Some(machine) = queue.pop_front() {
            let told = |wrong: String| format!("{wrong}, after {machine:?}");
            for message in machine.messages() {
                successors.extend(self.delivers(machine, message).map_err(told)?);
            }
            if successors.is_empty() && !machine.is_quiet() {
                return Err(format!("deadlock: {machine:?}"));
            }
            for cache in 0..CACHES {
                for line in 0..LINES {
                    for event in [Event::Load, Event::Store] {
                        let next = self.begins(machine, (cache, line), event);
                        successors.extend(next.map_err(told)?);
                    }
                }
            }
            for mut next in successors.drain(..) {
                if seen.insert(next.key()) {
                    next.check().map_err(told)?;
                    queue.push_back(next);
                }
            }
        }
        Ok(seen.len())
    }
}

/// Each delivery leaves fewer messages to come of the transactions that are under way: where one
/// can always be delivered, they end.
#[test]
fn messages_in_every_order_are_coherent_and_come_to_an_end() {
    for protocol in Protocol::ALL {
        let (table, fault) = (protocol.table(), Fault::None);
        let states = Model { table, fault }.explore().unwrap();
        assert!(states > 100_000, "{protocol}: {states}");
    }
}

#[test]
fn faults_of_homes_and_caches_are_found() {
    for (fault, symptom) in [
        (Fault::TakesTwo, "a writer is not alone"),
        (Fault::WritesBackWhatIsGone, "the newest bytes are lost"),
        (Fault::WaitsForWhatIsGone, "deadlock"),
        (Fault::AnswersLater, "deadlock"),
        (Fault::ForgetsWhoKeeps, "a writer is not alone"),
        (Fault::ForgetsWhatLeaves, "Load gets stale bytes"),
        (Fault::FreeEarly, "a writer is not alone"),
    ] {
        for protocol in Protocol::ALL {
            let table = protocol.table();
            let wrong = Model { table, fault }.explore().unwrap_err();
            assert!(wrong.starts_with(symptom), "{protocol} {fault:?}: {wrong}");
        }
    }
}
