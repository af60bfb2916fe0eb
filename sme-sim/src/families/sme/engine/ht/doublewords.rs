//! A HyperTransport packet's doublewords (HyperTransport I/O Link Specification, packet formats).
//!
//! Each has a place of its own, so that hardware finds them without counting; one that a packet
//! does not have means nothing, but an address extension, which is zero then. On the link those
//! that it has follow each other without gaps ([`Doublewords::on_link`]).
//!
//! | Place | Bits | Field |
//! |---|---|---|
//! | extension | 0–5 | 111110, if the packet has one |
//! | | 8–31 | address, bits 40–63 |
//! | command of a request, two doublewords | 0–5 | 01xxxx sized read, 101xxx posted sized write; bit 2: of doublewords, and not bytes; bit 0: coherent |
//! | | 16–20 | source tag (reads) |
//! | | 22–25 | count; of a read of bytes, the mask of its doubleword |
//! | | 26–63 | address, bits 2–39 |
//! | command of a response, one doubleword | 0–5 | 110000 |
//! | | 16–20 | source tag |
//! | | 21, 29 | the read failed: both, no node is at its address |
//! | | 22–25 | count |
//! | mask | 0–31 | which bytes are written, of the 32 around the address (writes of bytes) |
//! | data | 0–63 | the first doubleword, and the second |
//!
//! A count is that of the doublewords behind the command, less one; so a write of bytes counts its
//! mask, and a read of doublewords those of its response. Of a response to a long read only the
//! first two doublewords are here, see [`packet`](crate::families::sme::engine::packet). A write of
//! all eight bytes is one of doublewords here, any other one of bytes, with its mask and both
//! doublewords; who sends the engine something may choose otherwise.
//!
//! The coherent bit is not used as intended: the specification has hosts set it in all requests
//! that are not for their own memory, so that a real one would store coherently only. Here the
//! machine chooses, for all its stores
//! ([`UncachedSpec::coherent_stores`](crate::families::sme::spec::UncachedSpec::coherent_stores)).
//!
//! Unit, sequence, *pass posted writes*, a posted write's *data error* and the other bits concern
//! the HyperTransport core in front of the engine: they are zero here and not looked at.
//!
//! # What is no access of the engine's
//!
//! [`Doublewords::decode`] takes anything, as the hardware must. The command chooses the channel:
//! 110xxx is a response, 0xxxxx and the atomic 111101 are requests that are answered, the other
//! 1xxxxx are posted. A request that is no sized read or write of up to eight aligned bytes is a
//! read or write of no node: the upper 24 bits of its address become ones. So it is dropped and
//! counted, or answered with an error: by a read response of one doubleword or two, regardless of
//! the length asked for. A core that wants another answer for what is not the engine's gives it
//! itself. A response that is no read response says that the read failed. Mask bits of bytes
//! without data do not count, nor do bits 0–5 of an extension.

use super::{HtChannel, HtPacket};

/// The doublewords of a packet, each at its place. See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Doublewords {
    /// Address extension.
    pub extension: u32,
    /// Command; of a response, the lower half.
    pub command: u64,
    /// Byte mask.
    pub mask: u32,
    /// Data, the first doubleword in the lower half.
    pub data: u64,
}

const EXTENSION: u64 = 0b11_1110;
const SIZED_READ: u64 = 0b01_0000;
const POSTED_WRITE: u64 = 0b10_1000;
const READ_RESPONSE: u64 = 0b11_0000;
const ATOMIC: u64 = 0b11_1101;
/// In the command of a sized read or write.
const OF_DOUBLEWORDS: u64 = 0b100;
const COHERENT: u64 = 0b1;

const CODE: u64 = 0b11_1111;
const TAG: u32 = 16;
const COUNT: u32 = 22;
/// Of a request, the address from bit 2 on.
const ADDRESS: u32 = 26;
/// Of a response.
const ERRORS: u64 = 1 << 21 | 1 << 29;
/// Bits of an address that need no extension.
const ADDRESS_BITS: u32 = 40;
/// Bits of the address of what is no access of the engine's.
const NOWHERE: u64 = u64::MAX << ADDRESS_BITS;

/// The extent of a sized read or write: its first byte among eight, and its length.
struct Sized {
    /// With the second of the two doublewords, and not with the first.
    upper: bool,
    of_doublewords: bool,
    count: u64,
}

impl HtPacket {
    /// Encodes the packet as doublewords. Of the enables of a read it may be lost which of the
    /// bytes in both doublewords; of a response, the second of two doublewords if it is single.
    pub fn encode(&self) -> Doublewords {
        match *self {
            HtPacket::Read {
                address,
                enables,
                extra_words,
                tag,
                trace: _,
            } => {
                let (low, high) = (u64::from(enables & 15), u64::from(enables >> 4));
                let (of_doublewords, upper, count) = match (low, high) {
                    (15, 0) => (true, false, 0),
                    (0, 15) => (true, true, 0),
                    (mask, 0) => (false, false, mask),
                    (0, mask) => (false, true, mask),
                    _ => (true, false, 1 + 2 * u64::from(extra_words)),
                };
                let sized = Sized {
                    upper,
                    of_doublewords,
                    count,
                };
                let command = SIZED_READ | COHERENT | u64::from(tag & 31) << TAG;
                Doublewords::request(address, command, &sized)
            }
            HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace: _,
            } => {
                let whole = enables == 0xff;
                let sized = Sized {
                    upper: false,
                    of_doublewords: whole,
                    // Two doublewords, or two and the mask, less one.
                    count: if whole { 1 } else { 2 },
                };
                let command = POSTED_WRITE | if coherent { COHERENT } else { 0 };
                Doublewords {
                    mask: u32::from(enables) << (address & 0x18),
                    data,
                    ..Doublewords::request(address, command, &sized)
                }
            }
            HtPacket::Response {
                data,
                single,
                extra_words,
                tag,
                error,
                trace: _,
            } => {
                let errors = if error { ERRORS } else { 0 };
                let count = u64::from(!single) + 2 * u64::from(extra_words);
                Doublewords {
                    command: READ_RESPONSE | u64::from(tag & 31) << TAG | count << COUNT | errors,
                    data,
                    ..Doublewords::default()
                }
            }
        }
    }
}

