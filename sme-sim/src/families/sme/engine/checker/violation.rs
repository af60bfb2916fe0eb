//! The violations that a [checker](super) of the protocol reports.

use crate::families::sme::engine::credit_checker::Wire;
use crate::families::sme::engine::model::Output;

/// A violation of the protocol by an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A packet came out that was not next in its flow: altered, duplicated, overtaking, or after
    /// a lost one.
    #[error("{found:?} came out in cycle {cycle}; next would have been {expected:?}")]
    Unexpected {
        /// The cycle.
        cycle: u64,
        /// The output that was found.
        found: Output,
        /// The output that its flow expected, if any.
        expected: Option<Output>,
    },
    /// A packet was sent without a credit for it.
    #[error("{wire} channel {channel} carried a packet without a credit")]
    NoCredit {
        /// The wire.
        wire: Wire,
        /// The channel of the wire.
        channel: u8,
    },
    /// A credit came back that was never used.
    #[error("{wire} channel {channel} got a credit back too many")]
    TooManyCredits {
        /// The wire.
        wire: Wire,
        /// The channel of the wire.
        channel: u8,
    },
    /// In the end, a packet had not come out.
    #[error("never came out: {missing:?}, and {others} others")]
    Lost {
        /// One of them.
        missing: Output,
        /// The number of others.
        others: usize,
    },
    /// In the end, credits had not come back.
    #[error("{wire} channel {channel} misses {missing} credits")]
    CreditLost {
        /// The wire.
        wire: Wire,
        /// The channel of the wire.
        channel: u8,
        /// The number of missing credits.
        missing: u32,
    },
}
