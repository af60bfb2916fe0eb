//! The influence of the number of devices of a pool: the same barrier over more of them.

use std::error::Error;
use std::sync::Arc;

use sme::experiment::Observe;
use sme::sim::machine::Machine;

use super::{Contender, run};

const MACHINE: &str = "cxl-pool";
const HOSTS: [u32; 3] = [16, 32, 64];
const DEVICES: [&str; 6] = ["1", "2", "4", "8", "16", "32"];

/// The table, as Markdown.
pub fn table(contender: &Contender) -> Result<String, Box<dyn Error>> {
    let machine = Machine::builtin(MACHINE)?;
    let mut text = format!(
        "`{MACHINE}`: {} barrier, one thread each, over as many devices [us]\n\n| hosts | {} |\n|---:|{}\n",
        contender.name,
        DEVICES.join(" | "),
        "---:|".repeat(DEVICES.len())
    );
    for hosts in HOSTS {
        text += &format!("| {hosts} ");
        for devices in DEVICES {
            let machine = Arc::new(machine.with(&[("pool.devices", devices)])?);
            let outcome = run(&machine, contender, (hosts, 1), &Observe::default())?;
            text += &format!("| {:.2} ", outcome.mean_us());
        }
        text += "|\n";
    }
    Ok(text)
}
