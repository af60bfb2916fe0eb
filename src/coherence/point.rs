//! The experiments of which figures are made: a pass, a copy or a transfer on one of the two nodes
//! of the paper.
//!
//! Read by [`super::figures`] and by the estimators of `sme validate`.

use std::fmt;

use super::bench::{Bench, BenchError};
use super::model::Flush;
use super::transfer::Transfer;
use super::transition::{Curve, Holder};

/// The two nodes of the paper (Sec. III-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Two sockets of Xeon E5-2650.
    Intel,
    /// Four sockets of Opteron 6272.
    Amd,
}

impl Node {
    /// The built-in machine.
    pub fn machine(self) -> &'static str {
        match self {
            Self::Intel => "xeon-e5-2650",
            Self::Amd => "opteron-6272",
        }
    }
}

/// An experiment with a buffer or a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A pass of loads or stores.
    Pass(Curve),
    /// The receiver's copy out of a buffer that such a core has written.
    ReceiverCopy(Holder),
    /// The sender's copy into a buffer that such a core has read.
    SenderCopy(Holder, Flush),
    /// A transfer of messages; its own size and rounds do not count.
    Transfer(Transfer),
}

impl What {
    /// The throughput with so many bytes, in 10^9 bytes per second.
    ///
    /// # Errors
    /// As [`BenchError`] says.
    pub fn gb_per_s(self, bench: &Bench, bytes: u64) -> Result<f64, BenchError> {
        match self {
            Self::Pass(curve) => bench.throughput(curve, bytes),
            Self::ReceiverCopy(holder) => bench.receiver_copy(holder, bytes),
            Self::SenderCopy(holder, flush) => bench.sender_copy(holder, bytes, flush),
            Self::Transfer(transfer) => {
                let transfer = Transfer {
                    message_bytes: bytes,
                    rounds: rounds(bytes),
                    ..transfer
                };
                transfer.gb_per_s(bench)
            }
        }
    }

    /// Grows with what its simulation costs.
    pub fn cost(self, bytes: u64) -> u64 {
        match self {
            Self::Transfer(_) => bytes * u64::from(4 * rounds(bytes)),
            _ => 3 * bytes,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass(curve) => write!(f, "{curve}"),
            Self::ReceiverCopy(_) => f.write_str("a receiver's copy"),
            Self::SenderCopy(..) => f.write_str("a sender's copy"),
            Self::Transfer(_) => f.write_str("a transfer"),
        }
    }
}

/// The rounds of a transfer of so many bytes: a large message has chunks enough to be steady in its
/// first round.
fn rounds(bytes: u64) -> u32 {
    match bytes > 2 << 20 {
        true => 1,
        false => 2,
    }
}

/// Powers of two times `from`, up to `to`.
pub fn sizes(from: u64, to: u64) -> impl Iterator<Item = u64> + Clone {
    std::iter::successors(Some(from), |bytes| Some(2 * bytes)).take_while(move |&bytes| bytes <= to)
}
