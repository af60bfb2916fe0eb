//! `mpiexec`, the manager of a program (Comprés et al., Sec. 3.2): it lets daemons start the
//! program's processes, serves their requests one after the other, and hears of their ends. It
//! shares the core on which the program has begun.

use sme_memory::ThreadId;

use super::alert::Means;
use super::board::Row;
use super::command::{Command, Held, Program};
use super::death::Ending;
use super::module::Registered;
use super::notice::Notice;
use super::sigmod::Sigmod;
use super::start::Files;
use crate::error::{ErrorClass, Fault};
use crate::processor::{Processor, Work};

/// The way in which a manager reaches its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Through message passing buffers, with interrupts.
    Invasive,
    /// Over TCP/IP, as MPICH2's MPD: it logs in on each core to start a process, one after the
    /// other, and requests come through sockets. The costs of these are constants of the machine;
    /// commands take the way of the others beside them.
    Mpd,
}

crate::names::names!(Kind {
    Invasive => "ipm",
    Mpd => "mpd",
});

/// The manager of a program.
#[derive(Debug)]
pub struct Manager<M, P> {
    sigmod: Sigmod<M, P>,
    program: Program,
    kind: Kind,
    files: Files,
    /// The daemon of its core.
    daemon: ThreadId,
    started: Vec<Started>,
}

/// Processes that were started together and have not ended.
#[derive(Debug)]
struct Started {
    cores: Vec<u32>,
    /// Those that have asked to meet.
    meet: Vec<u32>,
}

