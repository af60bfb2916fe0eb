//! The CRC of a packet, all of its bits at once, for each format that it can have.
//!
//! ```text
//!          ┌─ exclusive or of the bits under a mask, 16 masks for each format ─┐
//! packet ──┤   read request   header, address                                  ├──> crc[0]
//!          │   posted write   header, address, data                            ├──> crc[1]
//!          └─  responses      header, data                                     ┴──> crc[2]
//! ```
//!
//! The packet's kind says which of them it is. The reader chooses, in the next cycle if it has one:
//! the sums take most of a cycle.
//!
//! A CRC is linear: each of its bits is the exclusive or of certain bits of the packet, and of a
//! constant. Which, [`PacketCrc::new`] finds by sending the bits one at a time through the shift
//! register that defines the CRC (polynomial 0x1021, initially ones, highest bit of a byte first:
//! CRC-16/IBM-3740), each at its place among the packet's bytes as [`sme_sim::engine::packet`]
//! lays them out. Simulation and Verilog are both made of these masks: as a kernel, this block
//! alone would take longer to simulate than the rest of a link port.
//!
//! ```text
//! cycle    0   1   2
//! packet    a   b   b
//! crc[1]    A   B   B      no register: in the same cycle
//! ```

use crate::beat::PacketBeat;
use rust_hdl::prelude::*;
use std::fmt::Write;

/// Polynomial, without x^16.
const POLYNOMIAL: u16 = 0x1021;
/// What the shift register holds before the first byte.
const INITIAL: u16 = 0xffff;
/// Bits of the CRC.
const CRC_BITS: usize = 16;

/// Where the fields of a beat lie on the link: the word of the packet, and the bit in it.
const HEADER: &[(&str, usize)] = &[
    ("kind", 0),
    ("coherent", 2),
    ("tag", 3),
    ("target", 8),
    ("source", 28),
];
const ADDRESS: &[(&str, usize)] = &[("offset", 0), ("enables", 40)];
const DATA: &[(&str, usize)] = &[("data", 0)];

/// Words of each format.
const FORMATS: [&[&[(&str, usize)]]; 3] = [
    &[HEADER, ADDRESS],
    &[HEADER, ADDRESS, DATA],
    &[HEADER, DATA],
];

/// The bits of a beat, 64 in each word.
type Mask = [u64; 3];

/// One bit of a CRC.
#[derive(Clone, Copy, Debug, Default)]
struct Parity {
    mask: Mask,
    inverted: bool,
}

/// The CRC of a packet's bytes with the CRC field zero. Fields that its format does not carry do not
/// matter.
#[derive(Clone, Debug, LogicBlock)]
pub struct PacketCrc {
    /// The packet.
    pub packet: Signal<In, PacketBeat>,
    /// Its CRC if it is a read request (kind 0), a posted write (kind 1), or a response (kinds 2, 3).
    pub crc: [Signal<Out, Bits<16>>; 3],
    _parities: [[Parity; CRC_BITS]; 3],
    /// The last packet and these: most evaluations see the same packet again.
    _known: (PacketBeat, [u16; 3]),
}

impl PacketCrc {
    /// No registers, no parameters.
    pub fn new() -> Self {
        Self::with_initial(INITIAL)
    }

    /// With something else in the shift register before the first byte.
    pub(crate) fn with_initial(initial: u16) -> Self {
        let parities = FORMATS.map(|words| parities(words, initial));
        Self {
            packet: Signal::default(),
            crc: Default::default(),
            _known: (
                PacketBeat::default(),
                checksums(&parities, PacketBeat::default()),
            ),
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
            self._known = (packet, checksums(&self._parities, packet));
        }
        for (crc, known) in self.crc.iter_mut().zip(self._known.1) {
            crc.next = u64::from(known).into();
        }
    }

    fn connect(&mut self) {
        self.crc.iter_mut().for_each(Logic::connect);
    }

