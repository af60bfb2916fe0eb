//! The documents say what is true: names in ARCHITECTURE.md, CONTRIBUTING.md and some chapters
//! exist, README.md and the chapters in docs/ show what the program prints, and docs/sensitivity.md
//! and docs/physics.md are about the constants that the machine has.
//!
//! With `UPDATE=1` in the environment, the program's present output is written into these.
//! `.ci/refresh` does that, and everything else that shows output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sme::validate::measure::Point as _;
use sme::validate::papers::sme::estimator;
use sme::validate::papers::sme::points::Point;
use sme::validate::published::{self, Kind};
use sme_sim::machine::Machine;

use crate::command::WRITING;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap()
}

/// Every Rust file of the workspace.
fn sources() -> Vec<String> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for room in [
        "src",
        "memory/src",
        "sme-sim/src",
        "barrier/src",
        "barrier/runs/src",
        "fft-demo/src",
    ] {
        collect(&root().join(room), &mut found);
    }
    found
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// Returns the texts between backquotes, outside blocks of code.
fn quoted(document: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in document.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

/// Returns whether the claim of a quoted name about the sources holds; none where it claims
/// nothing.
fn holds(name: &str, sources: &[String]) -> Option<bool> {
    if let Some(function) = name.strip_suffix("()") {
        let (of, function) = function.rsplit_once("::").unwrap_or(("", function));
        let defined = format!("fn {function}");
        return Some(
            sources.iter().any(|source| {
                has_word(source, &defined) && (of.is_empty() || has_word(source, of))
            }),
        );
    }
    if let Some((of, variant)) = name.split_once("::") {
        let is_camel = |word: &str| word.starts_with(char::is_uppercase);
        return (is_camel(of) && is_camel(variant)).then(|| {
            let defined = format!("enum {of}");
            sources
                .iter()
                .any(|source| has_word(source, &defined) && has_word(source, variant))
        });
    }
    let is_path = name.contains('/') && !name.contains(char::is_whitespace) && name != "//!";
    is_path.then(|| root().join(name).exists())
}

#[test]
fn what_the_architecture_names_exists() {
    let sources = sources();
    let named = [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/compact.md",
        "docs/programs.md",
        "docs/speed.md",
    ];
    let claims: Vec<_> = named
        .iter()
        .flat_map(|document| quoted(&read(document)))
        .filter_map(|name| holds(&name, &sources).map(|holds| (name, holds)))
        .collect();
    assert!(claims.len() > 60, "only {} names are checked", claims.len());
    let wrong: Vec<_> = claims.iter().filter(|(_, holds)| !holds).collect();
    assert!(wrong.is_empty(), "there is no {wrong:?}");
}

#[test]
fn a_store_passes_functions_that_stand_where_the_table_says() {
    let document = read("ARCHITECTURE.md");
    let mut checked = 0;
    for row in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [functions, file, _] = cells[..] else {
            continue;
        };
        if !file.ends_with(".rs") {
            continue;
        }
        let source = read(&format!("sme-sim/src/{file}"));
        for name in quoted(functions) {
            let function = name.trim_end_matches("()").rsplit("::").next().unwrap();
            let defined = format!("fn {function}");
            assert!(has_word(&source, &defined), "{file} has no {function}");
            checked += 1;
        }
    }
    assert!(checked > 25, "only {checked} functions are checked");
}

#[test]
fn a_wrong_name_is_noticed() {
    let sources = sources();
    for name in [
        "Node::stor()",
        "Router::transmit()",
        "no_such_function()",
        "Event::HostSent",
        "sme-sim/src/cluster/nodes.rs",
    ] {
        assert_eq!(holds(name, &sources), Some(false), "{name}");
    }
}

/// Commands that take too long for a test: `.ci/run` sees to them, and `UPDATE`.
const LONG: [&str; 2] = ["cargo run --release", "sme validate"];

