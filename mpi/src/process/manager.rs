//! `mpiexec`, the manager of a program (Comprés et al., Sec. 3.2): it lets daemons start the
//! program's processes, serves their requests one after the other, and hears of their ends. It
//! shares the core on which the program has begun.

use sme_memory::{Interrupts, Spawn, TestAndSet};

use super::command::{Command, Held, Program};
use super::module::{Registered, received};
use super::sigmod::Sigmod;
use super::start::Files;
use crate::channel::{Processor, Work};
use crate::error::{ErrorClass, Fault};

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
    M: Interrupts + TestAndSet + Spawn,
    P: Processor,
{
    /// That of `program`, on the core that has that number and those `registered` processes.
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
            started: Vec::new(),
        }
    }

    /// Starts so many processes, at least one, the first on this core, and serves them until all
    /// have ended, as well as those that they have started.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`] if there are not so many cores.
    pub async fn run(mut self, count: u32) -> Result<(), Fault> {
        let me = self.sigmod.memory.node();
        let others = count.saturating_sub(1);
        let wish = self.sigmod.any(others, others);
        let mut cores = self.sigmod.invade(self.program, &wish).await;
        if cores.len() as u64 != u64::from(others) {
            let text = format!("{count} cores are not to be had");
            return Err(Fault::new(ErrorClass::Spawn, "processes", text));
        }
        cores.insert(0, me);
        self.files.put(me, (&cores, &[count]), None);
        self.starts(me).await;
        while !self.started.is_empty() {
            let (sender, command) = received(self.sigmod.memory.take_signal().await);
            let serves = match self.kind {
                Kind::Invasive => Work::Serve,
                Kind::Mpd => Work::ServeSocket,
            };
            self.sigmod.processor.work(&[(serves, 1)]).await;
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
                _ => self.answers(sender).await,
            }
        }
        Ok(())
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

    fn ended(&mut self, sender: u32) {
        for group in &mut self.started {
            group.cores.retain(|&core| core != sender);
        }
        self.started.retain(|group| !group.cores.is_empty());
    }
}
