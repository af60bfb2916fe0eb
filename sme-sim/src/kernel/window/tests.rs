//! Relays that pass tokens on: the result does not depend on how many workers and processes run
//! them, and every fault between processes is noticed.

use proptest::prelude::*;

use super::*;
use crate::kernel::peers::{Connected, connected};
use crate::kernel::queue::EventQueue;

const LOOKAHEAD: Time = Time::from_ps(10);

/// Passes tokens on at pseudo-random times and writes down everything it sees. One in two has
/// nothing to do about a token that is not passed on any further, and only notes it, whenever it is
/// told.
struct Relay {
    me: u32,
    count: u32,
    sent: u64,
    queue: EventQueue<u64>,
    seen: Vec<(Time, u64)>,
    noted: Vec<(Time, u64)>,
    way: Option<Way>,
    /// The end of its last window.
    reached: Time,
}

/// The route of a token, which some relays learn from a task that any idle worker performs.
struct Way {
    now: Time,
    token: u64,
    me: u32,
    hash: u64,
}

impl Task<()> for Way {
    const ANY: bool = true;

    fn perform(&mut self, (): &mut ()) {
        let mixed = (self.token ^ u64::from(self.me)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = mixed;
    }
}

impl Relay {
    /// Everything, what was only noted in order of time behind the rest.
    fn all_seen(mut self) -> Vec<(Time, u64)> {
        self.noted.sort_unstable();
        self.seen.append(&mut self.noted);
        self.seen
    }

    fn passes_on(&mut self, way: &Way, outbox: &mut Outbox<u64>) {
        let to = (way.hash >> 32) as u32 % self.count;
        let at = way.now + LOOKAHEAD + Time::from_ps(way.hash >> 60);
        self.sent += 1;
        if to == self.me {
            self.queue.push(at, self.me, self.sent, way.token - 1);
        } else {
            outbox.send(self.me, self.sent, to, at, way.token - 1);
        }
    }
}

impl Locality for Relay {}

impl Node for Relay {
    type Message = u64;
    type Late = u64;
    type Workspace = ();
    type Task = Way;

    fn next(&self) -> Time {
        self.queue.next()
    }

    fn advance(
        &mut self,
        end: Time,
        inbox: &mut Inbox<'_, u64>,
        outbox: &mut Outbox<u64>,
        (): &mut (),
    ) -> Option<Way> {
        inbox.hand_over(self);
        self.reached = end;
        if let Some(way) = self.way.take() {
            self.passes_on(&way, outbox);
        }
        while self.queue.next() < end {
            let (now, token) = self.queue.pop()?;
            self.seen.push((now, token));
            if is_worn(token) {
                continue;
            }
            let me = self.me;
            let hash = 0;
            let mut way = Way {
                now,
                token,
                me,
                hash,
            };
            if token % 3 == 0 {
                return Some(way);
            }
            way.perform(&mut ());
            self.passes_on(&way, outbox);
        }
        None
    }

    fn take_back(&mut self, way: Way) {
        self.way = Some(way);
    }

    fn can_wait(&token: &u64) -> Option<u64> {
        is_worn(token).then_some(token)
    }

    fn waits(&self) -> bool {
        self.me.is_multiple_of(2)
    }

    fn deliver(&mut self, at: Time, from: u32, sequence: u64, token: u64) {
        assert!(at >= self.reached, "a message comes when its time is over");
        self.queue.push(at, from, sequence, token);
    }

