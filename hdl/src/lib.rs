//! The Shared Memory Engine in RTL (rust-hdl), block by block, in lockstep with its cycle model.

pub mod beat;
pub mod bench;
pub mod device;
pub mod fifo;
pub mod lockstep;
pub mod primitive;
pub mod value;

use device::Wire;
use fifo::Fifo;
use rust_hdl::prelude::*;

pins!([T: Wire, const A: usize, const C: usize] Fifo<T, A, C> {
    in: write, write_data, read;
    out: ready, valid, data
});
