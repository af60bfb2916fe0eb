//! The memory that the simulator shares with the processes of ranks: a slot for each.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::Duration;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex;
use rustix::time::Timespec;

#[path = "../../../libmpi/src/slot.rs"]
pub mod slot;

/// The process's side of writes that are left to it.
#[cfg(test)]
#[allow(unsafe_code)]
#[path = "../../../libmpi/src/writes.rs"]
pub mod writes;

use slot::{PROCESS, SIMULATOR, SLOT_BYTES, Slot, VARIABLE};

/// The slots of a job.
#[derive(Debug)]
pub struct Slots {
    memory: std::os::fd::OwnedFd,
    slots: Vec<&'static Slot>,
    bell: Bell,
    /// Whether this computer has a processor for each process, and one for the simulator.
    are_patient: bool,
}

impl Slots {
    /// For so many ranks. Their memory stays mapped until this program ends.
    ///
    /// # Errors
    /// There is no memory.
    #[allow(unsafe_code)]
    pub fn new(ranks: u32) -> io::Result<Self> {
        let memory = memfd_create("sme-mpi", MemfdFlags::CLOEXEC)?;
        let bytes = (ranks as usize + 1) * SLOT_BYTES;
        ftruncate(&memory, bytes as u64)?;
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the place of a new mapping, so that nothing else is there.
        let at = unsafe { mmap(ptr::null_mut(), bytes, access, shared, &memory, 0)? };
        let slot = |number: usize| {
            let at = at.cast::<u8>().wrapping_add(number * SLOT_BYTES);
            // SAFETY: the mapping begins at a page and has SLOT_BYTES bytes for the bell and for
            // each rank, into which a slot fits; it is never unmapped. A slot consists of atomic
            // words, for which every value is right, so that a process may write what it likes.
            unsafe { &*at.cast::<Slot>() }
        };
        let slots = (1..=ranks as usize).map(slot).collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            memory,
            slots,
            bell: Bell(slot(0)),
            are_patient: (ranks as usize) < processors,
        })
    }

    /// Returns whether processes may look at their turn for long before they sleep.
    pub fn are_patient(&self) -> bool {
        self.are_patient
    }

    /// The bell.
    pub fn bell(&self) -> Bell {
        self.bell
    }

    /// The slot of a rank.
    pub fn of(&self, rank: u32) -> &'static Slot {
        self.slots[rank as usize]
    }

    /// Resets the slot of a rank, for another process.
    pub fn clear(&self, rank: u32) {
        let slot = self.of(rank);
        slot.turn.store(PROCESS, Relaxed);
        let words = [
            &slot.process_sleeps,
            &slot.simulator_sleeps,
            &slot.said,
            &slot.number,
            &slot.process,
            &slot.interface,
            &slot.options,
            &slot.state,
            &slot.thread,
            &slot.looks_left,
            &slot.looks,
            &slot.writes_end,
        ];
        for word in words {
            word.store(0, Relaxed);
        }
        slot.computed_ns.store(0, Relaxed);
        slot.left_at_ns.store(0, Relaxed);
    }

    /// The variable of the environment that leads a rank's process to its slot, and its value.
    pub fn variable(&self, rank: u32) -> (&'static str, String) {
        let (own, file) = (std::process::id(), self.memory.as_raw_fd());
        (VARIABLE, format!("/proc/{own}/fd/{file}:{rank}"))
    }
}

/// Gives the process the turn, with what it is told.
pub fn pass(slot: &Slot, said: u32) {
    slot.said.store(said, Relaxed);
    slot.turn.store(PROCESS, SeqCst);
    if slot.process_sleeps.load(SeqCst) != 0 {
        // It can only fail where there are no futexes.
        let _ = futex::wake(&slot.turn, futex::Flags::empty(), 1);
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The simulator's.
    Simulator,
    /// The process's.
    Process,
}

/// The bell by which processes wake the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Bell(&'static Slot);

impl Bell {
    /// Wakes the simulator.
    pub fn rings(self) {
        let Self(Slot { turn: bell, .. }) = self;
        bell.fetch_add(1, SeqCst);
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until the simulator has the turn in one of these slots, but not much longer than
    /// this. Others may wake it as well. One thread of the simulator sleeps at a time: processes
    /// wake one.
    pub fn sleeps(self, slots: &[&Slot], longest: Duration) {
        let Self(Slot { turn: bell, .. }) = self;
        let rung = bell.load(SeqCst);
        for slot in slots {
            slot.simulator_sleeps.store(1, SeqCst);
        }
        let mut turns = slots.iter().map(|slot| slot.turn.load(SeqCst));
        if turns.all(|turn| turn == PROCESS) {
            let longest = Timespec {
                tv_sec: longest.as_secs() as i64,
                tv_nsec: longest.subsec_nanos().into(),
            };
            // Its caller looks again for any reason that wakes it.
            let _ = futex::wait(bell, futex::Flags::empty(), rung, Some(&longest));
        }
        for slot in slots {
            slot.simulator_sleeps.store(0, Relaxed);
        }
    }
}

/// Returns whose turn it is.
pub fn turn(slot: &Slot) -> Turn {
    match slot.turn.load(Acquire) {
        SIMULATOR => Turn::Simulator,
        _ => Turn::Process,
    }
}
