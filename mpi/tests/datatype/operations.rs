//! Operations on packed values.
//!
//! Situation 9 of the reference list: an accumulate through a derived datatype operates, and does
//! not replace, also when the true lower bound is not zero.

use std::sync::Arc;

use proptest::prelude::*;
use sme_mpi::buffer::Scalar;
use sme_mpi::datatype::pack::{pack, unpack};
use sme_mpi::datatype::{Basic, Class, Datatype};
use sme_mpi::error::ErrorClass;
use sme_mpi::op::Op;

/// `earlier op into` of two values.
fn to_bytes<T: Scalar>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn two<T: Scalar>(op: &Op, basic: Basic, earlier: T, into: T) -> T {
    let mut bytes = to_bytes(&[into]);
    op.combine(&to_bytes(&[earlier]), &mut bytes, &basic.into())
        .unwrap();
    bytemuck::pod_read_unaligned(&bytes)
}

macro_rules! integers_agree {
    ($name:ident, $type:ty, $basic:expr) => {
        proptest! {
            #[test]
            fn $name(a: $type, b: $type) {
                let of = |op: Op| two(&op, $basic, a, b);
                prop_assert_eq!(of(Op::Max), if a > b { a } else { b });
                prop_assert_eq!(of(Op::Min), if a > b { b } else { a });
                prop_assert_eq!(of(Op::Sum), (a as i128 + b as i128) as $type);
                prop_assert_eq!(of(Op::Prod), (a as i128).wrapping_mul(b as i128) as $type);
                prop_assert_eq!(of(Op::Band), a & b);
                prop_assert_eq!(of(Op::Bor), a | b);
                prop_assert_eq!(of(Op::Bxor), a ^ b);
                prop_assert_eq!(of(Op::Land), (a != 0 && b != 0) as $type);
                prop_assert_eq!(of(Op::Lor), (a != 0 || b != 0) as $type);
                prop_assert_eq!(of(Op::Lxor), ((a != 0) != (b != 0)) as $type);
                prop_assert_eq!(of(Op::Replace), b);
                prop_assert_eq!(of(Op::NoOp), a);
            }
        }
    };
}

integers_agree!(bytes_with_sign_agree, i8, Basic::Int8);
integers_agree!(characters_agree, i8, Basic::Char);
integers_agree!(bytes_without_sign_agree, u8, Basic::UnsignedChar);
integers_agree!(shorts_agree, i16, Basic::Short);
integers_agree!(unsigned_shorts_agree, u16, Basic::Uint16);
integers_agree!(ints_agree, i32, Basic::Int);
integers_agree!(unsigned_ints_agree, u32, Basic::Unsigned);
integers_agree!(longs_agree, i64, Basic::Long);
integers_agree!(unsigned_longs_agree, u64, Basic::Uint64);

#[test]
fn floats_do_not_depend_on_the_order() {
    let values = [
        f64::NAN,
        -0.0,
        0.0,
        1.5,
        -2.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for a in values {
        for b in values {
            for op in [Op::Max, Op::Min] {
                let (one, other) = (two(&op, Basic::Double, a, b), two(&op, Basic::Double, b, a));
                assert_eq!(one.to_bits(), other.to_bits(), "{op:?} of {a} and {b}");
                assert_eq!(one.is_nan(), a.is_nan() || b.is_nan());
            }
        }
    }
    assert!(two(&Op::Max, Basic::Double, -0.0_f64, 0.0).is_sign_positive());
    assert!(two(&Op::Min, Basic::Double, 0.0_f64, -0.0).is_sign_negative());
    assert_eq!(two(&Op::Prod, Basic::Float, 1.5_f32, 2.0), 3.0);
}

/// The value of a number of 2 bytes, by its fields; a NaN has none.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let value = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -value } else { value }
}

/// The number of 2 bytes that is nearest to a positive value, the even one of two.
fn nearest_half(value: f64) -> u16 {
    // Half of the last step from the largest one to what would follow it is infinite already.
    if value >= 65520.0 {
        return 0x7c00;
    }
    let all = 0..0x7c00_u16;
    let distance = |bits: &u16| ((half(*bits) - value).abs(), bits & 1);
    all.min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap())
        .unwrap()
}

