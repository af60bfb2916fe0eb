//! The points of a run: command lines, one for every combination of its lists.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};
use sme_sim::machine::Machine;

use super::file::{RunEntry, SET, Scalar, Setting, Variants};
use super::inputs::Inputs;
use crate::cli::names;
use crate::cli::paths::{Use, takes, use_of};
use crate::report::Format;
use crate::report::stop::Stop;

/// The machines of an experiment file, and whether a point sets a constant itself.
type Machines<'m> = (&'m Variants, &'m dyn Fn(&str) -> bool);

/// The placeholder of the point's number in the name of a file that each point writes.
const POINT: &str = "{point}";

/// The most points of a run.
const MAX_POINTS: usize = 10_000;

/// The most bytes of the name of a result.
const MAX_NAME: usize = 200;

/// A point: a command line, but for where its rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    words: Vec<String>,
    arguments: Vec<Argument>,
    /// The name of its machine, if that is one of the experiment file.
    pub machine: Option<String>,
}

/// A flag or a positional argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    /// The flag with its dashes; none for a positional argument.
    flag: Option<String>,
    value: Option<Word>,
}

/// The value of a flag, by what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Plain(String),
    /// Machines, a comma between two.
    Machines(String),
    Read(String),
    Written(String),
}

/// The command that `words` name, if it writes rows.
///
/// # Errors
/// There is no such command, or it writes no rows.
pub fn command<'c>(root: &'c Command, words: &str) -> Result<&'c Command, String> {
    let mut found = Some(root);
    for word in words.split_whitespace() {
        found = found.and_then(|command| command.find_subcommand(word));
    }
    match found {
        Some(command) if writes_rows(command) => Ok(command),
        _ => {
            let mut known = Vec::new();
            collect(root, "", &mut known);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(format!("command: {}", names::unknown(words, &known)))
        }
    }
}

fn writes_rows(command: &Command) -> bool {
    takes(command, "output") && !["plot", "run"].contains(&command.get_name())
}

fn collect(command: &Command, words: &str, known: &mut Vec<String>) {
    for sub in command.get_subcommands() {
        let words = format!("{words} {}", sub.get_name());
        if writes_rows(sub) {
            known.push(words.trim().to_owned());
        }
        collect(sub, &words, known);
    }
}

/// The format of rows in `file`.
///
/// # Errors
/// The ending is no format's.
pub fn format(file: &str) -> Result<Format, String> {
    let format = Format::of_file(Path::new(file));
    format.ok_or_else(|| format!("rows = {file:?}: the name must end in .csv, .json or .jsonl"))
}

/// Refuses a name of a result that is no name of a file, or that leads out of the directory.
///
/// # Errors
/// The reason why it is refused.
pub fn file_name(name: &str) -> Result<(), String> {
    let is_name = Path::new(name).file_name().is_some_and(|own| own == name);
    let is_shown = !name.starts_with(['.', '-']) && !name.chars().any(char::is_control);
    match is_name && is_shown && name.len() <= MAX_NAME && !name.contains('\\') {
        true => Ok(()),
        false => Err(format!(
            "{name:?}: write the name of a file, without a directory, and without a dot or dash in \
             front"
        )),
    }
}

/// The points of `run`, whose command is `command`, in their order: an entry of `points` after
/// the other, and of lists the last varies fastest.
///
/// # Errors
/// A flag that has no place in an experiment file, or too many points.
pub fn points(
    run: &RunEntry,
    command: &Command,
    machines: &Variants,
) -> Result<Vec<Point>, String> {
    let words: Vec<String> = run.command.split_whitespace().map(String::from).collect();
    let mut points = Vec::new();
    for settings in run.settings()? {
        for setting in &settings {
            refuse(command, setting)?;
        }
        let count = settings.iter().map(|setting| setting.values.len());
        let count = count.fold(1usize, usize::saturating_mul);
        if points.len().saturating_add(count) > MAX_POINTS {
            return Err(format!("more than {MAX_POINTS} points"));
        }
        for at in 0..count {
            let chosen = combination(&settings, at);
            let mut arguments = Vec::new();
            let is_set = |constant: &str| {
                let mut flags = chosen.iter().map(|(flag, _)| *flag);
                flags.any(|flag| constant_of(flag) == Some(constant))
            };
            for (flag, value) in &chosen {
                let machines: Machines<'_> = (machines, &is_set);
                add(&mut arguments, command, flag, value, machines)?;
            }
            // A positional argument may be taken for the value of a flag before it.
            arguments.sort_by_key(|argument: &Argument| argument.flag.is_none());
            points.push(Point {
                words: words.clone(),
                arguments,
                machine: machine_of_file(command, &chosen, machines),
            });
        }
    }
    let is_single = |point: &Point| {
        let mut words = point
            .arguments
            .iter()
            .filter_map(|argument| argument.value.as_ref());
        words.all(|word| !matches!(word, Word::Written(name) if !name.contains(POINT)))
    };
    if points.len() > 1 && !points.iter().all(is_single) {
        return Err(format!(
            "every point would write the same file; write {POINT} into its name"
        ));
    }
    Ok(points)
}

