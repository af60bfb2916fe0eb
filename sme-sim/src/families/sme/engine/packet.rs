//! The packet that travels between engines, and its bytes on a link.
//!
//! Inside an engine a [`Packet`] moves whole, in one beat; only a link port serializes it. On the
//! link it is made of little-endian 8-byte words:
//!
//! | Bytes | Word | Bits | Field |
//! |---|---|---|---|
//! | 0–7 | header | 0–1 | kind: 0 read request, 1 posted write, 2 read response, 3 error response |
//! | | | 2 | flag: a write is coherent and probes the caches of the target's node; a response is single, its data are one doubleword |
//! | | | 3–7 | source tag of the read |
//! | | | 8–27 | target node |
//! | | | 28–47 | source node |
//! | | | 48–63 | CRC-16 of all other bits |
//! | 8–15 | address (requests, writes) | 0–39 | byte offset in the target's shared partition |
//! | | | 40–47 | byte enables, bit 0 for the byte at the offset |
//! | | | 48–63 | zero |
//! | last 8 | data (writes, responses) | 0–63 | data |
//!
//! So a read request and a response have 16 bytes, a posted write 24. The CRC is CRC-16/IBM-3740
//! (polynomial 0x1021, initial value 0xffff; often called CRC-16/CCITT-FALSE) over 24 bytes:
//! header, with the CRC field zero, address and data. A word that the packet does not carry counts
//! as zero, so that hardware needs one sum for all kinds.
//!
//! A *long* read asks for two, four or eight words. It has the flag set and, in the place of the
//! byte enables, the number of extra words, those after the first; its response has 8 bytes more
//! for each of them. The published engine and the RTL have no such reads. An engine that has them
//! is assumed to move the longest packet in one beat, as any other, into one place of a FIFO; only
//! links take longer for it. A [`Packet`] holds the first word: the simulator brings the extra
//! words to the reader's node apart, and neither [`Packet::encode`] nor the CRC has them.
//!
//! [`View`] is a typed view of received bytes; [`Packet::encode`] makes the bytes.

use crate::parts::fabric::Class;
use crc::{CRC_16_IBM_3740, Crc};
use serde::{Deserialize, Serialize};

/// Bytes of the longest packet without extra words, a posted write.
pub const MAX_BYTES: usize = 24;

/// Words of the longest packet: the response to a read of eight.
pub const MAX_WORDS: usize = RESPONSE_HEADER_BYTES as usize / 8 + 8;

/// Bytes of a response besides its data.
pub const RESPONSE_HEADER_BYTES: u64 = 8;

/// Nodes that a packet can name: 20 bits.
pub const MAX_NODES: u32 = 1 << 20;

/// Offsets that a packet can name: 40 bits.
pub const MAX_OFFSET: u64 = 1 << 40;

const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);
/// The bytes of the CRC.
const CRC_BYTES: std::ops::Range<usize> = 6..8;
/// The bit of the header at which the CRC begins.
const CRC_BIT: u32 = 48;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// Asks for up to eight bytes, or for two, four or eight words.
    ReadRequest = 0,
    /// Carries up to eight bytes to be written; it is not answered.
    PostedWrite = 1,
    /// Answers a read request.
    ReadResponse = 2,
    /// Answers a read request that failed at the target.
    ErrorResponse = 3,
}

impl Kind {
    /// Length on a link, of a packet without extra words.
    pub const fn bytes(self) -> u64 {
        if matches!(self, Kind::PostedWrite) {
            24
        } else {
            16
        }
    }

    /// Requests and responses travel on separate virtual channels.
    pub const fn class(self) -> Class {
        match self {
            Kind::ReadRequest | Kind::PostedWrite => Class::Request,
            Kind::ReadResponse | Kind::ErrorResponse => Class::Response,
        }
    }

    /// Returns whether it carries an address and byte enables.
    pub const fn has_address(self) -> bool {
        matches!(self, Kind::ReadRequest | Kind::PostedWrite)
    }

