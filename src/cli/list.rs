//! Lists on the command line: `1,2,4`, inclusive ranges `1..8`, with a step `1..64+3`, geometric
//! `2..64*2`, and any mixture of them, `1,2..8*2`.
//!
//! Called by [`super::args`] for every flag that takes a number or a list of names. Values are
//! kept in the order they are written, repetitions included.

use std::ops::RangeInclusive;

/// The most values one list may stand for.
pub const MAX_LENGTH: usize = 65_536;

/// A fault in a list; the caller names the flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A comma too many, or nothing at all.
    #[error("a value is missing")]
    Empty,
    /// Not digits.
    #[error("'{0}' is not a whole number")]
    NotANumber(String),
    /// Below what the flag accepts.
    #[error("{value} is too small; at least {least}")]
    TooSmall {
        /// As written.
        value: String,
        /// The least accepted.
        least: u64,
    },
    /// Above what the flag accepts, or more than 64 bits.
    #[error("{value} is too large; at most {most}")]
    TooLarge {
        /// As written.
        value: String,
        /// The most accepted.
        most: u64,
    },
    /// `8..1`.
    #[error("the range {first}..{last} runs backwards")]
    Backwards {
        /// Where it starts.
        first: u64,
        /// Where it should end.
        last: u64,
    },
    /// `1..8+0`.
    #[error("a range needs a step of at least 1")]
    ZeroStep,
    /// `1..8*1`.
    #[error("a geometric range needs a factor of at least 2")]
    SmallFactor,
    /// `0..8*2`.
    #[error("a geometric range cannot start at 0")]
    GeometricFromZero,
    /// More than [`MAX_LENGTH`] values.
    #[error("a list may hold at most {MAX_LENGTH} values")]
    TooLong,
}

/// The numbers that `text` stands for, each within `bounds`.
pub fn numbers(text: &str, bounds: RangeInclusive<u64>) -> Result<Vec<u64>, ListError> {
    let mut values = Vec::new();
    for item in text.split(',') {
        append_item(&mut values, item.trim(), &bounds)?;
    }
    Ok(values)
}

/// The words of `text` between its commas, without surrounding blanks, none of them empty.
pub fn words(text: &str) -> Result<Vec<&str>, ListError> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.iter().any(|word| word.is_empty()) {
        return Err(ListError::Empty);
    }
    if words.len() > MAX_LENGTH {
        return Err(ListError::TooLong);
    }
    Ok(words)
}

