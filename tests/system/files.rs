//! The files that commands read and write: what would be lost, or waited for without end, is
//! refused.

use std::fs;
use std::path::Path;

use crate::command::{skipped, sme_in, text};

const SB: &str = include_str!("../../litmus/SB.litmus");

/// Returns the message about a command line that is refused in `directory`.
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
    fs::write(directory.path().join("m.toml"), "name = 'm'\n").unwrap();
    for command in [
        "barrier",
        "sweep",
        "fft",
        "latency",
        "mpi pingpong",
        "mpi invade",
    ] {
        let complaint = refused(
            directory.path(),
            &format!("{command} --machine m.toml --format csv -o m.toml"),
        );
        assert!(
            complaint.contains("-o m.toml: is a file that is read"),
            "{command}: {complaint}"
        );
    }
    let complaint = refused(
        directory.path(),
        "mpi compare --machines scc,m.toml --format csv -o m.toml",
    );
    assert!(complaint.contains("is a file that is read"), "{complaint}");
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
            "rtl verilog --out v --block fifo -o v/Makefile",
            "-o v/Makefile: is the file of --out already",
        ),
        (
            "rtl lockstep --block fifo --vcd a.vcd -o a.vcd",
            "--vcd a.vcd: is the file of -o already",
        ),
    ] {
        let complaint = refused(directory.path(), arguments);
        assert!(complaint.contains(named), "{arguments}: {complaint}");
    }
    let kept = fs::read_to_string(directory.path().join("ok")).unwrap();
    assert_eq!(kept, SB);
    assert_eq!(fs::read_dir(directory.path().join("v")).unwrap().count(), 0);
}

