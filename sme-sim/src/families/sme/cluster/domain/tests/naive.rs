//! The naive domain: what is accessed, and a line of which every core has 64 bytes of its own.

use super::super::*;
use super::CORES;
use crate::parts::coherence::line::{self, Source};
use crate::parts::coherence::{Event, Protocol, State};

/// To which line, which byte of it (or the whole word around it), with what value.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub line: u32,
    pub at: u8,
    pub wide: bool,
    pub value: u64,
    /// By a compare-exchange.
    pub expected: u64,
}

impl Access {
    pub fn bytes(self) -> Bytes {
        let address = u64::from(self.at);
        if self.wide {
            Bytes::word(address & !7)
        } else {
            Bytes::byte(address)
        }
    }

    pub fn read(self, line: &[u8; 64]) -> u64 {
        if !self.wide {
            return u64::from(line[usize::from(self.at)]);
        }
        let first = usize::from(self.at) & !7;
        (0..8).fold(0, |word, n| word | u64::from(line[first + n]) << (8 * n))
    }

    pub fn write(self, line: &mut [u8; 64], value: u64) {
        if !self.wide {
            line[usize::from(self.at)] = value as u8;
            return;
        }
        let first = usize::from(self.at) & !7;
        line[first..first + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// The bits of a value that it is about.
    pub fn mask(self) -> u64 {
        if self.wide { u64::MAX } else { 0xff }
    }

    /// The value before.
    pub fn update(self, line: &mut [u8; 64], update: Update) -> u64 {
        let before = self.read(line);
        match update {
            Update::Add => self.write(line, before.wrapping_add(self.value)),
            Update::Swap => self.write(line, self.value),
            Update::CompareExchange if before == self.expected => self.write(line, self.value),
            Update::CompareExchange => {}
        }
        before
    }
}

/// One line by the table of MOESI, with the bytes of every copy.
#[derive(Clone)]
pub struct Naive {
    pub memory: [u8; 64],
    states: [State; CORES as usize],
    bytes: Vec<[u8; 64]>,
}

impl Naive {
    pub fn new() -> Self {
        Self {
            memory: [0; 64],
            states: [State::Invalid; CORES as usize],
            bytes: vec![[0; 64]; usize::from(CORES)],
        }
    }

    pub fn state(&self, core: u16) -> State {
        self.states[usize::from(core)]
    }

    /// The copy of `core`, if it has one.
    pub fn copy(&self, core: u16) -> Option<[u8; 64]> {
        let has_one = self.state(core) != State::Invalid;
        has_one.then(|| self.bytes[usize::from(core)])
    }

    /// Returns the core that must answer probes because memory is older.
    fn dirty(&self) -> Option<u16> {
        let is_dirty = |core: &u16| matches!(self.state(*core), State::Modified | State::Owned);
        (0..CORES).find(is_dirty)
    }

    pub fn newest(&self) -> [u8; 64] {
        let dirty = self.dirty().and_then(|core| self.copy(core));
        dirty.unwrap_or(self.memory)
    }

    /// `core` loads or stores as the table says, and then has the newest bytes.
    fn gets(&mut self, core: u16, event: Event) -> &mut [u8; 64] {
        let (bytes, dirty) = (self.newest(), self.dirty());
        let table = Protocol::Moesi.table();
        let effect = line::access(table, &mut self.states, core, event).unwrap();
        if let Some(Source::Cache(from)) = effect.source {
            assert_eq!(
                Some(from),
                dirty,
                "only the one whose copy is newer answers"
            );
        }
        // Stores that bypass the probes make clean copies older than memory: it is read anew.
        self.bytes[usize::from(core)] = bytes;
        &mut self.bytes[usize::from(core)]
    }

    /// Performs the transaction and returns the value that it brings.
    pub fn apply(&mut self, agent: u16, kind: Kind, access: Access) -> u64 {
        match kind {
            Kind::Read => {
                if let Some(bytes) = self.copy(agent) {
                    // Its own store was faster; others may have read what that stored.
                    assert_eq!(self.dirty(), Some(agent));
                    return access.read(&bytes);
                }
                access.read(self.gets(agent, Event::Load))
            }
            Kind::Own => {
                access.write(self.gets(agent, Event::Store), access.value);
                access.value
            }
            Kind::Update(update) => access.update(self.gets(agent, Event::Store), update),
            Kind::Write { coherent } => {
                if coherent {
                    let (bytes, dirty) = (self.newest(), self.dirty());
                    let effect = line::flush(Protocol::Moesi.table(), &mut self.states).unwrap();
                    assert_eq!(effect.written_back, dirty);
                    self.memory = bytes;
                }
                access.write(&mut self.memory, access.value);
                access.value
            }
            Kind::Fetch { .. } => access.read(&self.newest()),
        }
    }

    /// The copy of `core`, to store there, if it may do so without asking.
    pub fn stores_at_once(&mut self, core: u16) -> Option<&mut [u8; 64]> {
        let row = Protocol::Moesi.table().row(self.state(core), Event::Store);
        if row.unwrap().asks {
            return None;
        }
        let table = Protocol::Moesi.table();
        line::access(table, &mut self.states, core, Event::Store).unwrap();
        Some(&mut self.bytes[usize::from(core)])
    }

    /// The rules of MOESI, and that copies do not differ where nothing bypassed the probes.
    pub fn check(&self, all_coherent: bool) {
        let states = &self.states;
        let count = |wanted| states.iter().filter(|state| **state == wanted).count();
        let alone = count(State::Modified) + count(State::Exclusive);
        let valid = states.len() - count(State::Invalid);
        assert!(alone == 0 || valid == 1);
        assert!(count(State::Owned) <= 1);
        if all_coherent {
            let mut copies = (0..CORES).filter_map(|core| self.copy(core));
            assert!(copies.all(|bytes| bytes == self.newest()));
        }
    }
}
