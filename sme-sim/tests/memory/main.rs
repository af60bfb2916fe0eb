//! Memory that is cached and not coherent between nodes, against oracles that know no machine: what
//! a node's threads see of each other (x86-TSO), what nodes see of each other and what is left at
//! home (a plain model of the caches of each node), and race-free programs, which must not notice
//! any of it.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod machines;
mod one_at_a_time;
mod race_free;
mod serial_write_back;
mod tso;
mod tso_oracle;
mod waits;
mod within;
