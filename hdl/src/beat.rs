//! Beats: a wire between two blocks carries a whole packet in a cycle, in one beat.
//!
//! In Verilog a beat is a vector; in the simulation it stays the packet that it is, so that a FIFO
//! moves it without taking it apart. Kernels read a field with `get_value_FIELD()` and write one
//! with `set_value_FIELD(…)`, which become slices of the vector; `FIELD_low` is the lower 32 bits
//! of a longer one and `FIELD_high` the rest (half and half of `enables`), `address_3_7` is bits 3
//! to 7 of an address, `word` its bits 3 and 4. Bit 0 is the lowest:
//!
//! | [`PacketBeat`], 160 bits | Bits | [`HtBeat`], 144 bits | Bits |
//! |---|---|---|---|
//! | data | 0–63 | address | 0–63 |
//! | offset | 64–103 | data | 64–127 |
//! | target | 104–123 | enables | 128–135 |
//! | source | 124–143 | tag | 136–140 |
//! | kind | 144–145 | kind | 141–142 |
//! | flag | 146 | flag | 143 |
//! | tag | 147–151 | | |
//! | enables | 152–159 | | |
//!
//! `kind` is the number of [`Kind`] in both: 0 read request, 1 posted write, 2 response, 3 error
//! response. `flag` says that a write is coherent, or that a response is one doubleword. Fields
//! that a kind does not carry are zero. The host's own pins carry [`DoublewordsBeat`]. The
//! observer's mark of the cycle model's packets (`trace`) is not in a beat: hardware has no such
//! thing.

mod doublewords;

pub use doublewords::DoublewordsBeat;

use rust_hdl::ast::VerilogLiteral;
use rust_hdl::bits::Bits;
use rust_hdl::synth::{Synth, VCDValue};
use rust_hdl::type_descriptor::{TypeDescriptor, TypeKind};
use sme_sim::families::sme::engine::{HtPacket, Kind, Packet};

use crate::value::Value;

/// A packet of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketBeat {
    data: u64,
    offset: u64,
    target: u32,
    source: u32,
    kind: u8,
    flag: bool,
    tag: u8,
    enables: u8,
}

/// A HyperTransport packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HtBeat {
    address: u64,
    data: u64,
    enables: u8,
    tag: u8,
    kind: u8,
    flag: bool,
}

/// A field: how a kernel reads and writes it, and where it lies in the vector.
macro_rules! fields {
    ($beat:ident, $bits:literal: $($field:ident $width:literal at $offset:literal,
        $get:ident $set:ident $get_width:ident $get_offset:ident;)*) => {
        #[allow(missing_docs, reason = "the names that rust-hdl's kernels need; see the table")]
        impl $beat {
            $(
                pub fn $get(&self) -> Bits<$width> {
                    u64::from(self.$field).into()
                }
                pub fn $set(&mut self, value: Bits<$width>) {
                    self.$field = Field::of(u64::from(value));
                }
                pub fn $get_width(&self) -> usize {
                    $width
                }
                pub fn $get_offset(&self) -> usize {
                    $offset
                }
            )*
        }

        impl $beat {
            /// Name, width and lowest bit of each field.
            pub const FIELDS: &[(&str, usize, usize)] =
                &[$((stringify!($field), $width, $offset)),*];

            /// Returns the beat as the vector.
            pub fn value(&self) -> Value {
                let mut value = Value::default();
                $(value.set($offset, $width, u64::from(self.$field));)*
                value
            }

            /// From the vector.
            pub fn from_value(value: Value) -> Self {
                Self { $($field: Field::of(value.get($offset, $width)),)* }
            }
        }

        impl Synth for $beat {
            const BITS: usize = $bits;

            fn descriptor() -> TypeDescriptor {
                TypeDescriptor {
                    name: stringify!($beat).into(),
                    kind: TypeKind::Bits($bits),
                }
            }

            fn vcd(self) -> VCDValue {
                self.value().bits::<$bits>().into()
            }

            fn verilog(self) -> VerilogLiteral {
                self.value().bits::<$bits>().into()
            }
        }
    };
}

