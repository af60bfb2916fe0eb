//! The processes of a job: started, watched, ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use sme_mpi::abi::process::Services;
use sme_mpi::file::Handover;
use tempfile::TempDir;

use super::process::RankProcess;
use super::slots::slot::{FINALIZED, INITIALIZED, MEASURES};
use super::slots::{Slots, wake_simulator};
use super::{interface, library};

/// A program, and how its processes are started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ranks.
    pub ranks: u32,
    /// Whether each line of a process's output begins with its rank.
    pub has_prefix: bool,
    /// Whether processes tell how long they compute.
    pub measures: bool,
    /// Whether the clocks that they read are simulated.
    pub intercepts_clocks: bool,
}

/// The first thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The program cannot be started.
    #[error("{program}: {why}")]
    NoProgram {
        /// The program.
        program: String,
        /// Why.
        why: String,
    },
    /// A rank has ended the job.
    #[error("rank {rank}: {why}")]
    Aborted {
        /// The rank.
        rank: u32,
        /// The status that it wants.
        status: i32,
        /// Its call, and why.
        why: String,
    },
    /// A rank's process has ended as it should not.
    #[error("rank {rank} {how}")]
    Died {
        /// The rank.
        rank: u32,
        /// How.
        how: String,
    },
}

/// The state that the threads of a job share.
#[derive(Debug)]
pub struct Shared {
    slots: Slots,
    state: Mutex<State>,
    services: Services,
    handover: Handover,
}

#[derive(Debug, Default)]
struct State {
    /// The processes that have not been waited for.
    running: Vec<Option<Pid>>,
    has_ended: Vec<bool>,
    wrong: Option<Wrong>,
    is_stopped: bool,
    told: BTreeSet<String>,
}

impl Shared {
    /// Returns whether nothing more can be asked of a rank's process.
    pub fn is_over(&self, rank: u32) -> bool {
        let state = self.state.lock();
        state.is_stopped || state.has_ended.get(rank as usize).copied().unwrap_or(true)
    }

    /// The services that processes have published.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The files that processes open together.
    pub fn handover(&self) -> &Handover {
        &self.handover
    }

    /// A rank ends the job.
    pub fn aborts(&self, rank: u32, status: i32, why: String) {
        self.goes_wrong(Wrong::Aborted { rank, status, why });
    }

    /// Says something to the user, the same thing once.
    pub fn tells(&self, what: String) {
        let is_new = self.state.lock().told.insert(what.clone());
        if is_new {
            eprintln!("sme: {what}");
        }
    }

    fn goes_wrong(&self, wrong: Wrong) {
        let mut state = self.state.lock();
        state.wrong.get_or_insert(wrong);
        drop(state);
        self.stop();
    }

    /// Ends all processes.
    fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        for &process in state.running.iter().flatten() {
            // It cannot have ended and been replaced: it is waited for under this lock.
            let _ = kill_process(process, Signal::KILL);
        }
        let ranks = state.running.len() as u32;
        drop(state);
        for rank in 0..ranks {
            wake_simulator(self.slots.of(rank));
        }
    }

    /// A rank's process has ended.
    fn ends(&self, rank: u32, status: ExitStatus) {
        let slot = self.slots.of(rank);
        let reached = slot.state.load(Relaxed);
        let how = match (status.code(), status.signal()) {
            (Some(0), _) if reached == INITIALIZED => {
                Some("ended without a call of MPI_Finalize".to_owned())
            }
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("ended with status {code}{}", when(reached))),
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                let name = signal_hook::low_level::signal_name(signal);
                let name = name.map_or_else(|| format!("signal {signal}"), str::to_owned);
                Some(format!("was ended by {name}{}", when(reached)))
            }
        };
        let is_stopped = self.state.lock().is_stopped;
        match how {
            Some(how) if !is_stopped => self.goes_wrong(Wrong::Died { rank, how }),
            _ => wake_simulator(slot),
        }
    }
}

/// Where in its life a process that has ended was.
fn when(reached: u32) -> &'static str {
    match reached {
        FINALIZED => " after MPI_Finalize",
        INITIALIZED => "",
        _ => " before MPI_Init",
    }
}

/// The processes of a job.
#[derive(Debug)]
pub struct Processes {
    shared: Arc<Shared>,
    watchers: Vec<JoinHandle<()>>,
    /// The directory of the library, removed when the processes have ended.
    library: TempDir,
}

