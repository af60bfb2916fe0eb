//! The Shared Memory Engine, block by block, cycle by cycle.
//!
//! ```text
//!            ┌────────────────────────── requester ───────┐
//!            │                                            │
//! host <─> ht_port <─── completer <──────────────────── crossbar <──> switch <──> 6 × link_port <─> links
//!            │              ┆ source tags                 │
//!            └────────> responder ────────────────────────┘
//! ```
//!
//! The switches of indirect networks, which stand outside the engines, are made of the same parts:
//! [`WideSwitch`].
//!
//! A node steps its [`Engine`] through [`EngineModel`]; the blocks use [`crate::parts::fabric`] for
//! routes. Time is the engine's clock, in cycles. Physical delays (HyperTransport core and link,
//! clock domain crossing, transceivers, wire) are not in here: the node adds them to the times of
//! what comes out.
//!
//! # Spec, state, ports
//!
//! Each block is one file: an immutable spec (all of them in a [`design::Design`] that the engines
//! of a cluster share), registers, and ports with ready and valid. Every wire between two blocks
//! ends in a FIFO of the reader ([`fifo`], [`wires`]); a wire carries a packet in a cycle if its
//! writer offers one (*valid*) and the FIFO is not full (*ready*). Both depend only on the
//! registers as they were at the beginning of the cycle, and so do the data; a block's offers are
//! functions that change nothing (`request`, `response`, `offers`, `begins`). So a cycle's result
//! does not depend on the order in which the blocks are evaluated, and hardware made of the same
//! blocks gives the same, cycle by cycle. The one allocator that looks at its readers' *ready*
//! before it chooses is the switch's.
//!
//! # When something can next change
//!
//! Offers depend on registers alone; so if nothing moved in a cycle, no tag is on its way back
//! ([`tags::Tags::latch`]) and no input comes, nothing moves in the next either. Only the
//! serializers of the link ports count cycles, and they know when they end.
//! [`EngineModel::next_cycle`] is made of these two facts.
//!
//! # Cycles through the blocks
//!
//! [`HOST_TO_LINK_CYCLES`], [`HOP_CYCLES`], [`LINK_TO_HOST_CYCLES`], [`LOOPBACK_CYCLES`]: from the
//! edge at which a packet is sampled to the cycle in which it leaves, without contention. A packet
//! that leaves over a link begins in that cycle and is delivered when its last bytes are out,
//! [`link_port::LinkPortSpec::cycles`] − 1 cycles later.

mod arbiter;
pub mod checker;
pub mod completer;
pub mod counters;
pub mod credit_checker;
pub mod crossbar;
pub mod design;
pub mod fifo;
pub mod ht;
pub mod ht_port;
mod joined;
pub mod link_port;
mod model;
pub mod packet;
pub mod passage;
mod pending_credit;
pub mod requester;
pub mod responder;
pub mod switch;
pub mod tags;
pub mod waves;
mod wide_switch;
pub mod wires;

pub use checker::{Checked, Violation};
pub(crate) use counters::ShortCount;
pub use counters::{ChannelCounters, Counters, Faults};
pub use design::{Design, DesignError};
pub use ht::{HtChannel, HtPacket};
pub use joined::Engine;
pub(crate) use joined::NEAR_BYTES;
pub use model::{EngineModel, Input, Inspect, Output, Shortcuts, Transit};
pub use packet::{Kind, Packet};
pub use passage::Passage;
pub use wide_switch::WideSwitch;

/// Cycles from a request or response of the host until it begins to leave over a link.
pub const HOST_TO_LINK_CYCLES: u64 = 5;
/// Cycles from a packet's arrival over a link until it begins to leave over the next.
pub const HOP_CYCLES: u64 = 4;
/// Cycles from a packet's arrival over a link until it leaves to the host.
pub const LINK_TO_HOST_CYCLES: u64 = 6;
/// Cycles from a request of the host to the own node until it leaves to the host's memory; the
/// response takes as many back.
pub const LOOPBACK_CYCLES: u64 = 5;

#[cfg(test)]
pub(crate) mod testbench;
#[cfg(test)]
mod tests;
