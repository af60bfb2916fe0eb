//! The FIFO of two places in registers against the cycle model's, with the [FIFO](super::fifo)'s
//! traffic.

use rust_hdl::prelude::Constant;

use super::fifo::against_model;
use super::{Bench, EngineSite};
use crate::beat::PacketBeat;
use crate::blocks::primitive::Register;
use crate::blocks::skid_buffer::SkidBuffer;
use crate::lockstep::Pair;

pub(super) const BENCH: Bench = Bench {
    name: "skid_buffer",
    what: "a FIFO of two places whose outputs are all registers, the data too",
    faults: &[
        "one place less",
        "full after reset",
        "not empty after reset",
    ],
    build,
    of,
};

fn build(_: u64, fault: Option<&str>) -> Pair {
    let mut rtl = SkidBuffer::<PacketBeat>::default();
    match fault {
        Some("one place less") => rtl.two = Constant::new(false),
        Some("full after reset") => rtl.not_full = Register::new(false),
        Some("not empty after reset") => rtl.not_empty = Register::new(true),
        _ => (),
    }
    against_model(rtl, 2, false)
}

fn of(_: &EngineSite, fault: Option<&str>) -> Pair {
    Pair {
        sizes: "2 places of 160 bits (in the engine, for responses in the requester)".to_owned(),
        ..build(0, fault)
    }
}
