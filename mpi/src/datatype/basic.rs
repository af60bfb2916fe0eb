//! The predefined datatypes (MPI-4.1, Sec. 3.2.2 and 6.9.4), laid out as a 64-bit Linux lays out C:
//! `long` has 8 bytes, `wchar_t` 4. Values are little-endian.
//!
//! Of Fortran's types those are here that C has none for: a program's interface names those of C
//! that are the same.

use std::fmt;

/// A machine representation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    F128,
    /// Two of F16, as C32 has two of F32.
    C16,
    C32,
    C64,
    C128,
    /// `long double`: the 80 bits of x87 in 16 bytes.
    X80,
    /// Two of them.
    CX80,
}

impl Number {
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::C16 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 => 8,
            Self::C64 | Self::X80 | Self::F128 => 16,
            Self::CX80 | Self::C128 => 32,
        }
    }

    pub(crate) const fn alignment(self) -> usize {
        self.part()
    }

    /// Bytes of a part: a complex number has two.
    pub(crate) const fn part(self) -> usize {
        match self {
            Self::C16 | Self::C32 | Self::C64 | Self::C128 | Self::CX80 => self.size() / 2,
            other => other.size(),
        }
    }
}

/// The group of a predefined datatype in reductions (MPI-4.1, Sec. 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// C integer.
    Integer,
    /// Floating point.
    Floating,
    /// Logical.
    Logical,
    /// Complex.
    Complex,
    /// Byte.
    Byte,
    /// Multi-language: addresses, offsets and counts.
    MultiLanguage,
    /// A value and an index, for MINLOC and MAXLOC.
    Pair,
    /// Characters and packed data: only replaced, never operated on.
    Opaque,
}

macro_rules! basics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident, [$($number:ident),+];)*) => {
        /// A predefined datatype.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Basic {
            $($(#[$doc])* $variant,)*
        }

        impl Basic {
            /// All predefined datatypes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the standard.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Its group in reductions.
            pub const fn class(self) -> Class {
                match self {
                    $(Self::$variant => Class::$class,)*
                }
            }

            /// The numbers that a value consists of: one, or two of a pair.
            pub(crate) const fn numbers(self) -> &'static [Number] {
                match self {
                    $(Self::$variant => &[$(Number::$number),+],)*
                }
            }
        }
    };
}

basics! {
    /// A byte without a meaning.
    Byte = "MPI_BYTE", Byte, [U8];
    /// A byte of a packed message.
    Packed = "MPI_PACKED", Opaque, [U8];
    /// A character: `char`. By the standard, reductions have no use for it; MPICH and Open MPI take
    /// it for an integer, and programs rely on that.
    Char = "MPI_CHAR", Integer, [I8];
    /// A wide character: `wchar_t`.
    Wchar = "MPI_WCHAR", Opaque, [I32];
    /// `signed char`, as an integer.
    SignedChar = "MPI_SIGNED_CHAR", Integer, [I8];
    /// `unsigned char`, as an integer.
    UnsignedChar = "MPI_UNSIGNED_CHAR", Integer, [U8];
    /// `short`.
    Short = "MPI_SHORT", Integer, [I16];
    /// `unsigned short`.
    UnsignedShort = "MPI_UNSIGNED_SHORT", Integer, [U16];
    /// `int`.
    Int = "MPI_INT", Integer, [I32];
    /// `unsigned int`.
    Unsigned = "MPI_UNSIGNED", Integer, [U32];
    /// `long`.
    Long = "MPI_LONG", Integer, [I64];
    /// `unsigned long`.
    UnsignedLong = "MPI_UNSIGNED_LONG", Integer, [U64];
    /// `long long`.
    LongLong = "MPI_LONG_LONG", Integer, [I64];
    /// `unsigned long long`.
    UnsignedLongLong = "MPI_UNSIGNED_LONG_LONG", Integer, [U64];
    /// `int8_t`.
    Int8 = "MPI_INT8_T", Integer, [I8];
    /// `int16_t`.
    Int16 = "MPI_INT16_T", Integer, [I16];
    /// `int32_t`.
    Int32 = "MPI_INT32_T", Integer, [I32];
    /// `int64_t`.
    Int64 = "MPI_INT64_T", Integer, [I64];
    /// `uint8_t`.
    Uint8 = "MPI_UINT8_T", Integer, [U8];
    /// `uint16_t`.
    Uint16 = "MPI_UINT16_T", Integer, [U16];
    /// `uint32_t`.
    Uint32 = "MPI_UINT32_T", Integer, [U32];
    /// `uint64_t`.
    Uint64 = "MPI_UINT64_T", Integer, [U64];
    /// `float`.
    Float = "MPI_FLOAT", Floating, [F32];
    /// `double`.
    Double = "MPI_DOUBLE", Floating, [F64];
    /// `long double`.
    LongDouble = "MPI_LONG_DOUBLE", Floating, [X80];
    /// A real number of 2 bytes: `_Float16`, Fortran's `REAL*2`.
    Real2 = "MPI_REAL2", Floating, [F16];
    /// A real number of 16 bytes in IEEE's format, which is not C's `long double`: `__float128`,
    /// Fortran's `REAL*16`.
    Real16 = "MPI_REAL16", Floating, [F128];
    /// Two real numbers of 2 bytes.
    Complex4 = "MPI_COMPLEX4", Complex, [C16];
    /// Two real numbers of 16 bytes.
    Complex32 = "MPI_COMPLEX32", Complex, [C128];
    /// `_Bool`.
    CBool = "MPI_C_BOOL", Logical, [U8];
    /// `float _Complex`.
    CFloatComplex = "MPI_C_FLOAT_COMPLEX", Complex, [C32];
    /// `double _Complex`.
    CDoubleComplex = "MPI_C_DOUBLE_COMPLEX", Complex, [C64];
    /// `long double _Complex`.
    CLongDoubleComplex = "MPI_C_LONG_DOUBLE_COMPLEX", Complex, [CX80];
    /// An address: `MPI_Aint`.
    Aint = "MPI_AINT", MultiLanguage, [I64];
    /// A file offset: `MPI_Offset`.
    Offset = "MPI_OFFSET", MultiLanguage, [I64];
    /// A count: `MPI_Count`.
    Count = "MPI_COUNT", MultiLanguage, [I64];
    /// A `float` and an `int`.
    FloatInt = "MPI_FLOAT_INT", Pair, [F32, I32];
    /// A `double` and an `int`.
    DoubleInt = "MPI_DOUBLE_INT", Pair, [F64, I32];
    /// A `long` and an `int`.
    LongInt = "MPI_LONG_INT", Pair, [I64, I32];
    /// Two `int`.
    TwoInt = "MPI_2INT", Pair, [I32, I32];
    /// A `short` and an `int`.
    ShortInt = "MPI_SHORT_INT", Pair, [I16, I32];
    /// A `long double` and an `int`.
    LongDoubleInt = "MPI_LONG_DOUBLE_INT", Pair, [X80, I32];
    /// Two of Fortran's `REAL`, of which the second is an index.
    TwoReal = "MPI_2REAL", Pair, [F32, F32];
    /// Two of Fortran's `DOUBLE PRECISION`, of which the second is an index.
    TwoDoublePrecision = "MPI_2DOUBLE_PRECISION", Pair, [F64, F64];
}

