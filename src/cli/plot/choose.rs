//! The fields that are plotted: those that the flags name, and for the others a choice by what the
//! rows hold, which docs/plot.md explains.

use std::collections::{HashMap, HashSet};

use super::PlotFlags;
use super::table::{Row, SOURCE, Table, find};
use crate::report::row::Cell;
use crate::report::stop::Stop;
use crate::report::units;

/// The most curves of a choice, and the most that a user may ask for: more are not told apart.
const FEW_CURVES: usize = 12;
pub const MAX_CURVES: usize = 40;

/// The field that tells machines apart, and says nothing to a reader.
const HASH: &str = "machine_hash";

/// Fields of words that other fields describe by numbers: the cores of a machine, the bound of a
/// traffic.
const SETTINGS: [&str; 2] = ["machine", "traffic"];

/// Counts that runs come to: they follow from the inputs, as times do.
const COUNTS: [&str; 14] = [
    "acquisitions",
    "across_count",
    "cache_hits",
    "displaced",
    "events",
    "line_fills",
    "link_bytes",
    "messages",
    "remote_loads",
    "remote_stores",
    "second_level_hits",
    "transfers",
    "within_count",
    "write_backs",
];

/// The fields of a picture, by their places in the table.
#[derive(Debug)]
pub struct Chosen {
    /// Along the bottom; of bars the names, which several fields may make.
    pub x: Vec<usize>,
    pub y: Vec<usize>,
    /// A curve, or a part of each bar, for each combination of what these hold.
    pub series: Vec<usize>,
    /// The ends of the bars of errors.
    pub errors: Option<(usize, usize)>,
    pub published: Vec<usize>,
    pub panels: Option<usize>,
    pub is_bars: bool,
    /// The series are parts of one thing, and stand on each other in its bar.
    pub is_stacked: bool,
    /// The choices that were made here, for stderr; none where the flags name all fields.
    pub told: Option<String>,
}

/// The kind of content of a field.
struct Kind {
    is_numeric: bool,
    varies: bool,
    is_zero: bool,
    present: usize,
    is_host: bool,
}

impl Kind {
    fn of(table: &Table, field: usize) -> Self {
        let cells = || table.rows.iter().map(move |row| row.cell(field));
        let there = || cells().filter(|cell| **cell != Cell::Absent);
        let texts: HashSet<String> = there().map(|cell| cell.to_text()).collect();
        Self {
            // A cell that is no number among many that are is a mistake, which is told when it is
            // drawn.
            is_numeric: 2 * there().filter(|cell| cell.is_number()).count() > there().count(),
            varies: texts.len() > 1,
            is_zero: texts.iter().all(|text| text.parse() == Ok(0.0)),
            present: there().count(),
            is_host: table.fields[field].starts_with("host_"),
        }
    }
}

/// The fields that flags name, by their places in the table.
#[derive(Debug)]
pub struct Named {
    x: Option<Vec<usize>>,
    y: Option<Vec<usize>>,
    series: Option<Vec<usize>>,
    errors: Option<(usize, usize)>,
    published: Vec<usize>,
    panels: Option<usize>,
}

impl Named {
    /// The places in `fields` of those that the flags name.
    ///
    /// # Errors
    /// [`Stop::Input`] for a name that is none of `fields`.
    pub fn new(fields: &[String], flags: &PlotFlags) -> Result<Self, Stop> {
        let list = |flag: &str, text: &Option<String>| match text {
            Some(text) => {
                let names = text
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                let mut places = Vec::new();
                for name in names {
                    let place = find(fields, flag, name)?;
                    if places.contains(&place) {
                        return Err(Stop::flag(flag, format!("{name} is given twice")));
                    }
                    places.push(place);
                }
                Ok(Some(places))
            }
            None => Ok(None),
        };
        let published = flags.published.iter();
        let published = published.map(|name| find(fields, "--published", name));
        let panels = flags.panels.as_ref();
        let panels = panels.map(|name| find(fields, "--panels", name));
        Ok(Self {
            x: list("--x", &flags.x)?,
            y: list("--y", &flags.y)?,
            series: list("--series", &flags.series)?,
            errors: match list("--errors", &flags.errors)?.as_deref() {
                None => None,
                Some(&[low, high]) => Some((low, high)),
                Some(_) => return Err(Stop::flag("--errors", "two fields, LOW,HIGH")),
            },
            published: published.collect::<Result<_, Stop>>()?,
            panels: panels.transpose()?,
        })
    }
}

