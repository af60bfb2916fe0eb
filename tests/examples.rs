//! Every example prints what stands beside it in a file of the same name, with `.out`.
//!
//! `cargo test` builds the examples before it runs this; `cargo test --test examples` does not.
//! With `UPDATE=1` in the environment, the files are written anew.

// What fails here fails the test.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that an example was built to: beside the directory of this test's program.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let name = format!("{example}{}", std::env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    assert!(
        program.exists(),
        "the examples are not built: `cargo build --examples`"
    );
    program
}

/// The example's output on stdout; it must succeed and say nothing else.
fn printed(example: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(example))
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{example}");
    assert!(output.status.success(), "{example}");
    String::from_utf8(output.stdout).unwrap()
}

fn is_as_pinned(example: &str) {
    let printed = printed(example, &[]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{example}.out"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, printed).unwrap();
        return;
    }
    let pinned = fs::read_to_string(file).unwrap();
    assert_eq!(printed, pinned, "{example} (.ci/refresh)");
}

#[test]
fn load_latency() {
    is_as_pinned("load_latency");
}

#[test]
fn my_barrier() {
    is_as_pinned("my_barrier");
    let source = include_str!("../examples/my_barrier.rs");
    assert!(source.lines().count() < 60);
}

/// The rows of one constant are those that the document shows.
#[test]
fn sensitivity() {
    let document = include_str!("../docs/sensitivity.md");
    let printed = printed("sensitivity", &["uncached.arbitration"]);
    let rows: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() > 4, "{printed}");
    for row in rows {
        assert!(
            document.contains(row),
            "docs/sensitivity.md has no {row} (.ci/refresh)"
        );
    }
}
