//! Quantities as a machine file writes them, `156 MHz` or `1.21 us`, read without rounding.
//!
//! The reader of machine files ([`super::Machine`]) hands every constant's text to
//! [`Limits::parse`] and gets back a whole number of the dimension's base unit: picoseconds, Hertz,
//! bytes, bits, bytes per second, cycles, millivolts, milliwatts, or a plain count. The arithmetic
//! is decimal and exact: an amount that is not a whole number of the base unit is an error, never
//! rounded.

use std::fmt;

use super::quantity_error::QuantityError;
use super::words::nearest;
use crate::time::Time;

/// The dimension of a number, which decides the units that it may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// A span of time, in picoseconds.
    Time,
    /// A clock's frequency, in Hertz.
    Frequency,
    /// An amount of memory, in bytes. Its larger units are binary: a KiB is 1024 B.
    Memory,
    /// A connection's width, in bits.
    Width,
    /// Bytes per second. Its larger units are decimal: a MB/s is 1,000,000 B/s.
    Bandwidth,
    /// Clock cycles. Of which clock, the constant's meaning says.
    Cycles,
    /// A count: a whole number without a unit.
    Count,
    /// A voltage, in millivolts.
    Voltage,
    /// A power, in milliwatts.
    Power,
}

pub(crate) struct Unit {
    pub(crate) name: &'static str,
    dimension: Dimension,
    /// Base units in one of this unit.
    factor: u64,
}

const fn unit(name: &'static str, dimension: Dimension, factor: u64) -> Unit {
    Unit {
        name,
        dimension,
        factor,
    }
}

/// Every unit. Within a dimension the smallest is first, and of two names of the same unit the
/// first is the one that is printed.
const UNITS: &[Unit] = &[
    unit("ps", Dimension::Time, 1),
    unit("ns", Dimension::Time, 1_000),
    unit("us", Dimension::Time, 1_000_000),
    unit("ms", Dimension::Time, 1_000_000_000),
    unit("s", Dimension::Time, 1_000_000_000_000),
    unit("\u{b5}s", Dimension::Time, 1_000_000),
    unit("\u{3bc}s", Dimension::Time, 1_000_000),
    unit("Hz", Dimension::Frequency, 1),
    unit("kHz", Dimension::Frequency, 1_000),
    unit("MHz", Dimension::Frequency, 1_000_000),
    unit("GHz", Dimension::Frequency, 1_000_000_000),
    unit("B", Dimension::Memory, 1),
    unit("KiB", Dimension::Memory, 1 << 10),
    unit("MiB", Dimension::Memory, 1 << 20),
    unit("GiB", Dimension::Memory, 1 << 30),
    unit("TiB", Dimension::Memory, 1 << 40),
    unit("PiB", Dimension::Memory, 1 << 50),
    unit("bit", Dimension::Width, 1),
    unit("B/s", Dimension::Bandwidth, 1),
    unit("kB/s", Dimension::Bandwidth, 1_000),
    unit("MB/s", Dimension::Bandwidth, 1_000_000),
    unit("GB/s", Dimension::Bandwidth, 1_000_000_000),
    unit("TB/s", Dimension::Bandwidth, 1_000_000_000_000),
    unit("cycles", Dimension::Cycles, 1),
    unit("cycle", Dimension::Cycles, 1),
    unit("mV", Dimension::Voltage, 1),
    unit("V", Dimension::Voltage, 1_000),
    unit("mW", Dimension::Power, 1),
    unit("W", Dimension::Power, 1_000),
];

