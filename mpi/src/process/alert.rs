//! The ways in which a node hears that a command has come, and in which its programs take turns at
//! giving commands: by hardware made for it, or by what memory alone can do.

use sme_memory::{
    AnyFlag, Atomic, Cacheable, Interrupts, Register, Spawn, TestAndSet, Until, Word,
};

use super::board::{Board, Row};

/// The way in which a node hears of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// By an interrupt. Programs of a core take turns under its test-and-set register.
    Interrupt,
    /// By a *bell*, a flag in its memory on which a thread of the node spins. Programs of a node
    /// take turns under a word that is changed atomically.
    Bell,
}

impl Alert {
    /// The name of what has a daemon, for reports.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Interrupt => "core",
            Self::Bell => "node",
        }
    }
}

/// A memory with the means of one of the two, with caches and with threads. Which it has is known
/// when it runs.
pub trait Means: Interrupts + TestAndSet + Atomic + Cacheable + Spawn {}

impl<M: Interrupts + TestAndSet + Atomic + Cacheable + Spawn> Means for M {}

impl Board {
    /// Tells `node` that a command lies there.
    pub(super) async fn alerts<M: Means>(&self, memory: &M, node: u32) {
        match self.alert {
            Alert::Interrupt => memory.interrupt(node).await,
            Alert::Bell => memory.set(self.bell(memory, node), 1).await,
        }
    }

    /// Waits until the own node has been told that commands lie there. One that comes after the
    /// first is lost while nothing has been looked at, so that all have to be looked at afterwards.
    pub(super) async fn is_alerted<M: Means>(&self, memory: &M) {
        match self.alert {
            Alert::Interrupt => memory.take_interrupt().await,
            Alert::Bell => {
                let bell = self.bell(memory, memory.node());
                memory.wait(bell, Until::IsNot(0)).await;
                memory.set(bell, 0).await;
                // The silence must be in memory before the commands are read.
                memory.fence().await;
            }
        }
    }

    /// The sender of a command that lies at the own node, from `first` on and round again.
    pub(super) async fn sender<M: Means + AnyFlag>(&self, memory: &M, first: u32) -> Option<u32> {
        let me = memory.node();
        match self.alert {
            Alert::Interrupt => {
                let commands = self.flags(memory, me, Row::Commands);
                memory.find_any(commands, first, Until::IsNot(0)).await
            }
            Alert::Bell => {
                for sender in (first..self.cores).chain(0..first) {
                    let command = self.flag(memory, me, Row::Commands, sender);
                    if memory.read(command).await != 0 {
                        return Some(sender);
                    }
                }
                None
            }
        }
    }

    /// Waits until it is the turn of the caller among the programs of its node.
    pub(super) async fn takes_turn<M: Means>(&self, memory: &M) {
        match self.alert {
            Alert::Interrupt => memory.take(own_register(memory)).await,
            Alert::Bell => {
                let turn = self.turn(memory);
                while memory.swap(turn, 1).await != 0 {
                    memory.wait(sme_memory::Flag(turn.0), Until::Is(0)).await;
                }
            }
        }
    }

    /// Takes the turn if no other program of the node has it; whether it was so.
    pub(super) async fn tries_turn<M: Means>(&self, memory: &M) -> bool {
        match self.alert {
            Alert::Interrupt => memory.test_and_set(own_register(memory)).await,
            Alert::Bell => memory.swap(self.turn(memory), 1).await == 0,
        }
    }

    /// Lets other programs of the node have their turns.
    pub(super) async fn ends_turn<M: Means>(&self, memory: &M) {
        match self.alert {
            Alert::Interrupt => memory.clear(own_register(memory)).await,
            Alert::Bell => {
                memory.fence().await;
                let turn = self.turn(memory);
                memory.store(turn, 0).await;
            }
        }
    }

    /// The word under which programs of the own node take turns.
    fn turn<M: Means>(&self, memory: &M) -> Word {
        self.turn_word(memory, memory.node())
    }
}

/// The test-and-set register of the own core.
fn own_register<M: Means>(memory: &M) -> Register {
    Register {
        node: memory.node(),
        number: 0,
    }
}
