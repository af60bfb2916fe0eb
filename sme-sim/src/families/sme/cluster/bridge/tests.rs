//! A bridge alone with a coherent domain whose cores hold up lines: what enters takes effect in the
//! order in which it came, and a read sees every write before it.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::families::sme;
use crate::families::sme::cluster::watched::{Plugged, Watched};
use crate::families::sme::engine::Design;
use crate::machine::{Machine, Setup};

/// The ways in which a bridge goes on behind a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    Serial,
    Pipelined,
    /// A fault: as soon as a write has entered, before its line's home has ordered it.
    AtOnce,
}

/// A packet that comes to the bridge, or an access of a core meanwhile.
#[derive(Clone, Copy, Debug)]
enum Comes {
    Write(u64),
    Read(u64),
    /// A core takes the line for itself, which holds up the bridge's access to it.
    Core(u64),
}

const LINES: u64 = 3;

struct Bench {
    here: Here,
    domain: Domain,
    way: Way,
    bridge: Bridge,
    goes: Goes,
    /// In the order in which the bridge's writes took effect, their values.
    effects: Vec<u64>,
    /// The values that reads brought, by tag.
    reads: Vec<(u8, u64)>,
}

impl Bench {
    fn new(goes: Goes, homes: &str, seed: u64) -> Self {
        let writes = if goes == Goes::Serial {
            "serial"
        } else {
            "pipelined"
        };
        let machine = Machine::builtin("sme-prototype").unwrap();
        let set = [("host.bridge_writes", writes), ("coherence.homes", homes)];
        let machine = machine.with(&set).unwrap();
        let spec = sme::of(&machine).unwrap().clone();
        let topology = "mesh:2x1".parse().unwrap();
        let setup = Setup::new(machine.shape(), 2, 4).on(topology);
        let design = Arc::new(Design::new(&spec, &setup.topology, 2).unwrap());
        let engine = Watched::new(Plugged::cycle(&design, 0, 2), &spec, 0, 2);
        let constants = Arc::new(Constants::new(spec, setup));
        let memory = (Arc::clone(&constants.latencies), constants.homes);
        Self {
            here: Here::new(0, Arc::clone(&constants), false),
            domain: Domain::new(memory, &[0, 1, 2, 3], seed, 0),
            way: Way::new(0, constants, engine),
            bridge: Bridge::default(),
            goes,
            effects: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Runs until nothing is left to happen; each of `comes` is so many nanoseconds behind the
    /// last.
    fn run(&mut self, comes: &[(u64, Comes)]) {
        let mut at = Time::ZERO;
        for (number, &(gap, what)) in comes.iter().enumerate() {
            at += Time::from_ns(gap);
            self.until(at);
            self.here.now = at;
            self.comes(number, what);
        }
        self.until(Time::NEVER);
    }

    fn comes(&mut self, number: usize, what: Comes) {
        let trace = 0;
        match what {
            Comes::Write(line) => {
                let packet = HtPacket::Write {
                    address: 64 * line,
                    data: number as u64 + 1,
                    enables: 0xff,
                    coherent: true,
                    trace,
                };
                self.bridge.takes(packet, &mut self.here);
            }
            Comes::Read(line) => {
                let packet = HtPacket::Read {
                    address: 64 * line,
                    enables: 0xff,
                    extra_words: 0,
                    tag: number as u8,
                    trace,
                };
                self.bridge.takes(packet, &mut self.here);
            }
            Comes::Core(line) => {
                let line = self.domain.line(64 * line);
                let core = (number % 4) as u16;
                let other_word = (Kind::Own, Bytes::word(8), 0);
                let (now, agenda) = (self.here.now, &mut self.here.agenda);
                self.domain.request(now, core, line, other_word, 0, agenda);
            }
        }
    }

    fn until(&mut self, end: Time) {
        while self.here.agenda.next() < end {
            let Some((at, event)) = self.here.agenda.pop() else {
                return;
            };
            self.here.now = at;
            self.happens(event);
        }
    }

    fn happens(&mut self, event: Event) {
        let now = self.here.now;
        match event {
            Event::Bridge => {
                let is_write = matches!(self.bridge.queue.front(), Some(HtPacket::Write { .. }));
                (self.bridge).next(&mut self.here, &mut self.domain, &mut self.way);
                if is_write && self.goes == Goes::AtOnce {
                    self.bridge.ordered(&mut self.here, &mut self.way);
                }
            }
            Event::Home(number) => {
                let started = self.domain.arrive(now, number, &mut self.here.agenda);
                self.started(started);
            }
            Event::Release(line) => {
                let started = self.domain.release(now, line, &mut self.here.agenda);
                self.started(started);
            }
            Event::Complete(number) => {
                let transaction = self.domain.complete(number);
                if let Kind::Fetch { .. } = transaction.kind {
                    let tag = self.bridge.reads.iter().find(|read| read.0 == number);
                    self.reads.push((tag.unwrap().1, transaction.value));
                }
                if transaction.agent == super::super::transaction::BRIDGE {
                    let memory = (self.domain.address_of(transaction.line), &transaction);
                    (self.bridge).answered(number, memory, &mut self.here, &mut self.way);
                }
            }
            // The link and the engine are no part of this.
            _ => {}
        }
    }

    fn started(&mut self, number: Option<u32>) {
        let Some(number) = number else { return };
        if !self.domain.is_posted(number) {
            return;
        }
        self.effects.push(self.domain.value_of(number));
        if self.goes != Goes::AtOnce {
            self.bridge.ordered(&mut self.here, &mut self.way);
        }
    }
}

/// Returns whether all writes take effect in order, and every read sees the last write to its line
/// before it, or one that came later.
fn check(goes: Goes, homes: &str, seed: u64, comes: &[(u64, Comes)]) -> Result<(), String> {
    let mut bench = Bench::new(goes, homes, seed);
    bench.run(comes);
    let writes = |of: Option<u64>| {
        let numbered = comes.iter().enumerate();
        let values = numbered.filter_map(move |(number, &(_, what))| match what {
            Comes::Write(line) if of.is_none_or(|of| of == line) => Some(number as u64 + 1),
            _ => None,
        });
        values.collect::<Vec<_>>()
    };
    if bench.effects != writes(None) {
        return Err(format!(
            "writes took effect in the order {:?}",
            bench.effects
        ));
    }
    for &(tag, value) in &bench.reads {
        let Comes::Read(line) = comes[usize::from(tag)].1 else {
            return Err(format!("{tag} is no read"));
        };
        let before = writes(Some(line))
            .into_iter()
            .filter(|&write| write <= tag.into());
        let least = before.max().unwrap_or(0);
        if value < least {
            return Err(format!(
                "read {tag} brought {value}, behind the write of {least}"
            ));
        }
    }
    let reads = comes
        .iter()
        .filter(|(_, what)| matches!(what, Comes::Read(_)));
    match bench.reads.len() == reads.count() && bench.bridge.is_quiet() {
        true => Ok(()),
        false => Err("something is still under way".into()),
    }
}

fn cases() -> impl Strategy<Value = (&'static str, u64, Vec<(u64, Comes)>)> {
    let comes = prop_oneof![
        3 => (0..LINES).prop_map(Comes::Write),
        1 => (0..LINES).prop_map(Comes::Read),
        3 => (0..LINES).prop_map(Comes::Core),
    ];
    let homes = prop::sample::select(vec!["first", "lines"]);
    // A packet has a tag of 5 bits.
    let comes = prop::collection::vec((0..200u64, comes), 1..32);
    (homes, any::<u64>(), comes)
}

#[test]
fn writes_take_effect_in_order_and_reads_see_those_before_them() {
    for goes in [Goes::Serial, Goes::Pipelined] {
        let mut runner = TestRunner::new(Config::with_cases(200));
        let result = runner.run(&cases(), |(homes, seed, comes)| {
            check(goes, homes, seed, &comes).map_err(TestCaseError::fail)
        });
        assert!(result.is_ok(), "{goes:?}: {result:?}");
    }
}

#[test]
fn a_bridge_that_lets_writes_overtake_is_caught() {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(200)
    });
    let result = runner.run(&cases(), |(homes, seed, comes)| {
        check(Goes::AtOnce, homes, seed, &comes).map_err(TestCaseError::fail)
    });
    let said = result.expect_err("it is caught").to_string();
    assert!(
        said.contains("in the order") || said.contains("behind the write"),
        "{said}"
    );
}

/// The times at which writes to different lines take effect that have all come at 0.
#[test]
fn a_pipelined_bridge_takes_a_write_each_time_it_takes() {
    for (goes, each) in [(Goes::Serial, 60 + 33 + 4 * 15), (Goes::Pipelined, 60)] {
        let mut bench = Bench::new(goes, "first", 1);
        for number in 0..3 {
            bench.comes(number as usize, Comes::Write(number));
        }
        for number in 0..3u64 {
            let at = Time::from_ns(60 + number * each);
            bench.until(at);
            assert_eq!(bench.effects.len() as u64, number, "{goes:?}");
            bench.until(at + Time::from_ps(1));
            assert_eq!(bench.effects.len() as u64, number + 1, "{goes:?}");
        }
    }
}
