//! The FIFO whose data comes a cycle after its write against the cycle model's, with the
//! [FIFO](super::fifo)'s traffic.

use rust_hdl::prelude::Constant;

use super::fifo::against_model;
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::late_fifo::LateFifo;
use crate::blocks::primitive::Register;
use crate::lockstep::Pair;

pub(super) const BENCH: Bench = Bench {
    name: "late_fifo",
    what: "a FIFO of two places whose data comes a cycle after it is written",
    faults: &[
        "one place less",
        "full after reset",
        "not empty after reset",
        "the first packet is not new",
    ],
    build,
    of,
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

fn of(_: &EngineSite, fault: Option<&str>) -> Pair {
    Pair {
        sizes: "2 places of 160 bits (in the engine, for the switch's readers)".to_owned(),
        ..build(0, fault)
    }
}
