//! Looks that a process makes by itself take the time that they take when it asks for each.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use sme_mpi::abi::facts::Interface;
use sme_mpi::abi::program::{Asked, Beside};
use sme_mpi::abi::{Compute, serve};
use sme_mpi::channel::Channel;
use sme_mpi::rank::Mpi;
use sme_mpi::wires::{RUNS, Setting, run_with};

use super::script::{BASE, Makes, Script, asked, number};

/// Places in memory: of the received data, a flag or a count, requests, indices, a status.
const DATA: u64 = BASE + 64;
const FLAG: u64 = BASE + 256;
const STATUS: u64 = BASE + 512;
const REQUESTS: u64 = BASE + 4096;
const INDICES: u64 = BASE + 32768;

/// So many requests that a process does not compare them.
const MANY: usize = 1100;

/// The calls that look.
const LOOKS: [&str; 5] = ["Iprobe", "Test", "Testall", "Testany", "Testsome"];

/// A program that looks for messages of rank 1, so often at most, makes a call with the first
/// request, reads the clock and ends, while rank 1 makes so many calls before it sends. The last
/// request gets its message first.
#[derive(Clone, Copy, Debug)]
struct Case {
    interface: Interface,
    look: &'static str,
    requests: usize,
    most: usize,
    then: Option<&'static str>,
    calls_before: usize,
    seed: u64,
    /// The index into [`RUNS`].
    run: usize,
}

/// The experience of the program of rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    looks: usize,
    has_found: bool,
    /// The clock behind the looks, in nanoseconds.
    clock_ns: u64,
}

fn with(name: &str, given: &[u64]) -> Asked {
    let mut values = [0; 16];
    values[..given.len()].copy_from_slice(given);
    asked(number(name), values)
}

fn reads_clock() -> Asked {
    Asked {
        beside: Some(Beside::ReadsClock(0)),
        ..with("Init", &[])
    }
}

impl Case {
    fn look(self) -> Asked {
        let world = self.interface.handle("COMM_WORLD");
        let ignore = self.interface.handle("STATUSES_IGNORE");
        let count = self.requests() as u64;
        match self.look {
            "Iprobe" => with("Iprobe", &[1, 0, world, FLAG, STATUS]),
            "Test" => with("Test", &[REQUESTS, FLAG, STATUS]),
            "Testall" => with("Testall", &[count, REQUESTS, FLAG, ignore]),
            "Testany" => with("Testany", &[count, REQUESTS, INDICES, FLAG, STATUS]),
            _ => with("Testsome", &[count, REQUESTS, FLAG, INDICES, ignore]),
        }
    }

    /// The requests of a look, as far as it takes several.
    fn requests(self) -> usize {
        match self.look {
            "Iprobe" => 0,
            "Test" => 1,
            _ => self.requests,
        }
    }

    fn begins(self, rank: u32) -> Vec<Asked> {
        let [world, byte] = ["COMM_WORLD", "BYTE"].map(|name| self.interface.handle(name));
        let bytes = self.interface.handle_bytes() as u64;
        let mut calls = vec![with("Init", &[])];
        let tags = 0..self.requests().max(1) as u64;
        if rank == 1 {
            calls.extend((0..self.calls_before).map(|_| reads_clock()));
            calls.extend(
                tags.rev()
                    .map(|tag| with("Send", &[DATA, 1, byte, 0, tag, world])),
            );
        } else if self.look != "Iprobe" {
            calls.extend(tags.map(|tag| {
                let request = REQUESTS + bytes * tag;
                with("Irecv", &[DATA, 1, byte, 1, tag, world, request])
            }));
        }
        calls
    }

