//! The row of a run of a program.
//!
//! Called by [`super::program`] and [`crate::cli::fft_paper`]. Keys carry their units; see
//! [`crate::report::row`] for what a cell is.

use sme_fft_demo::Placement;
use sme_sim::observe::traffic::LinkLoad;
use sme_sim::time::Time;

use super::program::Task;
use crate::program::{Outcome, Program};
use crate::report::row::{self, Cell, Host};

/// A run that has ended.
pub struct Done<'p> {
    /// The program that was run.
    pub program: &'p Program,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// A fault in its result, if there is one, where that was checked.
    pub wrong: Option<Option<String>>,
    /// The cost to this computer.
    pub host: Host,
}

/// The row of `done`, whose speed-up is that over `base`.
pub fn row<T: Task>(
    task: &T,
    placement: Placement,
    done: &Done<'_>,
    base: &Done<'_>,
) -> Vec<Keyed> {
    let mut row = identity(task, placement, done.program);
    row.extend(times(done, base));
    row.extend(phases(&T::phases(), &done.outcome));
    row.extend(counts(done));
    row
}

/// A value and its key.
pub type Keyed = (String, Cell);

/// Known before the run.
fn identity<T: Task>(task: &T, placement: Placement, program: &Program) -> Vec<Keyed> {
    let mut cells = vec![
        ("version".into(), Cell::text(env!("CARGO_PKG_VERSION"))),
        ("machine".into(), Cell::text(program.machine.name())),
        ("machine_hash".into(), Cell::text(program.machine.hash())),
        ("set".into(), Cell::text(row::set(&program.machine))),
        ("program".into(), Cell::text(T::NAME)),
        ("memory".into(), Cell::text(program.mapped)),
        ("placement".into(), Cell::text(placement)),
        ("coherence_point".into(), Cell::text(program.point)),
        ("topology".into(), Cell::text(&program.topology)),
        ("memory_nodes".into(), count(program.homes().len() as u32)),
        ("nodes".into(), count(program.nodes)),
        ("cores_per_node".into(), count(program.cores)),
        ("threads".into(), count(program.threads())),
    ];
    cells.extend(
        task.parameters()
            .into_iter()
            .map(|(key, cell)| (key.into(), cell)),
    );
    cells.push(("page_bytes".into(), count(program.page_bytes)));
    cells.push(("seed".into(), count(program.seed)));
    cells
}

/// The time it took, its speed-up over `base`, and that for each of its threads.
pub fn times(done: &Done<'_>, base: &Done<'_>) -> [Keyed; 3] {
    let (time, base_time) = (done.outcome.time(), base.outcome.time());
    let work = |time: Time, threads: u32| u128::from(time.as_ps()) * u128::from(threads);
    let efficiency = ratio(
        work(base_time, base.program.threads()),
        work(time, done.program.threads()),
    );
    [
        ("time_us".into(), Cell::micros(time)),
        ("speedup".into(), ratio(work(base_time, 1), work(time, 1))),
        ("efficiency".into(), efficiency),
    ]
}

/// Times of the phases of each name, summed.
fn phases(names: &[&'static str], outcome: &Outcome) -> Vec<Keyed> {
    let sums = names.iter().flat_map(|&name| {
        let of_name = outcome.phases.iter().filter(|phase| phase.name == name);
        let zero = (Time::ZERO, Time::ZERO);
        let (work, barrier) = of_name.fold(zero, |(work, barrier), phase| {
            (work + phase.work, barrier + phase.barrier)
        });
        [
            (format!("{name}_us"), Cell::micros(work)),
            (format!("{name}_barrier_us"), Cell::micros(barrier)),
        ]
    });
    sums.collect()
}

/// The counts of a run.
fn counts(done: &Done<'_>) -> Vec<Keyed> {
    let Outcome {
        traffic, caches, ..
    } = &done.outcome;
    let stale_reads = done.outcome.stale.as_ref().map(|report| report.stale_reads);
    let correct = match &done.wrong {
        None => Cell::Absent,
        Some(wrong) => Cell::Truth(wrong.is_none()),
    };
    vec![
        ("remote_loads".into(), count(traffic.remote_loads)),
        ("remote_stores".into(), count(traffic.remote_stores)),
        ("link_bytes".into(), count(traffic.link_bytes)),
        (
            "busiest_link_fraction".into(),
            Cell::fraction(busiest(&done.outcome.links)),
        ),
        ("cache_hits".into(), count(caches.hits)),
        ("second_level_hits".into(), count(caches.second_level_hits)),
        ("transfers".into(), count(caches.transfers)),
        ("line_fills".into(), count(caches.fills)),
        ("write_backs".into(), count(caches.write_backs)),
        ("displaced".into(), count(caches.displaced)),
        ("flush_us".into(), Cell::micros(caches.flush_time)),
        (
            "stale_reads".into(),
            stale_reads.map_or(Cell::Absent, count),
        ),
        (
            "not_written_back".into(),
            count(done.outcome.unwritten.words),
        ),
        ("correct".into(), correct),
        ("events".into(), count(done.outcome.events)),
    ]
}

/// The share of time in which the link that was taken longest was taken, by any of its channels.
fn busiest(links: &[LinkLoad]) -> f64 {
    // They are sorted by link.
    let by_link = links.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to));
    by_link
        .map(|channels| channels.iter().map(|channel| channel.busy_fraction).sum())
        .fold(0.0, f64::max)
}

fn count(count: impl Into<u64>) -> Cell {
    Cell::Count(count.into())
}

/// To three digits behind the point.
fn ratio(of: u128, to: u128) -> Cell {
    const DECIMALS: u32 = 3;
    match (of * 10u128.pow(DECIMALS) + to / 2).checked_div(to) {
        None => Cell::Absent,
        Some(units) => Cell::Fixed {
            units: u64::try_from(units).unwrap_or(u64::MAX),
            decimals: DECIMALS,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded() {
        assert_eq!(ratio(2, 3).to_text(), "0.667");
        assert_eq!(ratio(12_345, 10_000).to_text(), "1.235");
        assert_eq!(ratio(1, 0), Cell::Absent);
    }

    #[test]
    fn channels_of_a_link_count_together() {
        let load = |to, channel, busy_fraction| LinkLoad {
            from: 0,
            to,
            channel,
            bytes: 0,
            packets: 0,
            busy_fraction,
            stall_fraction: 0.0,
        };
        let links = [load(1, 0, 0.25), load(1, 1, 0.5), load(2, 0, 0.625)];
        assert_eq!(busiest(&links), 0.75);
        assert_eq!(busiest(&[]), 0.0);
    }
}
