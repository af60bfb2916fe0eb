//! Processes that die: they are killed, or end with an error. Their daemons write it down, and
//! their manager ends the program.

use std::fmt;

use super::command::Program;

/// A process that has died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Its program.
    pub program: Program,
    /// Its rank among the processes that were started together.
    pub rank: u32,
    /// The number of those among all that were started together, from 1.
    pub birth: u32,
    /// Its core, or its node.
    pub core: u32,
    /// The name of what has daemons: "core" or "node".
    pub unit: &'static str,
    /// The cause.
    pub cause: Cause,
    /// The time, in nanoseconds since the machine was started.
    pub at_ns: u64,
}

/// The cause of a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something outside has killed it (SIGKILL).
    Killed,
    /// The process has ended with an error.
    Failed,
}

/// The end of a program one of whose processes has died, at its manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The core of the process that the manager first heard to have died.
    pub core: u32,
    /// As [`Death::unit`].
    pub unit: &'static str,
    /// Processes that it has ended.
    pub ended: u32,
    /// Cores that the program held without a process; they are free.
    pub reserved: Vec<u32>,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            rank,
            birth,
            core,
            unit,
            cause,
            at_ns,
        } = self;
        let how = match cause {
            Cause::Killed => "was killed",
            Cause::Failed => "ended with an error",
        };
        write!(f, "rank {rank}")?;
        if *birth > 1 {
            write!(f, " of start {birth}")?;
        }
        let at_ms = *at_ns as f64 / 1e6;
        write!(
            f,
            " of program {program}, on {unit} {core}, {how} at {at_ms:.6} ms"
        )
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit;
        match &self.reserved[..] {
            [] => write!(f, "the program held no {unit} without a process")?,
            [core] => write!(f, "the program held {unit} {core} without a process")?,
            cores => {
                let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "the program held {unit}s {} without a process",
                    cores.join(", ")
                )?;
            }
        }
        match self.ended {
            0 => f.write_str("; it had no other process"),
            1 => f.write_str("; its manager has ended the other process"),
            many => write!(f, "; its manager has ended the other {many} processes"),
        }
    }
}
