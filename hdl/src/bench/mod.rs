//! Every block with its cycle model and its traffic: what the lockstep runs.
//!
//! The sizes of a block are those that a seed chooses, so that many are tried, or those that it has
//! in a machine's engine ([`Bench::of`]): what becomes hardware.

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
mod site;
mod skid_buffer;
mod source;
mod switch;
mod tags;

pub use engine::{ENGINE, engine_of};
pub use site::EngineSite;

use crate::lockstep::Pair;

/// A block under test.
#[derive(Debug)]
pub struct Bench {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description of the block, in one line.
    pub what: &'static str,
    /// Broken variants of its RTL, by what is wrong in them.
    pub faults: &'static [&'static str],
    /// RTL, model and traffic; `seed` also chooses sizes and loads, `fault` one of the broken
    /// variants.
    pub build: fn(seed: u64, fault: Option<&str>) -> Pair,
    /// The same of the sizes that it has in an engine, before any traffic.
    of: fn(&EngineSite, fault: Option<&str>) -> Pair,
}

impl Bench {
    /// RTL, model and traffic of the block as it stands in the engine of `site`.
    pub fn of(&self, site: &EngineSite) -> Pair {
        let pair = (self.of)(site, None);
        // The engine's own part, not another one built in the same way.
        match site.engine().into_part(self.name) {
            Some(rtl) => Pair { rtl, ..pair },
            None => pair,
        }
    }
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
