//! x86-TSO as a machine (Owens, Sarkar, Sewell, "A Better x86 Memory Model: x86-TSO", TPHOLs 2009):
//! a buffer of stores in order for each thread, which forwards to the thread's own loads, and one
//! memory. Asked whether what was observed is among what it can do.

use std::collections::HashSet;

/// An action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Loaded this from a variable.
    Load(usize, u64),
    /// Stored this to a variable.
    Store(usize, u64),
    /// Let all its stores leave.
    Fence,
    /// Let all its stores leave, loaded the first value from a variable and stored the second to
    /// it, with nothing between (an instruction with a LOCK prefix).
    Update(usize, u64, u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Acts done, and stores that have left, of each thread.
    threads: Vec<(usize, usize)>,
    memory: Vec<u64>,
}

/// Returns whether threads that did `acts` can have observed just that and left `last` in memory,
/// which held `first`. Without `buffers`, stores take effect at once: sequential consistency.
pub fn allows(acts: &[Vec<Act>], first: &[u64], last: &[u64], buffers: bool) -> bool {
    let stores: Vec<Vec<(usize, usize, u64)>> = acts
        .iter()
        .map(|acts| {
            let numbered = acts.iter().enumerate();
            numbered
                .filter_map(|(at, act)| match *act {
                    Act::Store(variable, value) => Some((at, variable, value)),
                    _ => None,
                })
                .collect()
        })
        .collect();
    let start = State {
        threads: vec![(0, 0); acts.len()],
        memory: first.to_vec(),
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let mut each = state.threads.iter().zip(acts).zip(&stores);
        let done =
            each.all(|((&(at, left), acts), stores)| at == acts.len() && left == stores.len());
        if done && state.memory == last {
            return true;
        }
        for (thread, &(at, left)) in state.threads.iter().enumerate() {
            let buffered = stores[thread][left..].iter().take_while(|s| s.0 < at);
            let mut push = |next: State| {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            };
            if let Some(&(_, variable, value)) = buffered.clone().next() {
                let mut next = state.clone();
                next.threads[thread].1 += 1;
                next.memory[variable] = value;
                push(next);
                if !buffers {
                    continue;
                }
            }
            let may = match acts[thread].get(at) {
                None => false,
                Some(Act::Store(..)) => true,
                Some(Act::Fence) => buffered.clone().next().is_none(),
                Some(&Act::Update(variable, before, _)) => {
                    buffered.clone().next().is_none() && state.memory[variable] == before
                }
                Some(&Act::Load(variable, value)) => {
                    let own = buffered.filter(|s| s.1 == variable).last();
                    own.map_or(state.memory[variable], |own| own.2) == value
                }
            };
            if may {
                let mut next = state.clone();
                next.threads[thread].0 += 1;
                if let Some(&Act::Update(variable, _, after)) = acts[thread].get(at) {
                    next.memory[variable] = after;
                }
                push(next);
            }
        }
    }
    false
}

/// Store buffering is allowed with buffers, message passing the wrong way round never is.
#[test]
fn the_oracle_knows_the_usual_litmus_tests() {
    use Act::{Fence, Load, Store, Update};
    let both = |acts: &[Vec<Act>], last: [u64; 2]| {
        [true, false].map(|buffers| allows(acts, &[0, 0], &last, buffers))
    };
    let buffering = [vec![Store(0, 1), Load(1, 0)], vec![Store(1, 1), Load(0, 0)]];
    assert_eq!(both(&buffering, [1, 1]), [true, false]);
    let fenced = [
        vec![Store(0, 1), Fence, Load(1, 0)],
        vec![Store(1, 1), Fence, Load(0, 0)],
    ];
    assert_eq!(both(&fenced, [1, 1]), [false, false]);
    let updated = [
        vec![Store(0, 1), Update(2, 0, 1), Load(1, 0)],
        vec![Store(1, 1), Update(3, 0, 1), Load(0, 0)],
    ];
    let locked = |acts: &[Vec<Act>], last: &[u64]| allows(acts, &[0; 4], last, true);
    assert!(
        !locked(&updated, &[1, 1, 1, 1]),
        "an update drains the buffer"
    );
    let counted = |second| [vec![Update(0, 0, 1)], vec![Update(0, second, second + 1)]];
    assert!(locked(&counted(1), &[2, 0, 0, 0]));
    assert!(!locked(&counted(0), &[1, 0, 0, 0]), "nothing comes between");
    let passing = |second| {
        [
            vec![Store(0, 1), Store(1, 1)],
            vec![Load(1, 1), Load(0, second)],
        ]
    };
    assert_eq!(both(&passing(1), [1, 1]), [true, true]);
    assert_eq!(both(&passing(0), [1, 1]), [false, false]);
    let coherence = [vec![Store(0, 1)], vec![Load(0, 1), Load(0, 0)]];
    assert_eq!(both(&coherence, [1, 0]), [false, false]);
    let own = [vec![Store(0, 1), Load(0, 0)]];
    assert_eq!(both(&own, [1, 0]), [false, false]);
    assert_eq!(both(&passing(1), [1, 0]), [false, false]);
}