impl<M, P> Manager<M, P>
where
    M: Means,
    P: Processor,
{
    /// Makes the manager of `program`, on the core that has that number and those `registered`
    /// processes.
    pub fn new(
        sigmod: Sigmod<M, P>,
        (program, kind): (Program, Kind),
        files: Files,
        registered: &Registered,
    ) -> Self {
        registered.has_manager(sigmod.memory.id());
        Self {
            sigmod,
            program,
            kind,
            files,
            daemon: registered.daemon(),
            started: Vec::new(),
        }
    }

    /// Starts so many processes, at least one, the first on this core, and serves them until all
    /// have ended, as well as those that they have started. When one of them dies it ends the
    /// others; how that went.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`] if there are not so many cores.
    pub async fn run(mut self, count: u32) -> Result<Option<Ending>, Fault> {
        let me = self.sigmod.memory.node();
        let others = count.saturating_sub(1);
        let wish = self.sigmod.any(others, others);
        let mut cores = self.sigmod.invade(self.program, &wish).await;
        if cores.len() as u64 != u64::from(others) {
            let unit = self.sigmod.board.alert.unit();
            let text = format!("{count} {unit}s are not to be had");
            return Err(Fault::new(ErrorClass::Spawn, "processes", text));
        }
        cores.insert(0, me);
        self.files.put(me, (&cores, &[count]), None);
        self.starts(me).await;
        while !self.started.is_empty() {
            let (sender, command) = self.hears().await;
            let name = command.name();
            self.sigmod.processor.enters(name, Some(sender), 0).await;
            let ending = self.serves(sender, command).await;
            self.sigmod.processor.leaves(name).await;
            if ending.is_some() {
                return Ok(ending);
            }
        }
        Ok(None)
    }

    /// The next request, and its sender.
    async fn hears(&self) -> (u32, Command) {
        loop {
            let signal = self.sigmod.memory.take_signal().await;
            // Nothing else is sent to a manager.
            if let Notice::Command(sender, command) = Notice::from_value(signal) {
                return (sender, command);
            }
        }
    }

    /// The time that a request takes.
    async fn works(&self) {
        let serves = match self.kind {
            Kind::Invasive => Work::Serve,
            Kind::Mpd => Work::ServeSocket,
        };
        self.sigmod.processor.work(&[(serves, 1)]).await;
    }

    /// Serves a request; the end of the program, if a process has died.
    async fn serves(&mut self, sender: u32, command: Command) -> Option<Ending> {
        self.works().await;
        match command {
            Command::Meet => self.meets(sender).await,
            Command::StartAll => {
                self.starts(sender).await;
                self.answers(sender).await;
            }
            Command::Ended => {
                self.ended(sender);
                self.answers(sender).await;
            }
            Command::Died => {
                self.has_died(sender).await;
                return Some(self.ends_all(sender).await);
            }
            _ => self.answers(sender).await,
        }
        None
    }

    /// The process on `core` has died: ends all others, and frees all cores that the program holds.
    async fn ends_all(&mut self, core: u32) -> Ending {
        let me = self.sigmod.memory.node();
        let ended = self.started.iter().map(|group| group.cores.len() as u32);
        let ended = ended.sum();
        // The process here first: it may be waiting for the register that is needed then. Its
        // daemon, which tells of its end, has the same place for commands: it is sent a signal.
        if self.runs(me) {
            let kill = Notice::Kill.to_value();
            self.sigmod.memory.send_signal(self.daemon, kill).await;
            while self.runs(me) {
                self.hears_of_end().await;
            }
        }
        self.sigmod.board.takes_turn(&self.sigmod.memory).await;
        let groups = self.started.iter();
        let others: Vec<u32> = groups.flat_map(|group| group.cores.clone()).collect();
        for &other in &others {
            self.sigmod.command(other, Command::Kill).await;
        }
        // Daemons whose processes have ended by themselves wait for an answer to that first.
        while !self.started.is_empty() {
            self.hears_of_end().await;
        }
        for &other in &others {
            self.sigmod.result(other).await;
        }
        self.sigmod.board.ends_turn(&self.sigmod.memory).await;
        let reserved = self.frees_all(&others, core).await;
        Ending {
            core,
            unit: self.sigmod.board.alert.unit(),
            ended,
            reserved,
        }
    }

    /// Frees all cores that the program holds; those of them on which none of its processes was,
    /// neither on `others` nor on this core nor on the one of the process that has `died`.
    async fn frees_all(&self, others: &[u32], died: u32) -> Vec<u32> {
        let me = self.sigmod.memory.node();
        let all: Vec<u32> = (0..self.sigmod.board.cores)
            .filter(|&core| core != me)
            .collect();
        let holders = self.sigmod.survey(&all).await;
        let held = all.into_iter().zip(holders);
        let held = held.filter(|(_, held)| *held == Held(Some(self.program)));
        let mut held: Vec<u32> = held.map(|(core, _)| core).collect();
        self.sigmod.release(self.program, &held).await;
        if self.files.has_borrowed(self.program) {
            let lenders: Vec<u32> = (0..self.sigmod.board.cores).collect();
            self.sigmod.return_all(self.program, &lenders).await;
        }
        // This one last: its daemon waits until the manager's quantum is over.
        self.sigmod.release(self.program, &[me]).await;
        held.retain(|core| *core != died && !others.contains(core));
        held
    }

    /// Waits until a process has ended. Requests of those that are about to be ended are not
    /// served.
    async fn hears_of_end(&mut self) {
        loop {
            let (sender, command) = self.hears().await;
            self.works().await;
            match command {
                Command::Ended => {
                    self.ended(sender);
                    return self.answers(sender).await;
                }
                Command::Died => return self.has_died(sender).await,
                _ => {}
            }
        }
    }

    /// Returns whether a process of the program runs on `core`.
    fn runs(&self, core: u32) -> bool {
        let mut groups = self.started.iter();
        groups.any(|group| group.cores.contains(&core))
    }

    async fn answers(&self, sender: u32) {
        self.sigmod.answers(sender, Held(Some(self.program))).await;
    }

    /// Lets daemons start the processes that the one on core `asks` wants.
    async fn starts(&mut self, asks: u32) {
        let cores = self.files.wanted(asks);
        match self.kind {
            Kind::Invasive => drop(self.sigmod.all(&cores, Command::Start).await),
            Kind::Mpd => {
                for core in &cores {
                    self.sigmod.processor.work(&[(Work::Login, 1)]).await;
                    self.sigmod.all(&[*core], Command::Start).await;
                }
            }
        }
        let meet = Vec::new();
        self.started.push(Started { cores, meet });
    }

    /// The process on core `sender` is there; when all are that were started with it, the manager
    /// tells them.
    async fn meets(&mut self, sender: u32) {
        let mut groups = self.started.iter_mut();
        let Some(group) = groups.find(|group| group.cores.contains(&sender)) else {
            return;
        };
        group.meet.push(sender);
        if group.meet.len() < group.cores.len() {
            return;
        }
        for sender in std::mem::take(&mut group.meet) {
            self.answers(sender).await;
        }
    }

    /// The process on core `sender` has died. An answer that it has not read, and which would lie
    /// on this core where those of its daemon do, is dropped; on another core the daemon does that.
    async fn has_died(&mut self, sender: u32) {
        self.ended(sender);
        let Sigmod { memory, board, .. } = &self.sigmod;
        let me = memory.node();
        if sender == me {
            memory
                .set(board.flag(memory, me, Row::Results, me), 0)
                .await;
        }
    }

    fn ended(&mut self, sender: u32) {
        for group in &mut self.started {
            group.cores.retain(|&core| core != sender);
        }
        self.started.retain(|group| !group.cores.is_empty());
    }
}