impl Dimension {
    /// With its article, for a sentence: `a time`, `a frequency`.
    pub const fn name(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Frequency => "a frequency",
            Dimension::Memory => "an amount of memory",
            Dimension::Width => "a width",
            Dimension::Bandwidth => "a bandwidth",
            Dimension::Cycles => "a number of cycles",
            Dimension::Count => "a count",
            Dimension::Voltage => "a voltage",
            Dimension::Power => "a power",
        }
    }

    /// The unit that [`Limits::parse`] counts in.
    pub const fn base_unit(self) -> &'static str {
        match self {
            Dimension::Time => "ps",
            Dimension::Frequency => "Hz",
            Dimension::Memory => "B",
            Dimension::Width => "bit",
            Dimension::Bandwidth => "B/s",
            Dimension::Cycles => "cycles",
            Dimension::Count => "",
            Dimension::Voltage => "mV",
            Dimension::Power => "mW",
        }
    }

    /// `amount` base units as text that [`Limits::parse`] reads back to the same amount.
    pub fn write(self, amount: u64) -> String {
        if self == Dimension::Count {
            return amount.to_string();
        }
        let fits = |unit: &&Unit| match self {
            Dimension::Memory => amount.is_multiple_of(unit.factor),
            _ => unit.factor <= amount,
        };
        let written = match amount {
            0 => self.units().find(|unit| unit.name == self.usual_units()[0]),
            _ => self.units().filter(fits).max_by(|a, b| {
                a.factor
                    .cmp(&b.factor)
                    .then(b.name.len().cmp(&a.name.len()))
            }),
        };
        let (name, factor) = match (self, written) {
            (Dimension::Cycles, _) => (if amount == 1 { "cycle" } else { "cycles" }, 1),
            (_, Some(unit)) => (plain_name(unit), unit.factor),
            (_, None) => (self.base_unit(), 1),
        };
        let (whole, rest) = (amount / factor, amount % factor);
        if rest == 0 {
            return format!("{whole} {name}");
        }
        // Only decimal factors get here: their quotient has as many digits as the factor zeros.
        let digits = factor.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
    }

    /// Returns whether `text` has a unit of this dimension.
    pub(crate) fn is_of(self, text: &str) -> bool {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unit = unit.trim();
        self.units().any(|known| known.name == unit)
    }

    pub(crate) fn units(self) -> impl Iterator<Item = &'static Unit> {
        UNITS.iter().filter(move |unit| unit.dimension == self)
    }

    /// In the order in which an example of a missing unit tries them.
    const fn usual_units(self) -> &'static [&'static str] {
        match self {
            Dimension::Time => &["ns", "us", "ps", "ms", "s"],
            Dimension::Frequency => &["MHz", "GHz", "kHz", "Hz"],
            Dimension::Memory => &["GiB", "MiB", "KiB", "B"],
            Dimension::Width => &["bit"],
            Dimension::Bandwidth => &["MB/s", "GB/s", "kB/s", "B/s"],
            Dimension::Cycles => &["cycles"],
            Dimension::Count => &[""],
            Dimension::Voltage => &["V", "mV"],
            Dimension::Power => &["W", "mW"],
        }
    }
}

/// A delay, which a machine file gives in either of two units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Cycles of a clock, which the constant's meaning names.
    Cycles(u64),
    /// A time, which no clock changes.
    Time(Time),
}

/// The amounts that a constant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The dimension of the constant.
    pub dimension: Dimension,
    /// The smallest amount allowed, in base units.
    pub least: u64,
    /// The largest amount allowed, in base units.
    pub most: u64,
    /// Whether only powers of two are allowed.
    pub power_of_two: bool,
}

impl Limits {
    /// From `least` to `most` base units of `dimension`, both included.
    pub const fn new(dimension: Dimension, least: u64, most: u64) -> Self {
        Limits {
            dimension,
            least,
            most,
            power_of_two: false,
        }
    }

    /// Of these, the powers of two only.
    pub const fn powers_of_two(self) -> Self {
        Limits {
            power_of_two: true,
            ..self
        }
    }

