//! The calls of every rank as a file, CSV.
//!
//! Called by `sme mpi`. Times are nanoseconds, exact to the picosecond.

use sme_sim::observe::calls::ThreadCall;

use super::output::Output;
use super::row::{Cell, csv_record};
use super::stop::Stop;

/// Writes `calls`, each with its rank, to `output`, which then appears.
pub fn write_calls(mut output: Output, calls: &[(u32, ThreadCall)]) -> Result<(), Stop> {
    output.push("rank,call,begin_ns,end_ns,peer,bytes\n")?;
    for (rank, ended) in calls {
        let call = ended.call;
        let count = |count: u64| Cell::Count(count);
        let cells = [
            Cell::Count((*rank).into()),
            Cell::text(call.name),
            Cell::nanos(ended.begin),
            Cell::nanos(ended.end),
            call.peer().map_or(Cell::Absent, |peer| count(peer.into())),
            Some(call.bytes)
                .filter(|&bytes| bytes > 0)
                .map_or(Cell::Absent, count),
        ];
        output.push(&(csv_record(cells.iter().map(Cell::to_text)) + "\n"))?;
    }
    output.commit()
}
