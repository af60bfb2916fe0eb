//! MPI programs as they are: compiled by MPICH's compilers, and run on simulated machines.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use sme::mpi::abi::facts::{CALLS, Interface, Returned, Signature};

use crate::command::{skipped, text};

/// The compiler of MPICH for this language, if it is installed with the one that it calls and, for
/// C++, with bindings: other libraries have another interface.
pub fn compiler(language: &str) -> Option<String> {
    let names = [format!("{language}.mpich"), language.to_owned()];
    names.into_iter().find(|name| {
        let shown = Command::new(name).arg("-show").output();
        let shown = shown.map_or(String::new(), |shown| text(&shown.stdout).to_owned());
        let calls = shown.split_whitespace().next().unwrap_or_default();
        let is_there = Command::new(calls).arg("--version").output().is_ok();
        let has_bindings = language != "mpicxx" || shown.contains("cxx ");
        is_there && has_bindings && shown.contains("mpich")
    })
}

/// A name in the directory of programs that no other file has.
pub fn new_file() -> PathBuf {
    let file = tempfile::Builder::new().tempfile_in(directory()).unwrap();
    file.into_temp_path().keep().unwrap()
}

/// Runs a compiler, which must succeed.
pub fn compile(compiler: &str, arguments: &[&OsStr]) {
    let output = Command::new(compiler).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A file of `tests/programs`.
pub fn source_of(name: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    programs.join(name)
}

/// Where programs are compiled to, once.
pub fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<TempDir> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| tempfile::tempdir().unwrap());
    directory.path()
}

/// Compiles a program of `tests/programs`; none if MPICH is not installed.
pub fn compiled(source: &str) -> Option<PathBuf> {
    let language = match source.rsplit_once('.') {
        Some((_, "c")) => "mpicc",
        Some((_, "cc")) => "mpicxx",
        _ => "mpif90",
    };
    let Some(compiler) = compiler(language) else {
        skipped("mpich");
        return None;
    };
    let path = new_file();
    let source = source_of(source);
    let mut arguments: Vec<&OsStr> = vec!["-o".as_ref(), path.as_ref(), source.as_ref()];
    // The compiler writes a file for each module.
    let modules = tempfile::tempdir_in(directory()).unwrap();
    if language == "mpif90" {
        arguments.extend([OsStr::new("-J"), modules.path().as_ref()]);
    }
    compile(&compiler, &arguments);
    Some(path)
}

