//! Leaders that write the phase while their followers still look at it: no barrier does, and the
//! compact form must still do what the readable one does, of which the same leader is a program
//! here.

use proptest::prelude::*;
use sme_barrier::{Barrier, Member};
use sme_memory::{Flags, Followers, Leader, Memory, Place, Route, Step, Until};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::case::{Algorithm, Case, Seen, cases};

/// A leader that, in every episode, flips its node's phase before the first wait for a row of
/// flags, and reads it so many times before that.
#[derive(Clone, Copy)]
struct Hasty<L> {
    sound: L,
    reads: u8,
}

#[derive(Clone, Copy, Default)]
struct State<S> {
    sound: S,
    /// The wait, once it has been put off.
    put_off: Option<Step>,
    /// The number of reads of the phase since.
    read: u8,
    /// The phase has been flipped in this episode.
    is_over: bool,
}

impl<L: Leader> Leader for Hasty<L> {
    type State = State<L::State>;

    fn next(&self, node: u32, state: &mut Self::State, answer: u8) -> Step {
        let offset = self.followers().phase;
        if state.put_off.is_none() {
            let step = self.sound.next(node, &mut state.sound, answer);
            match step {
                Step::WaitAll(..) if !state.is_over => state.put_off = Some(step),
                Step::Leave => state.is_over = false,
                _ => {}
            }
            if state.put_off.is_none() {
                return step;
            }
        }
        if state.read < self.reads {
            state.read += 1;
            return Step::Read(offset);
        }
        match (state.is_over, state.put_off) {
            (false, Some(Step::WaitAll(_, Until::IsNot(phase)))) => {
                state.is_over = true;
                Step::Set(Place { node, offset }, phase ^ 1)
            }
            (_, put_off) => {
                (state.put_off, state.read) = (None, 0);
                put_off.unwrap()
            }
        }
    }

    fn followers(&self) -> Followers {
        self.sound.followers()
    }

    fn bytes(&self) -> u64 {
        self.sound.bytes()
    }
}

/// The barrier of a leader as a program.
struct Led<L>(L);

impl<L: Leader> Barrier<ThreadMemory> for Led<L> {
    type Local = L::State;

    async fn wait(&self, memory: &ThreadMemory, me: Member, state: &mut L::State) {
        let own = |offset| {
            let place = Place {
                node: me.node,
                offset,
            };
            memory.flag(place, Route::Nearest)
        };
        let Followers { phase, flags } = self.0.followers();
        if me.core > 0 {
            let flag = own(flags.first + u64::from(me.core - 1) * u64::from(flags.stride));
            let found = memory.read(own(phase)).await;
            memory.set(flag, found ^ 1).await;
            memory.wait(own(phase), Until::IsNot(found)).await;
            return;
        }
        let mut answer = 0;
        loop {
            answer = match self.0.next(me.node, state, answer) {
                Step::Read(offset) => memory.read(own(offset)).await,
                Step::Wait(offset, until) => memory.wait(own(offset), until).await,
                Step::Set(place, value) => {
                    memory.set(memory.flag(place, Route::Nearest), value).await;
                    0
                }
                Step::WaitAll(row, until) => {
                    let flags = Flags {
                        first: own(row.first),
                        stride: row.stride,
                        count: row.count,
                    };
                    memory.wait_all(flags, until).await;
                    0
                }
                Step::Leave => return,
            };
        }
    }
}

/// Returns the outcome in both forms, and whether it ended well.
fn both<L: Leader + Clone + 'static>(case: &Case, leader: &L) -> [(Seen, Option<String>); 2] {
    let readable = case.watch_readable(Led(leader.clone()), 1);
    let compact = case.watch_compact(leader.clone(), 1);
    [readable, compact].map(|(seen, ended)| (seen, ended.err().map(without_sites)))
}

/// The report of `failure` without places in the source: compact form has none.
fn without_sites(mut failure: Failure) -> String {
    if let Failure::Deadlock { stuck, .. } = &mut failure {
        stuck.iter_mut().for_each(|thread| thread.site = None);
    }
    failure.to_string()
}

fn both_hasty(case: &Case, reads: u8) -> [(Seen, Option<String>); 2] {
    match case.algorithm {
        Algorithm::Tree { fan_in, shape } => {
            let sound = case.tree(fan_in, shape);
            both(case, &Hasty { sound, reads })
        }
        Algorithm::Dissemination => {
            let sound = case.dissemination();
            both(case, &Hasty { sound, reads })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn who_is_hasty_is_so_in_both_forms(
        case in cases(512),
        reads in 0u8..12,
        // With none, what followers do is told when their reads of the phase start.
        skew_ns in prop_oneof![Just(0u64), 0u64..300],
        operation in prop::sample::select(vec!["6 cycles", "200 cycles", "1000 cycles"]),
    ) {
        let mut case = Case {
            most_skew: Time::from_ns(skew_ns),
            ..case
        };
        case.overrides.push(("core.operation", operation));
        let [readable, compact] = both_hasty(&case, reads);
        prop_assert_eq!(compact, readable);
    }
}
