//! Jobs of a process manager: daemons on all cores of a chip, or on some nodes of a cluster.

use std::sync::Arc;

use sme_memory::{Capabilities, Capability};
use sme_mpi::process::Board;
use sme_mpi::process::alert::Alert;
use sme_sim::machine::{Machine, Readable};
use sme_sim::observe::timeline::Recorded;

use super::{Error, Job, Library};

/// The capabilities that a process manager needs on a chip with message passing buffers, MPI
/// through these included.
const MANAGED_CHIP: [Capability; 8] = [
    Capability::Tagged,
    Capability::AnyFlag,
    Capability::Timer,
    Capability::Threads,
    Capability::Interrupts,
    Capability::TestAndSet,
    Capability::Processes,
    Capability::Scaling,
];

/// The same on a cluster whose nodes share memory.
const MANAGED_CLUSTER: [Capability; 4] = [
    Capability::Atomics,
    Capability::Timer,
    Capability::Threads,
    Capability::Processes,
];

/// The thread of a core's daemon; the next is its kernel's module.
const DAEMON: u16 = 0;

/// The begin of the names of a manager's calls.
const MANAGER: &str = "mpiexec";

/// Threads of a core with a daemon at most, those that have ended included: its kernel's module,
/// managers and processes.
pub(super) const PROCESSES: u32 = 1 << 12;

impl Job {
    /// Of the daemons of a process manager on all cores of a chip.
    pub fn managed(machine: Arc<Machine>) -> Self {
        let cores = machine.shape().nodes;
        Self {
            is_managed: true,
            ..Self::new(machine, Library::Sccmpb, cores)
        }
    }

    /// The same on so many nodes of a cluster, of which each takes the place of a core.
    pub fn managed_cluster(machine: Arc<Machine>, nodes: u32) -> Self {
        Self {
            is_managed: true,
            ..Self::new(machine, Library::Sections, nodes)
        }
    }

    /// The board of its process manager; without room for one ([`Error::NoManager`]) that of no
    /// core.
    pub fn board(&self) -> Board {
        self.manager_board().unwrap_or(Board {
            begin: 0,
            cores: 0,
            alert: Alert::Interrupt,
        })
    }

    fn manager_board(&self) -> Option<Board> {
        let shape = self.machine.shape();
        match self.library {
            Library::Sections => Board::in_memory(self.ranks, self.layout().end()),
            _ => Board::at_end(shape.nodes, shape.buffer_bytes),
        }
    }

    /// The offset in each node's memory behind the channel and the board of a process manager.
    pub(crate) fn managed_end(&self) -> u64 {
        self.behind_channel().max(self.board().end())
    }

    /// The most calls that a timeline has beside those of the ranks: the commands and requests of
    /// daemons and managers. An estimate: each process has about sixteen, each core 256 processes.
    pub fn calls_beside(&self) -> u64 {
        match self.is_managed {
            true => u64::from(self.ranks) << 12,
            false => 0,
        }
    }

    /// Returns whether the machine can run the daemons of a process manager.
    pub(super) fn check_managed(&self) -> Result<(), Error> {
        let shape = self.machine.shape();
        let name = || self.machine.name().to_owned();
        let is_cluster = self.library == Library::Sections;
        let needs = match is_cluster {
            true => Capabilities::of(&MANAGED_CLUSTER),
            false => Capabilities::of(&MANAGED_CHIP),
        };
        self.machine.suffices("a process manager", needs)?;
        if is_cluster && shape.pool_devices > 0 {
            return Err(Error::PoolOnly("a process manager", name()));
        }
        self.check_ranks()?;
        let Some(board) = self.manager_board() else {
            return Err(Error::NoManager(name()));
        };
        self.layout().check()?;
        let (needed, there) = (board.end(), shape.shared_bytes);
        match needed > there && is_cluster {
            true => Err(Error::NoMemory { needed, there }),
            false => Ok(()),
        }
    }

    /// The recorded activity of all threads of `machine`, with the roles of those of a process
    /// manager.
    pub(super) fn recorded(&self, machine: &dyn Readable) -> Recorded {
        let mut recorded = machine.recorded(&|place| self.variable(place));
        if !self.is_managed {
            return recorded;
        }
        let module = match self.board().alert {
            Alert::Interrupt => "module",
            Alert::Bell => "poller",
        };
        for node in 0..self.all_ranks() {
            recorded.roles.insert((node, DAEMON), "daemon".into());
            recorded.roles.insert((node, DAEMON + 1), module.into());
        }
        for (node, call) in &recorded.calls {
            let role = match call.call.name {
                name if name.starts_with(MANAGER) => "manager",
                _ => "process",
            };
            let thread = (*node, call.thread);
            recorded.roles.entry(thread).or_insert_with(|| role.into());
        }
        recorded
    }
}