fields! { PacketBeat, 160:
    data 64 at 0, get_value_data set_value_data get_my_width_data get_my_offset_data;
    offset 40 at 64, get_value_offset set_value_offset get_my_width_offset get_my_offset_offset;
    target 20 at 104, get_value_target set_value_target get_my_width_target get_my_offset_target;
    source 20 at 124, get_value_source set_value_source get_my_width_source get_my_offset_source;
    kind 2 at 144, get_value_kind set_value_kind get_my_width_kind get_my_offset_kind;
    flag 1 at 146, get_value_flag set_value_flag get_my_width_flag get_my_offset_flag;
    tag 5 at 147, get_value_tag set_value_tag get_my_width_tag get_my_offset_tag;
    enables 8 at 152, get_value_enables set_value_enables get_my_width_enables get_my_offset_enables;
}

fields! { HtBeat, 144:
    address 64 at 0, get_value_address set_value_address get_my_width_address get_my_offset_address;
    data 64 at 64, get_value_data set_value_data get_my_width_data get_my_offset_data;
    enables 8 at 128, get_value_enables set_value_enables get_my_width_enables get_my_offset_enables;
    tag 5 at 136, get_value_tag set_value_tag get_my_width_tag get_my_offset_tag;
    kind 2 at 141, get_value_kind set_value_kind get_my_width_kind get_my_offset_kind;
    flag 1 at 143, get_value_flag set_value_flag get_my_width_flag get_my_offset_flag;
}

/// A part of a field that has up to 32 bits: the numbers of rust-hdl beyond that are slow.
macro_rules! views {
    ($beat:ident: $($field:ident from $low:literal, $width:literal at $offset:literal,
        $get:ident $set:ident $get_width:ident $get_offset:ident;)*) => {
        #[allow(missing_docs, reason = "as the fields")]
        impl $beat {
            $(
                pub fn $get(&self) -> Bits<$width> {
                    let mask = u64::MAX >> (64 - $width);
                    (u64::from(self.$field) >> $low & mask).into()
                }
                pub fn $set(&mut self, value: Bits<$width>) {
                    let mask = u64::MAX >> (64 - $width);
                    let others = u64::from(self.$field) & !(mask << $low);
                    self.$field = Field::of(others | u64::from(value) << $low);
                }
                pub fn $get_width(&self) -> usize {
                    $width
                }
                pub fn $get_offset(&self) -> usize {
                    $offset
                }
            )*
        }
    };
}

views! { PacketBeat:
    data from 0, 32 at 0, get_value_data_low set_value_data_low
        get_my_width_data_low get_my_offset_data_low;
    data from 32, 32 at 32, get_value_data_high set_value_data_high
        get_my_width_data_high get_my_offset_data_high;
    offset from 0, 32 at 64, get_value_offset_low set_value_offset_low
        get_my_width_offset_low get_my_offset_offset_low;
    offset from 32, 8 at 96, get_value_offset_high set_value_offset_high
        get_my_width_offset_high get_my_offset_offset_high;
    enables from 0, 4 at 152, get_value_enables_low set_value_enables_low
        get_my_width_enables_low get_my_offset_enables_low;
    enables from 4, 4 at 156, get_value_enables_high set_value_enables_high
        get_my_width_enables_high get_my_offset_enables_high;
}

views! { HtBeat:
    address from 0, 32 at 0, get_value_address_low set_value_address_low
        get_my_width_address_low get_my_offset_address_low;
    address from 32, 32 at 32, get_value_address_high set_value_address_high
        get_my_width_address_high get_my_offset_address_high;
    address from 3, 5 at 3, get_value_address_3_7 set_value_address_3_7
        get_my_width_address_3_7 get_my_offset_address_3_7;
    address from 3, 2 at 3, get_value_word set_value_word get_my_width_word get_my_offset_word;
    address from 8, 24 at 8, get_value_address_8_31 set_value_address_8_31
        get_my_width_address_8_31 get_my_offset_address_8_31;
    address from 32, 8 at 32, get_value_address_32_39 set_value_address_32_39
        get_my_width_address_32_39 get_my_offset_address_32_39;
    address from 40, 24 at 40, get_value_address_40_63 set_value_address_40_63
        get_my_width_address_40_63 get_my_offset_address_40_63;
    data from 0, 32 at 64, get_value_data_low set_value_data_low
        get_my_width_data_low get_my_offset_data_low;
    data from 32, 32 at 96, get_value_data_high set_value_data_high
        get_my_width_data_high get_my_offset_data_high;
    enables from 0, 4 at 128, get_value_enables_low set_value_enables_low
        get_my_width_enables_low get_my_offset_enables_low;
    enables from 4, 4 at 132, get_value_enables_high set_value_enables_high
        get_my_width_enables_high get_my_offset_enables_high;
}

