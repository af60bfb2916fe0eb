//! What the blocks are made of and Verilog has by itself: registers, memories, parts of words.
//!
//! These are the only modules whose Verilog is written by hand; the lockstep with Verilator holds
//! it against what the simulation does.

pub mod buffers;
mod displace;
mod divide;
mod lowest_bit;
mod lut_ram;
mod part;
mod register;

pub use buffers::Buffers;
pub use displace::Displace;
pub use divide::Divide;
pub use lowest_bit::LowestBit;
pub use lut_ram::LutRam;
pub use part::Part;
pub use register::Register;