impl Doublewords {
    fn request(address: u64, command: u64, sized: &Sized) -> Self {
        let first = address & !7 | if sized.upper { 4 } else { 0 };
        let of_doublewords = if sized.of_doublewords {
            OF_DOUBLEWORDS
        } else {
            0
        };
        let above = first >> ADDRESS_BITS;
        let extension = if above == 0 {
            0
        } else {
            EXTENSION | above << 8
        };
        Self {
            extension: extension as u32,
            command: command | of_doublewords | sized.count << COUNT | first >> 2 << ADDRESS,
            mask: 0,
            data: 0,
        }
    }

    /// The six bits of the command that say what it is.
    pub fn code(&self) -> u64 {
        self.command & CODE
    }

    /// The channel whose credit it needs.
    pub fn channel(&self) -> HtChannel {
        match self.code() {
            ATOMIC => HtChannel::NonPosted,
            code if code >> 3 == READ_RESPONSE >> 3 => HtChannel::Response,
            code if code >> 5 == 1 => HtChannel::Posted,
            _ => HtChannel::NonPosted,
        }
    }

    /// The packet for which an engine without long reads takes it, with trace 0.
    pub fn decode(&self) -> HtPacket {
        let (trace, tag) = (0, (self.command >> TAG & 31) as u8);
        match self.channel() {
            HtChannel::NonPosted => {
                let sized = self.sized();
                let lower = match (sized.of_doublewords, sized.count & 1) {
                    (false, _) => sized.count as u8,
                    (true, 0) => 0x0f,
                    (true, _) => 0xff,
                };
                let fits = if sized.of_doublewords {
                    sized.fits(sized.count)
                } else {
                    true
                };
                HtPacket::Read {
                    address: self.address(self.code() >> 4 == SIZED_READ >> 4 && fits),
                    enables: if sized.upper && lower != 0xff {
                        lower << 4
                    } else {
                        lower
                    },
                    extra_words: 0,
                    tag,
                    trace,
                }
            }
            HtChannel::Posted => {
                let sized = self.sized();
                let mask = (self.mask >> (self.command >> (ADDRESS - 2) & 0x18)) as u8;
                // Of bytes, the mask is one of the doublewords.
                let (single, enables, fits) = if sized.of_doublewords {
                    (sized.count & 1 == 0, 0xff, sized.fits(sized.count))
                } else {
                    let behind = sized.count.wrapping_sub(1);
                    (sized.count & 2 == 0, mask, sized.fits(behind))
                };
                let (data, here) = match (single, sized.upper) {
                    (true, true) => (self.data << 32, 0xf0),
                    (true, false) => (self.data & u64::from(u32::MAX), 0x0f),
                    (false, _) => (self.data, 0xff),
                };
                HtPacket::Write {
                    address: self.address(self.code() >> 3 == POSTED_WRITE >> 3 && fits),
                    data,
                    enables: enables & here,
                    coherent: self.code() & COHERENT != 0,
                    trace,
                }
            }
            HtChannel::Response => {
                let single = self.command >> COUNT & 1 == 0;
                HtPacket::Response {
                    data: if single {
                        self.data & u64::from(u32::MAX)
                    } else {
                        self.data
                    },
                    single,
                    extra_words: 0,
                    tag,
                    error: self.code() != READ_RESPONSE || self.command & ERRORS != 0,
                    trace,
                }
            }
        }
    }

    fn sized(&self) -> Sized {
        Sized {
            upper: self.command >> ADDRESS & 1 == 1,
            of_doublewords: self.code() & OF_DOUBLEWORDS != 0,
            count: self.command >> COUNT & 15,
        }
    }

    /// The address of the eight bytes, or one of no node.
    fn address(&self, is_access: bool) -> u64 {
        let extended = u64::from(self.extension >> 8) << ADDRESS_BITS;
        let address = extended | self.command >> ADDRESS << 2 & !7;
        address | if is_access { 0 } else { NOWHERE }
    }

    /// The bytes that leave over the link, in their order; of data beyond two doublewords, which
    /// the engine never has, nothing.
    pub fn on_link(&self) -> Vec<u8> {
        let is_response = self.channel() == HtChannel::Response;
        let is_masked = self.code() & !0b11 == POSTED_WRITE;
        let mut behind = match self.channel() {
            HtChannel::NonPosted => 0,
            HtChannel::Posted | HtChannel::Response => 1 + (self.command >> COUNT & 15) as usize,
        };
        let mut bytes = Vec::new();
        if self.extension != 0 {
            bytes.extend(self.extension.to_le_bytes());
        }
        bytes.extend(&self.command.to_le_bytes()[..if is_response { 4 } else { 8 }]);
        if is_masked {
            bytes.extend(self.mask.to_le_bytes());
            behind -= 1;
        }
        bytes.extend(&self.data.to_le_bytes()[..(4 * behind).min(8)]);
        bytes
    }
}

impl Sized {
    /// Returns whether it stays within the eight bytes if `more` doublewords follow its first.
    fn fits(&self, more: u64) -> bool {
        more == 0 || (more == 1 && !self.upper)
    }
}

#[cfg(test)]
mod tests;