/// A name that promises a format that the file would not have is refused by the flag, in one line
/// that has the names that would do, before anything is simulated.
#[test]
fn an_unknown_ending_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "must end in .csv, .json or .jsonl,";
    let small = "--nodes 2 --cores 1";
    for (arguments, known) in [
        (
            format!("barrier {small} -o x.foo"),
            "must end in .csv, .json, .jsonl or .txt,",
        ),
        (format!("barrier {small} --explain-to x.foo"), rows),
        (
            format!("barrier {small} --per-thread x.json"),
            "must end in .csv,",
        ),
        (
            format!("barrier {small} --link-load x.json"),
            "must end in .csv,",
        ),
        (
            format!("barrier {small} --timeline x.json"),
            "must end in .pftrace,",
        ),
        (format!("fft {small} --stale --stale-list x.foo"), rows),
        (format!("fft {small} --result x.csv"), "must end in .npy,"),
        (
            "mpi pingpong --timeline x.foo".into(),
            "must end in .csv or .pftrace,",
        ),
        (
            "coherence bench -o x.foo".into(),
            "must end in .csv, .json, .jsonl or .txt,",
        ),
        ("network --plot x.png".into(), "must end in .svg,"),
        ("extrapolate --lines x.foo".into(), rows),
        (
            "rtl lockstep --block fifo --vcd x.fst".into(),
            "must end in .vcd,",
        ),
    ] {
        let complaint = refused(directory.path(), &arguments);
        let file = arguments.split(' ').next_back().unwrap();
        assert!(complaint.contains(&format!("{file}: ")), "{complaint}");
        assert!(complaint.contains(known), "{arguments}: {complaint}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    // What --format says is said; and a name without an ending promises nothing.
    let small = format!("barrier {small} --episodes 1 --no-host");
    for (arguments, beginning) in [
        (format!("{small} -o x.foo --format json"), "{"),
        (format!("{small} -o x"), "version"),
        (format!("{small} -o x.txt"), "version"),
    ] {
        let output = sme_in(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {output:?}");
        let file = arguments.split("-o ").nth(1).unwrap();
        let file = directory.path().join(file.split(' ').next().unwrap());
        let written = fs::read_to_string(file).unwrap();
        assert!(written.starts_with(beginning), "{arguments}: {written}");
    }
}

/// `-o` and `--output` are the rows of every command that has them.
#[test]
fn o_means_rows_everywhere() {
    let mut seen = 0;
    commands(&sme::cli::command(), &[], &mut |words, command| {
        for argument in command.get_arguments() {
            let (short, long) = (argument.get_short(), argument.get_long());
            let either = short == Some('o') || long == Some("output");
            assert_eq!(
                either,
                (short, long) == (Some('o'), Some("output")),
                "{words:?}"
            );
            seen += usize::from(either);
        }
    });
    assert!(seen > 30, "{seen} commands with -o");
}

/// The arguments by which `argument` gets `value`.
fn given(argument: &clap::Arg, value: &str) -> Vec<String> {
    let flag = match (argument.get_short(), argument.get_long()) {
        (_, Some(long)) => vec![format!("--{long}")],
        (Some(short), None) => vec![format!("-{short}")],
        (None, None) => vec![],
    };
    flag.into_iter().chain([value.to_owned()]).collect()
}

/// Calls `each` for every command that has none of its own, with the words that lead to it.
fn commands(
    command: &clap::Command,
    words: &[String],
    each: &mut impl FnMut(&[String], &clap::Command),
) {
    if !command.has_subcommands() {
        return each(words, command);
    }
    for sub in command.get_subcommands() {
        let name = sub.get_name().to_owned();
        commands(sub, &[words, &[name]].concat(), each);
    }
}

/// Of every command, each pair of a file that it reads and one that it writes, and each two that it
/// writes.
#[test]
fn no_command_loses_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("m.toml");
    let content = include_str!("../../machines/ideal.toml");
    fs::write(&file, content).unwrap();
    std::os::unix::fs::symlink("m.toml", directory.path().join("link")).unwrap();
    let mut refused = std::collections::BTreeMap::new();
    commands(&sme::cli::command(), &[], &mut |words, command| {
        let arguments: Vec<_> = command.get_arguments().collect();
        let id = |argument: &clap::Arg| argument.get_id().to_string();
        let is_path = |argument: &clap::Arg| {
            let file = std::any::TypeId::of::<std::path::PathBuf>();
            argument.get_value_parser().type_id() == file
                && !["out", "figures"].contains(&id(argument).as_str())
        };
        let reads = |argument: &clap::Arg| {
            ["machine", "input", "files", "table"].contains(&id(argument).as_str())
        };
        let outputs = arguments.iter().filter(|a| is_path(a) && !reads(a));
        for output in outputs {
            let others = arguments.iter().filter(|a| reads(a) || is_path(a));
            for other in others.filter(|other| id(other) != id(output)) {
                for name in ["./m.toml", "link"] {
                    let mut line = words.to_vec();
                    line.extend(given(output, name));
                    line.extend(given(other, "m.toml"));
                    // Last, since all that follows a program is the program's.
                    for argument in &arguments {
                        let is_either = [id(output), id(other)].contains(&id(argument));
                        if argument.is_required_set() && !is_either {
                            line.extend(given(argument, "1"));
                        }
                    }
                    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_sme"))
                        .args(&line)
                        .current_dir(directory.path())
                        .output()
                        .unwrap();
                    let said = text(&ran.stderr);
                    assert_eq!(ran.status.code(), Some(2), "{line:?}: {said}");
                    assert_eq!(fs::read_to_string(&file).unwrap(), content, "{line:?}");
                    // Flags that exclude each other, or need a third, are refused for that.
                    let is_it =
                        said.contains("is a file that is read") || said.contains("is the file of");
                    let other_reason =
                        said.contains("cannot be used with") || said.contains("not provided");
                    assert!(is_it || other_reason, "{line:?}: {said}");
                    *refused.entry(words.join(" ")).or_insert(0) += usize::from(is_it);
                }
            }
        }
    });
    // A command that reads no file and writes one has no pair, and is not counted.
    let none: Vec<_> = refused.iter().filter(|(_, count)| **count == 0).collect();
    assert!(none.is_empty(), "{none:?}");
    assert!(refused.values().sum::<usize>() > 100, "{refused:?}");
}

/// A byte order mark in front of a text is none of it.
#[test]
fn a_byte_order_mark_is_taken_in_every_input() {
    let directory = tempfile::tempdir().unwrap();
    let marked = |name: &str, text: &str| {
        fs::write(directory.path().join(name), format!("\u{feff}{text}")).unwrap();
    };
    marked("SB", SB);
    marked("m.toml", include_str!("../../machines/ideal.toml"));
    let rows = |separator: &str| {
        let sizes = (1..5).flat_map(|nodes| (1..4).map(move |cores| (nodes, cores)));
        let row = |(nodes, cores)| format!("{nodes},{cores},{}{separator}", nodes + cores);
        sizes.map(row).collect::<String>()
    };
    marked(
        "s.csv",
        &format!("nodes,cores_per_node,latency_us\n{}", rows("\n")),
    );
    for line in [
        "litmus SB --runs 10",
        "barrier --machine m.toml --nodes 2 --cores 1 --no-host",
        "extrapolate s.csv --nodes 64 --cores 16",
    ] {
        let output = sme_in(directory.path(), line);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    }
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

/// A command that takes longer than any test waits.
#[cfg(target_os = "linux")]
const LONG: &str = "barrier --nodes 64 --cores 16 --form readable --episodes 1000000 --no-host";

/// The files in `directory` besides `known`.
#[cfg(target_os = "linux")]
fn left(directory: &Path, known: &[&str]) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !known.contains(&name.as_str()))
        .collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_ends_the_program_leaves_one_line_and_no_file() {
    use std::os::unix::process::ExitStatusExt;
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        // The program leaves alone what it was started to ignore, as the tests may have been.
        if has_signal("self", "SigIgn:", number) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_sme"))
            .args(format!("{LONG} -o a.csv").split_whitespace())
            .current_dir(directory.path())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = child.id().to_string();
        while child.try_wait().unwrap().is_none() {
            if has_signal(&id, "SigCgt:", number) {
                let mut kill = std::process::Command::new("kill");
                kill.args([&format!("-{signal}"), &id]).status().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number));
        assert_eq!(text(&output.stderr), format!("sme: ended by SIG{signal}\n"));
        assert_eq!(left(directory.path(), &[]), Vec::<String>::new());
    }
}

