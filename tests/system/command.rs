//! Runs the program as a user does: what the tests of its commands share.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// Held while a document is brought up to date, into which other tests may write too.
pub static WRITING: Mutex<()> = Mutex::new(());

/// Runs `sme` with these arguments, separated by blanks, in `directory`.
pub fn sme_in(directory: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        // Columns of a terminal that the tests may run on.
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The same in the directory of the tests.
pub fn sme(arguments: &str) -> Output {
    sme_in(Path::new("."), arguments)
}

/// Returns the output of the program as text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The output of a command that must succeed and say nothing on stderr.
pub fn stdout(arguments: &str) -> String {
    let output = sme(arguments);
    assert_eq!(text(&output.stderr), "", "{arguments}");
    assert_eq!(output.status.code(), Some(0), "{arguments}");
    text(&output.stdout).to_owned()
}

/// Says that a test is skipped as `tool` is not there, in the form that `.ci/run` counts: past the
/// test runner, which keeps what a test that passes prints to itself.
pub fn skipped(tool: &str) {
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "skipped: {tool} is not installed").unwrap();
}

/// The value called `name` in a table of one column.
pub fn cell(output: &str, name: &str) -> String {
    let row = output
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name));
    let row = row.unwrap_or_else(|| panic!("no {name} in\n{output}"));
    row[name.len()..].trim().to_owned()
}

/// Ends a process by a signal; returns whether it was there.
#[cfg(unix)]
pub fn ends(child: &std::process::Child) -> bool {
    let kill = Command::new("kill").arg(child.id().to_string()).status();
    kill.unwrap().success()
}
