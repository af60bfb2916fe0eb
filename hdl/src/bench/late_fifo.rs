//! The FIFO whose data comes a cycle after its write against the cycle model's, with the
//! [FIFO](super::fifo)'s traffic.

use rust_hdl::prelude::Constant;

use super::Bench;
use super::fifo::against_model;
use crate::beat::PacketBeat;
use crate::blocks::late_fifo::LateFifo;
use crate::blocks::primitive::Register;
use crate::lockstep::Pair;

pub(super) const BENCH: Bench = Bench {
    name: "late_fifo",
    faults: &[
        "one place less",
        "full after reset",
        "not empty after reset",
        "the first packet is not new",
    ],
    build,
};

fn build(_: u64, fault: Option<&str>) -> Pair {
    let mut rtl = LateFifo::<PacketBeat>::default();
    match fault {
        Some("one place less") => rtl.two = Constant::new(false),
        Some("full after reset") => rtl.not_full = Register::new(false),
        Some("not empty after reset") => rtl.not_empty = Register::new(true),
        Some("the first packet is not new") => rtl.comes = Register::new(true),
        _ => (),
    }
    against_model(rtl, 2, true)
}
