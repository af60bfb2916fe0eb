//! Changes of constants that move none of the workloads, each with its reason.

use super::Change;

/// A change without effect on any of the workloads: on these machines, or on all where there are
/// none.
pub(super) struct Exception {
    pub(super) constant: &'static str,
    pub(super) change: Change,
    machines: &'static [&'static str],
    /// Why it has none.
    _why: &'static str,
}

const fn exception(
    constant: &'static str,
    change: Change,
    machines: &'static [&'static str],
    _why: &'static str,
) -> Exception {
    Exception {
        constant,
        change,
        machines,
        _why,
    }
}

impl Exception {
    pub(super) fn is_of(&self, machine: &str) -> bool {
        self.machines.is_empty() || self.machines.contains(&machine)
    }
}

/// The cache-coherent multiprocessors.
const COHERENT: &[&str] = &["xeon-e5-2650", "opteron-6272"];

const TODAY: &[&str] = &["cxl-pool", "ualink"];

/// Voltages that allow the fastest clock there is, even if they would allow a faster one.
const FAST_ENOUGH: &str = "no divider makes a clock that fast";

/// Of a chip that begins with the fastest clock at 1.1 V.
const AS_IT_BEGINS: &str = "a voltage of at least the first allows the first clock";

/// The costs of process managers.
const PROCESSES: [&str; 6] = [
    "process.fork",
    "process.exec",
    "process.init",
    "process.serve",
    "process.serve_socket",
    "process.login",
];

/// All changes without effect.
pub(super) fn exceptions() -> Vec<Exception> {
    let of_pools = PROCESSES.into_iter().flat_map(|constant| {
        let change = |change| {
            exception(
                constant,
                change,
                &["cxl-pool"],
                "a pool has no process managers",
            )
        };
        [Change::Halved, Change::Doubled].map(change)
    });
    EXCEPTIONS.into_iter().chain(of_pools).collect()
}

const EXCEPTIONS: [Exception; 31] = [
    exception(
        "island.at_1100_mv",
        Change::Doubled,
        &["scc", "scc-800"],
        FAST_ENOUGH,
    ),
    exception(
        "island.at_1200_mv",
        Change::Doubled,
        &["scc", "scc-800"],
        FAST_ENOUGH,
    ),
    exception(
        "island.at_1300_mv",
        Change::Doubled,
        &["scc", "scc-800"],
        FAST_ENOUGH,
    ),
    exception(
        "island.at_1100_mv",
        Change::Halved,
        &["scc-800"],
        AS_IT_BEGINS,
    ),
    exception(
        "island.at_1200_mv",
        Change::Halved,
        &["scc-800"],
        AS_IT_BEGINS,
    ),
    exception(
        "island.at_1300_mv",
        Change::Halved,
        &["scc-800"],
        AS_IT_BEGINS,
    ),
    exception(
        "node.private_memory",
        Change::Halved,
        &[],
        "it only lies below the shared memory: no program has data there",
    ),
    exception("node.private_memory", Change::Doubled, &[], "the same"),
    exception(
        "node.global_base",
        Change::Doubled,
        &[],
        "from 1 TiB on, commands have the extension for addresses beyond 40 bits",
    ),
    exception(
        "node.registers",
        Change::Doubled,
        &[],
        "a lock takes one register of a node; others are for programs of one's own",
    ),
    exception(
        "machine.registers",
        Change::Halved,
        COHERENT,
        "a lock takes one of them",
    ),
    exception(
        "machine.registers",
        Change::Doubled,
        COHERENT,
        "a lock takes one of them",
    ),
    exception(
        "machine.shared_memory",
        Change::Halved,
        &["xeon-e5-2650"],
        "all that is run here fits into half of it",
    ),
    exception(
        "machine.shared_memory",
        Change::Doubled,
        COHERENT,
        "the same",
    ),
    exception(
        "cache.l3_ways",
        Change::Halved,
        COHERENT,
        "lines that follow one another fill a cache however it is divided",
    ),
    exception(
        "cache.l3_ways",
        Change::Doubled,
        &["xeon-e5-2650"],
        "the same",
    ),
    exception(
        "cache.l2_ways",
        Change::Halved,
        &["opteron-6272"],
        "the same",
    ),
    exception(
        "cache.l2_ways",
        Change::Doubled,
        &["opteron-6272"],
        "the same",
    ),
    exception(
        "cache.fill_requests",
        Change::Doubled,
        TODAY,
        "one read brings a whole line",
    ),
    exception(
        "uncached.outstanding_loads_per_socket",
        Change::Doubled,
        TODAY,
        "a core has one load or line fill under way, and there are no more slots than cores",
    ),
    exception(
        "engine.tags",
        Change::Halved,
        TODAY,
        "the same holds here: there are as many tags as cores, halved",
    ),
    exception(
        "os.sleep",
        Change::Halved,
        &[
            "sme-prototype",
            "sme-asic",
            "exascale",
            "cxl-pool",
            "ualink",
            "mppa256",
            "xeon-e5-2650",
            "opteron-6272",
            "ideal",
        ],
        "it delays who wakes a thread that is just falling asleep; here none is woken so soon",
    ),
    exception(
        "os.sleep",
        Change::Doubled,
        &[
            "sme-prototype",
            "sme-asic",
            "exascale",
            "ualink",
            "mppa256",
            "xeon-e5-2650",
            "opteron-6272",
        ],
        "the same",
    ),
    exception(
        "host.nonposted_credits",
        Change::Doubled,
        &["ualink"],
        "so many cores never have loads on the host link at once",
    ),
    exception(
        "host.response_credits",
        Change::Doubled,
        TODAY,
        "the reason is that of host.nonposted_credits",
    ),
    exception(
        "cache.l2_ways",
        Change::Halved,
        &["cxl-pool"],
        "what a thread has here fits the cache however that is divided",
    ),
    exception(
        "coherence.homes",
        Change::Other,
        &["cxl-pool"],
        "a host's own memory holds a barrier's flags, which lie in one page",
    ),
    exception(
        "link.channel_credits",
        Change::Halved,
        &["ualink"],
        "nothing here puts so many packets on a link: `sme network` refuses links as fast as the \
         engine",
    ),
    exception(
        "link.channel_credits",
        Change::Doubled,
        &["ualink"],
        "the reason is that for half as many",
    ),
    exception(
        "uncached.coherent_stores",
        Change::Other,
        &["cxl-pool"],
        "a device has no caches that could be probed",
    ),
    exception(
        "uncached.arbitration",
        Change::Other,
        TODAY,
        "there are no more cores than slots",
    ),
];
