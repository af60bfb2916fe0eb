//! Every example prints what stands beside it in a file of the same name, with `.out`.
//!
//! `cargo test` builds the examples before it runs this; `cargo test --test system` does not.
//! With `UPDATE=1` in the environment, the files are written anew, and what documents show of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::WRITING;

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

/// An error of an example is one line for people, and no `Debug` of its type.
#[test]
fn errors_are_displayed() {
    for (example, arguments, complaint) in [
        ("hand_over", "no-such-machine", "no-such-machine"),
        ("noise", "2 many", "many: invalid digit found in string"),
        ("processes", "many", "many: invalid digit found in string"),
        ("scale", "-1", "-1: invalid digit found in string"),
        ("physics", "chemistry", "only `figures` or `seeds`"),
        ("sensitivity", "link.colour", "link.colour"),
    ] {
        let arguments = arguments.split(' ');
        let output = Command::new(program(example))
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{example}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{example}: {stderr}");
        assert!(stderr.starts_with("error: "), "{example}: {stderr}");
        assert!(stderr.contains(complaint), "{example}: {stderr}");
        assert!(!stderr.contains('{'), "{example}: {stderr}");
    }
}

/// Every example's `main` ends by `exit_code`.
#[test]
fn examples_end_with_an_exit_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut seen = 0;
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let file = match path.is_dir() {
            true => path.join("main.rs"),
            false => path,
        };
        if file.extension().is_some_and(|end| end == "rs") {
            let source = fs::read_to_string(&file).unwrap();
            let ends =
                source.contains("fn main() -> ExitCode {\n") && source.contains("    exit_code(");
            assert!(ends, "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen >= 12, "{seen} examples");
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
    let source = include_str!("../../examples/my_barrier.rs");
    assert!(source.lines().count() < 60);
}

/// Users copy them into a crate of their own, which depends on this one.
#[test]
fn examples_for_users_need_no_other_crate() {
    for name in ["hand_over", "my_barrier", "my_mpi_program", "my_program"] {
        let source = fs::read_to_string(format!("examples/{name}.rs")).unwrap();
        let uses = source.lines().filter_map(|line| line.strip_prefix("use "));
        let others: Vec<&str> = uses
            .filter(|path| !["std::", "sme::"].iter().any(|own| path.starts_with(own)))
            .collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}

#[test]
fn my_mpi_program() {
    is_as_pinned("my_mpi_program");
    let source = include_str!("../../examples/my_mpi_program.rs");
    assert!(source.lines().count() < 80, "the halo exchange is short");
    let printed = printed("my_mpi_program", &[]);
    let results = printed.lines().map(|line| {
        let (_, result) = line.split_once(": ").unwrap();
        result.rsplit_once(", ").unwrap().0
    });
    let results: Vec<&str> = results.collect();
    assert_eq!(results.len(), 2, "two machines");
    assert_eq!(results[0], results[1], "one result");
    let shown = format!("```text\n{}\n```\n", printed.trim_end());
    is_shown("docs/mpi.md", "my_mpi_program", &shown);
}

#[test]
fn my_program() {
    is_as_pinned("my_program");
    let source = include_str!("../../examples/my_program.rs");
    assert!(source.lines().count() < 100);
    let printed = printed("my_program", &[]);
    let forgetful = printed.find("The lock forgets").unwrap();
    let (correct, wrong) = printed.split_at(forgetful);
    assert_eq!(correct.matches("\n0 stale reads of ").count(), 3);
    assert!(wrong.contains("not written back"));
    is_shown(
        "docs/programs.md",
        "my_program",
        &format!("```text\n{}\n```\n", wrong.trim_end()),
    );
}

/// The tutorial shows the three runs: what the checker says of a correct program, of one that
/// stands still, and of one that reads stale data.
#[test]
fn hand_over() {
    is_as_pinned("hand_over");
    let printed = printed("hand_over", &[]);
    let (correct, wrong) = printed.split_once("NoAcknowledgement:\n").unwrap();
    let (deadlock, stale) = wrong.split_once("NoFlush:\n").unwrap();
    assert!(correct.contains("\n0 stale reads of "), "{correct}");
    assert!(deadlock.starts_with("deadlock: "), "{deadlock}");
    assert!(deadlock.contains("at ready[0]"), "{deadlock}");
    assert!(stale.contains("\n1 stale reads of "), "{stale}");
    assert!(stale.contains("node 1 must invalidate"), "{stale}");
    for (name, run) in [
        ("hand_over", correct.trim_start_matches("None:\n")),
        ("hand_over deadlock", deadlock),
        ("hand_over stale", stale),
    ] {
        let shown = format!("```text\n{}\n```\n", run.trim_end());
        is_shown("docs/tutorial.md", name, &shown);
    }
}

/// The code that a chapter shows is that of its example.
#[test]
fn the_chapters_show_code_of_the_examples() {
    for (chapter, example, least) in [
        ("docs/programs.md", "examples/my_program.rs", 4),
        ("docs/tutorial.md", "examples/hand_over.rs", 2),
    ] {
        shows_code_of(chapter, example, least);
    }
}

fn shows_code_of(chapter: &str, example: &str, least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [document, source] =
        [chapter, example].map(|file| fs::read_to_string(root.join(file)).unwrap());
    let trimmed = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let source = trimmed(&source);
    let blocks: Vec<_> = document.split("\n```rust\n").skip(1).collect();
    assert!(blocks.len() >= least);
    for block in blocks {
        let code = trimmed(block.split("\n```").next().unwrap());
        let is_there = source.windows(code.len()).any(|lines| lines == code);
        assert!(is_there, "{example} has no {code:#?}");
    }
}

#[test]
fn memory_costs() {
    let printed = printed("memory_costs", &[]);
    assert!(printed.lines().count() > 20, "{printed}");
    is_shown("docs/programs.md", "memory_costs", &printed);
}

/// Between two comments with its name, the document has `text` and nothing else.
fn is_shown(document: &str, name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let _alone = WRITING.lock().unwrap();
    let written = fs::read_to_string(&file).unwrap();
    let marks = [format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n")];
    let begin = written.find(&marks[0]).unwrap() + marks[0].len();
    let end = begin + written[begin..].find(&marks[1]).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let updated = [&written[..begin], text, &written[end..]].concat();
        fs::write(file, updated).unwrap();
        return;
    }
    assert_eq!(&written[begin..end], text, "{document} (.ci/refresh)");
}

/// The rows of one constant are those that the document shows.
#[test]
fn sensitivity() {
    let constant = "uncached.arbitration";
    for (arguments, least) in [(&[constant][..], 5), (&["flips", constant], 3)] {
        let document = include_str!("../../docs/sensitivity.md");
        let printed = printed("sensitivity", arguments);
        let rows: Vec<&str> = printed
            .lines()
            .filter(|line| line.starts_with('|') || line.starts_with("* `"))
            .collect();
        assert!(rows.len() >= least, "{printed}");
        for row in rows {
            assert!(
                document.contains(row),
                "docs/sensitivity.md has no {row} (.ci/refresh)"
            );
        }
    }
}
