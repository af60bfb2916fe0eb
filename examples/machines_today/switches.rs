//! The cost of a switch: single operations with a switch of several delays on the way, and without
//! one.

use std::error::Error;

use sme::latency::budget::{Budget, Operation, budgets, distances};
use sme::sim::machine::Machine;
use sme::sim::observe::path::Part;
use sme::sim::parts::fabric::Topology;

/// A machine, and the delays that its switch is given [ns].
const SWITCHES: [(&str, &[u32]); 2] = [
    ("cxl-pool", &[0, 35, 70, 105, 140, 175, 210]),
    ("ualink", &[150, 200, 250]),
];

/// Operations that a switch is on the way of.
const OPERATIONS: [Operation; 3] = [
    Operation::RemoteLoad,
    Operation::LineFill,
    Operation::StoreVisible,
];

/// The tables, as Markdown.
pub fn tables() -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    for (name, delays) in SWITCHES {
        let machine = Machine::builtin(name)?;
        let direct = direct(&machine)?;
        text += &format!(
            "`{name}`: one operation on an idle machine [ns], and over that without a switch\n\n"
        );
        text += "| switch, one way | load | line fill | store until it is seen | of a line fill: switch | link |\n";
        text += "|---|---:|---:|---:|---:|---:|\n";
        text += &row("none: a link in its place", &direct, &direct);
        for delay in delays {
            let set = format!("{delay}ns");
            let switched = switched(&machine.with(&[("fabric.switch", &set)])?)?;
            text += &row(&format!("{delay} ns"), &switched, &direct);
        }
        text += "\n";
    }
    Ok(text)
}

/// The budgets of a machine of two nodes, or one and a device, which a link joins. Of nodes without
/// a pool the second thread is at the other end; of a pool there is none.
fn direct(machine: &Machine) -> Result<Vec<Budget>, Box<dyn Error>> {
    match machine.shape().pool_devices {
        0 => of(machine, "mesh:2x1", 2),
        _ => of(&machine.with(&[("pool.devices", "1")])?, "mesh:2x1", 1),
    }
}

/// The same with a switch between them.
fn switched(machine: &Machine) -> Result<Vec<Budget>, Box<dyn Error>> {
    let topology = machine.shape().topology(2).to_string();
    of(machine, &topology, 2)
}

fn of(machine: &Machine, topology: &str, nodes: u32) -> Result<Vec<Budget>, Box<dyn Error>> {
    let topology: Topology = topology.parse()?;
    let homes = distances(&topology, machine.shape().homes(nodes));
    let farthest = &homes[homes.len() - 1..];
    Ok(budgets(machine, (&topology, nodes), farthest)?)
}

fn row(name: &str, budgets: &[Budget], direct: &[Budget]) -> String {
    let find = |budgets: &[Budget], operation| {
        let is_it = |of: &&Budget| of.operation == operation && of.home.is_some();
        budgets.iter().find(is_it).cloned()
    };
    let mut cells = vec![name.to_owned()];
    for operation in OPERATIONS {
        let over = find(direct, operation).map(|of| of.total.as_ns());
        cells.push(match (find(budgets, operation), over) {
            (None, _) => "-".to_owned(),
            (Some(of), None) => format!("{:.0}", of.total.as_ns()),
            (Some(of), Some(over)) => {
                format!("{:.0} ({:.2})", of.total.as_ns(), of.total.as_ns() / over)
            }
        });
    }
    for part in [Part::Switch, Part::Link] {
        let fill = find(budgets, Operation::LineFill);
        cells.push(fill.map_or_else(
            || "-".to_owned(),
            |of| format!("{:.0}", of.parts[part as usize].as_ns()),
        ));
    }
    format!("| {} |\n", cells.join(" | "))
}
