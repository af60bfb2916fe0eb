//! The FIFO whose data comes a cycle after its write against the cycle model's, with the
//! [FIFO](super::fifo)'s traffic.

use super::Bench;
use super::fifo::against_model;
use crate::beat::PacketBeat;
use crate::blocks::late_fifo::LateFifo;
use crate::blocks::primitive::Register;
use crate::lockstep::Pair;

type Rtl = LateFifo<PacketBeat, 3, 4>;

pub(super) const BENCH: Bench = Bench {
    name: "late_fifo",
    faults: &[
        "one place more",
        "one place less",
        "the first packet is not new",
    ],
    build,
};

fn build(seed: u64, fault: Option<&str>) -> Pair {
    let depth = 2 + (seed % 6) as u16;
    let mut rtl = Rtl::new(usize::from(match fault {
        Some("one place more") => depth + 1,
        Some("one place less") => depth - 1,
        _ => depth,
    }));
    if fault == Some("the first packet is not new") {
        rtl.comes = Register::new(true);
    }
    against_model(rtl, depth, true)
}
