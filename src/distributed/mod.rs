//! Several processes that do one job together: `mpirun -n 4 sme barrier …`.
//!
//! Called by [`crate::cli::main`] and by the commands that can be shared: the barrier, whose nodes
//! are divided among the processes, and the sweep, whose points are. Process 0 alone reads and
//! writes files, prints, and says what went wrong; the others end with the same exit status. What
//! processes are connected by is behind [`Crew`]: MPI in a program built with the feature `mpi`
//! (`mpi`), nothing in one process, channels between threads in tests.

#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(test)]
#[cfg(feature = "cli")]
mod tests;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use sme_sim::kernel::peers::{self, Alone, PeerError, Peers};
use sme_sim::kernel::window;

use crate::report::stop::Stop;

/// The processes of a job, as one of them sees them: [`Peers`] that can also send each other single
/// messages, none of which waits for another process.
pub trait Crew: Peers {
    /// Sends `message` to process `to`.
    ///
    /// # Errors
    /// [`PeerError`] if it has gone.
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), PeerError>;

    /// The next message that has come, and from whom; `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerError`] if a process has gone.
    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, PeerError>;

    /// Ends all processes, for this `reason`: they cannot even agree any more.
    fn abandon(&mut self, reason: &str);

    /// As whom the others see this one.
    fn peers(&mut self) -> &mut dyn Peers;
}

impl Crew for Alone {
    fn send(&mut self, to: usize, _message: Vec<u8>) -> Result<(), PeerError> {
        Err(PeerError::Gone { process: to })
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, PeerError> {
        Ok(None)
    }

    fn abandon(&mut self, _reason: &str) {}

    fn peers(&mut self) -> &mut dyn Peers {
        self
    }
}

/// Does `job`, which takes the program's arguments, together with the others, who got the same. The
/// result is the same at all of them.
///
/// # Errors
/// The error of the first process that has one.
pub fn run(
    arguments: Vec<OsString>,
    crew: &mut dyn Crew,
    job: impl FnOnce(Vec<OsString>, &mut dyn Crew) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let done = introduce(&arguments, crew).and_then(|()| job(arguments, crew));
    agreed(crew, done)
}

/// The description of a process: those that do a job together must be alike.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Introduction {
    version: String,
    format: u32,
    arguments: Vec<String>,
}

fn introduce(arguments: &[OsString], crew: &mut dyn Crew) -> Result<(), Stop> {
    let own = Introduction {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        format: window::FORMAT,
        // Not the name of the program, which may lie elsewhere on each computer.
        arguments: (arguments.iter().skip(1))
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
    };
    let all = peers::all(crew.peers(), own).map_err(|error| gone(crew, &error))?;
    alike(&all)
}

fn alike(all: &[Introduction]) -> Result<(), Stop> {
    let differing = all.iter().position(|other| Some(other) != all.first());
    let Some((process, (other, first))) =
        differing.and_then(|process| Some((process, (all.get(process)?, all.first()?))))
    else {
        return Ok(());
    };
    let called = |one: &Introduction| format!("sme {}, format {}", one.version, one.format);
    Err(Stop::Input(match other.arguments == first.arguments {
        true => format!(
            "process {process} is {}, process 0 {}",
            called(other),
            called(first)
        ),
        false => format!("process {process} has other arguments than process 0"),
    }))
}

/// `result`, if it is good at every process; else what went wrong at the first where it did.
///
/// # Errors
/// [`Stop`], the same at all processes.
pub fn agreed<T>(crew: &mut dyn Crew, result: Result<T, Stop>) -> Result<T, Stop> {
    if crew.count() == 1 {
        return result;
    }
    let own = result.as_ref().err().cloned();
    let stops = peers::all(crew.peers(), own).map_err(|error| gone(crew, &error))?;
    match stops
        .into_iter()
        .enumerate()
        .find_map(|(process, stop)| Some((process, stop?)))
    {
        None => result,
        Some((0, stop)) => Err(stop),
        // Where all fail alike, it does not matter who.
        Some((process, stop)) => Err(stop.at(&format!("process {process}"))),
    }
}

/// Makes the message for a process that has `error`, after which nothing can be agreed on: all are
/// ended.
pub fn gone(crew: &mut dyn Crew, error: &PeerError) -> Stop {
    let reason = error.to_string();
    crew.abandon(&reason);
    Stop::Failed(reason)
}
