//! Takes a machine through its schedules: all of them, or as many as there are seeds.

use std::collections::HashSet;

use crate::machine::{Choice, Failure, Machine};

/// Moves after which a run counts as endless.
const MOST_MOVES: usize = 200_000;

/// Goes through every state that the machine can come to, by depth first, with a machine built anew
/// for each; `check` is asked wherever nothing can move any more. Returns how many states there
/// are, or the first failure and the choices that led there.
pub fn all<'p>(
    machine: impl Fn() -> Machine<'p>,
    check: impl Fn(&Machine<'p>) -> Result<(), Failure>,
) -> Result<usize, (Failure, Vec<Choice>)> {
    let mut seen = HashSet::new();
    let mut open: Vec<Vec<Choice>> = vec![Vec::new()];
    while let Some(mut path) = open.pop() {
        let mut here = machine();
        for &choice in &path {
            if let Err(failure) = here.take(choice) {
                return Err((failure, path));
            }
        }
        // On from here along first choices; the others are for later.
        while seen.insert(here.state()) {
            let choices = here.choices();
            let Some((&first, others)) = choices.split_first() else {
                if let Err(failure) = check(&here) {
                    return Err((failure, path));
                }
                break;
            };
            for &other in others {
                open.push([&path[..], &[other]].concat());
            }
            path.push(first);
            if let Err(failure) = here.take(first) {
                return Err((failure, path));
            }
        }
    }
    Ok(seen.len())
}

/// Pseudo-random numbers (Steele, Lea, Flood 2014, SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Runs the machine to its end by a schedule drawn from `seed`: with its own preference for
/// deliveries that come late and for threads and ways that are left behind.
pub fn random(machine: &mut Machine<'_>, seed: u64) -> Result<(), Failure> {
    let mut random = Random(seed);
    let stores_of_16 = [1, 2, 8, 14][random.below(4)];
    let slow = random.next() & random.next();
    let is_slow = |choice: Choice| {
        let number = match choice {
            Choice::Run(thread) => thread,
            Choice::Drain(thread) => 16 + thread % 16,
            Choice::Deliver(from, to) => 32 + (from * 7 + to) % 32,
        };
        slow >> (number % 64) & 1 == 1
    };
    for _ in 0..MOST_MOVES {
        let choices = machine.choices();
        if choices.is_empty() {
            return machine.end();
        }
        let stores = random.below(16) < stores_of_16;
        let mut choice = choices[random.below(choices.len())];
        for _ in 0..4 {
            let moves_store = !matches!(choice, Choice::Run(_));
            if moves_store == stores && (!is_slow(choice) || random.below(32) == 0) {
                break;
            }
            choice = choices[random.below(choices.len())];
        }
        machine.take(choice)?;
    }
    panic!("{MOST_MOVES} moves and no end");
}
