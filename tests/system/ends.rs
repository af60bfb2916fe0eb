//! The ends of runs of MPI programs: by the program itself, by its mistakes, or by a signal.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{ends, text};
use crate::differential::python;
use crate::unmodified::{compiled, run, source_of};

#[test]
fn a_program_that_sleeps_for_too_long_is_ended() {
    let Some(program) = compiled("declared.c") else {
        return;
    };
    let output = run("-n 2 --compute declared", &program, &["1e30"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("the program computes or sleeps for more than"),
        "{said}"
    );
}

#[test]
fn every_end_is_clear() {
    let Some(program) = compiled("ends.c") else {
        return;
    };
    for (how, status, says) in [
        ("abort", 1, "sme: rank 1: MPI_Abort with 7\n"),
        ("operation", 1, "sme: rank 1: MPI_Abort with 9\n"),
        (
            "handler",
            1,
            "in which others are called, more than 24 deep",
        ),
        ("itself", 1, "in which others are called, more than 24 deep"),
        ("crash", 1, "sme: rank 1 was ended by SIGABRT\n"),
        ("exit", 1, "sme: rank 1 ended with status 3\n"),
        (
            "silent",
            1,
            "sme: rank 1 ended without a call of MPI_Finalize\n",
        ),
        (
            "exec",
            1,
            "sme: rank 1 ended without a call of MPI_Finalize\n",
        ),
        (
            "error",
            1,
            "sme: rank 1: MPI_Send: dest: there is no rank 99 among 3 (MPI_ERR_RANK)\n",
        ),
        (
            "huge",
            1,
            "sme: rank 1: MPI_Send: buf: there are no 17179869176 bytes at address",
        ),
        (
            "wild",
            1,
            "sme: rank 1: MPI_Send: buf: there are no 4 bytes at address 0x8",
        ),
        (
            "null",
            1,
            "sme: rank 1: MPI_Comm_size: a null pointer (MPI_ERR_ARG)",
        ),
        (
            "handle",
            1,
            "sme: rank 1: MPI_Barrier: 0x3039 is no communicator (MPI_ERR_COMM)",
        ),
        ("type", 1, "sme: rank 1: MPI_Type_vector: "),
        (
            "memory",
            1,
            "sme: rank 1: MPI_Alloc_mem: size: there is no memory of 1152921504606846976 bytes",
        ),
        (
            "constant",
            1,
            "sme: rank 1 was ended by SIGSEGV as it took the results of MPI_Comm_rank\n",
        ),
        (
            "before",
            1,
            ": MPI_Barrier: MPI_Init has not been called (MPI_ERR_OTHER)\n",
        ),
        (
            "after",
            1,
            ": MPI_Barrier: MPI_Finalize has been called before (MPI_ERR_OTHER)\n",
        ),
        (
            "signal",
            1,
            "sme mpi: rank 1: a function for a signal makes a call while the thread is in another",
        ),
        ("deadlock", 1, "in MPI_Recv from rank 0"),
        ("fork", 0, "sme mpi: rank 1: a forked process makes a call"),
        ("early", 0, "3 ranks on sme-prototype: 0 messages"),
        ("well", 0, "3 ranks on sme-prototype: "),
    ] {
        // Rank 1 waits in a call while rank 0 computes.
        let flags = match how {
            "signal" => "-n 3 --compute fixed:1ms",
            _ => "-n 3",
        };
        let output = run(flags, &program, &[how]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{how}: {said}");
        assert!(said.contains(says), "{how}: {said}");
        // The output that is still in buffers is written, but that of a process that has ended
        // without it, or is another program now.
        let printed = text(&output.stdout);
        for rank in 0..3 {
            let has_none = ["early", "before"].contains(&how);
            let ends = rank == 1 && ["crash", "constant", "exec", "signal"].contains(&how);
            let sleeps = rank == 0 && how == "signal";
            let is_lost = has_none || ends || sleeps;
            let line = format!("rank {rank} has begun\n");
            assert_eq!(printed.contains(&line), !is_lost, "{how}: {printed}");
        }
    }
}

/// Ranks that compute for long are ended.
#[test]
fn a_job_that_goes_wrong_does_not_wait_for_ranks_that_compute() {
    let Some(program) = compiled("ends.c") else {
        return;
    };
    let begin = Instant::now();
    let output = run("-n 3 --compute fixed:1ms", &program, &["computing"]);
    assert!(begin.elapsed() < Duration::from_secs(15));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no rank 99"), "{said}");
}

/// The end of a job waits for a reader that is slow, and cuts no output off.
#[test]
fn much_output_is_written_to_a_slow_reader() {
    let Some(program) = compiled("ends.c") else {
        return;
    };
    for flags in ["-n 2", "-n 2 --prefix"] {
        let sme = env!("CARGO_BIN_EXE_sme");
        let run = format!("{sme} mpi run {flags} {} much", program.display());
        let output = Command::new("sh")
            .args(["-c", &format!("{run} | (sleep 2; cat)")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = text(&output.stdout);
        for rank in 0..2 {
            let last = format!("rank {rank} line 49999\n");
            assert!(printed.contains(&last), "{flags}: {}", printed.len());
        }
    }
}

/// All languages have buffers of their own.
#[test]
fn output_in_buffers_of_every_language_is_written() {
    let waits = |program: &Path, arguments: &[&str]| {
        for flags in ["-n 2", "-n 2 --prefix"] {
            let output = run(flags, program, arguments);
            let (said, printed) = (text(&output.stderr), text(&output.stdout));
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("sme: deadlock: "), "{said}");
            for rank in 0..2 {
                assert!(
                    printed.contains(&format!("rank {rank} waits\n")),
                    "{printed}"
                );
            }
        }
    };
    for source in ["waits.cc", "waits.f90"] {
        if let Some(program) = compiled(source) {
            waits(&program, &[]);
        }
    }
    if let Some(python) = python() {
        let script = source_of("waits.py").display().to_string();
        waits(Path::new(&python), &[&script]);
    }
}

/// The ends of processes that others have started.
#[test]
fn the_ends_of_later_processes_are_clear() {
    let Some(program) = compiled("ends.c") else {
        return;
    };
    let ends = program.display().to_string();
    for (wanted, status, says) in [
        (vec!["/bin/true"], 1, "in MPI_Comm_spawn at "),
        (
            vec!["/bin/false"],
            1,
            " ended with status 1 before MPI_Init\n",
        ),
        (
            vec![&ends, "crash"],
            1,
            "sme: rank 3 was ended by SIGABRT\n",
        ),
        (vec![&ends, "abort"], 1, "sme: rank 3: MPI_Abort with 7\n"),
        (
            vec!["./none"],
            1,
            "sme: rank 0: MPI_Comm_spawn: command: ./none: there is no such program \
             (MPI_ERR_SPAWN)\n",
        ),
        (vec![&ends, "well"], 0, "sme: 2 of 4 ranks on scc: "),
    ] {
        let arguments = [&["spawn"], &wanted[..]].concat();
        let flags = "--machine scc -n 2 --universe 4";
        let output = run(flags, &program, &arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{wanted:?}: {said}");
        assert!(said.contains(says), "{wanted:?}: {said}");
    }
}

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

#[test]
fn calls_that_are_not_supported_return_what_the_limits_say() {
    let Some(program) = compiled("refused.c") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    let output = run("-n 2", &program, &[file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let unsupported = "MPI_ERR_UNSUPPORTED_OPERATION";
    let expected = [
        ("MPI_Register_datarep", unsupported),
        ("MPI_Barrier", unsupported),
        ("native", "MPI_SUCCESS"),
        ("internal", "MPI_SUCCESS"),
        ("external32", "MPI_ERR_UNSUPPORTED_DATAREP"),
        ("MPI_Win_allocate_shared", "MPI_ERR_RMA_SHARED"),
        ("MPI_Win_allocate_shared", "MPI_SUCCESS"),
        ("MPI_Psend_init", "MPI_SUCCESS"),
        ("MPI_Psend_init", "MPI_ERR_ARG"),
    ];
    let returned: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(
        returned,
        expected.map(|(name, class)| format!("{name} {class}"))
    );
    let said = text(&output.stderr);
    assert_eq!(
        said.matches("MPI_Register_datarep is not supported\n")
            .count(),
        1
    );
    let limits = include_str!("../../docs/limits.md");
    for (name, class) in expected {
        let is_row = |line: &&str| line.starts_with('|') && line.contains(&format!("`{name}`"));
        let mut rows = limits.lines().filter(is_row);
        let is_named = class == "MPI_SUCCESS" || class == unsupported;
        assert!(
            name == "MPI_Barrier" || rows.any(|row| is_named || row.contains(class)),
            "{name} {class}"
        );
    }
}
