//! `-h` of every command is one screen, a line for each option; `--help` has everything.

use crate::command::{sme, stdout, text};

/// Lines that `-h` may have.
const LINES: usize = 45;
/// Columns that a line of help may have.
const COLUMNS: usize = 100;

/// Calls `each` for `command` and all commands below it, with the words that lead to it.
fn all(command: &clap::Command, words: &str, each: &mut impl FnMut(&str, &clap::Command)) {
    each(words, command);
    for sub in command.get_subcommands() {
        let words = format!("{words} {}", sub.get_name());
        all(sub, words.trim(), each);
    }
}

/// The option, or positional argument, that a line of help begins with.
fn option(line: &str) -> Option<&str> {
    let name = line.trim_start();
    let is_indented = (2..=6).contains(&(line.len() - name.len()));
    (is_indented && name.starts_with(['-', '[', '<'])).then_some(name)
}

#[test]
fn short_help_is_one_screen() {
    let mut commands = 0;
    all(&sme::cli::command(), "", &mut |words, _| {
        let help = stdout(&format!("{words} -h"));
        let lines: Vec<&str> = help.lines().collect();
        assert!(lines.len() <= LINES, "{words}: {} lines", lines.len());
        let begin = ["Arguments:", "Options:"].map(|heading| help.find(heading));
        let begin = begin.into_iter().flatten().min().unwrap();
        for line in help[begin..].lines() {
            let is_continued = line.starts_with("       ") && option(line).is_none();
            assert!(
                !is_continued,
                "{words}: an option of more than a line: {line}"
            );
        }
        assert!(!help.contains("Examples:"), "{words}");
        commands += 1;
    });
    assert!(commands > 40, "{commands} commands");
}

#[test]
fn long_help_has_every_option_and_examples() {
    all(&sme::cli::command(), "", &mut |words, command| {
        let help = stdout(&format!("{words} --help"));
        for argument in command.get_arguments() {
            if let Some(long) = argument.get_long() {
                assert!(help.contains(&format!("--{long}")), "{words}: --{long}");
            }
            let text = argument.get_long_help().unwrap().to_string();
            let words_of = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = text.lines().next().unwrap();
            assert!(
                words_of(&help).contains(&words_of(first)),
                "{words}: {first}"
            );
        }
        if command.get_after_long_help().is_some() {
            assert!(help.contains("Examples:"), "{words}");
        }
    });
}

/// A line that is too long is broken, and leaves a word alone on the next one.
#[test]
fn lines_below_the_options_fit() {
    all(&sme::cli::command(), "", &mut |words, command| {
        let below = command.get_after_long_help().map(ToString::to_string);
        for line in below.unwrap_or_default().lines() {
            assert!(line.chars().count() <= COLUMNS, "{words}: {line}");
        }
    });
}

/// No line is too long, and no line break has made one word of two, or a mark of two.
#[test]
fn help_is_in_words() {
    all(&sme::cli::command(), "", &mut |words, _| {
        for flag in ["-h", "--help"] {
            let help = stdout(&format!("{words} {flag}"));
            for line in help.lines() {
                assert!(line.chars().count() <= COLUMNS, "{words} {flag}: {line}");
                for garbled in ["marknd", ":;", ": ;", ";;", " ,", "\\n", "e.g [", "e.g;"] {
                    assert!(!line.contains(garbled), "{words} {flag}: {line}");
                }
            }
        }
    });
}

#[test]
fn a_complaint_lists_what_excludes_a_flag() {
    let output = sme("extrapolate --paper --plot x.svg --large-episodes 3");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "sme: the argument '--paper' cannot be used with: --plot <FILE>, --large-episodes <N>\n"
    );
}
