//! One coherent domain: the caches and the memory of a node, line by line.
//!
//! [MOESI](super::protocol) with broadcast probes, as in the Opteron. A miss goes to the memory
//! controller of the line's home socket, which orders everything that happens to the line: it takes
//! one transaction at a time, probes every socket, and reads DRAM meanwhile. The requester goes on
//! when the slower of the two has answered. A transaction takes effect where it is ordered, at its
//! start. The bridge's reads leave the copies as they are: no event of the table is of that kind.
//!
//! Copies hold bytes of their own. All that are kept coherent are equal, so a line has one image
//! of them; an update from outside that does not probe (a packet without the *coherent* bit)
//! changes memory and leaves the copies as they are: they go stale, and a core that spins on one
//! spins for ever.
//!
//! Called by the node's cores and its I/O bridge; puts [`Event`]s on the node's agenda.

mod line;

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rand_core::Rng;
use rand_pcg::Pcg32;
use rustc_hash::FxBuildHasher;
use slab::Slab;

use super::agenda::{Agenda, Event};
use super::constants::origin_of;
use super::homes::Homes;
use super::latencies::Latencies;
use super::transaction::{BRIDGE, Kind, NONE, Transaction, Update};
use crate::observe::last_writes::LastWrites;
use crate::parts::core_set::{CoreSet, MOST_CORES, Role};
use crate::parts::line::Bytes;
use crate::parts::tables;
use crate::time::Time;
use line::Line;

/// The domain's knowledge of a core.
#[derive(Clone, Copy, Debug)]
struct Agent {
    socket: u8,
    /// The bytes it last began to spin on.
    awaited: Bytes,
}

/// The caches and the memory of one node.
#[derive(Debug)]
pub struct Domain {
    lines: Vec<Line>,
    /// Lines by the hash of their number.
    index: HashTable<u32>,
    transactions: Slab<Transaction>,
    agents: Box<[Agent]>,
    /// The expected values of compare-exchanges that have not been performed, by core.
    expected: Vec<(u16, u64)>,
    /// Extra words of the bridge's reads that are not complete, by number.
    extra_words: Vec<(u32, Box<[u64]>)>,
    latency: Arc<Latencies>,
    homes: Homes,
    random: Pcg32,
    /// Those of a few words, in the run that explains a deadlock.
    last_writes: Option<Box<LastWrites>>,
}

impl Domain {
    /// The domain of a node whose core `c` stands on socket `sockets[c]`.
    pub fn new(
        (latency, homes): (Arc<Latencies>, Homes),
        sockets: &[u8],
        seed: u64,
        node: u32,
    ) -> Self {
        let agents = sockets.iter().map(|&socket| Agent {
            socket,
            awaited: Bytes::byte(0),
        });
        Self {
            lines: Vec::new(),
            index: HashTable::new(),
            transactions: Slab::new(),
            agents: agents.collect(),
            expected: Vec::new(),
            extra_words: Vec::new(),
            latency,
            homes,
            random: Pcg32::new(seed, u64::from(node)),
            last_writes: None,
        }
    }

    /// One core more, on `socket`.
    pub fn grow(&mut self, socket: u8) {
        let awaited = Bytes::byte(0);
        tables::grow(&mut self.agents, Agent { socket, awaited });
    }

    /// The line that holds physical address `address`.
    #[inline]
    pub fn line(&mut self, address: u64) -> u32 {
        let number = self.homes.line(address);
        if let Some(line) = self.known_line(address) {
            return line;
        }
        let line = self.lines.len() as u32;
        tables::push(&mut self.lines, Line::new(number));
        let hash_of = |&line: &u32| hash(self.lines[line as usize].number);
        self.index.insert_unique(hash(number), line, hash_of);
        line
    }

    /// Returns the line that holds physical address `address`, if it has ever been touched.
    #[inline]
    pub fn known_line(&self, address: u64) -> Option<u32> {
        let number = self.homes.line(address);
        let is_it = |&line: &u32| self.lines[line as usize].number == number;
        self.index.find(hash(number), is_it).copied()
    }

