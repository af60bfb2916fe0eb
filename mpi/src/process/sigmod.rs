//! The library by which a program on a core gives daemons commands (Comprés et al., Sec. 3.2). A
//! program waits for the result of a command before it gives the same daemon another one.

use sme_memory::{Register, Until};

use super::alert::{Alert, Means};
use super::board::{Beside, Board, Row};
use super::command::{Command, Held};
use crate::processor::{Processor, Work};

/// The library as the program on one core has it.
#[derive(Debug)]
pub struct Sigmod<M, P> {
    pub(super) memory: M,
    pub(super) processor: P,
    pub(super) board: Board,
}

impl<M, P> Sigmod<M, P>
where
    M: Means,
    P: Processor,
{
    /// Makes the module of the program whose thread has `memory`.
    pub fn new(memory: M, processor: P, board: Board) -> Self {
        Self {
            memory,
            processor,
            board,
        }
    }

    /// `sigmod_command`: gives the daemon of `core` a command, and does not wait for it.
    pub async fn command(&self, core: u32, command: Command) {
        let me = self.memory.node();
        self.processor.work(&[(Work::Target, 1)]).await;
        if let Some(program) = command.program()
            && self.board.says_beside(command)
        {
            let beside = self.board.beside(&self.memory, core, me, Beside::Program);
            self.memory.set(beside, program + 1).await;
        }
        let flag = self.board.flag(&self.memory, core, Row::Commands, me);
        let value = command.to_flag(self.board.says_beside(command));
        self.memory.set(flag, value).await;
        self.board.alerts(&self.memory, core).await;
    }

    /// Gives a command whose result is waited for. Of the own core a manager, its process and the
    /// daemon have one place for results: the last one must have been read by the one for which it
    /// was.
    pub(super) async fn requests(&self, core: u32, command: Command) {
        let me = self.memory.node();
        if core == me {
            let own = self.board.flag(&self.memory, me, Row::Results, me);
            while self.memory.read(own).await != 0 {
                self.memory.give_way().await;
            }
        }
        self.command(core, command).await;
    }

    /// Tells the manager on `core` something that it does not answer. Waits first until the module
    /// there has taken the last command from here.
    pub(super) async fn tells(&self, core: u32, command: Command) {
        let me = self.memory.node();
        let flag = self.board.flag(&self.memory, core, Row::Commands, me);
        self.memory.wait(flag, Until::Is(0)).await;
        self.command(core, command).await;
    }

    /// `sigmod_result`: waits for the result of the command to `core`.
    pub async fn result(&self, core: u32) -> Held {
        let me = self.memory.node();
        self.processor.work(&[(Work::Target, 1)]).await;
        let flag = self.board.flag(&self.memory, me, Row::Results, core);
        let result = self.memory.wait(flag, Until::IsNot(0)).await;
        self.memory.set(flag, 0).await;
        Held::from_flag(result)
    }

    /// Tells the sender of a command the result.
    pub(super) async fn answers(&self, sender: u32, held: Held) {
        let me = self.memory.node();
        let flag = self.board.flag(&self.memory, sender, Row::Results, me);
        self.memory.set(flag, held.to_flag()).await;
    }

    /// `sigmod_command_sync`: gives a command and waits for its result, alone: under the
    /// test-and-set register of the core. Where there is none it is alone on its own node.
    pub async fn command_sync(&self, core: u32, command: Command) -> Held {
        let register = Register {
            node: core,
            number: 0,
        };
        match self.board.alert {
            Alert::Interrupt => self.memory.take(register).await,
            Alert::Bell => self.board.takes_turn(&self.memory).await,
        }
        self.requests(core, command).await;
        let held = self.result(core).await;
        match self.board.alert {
            Alert::Interrupt => self.memory.clear(register).await,
            Alert::Bell => self.board.ends_turn(&self.memory).await,
        }
        held
    }
}
