//! The machines and the families that are part of the program: the one place that names them.

use std::sync::Arc;

use super::family::Family;
use super::reader::Reader;
use crate::families::{coherent, ideal, mppa, scc, sme};

/// A machine file that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The machine's name, which is also its file's without `.toml`.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "sme-prototype",
        text: include_str!("../../../machines/sme-prototype.toml"),
    },
    Builtin {
        name: "sme-asic",
        text: include_str!("../../../machines/sme-asic.toml"),
    },
    Builtin {
        name: "exascale",
        text: include_str!("../../../machines/exascale.toml"),
    },
    Builtin {
        name: "cxl-pool",
        text: include_str!("../../../machines/cxl-pool.toml"),
    },
    Builtin {
        name: "ualink",
        text: include_str!("../../../machines/ualink.toml"),
    },
    Builtin {
        name: "scc",
        text: include_str!("../../../machines/scc.toml"),
    },
    Builtin {
        name: "scc-800",
        text: include_str!("../../../machines/scc-800.toml"),
    },
    Builtin {
        name: "mppa256",
        text: include_str!("../../../machines/mppa256.toml"),
    },
    Builtin {
        name: "xeon-e5-2650",
        text: include_str!("../../../machines/xeon-e5-2650.toml"),
    },
    Builtin {
        name: "opteron-6272",
        text: include_str!("../../../machines/opteron-6272.toml"),
    },
    Builtin {
        name: "ideal",
        text: include_str!("../../../machines/ideal.toml"),
    },
];

/// A family, as machine files call it, and what reads its constants.
pub(super) struct Registered {
    pub(super) name: &'static str,
    pub(super) read: fn(&mut Reader<'_>) -> Arc<dyn Family>,
}

pub(super) const FAMILIES: &[Registered] = &[
    Registered {
        name: "sme-cluster",
        read: |reader| Arc::new(sme::declared::cluster(reader)),
    },
    Registered {
        name: "scc",
        read: |reader| Arc::new(scc::spec::scc(reader)),
    },
    Registered {
        name: "mppa",
        read: |reader| Arc::new(mppa::spec::mppa(reader)),
    },
    Registered {
        name: "cache-coherent",
        read: |reader| Arc::new(coherent::spec::coherent(reader)),
    },
    Registered {
        name: "ideal",
        read: |reader| Arc::new(ideal::spec::ideal(reader)),
    },
];