/// Runs a program under `sme mpi run` with these flags.
pub fn run(flags: &str, program: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(["mpi", "run"])
        .args(flags.split_whitespace())
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The output of a program that must end well, its lines in order.
fn lines(flags: &str, program: &Path) -> Vec<String> {
    let output = run(flags, program, &[]);
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{flags}: {said}");
    let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// All machines that programs are tried on: with message passing buffers, with an engine, with
/// networks on chip, coherent.
pub const MACHINES: [&str; 4] = ["scc", "sme-prototype", "mppa256", "xeon-e5-2650"];

#[test]
fn calls_give_what_they_must_on_every_machine() {
    let Some(program) = compiled("calls.c") else {
        return;
    };
    for machine in MACHINES {
        // With ranks on standby, too.
        for (ranks, more) in [(1, ""), (2, ""), (5, ""), (3, "--universe 6")] {
            let lines = lines(&format!("--machine {machine} -n {ranks} {more}"), &program);
            assert_eq!(lines.len(), ranks, "{machine}: {lines:?}");
            assert!(lines[0].starts_with("rank 0 of"), "{machine}: {lines:?}");
        }
    }
}

#[test]
fn windows_give_what_they_must() {
    let Some(program) = compiled("windows.c") else {
        return;
    };
    // Hosts of two cores.
    let pool = "cxl-pool --set node.cores_per_socket=1";
    for machine in ["scc", "sme-prototype", pool] {
        let lines = lines(&format!("--machine {machine} -n 4"), &program);
        assert_eq!(lines, ["windows: right"], "{machine}");
    }
}

/// They see what has been written when the one that has written it says so, not when their rank
/// leaves its call.
#[test]
fn other_threads_see_what_is_written_to_a_window() {
    let Some(program) = compiled("watched.c") else {
        return;
    };
    let told = new_file();
    fs::remove_file(&told).unwrap();
    let output = run(
        "--machine scc -n 2",
        &program,
        &[&told.display().to_string()],
    );
    assert_eq!(text(&output.stdout), "ends\n", "{}", text(&output.stderr));
}

#[test]
fn functions_for_signals_read_the_time() {
    let Some(program) = compiled("signals.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let lines = lines(&format!("--machine {machine} -n 2"), &program);
        assert_eq!(lines, ["has read"; 2], "{machine}");
    }
}

#[test]
fn ranks_may_wait_for_each_other_by_other_means() {
    let Some(program) = compiled("elsewhere.c") else {
        return;
    };
    let output = run("--machine scc -n 3", &program, &[]);
    assert_eq!(text(&output.stdout), "elsewhere: right\n");
    let said = text(&output.stderr);
    let warned = said.matches("waits for something other than MPI: simulated time goes on");
    assert_eq!(warned.count(), 1, "{said}");
}

/// Processes that others start, on every machine, and again on ranks whose processes have ended.
#[test]
fn processes_start_others() {
    let Some(program) = compiled("spawn.c") else {
        return;
    };
    let within = tempfile::tempdir().unwrap();
    for machine in MACHINES {
        for ranks in [1, 4] {
            let calls = ["first.csv", "second.csv"].map(|name| {
                let file = within.path().join(name);
                let flags = format!(
                    "--machine {machine} -n {ranks} --universe {} --timeline {}",
                    ranks + 3,
                    file.display()
                );
                let output = run(&flags, &program, &[]);
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(0), "{flags}: {said}");
                assert_eq!(text(&output.stdout), "spawn: right\n", "{flags}: {said}");
                let wanted = format!("50 more processes are wanted, and 3 of {} ranks", ranks + 3);
                assert_eq!(said.matches(&wanted).count(), 1, "{flags}: {said}");
                fs::read_to_string(file).unwrap()
            });
            assert!(calls[0].contains(&format!("\n{ranks},MPI_Finalize,")));
            assert_eq!(calls[0], calls[1], "{machine} {ranks}");
        }
    }
}

/// The programs write into a directory of their own, and leave nothing there.
#[test]
fn files_give_what_they_must() {
    for (source, says) in [("files.c", "files: right"), ("files.f90", " files read")] {
        let Some(program) = compiled(source) else {
            return;
        };
        for machine in ["scc", "sme-prototype"] {
            for ranks in [1, 4] {
                let within = tempfile::tempdir().unwrap();
                let path = within.path().to_str().unwrap();
                let flags = format!("--machine {machine} -n {ranks}");
                let output = run(&flags, &program, &[path]);
                let (said, printed) = (text(&output.stderr), text(&output.stdout));
                assert_eq!(output.status.code(), Some(0), "{flags}: {printed}{said}");
                assert_eq!(printed, format!("{says}\n"), "{flags}");
                let left = fs::read_dir(within.path()).unwrap().count();
                assert_eq!(left, 0, "{flags}");
            }
        }
    }
}

#[test]
fn datatypes_give_what_they_must() {
    let Some(program) = compiled("types.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let lines = lines(&format!("--machine {machine} -n 2"), &program);
        assert_eq!(lines, ["types: right"], "{machine}");
    }
}

#[test]
fn mistakes_are_told() {
    let Some(program) = compiled("mistakes.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let lines = lines(&format!("--machine {machine} -n 2"), &program);
        assert_eq!(lines, ["mistakes: told"], "{machine}");
    }
}

/// Functions of the program's that calls call.
#[test]
fn functions_of_programs_get_what_they_must() {
    says_on_all_machines("callbacks.c", "callbacks: right");
}

#[test]
fn the_bindings_for_cxx_give_what_they_must() {
    says_on_all_machines("bindings.cc", "bindings: right");
}

/// A program says so with one and with several ranks.
fn says_on_all_machines(source: &str, last: &str) {
    let Some(program) = compiled(source) else {
        return;
    };
    for machine in MACHINES {
        for ranks in [1, 4] {
            let flags = format!("--machine {machine} -n {ranks}");
            assert_eq!(lines(&flags, &program), [last], "{flags} {source}");
        }
    }
}

#[test]
fn partitions_give_what_they_must() {
    let Some(program) = compiled("partitioned.c") else {
        return;
    };
    for machine in MACHINES {
        for ranks in [1, 3] {
            let lines = lines(&format!("--machine {machine} -n {ranks}"), &program);
            assert_eq!(lines, ["partitions: right"], "{machine}");
        }
    }
}

#[test]
fn tools_find_nothing() {
    let Some(program) = compiled("tools.c") else {
        return;
    };
    assert_eq!(lines("-n 2", &program), ["tools: right"; 2]);
}

/// The programs in Fortran print nothing but what is wrong, and a line at the end.
#[test]
fn calls_in_fortran_give_what_they_must() {
    for source in ["ring.f90", "heat.f", "old.f90", "modern.f90"] {
        let Some(program) = compiled(source) else {
            return;
        };
        for machine in ["scc", "sme-prototype"] {
            let lines = lines(&format!("--machine {machine} -n 4"), &program);
            let wrong = lines.iter().find(|line| line.contains("WRONG"));
            assert_eq!(wrong, None, "{source} on {machine}: {lines:?}");
            assert!(!lines.is_empty(), "{source} on {machine}");
        }
    }
}

/// The loader would take a library in such a directory for two.
#[test]
fn a_library_that_is_loaded_first_lies_in_a_plain_directory() {
    let place = directory().join("two words");
    fs::create_dir_all(&place).unwrap();
    let mut runs = vec![(PathBuf::from("true"), "--intercept-clocks")];
    runs.extend(compiled("modern.f90").map(|program| (program, "")));
    for (program, flags) in runs {
        let output = Command::new(env!("CARGO_BIN_EXE_sme"))
            .args(["mpi", "run", "-n", "2"])
            .args(flags.split_whitespace())
            .arg(&program)
            .env("TMPDIR", &place)
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("without spaces or colons"), "{said}");
        assert!(fs::read_dir(&place).unwrap().next().is_none(), "{said}");
    }
}