    /// Reads `text`, such as `156 MHz`, `156MHz` or, for a count, `32`, to an amount in base units.
    ///
    /// # Errors
    /// The text is not a number with a unit of this dimension, is finer than the base unit, or
    /// is outside these limits.
    pub fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let amount = self.parse_any(text.trim())?;
        self.check(amount, text.trim())
    }

    /// `amount`, if it is allowed; `text` is how it was written.
    ///
    /// # Errors
    /// It is outside these limits.
    pub fn check(&self, amount: u64, text: &str) -> Result<u64, QuantityError> {
        let inside = (self.least..=self.most).contains(&amount);
        if inside && (!self.power_of_two || amount.is_power_of_two()) {
            return Ok(amount);
        }
        Err(QuantityError::NotAllowed {
            text: text.to_owned(),
            limits: *self,
        })
    }

    fn parse_any(&self, text: &str) -> Result<u64, QuantityError> {
        let dimension = self.dimension;
        if text.is_empty() {
            return Err(QuantityError::Empty {
                example: dimension.write(self.least),
            });
        }
        if text
            .strip_prefix('-')
            .is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(QuantityError::Negative {
                text: text.to_owned(),
            });
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim_start();
        let Some(decimal) = Decimal::parse(number) else {
            return Err(QuantityError::NotANumber {
                text: text.to_owned(),
                example: dimension.write(self.least),
            });
        };
        let factor = if dimension == Dimension::Count {
            if !unit.is_empty() {
                return Err(QuantityError::CountWithUnit {
                    number: number.to_owned(),
                    unit: unit.to_owned(),
                });
            }
            1
        } else {
            self.factor(text, number, unit)?
        };
        match decimal.times(factor) {
            Product::Exactly(amount) => Ok(amount),
            Product::NotWhole => Err(QuantityError::NotWhole {
                text: text.to_owned(),
                dimension,
            }),
            Product::TooLarge => Err(QuantityError::Overflow {
                text: text.to_owned(),
                dimension,
            }),
        }
    }

    fn factor(&self, text: &str, number: &str, unit: &str) -> Result<u64, QuantityError> {
        if unit.is_empty() {
            return Err(QuantityError::NoUnit {
                text: text.to_owned(),
                example: self.with_a_unit(number),
            });
        }
        let Some(known) = UNITS.iter().find(|known| known.name == unit) else {
            let own = self.dimension.units().map(|known| known.name);
            let all = UNITS.iter().map(|known| known.name);
            return Err(QuantityError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                dimension: self.dimension,
                nearest: nearest(unit, own).or_else(|| nearest(unit, all)),
            });
        };
        if known.dimension != self.dimension {
            return Err(QuantityError::WrongDimension {
                text: text.to_owned(),
                found: known.dimension,
                expected: self.dimension,
            });
        }
        Ok(known.factor)
    }

    /// `number` with the first of the usual units that makes it an allowed amount.
    fn with_a_unit(&self, number: &str) -> String {
        let usual = self.dimension.usual_units();
        let candidates = usual.iter().map(|unit| format!("{number} {unit}"));
        let allowed = candidates.clone().find(|text| self.parse(text).is_ok());
        allowed
            .or_else(|| candidates.clone().next())
            .unwrap_or_default()
    }
}

/// The rule, as half a sentence: `it must be from 1 MHz to 100 GHz`.
impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (
            self.dimension.write(self.least),
            self.dimension.write(self.most),
        );
        let kind = if self.power_of_two {
            "a power of two, "
        } else {
            ""
        };
        if self.least == self.most {
            write!(f, "it must be {least}")
        } else {
            write!(f, "it must be {kind}from {least} to {most}")
        }
    }
}

/// A decimal number: `digits / 10^places`.
struct Decimal {
    /// `None` where even 128 bits do not hold the digits.
    digits: Option<u128>,
    places: u32,
}

enum Product {
    Exactly(u64),
    NotWhole,
    TooLarge,
}

