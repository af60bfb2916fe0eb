//! The domain against a naive one, in which every core has 64 bytes of its own for each line, whose
//! states are those of the [table of MOESI](crate::parts::coherence), and every transaction is
//! applied in the order in which the home controller starts them.

mod naive;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustc_hash::FxHashMap;

use self::naive::{Access, Naive};
use super::*;
use crate::machine::Machine;
use crate::parts::coherence::summary::Summary;

/// Cores that do something.
const CORES: u16 = 6;
const LINES: u32 = 3;

/// An action of a core or the bridge.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A core loads, and goes on looking until its copy is invalidated if it is to spin.
    Read {
        core: u16,
        spins: bool,
    },
    Write {
        core: u16,
    },
    Update {
        core: u16,
        update: Update,
    },
    /// Through the bridge.
    Store {
        coherent: bool,
    },
    /// And so many words beyond, as far as the line has them.
    Fetch {
        extra_words: u8,
    },
}

/// A fault put into the domain on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A copy survives an invalidation.
    KeepsACopy,
    /// A spinning core is not told that its copy is gone.
    ForgetsASpinner,
    /// Copies follow a store that does not probe.
    NeverStale,
    /// The dirty bytes are dropped when the bridge takes the line.
    LosesDirtyBytes,
    /// The words beyond the first that the bridge has read come in another order.
    MixesWords,
}

/// The domain, the naive one beside it, and who waits for what.
struct Bench {
    domain: Domain,
    /// From one core that does something to the next.
    apart: u16,
    agenda: Agenda,
    lines: Vec<Naive>,
    /// Transactions under way: what they do, when they were sent, and when they took effect and
    /// what they must bring.
    sent: FxHashMap<u32, (Access, Time, Option<Effect>)>,
    /// The words that they must bring beyond that.
    extra_words: FxHashMap<u32, Vec<u64>>,
    spinning: [Option<u32>; CORES as usize],
    /// A core's store or update under way.
    owning: [bool; CORES as usize],
    started: [Option<Time>; LINES as usize],
    occupancy: Time,
    all_coherent: bool,
    stale_seen: bool,
    fault: Fault,
}

/// The time at which a transaction took effect, and the value that it must bring.
type Effect = (Time, u64);

type Checked = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Checked {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} instead of {expected:?}"))
    }
}

impl Bench {
    fn new(seed: u64, fault: Fault) -> Self {
        Self::wide(seed, fault, 1)
    }

    /// The same where every `apart`th core does something.
    fn wide(seed: u64, fault: Fault, apart: u16) -> Self {
        let machine = Machine::builtin("sme-prototype").unwrap();
        let spec = crate::families::sme::of(&machine).unwrap();
        let cores = usize::from((CORES - 1) * apart + 1);
        let sockets: Vec<u8> = [0, 1, 2, 3].into_iter().cycle().take(cores).collect();
        let place = (Arc::new(Latencies::new(spec)), Homes::new(spec));
        let mut domain = Domain::new(place, &sockets, seed, 0);
        for line in 0..LINES {
            assert_eq!(domain.line(64 * u64::from(line)), line);
        }
        Self {
            domain,
            apart,
            agenda: Agenda::new(0),
            lines: vec![Naive::new(); LINES as usize],
            sent: FxHashMap::default(),
            extra_words: FxHashMap::default(),
            spinning: [None; CORES as usize],
            owning: [false; CORES as usize],
            started: [None; LINES as usize],
            occupancy: spec.coherence.occupancy,
            all_coherent: true,
            stale_seen: false,
            fault,
        }
    }

    /// Returns the number by which the domain knows a core.
    fn agent(&self, core: u16) -> u16 {
        core * self.apart
    }

    /// Returns the number of an agent among the acting cores, unless it is the bridge.
    fn core_of(&self, agent: u16) -> u16 {
        match agent {
            BRIDGE => BRIDGE,
            core => core / self.apart,
        }
    }

    /// Performs `acts`, each `gap` ns after the one before, and lets everything come to its end.
    fn run(&mut self, acts: &[(u64, Act, Access)]) -> Checked {
        let mut now = Time::ZERO;
        for &(gap, act, access) in acts {
            now += Time::from_ns(gap);
            self.run_to(now)?;
            self.act(now, act, access)?;
            self.check()?;
        }
        self.run_to(Time::NEVER)?;
        same("transactions left", self.domain.transactions.len(), 0)?;
        same("waited for", self.sent.len(), 0)
    }