    /// Runs both programs.
    fn sees(self, makes: Makes) -> Seen {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let last: Arc<Mutex<Option<Arc<Script>>>> = Arc::default();
        let setting = Setting {
            room: 64,
            seed: self.seed,
        };
        // Without a call of MPI_Finalize the message of rank 1 may be left.
        let _ = run_with(2, setting, RUNS[self.run], |wire| {
            let rank = wire.rank();
            let mut begins = self.begins(rank).into_iter();
            let seen = Arc::clone(&seen);
            let (mut looks, mut is_over) = (0, rank == 1);
            let mut clock = None;
            let calls = move |memory: &mut [u8]| {
                if let Some(call) = begins.next() {
                    return Some(call);
                }
                let flag = (FLAG - BASE) as usize;
                let has_found = looks > 0 && memory[flag] != 0;
                if !is_over && looks < self.most && !has_found {
                    looks += 1;
                    // The call must write it.
                    memory[flag] = 77;
                    return Some(self.look());
                }
                if !std::mem::replace(&mut is_over, true) {
                    let mut seen = seen.lock();
                    (seen.looks, seen.has_found) = (looks, has_found);
                    clock = Some(reads_clock());
                    let is_asked = !has_found && self.requests() > 0;
                    if let Some(then) = self.then.filter(|_| is_asked) {
                        return Some(with(then, &[REQUESTS]));
                    }
                }
                clock.take()
            };
            let script = Arc::new(Script::new(&[0], makes, Box::new(calls)));
            if rank == 0 {
                *last.lock() = Some(Arc::clone(&script));
            }
            async move {
                let mpi = Mpi::new(wire);
                serve(&mpi, script, || self.interface, Compute::Zero, None).await
            }
        });
        let script = last.lock().take().unwrap();
        let mut seen = *seen.lock();
        seen.clock_ns = script.answers.lock().last().copied().unwrap_or_default();
        seen
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let interface = prop::sample::select(vec![Interface::Mpich, Interface::Standard]);
    let look = prop::sample::select(LOOKS.to_vec());
    let requests = prop_oneof![20 => 1..4_usize, 1 => Just(MANY)];
    let then = prop::sample::select(vec![None, Some("Cancel"), Some("Request_free")]);
    let numbers = (1..400_usize, 0..300_usize, any::<u64>(), 0..RUNS.len());
    (interface, look, requests, then, numbers).prop_map(
        |(interface, look, requests, then, (most, calls_before, seed, run))| Case {
            interface,
            look,
            requests,
            most,
            then,
            calls_before,
            seed,
            run,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn looks_made_alone_take_their_time(case in cases()) {
        let (asks, alone) = (case.sees(Makes::None), case.sees(Makes::All));
        prop_assert!(asks.clock_ns > 0);
        if asks.has_found == alone.has_found {
            prop_assert_eq!(asks.clock_ns, alone.clock_ns);
        } else {
            // It has stopped before it was told.
            prop_assert!(asks.has_found && alone.looks == case.most);
            prop_assert!(asks.clock_ns <= alone.clock_ns);
        }
        let late = alone.looks - asks.looks;
        prop_assert!(late <= asks.looks / 16 + 1, "{} looks late", late);
    }
}

/// Looks that the simulator is not told of take no time: the comparison finds that.
#[test]
fn looks_that_are_not_told_of_are_found_out() {
    let case = Case {
        interface: Interface::Mpich,
        look: "Test",
        requests: 1,
        most: 10_000,
        then: None,
        calls_before: 300,
        seed: 1,
        run: 0,
    };
    let (asks, untold) = (case.sees(Makes::None), case.sees(Makes::Untold));
    assert!(asks.has_found && untold.has_found);
    assert_ne!((asks.looks, asks.clock_ns), (untold.looks, untold.clock_ns));
    assert_eq!(asks, case.sees(Makes::None));
}

/// A process that tells of more looks than it may make takes the time of those that it may: 64 per
/// call at most.
#[test]
fn a_process_takes_the_time_of_the_looks_that_it_may_have_made() {
    let case = Case {
        interface: Interface::Mpich,
        look: "Test",
        requests: 1,
        most: 320,
        then: Some("Cancel"),
        calls_before: 50_000,
        seed: 1,
        run: 0,
    };
    let (asks, claims) = (case.sees(Makes::None), case.sees(Makes::Claimed));
    assert_eq!((asks.looks, asks.has_found), (320, false));
    assert_eq!((claims.looks, claims.has_found), (320, false));
    let more = claims.clock_ns - asks.clock_ns;
    assert!(
        more > 0 && more < 64 * asks.clock_ns,
        "{more} of {}",
        asks.clock_ns
    );
}
