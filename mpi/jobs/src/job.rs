//! A job of ranks on a machine, over a message library: simulated, and what is observed of it.

mod error;
mod managed;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_memory::{Capabilities, Capability, Memory, Place};
use sme_mpi::channel::chunks::{self, Chunks, Ring};
use sme_mpi::channel::layout::{Layout, Reach};
use sme_mpi::channel::queues::portals::Buffers;
use sme_mpi::channel::queues::{self, Queues};
use sme_mpi::channel::sections::{Flaw, Sections};
use sme_mpi::channel::shared::Shared;
use sme_mpi::channel::transfers::Modes;
use sme_mpi::mppaipc::{Hardware, Room};
use sme_mpi::rank::Mpi;
use sme_mpi::rcce;
use sme_mpi::window;
use sme_sim::machine::{Machine, Setup};
use sme_sim::observe::calls::ThreadCall;
use sme_sim::observe::energy::Energy;
use sme_sim::observe::failure::Failure;
use sme_sim::observe::path::{End, PathStep};
use sme_sim::observe::spans::{SpanTimes, Spans};
use sme_sim::observe::staleness::StaleReport;
use sme_sim::observe::timeline::Recorded;
use sme_sim::observe::words;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::channel::SimulatedChannel;
use super::choice::CallChoice;
pub use super::library::Library;
use super::processor::Core;
pub use error::Error;
use managed::PROCESSES;

/// The default number of messages of channel queues that each rank may have under way to each
/// other one.
const CREDITS: u32 = 8;

/// Bytes of a node's memory that channel queues keeps for itself: slots, and buffers for data.
const LIBRARY_BYTES: u64 = 384 << 10;

/// The buffers among them for data that are received, and for those that are sent, without an
/// address.
const BUFFER_BYTES: u64 = 128 << 10;

/// The buffer among them for data that are sent later, at most.
pub const LAZY_BYTES: u64 = 64 << 10;

/// The library as such a rank has it.
pub type SimulatedMpi = Mpi<SimulatedChannel>;

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The library.
    pub library: Library,
    /// Ranks of the job, which fill one node's cores after the other's.
    pub ranks: u32,
    /// Whether there is one rank more, the last, on an I/O subsystem: of channel queues, with a
    /// rank on each cluster.
    pub has_io: bool,
    /// Whether each core of the chip, or each node of the cluster, has a daemon of a process
    /// manager ([`sme_mpi::process`]), which takes a part of its message passing buffer, or of its
    /// memory.
    pub is_managed: bool,
    /// A process that something outside kills, of a job whose cores have daemons.
    pub kill: Option<Kill>,
    /// Which messages go which way.
    pub modes: Modes,
    /// Bytes of a rank's buffer for data that are sent later, at most [`LAZY_BYTES`].
    pub lazy_bytes: u64,
    /// Control messages that each rank may have under way to each other one.
    pub credits: u32,
    /// The rings of channel chunks.
    pub ring: Ring,
    /// A flaw of its sections, for tests.
    pub flaw: Option<Flaw>,
    /// Threads of this computer that simulate it; nothing that comes out depends on them.
    pub workers: usize,
}

/// The process that runs on a core at a time is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The core.
    pub core: u32,
    /// The time since the machine was started.
    pub at: Time,
}

/// The things that may be observed of a job, without any influence on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe {
    /// Every call of every rank.
    pub calls: bool,
    /// The calls and waits of every thread, and who wrote what it saw.
    pub timeline: bool,
    /// The critical path of the last of the spans of this name, which have the numbers from 0; for
    /// it the job is simulated once more.
    pub critical_path: Option<&'static str>,
    /// The critical path of a call, for which everything is traced from the beginning: programs
    /// that cannot be run once more can be explained, too.
    pub call: Option<CallChoice>,
    /// Whether each load returns the newest value that has happened before it.
    pub stale: bool,
}

