//! Small programs on whole clusters: what goes wrong is named, and who sees what in which order.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod budgets;
mod cached;
mod deadlocks;
mod faults;
mod options;
mod order;
mod programs;
mod stale;
mod stale_reads;
mod wide;