/// The fields of the packets on a port of `bits` bits; `None` if those are no packets.
pub(crate) fn fields_of(bits: usize) -> Option<&'static [(&'static str, usize, usize)]> {
    match bits {
        <PacketBeat as Synth>::BITS => Some(PacketBeat::FIELDS),
        <HtBeat as Synth>::BITS => Some(HtBeat::FIELDS),
        <DoublewordsBeat as Synth>::BITS => Some(DoublewordsBeat::FIELDS),
        _ => None,
    }
}

/// A number as a field holds it; the vector's slice has cut it to the field's width.
trait Field {
    fn of(value: u64) -> Self;
}

impl Field for u64 {
    fn of(value: u64) -> Self {
        value
    }
}

impl Field for u32 {
    fn of(value: u64) -> Self {
        value as u32
    }
}

impl Field for u8 {
    fn of(value: u64) -> Self {
        value as u8
    }
}

impl Field for bool {
    fn of(value: u64) -> Self {
        value != 0
    }
}

impl From<Packet> for PacketBeat {
    fn from(packet: Packet) -> Self {
        Self {
            data: packet.data,
            offset: packet.offset,
            target: packet.target,
            source: packet.source,
            kind: packet.kind as u8,
            flag: packet.flag,
            tag: packet.tag,
            enables: packet.enables,
        }
    }
}

impl PacketBeat {
    /// The same with zeros in the fields that its kind does not carry.
    pub(crate) fn carried(self) -> Self {
        let kind = Kind::from_bits(self.kind.into());
        let address = kind.has_address();
        Self {
            data: if kind.has_data() { self.data } else { 0 },
            offset: if address { self.offset } else { 0 },
            enables: if address { self.enables } else { 0 },
            // Of a read it says that it is long, which there is no RTL for.
            flag: self.flag && kind != Kind::ReadRequest,
            ..self
        }
    }

    /// The packet, with the observer's mark `trace`.
    pub fn packet(&self, trace: u32) -> Packet {
        Packet {
            data: self.data,
            offset: self.offset,
            target: self.target,
            source: self.source,
            trace,
            kind: Kind::from_bits(self.kind.into()),
            flag: self.flag,
            tag: self.tag,
            enables: self.enables,
        }
    }
}

impl From<HtPacket> for HtBeat {
    fn from(packet: HtPacket) -> Self {
        match packet {
            HtPacket::Read {
                address,
                enables,
                tag,
                extra_words: _,
                trace: _,
            } => Self {
                address,
                enables,
                tag,
                kind: Kind::ReadRequest as u8,
                ..Self::default()
            },
            HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace: _,
            } => Self {
                address,
                data,
                enables,
                kind: Kind::PostedWrite as u8,
                flag: coherent,
                tag: 0,
            },
            HtPacket::Response {
                data,
                single,
                tag,
                error,
                extra_words: _,
                trace: _,
            } => Self {
                data,
                flag: single,
                tag,
                kind: Kind::ReadResponse as u8 + u8::from(error),
                ..Self::default()
            },
        }
    }
}

impl HtBeat {
    /// The packet, with the observer's mark `trace`.
    pub fn packet(&self, trace: u32) -> HtPacket {
        match Kind::from_bits(self.kind.into()) {
            Kind::ReadRequest => HtPacket::Read {
                extra_words: 0,
                address: self.address,
                enables: self.enables,
                tag: self.tag,
                trace,
            },
            Kind::PostedWrite => HtPacket::Write {
                address: self.address,
                data: self.data,
                enables: self.enables,
                coherent: self.flag,
                trace,
            },
            answer => HtPacket::Response {
                extra_words: 0,
                data: self.data,
                single: self.flag,
                tag: self.tag,
                error: answer == Kind::ErrorResponse,
                trace,
            },
        }
    }
}
