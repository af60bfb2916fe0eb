//! Declares and reads a family's constants: one expression per constant says its key, its
//! limits, its meaning and where its value goes.
//!
//! A family ([`super::cluster_constants`] is one) builds its typed description from calls such
//! as `section.time("hop", 0..=MS, "…")`. Read over a file's [`Document`], they yield values and
//! collect problems; read over an empty one, they yield the list of what is declared. So the
//! list, the parsing, the spelling advice and `--set` cannot disagree.

use std::ops::RangeInclusive;

use super::document::{Document, DocumentPosition, Entry, Given, Problem, Problems, Source, plain};
use super::quantity::{Delay, Dimension, Limits};
use super::words::{did_you_mean, listed, nearest, quoted};
use crate::parts::line_size::LineSize;
use crate::time::{Clock, Time};

/// One constant of a machine, in the order in which its family declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The section, such as `engine`.
    pub section: &'static str,
    /// The key in its section, such as `clock`.
    pub key: &'static str,
    /// The meaning: the declaration's line.
    pub meaning: &'static str,
    /// The values that it may have.
    pub domain: ValueDomain,
    /// The value as the file (or the override) writes it, such as `156 MHz`.
    pub value: String,
    /// The value in base units of its dimension; `None` where the value is a word.
    pub amount: Option<u64>,
    /// The source of the value.
    pub source: Source,
    /// The file's `where`: why this value.
    pub reason: String,
    /// The published figures that a fitted value is fitted to.
    pub fitted_to: Vec<String>,
}

/// The values that a constant may have.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueDomain {
    /// A quantity.
    Quantity(Limits),
    /// One of these words.
    Words(Vec<&'static str>),
}

impl Constant {
    /// `section.key`, as `--set` and the messages name it.
    pub fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }
}

/// Reads a document, constant by constant, in declaration order.
pub(crate) struct Reader<'d> {
    document: &'d Document,
    constants: Vec<Constant>,
    /// Those that may be left out, and are.
    left_out: Vec<Constant>,
    problems: Problems,
    missing: Vec<Problem>,
}

/// A reader within one section.
pub(crate) struct SectionReader<'r, 'd> {
    reader: &'r mut Reader<'d>,
    section: &'static str,
}

impl<'d> Reader<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        let problems = document.problems.clone();
        Reader {
            document,
            constants: Vec::new(),
            left_out: Vec::new(),
            problems,
            missing: Vec::new(),
        }
    }

    /// The constants declared from here on belong to `[section]`.
    pub(crate) fn section(&mut self, section: &'static str) -> SectionReader<'_, 'd> {
        SectionReader {
            reader: self,
            section,
        }
    }

    /// A condition on several constants together, checked where each alone is sound. The message
    /// is about the first of `names`.
    pub(crate) fn rule(&mut self, names: &[&str], holds: bool, message: impl FnOnce() -> String) {
        if holds || !self.problems.is_empty() || !self.missing.is_empty() {
            return;
        }
        let entry = |name: &&str| {
            self.document
                .entries
                .iter()
                .find(|entry| entry.name() == **name)
        };
        let overridden = |entry: &&Entry| matches!(entry.place, DocumentPosition::Override { .. });
        let blamed = names.iter().filter_map(entry).find(overridden);
        let blamed = blamed.or_else(|| names.iter().find_map(entry));
        let place = blamed.map_or(DocumentPosition::File, |entry| entry.place.clone());
        let name = names.first().copied().unwrap_or_default();
        self.problems
            .report(place, || format!("{name}: {}", message()));
    }

    /// The constants that were read, and those that were rightly left out.
    ///
    /// # Errors
    /// The first problem in the file; what is missing comes after what is wrong, since a
    /// misspelt key is also a missing one.
    pub(super) fn finish(mut self) -> Result<(Vec<Constant>, Vec<Constant>), Problem> {
        self.report_unknown();
        match self
            .problems
            .first()
            .or_else(|| self.missing.into_iter().next())
        {
            Some(problem) => Err(problem),
            None => Ok((self.constants, self.left_out)),
        }
    }

    /// Returns all declared constants, whether or not the document has them.
    pub(crate) fn declared(self) -> Vec<Constant> {
        [self.constants, self.left_out].concat()
    }

    fn report_unknown(&mut self) {
        let declared = || self.constants.iter().chain(&self.left_out);
        let mut known: Vec<&'static str> = declared().map(|constant| constant.section).collect();
        known.dedup();
        for section in &self.document.sections {
            if !known.contains(&section.name.as_str()) {
                self.problems.report(section.place.clone(), || {
                    let hint = did_you_mean(&section.name, known.iter().copied());
                    format!("unknown section {}{hint}", quoted(&section.name))
                });
            }
        }
        for entry in &self.document.entries {
            let keys = || {
                declared()
                    .filter(|constant| constant.section == entry.section)
                    .map(|constant| constant.key)
            };
            if known.contains(&entry.section.as_str()) && !keys().any(|key| key == entry.key) {
                self.problems.report(entry.place.clone(), || {
                    let hint = did_you_mean(&entry.key, keys());
                    let section = plain(&entry.section);
                    format!("{section}: unknown key {}{hint}", quoted(&entry.key))
                });
            }
        }
    }
}

