//! The kernel module of a core: it takes the core's interrupts, and for each command that lies
//! there sends the daemon a signal with the command and the number of its sender.
//!
//! An interrupt that comes while one is pending is lost (the chip's are edge-triggered). The module
//! looks at all commands after it has taken one, so that nothing else is lost with it.

use sme_memory::{AnyFlag, Interrupts, Spawn, ThreadId, Until};

use super::board::{Board, Row};
use super::command::Command;

/// The signal that the module is there.
pub(super) const READY: u64 = 0;

/// The signal that the daemon's process has ended (SIGCHLD).
pub(super) const ENDED: u64 = u64::MAX;

/// Runs the module of a core, whose thread has `memory`, until the daemon is told to stop.
pub async fn run<M: AnyFlag + Interrupts + Spawn>(memory: M, board: Board, daemon: ThreadId) {
    let me = memory.node();
    let commands = board.flags(&memory, me, Row::Commands);
    // One that has sent a command may well send the next.
    let (mut first, mut ends) = (0, false);
    memory.send_signal(daemon, READY).await;
    while !ends {
        memory.take_interrupt().await;
        while let Some(sender) = memory.find_any(commands, first, Until::IsNot(0)).await {
            let flag = board.flag(&memory, me, Row::Commands, sender);
            let command = memory.read(flag).await;
            memory.set(flag, 0).await;
            memory.send_signal(daemon, signal(sender, command)).await;
            first = sender;
            ends |= Command::from_flag(command) == Some(Command::Stop);
        }
    }
}

/// The value of a signal: the sender, and its command.
fn signal(sender: u32, command: u8) -> u64 {
    u64::from(sender) << 8 | u64::from(command)
}

/// The sender of a signal, and its command.
pub(super) fn received(signal: u64) -> (u32, u8) {
    ((signal >> 8) as u32, signal as u8)
}
