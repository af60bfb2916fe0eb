//! The files that commands read and write: what would be lost, or waited for without end, is refused.

use std::fs;
use std::path::Path;

use crate::command::{sme_in, text};

const SB: &str = include_str!("../../litmus/SB.litmus");

/// What is said of a command line that is refused in `directory`.
fn refused(directory: &Path, arguments: &str) -> String {
    let output = sme_in(directory, arguments);
    let complaint = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
    assert_eq!(text(&output.stdout), "", "{arguments}");
    assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
    complaint
}

#[test]
fn no_result_replaces_what_is_read_or_another_result() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("ok"), SB).unwrap();
    fs::write(directory.path().join("s.csv"), "nodes,cores\n").unwrap();
    fs::create_dir(directory.path().join("v")).unwrap();
    for (arguments, named) in [
        ("litmus ok -o ./ok", "-o ./ok: is a file that is read"),
        (
            "extrapolate s.csv -o s.csv",
            "-o s.csv: is a file that is read",
        ),
        (
            "extrapolate s.csv --lines s.csv",
            "--lines s.csv: is a file",
        ),
        (
            "rtl verilog --out v --block fifo -o v/sme_fifo.v",
            "-o v/sme_fifo.v: is the file of --out already",
        ),
        (
            "rtl lockstep --block fifo --vcd a.vcd -o a.vcd",
            "-o a.vcd: is the file of --vcd already",
        ),
    ] {
        let complaint = refused(directory.path(), arguments);
        assert!(complaint.contains(named), "{arguments}: {complaint}");
    }
    let kept = fs::read_to_string(directory.path().join("ok")).unwrap();
    assert_eq!(kept, SB);
    assert_eq!(fs::read_dir(directory.path().join("v")).unwrap().count(), 0);
}

#[test]
fn a_dash_is_stdout_for_o_only() {
    let directory = tempfile::tempdir().unwrap();
    let small = "barrier --nodes 2 --cores 1 --episodes 1 --no-host";
    let complaint = refused(directory.path(), &format!("{small} --per-thread -"));
    assert!(complaint.contains("--per-thread -: only -o"), "{complaint}");
    assert!(!directory.path().join("-").exists());
    let output = sme_in(directory.path(), &format!("{small} -o -"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn extrapolate_refuses_what_a_file_leaves_unused() {
    for flags in [
        "--machine nonsense",
        "--set foo=bar",
        "--topologies torus",
        "--plot x.svg",
        "--large-episodes 3",
        "--work 1us",
    ] {
        let complaint = refused(Path::new("."), &format!("extrapolate s.csv {flags}"));
        let flag = flags.split(' ').next().unwrap();
        assert!(complaint.contains(flag), "{complaint}");
    }
    for line in [
        "--large-episodes 3",
        "--paper --large-episodes 3",
        "--paper --plot x.svg",
    ] {
        refused(Path::new("."), &format!("extrapolate {line}"));
    }
}

#[test]
fn a_plot_makes_no_directory_but_that_of_results() {
    let directory = tempfile::tempdir().unwrap();
    let small = "--nodes 4 --cores 1 --fit-nodes 2,4 --fit-cores 1,2 --episodes 1";
    let line = format!("extrapolate --against-simulation {small} --plot q/r/c.svg");
    let complaint = refused(directory.path(), &line);
    assert!(complaint.contains("--plot q/r/c.svg"), "{complaint}");
    assert!(!directory.path().join("q").exists());
}

#[test]
fn a_value_with_a_minus_is_answered_by_its_flag() {
    for (arguments, flag) in [
        ("barrier --skew -1ns", "--skew"),
        ("barrier --work -5us", "--work"),
        ("barrier --waves a.vcd --waves-to -1us", "--waves-to"),
        ("fft --page -64B", "--page"),
        ("machines show x", "machines show: unknown machine"),
    ] {
        let complaint = refused(Path::new("."), arguments);
        assert!(complaint.contains(flag), "{arguments}: {complaint}");
        assert!(!complaint.contains("unexpected argument"), "{complaint}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    for argument in ["--help", "--version"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sme"))
            .arg(argument)
            .stdout(fs::File::create("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let complaint = text(&output.stderr);
        assert!(
            complaint.starts_with("sme: stdout: cannot be written: "),
            "{complaint}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_sweep_is_not_resumed_from_a_device() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.path().join("a.csv.partial")).unwrap();
    let line = "sweep --nodes 2 --cores 1 --episodes 1 -o a.csv --resume";
    let complaint = refused(directory.path(), line);
    assert!(
        complaint.contains("a.csv.partial is no file"),
        "{complaint}"
    );
}

#[test]
fn data_that_does_not_fit_is_refused_before_the_run() {
    let small = "--set node.shared_memory=4KiB";
    for line in [
        "barrier --nodes 1024 --cores 16 --fan-in 1024 --episodes 2",
        "barrier --nodes 1024 --cores 16 --fan-in 1024 --episodes 2 --form readable",
        "lock --nodes 64 --cores 16",
        "litmus litmus/SB.litmus",
    ] {
        let complaint = refused(Path::new("."), &format!("{line} {small}"));
        assert!(
            complaint.contains("node.shared_memory: the data does not fit"),
            "{complaint}"
        );
    }
}

#[test]
fn a_litmus_test_that_asks_for_nothing_there_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = "X86 t\n{ x=0; }\n P0 ;\n MOV [x],$1 ;\nexists (zz=1)\n";
    fs::write(directory.path().join("t"), text).unwrap();
    let complaint = refused(directory.path(), "litmus t");
    assert!(complaint.contains("names this location"), "{complaint}");
}
