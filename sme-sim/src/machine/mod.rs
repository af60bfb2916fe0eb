//! Machine files: what a simulated machine consists of, with units and provenance.
//!
//! A [`Machine`] comes from a TOML file, built in or the user's. Every constant is a line
//!
//! ```toml
//! clock = { value = "156 MHz", source = "published", where = "Fröning et al., Sec. IV-C" }
//! ```
//!
//! The command line shows the constants with where they come from, and overrides them. The
//! machine's family reads them into its own typed description, and builds from it what programs run
//! on.
//!
//! * [`family`]: what a family must provide, and what runs of any machine have in common.
//! * [`node`]: a node as threads and the hardware that performs what they ask for.
//! * [`nodes`]: a machine as nodes with programs on them: what runs and watches them.
//! * [`shape`]: the numbers that every machine has; what a run is built from.
//! * `explained`: the report of a deadlock, completed by a second run.
//! * `quantity`, `quantity_error`: numbers with units, exact, and what is wrong with others.
//! * `document`: the file as TOML, with lines for the messages.
//! * `reader`: declared constants, read from a document.
//! * `processes`: the costs of a process manager.
//! * `system`: the constants of the operating system that families declare alike.
//! * `file`: loading, overriding, identifying and showing a machine.
//! * `catalog`: the machines and families that are part of the program.

mod catalog;
mod document;
mod explained;
pub mod family;
mod file;
pub mod node;
pub mod nodes;
pub(crate) mod processes;
pub(crate) mod quantity;
mod quantity_error;
pub(crate) mod reader;
pub mod shape;
pub(crate) mod system;
mod words;

pub use catalog::Builtin;
pub use document::Source;
pub use explained::explained;
pub use family::{CannotBuild, Family, Readable, System};
pub use file::{Machine, MachineError, declared, family_names};
pub use quantity::{Dimension, Limits};
pub use quantity_error::QuantityError;
pub use reader::{Constant, ValueDomain};
pub use shape::{Coherence, Footprint, Pinning, Setup, Shape, Software};