impl Basic {
    /// Bytes of data of a value. A pair's padding is no data.
    pub const fn size(self) -> usize {
        match self.numbers() {
            [first, second] => first.size() + second.size(),
            [first, ..] => first.size(),
            [] => 0,
        }
    }

    /// Bytes from a value to the next one in memory, a pair's padding included.
    pub const fn extent(self) -> usize {
        match self.numbers() {
            [first, second] => {
                let end = self.second_at(*first, *second) + second.size();
                end.next_multiple_of(self.alignment())
            }
            _ => self.size(),
        }
    }

    /// The alignment that C gives it.
    pub const fn alignment(self) -> usize {
        match self.numbers() {
            [first, second] if second.alignment() > first.alignment() => second.alignment(),
            [first, ..] => first.alignment(),
            [] => 1,
        }
    }

    /// Returns whether its bytes in memory have no gaps, between two values either.
    pub(crate) const fn is_dense(self) -> bool {
        self.size() == self.extent()
    }

    /// The numbers of a value, each with its offset in memory.
    pub(crate) fn fields(self) -> impl Iterator<Item = (usize, Number)> + Clone {
        let numbers = self.numbers();
        let second_at = match numbers {
            [first, second] => self.second_at(*first, *second),
            _ => 0,
        };
        numbers
            .iter()
            .enumerate()
            .map(move |(i, number)| (i * second_at, *number))
    }

    const fn second_at(self, first: Number, second: Number) -> usize {
        first.size().next_multiple_of(second.alignment())
    }
}

impl fmt::Display for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_laid_out_as_in_c() {
        let layouts = [
            (Basic::FloatInt, 8, 8, 4),
            (Basic::DoubleInt, 12, 16, 8),
            (Basic::LongInt, 12, 16, 8),
            (Basic::TwoInt, 8, 8, 4),
            (Basic::ShortInt, 6, 8, 4),
            (Basic::TwoReal, 8, 8, 4),
            (Basic::TwoDoublePrecision, 16, 16, 8),
        ];
        for (basic, size, extent, second) in layouts {
            assert_eq!((basic.size(), basic.extent()), (size, extent), "{basic}");
            let offsets: Vec<_> = basic.fields().map(|(offset, _)| offset).collect();
            assert_eq!(offsets, [0, second], "{basic}");
        }
    }

    #[test]
    fn names_are_distinct() {
        for (i, basic) in Basic::ALL.iter().enumerate() {
            assert!(basic.name().starts_with("MPI_"));
            for other in &Basic::ALL[..i] {
                assert_ne!(basic.name(), other.name());
            }
        }
    }
}
