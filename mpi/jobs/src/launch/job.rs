//! The processes of a job: started, watched, ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, set_parent_process_death_signal,
    waitid, waitpid,
};
use rustix::thread::set_current_timer_slack;
use sme_mpi::abi::facts::CALLS;
use sme_mpi::abi::process::Services;
use sme_mpi::abi::program::Part;
use sme_mpi::error::{ErrorClass, Fault};
use sme_mpi::file::Handover;

use super::desk::Desk;
use super::elsewhere::writes;
use super::interface::{self, CompiledFor, Uses};
use super::library;
use super::memory::Memory;
use super::part::{FoundPart, find};
use super::prefix::Copying;
use super::process::RankProcess;
use super::slots::Slots;
use super::slots::slot::{FINALIZED, INITIALIZED, IS_PATIENT, MEASURES, Slot};

/// A program, and how its processes are started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ranks that have a process from the beginning.
    pub ranks: u32,
    /// All ranks: those above are on standby, for processes that others start.
    pub universe: u32,
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
    desk: Desk,
    state: Mutex<State>,
    watchers: Mutex<Vec<JoinHandle<()>>>,
    setting: Setting,
    services: Services,
    handover: Handover,
}

/// The things that all processes have in common.
#[derive(Debug)]
struct Setting {
    start: Start,
    /// The directory of the libraries.
    libraries: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    /// The processes that have not been waited for.
    running: Vec<Option<Pid>>,
    /// Their memory, of those whose calls are performed.
    memories: Vec<Option<Arc<Memory>>>,
    has_ended: Vec<bool>,
    /// The ranks without a process, on which others can start one.
    free: BTreeSet<u32>,
    /// Those that are not free and whose processes others have started.
    later: BTreeSet<u32>,
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

    /// The process that a rank has now, as its calls see it.
    pub fn process(self: &Arc<Self>, rank: u32) -> RankProcess {
        let memory = Arc::new(Memory::new(self.slots.of(rank)));
        self.state.lock().memories[rank as usize] = Some(Arc::clone(&memory));
        RankProcess::new(rank, memory, Arc::clone(self))
    }

    /// The processes that compute.
    pub fn desk(&self) -> &Desk {
        &self.desk
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

    /// Takes so many ranks that have no process, those with the lowest numbers; if there are fewer
    /// none of them, but how many there may be when processes end that others have started.
    fn takes(&self, count: u32) -> Result<Vec<u32>, usize> {
        let mut state = self.state.lock();
        if state.free.len() < count as usize {
            return Err(state.free.len() + state.later.len());
        }
        let ranks: Vec<u32> = state.free.iter().copied().take(count as usize).collect();
        state.free.retain(|rank| !ranks.contains(rank));
        state.later.extend(&ranks);
        Ok(ranks)
    }

    /// Gives ranks back whose processes have ended; whether no rank has a process any more.
    pub fn leaves(&self, ranks: &[u32]) -> bool {
        let mut state = self.state.lock();
        state.free.extend(ranks);
        state.later.retain(|rank| !ranks.contains(rank));
        state.free.len() == state.running.len()
    }

    fn goes_wrong(&self, wrong: Wrong) {
        let mut state = self.state.lock();
        state.wrong.get_or_insert(wrong);
        drop(state);
        self.stop();
    }

    /// Ends all processes: those that are in a call, or soon make one, write the output in their
    /// buffers and end. Kills others, and those that neither write nor end.
    fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.slots.bell().rings();
        let begin = Instant::now();
        // The time at which each process was last seen to write.
        let mut wrote_at: BTreeMap<u32, Instant> = BTreeMap::new();
        loop {
            let state = self.state.lock();
            let ranks = state.running.iter().zip(&state.memories).zip(0..);
            let ranks = ranks.filter_map(|((&one, memory), rank)| Some((one?, memory, rank)));
            let mut are_all_over = true;
            for (process, memory, rank) in ranks {
                are_all_over = false;
                let is_told = memory.as_ref().is_some_and(|memory| memory.ends());
                let wrote_at = wrote_at.entry(rank).or_insert(begin);
                if is_told || writes(process) {
                    *wrote_at = Instant::now();
                }
                if wrote_at.elapsed() > GRACE || begin.elapsed() > LONGEST {
                    // It cannot have ended and been replaced: it is waited for under this lock.
                    let _ = kill_process(process, Signal::KILL);
                }
            }
            drop(state);
            if are_all_over {
                break;
            }
            thread::sleep(Duration::from_millis(2));
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
                let place = takes_results(slot).unwrap_or_else(|| when(reached).to_owned());
                Some(format!("was ended by {name}{place}"))
            }
        };
        let is_stopped = self.state.lock().is_stopped;
        match how {
            Some(how) if !is_stopped => self.goes_wrong(Wrong::Died { rank, how }),
            _ => self.slots.bell().rings(),
        }
    }
}