/// An integer as a number of 16 bytes, which holds 113 digits.
fn quad(integer: u128) -> u128 {
    if integer == 0 {
        return 0;
    }
    let digits = integer.ilog2();
    assert!(digits <= 112, "{integer} has too many digits");
    let fraction = integer << (112 - digits) & ((1 << 112) - 1);
    u128::from(16383 + digits) << 112 | fraction
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers_of_2_bytes_are_rounded_to_the_nearest(a in 0..0x7c00_u16, b in 0..0x7c00_u16) {
        let of = |op: Op| two(&op, Basic::Real2, a, b);
        prop_assert_eq!(of(Op::Sum), nearest_half(half(a) + half(b)));
        prop_assert_eq!(of(Op::Prod), nearest_half(half(a) * half(b)));
        prop_assert_eq!(of(Op::Max), a.max(b));
        prop_assert_eq!(of(Op::Min), a.min(b));
        // Both negative: the larger one has the smaller bits.
        let minus = |bits: u16| bits | 0x8000;
        let of = |op: Op| two(&op, Basic::Real2, minus(a), minus(b));
        prop_assert_eq!(of(Op::Max), minus(a.min(b)));
        prop_assert_eq!(of(Op::Sum), minus(nearest_half(half(a) + half(b))));
    }

    #[test]
    fn numbers_of_16_bytes_have_all_their_digits(
        a in 0..1_u128 << 112, b in 0..1_u128 << 112, c in 0..1_u128 << 55, d in 0..1_u128 << 55,
    ) {
        let of = |op: Op, a: u128, b: u128| {
            let mut bytes = quad(b).to_le_bytes();
            let earlier = quad(a).to_le_bytes();
            op.combine(&earlier, &mut bytes, &Basic::Real16.into()).unwrap();
            u128::from_le_bytes(bytes)
        };
        prop_assert_eq!(of(Op::Sum, a, b), quad(a + b));
        prop_assert_eq!(of(Op::Prod, c, d), quad(c * d));
        prop_assert_eq!(of(Op::Max, a, b), quad(a.max(b)));
        prop_assert_eq!(of(Op::Min, a, b), quad(a.min(b)));

        let complex = |parts: [u128; 2]| parts.map(|part| quad(part).to_le_bytes()).concat();
        let mut product = complex([d, 0]);
        let earlier = complex([c, 1]);
        Op::Prod.combine(&earlier, &mut product, &Basic::Complex32.into()).unwrap();
        prop_assert_eq!(product, complex([c * d, d]));
    }
}

#[test]
fn numbers_of_2_bytes_may_be_complex() {
    let complex = |parts: [f64; 2]| to_bytes(&parts.map(nearest_half));
    let mut into = complex([3.0, 4.0]);
    let datatype = Datatype::from(Basic::Complex4);
    Op::Prod
        .combine(&complex([2.0, 0.0]), &mut into, &datatype)
        .unwrap();
    assert_eq!(into, complex([6.0, 8.0]));
    Op::Sum
        .combine(&complex([0.5, 1.0]), &mut into, &datatype)
        .unwrap();
    assert_eq!(into, complex([6.5, 9.0]));
}

#[test]
fn complex_values_are_multiplied() {
    let mut into = to_bytes(&[3.0, 4.0]);
    let complex = Datatype::from(Basic::CDoubleComplex);
    Op::Prod
        .combine(&to_bytes(&[1.0, 2.0]), &mut into, &complex)
        .unwrap();
    assert_eq!(into, to_bytes(&[-5.0, 10.0]));
}

/// A packed pair of a double and an index.
fn located(value: f64, index: i32) -> Vec<u8> {
    [to_bytes(&[value]), to_bytes(&[index])].concat()
}

type Locate = fn(&Op, (f64, i32), (f64, i32)) -> i32;

/// Returns whether ties go to the lower index in both orders, and extremes to their own.
fn locates(locate: Locate) -> bool {
    let nan = f64::NAN;
    let cases = [
        (Op::MinLoc, (1.0, 7), (2.0, 3), 7),
        (Op::MaxLoc, (1.0, 7), (2.0, 3), 3),
        (Op::MinLoc, (1.0, 7), (1.0, 3), 3),
        (Op::MaxLoc, (1.0, 7), (1.0, 3), 3),
        (Op::MinLoc, (nan, 7), (1.0, 3), 7),
        (Op::MaxLoc, (nan, 7), (1.0, 3), 7),
        (Op::MaxLoc, (nan, 7), (nan, 3), 3),
        (Op::MinLoc, (0.0, 7), (-0.0, 3), 3),
    ];
    cases
        .iter()
        .all(|(op, a, b, index)| locate(op, *a, *b) == *index && locate(op, *b, *a) == *index)
}

fn right_locate(op: &Op, earlier: (f64, i32), into: (f64, i32)) -> i32 {
    let mut bytes = located(into.0, into.1);
    let earlier = located(earlier.0, earlier.1);
    op.combine(&earlier, &mut bytes, &Basic::DoubleInt.into())
        .unwrap();
    bytemuck::pod_read_unaligned(&bytes[8..12])
}

fn keeps_the_earlier_index(op: &Op, earlier: (f64, i32), into: (f64, i32)) -> i32 {
    match earlier.0 == into.0 {
        true => earlier.1,
        false => right_locate(op, earlier, into),
    }
}

#[test]
fn ties_go_to_the_lower_index() {
    assert!(locates(right_locate));
    assert!(!locates(keeps_the_earlier_index));
}

