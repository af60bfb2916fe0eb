//! The naive domain: what is accessed, and a line of which every core has 64 bytes of its own.

use super::super::*;
use super::CORES;

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

/// One line, as it is told in textbooks.
#[derive(Clone)]
pub struct Naive {
    pub memory: [u8; 64],
    pub copies: Vec<Option<(State, [u8; 64])>>,
}

impl Naive {
    pub fn new() -> Self {
        Self {
            memory: [0; 64],
            copies: vec![None; usize::from(CORES)],
        }
    }

    /// Who must answer probes because memory is older.
    fn dirty(&self) -> Option<usize> {
        self.copies
            .iter()
            .position(|c| matches!(c, Some((State::Modified | State::Owned, _))))
    }

    pub fn newest(&self) -> [u8; 64] {
        let dirty = self.dirty().and_then(|core| self.copies[core]);
        dirty.map_or(self.memory, |(_, bytes)| bytes)
    }

    fn own(&mut self, core: u16) -> &mut [u8; 64] {
        let bytes = self.newest();
        self.copies.fill(None);
        &mut self.copies[usize::from(core)]
            .insert((State::Modified, bytes))
            .1
    }

    /// What the transaction brings.
    pub fn apply(&mut self, agent: u16, kind: Kind, access: Access) -> u64 {
        match kind {
            Kind::Read => {
                let own = self.copies[usize::from(agent)];
                if let Some((state, bytes)) = own {
                    // Its own store was faster; others may have read what that stored.
                    assert!(matches!(state, State::Modified | State::Owned));
                    return access.read(&bytes);
                }
                let bytes = self.newest();
                let alone = self.copies.iter().all(Option::is_none);
                for (state, _) in self.copies.iter_mut().flatten() {
                    *state = match state {
                        State::Modified | State::Owned => State::Owned,
                        _ => State::Shared,
                    };
                }
                let state = if alone {
                    State::Exclusive
                } else {
                    State::Shared
                };
                self.copies[usize::from(agent)] = Some((state, bytes));
                access.read(&bytes)
            }
            Kind::Own => {
                access.write(self.own(agent), access.value);
                access.value
            }
            Kind::Update(update) => access.update(self.own(agent), update),
            Kind::Write { coherent } => {
                if coherent {
                    self.memory = self.newest();
                    self.copies.fill(None);
                }
                access.write(&mut self.memory, access.value);
                access.value
            }
            Kind::Fetch { .. } => access.read(&self.newest()),
        }
    }

    /// The copy of `core`, if it may store there.
    pub fn owned_alone(&mut self, core: u16) -> Option<(&mut State, &mut [u8; 64])> {
        match &mut self.copies[usize::from(core)] {
            Some((state, line)) if matches!(state, State::Modified | State::Exclusive) => {
                Some((state, line))
            }
            _ => None,
        }
    }

    /// The rules of MOESI, and that copies do not differ where nothing bypassed the probes.
    pub fn check(&self, all_coherent: bool) {
        let valid: Vec<_> = self.copies.iter().flatten().collect();
        let count = |wanted| valid.iter().filter(|(state, _)| *state == wanted).count();
        let alone = count(State::Modified) + count(State::Exclusive);
        assert!(alone == 0 || valid.len() == 1);
        assert!(count(State::Owned) <= 1);
        if all_coherent {
            assert!(valid.iter().all(|(_, bytes)| *bytes == self.newest()));
        }
    }
}
