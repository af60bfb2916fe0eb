//! Which final states a model of memory allows, by search of everything that can happen.
//!
//! The abstract machine is that of x86-TSO (Owens, Sarkar and Sewell, *A Better x86 Memory Model:
//! x86-TSO*, TPHOLs 2009): threads perform their instructions in order, stores go through queues
//! between a thread and memory, and leave them at any time. The [`Model`]s differ in which queues
//! there are, in what a load and a fence wait for, and in who shares a memory. Nothing here knows how
//! long anything takes: what a machine does must be among what its model allows.

use std::collections::{BTreeSet, HashSet, VecDeque};

use thiserror::Error;

use super::test::{FinalState, Instruction, Register, Source, Test};

/// The most states of the abstract machine that are looked at.
pub const MOST_MODEL_STATES: usize = 1 << 21;

/// How memory behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// Sequential consistency: one access after the other.
    SequentiallyConsistent,
    /// x86-TSO: a store buffer for each thread, from which its own loads are answered; MFENCE waits
    /// until it is empty.
    TotalStoreOrder,
    /// Uncached memory behind engines. Stores wait in their core's buffer, and leave it in order;
    /// what has left a node for one home stays in order, loads among stores, on the way to different
    /// homes it does not. A load is answered from the buffer or leaves when that is empty. MFENCE
    /// waits for the buffer only: nobody acknowledges what has left.
    Posted {
        /// The home of each location.
        homes: Vec<u32>,
        /// The node of each thread.
        nodes: Vec<u32>,
    },
    /// Caches that are coherent within a node only, and write back after the last instruction of
    /// the test: x86-TSO in each node, and of each location the copy of whichever node is last.
    Incoherent {
        /// The node of each thread.
        nodes: Vec<u32>,
    },
}

/// The abstract machine has too many states to look at all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the test has more than {MOST_MODEL_STATES} states: it is too large for a search")]
pub struct TooLarge;

/// Every final state of `test` that `model` allows.
///
/// # Errors
/// [`TooLarge`] if there are more than [`MOST_MODEL_STATES`] states on the way.
pub fn outcomes(test: &Test, model: &Model) -> Result<BTreeSet<FinalState>, TooLarge> {
    let count = |numbers: &[u32]| numbers.iter().max().map_or(1, |&most| most as usize + 1);
    let search = Search {
        test,
        model,
        memories: match model {
            Model::Incoherent { nodes } => count(nodes),
            _ => 1,
        },
        ways: match model {
            Model::Posted { homes, nodes } => (count(nodes), count(homes)),
            _ => (0, 0),
        },
    };
    let first = search.first();
    let mut known = HashSet::from([first.clone()]);
    let mut open = vec![first];
    let mut found = BTreeSet::new();
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        search.steps(&state, &mut next);
        if next.is_empty() {
            search.finals(&state, &mut found)?;
        }
        for state in next {
            if known.len() >= MOST_MODEL_STATES {
                return Err(TooLarge);
            }
            if known.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    Ok(found)
}

/// What has left a node for a home.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Request {
    Store(usize, i32),
    /// Of a thread, to its register, from a location.
    Load(usize, Register, usize),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// The next instruction of each thread.
    next: Vec<usize>,
    /// Whether it has to wait for a load that is under way.
    waits: Vec<bool>,
    registers: Vec<[i32; Register::COUNT]>,
    /// Each thread's store buffer: locations and values.
    buffers: Vec<VecDeque<(usize, i32)>>,
    /// The ways from each node to each home.
    ways: Vec<Vec<VecDeque<Request>>>,
    /// What each memory holds of each location; whether a thread has stored it.
    memory: Vec<Vec<(i32, bool)>>,
}

struct Search<'a> {
    test: &'a Test,
    model: &'a Model,
    memories: usize,
    /// Nodes and homes between which there are ways.
    ways: (usize, usize),
}

