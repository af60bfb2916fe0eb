//! Commands of every kind give what is recorded of them: their standard output, exit status and
//! files, byte for byte, and of what is refused also the line on standard error.
//!
//! The commands stand in tests/golden/commands.txt, what they gave in tests/golden/recorded/. With
//! `UPDATE=1` in the environment it is recorded anew; the difference belongs into the commit that
//! is meant to move it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crc::{CRC_64_XZ, Crc};

use crate::command::{skipped, text};

/// Stands before what needs Verilator.
const VERILATOR: &str = "[verilator] ";

/// A name, and the command lines that are run one after another.
struct Golden<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Returns those of `commands` that can be run here.
fn read(commands: &str) -> Vec<Golden<'_>> {
    let verilator = sme_hdl::verilated::Toolchain::find();
    if verilator.is_err() {
        skipped("verilator");
    }
    let lines = commands
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let golden = |line| {
        let (name, lines) = str::split_once(line, ": ").unwrap();
        let lines = match lines.strip_prefix(VERILATOR) {
            Some(_) if verilator.is_err() => return None,
            Some(lines) => lines,
            None => lines,
        };
        Some(Golden {
            name,
            lines: lines.split(" && ").collect(),
        })
    };
    lines.filter_map(golden).collect()
}

impl Golden<'_> {
    /// Runs it in a directory of its own; what comes out.
    fn run(&self) -> String {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["litmus", "machines"] {
            let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            symlink(original, directory.path().join(folder)).unwrap();
        }
        let mut record = String::new();
        for line in &self.lines {
            let output = Command::new(env!("CARGO_BIN_EXE_sme"))
                .args(words(line))
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let status = output.status.code().unwrap();
            write!(record, "$ sme {line}\n{}", text(&output.stdout)).unwrap();
            if status == 2 {
                write!(record, "--- stderr\n{}", text(&output.stderr)).unwrap();
            }
            writeln!(record, "--- exit status {status}").unwrap();
        }
        for (name, bytes) in files(directory.path()) {
            let sum = Crc::<u64>::new(&CRC_64_XZ).checksum(&bytes);
            writeln!(
                record,
                "--- file {name}: {} bytes, CRC-64 {sum:016x}",
                bytes.len()
            )
            .unwrap();
        }
        record
    }
}

/// The words of a command line; between double quotes blanks stand for themselves.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Every file in `directory`, by name; folders are looked into, links are not followed.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(directory).unwrap().display().to_string();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn commands_give_what_is_recorded() {
    let commands = fs::read_to_string(folder().join("commands.txt")).unwrap();
    let all = read(&commands);
    assert!(all.len() > 60, "only {} commands", all.len());
    let names: BTreeSet<_> = all.iter().map(|golden| golden.name).collect();
    assert_eq!(names.len(), all.len(), "a name stands twice");

    let recorded = folder().join("recorded");
    let update = std::env::var_os("UPDATE").is_some();
    let next = Mutex::new(all.iter());
    let different = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(golden) = next.lock().unwrap().next() else {
                        return;
                    };
                    let (gave, file) =
                        (golden.run(), recorded.join(format!("{}.txt", golden.name)));
                    if update {
                        fs::write(file, gave).unwrap();
                    } else if fs::read_to_string(&file).ok().as_ref() != Some(&gave) {
                        let name = golden.name;
                        different
                            .lock()
                            .unwrap()
                            .push(format!("{name} gave:\n{gave}"));
                    }
                }
            });
        }
    });
    let different = different.into_inner().unwrap();
    assert!(
        different.is_empty(),
        "{} of {} commands differ from tests/golden/recorded; the first, {}",
        different.len(),
        all.len(),
        different[0],
    );
}
