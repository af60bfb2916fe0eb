//! `--host` of `sme coherence transfer` and `compare`: transfers measured on this computer.

use super::host::{self, Host, stopped};
use crate::cli::memory;
use crate::coherence::measure::cpus::Cpus;
use crate::coherence::measure::transfer::{HostTransfers, Report, Timed, measure};
use crate::coherence::transfer::Transfer;
use crate::coherence::transition::CoreDistance;
use crate::progress;
use crate::report::row::Cell;
use crate::report::stop::{Stop, to_stderr};

/// Measures `transfers`, all of one placement, between two CPUs of `host`. Returns the name, hash
/// and overrides of the machine, each transfer that was not dropped, and its time (ns), in their
/// order.
pub(super) fn rows(
    host: &Host,
    transfers: &[Transfer],
) -> Result<Vec<([Cell; 3], Transfer, f64)>, Stop> {
    let first = transfers.first();
    let plan = HostTransfers {
        cpus: host.cpus()?,
        placement: first.map_or(CoreDistance::Socket, |transfer| transfer.placement),
        transfers: transfers.to_vec(),
    };
    let pair = plan.check().map_err(stopped)?;
    let sizes = transfers.iter().map(|transfer| transfer.message_bytes);
    memory::enough(
        &format!("--sizes {}", sizes.max().unwrap_or_default()),
        plan.bytes(),
        memory::available(),
    )?;
    begun(&pair);
    let watch = progress::on_stderr();
    let report = measure(&plan, watch.as_ref()).map_err(stopped)?;
    told(&report, &pair);
    if report.rows.is_empty() {
        return Err(Stop::Failed("nothing was measured".into()));
    }
    // A hash and overrides are those of a machine file.
    let machine = [Cell::text(host.name()), Cell::Absent, Cell::Absent];
    let row = |timed: Timed| (machine.clone(), timed.transfer, timed.ns);
    Ok(report.rows.into_iter().map(row).collect())
}

/// Says on stderr which CPUs are used.
fn begun(pair: &Cpus) {
    let first = pair.measuring;
    for &other in &pair.holders {
        to_stderr(&format!(
            "CPU {} is timed; CPU {} answers ({})\n",
            first.id,
            other.id,
            host::place(first, other)
        ));
    }
    host::warn_if_unoptimized();
}

/// Says on stderr what the rows do not.
fn told(report: &Report, pair: &Cpus) {
    host::tell_round_trips(pair.measuring, &report.round_trips);
    for (transfer, reason) in &report.dropped {
        let bytes = transfer.message_bytes;
        to_stderr(&format!("dropped: messages of {bytes} bytes: {reason}\n"));
    }
}