impl Search<'_> {
    fn first(&self) -> State {
        let initial = self.test.initial_state();
        let threads = self.test.threads.len();
        let memory = initial.memory.iter().map(|&value| (value, false)).collect();
        let (nodes, homes) = self.ways;
        State {
            next: vec![0; threads],
            waits: vec![false; threads],
            registers: initial.registers,
            buffers: vec![VecDeque::new(); threads],
            ways: vec![vec![VecDeque::new(); homes]; nodes],
            memory: vec![memory; self.memories],
        }
    }

    /// Which memory `thread` sees.
    fn memory(&self, thread: usize) -> usize {
        match self.model {
            Model::Incoherent { nodes } => nodes[thread] as usize,
            _ => 0,
        }
    }

    /// The way from the node of `thread` to the home of `location`, where there are ways.
    fn way(&self, thread: usize, location: usize) -> Option<(usize, usize)> {
        match self.model {
            Model::Posted { homes, nodes } => {
                Some((nodes[thread] as usize, homes[location] as usize))
            }
            _ => None,
        }
    }

    fn steps(&self, state: &State, next: &mut Vec<State>) {
        for thread in 0..self.test.threads.len() {
            let mut after = state.clone();
            if let Some((location, value)) = after.buffers[thread].pop_front() {
                match self.way(thread, location) {
                    Some((node, home)) => {
                        after.ways[node][home].push_back(Request::Store(location, value));
                    }
                    None => after.memory[self.memory(thread)][location] = (value, true),
                }
                next.push(after);
            }
            let instruction = self.test.threads[thread].get(state.next[thread]);
            if let (Some(&instruction), false) = (instruction, state.waits[thread]) {
                self.instruction(state, thread, instruction, next);
            }
        }
        for node in 0..state.ways.len() {
            for home in 0..state.ways[node].len() {
                let mut after = state.clone();
                match after.ways[node][home].pop_front() {
                    Some(Request::Store(location, value)) => {
                        after.memory[0][location] = (value, true);
                    }
                    Some(Request::Load(thread, to, location)) => {
                        after.registers[thread][to.number()] = after.memory[0][location].0;
                        after.waits[thread] = false;
                    }
                    None => continue,
                }
                next.push(after);
            }
        }
    }

    fn instruction(
        &self,
        state: &State,
        thread: usize,
        instruction: Instruction,
        next: &mut Vec<State>,
    ) {
        let mut after = state.clone();
        after.next[thread] += 1;
        let value_of = |source| match source {
            Source::Immediate(value) => value,
            Source::Register(register) => state.registers[thread][register.number()],
        };
        match instruction {
            Instruction::Store { to, value } => {
                let value = value_of(value);
                if *self.model == Model::SequentiallyConsistent {
                    after.memory[0][to] = (value, true);
                } else {
                    after.buffers[thread].push_back((to, value));
                }
            }
            Instruction::Load { to, from } => {
                let own = state.buffers[thread].iter().rev();
                let own = own.copied().find(|&(location, _)| location == from);
                match (own, self.way(thread, from)) {
                    (Some((_, value)), _) => after.registers[thread][to.number()] = value,
                    (None, None) => {
                        let (value, _) = state.memory[self.memory(thread)][from];
                        after.registers[thread][to.number()] = value;
                    }
                    (None, Some(_)) if !state.buffers[thread].is_empty() => return,
                    (None, Some((node, home))) => {
                        after.waits[thread] = true;
                        after.ways[node][home].push_back(Request::Load(thread, to, from));
                    }
                }
            }
            Instruction::Move { to, value } => {
                after.registers[thread][to.number()] = value_of(value);
            }
            Instruction::Fence if !state.buffers[thread].is_empty() => return,
            Instruction::Fence => {}
        }
        next.push(after);
    }

    /// The final states that follow from a state in which nothing can happen any more.
    fn finals(&self, state: &State, found: &mut BTreeSet<FinalState>) -> Result<(), TooLarge> {
        let mut memories: Vec<Vec<i32>> = vec![Vec::new()];
        for location in 0..self.test.locations.len() {
            let copies = state.memory.iter().map(|memory| memory[location]);
            let mut last: Vec<i32> = copies
                .clone()
                .filter(|&(_, stored)| stored)
                .map(|(value, _)| value)
                .collect();
            if last.is_empty() {
                last.extend(copies.take(1).map(|(value, _)| value));
            }
            last.sort_unstable();
            last.dedup();
            if memories.len() * last.len() > MOST_MODEL_STATES {
                return Err(TooLarge);
            }
            memories = memories
                .into_iter()
                .flat_map(|memory| {
                    last.iter().map(move |&value| {
                        let mut longer = memory.clone();
                        longer.push(value);
                        longer
                    })
                })
                .collect();
        }
        found.extend(memories.into_iter().map(|memory| FinalState {
            registers: state.registers.clone(),
            memory,
        }));
        Ok(())
    }
}
