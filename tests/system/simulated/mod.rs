//! The barriers on simulated clusters: they hold at any shape; those that are broken are
//! found; and nothing depends on the host.

mod broken;
mod case;
mod determinism;
#[path = "../../../barrier/tests/faulty/mod.rs"]
mod faulty;
mod promise;
mod wide;