    /// Returns whether it carries data.
    pub const fn has_data(self) -> bool {
        !matches!(self, Kind::ReadRequest)
    }

    /// The kind of this number, of which the two lowest bits count.
    pub const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Kind::ReadRequest,
            1 => Kind::PostedWrite,
            2 => Kind::ReadResponse,
            _ => Kind::ErrorResponse,
        }
    }
}

/// A packet of the network. Fields that its kind does not carry are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Packet {
    /// Data (writes and responses), little-endian: bit 0 belongs to the byte at the offset.
    pub data: u64,
    /// Byte offset in the target's shared partition (requests and writes), below 2^40.
    pub offset: u64,
    /// The node it goes to, below 2^20.
    pub target: u32,
    /// The node it comes from, below 2^20.
    pub source: u32,
    /// A number by which an observer recognizes it. Not on the wire; a response carries that of its
    /// request.
    pub trace: u32,
    /// Its kind.
    pub kind: Kind,
    /// Of a write: it is coherent, and probes the caches of the target's node. Of a response: it is
    /// single, as [`HtPacket::Response`](super::HtPacket) says. Of a read: it is long.
    pub flag: bool,
    /// The requester's source tag, below 32 (reads and responses).
    pub tag: u8,
    /// Byte enables (requests and writes). Of a long read and of its response: the
    /// [extra words](Self::extra_words).
    pub enables: u8,
}

impl Packet {
    /// The class it travels in.
    pub const fn class(&self) -> Class {
        self.kind.class()
    }

    /// Length on a link.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        match self.kind {
            Kind::ReadRequest | Kind::PostedWrite => self.kind.bytes(),
            _ => self.kind.bytes() + 8 * self.extra_words() as u64,
        }
    }

    /// Words besides the first that a read asks for or a response brings.
    #[inline]
    pub const fn extra_words(&self) -> u8 {
        match self.kind {
            Kind::PostedWrite => 0,
            Kind::ReadRequest if !self.flag => 0,
            _ => self.enables,
        }
    }

    /// Its CRC on the link. Bits beyond a field's width, and fields foreign to its kind, do not
    /// count.
    pub fn crc(&self) -> u16 {
        crc(self.words().map(|word| word.unwrap_or(0)))
    }

    /// Header without the CRC, address and data, as far as it carries them.
    fn words(&self) -> [Option<u64>; 3] {
        let header = self.kind as u64
            | u64::from(self.flag) << 2
            | u64::from(self.tag & 31) << 3
            | u64::from(self.target % MAX_NODES) << 8
            | u64::from(self.source % MAX_NODES) << 28;
        let address = (self.offset % MAX_OFFSET) | (u64::from(self.enables) << 40);
        [
            Some(header),
            self.kind.has_address().then_some(address),
            self.kind.has_data().then_some(self.data),
        ]
    }

    /// The bytes on the link. Bits beyond a field's width are cut off; `trace` is not sent.
    pub fn encode(&self) -> Encoded {
        let mut encoded = Encoded {
            bytes: [0; MAX_BYTES],
            length: 0,
        };
        self.words()
            .into_iter()
            .flatten()
            .for_each(|word| encoded.append(word));
        encoded.bytes[CRC_BYTES].copy_from_slice(&self.crc().to_le_bytes());
        encoded
    }
}

/// The CRC of a packet's header, of which the CRC field does not count, address and data.
fn crc([header, address, data]: [u64; 3]) -> u16 {
    let mut digest = CRC.digest();
    for word in [header & !(u64::MAX << CRC_BIT), address, data] {
        digest.update(&word.to_le_bytes());
    }
    digest.finalize()
}

/// A packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Encoded {
    /// The bytes in the order in which they leave.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn append(&mut self, word: u64) {
        self.bytes[self.length..self.length + 8].copy_from_slice(&word.to_le_bytes());
        self.length += 8;
    }
}

