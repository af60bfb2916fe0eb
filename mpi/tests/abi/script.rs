//! A process that is none: memory, and a list of calls or what gives them.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sme_mpi::abi::Rank;
use sme_mpi::abi::facts::CALLS;
use sme_mpi::abi::process::Services;
use sme_mpi::abi::program::{Asked, Beside, Gone, Heard, Looks, News, Part, Program, Proxy};
use sme_mpi::buffer::Outside;
use sme_mpi::error::{ErrorClass, Fault};
use sme_mpi::file::{Directory, Handover, InMemory, Mode, Storage};

/// The address at which the memory of the program begins, and its length.
pub const BASE: u64 = 0x10_0000;
pub const BYTES: usize = 1 << 16;

/// A function that gives the next call, from the contents of memory.
type Calls = Box<dyn FnMut(&mut [u8]) -> Option<Asked> + Send>;

/// Memory of words that may be handles, counts or addresses, and calls to make.
pub struct Script {
    pub memory: Mutex<Vec<u8>>,
    pub answers: Mutex<Vec<u64>>,
    scratch: Mutex<[u64; 128]>,
    calls: Mutex<Calls>,
    alone: Mutex<Alone>,
    /// Whether calls that its rank performs alone are answered at once.
    is_served: bool,
    /// The rank, while it may, and the number of those calls.
    rank: Mutex<Option<Arc<Rank>>>,
    pub at_once: Mutex<usize>,
    services: Services,
    files: InMemory,
    handover: Handover,
}

/// The looks that it makes without asking.
#[derive(Debug, Default)]
struct Alone {
    makes: Makes,
    last: Option<Asked>,
    leave: Option<(Asked, Looks, Vec<u8>)>,
    looks: u32,
}

/// The use that a script makes of the leave to look by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Makes {
    /// Nothing: it asks for each look.
    #[default]
    None,
    /// All that it may.
    All,
    /// The same, but it does not tell of them.
    Untold,
    /// None, and it tells of more than there can be.
    Claimed,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

impl Script {
    /// A script with a list of calls.
    pub fn listed(words: &[u64], calls: Vec<Asked>) -> Self {
        let mut calls = calls.into_iter();
        Self::new(words, Makes::None, Box::new(move |_| calls.next()))
    }

    /// A script whose calls depend on its memory, which begins as these words over and over.
    pub fn new(words: &[u64], makes: Makes, calls: Calls) -> Self {
        let bytes = words.iter().cycle().flat_map(|word| word.to_le_bytes());
        Self {
            memory: Mutex::new(bytes.take(BYTES).collect()),
            answers: Mutex::default(),
            scratch: Mutex::new([0; 128]),
            calls: Mutex::new(calls),
            alone: Mutex::new(Alone {
                makes,
                ..Alone::default()
            }),
            is_served: false,
            rank: Mutex::default(),
            at_once: Mutex::default(),
            services: Services::default(),
            files: InMemory::default(),
            handover: Handover::default(),
        }
    }

    /// The same whose calls that its rank performs alone are answered at once.
    pub fn served(self) -> Self {
        Self {
            is_served: true,
            ..self
        }
    }

    /// The result of a call that is answered at once.
    fn answer_at_once(&self, asked: &Asked) -> Option<u64> {
        let rank = self.rank.lock().clone().filter(|_| self.is_served)?;
        let result = rank.performs_alone(asked)?;
        *self.at_once.lock() += 1;
        Some(result)
    }

    /// Makes a look without asking, if it may; returns whether it has.
    fn looks(&self, asked: &Asked, memory: &mut [u8]) -> bool {
        let mut alone = self.alone.lock();
        let Alone { leave, looks, .. } = &mut *alone;
        let Some((last, leave, requests)) = leave else {
            return false;
        };
        let are_same = (last.number, last.values) == (asked.number, asked.values);
        if leave.most == 0 || !are_same || wanted(leave, asked, memory) != *requests {
            return false;
        }
        leave.most -= 1;
        *looks += 1;
        for &(at, value) in &leave.writes {
            let place = Self::place(asked.values[at], 4).unwrap();
            memory[place].copy_from_slice(&value.to_le_bytes());
        }
        true
    }

    /// The place of a block in memory.
    fn place(address: u64, bytes: usize) -> Result<std::ops::Range<usize>, Fault> {
        let begin = address.checked_sub(BASE).filter(|&at| at < BYTES as u64);
        let begin = begin.map(|begin| begin as usize);
        let range = begin.and_then(|begin| Some(begin..begin.checked_add(bytes)?));
        let range = range.filter(|range| range.end <= BYTES);
        range.ok_or_else(|| Fault::new(ErrorClass::Buffer, "buf", "no such memory"))
    }
}