    fn hdl(&self) -> Verilog {
        let mut text = "always @(*) begin\n".to_owned();
        for (format, parities) in self._parities.iter().enumerate() {
            for (bit, parity) in parities.iter().enumerate() {
                // Word by word: two formats have some of these sums in common.
                let words = [HEADER, ADDRESS, DATA].map(|word| parity.of_word(word));
                let words = words.iter().filter(|mask| **mask != [0; 3]);
                let sums = words.map(|[low, middle, high]| {
                    let bits = PacketBeat::BITS;
                    format!(" ^ (^(packet & {bits}'h{high:x}{middle:016x}{low:016x}))")
                });
                let sums: String = sums.collect();
                let inverted = u8::from(parity.inverted);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "    crc${format}[{bit}] = 1'b{inverted}{sums};");
            }
        }
        text.push_str("end");
        Verilog::Custom(text)
    }
}

impl Parity {
    /// The bits of the mask that are fields of this word.
    fn of_word(&self, word: &[(&str, usize)]) -> Mask {
        let mut fields = Mask::default();
        for (offset, width) in word.iter().map(|&(name, _)| field(name)) {
            for bit in offset..offset + width {
                fields[bit / 64] |= 1 << (bit % 64);
            }
        }
        std::array::from_fn(|i| self.mask[i] & fields[i])
    }
}

/// Lowest bit and width of a field of a beat.
fn field(name: &str) -> (usize, usize) {
    let found = PacketBeat::FIELDS.iter().find(|field| field.0 == name);
    found.map_or((0, 0), |&(_, width, offset)| (offset, width))
}

fn checksums(parities: &[[Parity; CRC_BITS]; 3], packet: PacketBeat) -> [u16; 3] {
    let value = packet.value();
    let words: Mask = [value.get(0, 64), value.get(64, 64), value.get(128, 64)];
    let bit = |Parity { mask, inverted }: &Parity| {
        let ones = words.iter().zip(mask).fold(0, |sum, (w, m)| sum ^ (w & m));
        (ones.count_ones() as u16 & 1) ^ u16::from(*inverted)
    };
    parities.map(|parities| {
        let bits = parities.iter().enumerate();
        bits.fold(0, |crc, (number, parity)| crc | bit(parity) << number)
    })
}

/// Of each bit of the CRC of a packet that has these words.
fn parities(words: &[&[(&str, usize)]], initial: u16) -> [Parity; CRC_BITS] {
    let zeros = vec![0; 8 * words.len()];
    let constant = shifted(initial, &zeros);
    let mut parities: [Parity; CRC_BITS] = std::array::from_fn(|bit| Parity {
        mask: Mask::default(),
        inverted: constant >> bit & 1 == 1,
    });
    for (word, fields) in words.iter().enumerate() {
        for &(name, position) in *fields {
            let (offset, width) = field(name);
            for bit in 0..width {
                let mut bytes = zeros.clone();
                bytes[8 * word + (position + bit) / 8] = 1 << ((position + bit) % 8);
                let effect = shifted(0, &bytes);
                for (number, parity) in parities.iter_mut().enumerate() {
                    let matters = u64::from(effect >> number & 1);
                    parity.mask[(offset + bit) / 64] |= matters << ((offset + bit) % 64);
                }
            }
        }
    }
    parities
}

/// What the shift register holds after these bytes.
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
            let beat = PacketBeat::from_value(value);
            let mut block = PacketCrc::new();
            block.packet.next = beat;
            block.packet.update_all();
            block.update();
            let bytes = beat.packet(0).encode();
            let expected = u16::from_le_bytes([bytes.as_bytes()[6], bytes.as_bytes()[7]]);
            let format = [0, 1, 2, 2][u64::from(beat.get_value_kind()) as usize];
            prop_assert_eq!(u64::from(block.crc[format].next), u64::from(expected));
        }
    }
}
