//! An engine as its node sees it: the ports, cycle by cycle.
//!
//! The cycle model implements [`EngineModel`]; so can its RTL, or a decorator that checks, traces
//! or injects faults.

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::ht::{HtChannel, HtPacket};
use super::joined::Engine;
use super::packet::Packet;

/// An input that an engine samples at an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Input {
    /// A packet of the host, which must hold a credit of the packet's channel.
    Host(HtPacket),
    /// The host has a place again.
    HostCredit(HtChannel),
    /// A packet from a link, whose sender must hold a credit of the channel.
    Link {
        /// Link port: `0..6`; of a switch outside the engines, below its radix.
        port: u16,
        /// Virtual channel, `0..4`.
        channel: u8,
        /// The packet.
        packet: Packet,
    },
    /// The receiver at the other end of a link has a place again.
    LinkCredit {
        /// Link port: `0..6`; of a switch outside the engines, below its radix.
        port: u16,
        /// Virtual channel, `0..4`.
        channel: u8,
    },
}

/// An output of an engine in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Output {
    /// A packet to the host.
    Host(HtPacket),
    /// The engine's HyperTransport port has a place again.
    HostCredit(HtChannel),
    /// A packet whose last bytes leave over a link in this cycle.
    Link {
        /// Link port: `0..6`; of a switch outside the engines, below its radix.
        port: u16,
        /// Virtual channel, `0..4`.
        channel: u8,
        /// The packet.
        packet: Packet,
    },
    /// The receive buffer of a link port has a place again.
    LinkCredit {
        /// Link port: `0..6`; of a switch outside the engines, below its radix.
        port: u16,
        /// Virtual channel, `0..4`.
        channel: u8,
    },
}

/// The passage of a packet from one link to another without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// The edge at which its place in the receive buffer is free again: a [`Output::LinkCredit`] of
    /// the port and channel it came by.
    pub freed: u64,
    /// The edge at which its last bytes leave: an [`Output::Link`].
    pub delivered: u64,
    /// The link port it leaves by.
    pub port: u16,
    /// Its virtual channel there.
    pub channel: u8,
}

/// An engine, cycle by cycle.
pub trait EngineModel: Send {
    /// The next edge, after the last one stepped, at which anything can happen without new input;
    /// `None` when idle. Stepping other edges as well changes nothing.
    fn next_cycle(&self) -> Option<u64>;

    /// Presents an input, which is sampled at edge `cycle`; edges up to the last one stepped are
    /// over. Inputs may be presented in any order, ahead of time too, with one exception: what
    /// one port's channel carries at one edge is taken in the order in which it was presented
    /// (and writes and reads of the host count as one channel: reads do not overtake writes).
    fn input(&mut self, cycle: u64, input: Input);

    /// Performs edge `cycle` and appends its outputs in this order: `Host`; `HostCredit` by
    /// channel; `Link` by port; `LinkCredit` by port, then channel. Each of them occurs at most
    /// once a cycle for its port (credits: for its port and channel).
    fn step(&mut self, cycle: u64, out: &mut Vec<Output>);
}

/// Ways to the same outputs with fewer edges stepped. None of them changes the outputs or their
/// times; a model without shortcuts implements no method of this trait.
pub trait Shortcuts: EngineModel {
    /// Appends the outputs that no later input can change, with their edges: a packet whose first
    /// bytes are on a link. [`step`](EngineModel::step) does not give it again,
    /// and no edge is needed for it. A model that cannot tell appends nothing.
    fn foresee(&mut self, _out: &mut Vec<(u64, Output)>) {}

    /// Takes a packet that the link of `port` carries in `channel` at edge `cycle`, where every
    /// other packet of a link up to that edge has been presented before and every edge before it
    /// that matters has been stepped. If no later input can change that the packet passes on, it
    /// does so at once: [`step`](EngineModel::step) gives nothing of it, and no edge is needed for
    /// it. If not, or if the model cannot tell, it is not taken, and remains to be
    /// [presented](EngineModel::input).
    fn transit(
        &mut self,
        _cycle: u64,
        _port: u16,
        _channel: u8,
        _packet: &Packet,
    ) -> Option<Transit> {
        None
    }

    /// Takes a credit of a link that was to be sampled at an earlier edge than anything is that has
    /// not been presented, and than any edge that is still to be stepped, if it can count at once;
    /// if not, it remains to be [presented](EngineModel::input).
    fn late_credit(&mut self, _port: u16, _channel: u8) -> bool {
        false
    }

    /// Prefetches what a packet or a credit of a link has to do with besides the engine's
    /// beginning.
    fn prefetch(&self, _coming: &Input) {}

    /// Returns whether a credit of a link may change what happens next; if not, it need not be
    /// presented before the next edge that is stepped anyhow.
    fn awaits_link_credits(&self) -> bool {
        true
    }
}

/// An engine that can be looked into when it stands still.
pub trait Inspect: Shortcuts {
    /// Returns the counters so far.
    fn counters(&self) -> Counters;

    /// Returns whether nothing is under way: every buffer empty, every tag free, every credit back,
    /// as far as can be seen.
    fn is_quiet(&self) -> bool;

    /// Bytes of state, the heap's included, without what all engines share.
    fn state_bytes(&self) -> usize;
}

impl Inspect for Engine {
    fn counters(&self) -> Counters {
        Engine::counters(self)
    }

    fn is_quiet(&self) -> bool {
        Engine::is_quiet(self)
    }

    fn state_bytes(&self) -> usize {
        Engine::state_bytes(self)
    }
}
