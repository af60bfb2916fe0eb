//! `sme mpi nas`, and the copies within own memory by which its ranks pack their messages.

use sme_memory::{Blocks, Own};
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use crate::command::{cell, sme_in, text};

fn number(said: &str, key: &str) -> f64 {
    cell(said, key).parse().unwrap()
}

/// The status, the standard output and the complaint of a benchmark.
fn nas(flags: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = sme_in(directory.path(), &format!("mpi nas {flags} --no-host"));
    let said = |bytes: &[u8]| text(bytes).to_owned();
    (
        output.status.code(),
        said(&output.stdout),
        said(&output.stderr),
    )
}

#[test]
fn one_rank_takes_the_time_of_one_core() {
    for kernel in ["bt", "lu"] {
        let flags =
            format!("{kernel} --machine scc --class S --core-seconds 30 --ranks 1 --steps 1");
        let (status, said, complaint) = nas(&flags);
        assert_eq!(status, Some(0), "{complaint}");
        assert_eq!(number(&said, "speedup"), 1.0, "{said}");
        assert_eq!(number(&said, "total_s"), 30.0, "{said}");
        assert_eq!(number(&said, "messages"), 0.0, "{said}");
    }
}

/// Each rank has six messages of faces in a step of BT, and for each axis one for every slab but
/// one, upwards and downwards; with every library alike.
#[test]
fn messages_are_those_of_the_program() {
    for channel in ["rcce", "sccmpb", "sccshm"] {
        let flags = "bt --machine scc --class S --core-seconds 1 --ranks 9 --steps 1 --channel";
        let (status, said, complaint) = nas(&format!("{flags} {channel}"));
        assert_eq!(status, Some(0), "{complaint}");
        let of_rank = 6 + 3 * 2 * (3 - 1);
        assert_eq!(number(&said, "messages"), f64::from(2 * 9 * of_rank));
        assert!(
            number(&said, "step_ms") > number(&said, "compute_ms"),
            "{said}"
        );
    }
}

#[test]
fn wrong_benchmarks_are_refused() {
    for (flags, says) in [
        ("sp", "sp"),
        (
            "bt --ranks 8",
            "--ranks: bt has a square number of ranks, not 8",
        ),
        (
            "lu --ranks 9",
            "--ranks: lu has a power of two of ranks, not 9",
        ),
        (
            "bt --class S --core-seconds 1 --ranks 25",
            "--ranks: 25 ranks leave parts of fewer than 3 points along an axis",
        ),
        (
            "bt --class B",
            "--core-seconds: has to be given for class B",
        ),
        (
            "bt --core-seconds nan",
            "--core-seconds: nan is not a number",
        ),
        ("lu --core-seconds -1", "--core-seconds: -1 is not a number"),
        (
            "bt --ranks 1 --core-seconds 1e-20",
            "--core-seconds: 1e-20 is not a number from 0.001 to 10000000",
        ),
        ("lu --steps 0", "--steps"),
        ("lu --class X", "--class"),
    ] {
        let (status, _, complaint) = nas(&format!("{flags} --machine scc"));
        assert_eq!(status, Some(2), "{flags}");
        let is_line = complaint.lines().count() == 1;
        assert!(complaint.contains(says) && is_line, "{flags}: {complaint}");
    }
}

/// Four doubles, of which neither, the source, or both are in a cache.
#[test]
fn a_copy_takes_what_the_caches_make_of_it() {
    let machine = Machine::builtin("scc").unwrap();
    let program = |memory: ThreadMemory, _, _| async move {
        let (from, to) = (Own(1 << 20), Own(2 << 20));
        for (number, (from, to)) in (0..).zip([(from, to), (from, to), (to, from), (from, to)]) {
            memory.begin(Span::new("copy", number)).await;
            memory.copy(from, to, 4).await;
            memory.end(Span::new("copy", number)).await;
        }
    };
    let setup = Setup::new(machine.shape(), 1, 1);
    let mut built = machine.build(setup, program).unwrap();
    built.run(1, |_| {}).unwrap();
    let spans = built.spans().called("copy");
    let took: Vec<Time> = spans
        .iter()
        .map(|span| span.last_end.since(span.first_begin))
        .collect();
    // A line is fetched and four doubles go past the caches; the latter alone; a line is fetched
    // for stores that hit; nothing leaves the core.
    let [neither, source, fetched, both] = took[..] else {
        panic!("{took:?}");
    };
    assert!(
        neither > source && source > fetched && fetched > both,
        "{took:?}"
    );
    // Each double is loaded, copied and stored in the first level: 1, 10 and 1 cycles, and 2 for
    // each further store's own instructions.
    let cycle = 1e12 / 533e6;
    let cycles = both.as_ps() as f64 / cycle;
    assert!((40.0..70.0).contains(&cycles), "{cycles}");
}