    /// Memory and all copies hold `value` in the word at physical address `address`.
    pub fn preset(&mut self, address: u64, value: u64) {
        let line = self.line(address);
        let (line, bytes) = (&mut self.lines[line as usize], Bytes::word(address));
        line.images.write_memory(bytes, value);
        line.images.write_copies(bytes, value);
    }

    /// The newest value of the word at physical address `address`.
    pub fn word(&self, address: u64) -> u64 {
        let line = self.known_line(address);
        line.map_or(0, |line| self.newest(line, Bytes::word(address)))
    }

    /// The next compare-exchange of `core` expects this value.
    pub fn expect(&mut self, core: u16, value: u64) {
        self.expected.push((core, value));
    }

    /// Returns the value that `update`, which is being performed for `core`, expects.
    fn expected_by(&mut self, core: u16, update: Update) -> u64 {
        if update != Update::CompareExchange {
            return 0;
        }
        let place = self.expected.iter().position(|&(of, _)| of == core);
        place.map_or(0, |place| self.expected.swap_remove(place).1)
    }

    /// The bytes in `core`'s own copy, `None` where it has none.
    #[inline]
    pub fn cached(&self, core: u16, line: u32, bytes: Bytes) -> Option<u64> {
        let line = &self.lines[line as usize];
        if line.roles.has(Role::Holds, core) {
            return Some(line.images.copies(bytes));
        }
        line.images.stale(core, bytes)
    }

    /// The same, once they have arrived: a copy that is still on its way cannot be read.
    #[inline]
    pub fn readable(&self, core: u16, line: u32, bytes: Bytes) -> Option<u64> {
        if self.is_fetching(core, line) {
            return None;
        }
        self.cached(core, line, bytes)
    }

    /// Returns the value in memory itself.
    pub fn in_memory(&self, line: u32, bytes: Bytes) -> u64 {
        self.lines[line as usize].images.memory(bytes)
    }

    /// Physical address of the line's first byte.
    pub fn address_of(&self, line: u32) -> u64 {
        self.homes.address(self.lines[line as usize].number)
    }

    /// The socket whose memory controller the line belongs to.
    #[inline]
    fn home(&self, line: u32) -> u8 {
        self.homes.of(self.lines[line as usize].number)
    }

    /// Returns the state of `core`'s copy.
    #[cfg(test)]
    fn state(&self, core: u16, line: u32) -> crate::parts::coherence::State {
        self.lines[line as usize].state(core)
    }

    /// Writes at once if `core` has the line for itself; whether it had.
    #[inline]
    pub fn write_if_owned(
        &mut self,
        core: u16,
        line: u32,
        (bytes, value): (Bytes, u64),
        by: (Time, u32),
    ) -> bool {
        if !self.lines[line as usize].stores_at_once(core) {
            return false;
        }
        self.lines[line as usize].write(bytes, value);
        self.wrote(line, bytes, by);
        true
    }

    /// Updates at once if `core` has the line for itself; the value before.
    pub fn update_if_owned(
        &mut self,
        core: u16,
        line: u32,
        bytes: Bytes,
        update: (Update, u64),
        by: (Time, u32),
    ) -> Option<u64> {
        if !self.lines[line as usize].stores_at_once(core) {
            return None;
        }
        let expected = self.expected_by(core, update.0);
        let before = self.lines[line as usize].update(bytes, update.0, update.1, expected);
        if update.0.writes(before, expected) {
            self.wrote(line, bytes, by);
        }
        Some(before)
    }

    /// `bytes` of `line` have been written, then and by that origin.
    #[inline]
    fn wrote(&mut self, line: u32, bytes: Bytes, (at, origin): (Time, u32)) {
        let line = &mut self.lines[line as usize];
        line.images.writer = origin;
        if let Some(last_writes) = &mut self.last_writes {
            let address = self.homes.address(line.number);
            last_writes.wrote(address, bytes, (at, origin_of(origin)));
        }
    }

