//! The text of `-h`: one line an option, on one screen. `--help` has all.
//!
//! The line is the option's full text where that fits, or its first clause: texts begin with one
//! that says enough. Called where command lines are read ([`super::super::command`]).

use std::collections::HashMap;

use clap::{Arg, Command};

/// Columns of a line of help.
const COLUMNS: usize = 100;

/// Options that few runs need: in `--help` only.
const RARE: [&str; 8] = [
    "form",
    "local_fan_in",
    "noise_distribution",
    "noise_duration_distribution",
    "skew_distribution",
    "waves_from",
    "waves_nodes",
    "waves_to",
];

/// More of them, of commands that have many options.
const RARE_IN: [(&str, &[&str]); 1] = [(
    "extrapolate",
    &[
        "large_episodes",
        "layout",
        "pin",
        "placement",
        "skew",
        "engine",
    ],
)];

/// `command`, and all commands below it, with a line for each option in `-h`.
pub fn shortened(command: Command) -> Command {
    let name = command.get_name().to_owned();
    // `clap` aligns the texts under each heading.
    let mut widest: HashMap<Option<String>, usize> = HashMap::new();
    for argument in command
        .get_arguments()
        .filter(|argument| !is_rare(&name, argument))
    {
        let heading = argument.get_help_heading().map(str::to_owned);
        let widest = widest.entry(heading).or_default();
        *widest = (*widest).max(name_columns(argument));
    }
    let command = command.mut_args(|argument| {
        let heading = argument.get_help_heading().map(str::to_owned);
        let taken = widest.get(&heading).copied().unwrap_or_default() + "      ".len() + "  ".len();
        let rare = is_rare(&name, &argument);
        line(argument, COLUMNS.saturating_sub(taken)).hide_short_help(rare)
    });
    command.mut_subcommands(shortened)
}

/// Columns of `--name <VALUE>`.
fn name_columns(argument: &Arg) -> usize {
    let name = argument
        .get_long()
        .map_or(0, |long| "--".len() + long.len());
    let values = argument.get_value_names().unwrap_or_default().iter();
    name + values.map(|value| " <>".len() + value.len()).sum::<usize>()
}

fn is_rare(command: &str, argument: &Arg) -> bool {
    let of_command = RARE_IN.iter().find(|(name, _)| *name == command);
    let of_command = of_command.map_or(&[][..], |(_, ids)| *ids);
    let id = argument.get_id().as_str();
    RARE.contains(&id) || of_command.contains(&id)
}

/// `argument`, which says in `-h` what fits in `columns`, and all in `--help`.
fn line(argument: Arg, columns: usize) -> Arg {
    let Some(help) = argument.get_help().map(ToString::to_string) else {
        return argument;
    };
    let full = argument.get_long_help().map(ToString::to_string);
    let full = full.unwrap_or_else(|| help.clone());
    let room = columns.saturating_sub(appended(&argument));
    argument.help(beginning(&help, room)).long_help(full)
}

/// Columns of the default and of the possible values, which `clap` adds.
fn appended(argument: &Arg) -> usize {
    if !argument.get_action().takes_values() {
        return 0;
    }
    let words = |words: Vec<String>, name: &str| match words.is_empty() {
        true => 0,
        false => format!(" [{name}: {}]", words.join(", ")).chars().count(),
    };
    let default = argument.get_default_values().iter();
    let default = default.map(|value| value.to_string_lossy().into_owned());
    let possible = argument.get_possible_values();
    let possible = possible.iter().map(|value| value.get_name().to_owned());
    words(default.collect(), "default") + words(possible.collect(), "possible values")
}

/// As much of `help` as `room` columns take: the whole, its text without the default, or its first
/// clause, with the default where that fits.
fn beginning(help: &str, room: usize) -> String {
    let (text, default) = match help.split_once(" [default: ") {
        Some((text, default)) => (text, format!(" [default: {default}")),
        None => (help, String::new()),
    };
    let marks = [": ", "; ", " ("];
    let end = marks.iter().filter_map(|mark| text.find(mark)).min();
    let clause = &text[..end.unwrap_or(text.len())];
    let candidates = [
        help.to_owned(),
        text.to_owned(),
        format!("{clause}{default}"),
    ];
    let found = candidates
        .into_iter()
        .find(|candidate| candidate.chars().count() <= room);
    found.unwrap_or_else(|| clause.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_a_clause_does() {
        let help = "Nodes: the first (or more; all) of it [default: all of them]";
        for (room, line) in [
            (60, help),
            (59, "Nodes: the first (or more; all) of it"),
            (37, "Nodes: the first (or more; all) of it"),
            (36, "Nodes [default: all of them]"),
            (27, "Nodes"),
            (3, "Nodes"),
        ] {
            assert_eq!(beginning(help, room), line, "{room}");
        }
    }
}
