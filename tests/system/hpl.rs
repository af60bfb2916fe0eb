//! `sme mpi hpl`.

use crate::command::{cell, sme_in, text};

/// The status, the standard output and the complaint of a run.
fn hpl(flags: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = sme_in(directory.path(), &format!("mpi hpl {flags} --no-host"));
    let said = |bytes: &[u8]| text(bytes).to_owned();
    (
        output.status.code(),
        said(&output.stdout),
        said(&output.stderr),
    )
}

fn row(flags: &str) -> String {
    let (status, said, complaint) = hpl(flags);
    assert_eq!(status, Some(0), "{flags}: {complaint}");
    said
}

fn number(said: &str, key: &str) -> f64 {
    cell(said, key).parse().unwrap()
}

/// One rank takes the time of the operations that there are, which HPL counts without the search
/// for pivots, the division by them, and the triangles that are solved.
#[test]
fn one_rank_computes_at_the_rate_of_a_core() {
    for (n, nb) in [(128, 8), (256, 32)] {
        let said = row(&format!(
            "--machine scc --n {n} --nb {nb} --p 1 --q 1 --core-gflops 0.25"
        ));
        assert_eq!(number(&said, "messages"), 0.0, "{said}");
        let rate = number(&said, "gflops");
        assert!((0.23..0.25).contains(&rate), "{said}");
    }
}

/// More ranks are faster, and each machine solves the same system: the residual depends on the
/// order of sums alone.
#[test]
fn every_channel_solves_the_system() {
    let mut residuals = Vec::new();
    for machine in [
        "--machine scc",
        "--machine scc --channel sccshm",
        "--machine sme-prototype",
        "--machine ideal",
        "--machine mppa256",
    ] {
        let said = row(&format!(
            "{machine} --n 96 --nb 8 --p 2 --q 4 --core-gflops 0.2"
        ));
        residuals.push(cell(&said, "residual").to_owned());
        let slower = row(&format!(
            "{machine} --n 96 --nb 8 --p 1 --q 2 --core-gflops 0.01"
        ));
        assert!(
            number(&said, "time_ms") < number(&slower, "time_ms"),
            "{said}{slower}"
        );
    }
    assert!(
        residuals.iter().all(|residual| *residual == residuals[0]),
        "{residuals:?}"
    );
}

#[test]
fn the_number_of_workers_changes_nothing() {
    for machine in ["scc", "sme-prototype", "mppa256"] {
        let flags = format!("--machine {machine} --n 64 --nb 4,8 --p 4 --q 4 --core-gflops 1");
        assert_eq!(row(&flags), row(&format!("{flags} --workers 2")));
    }
}

#[test]
fn wrong_grids_are_refused() {
    for (flags, says) in [
        (
            "--machine scc --p 7 --q 7",
            "--q: 7 x 7 ranks are more than the 48 that the machine has cores for",
        ),
        ("--machine scc --p 0", "--p 0: 0 is too small"),
        ("--machine scc --n 16385", "--n 16385: 16385 is too large"),
        ("--machine scc --nb 0", "--nb 0: 0 is too small"),
        (
            "--machine scc --channel rcce",
            "--channel: rcce has no MPI calls",
        ),
        (
            "--machine scc --core-gflops 0",
            "--core-gflops: 0 is not a number from 0.000001 to 1000",
        ),
        (
            "--machine ideal --set core.arithmetic=0ns",
            "--core-gflops: has to be given: the machine's core.arithmetic is no rate to go by",
        ),
        (
            "--machine scc --n 4096 --core-gflops 0.000001",
            "--core-gflops: a core would compute 4096 unknowns for more than 100 days",
        ),
        (
            "--machine scc --n 1..400 --nb 1..400",
            "--nb: with --n more than 65536 runs",
        ),
        (
            "--machine scc --n 8,16 --explain",
            "--explain: of one run; --n and --nb are 2",
        ),
        (
            "--machine mppa256 --channel sections",
            "a message library needs loads and stores of other nodes' memory",
        ),
        (
            "--machine mppa256 --n 2040",
            "a rank's data end at byte 2232576 of its node's memory, which has 1703936",
        ),
    ] {
        let (status, said, complaint) = hpl(flags);
        assert_eq!(
            (status, said.as_str()),
            (Some(2), ""),
            "{flags}: {complaint}"
        );
        assert!(
            complaint.contains(says) && complaint.lines().count() == 1,
            "{flags}: {complaint}"
        );
    }
}
