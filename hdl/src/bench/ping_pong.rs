//! The FIFO of two places in a memory against the cycle model's, with the [FIFO](super::fifo)'s
//! traffic.

use rust_hdl::prelude::Constant;

use super::Bench;
use super::fifo::against_model;
use crate::beat::PacketBeat;
use crate::blocks::ping_pong::PingPong;
use crate::blocks::primitive::Register;
use crate::lockstep::Pair;

pub(super) const BENCH: Bench = Bench {
    name: "ping_pong",
    faults: &[
        "one place less",
        "full after reset",
        "not empty after reset",
    ],
    build,
};

fn build(_: u64, fault: Option<&str>) -> Pair {
    let mut rtl = PingPong::<PacketBeat>::default();
    match fault {
        Some("one place less") => rtl.two = Constant::new(false),
        Some("full after reset") => rtl.not_full = Register::new(false),
        Some("not empty after reset") => rtl.not_empty = Register::new(true),
        _ => (),
    }
    against_model(rtl, 2, false)
}
