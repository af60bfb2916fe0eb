//! The part of the library that the threads of a node share: which tags and DMA channels are in
//! use, and the node's memory.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::IpcError;

/// The hardware of a chip, as far as the library counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Compute clusters, which are the first nodes; the I/O subsystems follow.
    pub clusters: u32,
    /// Receive tags of each network interface.
    pub tags: u16,
    /// DMA channels of each.
    pub channels: u16,
}

/// A node's memory that the library may use, by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The first byte.
    pub begin: u64,
    /// The byte behind the last.
    pub end: u64,
}

/// The resources of a node.
#[derive(Debug)]
pub struct Resources {
    hardware: Hardware,
    room: Room,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Receive tags of the data network, and tags of the control network, that are in use.
    data_tags: BTreeSet<u16>,
    control_tags: BTreeSet<u16>,
    /// The last transfer of each channel, from the first interface's on.
    channels: Vec<Option<Sends>>,
    /// Uses of channels so far.
    uses: u64,
    /// Flags that tell of the end of transfers, and how many want to see that they are set.
    held: BTreeMap<u64, u32>,
    /// Bytes that are reserved, and for what.
    used: u64,
    account: Vec<(&'static str, u64)>,
    /// Flags that are free again.
    flags: Vec<u64>,
}

/// The transfer that a channel has sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sends {
    /// The flag that is set when it has left.
    pub flag: u64,
    /// The number of this use among those of all channels.
    number: u64,
}

/// Bytes that are reserved together.
const LINE: u64 = 64;

impl Resources {
    /// Makes the resources of a node with `interfaces` network interfaces.
    pub fn new(hardware: Hardware, interfaces: u16, room: Room) -> Self {
        let channels = usize::from(interfaces) * usize::from(hardware.channels);
        Self {
            hardware,
            room,
            state: Mutex::new(State {
                channels: vec![None; channels],
                ..State::default()
            }),
        }
    }

    /// The chip.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// The account of reserved memory: purposes and their bytes, in the order of their first
    /// reservations.
    pub fn account(&self) -> Vec<(&'static str, u64)> {
        self.state.lock().account.clone()
    }

    /// The offset of memory for `what`.
    pub(super) fn reserve(&self, what: &'static str, bytes: u64) -> Result<u64, IpcError> {
        self.state.lock().reserve(self.room, what, bytes)
    }

    /// The offset of a flag that is 0.
    pub(super) fn take_flag(&self) -> Result<u64, IpcError> {
        let mut state = self.state.lock();
        if state.flags.is_empty() {
            let first = state.reserve(self.room, "flags", LINE)?;
            let flags = (0..LINE / 8).rev().map(|number| first + 8 * number);
            state.flags.extend(flags);
        }
        // There is one by now.
        Ok(state.flags.pop().unwrap_or(self.room.begin))
    }

    /// Gives a flag back, which is 0.
    pub(super) fn give_flag(&self, flag: u64) {
        self.state.lock().flags.push(flag);
    }

    /// Takes the receive tag of this number.
    pub(super) fn take_tag(&self, tag: u16) -> Result<(), IpcError> {
        match self.state.lock().data_tags.insert(tag) {
            true => Ok(()),
            false => Err(IpcError::TagInUse(tag, "data")),
        }
    }

    /// Takes any receive tag of the interface of this number: the highest that is free.
    pub(super) fn take_any_tag(&self, interface: u16) -> Result<u16, IpcError> {
        let tags = self.hardware.tags;
        let mut state = self.state.lock();
        let mut all = (interface * tags..(interface + 1) * tags).rev();
        let free = all.find(|tag| !state.data_tags.contains(tag));
        let free = free.ok_or(IpcError::NoTag(tags))?;
        state.data_tags.insert(free);
        Ok(free)
    }

    /// Gives a receive tag back.
    pub(super) fn give_tag(&self, tag: u16) {
        self.state.lock().data_tags.remove(&tag);
    }

    /// Takes a tag of the control network.
    pub(super) fn take_control_tag(&self, tag: u16) -> Result<(), IpcError> {
        match self.state.lock().control_tags.insert(tag) {
            true => Ok(()),
            false => Err(IpcError::TagInUse(tag, "control")),
        }
    }

    /// The channels of an interface, and the last transfer of each.
    pub(super) fn channels(&self, interface: u16) -> Vec<(u16, Option<Sends>)> {
        let channels = self.hardware.channels;
        let first = interface * channels;
        let state = self.state.lock();
        let of = |channel: u16| state.channels.get(usize::from(channel)).copied().flatten();
        (first..first + channels)
            .map(|channel| (channel, of(channel)))
            .collect()
    }

    /// A channel sends a transfer with this flag from now on, if it has done nothing since it sent
    /// `before`, which has left; whether it does. The channel and the caller hold the flag.
    pub(super) fn use_channel(&self, channel: u16, before: Option<Sends>, flag: u64) -> bool {
        let mut state = self.state.lock();
        state.uses += 1;
        let number = state.uses;
        match state.channels.get_mut(usize::from(channel)) {
            Some(place) if *place == before => {
                *place = Some(Sends { flag, number });
                state.held.insert(flag, 2);
                true
            }
            _ => false,
        }
    }

    /// One more wants to see the flag of what a channel sends, if it still does.
    pub(super) fn hold(&self, channel: u16, sends: Sends) -> bool {
        let mut state = self.state.lock();
        let still = state.channels.get(usize::from(channel)) == Some(&Some(sends));
        if still && let Some(holders) = state.held.get_mut(&sends.flag) {
            *holders += 1;
        }
        still
    }

    /// One has seen it; whether that was the last. It then clears the flag and gives it back.
    pub(super) fn release(&self, flag: u64) -> bool {
        let mut state = self.state.lock();
        let Some(holders) = state.held.get_mut(&flag) else {
            return false;
        };
        *holders -= 1;
        let is_last = *holders == 0;
        if is_last {
            state.held.remove(&flag);
        }
        is_last
    }
}

impl State {
    fn reserve(&mut self, room: Room, what: &'static str, bytes: u64) -> Result<u64, IpcError> {
        let begin = room.begin.next_multiple_of(LINE) + self.used;
        let free = room.end.saturating_sub(begin);
        let taken = bytes.checked_next_multiple_of(LINE).unwrap_or(u64::MAX);
        if taken > free {
            return Err(IpcError::NoMemory { what, bytes, free });
        }
        self.used += taken;
        match self.account.iter_mut().find(|(other, _)| *other == what) {
            Some((_, bytes)) => *bytes += taken,
            None => self.account.push((what, taken)),
        }
        Ok(begin)
    }
}