/// Checked bytes of one packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Takes `bytes` for one packet.
    ///
    /// # Errors
    /// A length that is not that of its kind, a CRC that does not match, reserved bits or fields
    /// foreign to its kind that are not zero.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, WireError> {
        let found = bytes.len();
        if found < 8 {
            return Err(WireError::Length {
                expected: 16,
                found,
            });
        }
        let view = View { bytes };
        let expected = view.kind().bytes() as usize;
        if found != expected {
            return Err(WireError::Length { expected, found });
        }
        let kind = view.kind();
        let address = if kind.has_address() { view.word(1) } else { 0 };
        let computed = crc([view.word(0), address, view.data().unwrap_or(0)]);
        let received = (view.word(0) >> CRC_BIT) as u16;
        if computed != received {
            return Err(WireError::Crc { computed, received });
        }
        let foreign = (kind.has_address() && address >> 48 != 0)
            || (kind == Kind::ReadRequest && view.flag())
            || (kind == Kind::PostedWrite && view.tag() != 0);
        if foreign {
            return Err(WireError::Reserved);
        }
        Ok(view)
    }

    /// Returns the kind of the packet.
    pub fn kind(&self) -> Kind {
        Kind::from_bits(self.word(0))
    }

    /// Returns whether the write probes caches, or the response is one doubleword.
    pub fn flag(&self) -> bool {
        self.word(0) >> 2 & 1 == 1
    }

    /// Source tag of the read.
    pub fn tag(&self) -> u8 {
        (self.word(0) >> 3 & 31) as u8
    }

    /// The node it goes to.
    pub fn target(&self) -> u32 {
        (self.word(0) >> 8) as u32 % MAX_NODES
    }

    /// The node it comes from.
    pub fn source(&self) -> u32 {
        (self.word(0) >> 28) as u32 % MAX_NODES
    }

    /// Offset in the target's shared partition; `None` in a response.
    pub fn offset(&self) -> Option<u64> {
        self.kind().has_address().then(|| self.word(1) % MAX_OFFSET)
    }

    /// Byte enables; `None` in a response.
    pub fn enables(&self) -> Option<u8> {
        self.kind()
            .has_address()
            .then(|| (self.word(1) >> 40) as u8)
    }

    /// Data; `None` in a read request.
    pub fn data(&self) -> Option<u64> {
        self.kind()
            .has_data()
            .then(|| self.word(self.bytes.len() / 8 - 1))
    }

    /// The packet, with trace 0.
    pub fn packet(&self) -> Packet {
        Packet {
            data: self.data().unwrap_or(0),
            offset: self.offset().unwrap_or(0),
            target: self.target(),
            source: self.source(),
            trace: 0,
            kind: self.kind(),
            flag: self.flag(),
            tag: self.tag(),
            enables: self.enables().unwrap_or(0),
        }
    }

    fn word(&self, index: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[index * 8..index * 8 + 8]);
        u64::from_le_bytes(word)
    }
}

