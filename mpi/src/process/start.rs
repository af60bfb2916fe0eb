//! Processes that daemons start: a *launch* says what a process has to know, as its arguments and
//! its environment do, and an *image* is the program.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::ThreadId;

use super::command::Program;
use super::death::Death;
use super::notice::Exit;
use crate::rank::Arrival;

/// The things that a process is told when it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The ranks of its world, by their numbers in the channel: its cores.
    pub world: Vec<u32>,
    /// The number of those that are started together among all that are.
    pub birth: u32,
    /// The number of its part of the program among those that are started together (MPI_APPNUM).
    pub part: u32,
    /// The port at which others expect them, and what it is for; none at the begin of a program.
    pub port: Option<(Arrival, String)>,
}

/// A process that has been forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The things that it is told.
    pub launch: Launch,
    /// Its program.
    pub program: Program,
    /// The daemon of its core.
    pub daemon: ThreadId,
    /// Whether the previous process of the core died: messages to it may still lie there.
    pub after_death: bool,
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
    /// The ports of services, by their names.
    ports: BTreeMap<String, String>,
    /// In the order in which daemons have seen them.
    deaths: Vec<Death>,
    /// Programs of which a process has borrowed memory.
    borrowers: BTreeSet<Program>,
}

impl Files {
    /// Processes are to be started on `cores`, at the request of the process on core `asks`.
    /// `counts` are those of each part of the program, together as many as there are cores.
    pub(super) fn put(
        &self,
        asks: u32,
        (cores, counts): (&[u32], &[u32]),
        port: Option<(Arrival, &str)>,
    ) {
        let mut written = self.0.lock();
        written.births += 1;
        let launch = |part| Launch {
            world: cores.to_vec(),
            birth: written.births,
            part,
            port: port.map(|(arrival, port)| (arrival, port.to_owned())),
        };
        let parts = (0..).zip(counts);
        let parts = parts.flat_map(|(part, &count)| (0..count).map(move |_| part));
        let launches = cores.iter().zip(parts);
        let launches: Vec<(u32, Launch)> =
            launches.map(|(&core, part)| (core, launch(part))).collect();
        written.launches.extend(launches);
        written.wanted.insert(asks, cores.to_vec());
    }

    /// The cores on which that process wants others started, once.
    pub(super) fn wanted(&self, asks: u32) -> Vec<u32> {
        self.0.lock().wanted.remove(&asks).unwrap_or_default()
    }

    /// Writes down the port of a service; whether the service had none.
    pub(super) fn publish(&self, service: &str, port: &str) -> bool {
        let mut written = self.0.lock();
        let is_new = !written.ports.contains_key(service);
        if is_new {
            written.ports.insert(service.to_owned(), port.to_owned());
        }
        is_new
    }

    /// The port of a service.
    pub(super) fn port(&self, service: &str) -> Option<String> {
        self.0.lock().ports.get(service).cloned()
    }

    /// Strikes the port of a service out; whether it had this one.
    pub(super) fn unpublish(&self, service: &str, port: &str) -> bool {
        let mut written = self.0.lock();
        let had_it = written
            .ports
            .get(service)
            .is_some_and(|known| known == port);
        if had_it {
            written.ports.remove(service);
        }
        had_it
    }

    /// Writes a death down.
    pub(super) fn died(&self, death: Death) {
        self.0.lock().deaths.push(death);
    }

    /// Writes down that a process of `program` borrows memory.
    pub(super) fn borrows(&self, program: Program) {
        self.0.lock().borrowers.insert(program);
    }

    /// Returns whether a process of `program` has borrowed memory.
    pub(super) fn has_borrowed(&self, program: Program) -> bool {
        self.0.lock().borrowers.contains(&program)
    }

    /// Returns whether a process of any program has.
    pub fn have_borrowed(&self) -> bool {
        !self.0.lock().borrowers.is_empty()
    }

    /// The processes that have died, but for those that managers have ended.
    pub fn deaths(&self) -> Vec<Death> {
        self.0.lock().deaths.clone()
    }

    /// The launch of the process that is to be started on `core`, once.
    pub(super) fn take(&self, core: u32) -> Option<Launch> {
        self.0.lock().launches.remove(&core)
    }
}

/// A process: its program, to be polled.
pub type Process = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// A program as a daemon starts it, on the thread that has the memory.
pub type Image<M> = Arc<dyn Fn(M, Begun) -> Process + Send + Sync>;