impl SectionReader<'_, '_> {
    /// A span of time, in picoseconds.
    pub(crate) fn time(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> Time {
        Time::from_ps(self.amount(key, Dimension::Time, range, meaning))
    }

    /// A clock, from 1 MHz to 100 GHz.
    pub(crate) fn clock(&mut self, key: &'static str, meaning: &'static str) -> Clock {
        const SLOWEST_HZ: u64 = 1_000_000;
        const FASTEST_HZ: u64 = 100_000_000_000;
        const SLOWEST: Clock = match Clock::from_hz(SLOWEST_HZ) {
            Some(clock) => clock,
            None => panic!("a clock of 1 MHz exists"),
        };
        let hz = self.amount(key, Dimension::Frequency, SLOWEST_HZ..=FASTEST_HZ, meaning);
        Clock::from_hz(hz).unwrap_or(SLOWEST)
    }

    /// A number of clock cycles.
    pub(crate) fn cycles(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> u64 {
        self.amount(key, Dimension::Cycles, range, meaning)
    }

    /// A delay: a number of clock cycles, or a span of time in picoseconds.
    pub(crate) fn delay(
        &mut self,
        key: &'static str,
        cycles: RangeInclusive<u64>,
        time: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> Delay {
        let is_time = self.entry(key).is_some_and(|entry| match &entry.value {
            Given::Text(text) | Given::Override(text) => Dimension::Time.is_of(text.trim()),
            _ => false,
        });
        match is_time {
            true => Delay::Time(self.time(key, time, meaning)),
            false => Delay::Cycles(self.cycles(key, cycles, meaning)),
        }
    }

    /// An amount of at most 32 bits.
    fn small(
        &mut self,
        key: &'static str,
        dimension: Dimension,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        let (least, most) = (u64::from(*range.start()), u64::from(*range.end()));
        let amount = self.amount(key, dimension, least..=most, meaning);
        u32::try_from(amount).unwrap_or(*range.end())
    }

    /// A number of things.
    pub(crate) fn count(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        self.small(key, Dimension::Count, range, meaning)
    }

    /// A bandwidth, in bytes per second.
    pub(crate) fn bandwidth(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> u64 {
        self.amount(key, Dimension::Bandwidth, range, meaning)
    }

    /// A voltage, in millivolts.
    pub(crate) fn voltage(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        self.small(key, Dimension::Voltage, range, meaning)
    }

    /// A power, in milliwatts.
    pub(crate) fn power(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        self.small(key, Dimension::Power, range, meaning)
    }

    /// An amount of memory, in bytes.
    pub(crate) fn memory(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> u64 {
        self.amount(key, Dimension::Memory, range, meaning)
    }

    /// An amount of memory that is a power of two, in bytes.
    pub(crate) fn memory_power(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> u64 {
        let limits = Limits::new(Dimension::Memory, *range.start(), *range.end()).powers_of_two();
        self.quantity(key, limits, meaning)
    }

    /// The length of a cache line: 32 or 64 bytes.
    pub(crate) fn line_size(&mut self, key: &'static str, meaning: &'static str) -> LineSize {
        let bytes = self.memory_power(key, 32..=64, meaning);
        LineSize::new(bytes).unwrap_or(LineSize::B64)
    }

    /// A connection's width, a power of two, in bits.
    pub(crate) fn width(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        let (least, most) = (u64::from(*range.start()), u64::from(*range.end()));
        let limits = Limits::new(Dimension::Width, least, most).powers_of_two();
        u32::try_from(self.quantity(key, limits, meaning)).unwrap_or(*range.end())
    }

    /// One of several words, each with what it stands for.
    pub(crate) fn word<T: Copy, const N: usize>(
        &mut self,
        key: &'static str,
        words: [(&'static str, T); N],
        meaning: &'static str,
    ) -> T {
        let known: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
        let mut written = String::new();
        let mut chosen = None;
        match self.given(key) {
            Some((place, Given::Text(text) | Given::Override(text))) => {
                written = text.trim().to_owned();
                chosen = words.iter().find(|(word, _)| *word == written);
                if chosen.is_none() {
                    let advice = match nearest(&written, known.iter().copied()) {
                        Some(word) => format!("did you mean {}?", quoted(word)),
                        None => format!("it must be {}", either(&known)),
                    };
                    self.report(
                        place,
                        key,
                        format!("unknown word {}; {advice}", quoted(&text)),
                    );
                }
            }
            Some((place, Given::Number(_) | Given::Other(_))) => {
                self.report(place, key, format!("must be {}, in quotes", either(&known)));
            }
            Some((_, Given::Nothing)) | None => {}
        }
        self.declare(key, ValueDomain::Words(known), meaning, written, None);
        chosen.unwrap_or(&words[0]).1
    }

    /// The same, where the file may leave it out; then it is `default`.
    pub(crate) fn optional_word<T: Copy + PartialEq, const N: usize>(
        &mut self,
        key: &'static str,
        default: T,
        words: [(&'static str, T); N],
        meaning: &'static str,
    ) -> T {
        if self.entry(key).is_some() {
            return self.word(key, words, meaning);
        }
        let domain = ValueDomain::Words(words.iter().map(|(word, _)| *word).collect());
        let value = words.iter().find(|(_, meant)| *meant == default);
        let value = value.map_or_else(String::new, |(word, _)| (*word).to_owned());
        let constant = self.constant(key, domain, meaning, value, None);
        self.reader.left_out.push(constant);
        default
    }

    /// A span of time, in picoseconds; `default` where the file leaves it out.
    pub(crate) fn optional_time(
        &mut self,
        key: &'static str,
        default: Time,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> Time {
        if self.entry(key).is_some() {
            return self.time(key, range, meaning);
        }
        let limits = Limits::new(Dimension::Time, *range.start(), *range.end());
        self.leave_out(key, limits, default.as_ps(), meaning);
        default
    }

    /// A number of things; `default` where the file leaves it out.
    pub(crate) fn optional_count(
        &mut self,
        key: &'static str,
        default: u32,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> u32 {
        if self.entry(key).is_some() {
            return self.count(key, range, meaning);
        }
        let (least, most) = range.into_inner();
        let limits = Limits::new(Dimension::Count, least.into(), most.into());
        self.leave_out(key, limits, default.into(), meaning);
        default
    }

    /// Declares a quantity that the file leaves out, so that it is `amount`.
    fn leave_out(&mut self, key: &'static str, limits: Limits, amount: u64, meaning: &'static str) {
        let (domain, value) = (
            ValueDomain::Quantity(limits),
            limits.dimension.write(amount),
        );
        let constant = self.constant(key, domain, meaning, value, Some(amount));
        self.reader.left_out.push(constant);
    }

    fn amount(
        &mut self,
        key: &'static str,
        dimension: Dimension,
        range: RangeInclusive<u64>,
        meaning: &'static str,
    ) -> u64 {
        self.quantity(
            key,
            Limits::new(dimension, *range.start(), *range.end()),
            meaning,
        )
    }

    /// The amount in base units, or the least allowed where the file has none that is sound.
    fn quantity(&mut self, key: &'static str, limits: Limits, meaning: &'static str) -> u64 {
        let mut text = String::new();
        let mut amount = None;
        if let Some((place, value)) = self.given(key) {
            match parse(limits, &value) {
                Ok(Some((parsed, written))) => (amount, text) = (Some(parsed), written),
                Ok(None) => {}
                Err(message) => self.report(place, key, message),
            }
        }
        self.declare(key, ValueDomain::Quantity(limits), meaning, text, amount);
        amount.unwrap_or(limits.least)
    }

    /// Returns the document's entry for `key`; notes it as missing if there is none.
    fn given(&mut self, key: &'static str) -> Option<(DocumentPosition, Given)> {
        let document = self.reader.document;
        if let Some(entry) = self.entry(key) {
            return Some((entry.place.clone(), entry.value.clone()));
        }
        let section = document
            .sections
            .iter()
            .find(|section| section.name == self.section);
        let place = section.map_or(DocumentPosition::File, |section| section.place.clone());
        let message = match section {
            Some(_) => format!("{}.{key} is missing", self.section),
            None => format!(
                "{}.{key} is missing: there is no section [{}]",
                self.section, self.section
            ),
        };
        self.reader.missing.push(Problem { place, message });
        None
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.reader
            .document
            .entries
            .iter()
            .find(|entry| entry.section == self.section && entry.key == key)
    }

    fn report(&mut self, place: DocumentPosition, key: &str, message: String) {
        let section = self.section;
        self.reader
            .problems
            .report(place, || format!("{section}.{key}: {message}"));
    }

    fn declare(
        &mut self,
        key: &'static str,
        domain: ValueDomain,
        meaning: &'static str,
        value: String,
        amount: Option<u64>,
    ) {
        let constant = self.constant(key, domain, meaning, value, amount);
        self.reader.constants.push(constant);
    }

    fn constant(
        &self,
        key: &'static str,
        domain: ValueDomain,
        meaning: &'static str,
        value: String,
        amount: Option<u64>,
    ) -> Constant {
        let (source, reason, fitted_to) = match self.entry(key) {
            Some(entry) => (entry.source, entry.reason.clone(), entry.fitted_to.clone()),
            None => (Source::Assumed, String::new(), Vec::new()),
        };
        Constant {
            section: self.section,
            key,
            meaning,
            domain,
            value,
            amount,
            source,
            reason,
            fitted_to,
        }
    }
}

impl Entry {
    /// `section.key`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }
}

/// A value's amount and its text; nothing where a problem with it is already known.
fn parse(limits: Limits, value: &Given) -> Result<Option<(u64, String)>, String> {
    let is_count = limits.dimension == Dimension::Count;
    let text = match value {
        Given::Text(text) if is_count => {
            let number = text.trim();
            if limits.parse(number).is_ok() {
                return Err(format!(
                    "{} is a count: write it without quotes, {number}",
                    quoted(text)
                ));
            }
            text
        }
        Given::Text(text) | Given::Number(text) | Given::Override(text) => text,
        Given::Other(kind) => {
            return Err(format!("must be {}, not {kind}", limits.dimension.name()));
        }
        Given::Nothing => return Ok(None),
    };
    match limits.parse(text) {
        // An override is kept as the amount is written, so that `200MHz` and `200 MHz` are the
        // same.
        Ok(amount) if matches!(value, Given::Override(_)) => {
            Ok(Some((amount, limits.dimension.write(amount))))
        }
        Ok(amount) => Ok(Some((amount, text.trim().to_owned()))),
        Err(error) => Err(error.to_string()),
    }
}

fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let words: Vec<&str> = quoted.iter().map(String::as_str).collect();
    listed(&words, "or")
}
