//! The barriers on a memory that reorders all that the contract lets it reorder, under a scheduler
//! that runs threads in any order: an executor independent of the simulator's and of real threads.
#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]

mod broken;
mod checker;
mod episodes;
#[path = "../faulty/mod.rs"]
mod faulty;
mod memory;
mod node_tree;
mod size;
mod traffic;