impl Chosen {
    /// The fields by the flags, and by what the rows hold.
    pub fn new(table: &Table, flags: &PlotFlags) -> Result<Self, Stop> {
        let named = Named::new(&table.fields, flags)?;
        let (given_x, given_y, given_series) = (named.x, named.y, named.series);
        let kinds: Vec<Kind> = (0..table.fields.len())
            .map(|field| Kind::of(table, field))
            .collect();
        let mut chosen = Self {
            x: given_x.clone().unwrap_or_default(),
            y: given_y.clone().unwrap_or_default(),
            series: given_series.clone().unwrap_or_default(),
            errors: named.errors,
            published: named.published,
            panels: named.panels,
            is_bars: flags.bars,
            // Fields that are chosen here say which rows are compared, not what adds up.
            is_stacked: flags.bars
                && (given_series.is_some() || given_y.as_ref().is_some_and(|y| y.len() > 1)),
            told: None,
        };
        let is_told = given_x.is_none() || given_y.is_none() || given_series.is_none();
        let are_open = given_x.is_none() && given_y.is_none();
        if are_open && (chosen.costs(table, flags) || chosen.figures(table, &kinds, flags)) {
            chosen.check(table)?;
            chosen.tell(table);
            return Ok(chosen);
        }
        if given_x.is_none() {
            chosen.x = vec![chosen.choose_x(table, &kinds)?];
        }
        let numeric = |&field: &usize| kinds[field].is_numeric || kinds[field].present == 0;
        chosen.is_bars |= !chosen.x.iter().all(numeric);
        if chosen.x.len() > 1 && !chosen.is_bars {
            return Err(Stop::flag("--x", "several fields name bars: --bars"));
        }
        if given_y.is_none() {
            chosen.y = vec![chosen.choose_y(table, &kinds)?];
            if flags.published.is_empty() && !chosen.is_bars {
                chosen.published = chosen.comparable(table, &kinds);
            }
        }
        if given_series.is_none() && !(chosen.is_bars && chosen.y.len() > 1) {
            chosen.choose_series(table, &kinds);
        }
        chosen.check(table)?;
        if is_told {
            chosen.tell(table);
        }
        Ok(chosen)
    }

    /// Chooses the fields of a critical path, as `--explain-to` writes it, if the rows are one.
    fn costs(&mut self, table: &Table, flags: &PlotFlags) -> bool {
        let find = |name: &str| table.fields.iter().position(|field| field == name);
        let (Some(part), Some(duration)) = (find("part"), find("duration_ns")) else {
            return false;
        };
        (self.is_bars, self.is_stacked) = (true, true);
        self.x = find(SOURCE).into_iter().collect();
        self.y = vec![duration];
        if flags.series.is_none() {
            self.series = [Some(part), find("queued_for")]
                .into_iter()
                .flatten()
                .collect();
        }
        true
    }

    /// Chooses the fields of published figures, as `sme validate` writes them, if the rows are
    /// those and no flag asks for curves.
    fn figures(&mut self, table: &Table, kinds: &[Kind], flags: &PlotFlags) -> bool {
        let find = |name: &str| table.fields.iter().position(|field| field == name);
        let fields = ["id", "verdict", "simulated_over_published"].map(find);
        let [Some(id), Some(verdict), Some(ratio)] = fields else {
            return false;
        };
        let are_curves = self.panels.is_some() || !self.published.is_empty();
        if are_curves || self.errors.is_some() || flags.log.is_some() || kinds[ratio].present == 0 {
            return false;
        }
        (self.is_bars, self.is_stacked) = (true, true);
        self.x = [Some(id), find(SOURCE)].into_iter().flatten().collect();
        self.y = vec![ratio];
        if flags.series.is_none() {
            // A figure that the paper bounds is met far from 1, too.
            self.series = [Some(verdict), find("comparison")]
                .into_iter()
                .flatten()
                .collect();
        }
        true
    }

    fn choose_x(&self, table: &Table, kinds: &[Kind]) -> Result<usize, Stop> {
        let free = |field: &usize| {
            let is_panels = self.panels == Some(*field);
            !self.y.contains(field) && !self.series.contains(field) && !is_panels
        };
        let fields = || (0..kinds.len()).filter(free).filter(|&f| !kinds[f].is_host);
        // Of two fields at least the second has something to show over the first.
        let numbers = || fields().filter(|&field| kinds[field].is_numeric);
        let varying = numbers().filter(|&field| kinds[field].varies);
        let has_y = |x: usize| !self.y.is_empty() || numbers().any(|field| field > x);
        let words = || {
            let mut words = fields().filter(|&field| kinds[field].varies);
            words.find(|&field| !kinds[field].is_numeric && table.fields[field] != HASH)
        };
        // A time is a result, unless each comes in several rows, as in a grid of inputs; and so is
        // a count, and a number that follows from the machine or the traffic.
        let is_result = |field: usize| {
            let unit = units::words(&table.fields[field]).1;
            let of = |name: &str| table.fields.iter().position(|field| field == name);
            let mut setting = SETTINGS.iter().filter_map(|name| of(name));
            unit.is_some_and(units::is_time) && !is_repeated(table, field)
                || COUNTS.contains(&table.fields[field].as_str())
                || setting.any(|of| kinds[of].varies && is_told_by(&table.rows, field, &[of]))
        };
        let mut curves = varying.clone().filter(|&x| has_y(x) && !self.is_bars);
        let chosen = (curves.clone().find(|&field| !is_result(field)))
            .or_else(words)
            .or_else(|| curves.next())
            .or_else(|| varying.clone().next())
            .or_else(|| numbers().find(|&x| has_y(x)));
        chosen.ok_or_else(|| no_numbers(table))
    }

