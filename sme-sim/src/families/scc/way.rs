//! Where an access goes, and how long that takes where nothing is in its way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::core::Core;
use super::layout::Chip;
use super::lut::Target;
use super::spec::{SccSpec, accesses};
use crate::parts::address::FaultReason;
use crate::parts::line::Bytes;
use crate::time::Time;

/// The kind of hardware that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Site {
    Buffer,
    Memory,
    Registers,
}

/// The destination of an access.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct At {
    /// The core to which it belongs.
    pub(super) node: u32,
    /// In that core's own numbering.
    pub(super) offset: u64,
    pub(super) site: Site,
    /// The number of accesses, one after the other: a word is two of 32 bits. All are in a line.
    pub(super) times: u16,
}

impl At {
    /// The registers of core `node`.
    pub(super) fn registers(node: u32) -> Self {
        Self {
            node,
            offset: 0,
            site: Site::Registers,
            times: 1,
        }
    }

    /// The same, as so many accesses.
    pub(super) fn repeated(self, times: u32) -> Self {
        let times = times as u16;
        Self { times, ..self }
    }
}

/// The time of one kind of access without its hops.
pub(super) struct Latency {
    /// At the core, on the way out and back.
    pub(super) out: Time,
    pub(super) back: Time,
    /// At the buffer, the controller or the registers.
    pub(super) there: Time,
    pub(super) busy: Time,
}

impl Core {
    /// The destination of an access to `address` by this core.
    ///
    /// # Errors
    /// The reason for which it cannot be performed.
    pub(super) fn at(&self, address: u64, bytes: Bytes) -> Result<At, FaultReason> {
        let at = |node, offset, site| At {
            node,
            offset,
            site,
            times: accesses(bytes) as u16,
        };
        Ok(match self.target(address, bytes)? {
            Target::Buffer { node, offset } => at(node, offset, Site::Buffer),
            Target::Memory { node, offset } => at(node, offset, Site::Memory),
            Target::Registers { tile, offset } => {
                let (node, _) = super::registers::which(tile, offset)?;
                at(node, offset, Site::Registers)
            }
        })
    }

    /// The offset in this core's own half of the buffer that `address` names, if it does.
    pub(super) fn in_own_buffer(&self, address: u64) -> Option<u64> {
        match self.target(address, Bytes::byte(address)) {
            Ok(Target::Buffer { node, offset }) if node == self.me => Some(offset),
            _ => None,
        }
    }

    /// The latency of an access to `at` by a core of tile `by`.
    pub(super) fn latency(&self, at: At, by: u32, of_line: bool) -> Latency {
        if by == self.tile || !self.tuned.load(Ordering::Relaxed) {
            return Self::latency_of(&self.spec, at, by, of_line);
        }
        // Its core has another clock, perhaps.
        let spec = Arc::clone(self.islands.lock().spec(by));
        Self::latency_of(&spec, at, by, of_line)
    }

    fn latency_of(spec: &SccSpec, at: At, by: u32, of_line: bool) -> Latency {
        let is_near = Chip::tile_of(at.node) == by;
        let (whole, there, busy) = match at.site {
            Site::Memory => {
                let longer = if of_line { spec.memory.1 } else { Time::ZERO };
                let there = spec.at_controller + longer;
                (spec.memory.0 + longer, there, spec.controller_busy)
            }
            Site::Registers if is_near => (spec.register, Time::ZERO, spec.buffer_busy),
            Site::Buffer if is_near => (spec.buffer.0, Time::ZERO, spec.buffer_busy),
            _ => (spec.buffer.1, Time::ZERO, spec.buffer_busy),
        };
        let rest = whole - there;
        let out = Time::from_ps(rest.as_ps() / 2);
        Latency {
            out,
            back: rest - out,
            there,
            busy,
        }
    }

    /// The tile at whose router `at` is.
    pub(super) fn tile_of(&self, at: At) -> u32 {
        match at.site {
            Site::Memory => {
                let chip = &self.space.chip;
                let position = chip.controller_at(chip.controller(at.node));
                chip.tile_at(position).unwrap_or_default()
            }
            _ => Chip::tile_of(at.node),
        }
    }

    /// The time of an access to `at` by this core where nothing is in its way.
    pub(super) fn alone(&self, at: At, of_line: bool) -> Time {
        let Latency {
            out, back, there, ..
        } = self.latency(at, self.tile, of_line);
        let chip = &self.space.chip;
        let (from, to) = (chip.position(self.tile), chip.position(self.tile_of(at)));
        let hops = u64::from(from.0.abs_diff(to.0) + from.1.abs_diff(to.1));
        out + back + there + self.spec.hop.times(2 * hops)
    }
}
