//! A node as threads and the hardware that performs what they ask for. The part that the threads of
//! every machine share: programs that are polled, the operating system, spans, the log for the
//! checker of loads, traces. A family writes the hardware ([`Hardware`]).

mod host;
mod pace;
mod processor;
mod seen;
mod waits;

use std::sync::Arc;

pub use processor::{Message, Processor, Seen, Setting, Thread, Waiting};

use super::nodes::{Apart, Nodes};
use crate::kernel::thread::Programs;
use crate::kernel::window::{self, Inbox, NoLate, NoTask, Outbox};
use crate::machine::family::NodeThreads;
use crate::machine::shape::Setup;
use crate::observe::among::Among;
use crate::observe::energy::Energy;
use crate::observe::survey::AtHome;
use crate::observe::traffic::CacheTraffic;
use crate::observe::unwritten::Dirty;
use crate::parts::address::{AddressSpace, FaultReason, Space};
use crate::parts::contract::{Operation, ThreadMemory};
use crate::parts::line::Bytes;
use crate::parts::os::{self, Activity, Delays, Host};
use crate::time::Time;

/// The hardware of a node, which performs the operations of its threads.
pub trait Hardware: Send + Sized {
    /// An event of the hardware.
    type Event: Send;

    /// A message between the hardware of two nodes.
    type Message: window::Message;

    /// Performs `operation`, which `thread` has asked for: [`Processor::done`] now or later. Calls
    /// of the system do not come here, but for writing caches back, whose time the system has taken
    /// by then.
    fn begin(&mut self, cpu: &mut Processor<Self>, thread: u16, operation: Operation);

    /// `thread`, which [spins or watches](Waiting) something, does so no longer.
    fn abandons(&mut self, thread: u16);

    /// Handles an event that was scheduled with [`Processor::later`].
    fn happens(&mut self, cpu: &mut Processor<Self>, event: Self::Event);

    /// Node `from` has sent something on behalf of a thread of its own, or of one of this node's.
    fn arrives(&mut self, cpu: &mut Processor<Self>, from: u32, message: Message<Self::Message>);

    /// The word at `address`, by a key, and what it holds: for threads that sleep on it.
    ///
    /// # Errors
    /// If no thread can sleep there.
    fn word(&self, cpu: &Processor<Self>, address: u64) -> Result<(u64, u64), FaultReason>;

    /// The node whose memory holds what `address` names, and the address in that node's own
    /// numbering.
    fn home(&self, cpu: &Processor<Self>, address: u64) -> Option<(u32, u64)>;

    /// The value of these bytes in the cached copy of `thread`, if there is one.
    fn copy(&self, cpu: &Processor<Self>, thread: u16, address: u64, bytes: Bytes) -> Option<u64>;

    /// The words that its caches of other nodes' memory have not written back.
    fn dirty(&self) -> Vec<Dirty> {
        Vec::new()
    }

    /// The content of its memory at an address of its own numbering.
    fn at_home(&self, address: u64, bytes: Bytes) -> AtHome;

    /// Lets it keep the last writes of the words at these offsets of its shared memory.
    fn keep_last_writes(&mut self, offsets: &[u64]);

    /// Lets its memory hold `value` in the word at `offset` of its shared memory.
    fn preset(&mut self, offset: u64, value: u64);

    /// The traffic of caches that are not coherent between nodes.
    fn cache_traffic(&self) -> CacheTraffic {
        CacheTraffic::default()
    }

    /// The energy that the node has taken from the begin to `until`, where the machine has figures
    /// of power.
    fn energy(&self, _cpu: &Processor<Self>, _until: Time) -> Option<Energy> {
        None
    }

    /// Bytes of simulator state.
    fn bytes(&self) -> usize;
}

/// A node: its threads and its hardware.
pub struct Node<H: Hardware> {
    cpu: Processor<H>,
    hardware: H,
}

/// The parts of a machine, without its programs.
pub struct Blueprint<S, H> {
    /// The address space through which programs see its memory.
    pub space: S,
    /// The distance of its nodes in time.
    pub apart: Apart,
    /// Cores of each node.
    pub cores: u32,
    /// The time of a program's own instructions around one operation.
    pub operation: Time,
    /// The costs of the system, and of writing all caches back, without the call.
    pub system: (Delays, Time),
    /// Makes the hardware of a node.
    pub hardware: H,
}