/// The machine of the experiment file that these settings name, if it is one.
fn machine_of_file(
    command: &Command,
    settings: &[(&str, &Scalar)],
    machines: &Variants,
) -> Option<String> {
    let mut names = settings.iter().filter_map(|(flag, value)| {
        let known = find(command, flag)?;
        match (use_of(known.get_id().as_str()), value) {
            (Some(Use::Machine), Scalar::Text(name)) => Some(name.trim()),
            _ => None,
        }
    });
    let name = names.next().filter(|name| machines.contains_key(*name))?;
    names.next().is_none().then(|| name.to_owned())
}

/// Checks that `name`, which is no machine of the experiment file, may be another one. Where the
/// file has no machines, the command line says what is wrong with the name.
fn check_machine(name: &str, machines: &Variants) -> Result<(), String> {
    let of_file = machines.keys().map(String::as_str);
    let built_in = Machine::builtins().iter().map(|machine| machine.name);
    let known: Vec<&str> = of_file.chain(built_in).collect();
    match machines.is_empty() || known.contains(&name) || name.ends_with(".toml") {
        true => Ok(()),
        false => Err(names::unknown(name, &known)),
    }
}

/// The arguments of `sme plot` for these settings.
///
/// # Errors
/// A flag that a picture in an experiment file cannot have.
pub fn plot_arguments(command: &Command, settings: &[Setting]) -> Result<Vec<String>, String> {
    let mut arguments = Vec::new();
    for setting in settings {
        refuse(command, setting)?;
        if setting.flag == "files" {
            return Err("files: write rows = [\"FILE.csv\"]".into());
        }
        let known = find(command, &setting.flag);
        let repeats = known.is_some_and(|known| matches!(known.get_action(), ArgAction::Append));
        let texts = setting.values.iter().map(|value| match value {
            Scalar::Text(text) => text.clone(),
            Scalar::Given(given) => given.to_string(),
        });
        let texts: Vec<String> = texts.collect();
        let values = match &setting.values[..] {
            [value @ Scalar::Given(_)] => vec![value.clone()],
            _ if repeats => texts.into_iter().map(Scalar::Text).collect(),
            _ => vec![Scalar::Text(texts.join(","))],
        };
        for value in &values {
            let no_machines: Machines<'_> = (&Variants::new(), &|_| false);
            add(&mut arguments, command, &setting.flag, value, no_machines)?;
        }
    }
    let plain = arguments.iter().flat_map(|argument| argument.plain());
    Ok(plain.collect())
}

impl Point {
    /// The command line as the experiment file has it, without `sme` and without where its rows
    /// go; files as they are named there.
    pub fn written(&self) -> Vec<String> {
        let arguments = self.arguments.iter().flat_map(Argument::plain);
        self.words.iter().cloned().chain(arguments).collect()
    }