/// Returns whether the mask `line` in the status of process `id` has the signal of this `number`.
#[cfg(target_os = "linux")]
fn has_signal(id: &str, line: &str, number: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|found| found.strip_prefix(line));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Runs `line`, with `sme` in it, in a shell in `directory`.
#[cfg(target_os = "linux")]
fn in_shell(directory: &Path, line: &str) -> std::process::Output {
    std::process::Command::new("sh")
        .args(["-c", &line.replace("sme", env!("CARGO_BIN_EXE_sme"))])
        .current_dir(directory)
        .output()
        .unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_the_size_of_files_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let small = "barrier --nodes 4 --cores 4 --no-host --per-thread a.csv";
    let output = in_shell(directory.path(), &format!("ulimit -f 1; sme {small}"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("sme: --per-thread a.csv: cannot be written"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(left(directory.path(), &[]), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_stack_is_enough() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        "barrier --nodes 2 --cores 2 --no-host",
        "fft --log2n 8 --nodes 2 --cores 2 --no-host",
        "machines show ideal",
    ] {
        let output = in_shell(directory.path(), &format!("ulimit -s 256; sme {command}"));
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
    }
}

/// The target of the results is a file that is mounted.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_replaced_is_known_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.csv"), "before\n").unwrap();
    fs::write(directory.path().join("b"), "below\n").unwrap();
    let mount = in_shell(directory.path(), "mount --bind b a.csv");
    if !mount.status.success() {
        skipped("mount for this user");
        return;
    }
    let output = sme_in(directory.path(), &format!("{LONG} -o a.csv"));
    let unmount = in_shell(directory.path(), "umount a.csv");
    assert!(unmount.status.success());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("-o a.csv: cannot be written: it is mounted there"),
        "{said}"
    );
    assert_eq!(
        left(directory.path(), &["a.csv", "b"]),
        Vec::<String>::new()
    );
}

/// A link that leads to nothing yet is the file that will be there.
#[cfg(unix)]
#[test]
fn two_results_are_not_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("rows.csv", directory.path().join("link.csv")).unwrap();
    let small = "barrier --nodes 2 --cores 1 --episodes 2";
    let said = refused(
        directory.path(),
        &format!("{small} --explain-to rows.csv -o link.csv"),
    );
    assert!(said.contains("is the file of"), "{said}");
    assert!(!directory.path().join("rows.csv").exists());
}
