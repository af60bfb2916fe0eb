//! The CRC of a packet, all of its bits at once.
//!
//! ```text
//! packet ──── exclusive or of the bits under a mask, 16 masks ───> crc
//! ```
//!
//! A CRC is linear: each of its bits is the exclusive or of certain bits of the packet, and of a
//! constant. Which, [`PacketCrc::new`] finds by sending the bits one at a time through the shift
//! register that defines the CRC (polynomial 0x1021, initially ones, highest bit of a byte first:
//! CRC-16/IBM-3740), each at its place among header, address and data as
//! [`sme_sim::families::sme::engine::packet`] lays them out. Fields that a packet's kind does not
//! carry are zero in its beat and count as zero in its CRC, so that the kind does not matter.
//! Simulation and Verilog are both made of these masks: as a kernel, this block alone would take
//! longer to simulate than the rest of a link port.
//!
//! ```text
//! cycle    0   1   2
//! packet   a   b   b
//! crc      A   B   B       no register: in the same cycle
//! ```

use crate::beat::PacketBeat;
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::packet::MAX_BYTES;
use std::fmt::Write;

/// Polynomial, without x^16.
const POLYNOMIAL: u16 = 0x1021;
/// The content of the shift register before the first byte.
const INITIAL: u16 = 0xffff;
/// Bits of the CRC.
const CRC_BITS: usize = 16;

/// The places of a beat's fields on the link: in the header, the address, or the data, and at which
/// bit.
const FIELDS: [(&str, usize, usize); 8] = [
    ("kind", 0, 0),
    ("flag", 0, 2),
    ("tag", 0, 3),
    ("target", 0, 8),
    ("source", 0, 28),
    ("offset", 1, 0),
    ("enables", 1, 40),
    ("data", 2, 0),
];

/// The bits of a beat, 64 in each word.
type Mask = [u64; 3];

/// One bit of a CRC.
#[derive(Clone, Copy, Debug, Default)]
struct Parity {
    mask: Mask,
    inverted: bool,
}

/// The CRC of a packet. Fields that its kind does not carry must be zero.
#[derive(Clone, Debug, LogicBlock)]
pub struct PacketCrc {
    /// The packet.
    pub packet: Signal<In, PacketBeat>,
    /// Its CRC.
    pub crc: Signal<Out, Bits<16>>,
    _parities: [Parity; CRC_BITS],
    /// The last packet and its CRC: most evaluations see the same packet again.
    _known: (PacketBeat, u16),
}

impl PacketCrc {
    /// No registers, no parameters.
    pub fn new() -> Self {
        Self::with_initial(INITIAL)
    }

    /// With something else in the shift register before the first byte.
    pub(crate) fn with_initial(initial: u16) -> Self {
        let parities = parities(initial);
        let nothing = PacketBeat::default();
        Self {
            packet: Signal::default(),
            crc: Signal::default(),
            _known: (nothing, checksum(&parities, nothing)),
            _parities: parities,
        }
    }
}

impl Default for PacketCrc {
    fn default() -> Self {
        Self::new()
    }
}

impl Logic for PacketCrc {
    fn update(&mut self) {
        let packet = self.packet.val();
        if packet != self._known.0 {
            self._known = (packet, checksum(&self._parities, packet));
        }
        self.crc.next = u64::from(self._known.1).into();
    }

    fn connect(&mut self) {
        self.crc.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut text = "always @(*) begin\n".to_owned();
        for (number, parity) in self._parities.iter().enumerate() {
            let ([low, middle, high], bits) = (parity.mask, PacketBeat::BITS);
            let inverted = u8::from(parity.inverted);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "    crc[{number}] = 1'b{inverted} ^ (^(packet & {bits}'h{high:x}{middle:016x}{low:016x}));"
            );
        }
        text.push_str("end");
        Verilog::Custom(text)
    }
}

/// Lowest bit and width of a field of a beat.
fn field(name: &str) -> (usize, usize) {
    let found = PacketBeat::FIELDS.iter().find(|field| field.0 == name);
    found.map_or((0, 0), |&(_, width, offset)| (offset, width))
}

fn checksum(parities: &[Parity; CRC_BITS], packet: PacketBeat) -> u16 {
    let value = packet.value();
    let words: Mask = [value.get(0, 64), value.get(64, 64), value.get(128, 64)];
    let bit = |Parity { mask, inverted }: &Parity| {
        let ones = words.iter().zip(mask).fold(0, |sum, (w, m)| sum ^ (w & m));
        (ones.count_ones() as u16 & 1) ^ u16::from(*inverted)
    };
    let bits = parities.iter().enumerate();
    bits.fold(0, |crc, (number, parity)| crc | bit(parity) << number)
}

/// Of each bit of the CRC.
fn parities(initial: u16) -> [Parity; CRC_BITS] {
    let zeros = [0; MAX_BYTES];
    let constant = shifted(initial, &zeros);
    let mut parities: [Parity; CRC_BITS] = std::array::from_fn(|bit| Parity {
        mask: Mask::default(),
        inverted: constant >> bit & 1 == 1,
    });
    for (name, word, position) in FIELDS {
        let (offset, width) = field(name);
        for bit in 0..width {
            let mut bytes = zeros;
            bytes[8 * word + (position + bit) / 8] = 1 << ((position + bit) % 8);
            let effect = shifted(0, &bytes);
            for (number, parity) in parities.iter_mut().enumerate() {
                let matters = u64::from(effect >> number & 1);
                parity.mask[(offset + bit) / 64] |= matters << ((offset + bit) % 64);
            }
        }
    }
    parities
}

/// Returns the content of the shift register after these bytes.
fn shifted(initial: u16, bytes: &[u8]) -> u16 {
    let mut register = initial;
    for byte in bytes {
        for bit in (0..8).rev() {
            let out = (register >> 15) ^ u16::from((byte >> bit) & 1);
            register = (register << 1) ^ (out * POLYNOMIAL);
        }
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use proptest::prelude::*;

    #[test]
    fn the_shift_register_is_the_one_that_catalogues_name() {
        assert_eq!(shifted(INITIAL, b"123456789"), 0x29b1);
    }

    proptest! {
        #[test]
        fn it_is_the_crc_of_the_bytes_on_the_link(low: u64, middle: u64, high: u32) {
            let mut value = Value::default();
            value.set(0, 64, low);
            value.set(64, 64, middle);
            value.set(128, 32, high.into());
            let beat = PacketBeat::from_value(value).carried();
            let mut block = PacketCrc::new();
            block.packet.next = beat;
            block.packet.update_all();
            block.update();
            prop_assert_eq!(u64::from(block.crc.next), u64::from(beat.packet(0).crc()));
        }
    }
}