#[test]
fn times_are_the_same_in_every_repetition() {
    let Some(program) = compiled("calls.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let flags = format!("--machine {machine} -n 4");
        let first = lines(&flags, &program);
        for _ in 0..2 {
            assert_eq!(lines(&flags, &program), first, "{machine}");
        }
    }
}

#[test]
fn declared_time_passes_if_it_is_asked_for() {
    let Some(program) = compiled("declared.c") else {
        return;
    };
    let declared = lines("--machine scc -n 2 --compute declared", &program);
    assert_eq!(declared, ["0.2500", "0.5000"]);
    let none = lines("--machine scc -n 2", &program);
    assert_eq!(none, ["0.0000", "0.0000"]);
}

#[test]
fn clocks_tell_simulated_time_if_that_is_asked_for() {
    let Some(program) = compiled("clocks.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let flags = format!("--machine {machine} -n 3");
        let intercepted = format!("{flags} --intercept-clocks");
        let first = lines(&intercepted, &program);
        assert_eq!(first.len(), 6, "{machine}: {first:?}");
        let wrong = first.iter().find(|line| line.contains("WRONG"));
        assert_eq!(wrong, None, "{machine}");
        assert_eq!(lines(&intercepted, &program), first, "{machine}");
    }
    // Without the flag they are the system's, which the program finds wrong.
    let output = text(&run("-n 1", &program, &[]).stdout).to_owned();
    assert!(output.contains("WRONG"), "{output}");
}

/// Looks that a process makes by itself take their time: it only looks more often.
#[test]
fn looks_that_a_process_makes_alone_take_their_time() {
    let Some(program) = compiled("polls.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype"] {
        let flags = format!("--machine {machine} -n 2");
        let times_and_looks = |arguments: &[&str]| -> (Vec<String>, u64) {
            let output = run(&flags, &program, arguments);
            let rows = text(&output.stdout).lines();
            let rows = rows.map(|row| row.rsplit_once(' ').unwrap());
            let (times, looks): (Vec<_>, Vec<_>) = rows.unzip();
            let looks = looks.iter().map(|looks| looks.parse::<u64>().unwrap());
            (times.into_iter().map(str::to_owned).collect(), looks.sum())
        };
        let (times, looks) = times_and_looks(&[]);
        let (wanted, least) = times_and_looks(&["apart"]);
        assert_eq!(times.len(), 6, "{machine}: {times:?}");
        assert_eq!(times, wanted, "{machine}");
        let late = looks - least;
        assert!(
            late > 0 && late <= least / 16 + 6,
            "{machine}: {late} of {least}"
        );
    }
}