    /// Keeps the last writes of the words at these physical addresses from now on.
    pub fn keep_last_writes(&mut self, addresses: impl Iterator<Item = u64>) {
        self.last_writes = Some(Box::new(LastWrites::of(addresses)));
    }

    /// The writer of `bytes` of `line`, and when it wrote if [that is
    /// kept](Self::keep_last_writes); else the last writer of the line.
    pub fn last_write(&self, line: u32, bytes: Bytes) -> (Option<(u32, u16)>, Option<Time>) {
        let kept = self.last_writes.as_ref();
        match kept.and_then(|kept| kept.last(self.address_of(line), bytes)) {
            Some(write) => write.map_or((None, None), |(at, by)| (Some(by), Some(at))),
            None => {
                let writer = self.lines[line as usize].images.writer;
                ((writer != NONE).then(|| origin_of(writer)), None)
            }
        }
    }

    /// Lets `core` spin on `bytes` of its copy: it reads them anew once that is invalidated.
    #[inline]
    pub fn spin(&mut self, core: u16, line: u32, bytes: Bytes) {
        self.lines[line as usize].roles.insert(Role::Spins, core);
        self.agents[usize::from(core)].awaited = bytes;
    }

    /// Lets `core` spin on the line no longer; whether it did.
    pub fn stops_spinning(&mut self, core: u16, line: u32) -> bool {
        let roles = &mut self.lines[line as usize].roles;
        let spins = roles.has(Role::Spins, core);
        roles.remove(Role::Spins, core);
        spins
    }

    /// The newest value of `bytes`, wherever it is (an observer's and the operating system's view).
    pub fn newest(&self, line: u32, bytes: Bytes) -> u64 {
        self.lines[line as usize].newest(bytes)
    }

    /// Returns whether `core` has a read of the line under way.
    #[inline]
    pub fn is_fetching(&self, core: u16, line: u32) -> bool {
        self.lines[line as usize].roles.has(Role::Fetches, core)
    }

    /// Sends a core's transaction to the line's home.
    pub fn request(
        &mut self,
        now: Time,
        core: u16,
        line: u32,
        (kind, bytes, value): (Kind, Bytes, u64),
        origin: u32,
        agenda: &mut Agenda,
    ) {
        let home = self.home(line);
        let socket = self.agents[usize::from(core)].socket;
        let way = self.latency.between(socket, home);
        if kind == Kind::Read {
            self.lines[line as usize].roles.insert(Role::Fetches, core);
        }
        self.send(
            (now + self.latency.miss(), way),
            core,
            line,
            (kind, bytes, value),
            origin,
            agenda,
        );
    }

    /// Sends a transaction of the I/O bridge (on socket 0) to the line's home.
    pub fn request_from_bridge(
        &mut self,
        now: Time,
        line: u32,
        (kind, bytes, value): (Kind, Bytes, u64),
        origin: u32,
        agenda: &mut Agenda,
    ) -> u32 {
        let way = self.latency.between(0, self.home(line));
        self.send(
            (now, way),
            BRIDGE,
            line,
            (kind, bytes, value),
            origin,
            agenda,
        )
    }

    /// Sends a transaction, which leaves its socket at `leaves`, the time `way` to its line's home.
    fn send(
        &mut self,
        (leaves, way): (Time, Time),
        agent: u16,
        line: u32,
        (kind, bytes, value): (Kind, Bytes, u64),
        origin: u32,
        agenda: &mut Agenda,
    ) -> u32 {
        let transaction = Transaction {
            line,
            agent,
            kind,
            bytes,
            value,
            origin,
            next: NONE,
        };
        let number = tables::insert(&mut self.transactions, transaction);
        let at = leaves + way;
        agenda.tell(|t| t.requested(leaves, at, number, &self.transactions[number as usize]));
        agenda.push(at, Event::Home(number));
        number
    }