    fn choose_y(&self, table: &Table, kinds: &[Kind]) -> Result<usize, Stop> {
        let has = |row: &Row, field: usize| *row.cell(field) != Cell::Absent;
        let over_x = |row: &&Row| self.x.iter().all(|&x| !kinds[x].is_numeric || has(row, x));
        let with_x: Vec<&Row> = table.rows.iter().filter(over_x).collect();
        let able = |&field: &usize| {
            let kind = &kinds[field];
            let is_used = self.x.contains(&field) || self.series.contains(&field);
            let is_free = !is_used && self.panels != Some(field);
            is_free && kind.is_numeric && !kind.is_host
        };
        let behind = |&field: &usize| self.x.iter().all(|&x| field > x || !kinds[x].is_numeric);
        let is_full = |&field: &usize| {
            let there = with_x.iter().filter(|row| has(row, field)).count();
            there > 0 && 2 * there >= with_x.len()
        };
        let is_time = |&field: &usize| {
            units::words(&table.fields[field])
                .1
                .is_some_and(units::is_time)
        };
        let all = || (0..kinds.len()).filter(able);
        let varies = |&field: &usize| kinds[field].varies;
        let good = || all().filter(behind).filter(is_full);
        let chosen = (good().filter(varies).find(is_time))
            .or_else(|| good().find(varies))
            .or_else(|| good().filter(is_time).find(|&field| !kinds[field].is_zero))
            .or_else(|| good().next())
            .or_else(|| all().next());
        chosen.ok_or_else(|| no_numbers(table))
    }

    /// The published fields in the unit of y.
    fn comparable(&self, table: &Table, kinds: &[Kind]) -> Vec<usize> {
        let unit = |field: usize| units::words(&table.fields[field]).1;
        let fields = (0..kinds.len()).filter(|field| !self.x.contains(field));
        let is_one = |field: &usize| {
            let name = &table.fields[*field];
            let is_other = self
                .y
                .iter()
                .all(|y| y != field && unit(*y) == unit(*field));
            name.split('_').any(|word| word == "published") && kinds[*field].is_numeric && is_other
        };
        fields.filter(is_one).collect()
    }

    /// Every field before y that varies and that the fields chosen before it do not tell, or
    /// without which curves go back and forth. The hash of a machine tells a reader nothing, and
    /// comes last.
    fn choose_series(&mut self, table: &Table, kinds: &[Kind]) {
        let last = self.y.iter().copied().max().unwrap_or(0);
        let fields = kinds.iter().enumerate().take(last);
        let (hashes, others): (Vec<_>, Vec<_>) =
            fields.partition(|&(field, _)| table.fields[field] == HASH);
        for (field, kind) in others.into_iter().chain(hashes) {
            let is_used = [&self.x, &self.y, &self.published]
                .iter()
                .any(|used| used.contains(&field));
            let is_count = COUNTS.contains(&table.fields[field].as_str());
            let is_other = self.panels == Some(field) || kind.is_host || is_count;
            if is_used || is_other || !kind.varies {
                continue;
            }
            let known = [&self.x[..], &self.series, self.panels.as_slice()].concat();
            let more = [&self.series[..], &[field]].concat();
            let is_told = is_told_by(&table.rows, field, &known);
            if is_told && !self.is_straighter(table, &more) {
                continue;
            }
            let curves: HashSet<Vec<String>> =
                table.rows.iter().map(|row| row.texts(&more)).collect();
            if curves.len() * self.y.len() <= FEW_CURVES {
                self.series = more;
            }
        }
    }

    /// Whether the rows of each curve go one way along x with these series, and do not with those
    /// chosen so far: an x that was measured is another in every row, and tells all fields.
    fn is_straighter(&self, table: &Table, series: &[usize]) -> bool {
        let (&[x], Some(last)) = (&self.x[..], series.last()) else {
            return false;
        };
        let panels = self.panels.as_slice();
        let goes_one_way = |series: &[usize]| goes_one_way(table, x, &[series, panels].concat());
        !self.is_bars
            && is_repeated(table, *last)
            && goes_one_way(series)
            && !goes_one_way(&self.series)
    }