/// The loader would leave out a library in such a directory, and the clocks be this computer's.
#[test]
fn clocks_are_intercepted_or_refused() {
    let within = tempfile::tempdir().unwrap();
    let directory = within.path().join("with a space");
    fs::create_dir(&directory).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(["mpi", "run", "--intercept-clocks", "true"])
        .env("TMPDIR", &directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("(TMPDIR) without spaces"), "{said}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn output_has_the_rank_in_front() {
    let output = run("-n 2 --prefix", Path::new("/bin/echo"), &["well"]);
    let mut lines: Vec<&str> = text(&output.stdout).lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] well", "[1] well"]);
}

#[test]
fn a_program_needs_the_simulator() {
    let Some(program) = compiled("calls.c") else {
        return;
    };
    let missing = run("-n 2", Path::new("./no-such-program"), &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("sme: ./no-such-program: "));
    for (flags, why) in [
        ("-n 0", "--ranks"),
        ("-n 49 --machine scc", "--ranks"),
        ("--machine mppa256 --stale", "--stale: "),
        ("--compute fast", "--compute: fast is neither"),
        ("--channel rcce", "--channel"),
    ] {
        let refused = run(flags, &program, &[]);
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        assert!(text(&refused.stderr).contains(why), "{flags}");
    }
}

/// A C header of MPI-5.0's interface, made of the tables of calls and constants.
fn header() -> String {
    let handles = [
        ("comm", "Comm", "COMM_"),
        ("group", "Group", "GROUP_"),
        ("type", "Datatype", ""),
        ("op", "Op", ""),
        ("request", "Request", "REQUEST_"),
        ("message", "Message", "MESSAGE_"),
        ("win", "Win", "WIN_NULL"),
        ("file", "File", "FILE_"),
        ("info", "Info", "INFO_"),
        ("errhandler", "Errhandler", "ERR"),
        ("session", "Session", "SESSION_"),
    ];
    let mut text = String::from(
        "typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR, MPI_internal[5]; } MPI_Status;\n\
         typedef long MPI_Aint, MPI_Count, MPI_Offset;\n",
    );
    for (_, name, _) in handles {
        text += &format!("typedef struct MPI_ABI_{name} *MPI_{name};\n");
    }
    // The handles that the programs of the tests name, by their kinds; all other constants are
    // numbers, or addresses.
    let kind = |name: &str| match name {
        "COMM_WORLD" | "COMM_SELF" | "COMM_NULL" => "MPI_Comm",
        "INT" | "DOUBLE" | "LONG" | "LONG_DOUBLE" | "BYTE" | "CHAR" | "UNSIGNED" | "INT64_T"
        | "AINT" | "DATATYPE_NULL" | "LONG_LONG" | "FLOAT" | "SHORT" | "UINT64_T" => "MPI_Datatype",
        "SUM" | "MAX" | "MIN" | "PROD" | "REPLACE" | "NO_OP" | "BOR" | "BXOR" => "MPI_Op",
        "REQUEST_NULL" => "MPI_Request",
        "MESSAGE_NULL" | "MESSAGE_NO_PROC" => "MPI_Message",
        "GROUP_NULL" | "GROUP_EMPTY" => "MPI_Group",
        "WIN_NULL" => "MPI_Win",
        "INFO_NULL" => "MPI_Info",
        "ERRORS_RETURN" | "ERRORS_ARE_FATAL" => "MPI_Errhandler",
        "IN_PLACE" | "BOTTOM" => "void *",
        "STATUS_IGNORE" | "STATUSES_IGNORE" => "MPI_Status *",
        name if name.ends_with("_FN") => "void *",
        _ => "int",
    };
    for (name, value) in Interface::Standard.constants() {
        let cast = kind(name);
        let word = if cast == "int" { "" } else { "(long)" };
        text += &format!("#define MPI_{name} (({cast}){word}{value})\n");
    }
    for call in CALLS.iter() {
        let returned = match call.returned {
            Returned::Real => "double",
            Returned::Word => "long",
            Returned::Code => "int",
        };
        // Words of any kind are taken as they come.
        text += &format!("{returned} {}();\n", call.full_name);
    }
    text
}