impl<S: AddressSpace + Copy + 'static, F> Blueprint<S, F> {
    /// The nodes of the machine, this process's share of them, as `setup` wants them, with the
    /// programs that `threads` gives.
    pub fn nodes<H: Hardware>(
        self,
        among: Among,
        setup: &Setup,
        threads: &mut NodeThreads<'_>,
    ) -> Nodes<Node<H>>
    where
        F: Fn(u32) -> H,
    {
        let space = Space::new(self.space);
        let setting = Arc::new(Setting {
            space: Box::new(self.space),
            cores: self.cores,
            operation: self.operation,
            system: self.system,
            room: setup.most_threads(),
            noise: setup.noise,
            each_span: setup.each_span,
        });
        let pace = (self.apart, setup.most_threads());
        Nodes::of(among, pace, Arc::clone(&space), |me| {
            // Those behind hold memory only.
            let count = if me < setup.nodes { setup.threads } else { 0 };
            let memory = |thread| ThreadMemory::new(Arc::clone(&space), me, thread);
            let programs = threads((0..count).map(memory).collect());
            Node::new(me, Arc::clone(&setting), programs, (self.hardware)(me))
        })
    }
}

impl<H: Hardware> Node<H> {
    fn new(me: u32, setting: Arc<Setting>, programs: Box<dyn Programs>, hardware: H) -> Self {
        let cpu = Processor::new(me, setting, programs);
        Self { cpu, hardware }
    }

    fn system_event(&mut self, event: os::Event) {
        match event {
            os::Event::Resume(thread) => self.resume(thread),
            os::Event::Woken(thread) => self.woken(thread),
            os::Event::TimesOut(core) => self.times_out(core),
            os::Event::Rings(thread) => self.rings(thread),
            os::Event::Call(thread) => match self.cpu.thread(thread).operation {
                operation @ Operation::WriteBack { .. } => {
                    self.cpu.goes_on(thread);
                    self.hardware.begin(&mut self.cpu, thread, operation);
                }
                _ => self.system_call(thread),
            },
        }
    }

    /// Lets `thread` run until it asks for something that takes time.
    fn resume(&mut self, thread: u16) {
        if self.ends_if_killed(thread) {
            return;
        }
        self.cpu.waits(thread, Waiting::Nothing);
        if self.cpu.system.is_shared() && !self.has_its_turn(thread) {
            return;
        }
        self.cpu.progress();
        self.cpu.goes_on(thread);
        loop {
            let operation = match self.cpu.poll(thread) {
                Ok(Some(operation)) => operation,
                Ok(None) => return self.ends(thread),
                Err(misuse) => {
                    return self.cpu.refuse(thread, None, FaultReason::Misuse(misuse));
                }
            };
            match operation {
                Operation::Mark(mark) => self.cpu.says(thread, mark),
                Operation::Delay(span) => return self.cpu.computes(thread, span),
                Operation::Spawn(_) => {
                    self.takes_start(thread);
                    return self.enter_system(thread);
                }
                Operation::WaitAny(flags, ..) if flags.count == 0 => {
                    return self.cpu.refuse(thread, None, FaultReason::NoFlags);
                }
                Operation::WaitAll(flags, ..) if flags.count == 0 => {
                    return self.cpu.done(thread, 0, Time::ZERO);
                }
                Operation::WriteBack { .. } => return self.cpu.calls_write_back(thread),
                Operation::FutexWait(..)
                | Operation::FutexWake(..)
                | Operation::Join(..)
                | Operation::SendSignal(..)
                | Operation::TakeSignal(_)
                | Operation::Kill(_)
                | Operation::Alarm(..)
                | Operation::GiveWay => return self.enter_system(thread),
                Operation::TakeInterrupt(_) => {
                    self.hardware.begin(&mut self.cpu, thread, operation);
                    if self.activity(thread) == Activity::Sleeps {
                        self.waits_for_interrupt(thread);
                    }
                    return;
                }
                _ => return self.hardware.begin(&mut self.cpu, thread, operation),
            }
        }
    }

    /// The program of `thread` ends.
    fn ends(&mut self, thread: u16) {
        self.cpu.finishes(thread);
        self.has_ended(thread);
    }
}

impl<H: Hardware> window::Locality for Node<H> {}

impl<H: Hardware> window::Node for Node<H> {
    type Message = Message<H::Message>;
    type Late = NoLate;
    type Workspace = ();
    type Task = NoTask;

    fn next(&self) -> Time {
        self.cpu.next()
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, Self::Message>,
        outbox: &mut Outbox<Self::Message>,
        (): &mut (),
    ) -> Option<NoTask> {
        inbox.hand_over(self);
        while self.cpu.next() < end {
            match self.cpu.pop()? {
                processor::Event::System(event) => self.system_event(event),
                processor::Event::Hardware(event) => self.hardware.happens(&mut self.cpu, event),
                processor::Event::Arrives(from, message) => {
                    self.cpu.has_come(from, &message);
                    self.hardware.arrives(&mut self.cpu, from, message);
                }
            }
            self.cpu.send_all(outbox);
        }
        None
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, message: Self::Message) {
        self.cpu.deliver(at, from, sequence, message);
    }

    fn take_late(&mut self, _: Time, late: NoLate, _: Time) {
        match late {}
    }
}
