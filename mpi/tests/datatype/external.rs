//! The format external32 against bytes that are written out by value, and back.

use proptest::prelude::*;
use sme_mpi::datatype::external::{decode, encode, size};
use sme_mpi::datatype::pack::pack;
use sme_mpi::datatype::{Basic, Datatype};
use sme_mpi::error::ErrorClass;

use super::oracle::{Entry, specs};
use super::{ENTRIES, indices, memory_for};

fn encoded(packed: &[u8], datatype: &Datatype) -> Vec<u8> {
    let mut out = vec![9];
    encode(packed, datatype, &mut out).unwrap();
    out.split_off(1)
}

fn decoded(external: &[u8], datatype: &Datatype) -> Vec<u8> {
    let mut out = vec![9];
    decode(external, datatype, &mut out).unwrap();
    out.split_off(1)
}

/// The bits of a `long double` as a number of 128 bits: the same sign and exponent, and a fraction
/// without the digit in front of the point, which the shorter form writes.
fn quad_bits(x87: u128) -> u128 {
    (x87 >> 64) << 112 | (x87 & ((1 << 63) - 1)) << 49
}

/// A `long double` that is a number, or infinite: in others an exponent would lack its digit.
fn x87() -> impl Strategy<Value = u128> {
    (any::<bool>(), 0..0x8000_u128, any::<u64>()).prop_map(|(sign, exponent, fraction)| {
        let fraction = u128::from(fraction) & ((1 << 63) - 1);
        let (digit, fraction) = match exponent {
            0 => (0, fraction),
            0x7fff => (1, 0),
            _ => (1, fraction),
        };
        u128::from(sign) << 79 | exponent << 64 | digit << 63 | fraction
    })
}

/// A value of each integer type, and its bytes in the format.
macro_rules! integers {
    ($($basic:ident: $type:ty => $external:ty;)*) => {
        #[test]
        fn integers_are_big_endian_with_fixed_sizes() {
            $(
                let datatype = Datatype::from(Basic::$basic);
                for value in [0, 1, 100, <$external>::MAX as $type, <$external>::MIN as $type] {
                    let external = (value as $external).to_be_bytes();
                    let packed = value.to_le_bytes();
                    assert_eq!(encoded(&packed, &datatype), external, "{}", Basic::$basic);
                    assert_eq!(decoded(&external, &datatype), packed, "{}", Basic::$basic);
                }
                assert_eq!(size(3, &datatype), Ok(3 * size_of::<$external>() as u64));
            )*
        }
    };
}

integers! {
    SignedChar: i8 => i8;
    UnsignedChar: u8 => u8;
    Char: i8 => i8;
    Byte: u8 => u8;
    Packed: u8 => u8;
    CBool: u8 => u8;
    Wchar: u32 => u16;
    Short: i16 => i16;
    UnsignedShort: u16 => u16;
    Int: i32 => i32;
    Unsigned: u32 => u32;
    Long: i64 => i32;
    UnsignedLong: u64 => u32;
    LongLong: i64 => i64;
    UnsignedLongLong: u64 => u64;
    Int8: i8 => i8;
    Int16: i16 => i16;
    Int32: i32 => i32;
    Int64: i64 => i64;
    Uint8: u8 => u8;
    Uint16: u16 => u16;
    Uint32: u32 => u32;
    Uint64: u64 => u64;
    Aint: i64 => i64;
    Offset: i64 => i64;
    Count: i64 => i64;
}

#[test]
fn an_integer_that_is_too_long_loses_its_high_bytes() {
    let long = Datatype::from(Basic::Long);
    let value = 0x0102_0304_8506_0708_i64;
    let external = encoded(&value.to_le_bytes(), &long);
    assert_eq!(external, [0x85, 6, 7, 8]);
    let back = decoded(&external, &long);
    assert_eq!(back, i64::from(value as i32).to_le_bytes());
}

#[test]
fn pairs_have_no_padding() {
    let external = |basic: Basic| size(1, &basic.into()).unwrap();
    let pairs = [
        Basic::FloatInt,
        Basic::DoubleInt,
        Basic::LongInt,
        Basic::TwoInt,
        Basic::ShortInt,
        Basic::LongDoubleInt,
    ];
    assert_eq!(pairs.map(external), [8, 12, 8, 8, 6, 20]);
    let pair = Datatype::from(Basic::LongInt);
    let packed = [
        (-2_i64).to_le_bytes().to_vec(),
        3_i32.to_le_bytes().to_vec(),
    ]
    .concat();
    let bytes = [0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3];
    assert_eq!(encoded(&packed, &pair), bytes);
    assert_eq!(decoded(&bytes, &pair), packed);
}