    /// [`Event::Home`]: the transaction starts, or waits until its line is free. The transaction
    /// that has started, if any.
    pub fn arrive(&mut self, now: Time, number: u32, agenda: &mut Agenda) -> Option<u32> {
        let line_number = self.transactions[number as usize].line;
        let line = &mut self.lines[line_number as usize];
        if line.free_at <= now && line.waiting == NONE {
            self.start(now, number, agenda);
            return Some(number);
        }
        // As long as any waits, one release is on the agenda.
        if line.waiting == NONE {
            agenda.push(line.free_at, Event::Release(line_number));
        }
        self.transactions[number as usize].next = line.waiting;
        line.waiting = number;
        line.waiting_count += 1;
        None
    }

    /// [`Event::Release`]: one of the transactions that wait for the line starts; which.
    pub fn release(&mut self, now: Time, line_number: u32, agenda: &mut Agenda) -> Option<u32> {
        let number = self.draw_waiting(line_number)?;
        self.start(now, number, agenda);
        let line = &self.lines[line_number as usize];
        if line.waiting != NONE {
            agenda.push(line.free_at, Event::Release(line_number));
        }
        Some(number)
    }

    /// Returns whether transaction `number`, which is under way, is a posted write of the bridge.
    pub fn is_posted(&self, number: u32) -> bool {
        matches!(self.transactions[number as usize].kind, Kind::Write { .. })
    }

    /// The value that transaction `number`, which is under way, writes.
    #[cfg(test)]
    pub fn value_of(&self, number: u32) -> u64 {
        self.transactions[number as usize].value
    }

    /// Takes a transaction out of those that wait for the line. Sockets and cores compete for the
    /// controller on equal terms, and the winner is drawn at random, for no rule decides it.
    fn draw_waiting(&mut self, line_number: u32) -> Option<u32> {
        let line = &mut self.lines[line_number as usize];
        let mut before = NONE;
        let mut number = line.waiting;
        if number == NONE {
            return None;
        }
        if line.waiting_count > 1 {
            for _ in 0..self.random.next_u32() % u32::from(line.waiting_count) {
                before = number;
                number = self.transactions[number as usize].next;
            }
        }
        let after = self.transactions[number as usize].next;
        if before == NONE {
            line.waiting = after;
        } else {
            self.transactions[before as usize].next = after;
        }
        line.waiting_count -= 1;
        Some(number)
    }

    /// [`Event::Complete`]: what the transaction brought.
    pub fn complete(&mut self, number: u32) -> Transaction {
        let transaction = self.transactions.remove(number as usize);
        if transaction.kind == Kind::Read {
            self.lines[transaction.line as usize]
                .roles
                .remove(Role::Fetches, transaction.agent);
        }
        transaction
    }

    /// The extra words of the bridge's transaction `number`, which is complete; `None` if it has
    /// none.
    pub fn take_extra_words(&mut self, number: u32) -> Option<Box<[u64]>> {
        let place = self.extra_words.iter().position(|&(of, _)| of == number)?;
        Some(self.extra_words.swap_remove(place).1)
    }