/// The call whose results a process was taking when it ended, in words: at the address that the
/// program gave for them is no memory any more, or none that the process may write to.
fn takes_results(slot: &Slot) -> Option<String> {
    if slot.writes_end.load(Relaxed) == 0 {
        return None;
    }
    let call = CALLS.get(slot.number.load(Relaxed) as usize)?;
    Some(format!(" as it took the results of {}", call.full_name))
}

/// Where in its life a process that has ended was.
fn when(reached: u32) -> &'static str {
    match reached {
        FINALIZED => " after MPI_Finalize",
        INITIALIZED => "",
        _ => " before MPI_Init",
    }
}

/// Lets the system end the process of a command when this one ends, even before its first call.
#[allow(unsafe_code)]
fn ends_with_this(command: &mut Command) {
    let asks = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec the function makes one system call, and neither allocates nor
    // waits for a lock.
    unsafe { command.pre_exec(asks) };
}

/// A program whose process is to be started.
#[derive(Clone, Copy, Debug)]
struct Begins<'a> {
    program: &'a OsStr,
    arguments: &'a [OsString],
    /// The directory, if it is not that of this program.
    directory: Option<&'a Path>,
    /// The use that it makes of MPICH's own libraries.
    uses: Uses,
}

impl Shared {
    /// Starts the process of a rank, which has none.
    fn starts(self: &Arc<Self>, rank: u32, begins: Begins<'_>) -> io::Result<()> {
        let Setting { start, libraries } = &self.setting;
        let slot = self.slots.of(rank);
        self.slots.clear(rank);
        let is_patient = self.slots.are_patient();
        let options = u32::from(start.measures) * MEASURES + u32::from(is_patient) * IS_PATIENT;
        slot.options.store(options, Relaxed);
        let mut command = Command::new(begins.program);
        command.args(begins.arguments);
        if let Some(directory) = begins.directory {
            command.current_dir(directory);
        }
        let (name, value) = self.slots.variable(rank);
        command.env(name, value);
        let clocks = start.intercepts_clocks;
        library::lead(&mut command, libraries, begins.uses, clocks)?;
        if rank > 0 || begins.directory.is_some() {
            command.stdin(Stdio::null());
        }
        if start.has_prefix {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        // A process has the slack of the thread that starts it. At the usual 50 us, one that sleeps
        // for no time between two looks sleeps for long. If the slack stays, no harm is done.
        let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
        ends_with_this(&mut command);
        let mut state = self.state.lock();
        if state.is_stopped {
            return Err(io::Error::other("the job has ended"));
        }
        let child = command.spawn()?;
        let process = Pid::from_raw(child.id() as i32);
        state.running[rank as usize] = process;
        state.has_ended[rank as usize] = false;
        drop(state);
        let watcher = self.watched(rank, child).inspect_err(|_| {
            let mut state = self.state.lock();
            state.running[rank as usize] = None;
            state.has_ended[rank as usize] = true;
            if let Some(process) = process {
                // It has not been waited for, and so no other process has its number.
                let _ = kill_process(process, Signal::KILL);
                let _ = waitpid(Some(process), WaitOptions::empty());
            }
        })?;
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| !watcher.is_finished());
        watchers.push(watcher);
        Ok(())
    }

    /// A thread that watches the process of a rank.
    ///
    /// # Errors
    /// There are no more threads.
    fn watched(self: &Arc<Self>, rank: u32, mut child: Child) -> io::Result<JoinHandle<()>> {
        let from = child.stdout.take();
        let stdout = from.map(|from| Copying::new(from, io::stdout(), rank));
        let from = child.stderr.take();
        let stderr = from.map(|from| Copying::new(from, io::stderr(), rank));
        let outputs = [stdout.transpose()?, stderr.transpose()?];
        let shared = Arc::clone(self);
        let watch = move || watches(&shared, rank, child, outputs);
        thread::Builder::new().stack_size(STACK_BYTES).spawn(watch)
    }

