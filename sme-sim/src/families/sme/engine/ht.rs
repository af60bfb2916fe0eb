//! The packet between a node's host and its engine: HyperTransport, as far as the engine uses it.
//!
//! A packet moves whole over the engine's host port, where it is made of [`Doublewords`]; the node
//! adds the time its bytes need on the HyperTransport link, from [`HtPacket::wire_bytes`]. Their
//! number (HyperTransport I/O Link Specification, packet formats; without the link's periodic CRC):
//!
//! | Packet | Channel | Command | Address extension | Byte mask | Data |
//! |---|---|---|---|---|---|
//! | sized read | non-posted | 8 | 4 if the address needs more than 40 bits | – | – |
//! | posted sized write, all eight bytes | posted | 8 | as a read's | – | 8 |
//! | posted sized write, other bytes | posted | 8 | as a read's | 4 | 8 |
//! | read response | response | 4 | – | – | 4 or 8, as was asked for; 8 for each word of a long read |
//!
//! A global address (2^40 and above) thus takes a read of 12 and a write of 20 bytes; the engine's
//! own accesses to its node's memory take 8 and 16. The count of a command has room for a long read
//! of up to 64 bytes.

pub mod doublewords;

pub use doublewords::Doublewords;

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
/// bytes. `trace` is a number by which an observer recognizes the access; it is not on the wire,
/// and a response carries that of its read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HtPacket {
    /// Sized read of up to eight bytes, or of two, four or eight words.
    Read {
        /// Global address (from the host) or physical address in the node (from the engine).
        address: u64,
        /// Byte enables, bit 0 for the byte at the address. Of bytes in both doublewords a read is
        /// a read of all eight.
        enables: u8,
        /// Whole words read after that at the address; only line fills have them.
        extra_words: u8,
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
        /// Data, or anything if `error`. Bit 0 belongs to the first doubleword that was asked for:
        /// [`HtPacket::placed`] puts it where it stands.
        data: u64,
        /// One doubleword, and not two: all bytes that were asked for are in one, see
        /// [`HtPacket::is_single`].
        single: bool,
        /// Words besides that in `data`, which the simulator brings to the reader apart.
        extra_words: u8,
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

    /// Words besides the first that are asked for or brought.
    pub const fn extra_words(&self) -> u8 {
        match *self {
            HtPacket::Read { extra_words, .. } | HtPacket::Response { extra_words, .. } => {
                extra_words
            }
            HtPacket::Write { .. } => 0,
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

    /// Returns whether nothing of it is lost on HyperTransport, see [`HtPacket::encode`]. Long
    /// reads are exempt: no engine in RTL has them.
    pub fn is_exact(&self) -> bool {
        if self.extra_words() > 0 {
            return true;
        }
        let mut decoded = self.encode().decode();
        let (HtPacket::Read { trace, .. }
        | HtPacket::Write { trace, .. }
        | HtPacket::Response { trace, .. }) = &mut decoded;
        *trace = self.trace();
        decoded == *self
    }

    /// Returns whether the answer to a read of these bytes is one doubleword.
    pub const fn is_single(enables: u8) -> bool {
        enables & 0x0f == 0 || enables & 0xf0 == 0
    }

    /// Returns whether that doubleword is the upper of the eight bytes.
    const fn is_upper(enables: u8) -> bool {
        enables & 0x0f == 0 && enables & 0xf0 != 0
    }

    /// The data of the answer to a read of the bytes `enables` among the eight of `word`.
    pub const fn answer(enables: u8, word: u64) -> u64 {
        let first = if Self::is_upper(enables) {
            word >> 32
        } else {
            word
        };
        if Self::is_single(enables) {
            first & u32::MAX as u64
        } else {
            first
        }
    }

    /// The reverse: the data of an answer among their eight bytes.
    pub const fn placed(enables: u8, data: u64) -> u64 {
        if Self::is_upper(enables) {
            data << 32
        } else {
            data
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
                    _ => BYTE_MASK + 2 * DOUBLEWORD,
                };
                COMMAND + extension(address) + payload
            }
            HtPacket::Response { single: true, .. } => RESPONSE_COMMAND + DOUBLEWORD,
            HtPacket::Response {
                single: false,
                extra_words,
                ..
            } => RESPONSE_COMMAND + 2 * DOUBLEWORD * (1 + extra_words as u64),
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
            extra_words: 0,
            address,
            enables: 0xff,
            tag: 0,
            trace: 0,
        };
        assert_eq!(read(1 << 40).wire_bytes(), 12);
        assert_eq!(read((1 << 40) - 8).wire_bytes(), 8);
        assert_eq!(write(1 << 40, 0xff).wire_bytes(), 20);
        assert_eq!(write(4096, 0xff).wire_bytes(), 16);
        assert_eq!(write(4096, 0xf0).wire_bytes(), 20);
        assert_eq!(write(4096, 0x01).wire_bytes(), 20);
        let response = |single| HtPacket::Response {
            extra_words: 0,
            data: 1,
            single,
            tag: 2,
            error: false,
            trace: 0,
        };
        assert_eq!(response(false).wire_bytes(), 12);
        assert_eq!(response(true).wire_bytes(), 8);
        assert!(size_of::<HtPacket>() <= 32);
    }

    #[test]
    fn an_answer_has_the_doublewords_that_were_asked_for() {
        let word = 0x8877_6655_4433_2211;
        for (enables, single, data) in [
            (0xff, false, word),
            (0x18, false, word),
            (0x0f, true, 0x4433_2211),
            (0x00, true, 0x4433_2211),
            (0xf0, true, 0x8877_6655),
            (0x80, true, 0x8877_6655),
        ] {
            assert_eq!(HtPacket::is_single(enables), single, "{enables:#x}");
            assert_eq!(HtPacket::answer(enables, word), data, "{enables:#x}");
            let bytes = (0..8).filter(|byte| enables >> byte & 1 == 1);
            let mask = bytes.fold(0, |mask, byte| mask | 0xff << (8 * byte));
            assert_eq!(HtPacket::placed(enables, data) & mask, word & mask);
        }
    }
}
