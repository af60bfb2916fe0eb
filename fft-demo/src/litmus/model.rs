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
    /// Uncached memory behind engines: stores of a thread to one home stay in order, to different
    /// homes they do not; a load comes after the thread's earlier stores to the same home, not after
    /// those to others; MFENCE does not wait for stores that nobody acknowledges.
    Posted {
        /// The home of each location.
        homes: Vec<u32>,
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
    let search = Search {
        test,
        model,
        nodes: match model {
            Model::Incoherent { nodes } => nodes.iter().max().map_or(1, |&most| most as usize + 1),
            _ => 1,
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

/// A store on its way: location, value.
type Queue = VecDeque<(usize, i32)>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// The next instruction of each thread.
    next: Vec<usize>,
    registers: Vec<[i32; Register::COUNT]>,
    /// Each thread's stores on their way, by home where those are told apart.
    queues: Vec<Vec<Queue>>,
    /// What each node sees, of each location; whether one of its threads has stored it.
    memory: Vec<Vec<(i32, bool)>>,
}

struct Search<'a> {
    test: &'a Test,
    model: &'a Model,
    nodes: usize,
}

impl Search<'_> {
    fn first(&self) -> State {
        let initial = self.test.initial_state();
        let threads = self.test.threads.len();
        let queues = match self.model {
            Model::Posted { homes } => homes.iter().max().map_or(1, |&most| most as usize + 1),
            _ => 1,
        };
        let memory = initial.memory.iter().map(|&value| (value, false)).collect();
        State {
            next: vec![0; threads],
            registers: initial.registers,
            queues: vec![vec![Queue::new(); queues]; threads],
            memory: vec![memory; self.nodes],
        }
    }

    fn node(&self, thread: usize) -> usize {
        match self.model {
            Model::Incoherent { nodes } => nodes[thread] as usize,
            _ => 0,
        }
    }

    /// The queue that stores to `location` go through.
    fn queue(&self, location: usize) -> usize {
        match self.model {
            Model::Posted { homes } => homes[location] as usize,
            _ => 0,
        }
    }

    fn steps(&self, state: &State, next: &mut Vec<State>) {
        for thread in 0..self.test.threads.len() {
            for queue in 0..state.queues[thread].len() {
                let mut after = state.clone();
                if let Some((location, value)) = after.queues[thread][queue].pop_front() {
                    after.memory[self.node(thread)][location] = (value, true);
                    next.push(after);
                }
            }
            if let Some(&instruction) = self.test.threads[thread].get(state.next[thread]) {
                self.instruction(state, thread, instruction, next);
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
                    after.queues[thread][self.queue(to)].push_back((to, value));
                }
                next.push(after);
            }
            Instruction::Load { to, from } => {
                if let Some(value) = self.loadable(state, thread, from) {
                    after.registers[thread][to.number()] = value;
                    next.push(after);
                }
            }
            Instruction::Move { to, value } => {
                after.registers[thread][to.number()] = value_of(value);
                next.push(after);
            }
            Instruction::Fence => {
                let waits = !matches!(self.model, Model::Posted { .. })
                    && state.queues[thread].iter().any(|queue| !queue.is_empty());
                if !waits {
                    next.push(after);
                }
            }
        }
    }

    /// What a load of `thread` can have now; nothing where it has to wait.
    fn loadable(&self, state: &State, thread: usize, from: usize) -> Option<i32> {
        let queue = &state.queues[thread][self.queue(from)];
        let own = queue.iter().rev().find(|(location, _)| *location == from);
        let memory = state.memory[self.node(thread)][from].0;
        match (self.model, own) {
            // As long as a store has not left its core; afterwards a load waits for it.
            (_, Some(&(_, value))) => Some(value),
            (Model::Posted { .. }, None) => queue.is_empty().then_some(memory),
            _ => Some(memory),
        }
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
