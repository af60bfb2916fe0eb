//! The daemon of a core: it sleeps until it is sent a command, and answers it.

use std::future::Future;

use sme_memory::{AnyFlag, Interrupts, Spawn, ThreadId};

use super::board::{Board, Row};
use super::command::{Command, Held, Program};
use super::module::{self, ENDED, READY, received};
use super::start::{Image, Launch, Launches, Process};
use crate::channel::{Processor, Work};

/// The reservation of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation(pub Option<Program>);

impl Reservation {
    /// Carries a command out; the result.
    pub fn takes(&mut self, command: Command) -> Held {
        let Self(holder) = self;
        match command {
            // It is not reserved now, but was before.
            Command::Reserve(program) if *holder == Some(program) => return Held(None),
            Command::Reserve(program) => {
                holder.get_or_insert(program);
            }
            Command::Release(program) => {
                holder.take_if(|holder| *holder == program);
            }
            Command::Query | Command::Stop | Command::Start => {}
        }
        Held(*holder)
    }
}

/// The daemon of a core, with its module.
pub struct Daemon<M, P> {
    memory: M,
    processor: P,
    board: Board,
    module: ThreadId,
    reservation: Reservation,
    /// The program of the processes that it starts.
    image: Option<(Launches, Image<M>)>,
}

impl<M, P> Daemon<M, P>
where
    M: AnyFlag + Interrupts + Spawn + Clone + 'static,
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
            image: None,
        }
    }

    /// The same, which starts processes of this program with these launches. A process that ends
    /// gives its core back.
    #[must_use]
    pub fn with_image(self, launches: Launches, image: Image<M>) -> Self {
        let image = Some((launches, image));
        Self { image, ..self }
    }

    /// Carries commands out until it is told to stop; how many those were.
    pub async fn run(mut self) -> u64 {
        let me = self.memory.node();
        let mut commands = 0;
        loop {
            let signal = self.memory.take_signal().await;
            if signal == ENDED {
                self.reservation = Reservation(None);
                continue;
            }
            let (sender, flag) = received(signal);
            self.processor.work(&[(Work::Target, 1)]).await;
            // Senders send nothing else.
            let command = Command::from_flag(flag).unwrap_or(Command::Query);
            commands += 1;
            let held = self.reservation.takes(command);
            let flag = self.board.flag(&self.memory, sender, Row::Results, me);
            self.memory.set(flag, held.to_flag()).await;
            if command == Command::Start
                && let Some(launched) = self.launched()
            {
                self.forks(launched).await;
            }
            if command == Command::Stop {
                self.memory.join(self.module).await;
                return commands;
            }
        }
    }

    /// The process that is to be started here, if one is.
    fn launched(&self) -> Option<Launched<M>> {
        let (launches, image) = self.image.as_ref()?;
        let launch = launches.lock().remove(&self.memory.node())?;
        let (image, daemon) = (image.clone(), self.memory.id());
        Some(Launched {
            launch,
            image,
            daemon,
        })
    }

    /// Forks it; it executes the image.
    async fn forks(&self, launched: Launched<M>) {
        self.processor.work(&[(Work::Fork, 1)]).await;
        let process = move |memory: M| launched.runs(memory);
        self.memory.spawn(None, process).await;
    }
}

/// A process that is to be started.
struct Launched<M> {
    launch: Launch,
    image: Image<M>,
    daemon: ThreadId,
}

impl<M: Spawn + Clone + 'static> Launched<M> {
    /// Its program, of whose end the daemon hears.
    fn runs(self, memory: M) -> impl Future<Output = ()> + Send + 'static {
        let program = (self.image)(memory.clone(), self.launch);
        ends(memory, self.daemon, program)
    }
}

async fn ends<M: Spawn>(memory: M, daemon: ThreadId, program: Process) {
    program.await;
    memory.send_signal(daemon, ENDED).await;
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
                        let has_it = holder == Some(program);
                        holder = holder.or(Some(program));
                        let held = reservation.takes(Command::Reserve(program));
                        prop_assert_eq!(held, Held(holder.filter(|_| !has_it)));
                        Held(holder)
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
