//! A machine file as TOML: its sections and entries with their lines, before anything is known
//! of units or families.
//!
//! [`super::Machine`] parses a text to a [`Document`] and lets its family's declarations read
//! that ([`super::reader::Reader`]). Here only the form is checked: `name`, `family`, and that
//! every other key is a section of constants, each with value and provenance.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::words::{did_you_mean, listed, nearest, quoted};

/// A mistake in a machine file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) place: DocumentPosition,
    pub(super) message: String,
}

/// The position of a value in a machine file, or its override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DocumentPosition {
    /// A line of the file, counted from 1.
    Line(usize),
    /// Nowhere: it is missing from the file.
    File,
    /// An override of a constant: `section.key` and the text it was set to.
    Override { key: String, text: String },
}

/// The mistakes in a machine file. Only the first in the file is kept and reported: there may be
/// one in each of many thousand lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Problems(Option<Problem>);

impl Problems {
    /// Takes note of what is wrong at `place`; `message` is asked for only if nothing before it is.
    pub(super) fn report(&mut self, place: DocumentPosition, message: impl FnOnce() -> String) {
        let line = |place: &DocumentPosition| match place {
            DocumentPosition::Line(line) => *line,
            DocumentPosition::File | DocumentPosition::Override { .. } => usize::MAX,
        };
        let known = self.0.as_ref().map(|problem| line(&problem.place));
        if known.is_none_or(|known| line(&place) < known) {
            let message = message();
            self.0 = Some(Problem { place, message });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn first(self) -> Option<Problem> {
        self.0
    }
}

/// A machine file's content.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) family: String,
    /// The position of `family`.
    pub(super) family_place: DocumentPosition,
    pub(super) sections: Vec<Section>,
    pub(super) entries: Vec<Entry>,
    /// The mistakes found so far, apart from missing constants.
    pub(super) problems: Problems,
}

/// A section's header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: DocumentPosition,
}

/// One constant, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) section: String,
    pub(super) key: String,
    /// The position of the value.
    pub(super) place: DocumentPosition,
    pub(super) value: Given,
    pub(super) source: Source,
    pub(super) reason: String,
    pub(super) fitted_to: Vec<String>,
}

/// A constant's value, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    /// A text in quotes.
    Text(String),
    /// A bare number, whole or not.
    Number(String),
    /// A value of a type that no constant has: the type, with its article.
    Other(&'static str),
    /// An override's text, which has no quotes.
    Override(String),
    /// Missing, and already reported.
    Nothing,
}

/// The source of a constant's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// `published`: the paper states it as a property of the machine or of the experiment.
    Published,
    /// `datasheet`: the processor's own data.
    Datasheet,
    /// `derived`: calculated from published or datasheet values.
    Derived,
    /// `assumed`: nothing is published; a plausible value was chosen.
    Assumed,
    /// `fitted`: chosen so that the simulation meets published figures, which are named.
    Fitted,
    /// An override (`--set`), not a value of the file.
    Set,
}

impl Source {
    const IN_FILES: [Source; 5] = [
        Source::Published,
        Source::Datasheet,
        Source::Derived,
        Source::Assumed,
        Source::Fitted,
    ];

    /// Returns its name in a machine file.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Published => "published",
            Source::Datasheet => "datasheet",
            Source::Derived => "derived",
            Source::Assumed => "assumed",
            Source::Fitted => "fitted",
            Source::Set => "set",
        }
    }
}

impl Document {
    /// Parses `text`. Mistakes in single entries are collected in `problems`.
    ///
    /// # Errors
    /// The text is not TOML.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let start = |error: &&toml::de::Error| error.span().map_or(0, |span| span.start);
        if let Some(first) = errors.iter().min_by_key(start) {
            return Err(syntax_problem(text, first));
        }
        let mut parser = Parser {
            lines: Lines::of(text.as_bytes()),
            problems: Problems::default(),
        };
        let mut document = Document {
            name: String::new(),
            description: String::new(),
            family: String::new(),
            family_place: DocumentPosition::File,
            sections: Vec::new(),
            entries: Vec::new(),
            problems: Problems::default(),
        };
        let mut missing = vec!["name", "family"];
        for (key, value) in in_file_order(table.get_ref()) {
            let name: &str = key.get_ref();
            let place = parser.place(key);
            missing.retain(|required| *required != name);
            match (name, value.get_ref()) {
                ("name", _) => document.name = parser.machine_name(name, value),
                ("description", _) => document.description = parser.line(name, value),
                ("family", _) => {
                    document.family = parser.line(name, value);
                    document.family_place = place;
                }
                (_, DeValue::Table(constants)) => {
                    parser.section(name, constants, &mut document.entries);
                    document.sections.push(Section {
                        name: name.to_owned(),
                        place,
                    });
                }
                (_, _) => parser.report(place, || {
                    let known = ["name", "description", "family"];
                    let hint = did_you_mean(name, known.into_iter());
                    format!("unknown key {}{hint}", quoted(name))
                }),
            }
        }
        for required in missing {
            parser.report(DocumentPosition::File, || {
                format!("{} is missing", quoted(required))
            });
        }
        document.problems = parser.problems;
        Ok(document)
    }
}

