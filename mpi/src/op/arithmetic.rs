//! The predefined operations on packed values. The caller has checked that the operation is legal
//! on the type, and that both sides have the same whole number of values.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Half, Quad, X87DoubleExtended};

use super::Op;
use crate::datatype::{Basic, Number};

/// A value as its little-endian bytes.
trait Value: Copy {
    const BYTES: usize;

    fn load(bytes: &[u8]) -> Self;

    fn store(self, bytes: &mut [u8]);
}

/// A value with a sum and a product.
trait Ring: Value {
    fn sum(self, other: Self) -> Self;

    fn product(self, other: Self) -> Self;
}

/// A value with an order that does not depend on which operand comes first.
trait Ordered: Ring {
    fn larger(self, other: Self) -> Self;

    fn smaller(self, other: Self) -> Self;

    /// Returns whether the values tie: equal, or both NaN.
    fn ties(self, other: Self) -> bool;

    /// Returns whether MAX of the two, which do not tie, is `self`.
    fn is_larger(self, other: Self) -> bool;

    /// Returns whether MIN of the two, which do not tie, is `self`.
    fn is_smaller(self, other: Self) -> bool;
}

/// A value of bits, with 0 as false.
trait Whole: Value {
    fn and(self, other: Self) -> Self;

    fn or(self, other: Self) -> Self;

    fn xor(self, other: Self) -> Self;

    /// 1 if it is not 0.
    fn truth(self) -> Self;
}

