//! Prose is at most 100 columns wide, in documents and in comments. What cannot be broken may be
//! wider: rows of tables, blocks of code, drawings.

use std::fs;

use crate::front_door::{documents, prose, read};
use crate::rooms::files;

/// The columns of a line.
const COLUMNS: usize = 100;

/// The folders that have Rust files.
const FOLDERS: [&str; 11] = [
    "barrier", "benches", "examples", "fft-demo", "hdl", "memory", "mpi", "python", "sme-sim",
    "src", "tests",
];

/// Whether a line of prose is too wide; `text` is the line without the marks of a comment.
fn is_too_wide(line: &str, text: &str) -> bool {
    let is_table = text.starts_with('|');
    let is_code = text.starts_with("    ");
    let is_drawing = text.contains(['─', '│']);
    line.chars().count() > COLUMNS && !is_table && !is_code && !is_drawing
}

/// The lines of comments in the source that are too wide, by number.
fn wide_comments(source: &str) -> Vec<usize> {
    let mut in_block = false;
    let mut wide = Vec::new();
    for (line, number) in source.lines().zip(1..) {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            in_block = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']);
        let text = text.strip_prefix(' ').unwrap_or(text);
        let fence = text.trim_start().starts_with("```");
        in_block ^= fence;
        // The line of a text that a program writes.
        let is_text = line.ends_with("\\n\\");
        if !in_block && !is_text && is_too_wide(line, text) {
            wide.push(number);
        }
    }
    wide
}

#[test]
fn documents_fit_100_columns() {
    let mut wide = Vec::new();
    for document in documents() {
        let text = prose(&fs::read_to_string(&document).unwrap());
        let lines = text.lines().filter(|line| is_too_wide(line, line));
        wide.extend(lines.map(|line| format!("{}: {line}", document.display())));
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn comments_fit_100_columns() {
    let mut wide = Vec::new();
    for file in FOLDERS.into_iter().flat_map(files) {
        let lines = wide_comments(&read(&file));
        wide.extend(lines.into_iter().map(|line| format!("{file}:{line}")));
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn a_wide_line_is_noticed() {
    let words = "word ".repeat(20);
    let words = words.trim_end();
    let comment = |text: &str| wide_comments(&format!("fn f() {{\n    // {text}\n}}\n"));
    assert_eq!(comment(words), [2]);
    for fits in [&words[10..], &format!("| {words}")] {
        assert!(comment(fits).is_empty(), "{fits}");
    }
    let fenced = format!("/// ```text\n/// {words}\n/// ```\n/// {words}\n");
    assert_eq!(wide_comments(&fenced), [4]);
}