/// The reason why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not as long as a packet of its kind.
    #[error("a packet of this kind has {expected} bytes, not {found}")]
    Length {
        /// Bytes of a packet of this kind.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Corrupted on the way.
    #[error("CRC is {received:#06x} but the bytes give {computed:#06x}")]
    Crc {
        /// Of the bytes.
        computed: u16,
        /// In the header.
        received: u16,
    },
    /// A reserved bit, or a field that this kind does not carry, is not zero.
    #[error("a reserved bit is set")]
    Reserved,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any packet as its kind carries it.
    fn any_packet() -> impl Strategy<Value = Packet> {
        let ids = (0..MAX_NODES, 0..MAX_NODES, 0u8..32, any::<bool>());
        (0u64..4, any::<u64>(), 0..MAX_OFFSET, any::<u8>(), ids).prop_map(
            |(kind, data, offset, enables, (target, source, tag, flag))| {
                let kind = Kind::from_bits(kind);
                Packet {
                    data: if kind.has_data() { data } else { 0 },
                    offset: if kind.has_address() { offset } else { 0 },
                    target,
                    source,
                    trace: 0,
                    kind,
                    flag: flag && kind != Kind::ReadRequest,
                    tag: if kind == Kind::PostedWrite { 0 } else { tag },
                    enables: if kind.has_address() { enables } else { 0 },
                }
            },
        )
    }

    #[test]
    fn bytes_are_where_the_table_says() {
        let write = Packet {
            data: 0x0807_0605_0403_0201,
            offset: 0xa5_4433_2211,
            target: 0xabcde,
            source: 0x12345,
            trace: 99,
            kind: Kind::PostedWrite,
            flag: true,
            tag: 0,
            enables: 0x0f,
        };
        let encoded = write.encode();
        let bytes = encoded.as_bytes();
        assert_eq!(bytes[..6], [0b0000_0101, 0xde, 0xbc, 0x5a, 0x34, 0x12]);
        assert_eq!(bytes[8..16], [0x11, 0x22, 0x33, 0x44, 0xa5, 0x0f, 0, 0]);
        assert_eq!(bytes[16..], [1, 2, 3, 4, 5, 6, 7, 8]);
        let response = Packet {
            kind: Kind::ReadResponse,
            flag: false,
            tag: 0b10110,
            ..write
        };
        assert_eq!(response.encode().as_bytes()[0], 0b1011_0010);
        assert_eq!(response.encode().as_bytes().len(), 16);
    }

    #[test]
    fn the_crc_is_the_one_documented() {
        // The check value that catalogues give for CRC-16/IBM-3740.
        assert_eq!(CRC.checksum(b"123456789"), 0x29b1);
        assert!(size_of::<Packet>() <= 32);
    }

    #[test]
    fn a_word_that_is_not_sent_counts_as_zero_in_the_crc() {
        let response = Packet {
            data: 0x0807_0605_0403_0201,
            target: 0xabcde,
            source: 0x12345,
            kind: Kind::ReadResponse,
            tag: 22,
            offset: 0,
            trace: 0,
            flag: false,
            enables: 0,
        };
        let encoded = response.encode();
        let (header, data) = encoded.as_bytes().split_at(8);
        let padded = [&header[..6], &[0; 10], data].concat();
        assert_eq!(header[6..], CRC.checksum(&padded).to_le_bytes());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_parsed(packet in any_packet()) {
            let encoded = packet.encode();
            prop_assert_eq!(encoded.as_bytes().len() as u64, packet.bytes());
            prop_assert_eq!(View::new_checked(encoded.as_bytes()).unwrap().packet(), packet);
        }

        #[test]
        fn corrupted_bytes_are_detected(packet in any_packet(), byte in 0usize..24, flip in 1u8..) {
            let encoded = packet.encode();
            let mut bytes = encoded.as_bytes().to_vec();
            let byte = byte % bytes.len();
            bytes[byte] ^= flip;
            prop_assert!(View::new_checked(&bytes).is_err());
        }

        #[test]
        fn no_bytes_panic_and_what_parses_is_normal(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            if let Ok(view) = View::new_checked(&bytes) {
                let encoded = view.packet().encode();
                prop_assert_eq!(encoded.as_bytes(), &bytes[..]);
            }
        }

        #[test]
        fn foreign_bits_are_refused_even_with_a_good_crc(packet in any_packet(), bit in 112usize..128) {
            prop_assume!(packet.kind.has_address());
            let mut bytes = packet.encode().as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let view = View { bytes: &bytes };
            let crc = crc([view.word(0), view.word(1), view.data().unwrap_or(0)]);
            bytes[CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
            prop_assert_eq!(View::new_checked(&bytes).unwrap_err(), WireError::Reserved);
        }
    }
}