/// The things that were observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// All spans.
    pub spans: Spans,
    /// The calls, each with its rank, in the order of their begins, of equal ones by rank.
    pub calls: Vec<(u32, ThreadCall)>,
    /// The activity of every thread, if it was observed.
    pub timeline: Recorded,
    /// The critical path: contiguous steps, the first one first.
    pub critical_path: Vec<PathStep>,
    /// The call whose path it is, and its rank, if one was asked for.
    pub explained: Option<(u32, ThreadCall)>,
    /// The stale loads, if loads were checked.
    pub stale: Option<StaleReport>,
    /// Messages that the ranks have begun to send.
    pub messages: u64,
    /// Simulated events.
    pub events: u64,
    /// The energy until the last program ended, on machines with figures of power.
    pub energy: Option<Energy>,
}

impl Observe {
    /// Whether each call is kept.
    fn keeps_calls(self) -> bool {
        self.calls || self.timeline || self.call.is_some()
    }
}

/// The outcomes of the ranks' programs.
#[derive(Default)]
struct Told {
    messages: u64,
    /// The error of the lowest rank that has one, whichever rank ends first.
    wrong: Option<(u32, Error)>,
}

impl Told {
    /// Hears that the program of `rank` has ended.
    fn hears(&mut self, rank: u32, ended: Result<u64, Error>) {
        match ended {
            Ok(messages) => self.messages += messages,
            Err(error) => {
                if self.wrong.as_ref().is_none_or(|&(other, _)| rank < other) {
                    self.wrong = Some((rank, error));
                }
            }
        }
    }
}

impl Job {
    /// Of so many ranks, simulated by one thread.
    pub fn new(machine: Arc<Machine>, library: Library, ranks: u32) -> Self {
        let ring = Ring::of_open_mpi(machine.shape().coherence.is_some());
        Self {
            machine,
            library,
            ranks,
            has_io: false,
            is_managed: false,
            kill: None,
            modes: library.modes(),
            lazy_bytes: LAZY_BYTES,
            credits: CREDITS,
            ring,
            flaw: None,
            workers: 1,
        }
    }

    /// Ranks on each node: as many as it has cores, or one where only these share a memory, or
    /// where nodes are what programs reserve.
    pub fn per_node(&self) -> u32 {
        if self.is_managed {
            return 1;
        }
        let reach_others = self.machine.capabilities().has(Capability::Remote);
        match reach_others {
            true => self.machine.shape().cores.min(self.ranks).max(1),
            false => 1,
        }
    }

    /// The most ranks that `machine` has cores for, I/O subsystems apart.
    pub fn most_ranks(machine: &Machine) -> u32 {
        let shape = machine.shape();
        let nodes = shape.nodes - shape.io_nodes;
        match machine.capabilities().has(Capability::Remote) {
            true => nodes.saturating_mul(shape.cores),
            false => nodes,
        }
    }

    /// Nodes that have ranks.
    pub fn nodes(&self) -> u32 {
        self.all_ranks().div_ceil(self.per_node())
    }

    /// Its ranks, the one on an I/O subsystem included.
    pub fn all_ranks(&self) -> u32 {
        self.ranks + u32::from(self.has_io)
    }

    /// The memory of its channel.
    pub(super) fn layout(&self) -> Layout {
        let shape = self.machine.shape();
        let placed = (self.ranks, self.per_node());
        let in_memory = match (shape.pool_devices, self.nodes()) {
            (0, _) | (_, 1) => Layout::of_memory(placed, shape.buffer_bytes, Reach::Coherent),
            (_, nodes) => Layout::of_pool(placed, shape.sharing(nodes), shape.line_bytes),
        };
        match self.library {
            Library::Rcce | Library::Sccmpb => {
                let bytes = match self.is_managed {
                    true => self.board().begin,
                    false => shape.buffer_bytes,
                };
                Layout::of_buffers(self.ranks, bytes)
            }
            Library::Sccshm => Layout::of_memory(placed, shape.buffer_bytes, Reach::Tagged),
            Library::Sections | Library::Queues => in_memory,
            Library::Chunks => Layout::of_rings(placed, shape.buffer_bytes, self.ring.bytes()),
            Library::Registered => {
                let left = shape.shared_bytes.saturating_sub(in_memory.end());
                in_memory.with_registered(left / u64::from(in_memory.parts()))
            }
        }
    }

