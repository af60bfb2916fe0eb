//! The energy that a machine has taken, by its parts. Families whose machine files have figures of
//! power add it up while they run.

use crate::time::Time;

/// Energy, of a part of a machine or all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    /// The end of the time in which it was taken, from the begin of the run on.
    pub until: Time,
    /// Of each core \[J\].
    pub cores_j: Vec<f64>,
    /// Of the network on chip \[J\].
    pub mesh_j: f64,
    /// Of memory and its controllers \[J\].
    pub memory_j: f64,
    /// Of the global clock \[J\].
    pub clock_j: f64,
    /// The time of all cores together for which they were not halted.
    pub busy: Time,
    /// The time of all cores together below the clock with which they begin.
    pub slowed: Time,
    /// The same below the voltage with which they begin.
    pub lowered: Time,
    /// The changes of clocks and voltages, by core, in the order in which they acted.
    pub changes: Vec<Change>,
}

/// A core's clock or voltage has changed, or been set anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The time.
    pub at: Time,
    /// The core.
    pub core: u32,
    /// The divider of its clock from then on.
    pub divider: u32,
    /// Its voltage from then on \[mV\].
    pub millivolts: u32,
}

impl Energy {
    /// Of all parts \[J\].
    pub fn total_j(&self) -> f64 {
        self.all_cores_j() + self.mesh_j + self.memory_j + self.clock_j
    }

    /// Of all cores \[J\].
    pub fn all_cores_j(&self) -> f64 {
        self.cores_j.iter().sum()
    }

    /// Of both; the cores of the other are the next ones.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.until = self.until.max(other.until);
        self.cores_j.extend(other.cores_j);
        self.mesh_j += other.mesh_j;
        self.memory_j += other.memory_j;
        self.clock_j += other.clock_j;
        self.busy += other.busy;
        self.slowed += other.slowed;
        self.lowered += other.lowered;
        self.changes.extend(other.changes);
        self
    }
}
