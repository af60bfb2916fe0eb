//! The table of source tags against the cycle model's.

use rand_core::Rng;
use rust_hdl::prelude::Constant;
use sme_sim::families::sme::engine::tags::Tags;

use super::ported::{ModelBlock, Ported};
use super::source::{below, chance};
use super::{Bench, EngineSite};
use crate::blocks::primitive::{Register, Stages};
use crate::blocks::tags::TagTable;
use crate::device::Clocked;
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "tags",
    what: "the table of source tags: which reads are under way, and whose they are",
    faults: &[
        "one tag more",
        "one tag less",
        "tag 0 in use after reset",
        "the tag above is freed",
        "the tag above returns",
        "a tag returns after reset that was not taken",
        "a freed tag can be taken at once",
        "a freed tag can be taken a cycle too late",
        "tag 1 is forgotten",
        "four tags are forgotten",
        "tags that do not exist are found in use",
        "numbers without their second bit",
    ],
    build,
    of,
};

/// Tables of these sizes take turns.
const SIZES: [u32; 5] = [8, 32, 1, 17, 31];

fn build(seed: u64, fault: Option<&str>) -> Pair {
    pair::<25>(SIZES[(seed % 5) as usize], fault)
}

/// A table of `count` tags with `W` bits each, and the cycle model's.
fn pair<const W: usize>(count: u32, fault: Option<&str>) -> Pair {
    let mut rtl = TagTable::<W>::new(match fault {
        Some("one tag more") => count + 1,
        Some("one tag less") => count - 1,
        _ => count,
    });
    let all = u64::from(u32::MAX >> (32 - count));
    match fault {
        Some("tag 0 in use after reset") => {
            rtl.unused = Register::new((all & !1).into());
        }
        Some("the tag above is freed") => rtl.looked_up._zero = 2,
        Some("the tag above returns") => rtl.returning_one._zero = 2,
        Some("a tag returns after reset that was not taken") => {
            rtl.is_returning = Stages::new(1, true);
        }
        Some("a freed tag can be taken at once") => returns_after(&mut rtl, 0),
        Some("a freed tag can be taken a cycle too late") => returns_after(&mut rtl, 2),
        Some("tag 1 is forgotten") => rtl.rest = Register::new((all & !3).into()),
        Some("four tags are forgotten") => rtl.groups = Register::new(0xfd.into()),
        Some("tags that do not exist are found in use") => {
            rtl.all = Constant::new(u64::from(u32::MAX).into())
        }
        Some("numbers without their second bit") => rtl.second._mask = 29,
        _ => (),
    }
    let rtl = Clocked::new(rtl);
    let model = Model {
        tags: Tags::new(count),
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: Box::new(rtl),
        model: Box::new(model),
        traffic: Box::new(Load {
            count,
            context_bits: W,
            ..Load::default()
        }),
        sizes: format!("{count} tags"),
    }
}

/// The requester's: under each tag the host's.
fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    let count = site.spec.engine.tags;
    Pair {
        sizes: format!("{count} tags, 5 bits with each (in the engine, of the requester)"),
        ..pair::<5>(count, fault)
    }
}

/// Lets a freed tag go through `count` registers before the search for the lowest.
fn returns_after<const W: usize>(rtl: &mut TagTable<W>, count: usize) {
    rtl.returning = Stages::new(count, 0.into());
    rtl.is_returning = Stages::new(count, false);
}

/// Ports: allocate, new_context, lookup, free; available, lowest, used, found, returns.
struct Model {
    tags: Tags<u64>,
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let [allocate, context, lookup, free] = [0, 1, 2, 3].map(|port| inputs[port].low());
        let tag = lookup as u8;
        let returns = self.tags.latch();
        let lowest = self.tags.lowest_free();
        let found = self.tags.context(tag).copied();
        outputs.clear();
        outputs.push(lowest.is_some().into());
        outputs.push(u64::from(lowest.unwrap_or(0)).into());
        outputs.push(found.is_some().into());
        outputs.push(found.unwrap_or(0).into());
        outputs.push(returns.into());
        if allocate == 1 {
            self.tags.allocate(context);
        }
        if free == 1 && found.is_some() {
            self.tags.free(tag);
        }
    }
}

/// Now more tags are taken than given back, now the other way round; some are given back twice,
/// and some do not exist.
#[derive(Default)]
struct Load {
    count: u32,
    context_bits: usize,
    allocations: u32,
    frees: u32,
    allocates: bool,
    allocated: u64,
}

impl Traffic for Load {
    fn inputs(&mut self, random: &mut Random, outputs: &[Value], inputs: &mut Vec<Value>) {
        if self.allocates && outputs.first().is_some_and(|available| available.bit(0)) {
            self.allocated += 1;
        }
        if chance(random, 2) {
            (self.allocations, self.frees) = (below(random, 101), below(random, 101));
        }
        self.allocates = chance(random, self.allocations);
        let tags = if chance(random, 10) { 32 } else { self.count };
        inputs.push(self.allocates.into());
        inputs.push(u64::from(random.next_u32() >> (32 - self.context_bits)).into());
        inputs.push(u64::from(below(random, tags)).into());
        inputs.push(chance(random, self.frees).into());
    }

    fn transactions(&self) -> u64 {
        self.allocated
    }
}
