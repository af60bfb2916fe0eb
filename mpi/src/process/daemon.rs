//! The daemon of a core: it sleeps until it is sent a command, and answers it.

use sme_memory::{AnyFlag, Interrupts, Spawn, ThreadId};

use super::board::{Board, Row};
use super::command::{Command, Held, Program};
use super::module::{self, READY, received};
use crate::channel::{Processor, Work};

/// The reservation of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation(pub Option<Program>);

impl Reservation {
    /// Carries a command out; the result.
    pub fn takes(&mut self, command: Command) -> Held {
        let Self(holder) = self;
        match command {
            Command::Reserve(program) => {
                holder.get_or_insert(program);
            }
            Command::Release(program) => {
                holder.take_if(|holder| *holder == program);
            }
            Command::Query | Command::Stop => {}
        }
        Held(*holder)
    }
}

/// The daemon of a core, with its module.
#[derive(Debug)]
pub struct Daemon<M, P> {
    memory: M,
    processor: P,
    board: Board,
    module: ThreadId,
    reservation: Reservation,
}

impl<M, P> Daemon<M, P>
where
    M: AnyFlag + Interrupts + Spawn + 'static,
    P: Processor,
{
    /// That of the core whose thread has `memory`, which is held for `holder` to begin with. Ends
    /// when the module is there: programs begin after that.
    pub async fn start(memory: M, processor: P, board: Board, holder: Option<Program>) -> Self {
        let own = memory.id();
        let module = move |memory: M| module::run(memory, board, own);
        let module = memory.spawn(None, module).await;
        while memory.take_signal().await != READY {}
        Self {
            memory,
            processor,
            board,
            module,
            reservation: Reservation(holder),
        }
    }

    /// Carries commands out until it is told to stop; how many those were.
    pub async fn run(mut self) -> u64 {
        let me = self.memory.node();
        let mut commands = 0;
        loop {
            let (sender, flag) = received(self.memory.take_signal().await);
            self.processor.work(&[(Work::Target, 1)]).await;
            let Some(command) = Command::from_flag(flag) else {
                continue;
            };
            commands += 1;
            let held = self.reservation.takes(command);
            let flag = self.board.flag(&self.memory, sender, Row::Results, me);
            self.memory.set(flag, held.to_flag()).await;
            if command == Command::Stop {
                self.memory.join(self.module).await;
                return commands;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The first program that asks holds a free core, and only it gives it back.
        #[test]
        fn a_core_is_held_by_who_asked_first(
            asked in prop::collection::vec((0..3_u8, any::<bool>()), 0..30),
        ) {
            let mut reservation = Reservation::default();
            let mut holder = None;
            for (program, reserves) in asked {
                let held = match reserves {
                    true => {
                        holder = holder.or(Some(program));
                        reservation.takes(Command::Reserve(program))
                    }
                    false => {
                        holder = holder.filter(|&of| of != program);
                        reservation.takes(Command::Release(program))
                    }
                };
                prop_assert_eq!(held, Held(holder));
                prop_assert_eq!(reservation.takes(Command::Query), held);
            }
        }
    }
}
