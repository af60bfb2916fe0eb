//! The reports on unmodified MPI programs: critical paths of calls, profiles, stale loads.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sme::launch::{self, Failed, Start};
use sme::messages::job::{self, Job, Library, Observe};
use sme::mpi::abi::Compute;
use sme::mpi::channel::sections::Flaw;
use sme_sim::machine::Machine;

use crate::command::text;
use crate::unmodified::{MACHINES, compiled, run};

/// The rows of a CSV file without quotes, without its heading.
fn csv_rows(path: &Path) -> Vec<Vec<String>> {
    let written = fs::read_to_string(path).unwrap();
    let rows = written.lines().skip(1);
    rows.map(|row| row.split(',').map(str::to_owned).collect())
        .collect()
}

/// The steps of a critical path add up to what the timeline says of the call: of the longest, of
/// the longest of a name and rank, and of the one with a number.
#[test]
fn a_call_is_explained() {
    let Some(program) = compiled("../../examples/heat.c") else {
        return;
    };
    let within = tempfile::tempdir().unwrap();
    let file = |name| within.path().join(name);
    for machine in MACHINES {
        let flags = |more: &str| {
            let (calls, path) = (file("calls.csv"), file("path.csv"));
            let (calls, path) = (calls.display(), path.display());
            format!("--machine {machine} -n 3 --timeline {calls} --explain-to {path} {more}")
        };
        let plain = run(&format!("--machine {machine} -n 3"), &program, &[]);
        let took = |row: &Vec<String>| {
            let [begin, end] = [2, 3].map(|column| row[column].parse::<f64>().unwrap());
            end - begin
        };
        type Takes = fn(&[String]) -> bool;
        let cases: [(&str, Takes, Option<usize>); 4] = [
            ("", |row| row[1] != "MPI_Finalize", None),
            ("--explain=MPI_Reduce", |row| row[1] == "MPI_Reduce", None),
            (
                "--explain=2:MPI_Sendrecv",
                |row| row[0] == "2" && row[1] == "MPI_Sendrecv",
                None,
            ),
            (
                "--explain=1:MPI_Sendrecv:7",
                |row| row[0] == "1" && row[1] == "MPI_Sendrecv",
                Some(6),
            ),
        ];
        for (which, is_one, number) in cases {
            let output = run(&flags(which), &program, &[]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{machine} {which}: {said}");
            assert_eq!(output.stdout, plain.stdout, "{machine} {which}");
            let calls = csv_rows(&file("calls.csv"));
            let mut among = calls.iter().filter(|row| is_one(row)).map(took);
            let expected = match number {
                Some(number) => among.nth(number).unwrap(),
                None => among.fold(0.0, f64::max),
            };
            let steps = csv_rows(&file("path.csv"));
            let durations = steps.iter().map(|step| step[1].parse::<f64>().unwrap());
            let sum: f64 = durations.sum();
            assert!(
                (sum - expected).abs() < 1e-3,
                "{machine} {which}: {sum} ns of {expected}"
            );
            if !which.is_empty() {
                assert!(said.contains("\ncritical path of MPI_"), "{said}");
                let mut lines = said.lines().map(|line| line.split_whitespace());
                let total = lines.find_map(|mut words| {
                    let is_total = words.next() == Some("total");
                    is_total.then(|| words.next().map(str::parse::<f64>))?
                });
                let total = total.unwrap().unwrap();
                assert!((total - sum).abs() < 1e-3, "{machine} {which}: {total} ns");
            }
        }
    }
    for (which, status, why) in [
        ("MPI_Recieve", 2, "--explain: MPI_Recieve is no call of MPI"),
        ("3:MPI_Reduce", 2, "--explain"),
        ("0:MPI_Reduce:0", 2, "--explain"),
        ("0:MPI_Reduce:1:1", 2, "--explain"),
        ("0:MPI_Reduce:2", 1, "has made no such call"),
        ("MPI_Scan", 1, "has made no such call"),
    ] {
        let output = run(&format!("-n 3 --explain={which}"), &program, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{which}: {said}");
        assert!(said.contains(why), "{which}: {said}");
    }
}

/// The document shows the profile, and the sums of the critical path, as they are printed.
#[test]
fn the_document_says_why() {
    let Some(program) = compiled("../../examples/heat.c") else {
        return;
    };
    let document = fs::read_to_string("docs/mpi-programs.md").unwrap();
    for flags in ["--profile -", "--explain"] {
        let run = run(&format!("--machine scc -n 8 {flags}"), &program, &[]);
        let said = text(&run.stderr);
        assert!(document.contains(&format!(
            "$ sme mpi run --machine scc -n 8 {flags} ./heat\n"
        )));
        // Of the path the document shows the first steps.
        let (begin, end) = match flags {
            "--explain" => said.rsplit_once("\npart").unwrap(),
            _ => ("", said),
        };
        let (table, _) = end.rsplit_once("sme: ").unwrap();
        let first: String = begin.split_inclusive('\n').take(7).collect();
        for shown in [first.trim_start(), table.trim()] {
            assert!(
                document.contains(shown),
                "docs/mpi-programs.md has not:\n{shown}"
            );
        }
    }
}

#[test]
fn a_profile_is_shown() {
    let Some(program) = compiled("../../examples/heat.c") else {
        return;
    };
    let output = run("-n 3 --profile -", &program, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let heading = said.lines().next().unwrap_or_default();
    let keys: Vec<&str> = heading.split_whitespace().collect();
    let expected = ["call", "peer", "bytes_up_to", "calls", "bytes", "time_us"];
    assert_eq!(keys, expected, "{said}");
    assert!(said.contains("\nMPI_Sendrecv "), "{said}");
    assert!(!Path::new("-").exists());
}

/// No load of the library is stale, on any machine.
#[test]
fn loads_are_checked() {
    for source in ["calls.c", "windows.c"] {
        let Some(program) = compiled(source) else {
            return;
        };
        for machine in ["scc", "sme-prototype", "xeon-e5-2650"] {
            let output = run(&format!("--machine {machine} -n 4 --stale"), &program, &[]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{source} {machine}: {said}");
            assert!(
                said.starts_with("0 stale reads of "),
                "{source} {machine}: {said}"
            );
        }
    }
}

/// Where a rank keeps the copies of what it has read, the run of the same program says so.
#[test]
fn stale_reads_of_the_channel_are_found() {
    let Some(program) = compiled("../../examples/heat.c") else {
        return;
    };
    let stale = |(machine, library, set): (_, _, &[_]), flaw| {
        let machine = Machine::builtin(machine).unwrap().with(set).unwrap();
        let mut job = Job::new(Arc::new(machine), library, 2);
        job.flaw = flaw;
        let libraries = tempfile::tempdir().unwrap();
        let start = Start {
            command: vec![program.clone().into_os_string()],
            ranks: 2,
            universe: 2,
            has_prefix: false,
            measures: false,
            intercepts_clocks: false,
        };
        let observe = Observe {
            stale: true,
            ..Observe::default()
        };
        // A run on stale data may end in any way.
        match launch::run(&job, &start, libraries.path(), Compute::Zero, observe) {
            Ok(observed) => observed.stale.unwrap(),
            Err(
                Failed::Stale { report, .. } | Failed::Simulation(job::Error::Stale { report, .. }),
            ) => *report,
            Err(failed) => panic!("{flaw:?}: {failed}"),
        }
    };
    let alone = [("node.sockets", "1"), ("node.cores_per_socket", "1")];
    for channel in [
        ("scc", Library::Sccmpb, &[][..]),
        ("cxl-pool", Library::Sections, &alone),
    ] {
        let right = stale(channel, None);
        assert!(right.loads > 0);
        assert_eq!(right.stale_reads, 0, "{right}");
        let wrong = stale(channel, Some(Flaw::KeepsCopies));
        assert!(wrong.stale_reads > 0, "{wrong}");
        assert!(
            wrong.to_string().contains("channel/sections/mod.rs"),
            "{wrong}"
        );
    }
}
