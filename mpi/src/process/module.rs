//! The kernel module of a core: it takes the core's interrupts, and for each command that lies
//! there sends a signal with the command and the number of its sender: to the daemon, or to the
//! manager that runs on the core.
//!
//! An interrupt that comes while one is pending is lost (the chip's are edge-triggered). The module
//! looks at all commands after it has taken one, so that nothing else is lost with it.

use std::sync::{Arc, OnceLock};

use sme_memory::{AnyFlag, ThreadId};

use super::alert::Means;
use super::board::{Beside, Board, Row};
use super::command::Command;
use super::notice::Notice;

/// The processes of a core to which its module sends signals.
#[derive(Clone, Debug)]
pub struct Registered {
    daemon: ThreadId,
    manager: Arc<OnceLock<ThreadId>>,
}

impl Registered {
    /// The daemon alone.
    pub(super) fn new(daemon: ThreadId) -> Self {
        let manager = Arc::default();
        Self { daemon, manager }
    }

    /// A manager begins on the core, the only one.
    pub(super) fn has_manager(&self, manager: ThreadId) {
        self.manager.get_or_init(|| manager);
    }

    /// The daemon.
    pub(super) fn daemon(&self) -> ThreadId {
        self.daemon
    }

    /// The one that a command is for; the daemon where there is no manager.
    fn of(&self, command: Command) -> ThreadId {
        let manager = self.manager.get().filter(|_| command.is_for_manager());
        manager.copied().unwrap_or(self.daemon)
    }
}

/// Runs the module of a core, whose thread has `memory`, until the daemon is told to stop.
pub async fn run<M: AnyFlag + Means>(memory: M, board: Board, to: Registered) {
    let me = memory.node();
    // One that has sent a command may well send the next.
    let (mut first, mut ends) = (0, false);
    memory
        .send_signal(to.daemon, Notice::Ready.to_value())
        .await;
    while !ends {
        board.is_alerted(&memory).await;
        while let Some(sender) = board.sender(&memory, first).await {
            let flag = board.flag(&memory, me, Row::Commands, sender);
            let value = memory.read(flag).await;
            let beside = match Command::is_beside(value) {
                true => {
                    let beside = board.beside(&memory, me, sender, Beside::Program);
                    memory.read(beside).await
                }
                false => 0,
            };
            memory.set(flag, 0).await;
            // Senders send nothing else.
            let command = Command::from_flag(value, beside).unwrap_or(Command::Query);
            let notice = Notice::Command(sender, command);
            memory.send_signal(to.of(command), notice.to_value()).await;
            first = sender;
            ends |= command == Command::Stop;
        }
    }
}
