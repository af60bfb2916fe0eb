//! The files that a command line names. A command that would write to a file that it reads, or to
//! one file twice, or under a name that promises another format, is refused before it does
//! anything.
//!
//! `FLAGS` says of every flag of every command that takes a file what happens to that file. Called
//! by [`Job::read`](super::Job::read), for all commands.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};

use crate::report::output;
use crate::report::stop::Stop;

/// The use of a flag's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The command reads it.
    Reads,
    /// It is a machine: built in, or a file that is read.
    Machine,
    /// The command writes it.
    Writes,
    /// The command writes files in this directory.
    Fills,
}

/// The flags that take a file, as clap knows them, and the endings that a file has which is
/// written.
const FLAGS: [(&str, Use, &[&str]); 21] = [
    ("experiment", Use::Reads, &[]),
    ("explain_to", Use::Writes, &ROWS),
    ("figures", Use::Fills, &[]),
    ("files", Use::Reads, &[]),
    ("input", Use::Reads, &[]),
    ("link_load", Use::Writes, &["csv"]),
    ("lines", Use::Writes, &ROWS),
    ("machine", Use::Machine, &[]),
    ("machines", Use::Machine, &[]),
    ("out", Use::Fills, &[]),
    ("output", Use::Writes, &["csv", "json", "jsonl", "txt"]),
    ("per_thread", Use::Writes, &["csv"]),
    ("plot", Use::Writes, &["svg"]),
    ("profile", Use::Writes, &ROWS),
    ("report", Use::Writes, &["html"]),
    ("result", Use::Writes, &["npy"]),
    ("stale_list", Use::Writes, &ROWS),
    ("table", Use::Reads, &[]),
    ("timeline", Use::Writes, &["pftrace"]),
    ("vcd", Use::Writes, &["vcd"]),
    // Which reads them itself: a waveform has no default.
    ("waves", Use::Writes, &[]),
];

/// The use of the file of the flag that clap calls `id`, if it takes one.
pub fn use_of(id: &str) -> Option<Use> {
    let known = FLAGS.iter().find(|(flag, ..)| *flag == id);
    known.map(|(_, to, _)| *to)
}

/// Whether `command` takes the argument that clap calls `id`.
pub fn takes(command: &Command, id: &str) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_id() == id)
}

/// Endings of rows that are not for people.
const ROWS: [&str; 3] = ["csv", "json", "jsonl"];

/// The endings of what the command that `words` name writes to the file of `argument`. None are
/// known where the ending says nothing.
fn endings(words: &[&str], argument: &Arg) -> &'static [&'static str] {
    let id = argument.get_id().as_str();
    match (id, words.first()) {
        // The calls of ranks; a trace has those of threads.
        ("timeline", Some(&"mpi")) => &["csv", "pftrace"],
        // Which looks at it itself: the ending decides what is drawn.
        ("output", Some(&"plot")) => &[],
        _ => FLAGS
            .iter()
            .find(|(flag, ..)| *flag == id)
            .map_or(&[], |(_, _, endings)| endings),
    }
}

/// Refuses a file whose name promises a format that it would not have.
fn ending(flag: &str, path: &Path, known: &[&str]) -> Result<(), Stop> {
    let Some(ending) = path.extension().and_then(|ending| ending.to_str()) else {
        return Ok(());
    };
    if known.is_empty() || known.contains(&ending) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(|ending| format!(".{ending}")).collect();
    let reason = match known.split_last() {
        Some((last, [])) => format!("the file's name must end in {last}, or have no ending"),
        Some((last, others)) => {
            let others = others.join(", ");
            format!("the file's name must end in {others} or {last}, or have no ending")
        }
        None => return Ok(()),
    };
    Err(Stop::flag(&format!("{flag} {}", path.display()), reason))
}

/// Refuses a command line, of which `matches` are what `command` made, that would lose a file, or
/// write one under a name that says something else.
pub fn check(command: &Command, matches: &ArgMatches) -> Result<(), Stop> {
    let (mut command, mut matches) = (command, matches);
    let mut words = Vec::new();
    while let Some((name, inner)) = matches.subcommand()
        && let Some(sub) = command.find_subcommand(name)
    {
        (command, matches) = (sub, inner);
        words.push(name);
    }
    let mut read: Vec<PathBuf> = Vec::new();
    let mut written: Vec<(String, PathBuf)> = Vec::new();
    let mut misnamed = Ok(());
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let Some(&(_, to, _)) = FLAGS.iter().find(|(flag, ..)| *flag == id) else {
            continue;
        };
        for value in matches.get_raw(id).into_iter().flatten() {
            match to {
                Use::Reads => read.push(value.into()),
                Use::Machine => read.extend(machines(&value.to_string_lossy())),
                Use::Writes => {
                    let (flag, path) = (name_of(argument), PathBuf::from(value));
                    let is_said = id == "output" && is_given(matches, "format");
                    if misnamed.is_ok() && !is_said {
                        misnamed = ending(&flag, &path, endings(&words, argument));
                    }
                    written.push((flag, path));
                }
                Use::Fills => {}
            }
        }
    }
    // Two files that are one are said to be the rows' first.
    written.sort_by_key(|(flag, _)| flag.starts_with("--"));
    let written: Vec<(&str, Option<&Path>)> = (written.iter())
        .map(|(flag, path)| (flag.as_str(), Some(path.as_path())))
        .collect();
    output::distinct(&written)?;
    output::apart_from_inputs(&read, &written)?;
    misnamed
}

/// Whether the command line has a value for `id`, if the command knows it.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).unwrap_or(false) && matches.get_raw(id).is_some()
}

/// The files that a machine's name, or a list of names, may stand for.
fn machines(names: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let one = [names].into_iter().chain(names.split(','));
    one.filter(|name| name.ends_with(".toml"))
        .map(PathBuf::from)
}

/// The flag as users write it.
fn name_of(argument: &Arg) -> String {
    match (argument.get_short(), argument.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => argument.get_id().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;

    /// Calls `each` for all commands that have no commands of their own.
    fn leaves(command: &Command, path: &str, each: &mut impl FnMut(&str, &Command)) {
        if !command.has_subcommands() {
            return each(path, command);
        }
        for sub in command.get_subcommands() {
            leaves(sub, &format!("{path} {}", sub.get_name()), each);
        }
    }

    /// A new flag with a file is one that this place knows.
    #[test]
    fn every_flag_that_takes_a_file_is_listed() {
        let mut seen = std::collections::BTreeSet::new();
        leaves(&super::super::command(), "sme", &mut |path, command| {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let known = FLAGS.iter().find(|(flag, ..)| *flag == id);
                let values = argument.get_value_names().unwrap_or_default();
                let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
                    || values
                        .iter()
                        .any(|value| value.contains("FILE") || *value == "DIR");
                assert!(
                    known.is_some() || !is_path,
                    "{path}: --{id} takes a file, and FLAGS does not say what becomes of it"
                );
                seen.extend(known.map(|(flag, ..)| *flag));
            }
        });
        for (flag, ..) in FLAGS {
            assert!(seen.contains(flag), "no command has {flag}");
        }
    }

    #[test]
    fn a_list_of_machines_may_name_several_files() {
        let of = |names| machines(names).collect::<Vec<_>>();
        assert_eq!(of("sme-prototype"), Vec::<PathBuf>::new());
        assert_eq!(of("m.toml"), ["m.toml", "m.toml"].map(PathBuf::from));
        assert_eq!(
            of("ideal,a.toml,b.toml"),
            ["ideal,a.toml,b.toml", "a.toml", "b.toml"].map(PathBuf::from)
        );
    }
}
