//! The daemon of a core: it sleeps until it is sent a command, and answers it.

use std::sync::Arc;

use sme_memory::{AnyFlag, Domains, Processes, Scaling, Spawn, ThreadId, Timer};

use super::alert::Means;
use super::board::{Beside, Board, Lent, Row};
use super::clocks::Warden;
use super::command::{Command, Held, Program};
use super::death::{Cause, Death};
use super::lending::Lender;
use super::module::{self, Registered};
use super::notice::{Exit, Notice};
use super::sigmod::Sigmod;
use super::start::{Begun, Files, Image, Process};
use crate::processor::{Processor, Work};

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
    running: Option<Running>,
    /// The last process here has died: messages to it may lie there.
    after_death: bool,
    /// Its part in lending memory.
    lender: Lender,
    /// Its part in clocks and voltages, on chips that let programs change them.
    warden: Option<Warden>,
}

/// The process that runs on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    process: ThreadId,
    /// The core of its manager, which is its program.
    manager: Program,
    rank: u32,
    birth: u32,
    /// The reason why it is to be killed: its manager wants it, or something outside.
    to_die: Option<ToDie>,
}

/// The one that wants a process killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToDie {
    ByManager,
    Struck,
}

/// The least time after which a daemon tries again to kill its process, in nanoseconds. The time
/// varies by a seventh, so that the daemon does not keep step with the process.
const LOOKS_AGAIN_NS: u64 = 50_000;