    /// Threads that run beside the ranks of each node.
    fn threads_beside(&self) -> u32 {
        match self.library {
            _ if self.is_managed => PROCESSES,
            // The server.
            Library::Queues => 1,
            _ => 0,
        }
    }

    /// Returns whether the machine has a core for each rank.
    fn check_ranks(&self) -> Result<(), Error> {
        let (ranks, most) = (self.ranks, Self::most_ranks(&self.machine));
        match (1..=most).contains(&ranks) {
            true => Ok(()),
            false => Err(Error::Ranks {
                ranks,
                most,
                machine: self.machine.name().to_owned(),
            }),
        }
    }

    /// Returns whether the machine can run it.
    ///
    /// # Errors
    /// [`Error`]: [`Error::Ranks`] if there are no ranks, or more than
    /// [the machine has cores for](Self::most_ranks).
    pub fn check(&self) -> Result<(), Error> {
        let shape = self.machine.shape();
        let bytes = shape.buffer_bytes;
        let name = || self.machine.name().to_owned();
        if self.is_managed {
            return self.check_managed();
        }
        let needs: &[Capability] = match self.library {
            Library::Chunks if shape.pool_devices > 0 => {
                return Err(Error::PoolOnly("channel chunks", name()));
            }
            Library::Sections | Library::Registered | Library::Chunks => &[Capability::Timer],
            Library::Queues => {
                let needs = [Capability::Network, Capability::Threads, Capability::Timer];
                let needs = Capabilities::of(&needs).without(Capability::Remote);
                self.machine.suffices("channel queues", needs)?;
                return self.check_ranks();
            }
            library if bytes == 0 => return Err(Error::NoBuffers(library, name())),
            _ => &[Capability::Tagged, Capability::AnyFlag, Capability::Timer],
        };
        self.machine
            .suffices("a message library", Capabilities::of(needs))?;
        self.check_ranks()?;
        if self.library == Library::Rcce {
            return Ok(rcce::check(self.ranks, bytes)?);
        }
        let layout = self.layout();
        layout.check()?;
        let near = layout.near().map_or(0, |near| near.end());
        let (needed, there) = (layout.end().max(near), shape.shared_bytes);
        match needed <= there {
            true => Ok(()),
            false => Err(Error::NoMemory { needed, there }),
        }
    }

    /// Returns whether a node's memory holds the data of a rank, which end there. Of machines whose
    /// nodes reach each other's memory a rank's own is not counted.
    ///
    /// # Errors
    /// [`Error::NoRoomForData`]
    pub fn holds(&self, end: u64) -> Result<(), Error> {
        let there = self.data_bytes();
        match self.library == Library::Queues && end > there {
            true => Err(Error::NoRoomForData { end, there }),
            false => Ok(()),
        }
    }

    /// Bytes of a node's memory that channel queues leaves to a rank's data.
    fn data_bytes(&self) -> u64 {
        let all = self.machine.shape().shared_bytes;
        all.saturating_sub(LIBRARY_BYTES)
    }

    /// Returns whether ranks share memory with locks beside the channel: a rank's is its node's, so
    /// that each has a node of its own.
    pub fn has_area(&self) -> bool {
        if self.library == Library::Queues || self.per_node() != 1 {
            return false;
        }
        let needs = Capabilities::of(&[Capability::TestAndSet]);
        self.machine.suffices("a window", needs).is_ok()
    }

    /// The offset in each node's memory behind the channel's.
    pub(super) fn behind_channel(&self) -> u64 {
        self.layout().end().max(self.machine.shape().buffer_bytes)
    }

    /// The core of a rank that has `memory`.
    pub(super) fn core(&self, memory: &ThreadMemory) -> Core {
        let (shape, node) = (self.machine.shape(), memory.node());
        let is_of_io = self.has_io && node >= shape.nodes - shape.io_nodes;
        let software = match is_of_io {
            true => shape.software.of_subsystem(),
            false => shape.software,
        };
        Core::new(memory.clone(), software)
    }