/// A directory in which the commands of one document run in order. Beside it is `sme`, a clone.
struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("mine")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root(), directory.path().join("sme")).unwrap();
        Self { directory }
    }

    /// Returns the output of a command line, with its error if it fails. Other programs than `sme`
    /// are the shell's.
    fn output_of(&self, line: &str) -> String {
        let sme = match line {
            _ if line == LONG[0] => Some(""),
            line => line.strip_prefix("sme "),
        };
        let mut command = match sme {
            Some(arguments) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
                command.args(arguments.split_whitespace());
                command
            }
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", line]);
                command
            }
        };
        let directory = self.directory.path().join("mine");
        let output = command.current_dir(directory).output().unwrap();
        let mut printed = output.stdout;
        if !output.status.success() {
            printed.extend(output.stderr);
        }
        String::from_utf8(printed).unwrap()
    }
}

/// `document` with the present output of every command in its `console` blocks, which run in order
/// in one directory. Of a long output the block may show parts: a line `…` stands for lines left
/// out, and what follows it is sought.
fn with_present_output(document: &str, long_too: bool) -> String {
    let scratch = Scratch::new();
    let mut text = String::new();
    let mut lines = document.lines().peekable();
    let mut in_console = false;
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        match (in_console, line) {
            (false, "```console") => in_console = true,
            (true, "```") => in_console = false,
            _ => {}
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) else {
            continue;
        };
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
            shown.push(line);
        }
        if long_too || !LONG.contains(&command) {
            text.push_str(&excerpt(&scratch.output_of(command), &shown));
        } else {
            text.extend(shown.iter().flat_map(|line| [line, "\n"]));
        }
    }
    text
}

