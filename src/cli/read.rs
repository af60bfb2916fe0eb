//! The text of one flag, read: numbers, names, times, topologies, as one value or as a list.
//!
//! Called by [`super::args`] and by the commands whose flags are few. Every complaint is one line
//! that names the flag.

use std::ops::RangeInclusive;
use std::str::FromStr;

use sme_barrier::UnknownName;
use sme_sim::machine::{Dimension, Limits};
use sme_sim::parts::fabric::{Topology, TopologyError, TopologyKind};
use sme_sim::time::Time;

use super::list::{self, ListError};
use super::names;
use crate::report::stop::Stop;

/// The most nodes, and the most positions of a topology.
pub const MAX_NODES: u32 = 1 << 20;
/// The most counted episodes.
pub const MAX_EPISODES: u32 = 10_000_000;
/// The most turns of a native measurement.
pub const MAX_REPETITIONS: u32 = 1_000_000;
/// The most threads of the host.
pub const MAX_WORKERS: u64 = 1_024;
/// The longest time a flag takes: a second.
pub const MAX_TIME: Limits = Limits::new(Dimension::Time, 0, 1_000_000_000_000);

/// Whether a flag takes one value or a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// One value.
    One,
    /// One value, of which `sme sweep` takes a list.
    Point,
    /// A list.
    Many,
}

/// Number of threads of the host that `--flag text` asks for.
pub fn host_threads(flag: &str, text: &str) -> Result<usize, Stop> {
    one(flag, numbers(flag, text, 1, MAX_WORKERS, Values::One)?).map(|count| count as usize)
}

/// Number of threads the host has for this process.
pub fn all_host_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Reads `--episodes text`.
pub fn episodes(text: &str) -> Result<u32, Stop> {
    let flag = "--episodes";
    one(flag, counts(flag, text, 1, MAX_EPISODES, Values::One)?)
}

/// Reads `--seed text`.
pub fn seed(text: &str) -> Result<u64, Stop> {
    one("--seed", numbers("--seed", text, 0, u64::MAX, Values::One)?)
}

/// Reads `--fan-in text`.
pub fn fan_in(text: &str) -> Result<u32, Stop> {
    let flag = "--fan-in";
    one(flag, counts(flag, text, 2, MAX_NODES, Values::One)?)
}

/// Reads `--repetitions text`.
pub fn repetitions(text: &str) -> Result<u32, Stop> {
    let flag = "--repetitions";
    one(flag, counts(flag, text, 1, MAX_REPETITIONS, Values::One)?)
}

/// Reads a time, up to a second.
pub fn time(flag: &str, text: &str) -> Result<Time, Stop> {
    one(flag, times(flag, text, Values::One)?)
}

/// Reads a time within `limits`.
pub fn time_within(flag: &str, text: &str, limits: Limits) -> Result<Time, Stop> {
    one(flag, times_within(flag, text, Values::One, limits)?)
}

/// Reads a list of numbers of threads, each at most `most`.
pub fn threads(flag: &str, text: &str, most: usize) -> Result<Vec<usize>, Stop> {
    let threads = numbers(flag, text, 1, most as u64, Values::Many)?;
    Ok(threads.into_iter().map(|count| count as usize).collect())
}

/// Reads one name.
pub fn name<T: FromStr<Err = UnknownName>>(flag: &str, text: &str) -> Result<T, Stop> {
    one(flag, names(flag, text, Values::One)?)
}

/// `read` of a flag that was given; one unspecified value of a flag that was not.
pub fn optional<T>(
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<Vec<T>, Stop>,
) -> Result<Vec<Option<T>>, Stop> {
    match text {
        None => Ok(vec![None]),
        Some(text) => Ok(read(text)?.into_iter().map(Some).collect()),
    }
}