    /// The same with the paths of the files that it reads, and with the results in `directory`,
    /// under names with `number` for the point.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn resolved(
        &self,
        inputs: &mut Inputs,
        directory: &Path,
        number: usize,
    ) -> Result<Vec<String>, Stop> {
        let mut line = self.words.clone();
        for argument in &self.arguments {
            let mut argument = argument.clone();
            if let Some(word) = &mut argument.value {
                *word = Word::Plain(resolved(word, inputs, directory, number)?);
            }
            line.extend(argument.plain());
        }
        Ok(line)
    }

    /// The machines of its command line: the name of each in the experiment file, and the name or
    /// path by which it is loaded.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn machines(
        &self,
        command: &Command,
        inputs: &mut Inputs,
    ) -> Result<Vec<(String, String)>, Stop> {
        let said = self
            .arguments
            .iter()
            .filter_map(|argument| match &argument.value {
                Some(Word::Machines(names)) => Some(names.clone()),
                _ => None,
            });
        let said: Vec<String> = said.collect();
        let of_machines =
            |argument: &&clap::Arg| use_of(argument.get_id().as_str()) == Some(Use::Machine);
        let defaults = command.get_arguments().filter(of_machines);
        let defaults = defaults.flat_map(|argument| argument.get_default_values());
        let defaults: Vec<String> = defaults
            .map(|names| names.to_string_lossy().into_owned())
            .collect();
        let lists = if said.is_empty() { defaults } else { said };
        let names = lists
            .iter()
            .flat_map(|names| names.split(',').map(str::trim));
        names
            .map(|name| Ok((name.to_owned(), loaded(name, inputs)?)))
            .collect()
    }

    /// The seed of what it draws, if it draws anything.
    pub fn seed(&self, command: &Command) -> Option<String> {
        let is_seed = |argument: &&Argument| argument.flag.as_deref() == Some("--seed");
        let said = self.arguments.iter().find(is_seed);
        let default = || {
            let argument = find(command, "seed")?;
            let value = argument.get_default_values().first()?;
            Some(value.to_string_lossy().into_owned())
        };
        match said.and_then(|argument| argument.value.as_ref()) {
            Some(Word::Plain(seed)) => Some(seed.clone()),
            _ => default(),
        }
    }

    /// The files that it writes beside its rows.
    pub fn files(&self, number: usize) -> impl Iterator<Item = String> + '_ {
        let words = self
            .arguments
            .iter()
            .filter_map(|argument| argument.value.as_ref());
        words.filter_map(move |word| match word {
            Word::Written(name) => Some(name.replace(POINT, &number.to_string())),
            _ => None,
        })
    }

    /// The result in that directory that it writes by this flag.
    pub fn result_of(&self, flag: &str, directory: &Path, number: usize) -> Option<PathBuf> {
        let is_it = |argument: &&Argument| argument.flag.as_deref() == Some(flag);
        match &self.arguments.iter().find(is_it)?.value {
            Some(Word::Written(name)) => Some(result(name, directory, number)),
            _ => None,
        }
    }
}

impl Argument {
    /// Its words on a command line.
    fn plain(&self) -> Vec<String> {
        let value = self.value.as_ref().map(|word| match word {
            Word::Plain(text) | Word::Machines(text) | Word::Read(text) | Word::Written(text) => {
                text.clone()
            }
        });
        match (self.flag.clone(), value) {
            // What begins like a flag, or is nothing, is taken for the value in this form only.
            (Some(flag), Some(value)) if value.starts_with('-') || value.is_empty() => {
                vec![format!("{flag}={value}")]
            }
            (flag, value) => flag.into_iter().chain(value).collect(),
        }
    }
}

/// The name or path by which the machine is loaded that an experiment file calls `name`.
pub fn loaded(name: &str, inputs: &mut Inputs) -> Result<String, Stop> {
    match name.ends_with(".toml") {
        true => Ok(inputs.path(name)?.to_string_lossy().into_owned()),
        false => Ok(name.to_owned()),
    }
}

/// The path, or the name, that `word` stands for.
fn resolved(
    word: &Word,
    inputs: &mut Inputs,
    directory: &Path,
    number: usize,
) -> Result<String, Stop> {
    let text_of = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(match word {
        Word::Plain(text) => text.clone(),
        Word::Read(name) => text_of(inputs.path(name)?),
        Word::Written(name) => text_of(result(name, directory, number)),
        Word::Machines(names) => {
            let names = names.split(',').map(str::trim);
            let paths: Vec<String> = names
                .map(|name| loaded(name, inputs))
                .collect::<Result<_, _>>()?;
            paths.join(",")
        }
    })
}

/// The file of that point that a name stands for.
fn result(name: &str, directory: &Path, number: usize) -> PathBuf {
    directory.join(name.replace(POINT, &number.to_string()))
}

