//! The message libraries, and which messages of each go which way.

use sme_memory::Capability;
use sme_mpi::channel::EAGER_BYTES;
use sme_mpi::channel::transfers::Modes;
use sme_sim::machine::Machine;

/// The default modes of channel queues: messages that fit into a control message
/// go at once, and the DMA engine sends those that it sends faster.
const OF_QUEUES: Modes = Modes {
    eager_bytes: Some(96),
    lazy_bytes: None,
    engine_bytes: Some(4096),
};

/// Those of the others, over which data go in the streams.
const OF_STREAMS: Modes = Modes {
    eager_bytes: Some(EAGER_BYTES),
    ..Modes::NORMAL
};

/// The modes of channel registered: messages go at once that fit into one piece of a section, from
/// where on the others are faster on the SME cluster (`sme mpi tune`).
const OF_REGISTERED: Modes = Modes {
    eager_bytes: Some(960),
    ..Modes::NORMAL
};

/// A message library, and the channel below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// [`sme_mpi::rcce`]
    Rcce,
    /// MPI through message passing buffers ([`sme_mpi::channel::sections`]).
    Sccmpb,
    /// The same through memory behind the chip.
    Sccshm,
    /// The same through the shared memory of the nodes.
    Sections,
    /// The same, with data that go to a buffer of the receiver's when its receive is there.
    Registered,
    /// MPI through rings of chunks in coherent memory ([`sme_mpi::channel::chunks`]).
    Chunks,
    /// MPI through queues of a network on chip ([`sme_mpi::channel::queues`]).
    Queues,
}

sme_barrier::names!(Library, "channel", {
    Rcce => "rcce",
    Sccmpb => "sccmpb",
    Sccshm => "sccshm",
    Sections => "sections",
    Registered => "registered",
    Chunks => "chunks",
    Queues => "queues",
});

impl Library {
    /// Returns whether it has MPI's calls.
    pub fn is_mpi(self) -> bool {
        self != Self::Rcce
    }

    /// The default for which messages go which way.
    pub fn modes(self) -> Modes {
        match self {
            Self::Queues => OF_QUEUES,
            Self::Registered => OF_REGISTERED,
            _ => OF_STREAMS,
        }
    }

    /// The default library of MPI on `machine`.
    pub fn of_mpi(machine: &Machine) -> Self {
        match machine.shape().buffer_bytes {
            0 if machine.capabilities().has(Capability::Network) => Self::Queues,
            0 if machine.shape().coherence.is_some() => Self::Chunks,
            0 => Self::Sections,
            _ => Self::Sccmpb,
        }
    }
}
