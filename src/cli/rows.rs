//! The rows of a command, as records instead of text: for programs that have the command line
//! within themselves, as the Python module does (`python/src/lib.rs`).
//!
//! The words are those of a command line and go the same way, through [`Job::read`] and
//! [`Job::run`]. The command writes JSON lines, whose keys and values are those of the records.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{ArgAction, ArgMatches, Command};

use super::paths::{is_given, takes};
use super::{Job, command};
use crate::report::collect::collected;
use crate::report::records::{self, Record};
use crate::report::stop::Stop;

/// The end of a command.
#[derive(Debug)]
pub struct Done {
    /// Its rows, also those that it had written when it stopped.
    pub rows: Vec<Record>,
    /// Why it stopped before its end, if it did.
    pub stop: Option<Stop>,
}

/// Does what `words` ask for, which are those of a command line behind the program's name; they
/// choose no format and no file for the rows. Once `ended` is set, rows are dropped, and a sweep
/// stops at its next one.
pub fn rows(words: Vec<OsString>, ended: &Arc<AtomicBool>) -> Done {
    let job = with_format(words).and_then(Job::read);
    let (done, bytes) = collected(ended, || job.and_then(Job::run));
    let (rows, read) = match records::read_all("rows", bytes.as_slice()) {
        Ok(rows) => (rows, Ok(())),
        Err(error) => (Vec::new(), Err(Stop::Failed(error.to_string()))),
    };
    Done {
        rows,
        stop: done.and(read).err(),
    }
}

/// The words of `flags` behind those of a command. A flag has its name, with underscores or
/// dashes, and its values, or none if it takes none. Several values are a list with commas, but for
/// flags that may be repeated, which are.
pub fn words(path: Vec<OsString>, flags: Vec<(String, Option<Vec<OsString>>)>) -> Vec<OsString> {
    let program = command();
    let (leaf, _) = innermost_command(&program, &path);
    let mut words = path;
    for (name, values) in flags {
        let name = name.trim_end_matches('_').replace('_', "-");
        let flag = OsString::from(format!("--{name}"));
        let Some(values) = values else {
            words.push(flag);
            continue;
        };
        let is_this = |argument: &&clap::Arg| argument.get_long() == Some(name.as_str());
        let argument = leaf.get_arguments().find(is_this);
        let repeats = argument.is_some_and(|of| matches!(of.get_action(), ArgAction::Append));
        let values = match repeats {
            true => values,
            false => vec![values.join(",".as_ref())],
        };
        let with = |value: OsString| [flag.as_os_str(), value.as_os_str()].join("=".as_ref());
        words.extend(values.into_iter().map(with));
    }
    words
}

/// The command that the first of `words` name, and how many they are.
fn innermost_command<'c>(program: &'c Command, words: &[OsString]) -> (&'c Command, usize) {
    let (mut leaf, mut depth) = (program, 0);
    while let Some(sub) = words.get(depth).and_then(|name| leaf.find_subcommand(name)) {
        (leaf, depth) = (sub, depth + 1);
    }
    (leaf, depth)
}

/// The command line of `words`, with JSON lines for a format.
fn with_format(mut words: Vec<OsString>) -> Result<Vec<OsString>, Stop> {
    let program = command();
    let (leaf, depth) = innermost_command(&program, &words);
    let line = |words: &[OsString]| [&["sme".into()], words].concat();
    // What is wrong with the flags, the reader of flags says.
    if let Ok(matches) = program.clone().try_get_matches_from(line(&words)) {
        for (id, flag) in [("format", "--format"), ("output", "--output")] {
            if is_given(innermost(&matches), id) {
                let reason = "rows are returned; whoever calls writes them";
                return Err(Stop::flag(flag, reason));
            }
        }
        if !takes(leaf, "format") {
            let reason = "has no rows; run the program for what it does";
            let path = line(&words[..depth]);
            let path: Vec<_> = path.iter().map(|word| word.to_string_lossy()).collect();
            return Err(Stop::flag(&path.join(" "), reason));
        }
    }
    if takes(leaf, "format") {
        words.insert(depth, "--format=json".into());
    }
    Ok(line(&words))
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, inner)) => innermost(inner),
        None => matches,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::Cell;

    fn of(line: &str) -> Done {
        let words = line.split_whitespace().map(OsString::from).collect();
        rows(words, &Arc::default())
    }

    fn stopped(line: &str) -> String {
        let done = of(line);
        assert!(done.rows.is_empty());
        match done.stop {
            Some(Stop::Input(reason)) => reason,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn rows_have_the_columns_that_are_asked_for() {
        let done = of("sweep --nodes 1,4 --cores 2 --episodes 2 --columns nodes,algorithm");
        assert_eq!(done.stop, None);
        let row = |nodes: &str| -> Record {
            let nodes = ("nodes".to_owned(), Cell::Number(nodes.to_owned()));
            vec![nodes, ("algorithm".to_owned(), Cell::text("tree"))]
        };
        assert_eq!(done.rows, [row("1"), row("4")]);
    }

    #[test]
    fn flags_that_may_be_repeated_are() {
        let flag = |name: &str, values: &[&str]| {
            let values = values.iter().map(OsString::from).collect();
            (name.to_owned(), Some(values))
        };
        let flags = vec![
            flag("set", &["a=1,2", "b=3"]),
            flag("fan_in", &["2", "4"]),
            ("no_host".to_owned(), None),
            flag("lambda_", &["-1"]),
        ];
        let words = words(vec!["sweep".into()], flags);
        let expected = "sweep --set=a=1,2 --set=b=3 --fan-in=2,4 --no-host --lambda=-1";
        assert!(words.iter().eq(expected.split(' ')), "{words:?}");
    }

    #[test]
    fn every_command_with_rows_is_found() {
        fn leaves(command: &Command, path: &[OsString], found: &mut Vec<Vec<OsString>>) {
            if !command.has_subcommands() {
                return found.push(path.to_vec());
            }
            for sub in command.get_subcommands() {
                leaves(sub, &[path, &[sub.get_name().into()]].concat(), found);
            }
        }
        let (program, mut found) = (command(), Vec::new());
        leaves(&program, &[], &mut found);
        assert!(found.len() > 30, "{found:?}");
        let without = |path: &Vec<OsString>| {
            let line = with_format(path.clone());
            !line.is_ok_and(|line| line.contains(&"--format=json".into()))
        };
        found.retain(without);
        // A program's output is its own, a picture is no row, and the rows of experiments are in
        // files.
        let without: [&[&str]; 3] = [&["mpi", "run"], &["plot"], &["run"]];
        assert_eq!(found, without);
    }

    #[test]
    fn errors_are_those_of_the_command_line() {
        for (line, begins) in [
            ("barrier --nods=4", "unexpected argument '--nods' found"),
            ("barrier --machine=nosuch", "--machine: unknown machine"),
            ("", "sme: has no rows"),
            ("mpi", "a command is missing"),
            ("barier", "unrecognized subcommand 'barier'"),
            ("barrier --format=csv", "--format: rows are returned"),
            ("latency -o=x.csv", "--output: rows are returned"),
            ("plot rows.csv", "sme plot: has no rows"),
        ] {
            let reason = stopped(line);
            assert!(reason.starts_with(begins), "{line}: {reason}");
        }
    }
}