/// The values of combination `at`, the last varying fastest.
fn combination(settings: &[Setting], mut at: usize) -> Vec<(&str, &Scalar)> {
    let mut chosen: Vec<(&str, &Scalar)> = Vec::with_capacity(settings.len());
    for Setting { flag, values } in settings.iter().rev() {
        chosen.push((flag, &values[at % values.len()]));
        at /= values.len();
    }
    chosen.reverse();
    chosen
}

/// Refuses a flag that an experiment file says in another way, or cannot have.
fn refuse(command: &Command, setting: &Setting) -> Result<(), String> {
    let flag = &setting.flag;
    let id = flag.replace('-', "_");
    let why = match id.as_str() {
        "output" | "format" if command.get_name() == "plot" => {
            "the file follows from picture = \"FILE.svg\""
        }
        "output" | "format" => "the format and the file follow from rows = \"FILE.csv\"",
        "no_host" => "what depends on the host is in the manifest, never in rows",
        "resume" => "every run begins anew",
        "help" | "version" => "it runs nothing",
        id if use_of(id) == Some(Use::Fills) => "it writes a directory of its own",
        _ => return Ok(()),
    };
    Err(format!("{flag}: is not allowed here: {why}"))
}

/// The argument of `command` that an experiment file calls `flag`.
fn find<'c>(command: &'c Command, flag: &str) -> Option<&'c clap::Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|argument| name_of(argument) == Some(flag))
}

/// The name by which an experiment file calls an argument: a flag's, or that of a positional one.
fn name_of(argument: &clap::Arg) -> Option<&str> {
    match argument.is_positional() {
        true => Some(argument.get_id().as_str()),
        false => argument.get_long(),
    }
}

/// The constant that a setting overrides, if it is one of [`SET`].
fn constant_of(flag: &str) -> Option<&str> {
    flag.strip_prefix(SET)?.strip_prefix(' ')
}

