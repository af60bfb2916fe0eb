//! A credit on its way to a counter: presented to the engine, and not sampled yet.

use super::ht::HtChannel;
use super::wires::port_and_channel;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};

/// A credit and the edge from which on it counts, in one word; ordered by that edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PendingCredit(u64);

/// The buffer of which a place is free again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Credit {
    Link { port: u16, channel: u8 },
    Host(HtChannel),
}

impl PendingCredit {
    const BITS: u32 = 5;
    /// Numbers from here on are the host's channels.
    const HOST: u64 = (LINK_PORTS * CHANNELS) as u64;

    /// Of `credit`, which counts from edge `cycle` on.
    pub(super) fn new(cycle: u64, credit: Credit) -> Self {
        let number = match credit {
            Credit::Link { port, channel } => port as u64 * CHANNELS as u64 + channel as u64,
            Credit::Host(channel) => Self::HOST + channel as u64,
        };
        Self(cycle << Self::BITS | number)
    }

    /// The edge.
    pub(super) fn cycle(self) -> u64 {
        self.0 >> Self::BITS
    }

    /// Returns whether it is the host's.
    pub(super) fn is_hosts(self) -> bool {
        self.0 & ((1 << Self::BITS) - 1) >= Self::HOST
    }

    /// Returns the buffer of which a place is free again.
    pub(super) fn credit(self) -> Credit {
        let number = self.0 & ((1 << Self::BITS) - 1);
        match number.checked_sub(Self::HOST) {
            Some(channel) => Credit::Host(HtChannel::ALL[channel as usize]),
            None => {
                let (port, channel) = port_and_channel(number as u32);
                Credit::Link { port, channel }
            }
        }
    }
}

// Ports and channels of links and host fit.
const _: () = assert!(PendingCredit::HOST + 3 <= 1 << PendingCredit::BITS);
