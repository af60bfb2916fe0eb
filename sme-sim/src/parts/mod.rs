//! The parts of which machines are made. A part knows no family: it is given what it needs to know
//! of the machine when it is made.
//!
//! * [`address`]: the trait of address spaces; [`global`]: the simplest one.
//! * [`cache`]: the private caches of a core, with the bytes they hold.
//! * [`coherence`]: protocols of coherent caches, as tables.
//! * [`contract`]: what a program can ask of its machine.
//! * [`core_set`]: sets of a node's cores.
//! * [`fabric`]: topologies and routing.
//! * [`mod@line`]: a line of memory and its copies, byte by byte.
//! * [`line_size`]: how long a line is.
//! * [`link`]: one direction of a link with credits.
//! * [`memory`]: the memory of a node.
//! * [`noise`]: what the operating system takes of a core.
//! * [`os`]: threads that sleep, and threads that share cores.
//! * [`store_buffer`]: stores that have not left their core.
//! * [`inline`], [`tables`]: containers for what a large machine has as often as nodes.

pub mod address;
pub mod cache;
pub mod coherence;
pub mod contract;
pub mod core_set;
pub mod fabric;
pub mod global;
pub mod inline;
pub mod line;
pub mod line_size;
pub mod link;
pub mod memory;
pub mod noise;
pub mod os;
pub mod store_buffer;
pub mod tables;
