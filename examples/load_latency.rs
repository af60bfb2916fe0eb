//! How long an uncached load takes, in one's own memory behind the engine and in a neighbour's.
//!
//! `cargo run --release --example load_latency`

use sme::latency::remote_load_latency;
use sme_sim::machine::Machine;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in ["sme-prototype", "sme-asic"] {
        let machine = Machine::load(name)?;
        let loopback = remote_load_latency(&machine, true)?;
        let neighbour = remote_load_latency(&machine, false)?;
        println!("{name}: loopback {loopback}, neighbour {neighbour}");
    }
    Ok(())
}