/// The lines of `output` that `shown` shows: all, or for each stretch between lines `…` the line
/// whose first word is that of the stretch's first line, and as many more as the stretch has.
fn excerpt(output: &str, shown: &[&str]) -> String {
    if !shown.contains(&"…") {
        return output.to_owned();
    }
    let output: Vec<&str> = output.lines().collect();
    let mut text = String::new();
    for (number, stretch) in shown.split(|line| *line == "…").enumerate() {
        if number > 0 {
            text.push_str("…\n");
        }
        let Some(first) = stretch
            .first()
            .and_then(|line| line.split_whitespace().next())
        else {
            continue;
        };
        let from = output
            .iter()
            .position(|line| line.split_whitespace().next() == Some(first));
        for line in output
            .iter()
            .skip(from.unwrap_or(output.len()))
            .take(stretch.len())
        {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Holds what `document` shows against what the program prints, or writes that there.
fn shows_what_is_printed(document: &str, least_commands: usize) {
    let update = std::env::var_os("UPDATE").is_some();
    let _alone = update.then(|| WRITING.lock().unwrap());
    let shown = read(document);
    let present = with_present_output(&shown, update);
    assert!(shown.matches("\n$ sme ").count() >= least_commands);
    if update {
        fs::write(root().join(document), present).unwrap();
        return;
    }
    for (number, (shown, printed)) in (1..).zip(shown.lines().zip(present.lines())) {
        assert_eq!(shown, printed, "{document}:{number} (.ci/refresh)");
    }
    assert_eq!(shown.lines().count(), present.lines().count());
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    shows_what_is_printed("README.md", 0);
    assert!(read("README.md").contains("```console\n$ cargo run --release\n"));
}

#[test]
fn the_tour_shows_what_the_program_prints() {
    shows_what_is_printed("docs/tour.md", 6);
}

#[test]
fn the_tutorial_shows_what_the_program_prints() {
    shows_what_is_printed("docs/tutorial.md", 5);
}

#[test]
fn the_chapter_on_machines_shows_what_the_program_prints() {
    shows_what_is_printed("docs/machines.md", 3);
}

#[test]
fn the_chapter_on_programs_shows_what_the_program_prints() {
    shows_what_is_printed("docs/programs.md", 1);
}

#[test]
fn the_chapter_on_reports_shows_what_the_program_prints() {
    shows_what_is_printed("docs/reports.md", 2);
}

#[test]
fn the_chapter_on_plots_shows_what_the_program_prints() {
    shows_what_is_printed("docs/plot.md", 8);
}

#[test]
fn the_chapter_on_experiments_shows_what_the_program_prints() {
    shows_what_is_printed("docs/experiments.md", 2);
}

#[test]
fn the_chapter_on_the_scc_shows_what_the_program_prints() {
    shows_what_is_printed("docs/scc.md", 3);
}

#[test]
fn the_chapter_on_the_mppa_shows_what_the_program_prints() {
    shows_what_is_printed("docs/mppa.md", 2);
}

#[test]
fn the_chapter_on_mpi_shows_what_the_program_prints() {
    shows_what_is_printed("docs/mpi.md", 10);
}

#[test]
fn the_chapter_on_coherence_shows_what_the_program_prints() {
    shows_what_is_printed("docs/coherence.md", 4);
}

#[test]
fn the_chapter_on_invasive_mpi_shows_what_the_program_prints() {
    shows_what_is_printed("docs/invasive.md", 3);
}

/// The page is about the machine as it is, its options, and every figure that barriers decide.
#[test]
fn the_physics_is_that_of_the_machine() {
    let document = read("docs/physics.md");
    let machine = Machine::builtin("sme-prototype").unwrap();
    let is_there = |found: &str| {
        assert!(
            document.contains(found),
            "docs/physics.md has no {found} (.ci/refresh)"
        );
    };
    is_there(&format!("Machine `sme-prototype` ({})", machine.hash()));
    for key in ["bridge_writes", "forwarding", "homes"] {
        let mut options = machine.left_out().iter();
        assert!(options.any(|option| option.key == key), "{key}");
        is_there(&format!("| `{key}` "));
    }
    for figure in published::built_in().unwrap() {
        let is_left_out = |point: &Point| point.is_program() || point.is_large();
        let barriers = estimator(&figure.id).is_some_and(|of| !of.any(is_left_out));
        if barriers && figure.kind != Kind::Derived {
            is_there(&format!("\n| `{}`", figure.id));
        }
    }
}

#[test]
fn the_figures_of_machines_today_are_those_of_these_machines() {
    let document = read("docs/machines-today.md");
    for name in ["cxl-pool", "ualink"] {
        let machine = Machine::builtin(name).unwrap();
        let heading = format!("`{name}` ({}), one thread each", machine.hash());
        assert!(
            document.contains(&heading),
            "docs/machines-today.md has no {heading} (.ci/refresh)"
        );
    }
}

#[test]
fn the_sensitivity_is_that_of_the_fitted_constants() {
    let document = read("docs/sensitivity.md");
    let (document, _) = document.split_once("## Where a verdict flips").unwrap();
    let machine = Machine::builtin("sme-prototype").unwrap();
    for constant in machine.fitted() {
        let row = format!("| `{}` |", constant.name());
        let value = format!("| {} → ", constant.value);
        let rows = document.lines().filter(|line| line.starts_with(&row));
        assert!(
            rows.clone().count() > 0 && rows.clone().all(|line| line.contains(&value)),
            "{} is {}; docs/sensitivity.md must be written anew (.ci/refresh)",
            constant.name(),
            constant.value
        );
    }
}

/// Every constant that nothing publishes stands in the part about verdicts, with its present value.
#[test]
fn every_uncertain_constant_has_its_flips() {
    let document = read("docs/sensitivity.md");
    let (_, flips) = document.split_once("## Where a verdict flips").unwrap();
    let (flips, _) = flips.split_once("\n## ").unwrap();
    let machine = Machine::builtin("sme-prototype").unwrap();
    let mut seen = 0;
    for constant in machine.constants() {
        let source = constant.source.name();
        if !["fitted", "assumed", "derived"].contains(&source) {
            continue;
        }
        let (name, value) = (constant.name(), &constant.value);
        let row = format!("| `{name}` | {source} | {value} |");
        let standing = format!("* `{name}` ({source}, {value}): ");
        assert!(
            flips
                .lines()
                .any(|line| line.starts_with(&row) || line.starts_with(&standing)),
            "{name} is {value}; docs/sensitivity.md must be written anew (.ci/refresh)"
        );
        seen += 1;
    }
    assert!(seen > 25, "only {seen} constants are looked at");
}
