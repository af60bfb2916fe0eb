//! Leaders with one fault each: the run must end and say so, or give other times than the sound
//! one.

use sme_barrier::TreeShape;
use sme_memory::{FlagRow, Followers, Leader, Step};
use sme_sim::observe::failure::Failure;
use sme_sim::observe::spans::overtaken;
use sme_sim::time::Time;

use crate::case::{Algorithm, Case};
use crate::equal::case;

/// The fault of the leader of node 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The leader does not wait for its last follower.
    Impatient,
    /// The leader does not release its node's first child.
    Forgetful,
    /// The leader reads its phase once more before it releases any thread.
    Slow,
}

struct Faulty<L> {
    sound: L,
    fault: Fault,
}

/// The sound leader's state, how often this one has set a flag in its episode, and what it has put
/// off.
#[derive(Clone, Copy, Default)]
struct State<S> {
    sound: S,
    sets: u32,
    put_off: Option<Step>,
}

impl<L: Leader> Leader for Faulty<L> {
    type State = State<L::State>;

    fn next(&self, node: u32, state: &mut Self::State, answer: u8) -> Step {
        if let Some(step) = state.put_off.take() {
            return step;
        }
        let step = self.sound.next(node, &mut state.sound, answer);
        match step {
            Step::Leave => state.sets = 0,
            Step::Set(..) => state.sets += 1,
            _ => {}
        }
        match (node, self.fault, step) {
            (0, Fault::Impatient, Step::WaitAll(row, until)) => {
                let count = row.count.saturating_sub(1);
                Step::WaitAll(FlagRow { count, ..row }, until)
            }
            (0, Fault::Slow, Step::Set(..)) if state.sets == 1 => {
                state.put_off = Some(step);
                Step::Read(self.sound.followers().phase)
            }
            (0, Fault::Forgetful, Step::Set(..)) if state.sets == 1 => {
                self.sound.next(node, &mut state.sound, answer)
            }
            _ => step,
        }
    }

    fn followers(&self) -> Followers {
        self.sound.followers()
    }

    fn bytes(&self) -> u64 {
        self.sound.bytes()
    }
}

fn small() -> Case {
    Case {
        topology: "mesh:3x3".to_owned(),
        mapping: sme_barrier::Mapping::Rows,
        most_skew: Time::from_ns(100_000),
        ..case(
            Algorithm::Tree {
                fan_in: 2,
                shape: TreeShape::Heap,
            },
            9,
            6,
        )
    }
}

fn run(case: &Case, fault: Fault) -> Result<crate::case::Seen, Failure> {
    let sound = case.tree(2, TreeShape::Heap);
    case.try_compact(Faulty { sound, fault }, 1)
}

#[test]
fn who_does_not_wait_is_found() {
    let case = Case {
        last_episode: 23,
        ..small()
    };
    let seen = run(&case, Fault::Impatient).unwrap();
    assert!(overtaken(&seen.episodes).is_err());
}

#[test]
fn who_is_never_released_is_named() {
    let failure = run(&small(), Fault::Forgetful).unwrap_err();
    let Failure::Deadlock { stuck, more, .. } = &failure else {
        panic!("{failure}");
    };
    // Child 1 and its children 3 and 4, with theirs 7 and 8, hang in the first episode; all others
    // in the second.
    assert_eq!((stuck.len(), *more), (54, 0));
    let text = failure.to_string();
    assert!(text.contains("54 threads wait"), "{text}");
    let forgotten = text.lines().find(|line| line.contains("node 1 core"));
    assert_eq!(
        forgotten.map(str::trim),
        Some(
            "node 1 cores 0 to 5, 6 threads, each spins in its cache at byte 0 of node 1 (0x200000000) \
             until it is not 0: memory at home holds 0, its cache 0; never written"
        )
    );
    let root = text.lines().find(|line| line.contains("node 0 core 0 "));
    let root = root.unwrap_or_default();
    assert!(root.contains("until it is not 1"), "{root}");
    assert!(root.ends_with("last written by node 1 core 0"), "{root}");
}

#[test]
fn one_more_step_gives_other_times() {
    let case = Case {
        most_skew: Time::ZERO,
        ..small()
    };
    let slow = run(&case, Fault::Slow).unwrap();
    assert_ne!(slow.episodes, case.readable(1).episodes);
}

#[test]
fn another_seed_gives_other_times() {
    let case = case(Algorithm::Dissemination, 12, 8);
    let other = Case {
        seed: 2,
        ..case.clone()
    };
    assert_ne!(other.compact(1).episodes, case.readable(1).episodes);
}
