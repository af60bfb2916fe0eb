//! The final states that a model of memory allows, found by a search of everything that can happen.
//!
//! The abstract machine is that of x86-TSO (Owens, Sarkar and Sewell, *A Better x86 Memory Model:
//! x86-TSO*, TPHOLs 2009): threads perform their instructions in order, stores go through queues
//! between a thread and memory, and leave them at any time. The [`Model`]s differ in which queues
//! there are, in what a load and a fence wait for, and in who shares a memory. Nothing here knows
//! how long anything takes: what a machine does must be among what its model allows.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use thiserror::Error;

use super::test::{FinalState, Instruction, Register, Source, Test};

/// The most states of the abstract machine that are looked at.
pub const MOST_MODEL_STATES: usize = 1 << 19;

/// A memory model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// Sequential consistency: one access after the other.
    SequentiallyConsistent,
    /// x86-TSO: a store buffer for each thread, from which its own loads are answered; MFENCE waits
    /// until it is empty.
    TotalStoreOrder,
    /// Uncached memory behind engines. Stores wait in their core's buffer, and leave it in order;
    /// what has left a node for one home stays in order, loads among stores, on the way to
    /// different homes it does not. A load is answered from the buffer or leaves when that is
    /// empty. MFENCE waits for the buffer only: no acknowledgement comes back.
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

/// A step of the abstract machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread performs its next instruction; a load behind engines sets out.
    Perform(usize),
    /// The oldest store in a thread's buffer leaves it.
    Leave(usize),
    /// The oldest request on the way from a node to a home is performed there.
    Arrive {
        /// The node that sent it.
        node: usize,
        /// The home.
        home: usize,
    },
}

/// One way in which a test can reach a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// Of each location the memory whose copy is written back last; all 0 but in
    /// [`Model::Incoherent`], where it is a node.
    pub kept: Vec<usize>,
}

/// Everything that a model allows of a test: the final states, and all ways to each.
#[derive(Clone, Debug)]
pub struct Behaviours {
    ends: BTreeMap<FinalState, Vec<End>>,
    /// Of each state of the abstract machine its number before a step, and the step. The first has
    /// none. No step is ever undone, so that every walk back ends there.
    before: Vec<Vec<(u32, Step)>>,
}

/// A last state of the abstract machine, and which copies are kept.
#[derive(Clone, Debug)]
struct End {
    state: u32,
    kept: Vec<usize>,
}

impl Behaviours {
    /// Searches everything that `model` allows of `test`.
    ///
    /// # Errors
    /// [`TooLarge`] if there are more than [`MOST_MODEL_STATES`] states on the way.
    pub fn of(test: &Test, model: &Model) -> Result<Self, TooLarge> {
        let search = Search::new(test, model);
        let first = search.first();
        let mut known = HashMap::from([(first.clone(), 0)]);
        let mut open = vec![(first, 0)];
        let mut found = Self {
            ends: BTreeMap::new(),
            before: vec![Vec::new()],
        };
        let mut next = Vec::new();
        while let Some((state, number)) = open.pop() {
            search.steps(&state, &mut next);
            if next.is_empty() {
                search.finals(&state, number, &mut found.ends)?;
            }
            for (step, after) in next.drain(..) {
                if let Some(&known) = known.get(&after) {
                    found.before[known as usize].push((number, step));
                    continue;
                }
                if known.len() >= MOST_MODEL_STATES {
                    return Err(TooLarge);
                }
                let after_number = found.before.len() as u32;
                found.before.push(vec![(number, step)]);
                known.insert(after.clone(), after_number);
                open.push((after, after_number));
            }
        }
        Ok(found)
    }

    /// The final states, in order.
    pub fn states(&self) -> impl Iterator<Item = &FinalState> {
        self.ends.keys()
    }

    /// Returns whether the model allows `state`.
    pub fn allows(&self, state: &FinalState) -> bool {
        self.ends.contains_key(state)
    }