    fn run_to(&mut self, end: Time) -> Checked {
        while self.agenda.next() < end {
            let Some((now, event)) = self.agenda.pop() else {
                break;
            };
            match event {
                Event::Home(number) => {
                    let line = self.domain.transactions[number as usize].line;
                    self.starting(now, line, Some(number))?;
                }
                Event::Release(line) => self.starting(now, line, None)?,
                Event::Complete(number) => self.completed(now, number)?,
                other => return Err(format!("unexpected {other:?}")),
            }
            self.check()?;
        }
        Ok(())
    }

    /// Those that wait for the line.
    fn queue(&self, line: u32) -> Vec<u32> {
        let mut queue = Vec::new();
        let mut number = self.domain.lines[line as usize].waiting;
        while number != NONE {
            queue.push(number);
            number = self.domain.transactions[number as usize].next;
        }
        queue
    }

    /// A transaction arrives at its home, or the home takes one of those that wait. Which of them
    /// started is told from who waits before and after.
    fn starting(&mut self, now: Time, line: u32, arrives: Option<u32>) -> Checked {
        let mut before = self.queue(line);
        before.extend(arrives);
        let holders = self.domain.lines[line as usize].roles.with(Role::Holds);
        if self.fault == Fault::ForgetsASpinner {
            let roles = &mut self.domain.lines[line as usize].roles;
            let first = roles.with(Role::Spins).iter().next();
            if let Some(first) = first {
                roles.remove(Role::Spins, first);
            }
        }
        if self.fault == Fault::LosesDirtyBytes && arrives.is_some() {
            let number = before[before.len() - 1] as usize;
            let kind = self.domain.transactions[number].kind;
            if kind == (Kind::Write { coherent: true }) {
                self.domain.lines[line as usize].copies = Summary::SHARED;
            }
        }
        let told = match arrives {
            Some(number) => self.domain.arrive(now, number, &mut self.agenda),
            None => self.domain.release(now, line, &mut self.agenda),
        };
        let after = self.queue(line);
        let started: Vec<u32> = before.into_iter().filter(|n| !after.contains(n)).collect();
        if started.len() > 1 {
            return Err("the home took two at once".into());
        }
        if told != started.first().copied() {
            return Err(format!("{started:?} started, the home says {told:?}"));
        }
        let Some(&number) = started.first() else {
            return Ok(());
        };
        let Transaction {
            agent, kind, bytes, ..
        } = self.domain.transactions[number as usize];
        if let Kind::Fetch {
            extra_words: extra_words @ 1..,
        } = kind
        {
            let newest = self.lines[line as usize].newest();
            let words = newest.chunks(8).map(|word| {
                word.iter()
                    .rev()
                    .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
            });
            let words = words.skip(1 + usize::from(bytes.word));
            self.extra_words
                .insert(number, words.take(extra_words.into()).collect());
            if self.fault == Fault::MixesWords
                && let Some((_, words)) = self.domain.extra_words.last_mut()
            {
                words.reverse();
            }
        }
        if let Some(last) = self.started[line as usize].replace(now)
            && now < last + self.occupancy
        {
            return Err(format!("the home was taken at {last}, and again at {now}"));
        }
        let core = self.core_of(agent);
        let refetches =
            |bench: &Bench| core != BRIDGE && bench.spinning[usize::from(core)] == Some(line);
        if !self.sent.contains_key(&number) && kind == Kind::Read && refetches(self) {
            // The domain itself asked for it, because a copy was invalidated under a spinner.
            let any = Access {
                line,
                at: 0,
                wide: false,
                value: 0,
                expected: 0,
            };
            self.lines[line as usize].apply(core, kind, any);
            return Ok(());
        }
        let Some((access, _, brings)) = self.sent.get_mut(&number) else {
            return Err(format!("{kind:?} was never sent"));
        };
        *brings = Some((now, self.lines[line as usize].apply(core, kind, *access)));
        let invalidates = matches!(
            kind,
            Kind::Own | Kind::Update(_) | Kind::Write { coherent: true }
        );
        let state = &mut self.domain.lines[line as usize];
        match self.fault {
            Fault::KeepsACopy if invalidates => {
                if let Some(first) = holders.iter().next() {
                    state.roles.insert(Role::Holds, first);
                }
            }
            Fault::NeverStale if kind == (Kind::Write { coherent: false }) => {
                state.images.fetch();
            }
            _ => {}
        }
        Ok(())
    }

    fn completed(&mut self, now: Time, number: u32) -> Checked {
        let transaction = self.domain.complete(number);
        let extra_words = self.domain.take_extra_words(number).map(<[u64]>::into_vec);
        same(
            "words extra_words",
            extra_words,
            self.extra_words.remove(&number),
        )?;
        if transaction.kind == Kind::Read {
            let core = usize::from(self.core_of(transaction.agent));
            if self.spinning[core] == Some(transaction.line) {
                self.spinning[core] = None;
            }
        } else if transaction.agent != BRIDGE {
            let core = self.core_of(transaction.agent);
            self.owning[usize::from(core)] = false;
        }
        let Some((access, sent, brings)) = self.sent.remove(&number) else {
            return Ok(());
        };
        let Some((started, brings)) = brings else {
            return Err(format!("ended {now} without effect"));
        };
        if !(sent <= started && started <= now) {
            return Err(format!("sent {sent}, took effect {started}, ended {now}"));
        }
        same(
            "value",
            transaction.value & access.mask(),
            brings & access.mask(),
        )
    }

