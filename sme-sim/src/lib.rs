//! The machine, simulated: time, execution, nodes, caches, engine, fabric and their description.
//!
//! * [`time`]: integer time and clock domains.
//! * [`kernel`]: how simulated time passes. Windows, event order, simulated threads. It knows
//!   no machine.
//! * [`machine`]: machine files (TOML) with units and provenance.
//! * [`fabric`]: topologies and routing.
//! * [`engine`]: the Shared Memory Engine, block by block, cycle by cycle.
//! * [`cache`]: the private caches of a core, with the bytes they hold.
//! * [`staleness`]: which loads of a run returned stale data, and which flush was missing.
//! * [`cluster`]: a node of cores, caches, host link and engine, and a cluster of them.
//! * [`traffic`]: the fabric under synthetic traffic, latency over offered load.

pub mod cache;
pub mod cluster;
pub mod engine;
pub mod fabric;
mod inline;
pub mod kernel;
pub mod machine;
mod prefetch;
pub mod staleness;
mod tables;
pub mod time;
pub mod traffic;
