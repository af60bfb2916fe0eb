//! The lines of cost of a sweep over sizes, t = K N + h: what the calls that send take on either
//! side, beside Table IV of Ho et al.

use sme_sim::machine::Machine;

use super::{Outcome, PingPong, name, way};
use crate::messages::job::Library;
use crate::messages::line::{Fitted, Line};
use crate::messages::pingpong::Way;
use crate::report::row::Cell;
use crate::validate::published::{self, Value};

/// Sizes of which a line is made, at least.
const SIZES: usize = 3;

/// The call that sends from one rank to another, over all sizes.
pub(super) struct Sweep<'o> {
    /// One of its points.
    pub(super) of: &'o PingPong,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Bytes, and cycles of the core that sends.
    pub(super) points: Vec<(f64, f64)>,
}

/// Whether both are points of one sweep over sizes.
pub(super) fn is_one_sweep(one: &PingPong, other: &PingPong) -> bool {
    (one.call, one.way) == (other.call, other.way)
}

/// The first points of all sweeps.
pub(super) fn firsts<'o>(outcomes: &[(&'o PingPong, Outcome)]) -> Vec<&'o PingPong> {
    let mut firsts: Vec<&PingPong> = Vec::new();
    for &(run, _) in outcomes {
        if !firsts.iter().any(|first| is_one_sweep(first, run)) {
            firsts.push(run);
        }
    }
    firsts
}

/// The clock in whose cycles calls are counted.
const CLOCK: &str = "core.clock";

/// Both directions of all sweeps.
fn sweeps<'o>(outcomes: &[(&'o PingPong, Outcome)], megahertz: f64) -> Vec<Sweep<'o>> {
    let mut sweeps = Vec::new();
    for of in firsts(outcomes) {
        for answers in [false, true] {
            let own = outcomes.iter().filter(|(run, _)| is_one_sweep(of, run));
            let points = own.map(|(run, outcome)| {
                let (send, answer) = outcome.sends;
                let time = if answers { answer } else { send };
                (run.size_bytes as f64, time.as_us() * megahertz)
            });
            let (from, to) = match answers {
                false => (of.first, of.partner),
                true => (of.partner, of.first),
            };
            sweeps.push(Sweep {
                of,
                from,
                to,
                points: points.collect(),
            });
        }
    }
    sweeps
}

impl Sweep<'_> {
    /// The line of Table IV that was measured so, if there is one.
    fn published(&self) -> Option<Line> {
        let machine = &self.of.job.machine;
        let builtin = Machine::builtin("mppa256").ok()?;
        if builtin.hash() != machine.hash() || self.of.way != Some(Way::Normal) {
            return None;
        }
        let end = |rank| match rank == self.of.job.ranks {
            true => "ios".to_owned(),
            false => format!("cc{rank}"),
        };
        let id = format!(
            "mppa.table4.{}_{}.{}",
            end(self.from),
            end(self.to),
            self.of.call
        );
        let figures = published::built_in().ok()?;
        let figure = figures.iter().find(|figure| figure.id == id)?;
        match figure.value {
            Value::Linear { per_byte, fixed } => Some(Line { per_byte, fixed }),
            Value::Number(_) => None,
        }
    }
}

/// The sweeps of the rank that begins which have a line of Table IV, that line, and the megahertz
/// of a core.
pub(super) fn published<'o>(outcomes: &[(&'o PingPong, Outcome)]) -> Vec<(Sweep<'o>, Line, f64)> {
    let first = outcomes.first();
    let Some(megahertz) = first.and_then(|(run, _)| run.job.machine.megahertz(CLOCK)) else {
        return Vec::new();
    };
    let sweeps = sweeps(outcomes, megahertz).into_iter();
    let begin = sweeps.filter(|sweep| sweep.from == sweep.of.first);
    begin
        .filter_map(|sweep| {
            let line = sweep.published()?;
            Some((sweep, line, megahertz))
        })
        .collect()
}

/// The keys of the table of lines.
pub(super) const KEYS: [&str; 8] = [
    "between",
    "call",
    "mode",
    "k_cycles_per_byte",
    "h_cycles",
    "r2",
    "published_k_cycles_per_byte",
    "published_h_cycles",
];

/// The rows of the table, of channel queues.
pub(super) fn table(outcomes: &[(&PingPong, Outcome)]) -> Vec<Vec<Cell>> {
    let of_queues = |(run, _): &(&PingPong, Outcome)| match run.job.library {
        Library::Queues => run.job.machine.megahertz(CLOCK),
        _ => None,
    };
    let Some(megahertz) = outcomes.first().and_then(of_queues) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for sweep in sweeps(outcomes, megahertz) {
        let is_swept = sweep.points.len() >= SIZES;
        let Some(Fitted { line, r2 }) = Line::through(&sweep.points).filter(|_| is_swept) else {
            continue;
        };
        let published = sweep.published();
        let of = |part: fn(&Line) -> f64| {
            published
                .as_ref()
                .map_or(Cell::Absent, |line| Cell::real(part(line)))
        };
        let ends = [sweep.from, sweep.to].map(|rank| name(&sweep.of.job, rank));
        rows.push(vec![
            Cell::text(ends.join(",")),
            Cell::text(sweep.of.call),
            Cell::text(way(sweep.of.way)),
            Cell::real(line.per_byte),
            Cell::real(line.fixed),
            Cell::fraction(r2),
            of(|line| line.per_byte),
            of(|line| line.fixed),
        ]);
    }
    rows
}
