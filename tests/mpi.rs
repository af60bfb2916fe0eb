//! The program shared by several processes that `mpirun` starts: the same bytes as from one, and an
//! end for all when one dies. Built with the feature `mpi` only.

// What fails here fails the test.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "not everything is for these tests")]
#[path = "system/command.rs"]
mod command;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use command::{sme_in, text};

/// `mpirun -n PROCESSES sme ARGUMENTS` in `directory`, or nothing where there is no `mpirun`. Open
/// MPI keeps what it needs meanwhile in `sessions`: two that begin at once fail over one directory.
fn mpirun(directory: &Path, sessions: &Path, processes: usize, arguments: &str) -> Option<Command> {
    let found = Command::new("mpirun")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        // Past the test runner, which keeps what a test prints.
        let _ = writeln!(std::io::stderr().lock(), "skipped: mpirun is not installed");
        return None;
    }
    let mut command = Command::new("mpirun");
    command
        .args(["-n", &processes.to_string(), env!("CARGO_BIN_EXE_sme")])
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        // What follows would be flags of Open MPI, which other launchers do not know.
        .env("OMPI_MCA_orte_tmpdir_base", sessions)
        .env("PRTE_MCA_prte_tmpdir_base", sessions)
        // More processes than processors, and in a container one may be root.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Waiting processes leave the processor to those they wait for.
        .env("OMPI_MCA_mpi_yield_when_idle", "1");
    Some(command)
}

/// Everything that `sme` said of itself on stderr: the launcher has words of its own.
fn complaints(output: &Output) -> String {
    let lines = text(&output.stderr).lines();
    let own = lines.filter(|line| !line.starts_with('-') && line.contains("sme: "));
    own.collect::<Vec<_>>().join("\n")
}

/// The files of `directory` with their content.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn same(arguments: &str, processes: std::ops::RangeInclusive<usize>) {
    let alone_in = tempfile::tempdir().unwrap();
    let alone = sme_in(alone_in.path(), arguments);
    let sessions = tempfile::tempdir().unwrap();
    for count in processes {
        let directory = tempfile::tempdir().unwrap();
        let launch = mpirun(directory.path(), sessions.path(), count, arguments);
        let Some(mut command) = launch else {
            return;
        };
        let together = command.output().unwrap();
        let case = format!("{arguments}, {count} processes: {}", text(&together.stderr));
        assert_eq!(together.status.code(), alone.status.code(), "{case}");
        assert_eq!(text(&together.stdout), text(&alone.stdout), "{case}");
        assert_eq!(files(directory.path()), files(alone_in.path()), "{case}");
        if !alone.status.success() {
            let complaint = text(&alone.stderr).lines().next().unwrap();
            assert!(complaints(&together).contains(complaint), "{case}");
            // Once.
            assert_eq!(complaints(&together).lines().count(), 1, "{case}");
        }
    }
}

#[test]
fn a_barrier_writes_the_same_bytes() {
    same(
        "barrier --nodes 16 --cores 4 --episodes 3 --no-host --format json",
        1..=4,
    );
    same(
        "barrier --nodes 20 --cores 3 --algorithm dissemination --skew 200ns --no-host \
         --format csv -o row.csv --per-thread threads.csv --link-load links.csv",
        2..=3,
    );
    same(
        "barrier --nodes 6 --topology torus:2x2x2 --workers 2 --no-host",
        4..=4,
    );
    same(
        "barrier --nodes 25 --cores 8 --form compact --no-host --format csv",
        3..=3,
    );
}

#[test]
fn a_sweep_writes_the_same_rows() {
    same(
        "sweep --nodes 1,4,16 --cores 1..4 --episodes 1 --no-host --format csv -o rows.csv",
        1..=4,
    );
    same("sweep --nodes 4,9 --cores 2 --no-host --format json", 3..=3);
}

#[test]
fn what_cannot_be_done_is_said_once() {
    same("barrier --nodes 0", 2..=2);
    same("barrier --nodes 4 -o none/row.csv", 3..=3);
    same(
        "sweep --nodes 4 --no-host --format csv -o none/rows.csv",
        2..=2,
    );
}

/// The number of the process of `launcher` that is number `rank` of the run, once it is there.
#[cfg(target_os = "linux")]
fn process(launcher: u32, rank: usize) -> Option<u32> {
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let directory = entry.ok()?.path();
        let number: u32 = directory.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        let (_, behind_name) = stat.rsplit_once(')')?;
        let parent: u32 = behind_name.split_whitespace().nth(1)?.parse().ok()?;
        let environment = fs::read(directory.join("environ")).ok()?;
        let is = |name: &str| {
            let variable = format!("{name}={rank}");
            environment
                .split(|&b| b == 0)
                .any(|v| v == variable.as_bytes())
        };
        let is_rank = is("OMPI_COMM_WORLD_RANK") || is("PMI_RANK");
        (parent == launcher && is_rank).then_some(number)
    })
}

/// Returns whether the process is told of SIGTERM, rather than ended by it: MPI has started in it.
#[cfg(target_os = "linux")]
fn hears_of_its_end(process: u32) -> bool {
    const SIGTERM: u32 = 15;
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (SIGTERM - 1) & 1 == 1)
}

/// A long run of three processes, of which number `rank` gets `signal` when it is under way: it
/// fails, prints nothing and writes nothing. What it says on stderr.
#[cfg(target_os = "linux")]
fn ended_by(signal: &str, rank: usize) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let arguments = "barrier --nodes 4096 --cores 16 --episodes 100000 --no-host -o row.csv";
    let sessions = tempfile::tempdir().unwrap();
    let mut command = mpirun(directory.path(), sessions.path(), 3, arguments)?;
    let mut run = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // Not before: Open MPI's launcher may wait for ever when a process dies while MPI starts. The
    // third does not say what ends it, but starts together with the others.
    let ready = |rank| process(run.id(), rank).filter(|&p| rank > 1 || hears_of_its_end(p));
    let number = loop {
        let processes: Vec<_> = (0..3).filter_map(ready).collect();
        if let [_, _, _] = processes[..] {
            break processes[rank];
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nothing starts");
        std::thread::sleep(Duration::from_millis(20));
    };
    std::thread::sleep(Duration::from_millis(1_000));
    let killed = Command::new("kill")
        .args([signal, &number.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let ended = Instant::now();
    while run.try_wait().unwrap().is_none() {
        if ended.elapsed() > Duration::from_secs(60) {
            run.kill().unwrap();
            panic!("the launcher waits on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = run.wait_with_output().unwrap();
    let error = text(&output.stderr).to_owned();
    assert!(!output.status.success(), "{error}");
    assert_eq!(text(&output.stdout), "", "{error}");
    assert!(!directory.path().join("row.csv").exists(), "{error}");
    Some(error)
}

#[cfg(target_os = "linux")]
#[test]
fn when_a_process_dies_all_end_and_say_so() {
    for rank in [0, 2] {
        let Some(error) = ended_by("-KILL", rank) else {
            return;
        };
        // What the others say the launcher may not pass on: it ends when they have ended, and not
        // when it has read all they wrote. Then it speaks itself.
        let left = usize::from(rank == 0);
        let own = format!("sme: process {left} of 3 has been ended from outside");
        let launcher = ["signal 9", "SIGNAL: 9"];
        let said = error.contains(&own) || launcher.iter().any(|words| error.contains(words));
        assert!(said, "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_ended_says_so() {
    for rank in [0, 1] {
        let Some(error) = ended_by("-TERM", rank) else {
            return;
        };
        let said = format!("sme: process {rank} of 3 has been ended from outside");
        assert!(error.contains(&said), "{error}");
    }
}