    /// The first field before y that tells rows of the curve whose fields of `series` have these
    /// texts apart, at one place; the hash of a machine if there is no other.
    pub fn untold(&self, table: &Table, curve: &[String]) -> Option<usize> {
        let last = self.y.iter().copied().max()?;
        let known = [&self.x[..], &self.series, self.panels.as_slice()].concat();
        let rows = table.rows.iter();
        let rows: Vec<&Row> = rows
            .filter(|row| row.texts(&self.series) == curve)
            .collect();
        let is_open = |field: &usize| {
            let name = &table.fields[*field];
            let is_used = [&known, &self.y, &self.published]
                .iter()
                .any(|used| used.contains(field));
            !is_used && !name.starts_with("host_")
        };
        let open = (0..last).filter(is_open);
        let telling = open.filter(|&field| !is_told_by(rows.iter().copied(), field, &known));
        telling.min_by_key(|&field| table.fields[field] == HASH)
    }

    /// Refuses fields that cannot stand on one axis.
    fn check(&self, table: &Table) -> Result<(), Stop> {
        let unit = |field: usize| units::words(&table.fields[field]).1;
        let Some(&first) = self.y.first() else {
            return Err(Stop::flag("--y", "name a field"));
        };
        if self.x.is_empty() && !self.is_bars {
            return Err(Stop::flag("--x", "name a field"));
        }
        let ends = self.errors.iter().flat_map(|&(low, high)| [low, high]);
        let others = [
            ("--y", self.y.clone()),
            ("--errors", ends.collect()),
            ("--published", self.published.clone()),
        ];
        for (flag, fields) in others {
            if let Some(&other) = fields.iter().find(|&&other| unit(other) != unit(first)) {
                let [one, two] = [first, other].map(|field| &table.fields[field]);
                let why = format!("{one} and {two} have different units, and the axis has one");
                return Err(Stop::flag(flag, why));
            }
        }
        if self.errors.is_some() && (self.y.len() > 1 || self.is_bars) {
            return Err(Stop::flag(
                "--errors",
                "are those of one field of --y, on curves",
            ));
        }
        if self.is_bars && !self.published.is_empty() {
            return Err(Stop::flag(
                "--published",
                "is drawn with curves, not with bars",
            ));
        }
        if self.panels.is_some_and(|panels| self.x.contains(&panels)) {
            return Err(Stop::flag("--panels", "is the field of --x, too"));
        }
        if self.is_bars && self.panels.is_some() {
            return Err(Stop::flag("--panels", "are of curves, not of bars"));
        }
        Ok(())
    }

    fn tell(&mut self, table: &Table) {
        let names = |fields: &[usize]| {
            let names = fields.iter().map(|&field| table.fields[field].as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let (x, y) = (names(&self.x), names(&self.y));
        let each = match (self.is_bars, self.is_stacked) {
            (true, true) => "a part",
            (true, false) => "a bar",
            (false, _) => "a curve",
        };
        let series = match self.series.is_empty() {
            true => String::new(),
            false => format!(", {each} for each {}", names(&self.series)),
        };
        let over = match x.is_empty() {
            true => String::new(),
            false => format!(" over {x}"),
        };
        self.told = Some(format!("{y}{over}{series}"));
    }
}

/// Whether each value of a field stands in several rows.
fn is_repeated(table: &Table, field: usize) -> bool {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in &table.rows {
        *counts.entry(row.cell(field).to_text()).or_default() += 1;
    }
    counts.values().all(|&count| count > 1)
}

/// Whether the numbers of `field` never fall, or never rise, from row to row of those that agree in
/// `series`.
fn goes_one_way(table: &Table, field: usize, series: &[usize]) -> bool {
    let mut last: HashMap<Vec<String>, (f64, [bool; 2])> = HashMap::new();
    table.rows.iter().all(|row| {
        let Ok(now) = row.cell(field).to_text().parse::<f64>() else {
            return true;
        };
        let (before, went) = last.entry(row.texts(series)).or_insert((now, [false; 2]));
        *went = [went[0] || now < *before, went[1] || now > *before];
        *before = now;
        *went != [true; 2]
    })
}

/// Whether rows that agree in `known` always agree in `field`.
fn is_told_by<'r>(rows: impl IntoIterator<Item = &'r Row>, field: usize, known: &[usize]) -> bool {
    let mut told: HashMap<Vec<String>, String> = HashMap::new();
    rows.into_iter().all(|row| {
        let text = row.cell(field).to_text();
        let first = told.entry(row.texts(known)).or_insert_with(|| text.clone());
        *first == text
    })
}

fn no_numbers(table: &Table) -> Stop {
    let fields = table.fields.join(", ");
    Stop::flag(
        "--x and --y",
        format!("too few fields hold numbers, of {fields}"),
    )
}
