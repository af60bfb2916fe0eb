//! Processes that daemons start: a *launch* says what a process has to know, as its arguments and its
//! environment do, and an *image* is the program.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Interrupts, TestAndSet};

use super::command::{Command, Program};
use super::invade::Wish;
use super::sigmod::Sigmod;
use crate::channel::Processor;
use crate::error::{ErrorClass, Fault};
use crate::rank::Starter;

/// The things that a process is told when it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The ranks of its world, by their numbers in the channel: its cores.
    pub world: Vec<u32>,
    /// The port to which its world connects.
    pub port: String,
}

/// The launches of processes that are to be started, by core: what lies in files that all cores read.
pub type Launches = Arc<Mutex<BTreeMap<u32, Launch>>>;

/// A process: its program, to be polled.
pub type Process = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A program as a daemon starts it, on the thread that has the memory.
pub type Image<M> = Arc<dyn Fn(M, Launch) -> Process + Send + Sync>;

/// Starts processes on behalf of a program: on cores that it reserves for them.
#[derive(Debug)]
pub struct Starts<'s, M, P> {
    /// The way to the daemons.
    pub sigmod: &'s Sigmod<M, P>,
    /// The program.
    pub program: Program,
    /// The cores that it may have, the best ones first.
    pub candidates: Vec<u32>,
    /// The launches.
    pub launches: Launches,
}

impl<M, P> Starter for Starts<'_, M, P>
where
    M: Interrupts + TestAndSet,
    P: Processor,
{
    /// Reserves the cores, and then lets all their daemons start a process.
    async fn start(&self, count: u32, port: &str) -> Result<(), Fault> {
        let wish = Wish {
            least: count,
            most: count,
            candidates: self.candidates.clone(),
            contiguous: false,
        };
        let cores = self.sigmod.invade(self.program, &wish).await;
        if cores.len() as u64 != u64::from(count) {
            let text = format!("{count} cores are not to be had");
            return Err(Fault::new(ErrorClass::Spawn, "maxprocs", text));
        }
        let launch = Launch {
            world: cores.clone(),
            port: port.to_owned(),
        };
        let launches = cores.iter().map(|&core| (core, launch.clone()));
        self.launches.lock().extend(launches);
        self.sigmod.all(&cores, Command::Start).await;
        Ok(())
    }
}