    /// The MPI library of rank `rank`.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) async fn mpi(
        &self,
        memory: &ThreadMemory,
        rank: u32,
    ) -> Result<SimulatedMpi, Error> {
        let core = self.core(memory);
        if self.library == Library::Queues {
            let job = self.clone();
            let core = move |memory: &ThreadMemory| job.core(memory);
            let queues = Queues::start(memory.clone(), core, self.queues()).await?;
            let mpi = Mpi::new(SimulatedChannel::Queues(Box::new(queues)));
            mpi.channel().meet().await?;
            return Ok(mpi);
        }
        let area = self.has_area().then(|| {
            let begin = self.behind_channel();
            let bytes = self.machine.shape().shared_bytes.saturating_sub(begin);
            Shared::new(memory.clone(), core.clone(), begin, bytes)
        });
        if self.library == Library::Chunks {
            let setting = (self.layout(), self.ring);
            let channel = Chunks::new(memory.clone(), core, rank, setting)?;
            let channel = channel.with_eager(self.modes.eager_bytes).with_area(area);
            return Ok(Mpi::new(SimulatedChannel::Chunks(Box::new(channel))));
        }
        let channel = Sections::new(memory.clone(), core, rank, self.layout())?;
        let channel = match self.library {
            Library::Registered => channel.with_transfers(self.modes),
            _ => channel.with_eager(self.modes.eager_bytes),
        };
        let channel = channel.with_flaw(self.flaw);
        let channel = Box::new(channel.with_area(area));
        Ok(Mpi::new(SimulatedChannel::Sections(channel)))
    }

    /// The settings of channel queues.
    fn queues(&self) -> queues::Setting {
        let shape = self.machine.shape();
        queues::Setting {
            ranks: self.all_ranks(),
            outside: u32::from(self.has_io),
            credits: self.credits,
            hardware: Hardware {
                clusters: shape.nodes - shape.io_nodes,
                tags: shape.interfaces.tags,
                channels: shape.interfaces.channels,
            },
            room: Room {
                begin: self.data_bytes(),
                end: shape.shared_bytes,
            },
            server: shape.cores - 1,
            modes: self.modes,
            buffers: Buffers {
                received: BUFFER_BYTES,
                sent: BUFFER_BYTES,
                lazy: self.lazy_bytes,
            },
        }
    }

    /// Runs `program` as each rank; it ends with the number of messages that the rank has sent.
    ///
    /// # Errors
    /// [`Error`]: that of the lowest rank whose program ends with one, else that of the simulation.
    pub(super) fn run<F>(
        &self,
        observe: Observe,
        program: impl Fn(ThreadMemory, u32) -> F,
    ) -> Result<Observed, Error>
    where
        F: Future<Output = Result<u64, Error>> + Send + 'static,
    {
        self.check()?;
        let (ranks, per_node) = (self.all_ranks(), self.per_node());
        let told: Arc<Mutex<Told>> = Arc::default();
        let program = |memory: ThreadMemory, node, thread| {
            let rank = node * per_node + thread;
            // The last node may have cores without a rank.
            let program = (rank < ranks).then(|| program(memory, rank));
            let told = Arc::clone(&told);
            async move {
                if let Some(program) = program {
                    let ended = program.await;
                    told.lock().hears(rank, ended);
                }
            }
        };
        let room = per_node + self.threads_beside();
        let setup = Setup::new(self.machine.shape(), self.nodes(), per_node).with_room(room);
        let setup = setup.with_each_span(observe.keeps_calls());
        let mut machine = self.machine.build(setup.clone(), program)?;
        if observe.timeline {
            machine.record_timeline()?;
        }
        if observe.stale {
            machine.check_loads()?;
        }
        if observe.call.is_some() {
            machine.trace_from(Time::ZERO);
        }
        let ended = machine.run(self.workers, |_| {});
        let stale = machine.stale_reads();
        let Told { messages, wrong } = std::mem::take(&mut *told.lock());
        let failed = |failure: Failure| failure.named(&|place| self.named(place)).into();
        let wrong = wrong.map(|(_, error)| error);
        if let Some(why) = wrong.or(ended.err().map(failed)) {
            return Err(why.with_stale(stale));
        }
        let calls = machine
            .each_call()
            .map(|(node, call)| (node * per_node + u32::from(call.thread) % per_node, *call));
        let mut calls: Vec<(u32, ThreadCall)> = calls.collect();
        calls.sort_by_key(|&(rank, call)| (call.begin, rank, Reverse(call.end)));
        let spans = machine.spans().clone();
        let explained = observe.call.and_then(|choice| choice.of(&calls));
        let path_of = |(rank, ended): (u32, ThreadCall)| {
            let end = End::Call {
                thread: (rank / per_node, ended.thread),
                at: ended.end,
            };
            machine.critical_path(end, ended.begin, &|place| self.variable(place))
        };
        let critical_path = match observe.critical_path {
            _ if observe.call.is_some() => explained.map(path_of).unwrap_or_default(),
            Some(name) => match spans.called(name) {
                [before @ .., last] => {
                    let mut again = self.machine.build(setup, program)?;
                    // From a span earlier, so that operations under way at the beginning are known.
                    let from = before.last().map_or(Time::ZERO, |span| span.first_begin);
                    again.trace_from(from);
                    again.run(self.workers, |_| {})?;
                    let number = spans.called(name).len() as u32 - 1;
                    let variable = |place| self.variable(place);
                    let end = Span::new(name, number).into();
                    again.critical_path(end, last.first_begin, &variable)
                }
                _ => Vec::new(),
            },
            None => Vec::new(),
        };
        let timeline = match observe.timeline {
            true => self.recorded(&*machine),
            false => Recorded::default(),
        };
        Ok(Observed {
            messages,
            events: machine.events(),
            energy: machine.energy(),
            timeline,
            critical_path,
            explained,
            stale,
            spans,
            calls,
        })
    }

    /// Runs `program` as each rank of MPI, with the rank's memory beside the library.
    ///
    /// # Errors
    /// [`Error`]: that of the lowest rank whose program ends with one, else that of the simulation.
    /// [`Error::NotMpi`] if the job's library is not MPI.
    pub fn run_mpi<F, E>(
        &self,
        observe: Observe,
        program: impl Fn(Arc<SimulatedMpi>, ThreadMemory) -> F + Clone + Send + 'static,
    ) -> Result<Observed, Error>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Error> + Send,
    {
        if !self.library.is_mpi() {
            return Err(Error::NotMpi(self.library));
        }
        self.run(observe, |memory, rank| {
            let (job, program) = (self.clone(), program.clone());
            async move {
                let mpi = Arc::new(job.mpi(&memory, rank).await?);
                let ended = program(Arc::clone(&mpi), memory).await;
                if ended.is_ok() {
                    mpi.drain().await;
                }
                mpi.channel().stop().await;
                ended.map_err(Into::into)?;
                Ok(mpi.messages())
            }
        })
    }

    /// The name of the library's variable at `place`, if it is one.
    fn named(&self, place: Place) -> Option<String> {
        match self.library {
            Library::Rcce => return rcce::variable(place, self.ranks),
            Library::Queues => return None,
            _ => {}
        }
        if self.is_managed
            && let Some(name) = self.board().variable(place)
        {
            return Some(name);
        }
        match place.offset.checked_sub(self.behind_channel()) {
            Some(offset) if self.has_area() => {
                window::variable(Place { offset, ..place }, self.ranks)
            }
            _ if self.library == Library::Chunks => {
                chunks::variable(&self.layout(), self.ring, place)
            }
            _ => self.layout().variable(place),
        }
    }

    /// The same, or the place in words.
    pub(super) fn variable(&self, place: Place) -> String {
        self.named(place).unwrap_or_else(|| words::place(place))
    }
}

/// The times of the only span called `name`.
pub(super) fn times(spans: &Spans, name: &str) -> SpanTimes {
    spans
        .called(name)
        .first()
        .copied()
        .unwrap_or(SpanTimes::NONE)
}
