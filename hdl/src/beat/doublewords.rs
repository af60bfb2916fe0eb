//! Beats of the host's pins: a HyperTransport packet's doublewords, each at its place.
//!
//! | Bits | Doubleword |
//! |---|---|
//! | 0–31 | address extension |
//! | 32–95 | command, of a response 32–63 |
//! | 96–127 | byte mask |
//! | 128–191 | data |
//!
//! Their fields are those of [`sme_sim::families::sme::engine::ht::Doublewords`].

use rust_hdl::ast::VerilogLiteral;
use rust_hdl::bits::Bits;
use rust_hdl::synth::{Synth, VCDValue};
use rust_hdl::type_descriptor::{TypeDescriptor, TypeKind};
use sme_sim::families::sme::engine::HtPacket;
use sme_sim::families::sme::engine::ht::Doublewords;

use super::HtBeat;
use crate::value::Value;

/// The doublewords of a HyperTransport packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoublewordsBeat(Value);

const BITS: usize = 192;
const EXTENSION: usize = 0;
const DATA: usize = 128;

impl DoublewordsBeat {
    /// The lowest bit of the command.
    pub(crate) const COMMAND: usize = 32;
    /// The lowest bit of the byte mask.
    pub(crate) const MASK: usize = 96;

    /// Name, width and lowest bit of each doubleword, or pair of them.
    pub const FIELDS: &[(&str, usize, usize)] = &[
        ("extension", 32, EXTENSION),
        ("command", 64, Self::COMMAND),
        ("mask", 32, Self::MASK),
        ("data", 64, DATA),
    ];

    /// Returns the beat as the vector.
    pub fn value(&self) -> Value {
        self.0
    }

    /// From the vector.
    pub fn from_value(value: Value) -> Self {
        Self(value)
    }

    /// Decodes the doublewords into a beat of fields.
    pub fn fields(&self) -> HtBeat {
        self.doublewords().decode().into()
    }

    /// The doublewords.
    pub fn doublewords(&self) -> Doublewords {
        Doublewords {
            extension: self.0.get(EXTENSION, 32) as u32,
            command: self.0.get(Self::COMMAND, 64),
            mask: self.0.get(Self::MASK, 32) as u32,
            data: self.0.get(DATA, 64),
        }
    }
}

impl From<HtPacket> for DoublewordsBeat {
    fn from(packet: HtPacket) -> Self {
        packet.encode().into()
    }
}

impl From<Doublewords> for DoublewordsBeat {
    fn from(doublewords: Doublewords) -> Self {
        let mut value = Value::default();
        value.set(EXTENSION, 32, doublewords.extension.into());
        value.set(Self::COMMAND, 64, doublewords.command);
        value.set(Self::MASK, 32, doublewords.mask.into());
        value.set(DATA, 64, doublewords.data);
        Self(value)
    }
}

impl Synth for DoublewordsBeat {
    const BITS: usize = BITS;

    fn descriptor() -> TypeDescriptor {
        TypeDescriptor {
            name: "DoublewordsBeat".into(),
            kind: TypeKind::Bits(BITS),
        }
    }

    fn vcd(self) -> VCDValue {
        self.0.bits::<BITS>().into()
    }

    fn verilog(self) -> VerilogLiteral {
        self.0.bits::<BITS>().into()
    }
}

/// Fields: how a kernel reads and writes them, and where they lie in the vector.
macro_rules! fields {
    ($($width:literal at $offset:literal,
        $get:ident $set:ident $get_width:ident $get_offset:ident;)*) => {
        #[allow(missing_docs, reason = "the names that rust-hdl's kernels need")]
        impl DoublewordsBeat {
            $(
                pub fn $get(&self) -> Bits<$width> {
                    self.0.get($offset, $width).into()
                }
                pub fn $set(&mut self, value: Bits<$width>) {
                    self.0.set($offset, $width, u64::from(value));
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

// `form` and `what` are the lower and the upper half of the six bits of a command; `upper` is bit 2
// of the address, `word` its bits 3 and 4; `error` and `no_access` are those of a response.
fields! {
    6 at 0, get_value_extension set_value_extension get_my_width_extension get_my_offset_extension;
    24 at 8, get_value_address_40_63 set_value_address_40_63
        get_my_width_address_40_63 get_my_offset_address_40_63;
    1 at 32, get_value_coherent set_value_coherent get_my_width_coherent get_my_offset_coherent;
    1 at 34, get_value_of_doublewords set_value_of_doublewords
        get_my_width_of_doublewords get_my_offset_of_doublewords;
    3 at 32, get_value_form set_value_form get_my_width_form get_my_offset_form;
    3 at 35, get_value_what set_value_what get_my_width_what get_my_offset_what;
    5 at 48, get_value_tag set_value_tag get_my_width_tag get_my_offset_tag;
    1 at 53, get_value_error set_value_error get_my_width_error get_my_offset_error;
    4 at 54, get_value_count set_value_count get_my_width_count get_my_offset_count;
    1 at 58, get_value_upper set_value_upper get_my_width_upper get_my_offset_upper;
    5 at 59, get_value_address_3_7 set_value_address_3_7
        get_my_width_address_3_7 get_my_offset_address_3_7;
    2 at 59, get_value_word set_value_word get_my_width_word get_my_offset_word;
    1 at 61, get_value_no_access set_value_no_access get_my_width_no_access get_my_offset_no_access;
    24 at 64, get_value_address_8_31 set_value_address_8_31
        get_my_width_address_8_31 get_my_offset_address_8_31;
    8 at 88, get_value_address_32_39 set_value_address_32_39
        get_my_width_address_32_39 get_my_offset_address_32_39;
    8 at 96, get_value_mask_0 set_value_mask_0 get_my_width_mask_0 get_my_offset_mask_0;
    8 at 104, get_value_mask_1 set_value_mask_1 get_my_width_mask_1 get_my_offset_mask_1;
    8 at 112, get_value_mask_2 set_value_mask_2 get_my_width_mask_2 get_my_offset_mask_2;
    8 at 120, get_value_mask_3 set_value_mask_3 get_my_width_mask_3 get_my_offset_mask_3;
    32 at 128, get_value_data_low set_value_data_low get_my_width_data_low get_my_offset_data_low;
    32 at 160, get_value_data_high set_value_data_high
        get_my_width_data_high get_my_offset_data_high;
}
