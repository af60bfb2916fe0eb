//! Machine files: what a simulated machine consists of, with units and provenance.
//!
//! A [`Machine`] comes from a TOML file, built in or the user's. Every constant is a line
//!
//! ```toml
//! clock = { value = "156 MHz", source = "published", where = "Fröning et al., Sec. IV-C" }
//! ```
//!
//! The simulation reads the typed description ([`ClusterSpec`]); the command line shows the
//! constants with where they come from, and overrides them.
//!
//! * `quantity`, `quantity_error`: numbers with units, exact, and what is wrong with others.
//! * `document`: the file as TOML, with lines for the messages.
//! * `reader`: declared constants, read from a document.
//! * `cluster`, `cluster_constants`: the family `sme-cluster`, its types and its declarations.
//! * `file`: loading, overriding, identifying and showing a machine.

mod document;
mod file;
pub(crate) mod quantity;
mod quantity_error;
pub(crate) mod reader;
mod words;

pub use document::Source;
pub use file::{Builtin, Family, Machine, MachineError};
pub use quantity::{Dimension, Limits};
pub use quantity_error::QuantityError;
pub use reader::{Constant, Domain};