    /// Starts processes of each part of a program for the process of this number, on ranks that
    /// have none; returns these ranks, in the order of the parts. It starts none, and returns
    /// `None`, if there are not enough such ranks, but may be when other processes have ended.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`] if there are not so many ranks, or a program is not there; none is
    /// started then.
    pub fn starts_parts(
        self: &Arc<Self>,
        by: u32,
        parts: &[Part],
    ) -> Result<Option<Vec<u32>>, Fault> {
        let fault = |text| Fault::new(ErrorClass::Spawn, "command", text);
        let counts = parts.iter().map(|part| part.count);
        let count = counts.clone().fold(0, u32::saturating_add);
        let universe = self.setting.start.universe;
        if self.state.lock().is_stopped {
            return Err(fault("the job has ended".to_owned()));
        }
        let ranks = match self.takes(count) {
            Ok(ranks) => ranks,
            Err(most) if most >= count as usize => return Ok(None),
            Err(most) => {
                let text = format!(
                    "{count} more processes are wanted, and {most} of {universe} ranks can have \
                     one: sme mpi run --universe N makes N ranks"
                );
                self.tells(text.clone());
                return Err(Fault::new(ErrorClass::Spawn, "maxprocs", text));
            }
        };
        let found: Result<Vec<FoundPart>, Fault> =
            parts.iter().map(|part| find(by, part)).collect();
        let found = found.inspect_err(|_| {
            self.leaves(&ranks);
        })?;
        let each = found.iter().zip(counts);
        let each = each.flat_map(|(part, count)| std::iter::repeat_n(part, count as usize));
        for (&rank, part) in ranks.iter().zip(each) {
            let begins = Begins {
                program: part.program.as_os_str(),
                arguments: &part.arguments,
                directory: Some(&part.directory),
                uses: part.uses,
            };
            if let Err(error) = self.starts(rank, begins) {
                let program = part.program.to_string_lossy().into_owned();
                let why = error.to_string();
                let text = format!("{program}: {why}");
                // Processes that have been started before it wait for a world that does not come.
                if ranks.first() != Some(&rank) {
                    self.goes_wrong(Wrong::NoProgram { program, why });
                }
                self.leaves(&ranks);
                return Err(fault(text));
            }
        }
        Ok(Some(ranks))
    }
}

/// The processes of a job.
#[derive(Debug)]
pub struct Processes {
    shared: Arc<Shared>,
}

impl Processes {
    /// Starts the processes of all ranks that have one from the beginning. The libraries that they
    /// load are laid down in the directory `libraries`.
    ///
    /// # Errors
    /// [`Wrong::NoProgram`]
    pub fn start(start: &Start, libraries: &Path) -> Result<Self, Wrong> {
        let program = start.command.first().cloned().unwrap_or_default();
        let failed = |error: io::Error| Wrong::NoProgram {
            program: program.to_string_lossy().into_owned(),
            why: error.to_string(),
        };
        let CompiledFor::Other(uses) = interface::of(&program) else {
            return Err(failed(io::Error::other(interface::OF_OPEN_MPI)));
        };
        library::lay_down(libraries).map_err(failed)?;
        let slots = Slots::new(start.universe).map_err(failed)?;
        let state = State {
            running: vec![None; start.universe as usize],
            memories: vec![None; start.universe as usize],
            has_ended: vec![false; start.universe as usize],
            free: (start.ranks..start.universe).collect(),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            desk: Desk::new(slots.bell()),
            slots,
            state: Mutex::new(state),
            watchers: Mutex::default(),
            setting: Setting {
                start: start.clone(),
                libraries: libraries.to_owned(),
            },
            services: Services::default(),
            handover: Handover::default(),
        });
        // The processes that have been started are ended when this is dropped.
        let processes = Self { shared };
        let begins = Begins {
            program: &program,
            arguments: start.command.get(1..).unwrap_or_default(),
            directory: None,
            uses,
        };
        for rank in 0..start.ranks {
            processes.shared.starts(rank, begins).map_err(failed)?;
        }
        Ok(processes)
    }

    /// The state that their threads share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits until all processes have ended; with `stops`, ends them. What went wrong first, if
    /// anything did.
    pub fn end(self, stops: bool) -> Option<Wrong> {
        if stops {
            self.shared.stop();
        }
        self.join();
        self.shared.state.lock().wrong.take()
    }

    fn join(&self) {
        loop {
            let watcher = self.shared.watchers.lock().pop();
            let Some(watcher) = watcher else { break };
            // A watcher does not panic.
            let _ = watcher.join();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if !self.shared.watchers.lock().is_empty() {
            self.shared.stop();
            self.join();
        }
        self.shared.desk.closes();
    }
}

/// The time after which a process is ended that neither makes a call nor writes output.
const GRACE: Duration = Duration::from_millis(500);

/// The time that processes have to write their output, however slow its reader is.
const LONGEST: Duration = Duration::from_secs(60);

/// Bytes of the stack of a thread that only waits.
const STACK_BYTES: usize = 128 << 10;

/// Waits until a rank's process has ended, and its output been read.
fn watches(shared: &Shared, rank: u32, mut child: Child, outputs: [Option<Copying>; 2]) {
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
        output.ends();
    }
    if let Ok(status) = status {
        shared.ends(rank, status);
    }
    shared.state.lock().has_ended[rank as usize] = true;
    shared.slots.bell().rings();
}