impl Processes {
    /// Starts the processes of all ranks.
    ///
    /// # Errors
    /// [`Wrong::NoProgram`]
    pub fn start(start: &Start) -> Result<Self, Wrong> {
        let program = start.command.first().cloned().unwrap_or_default();
        let failed = |error: io::Error| Wrong::NoProgram {
            program: program.to_string_lossy().into_owned(),
            why: error.to_string(),
        };
        if interface::is_for_open_mpi(&program) {
            let why = "it was compiled for Open MPI; compile it with MPICH's mpicc or mpifort";
            return Err(failed(io::Error::other(why)));
        }
        let library = library::laid_down().map_err(failed)?;
        let slots = Slots::new(start.ranks).map_err(failed)?;
        let ranks = start.ranks as usize;
        let state = State {
            running: vec![None; ranks],
            has_ended: vec![false; ranks],
            ..State::default()
        };
        let shared = Arc::new(Shared {
            slots,
            state: Mutex::new(state),
            services: Services::default(),
            handover: Handover::default(),
        });
        let mut processes = Self {
            shared,
            watchers: Vec::new(),
            library,
        };
        for rank in 0..start.ranks {
            // The processes that have been started are ended when this is dropped.
            processes.starts(start, rank).map_err(failed)?;
        }
        Ok(processes)
    }

    fn starts(&mut self, start: &Start, rank: u32) -> io::Result<()> {
        let shared = &self.shared;
        let slot = shared.slots.of(rank);
        slot.options
            .store(u32::from(start.measures) * MEASURES, Relaxed);
        let mut command = Command::new(start.command.first().cloned().unwrap_or_default());
        command.args(start.command.iter().skip(1));
        let (name, value) = shared.slots.variable(rank);
        command.env(name, value);
        let library = self.library.path();
        let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let paths = std::iter::once(library.to_owned()).chain(std::env::split_paths(&paths));
        let paths = std::env::join_paths(paths).map_err(io::Error::other)?;
        command.env("LD_LIBRARY_PATH", paths);
        if start.intercepts_clocks {
            let mut all = library.join(library::CLOCKS).into_os_string();
            if let Some(others) = std::env::var_os("LD_PRELOAD") {
                all.push(":");
                all.push(others);
            }
            command.env("LD_PRELOAD", all);
        }
        if rank > 0 {
            command.stdin(Stdio::null());
        }
        if start.has_prefix {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let outputs = [
            child
                .stdout
                .take()
                .map(|from| prefixed(from, io::stdout(), rank)),
            child
                .stderr
                .take()
                .map(|from| prefixed(from, io::stderr(), rank)),
        ];
        shared.state.lock().running[rank as usize] = Pid::from_raw(child.id() as i32);
        let shared = Arc::clone(shared);
        let watch = move || watches(&shared, rank, child, outputs);
        let watcher = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(watch)?;
        self.watchers.push(watcher);
        Ok(())
    }

    /// The process of a rank, as its calls see it.
    pub fn of(&self, rank: u32) -> RankProcess {
        RankProcess::new(rank, self.shared.slots.of(rank), Arc::clone(&self.shared))
    }

    /// Waits until all processes have ended; with `stops`, ends them. What went wrong first, if
    /// anything did.
    pub fn end(mut self, stops: bool) -> Option<Wrong> {
        if stops {
            self.shared.stop();
        }
        self.join();
        self.shared.state.lock().wrong.take()
    }

    fn join(&mut self) {
        for watcher in self.watchers.drain(..) {
            // A watcher does not panic.
            let _ = watcher.join();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if !self.watchers.is_empty() {
            self.shared.stop();
            self.join();
        }
    }
}

/// Bytes of the stack of a thread that only waits.
const STACK_BYTES: usize = 128 << 10;

/// Waits until a rank's process has ended, and its output been read.
fn watches(shared: &Shared, rank: u32, mut child: Child, outputs: [Option<JoinHandle<()>>; 2]) {
    if let Some(process) = Pid::from_raw(child.id() as i32) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = waitid(WaitId::Pid(process), options);
    }
    let mut state = shared.state.lock();
    state.running[rank as usize] = None;
    // It has ended: this does not wait.
    let status = child.wait();
    drop(state);
    for output in outputs.into_iter().flatten() {
        let _ = output.join();
    }
    if let Ok(status) = status {
        shared.ends(rank, status);
    }
    shared.state.lock().has_ended[rank as usize] = true;
    wake_simulator(shared.slots.of(rank));
}

/// Copies the lines of a process's output, each behind its rank.
fn prefixed(
    from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    rank: u32,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            let mut whole = format!("[{rank}] ").into_bytes();
            whole.append(&mut line);
            // A reader that has gone away needs nothing.
            let _ = to.write_all(&whole);
        }
    })
}
