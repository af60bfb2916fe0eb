//! Processes that daemons start: a *launch* says what a process has to know, as its arguments and its
//! environment do, and an *image* is the program.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::ThreadId;

use super::command::Program;
use crate::rank::Arrival;

/// The things that a process is told when it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The ranks of its world, by their numbers in the channel: its cores.
    pub world: Vec<u32>,
    /// The number of those that are started together among all that are.
    pub birth: u32,
    /// The port at which others expect them, and what it is for; none at the begin of a program.
    pub port: Option<(Arrival, String)>,
}

/// A process that has been forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// What it is told.
    pub launch: Launch,
    /// Its program.
    pub program: Program,
    /// The daemon of its core.
    pub daemon: ThreadId,
}

/// The files that all cores read and write.
#[derive(Clone, Debug, Default)]
pub struct Files(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    /// The launches of processes that are to be started, by core.
    launches: BTreeMap<u32, Launch>,
    /// The cores on which a manager is to start processes, by the core that asks it to.
    wanted: BTreeMap<u32, Vec<u32>>,
    births: u32,
}

impl Files {
    /// Processes are to be started on `cores`, at the request of the process on core `asks`.
    pub(super) fn put(&self, asks: u32, cores: &[u32], port: Option<(Arrival, &str)>) {
        let mut written = self.0.lock();
        written.births += 1;
        let launch = Launch {
            world: cores.to_vec(),
            birth: written.births,
            port: port.map(|(arrival, port)| (arrival, port.to_owned())),
        };
        let launches = cores.iter().map(|&core| (core, launch.clone()));
        written.launches.extend(launches);
        written.wanted.insert(asks, cores.to_vec());
    }

    /// The cores on which that process wants others started, once.
    pub(super) fn wanted(&self, asks: u32) -> Vec<u32> {
        self.0.lock().wanted.remove(&asks).unwrap_or_default()
    }

    /// The launch of the process that is to be started on `core`, once.
    pub(super) fn take(&self, core: u32) -> Option<Launch> {
        self.0.lock().launches.remove(&core)
    }
}

/// A process: its program, to be polled.
pub type Process = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A program as a daemon starts it, on the thread that has the memory.
pub type Image<M> = Arc<dyn Fn(M, Begun) -> Process + Send + Sync>;
