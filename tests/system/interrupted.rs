//! Runs of MPI programs that a signal ends.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::ends;

/// The libraries of the processes are removed, and the processes end, whenever the signal comes.
#[test]
fn a_signal_leaves_neither_temporary_files_nor_processes() {
    for delay in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let numbers = tempfile::NamedTempFile::new().unwrap();
        let script = format!("echo $$ >> {}; exec sleep 20", numbers.path().display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_sme"))
            .args("mpi run --machine scc -n 2 sh -c".split(' '))
            .arg(script)
            .env("TMPDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let entries = || fs::read_dir(directory.path()).unwrap().count();
        let begun = || fs::read_to_string(numbers.path()).unwrap();
        // At first when there are files, later when there are processes.
        let has_begun = || match delay < 5 {
            true => entries() > 0,
            false => begun().lines().count() == 2,
        };
        while !has_begun() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            thread::sleep(Duration::from_micros(100));
        }
        thread::sleep(Duration::from_millis(delay));
        assert!(ends(&child));
        assert!(child.wait().unwrap().code().is_none());
        assert_eq!(entries(), 0, "after {delay} ms");
        let is_there = |process: &str| {
            let state = fs::read_to_string(format!("/proc/{process}/stat"));
            // A process that no other has waited for stays as a zombie.
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        let end = Instant::now() + Duration::from_secs(10);
        while begun().lines().any(is_there) {
            assert!(Instant::now() < end, "a process stays");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