macro_rules! value {
    ($type:ty) => {
        impl Value for $type {
            const BYTES: usize = size_of::<$type>();

            fn load(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }

            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        value!($type);

        impl Ring for $type {
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }

        impl Ordered for $type {
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }

            fn ties(self, other: Self) -> bool {
                self == other
            }

            fn is_larger(self, other: Self) -> bool {
                self > other
            }

            fn is_smaller(self, other: Self) -> bool {
                self < other
            }
        }

        impl Whole for $type {
            fn and(self, other: Self) -> Self {
                self & other
            }

            fn or(self, other: Self) -> Self {
                self | other
            }

            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            fn truth(self) -> Self {
                Self::from(self != 0)
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        value!($type);

        impl Ring for $type {
            fn sum(self, other: Self) -> Self {
                self + other
            }

            fn product(self, other: Self) -> Self {
                self * other
            }
        }

        impl Ordered for $type {
            fn larger(self, other: Self) -> Self {
                if self.is_nan() || other.is_nan() {
                    Self::NAN
                } else if self == other {
                    // Differs for zeros only: +0 if one of them is.
                    Self::from_bits(self.to_bits() & other.to_bits())
                } else {
                    self.max(other)
                }
            }

            fn smaller(self, other: Self) -> Self {
                if self.is_nan() || other.is_nan() {
                    Self::NAN
                } else if self == other {
                    Self::from_bits(self.to_bits() | other.to_bits())
                } else {
                    self.min(other)
                }
            }

            fn ties(self, other: Self) -> bool {
                self == other || (self.is_nan() && other.is_nan())
            }

            fn is_larger(self, other: Self) -> bool {
                self.is_nan() || self > other
            }

            fn is_smaller(self, other: Self) -> bool {
                self.is_nan() || self < other
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f32, f64);

/// A complex value.
#[derive(Clone, Copy)]
struct Complex<T>(T, T);

impl<T: Value> Value for Complex<T> {
    const BYTES: usize = 2 * T::BYTES;

    fn load(bytes: &[u8]) -> Self {
        let (real, imaginary) = bytes.split_at(T::BYTES);
        Self(T::load(real), T::load(imaginary))
    }

    fn store(self, bytes: &mut [u8]) {
        let (real, imaginary) = bytes.split_at_mut(T::BYTES);
        self.0.store(real);
        self.1.store(imaginary);
    }
}

macro_rules! complexes {
    ($($type:ty),*) => {$(
        impl Ring for Complex<$type> {
            fn sum(self, other: Self) -> Self {
                Self(self.0 + other.0, self.1 + other.1)
            }

            fn product(self, other: Self) -> Self {
                Self(
                    self.0 * other.0 - self.1 * other.1,
                    self.0 * other.1 + self.1 * other.0,
                )
            }
        }
    )*};
}

complexes!(f32, f64);

/// A floating-point number that is calculated here, bit by bit, as not every processor has it. It
/// takes a power of two of bytes: of the 16 of a `long double`, the last six say nothing.
#[derive(Clone, Copy)]
struct Soft<F>(F);

type X80 = Soft<X87DoubleExtended>;

impl<F: Float> Soft<F> {
    /// Bytes that say something.
    const USED: usize = F::BITS / 8;
}

impl<F: Float> Value for Soft<F> {
    const BYTES: usize = Self::USED.next_power_of_two();

    fn load(bytes: &[u8]) -> Self {
        let mut own = [0; 16];
        own[..Self::USED].copy_from_slice(&bytes[..Self::USED]);
        Self(F::from_bits(u128::from_le_bytes(own)))
    }

    fn store(self, bytes: &mut [u8]) {
        let own = self.0.to_bits().to_le_bytes();
        bytes[..Self::USED].copy_from_slice(&own[..Self::USED]);
    }
}

impl<F: Float> Ring for Soft<F> {
    fn sum(self, other: Self) -> Self {
        Self((self.0 + other.0).value)
    }

    fn product(self, other: Self) -> Self {
        Self((self.0 * other.0).value)
    }
}

impl<F: Float> Ordered for Soft<F> {
    fn larger(self, other: Self) -> Self {
        if self.is_larger(other) { self } else { other }
    }

    fn smaller(self, other: Self) -> Self {
        if self.is_smaller(other) { self } else { other }
    }

    fn ties(self, other: Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }

    fn is_larger(self, other: Self) -> bool {
        let is_positive_zero = self.0.is_pos_zero() && other.0.is_neg_zero();
        self.0.is_nan() || self.0 > other.0 || is_positive_zero
    }

    fn is_smaller(self, other: Self) -> bool {
        let is_negative_zero = self.0.is_neg_zero() && other.0.is_pos_zero();
        self.0.is_nan() || self.0 < other.0 || is_negative_zero
    }
}

impl<F: Float> Ring for Complex<Soft<F>> {
    fn sum(self, other: Self) -> Self {
        Self(self.0.sum(other.0), self.1.sum(other.1))
    }

    fn product(self, other: Self) -> Self {
        let minus = |value: Soft<F>| Soft(-value.0);
        let real = self.0.product(other.0).sum(minus(self.1.product(other.1)));
        let imaginary = self.0.product(other.1).sum(self.1.product(other.0));
        Self(real, imaginary)
    }
}

/// Calls a generic function with the type of a number; `else` is for the numbers that are not
/// listed.
macro_rules! with {
    ($number:expr, $function:ident $arguments:tt, [$($variant:ident: $type:ty),*] $(else $other:block)?) => {
        match $number {
            $(Number::$variant => $function::<$type> $arguments,)*
            $(_ => $other,)?
        }
    };
}

pub(super) fn combine(op: &Op, earlier: &[u8], into: &mut [u8], basic: Basic) {
    let Some(number) = basic.numbers().first().copied() else {
        return;
    };
    match op {
        Op::Max | Op::Min => with!(number, order(op, earlier, into), [
            I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
            F16: Soft<Half>, F32: f32, F64: f64, F128: Soft<Quad>, X80: X80
        ] else {}),
        Op::Sum | Op::Prod => with!(number, calculate(op, earlier, into), [
            I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
            F16: Soft<Half>, F32: f32, F64: f64, F128: Soft<Quad>, X80: X80,
            C16: Complex<Soft<Half>>, C32: Complex<f32>, C64: Complex<f64>,
            C128: Complex<Soft<Quad>>, CX80: Complex<X80>
        ]),
        Op::Land | Op::Lor | Op::Lxor | Op::Band | Op::Bor | Op::Bxor => {
            with!(number, bits(op, earlier, into), [
                I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64
            ] else {});
        }
        Op::MinLoc | Op::MaxLoc => match basic.numbers() {
            [Number::F32, Number::F32] => locate::<f32, f32>(op, earlier, into),
            [Number::F64, Number::F64] => locate::<f64, f64>(op, earlier, into),
            _ => with!(number, locate_int(op, earlier, into), [
                I16: i16, I32: i32, I64: i64, F32: f32, F64: f64, X80: X80
            ] else {}),
        },
        Op::NoOp => into.copy_from_slice(earlier),
        Op::Replace | Op::User(_) => {}
    }
}

fn order<T: Ordered>(op: &Op, earlier: &[u8], into: &mut [u8]) {
    match op {
        Op::Max => each(earlier, into, T::larger),
        Op::Min => each(earlier, into, T::smaller),
        _ => {}
    }
}

fn calculate<T: Ring>(op: &Op, earlier: &[u8], into: &mut [u8]) {
    match op {
        Op::Sum => each(earlier, into, T::sum),
        Op::Prod => each(earlier, into, T::product),
        _ => {}
    }
}

fn bits<T: Whole>(op: &Op, earlier: &[u8], into: &mut [u8]) {
    match op {
        Op::Land => each(earlier, into, |a: T, b| a.truth().and(b.truth())),
        Op::Lor => each(earlier, into, |a: T, b| a.truth().or(b.truth())),
        Op::Lxor => each(earlier, into, |a: T, b| a.truth().xor(b.truth())),
        Op::Band => each(earlier, into, T::and),
        Op::Bor => each(earlier, into, T::or),
        Op::Bxor => each(earlier, into, T::xor),
        _ => {}
    }
}

/// MINLOC and MAXLOC on values of `T`, each followed by an `int` as its index.
fn locate_int<T: Ordered>(op: &Op, earlier: &[u8], into: &mut [u8]) {
    locate::<T, i32>(op, earlier, into);
}

/// MINLOC and MAXLOC on values of `T`, each followed by an index.
fn locate<T: Ordered, Index: Ordered>(op: &Op, earlier: &[u8], into: &mut [u8]) {
    let largest = matches!(op, Op::MaxLoc);
    let size = T::BYTES + Index::BYTES;
    let pairs = earlier.chunks_exact(size).zip(into.chunks_exact_mut(size));
    for (earlier, into) in pairs {
        let (value, index) = earlier.split_at(T::BYTES);
        let (value, index) = (T::load(value), Index::load(index));
        let (own_value, own_index) = into.split_at_mut(T::BYTES);
        let (other, other_index) = (T::load(own_value), Index::load(own_index));
        let chosen = match (value.ties(other), largest) {
            (true, _) => index.smaller(other_index),
            (false, true) if value.is_larger(other) => index,
            (false, false) if value.is_smaller(other) => index,
            (false, _) => other_index,
        };
        let extreme = match largest {
            true => value.larger(other),
            false => value.smaller(other),
        };
        extreme.store(own_value);
        chosen.store(own_index);
    }
}

fn each<T: Value>(earlier: &[u8], into: &mut [u8], f: impl Fn(T, T) -> T) {
    let pairs = earlier
        .chunks_exact(T::BYTES)
        .zip(into.chunks_exact_mut(T::BYTES));
    for (earlier, into) in pairs {
        f(T::load(earlier), T::load(into)).store(into);
    }
}