#[test]
fn programs_of_the_standard_interface_run_alike() {
    if Command::new("gcc").arg("--version").output().is_err() {
        return skipped("gcc");
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mpi.h"), header()).unwrap();
    let library = place.path().join("libmpi_abi.so.1");
    let functions = place.path().join("functions.c");
    // The linker wants the names alone: the program finds another library when it runs.
    let named = |call: &Signature| format!("long {}() {{ return 0; }}\n", call.full_name);
    fs::write(&functions, CALLS.iter().map(named).collect::<String>()).unwrap();
    let name = "-Wl,-soname,libmpi_abi.so.1";
    let shared = ["-shared", name, "-o"].map(OsStr::new);
    let files = [library.as_ref(), functions.as_ref()];
    compile("gcc", &[&shared[..], &files].concat());
    let program = new_file();
    let include = format!("-I{}", place.path().display());
    let flags = [include.as_str(), "-w", "-std=gnu99", "-o"].map(OsStr::new);
    let source = source_of("calls.c");
    let files = [program.as_ref(), source.as_ref(), library.as_ref()];
    compile("gcc", &[&flags[..], &files].concat());
    let lines_of = |program: &Path| lines("--machine scc -n 4", program);
    let standard = lines_of(&program);
    assert!(
        standard.iter().all(|line| line.starts_with("rank ")),
        "{standard:?}"
    );
    // The same call costs the same, however its handles look.
    if let Some(mpich) = compiled("calls.c") {
        assert_eq!(standard, lines_of(&mpich));
    }
}

/// Processes look for libraries in the directories of this program's, and then where they would
/// without it: not in the directory in which they begin.
#[test]
fn libraries_are_looked_for_nowhere_else() {
    for paths in [None, Some(""), Some("/one:/two")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
        command.args(["mpi", "run", "-n", "1", "printenv", "LD_LIBRARY_PATH"]);
        match paths {
            None => command.env_remove("LD_LIBRARY_PATH"),
            Some(paths) => command.env("LD_LIBRARY_PATH", paths),
        };
        let output = command.output().unwrap();
        let found = text(&output.stdout).trim_end();
        let all: Vec<&str> = found.split(':').collect();
        let (own, others) = all.split_at(3);
        let begins = own[0];
        assert!(own.iter().all(|path| path.starts_with(begins)), "{found}");
        assert!(begins.contains("/.sme-"), "{found}");
        let wanted = paths.filter(|paths| !paths.is_empty());
        let wanted: Vec<&str> = wanted.iter().flat_map(|paths| paths.split(':')).collect();
        assert_eq!(others, wanted, "{found}");
    }
}

#[test]
fn programs_of_open_mpi_are_refused() {
    if Command::new("gcc").arg("--version").output().is_err() {
        return skipped("gcc");
    }
    let place = tempfile::tempdir_in(directory()).unwrap();
    let [of_library, of_program, shared] =
        ["library.c", "program.c", "library.so"].map(|name| place.path().join(name));
    fs::write(&of_library, "int mpi_init_f08_;\n").unwrap();
    let text_of_program = "extern int mpi_init_f08_;\nint main(void) { return mpi_init_f08_; }\n";
    fs::write(&of_program, text_of_program).unwrap();
    for library in ["libmpi", "libmpi_mpifh", "libmpi_usempif08"] {
        let name = format!("-Wl,-soname,{library}.so.40");
        let flags = ["-shared", "-fPIC", &name, "-o"].map(OsStr::new);
        let files = [shared.as_ref(), of_library.as_ref()];
        compile("gcc", &[&flags[..], &files].concat());
        let program = new_file();
        let files = [program.as_ref(), of_program.as_ref(), shared.as_ref()];
        compile("gcc", &[&[OsStr::new("-o")][..], &files].concat());
        let refused = run("-n 2", &program, &[]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains("it was compiled for Open MPI"), "{said}");
    }
}