impl Decimal {
    /// Digits, and perhaps a point and more digits.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits_only =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits_only(whole) || !digits_only(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = whole
            .bytes()
            .chain(fraction.bytes())
            .try_fold(0u128, |sum, byte| {
                sum.checked_mul(10)?.checked_add(u128::from(byte - b'0'))
            });
        Some(Decimal {
            digits,
            places: u32::try_from(fraction.len()).unwrap_or(u32::MAX),
        })
    }

    fn times(&self, factor: u64) -> Product {
        // Every factor has fewer than 20 decimal places to give, so a longer fraction (its last
        // digit is not 0) stays a fraction.
        let Some(scale) = 10u128.checked_pow(self.places) else {
            return Product::NotWhole;
        };
        let Some(product) = self
            .digits
            .and_then(|digits| digits.checked_mul(u128::from(factor)))
        else {
            return if self.places > 20 {
                Product::NotWhole
            } else {
                Product::TooLarge
            };
        };
        if !product.is_multiple_of(scale) {
            return Product::NotWhole;
        }
        u64::try_from(product / scale).map_or(Product::TooLarge, Product::Exactly)
    }
}

fn plain_name(unit: &Unit) -> &'static str {
    let same = |other: &&Unit| other.dimension == unit.dimension && other.factor == unit.factor;
    UNITS
        .iter()
        .find(same)
        .map_or(unit.name, |first| first.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIMENSIONS: [Dimension; 9] = [
        Dimension::Time,
        Dimension::Frequency,
        Dimension::Memory,
        Dimension::Width,
        Dimension::Bandwidth,
        Dimension::Cycles,
        Dimension::Count,
        Dimension::Voltage,
        Dimension::Power,
    ];

    fn any(dimension: Dimension) -> Limits {
        Limits::new(dimension, 0, u64::MAX)
    }

    #[test]
    fn quantities_are_exact() {
        for (text, dimension, amount) in [
            ("2.2 GHz", Dimension::Frequency, 2_200_000_000),
            ("156MHz", Dimension::Frequency, 156_000_000),
            ("1.21 us", Dimension::Time, 1_210_000),
            ("1.21 µs", Dimension::Time, 1_210_000),
            ("  100   ns ", Dimension::Time, 100_000),
            ("0.001 ns", Dimension::Time, 1),
            ("624 MB/s", Dimension::Bandwidth, 624_000_000),
            ("16 bit", Dimension::Width, 16),
            ("4 GiB", Dimension::Memory, 4 << 30),
            ("1.5 KiB", Dimension::Memory, 1536),
            ("3 cycles", Dimension::Cycles, 3),
            ("1 cycle", Dimension::Cycles, 1),
            ("18446744073709551615 B", Dimension::Memory, u64::MAX),
            (
                "00000000000000000000000000000000000000000000007.000 ns",
                Dimension::Time,
                7_000,
            ),
            ("32", Dimension::Count, 32),
            ("1.14 V", Dimension::Voltage, 1140),
            ("87.7 W", Dimension::Power, 87_700),
        ] {
            assert_eq!(any(dimension).parse(text), Ok(amount), "{text}");
        }
    }

    /// The value that a text has in floating point is never consulted: this one differs.
    #[test]
    fn a_sum_that_floating_point_gets_wrong() {
        assert_eq!(any(Dimension::Time).parse("0.145 ns"), Ok(145));
        assert_eq!(
            any(Dimension::Frequency).parse("9007199.254740993 GHz"),
            Ok(9_007_199_254_740_993)
        );
    }

    #[test]
    fn every_error_says_what_is_wrong() {
        let clock = Limits::new(Dimension::Frequency, 1_000_000, 100_000_000_000);
        let time = Limits::new(Dimension::Time, 0, 1_000_000_000);
        let line = Limits::new(Dimension::Memory, 64, 64);
        let shared = Limits::new(Dimension::Memory, 4096, 1 << 40).powers_of_two();
        let tags = Limits::new(Dimension::Count, 1, 32);
        for (limits, text, message) in [
            (clock, "", r#"the value is empty; write e.g. "1 MHz""#),
            (clock, "156", r#""156" has no unit; write e.g. "156 MHz""#),
            (line, "64", r#""64" has no unit; write e.g. "64 B""#),
            (shared, "4", r#""4" has no unit; write e.g. "4 GiB""#),
            (
                clock,
                "156 mhz",
                r#"unknown unit "mhz" in "156 mhz"; did you mean "MHz"?"#,
            ),
            (
                shared,
                "4 GB",
                r#"unknown unit "GB" in "4 GB"; did you mean "GiB"?"#,
            ),
            (
                time,
                "12 parsecs",
                r#"unknown unit "parsecs" in "12 parsecs"; a time is written in ps, ns, us, ms or s"#,
            ),
            (
                time,
                "1e3 ns",
                r#"unknown unit "e3 ns" in "1e3 ns"; a time is written in ps, ns, us, ms or s"#,
            ),
            (
                clock,
                "100 ns",
                r#""100 ns" is a time, not a frequency; a frequency is written in Hz, kHz, MHz or GHz"#,
            ),
            (time, "-3 ns", r#""-3 ns" is negative"#),
            (
                time,
                "NaN ns",
                r#""NaN ns" does not begin with a number such as 12 or 1.5; write e.g. "0 ns""#,
            ),
            (
                time,
                "1.2.3 ns",
                r#""1.2.3 ns" does not begin with a number such as 12 or 1.5; write e.g. "0 ns""#,
            ),
            (
                time,
                ".5 ns",
                r#"".5 ns" does not begin with a number such as 12 or 1.5; write e.g. "0 ns""#,
            ),
            (
                time,
                "0.0001 ns",
                r#""0.0001 ns" is not a whole number of ps"#,
            ),
            (tags, "2.5", r#""2.5" is not a whole number"#),
            (
                time,
                "99999999999 s",
                r#""99999999999 s" is too large to count in ps"#,
            ),
            (
                time,
                "9999999999999999999999999999999999999999 s",
                r#""9999999999999999999999999999999999999999…" is too large to count in ps"#,
            ),
            (
                time,
                "2 s",
                r#""2 s" is not allowed: it must be from 0 ns to 1 ms"#,
            ),
            (line, "32 B", r#""32 B" is not allowed: it must be 64 B"#),
            (
                shared,
                "3 GiB",
                r#""3 GiB" is not allowed: it must be a power of two, from 4 KiB to 1 TiB"#,
            ),
            (tags, "0", r#""0" is not allowed: it must be from 1 to 32"#),
            (
                tags,
                "4 cores",
                r#""4" is a count: write it without the unit "cores""#,
            ),
        ] {
            let error = limits.parse(text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(amount: u64, small in 0u64..100_000, which in 0usize..9) {
            for amount in [amount, small, amount >> 20] {
                let text = DIMENSIONS[which].write(amount);
                prop_assert_eq!(any(DIMENSIONS[which]).parse(&text), Ok(amount), "{}", text);
            }
        }

        /// Against long arithmetic by hand: the number's digits times the unit's, point moved.
        #[test]
        fn decimals_agree_with_moving_the_point(whole in 0u64..1_000_000, fraction in "[0-9]{1,12}") {
            let text = format!("{whole}.{fraction} s");
            let picoseconds = format!("{whole}{fraction:0<12}").parse().unwrap();
            prop_assert_eq!(any(Dimension::Time).parse(&text), Ok(picoseconds));
        }

        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "\\PC*|[0-9.]{0,50} ?[a-zA-Z/]{0,4}|[\\x00-\\x7f]*", which in 0usize..9) {
            if let Err(error) = any(DIMENSIONS[which]).parse(&text) {
                let message = error.to_string();
                prop_assert!(!message.is_empty() && !message.contains(char::is_control), "{:?}", message);
            }
        }
    }
}