impl Outside for Script {
    fn read(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        into: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let memory = self.memory.lock();
        for (address, bytes) in blocks {
            into.extend_from_slice(&memory[Self::place(address, bytes)?]);
        }
        Ok(())
    }

    fn write(
        &self,
        blocks: &mut dyn Iterator<Item = (u64, usize)>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let mut memory = self.memory.lock();
        let mut left = bytes;
        for (address, bytes) in blocks {
            let (now, later) = left.split_at(bytes.min(left.len()));
            memory[Self::place(address, now.len())?].copy_from_slice(now);
            left = later;
            if left.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// The requests that a look is for.
fn wanted(looks: &Looks, asked: &Asked, memory: &[u8]) -> Vec<u8> {
    let place = looks
        .requests
        .map(|(at, bytes)| Script::place(asked.values[at], bytes).unwrap());
    place.map_or(Vec::new(), |place| memory[place].to_vec())
}

/// The files of a script are in memory: none of its calls reaches those of this computer.
impl Directory for Script {
    fn open(&self, name: &[u8], mode: &Mode) -> Result<Box<dyn Storage>, Fault> {
        self.files.open(name, mode)
    }

    fn delete(&self, name: &[u8]) -> Result<(), Fault> {
        self.files.delete(name)
    }
}

impl Program for Script {
    fn computes(&self, rank: &Arc<Rank>) {
        *self.rank.lock() = Some(Arc::clone(rank));
    }

    fn next(&self) -> Result<News, Gone> {
        let mut calls = self.calls.lock();
        loop {
            let mut memory = self.memory.lock();
            let Some(mut asked) = calls(&mut memory) else {
                *self.rank.lock() = None;
                return Err(Gone);
            };
            if self.looks(&asked, &mut memory) {
                continue;
            }
            drop(memory);
            if let Some(result) = self.answer_at_once(&asked) {
                self.answer(result);
                continue;
            }
            *self.rank.lock() = None;
            let mut alone = self.alone.lock();
            let looks = std::mem::take(&mut alone.looks);
            asked.looks = match alone.makes {
                Makes::None | Makes::All => looks,
                Makes::Untold => 0,
                Makes::Claimed => u32::MAX,
            };
            alone.leave = None;
            alone.last = Some(asked);
            return Ok(News::Calls(asked));
        }
    }

    fn lets_look(&self, looks: &Looks) {
        let mut alone = self.alone.lock();
        let makes = matches!(alone.makes, Makes::All | Makes::Untold);
        let last = alone.last.filter(|_| makes);
        let memory = self.memory.lock();
        alone.leave = last.map(|last| (last, looks.clone(), wanted(looks, &last, &memory)));
    }

    fn answer(&self, result: u64) {
        self.answers.lock().push(result);
    }

    fn invoke(&self, _: u64, _: &[u64]) {}

    fn hear(&self) -> Result<Heard, Gone> {
        Ok(Heard::Returned(BASE))
    }

    fn scratch(&self, place: usize, words: &[u64]) -> u64 {
        let mut scratch = self.scratch.lock();
        for (word, &value) in scratch.iter_mut().skip(place).zip(words) {
            *word = value;
        }
        BASE + 8 * place as u64
    }

    fn scratched(&self, place: usize) -> u64 {
        self.scratch.lock()[place]
    }

    fn allocator(&self) -> [u64; 2] {
        [BASE, BASE]
    }

    /// The wires of these tests have one rank.
    fn start(&self, parts: &[Part]) -> Result<Option<Vec<u32>>, Fault> {
        let text = format!("{} parts of a program", parts.len());
        Err(Fault::new(ErrorClass::Spawn, "maxprocs", text))
    }

    fn services(&self) -> &Services {
        &self.services
    }

    fn handover(&self) -> &Handover {
        &self.handover
    }

    fn is_initialized(&self) {}

    fn is_finalized(&self) {}

    fn abort(&self, _: i32, _: String) {}

    fn tell(&self, _: String) {}
}

/// The number of the call with this name.
pub fn number(name: &str) -> usize {
    CALLS.iter().position(|call| call.name == name).unwrap()
}

/// A call of this number: beyond the table, one that is not MPI's.
pub fn asked(number: usize, values: [u64; 16]) -> Asked {
    let beside = match number.checked_sub(CALLS.len()) {
        None => None,
        Some(0) => Some(Beside::Computes(f64::from_bits(values[0]))),
        Some(1) => Some(Beside::ReadsClock(values[0])),
        Some(2) => Some(Beside::Proxy(Proxy::Operation(values[0], values[1]))),
        Some(3) => Some(Beside::Proxy(Proxy::Handler(values[0], values[1]))),
        Some(_) => {
            let key = i64::from(values[0] as i32);
            Some(Beside::Proxy(Proxy::Key(key, [values[1], values[2]])))
        }
    };
    Asked {
        number,
        values,
        beside,
        computed_ns: 0,
        looks: 0,
    }
}