struct Parser {
    lines: Lines,
    problems: Problems,
}

impl Parser {
    fn report(&mut self, place: DocumentPosition, message: impl FnOnce() -> String) {
        self.problems.report(place, message);
    }

    fn place<T>(&self, item: &Spanned<T>) -> DocumentPosition {
        DocumentPosition::Line(self.lines.of_byte(item.span().start))
    }

    fn section(&mut self, section: &str, constants: &DeTable<'_>, entries: &mut Vec<Entry>) {
        for (key, value) in in_file_order(constants) {
            let name = format!("{}.{}", plain(section), plain(key.get_ref()));
            let entry = match value.get_ref() {
                DeValue::Table(fields) => self.entry(&name, self.place(key), fields),
                bare => {
                    self.report(self.place(value), || {
                        format!(
                            "{name}: give the value with where it comes from: \
                             {{ value = {}, source = \"assumed\", where = \"why this value\" }}",
                            written(bare)
                        )
                    });
                    Entry::nothing(self.place(value))
                }
            };
            entries.push(Entry {
                section: section.to_owned(),
                key: key.get_ref().to_string(),
                ..entry
            });
        }
    }

    /// The fields of the constant called `name`, whose key stands at `place`.
    fn entry(&mut self, name: &str, place: DocumentPosition, fields: &DeTable<'_>) -> Entry {
        let mut entry = Entry::nothing(place.clone());
        let mut missing = vec!["value", "source", "where"];
        let mut source = None;
        let mut fitted_place = None;
        for (key, value) in in_file_order(fields) {
            let field: &str = key.get_ref();
            missing.retain(|required| *required != field);
            match field {
                "value" => {
                    entry.place = self.place(value);
                    entry.value = given(value.get_ref());
                }
                "source" => source = self.source(name, value),
                "where" => entry.reason = self.line(&format!("{name}: where"), value),
                "fitted_to" => {
                    fitted_place = Some(self.place(value));
                    entry.fitted_to = self.figures(name, value);
                }
                unknown => self.report(self.place(key), || {
                    let known = ["value", "source", "where", "fitted_to"];
                    let hint = did_you_mean(unknown, known.into_iter());
                    format!("{name}: unknown field {}{hint}", quoted(unknown))
                }),
            }
        }
        if !missing.is_empty() {
            self.report(place.clone(), || {
                let quoted: Vec<String> = missing.iter().map(|field| quoted(field)).collect();
                let fields: Vec<&str> = quoted.iter().map(String::as_str).collect();
                let verb = if missing.len() == 1 { "is" } else { "are" };
                format!("{name}: {} {verb} missing", listed(&fields, "and"))
            });
        }
        match (source, fitted_place) {
            (Some(Source::Fitted), None) => self.report(place, || {
                format!(
                    "{name}: a fitted value names the published figures it is fitted to: \
                     fitted_to = [\"sme.fig3.local.16_threads\"]"
                )
            }),
            (Some(other), Some(place)) if other != Source::Fitted => self.report(place, || {
                format!("{name}: fitted_to belongs to source = \"fitted\" only")
            }),
            _ => {}
        }
        entry.source = source.unwrap_or(entry.source);
        entry
    }