    /// A way to `state`, where the model allows that. Wherever there are several, `choose` is given
    /// their count and names one by its number, modulo the count.
    pub fn way_to(
        &self,
        state: &FinalState,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Option<Way> {
        let mut one_of = |count: usize| choose(count) % count;
        let ends = self.ends.get(state)?;
        let end = &ends[one_of(ends.len())];
        let mut steps = Vec::new();
        let mut at = end.state;
        loop {
            let before = &self.before[at as usize];
            if before.is_empty() {
                break;
            }
            let (earlier, step) = before[one_of(before.len())];
            steps.push(step);
            at = earlier;
        }
        steps.reverse();
        Some(Way {
            steps,
            kept: end.kept.clone(),
        })
    }
}

/// Every final state of `test` that `model` allows.
///
/// # Errors
/// As [`Behaviours::of`].
pub fn outcomes(test: &Test, model: &Model) -> Result<BTreeSet<FinalState>, TooLarge> {
    let behaviours = Behaviours::of(test, model)?;
    Ok(behaviours.ends.into_keys().collect())
}

/// A request that has left a node for a home.
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
    /// By thread: whether it has to wait for a load that is under way.
    waits: Vec<bool>,
    registers: Vec<[i32; Register::COUNT]>,
    /// Each thread's store buffer: locations and values.
    buffers: Vec<VecDeque<(usize, i32)>>,
    /// The ways from each node to each home.
    ways: Vec<Vec<VecDeque<Request>>>,
    /// The value of each location in each memory, and whether a thread has stored it.
    memory: Vec<Vec<(i32, bool)>>,
}

struct Search<'a> {
    test: &'a Test,
    model: &'a Model,
    memories: usize,
    /// Nodes and homes between which there are ways.
    ways: (usize, usize),
}

impl<'a> Search<'a> {
    fn new(test: &'a Test, model: &'a Model) -> Self {
        let count = |numbers: &[u32]| numbers.iter().max().map_or(1, |&most| most as usize + 1);
        Self {
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
        }
    }

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

    /// Returns the memory that `thread` sees.
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

    /// Adds every step that is possible in `state`, and the state after it.
    fn steps(&self, state: &State, next: &mut Vec<(Step, State)>) {
        for thread in 0..self.test.threads.len() {
            let mut after = state.clone();
            if let Some((location, value)) = after.buffers[thread].pop_front() {
                match self.way(thread, location) {
                    Some((node, home)) => {
                        after.ways[node][home].push_back(Request::Store(location, value));
                    }
                    None => after.memory[self.memory(thread)][location] = (value, true),
                }
                next.push((Step::Leave(thread), after));
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
                next.push((Step::Arrive { node, home }, after));
            }
        }
    }

    fn instruction(
        &self,
        state: &State,
        thread: usize,
        instruction: Instruction,
        next: &mut Vec<(Step, State)>,
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
        next.push((Step::Perform(thread), after));
    }

    /// Adds the final states that follow from a state in which nothing can happen any more.
    fn finals(
        &self,
        state: &State,
        number: u32,
        ends: &mut BTreeMap<FinalState, Vec<End>>,
    ) -> Result<(), TooLarge> {
        // Every combination of copies kept of the locations so far, and the memory that results.
        let mut all = vec![(Vec::new(), Vec::new())];
        for location in 0..self.test.locations.len() {
            let copies = state.memory.iter().map(|memory| memory[location]);
            let stored = |&(_, (_, stored)): &(usize, (i32, bool))| stored;
            let mut last: Vec<(usize, (i32, bool))> = copies.clone().enumerate().collect();
            match last.iter().any(stored) {
                true => last.retain(stored),
                false => last.truncate(1),
            }
            if all.len() * last.len() > MOST_MODEL_STATES {
                return Err(TooLarge);
            }
            let longer = |(kept, memory): (Vec<usize>, Vec<i32>)| {
                last.iter().map(move |&(of, (value, _))| {
                    let (mut kept, mut memory) = (kept.clone(), memory.clone());
                    kept.push(of);
                    memory.push(value);
                    (kept, memory)
                })
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        for (kept, memory) in all {
            let registers = state.registers.clone();
            let end = FinalState { registers, memory };
            let state = number;
            ends.entry(end).or_default().push(End { state, kept });
        }
        Ok(())
    }
}
