//! The daemon of a core: it sleeps until it is sent a command, and answers it.

use std::sync::Arc;

use sme_memory::{AnyFlag, Interrupts, Spawn, TestAndSet, ThreadId};

use super::board::Board;
use super::command::{Command, Held, Program};
use super::module::{self, ENDED, READY, Registered, received};
use super::sigmod::Sigmod;
use super::start::{Begun, Files, Image, Process};
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
            _ => {}
        }
        Held(*holder)
    }
}

/// The daemon of a core, with its module.
pub struct Daemon<M, P> {
    sigmod: Sigmod<M, P>,
    module: ThreadId,
    registered: Registered,
    reservation: Reservation,
    /// The program of the processes that it starts.
    image: Option<(Files, Image<M>)>,
    /// The process that runs here, and the core of its manager.
    running: Option<(ThreadId, u32)>,
}

impl<M, P> Daemon<M, P>
where
    M: AnyFlag + Interrupts + TestAndSet + Spawn + Clone + 'static,
    P: Processor,
{
    /// That of the core whose thread has `memory`, which is held for `holder` to begin with. Ends
    /// when the module is there: programs begin after that.
    pub async fn start(memory: M, processor: P, board: Board, holder: Option<Program>) -> Self {
        let registered = Registered::new(memory.id());
        let to = registered.clone();
        let module = move |memory: M| module::run(memory, board, to);
        let module = memory.spawn(None, module).await;
        while memory.take_signal().await != READY {}
        Self {
            sigmod: Sigmod::new(memory, processor, board),
            module,
            registered,
            reservation: Reservation(holder),
            image: None,
            running: None,
        }
    }

    /// The same, which starts processes of this program as `files` say. A process that ends gives
    /// its core back.
    #[must_use]
    pub fn with_image(self, files: Files, image: Image<M>) -> Self {
        let image = Some((files, image));
        Self { image, ..self }
    }

    /// The processes of the core that are sent signals.
    pub fn registered(&self) -> Registered {
        self.registered.clone()
    }

    /// Carries commands out until it is told to stop; how many those were.
    pub fn run(self) -> impl Future<Output = u64> + Send {
        // Of an `async` function callers could not see that its future is `Send`.
        self.carries_out()
    }

    async fn carries_out(mut self) -> u64 {
        let mut commands = 0;
        loop {
            let signal = self.sigmod.memory.take_signal().await;
            if signal == ENDED {
                self.ended().await;
                continue;
            }
            let (sender, command) = received(signal);
            if command.is_for_manager() {
                // Of the process that runs here.
                if let Some((_, manager)) = self.running {
                    self.sigmod.command(manager, command).await;
                }
                continue;
            }
            self.sigmod.processor.work(&[(Work::Target, 1)]).await;
            commands += 1;
            let held = self.reservation.takes(command);
            self.sigmod.answers(sender, held).await;
            match command {
                Command::Start => self.starts().await,
                Command::Stop => {
                    self.sigmod.memory.join(self.module).await;
                    return commands;
                }
                _ => {}
            }
        }
    }

    /// Forks the process that is to be started here, if one is; it executes the image.
    async fn starts(&mut self) {
        let Some((image, begun)) = self.launched() else {
            return;
        };
        let manager = begun.program.into();
        self.sigmod.processor.work(&[(Work::Fork, 1)]).await;
        let process = move |memory: M| forked(memory, image, begun);
        let process = self.sigmod.memory.spawn(None, process).await;
        self.running = Some((process, manager));
    }

    /// The process that is to be started here, if one is.
    fn launched(&self) -> Option<(Image<M>, Begun)> {
        let (files, image) = self.image.as_ref()?;
        let begun = Begun {
            launch: files.take(self.sigmod.memory.node())?,
            program: self.reservation.0?,
            daemon: self.sigmod.memory.id(),
        };
        Some((Arc::clone(image), begun))
    }

    /// The process that ran here has ended: it is waited for, its manager is told, and the core is
    /// free.
    async fn ended(&mut self) {
        if let Some((process, manager)) = self.running.take() {
            self.sigmod.memory.join(process).await;
            self.sigmod.command(manager, Command::Ended).await;
            self.sigmod.result(manager).await;
        }
        self.reservation = Reservation(None);
    }
}

/// The program of a process, of whose end the daemon hears.
fn forked<M: Spawn + Clone + 'static>(
    memory: M,
    image: Image<M>,
    begun: Begun,
) -> impl Future<Output = ()> + Send + 'static {
    let daemon = begun.daemon;
    let program = image(memory.clone(), begun);
    ends(memory, daemon, program)
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