    fn act(&mut self, now: Time, act: Act, access: Access) -> Checked {
        let (line, bytes) = (access.line, access.bytes());
        let agent = match act {
            Act::Read { core, .. } | Act::Write { core } | Act::Update { core, .. } => {
                self.agent(core)
            }
            Act::Store { .. } | Act::Fetch { .. } => BRIDGE,
        };
        let naive = &mut self.lines[line as usize];
        let (core, kind) = match act {
            Act::Read { core, spins } => {
                if self.spinning[usize::from(core)].is_some() {
                    return Ok(());
                }
                let expected = naive.copy(core).map(|line| access.read(&line));
                let found = self.domain.cached(agent, line, bytes);
                same("hit", found, expected)?;
                if self.domain.is_fetching(agent, line) {
                    return Ok(());
                }
                if found.is_some() {
                    if spins {
                        self.domain.spin(agent, line, bytes);
                        self.spinning[usize::from(core)] = Some(line);
                    }
                    return Ok(());
                }
                (core, Kind::Read)
            }
            Act::Write { core } | Act::Update { core, .. } if self.owning[usize::from(core)] => {
                return Ok(());
            }
            Act::Write { core } => {
                let owned = naive.stores_at_once(core);
                let at_once =
                    self.domain
                        .write_if_owned(agent, line, (bytes, access.value), (now, 0));
                same("owned", at_once, owned.is_some())?;
                if let Some(line) = owned {
                    access.write(line, access.value);
                    return Ok(());
                }
                (core, Kind::Own)
            }
            Act::Update { core, update } => {
                let owned = naive.stores_at_once(core);
                if update == Update::CompareExchange {
                    self.domain.expect(agent, access.expected);
                }
                let before = self.domain.update_if_owned(
                    agent,
                    line,
                    bytes,
                    (update, access.value),
                    (now, 0),
                );
                same("owned", before.is_some(), owned.is_some())?;
                if let Some(line) = owned {
                    return same("value before", before, Some(access.update(line, update)));
                }
                (core, Kind::Update(update))
            }
            Act::Store { coherent } => {
                self.all_coherent &= coherent;
                (BRIDGE, Kind::Write { coherent })
            }
            Act::Fetch { extra_words } => {
                let extra_words = extra_words.min(7 - bytes.word);
                (BRIDGE, Kind::Fetch { extra_words })
            }
        };
        let what = (kind, bytes, access.value);
        let (domain, agenda) = (&mut self.domain, &mut self.agenda);
        let number = if core == BRIDGE {
            domain.request_from_bridge(now, line, what, 0, agenda)
        } else {
            self.owning[usize::from(core)] |= kind != Kind::Read;
            // It has the number of the place that is free next.
            let number = domain.transactions.vacant_key() as u32;
            domain.request(now, agent, line, what, 0, agenda);
            number
        };
        self.sent.insert(number, (access, now, None));
        Ok(())
    }

    /// Every copy, every state, memory and the newest bytes are those of the naive domain; and a
    /// spinning core has a copy or is about to.
    fn check(&mut self) -> Checked {
        for (number, naive) in (0..).zip(&self.lines) {
            naive.check(self.all_coherent);
            for core in 0..CORES {
                let (state, bytes) = (naive.state(core), naive.copy(core));
                let agent = self.agent(core);
                same("state", self.domain.state(agent, number), state)?;
                let words = |word: u8| {
                    self.domain
                        .cached(agent, number, Bytes::word(8 * u64::from(word)))
                };
                same("copy", line_of(words), bytes)?;
                self.stale_seen |= bytes.is_some_and(|bytes| bytes != naive.newest());
            }
            let words = |word: u8| {
                Some(
                    self.domain
                        .in_memory(number, Bytes::word(8 * u64::from(word))),
                )
            };
            same("memory", line_of(words), Some(naive.memory))?;
            let words =
                |word: u8| Some(self.domain.newest(number, Bytes::word(8 * u64::from(word))));
            same("newest", line_of(words), Some(naive.newest()))?;
        }
        for (core, line) in (0..).zip(self.spinning) {
            let Some(line) = line else {
                continue;
            };
            let agent = self.agent(core);
            let has = self.domain.cached(agent, line, Bytes::byte(0)).is_some();
            if !has && !self.domain.is_fetching(agent, line) {
                return Err(format!("core {core} spins on nothing"));
            }
        }
        Ok(())
    }
}