    /// The transaction takes effect on the line and sets out for its requester.
    fn start(&mut self, now: Time, number: u32, agenda: &mut Agenda) {
        let Transaction {
            line: line_number,
            agent,
            kind,
            ..
        } = self.transactions[number as usize];
        let expected = match kind {
            Kind::Update(update) => self.expected_by(agent, update),
            _ => 0,
        };
        let transaction = &mut self.transactions[number as usize];
        let line = &mut self.lines[line_number as usize];
        let mut probes = true;
        let mut writes = true;
        let mut dropped = CoreSet::NONE;
        match kind {
            Kind::Read => {
                writes = false;
                line.share(agent);
                transaction.value = line.images.copies(transaction.bytes);
            }
            Kind::Own => {
                dropped = line.take(agent);
                line.write(transaction.bytes, transaction.value);
            }
            Kind::Update(update) => {
                dropped = line.take(agent);
                let (bytes, value) = (transaction.bytes, transaction.value);
                transaction.value = line.update(bytes, update, value, expected);
                writes = update.writes(transaction.value, expected);
            }
            Kind::Write { coherent: true } => {
                dropped = line.drop_copies();
                line.images
                    .write_memory(transaction.bytes, transaction.value);
            }
            Kind::Write { coherent: false } => {
                line.images
                    .write_memory(transaction.bytes, transaction.value);
                probes = false;
            }
            Kind::Fetch { extra_words } => {
                writes = false;
                transaction.value = line.newest(transaction.bytes);
                if extra_words > 0 {
                    let first = transaction.bytes.word + 1;
                    let words = first..first + extra_words;
                    let words = words.map(|word| line.newest(Bytes::word(8 * u64::from(word))));
                    self.extra_words.push((number, words.collect()));
                }
            }
        }
        let home = self.homes.of(line.number);
        let (bytes, origin) = (transaction.bytes, transaction.origin);
        if writes {
            self.wrote(line_number, bytes, (now, origin));
        }
        let requester = if agent == BRIDGE {
            0
        } else {
            self.agents[usize::from(agent)].socket
        };
        let took = self.latency.settles(home, requester, probes);
        // Reads overlap: the controller has sent the bytes. A write must have settled before
        // another core can have the line.
        let reads = matches!(kind, Kind::Read | Kind::Fetch { .. });
        let least = if reads { Time::ZERO } else { took };
        self.lines[line_number as usize].free_at = now + self.latency.occupancy().max(least);
        agenda.tell(|t| {
            let bound = self.latency.bound(home, requester, probes);
            let transaction = &self.transactions[number as usize];
            t.started((now, now + took), bound, number, transaction);
        });
        agenda.push(now + took, Event::Complete(number));
        let roles = &self.lines[line_number as usize].roles;
        let spinning = roles.among(Role::Spins, dropped);
        if !spinning.is_empty() {
            // Room for more than there are takes time to clear.
            if spinning.is_low() {
                self.refetch(now, line_number, &spinning, &mut [0; 64], agenda);
            } else {
                let mut order = [0; MOST_CORES as usize];
                self.refetch(now, line_number, &spinning, &mut order, agenda);
            }
        }
    }

    /// Lets every spinning core whose copy was probed away ask for the line again. The one that the
    /// interconnect lets through first is drawn at random, for no rule decides it. `order` has room
    /// for all.
    fn refetch(
        &mut self,
        now: Time,
        line_number: u32,
        spinning: &CoreSet,
        order: &mut [u16],
        agenda: &mut Agenda,
    ) {
        let count = spinning.list(order);
        for last in (1..count).rev() {
            let other = self.random.next_u32() as usize % (last + 1);
            order.swap(last, other);
        }
        let home = self.home(line_number);
        for &core in &order[..count] {
            let Agent {
                socket,
                awaited: bytes,
            } = self.agents[usize::from(core)];
            let noticed = now + self.latency.between(home, socket) + self.latency.probe();
            let line = &mut self.lines[line_number as usize];
            line.roles.remove(Role::Spins, core);
            agenda.tell(|t| t.probed(noticed, core, line_number, bytes));
            self.request(
                noticed,
                core,
                line_number,
                (Kind::Read, bytes, 0),
                NONE,
                agenda,
            );
        }
    }

    /// Returns whether no transaction is under way.
    pub fn is_quiet(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Returns whether a core waits for a line that is on its way.
    pub fn serves_a_core(&self) -> bool {
        self.transactions.iter().any(|(_, t)| t.agent != BRIDGE)
    }

    /// Bytes on the heap, without the latencies that all nodes share.
    pub fn heap_bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(Line::heap_bytes).sum();
        lines
            + self.lines.capacity() * size_of::<Line>()
            + self.index.allocation_size()
            + self.transactions.capacity() * size_of::<Transaction>()
            + size_of_val(&*self.agents)
            + self.expected.capacity() * size_of::<(u16, u64)>()
            + self.extra_words.capacity() * size_of::<(u32, Box<[u64]>)>()
            + (self.extra_words.iter())
                .map(|(_, words)| size_of_val(&**words))
                .sum::<usize>()
    }
}

#[inline]
fn hash(number: u64) -> u64 {
    FxBuildHasher.hash_one(number)
}

#[cfg(test)]
mod tests;
