//! The section `[process]` of machine files: the costs of a process manager, which families declare
//! alike.

use std::ops::RangeInclusive;

use super::reader::SectionReader;
use super::shape::Software;
use crate::time::Time;

/// In picoseconds.
const COST: RangeInclusive<u64> = 0..=1_000_000_000_000;

/// A cost: its key, its meaning, and what it is where a file leaves it out.
struct Cost {
    key: &'static str,
    meaning: &'static str,
    meaning_with_default: &'static str,
    default: Time,
}

macro_rules! cost {
    ($key:literal, $meaning:literal, $default:literal, $time:expr) => {
        Cost {
            key: $key,
            meaning: $meaning,
            meaning_with_default: concat!($meaning, "; ", $default, " if left out"),
            default: $time,
        }
    };
}

const FORK: Cost = cost!(
    "fork",
    "a daemon's fork of a process",
    "100 us",
    Time::from_ns(100_000)
);
const EXEC: Cost = cost!(
    "exec",
    "executing another program in a process, until that begins",
    "1 ms",
    Time::from_ns(1_000_000)
);
const INIT: Cost = cost!(
    "init",
    "MPI_Init of one process, without messages and requests of its manager",
    "2 ms",
    Time::from_ns(2_000_000)
);
const SERVE: Cost = cost!(
    "serve",
    "serving a request at the manager of a program",
    "5 us",
    Time::from_ns(5_000)
);
const SERVE_SOCKET: Cost = cost!(
    "serve_socket",
    "serving a request over TCP/IP",
    "50 us",
    Time::from_ns(50_000)
);
const LOGIN: Cost = cost!(
    "login",
    "logging in on another core by SSH",
    "100 ms",
    Time::from_ns(100_000_000)
);

/// Adds the costs of the section to those of `software`; a file has to give them.
pub(crate) fn required(section: &mut SectionReader<'_, '_>, software: Software) -> Software {
    with(software, |cost| section.time(cost.key, COST, cost.meaning))
}

/// The same, of which a file may leave each out.
pub(crate) fn optional(section: &mut SectionReader<'_, '_>, software: Software) -> Software {
    with(software, |cost| {
        section.optional_time(cost.key, cost.default, COST, cost.meaning_with_default)
    })
}

fn with(software: Software, mut read: impl FnMut(&Cost) -> Time) -> Software {
    Software {
        fork: read(&FORK),
        exec: read(&EXEC),
        init: read(&INIT),
        serve: read(&SERVE),
        serve_socket: read(&SERVE_SOCKET),
        login: read(&LOGIN),
        ..software
    }
}
