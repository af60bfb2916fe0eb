//! Random MPI programs, run on simulated machines and under MPICH, give the same results. The
//! programs derive their operations from a seed, and each rank writes what came of them into a
//! file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::command::{skipped, text};
use crate::unmodified::{compile, compiled, compiler, directory, new_file, run, source_of};

/// A seed, the number of ranks, and the machine: its operations are performed there.
const RUNS: [(u32, u32, &str); 5] = [
    (1, 1, "scc"),
    (2, 2, "sme-prototype"),
    (3, 3, "mppa256"),
    (4, 4, "scc"),
    (5, 3, "sme-prototype"),
];

/// The operations of a run.
const OPERATIONS: &str = "40";

/// The command that starts programs under MPICH, if it is installed.
fn starter() -> Option<&'static str> {
    let names = ["mpiexec.mpich", "mpiexec"];
    let found = names.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|version| text(&version.stdout).contains("HYDRA"))
    });
    if found.is_none() {
        skipped("mpiexec of mpich");
    }
    found
}

/// The lines that the ranks of a run have written into files of this name, in order.
fn written(file: &Path, ranks: u32, output: &Output) -> Vec<String> {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}: {said}", file.display());
    let name = |rank: u32| format!("{}.{rank}", file.display());
    let texts = (0..ranks).map(|rank| fs::read_to_string(name(rank)).unwrap());
    let mut lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    lines
}

/// The first line in which two runs differ, as both have it.
fn difference(one: &[String], other: &[String]) -> Option<[String; 2]> {
    let longest = one.len().max(other.len());
    let line = |lines: &[String], place: usize| lines.get(place).cloned().unwrap_or_default();
    let mut both = (0..longest).map(|place| [line(one, place), line(other, place)]);
    both.find(|[one, other]| one != other)
}

/// A program, by what stands before its seed on the command line.
struct Program {
    command: Vec<String>,
    starter: &'static str,
    /// Variables of the environment that it needs under MPICH.
    variables: Vec<(&'static str, String)>,
}

impl Program {
    /// The lines of a run under MPICH.
    fn under_mpich(&self, seed: u32, ranks: u32) -> Vec<String> {
        let file = new_file();
        let output = Command::new(self.starter)
            .args(["-launcher", "fork", "-n", &ranks.to_string()])
            .args(&self.command)
            .args([&seed.to_string(), OPERATIONS])
            .arg(&file)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .output();
        written(&file, ranks, &output.unwrap())
    }

    /// The lines of a run on a machine; `more` are further arguments.
    fn simulated(&self, seed: u32, ranks: u32, machine: &str, more: &[&str]) -> Vec<String> {
        let (file, seed) = (new_file(), seed.to_string());
        let (program, first) = self.command.split_first().unwrap();
        let mut arguments: Vec<&str> = first.iter().map(String::as_str).collect();
        arguments.extend([&seed, OPERATIONS, file.to_str().unwrap()]);
        arguments.extend(more);
        let flags = format!("--machine {machine} -n {ranks}");
        written(&file, ranks, &run(&flags, program.as_ref(), &arguments))
    }

    /// Checks that a run gives on a machine what it gives under MPICH.
    fn gives_the_same(&self, seed: u32, ranks: u32, machine: &str) {
        let mpich = self.under_mpich(seed, ranks);
        assert!(mpich.len() as u32 >= ranks, "{mpich:?}");
        let ours = self.simulated(seed, ranks, machine, &[]);
        let differs = difference(&mpich, &ours);
        let run = format!("seed {seed}, {ranks} ranks, {machine}");
        assert_eq!(
            differs, None,
            "{run}: MPICH's line, and that on the machine"
        );
    }
}

/// The program in C, if MPICH is installed. MPICH 4.0 loses data of persistent collective calls:
/// there all calls are blocking, which gives the same results.
fn in_c() -> Option<Program> {
    let program = compiled("random.c")?;
    Some(Program {
        command: vec![program.to_str().unwrap().to_owned()],
        starter: starter()?,
        variables: vec![("RANDOM_BLOCKING", "1".to_owned())],
    })
}

#[test]
fn random_calls_give_what_mpich_gives() {
    let Some(program) = in_c() else { return };
    for (seed, ranks, machine) in RUNS {
        program.gives_the_same(seed, ranks, machine);
    }
}

#[test]
fn a_wrong_result_is_found() {
    let Some(program) = in_c() else { return };
    let right = program.under_mpich(2, 2);
    let wrong = program.simulated(2, 2, "scc", &["7"]);
    let [one, other] = difference(&right, &wrong).unwrap();
    for line in [one, other] {
        assert!(line.starts_with("0007 "), "{line}");
        assert!(line.contains(" rank 0: "), "{line}");
    }
}

/// The interpreter of the tests, if it has mpi4py and numpy.
pub fn python() -> Option<String> {
    let python = std::env::var("SME_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python)
        .args(["-c", "import mpi4py, numpy"])
        .output();
    match found.is_ok_and(|found| found.status.success()) {
        true => Some(python),
        false => {
            skipped("mpi4py");
            None
        }
    }
}

/// A directory in which MPICH's library is found by the name that mpi4py's wheel looks for:
/// distributions have another one.
fn named_library(compiler: &str) -> PathBuf {
    let place = directory().join("named");
    fs::create_dir_all(&place).unwrap();
    let source = place.join("nothing.c");
    fs::write(&source, "").unwrap();
    let library = place.join("libmpi.so.12");
    let flags = "-shared -fPIC -Wl,--no-as-needed -Wl,-soname,libmpi.so.12 -o";
    let flags = flags.split(' ').map(OsStr::new);
    let files = [library.as_os_str(), source.as_os_str()];
    compile(compiler, &flags.chain(files).collect::<Vec<_>>());
    place
}

#[test]
fn random_calls_of_python_give_what_mpich_gives() {
    let Some(compiler) = compiler("mpicc") else {
        return skipped("mpich");
    };
    let (Some(python), Some(starter)) = (python(), starter()) else {
        return;
    };
    let library = named_library(&compiler).to_str().unwrap().to_owned();
    let script = source_of("random_objects.py");
    let program = Program {
        command: vec![python, script.to_str().unwrap().to_owned()],
        starter,
        // Where there are several libraries, mpi4py takes MPICH's.
        variables: vec![
            ("LD_LIBRARY_PATH", library),
            ("MPI4PY_MPIABI", "mpich".to_owned()),
        ],
    };
    for (seed, ranks, machine) in [(1, 2, "scc"), (2, 3, "sme-prototype")] {
        program.gives_the_same(seed, ranks, machine);
    }
}
