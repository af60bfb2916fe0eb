//! The Shared Memory Engine in RTL (rust-hdl), block by block, in lockstep with its cycle model.

pub mod beat;
pub mod bench;
pub mod blocks;
pub mod device;
mod engine_pins;
pub mod lockstep;
pub mod netlist;
pub mod rtl_engine;
pub mod synthesis;
pub mod tool;
mod traces;
pub mod value;
pub mod verilated;
pub mod verilog;
