//! What the blocks are made of and Verilog has by itself: registers and memories.
//!
//! These are the only modules whose Verilog is written by hand; the lockstep with Verilator holds
//! it against what the simulation does.

mod lut_ram;
mod register;

pub use lut_ram::LutRam;
pub use register::Register;
