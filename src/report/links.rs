//! The load of every link and virtual channel as a file, CSV.
//!
//! Called by the commands that have `--link-load`.

use sme_sim::observe::traffic::LinkLoad;

use super::output::Output;
use super::stop::Stop;

/// Writes `links` to `output`, which then appears.
pub fn write_link_load(mut output: Output, links: &[LinkLoad]) -> Result<(), Stop> {
    output.push("from,to,channel,bytes,packets,busy_fraction,stall_fraction\n")?;
    for link in links {
        output.push(&format!(
            "{},{},{},{},{},{:.6},{:.6}\n",
            link.from,
            link.to,
            link.channel,
            link.bytes,
            link.packets,
            link.busy_fraction,
            link.stall_fraction
        ))?;
    }
    output.commit()
}