fn line_of(word: impl Fn(u8) -> Option<u64>) -> Option<[u8; 64]> {
    let mut line = [0; 64];
    for n in 0..8 {
        let first = 8 * usize::from(n);
        line[first..first + 8].copy_from_slice(&word(n)?.to_le_bytes());
    }
    Some(line)
}

fn acts(coherent: bool) -> impl Strategy<Value = Vec<(u64, Act, Access)>> {
    let core = || 0..CORES;
    let update = prop_oneof![
        Just(Update::Add),
        Just(Update::Swap),
        Just(Update::CompareExchange),
    ];
    let act = prop_oneof![
        4 => (core(), any::<bool>()).prop_map(|(core, spins)| Act::Read { core, spins }),
        2 => core().prop_map(|core| Act::Write { core }),
        1 => (core(), update).prop_map(|(core, update)| Act::Update { core, update }),
        1 => any::<bool>().prop_map(move |probes| Act::Store { coherent: probes || coherent }),
        1 => (0..8u8).prop_map(|extra_words| Act::Fetch { extra_words }),
    ];
    let access = (0..LINES, 0..16u8, any::<bool>(), 1..250u64, 0..3u64).prop_map(
        |(line, at, wide, value, expected)| Access {
            line,
            at: at * 4,
            wide,
            value,
            expected,
        },
    );
    let gap = prop_oneof![2 => 0..60u64, 1 => 0..500u64];
    let whole_words = |(gap, act, access): (u64, Act, Access)| {
        // Atomic operations are of words.
        let wide = access.wide || matches!(act, Act::Update { .. });
        (gap, act, Access { wide, ..access })
    };
    prop::collection::vec((gap, act, access).prop_map(whole_words), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn it_behaves_like_a_naive_one(acts in acts(true), seed in any::<u64>()) {
        let outcome = Bench::new(seed, Fault::None).run(&acts);
        prop_assert_eq!(outcome, Ok(()));
    }

    /// Cores on both sides of 64, and up to nearly the last that a node can have.
    #[test]
    fn a_wide_one_behaves_like_a_naive_one(
        acts in acts(false),
        seed in any::<u64>(),
        apart in prop_oneof![Just(16), Just(204)],
    ) {
        let outcome = Bench::wide(seed, Fault::None, apart).run(&acts);
        prop_assert_eq!(outcome, Ok(()));
    }

    #[test]
    fn copies_go_stale_like_those_of_a_naive_one(acts in acts(false), seed in any::<u64>()) {
        let outcome = Bench::new(seed, Fault::None).run(&acts);
        prop_assert_eq!(outcome, Ok(()));
    }
}

#[test]
fn faults_are_found() {
    for fault in [
        Fault::KeepsACopy,
        Fault::ForgetsASpinner,
        Fault::NeverStale,
        Fault::LosesDirtyBytes,
    ] {
        let mut runner = TestRunner::new(Config {
            failure_persistence: None,
            ..Config::with_cases(300)
        });
        let found = runner.run(&(acts(false), any::<u64>()), |(acts, seed)| {
            let apart = if seed % 2 == 0 { 1 } else { 50 };
            let outcome = Bench::wide(seed, fault, apart).run(&acts);
            prop_assert_eq!(outcome, Ok(()));
            Ok(())
        });
        assert!(found.is_err(), "{fault:?}");
    }
}

/// Stale copies do come about, so that the comparison with the naive domain means something.
#[test]
fn a_copy_is_stale_until_it_is_taken_away() {
    let access = |at, value| Access {
        line: 0,
        at,
        wide: false,
        value,
        expected: 0,
    };
    let read = |core| (1_000, Act::Read { core, spins: false }, access(0, 0));
    let store = |coherent, value| (1_000, Act::Store { coherent }, access(0, value));
    let seen = |acts: &[(u64, Act, Access)]| {
        let mut bench = Bench::new(1, Fault::None);
        assert_eq!(bench.run(acts), Ok(()));
        let copies = [0, 1].map(|core| bench.domain.cached(core, 0, Bytes::byte(0)));
        (copies, bench.stale_seen)
    };
    let coherent = [read(0), store(true, 5), read(1)];
    assert_eq!(seen(&coherent), ([None, Some(5)], false));
    let stale = [read(0), store(false, 5), read(1)];
    assert_eq!(seen(&stale), ([Some(0), Some(5)], true));
    let write = (1_000, Act::Write { core: 1 }, access(8, 9));
    let taken_away = [read(0), store(false, 5), read(1), write, read(0)];
    assert_eq!(seen(&taken_away), ([Some(5), Some(5)], true));
}
