//! The machines, simulated: time, execution, parts, observation, and the families of machines.
//!
//! * [`time`]: integer time and clock domains.
//! * [`kernel`]: how simulated time passes. Windows, event order, simulated threads. It knows
//!   no machine.
//! * [`parts`]: what machines are made of. It knows no family.
//! * [`observe`]: what is seen of a run from outside. It knows no family.
//! * [`machine`]: machine files (TOML) with units and provenance; what a family must provide.
//! * [`families`]: the machines themselves, a folder each.

pub mod families;
pub mod kernel;
pub mod machine;
pub mod observe;
pub mod parts;
pub mod time;