/// Adds the argument, or the arguments, of `flag` with `value`. With the machines of the file comes
/// whether the point itself sets a constant.
///
/// # Errors
/// A flag that the command does not have, or a value that it cannot have.
fn add(
    arguments: &mut Vec<Argument>,
    command: &Command,
    flag: &str,
    value: &Scalar,
    (machines, is_set): Machines<'_>,
) -> Result<(), String> {
    let set = |(key, value): (&str, &str)| Argument {
        flag: Some(format!("--{SET}")),
        value: Some(Word::Plain(format!("{key}={value}"))),
    };
    if let Some(constant) = constant_of(flag) {
        let Scalar::Text(value) = value else {
            return Err(format!("set: {constant} must have a value"));
        };
        arguments.push(set((constant, value)));
        return Ok(());
    }
    let Some(known) = find(command, flag) else {
        let names: Vec<&str> = command.get_arguments().filter_map(name_of).collect();
        return Err(format!("flags: {}", names::unknown(flag, &names)));
    };
    let takes_value = known.get_action().takes_values();
    let name = (!known.is_positional()).then(|| format!("--{flag}"));
    let text = match (value, takes_value) {
        (Scalar::Given(false), false) => return Ok(()),
        (Scalar::Given(true), false) => {
            arguments.push(Argument {
                flag: name,
                value: None,
            });
            return Ok(());
        }
        (Scalar::Text(_), false) => {
            return Err(format!("{flag}: takes no value; write true or false"));
        }
        (Scalar::Given(_), true) => {
            return Err(format!("{flag}: takes a value, not true or false"));
        }
        (Scalar::Text(text), true) => text.clone(),
    };
    let to = use_of(known.get_id().as_str());
    let word = match to {
        Some(Use::Machine) => {
            let names: Vec<&str> = text.split(',').map(str::trim).collect();
            match (machines.get(text.trim()), &names[..]) {
                (Some(variant), _) => {
                    let variant = variant.get_ref();
                    arguments.push(Argument {
                        flag: name,
                        value: Some(Word::Machines(variant.base.clone())),
                    });
                    let overrides = variant.overrides()?;
                    // The point's own value takes the place of the machine's.
                    let overrides = overrides.iter().filter(|(key, _)| !is_set(key));
                    arguments.extend(overrides.map(|(key, value)| set((key, value))));
                    return Ok(());
                }
                (None, [name]) => {
                    check_machine(name, machines).map_err(|reason| format!("{flag}: {reason}"))?;
                }
                (None, names) if names.iter().any(|name| machines.contains_key(*name)) => {
                    return Err(format!(
                        "{flag} = {text:?}: write a list, as machines of this file are in it"
                    ));
                }
                (None, _) => {}
            }
            Word::Machines(text)
        }
        Some(Use::Reads) => Word::Read(text),
        Some(Use::Writes) => {
            file_name(&text).map_err(|reason| format!("{flag} = {reason}"))?;
            Word::Written(text)
        }
        Some(Use::Fills) | None => Word::Plain(text),
    };
    arguments.push(Argument {
        flag: name,
        value: Some(word),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::run::file::ExperimentFile;

    /// The command lines of the first run of `text`.
    fn lines(text: &str) -> Result<Vec<String>, String> {
        let file = ExperimentFile::parse("f", text).unwrap();
        let run = file.runs[0].get_ref();
        let root = crate::cli::command();
        let points = points(run, command(&root, &run.command)?, &file.machines)?;
        Ok(points
            .iter()
            .map(|point| point.written().join(" "))
            .collect())
    }

    #[test]
    fn lists_are_crossed_and_the_last_varies_fastest() {
        let text = "[machines.slow]\nbase = 'ideal'\nset = { 'link.flight' = '9ns' }\n\
                    [[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n\
                    points = [{ cores = 1 }, { cores = [2, 4] }]\n\
                    flags = { machine = ['ideal', 'slow'], set = { a.b = '-1' }, explain = true }";
        assert_eq!(
            lines(text).unwrap(),
            [
                "barrier --machine ideal --set a.b=-1 --explain --cores 1",
                "barrier --machine ideal --set link.flight=9ns --set a.b=-1 --explain --cores 1",
                "barrier --machine ideal --set a.b=-1 --explain --cores 2",
                "barrier --machine ideal --set a.b=-1 --explain --cores 4",
                "barrier --machine ideal --set link.flight=9ns --set a.b=-1 --explain --cores 2",
                "barrier --machine ideal --set link.flight=9ns --set a.b=-1 --explain --cores 4",
            ]
        );
    }

    #[test]
    fn flags_without_a_place_are_refused() {
        for (command, flags, complaint) in [
            ("plot", "", "command: "),
            ("barriers", "", "command: "),
            ("barrier", "output = 'x.csv'", "output: is not allowed here"),
            ("barrier", "no-host = true", "no-host: is not allowed here"),
            ("rtl verilog", "out = 'v'", "out: is not allowed here"),
            ("barrier", "explain = 'yes'", "explain: takes no value"),
            ("barrier", "nodes = true", "nodes: takes a value"),
            ("barrier", "nodes = []", "nodes: the list is empty"),
            ("barrier", "nodes = 1979-05-27", "nodes: write text"),
            ("barrier", "set = 'a=b'", "set: write {"),
            ("barrier", "timeline = '../a.pftrace'", "timeline = \"../a"),
            (
                "barrier",
                "nodes = [1, 2], timeline = 'a.pftrace'",
                "every point would write the same file",
            ),
        ] {
            let text =
                format!("[[runs]]\nrows = 'a.csv'\ncommand = '{command}'\nflags = {{ {flags} }}");
            let reason = lines(&text).unwrap_err();
            assert!(reason.starts_with(complaint), "{command} {flags}: {reason}");
        }
        let many: Vec<String> = (0..=MAX_POINTS).map(|n| n.to_string()).collect();
        let text = format!(
            "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\nflags = {{ seed = [{}] }}",
            many.join(",")
        );
        assert!(lines(&text).unwrap_err().starts_with("more than"));
    }

    #[test]
    fn lists_of_pictures_are_lists_or_repetitions() {
        let root = crate::cli::command();
        let plot = root.find_subcommand("plot").unwrap();
        let text = "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n[[plots]]\npicture = 'a.svg'\n\
                    rows = ['a.csv']\n\
                    flags = { y = ['a', 'b'], where = ['c=1', 'd=2'], bars = true, series = '' }";
        let file = ExperimentFile::parse("f", text).unwrap();
        let settings = file.plots[0].get_ref().settings().unwrap();
        let line = plot_arguments(plot, &settings).unwrap().join(" ");
        assert_eq!(line, "--y a,b --where c=1 --where d=2 --bars --series=");
    }
}