impl<M, P> Daemon<M, P>
where
    M: AnyFlag + Means + Processes + Timer + Scaling + Clone + 'static,
    P: Processor,
{
    /// Starts the daemon of the core whose thread has `memory`, which is held for `holder` to begin
    /// with. Ends when the module is there: programs begin after that.
    pub async fn start(memory: M, processor: P, board: Board, holder: Option<Program>) -> Self {
        let registered = Registered::new(memory.id());
        let to = registered.clone();
        let module = move |memory: M| module::run(memory, board, to);
        let module = memory.spawn(None, module).await;
        while Notice::from_value(memory.take_signal().await) != Notice::Ready {}
        Self {
            sigmod: Sigmod::new(memory, processor, board),
            module,
            registered,
            reservation: Reservation(holder),
            image: None,
            running: None,
            after_death: false,
            lender: Lender::default(),
            warden: None,
        }
    }

    /// The same, which carries out commands to the clock and the voltage of its core as well, on a
    /// chip that has these.
    #[must_use]
    pub fn with_domains(self, domains: Arc<Domains>) -> Self {
        let warden = Some(Warden::new(domains, self.sigmod.memory.node()));
        Self { warden, ..self }
    }

    /// The same, which lends segments of its core's memory, of which there are so many.
    #[must_use]
    pub fn with_segments(self, segments: u32) -> Self {
        let lender = Lender::new(segments);
        Self { lender, ..self }
    }

    /// The same, which starts processes of this program as `files` say. A process that ends gives
    /// its core back.
    #[must_use]
    pub fn with_image(self, files: Files, image: Image<M>) -> Self {
        let image = Some((files, image));
        Self { image, ..self }
    }

    /// Lets something outside kill the process that runs on the core after so many nanoseconds.
    pub async fn is_struck_after(&self, nanoseconds: u64) {
        let struck = Notice::Struck.to_value();
        self.sigmod.memory.alarm(nanoseconds, struck).await;
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
            let notice = Notice::from_value(signal);
            let (name, peer) = notice.named();
            self.sigmod.processor.enters(name, peer, 0).await;
            let is_over = self.takes(notice, &mut commands).await;
            self.sigmod.processor.leaves(name).await;
            if is_over {
                return commands;
            }
        }
    }

    /// Does what a signal is about, and counts commands; whether it is told to stop.
    async fn takes(&mut self, notice: Notice, commands: &mut u64) -> bool {
        match notice {
            Notice::Command(_, command) if command.is_for_manager() => {
                // Of the process that runs here.
                if let Some(Running { manager, .. }) = self.running {
                    self.sigmod.command(manager.into(), command).await;
                }
            }
            Notice::Command(sender, command) => {
                *commands += 1;
                self.carries_command_out(sender, command).await;
                return command == Command::Stop;
            }
            Notice::Ended(process, exit) => self.ended(process, exit).await,
            Notice::Struck => self.kills(ToDie::Struck).await,
            Notice::Kill => self.kills(ToDie::ByManager).await,
            Notice::KillsAgain => {
                if let Some(by) = self.running.and_then(|running| running.to_die) {
                    self.kills(by).await;
                }
            }
            Notice::Ready => {}
        }
        false
    }

    async fn carries_command_out(&mut self, sender: u32, command: Command) {
        self.sigmod.processor.work(&[(Work::Target, 1)]).await;
        if let Command::Release(program) = command
            && self.after_death
            && self.reservation == Reservation(Some(program))
        {
            self.forgets_answer(program).await;
        }
        let held = match command {
            Command::Tune | Command::Supply => self.wishes(sender, command).await,
            Command::Borrow | Command::Return => self.lends(sender, command).await,
            Command::Release(program) if self.reservation == Reservation(Some(program)) => {
                self.returns_clock().await;
                self.reservation.takes(command)
            }
            _ => self.reservation.takes(command),
        };
        self.sigmod.answers(sender, held).await;
        match command {
            Command::Start => self.starts().await,
            Command::Kill => self.kills(ToDie::ByManager).await,
            Command::Stop => self.sigmod.memory.join(self.module).await,
            _ => {}
        }
    }

    /// Lends memory to the sender, or takes it back.
    async fn lends(&mut self, sender: u32, command: Command) -> Held {
        let Sigmod { memory, board, .. } = &self.sigmod;
        let me = memory.node();
        let beside = |what| board.beside(memory, me, sender, what);
        let program = memory.read(beside(Beside::Program)).await.saturating_sub(1);
        let setting = memory.read(beside(Beside::Setting)).await;
        let (held, lent) = self.lender.takes(command, program, setting.into());
        if command == Command::Borrow {
            let flag = |what| board.lent(memory, (sender, me), what);
            memory.set(flag(Lent::First), lent.start as u8).await;
            memory.set(flag(Lent::Count), lent.len() as u8).await;
        }
        held
    }

    /// Carries out what the holder of the core wants of its clock or voltage.
    async fn wishes(&mut self, sender: u32, command: Command) -> Held {
        let Reservation(holder) = self.reservation;
        let Sigmod { memory, board, .. } = &self.sigmod;
        match &mut self.warden {
            Some(warden) => warden.takes(memory, board, (sender, command), holder).await,
            None => Held(None),
        }
    }

    /// Lets clock and voltage be as at the begin: the core is about to be free.
    async fn returns_clock(&mut self) {
        let Sigmod { memory, board, .. } = &self.sigmod;
        if let Some(warden) = &mut self.warden {
            warden.withdraws(memory, board).await;
        }
    }

    /// Forks the process that is to be started here, if one is; it executes the image.
    async fn starts(&mut self) {
        let Some((image, begun)) = self.launched() else {
            return;
        };
        let (manager, birth) = (begun.program, begun.launch.birth);
        let core = self.sigmod.memory.node();
        let mut ranks = (0..).zip(&begun.launch.world);
        let rank = ranks.find_map(|(rank, &on)| (on == core).then_some(rank));
        self.sigmod.processor.work(&[(Work::Fork, 1)]).await;
        let process = move |memory: M| forked(memory, image, begun);
        let process = self.sigmod.memory.spawn(None, process).await;
        self.after_death = false;
        self.running = Some(Running {
            process,
            manager,
            rank: rank.unwrap_or_default(),
            birth,
            to_die: None,
        });
    }

    /// The process that is to be started here, if one is.
    fn launched(&self) -> Option<(Image<M>, Begun)> {
        let (files, image) = self.image.as_ref()?;
        let begun = Begun {
            launch: files.take(self.sigmod.memory.node())?,
            program: self.reservation.0?,
            daemon: self.sigmod.memory.id(),
            after_death: self.after_death,
        };
        Some((Arc::clone(image), begun))
    }

    /// Handles the end of a process: waits for it, tells its manager, and frees the core if all is
    /// well.
    async fn ended(&mut self, process: ThreadId, exit: Exit) {
        // One that was killed meanwhile runs no longer.
        let Some(running) = self.running.take_if(|one| one.process == process) else {
            return;
        };
        self.sigmod.memory.join(process).await;
        match exit {
            Exit::Done => {
                let manager = running.manager.into();
                self.sigmod.requests(manager, Command::Ended).await;
                self.sigmod.result(manager).await;
                self.returns_clock().await;
                self.reservation = Reservation(None);
            }
            Exit::Failed => self.has_died(running, Some(Cause::Failed)).await,
        }
    }

    /// Kills the process that runs here, if one does. A process that is giving commands is killed
    /// later: it would leave the core's test-and-set register set, and answers behind.
    async fn kills(&mut self, by: ToDie) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.to_die = Some(by);
        let (memory, board) = (&self.sigmod.memory, &self.sigmod.board);
        if !board.tries_turn(memory).await {
            let pause_ns = LOOKS_AGAIN_NS + memory.now().await % (LOOKS_AGAIN_NS / 7);
            memory.alarm(pause_ns, Notice::KillsAgain.to_value()).await;
            return;
        }
        memory.kill(running.process).await;
        memory.join(running.process).await;
        board.ends_turn(memory).await;
        if let Some(running) = self.running.take() {
            let cause = (by == ToDie::Struck).then_some(Cause::Killed);
            self.has_died(running, cause).await;
        }
    }

    /// Handles the death of a process, by itself if there is a cause: tells its manager. The core
    /// stays reserved until the manager has ended all others, so that no process gets their
    /// messages.
    async fn has_died(&mut self, running: Running, cause: Option<Cause>) {
        self.after_death = true;
        let memory = &self.sigmod.memory;
        if let (Some(cause), Some((files, _))) = (cause, &self.image) {
            files.died(Death {
                program: running.manager,
                rank: running.rank,
                birth: running.birth,
                core: memory.node(),
                unit: self.sigmod.board.alert.unit(),
                cause,
                at_ns: memory.now().await,
            });
        }
        // Its stores to borrowed memory that are still in caches would overwrite the next
        // borrower's.
        let has_borrowed = |(files, _): &(Files, _)| files.has_borrowed(running.manager);
        if self.image.as_ref().is_some_and(has_borrowed) {
            memory.write_back_invalidate().await;
        }
        self.sigmod
            .tells(running.manager.into(), Command::Died)
            .await;
    }

    /// Drops the answer of a manager to the process that has died, if there is one.
    async fn forgets_answer(&self, manager: Program) {
        let me = self.sigmod.memory.node();
        let memory = &self.sigmod.memory;
        let answer = (self.sigmod.board).flag(memory, me, Row::Results, manager.into());
        memory.set(answer, 0).await;
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
    let ended = Notice::Ended(memory.id(), program.await);
    memory.send_signal(daemon, ended.to_value()).await;
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
