//! The packet between a node's host and its engine: HyperTransport, as far as the engine uses it.
//!
//! A packet moves whole over the engine's host port; the node adds the time its bytes need on the
//! HyperTransport link, from [`HtPacket::wire_bytes`]. What is counted (HyperTransport I/O Link
//! Specification, packet formats; without the link's periodic CRC):
//!
//! | Packet | Channel | Command | Address extension | Byte mask | Data |
//! |---|---|---|---|---|---|
//! | sized read | non-posted | 8 | 4 if the address needs more than 40 bits | – | – |
//! | posted sized write, whole doublewords | posted | 8 | likewise | – | 4 or 8 |
//! | posted sized write, single bytes | posted | 8 | likewise | 4 | 8 |
//! | read response | response | 4 | – | – | 8 |
//!
//! A global address (2^40 and above) thus takes a read of 12 and a write of 20 bytes; the engine's
//! own accesses to its node's memory take 8 and 16.

use serde::{Deserialize, Serialize};

/// HyperTransport's virtual channels, each with its own credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum HtChannel {
    /// Posted writes.
    Posted = 0,
    /// Reads.
    NonPosted = 1,
    /// Read responses.
    Response = 2,
}

impl HtChannel {
    /// All of them, in their order.
    pub const ALL: [HtChannel; 3] = [HtChannel::Posted, HtChannel::NonPosted, HtChannel::Response];
}

/// One packet, in either direction. Addresses are in bytes and name the first of eight aligned
/// bytes. `trace` is whatever an observer wants to recognize the access by; it is not on the wire,
/// and a response carries that of its read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HtPacket {
    /// Sized read of up to eight bytes.
    Read {
        /// Global address (from the host) or physical address in the node (from the engine).
        address: u64,
        /// Byte enables, bit 0 for the byte at the address.
        enables: u8,
        /// The reader's source tag, below 32; the response repeats it.
        tag: u8,
        /// The observer's.
        trace: u32,
    },
    /// Posted sized write of up to eight bytes.
    Write {
        /// Global address (from the host) or physical address in the node (from the engine).
        address: u64,
        /// Data; bit 0 belongs to the byte at the address.
        data: u64,
        /// Byte enables, bit 0 for the byte at the address.
        enables: u8,
        /// Whether the write probes the caches of the node whose memory is written.
        coherent: bool,
        /// The observer's.
        trace: u32,
    },
    /// Answers a read.
    Response {
        /// Data, or anything if `error`.
        data: u64,
        /// The source tag of the read.
        tag: u8,
        /// The read failed: nothing is at its address.
        error: bool,
        /// The observer's.
        trace: u32,
    },
}

/// Bytes of a request's command.
const COMMAND: u64 = 8;
/// Bytes that bits 40–63 of an address add.
const ADDRESS_EXTENSION: u64 = 4;
/// Bytes of the mask of a write of single bytes.
const BYTE_MASK: u64 = 4;
/// Bytes of a response's command.
const RESPONSE_COMMAND: u64 = 4;
/// Bytes of a doubleword.
const DOUBLEWORD: u64 = 4;

impl HtPacket {
    /// The channel whose credit it needs.
    pub const fn channel(&self) -> HtChannel {
        match self {
            HtPacket::Read { .. } => HtChannel::NonPosted,
            HtPacket::Write { .. } => HtChannel::Posted,
            HtPacket::Response { .. } => HtChannel::Response,
        }
    }

    /// The observer's mark.
    pub const fn trace(&self) -> u32 {
        match *self {
            HtPacket::Read { trace, .. }
            | HtPacket::Write { trace, .. }
            | HtPacket::Response { trace, .. } => trace,
        }
    }

    /// Bytes on the HyperTransport link; see the table above.
    pub const fn wire_bytes(&self) -> u64 {
        match *self {
            HtPacket::Read { address, .. } => COMMAND + extension(address),
            HtPacket::Write {
                address, enables, ..
            } => {
                let payload = match enables {
                    0xff => 2 * DOUBLEWORD,
                    0x0f | 0xf0 => DOUBLEWORD,
                    _ => BYTE_MASK + 2 * DOUBLEWORD,
                };
                COMMAND + extension(address) + payload
            }
            HtPacket::Response { .. } => RESPONSE_COMMAND + 2 * DOUBLEWORD,
        }
    }
}

const fn extension(address: u64) -> u64 {
    if address >> 40 == 0 {
        0
    } else {
        ADDRESS_EXTENSION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_documented() {
        let write = |address, enables| HtPacket::Write {
            address,
            data: 0,
            enables,
            coherent: true,
            trace: 0,
        };
        let read = |address| HtPacket::Read {
            address,
            enables: 0xff,
            tag: 0,
            trace: 0,
        };
        assert_eq!(read(1 << 40).wire_bytes(), 12);
        assert_eq!(read((1 << 40) - 8).wire_bytes(), 8);
        assert_eq!(write(1 << 40, 0xff).wire_bytes(), 20);
        assert_eq!(write(4096, 0xff).wire_bytes(), 16);
        assert_eq!(write(4096, 0xf0).wire_bytes(), 12);
        assert_eq!(write(4096, 0x01).wire_bytes(), 20);
        let response = HtPacket::Response {
            data: 1,
            tag: 2,
            error: false,
            trace: 0,
        };
        assert_eq!(response.wire_bytes(), 12);
        assert!(size_of::<HtPacket>() <= 32);
    }
}
