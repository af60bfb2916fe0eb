//! The primitives of the blocks that Verilog has by itself: registers, memories, parts of words.
//!
//! These and the [CRC](super::crc) are the only modules whose Verilog is written by hand; the
//! lockstep with Verilator holds it against what the simulation does.

mod below;
pub mod buffers;
mod channel_in_turn;
mod displace;
mod divide;
mod in_turn;
mod kept;
mod lower;
mod lowest_in_groups;
mod lut_ram;
mod one_hot;
mod part;
mod register;
mod same_parts;
mod stages;

pub use below::Below;
pub use buffers::Buffers;
pub use channel_in_turn::ChannelInTurn;
pub use displace::Displace;
pub use divide::Divide;
pub use in_turn::InTurn;
pub use kept::Kept;
pub use lower::Lower;
pub use lowest_in_groups::LowestInGroups;
pub use lut_ram::LutRam;
pub use one_hot::OneHot;
pub use part::Part;
pub use register::Register;
pub use same_parts::SameParts;
pub use stages::Stages;

/// In Verilog: the net `name` with this value, which synthesis keeps as it is. Declared and
/// assigned apart: iverilog warns of what is said of a net that has its value at once.
fn net_to_keep(name: &str, value: &str) -> String {
    format!("(* keep *) wire {name};\nassign {name} = {value};\n")
}
