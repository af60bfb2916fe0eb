//! Random machines, and how programs of different threads are run on them.

use std::future::Future;
use std::pin::Pin;

use proptest::prelude::*;
use sme_memory::{Flag, Memory, Place, Route};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::Cluster;
use sme_sim::families::sme::engine::DesignError;
use sme_sim::families::sme::spec::ClusterSpec;
use sme_sim::machine::{Machine, Pinning, Setup};
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A machine, and what a run of it is built from.
#[derive(Clone, Debug)]
pub struct Setting {
    pub spec: ClusterSpec,
    pub setup: Setup,
}

/// A cluster of that, with a program on every thread.
pub fn cluster<F: Future<Output = ()> + Send + 'static>(
    setting: Setting,
    program: impl FnMut(ThreadMemory, u32, u32) -> F,
) -> Result<Cluster, DesignError> {
    Cluster::new(&setting.spec, setting.setup, program)
}

/// Constants of the prototype that are replaced, the timing decided by them, and the seed.
#[derive(Clone, Debug)]
pub struct Shape {
    pub constants: Vec<(&'static str, String)>,
    /// Bytes of a cache line.
    pub line_bytes: u64,
    pub pinning: Pinning,
    pub seed: u64,
}

impl Shape {
    /// The prototype itself.
    pub fn prototype() -> Self {
        Self {
            constants: Vec::new(),
            line_bytes: 64,
            pinning: Pinning::Scatter,
            seed: 1,
        }
    }

    /// The machine of this shape with the first `nodes` positions of `topology` taken.
    pub fn setup(&self, topology: &str, nodes: u32, threads: u32) -> Setting {
        let line = format!("{} B", self.line_bytes);
        let constants = self.constants.iter();
        let constants = constants.map(|(key, value)| (*key, value.as_str()));
        let constants: Vec<(&str, &str)> = constants.chain([("cache.line", &*line)]).collect();
        let machine = Machine::builtin("sme-prototype").unwrap();
        let machine = machine.with(&constants).unwrap();
        let setup = Setup::new(machine.shape(), nodes, threads)
            .on(topology.parse().unwrap())
            .pinned(self.pinning)
            .seeded(self.seed);
        Setting {
            spec: sme::of(&machine).unwrap().clone(),
            setup,
        }
    }

    /// The same with one constant more.
    pub fn and(mut self, key: &'static str, value: &str) -> Self {
        self.constants.push((key, value.to_owned()));
        self
    }
}

/// Machines of all kinds. With `small`, caches of a few lines are among them.
pub fn shapes(small: bool) -> impl Strategy<Value = Shape> {
    let sizes = if small {
        prop_oneof![
            2 => Just(None),
            1 => Just(Some(["64 B", "1", "64 B", "1"])),
            1 => Just(Some(["128 B", "1", "256 B", "2"])),
            1 => Just(Some(["128 B", "2", "256 B", "2"])),
            1 => Just(Some(["128 B", "1", "128 B", "1"])),
        ]
        .boxed()
    } else {
        Just(None).boxed()
    };
    let amounts = (
        1..=8u32,
        1..=2u32,
        prop_oneof![1..=3u32, Just(32)],
        1..=8u32,
    );
    let credits = (
        prop_oneof![1..=2u32, Just(16)],
        prop_oneof![1..=2u32, Just(8)],
        prop_oneof![1..=2u32, Just(8)],
        prop_oneof![1..=2u32, Just(16)],
    );
    let payload = 3..=6u32;
    let bools = any::<[bool; 5]>();
    (sizes, amounts, credits, payload, bools, any::<u64>()).prop_map(
        |(sizes, amounts, credits, payload, [fifo, scatter, short, pipelined, cuts], seed)| {
            let line_bytes = if short { 32 } else { 64 };
            let payload = line_bytes.min(1 << payload);
            let (fill, loads, tags, stores) = amounts;
            let (posted, reads, answers, links) = credits;
            let mut constants = vec![
                ("cache.fill_requests", fill.to_string()),
                ("uncached.outstanding_loads_per_socket", loads.to_string()),
                ("uncached.load_payload", format!("{payload} B")),
                ("engine.tags", tags.to_string()),
                ("core.store_buffer", stores.to_string()),
                ("host.posted_credits", posted.to_string()),
                ("host.nonposted_credits", reads.to_string()),
                ("host.response_credits", answers.to_string()),
                ("link.channel_credits", links.to_string()),
            ];
            let order = if fifo { "fifo" } else { "random" };
            constants.push(("uncached.arbitration", order.to_owned()));
            let writes = if pipelined { "pipelined" } else { "serial" };
            constants.push(("host.bridge_writes", writes.to_owned()));
            let forwarding = if cuts {
                "cut-through"
            } else {
                "store-and-forward"
            };
            constants.push(("link.forwarding", forwarding.to_owned()));
            if let Some(sizes) = sizes {
                let keys = ["l1_size", "l1_ways", "l2_size", "l2_ways"];
                for (key, value) in keys.into_iter().zip(sizes) {
                    let key = match key {
                        "l1_size" => "cache.l1_size",
                        "l1_ways" => "cache.l1_ways",
                        "l2_size" => "cache.l2_size",
                        _ => "cache.l2_ways",
                    };
                    constants.push((key, value.to_owned()));
                }
            }
            let pinning = if scatter {
                Pinning::Scatter
            } else {
                Pinning::Compact
            };
            Shape {
                constants,
                line_bytes,
                pinning,
                seed,
            }
        },
    )
}

/// A byte offset in the shared partition of `node`.
pub fn place(node: u32, offset: u64) -> Place {
    Place { node, offset }
}

pub const fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// Flags of the programs' own, one per line, in coherent memory, far from all data.
pub fn flag(memory: &ThreadMemory, node: u32, number: u32) -> Flag {
    memory.flag(
        place(node, 0x10000 + 64 * u64::from(number)),
        Route::Nearest,
    )
}

/// Waits until what was posted before to any of `nodes` has been performed there.
pub async fn read_back(memory: &ThreadMemory, nodes: u32) {
    for node in 0..nodes {
        let word = memory.word(place(node, 0x20000), Route::Global);
        memory.load(word).await;
    }
}
