//! The memory of a process.
//!
//! The simulator reads and writes it through the system, or leaves a write to the process: most
//! calls give a few numbers, and a write through the system takes longer than many of these calls.
//! It leaves a write to pages that it has written to before, and one to memory that the process may
//! only read, for which the process may have a function for the signal. Any other address without
//! memory is an error of MPI; at these two the process gets SIGSEGV.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};
use std::{io, mem, ptr, thread};

use parking_lot::Mutex;
use sme_mpi::error::{ErrorClass, Fault};

use super::slots::slot::{ENDS, MOST_WRITTEN, Slot};
use super::slots::{Turn, pass, turn};

/// The memory of the process that has a slot.
#[derive(Debug)]
pub struct Memory {
    slot: &'static Slot,
    /// `/proc/PID/mem`, opened at the first access; none if the system refuses that.
    file: OnceLock<Option<File>>,
    left: Mutex<Left>,
}

/// The most bytes that are read, or written as a process could, at a time.
const PIECE_BYTES: usize = 1 << 20;

impl Memory {
    /// The memory of the process that has this slot, once it has made a call.
    pub fn new(slot: &'static Slot) -> Self {
        Self {
            slot,
            file: OnceLock::new(),
            left: Mutex::default(),
        }
    }

    /// The slot.
    pub fn slot(&self) -> &'static Slot {
        self.slot
    }

    /// Gives the process the turn, with what it is told and the writes that are left to it.
    pub fn passes(&self, said: u32) {
        let mut left = self.left.lock();
        if left.is_over {
            return;
        }
        left.goes_to(self.slot);
        pass(self.slot, said);
    }

    /// Tells the process, if it waits for the turn, that the job has ended: it gets no other turn
    /// and no more writes. Returns whether it has been told now.
    pub fn ends(&self) -> bool {
        let mut left = self.left.lock();
        let is_told = !left.is_over && turn(self.slot) == Turn::Simulator;
        if is_told {
            left.is_over = true;
            left.words.clear();
            pass(self.slot, ENDS);
        }
        is_told
    }

    /// Appends the bytes of `blocks`, each an address and a length, to `into`.
    ///
    /// # Errors
    /// [`ErrorClass::Buffer`] if there is no such memory.
    pub fn read(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        into: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let file = self.file()?;
        self.left.lock().settle(self.slot, file)?;
        for (address, bytes) in blocks {
            let none = || no_memory(address, bytes);
            // Piece by piece: a program may speak of more memory than there is.
            for from in (0..bytes).step_by(PIECE_BYTES) {
                let piece = PIECE_BYTES.min(bytes - from);
                let begin = into.len();
                into.try_reserve(piece).map_err(|_| none())?;
                into.resize(begin + piece, 0);
                let at = address.wrapping_add(from as u64);
                let read = file.read_exact_at(&mut into[begin..], at);
                read.map_err(|_| none())?;
            }
        }
        Ok(())
    }

    /// Writes `bytes` to `blocks`, as many as there are: the last ones may not be reached. Where it
    /// `may_leave` them, the process makes some of the writes when it gets the turn.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn write(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
        may_leave: bool,
    ) -> Result<(), Fault> {
        let file = self.file()?;
        let mut left = self.left.lock();
        let mut rest = bytes;
        for (address, bytes) in blocks {
            let (now, later) = rest.split_at(bytes.min(rest.len()));
            let waits = may_leave && turn(self.slot) == Turn::Simulator;
            if !(waits && left.takes(address, now)) {
                left.settle(self.slot, file)?;
                let tried = match waits {
                    true => self.writes_as_process(address, now),
                    false => Tried::Unable,
                };
                match tried {
                    Tried::Written => left.knows(address, now.len()),
                    Tried::Unable => write(file, address, now)?,
                    // A write to memory that it may only read is left to it.
                    Tried::Refused if has(file, address, now.len()) && left.puts(address, now) => {}
                    Tried::Refused => {
                        let text =
                            format!("no {bytes} bytes can be written at address {address:#x}");
                        return Err(Fault::new(ErrorClass::Buffer, "buf", text));
                    }
                }
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Writes as the process could: memory that it may not write to stays as it is.
    #[allow(unsafe_code)]
    fn writes_as_process(&self, address: u64, bytes: &[u8]) -> Tried {
        if bytes.len() > PIECE_BYTES {
            // The system may write a part only, and not say why.
            return Tried::Unable;
        }
        let process = self.slot.process.load(Relaxed);
        let block = |at: *mut c_void| libc::iovec {
            iov_base: at,
            iov_len: bytes.len(),
        };
        let from = block(bytes.as_ptr().cast_mut().cast());
        let to = block(ptr::without_provenance_mut(address as usize));
        // SAFETY: the call reads the bytes, which live longer, and writes to the memory of a rank's
        // process. That is not this one, but in tests, which give it atomic numbers.
        let written = unsafe { libc::process_vm_writev(process as i32, &from, 1, &to, 1, 0) };
        match usize::try_from(written) {
            Ok(written) if written == bytes.len() => Tried::Written,
            // The rest is in another page.
            Ok(_) => Tried::Refused,
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => {
                Tried::Refused
            }
            // Some systems forbid the call.
            Err(_) => Tried::Unable,
        }
    }

    fn file(&self) -> Result<&File, Fault> {
        let open = || {
            let process = self.slot.process.load(Relaxed);
            let path = format!("/proc/{process}/mem");
            let opened = OpenOptions::new().read(true).write(true).open(path);
            opened.ok()
        };
        self.file.get_or_init(open).as_ref().ok_or_else(|| {
            let text = "the memory of the process cannot be read";
            Fault::new(ErrorClass::Intern, "buf", text)
        })
    }
}

/// The outcome of a write as the process could make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    /// All is written.
    Written,
    /// The process has no such memory, or may not write to it.
    Refused,
    /// It cannot be tried.
    Unable,
}

/// Returns whether there is memory that can be read.
fn has(file: &File, address: u64, bytes: usize) -> bool {
    bytes <= MOST_BYTES && file.read_exact_at(&mut vec![0; bytes], address).is_ok()
}

fn write(file: &File, address: u64, bytes: &[u8]) -> Result<(), Fault> {
    let written = file.write_all_at(bytes, address);
    written.map_err(|_| no_memory(address, bytes.len()))
}

fn no_memory(address: u64, bytes: usize) -> Fault {
    let text = format!("there are no {bytes} bytes at address {address:#x}");
    Fault::new(ErrorClass::Buffer, "buf", text)
}

/// The writes that are left to the process.
#[derive(Debug)]
struct Left {
    /// Each an address, a number of bytes, and these.
    words: Vec<u64>,
    /// Whether the process has got some with the turn.
    have_gone: bool,
    /// Whether the job has ended, and the process been told so.
    is_over: bool,
    /// Pages that have been written to, each at the place of its number's last digits.
    pages: [Option<u64>; PAGES],
}

/// The most bytes of a write that is left to the process: copying them takes less than a call of
/// the system's.
const MOST_BYTES: usize = 512;

/// The bytes of a word.
const WORD_BYTES: usize = size_of::<u64>();

/// The pages that are remembered.
const PAGES: usize = 64;

/// The bytes of a page: of a part of one, where the system's are larger.
const PAGE_BYTES: u64 = 4096;

/// The time for which the simulator waits for writes that a process makes as soon as it has got
/// the turn, unless it has ended or was stopped.
const LONGEST: Duration = Duration::from_secs(1);

impl Default for Left {
    fn default() -> Self {
        Self {
            words: Vec::with_capacity(MOST_WRITTEN),
            have_gone: false,
            is_over: false,
            pages: [None; PAGES],
        }
    }
}

impl Left {
    /// Takes a write, if its pages have been written to and there is room; whether that is so.
    fn takes(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut pages = pages(address, bytes.len());
        let is_known = |page: u64| self.pages[page as usize % PAGES] == Some(page);
        pages.all(is_known) && self.puts(address, bytes)
    }

    /// Takes a write, if there is room; whether that is so.
    fn puts(&mut self, address: u64, bytes: &[u8]) -> bool {
        let words = self.words.len() + 2 + bytes.len().div_ceil(WORD_BYTES);
        if bytes.len() > MOST_BYTES || words > MOST_WRITTEN {
            return false;
        }
        let words = bytes.chunks(WORD_BYTES).map(|chunk| {
            let mut word = [0; WORD_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        self.words.extend([address, bytes.len() as u64]);
        self.words.extend(words);
        true
    }

    /// Remembers the pages of a write that has been made.
    fn knows(&mut self, address: u64, bytes: usize) {
        for page in pages(address, bytes).take(PAGES) {
            self.pages[page as usize % PAGES] = Some(page);
        }
    }

    /// Gives them to the process, which is about to get the turn.
    fn goes_to(&mut self, slot: &Slot) {
        for (place, word) in slot.writes.iter().zip(&self.words) {
            place.store(*word, Relaxed);
        }
        slot.writes_end.store(self.words.len() as u32, Relaxed);
        self.have_gone = !self.words.is_empty();
        self.words.clear();
    }

    /// Makes them here, or waits until the process has made those that it has got.
    fn settle(&mut self, slot: &Slot, file: &File) -> Result<(), Fault> {
        if mem::take(&mut self.have_gone) {
            let begin = Instant::now();
            while slot.writes_end.load(Acquire) != 0 && begin.elapsed() < LONGEST {
                thread::yield_now();
            }
        }
        let mut words = self.words.drain(..);
        while let (Some(address), Some(bytes)) = (words.next(), words.next()) {
            let bytes = bytes as usize;
            let all = words.by_ref().take(bytes.div_ceil(WORD_BYTES));
            let all: Vec<u8> = all.flat_map(u64::to_ne_bytes).collect();
            write(file, address, &all[..bytes])?;
        }
        Ok(())
    }
}

/// The numbers of the pages with these bytes.
fn pages(address: u64, bytes: usize) -> impl Iterator<Item = u64> {
    let last = address.saturating_add((bytes as u64).saturating_sub(1));
    address / PAGE_BYTES..=last / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::slots::slot::{CALLS, RETURNS, SIMULATOR};
    use super::super::slots::{Slots, writes};
    use super::*;

    /// One step of a process and the simulator.
    #[derive(Clone, Debug)]
    enum Step {
        /// The simulator writes so many bytes at each of these places.
        Writes(Vec<(usize, usize)>),
        /// It reads so many bytes from there.
        Reads(usize, usize),
        /// It writes where no memory is.
        WritesNowhere,
        /// It gives the process the turn, which looks at its memory.
        Passes,
        /// The process gives the turn back.
        Calls,
    }

    /// The memory of the test's process, in bytes: parts of three pages at least.
    const ALL: usize = 9_000;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let part = || {
            (
                0..ALL - 700,
                prop_oneof![9 => 1..20_usize, 1 => 1..700_usize],
            )
        };
        let step = prop_oneof![
            8 => vec(part(), 1..5).prop_map(Step::Writes),
            2 => part().prop_map(|(begin, bytes)| Step::Reads(begin, bytes)),
            1 => Just(Step::WritesNowhere),
            3 => Just(Step::Passes),
            3 => Just(Step::Calls),
        ];
        vec(step, 1..60)
    }

    /// Takes these steps with the memory of this process, which `makes` the writes that are left to
    /// it, and with plain bytes; an error tells of the first difference.
    fn follows(steps: &[Step], makes: fn(&Slot)) -> Result<(), String> {
        let own: Vec<AtomicU8> = (0..ALL).map(|_| AtomicU8::new(0)).collect();
        let first = own.as_ptr() as u64;
        let mut expected = vec![0_u8; ALL];
        let slot = Slots::new(1).unwrap().of(0);
        slot.process.store(std::process::id(), Relaxed);
        slot.turn.store(SIMULATOR, Relaxed);
        let memory = Memory::new(slot);
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Writes(parts) => {
                    let bytes: usize = parts.iter().map(|(_, bytes)| bytes).sum();
                    let written: Vec<u8> = (0..bytes).map(|at| (number * 7 + at) as u8).collect();
                    let mut rest = &written[..];
                    for &(begin, bytes) in parts {
                        let (now, later) = rest.split_at(bytes);
                        expected[begin..begin + bytes].copy_from_slice(now);
                        rest = later;
                    }
                    let blocks = parts.iter();
                    let mut blocks = blocks.map(|&(begin, bytes)| (first + begin as u64, bytes));
                    memory.write(&mut blocks, &written, true).unwrap();
                }
                &Step::Reads(begin, bytes) => {
                    let mut read = Vec::new();
                    let mut blocks = [(first + begin as u64, bytes)].into_iter();
                    memory.read(&mut blocks, &mut read).unwrap();
                    if read != expected[begin..begin + bytes] {
                        return Err(format!("step {number}: another thing is read"));
                    }
                }
                Step::WritesNowhere => {
                    let failure = memory
                        .write(&mut [(8, 8)].into_iter(), &[0; 8], true)
                        .unwrap_err();
                    assert_eq!(failure.class, ErrorClass::Buffer);
                }
                Step::Passes if turn(slot) == Turn::Simulator => {
                    memory.passes(RETURNS);
                    makes(slot);
                    let found: Vec<u8> = own.iter().map(|byte| byte.load(Relaxed)).collect();
                    if found != expected {
                        return Err(format!("step {number}: the process finds another thing"));
                    }
                }
                Step::Calls if turn(slot) == Turn::Process => {
                    slot.said.store(CALLS, Relaxed);
                    slot.turn.store(SIMULATOR, Relaxed);
                }
                Step::Passes | Step::Calls => {}
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn memory_is_as_if_all_were_written_at_once(steps in steps()) {
            prop_assert_eq!(follows(&steps, writes::make), Ok(()));
        }
    }

    /// Writes that are left: the page is known by the first one.
    fn left() -> Vec<Step> {
        let writes = |begin| Step::Writes(vec![(begin, 4)]);
        vec![writes(0), writes(8), writes(10), Step::Passes]
    }

    #[test]
    fn a_process_that_makes_no_writes_is_found() {
        assert_eq!(follows(&left(), writes::make), Ok(()));
        let forgets: fn(&Slot) = |slot| slot.writes_end.store(0, Relaxed);
        let found = follows(&left(), forgets).unwrap_err();
        assert_eq!(found, "step 3: the process finds another thing");
    }

    #[test]
    fn a_process_that_never_makes_its_writes_delays_the_simulator_once() {
        let mut steps = left();
        steps.push(Step::Reads(0, 4));
        steps.push(Step::Reads(8, 4));
        let begin = Instant::now();
        // It says that they are still to be made.
        let makes: fn(&Slot) = |slot| {
            let end = slot.writes_end.load(Relaxed);
            writes::make(slot);
            slot.writes_end.store(end, Relaxed);
        };
        assert_eq!(follows(&steps, makes), Ok(()));
        assert!(begin.elapsed() >= LONGEST);
    }

    #[test]
    fn a_write_to_pages_that_are_not_known_is_not_left() {
        let mut left = Left::default();
        let page = PAGE_BYTES;
        left.knows(3 * page, 1);
        assert!(left.takes(4 * page - 8, &[0; 8]));
        assert!(
            !left.takes(4 * page - 4, &[0; 8]),
            "the next page is not known"
        );
        assert!(
            !left.takes((3 + PAGES as u64) * page, &[0; 8]),
            "it has the same place"
        );
        assert!(!left.takes(3 * page, &[0; MOST_BYTES + 1]), "it is long");
        assert!(
            !left.takes(u64::MAX - 3, &[0; 8]),
            "it ends behind all memory"
        );
        assert!(left.takes(3 * page, &[0; MOST_BYTES]));
    }
}
