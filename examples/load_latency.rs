//! The time of an uncached load, in one's own memory behind the engine and in a neighbour's.
//!
//! `cargo run --release --example load_latency`

use std::error::Error;
use std::process::ExitCode;

use sme::latency::remote_load_latency;
use sme::prelude::*;

fn latencies() -> Result<(), Box<dyn Error>> {
    for name in ["sme-prototype", "sme-asic"] {
        let machine = Machine::load(name)?;
        let loopback = remote_load_latency(&machine, true)?;
        let neighbour = remote_load_latency(&machine, false)?;
        println!("{name}: loopback {loopback}, neighbour {neighbour}");
    }
    Ok(())
}

fn main() -> ExitCode {
    exit_code(latencies())
}
