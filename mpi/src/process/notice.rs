//! The signals that daemons and managers take, as the values that they carry.

use sme_memory::ThreadId;

use super::command::Command;

/// A signal to a daemon, or to a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// The kernel's module is there.
    Ready,
    /// The process, or the program on the core, of that number gives a command.
    Command(u32, Command),
    /// The process that runs here has ended, and how (SIGCHLD).
    Ended(ThreadId, Exit),
    /// The manager on this core wants the process that runs here killed.
    Kill,
    /// The process that runs here is to be killed, as it could not be before.
    KillsAgain,
    /// Something outside kills the process that runs here.
    Struck,
}

/// The exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process has done its work.
    Done,
    /// The process has ended with an error.
    Failed,
}

const KIND: u32 = 56;
const ENDED: u64 = 1 << KIND;
const KILLS_AGAIN: u64 = 2 << KIND;
const STRUCK: u64 = 3 << KIND;
const KILL: u64 = 4 << KIND;
const FAILED: u64 = 1 << 32;

impl Notice {
    /// Encodes it as a signal's value.
    pub(super) fn to_value(self) -> u64 {
        match self {
            Self::Ready => 0,
            Self::Command(sender, command) => {
                let beside = command.program().map_or(0, |program| program + 1);
                let flag = command.to_flag(beside > 0);
                u64::from(sender) << 16 | u64::from(beside) << 8 | u64::from(flag)
            }
            Self::Ended(process, Exit::Done) => ENDED | u64::from(process.0),
            Self::Ended(process, Exit::Failed) => ENDED | FAILED | u64::from(process.0),
            Self::Kill => KILL,
            Self::KillsAgain => KILLS_AGAIN,
            Self::Struck => STRUCK,
        }
    }

    /// Its name in timelines, and the core that has sent it, if a core has.
    pub(super) fn named(self) -> (&'static str, Option<u32>) {
        match self {
            Self::Ready => ("daemon: module is there", None),
            Self::Command(_, command) if command.is_for_manager() => ("daemon: request", None),
            Self::Command(sender, command) => (command.name(), Some(sender)),
            Self::Ended(..) => ("daemon: SIGCHLD", None),
            Self::Kill | Self::KillsAgain | Self::Struck => ("daemon: kills", None),
        }
    }

    /// The signal that has that value.
    pub(super) fn from_value(value: u64) -> Self {
        match (value >> KIND) << KIND {
            _ if value == 0 => Self::Ready,
            ENDED => {
                let exit = match value & FAILED {
                    0 => Exit::Done,
                    _ => Exit::Failed,
                };
                Self::Ended(ThreadId(value as u32), exit)
            }
            KILL => Self::Kill,
            KILLS_AGAIN => Self::KillsAgain,
            STRUCK => Self::Struck,
            _ => {
                // Modules and processes send nothing else.
                let command = Command::from_flag(value as u8, (value >> 8) as u8);
                Self::Command((value >> 16) as u32, command.unwrap_or(Command::Query))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_taken_as_they_were_sent() {
        let process = ThreadId(u32::MAX);
        for notice in [
            Notice::Ready,
            Notice::Command(0, Command::Query),
            Notice::Command(47, Command::Release(57)),
            Notice::Command(123, Command::Reserve(123)),
            Notice::Ended(process, Exit::Done),
            Notice::Ended(process, Exit::Failed),
            Notice::Ended(ThreadId(0), Exit::Done),
            Notice::Kill,
            Notice::KillsAgain,
            Notice::Struck,
        ] {
            assert_eq!(Notice::from_value(notice.to_value()), notice);
        }
    }
}