#[test]
fn pairs_of_all_kinds_are_packed_without_padding() {
    for basic in Basic::ALL
        .iter()
        .filter(|basic| basic.class() == Class::Pair)
    {
        let pair = |index: i32| match basic {
            Basic::TwoReal => to_bytes(&[0.0, index as f32]),
            Basic::TwoDoublePrecision => to_bytes(&[0.0, f64::from(index)]),
            _ => [vec![0; basic.size() - 4], to_bytes(&[index])].concat(),
        };
        let mut into = [pair(5), pair(1)].concat();
        let earlier = [pair(2), pair(9)].concat();
        Op::MinLoc
            .combine(&earlier, &mut into, &(*basic).into())
            .unwrap();
        assert_eq!(into, [pair(2), pair(1)].concat(), "{basic}");
    }
}

/// The table of MPI-4.1, Sec. 6.9.2, as one type of each class.
#[test]
fn operations_refuse_other_classes() {
    let classes = [
        Basic::Int,
        Basic::Double,
        Basic::CBool,
        Basic::CFloatComplex,
        Basic::Byte,
        Basic::Aint,
        Basic::TwoInt,
        Basic::Wchar,
    ];
    let legal = [
        "if...m..", "if...m..", "if.c.m..", "if.c.m..", "i.l.....", "i...bm..", "i.l.....",
        "i...bm..", "i.l.....", "i...bm..", "......p.", "......p.", "iflcbmpo", "iflcbmpo",
    ];
    for (op, legal) in Op::PREDEFINED.iter().zip(legal) {
        for (basic, letter) in classes.iter().zip(legal.chars()) {
            let mut into = vec![1; basic.size() * 3];
            let earlier = into.clone();
            let combined = op.combine(&earlier, &mut into, &(*basic).into());
            match letter {
                '.' => assert_eq!(
                    combined.unwrap_err().class,
                    ErrorClass::Op,
                    "{op:?} {basic}"
                ),
                _ => assert_eq!(combined, Ok(()), "{op:?} {basic}"),
            }
        }
    }
}

#[test]
fn operations_check_types_and_lengths() {
    let int = Datatype::from(Basic::Int);
    let double = Datatype::from(Basic::Double);
    let mixed = Datatype::create_struct(&[1, 1], &[0, 8], &[int.clone(), double]).unwrap();
    let class = |result: Result<(), sme_mpi::error::Fault>| result.unwrap_err().class;
    assert_eq!(
        class(Op::Sum.combine(&[0; 12], &mut [0; 12], &mixed)),
        ErrorClass::Op
    );
    assert_eq!(
        class(Op::Sum.combine(&[0; 8], &mut [0; 4], &int)),
        ErrorClass::Buffer
    );
    assert_eq!(
        class(Op::Sum.combine(&[0; 7], &mut [0; 7], &int)),
        ErrorClass::Buffer
    );
    let empty = Datatype::contiguous(0, &int).unwrap();
    assert_eq!(Op::Sum.combine(&[], &mut [], &empty), Ok(()));
    let user = Op::user(
        false,
        Arc::new(|earlier, into, _| into[0] = earlier[0] - into[0]),
    );
    let mut into = [3; 12];
    assert_eq!(user.combine(&[10; 12], &mut into, &mixed), Ok(()));
    assert_eq!(into[0], 7);
    assert_eq!(
        class(user.combine(&[0; 8], &mut [0; 8], &mixed)),
        ErrorClass::Buffer
    );
    assert!(!user.is_commutative() && !Op::Replace.is_commutative() && Op::Sum.is_commutative());
}

type Accumulate = fn(&[u8], &mut [u8], &Datatype);

/// Adds 10, 20 and 30 to every second of six ints, from the second one on.
fn accumulates(accumulate: Accumulate) -> bool {
    let int = Datatype::from(Basic::Int);
    let odd = Datatype::indexed_block(1, &[1, 3, 5], &int).unwrap();
    assert_eq!(odd.true_lower_bound(), 4);
    let mut window = to_bytes(&[0, 1, 2, 3, 4, 5]);
    accumulate(&to_bytes(&[10, 20, 30]), &mut window, &odd);
    let mut values = [0; 6];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(&window);
    values == [0, 11, 2, 23, 4, 35]
}

fn right_accumulate(message: &[u8], window: &mut [u8], target: &Datatype) {
    let mut earlier = Vec::new();
    pack(window, 0, 1, target, &mut earlier).unwrap();
    let mut into = message.to_vec();
    Op::Sum.combine(&earlier, &mut into, target).unwrap();
    unpack(&into, window, 0, 1, target).unwrap();
}

fn replaces(message: &[u8], window: &mut [u8], target: &Datatype) {
    unpack(message, window, 0, 1, target).unwrap();
}

fn begins_at_the_window(message: &[u8], window: &mut [u8], target: &Datatype) {
    let moved = [-target.true_lower_bound()];
    let moved = Datatype::hindexed(&[1], &moved, target).unwrap();
    right_accumulate(message, window, &moved);
}

#[test]
fn an_accumulate_through_a_derived_datatype_operates() {
    assert!(accumulates(right_accumulate));
    assert!(!accumulates(replaces));
    assert!(!accumulates(begins_at_the_window));
}
