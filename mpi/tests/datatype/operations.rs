//! Operations on packed values.
//!
//! Situation 9 of the reference list: an accumulate through a derived datatype operates, and does not
//! replace, also when the true lower bound is not zero.

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
        let value = basic.size() - 4;
        let pair = |index: i32| [vec![0; value], to_bytes(&[index])].concat();
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
        Basic::Char,
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