    fn take_late(&mut self, at: Time, token: u64, _: Time) {
        assert!(at >= self.reached, "a message comes when its time is over");
        if self.waits() {
            // In an order of its own: late messages come in any.
            self.queue.push(at, self.me, token, token);
        } else {
            self.noted.push((at, token));
        }
    }
}

/// Returns whether a token is not passed on any more.
fn is_worn(token: u64) -> bool {
    token & 0xff == 0
}

/// The tokens that every relay has seen.
type Seen = Vec<Vec<(Time, u64)>>;

/// The relays of `share` among `count`, with those of `tokens` that begin there.
fn relays(share: std::ops::Range<u32>, count: u32, tokens: &[u64]) -> Vec<Relay> {
    let mut relays: Vec<Relay> = share
        .clone()
        .map(|me| Relay {
            me,
            count,
            sent: 0,
            queue: EventQueue::new(),
            seen: Vec::new(),
            noted: Vec::new(),
            way: None,
            reached: Time::ZERO,
        })
        .collect();
    for (n, &token) in tokens.iter().enumerate() {
        let me = n as u32 % count;
        if share.contains(&me) {
            let relay = &mut relays[(me - share.start) as usize];
            relay.sent += 1;
            let sent = relay.sent;
            relay.queue.push(Time::from_ps(token % 7), me, sent, token);
        }
    }
    relays
}

fn in_one_process(lookahead: Time, count: u32, tokens: &[u64], workers: usize) -> (Time, Seen) {
    let mut nodes = relays(0..count, count, tokens);
    let last = run(&mut nodes, lookahead, workers, |now, _| {
        (Verdict::Continue, now + Time::from_ps(100))
    });
    (last, nodes.into_iter().map(Relay::all_seen).collect())
}

/// Among `processes`, each of which `link` connects with the others.
fn among<P: Peers>(
    processes: usize,
    link: impl Fn(Connected) -> P + Sync,
    (count, tokens): (u32, &[u64]),
    workers: usize,
) -> Result<(Time, Seen), PeerError> {
    let process = |peers: Connected| {
        let share = Shares::new(count, processes).of(peers.me());
        let mut nodes = relays(share, count, tokens);
        let watch =
            |now, _: &[Relay], _: &mut dyn Peers| Ok((Verdict::Continue, now + Time::from_ps(100)));
        let mut peers = link(peers);
        let ran = run_among(&mut peers, count, &mut nodes, LOOKAHEAD, workers, watch);
        ran.map(|(last, exchanged)| {
            let seen: Seen = nodes.into_iter().map(Relay::all_seen).collect();
            (last, exchanged, seen)
        })
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let process = &process;
        let threads: Vec<_> = connected(processes)
            .into_iter()
            .map(|peers| scope.spawn(move || process(peers)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut all = Vec::new();
    let mut agreed = None;
    let mut gone = None;
    for result in ended {
        match result {
            Ok((last, exchanged, seen)) => {
                let same = *agreed.get_or_insert((last, exchanged.windows));
                assert_eq!(same, (last, exchanged.windows));
                all.extend(seen);
            }
            // The process that found an error tells more than one that then misses it.
            Err(error @ PeerError::Gone { .. }) => gone = Some(error),
            Err(error) => return Err(error),
        }
    }
    match gone {
        Some(error) => Err(error),
        None => Ok((agreed.map_or(Time::ZERO, |(last, _)| last), all)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_number_of_workers_sees_the_same(
        count in 1u32..200,
        tokens in proptest::collection::vec(0u64..1 << 20, 1..20),
        workers in 2usize..6,
    ) {
        prop_assert_eq!(
            in_one_process(LOOKAHEAD, count, &tokens, 1),
            in_one_process(LOOKAHEAD, count, &tokens, workers)
        );
    }

    #[test]
    fn any_number_of_processes_sees_the_same(
        count in 1u32..200,
        tokens in proptest::collection::vec(0u64..1 << 20, 1..20),
        processes in 1usize..5,
        workers in 1usize..4,
    ) {
        let alone = in_one_process(LOOKAHEAD, count, &tokens, 1);
        let together = among(processes, |peers| peers, (count, &tokens), workers);
        prop_assert_eq!(together, Ok(alone));
    }
}

/// The fault of one letter.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// The letter does not arrive.
    Lost,
    /// The letter comes instead of the next window's.
    Late,
    /// The same, and it says that it was written in that window.
    Backdated,
    /// One bit of it is another.
    Flipped,
    /// Its end is missing.
    Cut,
}

/// A connection on which the `nth` letter that has anything in it goes wrong.
struct Broken {
    peers: Connected,
    wrong: Wrong,
    nth: usize,
    held: Option<(usize, Vec<u8>)>,
}

impl Peers for Broken {
    fn count(&self) -> usize {
        self.peers.count()
    }

    fn me(&self) -> usize {
        self.peers.me()
    }

    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        let least = self.peers.exchange(letters, earliest)?;
        if let Some((process, held)) = self.held.take() {
            let letter = &mut letters[process];
            let stamp = letter.get(..8).map(<[u8]>::to_vec);
            if let (Wrong::Backdated, Some(stamp)) = (self.wrong, stamp) {
                letter.splice(..0, [stamp, held[8..].to_vec()].concat());
                letter.drain(held.len()..held.len() + 8);
            } else {
                *letter = held;
            }
            return Ok(least);
        }
        for (process, letter) in letters.iter_mut().enumerate() {
            if letter.is_empty() {
                continue;
            }
            if self.nth == 0 {
                match self.wrong {
                    Wrong::Lost => letter.clear(),
                    Wrong::Late | Wrong::Backdated => {
                        self.held = Some((process, std::mem::take(letter)));
                    }
                    Wrong::Flipped => {
                        // The token: what it says, not how it is packed.
                        let last = letter.len() - 1;
                        letter[last] ^= 1;
                    }
                    Wrong::Cut => letter.truncate(letter.len() - 1),
                }
            }
            self.nth = self.nth.wrapping_sub(1);
        }
        Ok(least)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        self.peers.all_gather(mine)
    }
}

#[test]
fn whatever_goes_wrong_on_the_way_is_found() {
    let tokens: Vec<u64> = (1..40).map(|n| n * 7_919).collect();
    let alone = in_one_process(LOOKAHEAD, 12, &tokens, 1);
    for processes in 2..5 {
        for nth in [0, 3, 40] {
            for wrong in [
                Wrong::Lost,
                Wrong::Late,
                Wrong::Backdated,
                Wrong::Flipped,
                Wrong::Cut,
            ] {
                let link = |peers: Connected| Broken {
                    nth: if peers.me() == 1 { nth } else { usize::MAX },
                    peers,
                    wrong,
                    held: None,
                };
                let broken = among(processes, link, (12, &tokens), 1);
                let case = format!("{wrong:?}, letter {nth} among {processes}: {broken:?}");
                match wrong {
                    Wrong::Lost | Wrong::Flipped => assert_ne!(broken, Ok(alone.clone()), "{case}"),
                    Wrong::Late | Wrong::Cut => {
                        assert!(matches!(broken, Err(PeerError::Garbled { .. })), "{case}");
                    }
                    // It may still come in time.
                    Wrong::Backdated => assert!(
                        matches!(broken, Err(PeerError::Garbled { .. }))
                            || broken.as_ref() == Ok(&alone),
                        "{case}"
                    ),
                }
            }
        }
    }
}

/// A process that ends takes the others with it, wherever they wait.
#[test]
fn who_is_left_behind_says_so() {
    struct Leaving(Connected, u32);
    impl Peers for Leaving {
        fn count(&self) -> usize {
            self.0.count()
        }
        fn me(&self) -> usize {
            self.0.me()
        }
        fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
            self.1 = self.1.wrapping_sub(1);
            if self.1 == 0 {
                return Err(PeerError::TooLong { bytes: 0 });
            }
            self.0.exchange(letters, earliest)
        }
        fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
            self.0.all_gather(mine)
        }
    }
    let tokens: Vec<u64> = (1..40).map(|n| n * 7_919).collect();
    for workers in [1, 3] {
        let link = |peers: Connected| {
            let windows = if peers.me() == 2 { 9 } else { 0 };
            Leaving(peers, windows)
        };
        let ended = among(4, link, (12, &tokens), workers);
        assert_eq!(ended, Err(PeerError::TooLong { bytes: 0 }));
    }
}

/// In debug builds; and it ends, whichever worker finds it.
#[cfg(debug_assertions)]
#[test]
fn a_message_within_the_window_is_found() {
    let tokens: Vec<u64> = (0..40).map(|n| n * 7_919).collect();
    for workers in [1, 2, 4] {
        let run = || in_one_process(LOOKAHEAD.times(5), 8, &tokens, workers);
        let panic = std::panic::catch_unwind(run).unwrap_err();
        let text = panic.downcast_ref::<&str>().copied();
        assert_eq!(text, Some("a message within the window"));
    }
}
