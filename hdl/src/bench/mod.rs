//! Every block with its cycle model and its traffic: what the lockstep runs.

mod completer;
mod crossbar;
mod engine;
mod fifo;
mod ht_port;
mod late_fifo;
mod link_port;
mod miswired;
mod ping_pong;
mod ported;
mod requester;
mod responder;
mod router;
mod skid_buffer;
mod source;
mod switch;
mod tags;

pub use engine::{ENGINE, of as engine_of};

use crate::lockstep::Pair;

/// A block under test.
#[derive(Debug)]
pub struct Bench {
    /// Its name on the command line.
    pub name: &'static str,
    /// Broken variants of its RTL, by what is wrong in them.
    pub faults: &'static [&'static str],
    /// RTL, model and traffic; `seed` also chooses sizes and loads, `fault` one of the broken
    /// variants.
    pub build: fn(seed: u64, fault: Option<&str>) -> Pair,
}

/// All of them, the leaves first.
pub const BENCHES: &[Bench] = &[
    fifo::BENCH,
    late_fifo::BENCH,
    ping_pong::BENCH,
    skid_buffer::BENCH,
    crossbar::BENCH,
    link_port::BENCH,
    tags::BENCH,
    completer::BENCH,
    responder::BENCH,
    router::BENCH,
    switch::BENCH,
    ht_port::BENCH,
    requester::BENCH,
    engine::BENCH,
];

/// The block of this name.
pub fn find(name: &str) -> Option<&'static Bench> {
    BENCHES.iter().find(|bench| bench.name == name)
}

#[cfg(test)]
mod tests;