fn append_item(
    values: &mut Vec<u64>,
    item: &str,
    bounds: &RangeInclusive<u64>,
) -> Result<(), ListError> {
    let Some((first, rest)) = item.split_once("..") else {
        return push(values, number_within(item, bounds)?);
    };
    let first = number_within(first, bounds)?;
    let (last, advance) = match rest.split_once(['+', '*']) {
        None => (rest, Advance::By(1)),
        Some((last, amount)) if rest.as_bytes().get(last.len()) == Some(&b'+') => {
            (last, Advance::By(number(amount)?))
        }
        Some((last, amount)) => (last, Advance::Times(number(amount)?)),
    };
    let last = number_within(last, bounds)?;
    match advance {
        Advance::By(0) => return Err(ListError::ZeroStep),
        Advance::Times(0 | 1) => return Err(ListError::SmallFactor),
        Advance::Times(_) if first == 0 => return Err(ListError::GeometricFromZero),
        _ if first > last => return Err(ListError::Backwards { first, last }),
        _ => {}
    }
    let mut next = Some(first);
    while let Some(value) = next.filter(|&value| value <= last) {
        push(values, value)?;
        next = match advance {
            Advance::By(step) => value.checked_add(step),
            Advance::Times(factor) => value.checked_mul(factor),
        };
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Advance {
    By(u64),
    Times(u64),
}

fn push(values: &mut Vec<u64>, value: u64) -> Result<(), ListError> {
    if values.len() == MAX_LENGTH {
        return Err(ListError::TooLong);
    }
    values.push(value);
    Ok(())
}

fn number_within(text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, ListError> {
    let too_large = || ListError::TooLarge {
        value: text.trim().to_owned(),
        most: *bounds.end(),
    };
    let value = match number(text) {
        Err(ListError::TooLarge { .. }) => return Err(too_large()),
        other => other?,
    };
    if value < *bounds.start() {
        return Err(ListError::TooSmall {
            value: text.trim().to_owned(),
            least: *bounds.start(),
        });
    }
    if value > *bounds.end() {
        return Err(too_large());
    }
    Ok(value)
}

fn number(text: &str) -> Result<u64, ListError> {
    let digits = text.trim();
    if digits.is_empty() {
        return Err(ListError::Empty);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ListError::NotANumber(digits.to_owned()));
    }
    digits.parse().map_err(|_| ListError::TooLarge {
        value: digits.to_owned(),
        most: u64::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: RangeInclusive<u64> = 0..=u64::MAX;

    #[test]
    fn the_forms_of_the_manual() {
        let list = |text| numbers(text, 1..=1 << 20).unwrap();
        assert_eq!(list("1,2,4"), [1, 2, 4]);
        assert_eq!(list("1..8"), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(list("1..64+21"), [1, 22, 43, 64]);
        assert_eq!(list("1..63+21"), [1, 22, 43]);
        assert_eq!(list("2..64*2"), [2, 4, 8, 16, 32, 64]);
        assert_eq!(list("1,2..8*2"), [1, 2, 4, 8]);
        assert_eq!(list(" 5 , 5..5 "), [5, 5]);
    }

    #[test]
    fn each_mistake_is_named() {
        let error = |text| numbers(text, 1..=100).unwrap_err().to_string();
        assert_eq!(error("0"), "0 is too small; at least 1");
        assert_eq!(error("101"), "101 is too large; at most 100");
        let huge = "99999999999999999999999";
        assert_eq!(error(huge), format!("{huge} is too large; at most 100"));
        assert_eq!(error("8..1"), "the range 8..1 runs backwards");
        assert_eq!(error("1..8+0"), "a range needs a step of at least 1");
        assert_eq!(
            error("1..8*1"),
            "a geometric range needs a factor of at least 2"
        );
        assert_eq!(error("x"), "'x' is not a whole number");
        assert_eq!(error("-1"), "'-1' is not a whole number");
        assert_eq!(error("1..4..9"), "'4..9' is not a whole number");
        for text in ["", ",", "1,", "..", "1..", "..8", "1..8+", "1..8*"] {
            assert_eq!(numbers(text, 1..=100), Err(ListError::Empty), "{text}");
        }
        assert_eq!(numbers("0..4*2", ALL), Err(ListError::GeometricFromZero));
        assert_eq!(numbers("0..65536", ALL), Err(ListError::TooLong));
        assert_eq!(
            numbers("0..18446744073709551615", ALL),
            Err(ListError::TooLong)
        );
        assert_eq!(words("a,,b"), Err(ListError::Empty));
    }

    #[test]
    fn ranges_that_end_at_the_largest_number_end() {
        let top = u64::MAX;
        let text = format!("{}..{top}+2", top - 3);
        assert_eq!(numbers(&text, ALL), Ok(vec![top - 3, top - 1]));
        let text = format!("{}..{top}*3", top / 2);
        assert_eq!(numbers(&text, ALL), Ok(vec![top / 2]));
    }

    /// One item, and its values by looking at every number there is.
    fn item() -> impl Strategy<Value = (String, Vec<u64>)> {
        let plain = (0u64..200).prop_map(|n| (n.to_string(), vec![n]));
        let range = (0u64..200, 0u64..200).prop_map(|(first, span)| {
            let last = first + span;
            let all = (0..=last).filter(|&n| n >= first).collect();
            (format!("{first}..{last}"), all)
        });
        let step = (0u64..200, 0u64..200, 1u64..40).prop_map(|(first, span, step)| {
            let last = first + span;
            let all = (0..=last)
                .filter(|&n| n >= first && (n - first) % step == 0)
                .collect();
            (format!("{first}..{last}+{step}"), all)
        });
        let geometric = (1u64..200, 0u64..2000, 2u64..9).prop_map(|(first, span, factor)| {
            let last = first + span;
            let is_power = |mut n: u64| {
                while n.is_multiple_of(factor) {
                    n /= factor;
                }
                n == 1
            };
            let all = (first..=last)
                .filter(|&n| n % first == 0 && is_power(n / first))
                .collect();
            (format!("{first}..{last}*{factor}"), all)
        });
        prop_oneof![plain, range, step, geometric]
    }

    proptest! {
        #[test]
        fn a_list_is_what_a_look_at_every_number_finds(items in prop::collection::vec(item(), 1..6)) {
            let text: Vec<_> = items.iter().map(|(text, _)| text.clone()).collect();
            let expected: Vec<_> = items.iter().flat_map(|(_, values)| values.clone()).collect();
            prop_assert_eq!(numbers(&text.join(","), ALL), Ok(expected));
        }

        #[test]
        fn no_text_panics_and_what_passes_is_within_bounds(text in "[0-9,.+* x-]{0,24}") {
            if let Ok(values) = numbers(&text, 3..=1_000) {
                prop_assert!(!values.is_empty() && values.len() <= MAX_LENGTH);
                prop_assert!(values.iter().all(|value| (3..=1_000).contains(value)));
            }
        }
    }
}
