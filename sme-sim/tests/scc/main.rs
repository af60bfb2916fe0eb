//! The Intel SCC as a machine: what its parts do, and programs on it against a plain model.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod blocks;
mod chip;
mod clocks;
mod parts;
mod programs;
mod waits;