#[test]
fn sizes_that_make_no_sense_are_faults() {
    let int = Datatype::from(Basic::Int);
    assert_eq!(size(-1, &int).unwrap_err().class, ErrorClass::Count);
    assert_eq!(size(i64::MAX, &int).unwrap_err().class, ErrorClass::Arg);
    let nothing = Datatype::contiguous(0, &int).unwrap();
    assert_eq!(
        (encoded(&[1, 2], &nothing), decoded(&[1, 2], &nothing)),
        (vec![], vec![])
    );
    let wide = Datatype::contiguous(1 << 40, &Basic::Long.into()).unwrap();
    assert_eq!(size(1 << 10, &wide), Ok(1 << 52));
}

proptest! {
    #[test]
    fn long_doubles_become_numbers_of_128_bits(parts in prop::collection::vec(x87(), 2)) {
        let datatype = Datatype::from(Basic::CLongDoubleComplex);
        let packed: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
        let external: Vec<u8> = parts
            .iter()
            .flat_map(|part| quad_bits(*part).to_be_bytes())
            .collect();
        prop_assert_eq!(&encoded(&packed, &datatype), &external);
        prop_assert_eq!(&decoded(&external, &datatype), &packed);
        let one = Datatype::from(Basic::LongDouble);
        prop_assert_eq!(&encoded(&packed, &one), &external);
    }

    #[test]
    fn numbers_of_the_same_bytes_only_change_their_order(bytes in any::<[u8; 32]>()) {
        for (basic, part) in [
            (Basic::Real2, 2),
            (Basic::Complex4, 2),
            (Basic::Float, 4),
            (Basic::TwoReal, 4),
            (Basic::CDoubleComplex, 8),
            (Basic::TwoDoublePrecision, 8),
            (Basic::Real16, 16),
            (Basic::Complex32, 16),
        ] {
            let datatype = Datatype::from(basic);
            let parts = bytes.chunks(part);
            let external: Vec<u8> = parts.flat_map(|part| part.iter().rev()).copied().collect();
            prop_assert_eq!(&encoded(&bytes, &datatype), &external, "{}", basic);
            prop_assert_eq!(&decoded(&external, &datatype), &bytes, "{}", basic);
        }
    }

    #[test]
    fn a_number_of_128_bits_is_rounded(bits in any::<u128>()) {
        // An exponent that is neither the least nor the greatest, nor carried into it.
        prop_assume!((1..0x7ffe).contains(&(bits >> 112 & 0x7fff)));
        let (kept, cut) = (bits >> 49, bits & ((1 << 49) - 1));
        let half = 1 << 48;
        let up = cut > half || cut == half && kept & 1 == 1;
        let rounded = kept + u128::from(up);
        // The digit in front of the point is written, between exponent and fraction.
        let expected = rounded >> 63 << 64 | 1 << 63 | rounded & ((1 << 63) - 1);
        let got = decoded(&bits.to_be_bytes(), &Basic::LongDouble.into());
        prop_assert_eq!(got, expected.to_le_bytes());
    }

    #[test]
    fn derived_types_have_the_bytes_of_their_values(spec in specs(), count in 0..4_i64) {
        let entries = spec.map().copies(count);
        prop_assume!(entries.len() <= ENTRIES);
        let datatype = spec.build().unwrap();
        let (memory, origin) = memory_for(&entries);
        // Every value of the oracle's types is as long as in memory; a complex one has two parts.
        let mut expected = Vec::new();
        for entry in &entries {
            let Entry::Number { basic, .. } = entry else { continue };
            let places = indices(std::slice::from_ref(entry), origin);
            let parts = if *basic == Basic::CDoubleComplex { 2 } else { 1 };
            for part in places.chunks(places.len() / parts) {
                expected.extend(part.iter().rev().map(|&place| memory[place]));
            }
        }
        let mut packed = Vec::new();
        pack(&memory, origin, count, &datatype, &mut packed).unwrap();
        prop_assert_eq!(size(count, &datatype), Ok(expected.len() as u64));
        prop_assert_eq!(&encoded(&packed, &datatype), &expected);
        prop_assert_eq!(&decoded(&expected, &datatype), &packed);
    }

    #[test]
    fn no_bytes_panic(basic in prop::sample::select(Basic::ALL), bytes in any::<[u8; 67]>()) {
        let datatype = Datatype::from(basic);
        let external = encoded(&bytes, &datatype);
        let whole = bytes.len() / basic.size();
        prop_assert!(external.len() as u64 >= size(whole as i64, &datatype).unwrap());
        prop_assert!(decoded(&bytes, &datatype).len() >= whole * basic.size());
    }
}
