//! The time of a program's calls by call, peer and size of the message, as a file.
//!
//! Called by `sme mpi run`. A call counts from its begin to its end, at every rank.

use std::collections::BTreeMap;

use sme_sim::observe::calls::ThreadCall;
use sme_sim::time::Time;

use super::Format;
use super::output::Output;
use super::row::{Cell, rendered};
use super::stop::Stop;

/// The flag that asks for it.
pub const FLAG: &str = "--profile";

/// The columns behind those that name the machine.
const KEYS: [&str; 6] = ["call", "peer", "bytes_up_to", "calls", "bytes", "time_us"];

/// The properties by which calls are counted together.
type Kind = (&'static str, Option<u32>, u64);

/// The calls of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    calls: u64,
    bytes: u64,
    ps: u64,
}

/// Writes the sums over `calls`, each with its rank, behind the cells that name the machine; the
/// kinds that took longest come first.
pub fn write(
    mut output: Output,
    (heading, head): (&[&str], &[Cell]),
    calls: &[(u32, ThreadCall)],
    format: Format,
) -> Result<(), Stop> {
    let heading: Vec<&str> = heading.iter().chain(&KEYS).copied().collect();
    let rows: Vec<Vec<Cell>> = rows(calls)
        .map(|own| head.iter().cloned().chain(own).collect())
        .collect();
    output.push(&rendered(&heading, &rows, format))?;
    output.commit()
}

/// The same sums as a table, without what names the machine.
pub fn table(calls: &[(u32, ThreadCall)]) -> String {
    let rows: Vec<Vec<Cell>> = rows(calls).map(Vec::from).collect();
    rendered(&KEYS, &rows, Format::Table)
}

fn rows(calls: &[(u32, ThreadCall)]) -> impl Iterator<Item = [Cell; KEYS.len()]> {
    sums(calls)
        .into_iter()
        .map(|((call, peer, bytes_up_to), sum)| {
            [
                Cell::text(call),
                peer.map_or(Cell::Absent, |peer| Cell::Count(peer.into())),
                Cell::Count(bytes_up_to),
                Cell::Count(sum.calls),
                Cell::Count(sum.bytes),
                Cell::micros(Time::from_ps(sum.ps)),
            ]
        })
}

/// The sums by kind, the longest first, of equal ones by kind.
fn sums(calls: &[(u32, ThreadCall)]) -> Vec<(Kind, Sum)> {
    let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
    for (_, ended) in calls {
        let call = ended.call;
        // Messages up to a power of two are of one size; those without data of another.
        let bytes_up_to = match call.bytes {
            0 => 0,
            bytes => bytes.checked_next_power_of_two().unwrap_or(bytes),
        };
        let sum = sums
            .entry((call.name, call.peer(), bytes_up_to))
            .or_default();
        sum.calls += 1;
        sum.bytes += call.bytes;
        sum.ps += ended.end.since(ended.begin).as_ps();
    }
    let mut all: Vec<(Kind, Sum)> = sums.into_iter().collect();
    // Stable, so that equal ones stay in the order of their kinds.
    all.sort_by_key(|&(_, sum)| std::cmp::Reverse(sum.ps));
    all
}

#[cfg(test)]
mod tests {
    use sme_sim::parts::contract::{Call, Toward};

    use super::*;

    #[test]
    fn calls_are_counted_by_what_they_have_in_common() {
        let call = |name, peer, bytes, ns: u64| {
            let call = Call::new(name, bytes).of(Toward::To, peer);
            let ended = ThreadCall {
                call,
                thread: 0,
                begin: Time::from_ns(5),
                end: Time::from_ns(5 + ns),
            };
            (0, ended)
        };
        let calls = [
            call("MPI_Send", 1, 9, 10),
            call("MPI_Send", 1, 16, 20),
            call("MPI_Send", 2, 16, 40),
            call("MPI_Send", 1, 0, 5),
        ];
        let sum = |calls, bytes, ns: u64| Sum {
            calls,
            bytes,
            ps: 1000 * ns,
        };
        let expected = [
            (("MPI_Send", Some(2), 16), sum(1, 16, 40)),
            (("MPI_Send", Some(1), 16), sum(2, 25, 30)),
            (("MPI_Send", Some(1), 0), sum(1, 0, 5)),
        ];
        assert_eq!(sums(&calls), expected);
    }
}