    fn source(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Source> {
        let text = value.get_ref().as_str();
        let found = text.and_then(|text| {
            Source::IN_FILES
                .into_iter()
                .find(|source| source.name() == text)
        });
        if found.is_none() {
            self.report(self.place(value), || {
                let known = Source::IN_FILES.map(Source::name);
                let hint = match text.and_then(|text| nearest(text, known.into_iter())) {
                    Some(nearest) => format!("did you mean {}?", quoted(nearest)),
                    None => format!("it is one of {}", listed(&known, "and")),
                };
                let written = written(value.get_ref());
                format!("{name}: unknown source {written}; {hint}")
            });
        }
        found
    }

    /// A list of the ids of published figures.
    fn figures(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let ids: Option<Vec<String>> = value.get_ref().as_array().and_then(|list| {
            let ids = list.iter().map(|id| {
                id.get_ref()
                    .as_str()
                    .filter(|id| is_figure(id))
                    .map(str::to_owned)
            });
            ids.collect()
        });
        match ids {
            Some(ids) if !ids.is_empty() => ids,
            _ => {
                self.report(self.place(value), || {
                    format!(
                        "{name}: fitted_to is a list of ids of published figures: \
                         [\"sme.fig3.local.16_threads\"]"
                    )
                });
                Vec::new()
            }
        }
    }

    /// A text of one line, not empty.
    fn line(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() && !text.contains(char::is_control) => {
                text.to_owned()
            }
            _ => {
                self.report(self.place(value), || {
                    format!("{what} must be a text of one line in quotes")
                });
                String::new()
            }
        }
    }

    fn machine_name(&mut self, what: &str, value: &Spanned<DeValue<'_>>) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match value.get_ref().as_str() {
            Some(text) if (1..=60).contains(&text.len()) && text.chars().all(allowed) => {
                text.to_owned()
            }
            _ => {
                self.report(self.place(value), || {
                    format!(
                        "{what} must be a text of up to 60 letters, digits, \"-\", \"_\" and \".\", \
                         not {}",
                        written(value.get_ref())
                    )
                });
                String::new()
            }
        }
    }
}

impl Entry {
    /// An entry of which nothing is known yet.
    pub(super) fn nothing(place: DocumentPosition) -> Self {
        Entry {
            section: String::new(),
            key: String::new(),
            place,
            value: Given::Nothing,
            source: Source::Assumed,
            reason: String::new(),
            fitted_to: Vec::new(),
        }
    }
}

type Item<'t, 's> = (&'t Spanned<DeString<'s>>, &'t Spanned<DeValue<'s>>);

/// Returns the entries of `table` in the order of the file; the table itself has the order of the
/// keys.
fn in_file_order<'t, 's>(table: &'t DeTable<'s>) -> Vec<Item<'t, 's>> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(key, _)| key.span().start);
    items
}

fn given(value: &DeValue<'_>) -> Given {
    match value {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let decimal = i128::from_str_radix(integer.as_str(), integer.radix());
            Given::Number(
                decimal.map_or_else(|_| integer.to_string(), |decimal| decimal.to_string()),
            )
        }
        DeValue::Float(float) => Given::Number(float.to_string()),
        DeValue::Boolean(_) => Given::Other("true or false"),
        DeValue::Datetime(_) => Given::Other("a date"),
        DeValue::Array(_) => Given::Other("a list"),
        DeValue::Table(_) => Given::Other("a table"),
    }
}

/// `value` as one would write it, for a message.
fn written(value: &DeValue<'_>) -> String {
    match given(value) {
        Given::Text(text) | Given::Override(text) => quoted(&text),
        Given::Number(text) => text,
        Given::Other(kind) => kind.to_owned(),
        Given::Nothing => String::new(),
    }
}

/// Dotted lower-case words, of which the first is the paper: `sme.fig3.local.16_threads`.
fn is_figure(id: &str) -> bool {
    let word = |word: &str| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !word.is_empty() && word.bytes().all(allowed)
    };
    id.contains('.') && id.split('.').all(word)
}

/// A key as it appears in `section.key`: as it stands if it needs no quotes.
pub(super) fn plain(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.len() <= 40 && key.chars().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let near = text
        .get(span.clone())
        .map(str::trim)
        .filter(|near| !near.is_empty());
    let near = near.map_or_else(String::new, |near| format!(" at {}", quoted(near)));
    let message = error
        .message()
        .lines()
        .next()
        .unwrap_or("unreadable")
        .to_owned();
    Problem {
        place: DocumentPosition::Line(Lines::of(text.as_bytes()).of_byte(span.start)),
        message: format!("not TOML: {message}{near}"),
    }
}

/// The beginnings of a text's lines.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &[u8]) -> Self {
        let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self(
            [0].into_iter()
                .chain(breaks.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    /// The line, from 1, that the byte at `offset` stands on.
    pub(super) fn of_byte(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }
}