/// Reads a list of counts of 32 bits.
pub fn counts(
    flag: &str,
    text: &str,
    least: u32,
    most: u32,
    values: Values,
) -> Result<Vec<u32>, Stop> {
    let numbers = numbers(flag, text, least.into(), most.into(), values)?;
    let counts = numbers.into_iter().map(u32::try_from).collect();
    // The list has kept the bounds.
    Result::map_err(counts, |error| Stop::flag(flag, error))
}

/// Reads a list of numbers from `least` to `most`.
pub fn numbers(
    flag: &str,
    text: &str,
    least: u64,
    most: u64,
    values: Values,
) -> Result<Vec<u64>, Stop> {
    let flag = format!("{flag} {text}");
    let list = list::numbers(text, least..=most).map_err(|error| match (&error, values) {
        (ListError::Empty, Values::Many) => {
            Stop::flag(&flag, format!("{error}; write a list like 1,2,4 or 1..8"))
        }
        _ => Stop::flag(&flag, error),
    })?;
    one_unless(values, &flag, list)
}

/// Reads a real number within `range`.
pub fn real(flag: &str, text: &str, range: &RangeInclusive<f64>) -> Result<f64, Stop> {
    let read = text.parse().ok();
    read.filter(|value| range.contains(value)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        Stop::flag(
            flag,
            format!("{text} is not a number from {least} to {most}"),
        )
    })
}

/// Reads a list of words.
pub fn words<'t>(flag: &str, text: &'t str, values: Values) -> Result<Vec<&'t str>, Stop> {
    let words = list::words(text).map_err(|error| Stop::flag(flag, error))?;
    one_unless(values, flag, words)
}

/// The only value of a list that has been read as [`Values::One`].
pub fn one<T>(flag: &str, list: Vec<T>) -> Result<T, Stop> {
    let mut list = list.into_iter();
    match (list.next(), list.next()) {
        (Some(value), None) => Ok(value),
        _ => Err(Stop::flag(flag, "one value here, not a list")),
    }
}

fn one_unless<T>(values: Values, flag: &str, list: Vec<T>) -> Result<Vec<T>, Stop> {
    match values {
        _ if list.len() == 1 => Ok(list),
        Values::Many => Ok(list),
        Values::One => Err(Stop::flag(flag, "one value here, not a list")),
        Values::Point => Err(Stop::flag(flag, "one value here; sme sweep takes lists")),
    }
}

/// Reads a list of names.
pub fn names<T: FromStr<Err = UnknownName>>(
    flag: &str,
    text: &str,
    values: Values,
) -> Result<Vec<T>, Stop> {
    each_word(flag, text, values, names::parse)
}

/// Reads a list of topologies.
pub fn topologies(text: &str, values: Values) -> Result<Vec<Topology>, Stop> {
    each_word("--topology", text, values, |word| {
        let shape = word.split(':').next().unwrap_or(word);
        let known = TopologyKind::ALL.map(TopologyKind::name);
        if word.contains(':') && !known.contains(&shape) {
            return Err(names::unknown(shape, &known));
        }
        word.parse()
            .map_err(|error: TopologyError| error.to_string())
    })
}

/// Reads a list of times, each up to [`MAX_TIME`].
pub fn times(flag: &str, text: &str, values: Values) -> Result<Vec<Time>, Stop> {
    times_within(flag, text, values, MAX_TIME)
}

fn times_within(flag: &str, text: &str, values: Values, limits: Limits) -> Result<Vec<Time>, Stop> {
    each_word(flag, text, values, |word| match word {
        "0" => Ok(Time::ZERO),
        _ => match limits.parse(word) {
            Ok(ps) => Ok(Time::from_ps(ps)),
            Err(error) => Err(error.to_string()),
        },
    })
}

fn each_word<T>(
    flag: &str,
    text: &str,
    values: Values,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Stop> {
    let words = words(flag, text, values)?;
    let read = |word: &str| read(word).map_err(|reason| Stop::flag(flag, reason));
    words.into_iter().map(read).collect()
}
