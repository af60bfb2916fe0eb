//! The memory that nodes of a machine share, in the terms of the algorithms' crate.

use sme_barrier::Homes;
use sme_sim::machine::Shape;

/// The memory that `nodes` nodes of a machine share.
pub fn homes(shape: &Shape, nodes: u32) -> Homes {
    match shape.pool_devices {
        0 => Homes::Own,
        devices => Homes::Pool {
            first: nodes,
            nodes: devices,
        },
    }
}
