//! The program and its library as users meet them: one test binary, since each would link the whole
//! simulator. Runs of several processes stand apart in `tests/mpi.rs`, for they need a feature.

// What fails here fails the test.
#![allow(clippy::unwrap_used)]

mod command;

mod choice;
mod cli;
mod cli_flags;
mod clocks;
mod coherence;
mod coherence_curves;
mod coherence_model;
mod coherent;
#[cfg(target_os = "linux")]
mod colours;
mod columns;
mod conformance;
mod constants;
mod deadlocks;
mod deaths;
#[cfg(target_os = "linux")]
mod differential;
mod documents;
#[cfg(target_os = "linux")]
mod ends;
mod engines;
mod estimators;
mod examples;
mod explain;
mod exploration;
mod extrapolate;
mod files;
mod front_door;
mod golden;
mod help;
mod hpl;
mod ideal;
mod insight;
mod latency;
mod lending;
mod lines;
mod litmus;
mod locks;
mod malleable;
mod messages;
mod mppa;
mod mppaipc;
mod nas;
mod network;
mod noise;
mod page;
mod physics;
mod plot;
mod processes;
mod programs;
mod rooms;
mod rtl;
mod run;
mod simulated;
mod stale_list;
#[cfg(target_os = "linux")]
mod terminal;
mod timeline;
mod today;
mod together;
mod topologies;
#[cfg(target_os = "linux")]
mod unmodified;
mod validate;
mod waves;
mod ways;
mod width;
mod worlds;
