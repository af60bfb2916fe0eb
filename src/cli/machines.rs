//! `sme machines list` and `sme machines show`: which machines there are, and every constant of
//! one with its unit and where it comes from.
//!
//! Called by [`super::main`]; the machines are those of `sme_sim::machine`.

use clap::Subcommand;
use sme_sim::machine::Machine;

use super::args;
use super::flags::{FileFlags, Heading, MachineFlags};
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::Cell;
use crate::report::stop::Stop;
use crate::report::table;

/// The subcommands of `sme machines`.
#[derive(Subcommand, Clone, Debug)]
pub enum MachinesCommand {
    /// The built-in machines: name, hash, nodes' cores, what they are
    List {
        /// In which format, and where
        #[command(flatten)]
        output: FileFlags,
    },
    /// Every constant of a machine, its unit, and where it comes from
    Show {
        /// Built-in machine, or a file
        #[arg(value_name = "NAME|FILE.toml", default_value = "sme-prototype")]
        machine: String,
        /// Override a constant, with its unit; may be repeated
        #[arg(long, value_name = "SECTION.KEY=VALUE")]
        set: Vec<String>,
        /// In which format, and where
        #[command(flatten)]
        output: FileFlags,
    },
}

/// The machines to be shown, read and checked.
#[derive(Debug)]
pub enum Machines {
    /// The machines there are.
    List(Vec<Machine>, FileFlags),
    /// The constants of one.
    Show(Box<Machine>, FileFlags),
}

impl Machines {
    /// Loads what is asked for.
    pub fn read(command: MachinesCommand) -> Result<Self, Stop> {
        match command {
            MachinesCommand::List { output } => {
                let load = |builtin: &sme_sim::machine::Builtin| {
                    Machine::builtin(builtin.name).map_err(|error| Stop::flag("machines", error))
                };
                let machines: Result<Vec<_>, _> = Machine::builtins().iter().map(load).collect();
                Ok(Self::List(machines?, output))
            }
            MachinesCommand::Show {
                machine,
                set,
                output,
            } => {
                let machine =
                    args::machine_of("machines show", &MachineFlags { name: machine, set })?;
                Ok(Self::Show(Box::new(machine), output))
            }
        }
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        match self {
            Self::List(_, flags) => flags.heading(&LIST, false),
            Self::Show(_, flags) => flags.heading(&SHOW, false),
        }
    }

    /// Writes it.
    pub fn run(&self) -> Result<(), Stop> {
        let (flags, text) = match self {
            Self::List(machines, flags) => {
                let rows: Vec<_> = machines.iter().map(summary).collect();
                let text = match flags.format() {
                    Format::Table if flags.columns.is_none() => {
                        table::folded(&LIST.map(String::from), &rows, flags.width())
                    }
                    _ => flags.rendered(&LIST, &rows)?,
                };
                (flags, text)
            }
            Self::Show(machine, flags)
                if flags.format() == Format::Table && flags.columns.is_none() =>
            {
                (flags, machine.show())
            }
            Self::Show(machine, flags) => (flags, flags.rendered(&SHOW, &constants(machine))?),
        };
        let mut output = Output::file_or_stdout(flags.output.as_deref())?;
        output.push(&text)?;
        output.commit()
    }
}

/// The keys of the rows of machines.
const LIST: [&str; 4] = ["machine", "machine_hash", "cores_per_node", "description"];

/// The keys of the rows of constants.
const SHOW: [&str; 8] = [
    "machine",
    "machine_hash",
    "constant",
    "value",
    "source",
    "where",
    "fitted_to",
    "meaning",
];

fn summary(machine: &Machine) -> Vec<Cell> {
    vec![
        Cell::text(machine.name()),
        Cell::text(machine.hash()),
        Cell::Count(args::cores_per_node(machine).into()),
        Cell::text(machine.description()),
    ]
}

fn constants(machine: &Machine) -> Vec<Vec<Cell>> {
    let row = |constant: &sme_sim::machine::Constant| {
        vec![
            Cell::text(machine.name()),
            Cell::text(machine.hash()),
            Cell::text(constant.name()),
            Cell::text(&constant.value),
            Cell::text(constant.source.name()),
            Cell::text(&constant.reason),
            Cell::text(constant.fitted_to.join(" ")),
            Cell::text(constant.meaning),
        ]
    };
    machine.constants().iter().map(row).collect()
}
